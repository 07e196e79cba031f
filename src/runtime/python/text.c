/* Reads str and bytes objects of every version's layout from a process's memory and turns them into UTF-8 of a
 * limited length. What is no such object is refused; characters that are none are replaced.
 * Where a str's parts are is told by its head, so reading takes two steps. */
#include "runtime/python/private.h"
#include "base/utf8.h"

/*
 * From 3.3 on a str holds its characters in 1, 2 or 4 bytes each, as its widest one needs (PEP
 * 393): ASCII and other "compact" ones in the object itself, the rest, which only subclasses of str
 * have, behind a pointer. A name in 2.7 is bytes.
 */
enum {
    REPLACEMENT = 0xfffd,
    UTF8_MAX = 4, /* bytes of a character */
    HELD_MAX = 1 << 30,
};

static uint64_t number_at(const unsigned char *head, size_t len, uint32_t at, size_t bytes)
{
    uint64_t value = 0;
    if (at <= len && bytes <= len - at) {
        memcpy(&value, head + at, bytes);
    }
    return value;
}

static bool set_count(struct python_text *text, uint64_t characters)
{
    bool cut = characters > RUNTIME_NAME_MAX;
    text->bytes = (cut ? RUNTIME_NAME_MAX : (uint32_t)characters) * text->width;
    return characters <= HELD_MAX;
}

static bool find_bytes(const struct python_layout *layout, const unsigned char *head, size_t len,
                       struct python_text *out)
{
    *out = (struct python_text){.offset = layout->object.bytes_data, .width = 1, .is_bytes = true};
    return len >= layout->object.bytes_data &&
           set_count(out, number_at(head, len, layout->object.size, sizeof(uint64_t)));
}

bool python_text_find(const struct python_layout *layout, const unsigned char *head, size_t len,
                      struct python_text *out)
{
    if (layout->version < PYTHON_VERSION(3, 0)) {
        return find_bytes(layout, head, len, out);
    }
    uint32_t state = (uint32_t)number_at(head, len, layout->object.str_state, sizeof state);
    uint32_t kind = (state & layout->object.kind_mask) >> layout->object.kind_shift;
    bool is_ascii = (state & layout->object.ascii_bit) != 0;
    *out = (struct python_text){.width = (uint8_t)kind};
    if ((kind != 1 && kind != 2 && kind != 4) || (is_ascii && kind != 1)) {
        return false; /* no str, or one of 3.2's kind that nothing has looked at yet */
    }
    if ((state & layout->object.compact_bit) != 0) {
        out->offset = is_ascii ? layout->object.str_ascii : layout->object.str_compact;
    } else {
        out->pointer = number_at(head, len, layout->object.str_pointer, sizeof(uint64_t));
    }
    return (out->offset != 0 || out->pointer != 0) &&
           set_count(out, number_at(head, len, layout->object.str_length, sizeof(uint64_t)));
}

static uint32_t character_at(const struct python_text *text, const unsigned char *data, size_t i)
{
    uint32_t c = (uint32_t)number_at(data, text->bytes, (uint32_t)i * text->width, text->width);
    return c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? REPLACEMENT : c;
}

/* Without the beginning of a character that was cut off with the text. */
static struct str whole_characters(struct str text)
{
    size_t len = text.len;
    while (len > 0 && text.len - len < UTF8_MAX && ((unsigned char)text.ptr[len - 1] & 0xc0) == 0x80) {
        len--;
    }
    bool leads = len > 0 && (unsigned char)text.ptr[len - 1] >= 0xc0;
    return leads && !utf8_valid(str_sub(text, len - 1, text.len)) ? str_sub(text, 0, len - 1) : text;
}

/* The bytes when they are UTF-8. */
static bool add_utf8(const struct python_text *text, const unsigned char *data, struct buf *out)
{
    struct str bytes = {(const char *)data, text->bytes};
    bytes = bytes.len < RUNTIME_NAME_MAX ? bytes : whole_characters(bytes);
    if (!utf8_valid(bytes)) {
        return false;
    }
    buf_str(out, bytes);
    return true;
}

static size_t utf8_bytes(uint32_t c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

void python_text_add(const struct python_text *text, const unsigned char *data, struct buf *out)
{
    if (text->is_bytes && add_utf8(text, data, out)) {
        return;
    }
    size_t start = out->len;
    for (size_t i = 0; i < text->bytes / text->width; i++) {
        uint32_t c = character_at(text, data, i);
        if (out->len - start + utf8_bytes(c) > RUNTIME_NAME_MAX) {
            return;
        }
        utf8_put(out, c);
    }
}
