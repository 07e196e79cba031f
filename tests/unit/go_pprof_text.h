/*
 * A gzip'd pprof as text, for tests: read with the wire format alone, and held to what google/pprof's CheckValid asks
 * of a file (numbers in range, ids that are there once, as many values as types).
 *
 * One line a mapping, "map START-LIMIT FILE BUILD", then one a sample:
 *     VALUE,VALUE FRAME FRAME key=text key=number/unit
 * A frame is function@file:line, those inlined at one address joined by "<"; leaf first.
 */
#ifndef GO_PPROF_TEXT_H
#define GO_PPROF_TEXT_H

#include "base/gzip.h"
#include "base/protobuf.h"
#include "base/vec.h"
#include "test.h"

struct shown_pprof {
    struct buf plain, text;
    VEC(struct str) strings, mappings, locations, functions, samples; /* mappings … by id, the first is none */
    size_t types;
    uint64_t time_ns, duration_ns, period, default_type, comment;
};

static struct str shown_string(struct shown_pprof *s, uint64_t number)
{
    CHECK(number < s->strings.len);
    return number < s->strings.len ? s->strings.at[number] : STR("?");
}

static uint64_t shown_number(struct str message, unsigned field)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    uint64_t found = 0;
    while (protobuf_next(&c, &f)) {
        found = f.number == field ? f.value : found;
    }
    CHECK(!c.short_read);
    return found;
}

/* The message of this id among those of a kind, which count from 1 without gaps. */
static struct str shown_message(const struct str *at, size_t len, uint64_t id)
{
    struct str found = {NULL, 0};
    size_t times = 0;
    for (size_t i = 0; i < len; i++) {
        if (shown_number(at[i], 1) == id) {
            found = at[i];
            times++;
        }
    }
    CHECK_INT(times, 1);
    return found;
}

static void show_line(struct shown_pprof *s, struct str line)
{
    struct str function = shown_message(s->functions.at, s->functions.len, shown_number(line, 1));
    CHECK_INT(shown_number(function, 2), shown_number(function, 3));
    buf_str(&s->text, shown_string(s, shown_number(function, 2)));
    buf_byte(&s->text, '@');
    buf_str(&s->text, shown_string(s, shown_number(function, 4)));
    buf_printf(&s->text, ":%llu", (unsigned long long)shown_number(line, 2));
}

static void show_location(struct shown_pprof *s, uint64_t id)
{
    struct str message = shown_message(s->locations.at, s->locations.len, id);
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    size_t lines = 0;
    buf_byte(&s->text, ' ');
    while (protobuf_next(&c, &f)) {
        if (f.number == 4) {
            buf_text(&s->text, lines++ > 0 ? "<" : "");
            show_line(s, f.bytes);
        }
    }
    if (lines == 0) {
        buf_printf(&s->text, "0x%llx", (unsigned long long)shown_number(message, 3));
    }
    if (shown_number(message, 2) != 0) {
        buf_printf(&s->text, "[%llu]", (unsigned long long)shown_number(message, 2));
    }
}

static void show_label(struct shown_pprof *s, struct str label)
{
    buf_byte(&s->text, ' ');
    buf_str(&s->text, shown_string(s, shown_number(label, 1)));
    buf_byte(&s->text, '=');
    if (shown_number(label, 2) != 0) {
        buf_str(&s->text, shown_string(s, shown_number(label, 2)));
        return;
    }
    buf_printf(&s->text, "%lld/", (long long)shown_number(label, 3));
    buf_str(&s->text, shown_string(s, shown_number(label, 4)));
}

static void show_numbers(struct shown_pprof *s, struct str message, unsigned field)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    size_t values = 0;
    bool damaged = false;
    while (protobuf_next(&c, &f)) {
        uint64_t value;
        for (size_t at = 0; f.number == field && field == 1 && protobuf_packed_next(&f, &at, &value, &damaged);) {
            show_location(s, value);
        }
        for (size_t at = 0; f.number == field && field == 2 && protobuf_packed_next(&f, &at, &value, &damaged);) {
            buf_printf(&s->text, "%s%lld", values++ > 0 ? "," : "", (long long)value);
        }
        if (f.number == field && field == 3) {
            show_label(s, f.bytes);
        }
    }
    CHECK(!damaged && !c.short_read);
    CHECK(field != 2 || values == s->types);
}

static void collect_field(struct shown_pprof *s, const struct protobuf_field *f)
{
    struct str *to = f->number == 2   ? vec_push(&s->samples)
                     : f->number == 3 ? vec_push(&s->mappings)
                     : f->number == 4 ? vec_push(&s->locations)
                     : f->number == 5 ? vec_push(&s->functions)
                     : f->number == 6 ? vec_push(&s->strings)
                                      : NULL;
    if (to != NULL) {
        *to = f->bytes;
    }
    s->types += f->number == 1;
    s->time_ns = f->number == 9 ? f->value : s->time_ns;
    s->duration_ns = f->number == 10 ? f->value : s->duration_ns;
    s->period = f->number == 12 ? f->value : s->period;
    s->comment = f->number == 13 ? f->value : s->comment;
    s->default_type = f->number == 14 ? f->value : s->default_type;
}

static void show_all(struct shown_pprof *s)
{
    vec_each(&s->mappings, m)
    {
        CHECK_INT(shown_number(*m, 1), m_at + 1);
        CHECK_INT(shown_number(*m, 7), 1);
        buf_printf(&s->text, "map %llx-%llx ", (unsigned long long)shown_number(*m, 2),
                   (unsigned long long)shown_number(*m, 3));
        buf_str(&s->text, shown_string(s, shown_number(*m, 5)));
        buf_byte(&s->text, ' ');
        buf_str(&s->text, shown_string(s, shown_number(*m, 6)));
        buf_byte(&s->text, '\n');
    }
    vec_each(&s->samples, sample)
    {
        show_numbers(s, *sample, 2);
        show_numbers(s, *sample, 1);
        show_numbers(s, *sample, 3);
        buf_byte(&s->text, '\n');
    }
}

/* The text; valid until pprof_unshow. */
static const char *pprof_show(struct shown_pprof *s, const struct buf *file)
{
    struct protobuf_field f;
    *s = (struct shown_pprof){.types = 0};
    buf_init(&s->plain, 256 << 20);
    buf_init(&s->text, 16 << 20);
    CHECK(gzip_inflate(file->ptr, file->len, &s->plain, NULL));
    struct cursor c = cursor_of(s->plain.ptr, s->plain.len);
    while (protobuf_next(&c, &f)) {
        CHECK(f.number == 6 || s->strings.len == 0); /* texts are last */
        collect_field(s, &f);
    }
    CHECK(!c.short_read);
    CHECK(s->strings.len > 0 && s->strings.at[0].len == 0);
    show_all(s);
    return buf_cstr(&s->text);
}

static void pprof_unshow(struct shown_pprof *s)
{
    buf_release(&s->plain);
    buf_release(&s->text);
    vec_release(&s->strings);
    vec_release(&s->mappings);
    vec_release(&s->locations);
    vec_release(&s->functions);
    vec_release(&s->samples);
}

#endif
