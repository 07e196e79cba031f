/*
 * record: the bytes of one perf ring record, decoded.
 *
 * Pure: (pointer, length, sample_type) in, a struct record out. Texts and the call chain are
 * borrowed from the bytes, which therefore must be aligned to 8 (rings and order.h give them so).
 * sample_type is the PERF_SAMPLE_* mask the events were opened with; it must hold TID, TIME and CPU
 * and may hold IDENTIFIER, IP, PERIOD, CALLCHAIN; a mask with other fields is refused, because
 * their lengths are not read here.
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
};

/* Call chain entries at or above this (as unsigned) are context marks, not addresses. */
#define CHAIN_MARK_LEAST ((uint64_t)-4095)
#define CHAIN_MARK_KERNEL ((uint64_t)-128)
#define CHAIN_MARK_USER ((uint64_t)-512)

struct record {
    enum record_kind kind;
    uint32_t pid, tid; /* whom it is about; LOST, THROTTLE and OTHER: the task that was running.
                        * 0: not visible in our PID namespace; 0xffffffff: already reaped */
    uint32_t cpu;
    uint64_t time_ns;  /* CLOCK_MONOTONIC */
    bool user;         /* SAMPLE: taken in user code */
    union {
        struct {
            uint64_t ip;
            uint64_t period_ns;
            const uint64_t *chain; /* leaf first, with context marks */
            size_t chain_len;
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
    } as;
};

bool record_parse(const void *ptr, size_t len, uint64_t sample_type, struct record *out,
                  struct err *err);

#endif
