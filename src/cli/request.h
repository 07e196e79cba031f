/*
 * request: what the command line and the environment ask for.
 *
 * request_parse turns both into one struct request. It is pure: it prints nothing, so messages
 * come back as an error (the run ends) or in `warnings` (it goes on). What it changes is argv: words are moved,
 * and a secret is overwritten where it stands, as argv is what others see of us in /proc.
 *
 * Precedence: command line, PILLION_*, GPROFILER_*, the variables of the back ends (DD_*, OTEL_*,
 * PYROSCOPE_*), default. On the command line the last one wins; process ids, events and patterns add up. A bad value in
 * the environment, or a misspelt PILLION_* name, is a warning only: a variable may be set for a
 * whole fleet and must never keep a command from starting. The variables that belong to back ends
 * also belong to the profiled program, so a value without meaning here is ignored silently.
 *
 * Syntax: --name=value, --name value, -f99, -f 99, grouped letters (-cq), "--" ends the options,
 * --no-x negates every flag. Names are never completed. The first word that is no option begins the
 * command to be profiled, or is a command of pillion's own; options and words may then mix.
 */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H

#include "base/err.h"
#include "base/str.h"
#include "capture/settings.h"
#include "cli/command.h"
#include "cli/option.h"

enum source {
    SOURCE_DEFAULT,
    SOURCE_BACKEND,   /* DD_*, OTEL_*, PYROSCOPE_* */
    SOURCE_GPROFILER, /* GPROFILER_* */
    SOURCE_PILLION,   /* PILLION_* */
    SOURCE_ARGUMENT,
};

/* What an option was last given as. */
struct given {
    const char *text;    /* "on" and "off" for flags; NULL: it was not given. Borrowed */
    struct str variable; /* that it came from; empty: the command line */
};

enum { EXIT_USAGE = 2, EXIT_USAGE_COMMAND = 125, REQUEST_SECRETS_MAX = 64 };

struct request {
    enum command_id command;
    struct settings settings; /* COMMAND_RUN */

    /* Words of pillion's own commands: files of render, directory of install, topic of help.
     * Borrowed: request_parse moves them to the front of argv. */
    char **words;
    size_t word_count;
    bool long_help; /* --help rather than -h */
    enum command_id help_for; /* COMMAND_HELP by -h behind another command's word */

    /* render */
    const char *render_output; /* NULL = not given; "-" = standard output */
    const char *diff_base;
    const char *sources; /* a folder; NULL = no text of lines */
    const char *render_type; /* report, too: a sample type's name; NULL = CPU time */
    unsigned render_format; /* bits (encode/encode.h), 0 = by the extension */

    unsigned report_top;
    int locals;      /* dump: shown */
    bool all_frames; /* dump */

    bool json;    /* dump, report, doctor */
    bool dry_run; /* upload */

    /* Copies of secrets whose place in argv was overwritten; wiped and freed by request_release. */
    char *secrets[REQUEST_SECRETS_MAX];
    size_t secret_count;

    /* Values that steer nothing but their own checks, and halves of what is resolved. */
    bool all, flamegraph, quiet, verbose;
    int ignored_choice;

    unsigned char source[OPTION_MAX]; /* enum source, by row */
    struct given given[OPTION_MAX];   /* by row */
    struct buf warnings;              /* one sentence per line */
    int exit_status;                  /* of a failed request_parse: EXIT_USAGE… */
};

/* False: the command line is wrong, err says how and out->exit_status with what to exit. Release
 * the request in either case. `environment` is NULL-terminated "NAME=value" texts. */
bool request_parse(struct request *out, int argc, char **argv, char *const *environment,
                   struct err *err);
void request_release(struct request *request);

#endif
