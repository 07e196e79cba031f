/*
 * record: the bytes of one perf ring record, decoded.
 *
 * Pure: (pointer, length, format) in, a struct record out. Texts, the call chain, registers and the
 * copy of the stack are borrowed from the bytes, which therefore must be aligned to 8 (rings and
 * order.h give them so). The format is what the events were opened with: the PERF_SAMPLE_* mask must
 * hold TID, TIME and CPU and may hold IDENTIFIER, IP, PERIOD, CALLCHAIN, REGS_USER, STACK_USER; a mask
 * with other fields is refused, because their lengths are not read here.
 *
 * A sample's stack takes the full requested size in the ring, whatever the kernel could copy.
 * record_trim copies a record without the rest, so that what waits (order.h) is what was copied.
 *
 * A record that is too short for what it claims is ERR_MALFORMED: the caller counts it and goes on.
 * Kinds not needed are RECORD_OTHER. Context marks (-128 kernel, -512 user …) stay in the chain.
 *
 * Source: linux/perf_event.h (enum perf_event_type), perf_event_open(2).
 */
#ifndef SAMPLE_RECORD_H
#define SAMPLE_RECORD_H

#include "base/err.h"
#include "base/str.h"

enum record_kind {
    RECORD_OTHER,
    RECORD_SAMPLE,
    RECORD_MMAP,
    RECORD_COMM,
    RECORD_FORK,
    RECORD_EXIT,
    RECORD_LOST,
    RECORD_THROTTLE,
    RECORD_SWITCH,
};

/* Call chain entries at or above this (as unsigned) are context marks, not addresses. */
#define CHAIN_MARK_LEAST ((uint64_t)-4095)
#define CHAIN_MARK_KERNEL ((uint64_t)-128)
#define CHAIN_MARK_USER ((uint64_t)-512)

struct record_format {
    uint64_t sample_type; /* PERF_SAMPLE_* */
    uint64_t registers;   /* mask of PERF_REG_*, with REGS_USER */
};

struct record {
    enum record_kind kind;
    uint32_t pid, tid; /* whom it is about; LOST, THROTTLE, OTHER: the task that was running.
                        * 0: not visible in our PID namespace; 0xffffffff: already reaped */
    uint32_t cpu;
    uint64_t time_ns;  /* CLOCK_MONOTONIC */
    uint64_t event;    /* SAMPLE: whose it is: the event that was opened, also where a child inherited it; 0:
                        * the format has no IDENTIFIER */
    bool user;         /* SAMPLE: taken in user code */
    union {
        struct {
            uint64_t ip;
            uint64_t period_ns;
            const uint64_t *chain; /* leaf first, with context marks */
            size_t chain_len;
            const uint64_t *registers; /* the user's, in the order of the mask's bits; null: none
                                        * were taken (a kernel thread, an exiting one) */
            bool is_32bit;
            const unsigned char *stack; /* from the user's SP upwards */
            size_t stack_len;
            size_t stack_room;          /* bytes that were asked for; 0: no stack was taken */
            bool of_burst;              /* the reader's own note: its copy of the stack is of no size that was chosen */
        } sample;
        struct {
            uint64_t start, bytes, file_offset, inode;
            uint32_t major, minor;
            bool executable;
            struct str path;
        } mmap;
        struct {
            struct str name;
            bool exec; /* by exec: all earlier mappings are gone */
        } comm;
        struct {
            uint32_t parent_pid, parent_tid;
        } fork; /* FORK and EXIT; in FORK, pid == parent_pid: a thread */
        struct {
            uint64_t count;
        } lost;
        struct {
            bool out;     /* the task leaves its CPU, else it comes back */
            bool preempt; /* out although it could go on */
        } sched;          /* SWITCH */
    } as;
};

bool record_parse(const void *ptr, size_t len, const struct record_format *format,
                  struct record *out, struct err *err);

/* A number of the reader's own that a record carries, up to 0xffff, in what the kernel leaves of the type's
 * word: record_parse ignores it. 0 at first. */
void record_set_tag(void *ptr, size_t len, unsigned tag);
unsigned record_tag(const void *ptr, size_t len);

/* How long the record at `ptr` says it is; at most `len`. */
size_t record_bytes(const void *ptr, size_t len);

/* Bytes of the record without the part of its stack that the kernel left empty; len for others. */
size_t record_trimmed_bytes(const struct record *record, size_t len);

/* Copies a record that record_parse accepted to `out`, of record_trimmed_bytes; the copy is a record
 * of the same format. */
void record_trim(const void *ptr, size_t len, const struct record *record, void *out);

#endif
