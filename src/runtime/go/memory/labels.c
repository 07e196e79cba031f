/* Sets of labels of the goroutines of one profile: each is read once, by its address, for it is never changed, and
 * equal sets at other addresses get one number. */
#include "runtime/go/memory/goroutines.h"
#include "runtime/go/memory/label_set.h"

enum { SET_MAX_BYTES = GO_LABELS_MAX * 2 * (GO_LABEL_TEXT_MAX + 1) };

/* Key, NUL, value, NUL, …, sorted. */
static bool read_set(struct go_stacks *s, uint64_t address, struct buf *out)
{
    struct go_label_set set;
    struct memory_batch *memory = s->m->process.memory;
    if (!go_label_set_read(memory, s->m->layout->lists_labels, address, &set, &s->m->unread)) {
        return false;
    }
    for (size_t i = 0; i < set.count; i++) {
        buf_str(out, set.keys[i]);
        buf_byte(out, '\0');
        buf_str(out, set.values[i]);
        buf_byte(out, '\0');
    }
    return !out->failed;
}

static uint32_t number_of(struct go_stacks *s, struct str set)
{
    for (size_t i = 0; i < s->labels.len && i < GO_LABEL_SETS_COMPARED; i++) {
        if (str_eq(s->labels.at[i], set)) {
            return (uint32_t)i;
        }
    }
    struct str kept = arena_copy(&s->texts, set), *added = kept.ptr == NULL ? NULL : vec_push(&s->labels);
    if (added == NULL) {
        return 0;
    }
    *added = kept;
    return (uint32_t)(s->labels.len - 1);
}

uint32_t go_labels_number(struct go_stacks *s, uint64_t address)
{
    struct map_slot *slot = address == 0 ? NULL : map_find(&s->label_sets, address);
    if (address == 0 || slot != NULL) {
        return slot == NULL ? 0 : (uint32_t)slot->value;
    }
    struct buf set;
    buf_init(&set, SET_MAX_BYTES);
    uint32_t number = read_set(s, address, &set) ? number_of(s, buf_slice(&set)) : 0;
    buf_release(&set);
    if (s->label_sets.len < GO_PLACES_MAX) {
        (void)map_put(&s->label_sets, address, number);
    }
    return number;
}

size_t go_labels_of(const struct go_stacks *s, uint32_t number, struct go_label_texts *out)
{
    struct str rest = s->labels.at[number];
    size_t n = 0;
    while (rest.len > 0 && n < GO_LABELS_MAX) {
        out->keys[n] = str_cut(&rest, '\0').ptr;
        out->values[n++] = str_cut(&rest, '\0');
    }
    return n;
}
