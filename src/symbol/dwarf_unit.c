/* Units: listed, loaded, and the functions in them. */
#include <dwarf.h>
#include <stdlib.h>

#include "symbol/dwarf.h"

enum { HEADER_MAX_BYTES = 48 };

/* ---- listing ---- */

/* The header at `at` (DWARF 5, 7.5.1). `*next` is where the unit behind it begins; false: no
 * more. */
static bool read_header(struct dwarf *d, uint64_t at, struct dwarf_unit *unit, uint64_t *next,
                        bool *usable)
{
    struct cursor c = dwarf_bytes(d, DWARF_INFO, at, HEADER_MAX_BYTES);
    size_t before = c.len;
    unsigned type = DW_UT_compile;
    *unit = (struct dwarf_unit){.offset = at, .offset_bytes = 4, .lines = UINT64_MAX};
    uint64_t len = cursor_u32(&c);
    if (len == UINT32_MAX) {
        len = cursor_u64(&c);
        unit->offset_bytes = 8;
    }
    uint64_t left = d->section[DWARF_INFO].bytes - at - (before - c.len);
    if (c.short_read || len == 0 || len > left) {
        return false;
    }
    *next = unit->limit = at + (before - c.len) + len;
    unit->version = cursor_u16(&c);
    if (unit->version >= 5) {
        type = cursor_u8(&c);
        unit->address_bytes = cursor_u8(&c);
        unit->abbreviations = dwarf_offset(&c, unit->offset_bytes);
    } else {
        unit->abbreviations = dwarf_offset(&c, unit->offset_bytes);
        unit->address_bytes = cursor_u8(&c);
    }
    unit->entries = at + (before - c.len);
    *usable = !c.short_read && unit->version >= 2 && unit->version <= 5 &&
              (unit->address_bytes == 4 || unit->address_bytes == 8) &&
              (type == DW_UT_compile || type == DW_UT_partial) && unit->entries < unit->limit;
    return true;
}

/* Decodes an entry of a unit that is not loaded, searching its abbreviation. */
static bool read_root(struct dwarf *d, const struct dwarf_unit *unit, struct dwarf_entry *out,
                      struct dwarf_time *time)
{
    struct dwarf_specification specifications[DWARF_ATTRIBUTES_MAX];
    struct dwarf_abbreviation a;
    uint64_t at = unit->abbreviations;
    struct cursor c = dwarf_bytes(d, DWARF_INFO, unit->entries, DWARF_WINDOW_BYTES);
    size_t before = c.len;
    uint64_t code = cursor_uleb(&c);
    do {
        if (!dwarf_take_abbreviation(d, unit, &at, &a, specifications) || !dwarf_step(time)) {
            return false;
        }
    } while (a.code != code);
    *out = (struct dwarf_entry){.offset = unit->entries, .tag = a.tag};
    dwarf_take_values(&c, unit, unit->entries + (before - c.len), specifications, a.count, out);
    return !c.short_read;
}

static uint64_t number_or(const struct dwarf_entry *e, enum dwarf_attribute attribute,
                          uint64_t otherwise)
{
    return dwarf_has(e, attribute) ? e->at[attribute].number : otherwise;
}

/* What the whole unit needs from its first entry. */
static void take_root(struct dwarf *d, struct dwarf_unit *unit, const struct dwarf_entry *root)
{
    unsigned header = unit->offset_bytes == 8 ? 16 : 8; /* of .debug_addr, .debug_str_offsets */
    unit->addr_base = number_or(root, DWARF_ADDR_BASE, unit->version >= 5 ? header : 0);
    unit->str_offsets_base =
        number_or(root, DWARF_STR_OFFSETS_BASE, unit->version >= 5 ? header : 0);
    unit->rnglists_base = number_or(root, DWARF_RNGLISTS_BASE, 0);
    unit->lines = number_or(root, DWARF_STMT_LIST, UINT64_MAX);
    if (dwarf_has(root, DWARF_LOW_PC)) {
        (void)dwarf_address(d, unit, &root->at[DWARF_LOW_PC], &unit->low_pc);
    }
}

static bool add_range(void *context, uint64_t start, uint64_t limit)
{
    struct dwarf *d = context;
    if (limit <= d->text_start || start >= d->text_limit || start < d->text_start) {
        return true; /* code the linker left out is at 0 or thereabouts */
    }
    if (d->ranges.len > 0) {
        struct dwarf_unit_range *last = &d->ranges.at[d->ranges.len - 1];
        if (last->unit == d->units.len - 1 && start >= last->start && start <= last->limit) {
            last->limit = limit > last->limit ? limit : last->limit;
            return true;
        }
    }
    struct dwarf_unit_range *range =
        d->ranges.len < 4 * DWARF_UNITS_MAX ? vec_push(&d->ranges) : NULL;
    if (range != NULL) {
        *range = (struct dwarf_unit_range){start, limit, (uint32_t)(d->units.len - 1)};
    }
    return range != NULL;
}

static int by_start(const void *left, const void *right)
{
    const struct dwarf_unit_range *a = left, *b = right;
    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    return (a->unit > b->unit) - (a->unit < b->unit);
}

