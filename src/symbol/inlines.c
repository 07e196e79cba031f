/* The parent's half: starts the child that reads a debug file, takes its answers as bytes of a stranger, and gives it
 * the files that it may have.
 */
#include "symbol/inlines.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cursor.h"

enum {
    PIECE_BYTES = 16 << 10,
    OPENS_MAX = 1 << 14, /* files asked for; the largest programs have so many units */
};

struct inlines {
    struct inlines_request request;
    struct dwarf_task task;
    char path[DWARF_PATH_MAX];
    void *child;
    struct buf in; /* what was read and not taken yet, from `taken` on */
    size_t taken;
    size_t answered, opens;
    char missing[DWARF_PATH_MAX]; /* the first split unit that is nowhere; "": none */
    uint64_t started_ns;
    bool over;   /* no more answers */
    bool ended;  /* because it has closed its end */
    bool faulty; /* it sent what cannot be */
    struct source_line lines[PROFILE_INLINES_MAX]; /* the last answer; texts are in `in` */
    size_t line_count;
};

/* ---- starting ---- */

static bool is_debug_name(struct str name)
{
    return str_starts(name, STR(".debug_")) || str_starts(name, STR(".zdebug_"));
}

/* Files with other contents are nobody's business, whatever the image names. */
static bool has_debug_sections(const struct memory_reader *file)
{
    struct elf elf;
    bool found = false;
    if (!elf_open_sections(&elf, file, NULL)) {
        return false;
    }
    vec_each(&elf.sections, s)
    {
        struct str name;
        found = found || (elf_section_name(&elf, s, &name) && is_debug_name(name));
    }
    elf_release(&elf);
    return found;
}

static struct elf *elf_with_dwarf(struct symbol_files *files)
{
    static const enum symbol_file order[] = {FILE_DEBUG, FILE_MAIN};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        struct elf *elf = &files->elf[order[i]];
        if (files->has[order[i]] && (elf_section(elf, ".debug_info") != NULL ||
                                     elf_section(elf, ".zdebug_info") != NULL)) {
            return elf;
        }
    }
    return NULL;
}

static void set_path(struct inlines *in)
{
    const struct debug_source *debug = in->request.debug;
    struct str path = debug == NULL ? STR("") : debug->path(debug->context, in->request.image);
    if (path.len > 0 && path.len < sizeof in->path && memchr(path.ptr, 0, path.len) == NULL) {
        memcpy(in->path, path.ptr, path.len);
        in->task.path = in->path;
    }
}

struct inlines *inlines_start(const struct inlines_request *request, struct err *err)
{
    const struct sandbox *sandbox = request->sandbox;
    struct elf *elf = elf_with_dwarf(request->files);
    if (elf == NULL) {
        err_set(err, ERR_UNSUPPORTED, 0, "the file has no DWARF");
        return NULL;
    }
    struct inlines *in = calloc(1, sizeof *in);
    if (in == NULL) {
        err_set(err, ERR_MEMORY, 0, "no memory to read DWARF");
        return NULL;
    }
    in->request = *request;
    in->task = (struct dwarf_task){request->addresses, request->count, elf->bytes, NULL};
    set_path(in);
    buf_init(&in->in, 4 + DWARF_MESSAGE_MAX + PIECE_BYTES);
    in->started_ns = request->clock->mono_ns(request->clock->context);
    in->child = sandbox->start(sandbox->context, dwarf_work, &in->task, err);
    if (in->child == NULL) {
        free(in);
        return NULL;
    }
    if (elf->bytes.ptr == NULL && !sandbox->give(in->child, &elf->file)) {
        in->over = true;
    }
    return in;
}

/* ---- its messages ---- */

static bool wrong(struct inlines *in)
{
    in->faulty = in->over = true;
    return false;
}

/* Reads more behind what is in the buffer and not taken yet. */
static void read_more(struct inlines *in)
{
    const struct sandbox *sandbox = in->request.sandbox;
    struct buf *have = &in->in;
    have->len -= in->taken;
    if (in->taken > 0) {
        memmove(have->ptr, have->ptr + in->taken, have->len);
    }
    in->taken = 0;
    char *room = buf_room(have, PIECE_BYTES);
    ptrdiff_t got =
        room == NULL ? -1 : sandbox->read(in->child, room, PIECE_BYTES, in->request.deadline_ns);
    have->len += got > 0 ? (size_t)got : 0;
    in->over = got <= 0;
    in->ended = got == 0;
}

/* The next message, borrowed until the next call; false: there is none any more. */
static bool next_message(struct inlines *in, struct cursor *out)
{
    while (!in->over) {
        struct cursor c = cursor_of(in->in.ptr, in->in.len);
        cursor_skip(&c, in->taken);
        uint32_t len = cursor_u32(&c);
        if (!c.short_read && len > DWARF_MESSAGE_MAX) {
            return wrong(in);
        }
        if (!c.short_read && c.len >= len) {
            *out = cursor_of(c.ptr, len);
            in->taken += 4 + len;
            return true;
        }
        read_more(in);
    }
    return false;
}

static bool take_text(struct cursor *c, size_t len, struct str *out)
{
    const char *text = cursor_take(c, len);
    *out = len == 0 ? STR("") : (struct str){text, len};
    return !c->short_read && len <= DWARF_TEXT_MAX && memchr(out->ptr, 0, len) == NULL;
}

