/*
 * reasons: what a sleeping thread waits for, as the frame that stands above its stack's leaf.
 *
 * Concept. /proc/PID/task/TID/syscall tells the system call that a thread sleeps in and its arguments. The call has a
 * word: "[waits: lock]", "[waits: read]"; one without a word has its number. Where the word does not say what kind of
 * thing is waited for, as with read and write, the kind of the descriptor follows: "[waits: read pipe]". It is what the
 * descriptor's link in /proc/PID/fd is called, which costs one system call and asks no file system.
 *
 * Words are a promise: views are compared by them.
 */
#ifndef CAPTURE_STACKS_REASONS_H
#define CAPTURE_STACKS_REASONS_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { REASON_MAX = 48 };

/* The system call of a thread's syscall file ("202 0x7f… …", "running", "-1 …"). */
struct reason_call {
    uint64_t number;
    const char *word;    /* null: it has none */
    bool has_descriptor; /* whose kind is worth telling, … */
    uint32_t descriptor; /* … this one */
};

/* False: the thread is in no system call. */
bool reason_call_parse(struct str text, struct reason_call *out);

/* The kind of a descriptor by its link: "pipe:[4711]" is a "pipe"; "": not known. */
const char *reason_kind(struct str link);

/* The frame, by the text of the thread's syscall file; "" when it is in no system call. */
const char *reason_of(uint32_t pid, struct str text, char out[static REASON_MAX]);

#endif
