/* The unwind rules of an image, compiled page by page when an address in it is first looked up. Pages
 * least recently used are dropped when the memory limit is reached. .eh_frame comes first, then
 * .debug_frame, then analysis (gaps.c). */
#include "unwind/table.h"
#include "unwind/arch.h"
#include "unwind/private.h"

#include <stdlib.h>

enum {
    WORD = 8,
    SMALL_GAP = 16,           /* bytes: compilers align functions to it */
    ENTRY_BYTES = 16,         /* of a program's first code, before anything else can begin */
    PAGE_FDES_MAX = 64 * 1024 /* one per byte of the page */
};

struct unwind_table *unwind_table_new(struct elf *elf, size_t max_bytes)
{
    struct unwind_table *table = calloc(1, sizeof *table);
    if (table == NULL || vec_push(&table->rules) == NULL) { /* [0]: RULE_GAP */
        free(table);
        return NULL;
    }
    table->elf = elf;
    table->max_bytes = max_bytes;
    table->usable = elf->machine == arch_machine && !elf->is_32bit;
    if (table->usable) {
        table->is_go = elf_is_go(elf);
        table->analyses = !table->is_go;
        (void)frames_open_eh(&table->frames[PAGE_EH], elf);
    }
    return table;
}

bool unwind_table_is_go(const struct unwind_table *table)
{
    return table->is_go;
}

void unwind_table_no_analysis(struct unwind_table *table)
{
    table->analyses = false;
}

static size_t parts_of(const struct gap *gap)
{
    return (size_t)((gap->limit - gap->start + UNWIND_PAGE_BYTES - 1) / UNWIND_PAGE_BYTES);
}

static void release_gap(struct gap *gap)
{
    for (size_t i = 0; gap->part != NULL && i < parts_of(gap); i++) {
        free(gap->part[i].at);
    }
    free(gap->part);
}

void unwind_table_free(struct unwind_table *table)
{
    if (table == NULL) {
        return;
    }
    vec_each(&table->pages, page) {
        free(page->rows.at);
    }
    vec_each(&table->gaps, gap) {
        release_gap(gap);
    }
    vec_release(&table->pages);
    vec_release(&table->gaps);
    vec_release(&table->starts);
    vec_release(&table->rules);
    vec_release(&table->by_sp.rules);
    map_release(&table->by_sp.at);
    map_release(&table->page_of);
    intern_release(&table->rule_ids);
    frames_release(&table->frames[PAGE_EH]);
    frames_release(&table->frames[PAGE_DEBUG]);
    unwind_table_take_depths(table, (struct unwind_depths){0});
    free(table);
}

static size_t bytes_of_rows(const struct rows *rows)
{
    return rows->count * 2 * sizeof *rows->at;
}

static size_t table_bytes(const struct unwind_table *table)
{
    return sizeof *table + table->row_bytes + table->pages.cap * sizeof *table->pages.at +
           table->page_of.cap * sizeof *table->page_of.slot +
           table->gaps.cap * sizeof *table->gaps.at +
           table->starts.cap * sizeof *table->starts.at + table->rules.cap * sizeof *table->rules.at +
           table->rule_ids.cap * sizeof *table->rule_ids.slot +
           table->by_sp.rules.cap * sizeof *table->by_sp.rules.at + table->by_sp.at.cap * sizeof *table->by_sp.at.slot +
           frames_bytes(&table->frames[PAGE_EH]) + frames_bytes(&table->frames[PAGE_DEBUG]);
}

void unwind_table_account(struct unwind_table *table, const struct rows *rows)
{
    table->row_bytes += bytes_of_rows(rows);
    table->stats.rows += rows->count;
}

static void drop_page(struct unwind_table *table, size_t index)
{
    struct page *page = &table->pages.at[index];
    table->row_bytes -= bytes_of_rows(&page->rows);
    table->stats.rows -= page->rows.count;
    free(page->rows.at);
    map_remove(&table->page_of, map_find(&table->page_of, page->key));
    vec_swap_out(&table->pages, index);
    if (index < table->pages.len) {
        map_find(&table->page_of, page->key)->value = index;
    }
}

