/*
 * language: the one table of kinds of code, language.def, and what is asked of it.
 *
 * A row is everything that a language is known by: its name in summaries, legends and headers, the
 * suffixes and mappings that files carry, its option, its colours. Options, summaries and the flame
 * graph are made from the rows: to add a language is to add its row.
 */
#ifndef PROFILE_LANGUAGE_H
#define PROFILE_LANGUAGE_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* What kind of code a frame is: FRAME_NATIVE, FRAME_KERNEL, FRAME_PYTHON …, by language.def. */
enum frame_kind {
#define LANGUAGE(id, name, ...) FRAME_##id,
#define LANGUAGE_MODE(id, name, option, help, ...) FRAME_##id,
#include "profile/language.def"
#undef LANGUAGE
#undef LANGUAGE_MODE
    FRAME_KIND_COUNT,
};

/* How a function of the language is called in a profile. */
enum name_form {
    NAME_PLAIN,      /* "Class::function(parameters)" */
    NAME_WITH_FILE,  /* "function (file:first line)" */
    NAME_WITH_PLACE, /* "function file:line" */
};

enum language_way {
    LANGUAGE_WALK,           /* not at all */
    LANGUAGE_RECORDER,       /* for profiles of CPU time that it makes inside */
    LANGUAGE_MOMENTS,        /* where its threads are */
    LANGUAGE_TRACE,          /* for a trace of all that happens, now and then */
    LANGUAGE_RECORDER_TRACE, /* both */
    LANGUAGE_WAYS,
};

struct language {
    const char *name;          /* "python" */
    const char *key;           /* of its share in a log: "python_percent" */
    const char *suffix;        /* of its frames in collapsed stacks: "_[p]", or "" */
    const char *more_suffixes; /* further ones, which names keep as they say more; null: none. This and what
                                * follows: blanks between several */
    const char *more_prefixes; /* likewise, in front */
    const char *endings;       /* of its source files; null: none */
    const char *more_endings;  /* that other languages' files have as well */
    const char *options;       /* of its interpreter that have a value (target/entry.h); null: not known, or none */
    const char *mapping;       /* of its functions in pprof, where they have none of a file */
    const char *otel;          /* OpenTelemetry's profile.frame.type */
    const char *gecko;         /* its colour in the Firefox Profiler, which has few; "grey" is of what was not seen */
    const char *readers[4];    /* gProfiler's names for what reads it: --X-mode takes them for auto; null ends */
    const char *ways[LANGUAGE_WAYS]; /* how it may be asked, as --X-mode calls it; null: that is none of its ways */
    const char *system_calls;  /* beginnings of native functions that do hardly more than call the system; null: none */
    uint32_t light, dark;      /* 0xrrggbb in the flame graph */
    enum name_form form : 8;
    bool is_script;            /* its functions belong to no mapped file, wherever their code lies */
};

extern const struct language languages[FRAME_KIND_COUNT];

/* The part of such a name that is a line, ":12" of "f (a.py:12)" and of gProfiler's "f (a.py:12 [package==1.0])", with
 * the line itself; empty: there is none. */
struct str language_line_in(struct str name, uint32_t *line);

/* Of a Java class that was made at run time without the address at its end, which makes one function many:
 * "Shop$$Lambda$14+0x00007f…". */
struct str language_class_without_address(struct str name);

/* Is it a native function whose CPU time is mostly the system's? */
bool language_calls_system(enum frame_kind kind, struct str name);

/* The one with such an ending, and with one of more_suffixes or more_prefixes; FRAME_NATIVE: none. */
enum frame_kind language_by_ending(struct str file);

/* Does it end like a file of a language whose profiles tell lines? */
bool language_is_source(struct str file);
enum frame_kind language_by_mark(struct str name);

#endif
