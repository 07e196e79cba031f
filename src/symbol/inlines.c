#include "symbol/inlines.h"

#include <dwarf.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "symbol/dwarf.h"

enum {
    HOPS_MAX = 8,               /* from an entry to the one that has the name */
    OVERLAPS_MAX = 32,          /* ranges that begin before an address: so many are looked at */
    ALTERNATE_PATH_MAX = 4096,
    DEPTH_MAX = 2 * PROFILE_INLINES_MAX, /* inlined functions nested in one another */
};

/* The names of a function that others refer to. */
struct name {
    uint64_t entry;
    struct str plain, linkage;
};

struct inlines {
    struct dwarf main, alternate;
    struct elf alternate_elf;
    struct memory_reader alternate_file;
    Elf64_Ehdr alternate_header;
    bool has_alternate;
    char alternate_path[INLINES_ALTERNATE_ATTEMPTS][ALTERNATE_PATH_MAX];
    unsigned char alternate_id[ELF_BUILD_ID_MAX];
    size_t alternate_id_bytes;
    VEC(struct name) names;
    struct map name_ids; /* by entry */
    uint64_t late;
};

/* ---- opening ---- */

static struct elf *elf_with_dwarf(struct symbol_files *files)
{
    static const enum symbol_file order[] = {FILE_DEBUG, FILE_MAIN};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        struct elf *elf = &files->elf[order[i]];
        if (files->has[order[i]] && (elf_section(elf, ".debug_info") != NULL ||
                                     elf_section(elf, ".zdebug_info") != NULL)) {
            return elf;
        }
    }
    return NULL;
}

/* The texts are zero before. */
static void set_alternate_paths(struct inlines *in, struct str path)
{
    if (path.len > 0 && path.ptr[0] == '/') {
        memcpy(in->alternate_path[0], path.ptr, path.len);
    }
    char *out = in->alternate_path[1];
    size_t len = (size_t)sprintf(out, "/usr/lib/debug/.build-id/%02x/", in->alternate_id[0]);
    for (size_t i = 1; i < in->alternate_id_bytes; i++) {
        len += (size_t)sprintf(out + len, "%02x", in->alternate_id[i]);
    }
    strcpy(out + len, ".debug");
}

static void read_alternate_link(struct inlines *in, struct elf *elf)
{
    struct buf link;
    const struct elf_section *section = elf_section(elf, ".gnu_debugaltlink");
    buf_init(&link, ALTERNATE_PATH_MAX);
    if (section != NULL && elf_section_read(elf, section, &link, NULL)) {
        struct cursor c = cursor_of(link.ptr, link.len);
        struct str path = cursor_cstr(&c);
        if (!c.short_read && c.len > 1 && c.len <= sizeof in->alternate_id) {
            memcpy(in->alternate_id, c.ptr, c.len);
            in->alternate_id_bytes = c.len;
            set_alternate_paths(in, path);
        }
    }
    buf_release(&link);
}

struct inlines *inlines_open(struct symbol_files *files, struct err *err)
{
    struct elf *elf = elf_with_dwarf(files);
    if (elf == NULL) {
        err_set(err, ERR_UNSUPPORTED, 0, "the file has no DWARF");
        return NULL;
    }
    struct inlines *in = calloc(1, sizeof *in);
    if (in == NULL) {
        err_set(err, ERR_MEMORY, 0, "no memory to read DWARF");
        return NULL;
    }
    const struct elf *text = &files->elf[FILE_MAIN];
    if (!dwarf_open(&in->main, elf, text->text_start, text->text_limit, INLINES_MAX_BYTES, err)) {
        free(in);
        return NULL;
    }
    read_alternate_link(in, elf);
    return in;
}

const char *inlines_alternate_path(const struct inlines *in, unsigned attempt)
{
    return attempt < INLINES_ALTERNATE_ATTEMPTS ? in->alternate_path[attempt] : "";
}

/* dwz writes a relocatable file without segments, and elf_open takes none of these. Only sections
 * matter here, so the header is shown as that of a shared object whose one program header is of the
 * type PT_NULL: within the ELF header itself, from the zeros behind the identification on. */
