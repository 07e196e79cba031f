/* Go's own table of functions (pclntab) as a source of names: finds it in a file, loads it, and answers what
 * function, file, line and inlined calls an address stands for. The parts are in the other files of this folder;
 * all sizes and offsets of the file are checked there. */
#include "runtime/go/table/table.h"

#include <stdlib.h>

#include "runtime/go/table/private.h"

enum {
    TEXTS_MAX_BYTES = 2 * PROFILE_INLINES_MAX * (GO_NAME_MAX + 16),
};

struct go_table *go_table_open(struct elf *elf, struct err *err)
{
    struct go_table *t = calloc(1, sizeof *t);
    if (t == NULL) {
        (void)err_set(err, ERR_MEMORY, 0, "no memory for a Go symbol table");
        return NULL;
    }
    go_reader_init(&t->reader, elf);
    arena_init(&t->texts, TEXTS_MAX_BYTES);
    go_relocations_find(&t->reader, &t->relocations);
    if (!go_find(t, err) || !go_find_text(t, err)) {
        go_table_release(t);
        return NULL;
    }
    go_find_inlines(t);
    return t;
}

void go_table_release(struct go_table *table)
{
    if (table != NULL) {
        arena_release(&table->texts);
        free(table);
    }
}

/* The function that holds the address; false when none does. */
static bool find_function(struct go_table *t, uint64_t address, struct go_function *out)
{
    uint64_t low = 0, high = t->function_count + 1, start;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (!go_function_start(t, middle, &start)) {
            t->damaged++;
            return false;
        }
        if (start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || low > t->function_count) {
        return false;
    }
    if (!go_function_at(t, low - 1, out) || address < out->start || address >= out->limit) {
        t->damaged++;
        return false;
    }
    return true;
}

/* ---- pc-value streams ---- */

struct pairs {
    struct go_table *table;
    uint64_t at;
    const unsigned char *ptr;
    size_t have;
    bool failed;
};

static unsigned take_byte(struct pairs *s)
{
    if (s->have == 0) {
        s->ptr = go_view(&s->table->reader, s->table->streams, s->at, &s->have);
        if (s->ptr == NULL) {
            s->have = 0;
            s->failed = true;
            return 0;
        }
    }
    s->have--;
    s->at++;
    return *s->ptr++;
}

/* LEB128 of 32 bits. */
static uint32_t take_number(struct pairs *s)
{
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        unsigned byte = take_byte(s);
        value |= (uint32_t)((uint64_t)(byte & 0x7f) << shift);
        if ((byte & 0x80) == 0) {
            return value;
        }
    }
    s->failed = true;
    return 0;
}

/* The value that a stream has at an address; -1, also a value, where it has none. A stream is pairs
 * of a zigzag change of the value and the length in instruction units for which it stands, from the
 * function's start on, and ends with a change of 0. */
static int32_t value_at(struct go_table *t, uint32_t stream, const struct go_function *f,
                        uint64_t address)
{
    struct pairs s = {.table = t, .at = stream};
    uint32_t value = UINT32_MAX;
    uint64_t end = f->start;
    for (bool first = true; stream != 0 && t->steps > 0; first = false, t->steps--) {
        uint32_t change = take_number(&s);
        if (change == 0 && !first && !s.failed) {
            return -1;
        }
        value += (change & 1) != 0 ? ~(change >> 1) : change >> 1;
        end += (uint64_t)take_number(&s) * t->quantum;
        if (s.failed) {
            break;
        }
        if (address < end) {
            return (int32_t)value;
        }
    }
    t->damaged += stream != 0;
    return -1;
}

/* ---- frames ---- */

static struct str text_at(struct go_table *t, struct go_span span, uint64_t at)
{
    char text[GO_NAME_MAX];
    size_t len;
    if (!go_text(&t->reader, span, at, text, &len)) {
        t->damaged++;
        return (struct str){"", 0};
    }
    return arena_copy(&t->texts, (struct str){text, len});
}

/* File numbers count from 1 before Go 1.16: the first word is how many there are. */
static struct str file_of(struct go_table *t, const struct go_function *f, int32_t number)
{
    bool known = number >= (t->format->has_units ? 0 : 1);
    uint32_t count, at;
    if (known && !t->format->has_units) {
        known = go_u32(&t->reader, t->units, 0, &count) && (uint32_t)number < count;
    }
    if (!known || !go_u32(&t->reader, t->units, 4 * ((uint64_t)f->unit + (uint32_t)number), &at) ||
        at == UINT32_MAX) {
        return (struct str){"", 0};
    }
    return text_at(t, t->files, at);
}

