/*
 * application: by what people tell a process of an interpreter from others, in one line: "gunicorn: shop.web:app
 * (/srv/shop/web.py)", "python: -m http.server", "java: org.example.Main". gProfiler's application identifiers.
 *
 * Of the arguments the name of the script, the module, the class or the application is taken alone: all others may be
 * secrets, and so may be code that stands there. A path in brackets is the script's, made absolute, or where the module
 * of an application would lie in the working folder.
 *
 * Source: the manuals of the programs named here; gProfiler's documentation for the spelling.
 */
#ifndef RUNTIME_COMMON_APPLICATION_H
#define RUNTIME_COMMON_APPLICATION_H

#include "base/str.h"

enum { APPLICATION_MAX_BYTES = 256 };

struct application_facts {
    struct str arguments; /* of /proc/PID/cmdline: a NUL behind each */
    struct str folder;    /* where the link cwd leads; empty: not known */
};

/* Appends it, at most APPLICATION_MAX_BYTES; nothing where no rule fits. */
void application_describe(const struct application_facts *facts, struct buf *out);

#endif
