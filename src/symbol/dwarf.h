/*
 * dwarf: the debugging information of one ELF file, read where and when it is asked for.
 *
 * Concept. .debug_info is a row of units, each one source file's worth (or a library's), each a
 * tree of entries written in order; an entry is a number that selects an abbreviation (tag,
 * attributes, forms) and the attributes' values. dwarf_list_units reads the units' first entries
 * only; dwarf_load brings one whole unit into memory; dwarf_read_entry decodes one entry of a
 * loaded unit. Strings, address ranges and line tables are in other sections and are read in
 * pieces.
 *
 * Not over libdw: it wants every section whole in memory (a browser's are a gigabyte), keeps what
 * it allocates until the end and ends the program when memory does, opens files that the image
 * names (split units, alternate files), and in its line tables follows lengths that nobody checked.
 *
 * Costs. Plain sections stay in the file; packed ones are unpacked whole, once, when first used.
 * What is held is bounded by `max_bytes`, units beside the one in use by DWARF_UNITS_KEPT_BYTES:
 * those not used the longest go.
 *
 * Bounds. Every walk goes forward in its section, counts its steps in struct dwarf_time and ends
 * when the time is over; counts are capped below. Addresses, offsets and references are foreign:
 * each is checked by the read that uses it, and a wrong one is a miss.
 *
 * Not read: split units (.dwo; their skeletons have no functions), type units.
 *
 * Format: DWARF 2 to 5 (dwarfstd.org); GNU extensions: DW_FORM_GNU_ref_alt, DW_FORM_GNU_strp_alt,
 * .gnu_debugaltlink (dwz).
 */
#ifndef SYMBOL_DWARF_H
#define SYMBOL_DWARF_H

#include "base/arena.h"
#include "base/cursor.h"
#include "base/iface.h"
#include "base/vec.h"
#include "elf/elf.h"

enum {
    DWARF_WINDOW_BYTES = 4096,
    DWARF_TEXT_MAX = 4000,         /* longer texts are cut */
    DWARF_TEXTS_MAX_BYTES = 16 << 20,
    DWARF_UNITS_MAX = 1 << 18,     /* 88 bytes each; the largest programs have 30,000 */
    DWARF_LOADED_MAX = 512,        /* units in memory at a time */
    DWARF_UNITS_KEPT_BYTES = 8 << 20, /* of them; one that is larger stays alone */
    DWARF_ABBREVIATIONS_MAX = 1 << 16, /* of one unit; real ones have at most 1,000 */
    DWARF_ATTRIBUTES_MAX = 128,    /* of one abbreviation; real ones have at most 30 */
    DWARF_FUNCTIONS_MAX = 1 << 20, /* of one unit */
    DWARF_STEPS_PER_LOOK = 1024,   /* between two looks at the clock */
};

enum dwarf_part {
    DWARF_INFO, DWARF_ABBREV, DWARF_STR, DWARF_LINE, DWARF_LINE_STR, DWARF_RANGES, DWARF_RNGLISTS,
    DWARF_ADDR, DWARF_STR_OFFSETS, DWARF_PART_COUNT,
};

/* Time that a look-up may take. A null clock: as long as it takes. */
struct dwarf_time {
    const struct clock *clock;
    uint64_t deadline_ns;
    uint32_t steps;
    bool over;
};

/* Counts one step of work; false when the time is over. */
bool dwarf_step(struct dwarf_time *time);

struct dwarf_section {
    uint64_t offset, bytes;     /* in the file, or of what was unpacked */
    const struct elf_section *packed; /* not unpacked yet */
    struct buf unpacked;
    char *window;
    uint64_t window_offset;
    size_t window_bytes;
};

/* Attributes that are kept of an entry; all others are passed over. */
enum dwarf_attribute {
    DWARF_SIBLING, DWARF_NAME, DWARF_LINKAGE_NAME, DWARF_LOW_PC, DWARF_HIGH_PC, DWARF_RANGE_LIST,
    DWARF_ORIGIN, DWARF_SPECIFICATION, DWARF_CALL_FILE, DWARF_CALL_LINE, DWARF_STMT_LIST,
    DWARF_COMP_DIR, DWARF_ADDR_BASE, DWARF_STR_OFFSETS_BASE, DWARF_RNGLISTS_BASE,
    DWARF_ATTRIBUTE_COUNT,
};

struct dwarf_value {
    uint16_t form;
    uint64_t number; /* of DW_FORM_string the place of the text in .debug_info */
};

