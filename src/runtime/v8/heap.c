/* Objects of V8's heap: a word is a small number (its lower half 0) or an object's address + 1. An object begins with
 * its map, which has the instance type. Strings are sequences of one or two bytes, or stand for others: for a part of
 * one, for two one behind the other, for one that is kept outside of the heap. */
#include "runtime/v8/private.h"

#include "base/utf8.h"

enum {
    SHAPE_MASK = 7, SHAPE_SEQ = 0, SHAPE_CONS = 1, SHAPE_EXTERNAL = 2, SHAPE_SLICED = 3, SHAPE_THIN = 5,
    ONE_BYTE = 8,
    HOPS_MAX = 16,
    PARTS_MAX = 32,
};

bool v8_read_head(const struct v8 *v, uint64_t word, struct v8_head *out)
{
    unsigned char map[V8_MAP_BYTES];
    struct memory_piece piece = {v8_object(word), out->bytes, sizeof out->bytes, 0};
    int32_t type = v8_at(v, V8_MAP_TYPE);
    out->at = piece.address;
    memset(out->bytes, 0, sizeof out->bytes);
    if (!plausible(piece.address) || !memory_batch_read(v->memory, &piece, 1, NULL) || piece.got < 2 * sizeof word ||
        !v8_read(v, v8_object(load_u64(out->bytes)), map, sizeof map)) {
        return false;
    }
    memcpy(&out->type, map + type, sizeof out->type);
    return true;
}

bool v8_is_string(const struct v8 *v, const struct v8_head *head)
{
    return (head->type & v8_at(v, V8_NOT_STRING)) == 0;
}

static uint32_t length_of(const struct v8 *v, const struct v8_head *head)
{
    return load_u32(head->bytes + v8_at(v, V8_STRING_LENGTH));
}

/* Follows what stands for another string. False: it is a pair of two, or none. */
bool v8_find_chars(const struct v8 *v, uint64_t word, struct v8_chars *out)
{
    uint64_t skip = 0;
    uint32_t len = 0;
    bool has_len = false;
    for (int i = 0; i < HOPS_MAX; i++) {
        struct v8_head head;
        int32_t offset;
        if (!v8_read_head(v, word, &head) || !v8_is_string(v, &head)) {
            return false;
        }
        len = has_len ? len : length_of(v, &head);
        has_len = true;
        out->len = len;
        out->is_one_byte = (head.type & ONE_BYTE) != 0;
        uint64_t width = out->is_one_byte ? 1 : 2;
        switch (head.type & SHAPE_MASK) {
        case SHAPE_SEQ:
            out->at = head.at + (uint64_t)v8_at(v, V8_STRING_ONE_BYTE) + skip * width;
            return skip + len <= length_of(v, &head);
        case SHAPE_EXTERNAL: /* its characters' address is kept behind its resource's */
            out->at = v8_field(&head, v8_at(v, V8_STRING_RESOURCE) + 8) + skip * width;
            return skip + len <= length_of(v, &head);
        case SHAPE_SLICED:
            if (!v8_small(v8_field(&head, v8_at(v, V8_STRING_OFFSET)), &offset) || offset < 0) {
                return false;
            }
            skip += (uint64_t)offset;
            word = v8_field(&head, v8_at(v, V8_STRING_PARENT));
            break;
        case SHAPE_THIN: word = v8_field(&head, v8_at(v, V8_STRING_ACTUAL)); break;
        case SHAPE_CONS: { /* flattened: the second is the empty string */
            struct v8_head second;
            if (!v8_read_head(v, v8_field(&head, v8_at(v, V8_STRING_CONS_SECOND)), &second) ||
                !v8_is_string(v, &second) || length_of(v, &second) != 0) {
                return false;
            }
            word = v8_field(&head, v8_at(v, V8_STRING_CONS_FIRST));
            break;
        }
        default: return false;
        }
    }
    return false;
}

static bool is_high(uint32_t unit)
{
    return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(uint32_t unit)
{
    return unit >= 0xdc00 && unit < 0xe000;
}

static void add_chars(const unsigned char *bytes, uint32_t len, bool is_one_byte, struct buf *out)
{
    for (uint32_t i = 0; i < len; i++) {
        uint32_t c = is_one_byte ? bytes[i] : (uint32_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
        if (!is_one_byte && is_high(c) && i + 1 < len) {
            uint32_t low = (uint32_t)(bytes[2 * i + 2] | bytes[2 * i + 3] << 8);
            c = is_low(low) ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
            i += is_low(low);
        } else if (!is_one_byte && (is_high(c) || is_low(c))) {
            c = 0xfffd;
        }
        utf8_put(out, c);
    }
}

/* One that is in one piece. */
static bool read_flat(const struct v8 *v, const struct v8_chars *chars, struct buf *out)
{
    unsigned char bytes[2 * V8_NAME_MAX];
    uint32_t len = chars->len < V8_NAME_MAX ? chars->len : V8_NAME_MAX;
    if (len > 0 && !v8_read(v, chars->at, bytes, chars->is_one_byte ? len : 2 * len)) {
        return false;
    }
    add_chars(bytes, len, chars->is_one_byte, out);
    return true;
}

bool v8_read_string(const struct v8 *v, uint64_t word, struct buf *out)
{
    uint64_t left[PARTS_MAX] = {word};
    size_t count = 1;
    for (int i = 0; i < 2 * PARTS_MAX && count > 0; i++) {
        struct v8_chars chars;
        struct v8_head head;
        uint64_t part = left[--count];
        if (v8_find_chars(v, part, &chars)) {
            if (!read_flat(v, &chars, out)) {
                return false;
            }
        } else if (v8_read_head(v, part, &head) && v8_is_string(v, &head) &&
                   (head.type & SHAPE_MASK) == SHAPE_CONS && count + 2 <= PARTS_MAX) {
            left[count++] = v8_field(&head, v8_at(v, V8_STRING_CONS_SECOND));
            left[count++] = v8_field(&head, v8_at(v, V8_STRING_CONS_FIRST));
        } else {
            return false;
        }
    }
    return count == 0;
}
