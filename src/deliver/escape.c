#include "deliver/escape.h"

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void escape_url(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (is_unreserved(text.ptr[i])) {
            buf_byte(out, text.ptr[i]);
        } else {
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)text.ptr[i]);
        }
    }
}

void escape_base64(struct buf *out, struct str bytes)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.len; i += 3) {
        uint32_t group = 0;
        for (size_t k = 0; k < 3; k++) {
            group = group << 8 | (i + k < bytes.len ? (unsigned char)bytes.ptr[i + k] : 0);
        }
        for (size_t k = 0; k < 4; k++) {
            buf_byte(out, k <= bytes.len - i ? letters[group >> (18 - 6 * k) & 63] : '=');
        }
    }
}

bool escape_is_header(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < ' ' || c == 0x7f) {
            return false;
        }
    }
    return true;
}
