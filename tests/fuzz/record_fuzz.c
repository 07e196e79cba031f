/* Any bytes as the records of some rings: parsed as they are, put in order, parsed again as they come
 * out. The first byte chooses the sample type and the size of the buffer; then follow pieces: one byte of
 * which the lowest bits say "end of a round", two bytes of length, and the record's bytes. */
#include "sample/order.h"
#include "sample/record.h"

#include <linux/perf_event.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
    if (!condition) {
        abort();
    }
}

struct state {
    struct record_format format;
    struct order order;
    uint64_t pushed, heard;
    uint64_t sum_pushed, sum_heard; /* of all bytes */
    uint64_t last_ns;
};

static uint64_t sum_of(const void *ptr, size_t len)
{
    uint64_t sum = len;
    for (size_t i = 0; i < len; i++) {
        sum += ((const unsigned char *)ptr)[i] * (i + 1);
    }
    return sum;
}

static void touch(const void *ptr, size_t len)
{
    check(len == 0 || sum_of(ptr, len) >= len);
}

static void check_record(const struct record *r, size_t len)
{
    if (r->kind == RECORD_SAMPLE) {
        check(r->as.sample.stack_len <= r->as.sample.stack_room);
        touch(r->as.sample.stack, r->as.sample.stack_len);
        touch(r->as.sample.registers, r->as.sample.registers == NULL ? 0 : 3 * sizeof(uint64_t));
        check(r->as.sample.chain_len * sizeof(uint64_t) <= len);
        check(r->as.sample.chain_len == 0 || (uintptr_t)r->as.sample.chain % 8 == 0);
        touch(r->as.sample.chain, r->as.sample.chain_len * sizeof(uint64_t));
    } else if (r->kind == RECORD_MMAP) {
        check(r->as.mmap.path.len < len);
        touch(r->as.mmap.path.ptr, r->as.mmap.path.len);
    } else if (r->kind == RECORD_COMM) {
        check(r->as.comm.name.len < len);
        touch(r->as.comm.name.ptr, r->as.comm.name.len);
    }
}

static void hear(void *context, const void *ptr, size_t len)
{
    struct state *s = context;
    struct record record;
    check((uintptr_t)ptr % 8 == 0);
    check(record_parse(ptr, len, &s->format, &record, NULL)); /* it was, before it was pushed */
    check_record(&record, len);
    check(record.time_ns >= s->last_ns);
    s->last_ns = record.time_ns;
    s->heard++;
    s->sum_heard += sum_of(ptr, len);
}

/* Within one hand-out times rise; an early one may be followed by older ones. */
static void finish_round(struct state *s, bool flush)
{
    s->last_ns = 0;
    if (flush) {
        order_flush(&s->order, hear, s);
        check(s->heard == s->pushed);
    } else {
        order_round(&s->order, UINT64_MAX, hear, s);
    }
    check(s->order.entries.len == s->pushed - s->heard);
}

static void take_record(struct state *s, const void *bytes, size_t len)
{
    void *exact = malloc(len == 0 ? 1 : len); /* a read past its end is seen */
    struct record record;
    if (len > 0) {
        memcpy(exact, bytes, len);
    }
    if (record_parse(exact, len, &s->format, &record, NULL)) {
        check_record(&record, len);
        size_t trimmed = record_trimmed_bytes(&record, len);
        void *room = order_room(&s->order, record.time_ns, trimmed);
        if (room == NULL) {
            finish_round(s, true);
            room = order_room(&s->order, record.time_ns, trimmed);
        }
        check(room != NULL);
        record_trim(exact, len, &record, room);
        s->pushed++;
        s->sum_pushed += sum_of(room, trimmed);
    }
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t needed = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    static const uint64_t optional[] = {PERF_SAMPLE_IP, PERF_SAMPLE_PERIOD, PERF_SAMPLE_CALLCHAIN,
                                        PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_REGS_USER,
                                        PERF_SAMPLE_STACK_USER};
    struct state s = {.format = {needed, 0x1c0}};
    if (size == 0) {
        return 0;
    }
    for (unsigned i = 0; i < 6; i++) {
        s.format.sample_type |= (data[0] >> i & 1) == 0 ? optional[i] : 0;
    }
    order_init(&s.order, (size_t)65536 << (data[0] >> 6)); /* a record has at most 64 KiB */
    for (size_t at = 1; at + 3 <= size;) {
        if ((data[at] & 7) == 7) {
            finish_round(&s, false);
        }
        size_t len = (size_t)data[at + 1] | (size_t)data[at + 2] << 8;
        at += 3;
        len = len < size - at ? len : size - at;
        take_record(&s, data + at, len);
        at += len;
    }
    finish_round(&s, true);
    check(s.sum_heard == s.sum_pushed);
    order_release(&s.order);
    return 0;
}
