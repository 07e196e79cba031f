/*
 * table: symbol tables. Where they are (by sections, else by PT_DYNAMIC), their functions in the order of
 * the table, their names by pieces through one window: a table of a million symbols is never in memory.
 */
#include <elf.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "elf/private.h"

enum {
    SYMBOLS_PER_READ = 512,
    MARK_READS_MAX = 200000, /* real tables keep names in order and need one read per 100 */
};

size_t elf_symbol_bytes(const struct elf *e)
{
    return e->is_32bit ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym);
}

static struct elf_symbol_table table_of_section(const struct elf *e, const struct elf_section *s)
{
    if (s->link >= e->sections.len || s->compressed) {
        return (struct elf_symbol_table){0};
    }
    const struct elf_section *names = &e->sections.at[s->link];
    return (struct elf_symbol_table){
        .offset = s->offset,
        .count = s->bytes / elf_symbol_bytes(e),
        .names_offset = names->offset,
        .names_bytes = names->type == SHT_STRTAB && !names->compressed ? names->bytes : 0,
    };
}

void elf_find_tables(struct elf *e)
{
    vec_each(&e->sections, s) {
        if (s->type == SHT_SYMTAB && e->tables[ELF_SYMTAB].count == 0) {
            e->tables[ELF_SYMTAB] = table_of_section(e, s);
        } else if (s->type == SHT_DYNSYM && e->tables[ELF_DYNSYM].count == 0) {
            e->tables[ELF_DYNSYM] = table_of_section(e, s);
        }
    }
    if (e->tables[ELF_DYNSYM].count == 0) {
        elf_find_dynamic_table(e, &e->tables[ELF_DYNSYM]);
    }
    for (int i = 0; i < ELF_TABLE_COUNT; i++) {
        if (e->tables[i].count > ELF_SYMBOLS_MAX || e->tables[i].names_bytes == 0) {
            e->tables[i] = (struct elf_symbol_table){0};
        }
    }
}

/* Makes [from, from + want) part of the window, or as much of it as [from, limit) has. */
static bool fill_window(struct elf *e, uint64_t from, uint64_t limit, size_t want)
{
    uint64_t need = want < limit - from ? want : limit - from;
    if (from >= e->window_offset && from - e->window_offset <= e->window_bytes &&
        e->window_bytes - (from - e->window_offset) >= need) {
        return true;
    }
    if (e->window == NULL) {
        e->window = malloc(ELF_WINDOW_BYTES);
    }
    size_t bytes = limit - from < ELF_WINDOW_BYTES ? (size_t)(limit - from) : ELF_WINDOW_BYTES;
    e->window_bytes = 0;
    e->window_reads++;
    if (e->window == NULL || !elf_read(e, from, e->window, bytes, NULL)) {
        return false;
    }
    e->window_offset = from;
    e->window_bytes = bytes;
    return true;
}

/* Most texts are short: first what the window happens to hold, then ELF_NAME_MAX of it. */
bool elf_text(struct elf *e, uint64_t base, uint64_t bytes, uint64_t offset, struct str *out)
{
    static const size_t tries[] = {64, ELF_NAME_MAX};
    if (offset >= bytes) {
        return false;
    }
    uint64_t from = base + offset, limit = base + bytes;
    if (bytes <= ELF_WINDOW_BYTES && !fill_window(e, base, limit, ELF_WINDOW_BYTES)) {
        return false; /* a small table, of sections, is read once and not again from each name on */
    }
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        if (!fill_window(e, from, limit, tries[i])) {
            return false;
        }
        const char *text = e->window + (from - e->window_offset);
        size_t have = e->window_bytes - (size_t)(from - e->window_offset);
        have = have < ELF_NAME_MAX ? have : ELF_NAME_MAX;
        const char *end = memchr(text, 0, have);
        if (end != NULL || have == ELF_NAME_MAX) {
            *out = (struct str){text, end == NULL ? have : (size_t)(end - text)};
            return true;
        }
    }
    return false; /* the table ends within the text */
}

bool elf_name(struct elf *e, enum elf_table table, uint32_t name, struct str *out)
{
    const struct elf_symbol_table *t = &e->tables[table];
    struct str text;
    if (!elf_text(e, t->names_offset, t->names_bytes, name, &text) || text.len == 0) {
        return false;
    }
    /* "memcpy@@GLIBC_2.14": a version; "@plt" names do not occur in tables */
    size_t at = str_find(text, '@');
    *out = at == 0 ? text : str_sub(text, 0, at);
    return true;
}

