/*
 * encode_rules: what a service wants of a profile that is encoded for it.
 *
 * The back ends' rows (deliver/backend.h) say it and the encoders (encode/encode.h) follow it; neither knows the
 * other. All zeros is a profile as it is. What a format does not have is not looked at.
 */
#ifndef BASE_ENCODE_RULES_H
#define BASE_ENCODE_RULES_H

#include "base/str.h"

#include <stdbool.h>

/* The frame of what was dropped for the budget. */
#define ENCODE_DROPPED "[dropped to fit]"

struct fact {
    struct str name, value;
};

struct encode_name {
    const char *from, *to;
};

struct source_reader;

struct encode_rules {
    size_t most_bytes;   /* unpacked; 0: any */
    size_t most_samples; /* 0: any */
    double share;        /* of the bytes that it has by these two alone; 0: all */
    bool merges_threads; /* stacks are told apart by program, container and application alone */
    bool plain_types;    /* pprof: "page-faults" becomes "page_faults" among the sample types */
    const struct encode_name *type_names; /* pprof: other names for sample types; from is null at the end; null: none */
    const struct fact *attributes; /* otlp: of each resource that does not say the same itself */
    size_t attribute_count;
    bool lines;          /* col: the line being executed behind a function with file: "f (a.py:12):15" */
    const struct source_reader *sources; /* html: text of lines is read by it (encode/flame_sources.h); null: none is */
    struct str header;   /* col: the header line of the file that it was read from, whose facts are kept; empty: none */
};

#endif