void unwind_table_drop(struct unwind_table *table, enum page_kind kind)
{
    for (size_t i = table->pages.len; i > 0; i--) {
        if (table->pages.at[i - 1].key % PAGE_KINDS == kind) {
            drop_page(table, i - 1);
        }
    }
}

/* Pages go that can be had again; analysed rows and what came from an unpacked section cannot. */
static bool evict_oldest(struct unwind_table *table)
{
    struct page *oldest = NULL;
    vec_each(&table->pages, page) {
        if (frames_count(&table->frames[page->key % PAGE_KINDS]) > 0 &&
            (oldest == NULL || page->used < oldest->used)) {
            oldest = page;
        }
    }
    if (oldest != NULL) {
        drop_page(table, (size_t)(oldest - table->pages.at));
        table->stats.evicted++;
    }
    return oldest != NULL;
}

bool unwind_table_make_room(struct unwind_table *table, const struct rows *rows)
{
    while (table_bytes(table) + bytes_of_rows(rows) > table->max_bytes) {
        if (!evict_oldest(table)) {
            return false;
        }
    }
    return true;
}

static bool store_page(struct unwind_table *table, uint64_t key, const struct rows *rows)
{
    /* one page there must be, however small the allowance */
    struct page *page = unwind_table_make_room(table, rows) || table->pages.len == 0
                            ? vec_push(&table->pages)
                            : NULL;
    if (page == NULL || !map_add(&table->page_of, key, table->pages.len - 1)) {
        table->pages.len -= page != NULL;
        return false;
    }
    *page = (struct page){.key = key, .used = table->uses, .rows = *rows};
    unwind_table_account(table, rows);
    return true;
}

static bool take_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
    struct row_builder *b = context;
    if (address >= b->clip) {
        return false;
    }
    rows_add(b, address, rule);
    return !b->failed;
}

/* The rows of FDE `number`, before `clip`. */
static void compile_fde(struct row_builder *b, struct frames *frames, uint64_t number,
                        uint64_t start, uint64_t clip)
{
    const struct cfi_cie *cie;
    struct cfi_fde fde;
    if (!frames_fde(frames, number, &cie, &fde) || fde.start != start) {
        b->table->stats.malformed++;
        return;
    }
    b->clip = clip < fde.limit ? clip : fde.limit;
    if (b->clip <= b->start) {
        return; /* ended in the page before */
    }
    if (!cfi_each_row(&arch_cfi, cie, &fde, take_row, b)) {
        b->table->stats.malformed++;
        rows_revert(b, start);
    }
    rows_gap(b, b->clip);
}

static void compile_fdes(struct row_builder *b, struct frames *frames)
{
    uint64_t count = frames_count(frames), start, next;
    uint64_t number = frames_before(frames, b->start);
    number -= number > 0; /* the one before may reach into the page */
    if (number >= count || !frames_start(frames, number, &start)) {
        return;
    }
    for (size_t n = 0; n < PAGE_FDES_MAX && start < b->limit; n++, start = next) {
        bool more = number + 1 < count && frames_start(frames, number + 1, &next) && next >= start;
        uint64_t clip = more && next < b->limit ? next : b->limit;
        if (clip > start) {
            compile_fde(b, frames, number, start, clip);
        }
        if (!more) {
            return;
        }
        number++;
    }
}

bool unwind_table_compile(struct unwind_table *table, enum page_kind kind, uint64_t address)
{
    struct row_builder b;
    struct rows rows;
    struct frames *frames = &table->frames[kind];
    frames_begin(frames);
    rows_begin(&b, table, address - address % UNWIND_PAGE_BYTES);
    compile_fdes(&b, frames);
    frames_end(frames);
    if (!rows_end(&b, &rows)) {
        return false;
    }
    if (!store_page(table, page_key(address, kind), &rows)) {
        free(rows.at);
        return false;
    }
    return true;
}

/* The page, compiled if need be. Borrowed until the next page is compiled. */
static struct page *page_at(struct unwind_table *table, enum page_kind kind, uint64_t address)
{
    uint64_t key = page_key(address, kind);
    struct map_slot *slot = map_find(&table->page_of, key);
    if (slot == NULL && frames_count(&table->frames[kind]) > 0 &&
        unwind_table_compile(table, kind, address)) {
        slot = map_find(&table->page_of, key);
    }
    return slot == NULL ? NULL : &table->pages.at[slot->value];
}

