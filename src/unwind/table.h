/*
 * table: the unwind rules of one image (an ELF file, the vdso), compiled on demand.
 *
 * Concept. Nothing but headers is read when a table is made. The first look-up in a 32 KiB page of
 * text compiles the CFI of that page into rows of 4 bytes, {u16 address within the page, u16 number
 * of the rule}, sorted, with the rules interned once per table; a second look-up there is a binary
 * search. Where the CFI leaves a gap (musl, hand-written assembler) the first look-up in that gap
 * has its code analysed (analyse.h), as far as UNWIND_ANALYSE_MAX goes for the image; of a gap above
 * 512 KiB whose functions have symbols only the 128 KiB around, because an analysis takes 9 bytes of
 * memory per byte of code (node's built-in functions are a gap of 1.6 MiB). `analysed` tells such
 * rules apart. Go programs are not analysed: they keep frame pointers, and their own table tells how large a frame is
 * (unwind_table_take_depths), which a function that keeps none needs.
 *
 * CFI comes from .eh_frame through PT_GNU_EH_FRAME's sorted table, from .eh_frame scanned where
 * there is no such table or where it does not know all, and from .debug_frame (plain or compressed)
 * where there is no FDE otherwise. The result for an address outside all of them is RULE_NONE: the
 * walker then tries frame pointers.
 *
 * Cost. About 1 ms per MiB of text, 35 us per page. The first look-up in a gap of the image scans
 * all of .eh_frame (some 0.1 us per FDE); analysing takes some 60 ms per MiB of the gap.
 *
 * Call order. unwind_table_new; unwind_table_rule as often as wanted; unwind_table_free. One
 * thread.
 *
 * Ownership. `elf` is borrowed for the table's life: its reader is used at any look-up.
 *
 * Limits. A table takes at most max_bytes: when a new page would pass it, the pages not used for
 * the longest go first, but one page there always is. A page costs 4 bytes per row, at most
 * UNWIND_PAGE_ROWS_MAX rows. What cannot be had again cheaply stays: analysed rows, and those of a
 * compressed .debug_frame, of which at most 16 MiB are unpacked.
 *
 * Errors. CFI that contradicts itself loses its FDE, never more; `malformed` counts them. A file
 * that cannot be read gives RULE_NONE.
 *
 * Format: LSB Core 5.0 chapter 10 (.eh_frame, .eh_frame_hdr), DWARF 5 section 6.4.1.
 */
#ifndef UNWIND_TABLE_H
#define UNWIND_TABLE_H

#include "elf/elf.h"
#include "unwind/rule.h"

enum {
    UNWIND_PAGE_BYTES = 32 * 1024,
    UNWIND_PAGE_ROWS_MAX = 64 * 1024 - 1,
    UNWIND_RULES_MAX = 64 * 1024 - 1, /* different rules of one image */
    UNWIND_ANALYSE_MAX = 4 << 20,     /* bytes of code without CFI that are analysed */
    UNWIND_BY_SP_MAX = 32 * 1024,     /* bytes of a function that is analysed although it has CFI, … */
    UNWIND_BY_SP_ALL = 2 << 20,       /* … of all such functions of an image, a function counted for each address … */
    UNWIND_BY_SP_RULES = 2048,        /* … in it that is asked about: the calls in which threads sleep */
};

struct unwind_table;

struct unwind_table_stats {
    uint64_t pages, rows, rules;
    uint64_t text_bytes; /* of the pages that were compiled */
    uint64_t bytes;      /* memory held */
    uint64_t analysed;   /* rows that come from the code, not from CFI */
    uint64_t malformed;  /* FDEs that were refused */
    uint64_t evicted;    /* pages dropped for max_bytes */
};

/* Null only when memory ends. */
struct unwind_table *unwind_table_new(struct elf *elf, size_t max_bytes);
void unwind_table_free(struct unwind_table *table);

/* The rule for an instruction (its ELF address). *analysed: the rule was concluded from the code.
 * Outside of everything known: a rule of kind RULE_NONE. */
struct unwind_rule unwind_table_rule(struct unwind_table *table, uint64_t address, bool *analysed);

/* From now on, code without CFI is not analysed: for images whose code keeps frame pointers. */
void unwind_table_no_analysis(struct unwind_table *table);

/* True for a program linked by the Go tool chain: its code keeps frame pointers, across stacks too. */
bool unwind_table_is_go(const struct unwind_table *table);

/* Start and end of the function that holds `address`, as the CFI describes it (an FDE's range); false
 * where it does not. For stripped images this gives all frames of a function one name. */
bool unwind_table_function(struct unwind_table *table, uint64_t address, uint64_t *start,
                           uint64_t *limit);

/* The rule for an instruction with register `reg` in the place of the frame pointer: where the caller's
 * value of it is. Decoded anew at each call, for the few frames that need one. False where CFI does not
 * say. */
bool unwind_table_register(struct unwind_table *table, uint64_t address, uint8_t reg,
                           struct unwind_rule *out);

/* The rule for an instruction by nothing but SP, for who does not know the frame pointer that its CFI wants: concluded
 * from the code of its function (45 us per KB), once. False where CFI tells of no function of at most UNWIND_BY_SP_MAX
 * bytes there, or of one that does not begin as a function does (the part of one that its compiler moved away), or
 * where its code does not tell SP. Of UNWIND_BY_SP_RULES addresses and UNWIND_BY_SP_ALL bytes of code; then of no
 * more. */
bool unwind_table_rule_by_sp(struct unwind_table *table, uint64_t address, struct unwind_rule *out);

/* The rule by what unwind_table_take_depths was given. */
struct unwind_rule unwind_table_rule_by_depth(struct unwind_table *table, uint64_t address);

/* `len` bytes of the image's code at an ELF address, from the file. */
bool unwind_table_code(const struct unwind_table *table, uint64_t address, void *out, size_t len);

/* For code without CFI: by how many bytes SP has moved since its function was entered, as another table of the file
 * tells; UNWIND_OUTERMOST: nobody called the function. False: not known. */
#define UNWIND_OUTERMOST UINT32_MAX

struct unwind_depths {
    bool (*at)(void *context, uint64_t address, uint32_t *bytes); /* null: there is none */
    void (*release)(void *context);
    void *context;
};
/* They are the table's from now on. */
void unwind_table_take_depths(struct unwind_table *table, struct unwind_depths depths);

struct unwind_table_stats unwind_table_stats(const struct unwind_table *table);

#endif