static void adapt_header(Elf64_Ehdr *header)
{
    enum { ZEROS_AT = EI_ABIVERSION };
    if (header->e_type == ET_REL && header->e_phnum == 0) {
        memset(header->e_ident + ZEROS_AT, 0, EI_NIDENT - ZEROS_AT);
        header->e_type = ET_DYN;
        header->e_phoff = ZEROS_AT;
        header->e_phentsize = sizeof(Elf64_Phdr);
        header->e_phnum = 1;
    }
}

static bool read_alternate(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    struct inlines *in = context;
    if (address < sizeof in->alternate_header && len <= sizeof in->alternate_header - address) {
        memcpy(out, (const char *)&in->alternate_header + address, len);
        return true;
    }
    return in->alternate_file.read(in->alternate_file.context, address, out, len, err);
}

static bool open_alternate(struct inlines *in, const struct memory_reader *file, struct err *err)
{
    struct memory_reader reader = {read_alternate, in};
    in->alternate_file = *file;
    if (!file->read(file->context, 0, &in->alternate_header, sizeof in->alternate_header, err)) {
        return false;
    }
    adapt_header(&in->alternate_header);
    return elf_open(&in->alternate_elf, &reader, err);
}

bool inlines_alternate(struct inlines *in, const struct memory_reader *file, struct err *err)
{
    if (in->has_alternate || !open_alternate(in, file, err)) {
        return in->has_alternate;
    }
    struct elf *elf = &in->alternate_elf;
    bool good = elf->build_id_bytes == in->alternate_id_bytes &&
                memcmp(elf->build_id, in->alternate_id, in->alternate_id_bytes) == 0;
    good = good || err_set(err, ERR_UNSUPPORTED, 0,
                           "the file with shared DWARF has another build id than was asked for");
    good = good && dwarf_open(&in->alternate, elf, 0, 0, INLINES_MAX_BYTES, err);
    if (!good) {
        elf_release(elf);
        return false;
    }
    in->main.alternate = &in->alternate;
    in->has_alternate = true;
    return true;
}

void inlines_release(struct inlines *in)
{
    if (in == NULL) {
        return;
    }
    dwarf_release(&in->main);
    if (in->has_alternate) {
        dwarf_release(&in->alternate);
        elf_release(&in->alternate_elf);
    }
    vec_release(&in->names);
    map_release(&in->name_ids);
    free(in);
}

uint64_t inlines_late(const struct inlines *in)
{
    return in->late;
}

size_t inlines_bytes(const struct inlines *in)
{
    return sizeof *in + dwarf_held_bytes(&in->main) +
           (in->has_alternate ? dwarf_held_bytes(&in->alternate) : 0) +
           in->names.cap * sizeof *in->names.at + in->name_ids.cap * sizeof *in->name_ids.slot;
}

/* ---- names ---- */

/* Both files have offsets from 0 on; those of the alternate one get a mark. */
static uint64_t key_of(const struct inlines *in, const struct dwarf *file, uint64_t entry)
{
    return file == &in->main ? entry : entry | UINT64_C(1) << 63;
}

static struct str keep(struct dwarf *d, struct str text)
{
    struct str copy = text.len == 0 ? STR("") : arena_copy(&d->texts, text);
    return copy.ptr == NULL ? STR("") : copy;
}

/* Takes the names that this entry has and `name` has not yet; what it refers to goes into *d, *unit
 * and *e. False: it refers to nothing. */
static bool follow(struct dwarf **d, struct dwarf_unit **unit, struct dwarf_entry *e,
                   struct name *name, struct dwarf_time *time)
{
    uint64_t offset;
    if (name->plain.len == 0 && dwarf_has(e, DWARF_NAME)) {
        name->plain = keep(*d, dwarf_text(*d, *unit, &e->at[DWARF_NAME]));
    }
    if (name->linkage.len == 0 && dwarf_has(e, DWARF_LINKAGE_NAME)) {
        name->linkage = keep(*d, dwarf_text(*d, *unit, &e->at[DWARF_LINKAGE_NAME]));
    }
    enum dwarf_attribute next = dwarf_has(e, DWARF_ORIGIN) ? DWARF_ORIGIN : DWARF_SPECIFICATION;
    if (!dwarf_has(e, next) || !dwarf_reference(*d, *unit, &e->at[next], d, &offset) ||
        !dwarf_list_units(*d, time)) {
        return false;
    }
    *unit = dwarf_unit_at(*d, offset);
    return *unit != NULL && dwarf_load(*d, *unit, time) &&
           dwarf_read_entry(*d, *unit, offset, e, time);
}

