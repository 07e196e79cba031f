/* Is a file Ruby? Known by what it exports, never by its name: programs that load the interpreter's library, and
 * others that have it built in, are called anything. */
#include "runtime/ruby/private.h"

#include <stdio.h>
#include <stdlib.h>

void ruby_version_text(uint32_t version, char out[static RUBY_VERSION_TEXT])
{
    (void)snprintf(out, RUBY_VERSION_TEXT, "%u.%u.%u", version >> 16 & 255, version >> 8 & 255, version & 255);
}

static uint64_t find(struct elf *elf, const char *name)
{
    struct elf_symbol symbol;
    bool found = elf_find_dynamic(elf, name, &symbol) || elf_find_symbol(elf, ELF_SYMTAB, name, &symbol);
    return found ? symbol.address : 0;
}

/* 0: it is none. Of a text that was read. */
static uint32_t version_of(const char *text)
{
    unsigned part[3] = {0};
    for (size_t i = 0; i < 3; i++) {
        const char *start = text;
        for (; *text >= '0' && *text <= '9' && text < start + 3; text++) {
            part[i] = part[i] * 10 + (unsigned)(*text - '0');
        }
        if (text == start || part[i] > 255 || (i < 2 && *text++ != '.')) {
            return 0;
        }
    }
    return *text == '\0' ? RUBY_VERSION(part[0], part[1], part[2]) : 0;
}

static uint32_t version_in(struct elf *elf, uint64_t address)
{
    char text[RUBY_VERSION_TEXT] = "";
    uint64_t offset;
    bool read = elf_offset_of(elf, address, &offset) && elf_read(elf, offset, text, sizeof text - 1, NULL);
    return read ? version_of(text) : 0;
}

enum runtime_answer ruby_recognise(struct elf *elf, struct str path, const struct runtime_code *code, void **binary,
                                   struct err *why)
{
    (void)path;
    struct ruby_layout layout;
    struct elf_symbol version;
    struct ruby_binary found = {.machine = elf->machine};
    if (!elf_find_dynamic(elf, "ruby_version", &version) || find(elf, "ruby_run_node") == 0) {
        return RUNTIME_NO;
    }
    found.version = version_in(elf, version.address);
    if (elf->is_32bit || found.version == 0) {
        (void)err_set(why, ERR_UNSUPPORTED, 0, "%s is not read",
                      elf->is_32bit ? "a 32-bit Ruby" : "a Ruby that does not tell its version");
        return RUNTIME_UNSUPPORTED;
    }
    found.musl = !elf_needs(elf, "libc.so.6");
    if (!ruby_layout_of(found.version, found.machine, found.musl, &layout, why)) {
        return RUNTIME_UNSUPPORTED;
    }
    found.vm = find(elf, found.version < RUBY_VERSION(2, 5, 0) ? "ruby_current_vm" : "ruby_current_vm_ptr");
    found.symbols = find(elf, "ruby_global_symbols");
    struct ruby_binary *kept = malloc(sizeof *kept);
    if (kept == NULL) {
        (void)err_set(why, ERR_MEMORY, 0, "no memory for a Ruby");
        return RUNTIME_UNSUPPORTED;
    }
    *kept = found;
    ruby_find_ranges(elf, code, kept);
    *binary = kept;
    return RUNTIME_YES;
}

void ruby_forget(void *binary)
{
    struct ruby_binary *b = binary;
    if (b != NULL) {
        code_ranges_release(&b->ranges);
    }
    free(b);
}
