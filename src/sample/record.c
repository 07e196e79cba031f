/* Decodes one record of a perf ring: samples with registers, call chain and stack copy, mappings,
 * names, starts, ends, switches and losses. Texts and stacks are borrowed from the record's bytes. A
 * record that is too short is an error. */
#include "sample/record.h"
#include "base/cursor.h"

#include <linux/perf_event.h>
#include <string.h>

enum {
    CHAIN_MAX = 8192, /* far above sysctl perf_event_max_stack's usual 127 */
    RECORD_ALIGNMENT = 8, /* every record is padded to whole 64-bit words */
    TYPE_BITS = 16,       /* of 32: the kernel knows some twenty types */
    TYPE_MASK = (1 << TYPE_BITS) - 1,
    MISC_MMAP_BUILD_ID = 1 << 14, /* PERF_RECORD_MISC_MMAP_BUILD_ID, which headers before Linux 5.12 lack */
};

#define FIELDS_KNOWN                                                                               \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |                \
     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |         \
     PERF_SAMPLE_STACK_USER)
#define FIELDS_NEEDED (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

static void take_chain(struct cursor *c, struct record *out)
{
    uint64_t count = cursor_u64(c);
    if (count > CHAIN_MAX) {
        c->short_read = true;
        return;
    }
    out->as.sample.chain = cursor_take(c, count * sizeof(uint64_t));
    out->as.sample.chain_len = out->as.sample.chain == NULL ? 0 : count;
}

static void take_registers(struct cursor *c, uint64_t mask, struct record *out)
{
    uint64_t abi = cursor_u64(c);
    if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
        out->as.sample.is_32bit = abi == PERF_SAMPLE_REGS_ABI_32;
        out->as.sample.registers =
            cursor_take(c, (size_t)__builtin_popcountll(mask) * sizeof(uint64_t));
    }
}

/* The last field: what was asked for, the bytes, and how many of them the kernel could copy. */
static void take_stack(struct cursor *c, struct record *out)
{
    uint64_t room = cursor_u64(c);
    if (room == 0) {
        return;
    }
    const void *bytes = room % RECORD_ALIGNMENT == 0 ? cursor_take(c, room) : NULL;
    uint64_t copied = cursor_u64(c);
    if (bytes == NULL || copied > room) {
        c->short_read = true;
        return;
    }
    out->as.sample.stack = bytes;
    out->as.sample.stack_len = copied;
    out->as.sample.stack_room = room;
}

static void take_sample(struct cursor *c, const struct record_format *format, uint16_t misc,
                        struct record *out)
{
    uint64_t type = format->sample_type;
    out->kind = RECORD_SAMPLE;
    out->user = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    if (type & PERF_SAMPLE_IDENTIFIER) {
        out->event = cursor_u64(c);
    }
    if (type & PERF_SAMPLE_IP) {
        out->as.sample.ip = cursor_u64(c);
    }
    out->pid = cursor_u32(c);
    out->tid = cursor_u32(c);
    out->time_ns = cursor_u64(c);
    out->cpu = cursor_u32(c);
    cursor_skip(c, 4);
    if (type & PERF_SAMPLE_PERIOD) {
        out->as.sample.period_ns = cursor_u64(c);
    }
    if (type & PERF_SAMPLE_CALLCHAIN) {
        take_chain(c, out);
    }
    if (type & PERF_SAMPLE_REGS_USER) {
        take_registers(c, format->registers, out);
    }
    if (type & PERF_SAMPLE_STACK_USER) {
        take_stack(c, out);
    }
}

static void take_mmap2(struct cursor *c, uint16_t misc, struct record *out)
{
    out->kind = RECORD_MMAP;
    out->pid = cursor_u32(c);
    out->tid = cursor_u32(c);
    out->as.mmap.start = cursor_u64(c);
    out->as.mmap.bytes = cursor_u64(c);
    out->as.mmap.file_offset = cursor_u64(c);
    if (misc & MISC_MMAP_BUILD_ID) {
        cursor_skip(c, 24); /* the build id stands where the inode would */
    } else {
        out->as.mmap.major = cursor_u32(c);
        out->as.mmap.minor = cursor_u32(c);
        out->as.mmap.inode = cursor_u64(c);
        cursor_skip(c, 8); /* inode generation */
    }
    enum { PROT_EXEC_BIT = 4 };
    out->as.mmap.executable = (cursor_u32(c) & PROT_EXEC_BIT) != 0;
    cursor_skip(c, 4); /* flags */
    out->as.mmap.path = cursor_cstr(c);
}

static void take_comm(struct cursor *c, uint16_t misc, struct record *out)
{
    out->kind = RECORD_COMM;
    out->pid = cursor_u32(c);
    out->tid = cursor_u32(c);
    out->as.comm.exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
    out->as.comm.name = cursor_cstr(c);
}

static void take_task(struct cursor *c, enum record_kind kind, struct record *out)
{
    out->kind = kind;
    out->pid = cursor_u32(c);
    out->as.fork.parent_pid = cursor_u32(c);
    out->tid = cursor_u32(c);
    out->as.fork.parent_tid = cursor_u32(c);
    cursor_skip(c, 8); /* time: the id tail has it too */
}

