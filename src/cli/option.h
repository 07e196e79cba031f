/*
 * option: the one table of options.
 *
 * Parsing, every help text, the manual page, the completions, the environment and docs/options.md
 * are made from it, so adding an option is adding a row here and a field where it is stored.
 *
 * A row is stored at `at` bytes into a struct request; the type found there follows from `kind`.
 * `fallback` is a text in the syntax of the command line, parsed by the same code, so that the
 * default that is shown is the default that holds.
 *
 * An option may be known by further names: gProfiler's, ddprof's, or a name that means one value of
 * an option (--no-python is --python-mode disabled). Those are rows of the second table. Those without a
 * meaning here are the table of unused.h.
 */
#ifndef CLI_OPTION_H
#define CLI_OPTION_H

#include "cli/unused.h"
#include "base/str.h"
#include "profile/language.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    /* kind           stored as            written as */
    KIND_FLAG,     /* bool                 --x, --no-x; 1 or 0 and the like in the environment */
    KIND_ACTION,   /* nothing              --help, --version: not in the environment */
    KIND_NUMBER,   /* unsigned             decimal digits */
    KIND_PERCENT,  /* double               decimal fraction, "%" allowed behind it */
    KIND_DURATION, /* uint64_t, ns         number with ms s m h d; plain numbers are seconds */
    KIND_SIZE,     /* uint64_t, bytes      number with K M G (KB, KiB: powers of 1024) */
    KIND_CHOICE,   /* int                  one of `choices` */
    KIND_FORMATS,  /* unsigned             comma-separated names of `choices`, as bits: formats, back ends */
    KIND_PIDS,     /* settings.pids        comma-separated process ids, repeatable */
    KIND_LIST,     /* struct pattern_list  comma-separated patterns of `min` bytes at least, "!" before
                    *                      what excludes; repeatable */
    KIND_EVENTS,   /* settings.events      events as capture/event.h reads them, repeatable */
    KIND_TEXT,     /* const char *         anything but nothing */
    KIND_PATH,     /* const char *         completed as a file name */
    KIND_DIR,      /* const char *         completed as a directory */
    KIND_TEXTS,    /* struct text_list     likewise, repeatable */
    KIND_SECRET,   /* const char *         never printed; overwritten in argv */
    KIND_SECRETS,  /* struct text_list   likewise, repeatable */
};

enum option_group {
    GROUP_WHAT,  /* GROUP_WHAT and GROUP_WHERE are the first screen of the help */
    GROUP_WHERE,
    GROUP_TARGETS,
    GROUP_FILES,
    GROUP_STACKS,
    GROUP_NAMES,
    GROUP_BUDGET,
    GROUP_TALK,
    GROUP_BACKEND,
    GROUP_TLS,
    GROUP_DUMP,
    GROUP_TOP,
    GROUP_REPORT,
    GROUP_RENDER,
    GROUP_DOCTOR,
    GROUP_UPLOAD,
    GROUP_COUNT,
};

/* How a flag is listed. */
enum flag_label { LABEL_PLAIN, LABEL_BOTH, LABEL_NEGATIVE };

struct choice {
    const char *name; /* NULL ends the list */
    int value;
    bool hidden; /* another spelling: accepted, not listed */
    bool by_default; /* of KIND_FORMATS with neither fallback nor `shown` */
};

/* Small fields share words: there are many rows. */
struct option {
    const char *name; /* without dashes */
    const char *value; /* the placeholder in help texts; NULL for flags and actions */
    enum option_kind kind : 8;
    enum option_group group : 8;
    enum flag_label label : 8;
    enum frame_kind language : 8; /* for its choice_at */
    unsigned commands : 16; /* bits of enum command_id that know it; 0 = profiling runs, top and doctor */
    char letter;           /* 0 = none */
    bool inverse;          /* a flag that is stored negated: --disable-x */
    bool gprofiler;        /* GPROFILER_<NAME> is read too */
    bool env_of_backends;  /* the back ends' variables for the service's name are read too, after `env` */
    uint32_t at;           /* offset in struct request */
    uint32_t scale;        /* KIND_SIZE: what a plain number counts; 0 = 1 */
    uint64_t min, max; /* of numbers, ns, bytes, thousandths of a percent; 0, 0 = any */
    const char *unit;  /* KIND_NUMBER: of what, in messages */
    const struct choice *choices;
    bool (*choice_at)(const struct option *row, size_t i, struct choice *out); /* of a table elsewhere */
    const char *fallback; /* default, NULL = zero of the type */
    const char *shown;    /* what help shows as default instead; "" = nothing */
    const char *help;     /* what it is; no capital, no full stop */
    const char *env;      /* further variables, blank-separated, the first that is set wins */
};

struct option_alias {
    const char *name; /* NULL for a letter alone */
    char letter;
    const char *option; /* name of the row it stands for */
    const char *value;  /* the value it means; such an alias takes none itself */
    bool gprofiler;     /* GPROFILER_<NAME> is read too */
};

extern const struct option option_table[];
extern const size_t option_count;
extern const struct option_alias option_aliases[];
extern const size_t option_alias_count;
extern const char *const option_group_title[GROUP_COUNT];

enum { OPTION_MAX = 160, OPTION_NAME_MAX = 63 };

/* What a name on the command line means. */
struct option_match {
    const struct option *row; /* NULL = unknown */
    const struct option_alias *alias; /* NULL = the row's own name */
    bool negated;             /* --no-x of a flag */
    const struct unused_option *unused; /* NULL, or what `row` stands for: it is none of option_table then */
};

/* By long name, without dashes; '_' counts as '-'. `commands` selects among rows (bit mask). */
struct option_match option_find(const char *name, size_t len, unsigned commands);
struct option_match option_find_letter(char letter, unsigned commands);

/* The choices of an option, from 0 on; false behind the last, and where there are none. */
bool option_choice(const struct option *row, size_t i, struct choice *out);
bool option_has_choices(const struct option *row);

/* The further variables, blanks between, the first that is set wins: `env` and those of back ends. */
void option_variables(const struct option *row, struct buf *out);

/* Whether the argument that follows belongs to the option. */
bool option_takes_value(const struct option_match *match);

/* Calls `each` with every long name that option_find knows. */
void option_each_name(unsigned commands, void (*each)(void *context, const char *name),
                      void *context);

/* "PROFILING_FREQUENCY" for profiling-frequency; cut at OPTION_NAME_MAX. */
void option_env_name(const char *name, char out[static OPTION_NAME_MAX + 1]);

/* The commands a row is for: its bits, or the default. */
unsigned option_commands(const struct option *row);

#endif
