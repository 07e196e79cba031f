/* Where two copies of a thread's frames agree, for one that nobody made stand still: both are followed from the top
 * that was read with them, and the part from the root on that is the same in both stood for the time of the copies.
 * Works on what the first batch holds, and allocates nothing. */
#include "runtime/python/walk.h"

struct link {
    uint64_t code, previous;
};

/* Of slots that were read once there is no second copy: they lie far from the leaf. */
static bool link_of(struct walk *w, uint64_t address, bool again, struct link *out)
{
    const struct python_layout *l = w->layout;
    struct walk_bytes bytes;
    if (!walk_held(w, address, &bytes)) {
        return false;
    }
    again = again && bytes.link != NULL;
    const unsigned char *at = again ? bytes.link : bytes.at;
    uint32_t first = again ? w->view.link_first : w->view.first;
    out->code = load_u64(at + l->frame.code - first);
    out->previous = load_u64(at + l->frame.previous - first);
    return true;
}

static bool is_end(const struct walk *w, uint64_t address)
{
    return address == 0 || address == w->chain.base;
}

/* Where the chain is after `steps`; false: not all of it is held. */
static bool follow(struct walk *w, uint64_t *address, bool again, uint32_t steps)
{
    struct link link;
    for (; steps > 0; steps--) {
        if (!link_of(w, *address, again, &link)) {
            return false;
        }
        *address = link.previous;
    }
    return true;
}

static bool length_of(struct walk *w, uint64_t address, bool again, uint32_t *out)
{
    for (*out = 0; !is_end(w, address); ++*out) {
        if (*out == RUNTIME_FRAMES_MAX || !follow(w, &address, again, 1)) {
            return false;
        }
    }
    return true;
}

bool walk_common(struct walk *w, uint64_t *out)
{
    uint64_t one = w->chain.leaf, two = w->word[WORD_TOP_BETWEEN];
    uint32_t ones, twos;
    struct link first, second;
    if (!length_of(w, one, false, &ones) || !length_of(w, two, true, &twos) ||
        !follow(w, &one, false, ones > twos ? ones - twos : 0) ||
        !follow(w, &two, true, twos > ones ? twos - ones : 0)) {
        return false;
    }
    *out = 0;
    for (uint32_t left = least(ones, twos); left > 0; left--) {
        if (!link_of(w, one, false, &first) || !link_of(w, two, true, &second)) {
            return false;
        }
        bool same = one == two && first.code == second.code && first.previous == second.previous;
        *out = !same ? 0 : *out != 0 ? *out : one;
        one = first.previous;
        two = second.previous;
    }
    return true;
}