/* The id tail ends every record that is no sample: TID, TIME, CPU, IDENTIFIER, in this order. It is
 * taken off the cursor, so that a text without its NUL cannot run into it. The ids are those of the
 * task that was running, which a body that names its own task replaces. */
static void take_tail(struct cursor *c, uint64_t type, struct record *out)
{
    size_t bytes = 24 + (type & PERF_SAMPLE_IDENTIFIER ? 8 : 0);
    if (c->len < bytes) {
        c->short_read = true;
        return;
    }
    c->len -= bytes;
    struct cursor tail = cursor_of(c->ptr + c->len, bytes);
    out->pid = cursor_u32(&tail);
    out->tid = cursor_u32(&tail);
    out->time_ns = cursor_u64(&tail);
    out->cpu = cursor_u32(&tail);
    cursor_skip(&tail, 4);
    out->event = type & PERF_SAMPLE_IDENTIFIER ? cursor_u64(&tail) : 0;
}

static void take_body(struct cursor *c, uint32_t type, uint16_t misc, struct record *out)
{
    switch (type) {
    case PERF_RECORD_MMAP2:
        take_mmap2(c, misc, out);
        break;
    case PERF_RECORD_COMM:
        take_comm(c, misc, out);
        break;
    case PERF_RECORD_FORK:
        take_task(c, RECORD_FORK, out);
        break;
    case PERF_RECORD_EXIT:
        take_task(c, RECORD_EXIT, out);
        break;
    case PERF_RECORD_LOST:
        out->kind = RECORD_LOST;
        cursor_skip(c, 8); /* id */
        out->as.lost.count = cursor_u64(c);
        break;
    case PERF_RECORD_SWITCH: /* whom it is about stands in the tail */
        out->kind = RECORD_SWITCH;
        out->as.sched.out = (misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
        out->as.sched.preempt = (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
        break;
    case PERF_RECORD_THROTTLE:
        out->kind = RECORD_THROTTLE;
        break;
    default:
        break;
    }
}

bool record_parse(const void *ptr, size_t len, const struct record_format *format,
                  struct record *out, struct err *err)
{
    uint64_t sample_type = format->sample_type;
    if ((sample_type & ~(uint64_t)FIELDS_KNOWN) != 0 ||
        (sample_type & FIELDS_NEEDED) != FIELDS_NEEDED) {
        return err_set(err, ERR_UNSUPPORTED, 0, "sample type 0x%llx cannot be decoded",
                       (unsigned long long)sample_type);
    }
    struct cursor c = cursor_of(ptr, len);
    uint32_t type = cursor_u32(&c) & TYPE_MASK;
    uint16_t misc = cursor_u16(&c);
    uint16_t size = cursor_u16(&c);
    struct record record = {.kind = RECORD_OTHER};
    c.short_read = c.short_read || size != len || len % RECORD_ALIGNMENT != 0;
    if (!c.short_read && type == PERF_RECORD_SAMPLE) {
        take_sample(&c, format, misc, &record);
    } else if (!c.short_read) {
        take_tail(&c, sample_type, &record);
        take_body(&c, type, misc, &record);
    }
    if (c.short_read) {
        return err_set(err, ERR_MALFORMED, 0, "perf record of type %u is cut short at %zu bytes", type,
                       len);
    }
    *out = record;
    return true;
}

void record_set_tag(void *ptr, size_t len, unsigned tag)
{
    struct perf_event_header header;
    if (len >= sizeof header) {
        memcpy(&header, ptr, sizeof header);
        header.type = (header.type & TYPE_MASK) | tag << TYPE_BITS;
        memcpy(ptr, &header, sizeof header);
    }
}

unsigned record_tag(const void *ptr, size_t len)
{
    struct perf_event_header header;
    if (len < sizeof header) {
        return 0;
    }
    memcpy(&header, ptr, sizeof header);
    return header.type >> TYPE_BITS;
}

size_t record_bytes(const void *ptr, size_t len)
{
    struct perf_event_header header;
    if (len < sizeof header) {
        return len;
    }
    memcpy(&header, ptr, sizeof header);
    return header.size < len ? header.size : len;
}

static size_t stack_kept(const struct record *record)
{
    return (record->as.sample.stack_len + RECORD_ALIGNMENT - 1) & ~(size_t)(RECORD_ALIGNMENT - 1);
}

size_t record_trimmed_bytes(const struct record *record, size_t len)
{
    bool has_stack = record->kind == RECORD_SAMPLE && record->as.sample.stack_room > 0;
    return has_stack ? len - (record->as.sample.stack_room - stack_kept(record)) : len;
}

void record_trim(const void *ptr, size_t len, const struct record *record, void *out)
{
    size_t trimmed = record_trimmed_bytes(record, len);
    if (trimmed == len) {
        memcpy(out, ptr, len);
        return;
    }
    unsigned char *to = out;
    uint64_t kept = stack_kept(record), copied = record->as.sample.stack_len;
    size_t before = (size_t)(record->as.sample.stack - (const unsigned char *)ptr);
    struct perf_event_header header;
    memcpy(&header, ptr, sizeof header);
    header.size = (uint16_t)trimmed;
    memcpy(to, ptr, before + kept);
    memcpy(to, &header, sizeof header);
    memcpy(to + before - sizeof kept, &kept, sizeof kept);
    memcpy(to + before + kept, &copied, sizeof copied);
}
