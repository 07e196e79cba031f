/*
 * symbols: the functions of one image, ready for look-up by address.
 *
 * Concept. A sorted table of 12 bytes per symbol: start relative to a base, size with flags, name.
 * Names of an ELF image stay in its files and are read when a symbol is hit, because they are most
 * of the volume and a profile hits a few hundred of 100,000; names of the kernel are kept here, in
 * 14 more bytes per symbol.
 *
 * Where an image's symbols are from: one .symtab, that of the file, of its debug file or of its
 * .gnu_debugdata (symbol_files_symtab chooses); .dynsym of the file; and its linkage stubs, whose
 * names are made up: "memcpy@plt", after the function they jump to, or "[plt]" (plt.h).
 *
 * Call order.
 *     symbols_init(&s, max_bytes);  [symbols_want(&s, …);]
 *     symbols_load_files(&s, files, err);    or: kallsyms_init, [kallsyms_only], kallsyms_feed …, kallsyms_finish
 *     if (symbols_find(&s, address, &hit)) symbols_name(&s, files, &hit, out);
 *     symbols_release(&s);
 * A failed load leaves the table empty. The files may be closed in between and opened anew; where
 * the debug file is another one then, its names are not read.
 *
 * Which symbol wins. Of those at one address: with a size before without, GLOBAL before WEAK before
 * LOCAL, then fewer leading underscores, then the shorter name, then byte order. A symbol without a
 * size reaches to the next symbol or its section's end, and is dropped within a sized one. Where
 * sized ones nest, the inner one wins within its own range. .dynsym adds what .symtab does not
 * have; a linkage stub's made-up name comes last.
 *
 * Large tables. Of one beyond max_bytes the functions at the addresses of symbols_want are kept, if it
 * was called, by reading the file's table twice in pieces (15 ns per symbol each time). Such a table
 * is `is_few`: symbols_find finds nothing where symbols_knows is false, and the rest takes another
 * load. Of stubs whose function is chosen at run time it has no names but "[plt]".
 *
 * Limits. Without symbols_want a table beyond max_bytes is ERR_LIMIT. Text longer than 4 GiB is ERR_LIMIT; a size above
 * 64 MiB counts as 64 MiB. Linkage stubs beyond max_bytes are dropped.
 *
 * Errors. ERR_UNSUPPORTED: the image has no function symbols at all, or kallsyms hides addresses.
 */
#ifndef SYMBOL_SYMBOLS_H
#define SYMBOL_SYMBOLS_H

#include "symbol/files.h"
#include "symbol/pairs.h"

struct symbol {
    uint32_t start; /* relative to symbols.base */
    uint32_t size;  /* low 26 bits: bytes; above: flags of symbols.c */
    uint32_t name;  /* offset in the ELF's string table, or place in symbols.names */
};

/* Addresses [start, limit), relative to symbols.base, that have one answer. */
struct symbols_span {
    uint32_t start, limit;
};

struct symbols_few;

struct symbols {
    uint64_t base;
    VEC(struct symbol) table;
    struct pairs names; /* of a table that is not an ELF's */
    size_t max_bytes;
    enum symbol_file symtab_file; /* which file's .symtab was loaded */
    struct elf_symbol_table tables[ELF_TABLE_COUNT]; /* what was loaded, to know it again */
    const uint64_t *wanted;   /* of symbols_want */
    size_t wanted_count;
    struct symbols_few *few;  /* while a table is loaded that does not fit */
    bool is_few;              /* set before the load: that it does not fit is known */
    VEC(struct symbols_span) known; /* of a table that is_few, by address */
};

struct symbol_hit {
    uint64_t start; /* ELF address, or the kernel's */
    uint64_t size;
    uint32_t index; /* in the table */
    bool sized;     /* the symbol told its size: else it ends where another begins */
};

void symbols_init(struct symbols *s, size_t max_bytes);
void symbols_release(struct symbols *s);

/* Memory held, in bytes. */
size_t symbols_bytes(const struct symbols *s);

/* Before the load: of a table that does not fit, the functions at these addresses are enough. `address` rises, and
 * stays the caller's; null and 0 once the table is loaded. */
void symbols_want(struct symbols *s, const uint64_t *address, size_t count);

/* `files` is not const because it unpacks .gnu_debugdata when that is first needed, here or in
 * symbols_name. Where the symbols beside the main file cannot be read, or do not fit, they are
 * passed over and files->problem says so. */
bool symbols_load_files(struct symbols *s, struct symbol_files *files, struct err *err);

bool symbols_find(const struct symbols *s, uint64_t address, struct symbol_hit *out);

/* Of a table that is_few: is this one of the addresses of which it tells all there is? */
bool symbols_knows(const struct symbols *s, uint64_t address);

/* Appends the name of a hit as it stands in the image (mangled). `files` is what the table was loaded from, opened
 * again if need be; null for the kernel, and where it could not be opened again. False when it cannot be read. */
bool symbols_name(const struct symbols *s, struct symbol_files *files, const struct symbol_hit *hit, struct buf *out);

/*
 * kallsyms: the kernel's own table, from the text of /proc/kallsyms in pieces of any size.
 *
 * Lines are "address type name[<tab>[module]]"; only types t T w W (code) count. Skipped:
 * "__pfx_…" and "__cfi_…", padding in front of a function that never runs. A module's function is
 * named "function [module]". Format: kernel/kallsyms.c s_show.
 *
 * The kernel writes 0 as every address for readers without the right (kptr_restrict,
 * perf_event_paranoid, CAP_SYSLOG): kallsyms_finish then fails with ERR_DENIED.
 */
enum {
    KALLSYMS_LINE_MAX = 1024, /* KSYM_NAME_LEN is 512, a module's name 56 */
    KALLSYMS_FEW_MAX = 4096,
};

struct kallsyms_gap;

/* Where only some functions are wanted. */
struct kallsyms_few {
    const uint64_t *address;
    size_t count, at;         /* `at`: where the last line belonged */
    struct kallsyms_gap *gap; /* one more than addresses; null: all functions are wanted */
    uint64_t first, last;     /* addresses of lines */
    bool rising, over;
};

struct kallsyms {
    struct symbols *symbols;
    struct pairs_code code;
    char line[KALLSYMS_LINE_MAX];
    size_t line_len;
    bool line_too_long, full, has_base;
    struct kallsyms_few few;
    uint64_t seen, hidden; /* code symbols, and those of them at address 0 */
};

void kallsyms_init(struct kallsyms *k, struct symbols *symbols);

/* Before the first text: the table gets the functions at these addresses and no others, which costs a fifth of the
 * time. `address` rises, and stays the caller's until kallsyms_finish. Once few.over is set, no more text is needed.
 * False, and all functions are kept: they are more than KALLSYMS_FEW_MAX, or there is no memory. */
bool kallsyms_only(struct kallsyms *k, const uint64_t *address, size_t count);

/* False when the table is full; later pieces are ignored and kallsyms_finish fails too. */
bool kallsyms_feed(struct kallsyms *k, const void *ptr, size_t len, struct err *err);
bool kallsyms_finish(struct kallsyms *k, struct err *err);

#endif
