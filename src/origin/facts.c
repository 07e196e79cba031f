#include "origin/facts.h"

#include "base/json.h"
#include "base/utf8.h"

void facts_init(struct facts *facts, struct arena *texts)
{
    *facts = (struct facts){.texts = texts};
}

/* It may become a header's line or a label. */
static bool is_fit(struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if (c < ' ' || c == 0x7f) {
            return false;
        }
    }
    return value.len > 0 && value.len <= FACT_VALUE_MAX && utf8_valid(value);
}

void facts_add(struct facts *facts, const char *name, struct str value)
{
    value = str_trim(value);
    if (facts->count == FACTS_MAX || !is_fit(value) || facts_get(facts, name).len > 0) {
        return;
    }
    struct str kept = arena_copy(facts->texts, value);
    if (kept.ptr != NULL) {
        facts->at[facts->count++] = (struct place_fact){str_of(name), kept};
    }
}

void facts_add_member(struct facts *facts, const char *name, struct str object, const char *key)
{
    struct str value = json_member(object, key);
    struct buf text;
    uint64_t number;
    if (json_u64_of(value, &number)) {
        facts_add(facts, name, value);
        return;
    }
    buf_init(&text, FACT_VALUE_MAX);
    if (json_text_of(value, &text) && !text.failed) {
        facts_add(facts, name, buf_slice(&text));
    }
    buf_release(&text);
}

struct str facts_get(const struct facts *facts, const char *name)
{
    for (size_t i = 0; i < facts->count; i++) {
        if (str_eq(facts->at[i].name, str_of(name))) {
            return facts->at[i].value;
        }
    }
    return STR("");
}

struct str facts_line(struct str body)
{
    body = str_trim(body);
    for (size_t i = 0; i < body.len; i++) {
        unsigned char c = (unsigned char)body.ptr[i];
        if (c <= ' ' || c >= 0x7f || strchr("<>{}", c) != NULL) {
            return STR("");
        }
    }
    return body;
}
