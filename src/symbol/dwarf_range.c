/* Ranges of code. */
#include <dwarf.h>

#include "symbol/dwarf.h"

struct walk {
    struct dwarf *d;
    const struct dwarf_unit *unit;
    bool (*each)(void *context, uint64_t start, uint64_t limit);
    void *context;
    struct dwarf_time *time;
    uint64_t base;
};

/* False: no more is wanted. */
static bool give(struct walk *w, uint64_t start, uint64_t limit)
{
    return start >= limit || w->each(w->context, start, limit);
}

/* .debug_ranges: pairs of addresses relative to the base; the highest address sets the base. */
static void walk_pairs(struct walk *w, uint64_t at)
{
    unsigned size = w->unit->address_bytes;
    uint64_t highest = size == 8 ? UINT64_MAX : UINT32_MAX;
    for (;; at += 2 * size) {
        struct cursor c = dwarf_bytes(w->d, DWARF_RANGES, at, 2 * size);
        uint64_t start = size == 8 ? cursor_u64(&c) : cursor_u32(&c);
        uint64_t limit = size == 8 ? cursor_u64(&c) : cursor_u32(&c);
        if (c.short_read || (start == 0 && limit == 0) || !dwarf_step(w->time)) {
            return;
        }
        if (start == highest) {
            w->base = limit;
        } else if (!give(w, w->base + start, w->base + limit)) {
            return;
        }
    }
}

static uint64_t take_address(struct walk *w, struct cursor *c)
{
    return w->unit->address_bytes == 8 ? cursor_u64(c) : cursor_u32(c);
}

static uint64_t take_indexed(struct walk *w, struct cursor *c)
{
    struct dwarf_value value = {DW_FORM_addrx, cursor_uleb(c)};
    uint64_t address = 0;
    if (!dwarf_address(w->d, w->unit, &value, &address)) {
        c->short_read = true;
    }
    return address;
}

/* One entry of .debug_rnglists. False: the list ends. */
static bool take_list_entry(struct walk *w, struct cursor *c)
{
    uint64_t start = 0, limit = 0;
    switch (cursor_u8(c)) {
    case DW_RLE_base_addressx:
        w->base = take_indexed(w, c);
        break;
    case DW_RLE_startx_endx:
        start = take_indexed(w, c);
        limit = take_indexed(w, c);
        break;
    case DW_RLE_startx_length:
        start = take_indexed(w, c);
        limit = start + cursor_uleb(c);
        break;
    case DW_RLE_offset_pair:
        start = w->base + cursor_uleb(c);
        limit = w->base + cursor_uleb(c);
        break;
    case DW_RLE_base_address:
        w->base = take_address(w, c);
        break;
    case DW_RLE_start_end:
        start = take_address(w, c);
        limit = take_address(w, c);
        break;
    case DW_RLE_start_length:
        start = take_address(w, c);
        limit = start + cursor_uleb(c);
        break;
    default: /* DW_RLE_end_of_list, unknown ones */
        return false;
    }
    return !c->short_read && give(w, start, limit);
}

static void walk_list(struct walk *w, uint64_t at)
{
    enum { ENTRY_MAX_BYTES = 1 + 2 * 10 };
    bool more = true;
    while (more && dwarf_step(w->time)) {
        struct cursor c = dwarf_bytes(w->d, DWARF_RNGLISTS, at, ENTRY_MAX_BYTES);
        size_t before = c.len;
        more = take_list_entry(w, &c);
        at += before - c.len;
    }
}

static bool list_offset(struct dwarf *d, const struct dwarf_unit *unit,
                        const struct dwarf_value *value, uint64_t *out)
{
    unsigned char bytes[8];
    if (value->form != DW_FORM_rnglistx) {
        *out = value->number;
        return true;
    }
    if (value->number > UINT32_MAX ||
        !dwarf_copy(d, DWARF_RNGLISTS, unit->rnglists_base + value->number * unit->offset_bytes,
                    bytes, unit->offset_bytes)) {
        return false;
    }
    struct cursor c = cursor_of(bytes, sizeof bytes);
    *out = unit->rnglists_base + dwarf_offset(&c, unit->offset_bytes);
    return true;
}

void dwarf_each_range(struct dwarf *d, const struct dwarf_unit *unit,
                      const struct dwarf_entry *entry,
                      bool (*each)(void *context, uint64_t start, uint64_t limit), void *context,
                      struct dwarf_time *time)
{
    uint64_t start, limit, at;
    struct walk w = {d, unit, each, context, time, unit->low_pc};
    if (dwarf_has(entry, DWARF_RANGE_LIST)) {
        if (list_offset(d, unit, &entry->at[DWARF_RANGE_LIST], &at)) {
            (unit->version < 5 ? walk_pairs : walk_list)(&w, at);
        }
        return;
    }
    if (!dwarf_has(entry, DWARF_HIGH_PC) || !dwarf_has(entry, DWARF_LOW_PC) ||
        !dwarf_address(d, unit, &entry->at[DWARF_LOW_PC], &start)) {
        return;
    }
    if (!dwarf_address(d, unit, &entry->at[DWARF_HIGH_PC], &limit)) {
        limit = start + entry->at[DWARF_HIGH_PC].number; /* since DWARF 4: the length */
    }
    (void)give(&w, start, limit);
}
