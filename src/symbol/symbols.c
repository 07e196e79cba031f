#include "symbol/symbols.h"

#include <stdlib.h>

#include "symbol/private.h"

/* struct symbol.size: 26 bits of bytes below these flags. */
enum {
    SIZE_MAX_BYTES = (1 << 26) - 1,
    FLAG_SHIFT = 26,
    FLAG_BINDING = 3 << FLAG_SHIFT, /* enum elf_binding */
    FLAG_SIZED = 1 << 28,           /* the symbol itself told its size */
    FLAG_NESTED = 1 << 29,          /* an earlier symbol reaches over this one's start */
    FLAG_DYNSYM = 1 << 30,          /* the name is in the names of .dynsym */
    NESTING_MAX = 64,               /* look-ups step back over at most that many */
    ALIASES_MAX = 32,               /* of one address are kept */
};

void symbols_init(struct symbols *s, size_t max_bytes)
{
    *s = (struct symbols){.max_bytes = max_bytes};
    words_init(&s->names, max_bytes);
}

void symbols_release(struct symbols *s)
{
    vec_release(&s->table);
    words_release(&s->names);
}

size_t symbols_bytes(const struct symbols *s)
{
    return s->table.cap * sizeof *s->table.at + words_bytes(&s->names);
}

static uint32_t size_of(const struct symbol *symbol)
{
    return symbol->size & SIZE_MAX_BYTES;
}

static uint64_t end_of(const struct symbol *symbol)
{
    return (uint64_t)symbol->start + size_of(symbol);
}

/* Higher is better among symbols of one address; equal ranks are aliases, told apart by name. */
static uint32_t rank_of(const struct symbol *symbol)
{
    uint32_t sized = (symbol->size & FLAG_SIZED) != 0, binding = symbol->size & FLAG_BINDING;
    uint32_t in_symtab = (symbol->size & FLAG_DYNSYM) == 0;
    return sized << 3 | (binding >> FLAG_SHIFT) << 1 | in_symtab;
}

int symbols_compare(const void *left, const void *right)
{
    const struct symbol *a = left, *b = right;
    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    if (rank_of(a) != rank_of(b)) {
        return rank_of(a) > rank_of(b) ? -1 : 1;
    }
    return (a->name > b->name) - (a->name < b->name);
}

/* Where the run of symbols with the start of the one at `from` ends. */
static size_t run_end(const struct symbols *s, size_t from)
{
    size_t end = from + 1;
    while (end < s->table.len && s->table.at[end].start == s->table.at[from].start) {
        end++;
    }
    return end;
}

/* Keeps of each address the best rank and its aliases; drops those without size that stand within a
 * sized symbol; lets the others without size end at the next start. Sorted input. What is kept can
 * be sorted and thinned out again with more symbols. */
static void compact(struct symbols *s)
{
    size_t kept = 0;
    uint64_t covered = 0; /* end of the furthest sized symbol so far */
    for (size_t i = 0; i < s->table.len;) {
        size_t end = run_end(s, i);
        struct symbol best = s->table.at[i];
        bool sized = (best.size & FLAG_SIZED) != 0;
        bool within = best.start < covered;
        size_t first = kept;
        uint32_t room = end < s->table.len ? s->table.at[end].start - best.start : UINT32_MAX;
        for (; i < end; i++) {
            struct symbol alias = s->table.at[i];
            if (rank_of(&alias) != rank_of(&best) || (within && !sized) ||
                kept - first == ALIASES_MAX ||
                (kept > first && s->table.at[kept - 1].name == alias.name)) {
                continue;
            }
            if (!sized && size_of(&alias) > room) {
                alias.size = (alias.size & ~(uint32_t)SIZE_MAX_BYTES) | room;
            }
            alias.size = within ? alias.size | FLAG_NESTED : alias.size & ~(uint32_t)FLAG_NESTED;
            s->table.at[kept++] = alias;
        }
        covered = sized && end_of(&best) > covered ? end_of(&best) : covered;
    }
    s->table.len = kept;
}

static void thin_out(struct symbols *s)
{
    if (s->table.len == 0) {
        return;
    }
    symbols_sort(s->table.at, s->table.len);
    compact(s);
}

static bool has_room(const struct symbols *s)
{
    return (s->table.len + 1) * sizeof *s->table.at + words_bytes(&s->names) <= s->max_bytes;
}

/* Room for one more, if need be by thinning out; but not again and again for a few. */
static bool make_room(struct symbols *s)
{
    size_t before = s->table.len;
    if (has_room(s)) {
        return true;
    }
    thin_out(s);
    return before - s->table.len > before / 8;
}

