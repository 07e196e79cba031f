/* Looking into OpenTelemetry's profiles without the code that is tested. */
#ifndef TEST_OTLP_READ_H
#define TEST_OTLP_READ_H

#include "base/protobuf.h"
#include "test.h"

#define ROOM (64 * 1024 * 1024)

/* How many fields of this number there are. */
static inline unsigned parts(struct str message, unsigned number)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    unsigned count = 0;
    while (protobuf_next(&c, &f)) {
        count += f.number == number;
    }
    CHECK(!c.short_read);
    return count;
}

/* The n-th of them; empty: there is none. */
static inline struct str part(struct str message, unsigned number, unsigned n)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number == number && n-- == 0) {
            return f.bytes;
        }
    }
    return STR("");
}

static inline uint64_t number(struct str message, unsigned field)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    uint64_t value = 0;
    while (protobuf_next(&c, &f)) {
        value = f.number == field ? f.value : value;
    }
    return value;
}

static inline bool find(struct str bytes, const char *word)
{
    return bytes.len > 0 && memmem(bytes.ptr, bytes.len, word, strlen(word)) != NULL;
}

/* The values of one profile, release 1.10. */
static inline uint64_t sum_of_profile(struct str profile)
{
    struct cursor c = cursor_of(profile.ptr, profile.len);
    struct protobuf_field f;
    uint64_t sum = 0, value;
    while (protobuf_next(&c, &f)) {
        struct cursor packed = {0};
        if (f.number == 2) {
            struct str values = part(f.bytes, 4, 0);
            packed = cursor_of(values.ptr, values.len);
        }
        while (packed.len > 0) {
            value = cursor_uleb(&packed);
            sum += value;
        }
    }
    return sum;
}

static inline bool is_of_type(struct str profile, struct str dictionary, const char *type)
{
    return str_eq(part(dictionary, 5, (unsigned)number(part(profile, 1, 0), 1)), str_of(type));
}

/* The values of all profiles of a type. */
static inline uint64_t sum_of(struct str request, const char *type)
{
    struct str dictionary = part(request, 2, 0);
    uint64_t sum = 0;
    for (unsigned i = 0; i < parts(request, 1); i++) {
        struct str scope = part(part(request, 1, i), 2, 0);
        for (unsigned k = 0; k < parts(scope, 2); k++) {
            struct str profile = part(scope, 2, k);
            sum += is_of_type(profile, dictionary, type) ? sum_of_profile(profile) : 0;
        }
    }
    return sum;
}

/* Is no row of a table there twice? */
static inline bool otlp_rows_are_unique(struct str dictionary)
{
    for (unsigned table = 1; table <= 7; table++) {
        unsigned count = parts(dictionary, table);
        for (unsigned i = 0; i < count; i++) {
            for (unsigned k = i + 1; k < count; k++) {
                if (str_eq(part(dictionary, table, i), part(dictionary, table, k))) {
                    return false;
                }
            }
        }
    }
    return true;
}

#endif