/* The number of the rule that a section's CFI has for an address; *padding: it has none, and the
 * address is between two functions that are close to each other. */
static uint16_t find_rule(struct unwind_table *table, enum page_kind kind, uint64_t address,
                          bool *padding)
{
    size_t row;
    struct page *page = page_at(table, kind, address);
    *padding = false;
    if (page == NULL) {
        return RULE_GAP;
    }
    page->used = ++table->uses;
    uint16_t id = rows_find(&page->rows, (uint16_t)(address % UNWIND_PAGE_BYTES), &row);
    *padding = row > 0 && row + 1 < page->rows.count &&
               page->rows.at[row + 1] - page->rows.at[row] < SMALL_GAP;
    return id;
}

/* For an address that .eh_frame does not describe, as far as was known when it was asked. */
static uint16_t find_elsewhere(struct unwind_table *table, uint64_t address)
{
    bool padding;
    uint16_t id = RULE_GAP;
    if (!table->gaps_found) {
        table->gaps_found = true;
        unwind_table_find_gaps(table);
        id = find_rule(table, PAGE_EH, address, &padding);
    }
    if (id == RULE_GAP) {
        id = find_rule(table, PAGE_DEBUG, address, &padding);
    }
    return id == RULE_GAP && table->analyses ? unwind_table_gap_rule(table, address) : id;
}

/* Nothing returns from the first code that runs; the dynamic linker's has no CFI. */
static bool is_entry(const struct unwind_table *table, uint64_t address)
{
    return address >= table->elf->entry && address - table->elf->entry < ENTRY_BYTES &&
           table->elf->entry != 0;
}

void unwind_table_take_depths(struct unwind_table *table, struct unwind_depths depths)
{
    if (table->depths.at != NULL) {
        table->depths.release(table->depths.context);
    }
    table->depths = depths;
}

/* The frame pointer is found as where Go has CFI, which does not tell of it either. */
struct unwind_rule unwind_table_rule_by_depth(struct unwind_table *table, uint64_t address)
{
    uint32_t bytes;
    bool known = table->depths.at != NULL && table->depths.at(table->depths.context, address, &bytes);
    if (!known || (bytes > INT16_MAX && bytes != UNWIND_OUTERMOST)) {
        return (struct unwind_rule){.kind = RULE_NONE};
    }
    if (bytes == UNWIND_OUTERMOST) {
        return (struct unwind_rule){.kind = RULE_END};
    }
    struct unwind_rule rule = {.kind = RULE_CFA, .cfa_reg = (uint8_t)arch_cfi.sp, .cfa = (int32_t)bytes};
    if (!arch_cfi.ra_is_register) {
        rule.cfa += WORD;
        rule.ra = -WORD;
    } else if (bytes == 0) {
        rule.ra_place = RA_REGISTER;
        rule.ra = (int16_t)arch_cfi.ra;
    } else {
        rule.ra = (int16_t)-(int32_t)bytes;
    }
    return rule;
}

struct unwind_rule unwind_table_rule(struct unwind_table *table, uint64_t address, bool *analysed)
{
    bool padding;
    *analysed = false;
    if (!table->usable || !unwind_table_is_code(table, address)) {
        return (struct unwind_rule){.kind = RULE_NONE};
    }
    uint16_t id = find_rule(table, PAGE_EH, address, &padding);
    if (id == RULE_GAP && !padding) {
        id = find_elsewhere(table, address);
    }
    struct unwind_rule rule = table->rules.at[id];
    *analysed = (rule.kind & RULE_ANALYSED) != 0;
    rule.kind &= (uint8_t)~RULE_ANALYSED;
    if ((id == RULE_GAP || *analysed) && is_entry(table, address)) {
        rule = (struct unwind_rule){.kind = RULE_END};
        *analysed = false;
    }
    return id == RULE_GAP && rule.kind == RULE_NONE ? unwind_table_rule_by_depth(table, address) : rule;
}

