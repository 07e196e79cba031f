/* Slices and the growing byte buffer that almost every parser and writer here uses: comparing,
 * splitting, numbers with overflow checks, formatted appending. A buffer that would pass its maximum
 * becomes `failed` and stays as it was. */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool str_starts(struct str text, struct str prefix)
{
    return text.len >= prefix.len && memcmp(text.ptr, prefix.ptr, prefix.len) == 0;
}

bool str_ends(struct str text, struct str suffix)
{
    return text.len >= suffix.len &&
           memcmp(text.ptr + text.len - suffix.len, suffix.ptr, suffix.len) == 0;
}

int str_compare(struct str a, struct str b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.ptr, b.ptr, common);
    if (order != 0) {
        return order;
    }
    return (a.len > b.len) - (a.len < b.len);
}

size_t str_find(struct str text, char byte)
{
    const char *hit = text.len == 0 ? NULL : memchr(text.ptr, byte, text.len);
    return hit == NULL ? text.len : (size_t)(hit - text.ptr);
}

size_t str_find_last(struct str text, char byte)
{
    for (size_t i = text.len; i > 0; i--) {
        if (text.ptr[i - 1] == byte) {
            return i - 1;
        }
    }
    return text.len;
}

struct str str_base_name(struct str path)
{
    size_t slash = str_find_last(path, '/');
    return slash == path.len ? path : str_sub(path, slash + 1, path.len);
}

struct str str_sub(struct str text, size_t from, size_t len)
{
    if (from > text.len) {
        from = text.len;
    }
    if (len > text.len - from) {
        len = text.len - from;
    }
    return (struct str){from == 0 ? text.ptr : text.ptr + from, len}; /* null + 0 is undefined */
}

struct str str_cut(struct str *rest, char byte)
{
    size_t at = str_find(*rest, byte);
    struct str front = {rest->ptr, at};
    size_t used = at < rest->len ? at + 1 : at;
    *rest = str_sub(*rest, used, rest->len);
    return front;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

struct str str_trim(struct str text)
{
    while (text.len > 0 && is_blank(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && is_blank(text.ptr[text.len - 1])) {
        text.len--;
    }
    return text;
}

int str_digit(char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    if (byte >= 'A' && byte <= 'F') {
        return byte - 'A' + 10;
    }
    return 99;
}

static bool number_of(struct str text, unsigned base, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)str_digit(text.ptr[i]);
        if (digit >= base || value > (UINT64_MAX - digit) / base) {
            return false;
        }
        value = value * base + digit;
    }
    if (text.len == 0) {
        return false;
    }
    *out = value;
    return true;
}

bool str_u64(struct str text, uint64_t *out)
{
    return number_of(text, 10, out);
}

bool str_hex(struct str text, uint64_t *out)
{
    return number_of(text, 16, out);
}

/* By words: musl's memcmp goes byte by byte, and names are compared for each frame of each stack. */
bool str_eq(struct str a, struct str b)
{
    uint64_t one, other;
    size_t i = 0;
    for (; a.len == b.len && i + sizeof one <= a.len; i += sizeof one) {
        memcpy(&one, a.ptr + i, sizeof one);
        memcpy(&other, b.ptr + i, sizeof other);
        if (one != other) {
            return false;
        }
    }
    while (a.len == b.len && i < a.len && a.ptr[i] == b.ptr[i]) {
        i++;
    }
    return a.len == b.len && i == a.len;
}

uint64_t hash_u64(uint64_t value)
{
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    return value ^ value >> 32;
}

uint64_t str_hash(struct str text)
{
    uint64_t hash = 0x9e3779b97f4a7c15u ^ text.len;
    size_t i = 0;
    for (; i + 8 <= text.len; i += 8) {
        uint64_t word;
        memcpy(&word, text.ptr + i, 8);
        hash = hash_u64(hash ^ word);
    }
    uint64_t tail = 0;
    for (; i < text.len; i++) {
        tail = tail << 8 | (unsigned char)text.ptr[i];
    }
    return hash_u64(hash ^ tail);
}

void buf_init(struct buf *buf, size_t max_bytes)
{
    *buf = (struct buf){.max = max_bytes};
}

void buf_release(struct buf *buf)
{
    free(buf->ptr);
    *buf = (struct buf){.max = buf->max};
}

void buf_wipe(struct buf *buf)
{
    if (buf->ptr != NULL) {
        explicit_bzero(buf->ptr, buf->cap);
    }
    buf_release(buf);
}

char *buf_room(struct buf *buf, size_t len)
{
    if (buf->failed || len > buf->max - buf->len) {
        buf->failed = true;
        return NULL;
    }
    size_t need = buf->len + len;
    if (need >= buf->cap) { /* >= keeps one byte for buf_cstr's NUL */
        size_t cap = buf->cap < 64 ? 64 : buf->cap;
        while (cap <= need) {
            cap += cap / 2;
        }
        char *grown = realloc(buf->ptr, cap);
        if (grown == NULL) {
            buf->failed = true;
            return NULL;
        }
        buf->ptr = grown;
        buf->cap = cap;
    }
    return buf->ptr + buf->len;
}

void buf_trim(struct buf *buf)
{
    char *shrunk = buf->len > 0 ? realloc(buf->ptr, buf->len + 1) : NULL;
    if (shrunk != NULL) {
        buf->ptr = shrunk;
        buf->cap = buf->len + 1;
    }
}

void buf_add(struct buf *buf, const void *ptr, size_t len)
{
    char *room = buf_room(buf, len);
    if (room != NULL && len > 0) {
        memcpy(room, ptr, len);
        buf->len += len;
    }
}

void buf_byte(struct buf *buf, char byte)
{
    buf_add(buf, &byte, 1);
}

void buf_str(struct buf *buf, struct str text)
{
    buf_add(buf, text.ptr, text.len);
}

void buf_text(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *room = need < 0 ? NULL : buf_room(buf, (size_t)need); /* and one byte for the NUL */
    if (room == NULL) {
        buf->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(room, (size_t)need + 1, format, args);
    va_end(args);
    buf->len += (size_t)need;
}

const char *buf_cstr(struct buf *buf)
{
    if (buf->failed || buf->ptr == NULL) {
        return "";
    }
    buf->ptr[buf->len] = '\0';
    return buf->ptr;
}
