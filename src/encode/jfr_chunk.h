/*
 * jfr_chunk: one chunk of a recording of JDK Flight Recorder: its types, constant pools and events.
 *
 * Concept. A recording is chunks one behind the other, each complete: a header, events, among them one with the types
 * of all others (metadata) and some with constants (checkpoints). What a type is called and which fields it has is
 * said there and differs from JDK to JDK, so everything is found by name. Values are read where they lie; a struct is
 * read by asking for some of its fields, and of what is no number the place is told.
 *
 * Call order: jfr_chunk_read; jfr_next per event; jfr_fields, jfr_constant and jfr_text as it wants; jfr_chunk_release.
 * The bytes are the caller's and have to stay. A chunk that the JVM is still writing is one, up to where its header
 * says that it goes.
 *
 * Limits: JFR_CLASSES_MAX types and JFR_FIELDS_MAX fields; values nested JFR_DEPTH_MAX deep; no more steps than some
 * per byte, whatever arrays say of their length. Beyond them, and where it contradicts itself, ERR_MALFORMED.
 *
 * Sources: OpenJDK's jfrChunkWriter.cpp, jfrCheckpointManager.cpp, jfrMetadataEvent.cpp and jdk.jfr's parser of 11 to
 * 25, by their facts.
 */
#ifndef ENCODE_JFR_CHUNK_H
#define ENCODE_JFR_CHUNK_H

#include "base/cursor.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"

enum { JFR_CLASSES_MAX = 4096, JFR_FIELDS_MAX = 65536, JFR_DEPTH_MAX = 8, JFR_ASKED_MAX = 8 };

enum jfr_form { JFR_STRUCT, JFR_INTEGER, JFR_BYTE, JFR_FLOAT, JFR_DOUBLE, JFR_STRING };

struct jfr_field {
    struct str name;
    uint64_t class_id;
    uint32_t class; /* its place in `classes`; those that are there by then */
    bool is_constant, is_array;
};

struct jfr_class {
    struct str name; /* "jdk.ExecutionSample" */
    uint64_t id;
    uint32_t field, field_count; /* in `fields` */
    uint8_t form;                /* enum jfr_form */
    uint64_t events;             /* of this type in the chunk */
    struct map constants;        /* its pool: key -> place in `bytes` */
};

struct jfr_chunk {
    struct str bytes; /* all of it, from its header on */
    uint64_t start_ns, duration_ns, start_ticks, ticks_per_s;
    uint64_t steps; /* left */
    VEC(struct str) strings; /* of the metadata */
    VEC(struct jfr_class) classes;
    VEC(struct jfr_field) fields;
    struct map class_of; /* id -> place in `classes` */
};

/* How long the chunk is that begins here; 0: none does. */
size_t jfr_chunk_size(struct str bytes);

/* Reads types and constants and counts events. To be released in any case. */
bool jfr_chunk_read(struct jfr_chunk *c, struct str bytes, struct err *err);
void jfr_chunk_release(struct jfr_chunk *c);

/* Null: there is no such type. */
struct jfr_class *jfr_class_named(struct jfr_chunk *c, const char *name);

/* The next event from `*at` on, which is 0 first: its type, and the place of its fields. False: there is none. */
bool jfr_next(struct jfr_chunk *c, size_t *at, const struct jfr_class **class, size_t *fields);

/* Some fields of a struct at this place, by name: numbers and keys of constants as they are (a whole number's bits as
 * 64, `int` -1 among them), else the value's place; 0 where the type has none. At most JFR_ASKED_MAX. */
bool jfr_fields(struct jfr_chunk *c, const struct jfr_class *class, size_t at, const char *const *names,
                uint64_t *values, size_t count);

/* Arrays: how many elements there are, `at` is the first then; and over one. */
bool jfr_array(struct jfr_chunk *c, size_t *at, uint64_t *count);
bool jfr_skip(struct jfr_chunk *c, const struct jfr_class *class, size_t *at);

/* The place of a constant; false: there is none of that key. */
bool jfr_constant(const struct jfr_class *class, uint64_t key, size_t *at);

/* A string at this place, or of a key of its pool, as UTF-8; "" when there is none. Valid until the buffer is used
 * again. */
struct str jfr_text(struct jfr_chunk *c, size_t at, struct buf *held);

/* A time of the chunk's clock as ns since 1970, and a span of it as ns. */
uint64_t jfr_time_ns(const struct jfr_chunk *c, uint64_t ticks);
uint64_t jfr_span_ns(const struct jfr_chunk *c, uint64_t ticks);

#endif