bool symbols_add(struct symbols *s, const struct elf_symbol *symbol)
{
    if (symbol->address < s->base || symbol->address - s->base > UINT32_MAX) {
        return true; /* not within what this table covers */
    }
    struct symbol *stored = make_room(s) ? vec_push(&s->table) : NULL;
    if (stored == NULL) {
        return false;
    }
    uint64_t size = symbol->size != 0 ? symbol->size : symbol->limit - symbol->address;
    *stored = (struct symbol){
        .start = (uint32_t)(symbol->address - s->base),
        .size = (uint32_t)(size < SIZE_MAX_BYTES ? size : SIZE_MAX_BYTES) |
                (uint32_t)symbol->binding << FLAG_SHIFT | (symbol->size != 0 ? FLAG_SIZED : 0) |
                (symbol->table == ELF_DYNSYM ? FLAG_DYNSYM : 0),
        .name = symbol->name,
    };
    return true;
}

bool symbols_finish(struct symbols *s)
{
    if (s->table.len == 0) {
        return false;
    }
    thin_out(s);
    void *shrunk = realloc(s->table.at, s->table.len * sizeof *s->table.at);
    if (shrunk != NULL) {
        s->table.at = shrunk;
        s->table.cap = s->table.len;
    }
    return true;
}

struct load {
    struct symbols *symbols;
    bool full;
};

static bool take_function(void *context, const struct elf_symbol *symbol)
{
    struct load *load = context;
    load->full = !symbols_add(load->symbols, symbol);
    return !load->full;
}

static bool load_tables(struct symbols *s, struct elf *elf, struct err *err)
{
    struct load load = {.symbols = s};
    for (int table = 0; table < ELF_TABLE_COUNT && !load.full; table++) {
        if (!elf_each_function(elf, (enum elf_table)table, take_function, &load, err)) {
            return false;
        }
        thin_out(s); /* most of .dynsym is in .symtab too: room for it is not needed twice */
    }
    if (load.full) {
        return err_set(err, ERR_LIMIT, 0, "function table larger than %zu bytes", s->max_bytes);
    }
    return true;
}

bool symbols_load_elf(struct symbols *s, struct elf *elf, struct err *err)
{
    bool good;
    s->base = elf->text_start;
    if (elf->text_limit - elf->text_start > UINT32_MAX) {
        return err_set(err, ERR_LIMIT, 0, "more than 4 GiB of code");
    }
    good = load_tables(s, elf, err);
    if (good && !symbols_finish(s)) {
        good = err_set(err, ERR_UNSUPPORTED, 0, "the file has no function symbols");
    }
    if (!good) {
        vec_release(&s->table);
    }
    return good;
}

/* The number of symbols that start at or below `offset`. */
static size_t count_up_to(const struct symbols *s, uint32_t offset)
{
    size_t low = 0, high = s->table.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->table.at[middle].start <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool symbols_find(const struct symbols *s, uint64_t address, struct symbol_hit *out)
{
    if (address < s->base || address - s->base > UINT32_MAX) {
        return false;
    }
    uint32_t offset = (uint32_t)(address - s->base);
    size_t at = count_up_to(s, offset);
    for (int steps = 0; at > 0 && steps < NESTING_MAX; steps++) {
        const struct symbol *symbol = &s->table.at[--at];
        if (offset < end_of(symbol)) {
            while (at > 0 && s->table.at[at - 1].start == symbol->start) {
                at--; /* hits are the first of their aliases */
            }
            *out = (struct symbol_hit){
                .start = s->base + symbol->start, .size = size_of(symbol), .index = (uint32_t)at};
            return true;
        }
        if ((symbol->size & FLAG_NESTED) == 0) {
            return false;
        }
    }
    return false;
}

static size_t leading_underscores(struct str name)
{
    size_t count = 0;
    while (count < name.len && name.ptr[count] == '_') {
        count++;
    }
    return count;
}

bool symbols_prefers(struct str a, struct str b)
{
    size_t a_lines = leading_underscores(a), b_lines = leading_underscores(b);
    if (a_lines != b_lines) {
        return a_lines < b_lines;
    }
    return a.len != b.len ? a.len < b.len : str_compare(a, b) < 0;
}

/* Of an ELF's symbols, the name that symbols_prefers; *out untouched when none can be read. */
static bool best_name(const struct symbols *s, struct elf *elf, const struct symbol_hit *hit,
                      struct buf *out)
{
    size_t start = out->len, end = run_end(s, hit->index);
    bool found = false;
    for (size_t i = hit->index; i < end; i++) {
        const struct symbol *symbol = &s->table.at[i];
        struct str name;
        if (elf_name(elf, symbol->size & FLAG_DYNSYM ? ELF_DYNSYM : ELF_SYMTAB, symbol->name,
                     &name) &&
            (!found || symbols_prefers(name, str_sub(buf_slice(out), start, out->len)))) {
            out->len = start;
            buf_str(out, name);
            found = true;
        }
    }
    return found;
}

bool symbols_name(const struct symbols *s, struct elf *elf, const struct symbol_hit *hit,
                  struct buf *out)
{
    if (s->names.names.len > 0) {
        words_get(&s->names, s->table.at[hit->index].name, out);
        return !out->failed;
    }
    return elf != NULL && best_name(s, elf, hit, out) && !out->failed;
}
