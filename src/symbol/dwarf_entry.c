/* Abbreviations, values and entries. */
#include <dwarf.h>

#include "symbol/dwarf.h"

enum { ABBREVIATION_MAX_BYTES = 2048 };

static uint8_t attribute_of(uint64_t name)
{
    switch (name) {
    case DW_AT_sibling:
        return DWARF_SIBLING;
    case DW_AT_name:
        return DWARF_NAME;
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name:
        return DWARF_LINKAGE_NAME;
    case DW_AT_low_pc:
        return DWARF_LOW_PC;
    case DW_AT_high_pc:
        return DWARF_HIGH_PC;
    case DW_AT_ranges:
        return DWARF_RANGE_LIST;
    case DW_AT_abstract_origin:
        return DWARF_ORIGIN;
    case DW_AT_specification:
        return DWARF_SPECIFICATION;
    case DW_AT_call_file:
        return DWARF_CALL_FILE;
    case DW_AT_call_line:
        return DWARF_CALL_LINE;
    case DW_AT_stmt_list:
        return DWARF_STMT_LIST;
    case DW_AT_comp_dir:
        return DWARF_COMP_DIR;
    case DW_AT_addr_base:
        return DWARF_ADDR_BASE;
    case DW_AT_str_offsets_base:
        return DWARF_STR_OFFSETS_BASE;
    case DW_AT_rnglists_base:
        return DWARF_RNGLISTS_BASE;
    default:
        return DWARF_ATTRIBUTE_COUNT;
    }
}

/* The size in bytes of a value of this form, -1 when it varies. */
static int form_bytes(const struct dwarf_unit *unit, uint16_t form)
{
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
        return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
        return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
        return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
        return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
        return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
        return 8;
    case DW_FORM_data16:
        return 16;
    case DW_FORM_addr:
        return unit->address_bytes;
    case DW_FORM_ref_addr:
        return unit->version == 2 ? unit->address_bytes : unit->offset_bytes;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
        return unit->offset_bytes;
    default:
        return -1;
    }
}

static uint64_t take_number(struct cursor *c, int bytes)
{
    const unsigned char *p = cursor_take(c, (size_t)bytes);
    uint64_t number = 0;
    for (int i = bytes < 8 ? bytes : 8; p != NULL && i > 0; i--) {
        number = number << 8 | p[i - 1];
    }
    return number;
}

static void skip_block(struct cursor *c, uint64_t len)
{
    if (len > c->len) {
        c->short_read = true;
    } else {
        cursor_skip(c, (size_t)len);
    }
}

/* Values whose size is in them; `at` is the place of the value in its section. */
static uint64_t take_varying(struct cursor *c, uint16_t form, uint64_t at)
{
    switch (form) {
    case DW_FORM_sdata:
        return (uint64_t)cursor_sleb(c);
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
        return cursor_uleb(c);
    case DW_FORM_string:
        (void)cursor_cstr(c);
        return at;
    case DW_FORM_block1:
        skip_block(c, cursor_u8(c));
        return 0;
    case DW_FORM_block2:
        skip_block(c, cursor_u16(c));
        return 0;
    case DW_FORM_block4:
        skip_block(c, cursor_u32(c));
        return 0;
    case DW_FORM_block:
    case DW_FORM_exprloc:
        skip_block(c, cursor_uleb(c));
        return 0;
    default:
        c->short_read = true; /* what follows cannot be found */
        return 0;
    }
}

struct dwarf_value dwarf_take_value(struct cursor *c, const struct dwarf_unit *unit, uint16_t form,
                                    int64_t constant, uint64_t at)
{
    size_t before = c->len;
    if (form == DW_FORM_indirect) {
        form = (uint16_t)cursor_uleb(c);
        if (form == DW_FORM_indirect || form == DW_FORM_implicit_const) {
            c->short_read = true;
        }
        at += before - c->len;
    }
    int bytes = form_bytes(unit, form);
    struct dwarf_value value = {.form = form};
    value.number = form == DW_FORM_implicit_const ? (uint64_t)constant
                   : form == DW_FORM_flag_present ? 1
                   : bytes >= 0                   ? take_number(c, bytes)
                                                  : take_varying(c, form, at);
    return value;
}

