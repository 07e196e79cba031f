/* What rows.c, table.c and gaps.c share. */
#ifndef UNWIND_PRIVATE_H
#define UNWIND_PRIVATE_H

#include "base/intern.h"
#include "base/map.h"
#include "unwind/frames.h"
#include "unwind/table.h"

/* Which section a page comes from, in the order in which they are asked. */
enum page_kind { PAGE_EH, PAGE_DEBUG, PAGE_KINDS };

enum {
    /* A rule's number 0 says that nothing describes the code; any other comes from CFI or from code. */
    RULE_GAP = 0,
    RULE_ANALYSED = 0x80, /* in the stored rule's kind */
};

/* Rows of a page of code: `count` distances from its start, then as many rules' numbers. The first
 * distance is 0. */
struct rows {
    uint16_t *at;
    uint32_t count;
};

struct page {
    uint64_t key;  /* page_key */
    uint64_t used; /* table->uses when it was last asked */
    struct rows rows;
};

/* Code that no FDE describes. */
struct gap {
    uint64_t start, limit;
    bool analysed;     /* or not to be */
    bool piece;        /* of a larger one: table->starts has its functions */
    struct rows *part; /* one per page from `start`; null: nothing is known */
};

/* What code told of instructions whose CFI wants the frame pointer (by_sp.c); RULE_NONE: nothing. */
struct by_sp {
    struct map at; /* address -> index of the rule */
    VEC(struct unwind_rule) rules;
    uint64_t analysed; /* bytes of code so far */
};

struct unwind_table {
    struct elf *elf;
    size_t max_bytes;
    struct frames frames[PAGE_KINDS];
    bool usable; /* of this processor */
    bool is_go, gaps_found, analyses;
    VEC(struct page) pages;
    struct map page_of; /* key to index in pages */
    VEC(struct gap) gaps;
    VEC(uint64_t) starts; /* of the functions in the pieces of a gap, by address */
    uint64_t analyse_left; /* bytes of code that may still be analysed */
    struct by_sp by_sp;
    struct unwind_depths depths;
    VEC(struct unwind_rule) rules;
    struct intern rule_ids;
    uint64_t uses, row_bytes;
    struct unwind_table_stats stats;
};

struct row {
    uint16_t low, rule;
};

enum { RECENT_RULES = 256 };

/* Rows while they are collected, in rising order of addresses. */
struct row_builder {
    struct unwind_table *table;
    uint64_t start, limit; /* of the page */
    uint64_t clip;         /* rows from here on belong to the next FDE */
    bool failed;
    VEC(struct row) rows;
    uint16_t recent[RECENT_RULES]; /* numbers of rules, by a part of their hash; RULE_GAP: none */
};

static inline uint64_t page_key(uint64_t address, enum page_kind kind)
{
    return address / UNWIND_PAGE_BYTES * PAGE_KINDS + kind;
}

/* rows.c */
void rows_begin(struct row_builder *b, struct unwind_table *table, uint64_t start);
void rows_add(struct row_builder *b, uint64_t address, const struct unwind_rule *rule);
void rows_gap(struct row_builder *b, uint64_t address);

/* Takes back all rows from `address` on. */
void rows_revert(struct row_builder *b, uint64_t address);

/* Releases the builder. False when memory ended; then *out is not written. */
bool rows_end(struct row_builder *b, struct rows *out);

/* The rule's number at `low` bytes from the start; *row is the row's index. */
uint16_t rows_find(const struct rows *rows, uint16_t low, size_t *row);

/* table.c: compiles the page of `address`; false when it cannot be kept. */
bool unwind_table_compile(struct unwind_table *table, enum page_kind kind, uint64_t address);
void unwind_table_drop(struct unwind_table *table, enum page_kind kind);

/* table.c: makes room for rows as far as pages can go; then counts them. */
bool unwind_table_make_room(struct unwind_table *table, const struct rows *rows);
void unwind_table_account(struct unwind_table *table, const struct rows *rows);

/* gaps.c: finds the code that .eh_frame does not describe, and opens .debug_frame. Once. */
void unwind_table_find_gaps(struct unwind_table *table);

/* gaps.c: the number of the rule that an analysis of the code finds, where that is allowed. */
uint16_t unwind_table_gap_rule(struct unwind_table *table, uint64_t address);

/* gaps.c: is the address in executable code of the image? */
bool unwind_table_is_code(const struct unwind_table *table, uint64_t address);

#endif
