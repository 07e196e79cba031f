/* The table of an image's functions: filled from .symtab, .dynsym and linkage stubs, sorted, and thinned out to the
 * best symbol of each address with its aliases. It holds 12 bytes per function, as names stay in their files, except
 * the kernel's. Starts are 32-bit offsets, so an image with more than 4 GiB of code is refused. */
#include "symbol/symbols.h"

#include <stdio.h>
#include <stdlib.h>

#include "symbol/plt.h"
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
};

/* A linkage stub: `name` is the number in .dynsym of the function it calls (FLAG_DYNSYM), 0 for
 * none, or the start of the one that chooses which function is called. */
#define FLAG_STUB (UINT32_C(1) << 31)

void symbols_init(struct symbols *s, size_t max_bytes)
{
    *s = (struct symbols){.max_bytes = max_bytes};
    pairs_init(&s->names, max_bytes);
}

void symbols_release(struct symbols *s)
{
    vec_release(&s->table);
    vec_release(&s->known);
    pairs_release(&s->names);
}

void symbols_want(struct symbols *s, const uint64_t *address, size_t count)
{
    s->wanted = address;
    s->wanted_count = count;
}

size_t symbols_bytes(const struct symbols *s)
{
    return s->table.cap * sizeof *s->table.at + s->known.cap * sizeof *s->known.at + pairs_bytes(&s->names);
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
    if ((symbol->size & FLAG_STUB) != 0) {
        return 0;
    }
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
                kept - first == SYMBOLS_ALIASES_MAX ||
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
    return (s->table.len + 1) * sizeof *s->table.at + pairs_bytes(&s->names) <= s->max_bytes;
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

/* False when the table is full. */
static bool store(struct symbols *s, struct symbol symbol)
{
    bool sized = (symbol.size & FLAG_SIZED) != 0;
    if (s->few != NULL && !symbols_few_takes(s->few, symbol.start, end_of(&symbol), sized)) {
        return true;
    }
    struct symbol *stored = make_room(s) ? vec_push(&s->table) : NULL;
    if (stored != NULL) {
        *stored = symbol;
    }
    return stored != NULL;
}

bool symbols_add(struct symbols *s, const struct elf_symbol *symbol)
{
    if (symbol->address < s->base || symbol->address - s->base > UINT32_MAX) {
        return true; /* not within what this table covers */
    }
    uint64_t size = symbol->size != 0 ? symbol->size : symbol->limit - symbol->address;
    struct symbol made = {
        .start = (uint32_t)(symbol->address - s->base),
        .size = (uint32_t)(size < SIZE_MAX_BYTES ? size : SIZE_MAX_BYTES) |
                (uint32_t)symbol->binding << FLAG_SHIFT | (symbol->size != 0 ? FLAG_SIZED : 0) |
                (symbol->table == ELF_DYNSYM ? FLAG_DYNSYM : 0),
        .name = symbol->name,
    };
    return store(s, made);
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

/* False, with the table empty, when the file cannot be read. */
static bool load_table(struct symbols *s, struct elf *elf, enum elf_table table, struct err *err)
{
    struct load load = {.symbols = s};
    if (!elf_each_function(elf, table, take_function, &load, err)) {
        return false;
    }
    s->tables[table] = elf->tables[table];
    return !load.full ||
           err_set(err, ERR_LIMIT, 0, "function table larger than %zu bytes", s->max_bytes);
}

static bool add_stub(struct symbols *s, const struct plt_stub *stub)
{
    if (stub->address < s->base || stub->address - s->base > UINT32_MAX) {
        return true;
    }
    bool chosen = stub->resolver != 0 && stub->resolver >= s->base &&
                  stub->resolver - s->base <= UINT32_MAX;
    struct symbol made = {
        .start = (uint32_t)(stub->address - s->base),
        .size = stub->bytes | FLAG_SIZED | FLAG_STUB | (chosen ? 0 : FLAG_DYNSYM),
        .name = chosen ? (uint32_t)(stub->resolver - s->base) : stub->symbol,
    };
    return store(s, made);
}

/* Names for stubs are a bonus: what cannot be read, or has no room, goes without. */
static void load_stubs(struct symbols *s, struct elf *elf)
{
    struct plt plt;
    if (!plt_read(&plt, elf, NULL)) {
        return;
    }
    for (size_t i = 0; i < plt.stubs.len && add_stub(s, &plt.stubs.at[i]); i++) {
    }
    plt_release(&plt);
}

/* The tables of `main`, with .symtab from `with_symtab` (may be null). */
static bool read_tables(struct symbols *s, struct elf *main, struct elf *with_symtab,
                        struct err *err)
{
    if (with_symtab != NULL && !load_table(s, with_symtab, ELF_SYMTAB, err)) {
        return false;
    }
    thin_out(s); /* most of .dynsym is in .symtab too: room for it is not needed twice */
    if (!load_table(s, main, ELF_DYNSYM, err)) {
        return false;
    }
    load_stubs(s, main);
    return true;
}

static bool load_all(struct symbols *s, struct elf *main, struct elf *with_symtab, struct err *err)
{
    return read_tables(s, main, with_symtab, err) &&
           (symbols_finish(s) || err_set(err, ERR_UNSUPPORTED, 0, "the file has no function symbols"));
}

/* What tells of the wanted addresses, and for which others that holds. */
static bool load_few(struct symbols *s, struct elf *main, struct elf *with_symtab, struct err *err)
{
    vec_release(&s->table);
    s->few = symbols_few_begin(s->base, s->wanted, s->wanted_count);
    bool good = s->few != NULL && read_tables(s, main, with_symtab, err) && symbols_few_choose(s->few) &&
                read_tables(s, main, with_symtab, err) && symbols_few_keep(s->few, s);
    symbols_few_free(s->few);
    s->few = NULL;
    (void)symbols_finish(s); /* that there are none is known as well */
    return good;
}

static bool load_images(struct symbols *s, struct elf *main, struct elf *with_symtab,
                        struct err *err)
{
    struct err reason = {0};
    s->base = main->text_start;
    if (main->text_limit - main->text_start > UINT32_MAX) {
        return err_set(err, ERR_LIMIT, 0, "more than 4 GiB of code");
    }
    bool good = !s->is_few && load_all(s, main, with_symtab, &reason);
    s->is_few = s->wanted != NULL && (s->is_few || reason.kind == ERR_LIMIT);
    if (!good && !(s->is_few && load_few(s, main, with_symtab, &reason))) {
        vec_release(&s->table);
        vec_release(&s->known);
        return err_set(err, reason.kind, reason.number, "%s", reason.text);
    }
    return true;
}

/* Where to look for .symtab when that of `file` cannot be used; FILE_COUNT: nowhere. */
static enum symbol_file next_symtab(struct symbol_files *files, enum symbol_file file)
{
    return file == FILE_DEBUG ? symbol_files_symtab(files, true) : FILE_COUNT;
}

bool symbols_load_files(struct symbols *s, struct symbol_files *files, struct err *err)
{
    struct elf *main = &files->elf[FILE_MAIN];
    struct err reason = {0};
    s->symtab_file = symbol_files_symtab(files, false);
    while (!load_images(s, main, symbol_files_elf(files, s->symtab_file), &reason)) {
        if (s->symtab_file == FILE_MAIN || s->symtab_file == FILE_COUNT) {
            return err_set(err, reason.kind, reason.number, "%s", reason.text);
        }
        snprintf(files->problem, sizeof files->problem, "%s: %.350s",
                 s->symtab_file == FILE_DEBUG ? "debug file" : ".gnu_debugdata", reason.text);
        s->symtab_file = next_symtab(files, s->symtab_file);
    }
    return true;
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
    if (address < s->base || address - s->base > UINT32_MAX || (s->is_few && !symbols_knows(s, address))) {
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
            *out = (struct symbol_hit){.start = s->base + symbol->start,
                                       .size = size_of(symbol),
                                       .index = (uint32_t)at,
                                       .sized = (symbol->size & FLAG_SIZED) != 0};
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

/* Where the names of a table are. */
struct name_files {
    struct elf *main;
    struct elf *with_symtab; /* null: it is not there any more */
};

/* Is it the table that was loaded? A debug file may have been replaced since. */
static bool is_same_table(const struct symbols *s, const struct elf *elf, enum elf_table table)
{
    const struct elf_symbol_table *a = &s->tables[table], *b = &elf->tables[table];
    return a->count == b->count && a->offset == b->offset && a->names_offset == b->names_offset &&
           a->names_bytes == b->names_bytes;
}

static bool read_name(const struct symbols *s, const struct name_files *files,
                      const struct symbol *symbol, struct str *out)
{
    enum elf_table table = symbol->size & FLAG_DYNSYM ? ELF_DYNSYM : ELF_SYMTAB;
    struct elf *elf = table == ELF_DYNSYM ? files->main : files->with_symtab;
    return elf != NULL && is_same_table(s, elf, table) && elf_name(elf, table, symbol->name, out);
}

/* Of an ELF's symbols, the name that symbols_prefers; *out untouched when none can be read. */
static bool best_name(const struct symbols *s, const struct name_files *files, size_t index,
                      struct buf *out)
{
    size_t start = out->len, end = run_end(s, index);
    bool found = false;
    for (size_t i = index; i < end; i++) {
        const struct symbol *symbol = &s->table.at[i];
        struct str name;
        if ((symbol->size & FLAG_STUB) == 0 && read_name(s, files, symbol, &name) &&
            (!found || symbols_prefers(name, str_sub(buf_slice(out), start, out->len)))) {
            out->len = start;
            buf_str(out, name);
            found = true;
        }
    }
    return found;
}

/* The name of the function that a stub calls, or of the one that chooses it. */
static bool called_name(const struct symbols *s, const struct name_files *files,
                        const struct symbol *stub, struct buf *out)
{
    struct symbol_hit hit;
    struct str name;
    if ((stub->size & FLAG_DYNSYM) == 0) {
        return symbols_find(s, s->base + stub->name, &hit) &&
               hit.start == s->base + stub->name && best_name(s, files, hit.index, out);
    }
    if (stub->name == 0 || !is_same_table(s, files->main, ELF_DYNSYM) ||
        !elf_name_of(files->main, ELF_DYNSYM, stub->name, &name)) {
        return false;
    }
    buf_str(out, name);
    return true;
}

static bool any_name(const struct symbols *s, const struct name_files *files,
                     const struct symbol_hit *hit, struct buf *out)
{
    const struct symbol *symbol = &s->table.at[hit->index];
    if ((symbol->size & FLAG_STUB) == 0) {
        return best_name(s, files, hit->index, out) && !out->failed;
    }
    buf_text(out, called_name(s, files, symbol, out) ? "@plt" : "[plt]");
    return !out->failed;
}

static bool kept_name(const struct symbols *s, const struct symbol_hit *hit, struct buf *out)
{
    pairs_get(&s->names, s->table.at[hit->index].name, out);
    return !out->failed;
}

/* May the name be in the file with .symtab? That one may have to be unpacked for it. */
static bool needs_symtab(const struct symbols *s, const struct symbol_hit *hit)
{
    return (s->table.at[hit->index].size & FLAG_DYNSYM) == 0 ||
           run_end(s, hit->index) > hit->index + 1;
}

bool symbols_name(const struct symbols *s, struct symbol_files *files, const struct symbol_hit *hit, struct buf *out)
{
    if (s->names.bytes.len > 0) {
        return kept_name(s, hit, out);
    }
    if (files == NULL) {
        return false;
    }
    struct name_files both = {.main = &files->elf[FILE_MAIN]};
    if (needs_symtab(s, hit)) {
        both.with_symtab = symbol_files_elf(files, s->symtab_file);
    }
    return any_name(s, &both, hit, out);
}
