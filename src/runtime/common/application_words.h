/*
 * application_words: what stands in the arguments of a process, for the rules of application.c.
 *
 * Arguments are one text with a NUL behind each. Empty results mean that there is none.
 */
#ifndef RUNTIME_COMMON_APPLICATION_WORDS_H
#define RUNTIME_COMMON_APPLICATION_WORDS_H

#include "base/str.h"

/* `list`: words with blanks between. */
bool application_is_one_of(struct str word, const char *list);

/* The value of the first of these options: in the next argument, behind '=' of a long one, or behind a short one. */
struct str application_value(struct str arguments, const char *options);

/* What stands behind the first argument that begins so. */
struct str application_behind(struct str arguments, struct str head);

/* The value of a line "KEY = VALUE", as files of settings have it. */
struct str application_setting(struct str text, struct str key);

/* "package.module:attribute", or "package.module", as servers of Python name an application: never what follows an
 * option that may have a value. */
struct str application_spec(struct str arguments);

/* What an interpreter runs. */
struct application_script {
    const char *kind;    /* "python"; null: the program is no interpreter */
    struct str name;     /* of the script or the module; empty: neither */
    bool is_module;
    struct str rest;     /* the arguments behind it */
};

struct application_script application_script_of(struct str program, struct str arguments);

/* The jar, the module or the class that java runs; `before`: the arguments before it, if not null. */
struct str application_main_of(struct str arguments, struct str *before);

#endif
