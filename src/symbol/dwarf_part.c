/* The sections: which there are, and bytes of them. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbol/dwarf.h"

static const char *const part_names[DWARF_PART_COUNT] = {
    [DWARF_INFO] = "info",           [DWARF_ABBREV] = "abbrev",     [DWARF_STR] = "str",
    [DWARF_LINE] = "line",           [DWARF_LINE_STR] = "line_str", [DWARF_RANGES] = "ranges",
    [DWARF_RNGLISTS] = "rnglists",   [DWARF_ADDR] = "addr",
    [DWARF_STR_OFFSETS] = "str_offsets",
};

bool dwarf_step(struct dwarf_time *time)
{
    if (time->clock == NULL || time->over || ++time->steps < DWARF_STEPS_PER_LOOK) {
        return !time->over;
    }
    time->steps = 0;
    time->over = time->clock->mono_ns(time->clock->context) >= time->deadline_ns;
    return !time->over;
}

/* ".debug_NAME", or as it was called when it was packed before that had a flag. */
static const struct elf_section *find_section(struct elf *elf, const char *name, bool *packed)
{
    char full[32];
    *packed = false;
    snprintf(full, sizeof full, ".debug_%s", name);
    const struct elf_section *section = elf_section(elf, full);
    if (section == NULL) {
        snprintf(full, sizeof full, ".zdebug_%s", name);
        section = elf_section(elf, full);
        *packed = section != NULL;
    }
    *packed |= section != NULL && section->compressed;
    return section;
}

static bool open_part(struct dwarf *d, enum dwarf_part part, struct err *err)
{
    bool packed;
    struct dwarf_section *s = &d->section[part];
    const struct elf_section *section = find_section(d->elf, part_names[part], &packed);
    buf_init(&s->unpacked, d->max_bytes);
    if (section == NULL || section->type == SHT_NOBITS) {
        return true;
    }
    if (packed) {
        s->packed = section;
        return elf_section_size(d->elf, section, &s->bytes, err);
    }
    s->offset = section->offset;
    s->bytes = section->bytes;
    return true;
}

bool dwarf_open(struct dwarf *d, struct elf *elf, uint64_t text_start, uint64_t text_limit,
                size_t max_bytes, struct err *err)
{
    *d = (struct dwarf){.elf = elf,
                        .max_bytes = max_bytes,
                        .text_start = text_start,
                        .text_limit = text_limit};
    arena_init(&d->texts, DWARF_TEXTS_MAX_BYTES);
    bool good = true;
    for (int part = 0; good && part < DWARF_PART_COUNT; part++) {
        good = open_part(d, (enum dwarf_part)part, err);
    }
    if (good && (d->section[DWARF_INFO].bytes == 0 || d->section[DWARF_ABBREV].bytes == 0)) {
        good = err_set(err, ERR_UNSUPPORTED, 0, "the file has no DWARF");
    }
    if (!good) {
        dwarf_release(d);
    }
    return good;
}

/* Unpacks a section when it is first read; when that fails there is none. */
static void unpack(struct dwarf *d, struct dwarf_section *s)
{
    const struct elf_section *packed = s->packed;
    s->packed = NULL;
    s->unpacked.max = d->max_bytes > d->held_bytes ? d->max_bytes - d->held_bytes : 0;
    if (packed != NULL && elf_section_read(d->elf, packed, &s->unpacked, NULL)) {
        s->bytes = s->unpacked.len;
        d->held_bytes += s->unpacked.cap;
    } else {
        s->bytes = 0;
    }
}

static bool holds(const struct dwarf_section *s, uint64_t offset, uint64_t len)
{
    return offset <= s->bytes && len <= s->bytes - offset;
}

static struct dwarf_section *section_of(struct dwarf *d, enum dwarf_part part)
{
    struct dwarf_section *s = &d->section[part];
    if (s->packed != NULL) {
        unpack(d, s);
    }
    return s;
}

const unsigned char *dwarf_in_memory(struct dwarf *d, enum dwarf_part part, uint64_t offset,
                                     uint64_t len)
{
    const struct dwarf_section *s = section_of(d, part);
    bool whole = s->unpacked.len > 0 && holds(s, offset, len);
    return whole ? (const unsigned char *)s->unpacked.ptr + offset : NULL;
}

static bool fill_window(struct dwarf *d, struct dwarf_section *s, uint64_t offset)
{
    uint64_t left = s->bytes - offset;
    size_t len = left < DWARF_WINDOW_BYTES ? (size_t)left : DWARF_WINDOW_BYTES;
    if (s->window == NULL) {
        s->window = malloc(DWARF_WINDOW_BYTES);
    }
    s->window_bytes = 0;
    if (s->window == NULL || !elf_read(d->elf, s->offset + offset, s->window, len, NULL)) {
        return false;
    }
    s->window_offset = offset;
    s->window_bytes = len;
    return true;
}

static bool in_window(const struct dwarf_section *s, uint64_t offset, size_t len)
{
    return offset >= s->window_offset && offset - s->window_offset <= s->window_bytes &&
           s->window_bytes - (offset - s->window_offset) >= len;
}

struct cursor dwarf_bytes(struct dwarf *d, enum dwarf_part part, uint64_t offset, size_t len)
{
    struct dwarf_section *s = section_of(d, part);
    if (offset >= s->bytes) {
        return cursor_of("", 0);
    }
    len = len < s->bytes - offset ? len : (size_t)(s->bytes - offset);
    if (s->unpacked.len > 0) {
        return cursor_of(s->unpacked.ptr + offset, len);
    }
    if (!in_window(s, offset, len) && !fill_window(d, s, offset)) {
        return cursor_of("", 0);
    }
    return cursor_of(s->window + (offset - s->window_offset), len);
}

bool dwarf_copy(struct dwarf *d, enum dwarf_part part, uint64_t offset, void *out, size_t len)
{
    struct dwarf_section *s = section_of(d, part);
    if (!holds(s, offset, len)) {
        return false;
    }
    if (s->unpacked.len > 0) {
        memcpy(out, s->unpacked.ptr + offset, len);
        return true;
    }
    return elf_read(d->elf, s->offset + offset, out, len, NULL);
}

/* Most texts are short: first what the window happens to hold, then DWARF_TEXT_MAX of them. */
struct str dwarf_text_at(struct dwarf *d, enum dwarf_part part, uint64_t offset)
{
    static const size_t tries[] = {64, DWARF_TEXT_MAX};
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        struct cursor c = dwarf_bytes(d, part, offset, tries[i]);
        struct str text = cursor_cstr(&c);
        if (!c.short_read) {
            return text;
        }
        if (text.len == DWARF_TEXT_MAX) {
            return text;
        }
    }
    return STR("");
}

static void release_unit(struct dwarf_loaded *loaded)
{
    if (loaded != NULL) {
        vec_release(&loaded->abbreviations.list);
        vec_release(&loaded->abbreviations.specifications);
        vec_release(&loaded->functions);
        dwarf_lines_release(&loaded->line_table);
        free(loaded->owned);
        free(loaded);
    }
}

void dwarf_unload(struct dwarf_unit *unit)
{
    release_unit(unit->loaded);
    unit->loaded = NULL;
}

void dwarf_release(struct dwarf *d)
{
    vec_each(&d->units, unit) {
        dwarf_unload(unit);
    }
    vec_release(&d->units);
    vec_release(&d->ranges);
    vec_release(&d->loaded);
    for (int part = 0; part < DWARF_PART_COUNT; part++) {
        buf_release(&d->section[part].unpacked);
        free(d->section[part].window);
        d->section[part].window = NULL;
    }
    arena_release(&d->texts);
}
