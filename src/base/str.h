/*
 * str: borrowed slices and a growing byte buffer.
 *
 * A `struct str` borrows bytes that live elsewhere; it is not NUL-terminated and may hold any byte.
 * A `struct buf` owns its bytes, is born with its maximum, and once an append would pass the
 * maximum (or memory ends) it becomes `failed`: later appends do nothing, and the writer checks the
 * flag once at the end. After buf_init nothing is allocated until the first append.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *ptr;
    size_t len;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})

static inline struct str str_of(const char *text)
{
    return (struct str){text, text ? strlen(text) : 0};
}

bool str_eq(struct str a, struct str b);

bool str_starts(struct str text, struct str prefix);
bool str_ends(struct str text, struct str suffix);

/* Byte order, a prefix before what it begins: <0, 0, >0. */
int str_compare(struct str a, struct str b);

/* Position of the first / last `byte`, or text.len when absent. */
size_t str_find(struct str text, char byte);
size_t str_find_last(struct str text, char byte);

/* What stands behind the last slash; all of it without one. */
struct str str_base_name(struct str path);

/* Bytes [from, from+len) clipped to what exists. */
struct str str_sub(struct str text, size_t from, size_t len);

/* Takes everything before `byte` off the front of *rest, and `byte` with it; all of it, leaving
 * *rest empty, when `byte` is absent. */
struct str str_cut(struct str *rest, char byte);

/* Without leading and trailing blanks, tabs and line ends. */
struct str str_trim(struct str text);

/* The whole of `text` as an unsigned number; false when empty, too large or not all digits. */
bool str_u64(struct str text, uint64_t *out);
bool str_hex(struct str text, uint64_t *out);

/* A digit's value in base 16; 99: it is none. */
int str_digit(char byte);

/* A 64-bit hash (not against malice: tables that use it bound their own size). */
uint64_t str_hash(struct str text);
uint64_t hash_u64(uint64_t value);

struct buf {
    char *ptr;
    size_t len;
    size_t cap;
    size_t max;
    bool failed;
};

void buf_init(struct buf *buf, size_t max_bytes);
void buf_release(struct buf *buf);

/* Releases it without what it held. Where it grew, another copy may be left. */
void buf_wipe(struct buf *buf);

static inline void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->failed = false;
}

/* Room for `len` more bytes at the end, to be written by the caller, who then adds to buf->len;
 * null when failed. */
char *buf_room(struct buf *buf, size_t len);

/* Gives back the room behind what is there, which may move. */
void buf_trim(struct buf *buf);
void buf_add(struct buf *buf, const void *ptr, size_t len);
void buf_byte(struct buf *buf, char byte);
void buf_str(struct buf *buf, struct str text);
void buf_text(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The bytes with a NUL after them (not counted in len); "" when failed or empty. */
const char *buf_cstr(struct buf *buf);

static inline struct str buf_slice(const struct buf *buf)
{
    return (struct str){buf->ptr, buf->len};
}

#endif
