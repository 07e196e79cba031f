/*
 * host: what the kernel reports about the machine.
 *
 * Source: uname(2).
 */
#ifndef OS_HOST_H
#define OS_HOST_H

enum { HOST_NAME_MAX_BYTES = 65 };

struct host_names {
    char release[HOST_NAME_MAX_BYTES]; /* "6.1.0-18-amd64" */
    char version[HOST_NAME_MAX_BYTES]; /* "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)" */
    char machine[HOST_NAME_MAX_BYTES]; /* "x86_64" */
};

void host_names(struct host_names *out);

#endif
