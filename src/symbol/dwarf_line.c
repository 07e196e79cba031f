/* Line tables: a program per unit that makes rows (address, file, line). */
#include <dwarf.h>
#include <stdlib.h>

#include "symbol/dwarf.h"

enum {
    PROGRAM_MAX_BYTES = 16 << 20, /* the largest units' are 1 MB */
    ROWS_MAX = 1 << 20,           /* 12 bytes each */
    FILES_MAX = 1 << 16,
    FORMATS_MAX = 16,
    PATH_MAX_BYTES = 4096,
    STEPS_PER_OPCODES = 64,       /* an opcode is a fraction of an entry's work */
};

void dwarf_lines_release(struct dwarf_lines *lines)
{
    vec_release(&lines->rows);
    vec_release(&lines->sequences);
    vec_release(&lines->directories);
    vec_release(&lines->files);
    vec_release(&lines->paths);
    buf_release(&lines->header);
}

size_t dwarf_lines_bytes(const struct dwarf_lines *lines)
{
    return lines->rows.cap * sizeof *lines->rows.at +
           lines->sequences.cap * sizeof *lines->sequences.at +
           lines->directories.cap * sizeof *lines->directories.at +
           lines->files.cap * sizeof *lines->files.at +
           lines->paths.cap * sizeof *lines->paths.at + lines->header.cap;
}

struct header {
    uint8_t offset_bytes, address_bytes;
    uint16_t version;
    uint8_t min_instruction, opcode_base, line_range;
    int8_t line_base;
    const unsigned char *operands; /* per standard opcode, opcode_base - 1 of them */
};

/* The state machine's registers, DWARF 5, 6.2.2. */
struct machine {
    struct dwarf *d;
    struct dwarf_lines *lines;
    struct header h;
    uint64_t address;
    uint32_t file, line;
    bool in_sequence, passed_over;
    struct dwarf_line_sequence sequence;
};

/* ---- the header ---- */

static bool add_file(struct dwarf_lines *lines, bool is_directory, struct dwarf_line_file file)
{
    bool room = (is_directory ? lines->directories.len : lines->files.len) < FILES_MAX;
    struct dwarf_line_file *added = !room          ? NULL
                                    : is_directory ? vec_push(&lines->directories)
                                                   : vec_push(&lines->files);
    if (added != NULL) {
        *added = file;
    }
    return added != NULL;
}

/* Before DWARF 5: texts, an empty one ends the list. Number 0 of directories is the compilation's,
 * number 0 of files is none. */
static bool read_old_lists(struct cursor *c, size_t header_bytes, struct dwarf_lines *lines)
{
    struct dwarf_line_file none = {{DW_FORM_string, UINT64_MAX}, 0};
    bool good = add_file(lines, true, none) && add_file(lines, false, none);
    while (good && !c->short_read) {
        struct dwarf_line_file directory = {{DW_FORM_string, header_bytes - c->len}, 0};
        if (cursor_cstr(c).len == 0) {
            break;
        }
        good = add_file(lines, true, directory);
    }
    while (good && !c->short_read) {
        struct dwarf_line_file file = {{DW_FORM_string, header_bytes - c->len}, 0};
        if (cursor_cstr(c).len == 0) {
            break;
        }
        file.directory = (uint32_t)cursor_uleb(c);
        (void)cursor_uleb(c); /* time of modification, length */
        (void)cursor_uleb(c);
        good = add_file(lines, false, file);
    }
    return good && !c->short_read;
}

struct format {
    uint64_t content;
    uint16_t form;
};

/* One of the two lists of DWARF 5: a description of the entries' fields, then the entries. */
static bool read_list(struct cursor *c, size_t header_bytes, const struct dwarf_unit *sizes,
                      struct dwarf_lines *lines, bool is_directory)
{
    struct format formats[FORMATS_MAX];
    unsigned format_count = cursor_u8(c);
    if (format_count > FORMATS_MAX) {
        return false;
    }
    for (unsigned i = 0; i < format_count; i++) {
        formats[i].content = cursor_uleb(c);
        formats[i].form = (uint16_t)cursor_uleb(c);
    }
    uint64_t count = cursor_uleb(c);
    if (count > FILES_MAX || (format_count == 0 && count > 0)) {
        return false;
    }
    for (uint64_t n = 0; n < count && !c->short_read; n++) {
        struct dwarf_line_file entry = {{DW_FORM_string, UINT64_MAX}, 0};
        for (unsigned i = 0; i < format_count; i++) {
            struct dwarf_value value =
                dwarf_take_value(c, sizes, formats[i].form, 0, header_bytes - c->len);
            if (formats[i].content == DW_LNCT_path) {
                entry.name = value;
            } else if (formats[i].content == DW_LNCT_directory_index) {
                entry.directory = (uint32_t)value.number;
            }
        }
        if (!add_file(lines, is_directory, entry)) {
            return false;
        }
    }
    return !c->short_read;
}

