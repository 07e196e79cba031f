/*
 * What the files of the Go symbol table share: reading through a small cache, where the table is,
 * and what the Go versions do differently.
 *
 * read.c reads, pointer.c follows pointers that the loader would relocate, find.c finds
 * the table and module.c what belongs to it, function.c takes its records apart, table.c
 * answers.
 */
#ifndef RUNTIME_GO_PRIVATE_H
#define RUNTIME_GO_PRIVATE_H

#include "base/arena.h"
#include "runtime/go/table/table.h"

enum {
    GO_BLOCK_BYTES = 1024,
    GO_BLOCKS = 32,             /* a binary search touches 10 to 20, the first ones every time */
    GO_FUNCTIONS_MAX = 1 << 23, /* large Go programs have 500,000 */
    GO_STEPS_MAX = 4 << 20,     /* through pc-value streams in one look-up */
    GO_SCAN_MAX_BYTES = 256 << 20,
    GO_RELOCATIONS_MAX = 4 << 20,
    GO_NAME_MAX = 4096,         /* longer names are cut */
};

struct go_span { /* bytes of the file */
    uint64_t offset, bytes;
};

struct go_block {
    uint64_t number; /* file offset / GO_BLOCK_BYTES */
    size_t bytes;    /* 0: empty */
    unsigned char data[GO_BLOCK_BYTES];
};

struct go_reader {
    struct elf *elf;
    uint64_t limit; /* end of the segments' bytes in the file */
    struct go_block blocks[GO_BLOCKS];
};

void go_reader_init(struct go_reader *r, struct elf *elf);

/* The bytes at hand from `at` on, *have of them and at least one; null at the end of the span or of
 * what can be read. Valid until the next call. */
const unsigned char *go_view(struct go_reader *r, struct go_span span, uint64_t at, size_t *have);
bool go_read(struct go_reader *r, struct go_span span, uint64_t at, void *out, size_t len);
bool go_u32(struct go_reader *r, struct go_span span, uint64_t at, uint32_t *out);
bool go_word(struct go_reader *r, struct go_span span, uint64_t at, uint64_t *out);

/* A NUL-terminated text, cut at GO_NAME_MAX. */
bool go_text(struct go_reader *r, struct go_span span, uint64_t at, char out[static GO_NAME_MAX],
             size_t *len);

/* From an ELF address to the end of its segment's bytes in the file. */
bool go_span_of(const struct elf *elf, uint64_t address, struct go_span *out);

static inline size_t go_word_bytes(const struct elf *elf)
{
    return elf->is_32bit ? 4 : 8;
}

/* Part of a span, to its end. */
static inline struct go_span go_from(struct go_span span, uint64_t at)
{
    at = at < span.bytes ? at : span.bytes;
    return (struct go_span){span.offset + at, span.bytes - at};
}

/*
 * Relocations. A position-independent image's pointers are made by the loader from "relative"
 * relocations. GNU ld, gold, mold and Go's own linker leave the value in the file as well, lld
 * leaves 0: then the relocation tells. Its table is searched, so it has to be sorted by address,
 * as lld does.
 */
struct go_relocations {
    struct go_span span;
    uint64_t count; /* 0: none */
};

void go_relocations_find(struct go_reader *r, struct go_relocations *out);

/* The index of the relocation of this address; count when there is none. */
uint64_t go_relocation_of(struct go_reader *r, const struct go_relocations *all, uint64_t address);

/* False when it cannot be read. One of another kind has address UINT64_MAX: they come last. */
bool go_relocation(struct go_reader *r, const struct go_relocations *all, uint64_t index,
                   uint64_t *address, uint64_t *value);

/* The pointer that stands at an ELF address once the program runs, as an ELF address. */
bool go_pointer(struct go_reader *r, const struct go_relocations *all, uint64_t address,
                uint64_t *out);

