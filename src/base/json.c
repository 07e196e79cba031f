/* A JSON reader that works on slices of the text, without a tree and without allocation, and the
 * quoting that a writer needs. One pass checks the whole document, with bounded depth; all other
 * functions rely on that. */
#include "base/json.h"

#include "base/ascii.h"
#include "base/utf8.h"

static void escape(struct buf *out, uint32_t c)
{
    if (c == '"' || c == '\\') {
        buf_byte(out, '\\');
        buf_byte(out, (char)c);
    } else if (c >= 0x20 && c < 0x7f) {
        buf_byte(out, (char)c);
    } else if (c == '\n') {
        buf_text(out, "\\n");
    } else if (c < 0x10000) {
        buf_printf(out, "\\u%04x", (unsigned)c);
    } else {
        unsigned high = 0xd800 + ((c - 0x10000) >> 10), low = 0xdc00 + ((c - 0x10000) & 0x3ff);
        buf_printf(out, "\\u%04x\\u%04x", high, low);
    }
}

static bool is_plain(char byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

void json_escaped(struct buf *out, struct str text)
{
    while (text.len > 0) {
        size_t plain = 0; /* most of a profile's text is: a run is copied at once */
        while (plain < text.len && is_plain(text.ptr[plain])) {
            plain++;
        }
        buf_add(out, text.ptr, plain);
        text = str_sub(text, plain, text.len);
        if (text.len > 0) {
            escape(out, utf8_take(&text));
        }
    }
}

void json_text(struct buf *out, struct str text)
{
    buf_byte(out, '"');
    json_escaped(out, text);
    buf_byte(out, '"');
}

/* Everything below walks a slice; a byte past its end reads as 0, which begins no token. */
static char peek(struct str text)
{
    return text.len > 0 ? text.ptr[0] : '\0';
}

static void skip(struct str *text, size_t len)
{
    *text = str_sub(*text, len, text->len);
}

static void skip_blanks(struct str *text)
{
    size_t len = 0;
    while (len < text->len && strchr(" \t\r\n", text->ptr[len]) != NULL && text->ptr[len] != 0) {
        len++;
    }
    skip(text, len);
}

static bool accept(struct str *text, char byte)
{
    skip_blanks(text);
    if (peek(*text) != byte) {
        return false;
    }
    skip(text, 1);
    return true;
}

static bool read_hex4(struct str text, uint32_t *out)
{
    uint64_t value;
    if (text.len < 4 || !str_hex(str_sub(text, 0, 4), &value)) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

/* A string with its quotes: its length, or 0 when it is none. */
static size_t string_length(struct str text)
{
    if (peek(text) != '"') {
        return 0;
    }
    for (size_t i = 1; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        uint32_t code;
        if (c == '"') {
            return i + 1;
        }
        if (c < 0x20) {
            return 0;
        }
        if (c == '\\') {
            i++;
            char kind = i < text.len ? text.ptr[i] : '\0';
            if (kind == 'u' ? !read_hex4(str_sub(text, i + 1, 4), &code)
                            : kind == '\0' || strchr("\"\\/bfnrt", kind) == NULL) {
                return 0;
            }
        }
    }
    return 0;
}

static size_t digits(struct str text, size_t at)
{
    size_t len = 0;
    while (at + len < text.len && ascii_is_digit(text.ptr[at + len])) {
        len++;
    }
    return len;
}

static size_t number_length(struct str text)
{
    size_t at = peek(text) == '-';
    size_t whole = digits(text, at);
    if (whole == 0 || (whole > 1 && text.ptr[at] == '0')) {
        return 0;
    }
    at += whole;
    if (at < text.len && text.ptr[at] == '.') {
        size_t part = digits(text, at + 1);
        if (part == 0) {
            return 0;
        }
        at += 1 + part;
    }
    if (at < text.len && (text.ptr[at] == 'e' || text.ptr[at] == 'E')) {
        at++;
        at += at < text.len && (text.ptr[at] == '+' || text.ptr[at] == '-');
        size_t part = digits(text, at);
        if (part == 0) {
            return 0;
        }
        at += part;
    }
    return at;
}

static size_t scalar_length(struct str text)
{
    static const struct str words[] = {STR("true"), STR("false"), STR("null")};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (str_starts(text, words[i])) {
            return words[i].len;
        }
    }
    return peek(text) == '"' ? string_length(text) : number_length(text);
}

static bool check_value(struct str *text, unsigned depth);

static bool check_members(struct str *text, char close, unsigned depth)
{
    if (accept(text, close)) {
        return true;
    }
    do {
        if (close == '}') {
            skip_blanks(text);
            size_t key = string_length(*text);
            skip(text, key);
            if (key == 0 || !accept(text, ':')) {
                return false;
            }
        }
        if (!check_value(text, depth)) {
            return false;
        }
    } while (accept(text, ','));
    return accept(text, close);
}

/* Recursion is bounded by JSON_DEPTH_MAX. */
static bool check_value(struct str *text, unsigned depth)
{
    skip_blanks(text);
    char first = peek(*text);
    if (first == '{' || first == '[') {
        skip(text, 1);
        return depth > 0 && check_members(text, first == '{' ? '}' : ']', depth - 1);
    }
    size_t len = scalar_length(*text);
    skip(text, len);
    return len > 0;
}

bool json_valid(struct str document)
{
    if (!check_value(&document, JSON_DEPTH_MAX)) {
        return false;
    }
    skip_blanks(&document);
    return document.len == 0;
}

/* The length of the value at the front, which is known to be valid. */
static size_t value_length(struct str text)
{
    unsigned depth = 0;
    size_t at = 0;
    do {
        struct str rest = str_sub(text, at, text.len);
        char c = peek(rest);
        if (c == '{' || c == '[') {
            depth++;
            at++;
        } else if (c == '}' || c == ']') {
            depth--;
            at++;
        } else {
            size_t len = depth == 0 || c == '"' ? scalar_length(rest) : 1;
            if (len == 0 || rest.len == 0) {
                return 0;
            }
            at += len;
        }
    } while (depth > 0);
    return at;
}

bool json_next(struct str *rest, struct str *key, struct str *value)
{
    skip_blanks(rest);
    char first = peek(*rest);
    if (first != '{' && first != '[' && first != ',') {
        return false;
    }
    /* the opening bracket of the first step tells apart array and object; later a key does */
    skip(rest, 1);
    skip_blanks(rest);
    if (key != NULL) {
        size_t len = string_length(*rest);
        *key = str_sub(*rest, 0, len);
        skip(rest, len);
        if (len == 0 || !accept(rest, ':')) {
            return false;
        }
        skip_blanks(rest);
    }
    size_t len = value_length(*rest);
    *value = str_sub(*rest, 0, len);
    skip(rest, len);
    return len > 0;
}

struct str json_member(struct str object, const char *key)
{
    struct str wanted = str_of(key), name, value;
    struct str rest = peek(object) == '{' ? object : (struct str){NULL, 0};
    while (json_next(&rest, &name, &value)) {
        if (str_eq(str_sub(name, 1, name.len - 2), wanted)) {
            return value;
        }
    }
    return (struct str){NULL, 0};
}

/* The character after a backslash; takes the second half of a surrogate pair as well. */
static uint32_t unescape(struct str *text)
{
    char kind = peek(*text);
    skip(text, 1);
    if (kind != 'u') {
        const char *at = strchr("b\bf\fn\nr\rt\t", kind);
        return at != NULL && kind >= 'a' ? (uint32_t)(unsigned char)at[1] : (uint32_t)kind;
    }
    uint32_t high, low;
    if (!read_hex4(*text, &high)) {
        return 0xfffd;
    }
    skip(text, 4);
    if (high < 0xd800 || high > 0xdfff) {
        return high;
    }
    if (high < 0xdc00 && str_starts(*text, STR("\\u")) && read_hex4(str_sub(*text, 2, 4), &low) &&
        low >= 0xdc00 && low <= 0xdfff) {
        skip(text, 6);
        return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    }
    return 0xfffd;
}

bool json_text_of(struct str value, struct buf *out)
{
    if (value.len < 2 || string_length(value) != value.len) {
        return false;
    }
    struct str text = str_sub(value, 1, value.len - 2);
    while (text.len > 0) {
        if (peek(text) != '\\') {
            utf8_put(out, utf8_take(&text));
            continue;
        }
        skip(&text, 1);
        utf8_put(out, unescape(&text));
    }
    return true;
}

bool json_u64_of(struct str value, uint64_t *out)
{
    return str_u64(value, out);
}

bool json_bool_of(struct str value, bool *out)
{
    bool yes = str_eq(value, STR("true"));
    if (!yes && !str_eq(value, STR("false"))) {
        return false;
    }
    *out = yes;
    return true;
}
