/*
 * Any bytes as an image and its debug file: opened, all sections read, symbols tabled, looked up
 * and named, also after the files were opened anew. The input: how long the image is (32 bits,
 * little-endian), the image, the debug file.
 */
#include "symbol/plt.h"
#include "symbol/symbols.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SECTION_MAX_BYTES = 1 << 20, SECTIONS_READ = 40, NAMES_READ = 200 };

struct input {
    struct str image, debug;
    int open;
};

static bool read_str(void *context, uint64_t offset, void *out, size_t len, struct err *err)
{
    const struct str *bytes = context;
    if (offset > bytes->len || len > bytes->len - offset) {
        return err_set(err, ERR_IO, 0, "end of the file");
    }
    memcpy(out, bytes->ptr + offset, len);
    return true;
}

static bool open_debug(void *context, uint64_t image, const char *path, struct memory_reader *out,
                       void **handle)
{
    struct input *input = context;
    (void)image;
    if (path[0] != '/' || strstr(path, "/../") != NULL) {
        abort();
    }
    input->open++;
    *out = (struct memory_reader){read_str, &input->debug};
    *handle = input;
    return true;
}

static void close_debug(void *context, void *handle)
{
    struct input *input = context;
    if (handle != input || input->open-- != 1) {
        abort();
    }
}

static struct str path_of(void *context, uint64_t image)
{
    (void)context;
    (void)image;
    return STR("/bin/image");
}

static void read_sections(struct elf *e)
{
    struct buf out;
    buf_init(&out, SECTION_MAX_BYTES);
    for (size_t i = 0; i < e->sections.len && i < SECTIONS_READ; i++) {
        buf_clear(&out);
        if (!elf_section_read(e, &e->sections.at[i], &out, NULL) && out.len != 0) {
            abort();
        }
    }
    buf_release(&out);
}

static void read_stubs(struct elf *e)
{
    struct plt plt;
    if (plt_read(&plt, e, NULL)) {
        for (size_t i = 0; i < plt.stubs.len; i++) {
            if (plt.stubs.at[i].bytes == 0 || plt.stubs.at[i].bytes > 32) {
                abort();
            }
        }
        plt_release(&plt);
    }
}

static void read_names(const struct symbols *s, struct symbol_files *files)
{
    struct buf name;
    buf_init(&name, 2 * ELF_NAME_MAX);
    for (size_t i = 0; i < s->table.len && i < NAMES_READ; i++) {
        uint64_t address = s->base + s->table.at[i].start;
        struct symbol_hit hit;
        buf_clear(&name);
        if (symbols_find(s, address, &hit)) {
            if (address < hit.start || address - hit.start >= hit.size) {
                abort();
            }
            (void)symbols_name(s, files, &hit, &name);
        }
    }
    buf_release(&name);
}

static void load(struct symbols *s, struct symbol_files *files)
{
    struct err err;
    if (symbols_load_files(s, files, &err)) {
        read_names(s, files);
    } else if (symbols_bytes(s) != 0) {
        abort();
    }
}

static struct input split(const uint8_t *data, size_t size)
{
    struct input input = {0};
    uint32_t len = 0;
    if (size >= sizeof len) {
        memcpy(&len, data, sizeof len);
        len = len < size - sizeof len ? len : (uint32_t)(size - sizeof len);
        input.image = (struct str){(const char *)data + sizeof len, len};
        input.debug = (struct str){input.image.ptr + len, size - sizeof len - len};
    }
    return input;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = split(data, size);
    struct debug_source source = {.open = open_debug, .close = close_debug, .path = path_of, .context = &input};
    struct memory_reader main = {read_str, &input.image};
    struct symbols s;
    symbols_init(&s, 1 << 20);
    for (int run = 0; run < 2; run++) {
        struct symbol_files files;
        if (!symbol_files_open(&files, &main, 1, &source, NULL)) {
            break;
        }
        if (run == 0) {
            read_sections(&files.elf[FILE_MAIN]);
            read_stubs(&files.elf[FILE_MAIN]);
            load(&s, &files);
            input.debug.len -= input.debug.len / 8; /* replaced by another one */
        } else {
            read_names(&s, &files);
        }
        symbol_files_release(&files);
        if (input.open != 0) {
            abort();
        }
    }
    symbols_release(&s);
    return 0;
}