static int32_t fixed_bytes(const struct dwarf_unit *unit,
                           const struct dwarf_specification *specifications, size_t count)
{
    int32_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        int bytes = form_bytes(unit, specifications[i].form);
        if (bytes < 0) {
            return -1;
        }
        sum += bytes;
    }
    return sum;
}

bool dwarf_take_abbreviation(struct dwarf *d, const struct dwarf_unit *unit, uint64_t *at,
                             struct dwarf_abbreviation *out,
                             struct dwarf_specification specs[static DWARF_ATTRIBUTES_MAX])
{
    struct cursor c = dwarf_bytes(d, DWARF_ABBREV, *at, ABBREVIATION_MAX_BYTES);
    size_t before = c.len;
    uint64_t code = cursor_uleb(&c), tag = cursor_uleb(&c);
    *out = (struct dwarf_abbreviation){.code = (uint32_t)code, .tag = (uint16_t)tag};
    out->has_children = cursor_u8(&c) != 0;
    for (;;) {
        uint64_t name = cursor_uleb(&c), form = cursor_uleb(&c);
        int64_t constant = form == DW_FORM_implicit_const ? cursor_sleb(&c) : 0;
        if (c.short_read || (name == 0 && form == 0)) {
            break;
        }
        if (out->count == DWARF_ATTRIBUTES_MAX || form > UINT16_MAX) {
            return false;
        }
        specs[out->count++] =
            (struct dwarf_specification){(uint16_t)form, attribute_of(name), constant};
    }
    *at += before - c.len;
    out->fixed_bytes = fixed_bytes(unit, specs, out->count);
    return code != 0 && code <= UINT32_MAX && tag != 0 && tag <= UINT16_MAX && !c.short_read;
}

void dwarf_take_values(struct cursor *c, const struct dwarf_unit *unit, uint64_t at,
                       const struct dwarf_specification *specifications, size_t count,
                       struct dwarf_entry *out)
{
    size_t before = c->len;
    for (size_t i = 0; i < count; i++) {
        const struct dwarf_specification *s = &specifications[i];
        struct dwarf_value value =
            dwarf_take_value(c, unit, s->form, s->constant, at + (before - c->len));
        if (s->attribute < DWARF_ATTRIBUTE_COUNT) {
            out->at[s->attribute] = value;
            out->has |= 1u << s->attribute;
        }
    }
    out->next = at + (before - c->len);
}

