/* Code that .eh_frame does not describe (musl, hand-written assembler): finds the gap around an
 * address, its symbols and extent, has it analysed once, and keeps the rules. The amount analysed per
 * image is bounded. */
#include "unwind/analyse.h"
#include "unwind/arch.h"
#include "unwind/private.h"

#include <elf.h>
#include <stdlib.h>

enum {
    PROT_EXECUTE = 4,
    GAP_MIN = 16,            /* bytes; less is padding */
    STARTS_MAX = 1 << 18,    /* function starts known from symbols */
    FUNCTIONS_MAX = 1 << 16, /* analysed at most, per gap */
    PLT_ENTRY_BYTES = 16,
    WHOLE_MAX = 512 << 10,   /* a larger gap is analysed piece by piece, where symbols tell its */
    PIECE_BYTES = 128 << 10, /* functions: some 8 bytes of memory per byte of code are needed */
};

struct code_range {
    uint64_t start, limit;
};

/* While gaps are searched. */
struct search {
    struct unwind_table *table;
    VEC(struct code_range) code; /* executable ranges, by address */
    VEC(struct code_range) gaps; /* of them, what no FDE describes */
    bool failed;
};

/* While a gap is analysed. */
struct gap_analysis {
    struct unwind_table *table;
    const struct gap *gap;
    VEC(uint64_t) starts; /* of functions */
    struct analysed found;
};

bool unwind_table_is_code(const struct unwind_table *table, uint64_t address)
{
    const struct elf *e = table->elf;
    for (uint32_t i = 0; i < e->load_count; i++) {
        const struct elf_load *load = &e->loads[i];
        if ((load->prot & PROT_EXECUTE) != 0 && address >= load->address &&
            address - load->address < load->file_bytes) {
            return true;
        }
    }
    return false;
}

static void add_code(struct search *g, uint64_t start, uint64_t bytes)
{
    struct code_range *range = bytes > 0 ? vec_push(&g->code) : NULL;
    g->failed |= bytes > 0 && range == NULL;
    if (range != NULL) {
        *range = (struct code_range){start, start + bytes};
    }
}

static int by_range(const void *a, const void *b)
{
    const struct code_range *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sections tell code from read-only data that shares its segment. */
static void find_code(struct search *g)
{
    struct elf *e = g->table->elf;
    vec_each(&e->sections, s) {
        if (s->executable && s->type != SHT_NOBITS && s->address >= e->text_start &&
            s->address + s->bytes <= e->text_limit) {
            add_code(g, s->address, s->bytes);
        }
    }
    for (uint32_t i = 0; g->code.len == 0 && i < e->load_count; i++) {
        if ((e->loads[i].prot & PROT_EXECUTE) != 0) {
            add_code(g, e->loads[i].address, e->loads[i].file_bytes);
        }
    }
    if (g->code.len > 0) {
        qsort(g->code.at, g->code.len, sizeof *g->code.at, by_range);
    }
}

static void add_gap(struct search *g, uint64_t start, uint64_t limit)
{
    if (limit > start && limit - start >= GAP_MIN) {
        struct code_range *gap = vec_push(&g->gaps);
        g->failed |= gap == NULL;
        if (gap != NULL) {
            *gap = (struct code_range){start, limit};
        }
    }
}

/* The parts of [at, limit) that the sorted FDEs leave; *next: the first of them not yet passed. */
static uint64_t cut_out(struct search *g, uint64_t at, uint64_t limit, const struct frames *f,
                        size_t *next)
{
    uint64_t text = g->table->elf->text_start;
    for (; *next < f->index.len; ++*next) {
        uint64_t start = text + f->index.at[*next].start;
        uint64_t end = start + f->index.at[*next].bytes;
        if (start >= limit) {
            break;
        }
        add_gap(g, at, start);
        at = end > at ? end : at;
    }
    return at;
}

static void cut_out_all(struct search *g, const struct frames *f)
{
    size_t next = 0;
    uint64_t at = 0;
    vec_each(&g->code, range) {
        at = at > range->start ? at : range->start;
        at = cut_out(g, at, range->limit, f, &next);
        add_gap(g, at, range->limit);
    }
}

/* Gaps become the code that is left, to be cut by the next list of FDEs. */
static void cut_again(struct search *g, const struct frames *f)
{
    free(g->code.at);
    g->code.at = g->gaps.at;
    g->code.len = g->gaps.len;
    g->code.cap = g->gaps.cap;
    g->gaps.at = NULL;
    g->gaps.len = g->gaps.cap = 0;
    cut_out_all(g, f);
}

/* .eh_frame_hdr may know less than the section has (parts linked without it): then the index of the
 * scan takes its place. */
static void scan_eh(struct unwind_table *table)
{
    struct frames *f = &table->frames[PAGE_EH];
    if (f->bytes == 0 || f->indexed) {
        return;
    }
    frames_begin(f);
    if (frames_scan(f) && f->index.len > f->table_count) {
        f->indexed = true;
        unwind_table_drop(table, PAGE_EH);
    }
    frames_end(f);
}

static void open_debug(struct unwind_table *table)
{
    struct frames *f = &table->frames[PAGE_DEBUG];
    if (!frames_open_debug(f, table->elf)) {
        return;
    }
    frames_begin(f);
    f->indexed = frames_scan(f);
    frames_end(f);
}

/* What was unpacked is compiled at once and let go. */
static void use_up_unpacked(struct unwind_table *table)
{
    struct frames *f = &table->frames[PAGE_DEBUG];
    uint64_t text = table->elf->text_start, compiled = UINT64_MAX;
    for (size_t i = 0; f->unpacked.len > 0 && i < f->index.len; i++) {
        uint64_t at = text + f->index.at[i].start, last = at + f->index.at[i].bytes - 1;
        for (; at / UNWIND_PAGE_BYTES <= last / UNWIND_PAGE_BYTES; at += UNWIND_PAGE_BYTES) {
            if (at / UNWIND_PAGE_BYTES != compiled) {
                compiled = at / UNWIND_PAGE_BYTES;
                (void)unwind_table_compile(table, PAGE_DEBUG, at);
            }
        }
    }
    frames_release(f);
}

static bool add_start(struct gap_analysis *a, uint64_t address)
{
    uint64_t *start = a->starts.len < STARTS_MAX ? vec_push(&a->starts) : NULL;
    if (start == NULL) {
        return false;
    }
    *start = address;
    return true;
}

static bool is_within(const struct gap *gap, uint64_t address)
{
    return address >= gap->start && address < gap->limit;
}

static bool take_symbol(void *context, const struct elf_symbol *symbol)
{
    struct gap_analysis *a = context;
    return !is_within(a->gap, symbol->address) || add_start(a, symbol->address);
}

/* Every entry of a PLT is called by itself, and none has a symbol. */
static void take_plts(struct gap_analysis *a)
{
    static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct elf_section *s = elf_section(a->table->elf, names[i]);
        for (uint64_t at = 0; s != NULL && at < s->bytes; at += PLT_ENTRY_BYTES) {
            if (is_within(a->gap, s->address + at) && !add_start(a, s->address + at)) {
                return;
            }
        }
    }
}

