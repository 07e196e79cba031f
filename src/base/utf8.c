/* Text as characters: what is well-formed is taken one by one, anything else byte by byte as U+FFFD. Two ways out: for
 * formats, which want UTF-8, and for people, who want to see what a terminal or a page would do something with, or show
 * nothing of. How wide a text is goes by ranges of characters: a few dozen that matter, not all that Unicode has. */
#include "base/utf8.h"

enum { REPLACEMENT = 0xfffd };

/* How many bytes a sequence has by its first byte, 0 when none begins so. */
static unsigned length_of(unsigned char first)
{
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xc2) {
        return 0;
    }
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* The whole sequence at `bytes`, or REPLACEMENT with *len 1. */
static uint32_t decode(const unsigned char *bytes, size_t available, unsigned *len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    *len = length_of(bytes[0]);
    if (*len == 0 || *len > available) {
        *len = 1;
        return REPLACEMENT;
    }
    uint32_t value = bytes[0] & first_bits[*len];
    for (unsigned i = 1; i < *len; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            *len = 1;
            return REPLACEMENT;
        }
        value = value << 6 | (bytes[i] & 0x3f);
    }
    if (value < least[*len] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
        *len = 1;
        return REPLACEMENT;
    }
    return value;
}

uint32_t utf8_take(struct str *text)
{
    unsigned len;
    uint32_t character = decode((const unsigned char *)text->ptr, text->len, &len);
    text->ptr += len;
    text->len -= len;
    return character;
}

bool utf8_valid(struct str text)
{
    while (text.len > 0) {
        unsigned len;
        uint32_t character = decode((const unsigned char *)text.ptr, text.len, &len);
        if (character == REPLACEMENT && len == 1) {
            return false;
        }
        text.ptr += len;
        text.len -= len;
    }
    return true;
}

void utf8_put(struct buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_byte(out, (char)c);
    } else if (c < 0x800) {
        buf_add(out, (char[]){(char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f))}, 2);
    } else if (c < 0x10000) {
        buf_add(out,
                (char[]){(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 0x3f)),
                         (char)(0x80 | (c & 0x3f))},
                3);
    } else {
        buf_add(out,
                (char[]){(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 0x3f)),
                         (char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f))},
                4);
    }
}

void utf8_add(struct buf *out, struct str text)
{
    if (utf8_valid(text)) {
        buf_str(out, text);
        return;
    }
    while (text.len > 0) {
        utf8_put(out, utf8_take(&text));
    }
}

bool utf8_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f);
}

/* flame.js has the same list. */
bool utf8_is_invisible(uint32_t c)
{
    return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
           c == 0x061c || c == 0x00ad || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb);
}

void utf8_visible(struct buf *out, struct str text)
{
    while (text.len > 0) {
        const char *from = text.ptr;
        uint32_t c = utf8_take(&text);
        size_t used = (size_t)(text.ptr - from);
        if ((c == REPLACEMENT && used == 1) || utf8_is_control(c)) {
            buf_printf(out, "\\x%02x", used == 1 ? (unsigned char)*from : (unsigned)c);
        } else if (utf8_is_invisible(c)) {
            buf_printf(out, "\\u%04x", (unsigned)c);
        } else {
            buf_add(out, from, used);
        }
    }
}

/* ---- on a terminal ---- */

struct range {
    uint32_t first, last;
};

static bool is_in(const struct range *ranges, size_t count, uint32_t c)
{
    for (size_t i = 0; i < count; i++) {
        if (c >= ranges[i].first && c <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

#define IS_IN(ranges, c) is_in(ranges, sizeof(ranges) / sizeof(ranges)[0], c)

static bool acts(uint32_t c)
{
    return utf8_is_control(c) || utf8_is_invisible(c) || (c >= 0xe0000 && c <= 0xe0fff);
}

static size_t columns_of(uint32_t c)
{
    static const struct range none[] = {{0x300, 0x36f}, {0x483, 0x489}, {0x591, 0x5bd}, {0x610, 0x61a}, {0x64b, 0x65f},
                                        {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f},
                                        {0xfe20, 0xfe2f}};
    static const struct range two[] = {{0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0xa4cf}, {0xac00, 0xd7a3},
                                       {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6},
                                       {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff},
                                       {0x20000, 0x3fffd}};
    if (c < 0x300) {
        return 1;
    }
    return IS_IN(none, c) ? 0 : IS_IN(two, c) ? 2 : 1;
}

size_t utf8_add_shown(struct buf *out, struct str text, size_t columns)
{
    size_t used = 0;
    while (text.len > 0) {
        struct str taken = text;
        uint32_t c = utf8_take(&text);
        taken.len -= text.len;
        bool escaped = acts(c) || (c == REPLACEMENT && taken.len == 1);
        size_t wide = escaped ? 4 * taken.len : columns_of(c);
        if (used + wide > columns) {
            break;
        }
        for (size_t i = 0; escaped && i < taken.len; i++) {
            buf_printf(out, "\\x%02x", (unsigned char)taken.ptr[i]);
        }
        buf_str(out, escaped ? STR("") : taken);
        used += wide;
    }
    return used;
}
