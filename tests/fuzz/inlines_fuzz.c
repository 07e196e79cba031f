/* Any bytes as what a child sends that reads debug information: look-ups end, and what they tell is text. */
#include "symbol/inlines.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ADDRESSES = 6 };

struct child {
    const uint8_t *data;
    size_t left;
};

/* An ELF file with a section .debug_info, of which nobody reads more than the name. */
static const unsigned char image[] = {
    0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 62, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    64, 0, 0, 0, 0, 0, 0, 0, 136, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 2, 0, 1, 0,
    [64] = 6, [120] = '.', 'd', 'e', 'b', 'u', 'g', '_', 'i', 'n', 'f', 'o', 0,
    [200] = 0, 0, 0, 0, 3, [224] = 120, [232] = 16, [263] = 0,
};

static void *start(void *context, void (*run)(void *argument, const struct sandbox_port *port), void *argument,
                   struct err *err)
{
    (void)run;
    (void)argument;
    (void)err;
    return context;
}

/* In pieces whose lengths the input chooses. */
static ptrdiff_t read_some(void *context, void *to, size_t max, uint64_t deadline_ns)
{
    struct child *child = context;
    size_t len = child->left == 0 ? 0 : 1 + child->data[child->left - 1] % 64;
    (void)deadline_ns;
    len = len < child->left ? len : child->left;
    len = len < max ? len : max;
    memcpy(to, child->data, len);
    child->data += len;
    child->left -= len;
    return (ptrdiff_t)len;
}

static bool give(void *child, const struct memory_reader *file)
{
    (void)file;
    return ((struct child *)child)->left % 7 != 0;
}

static enum sandbox_end end(void *child)
{
    return ((struct child *)child)->left % 5;
}

static uint64_t now(void *context)
{
    (void)context;
    return 1;
}

static bool open_nothing(void *context, uint64_t key, const char *path, struct memory_reader *out, void **handle)
{
    (void)context;
    (void)key;
    (void)out;
    (void)handle;
    if (path[0] != '/' || strlen(path) >= DWARF_PATH_MAX) {
        abort();
    }
    return false;
}

static struct str no_path(void *context, uint64_t key)
{
    (void)context;
    (void)key;
    return STR("");
}

static void check(struct str text)
{
    if (text.len > DWARF_TEXT_MAX || memchr(text.ptr, 0, text.len) != NULL) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t addresses[ADDRESSES] = {1, 2, 3, 5, 8, 13};
    struct symbol_files files = {.has[FILE_MAIN] = true};
    struct child child = {data, size};
    const struct sandbox sandbox = {start, read_some, give, end, &child};
    const struct debug_source debug = {.open = open_nothing, .path = no_path};
    const struct clock clock = {now, now, NULL};
    const struct inlines_request request = {&files, &debug, 1, &sandbox, &clock, addresses, ADDRESSES, 2, 2};
    struct source_line lines[PROFILE_INLINES_MAX];
    struct err err = {0};
    if (!elf_open_bytes(&files.elf[FILE_MAIN], image, sizeof image, NULL)) {
        abort();
    }
    struct inlines *in = inlines_start(&request, &err);
    if (in == NULL) {
        abort();
    }
    for (size_t i = 0; i < ADDRESSES; i++) {
        bool late;
        size_t count = inlines_lookup(in, addresses[i], lines, &late);
        if (count > PROFILE_INLINES_MAX || (late && count > 0)) {
            abort();
        }
        for (size_t k = 0; k < count; k++) {
            check(lines[k].name);
            check(lines[k].system_name);
            check(lines[k].file);
        }
    }
    (void)inlines_end(in, &err);
    elf_release(&files.elf[FILE_MAIN]);
    return 0;
}
