/*
 * delta_snapshot: one snapshot of a profile, with as little of it in memory as telling samples apart takes.
 *
 * Call order. go_snapshot_open reads the snapshot once or twice: columns, time, addresses of locations, hashes of
 * texts. Then go_scan_start(snapshot->scan, …) and go_scan_next as often as wanted, and for what is met
 * go_snapshot_sample or the bits. go_snapshot_release, in every case.
 */
#ifndef RUNTIME_GO_DELTA_SNAPSHOT_H
#define RUNTIME_GO_DELTA_SNAPSHOT_H

#include "base/vec.h"
#include "runtime/go/delta/delta.h"
#include "runtime/go/delta/delta_scan.h"
#include "runtime/go/delta/delta_stacks.h"

enum { GO_ID_MAX = 1 << 18 }; /* so hostile ids and texts cost 2 MB each */

/* Field numbers of pprof's messages. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_TEXT = 6,
    PROFILE_DROP_FRAMES = 7,
    PROFILE_KEEP_FRAMES = 8,
    PROFILE_TIME = 9,
    PROFILE_DURATION = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14,
    SAMPLE_LOCATION = 1,
    SAMPLE_VALUE = 2,
    SAMPLE_LABEL = 3,
    LABEL_KEY = 1,
    LABEL_TEXT = 2,
    LABEL_NUMBER = 3,
    LABEL_UNIT = 4,
    LOCATION_ID = 1,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILE = 4,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6,
    TYPE_NAME = 1,
    TYPE_UNIT = 2,
};

/* A set of small numbers. */
struct go_bits {
    VEC(uint64_t) words;
};

static inline bool go_bits_has(const struct go_bits *bits, uint64_t number)
{
    return number / 64 < bits->words.len && (bits->words.at[number / 64] >> number % 64 & 1) != 0;
}

/* The caller has bounded the number. False: no memory. */
bool go_bits_add(struct go_bits *bits, uint64_t number, struct err *err);

struct go_label {
    uint64_t key, text, number, unit; /* all but `number` of the string table */
};

struct go_sample {
    uint64_t identity;
    uint64_t values[GO_DELTA_COLUMNS_MAX];
};

struct go_snapshot {
    struct go_scan *scan;
    size_t columns;
    uint64_t column_names[GO_DELTA_COLUMNS_MAX]; /* indices of texts */
    int64_t time_ns;
    bool has_time;
    bool has_text_first; /* a function stands behind a text */
    size_t samples, texts;
    uint64_t texts_named; /* one more than the last text that a label or a sample type names */
    VEC(uint64_t) text_hashes; /* of these */
    VEC(uint64_t) addresses;   /* by location id */
    struct go_bits locations;  /* that exist */
};

bool go_snapshot_open(struct go_snapshot *snapshot, struct str bytes, struct err *err);
void go_snapshot_release(struct go_snapshot *snapshot);

/* Is this the name of the column? */
bool go_snapshot_is_column(const struct go_snapshot *snapshot, size_t column, struct str name);

/* False: a location or text that is not there, or not a value for each column. */
bool go_snapshot_sample(const struct go_snapshot *snapshot, struct str message, struct go_sample *out, struct err *err);

/* False: damaged. */
bool go_label_read(struct str message, struct go_label *out, struct err *err);

/* The fields of a message that stands in a field, which may be of another kind. */
struct cursor go_fields_of(const struct protobuf_field *field);

bool go_damaged(struct err *err, const char *what);

#endif