static void take_symbols(struct gap_analysis *a)
{
    (void)elf_each_function(a->table->elf, ELF_SYMTAB, take_symbol, a, NULL);
    (void)elf_each_function(a->table->elf, ELF_DYNSYM, take_symbol, a, NULL);
}

/* The number of kept starts below `address`. */
static size_t kept_below(const struct unwind_table *table, uint64_t address)
{
    size_t low = 0, high = table->starts.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->starts.at[middle] < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void take_kept(struct gap_analysis *a)
{
    const struct unwind_table *table = a->table;
    size_t i = kept_below(table, a->gap->start);
    while (i < table->starts.len && table->starts.at[i] < a->gap->limit &&
           add_start(a, table->starts.at[i])) {
        i++;
    }
}

static void sort_starts(struct gap_analysis *a)
{
    if (a->starts.len > 0) {
        qsort(a->starts.at, a->starts.len, sizeof *a->starts.at, by_address);
    }
}

static void find_starts(struct gap_analysis *a, uint64_t first)
{
    if (a->gap->piece) {
        take_kept(a);
    } else {
        take_symbols(a);
    }
    take_plts(a);
    (void)add_start(a, first);
    sort_starts(a);
}

static bool analyse_code(struct gap_analysis *a)
{
    const struct gap *gap = a->gap;
    size_t len = (size_t)(gap->limit - gap->start);
    unsigned char *bytes = malloc(len);
    bool good = bytes != NULL && unwind_table_code(a->table, gap->start, bytes, len);
    size_t skip = good ? arch_padding(bytes, len) : 0;
    if (good && skip < len) {
        struct code code = {gap->start + skip, bytes + skip, len - skip};
        find_starts(a, code.address);
        good = analyse_text(&code, a->starts.at, a->starts.len, FUNCTIONS_MAX, &a->found);
    }
    free(bytes);
    vec_release(&a->starts);
    return good;
}

static void add_analysed(struct row_builder *b, uint64_t address, const struct unwind_rule *rule)
{
    struct unwind_rule marked = *rule;
    marked.kind |= RULE_ANALYSED;
    if (rule->kind == RULE_NONE) {
        rows_gap(b, address);
    } else {
        rows_add(b, address, &marked);
    }
}

/* The rows of the page from `start`: *next is their first, and the one before it may reach in. */
static bool keep_part(struct gap_analysis *a, uint64_t start, size_t *next, struct rows *out)
{
    struct row_builder b;
    struct rows rows;
    const struct analysed_row *row = a->found.rows.at;
    rows_begin(&b, a->table, start);
    if (*next > 0) {
        add_analysed(&b, start, &row[*next - 1].rule);
    }
    for (; *next < a->found.rows.len && row[*next].address < b.limit; ++*next) {
        add_analysed(&b, row[*next].address, &row[*next].rule);
    }
    if (!rows_end(&b, &rows)) {
        return false;
    }
    if (!unwind_table_make_room(a->table, &rows)) {
        free(rows.at);
        return false;
    }
    unwind_table_account(a->table, &rows);
    *out = rows;
    return true;
}

/* What does not fit into the table's memory stays unknown. */
static void keep_rows(struct gap_analysis *a, struct gap *gap)
{
    uint64_t bytes = gap->limit - gap->start;
    size_t next = 0, parts = (size_t)((bytes + UNWIND_PAGE_BYTES - 1) / UNWIND_PAGE_BYTES);
    gap->part = calloc(parts, sizeof *gap->part);
    for (size_t i = 0; gap->part != NULL && i < parts; i++) {
        if (!keep_part(a, gap->start + i * UNWIND_PAGE_BYTES, &next, &gap->part[i])) {
            return;
        }
    }
}

static void analyse_gap(struct unwind_table *table, struct gap *gap)
{
    uint64_t bytes = gap->limit - gap->start;
    struct gap_analysis a = {.table = table, .gap = gap};
    gap->analysed = true;
    if (bytes > table->analyse_left) {
        return;
    }
    table->analyse_left -= bytes;
    if (analyse_code(&a)) {
        keep_rows(&a, gap);
    }
    vec_release(&a.found.rows);
}

/* Where the pieces of a gap end, by the starts that are kept. */
static uint64_t piece_end(const struct unwind_table *table, uint64_t start, uint64_t limit)
{
    size_t next = kept_below(table, start + PIECE_BYTES);
    return next < table->starts.len && table->starts.at[next] < limit ? table->starts.at[next]
                                                                      : limit;
}

/* Puts pieces in the place of a gap; true when there are any. */
static bool cut_gap(struct unwind_table *table, size_t index)
{
    struct gap gap = table->gaps.at[index];
    size_t before = table->gaps.len, pieces = 0;
    for (uint64_t at = gap.start; at < gap.limit; at = piece_end(table, at, gap.limit)) {
        if (++pieces > 1 && vec_push(&table->gaps) == NULL) {
            table->gaps.len = before;
            return false;
        }
    }
    memmove(table->gaps.at + index + pieces, table->gaps.at + index + 1,
            (before - index - 1) * sizeof gap);
    for (uint64_t at = gap.start; at < gap.limit; index++) {
        uint64_t end = piece_end(table, at, gap.limit);
        table->gaps.at[index] = (struct gap){.start = at, .limit = end, .piece = true};
        at = end;
    }
    return pieces > 1;
}

/* Of one gap of an image only: there hardly is a second that large. */
static bool split_gap(struct unwind_table *table, struct gap *gap)
{
    struct gap_analysis a = {.table = table, .gap = gap};
    if (gap->piece || gap->limit - gap->start <= WHOLE_MAX || table->starts.len > 0) {
        return false;
    }
    take_symbols(&a);
    sort_starts(&a);
    table->starts.at = a.starts.at;
    table->starts.len = a.starts.len;
    table->starts.cap = a.starts.cap;
    return a.starts.len > 0 && cut_gap(table, (size_t)(gap - table->gaps.at));
}

static struct gap *gap_of(struct unwind_table *table, uint64_t address)
{
    size_t low = 0, high = table->gaps.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->gaps.at[middle].limit <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    struct gap *gap = low < table->gaps.len ? &table->gaps.at[low] : NULL;
    return gap != NULL && is_within(gap, address) ? gap : NULL;
}

uint16_t unwind_table_gap_rule(struct unwind_table *table, uint64_t address)
{
    size_t row;
    struct gap *gap = gap_of(table, address);
    if (gap == NULL) {
        return RULE_GAP;
    }
    if (!gap->analysed && split_gap(table, gap)) {
        gap = gap_of(table, address);
    }
    if (!gap->analysed) {
        analyse_gap(table, gap);
    }
    uint64_t at = address - gap->start;
    const struct rows *rows = gap->part == NULL ? NULL : &gap->part[at / UNWIND_PAGE_BYTES];
    return rows == NULL || rows->at == NULL
               ? RULE_GAP
               : rows_find(rows, (uint16_t)(at % UNWIND_PAGE_BYTES), &row);
}

static void keep_gaps(struct search *g)
{
    struct unwind_table *table = g->table;
    vec_each(&g->gaps, range) {
        struct gap *gap = g->failed ? NULL : vec_push(&table->gaps);
        if (gap == NULL) {
            return;
        }
        gap->start = range->start;
        gap->limit = range->limit;
    }
}

void unwind_table_find_gaps(struct unwind_table *table)
{
    struct search g = {.table = table};
    struct frames *eh = &table->frames[PAGE_EH], *debug = &table->frames[PAGE_DEBUG];
    scan_eh(table);
    open_debug(table);
    find_code(&g);
    cut_out_all(&g, eh);
    cut_again(&g, debug);
    if (debug->unpacked.len > 0) {
        use_up_unpacked(table);
    }
    if (!eh->indexed) {
        vec_release(&eh->index);
    }
    table->analyse_left = UNWIND_ANALYSE_MAX;
    keep_gaps(&g);
    vec_release(&g.code);
    vec_release(&g.gaps);
}