struct dwarf_entry {
    uint64_t offset, next; /* in .debug_info: its own, that of what follows it */
    uint16_t tag;          /* 0: the end of a list of siblings */
    bool has_children;
    uint32_t has;          /* bits 1 << enum dwarf_attribute */
    struct dwarf_value at[DWARF_ATTRIBUTE_COUNT];
};

struct dwarf_specification {
    uint16_t form;
    uint8_t attribute; /* enum dwarf_attribute, DWARF_ATTRIBUTE_COUNT: another */
    int64_t constant;  /* of DW_FORM_implicit_const */
};

struct dwarf_abbreviation {
    uint32_t code;
    uint32_t first, count; /* of its specifications */
    int32_t fixed_bytes;   /* of all values; -1 when they vary */
    uint16_t tag;
    bool has_children;
};

struct dwarf_abbreviations {
    VEC(struct dwarf_abbreviation) list; /* by code */
    VEC(struct dwarf_specification) specifications;
};

struct dwarf_function { /* a range of code of a function that exists */
    uint64_t start, limit;
    uint64_t entry; /* its offset in .debug_info */
};

struct dwarf_line_row {
    uint32_t address; /* relative to the text's start */
    uint32_t line, file;
};

struct dwarf_line_sequence { /* rows of rising addresses */
    uint32_t start, limit;
    uint32_t first, count;
};

struct dwarf_line_file {
    struct dwarf_value name;
    uint32_t directory;
};

struct dwarf_lines {
    bool known; /* or found to be unreadable: then empty */
    uint16_t version;
    VEC(struct dwarf_line_row) rows;
    VEC(struct dwarf_line_sequence) sequences;
    VEC(struct dwarf_line_file) directories, files; /* by the numbers of their version */
    VEC(struct str) paths; /* of files, once asked for */
    struct buf header;     /* holds the texts that are in it */
};

struct dwarf_unit {
    uint64_t offset, entries, limit; /* in .debug_info: its header, first entry, end */
    uint64_t abbreviations;          /* in .debug_abbrev */
    uint64_t low_pc, addr_base, str_offsets_base, rnglists_base;
    uint64_t lines; /* in .debug_line; UINT64_MAX none */
    uint16_t version;
    uint8_t address_bytes, offset_bytes;
    struct dwarf_loaded *loaded; /* null: not */
};

struct dwarf_loaded {
    const unsigned char *bytes; /* of the unit, from its header on */
    unsigned char *owned;       /* null when they belong to an unpacked section */
    struct dwarf_abbreviations abbreviations;
    VEC(struct dwarf_function) functions; /* by start; filled by dwarf_find_functions */
    enum { FUNCTIONS_UNKNOWN, FUNCTIONS_OUTER, FUNCTIONS_ALL } functions_known;
    struct dwarf_lines line_table;
    struct str directory; /* of the compilation; in the texts */
    uint64_t used;
};

/* Code of a unit. */
struct dwarf_unit_range {
    uint64_t start, limit;
    uint32_t unit;
};

struct dwarf {
    struct elf *elf;
    struct dwarf *alternate; /* the file that dwz moved shared parts to; null: none */
    struct dwarf_section section[DWARF_PART_COUNT];
    VEC(struct dwarf_unit) units;         /* by offset */
    VEC(struct dwarf_unit_range) ranges;  /* by start, once all units are listed */
    VEC(uint32_t) loaded;                 /* numbers of units */
    uint64_t next_unit;                   /* where listing goes on */
    bool listed;
    struct arena texts;
    size_t max_bytes, held_bytes;
    uint64_t uses; /* look-ups: what the present one has loaded stays */
    uint64_t text_start, text_limit;
};

/* ERR_UNSUPPORTED: there is none, or it is packed in an unknown way. `elf` is borrowed.
 * [text_start, text_limit) is the code that is asked for: other addresses are passed over. */
bool dwarf_open(struct dwarf *d, struct elf *elf, uint64_t text_start, uint64_t text_limit,
                size_t max_bytes, struct err *err);
void dwarf_release(struct dwarf *d);

/* Lists the units, from where the last call's time ended. False: not all yet. */
bool dwarf_list_units(struct dwarf *d, struct dwarf_time *time);

/* The unit that holds this offset of .debug_info; null: none. */
struct dwarf_unit *dwarf_unit_at(struct dwarf *d, uint64_t offset);

bool dwarf_load(struct dwarf *d, struct dwarf_unit *unit, struct dwarf_time *time);