static const struct dwarf_abbreviation *find_abbreviation(const struct dwarf_abbreviations *a,
                                                          uint64_t code)
{
    size_t low = 0, high = a->list.len;
    if (code > 0 && code <= high && a->list.at[code - 1].code == code) {
        return &a->list.at[code - 1]; /* compilers number them from 1 on */
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (a->list.at[middle].code < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < a->list.len && a->list.at[low].code == code ? &a->list.at[low] : NULL;
}

/* Only what look-ups are about is worth decoding. */
static bool is_wanted(uint16_t tag)
{
    switch (tag) {
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
    case DW_TAG_compile_unit:
        return true;
    default:
        return false;
    }
}

bool dwarf_read_entry(struct dwarf *d, const struct dwarf_unit *unit, uint64_t offset,
                      struct dwarf_entry *out, struct dwarf_time *time)
{
    (void)d;
    if (!dwarf_step(time) || offset < unit->entries || offset >= unit->limit) {
        return false;
    }
    struct cursor c = cursor_of(unit->loaded->bytes + (offset - unit->offset),
                                (size_t)(unit->limit - offset));
    uint64_t code = cursor_uleb(&c);
    out->offset = offset;
    out->next = unit->limit - c.len;
    out->tag = 0;
    out->has_children = false;
    out->has = 0;
    if (code == 0) {
        return !c.short_read;
    }
    const struct dwarf_abbreviations *table = &unit->loaded->abbreviations;
    const struct dwarf_abbreviation *a = find_abbreviation(table, code);
    if (a == NULL) {
        return false;
    }
    out->tag = a->tag;
    out->has_children = a->has_children;
    if (a->fixed_bytes >= 0 && !is_wanted(a->tag) && !a->has_children) {
        cursor_skip(&c, (size_t)a->fixed_bytes);
        out->next += (uint64_t)a->fixed_bytes;
    } else {
        dwarf_take_values(&c, unit, out->next, &table->specifications.at[a->first], a->count, out);
    }
    time->steps += a->count / 16;
    return !c.short_read;
}

/* A reference that stays in the file. */
static bool local_offset(const struct dwarf_unit *unit, const struct dwarf_value *value,
                         uint64_t *offset)
{
    switch (value->form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
        *offset = unit->offset + value->number;
        return true;
    case DW_FORM_ref_addr:
        *offset = value->number;
        return true;
    default:
        return false;
    }
}

bool dwarf_sibling(const struct dwarf_unit *unit, const struct dwarf_entry *e, uint64_t *offset)
{
    return dwarf_has(e, DWARF_SIBLING) && local_offset(unit, &e->at[DWARF_SIBLING], offset) &&
           *offset >= e->next && *offset < unit->limit;
}

bool dwarf_reference(struct dwarf *d, const struct dwarf_unit *unit,
                     const struct dwarf_value *value, struct dwarf **file, uint64_t *offset)
{
    if (local_offset(unit, value, offset)) {
        *file = d;
        return true;
    }
    bool is_alternate = value->form == DW_FORM_GNU_ref_alt || value->form == DW_FORM_ref_sup4 ||
                        value->form == DW_FORM_ref_sup8;
    *file = is_alternate ? d->alternate : NULL;
    *offset = value->number;
    return *file != NULL;
}

/* Text number `index` of the unit. */
static struct str indexed_text(struct dwarf *d, const struct dwarf_unit *unit, uint64_t index)
{
    unsigned char bytes[8];
    if (index > UINT32_MAX ||
        !dwarf_copy(d, DWARF_STR_OFFSETS, unit->str_offsets_base + index * unit->offset_bytes,
                    bytes, unit->offset_bytes)) {
        return STR("");
    }
    struct cursor c = cursor_of(bytes, sizeof bytes);
    return dwarf_text_at(d, DWARF_STR, dwarf_offset(&c, unit->offset_bytes));
}

static struct str inline_text(struct dwarf *d, const struct dwarf_unit *unit, uint64_t offset)
{
    if (unit->loaded == NULL || offset < unit->offset || offset >= unit->limit) {
        return dwarf_text_at(d, DWARF_INFO, offset);
    }
    struct cursor c = cursor_of(unit->loaded->bytes + (offset - unit->offset),
                                (size_t)(unit->limit - offset));
    return str_sub(cursor_cstr(&c), 0, DWARF_TEXT_MAX);
}

struct str dwarf_text(struct dwarf *d, const struct dwarf_unit *unit,
                      const struct dwarf_value *value)
{
    switch (value->form) {
    case DW_FORM_string:
        return inline_text(d, unit, value->number);
    case DW_FORM_strp:
        return dwarf_text_at(d, DWARF_STR, value->number);
    case DW_FORM_line_strp:
        return dwarf_text_at(d, DWARF_LINE_STR, value->number);
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_strp_sup:
        return d->alternate == NULL ? STR("")
                                    : dwarf_text_at(d->alternate, DWARF_STR, value->number);
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index:
        return indexed_text(d, unit, value->number);
    default:
        return STR("");
    }
}

bool dwarf_address(struct dwarf *d, const struct dwarf_unit *unit, const struct dwarf_value *value,
                   uint64_t *out)
{
    unsigned char bytes[8] = {0};
    switch (value->form) {
    case DW_FORM_addr:
        *out = value->number;
        return true;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
        if (value->number > UINT32_MAX ||
            !dwarf_copy(d, DWARF_ADDR, unit->addr_base + value->number * unit->address_bytes, bytes,
                        unit->address_bytes)) {
            return false;
        }
        memcpy(out, bytes, sizeof *out);
        return true;
    default:
        return false;
    }
}
