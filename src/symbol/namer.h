/*
 * namer: gives every frame of a profile that still is an address its name.
 *
 * Concept. The namer gathers the unnamed frames of a finished window by image, loads the function
 * table of each image (kept for the next window, least recently used first out), and writes names
 * into the profile. What an image is asked for, in this order:
 *
 *     its own names  functions, lines and inlined calls that the code brings with it (symbol_source.code);
 *                    the frame becomes of their kind
 *     its symbols    of the file, its debug file or what is packed in it (files.h)
 *     its DWARF      where `inlines` is set: inlined functions and source lines (inlines.h), the
 *                    function that really exists being named by its symbol, as everywhere else
 *
 * Code that was generated at run time has the names that the source knows (symbol_image.code), or its place.
 *
 * Where an address has no symbol the name says where it is:
 *
 *     [libfoo.so.1+0x1f20]   code of a file: its last path part and the ELF address, as addr2line
 *                            and objdump take it, of the function's start, as the source knows it
 *     [libfoo.so.1]          the same where it does not: one frame for all such code of the file
 *     [anon]                 generated code without names
 *     [unknown]              code of no known module
 *     [kernel]               kernel code, when its symbols cannot be read
 *
 * After namer_run every frame has a name. Modules whose image has a build id get it if they had
 * none.
 *
 * Images. capture numbers the files it keeps open for a window (module.image, never 0, never used
 * again for another file) and hands in a symbol_source that opens them. The namer opens each at
 * most once per run, when something of it is needed that is not at hand, and closes it before the
 * next. Of the kernel's table the first run keeps what it asks for; a later run that asks for more
 * reads all of it, which is when an image may be opened twice.
 *
 * Ownership. One thread uses a namer (the publisher). Nothing of the profile is kept.
 *
 * Limits. `max_bytes` bounds what is kept between runs: function tables (12 bytes per function) and
 * names already demangled (a quarter of it), and a quarter for what DWARF told of addresses. Of a
 * table that does not fit alone there is what the addresses of a run need (symbols_want); a run that
 * asks for others reads the file's table again. DWARF is read anew, by a process that ends with it
 * (inlines.h), in each run that meets an address of an image for the first time, until `inlines_budget_ns`
 * of the run have passed; later addresses have their symbol only. An image whose DWARF that process did
 * not survive is not asked for lines again.
 */
#ifndef SYMBOL_NAMER_H
#define SYMBOL_NAMER_H

#include "base/map.h"
#include "profile/code_lines.h"
#include "symbol/kept_lines.h"
#include "symbol/symbols.h"

enum symbol_image_kind {
    SYMBOL_IMAGE_ELF,      /* `file` reads at an offset in the file (or the vdso's bytes) */
    SYMBOL_IMAGE_KALLSYMS, /* `text` reads /proc/kallsyms from its start, in order */
    SYMBOL_IMAGE_GENERATED, /* `code` has what was generated; addresses are those at run time */
};

struct symbol_image {
    enum symbol_image_kind kind;
    struct memory_reader file;
    /* Up to `max` next bytes; *len 0 at the end. */
    bool (*text)(void *context, void *out, size_t max, size_t *len, struct err *err);
    void *text_context;
    struct code_source code; /* closed with the image */
    void *handle; /* the source's own */
};

struct symbol_source {
    /* False: the image is gone or never could be read. */
    bool (*open)(void *context, uint64_t image, struct symbol_image *out, struct err *err);
    void (*close)(void *context, struct symbol_image *image);
    void *context;
    /* Null, or the bounds of the function that holds an ELF address, from other tables than those
     * of symbols (unwinding's). Asked only where there is no symbol. */
    bool (*function)(void *context, uint64_t image, uint64_t address, uint64_t *start,
                     uint64_t *limit);
    /* Null, or the names that the code of a file brings with it. False: it has none. `elf` is borrowed until
     * the source is closed. */
    bool (*code)(void *context, struct elf *elf, struct code_source *out);
};

struct namer_image;
struct namer_name;

struct namer {
    const struct symbol_source *source;
    size_t max_bytes;
    /* To be set, if wanted, between namer_init and the first run; borrowed. */
    const struct debug_source *debug; /* opens separate debug files; null: none */
    const struct clock *clock;        /* for the budget; null: `inlines` is as if not set */
    const struct sandbox *sandbox;    /* where DWARF is read; null: the same */
    bool inlines;                     /* read DWARF */
    uint64_t inlines_budget_ns;       /* of one run */

    VEC(struct namer_image) images;
    VEC(struct namer_name) names; /* what was demangled already */
    struct map name_ids;
    struct buf name_text;
    struct buf raw, readable; /* of the symbol at hand */
    struct buf chain;         /* texts of the inlined functions at hand */
    struct kept_lines kept;
    bool is_refused;          /* this system allows no process to read DWARF in */
    uint64_t deadline_ns;     /* of this run */
    uint64_t run;
};

void namer_init(struct namer *n, const struct symbol_source *source, size_t max_bytes);
void namer_release(struct namer *n);

/* Names all frames. False only when the profile has no room for a name (ERR_LIMIT); an image that
 * cannot be read is no failure. */
bool namer_run(struct namer *n, struct profile *p, struct err *err);

/* Forgets what is kept of images for which `is_gone` says so: they will not be asked for again. */
void namer_drop(struct namer *n, bool (*is_gone)(void *context, uint64_t image), void *context);

/* What could not be used of an image: its symbols, or a debug file of another build, in whose place the
 * image's own symbols were taken. */
struct namer_problem {
    uint64_t image;
    const char *why; /* borrowed until the next run */
    bool has_symbols;
    bool is_of_lines; /* inlined functions and lines are what is missing, and nothing else */
};

/* Tells each problem once, those of the last run; false: there are no more. */
bool namer_next_problem(struct namer *n, struct namer_problem *out);

#endif