/* Inlined calls: where a function has their tree, and what an entry of it holds. */
struct go_inline_layout {
    uint8_t pcdata, funcdata; /* indices of the stream of indices and of the tree */
    uint8_t entry_bytes;
    uint8_t parent_bytes; /* of the parent's index, at the entry's start; 0: not there */
    uint8_t name_at, line_at;
    uint8_t parent_pc_at; /* 0: not there, the entry holds the call's file and line */
    bool wide_count;      /* the number of funcdata is 32 bits, later 8 */
};

struct go_inlined {
    int32_t parent, parent_pc;
    int32_t file, line; /* of the call; since Go 1.20 only the line where the function starts */
    uint32_t name;
    uint8_t id; /* funcID; only in tables since Go 1.18 */
};

/* What a magic number stands for. */
struct go_format {
    uint32_t magic;
    uint8_t header_words;  /* behind the first eight bytes; offsets are the last five, 1: none */
    bool relative;         /* addresses are 32 bits behind the text's start */
    bool has_units;        /* file numbers are per compilation unit */
    bool has_start_line;
    uint8_t funcdata_word; /* of moduledata: what funcdata count from; 0: they are pointers */
    struct go_inline_layout layouts[3];
};

struct go_table {
    struct go_reader reader;
    struct go_relocations relocations;
    const struct go_format *format;
    uint64_t address;      /* of the header */
    struct go_span whole;  /* from the header on */
    struct go_span names, streams;
    struct go_span units, files; /* 32-bit offsets by file number; what they point into */
    struct go_span list, functions; /* pairs of address and offset; what these point into */
    uint64_t function_count;
    uint8_t quantum;
    uint64_t text;             /* what relative addresses count from */
    uint64_t module;           /* ELF address of moduledata; 0: not found */
    uint64_t first_relocation; /* of the list's addresses, when the file has 0 there */
    uint64_t funcdata;         /* what relative funcdata count from */
    struct go_inline_layout inlines; /* entry_bytes 0: none known */
    struct arena texts;              /* of the last look-up */
    uint32_t steps;                  /* it may still take through streams */
    uint64_t damaged; /* how often something was missing that the table should have */
};

struct go_function {
    uint64_t start, limit; /* ELF addresses */
    uint64_t arrays;       /* of pcdata, then funcdata: in go_table.functions */
    uint32_t name;
    uint32_t stack, file, line; /* streams */
    uint32_t start_line;        /* 0: not told */
    uint32_t pcdata_count;
    uint32_t unit;
    uint32_t last; /* word with flags and the number of funcdata */
};

/* find.c: the header, and what its offsets name. */
bool go_find(struct go_table *t, struct err *err);

/*
 * find.c: calls `each` for pieces of the segments' bytes, at addresses that are multiples of 8:
 * first of the writable segments, which are small, last of the executable ones. Ends with true when
 * `each` returns true.
 */
struct go_piece {
    const unsigned char *bytes;
    size_t len;
    uint64_t address;
};
bool go_scan(struct elf *elf, bool (*each)(void *context, const struct go_piece *piece),
             void *context);

/* module.c: where relative addresses count from; the layout of inlined calls. */
bool go_find_text(struct go_table *t, struct err *err);
void go_find_inlines(struct go_table *t);

/* function.c: the address where function `index` starts, or, of the count, the last one ends. */
bool go_function_start(struct go_table *t, uint64_t index, uint64_t *out);
bool go_function_at(struct go_table *t, uint64_t index, struct go_function *out);

/* function.c: the stream of pcdata number `index`; 0: none. */
uint32_t go_pcdata(struct go_table *t, const struct go_function *f, uint32_t index);

/* function.c: the function's tree of inlined calls; false when it has none. */
bool go_inline_tree(struct go_table *t, const struct go_inline_layout *layout,
                    const struct go_function *f, struct go_span *out);
bool go_inlined_at(struct go_table *t, const struct go_inline_layout *layout, struct go_span tree,
                   uint32_t index, struct go_inlined *out);

#endif