/* All of a unit or, when time ends over its ranges, nothing. */
static bool add_unit(struct dwarf *d, struct dwarf_unit *unit, const struct dwarf_entry *root,
                     struct dwarf_time *time)
{
    size_t range_count = d->ranges.len;
    struct dwarf_unit *added = vec_push(&d->units);
    if (added == NULL) {
        return false;
    }
    take_root(d, unit, root);
    *added = *unit;
    if (root->tag == DW_TAG_compile_unit) {
        dwarf_each_range(d, unit, root, add_range, d, time);
    }
    if (time->over) {
        d->units.len--;
        d->ranges.len = range_count;
    }
    return !time->over;
}

/* Lists one unit. False: there are no more, or time is over. */
static bool list_unit(struct dwarf *d, struct dwarf_time *time)
{
    struct dwarf_unit unit;
    struct dwarf_entry root;
    bool usable = false;
    uint64_t next = 0;
    if (!dwarf_step(time) || d->units.len >= DWARF_UNITS_MAX ||
        !read_header(d, d->next_unit, &unit, &next, &usable)) {
        return false;
    }
    bool rooted = usable && read_root(d, &unit, &root, time);
    if (time->over) {
        return false;
    }
    if (rooted && !add_unit(d, &unit, &root, time)) {
        return false;
    }
    d->next_unit = next;
    return true;
}

bool dwarf_list_units(struct dwarf *d, struct dwarf_time *time)
{
    if (d->listed) {
        return true;
    }
    while (list_unit(d, time)) {
    }
    if (time->over) {
        return false;
    }
    if (d->ranges.len > 0) {
        qsort(d->ranges.at, d->ranges.len, sizeof *d->ranges.at, by_start);
    }
    d->listed = true;
    return true;
}

struct dwarf_unit *dwarf_unit_at(struct dwarf *d, uint64_t offset)
{
    size_t low = 0, high = d->units.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->units.at[middle].offset <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    struct dwarf_unit *unit = low > 0 ? &d->units.at[low - 1] : NULL;
    return unit != NULL && offset < unit->limit ? unit : NULL;
}

/* ---- loading ---- */

static size_t loaded_bytes(const struct dwarf_unit *unit)
{
    const struct dwarf_loaded *l = unit->loaded;
    if (l == NULL) {
        return 0;
    }
    return sizeof *l + (l->owned != NULL ? (size_t)(unit->limit - unit->offset) : 0) +
           l->abbreviations.list.cap * sizeof *l->abbreviations.list.at +
           l->abbreviations.specifications.cap * sizeof *l->abbreviations.specifications.at +
           l->functions.cap * sizeof *l->functions.at + dwarf_lines_bytes(&l->line_table);
}

static size_t units_bytes(const struct dwarf *d)
{
    size_t bytes = 0;
    vec_each(&d->loaded, index) {
        bytes += loaded_bytes(&d->units.at[*index]);
    }
    return bytes;
}

size_t dwarf_held_bytes(const struct dwarf *d)
{
    return d->held_bytes + d->units.cap * sizeof *d->units.at +
           d->ranges.cap * sizeof *d->ranges.at + d->texts.used_bytes + units_bytes(d);
}

/* Gives back units not used the longest, none that this look-up has used, until `more` bytes
 * fit. */
static void make_room(struct dwarf *d, uint64_t more)
{
    while (d->loaded.len > 0 && (d->loaded.len >= DWARF_LOADED_MAX ||
                                 units_bytes(d) + more > DWARF_UNITS_KEPT_BYTES ||
                                 dwarf_held_bytes(d) + more > d->max_bytes)) {
        size_t oldest = 0;
        for (size_t i = 1; i < d->loaded.len; i++) {
            if (d->units.at[d->loaded.at[i]].loaded->used <
                d->units.at[d->loaded.at[oldest]].loaded->used) {
                oldest = i;
            }
        }
        struct dwarf_unit *unit = &d->units.at[d->loaded.at[oldest]];
        if (unit->loaded->used == d->uses) {
            return;
        }
        dwarf_unload(unit);
        vec_swap_out(&d->loaded, oldest);
    }
}

static bool load_bytes(struct dwarf *d, const struct dwarf_unit *unit, struct dwarf_loaded *l)
{
    uint64_t len = unit->limit - unit->offset;
    l->bytes = dwarf_in_memory(d, DWARF_INFO, unit->offset, len);
    if (l->bytes != NULL) {
        return true;
    }
    if (len > d->max_bytes) {
        return false;
    }
    make_room(d, len);
    if (dwarf_held_bytes(d) + len > d->max_bytes) {
        return false;
    }
    l->bytes = l->owned = malloc((size_t)len);
    return l->owned != NULL && dwarf_copy(d, DWARF_INFO, unit->offset, l->owned, (size_t)len);
}

static int by_code(const void *left, const void *right)
{
    const struct dwarf_abbreviation *a = left, *b = right;
    return (a->code > b->code) - (a->code < b->code);
}