/* The names of an entry, its own or those of what it is an instance of. Null: time is over, or
 * memory has ended. */
static const struct name *name_of(struct inlines *in, struct dwarf_unit *unit,
                                  const struct dwarf_entry *entry, struct dwarf_time *time)
{
    struct dwarf *d = &in->main;
    struct dwarf_entry e = *entry;
    struct name name = {.entry = key_of(in, d, entry->offset)};
    struct map_slot *slot = map_find(&in->name_ids, name.entry);
    if (slot != NULL) {
        return &in->names.at[slot->value];
    }
    for (unsigned hops = 0; hops < HOPS_MAX && follow(&d, &unit, &e, &name, time); hops++) {
    }
    struct name *added = time->over ? NULL : vec_push(&in->names);
    if (added == NULL || !map_put(&in->name_ids, name.entry, in->names.len - 1)) {
        in->names.len -= added != NULL;
        return NULL;
    }
    *added = name;
    return added;
}

/* ---- the chain ---- */

struct holding {
    uint64_t address;
    bool holds;
};

static bool look_at_range(void *context, uint64_t start, uint64_t limit)
{
    struct holding *h = context;
    h->holds = h->address >= start && h->address < limit;
    return !h->holds;
}

static bool holds(struct inlines *in, const struct dwarf_unit *unit, const struct dwarf_entry *e,
                  uint64_t address, struct dwarf_time *time)
{
    struct holding h = {.address = address};
    dwarf_each_range(&in->main, unit, e, look_at_range, &h, time);
    return h.holds;
}

static bool has_code(const struct dwarf_entry *e)
{
    return dwarf_has(e, DWARF_RANGE_LIST) || dwarf_has(e, DWARF_LOW_PC);
}

static bool is_block(uint16_t tag)
{
    return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block ||
           tag == DW_TAG_with_stmt;
}

/* The function and what is inlined in it at an address, outermost first. */
struct chain {
    struct dwarf_entry at[DEPTH_MAX];
    size_t count;
};

/*
 * Below the function's entry, which is at.[0]: entries stand in the order of a walk down the tree,
 * so one pass forward finds the way. `level` counts lists of children entered since the innermost
 * inlined function that holds the address. Entries of the level `open` are looked at: that
 * function's own, and those in blocks that hold the address or tell none; the rest is passed over.
 * That a block holds the address decides nothing: compilers let it overlap with what stands beside
 * it.
 */
static bool descend(struct inlines *in, const struct dwarf_unit *unit, uint64_t address,
                    struct chain *chain, struct dwarf_time *time)
{
    uint64_t at = chain->at[0].next, sibling;
    unsigned level = 1, open = 1;
    bool more = chain->at[0].has_children;
    struct dwarf_entry e;
    while (more && dwarf_read_entry(&in->main, unit, at, &e, time)) {
        at = e.next;
        if (e.tag == 0) {
            level--;
            open = open > level ? level : open;
            more = level > 0;
            continue;
        }
        bool inlined = e.tag == DW_TAG_inlined_subroutine, block = is_block(e.tag);
        bool holding = level == open && (inlined || (block && has_code(&e))) &&
                       holds(in, unit, &e, address, time);
        if (holding && inlined) {
            if (chain->count < DEPTH_MAX) {
                chain->at[chain->count++] = e;
            }
            level = open = 1;
            more = e.has_children;
        } else if (e.has_children && level == open && block && (holding || !has_code(&e))) {
            open = ++level;
        } else if (e.has_children && dwarf_sibling(unit, &e, &sibling)) {
            at = sibling;
        } else {
            level += e.has_children;
        }
    }
    return !time->over;
}