struct row_search {
    uint64_t address;
    struct unwind_rule found;
};

static bool take_row_before(void *context, uint64_t address, const struct unwind_rule *rule)
{
    struct row_search *search = context;
    if (address > search->address) {
        return false;
    }
    search->found = *rule;
    return true;
}

static bool register_in(struct frames *frames, uint64_t address, uint8_t reg,
                        struct unwind_rule *out)
{
    const struct cfi_cie *kept;
    struct cfi_fde fde;
    struct row_search search = {.address = address, .found = {.kind = RULE_NONE}};
    struct cfi_machine machine = arch_cfi;
    uint64_t number = frames_before(frames, address);
    machine.fp = reg;
    if (number == 0 || !frames_fde(frames, number - 1, &kept, &fde) || address < fde.start ||
        address >= fde.limit) {
        return false;
    }
    struct cfi_cie cie = *kept;
    cie.initial.fp = (struct cfi_place){.kind = CFI_UNSPECIFIED}; /* CIEs specify none but RA */
    bool good = cfi_each_row(&machine, &cie, &fde, take_row_before, &search);
    *out = search.found;
    return good && search.found.kind != RULE_NONE;
}

bool unwind_table_register(struct unwind_table *table, uint64_t address, uint8_t reg,
                           struct unwind_rule *out)
{
    struct frames *frames = &table->frames[PAGE_EH];
    if (!table->usable || frames_count(frames) == 0) {
        return false;
    }
    frames_begin(frames);
    bool found = register_in(frames, address, reg, out);
    frames_end(frames);
    return found;
}

static bool function_in(struct frames *frames, uint64_t address, uint64_t *start, uint64_t *limit)
{
    const struct cfi_cie *cie;
    struct cfi_fde fde;
    uint64_t number = frames_before(frames, address);
    if (number == 0 || !frames_fde(frames, number - 1, &cie, &fde) || address < fde.start ||
        address >= fde.limit) {
        return false;
    }
    *start = fde.start;
    *limit = fde.limit;
    return true;
}

/* A program without .eh_frame_hdr, as static ones are linked, has its functions listed once. */
bool unwind_table_function(struct unwind_table *table, uint64_t address, uint64_t *start,
                           uint64_t *limit)
{
    bool found = false;
    if (table->usable && !table->gaps_found && frames_count(&table->frames[PAGE_EH]) == 0) {
        table->gaps_found = true;
        unwind_table_find_gaps(table);
    }
    for (int kind = PAGE_EH; kind <= PAGE_DEBUG && !found; kind++) {
        struct frames *frames = &table->frames[kind];
        if (frames_count(frames) > 0) {
            frames_begin(frames);
            found = function_in(frames, address, start, limit);
            frames_end(frames);
        }
    }
    return found;
}

bool unwind_table_code(const struct unwind_table *table, uint64_t address, void *out, size_t len)
{
    uint64_t first, last;
    return len > 0 && elf_offset_of(table->elf, address, &first) &&
           elf_offset_of(table->elf, address + len - 1, &last) && last - first == len - 1 &&
           elf_read(table->elf, first, out, len, NULL);
}

static uint64_t count_analysed(const struct gap *gap)
{
    uint64_t count = 0;
    for (size_t i = 0; gap->part != NULL && i < parts_of(gap); i++) {
        const struct rows *rows = &gap->part[i];
        for (uint32_t r = 0; r < rows->count; r++) {
            count += rows->at[rows->count + r] != RULE_GAP;
        }
    }
    return count;
}

struct unwind_table_stats unwind_table_stats(const struct unwind_table *table)
{
    struct unwind_table_stats stats = table->stats;
    stats.pages = table->pages.len;
    stats.rules = table->rules.len - 1;
    stats.bytes = table_bytes(table);
    stats.malformed += table->frames[PAGE_EH].malformed + table->frames[PAGE_DEBUG].malformed;
    vec_each(&table->pages, page) {
        stats.text_bytes += page->key % PAGE_KINDS == PAGE_EH ? UNWIND_PAGE_BYTES : 0;
    }
    vec_each(&table->gaps, gap) {
        stats.analysed += count_analysed(gap);
    }
    return stats;
}
