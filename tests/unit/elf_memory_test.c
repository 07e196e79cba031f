/* The C library of this very process, read back from memory, is the library that was loaded. */
#include "elf/elf.h"
#include "elf/memory.h"
#include "test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

static bool read_own(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    struct iovec local = {out, len}, remote = {(void *)(uintptr_t)address, len};
    (void)context;
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)len ||
           err_set(err, ERR_MALFORMED, 0, "nothing is mapped there");
}

static bool read_file(void *context, uint64_t offset, void *out, size_t len, struct err *err)
{
    return pread((int)(intptr_t)context, out, len, (off_t)offset) == (ssize_t)len ||
           err_set(err, ERR_MALFORMED, 0, "the file ends");
}

static struct memory_reader own = {read_own, NULL};

static bool find_libc(Dl_info *info)
{
    void *address = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    return address != NULL && dladdr(address, info) != 0 && info->dli_fname[0] == '/';
}

struct wanted {
    struct elf *elf;
    bool found;
};

static bool look(void *context, const struct elf_symbol *symbol)
{
    struct wanted *w = context;
    struct str name;
    w->found = w->found || (elf_name(w->elf, (enum elf_table)symbol->table, symbol->name, &name) &&
                            str_eq(name, STR("gnu_get_libc_version")));
    return true;
}

static void the_same_identity_and_symbols(void)
{
    Dl_info info;
    struct elf_memory memory;
    struct elf copied, original;
    struct err err = {0};
    if (!find_libc(&info)) {
        SKIP("the C library is linked in");
        return;
    }
    CHECK(elf_memory_copy(&memory, &own, (uint64_t)(uintptr_t)info.dli_fbase, &err));
    struct memory_reader reader = elf_memory_reader(&memory);
    int fd = open(info.dli_fname, O_RDONLY);
    struct memory_reader file = {read_file, (void *)(intptr_t)fd};
    CHECK(elf_open(&copied, &reader, &err));
    CHECK(elf_open(&original, &file, &err));
    CHECK(copied.build_id_bytes > 0);
    CHECK_INT(copied.build_id_bytes, original.build_id_bytes);
    CHECK(memcmp(copied.build_id, original.build_id, copied.build_id_bytes) == 0);
    CHECK_INT(copied.eh_frame_hdr.address, original.eh_frame_hdr.address);
    CHECK_INT(copied.tables[ELF_DYNSYM].count, original.tables[ELF_DYNSYM].count);
    struct wanted wanted = {&copied, false};
    CHECK(elf_each_function(&copied, ELF_DYNSYM, look, &wanted, &err));
    CHECK(wanted.found);
    elf_release(&copied);
    elf_release(&original);
    elf_memory_release(&memory);
    close(fd);
}

static void no_header_is_refused(void)
{
    static const char text[8192] = "no ELF at all";
    struct elf_memory memory;
    struct err err = {0};
    CHECK(!elf_memory_copy(&memory, &own, (uint64_t)(uintptr_t)text, &err));
    CHECK_INT(err.kind, ERR_MALFORMED);
    CHECK(!elf_memory_copy(&memory, &own, 0x1000, &err));
    CHECK_INT(memory.pieces.len, 0);
}

TESTS({"an image read from memory has the file's identity, unwind tables and exported symbols",
       the_same_identity_and_symbols},
      {"memory without an ELF header is refused", no_header_is_refused})
