/* What the files of symbol/ share among themselves. */
#ifndef SYMBOL_PRIVATE_H
#define SYMBOL_PRIVATE_H

#include "symbol/symbols.h"

enum {
    SYMBOLS_ALIASES_MAX = 32, /* names of one address and rank: the first that come */
};

/* Appends to the table, unsorted. False when it is full. */
bool symbols_add(struct symbols *s, const struct elf_symbol *symbol);

/* Sorts and thins out what symbols_add collected. False when nothing is left. */
bool symbols_finish(struct symbols *s);

/* By address, the best of one address first. */
int symbols_compare(const void *left, const void *right);

/* symbols_few.c: which symbols of a table that does not fit tell of the wanted addresses (rising). The file's table is
 * read, symbols_few_choose called, and it is read once more: what symbols_few_takes then is to be kept. Last,
 * symbols_few_keep puts into s->known for which addresses that holds. Null, false: no memory. */
struct symbols_few *symbols_few_begin(uint64_t base, const uint64_t *address, size_t count);
void symbols_few_free(struct symbols_few *few);
bool symbols_few_takes(struct symbols_few *few, uint32_t start, uint64_t limit, bool sized);
bool symbols_few_choose(struct symbols_few *few);
bool symbols_few_keep(const struct symbols_few *few, struct symbols *s);

/* sort.c */
void symbols_sort(struct symbol *at, size_t len);

/* xz.c: appends what the .xz stream in the section unpacks to; partly so when it fails. */
bool unpack_xz(const struct elf *e, const struct elf_section *section, size_t memory_max,
               struct buf *out, struct err *err);

/* kallsyms.c: adds a function that ends at `limit`, or where the next begins. False when the table is full. */
bool kallsyms_keep(struct kallsyms *k, uint64_t address, uint64_t limit, uint8_t binding, struct str name);

/* kallsyms_few.c: the functions at the addresses of kallsyms_only. Taken from each line; at the end, kept. False: no
 * memory. */
bool kallsyms_few_take(struct kallsyms *k, uint64_t address, uint8_t binding, struct str name);
bool kallsyms_few_finish(struct kallsyms *k);
void kallsyms_few_release(struct kallsyms *k);

/* Of two names of one function, is `a` the one for people? */
bool symbols_prefers(struct str a, struct str b);

#endif
