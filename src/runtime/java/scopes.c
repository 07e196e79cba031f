/* The functions at an address of compiled code. A table of places (PcDesc) leads to a chain of scopes, the innermost
 * first: {where its caller's is, method, bytecode index + 1}, in numbers of up to five bytes. A place stands at the
 * end of its instructions: that of a call is at its return address, and a leaf's is the next one behind its address. */
#include "runtime/java/private.h"

enum {
    PLACE_BYTES = 16, /* offset of the code, of the scope, and two more */
    PLACES_AT_ONCE = 256,
    PLACES_MAX = 1 << 20,
    NUMBER_BYTES = 5,
    SCOPE_BYTES = 3 * NUMBER_BYTES,
    METHODS_MAX = 1 << 20,
};

static int32_t offset_of(const unsigned char *place)
{
    return (int32_t)load_u32(place);
}

/* The first place at or behind `offset`, by halves; false: none. */
static bool find_place(const struct java *j, const struct java_blob *blob, int32_t offset, uint32_t *scope)
{
    uint64_t count = blob->pcs_limit > blob->pcs ? (blob->pcs_limit - blob->pcs) / PLACE_BYTES : 0;
    unsigned char bytes[PLACES_AT_ONCE * PLACE_BYTES];
    uint64_t low = 0, high = count < PLACES_MAX ? count : 0;
    while (high - low >= PLACES_AT_ONCE) { /* the first one is in [low, high], where there is one */
        uint64_t middle = low + (high - low) / 2;
        if (!java_read(j, blob->pcs + middle * PLACE_BYTES, bytes, PLACE_BYTES)) {
            return false;
        }
        *(offset_of(bytes) < offset ? &low : &high) = middle + (offset_of(bytes) < offset);
        high = high < low ? low : high;
    }
    uint64_t all = high + 1 < count ? high + 1 - low : count - low; /* PLACES_AT_ONCE at most */
    if (all == 0 || !java_read(j, blob->pcs + low * PLACE_BYTES, bytes, (uint32_t)(all * PLACE_BYTES))) {
        return false;
    }
    for (uint64_t i = 0; i < all; i++) {
        if (offset_of(bytes + i * PLACE_BYTES) >= offset) {
            *scope = load_u32(bytes + i * PLACE_BYTES + 4);
            return true;
        }
    }
    return false;
}

static bool take_number(const struct java *j, const unsigned char **at, const unsigned char *limit, uint32_t *out)
{
    uint32_t less = j->layout.version[0] >= JAVA_ZERO_LESS_SINCE, value = 0;
    for (unsigned i = 0; i < NUMBER_BYTES && *at < limit; i++) {
        unsigned char byte = *(*at)++;
        if (byte < less) {
            return false;
        }
        value += (byte - less) << 6 * i;
        if (byte < 192 || i == NUMBER_BYTES - 1) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool add(struct java *j, uint64_t method, int32_t bci)
{
    struct java_scope *scope = vec_push(&j->scopes);
    if (scope != NULL) {
        *scope = (struct java_scope){method, bci};
    }
    return scope != NULL;
}

void java_find_scopes(struct java *j, const struct java_blob *blob, uint64_t address)
{
    uint32_t scope, from = (uint32_t)j->scopes.len;
    bool found = find_place(j, blob, (int32_t)(address - blob->code), &scope);
    for (int i = 0; found && scope != 0 && i < JAVA_SCOPES_MAX; i++) {
        unsigned char bytes[SCOPE_BYTES];
        const unsigned char *at = bytes;
        uint32_t sender, index, bci;
        uint64_t method = 0;
        if (!java_read(j, blob->scopes + scope, bytes, sizeof bytes) ||
            !take_number(j, &at, bytes + sizeof bytes, &sender) ||
            !take_number(j, &at, bytes + sizeof bytes, &index) || !take_number(j, &at, bytes + sizeof bytes, &bci) ||
            sender >= scope || index == 0 || index > METHODS_MAX ||
            !java_word(j, blob->metadata + (uint64_t)(index - 1) * sizeof method, &method) ||
            !add(j, method, (int32_t)bci - 1)) {
            break;
        }
        scope = sender;
    }
    /* The outermost is the method that was compiled; where that does not come out, it is all that is known. */
    if (j->scopes.len == from || j->scopes.at[j->scopes.len - 1].method != blob->method) {
        j->scopes.len = from;
        (void)add(j, blob->method, -1);
    }
}
