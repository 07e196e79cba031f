/* Short texts in one buffer, each behind its length, the oldest first. A batch stays until it was
 * taken, so that the next try is of the same texts; what goes for want of room is counted until
 * somebody was told. */
#include "deliver/backlog.h"

enum { LENGTH_BYTES = sizeof(uint32_t), SHARE = 4 };

void backlog_init(struct backlog *backlog, size_t max_bytes)
{
    *backlog = (struct backlog){0};
    buf_init(&backlog->bytes, max_bytes);
}

void backlog_release(struct backlog *backlog)
{
    buf_release(&backlog->bytes);
}

static struct str text_at(const struct backlog *backlog, size_t at)
{
    uint32_t len;
    memcpy(&len, backlog->bytes.ptr + at, sizeof len);
    return (struct str){backlog->bytes.ptr + at + LENGTH_BYTES, len};
}

/* The oldest ones, up to a number. */
static void drop_until(struct backlog *backlog, uint64_t number)
{
    size_t at = 0;
    while (backlog->first < number && backlog->first < backlog->next) {
        at += LENGTH_BYTES + text_at(backlog, at).len;
        backlog->first++;
    }
    backlog->bytes.len -= at;
    if (at > 0 && backlog->bytes.len > 0) {
        memmove(backlog->bytes.ptr, backlog->bytes.ptr + at, backlog->bytes.len);
    }
}

/* How many of the oldest have to go for so many bytes. */
static uint64_t count_for(const struct backlog *backlog, size_t bytes)
{
    size_t at = 0, most = backlog->bytes.max;
    uint64_t count = 0;
    while (backlog->bytes.len - at + bytes > most) {
        at += LENGTH_BYTES + text_at(backlog, at).len;
        count++;
    }
    return count;
}

void backlog_add(struct backlog *backlog, struct str text)
{
    struct buf *bytes = &backlog->bytes;
    uint32_t len = (uint32_t)text.len;
    if (text.len > bytes->max / SHARE) {
        backlog->lost++;
        return;
    }
    uint64_t dropped = count_for(backlog, LENGTH_BYTES + text.len);
    drop_until(backlog, backlog->first + dropped);
    backlog->lost += dropped;
    if (buf_room(bytes, LENGTH_BYTES + text.len) == NULL) {
        bytes->failed = false; /* memory ended; the others are there still */
        backlog->lost++;
        return;
    }
    buf_add(bytes, &len, sizeof len);
    buf_str(bytes, text);
    backlog->next++;
}

unsigned backlog_fill(const struct backlog *backlog)
{
    return (unsigned)(backlog->bytes.len * 100 / backlog->bytes.max);
}

enum backlog_batch backlog_begin(struct backlog *backlog, struct buf *texts, uint64_t *lost)
{
    bool again = backlog->batch < backlog->batch_next && backlog->first == backlog->batch;
    if (backlog_is_empty(backlog)) {
        return BATCH_NONE;
    }
    if (!again) {
        backlog->batch = backlog->first;
        backlog->batch_next = backlog->next;
    }
    backlog->batch_lost = *lost = backlog->lost;
    size_t at = 0;
    for (uint64_t i = backlog->batch; i < backlog->batch_next; i++) {
        struct str text = text_at(backlog, at);
        buf_text(texts, i > backlog->batch ? ", " : "");
        buf_str(texts, text);
        at += LENGTH_BYTES + text.len;
    }
    return again ? BATCH_AGAIN : BATCH_FRESH;
}

void backlog_end(struct backlog *backlog, enum backlog_fate fate)
{
    if (fate == BATCH_LATER) {
        return;
    }
    uint64_t next = backlog->batch_next;
    uint64_t gone = (backlog->first < next ? backlog->first : next) - backlog->batch;
    if (fate == BATCH_TAKEN) {
        backlog->lost -= backlog->batch_lost + gone;
    } else {
        backlog->lost += next - backlog->batch - gone;
    }
    drop_until(backlog, next);
    backlog->batch = backlog->batch_next = backlog->first;
}
