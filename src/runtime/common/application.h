/*
 * application: by what people tell a process from others of its program, in one line: "gunicorn: shop.web:app
 * (/srv/shop/web.py)", "python: -m http.server", "java: org.example.Main". gProfiler's application identifiers, and a
 * few more in its spelling.
 *
 * Of the arguments the name of the script, the module, the class or the application is taken alone: all others may be
 * secrets, and so may be code that stands there. A user may ask for further arguments of a JVM (`filters`). A path in
 * brackets is the script's, made absolute, or where the module of an application would lie in the working folder.
 *
 * Pure: what a rule needs besides the arguments it asks for. Everything that is told is foreign, and nothing of it is
 * believed to be short, whole or text.
 *
 * Source: the manuals of the programs named here; gProfiler's documentation for the spelling.
 */
#ifndef RUNTIME_COMMON_APPLICATION_H
#define RUNTIME_COMMON_APPLICATION_H

#include "base/str.h"

enum { APPLICATION_MAX_BYTES = 512 };

struct application_process {
    struct str arguments; /* of /proc/PID/cmdline: a NUL behind each. Or the title that the process gave itself */
    /* Replaces `out` by where its link "cwd" leads, or by its "environ"; false: it is not known. Null: none is. */
    bool (*text)(void *context, const char *name, struct buf *out);
    /* The same for a file as the process sees it, by its absolute path. */
    bool (*file)(void *context, const char *path, struct buf *out);
    void *context;
    const char *const *filters; /* expressions (expression.h): arguments of a JVM in which one of them is found … */
    size_t filter_count;        /* … follow its class, in brackets */
};

/* Appends it, at most APPLICATION_MAX_BYTES; nothing where no rule fits. */
void application_describe(const struct application_process *process, struct buf *out);

/* Do these arguments look like a title that a program gave itself? Then it is still what it was. */
bool application_is_title(struct str arguments);

#endif
