/* The files of the spool as bytes: names that sort by age, a head with all that is known of a delivery,
 * then its profiles. What is cut, changed or of a later version is found before anything is
 * believed. */
#include "deliver/spool.h"
#include "base/cursor.h"
#include "base/time.h"

#include <stdio.h>
#include <zlib.h>

enum {
    VERSION = 4,
    CRC_AT = 12,
    COVERED_AT = CRC_AT + 4, /* what the CRC is of */
    NAME_MAX_BYTES = 32,     /* of a back end or a format */
    TYPE_MAX_BYTES = 64,
    MS_DIGITS = 13,          /* until the year 2286: names of equal length sort by time */
    SEQUENCE_DIGITS = 6,
};

static const char magic[] = "PILSPOOL";

/* ---- names ---- */

void spool_name(const struct delivery *delivery, const char *backend,
                char out[static SPOOL_NAME_MAX])
{
    snprintf(out, SPOOL_NAME_MAX, "%0*llu-%0*llu-%.*s.%.*s", MS_DIGITS,
             (unsigned long long)(delivery->start_wall_ns / NS_PER_MS), SEQUENCE_DIGITS,
             (unsigned long long)delivery->sequence, NAME_MAX_BYTES, backend,
             (int)(delivery->format.len < NAME_MAX_BYTES ? delivery->format.len : NAME_MAX_BYTES),
             delivery->format.ptr);
}

/* Names become parts of paths: lower-case letters and digits alone. */
static bool is_word(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) {
            return false;
        }
    }
    return text.len > 0 && text.len <= NAME_MAX_BYTES;
}

bool spool_is_name(struct str name, uint64_t *start_ms, uint64_t *sequence, struct str *backend)
{
    struct str rest = name, start = str_cut(&rest, '-'), number = str_cut(&rest, '-');
    struct str word = str_cut(&rest, '.');
    uint64_t ms, count;
    if (name.len >= SPOOL_NAME_MAX || start.len < MS_DIGITS || number.len < SEQUENCE_DIGITS ||
        !str_u64(start, &ms) || !str_u64(number, &count) || !is_word(word) || !is_word(rest)) {
        return false;
    }
    *start_ms = ms;
    *sequence = count;
    *backend = word;
    return true;
}

/* ---- files ---- */

static void put(struct buf *out, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        buf_byte(out, (char)(value >> 8 * i & 0xff));
    }
}

static void put_word(struct buf *out, struct str word)
{
    put(out, word.len, 1);
    buf_str(out, word);
}

static uint32_t thousandths(double percent)
{
    return percent >= 0 && percent <= 1e6 ? (uint32_t)(percent * 1000) : UINT32_MAX;
}

static double percent_of(uint32_t thousandths)
{
    return (int32_t)thousandths < 0 ? -1 : (double)thousandths / 1000;
}

static uint32_t crc_of(const char *file, size_t len)
{
    return (uint32_t)crc32_z(0, (const unsigned char *)file + COVERED_AT, len - COVERED_AT);
}

bool spool_write(const struct delivery *d, const char *backend, uint64_t address_hash,
                 struct buf *out, struct err *err)
{
    size_t from = out->len;
    if (!is_word(str_of(backend)) || !is_word(d->format) || d->profile.len > SPOOL_PROFILE_MAX) {
        return err_set(err, ERR_LIMIT, 0, "a profile of %zu bytes does not go into the spool",
                       d->profile.len);
    }
    buf_text(out, magic);
    put(out, VERSION, 2);
    put(out, 0, 2);
    put(out, 0, 4);
    put(out, address_hash, 8);
    put(out, d->start_wall_ns, 8);
    put(out, d->end_wall_ns, 8);
    put(out, d->sequence, 8);
    put(out, thousandths(d->cpu_percent), 4);
    put(out, thousandths(d->memory_percent), 4);
    put(out, 0, 2);
    put(out, d->frequency_hz, 2);
    put(out, d->profile.len, 4);
    put(out, d->identity, 8);
    put(out, d->subject.pid, 4);
    put_word(out, str_sub(d->subject.language, 0, NAME_MAX_BYTES));
    put_word(out, str_sub(d->subject.runtime, 0, TYPE_MAX_BYTES));
    struct str entry = str_sub(d->subject.entry, 0, ENTRY_MAX_BYTES);
    put(out, entry.len, 2);
    buf_str(out, entry);
    put_word(out, str_of(backend));
    put_word(out, d->format);
    put(out, d->more_count, 1);
    for (size_t i = 0; i < d->more_count; i++) {
        put_word(out, str_sub(d->more[i].type, 0, TYPE_MAX_BYTES));
        put(out, d->more[i].profile.len, 4);
    }
    buf_str(out, d->profile);
    for (size_t i = 0; i < d->more_count; i++) {
        buf_str(out, d->more[i].profile);
    }
    if (out->failed) {
        return err_set(err, ERR_MEMORY, 0, "no memory for a spool file of %zu bytes",
                       d->profile.len);
    }
    uint32_t crc = crc_of(out->ptr + from, out->len - from);
    for (unsigned i = 0; i < 4; i++) {
        out->ptr[from + CRC_AT + i] = (char)(crc >> 8 * i & 0xff);
    }
    return true;
}