struct place {
    int32_t file, line;
};

static struct place place_at(struct go_table *t, const struct go_function *f, uint64_t address)
{
    return (struct place){value_at(t, f->file, f, address), value_at(t, f->line, f, address)};
}

/* What a frame is besides its place. */
struct called {
    uint32_t name, start_line;
    uint8_t id;
    uint64_t at;
};

static void add_frame(struct go_table *t, const struct go_function *f, struct called called,
                      struct place place, struct go_frames *out)
{
    out->at[out->count++] = (struct go_frame){
        .name = text_at(t, t->names, called.name),
        .file = file_of(t, f, place.file),
        .line = place.line > 0 ? (uint32_t)place.line : 0,
        .start_line = called.start_line,
        .id = t->format->relative ? called.id : 0,
        .at = called.at,
    };
}

/* The inlined calls at the address, innermost first; returns where the function itself is. A tree
 * lists callers before what is inlined into them. Package initialisers of real programs hold calls
 * that name themselves as caller: there the chain ends, and the line in the function is unknown. */
static struct place add_inlined(struct go_table *t, const struct go_function *f, uint64_t *address,
                                struct go_frames *out)
{
    const struct go_inline_layout *layout = &t->inlines;
    struct place place = place_at(t, f, *address);
    struct go_span tree;
    if (!go_inline_tree(t, layout, f, &tree)) {
        return place;
    }
    uint32_t stream = go_pcdata(t, f, layout->pcdata);
    int32_t index = value_at(t, stream, f, *address);
    while (index >= 0 && out->count < PROFILE_INLINES_MAX - 1) {
        struct go_inlined call;
        if (!go_inlined_at(t, layout, tree, (uint32_t)index, &call)) {
            t->damaged++;
            break;
        }
        uint32_t start_line = layout->parent_bytes == 0 && call.line > 0 ? (uint32_t)call.line : 0;
        add_frame(t, f, (struct called){call.name, start_line, call.id, *address}, place, out);
        if (layout->parent_pc_at == 0) {
            place = (struct place){call.file, call.line};
        } else {
            *address = f->start + (uint64_t)(int64_t)call.parent_pc;
            place = place_at(t, f, *address);
            call.parent = value_at(t, stream, f, *address);
        }
        if (call.parent >= index) {
            return (struct place){-1, -1};
        }
        index = call.parent;
    }
    return place;
}

/* Names end with a zero byte, and begin behind one. They are gone through in large pieces that overlap. */
bool go_table_has(struct go_table *table, const char *name)
{
    enum { PIECE_BYTES = 64 * 1024, WANTED_MAX = 128 };
    size_t len = strlen(name) + 2;
    char wanted[WANTED_MAX] = "";
    unsigned char *piece = len <= WANTED_MAX ? malloc(PIECE_BYTES) : NULL;
    bool found = false, good = piece != NULL;
    uint64_t next = table->units.offset; /* what follows, where they stand apart */
    uint64_t bytes = next > table->names.offset ? next - table->names.offset : table->names.bytes;
    memcpy(wanted + 1, name, piece != NULL ? len - 1 : 0);
    for (uint64_t at = 0; good && !found && at + len <= bytes; at += PIECE_BYTES - len) {
        uint64_t left = bytes - at;
        size_t have = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        good = elf_read(table->reader.elf, table->names.offset + at, piece, have, NULL);
        found = good && memmem(piece, have, wanted, len) != NULL;
    }
    free(piece);
    return found;
}

bool go_table_lookup(struct go_table *table, uint64_t address, struct go_frames *out)
{
    struct go_function f;
    arena_clear(&table->texts);
    table->steps = GO_STEPS_MAX;
    out->count = 0;
    if (!find_function(table, address, &f)) {
        return false;
    }
    out->start = f.start;
    out->limit = f.limit;
    struct place place = add_inlined(table, &f, &address, out);
    add_frame(table, &f, (struct called){f.name, f.start_line, (uint8_t)f.last, address}, place, out);
    return out->at[out->count - 1].name.len > 0;
}

bool go_table_step(struct go_table *table, uint64_t address, struct go_step *out)
{
    struct go_function f;
    table->steps = GO_STEPS_MAX;
    if (!table->format->relative || !find_function(table, address, &f)) {
        return false;
    }
    *out = (struct go_step){
        .start = f.start,
        .delta = value_at(table, f.stack, &f, address),
        .has_frames = f.stack != 0,
        .id = (uint8_t)f.last,
        .flags = (uint8_t)(f.last >> 8),
    };
    return true;
}