static bool add_abbreviation(struct dwarf_abbreviations *out, struct dwarf_abbreviation a,
                             const struct dwarf_specification *specifications)
{
    a.first = (uint32_t)out->specifications.len;
    for (uint32_t i = 0; i < a.count; i++) {
        struct dwarf_specification *s = vec_push(&out->specifications);
        if (s == NULL) {
            return false;
        }
        *s = specifications[i];
    }
    struct dwarf_abbreviation *added = vec_push(&out->list);
    if (added != NULL) {
        *added = a;
    }
    return added != NULL;
}

static bool load_abbreviations(struct dwarf *d, const struct dwarf_unit *unit,
                               struct dwarf_abbreviations *out, struct dwarf_time *time)
{
    struct dwarf_specification specifications[DWARF_ATTRIBUTES_MAX];
    struct dwarf_abbreviation a;
    uint64_t at = unit->abbreviations;
    bool in_order = true;
    while (out->list.len < DWARF_ABBREVIATIONS_MAX && dwarf_step(time) &&
           dwarf_take_abbreviation(d, unit, &at, &a, specifications)) {
        in_order &= a.code == out->list.len + 1;
        if (!add_abbreviation(out, a, specifications)) {
            return false;
        }
    }
    if (!in_order) {
        qsort(out->list.at, out->list.len, sizeof *out->list.at, by_code);
    }
    return !time->over;
}

/* The folder of the compilation, which relative paths begin in. */
static struct str load_directory(struct dwarf *d, const struct dwarf_unit *unit)
{
    struct dwarf_time any = {0};
    struct dwarf_entry root;
    if (!dwarf_read_entry(d, unit, unit->entries, &root, &any) ||
        !dwarf_has(&root, DWARF_COMP_DIR)) {
        return STR("");
    }
    struct str copy = arena_copy(&d->texts, dwarf_text(d, unit, &root.at[DWARF_COMP_DIR]));
    return copy.ptr == NULL ? STR("") : copy;
}

bool dwarf_load(struct dwarf *d, struct dwarf_unit *unit, struct dwarf_time *time)
{
    if (unit->loaded != NULL) {
        unit->loaded->used = d->uses;
        return true;
    }
    struct dwarf_loaded *l = calloc(1, sizeof *l);
    uint32_t *index = l == NULL ? NULL : vec_push(&d->loaded);
    if (index == NULL) {
        free(l);
        return false;
    }
    d->loaded.len--;
    l->used = d->uses;
    if (!load_bytes(d, unit, l) || !load_abbreviations(d, unit, &l->abbreviations, time)) {
        unit->loaded = l;
        dwarf_unload(unit);
        return false;
    }
    unit->loaded = l;
    *vec_push(&d->loaded) = (uint32_t)(unit - d->units.at); /* there is room: see above */
    l->directory = load_directory(d, unit);
    return true;
}

/* ---- functions ---- */

struct finding {
    struct dwarf *d;
    struct dwarf_loaded *loaded;
    uint64_t entry;
};

static bool add_function(void *context, uint64_t start, uint64_t limit)
{
    struct finding *f = context;
    if (start < f->d->text_start || start >= f->d->text_limit) {
        return true;
    }
    bool room = f->loaded->functions.len < DWARF_FUNCTIONS_MAX;
    struct dwarf_function *added = room ? vec_push(&f->loaded->functions) : NULL;
    if (added != NULL) {
        *added = (struct dwarf_function){start, limit, f->entry};
    }
    return added != NULL;
}

static int by_function_start(const void *left, const void *right)
{
    const struct dwarf_function *a = left, *b = right;
    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    return (a->entry > b->entry) - (a->entry < b->entry);
}

/* May what is below this entry be passed over by its DW_AT_sibling? */
static bool is_closed(uint16_t tag, bool all)
{
    return !all && tag != DW_TAG_namespace && tag != DW_TAG_module &&
           tag != DW_TAG_compile_unit && tag != DW_TAG_partial_unit;
}

bool dwarf_find_functions(struct dwarf *d, struct dwarf_unit *unit, bool all,
                          struct dwarf_time *time)
{
    struct dwarf_loaded *l = unit->loaded;
    struct finding finding = {.d = d, .loaded = l};
    struct dwarf_entry e;
    uint64_t at = unit->entries;
    if (l->functions_known >= (all ? FUNCTIONS_ALL : FUNCTIONS_OUTER)) {
        return true;
    }
    vec_clear(&l->functions);
    while (dwarf_read_entry(d, unit, at, &e, time)) {
        if (e.tag == DW_TAG_subprogram) {
            finding.entry = e.offset;
            dwarf_each_range(d, unit, &e, add_function, &finding, time);
        }
        uint64_t sibling = 0;
        bool jumps = e.has_children && is_closed(e.tag, all) && dwarf_sibling(unit, &e, &sibling);
        at = jumps ? sibling : e.next;
    }
    if (time->over) {
        return false;
    }
    if (l->functions.len > 0) {
        qsort(l->functions.at, l->functions.len, sizeof *l->functions.at, by_function_start);
    }
    l->functions_known = all ? FUNCTIONS_ALL : FUNCTIONS_OUTER;
    return true;
}