bool elf_name_of(struct elf *e, enum elf_table table, uint32_t index, struct str *out)
{
    const struct elf_symbol_table *t = &e->tables[table];
    unsigned char bytes[4]; /* st_name is the first field in both classes */
    if (index >= t->count ||
        !elf_read(e, t->offset + (uint64_t)index * elf_symbol_bytes(e), bytes, sizeof bytes,
                  NULL)) {
        return false;
    }
    struct cursor c = cursor_of(bytes, sizeof bytes);
    return elf_name(e, table, cursor_u32(&c), out);
}

struct elf_raw_symbol elf_take_symbol(struct cursor *c, bool is_32bit)
{
    struct elf_raw_symbol s = {.name = cursor_u32(c)};
    if (is_32bit) {
        s.value = cursor_u32(c);
        s.size = cursor_u32(c);
    }
    s.info = cursor_u8(c);
    cursor_skip(c, 1);
    s.section = cursor_u16(c);
    if (!is_32bit) {
        s.value = cursor_u64(c);
        s.size = cursor_u64(c);
    }
    return s;
}

/* Assembler marks: "$x" and "$d" of AArch64 say code or data follows, ".L…" are local labels. */
static bool is_mark(struct elf *e, enum elf_table table, uint32_t name)
{
    struct str text;
    return e->window_reads > MARK_READS_MAX || !elf_name(e, table, name, &text) ||
           text.ptr[0] == '$' || str_starts(text, STR(".L"));
}

enum elf_binding elf_binding_of(uint8_t info)
{
    switch (info >> 4) {
    case STB_LOCAL:
        return ELF_LOCAL;
    case STB_WEAK:
        return ELF_WEAK;
    default: /* STB_GLOBAL, STB_GNU_UNIQUE */
        return ELF_GLOBAL;
    }
}

/* Translates; false when the symbol is no code of this file. */
static bool is_function(struct elf *e, enum elf_table table, const struct elf_raw_symbol *raw,
                        struct elf_symbol *out)
{
    unsigned type = raw->info & 15;
    if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
        raw->section == SHN_UNDEF || raw->value < e->text_start || raw->value >= e->text_limit) {
        return false;
    }
    const struct elf_section *section =
        raw->section < e->sections.len ? &e->sections.at[raw->section] : NULL;
    bool in_code = section != NULL && section->executable && raw->value >= section->address &&
                   raw->value - section->address < section->bytes;
    if (type == STT_NOTYPE && (!in_code || is_mark(e, table, raw->name))) {
        return false;
    }
    uint64_t limit = in_code ? section->address + section->bytes : e->text_limit;
    bool is_far = type == STT_NOTYPE && limit - raw->value > ELF_UNTYPED_REACH;
    *out = (struct elf_symbol){
        .address = raw->value,
        .size = raw->size < e->text_limit - raw->value ? raw->size : e->text_limit - raw->value,
        .limit = is_far ? raw->value + ELF_UNTYPED_REACH : limit,
        .name = raw->name,
        .table = (uint8_t)table,
        .binding = (uint8_t)elf_binding_of(raw->info),
    };
    return raw->name != 0;
}

bool elf_each_function(struct elf *e, enum elf_table table,
                       bool (*each)(void *context, const struct elf_symbol *symbol), void *context,
                       struct err *err)
{
    const struct elf_symbol_table *t = &e->tables[table];
    size_t bytes = elf_symbol_bytes(e);
    unsigned char *chunk = malloc(SYMBOLS_PER_READ * bytes);
    bool good = chunk != NULL || err_set(err, ERR_MEMORY, 0, "no memory to read symbols");
    for (uint64_t done = 0; good && done < t->count;) {
        size_t count = t->count - done < SYMBOLS_PER_READ ? (size_t)(t->count - done)
                                                          : SYMBOLS_PER_READ;
        good = elf_read(e, t->offset + done * bytes, chunk, count * bytes, err);
        struct cursor c = cursor_of(chunk, good ? count * bytes : 0);
        for (size_t i = 0; good && i < count; i++) {
            struct elf_raw_symbol raw = elf_take_symbol(&c, e->is_32bit);
            struct elf_symbol symbol;
            if (is_function(e, table, &raw, &symbol) && !each(context, &symbol)) {
                free(chunk);
                return true;
            }
        }
        done += count;
    }
    free(chunk);
    return good;
}
