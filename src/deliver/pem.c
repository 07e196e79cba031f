/*
 * Texts with certificates and keys in them: blocks between two lines of dashes, base64 inside. What stands outside the
 * blocks is passed over. Whether the last line ends does not matter; a head as old files have it is skipped.
 */
#include "deliver/pem.h"

static const struct str dashes = {"-----", 5};

/* What stands between "-----WORD " and "-----"; empty when the line is none of these. */
static struct str label_of(struct str line, struct str word)
{
    line = str_trim(line);
    if (!str_starts(line, dashes) || !str_ends(line, dashes) || line.len < 2 * dashes.len) {
        return (struct str){NULL, 0};
    }
    struct str inner = str_sub(line, dashes.len, line.len - 2 * dashes.len);
    return str_starts(inner, word) ? str_sub(inner, word.len, inner.len) : (struct str){NULL, 0};
}

/* Lines with a colon, and an empty one behind them, stand before the base64 of the old form. */
static bool skip_head(struct str *text, bool *encrypted)
{
    struct str rest = *text, line = str_cut(&rest, '\n');
    if (str_find(line, ':') == line.len) {
        return false;
    }
    *encrypted |= str_starts(line, STR("Proc-Type:")) && str_ends(str_trim(line), STR("ENCRYPTED"));
    *text = rest;
    return true;
}

bool pem_next(struct str *text, struct pem_block *out)
{
    while (text->len > 0) {
        struct str label = label_of(str_cut(text, '\n'), STR("BEGIN "));
        if (label.len == 0) {
            continue;
        }
        *out = (struct pem_block){.label = label};
        while (skip_head(text, &out->encrypted)) {
        }
        const char *start = text->ptr;
        while (text->len > 0) {
            struct str line = str_cut(text, '\n');
            if (str_eq(label_of(line, STR("END ")), label)) {
                out->base64 = (struct str){start, (size_t)(line.ptr - start)};
                return true;
            }
        }
    }
    return false;
}

static int digit_of(char byte)
{
    if (byte >= 'A' && byte <= 'Z') {
        return byte - 'A';
    }
    if (byte >= 'a' && byte <= 'z') {
        return byte - 'a' + 26;
    }
    if (byte >= '0' && byte <= '9') {
        return byte - '0' + 52;
    }
    return byte == '+' ? 62 : byte == '/' ? 63 : -1;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

size_t base64_decode(struct str text, unsigned char *out, size_t room)
{
    uint32_t bits = 0;
    unsigned digits = 0, padding = 0;
    size_t used = 0;
    for (size_t i = 0; i < text.len; i++) {
        int digit = digit_of(text.ptr[i]);
        if (is_blank(text.ptr[i])) {
            continue;
        }
        padding += text.ptr[i] == '=';
        if (digit < 0 ? text.ptr[i] != '=' : padding > 0) {
            return 0;
        }
        bits = bits << 6 | (digit < 0 ? 0u : (unsigned)digit);
        if (++digits % 4 != 0) {
            continue;
        }
        unsigned bytes = padding < 3 ? 3 - padding : 0;
        if (bytes == 0 || used + bytes > room) {
            return 0;
        }
        for (unsigned b = 0; b < bytes; b++) {
            out[used++] = (unsigned char)(bits >> (16 - 8 * b));
        }
    }
    return digits % 4 == 0 ? used : 0;
}

size_t pem_decode(const struct pem_block *block, unsigned char *out)
{
    return base64_decode(block->base64, out, pem_room(block));
}