/* The fixed part; `c` then stands at the lists, and `*program` gets what is behind the header. */
static bool read_header(struct cursor *c, struct header *h, struct cursor *program)
{
    uint64_t len = cursor_u32(c);
    h->offset_bytes = len == UINT32_MAX ? 8 : 4;
    len = len == UINT32_MAX ? cursor_u64(c) : len;
    h->version = cursor_u16(c);
    if (c->short_read || h->version < 2 || h->version > 5) {
        return false;
    }
    if (h->version >= 5) {
        h->address_bytes = cursor_u8(c);
        cursor_skip(c, 1); /* segment selectors */
    }
    uint64_t header_len = dwarf_offset(c, h->offset_bytes);
    if (c->short_read || header_len > c->len) {
        return false;
    }
    *program = cursor_of(c->ptr + header_len, c->len - (size_t)header_len);
    c->len = (size_t)header_len;
    h->min_instruction = cursor_u8(c);
    cursor_skip(c, h->version >= 4 ? 1 : 0); /* operations per instruction: 1 on our processors */
    cursor_skip(c, 1);                       /* default_is_stmt */
    h->line_base = (int8_t)cursor_u8(c);
    h->line_range = cursor_u8(c);
    h->opcode_base = cursor_u8(c);
    h->operands = h->opcode_base == 0 ? NULL : cursor_take(c, h->opcode_base - 1u);
    return !c->short_read && h->opcode_base > 0 && h->line_range > 0;
}

/* ---- the program ---- */

/* Ends a sequence; one that tells nothing of the text asked for is dropped. */
static void end_sequence(struct machine *m)
{
    struct dwarf_line_sequence s = m->sequence;
    uint64_t limit = m->address - m->d->text_start;
    s.count = (uint32_t)(m->lines->rows.len - s.first);
    s.limit = limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
    struct dwarf_line_sequence *added = NULL;
    if (m->in_sequence && s.count > 0 && m->address >= m->d->text_start && s.limit > s.start) {
        added = vec_push(&m->lines->sequences);
    }
    if (added != NULL) {
        *added = s;
    } else if (m->in_sequence) {
        m->lines->rows.len = s.first;
    }
    m->in_sequence = false;
}

static void add_row(struct machine *m)
{
    struct dwarf_lines *lines = m->lines;
    if (m->address < m->d->text_start || m->address >= m->d->text_limit ||
        m->address - m->d->text_start >= UINT32_MAX) {
        return;
    }
    struct dwarf_line_row row = {(uint32_t)(m->address - m->d->text_start), m->line, m->file};
    if (!m->in_sequence) {
        m->sequence = (struct dwarf_line_sequence){.start = row.address,
                                                   .first = (uint32_t)lines->rows.len};
        m->in_sequence = true;
    } else {
        struct dwarf_line_row *last = &lines->rows.at[lines->rows.len - 1];
        if (last->line == row.line && last->file == row.file) {
            return;
        }
        if (row.address <= last->address) { /* of several at one address the last one holds */
            last->line = row.line;
            last->file = row.file;
            return;
        }
    }
    struct dwarf_line_row *added = lines->rows.len < ROWS_MAX ? vec_push(&lines->rows) : NULL;
    if (added != NULL) {
        *added = row;
    } else {
        m->in_sequence &= lines->rows.len > m->sequence.first;
    }
}

static void restart(struct machine *m)
{
    m->address = 0;
    m->file = m->line = 1;
}

static void run_extended(struct machine *m, struct cursor *c)
{
    uint64_t len = cursor_uleb(c);
    if (len == 0 || len > c->len) {
        c->short_read |= len > c->len;
        return;
    }
    struct cursor operands = cursor_of(cursor_take(c, (size_t)len), (size_t)len);
    switch (cursor_u8(&operands)) {
    case DW_LNE_end_sequence:
        end_sequence(m);
        restart(m);
        break;
    case DW_LNE_set_address:
        m->address = operands.len >= 8 ? cursor_u64(&operands) : cursor_u32(&operands);
        break;
    default: /* DW_LNE_set_discriminator; DW_LNE_define_file is of another time */
        break;
    }
}