static bool take_line(struct cursor *c, struct source_line *out)
{
    out->line = cursor_u32(c);
    size_t name = cursor_u16(c), system_name = cursor_u16(c), file = cursor_u16(c);
    return take_text(c, name, &out->name) && take_text(c, system_name, &out->system_name) &&
           take_text(c, file, &out->file);
}

static bool take_answer(struct inlines *in, struct cursor *c)
{
    uint32_t number = cursor_u32(c);
    in->line_count = cursor_u8(c);
    bool good = number == in->answered && number < in->request.count && in->line_count <= PROFILE_INLINES_MAX;
    for (size_t i = 0; good && i < in->line_count; i++) {
        good = take_line(c, &in->lines[i]);
    }
    if (!good || c->short_read || c->len > 0) {
        in->line_count = 0;
        return wrong(in);
    }
    in->answered++;
    return true;
}

static struct str last_part(const char *path)
{
    struct str text = str_of(path);
    return str_sub(text, str_find_last(text, '/') + 1, text.len);
}

/* A unit is looked for in two places. */
static void note_unit(struct inlines *in, const char *path, bool found)
{
    struct str name = last_part(path);
    if (!str_ends(name, STR(".dwo"))) {
        return;
    }
    if (!found && in->missing[0] == '\0') {
        snprintf(in->missing, sizeof in->missing, "%s", path);
    } else if (found && str_eq(last_part(in->missing), name)) {
        in->missing[0] = '\0';
    }
}

static bool give_file(struct inlines *in, const char *path)
{
    const struct debug_source *debug = in->request.debug;
    const struct sandbox *sandbox = in->request.sandbox;
    struct memory_reader file;
    void *handle;
    if (debug == NULL || !debug->open(debug->context, in->request.image, path, &file, &handle)) {
        note_unit(in, path, false);
        return sandbox->give(in->child, NULL);
    }
    bool given = sandbox->give(in->child, has_debug_sections(&file) ? &file : NULL);
    debug->close(debug->context, handle);
    note_unit(in, path, true);
    return given;
}

static bool take_request(struct inlines *in, const struct cursor *c)
{
    char path[DWARF_PATH_MAX];
    if (c->len == 0 || c->len >= sizeof path || c->ptr[0] != '/' || memchr(c->ptr, 0, c->len) != NULL ||
        ++in->opens > OPENS_MAX) {
        return wrong(in);
    }
    memcpy(path, c->ptr, c->len);
    path[c->len] = '\0';
    return give_file(in, path) || wrong(in);
}

/* Takes messages up to the next answer. */
static bool next_answer(struct inlines *in)
{
    struct cursor c;
    while (next_message(in, &c)) {
        switch (cursor_u8(&c)) {
        case 'A':
            return take_answer(in, &c);
        case 'O':
            if (!take_request(in, &c)) {
                return false;
            }
            break;
        default:
            return wrong(in);
        }
    }
    return false;
}

/* The address's number; `count` when it is none of those asked for. */
static size_t number_of(const struct inlines_request *r, uint64_t address)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->addresses[middle] < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < r->count && r->addresses[low] == address ? low : r->count;
}

size_t inlines_lookup(struct inlines *in, uint64_t address,
                      struct source_line out[static PROFILE_INLINES_MAX], bool *late)
{
    size_t number = number_of(&in->request, address);
    *late = true;
    if (number == in->request.count || number + 1 < in->answered) {
        return 0;
    }
    while (in->answered <= number) {
        if (!next_answer(in)) {
            return 0;
        }
    }
    *late = false;
    memcpy(out, in->lines, in->line_count * sizeof *out);
    return in->line_count;
}

/* ---- the end ---- */

static enum inlines_end fail(struct err *err, const char *why)
{
    err_set(err, ERR_MALFORMED, 0, "the reader of its debug information %s", why);
    return INLINES_FAILED;
}

static enum inlines_end end_of(const struct inlines *in, enum sandbox_end end, struct err *err)
{
    const struct clock *clock = in->request.clock;
    uint64_t took_ns = clock->mono_ns(clock->context) - in->started_ns;
    if (in->faulty) {
        return fail(err, "sent a malformed answer");
    }
    switch (end) {
    case SANDBOX_CRASHED:
        return fail(err, "crashed");
    case SANDBOX_FILE_LOST:
        return fail(err, "could read its file no further: it was cut short meanwhile, or the disk failed");
    case SANDBOX_NO_MEMORY:
        return fail(err, "needs more memory than it may have");
    case SANDBOX_DENIED:
        err_set(err, ERR_DENIED, 0, "the kernel allows no seccomp filter");
        return INLINES_REFUSED;
    default:
        break;
    }
    if (in->missing[0] != '\0') {
        err_set(err, ERR_GONE, 0, "split debug information %s is not there", in->missing);
    }
    if (in->answered == in->request.count) {
        return INLINES_DONE;
    }
    if (in->ended && end == SANDBOX_DONE) {
        return fail(err, "ended early");
    }
    return in->answered == 0 && took_ns >= in->request.budget_ns / 2
               ? fail(err, "did not answer in time")
               : INLINES_LATE;
}

enum inlines_end inlines_end(struct inlines *in, struct err *err)
{
    enum inlines_end end = end_of(in, in->request.sandbox->end(in->child), err);
    buf_release(&in->in);
    free(in);
    return end;
}
