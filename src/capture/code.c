/* A file's code is opened by the first row of the registry that knows it, by the publisher for names at once, by the
 * sampler for the depths of frames when one is asked for: most files never are. Generated code has names that some row
 * reads. */
#include "capture/code.h"

#include <stdlib.h>

enum { NAME_MAX_BYTES = 64 * 1024 };

/* ---- files ---- */

struct of_file {
    const struct runtime *runtime;
    void *code;
    struct runtime_resolved resolved;
};

static bool find_in_file(void *context, uint64_t address, struct code_lines *out)
{
    struct of_file *f = context;
    const struct runtime_place at = {.address = address};
    bool found = f->runtime->resolve(f->code, &at, &f->resolved);
    if (found) {
        *out = f->resolved.lines;
    }
    return found;
}

static void close_file(void *context)
{
    struct of_file *f = context;
    f->runtime->close_code(f->code);
    free(f);
}

static struct of_file *open_file(const struct runtime *const *rows, struct elf *elf)
{
    struct of_file *f = calloc(1, sizeof *f);
    for (; f != NULL && *rows != NULL; rows++) {
        f->code = (*rows)->open_code != NULL ? (*rows)->open_code(elf, NULL) : NULL;
        if (f->code != NULL) {
            f->runtime = *rows;
            return f;
        }
    }
    free(f);
    return NULL;
}

bool code_of_file(const struct runtime *const *rows, struct elf *elf, struct code_source *out)
{
    struct of_file *f = open_file(rows, elf);
    *out = f == NULL ? *out : (struct code_source){find_in_file, close_file, f};
    return f != NULL;
}

struct depths {
    const struct runtime *const *rows;
    struct elf *elf;
    struct of_file *file; /* null: not opened yet, or of no row */
    bool was_tried;
};

_Static_assert(RUNTIME_OUTERMOST == UNWIND_OUTERMOST, "what the one tells the other");

static bool depth_at(void *context, uint64_t address, uint32_t *bytes)
{
    struct depths *d = context;
    d->file = d->was_tried ? d->file : open_file(d->rows, d->elf);
    d->was_tried = true;
    return d->file != NULL && d->file->runtime->depth != NULL &&
           d->file->runtime->depth(d->file->code, address, bytes);
}

static void release_depths(void *context)
{
    struct depths *d = context;
    if (d->file != NULL) {
        close_file(d->file);
    }
    free(d);
}

struct unwind_depths code_depths(const struct runtime *const *rows, struct elf *elf)
{
    struct depths *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return (struct unwind_depths){0};
    }
    *d = (struct depths){.rows = rows, .elf = elf};
    return (struct unwind_depths){depth_at, release_depths, d};
}

/* ---- generated code ---- */

struct of_generated {
    const struct runtime *const *rows;
    struct jit_names *names;
    struct buf text;
};

bool code_read_name(const struct runtime *const *rows, struct str raw, struct buf *out, struct runtime_named *named)
{
    for (; *rows != NULL; rows++) {
        if ((*rows)->read_name != NULL && (*rows)->read_name(raw, out, named)) {
            return true;
        }
    }
    return false;
}

static bool find_generated(void *context, uint64_t address, struct code_lines *out)
{
    struct of_generated *g = context;
    struct jit_hit hit;
    struct runtime_named named;
    buf_clear(&g->text);
    if (!jit_lookup(g->names, address, UINT64_MAX, &hit) || hit.name.len == 0 ||
        !code_read_name(g->rows, hit.name, &g->text, &named)) {
        return false;
    }
    struct str name = buf_slice(&g->text);
    out->line[0] = hit.file.len > 0 ? (struct source_line){name, name, hit.file, hit.line, NULL}
                                    : (struct source_line){name, name, named.file, named.line, NULL};
    out->count = 1;
    out->kind = (uint8_t)named.kind;
    return true;
}

static void close_generated(void *context)
{
    struct of_generated *g = context;
    buf_release(&g->text);
    free(g);
}

void code_of_generated(const struct runtime *const *rows, struct jit_names *names, struct code_source *out)
{
    struct of_generated *g = names == NULL ? NULL : calloc(1, sizeof *g);
    *out = (struct code_source){0};
    if (g != NULL) {
        *g = (struct of_generated){.rows = rows, .names = names};
        buf_init(&g->text, NAME_MAX_BYTES);
        *out = (struct code_source){find_generated, close_generated, g};
    }
}