static void advance(struct machine *m, uint64_t operations)
{
    m->address += operations * m->h.min_instruction;
}

static void run_standard(struct machine *m, unsigned opcode, struct cursor *c)
{
    switch (opcode) {
    case DW_LNS_copy:
        add_row(m);
        break;
    case DW_LNS_advance_pc:
        advance(m, cursor_uleb(c));
        break;
    case DW_LNS_advance_line:
        m->line += (uint32_t)cursor_sleb(c);
        break;
    case DW_LNS_set_file:
        m->file = (uint32_t)cursor_uleb(c);
        break;
    case DW_LNS_const_add_pc:
        advance(m, (255u - m->h.opcode_base) / m->h.line_range);
        break;
    case DW_LNS_fixed_advance_pc:
        m->address += cursor_u16(c);
        break;
    default: /* columns, flags, unknown ones: the header says how many operands they have */
        for (unsigned i = m->h.operands[opcode - 1]; i > 0; i--) {
            (void)cursor_uleb(c);
        }
        break;
    }
}

static bool run(struct machine *m, struct cursor *c, struct dwarf_time *time)
{
    restart(m);
    for (unsigned steps = 1; c->len > 0 && !c->short_read; steps++) {
        unsigned opcode = cursor_u8(c);
        if (steps % STEPS_PER_OPCODES == 0 && !dwarf_step(time)) {
            return false;
        }
        if (opcode >= m->h.opcode_base) {
            opcode -= m->h.opcode_base;
            m->line += (uint32_t)(m->h.line_base + (int)(opcode % m->h.line_range));
            advance(m, opcode / m->h.line_range);
            add_row(m);
        } else if (opcode == 0) {
            run_extended(m, c);
        } else {
            run_standard(m, opcode, c);
        }
    }
    end_sequence(m);
    return true;
}

static int by_start(const void *left, const void *right)
{
    const struct dwarf_line_sequence *a = left, *b = right;
    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    return (a->first > b->first) - (a->first < b->first);
}

/* The whole of a unit's line information. False: damaged, but what was read of it is kept. */
static bool decode(struct dwarf *d, const struct dwarf_unit *unit, struct cursor bytes,
                   struct dwarf_lines *lines, struct dwarf_time *time)
{
    struct machine m = {.d = d, .lines = lines};
    struct cursor c = bytes, program;
    if (!read_header(&c, &m.h, &program)) {
        return true;
    }
    lines->version = m.h.version;
    size_t header_bytes = (size_t)(program.ptr - bytes.ptr);
    struct dwarf_unit sizes = *unit;
    sizes.offset_bytes = m.h.offset_bytes;
    sizes.version = m.h.version;
    bool listed = m.h.version < 5 ? read_old_lists(&c, header_bytes, lines)
                                  : read_list(&c, header_bytes, &sizes, lines, true) &&
                                        read_list(&c, header_bytes, &sizes, lines, false);
    if (listed) {
        buf_add(&lines->header, bytes.ptr, header_bytes);
    }
    if (!run(&m, &program, time)) {
        return false;
    }
    if (lines->sequences.len > 0) {
        qsort(lines->sequences.at, lines->sequences.len, sizeof *lines->sequences.at, by_start);
    }
    return true;
}

/* How many bytes the line information at this place has; 0: none that is read. */
static size_t program_bytes(struct dwarf *d, uint64_t at)
{
    struct cursor c = dwarf_bytes(d, DWARF_LINE, at, 12);
    size_t before = c.len;
    uint64_t len = cursor_u32(&c);
    len = len == UINT32_MAX ? cursor_u64(&c) : len;
    return c.short_read || len > PROGRAM_MAX_BYTES ? 0 : (size_t)len + (before - c.len);
}

