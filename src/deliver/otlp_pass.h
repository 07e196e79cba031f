/*
 * otlp_pass: one way through a profile of OpenTelemetry's protocol, release 1.10, written anew with
 * changes. Messages are gone through as their shapes say; what is not in a shape stays as it is.
 *
 *     otlp_pass_init(&pass)
 *     pass.minor = 8                          numbers of fields as an older release has them
 *     pass.attributes, .attribute_count       for each resource, unless it has one of that key; no
 *                                             "container.…" for one that has such a one
 *     pass.place, .rows                       new places of the tables' rows
 *     pass.keep, .dropped, .dropped_stack     samples that go, and what they counted
 *     otlp_pass_put(&pass, shape, message, &out)
 *     otlp_pass_release(&pass)
 *
 * Releases. Between 1.8 and 1.10 the numbers of Sample's and Profile's fields changed, and a sample
 * type lost its temporality: a receiver of one release finds no values in what another release
 * wrote, and takes it. A profile is of one window, "delta" to 1.8.
 *
 * Hostile bytes: a message is damaged when it is cut, when a row refers to what is not there, or
 * when something that is a message is none. `damaged` is sticky. Shapes do not contain themselves,
 * so the depth is that of the format.
 *
 * Format: https://github.com/open-telemetry/opentelemetry-proto, tags v1.8.0, v1.9.0, v1.10.0
 */
#ifndef DELIVER_OTLP_PASS_H
#define DELIVER_OTLP_PASS_H

#include "base/protobuf.h"

enum { OTLP_PASS_MAX_BYTES = 64 * 1024 * 1024 };

/* Messages, as far as something in them is of interest. */
enum otlp_shape {
    OTLP_NO_SHAPE, /* bytes or numbers that stay */
    OTLP_RESOURCE_PROFILES,
    OTLP_RESOURCE,
    OTLP_SCOPE_PROFILES,
    OTLP_PROFILE,
    OTLP_SAMPLE,
    OTLP_VALUE_TYPE,
    OTLP_MAPPING,
    OTLP_LOCATION,
    OTLP_LINE,
    OTLP_FUNCTION,
    OTLP_ATTRIBUTE,
    OTLP_STACK,
    OTLP_SHAPES,
};

/* The tables of a dictionary, by their fields' numbers. */
enum otlp_table_number {
    OTLP_NO_TABLE,
    OTLP_MAPPINGS,
    OTLP_LOCATIONS,
    OTLP_FUNCTIONS,
    OTLP_LINKS,
    OTLP_STRINGS,
    OTLP_ATTRIBUTES,
    OTLP_STACKS,
    OTLP_TABLES,
};

/* Field numbers that others need, too. */
enum {
    OTLP_REQUEST_RESOURCE = 1, OTLP_REQUEST_DICTIONARY,
    OTLP_RESOURCE_ATTRIBUTE = 1,
    OTLP_KEY = 1, OTLP_VALUE,
    OTLP_VALUE_TEXT = 1,
    OTLP_PROFILE_TYPE = 1, OTLP_PROFILE_SAMPLE,
    OTLP_TYPE_NAME = 1,
    OTLP_SAMPLE_STACK = 1, OTLP_SAMPLE_VALUES = 4,
    OTLP_LOCATION_LINE = 3,
};

struct otlp_rule {
    uint8_t number;
    uint8_t in_1_9, in_1_8; /* its number there; 0: the same */
    uint8_t table;          /* enum otlp_table_number that it refers to */
    uint8_t inner;          /* enum otlp_shape of what it holds */
};

/* Null when nothing is said of the field. */
const struct otlp_rule *otlp_rule_of(enum otlp_shape shape, unsigned number);

/* What a table's rows are. */
enum otlp_shape otlp_row_shape(enum otlp_table_number table);

struct otlp_pass_attribute {
    struct str key;
    struct str field; /* as it stands in a resource, with its tag and length */
};

struct otlp_pass {
    unsigned minor; /* 10, 9, 8 */
    const struct otlp_pass_attribute *attributes;
    size_t attribute_count;
    const uint32_t *place[OTLP_TABLES]; /* null: stays */
    size_t rows[OTLP_TABLES];
    const bool *keep;        /* by sample, in order; null: all */
    const uint64_t *dropped; /* by profile, in order: what those that go counted */
    uint32_t dropped_stack;  /* a new place */
    size_t sample, profile;  /* how many were met */
    bool damaged;
    struct buf part[OTLP_SHAPES], numbers;
};

void otlp_pass_init(struct otlp_pass *pass);
void otlp_pass_release(struct otlp_pass *pass);

/* Appends the message. A failure is out's, or `damaged`. */
void otlp_pass_put(struct otlp_pass *pass, enum otlp_shape shape, struct str message,
                   struct buf *out);

#endif
