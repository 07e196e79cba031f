/*
 * pprof_table: what the files of the pprof reader share.
 *
 *     pprof_table.c  the file's tables: strings, types, mappings, functions, locations
 *     pprof_read.c   its samples, and which of their values counts
 *
 * A file is gone through four times, because what a record refers to may stand behind it: strings and types first,
 * then mappings and functions, then locations, last the samples. Each pass is a function that takes one field of
 * the outermost message and leaves alone what is not its own; false with an error when the file is damaged.
 */
#ifndef ENCODE_PPROF_TABLE_H
#define ENCODE_PPROF_TABLE_H

#include "base/map.h"
#include "encode/importer.h"
#include "encode/live.h"
#include "encode/pprof.h"
#include "encode/pprof_read.h"
#include "base/protobuf.h"

struct pprof_value_type {
    uint64_t name, unit; /* string indices */
};

struct pprof_mapping_row {
    struct str file;
    uint64_t start, file_offset;
    uint32_t module; /* id in the profile; 0 when it stands for a kind, or is nothing */
    uint8_t kind;    /* of frames in it, FRAME_NATIVE when the mapping does not say */
};

struct pprof_function_row {
    struct str name, system_name, file;
    uint64_t first_line; /* 0 unknown */
};

/* A location's frames are rows [first, first + count) of `frames`, root side first. */
struct pprof_location_row {
    uint32_t first, count;
};

struct pprof_when {
    uint64_t time_ns, duration_ns;
};

/* What is to be read of a file. */
struct pprof_wanted {
    struct str type; /* a sample type's name; "": what is CPU time */
    bool whole;      /* the other values, too */
    const struct live *live;          /* null: it is a file */
    const struct importer_origin *of; /* what samples without labels are of; null: they are of the main mapping */
    size_t most_bytes;                /* unpacked */
};

struct pprof_reader {
    struct importer in;
    struct str file;
    const struct pprof_wanted *wanted;
    struct err *err;
    VEC(struct str) strings;
    VEC(struct pprof_value_type) types;
    VEC(struct pprof_mapping_row) mappings;
    VEC(struct pprof_function_row) functions;
    VEC(struct pprof_location_row) locations;
    VEC(uint32_t) frames;
    struct map mapping_ids, function_ids, location_ids; /* id to row */
    struct pprof_value_type period_type;
    struct pprof_when when;
    uint64_t period;
    VEC(uint64_t) comments;
    size_t time_value, count_value; /* places in a sample's values; SIZE_MAX none */
    uint64_t scale_ns;              /* one unit of the chosen value; 1 when it is no time */
    bool is_counted;                /* it is no time */
    bool types_left_out;
    uint32_t events_before;         /* event types that the profile had, of files read before this one */
    VEC(uint32_t) others;           /* by value what it is: see pprof_read.c */
    VEC(uint64_t) values;           /* of one sample */
    VEC(uint64_t) numbers;          /* of one sample: its locations or values */
    VEC(uint32_t) stack;
    struct buf own_labels;          /* of one sample: PROFILE_LABEL_OWN */
    uint64_t steps; /* frames of all stacks */
};

bool pprof_malformed(struct pprof_reader *r, const char *what);
bool pprof_no_memory(struct pprof_reader *r);

bool pprof_text_at(struct pprof_reader *r, uint64_t index, struct str *out);

/* A field that is a message. */
struct cursor pprof_message(const struct protobuf_field *field);

/* The numbers of a message by field, 0 where a field is absent; of a repeated field the last. */
enum { PPROF_FIELDS_MAX = 8 };
bool pprof_numbers_of(struct pprof_reader *r, struct cursor message,
                      uint64_t value[static PPROF_FIELDS_MAX], const char *what);

bool pprof_first_pass(struct pprof_reader *r, const struct protobuf_field *f);
bool pprof_second_pass(struct pprof_reader *r, const struct protobuf_field *f);
bool pprof_third_pass(struct pprof_reader *r, const struct protobuf_field *f);

void pprof_release(struct pprof_reader *r);

#endif
