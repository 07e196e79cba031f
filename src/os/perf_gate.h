/*
 * perf_gate: which gate closed perf events, and what opens it.
 *
 * The errno tells most of it, because the kernel asks in a fixed order: a seccomp filter comes first and
 * answers EPERM or ENOSYS; a kernel built without perf ENOSYS, gVisor ENODEV; what the kernel does not know
 * of the attributes is EINVAL or E2BIG; the paranoid level and security modules are EACCES; a machine
 * without a counting unit ENOENT; and at the end descriptors run out (EMFILE). What else decides is read
 * once (perf_read_around), so that the gate is a function of both and each row can be tested without a
 * kernel of its own.
 *
 * Sources: perf_event_open(2) ERRORS; kernel/events/core.c, SYSCALL_DEFINE5(perf_event_open).
 */
#ifndef OS_PERF_GATE_H
#define OS_PERF_GATE_H

#include <limits.h>
#include <stdbool.h>

enum perf_gate {
    PERF_GATE_NONE,      /* open */
    PERF_GATE_SECCOMP,
    PERF_GATE_PARANOID,
    PERF_GATE_NO_KERNEL_SUPPORT,
    PERF_GATE_GVISOR,
    PERF_GATE_MODULE,    /* EACCES although the paranoid level allows it */
    PERF_GATE_OLD_KERNEL,
    PERF_GATE_DESCRIPTORS,
    PERF_GATE_HARDWARE,  /* no such counter */
    PERF_GATE_OTHER,
};

enum { PERF_PARANOID_UNKNOWN = INT_MIN };

/* What decides besides the errno. */
struct perf_around {
    int paranoid;  /* kernel.perf_event_paranoid, as far as it may be read */
    bool has_perf; /* the kernel shows that file exactly when it has perf */
    bool perfmon;  /* CAP_PERFMON is held */
    bool admin;    /* CAP_SYS_ADMIN is, which older engines' profiles ask for */
};

void perf_read_around(struct perf_around *out);

/* `kernel`: of an event that samples kernel code too. */
enum perf_gate perf_gate_of(int number, bool kernel, const struct perf_around *around);

/* Text of a gate, for people: "seccomp filter". */
const char *perf_gate_name(enum perf_gate gate);

/* The one change that opens it; "" when there is none. */
const char *perf_gate_remedy(enum perf_gate gate, bool kernel, const struct perf_around *around);

#endif
