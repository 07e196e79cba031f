/*
 * backlog: short texts that wait until they are sent, as many as there is room for.
 *
 * Texts are kept in order; when there is no room the oldest go, and are counted as lost until a
 * batch that tells of them was taken. A batch is what waits at that moment. Until it was taken its
 * texts stay, and the next try is of the same texts as long as all of them are there: a receiver
 * that took a batch whose answer was lost can know it again. What went for want of room while its
 * batch was on the way is lost only if the batch is.
 *
 *     backlog_add(&b, text)
 *     backlog_begin(&b, &texts, &lost) → BATCH_FRESH … send … backlog_end(&b, BATCH_TAKEN)
 */
#ifndef DELIVER_BACKLOG_H
#define DELIVER_BACKLOG_H

#include "base/str.h"

struct backlog {
    struct buf bytes;           /* of each text its length, u32, and itself */
    uint64_t first, next;       /* numbers of the oldest that is kept, and of the one to come */
    uint64_t lost;              /* of which no batch that was taken told */
    uint64_t batch, batch_next; /* numbers of texts on the way, or to be tried again; equal: none */
    uint64_t batch_lost;        /* that it tells of */
};

void backlog_init(struct backlog *backlog, size_t max_bytes);
void backlog_release(struct backlog *backlog);

/* A text of more than a quarter of the room is lost at once. */
void backlog_add(struct backlog *backlog, struct str text);

/* How much of the room is used, per cent. */
unsigned backlog_fill(const struct backlog *backlog);

static inline bool backlog_is_empty(const struct backlog *backlog)
{
    return backlog->first == backlog->next;
}

/* Appends the texts, ", " between them. BATCH_AGAIN: the same as at the last try. */
enum backlog_batch { BATCH_NONE, BATCH_FRESH, BATCH_AGAIN };
enum backlog_batch backlog_begin(struct backlog *backlog, struct buf *texts, uint64_t *lost);

/* What became of it: its texts go, stay, or go and are lost. */
enum backlog_fate { BATCH_TAKEN, BATCH_LATER, BATCH_REFUSED };
void backlog_end(struct backlog *backlog, enum backlog_fate fate);

#endif