bool dwarf_read_lines(struct dwarf *d, struct dwarf_unit *unit, struct dwarf_time *time)
{
    struct dwarf_lines *lines = &unit->loaded->line_table;
    size_t len = lines->known || unit->lines == UINT64_MAX ? 0 : program_bytes(d, unit->lines);
    if (len == 0) {
        lines->known = true;
        return true;
    }
    buf_init(&lines->header, PROGRAM_MAX_BYTES);
    const unsigned char *bytes = dwarf_in_memory(d, DWARF_LINE, unit->lines, len);
    unsigned char *owned = bytes == NULL ? malloc(len) : NULL;
    bool good = true;
    if (bytes != NULL || (owned != NULL && dwarf_copy(d, DWARF_LINE, unit->lines, owned, len))) {
        good = decode(d, unit, cursor_of(bytes != NULL ? bytes : owned, len), lines, time);
    }
    free(owned);
    if (!good) {
        dwarf_lines_release(lines);
        *lines = (struct dwarf_lines){0};
    }
    lines->known = good;
    return good;
}

/* ---- look-ups ---- */

static const struct dwarf_line_sequence *find_sequence(const struct dwarf_lines *lines,
                                                       uint32_t address)
{
    enum { OVERLAPS_MAX = 16 };
    size_t low = 0, high = lines->sequences.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lines->sequences.at[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (unsigned steps = 0; low > 0 && steps < OVERLAPS_MAX; steps++) {
        const struct dwarf_line_sequence *s = &lines->sequences.at[--low];
        if (address < s->limit) {
            return s;
        }
    }
    return NULL;
}

bool dwarf_find_line(const struct dwarf *d, const struct dwarf_unit *unit, uint64_t address,
                     uint32_t *file, uint32_t *line)
{
    const struct dwarf_lines *lines = &unit->loaded->line_table;
    if (address < d->text_start || address >= d->text_limit ||
        address - d->text_start >= UINT32_MAX) {
        return false;
    }
    uint32_t wanted = (uint32_t)(address - d->text_start);
    const struct dwarf_line_sequence *s = find_sequence(lines, wanted);
    if (s == NULL) {
        return false;
    }
    size_t low = s->first, high = s->first + s->count;
    while (high - low > 1) { /* the first row is at or before it */
        size_t middle = low + (high - low) / 2;
        if (lines->rows.at[middle].address <= wanted) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *file = lines->rows.at[low].file;
    *line = lines->rows.at[low].line;
    return true;
}

/* A text of the line table, which may be in its own header. */
static struct str text_of(struct dwarf *d, const struct dwarf_unit *unit,
                          const struct dwarf_value *value)
{
    const struct buf *header = &unit->loaded->line_table.header;
    if (value->form != DW_FORM_string) {
        return dwarf_text(d, unit, value);
    }
    if (value->number >= header->len) {
        return STR("");
    }
    struct cursor c = cursor_of(header->ptr + value->number, header->len - (size_t)value->number);
    return str_sub(cursor_cstr(&c), 0, DWARF_TEXT_MAX);
}

static void add_part(struct buf *path, struct str part)
{
    if (part.len > 0 && part.ptr[0] == '/') {
        buf_clear(path);
    } else if (part.len > 0 && path->len > 0 && path->ptr[path->len - 1] != '/') {
        buf_byte(path, '/');
    }
    buf_str(path, part);
}

/* The compilation's folder, the file's, its name: each may be absolute and then begins anew. */
static struct str make_path(struct dwarf *d, struct dwarf_unit *unit,
                            const struct dwarf_line_file *file)
{
    const struct dwarf_lines *lines = &unit->loaded->line_table;
    struct buf path;
    buf_init(&path, 3 * PATH_MAX_BYTES);
    add_part(&path, unit->loaded->directory);
    if (file->directory < lines->directories.len) {
        add_part(&path, text_of(d, unit, &lines->directories.at[file->directory].name));
    }
    struct str name = text_of(d, unit, &file->name);
    add_part(&path, name);
    struct str whole = str_sub(buf_slice(&path), 0, PATH_MAX_BYTES);
    struct str copy = name.len == 0 || path.failed ? STR("") : arena_copy(&d->texts, whole);
    buf_release(&path);
    return copy.ptr == NULL ? STR("") : copy;
}

struct str dwarf_file(struct dwarf *d, struct dwarf_unit *unit, uint64_t file)
{
    struct dwarf_lines *lines = &unit->loaded->line_table;
    if (file >= lines->files.len) {
        return STR("");
    }
    while (lines->paths.len < lines->files.len) {
        if (vec_push(&lines->paths) == NULL) {
            return STR("");
        }
    }
    struct str *path = &lines->paths.at[file];
    if (path->ptr == NULL) {
        *path = make_path(d, unit, &lines->files.at[file]);
    }
    return *path;
}
