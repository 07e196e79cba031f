/*
 * Tags from options and variables: split at commas or blanks, each a name and a value. What is none, and what is one
 * too many, is left out, and the caller gets a sentence for each reason.
 */
#include "capture/upload/tags.h"

enum { TAGS_MAX = sizeof((struct origin *)0)->tags / sizeof(struct fact), SHOWN_BYTES = 100 };

/* Those that are no tags, or too many: the first, and how many. */
struct left {
    struct str first;
    size_t count;
};

struct reading {
    struct origin *facts;
    struct left no_pairs, too_many;
};

static void leave(struct left *left, struct str text)
{
    left->first = left->count++ == 0 ? text : left->first;
}

static void add(struct reading *r, struct str whole, struct str name, struct str value)
{
    name = str_trim(name);
    value = str_trim(value);
    if (name.len == 0 || value.len == 0) {
        leave(&r->no_pairs, whole);
    } else if (r->facts->tag_count == TAGS_MAX) {
        leave(&r->too_many, whole);
    } else {
        r->facts->tags[r->facts->tag_count++] = (struct fact){name, value};
    }
}

static size_t colon_or_equals(struct str text)
{
    size_t colon = str_find(text, ':'), equals = str_find(text, '=');
    return colon < equals ? colon : equals;
}

/* Datadog's tracers take blanks, too, where there is no comma: "team:pay region:eu". A value with a
 * blank in it is told by what is no tag of its own. */
static char separator_of(struct str text)
{
    if (str_find(text, ',') < text.len) {
        return ',';
    }
    for (struct str rest = str_trim(text); rest.len > 0;) {
        struct str word = str_cut(&rest, ' ');
        if (word.len > 0 && colon_or_equals(word) == word.len) {
            return ',';
        }
    }
    return ' ';
}

static void add_option(struct reading *r, const char *name, const char *value)
{
    if (str_trim(str_of(value)).len > 0) {
        add(r, str_of(value), str_of(name), str_of(value));
    }
}

void tags_show(struct buf *out, struct str text)
{
    struct str shown = str_sub(text, 0, SHOWN_BYTES);
    for (size_t i = 0; i < shown.len; i++) {
        buf_byte(out, (unsigned char)shown.ptr[i] < ' ' ? '?' : shown.ptr[i]);
    }
    buf_text(out, shown.len < text.len ? "..." : "");
}

static void put_left(struct buf *out, const struct left *left, const char *why)
{
    if (left->count == 0) {
        return;
    }
    buf_text(out, "--tags: \"");
    tags_show(out, left->first);
    if (left->count > 1) {
        buf_printf(out, "\" and %zu more are", left->count - 1);
    } else {
        buf_text(out, "\" is");
    }
    buf_printf(out, " not sent: %s\n", why);
}

void tags_add(struct origin *facts, const struct upload_settings *upload, struct buf *left_out)
{
    struct reading r = {.facts = facts};
    struct str rest = str_of(upload->tags);
    char separator = separator_of(rest);
    add_option(&r, "env", upload->environment);
    add_option(&r, "version", upload->service_version);
    while (rest.len > 0) {
        struct str whole = str_trim(str_cut(&rest, separator));
        struct str name = str_sub(whole, 0, colon_or_equals(whole));
        if (whole.len > 0) {
            add(&r, whole, name, str_sub(whole, name.len + 1, whole.len));
        }
    }
    put_left(left_out, &r.no_pairs, "a tag is KEY:VALUE, and neither of them is empty");
    _Static_assert(TAGS_MAX == 32, "as the sentence says");
    put_left(left_out, &r.too_many, "a run has at most 32 tags");
}
