/*
 * log: what a running profiler says.
 *
 * One event is one line (on a terminal a block of a few), on standard error or in the log file. Text
 * is for people: "pillion: …"; logfmt and json carry the same event as keys and values, with a time
 * stamp. Keys are lower-case with the unit in the name and never change their meaning.
 *
 *     log_event(log, LOG_INFO, "window", fields, count, "%s", sentence);
 *
 * A warning or error is said once per cause: log_once counts repeats instead of printing them.
 * Texts of foreign origin (process names, paths) are printed with control characters and what is no
 * UTF-8 as \xNN; logfmt and json have \uNNNN and U+FFFD. A line end in the text is kept on terminals
 * only, and only when two blanks follow it: a name cannot forge a line.
 *
 * A log is used by the sampler and the publisher; one event is one write, so lines never mix.
 */
#ifndef CAPTURE_LOG_H
#define CAPTURE_LOG_H

#include "base/map.h"
#include "base/str.h"
#include "capture/settings.h"

#include <pthread.h>

struct log {
    int fd; /* -1: silent */
    bool owned;
    bool terminal;
    bool journal;
    enum log_level level;
    enum log_format format;
    const char *path;
    pthread_mutex_t lock; /* of `said` */
    struct map said;      /* hash of cause -> times */
};

struct log_field {
    const char *key;
    struct str value;
};

/* Opens the log that the settings name. A log file that cannot be opened is said on standard error,
 * which is then used. */
void log_open(struct log *log, const struct settings *settings);
void log_close(struct log *log);

/* Opens the log file again under its name (HUP, after a rotation by somebody else). */
void log_reopen(struct log *log);

void log_event(struct log *log, enum log_level level, const char *event,
               const struct log_field *fields, size_t count, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* A message without fields. */
void log_say(struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A message whose repeats (the same text but for its figures, up to 120 bytes) are only counted. */
void log_once(struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