static bool damaged(struct err *err)
{
    return err_set(err, ERR_MALFORMED, 0, "a file of the spool is cut or damaged");
}

static struct str take_word(struct cursor *c)
{
    size_t len = cursor_u8(c);
    const void *ptr = cursor_take(c, len);
    return ptr == NULL ? STR("") : (struct str){ptr, len};
}

/* Names and lengths of the further profiles; all that is behind them in sum. */
static size_t take_more(struct cursor *c, struct delivery *d)
{
    size_t sum = 0;
    bool ok = true;
    d->more_count = cursor_u8(c);
    for (size_t i = 0; i < d->more_count && i < DELIVERY_MORE_MAX; i++) {
        d->more[i].type = take_word(c);
        d->more[i].profile.len = cursor_u32(c);
        sum += d->more[i].profile.len;
        ok = ok && d->more[i].type.len <= TYPE_MAX_BYTES;
    }
    return ok && d->more_count <= DELIVERY_MORE_MAX ? sum : SIZE_MAX / 2; /* no file is as large */
}

bool spool_read(struct str file, struct delivery *out, struct str *backend, uint64_t *address_hash,
                struct err *err)
{
    struct cursor c = cursor_of(file.ptr, file.len);
    const void *start = cursor_take(&c, sizeof magic - 1);
    if (start == NULL || memcmp(start, magic, sizeof magic - 1) != 0) {
        return err_set(err, ERR_MALFORMED, 0, "it is no file of a spool");
    }
    uint16_t version = cursor_u16(&c);
    if (version > VERSION) {
        return err_set(err, ERR_UNSUPPORTED, 0, "a spool file of version %u, by a later pillion",
                       version);
    }
    struct delivery d = {0};
    uint16_t zero = cursor_u16(&c);
    d.is_raw = version == 1; /* it came before the rules of back ends */
    uint32_t crc = cursor_u32(&c);
    uint64_t hash = cursor_u64(&c);
    d.start_wall_ns = cursor_u64(&c);
    d.end_wall_ns = cursor_u64(&c);
    d.sequence = cursor_u64(&c);
    d.cpu_percent = percent_of(cursor_u32(&c));
    d.memory_percent = percent_of(cursor_u32(&c));
    cursor_skip(&c, 2);
    d.frequency_hz = cursor_u16(&c);
    uint32_t len = cursor_u32(&c);
    d.identity = hash_u64(d.start_wall_ns ^ hash_u64(d.sequence ^ hash));
    if (version >= 3) {
        d.identity = cursor_u64(&c);
        d.subject.pid = cursor_u32(&c);
        d.subject.language = take_word(&c);
        d.subject.runtime = take_word(&c);
    }
    if (version >= 4) {
        size_t bytes = cursor_u16(&c);
        const void *entry = cursor_take(&c, bytes);
        d.subject.entry = entry == NULL ? STR("") : (struct str){entry, bytes};
    }
    bool fits = d.subject.language.len <= NAME_MAX_BYTES && d.subject.runtime.len <= TYPE_MAX_BYTES &&
                d.subject.entry.len <= ENTRY_MAX_BYTES;
    struct str name = take_word(&c);
    d.format = take_word(&c);
    size_t more = d.is_raw ? 0 : take_more(&c, &d);
    if (c.short_read || c.len != len + more || crc != crc_of(file.ptr, file.len) || !is_word(name) ||
        !is_word(d.format) || !fits || version == 0 || zero != 0) {
        return damaged(err);
    }
    d.profile = (struct str){cursor_take(&c, len), len};
    for (size_t i = 0; i < d.more_count; i++) {
        d.more[i].profile.ptr = cursor_take(&c, d.more[i].profile.len);
    }
    *out = d;
    *backend = name;
    *address_hash = hash;
    return true;
}
