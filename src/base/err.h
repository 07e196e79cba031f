/*
 * err: the one error type.
 *
 * An error is set where its cause is known and shown where a human is addressed; nothing logs in
 * between. It carries a kind (what a caller may branch on), the errno or 0, and one sentence in the
 * form: what failed (object, number), why, what helps. The sentence has no final full stop and no
 * function or source file name in it.
 *
 * A fallible function returns true when it worked, takes `struct err *` last, and writes its
 * outputs only on success. `err_set` returns false so that a failure is one line:
 *
 *     return err_set(err, ERR_MALFORMED, 0, "%s: section table ends at %zu", path, size);
 *
 * A null `struct err *` is allowed and means the caller does not want the reason.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdbool.h>

enum err_kind {
    ERR_NONE,
    ERR_DENIED,      /* a right is missing: EPERM, EACCES */
    ERR_GONE,        /* the process, thread or file no longer exists */
    ERR_MALFORMED,   /* foreign bytes do not follow their format */
    ERR_UNSUPPORTED, /* well-formed, but of a version or kind not known here */
    ERR_LIMIT,       /* one of our maxima, or a resource limit of the system */
    ERR_NETWORK,
    ERR_IO,          /* a file could not be read or written: ENOSPC, EROFS, EIO */
    ERR_USAGE,       /* the caller's command line or setting is wrong */
    ERR_MEMORY,
};

enum { ERR_TEXT_MAX = 400 };

struct err {
    enum err_kind kind;
    int number; /* errno, or 0 */
    char text[ERR_TEXT_MAX];
};

bool err_set(struct err *err, enum err_kind kind, int number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* As err_set, with the kind derived from errno and ": <strerror> (<ENAME>)" appended. */
bool err_errno(struct err *err, int number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What pthread_create or fork said, with what opens the usual limit: "cannot start the publisher's thread: …". */
bool err_no_thread(struct err *err, int number, const char *what);

/* "EACCES" for EACCES; "unknown errno" for others. Never null; static text. */
const char *err_name(int number);

/* The kind that an errno means. */
enum err_kind err_kind_of(int number);

#endif