/* The entry at `offset` of a loaded unit. False: none can be read there, or time is over. */
bool dwarf_read_entry(struct dwarf *d, const struct dwarf_unit *unit, uint64_t offset,
                      struct dwarf_entry *out, struct dwarf_time *time);

static inline bool dwarf_has(const struct dwarf_entry *e, enum dwarf_attribute attribute)
{
    return (e->has & 1u << attribute) != 0;
}

/* The entry that an attribute refers to. It is in `*file`, which may be the alternate one. */
bool dwarf_reference(struct dwarf *d, const struct dwarf_unit *unit,
                     const struct dwarf_value *value, struct dwarf **file, uint64_t *offset);

/* Where DW_AT_sibling says that the entries below this one end; always behind it. */
bool dwarf_sibling(const struct dwarf_unit *unit, const struct dwarf_entry *e, uint64_t *offset);

/* The text of an attribute, "" when it cannot be read. Borrowed until the next read. */
struct str dwarf_text(struct dwarf *d, const struct dwarf_unit *unit,
                      const struct dwarf_value *value);

/* Calls `each` for every range of code of an entry until it returns false. An entry without
 * addresses has none. */
void dwarf_each_range(struct dwarf *d, const struct dwarf_unit *unit,
                      const struct dwarf_entry *entry,
                      bool (*each)(void *context, uint64_t start, uint64_t limit), void *context,
                      struct dwarf_time *time);

/* Fills loaded->functions; `all` also with functions within others and within types. */
bool dwarf_find_functions(struct dwarf *d, struct dwarf_unit *unit, bool all,
                          struct dwarf_time *time);

/* The line table of a loaded unit, read once. False: time is over. */
bool dwarf_read_lines(struct dwarf *d, struct dwarf_unit *unit, struct dwarf_time *time);

/* False: the table does not tell. */
bool dwarf_find_line(const struct dwarf *d, const struct dwarf_unit *unit, uint64_t address,
                     uint32_t *file, uint32_t *line);

/* The path of a source file by its number in the unit's line table; borrowed until
 * dwarf_release. */
struct str dwarf_file(struct dwarf *d, struct dwarf_unit *unit, uint64_t file);

/* Memory held. */
size_t dwarf_held_bytes(const struct dwarf *d);

/* ---- among the files dwarf_*.c ---- */

void dwarf_unload(struct dwarf_unit *unit);

/* Bytes [offset, offset + len) of a section as far as they exist, len at most DWARF_WINDOW_BYTES.
 * Borrowed until the next read of that section. */
struct cursor dwarf_bytes(struct dwarf *d, enum dwarf_part part, uint64_t offset, size_t len);

/* `len` bytes copied out, or false. */
bool dwarf_copy(struct dwarf *d, enum dwarf_part part, uint64_t offset, void *out, size_t len);

/* All of [offset, offset + len) in memory without a copy, null when the section is not unpacked. */
const unsigned char *dwarf_in_memory(struct dwarf *d, enum dwarf_part part, uint64_t offset,
                                     uint64_t len);

/* The NUL-terminated text at `offset`. */
struct str dwarf_text_at(struct dwarf *d, enum dwarf_part part, uint64_t offset);

/* A number of the unit's offset size. */
static inline uint64_t dwarf_offset(struct cursor *c, unsigned offset_bytes)
{
    return offset_bytes == 8 ? cursor_u64(c) : cursor_u32(c);
}

/* Reads a value of `form`; `at` is where the cursor stands in its section. Unknown forms set
 * short_read. */
struct dwarf_value dwarf_take_value(struct cursor *c, const struct dwarf_unit *unit, uint16_t form,
                                    int64_t constant, uint64_t at);

/* The address an attribute holds. */
bool dwarf_address(struct dwarf *d, const struct dwarf_unit *unit, const struct dwarf_value *value,
                   uint64_t *out);

/* The abbreviation at *at in .debug_abbrev, and its specifications; moves *at behind it. False
 * at the end of the list (code 0) or where it is damaged. */
bool dwarf_take_abbreviation(struct dwarf *d, const struct dwarf_unit *unit, uint64_t *at,
                             struct dwarf_abbreviation *out,
                             struct dwarf_specification specs[static DWARF_ATTRIBUTES_MAX]);

/* Decodes the values of an entry behind its code. */
void dwarf_take_values(struct cursor *c, const struct dwarf_unit *unit, uint64_t at,
                       const struct dwarf_specification *specifications, size_t count,
                       struct dwarf_entry *out);

void dwarf_lines_release(struct dwarf_lines *lines);
size_t dwarf_lines_bytes(const struct dwarf_lines *lines);

#endif