/* The function's entry; 0 is none. */
static uint64_t function_at(const struct dwarf_loaded *l, uint64_t address)
{
    size_t low = 0, high = l->functions.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->functions.at[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (unsigned steps = 0; low > 0 && steps < OVERLAPS_MAX; steps++) {
        const struct dwarf_function *f = &l->functions.at[--low];
        if (address < f->limit) {
            return f->entry;
        }
    }
    return 0;
}

static bool find_chain(struct inlines *in, struct dwarf_unit *unit, uint64_t address,
                       struct chain *chain, struct dwarf_time *time)
{
    uint64_t entry = 0;
    chain->count = 0;
    for (int all = 0; entry == 0 && all <= 1; all++) {
        if (!dwarf_find_functions(&in->main, unit, all, time)) {
            return false;
        }
        entry = function_at(unit->loaded, address);
    }
    if (entry == 0) {
        return true; /* assembler code: it has lines but often no entries */
    }
    if (!dwarf_read_entry(&in->main, unit, entry, &chain->at[0], time)) {
        return false;
    }
    chain->count = 1;
    return descend(in, unit, address, chain, time);
}

static void set_file(struct inlines *in, struct dwarf_unit *unit, const struct dwarf_entry *inlined,
                     struct source_line *out)
{
    out->file = STR("");
    out->line = 0;
    if (dwarf_has(inlined, DWARF_CALL_FILE)) {
        out->file = dwarf_file(&in->main, unit, inlined->at[DWARF_CALL_FILE].number);
    }
    if (dwarf_has(inlined, DWARF_CALL_LINE)) {
        out->line = (uint32_t)inlined->at[DWARF_CALL_LINE].number;
    }
}

/* The chain as source lines, innermost first. An inlined function without any name is left out. */
static size_t tell(struct inlines *in, struct dwarf_unit *unit, uint64_t address,
                   const struct chain *chain, struct source_line *out, size_t max,
                   struct dwarf_time *time)
{
    size_t count = 0;
    uint32_t file = 0;
    struct source_line line = {.file = STR("")};
    bool has_line = dwarf_find_line(&in->main, unit, address, &file, &line.line);
    if (has_line) {
        line.file = dwarf_file(&in->main, unit, file);
    }
    if (has_line && chain->count == 0) {
        out[count++] = line;
    }
    for (size_t i = chain->count; i-- > 0;) {
        const struct dwarf_entry *e = &chain->at[i];
        const struct name *name = name_of(in, unit, e, time);
        if (name == NULL) {
            return 0;
        }
        line.name = name->plain;
        line.system_name = name->linkage;
        bool named = name->plain.len > 0 || name->linkage.len > 0;
        if (i == 0 && count == max) {
            count--; /* the last one is the function that exists, whatever is left out */
        }
        if (count < max && (named || i == 0)) {
            out[count++] = line;
        }
        set_file(in, unit, e, &line);
    }
    return count;
}

static size_t look_in_unit(struct inlines *in, struct dwarf_unit *unit, uint64_t address,
                           struct source_line *out, size_t max, struct dwarf_time *time)
{
    struct chain chain;
    if (!dwarf_load(&in->main, unit, time) || !find_chain(in, unit, address, &chain, time) ||
        !dwarf_read_lines(&in->main, unit, time)) {
        return 0;
    }
    return tell(in, unit, address, &chain, out, max, time);
}

static size_t look_up(struct inlines *in, uint64_t address, struct source_line *out, size_t max,
                      struct dwarf_time *time)
{
    struct dwarf *d = &in->main;
    if (!dwarf_list_units(d, time)) {
        return 0;
    }
    size_t low = 0, high = d->ranges.len, count = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->ranges.at[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (unsigned steps = 0; count == 0 && low > 0 && steps < OVERLAPS_MAX; steps++) {
        const struct dwarf_unit_range *range = &d->ranges.at[--low];
        if (address < range->limit) {
            count = look_in_unit(in, &d->units.at[range->unit], address, out, max, time);
        }
    }
    return count;
}

size_t inlines_lookup(struct inlines *in, uint64_t address, uint64_t deadline_ns,
                      const struct clock *clock, struct source_line *out, size_t max)
{
    struct dwarf_time time = {.clock = clock, .deadline_ns = deadline_ns};
    time.over = clock != NULL && clock->mono_ns(clock->context) >= deadline_ns;
    in->main.uses++;
    in->alternate.uses++;
    size_t count = max == 0 || time.over ? 0 : look_up(in, address, out, max, &time);
    in->late += time.over;
    return time.over ? 0 : count;
}
