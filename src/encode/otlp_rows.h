/*
 * otlp_rows: what the samples of an OpenTelemetry profile refer to, and the samples themselves,
 * ready to be written (otlp.c).
 *
 *     otlp_rows_init(&rows, profile, &err)    everything but texts that only otlp.c uses
 *     rows.samples                            sorted by owner, type, stack, attributes; each once
 *     otlp_rows_release(&rows)
 *
 * Rows are interned by their bytes, so two frames that look the same are one location, and two
 * stacks of such frames one stack: a node's twin is the first with the same parent and location.
 */
#ifndef ENCODE_OTLP_ROWS_H
#define ENCODE_OTLP_ROWS_H

#include "encode/functions.h"
#include "encode/otlp_table.h"
#include "encode/pprof_mapping.h"

/* Sample types; those of events stand behind. */
enum {
    OTLP_CPU,
    OTLP_OFF_CPU,
    OTLP_WALL,
    OTLP_EVENT,
    OTLP_TYPES = OTLP_EVENT + PROFILE_EVENTS_MAX,
};

struct otlp_sample {
    uint32_t owner; /* a process's id */
    uint32_t type, stack;
    uint32_t thread_name, thread_id; /* attributes; 0: not told */
    uint64_t value;
};

struct otlp_rows {
    const struct profile *p;
    struct otlp_table strings, attributes, mappings, locations, functions;
    VEC(uint32_t) stacks; /* by place, their leaves; element 0 is unused */
    uint32_t *location;   /* by frame; 0: not used */
    VEC(struct otlp_sample) samples;

    struct functions functions_of;
    struct pprof_mappings mappings_of;
    uint32_t *twin;      /* by node; 0: not used */
    uint32_t *stack;     /* by node */
    uint32_t *owner;     /* by process */
    struct intern twins;
    struct buf message, part, text;
};

bool otlp_rows_init(struct otlp_rows *rows, const struct profile *p, struct err *err);
void otlp_rows_release(struct otlp_rows *rows);

/* The place of a text, of which malformed bytes are replaced. */
uint32_t otlp_rows_text(struct otlp_rows *rows, struct str text);

/* An AnyValue of a text or a number. */
void otlp_put_text(struct buf *out, struct str text);
void otlp_put_number(struct buf *out, uint64_t number);

/* Did a table fail, or a buffer? */
bool otlp_rows_failed(const struct otlp_rows *rows);

#endif
