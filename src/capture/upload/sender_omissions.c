/* What a back end cannot take, in words: sender_omissions. */
#include "capture/upload/sender_private.h"
#include "capture/upload/tags.h"

enum { NAMED_MOST = 5 };

static void put_one(struct buf *out, const struct omission *o)
{
    buf_byte(out, '"');
    tags_show(out, o->fact.name);
    if (o->is_tag) {
        buf_byte(out, ':');
        tags_show(out, o->fact.value);
    }
    buf_byte(out, '"');
}

static bool is_alike(const struct omission *a, const struct omission *b)
{
    return a->is_tag == b->is_tag && strcmp(a->why, b->why) == 0;
}

static size_t count_alike(const struct omissions *all, size_t end, const struct omission *one)
{
    size_t count = 0;
    for (size_t i = 0; i < end; i++) {
        count += is_alike(&all->list[i], one);
    }
    return count;
}

/* All that have the reason of the one at this place. */
static void put_sentence(struct buf *out, const char *backend, const struct omissions *all,
                         size_t at)
{
    const struct omission *first = &all->list[at];
    size_t count = count_alike(all, all->count, first), named = 0;
    buf_printf(out, "%s: the %s%s ", backend, first->is_tag ? "tag" : "fact", count > 1 ? "s" : "");
    for (size_t i = at; i < all->count && named < NAMED_MOST; i++) {
        if (is_alike(&all->list[i], first)) {
            buf_text(out, named++ > 0 ? ", " : "");
            put_one(out, &all->list[i]);
        }
    }
    if (count > named) {
        buf_printf(out, " and %zu more", count - named);
    }
    buf_printf(out, " %s not sent: %s\n", count > 1 ? "are" : "is", first->why);
}

void sender_omissions(struct sender *sender, bool tags, struct buf *out)
{
    struct omissions all = {.count = 0};
    if (sender->row->omits == NULL) {
        return;
    }
    sender->context.origin = sender_origin(sender);
    sender->row->omits(&sender->context, &all);
    for (size_t i = 0; i < all.count; i++) {
        if (all.list[i].is_tag == tags && count_alike(&all, i, &all.list[i]) == 0) {
            put_sentence(out, sender->row->name, &all, i);
        }
    }
}
