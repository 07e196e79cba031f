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
 * Whoever asked for it (log_hear) is told of every event of LOG_INFO and above as well, also when it
 * is not shown here. What is told is what is written, before it is escaped.
 *
 * A log is used by the sampler and the publisher; one event is one write, so lines never mix. On a live terminal
 * the sampler's status line stands below the last event (log_status), and goes away before the next one.
 */
#ifndef CAPTURE_LOG_H
#define CAPTURE_LOG_H

#include "base/map.h"
#include "base/str.h"
#include "capture/settings.h"

#include <pthread.h>

struct log_field {
    const char *key;
    struct str value;
};

/* An event as it is told: the fields, when there are any, say the same as the text. */
struct log_heard {
    enum log_level level;
    const char *event;
    const struct log_field *fields;
    size_t count;
    struct str text;
};

/* On whatever thread says something: it must be quick, and say nothing itself. */
struct log_listener {
    void (*hear)(void *context, const struct log_heard *heard);
    void *context;
};

struct log {
    int fd; /* -1: silent */
    bool owned;
    bool terminal;
    bool live;            /* a terminal where a status line may be drawn */
    size_t status_columns; /* of the one that is shown, 0: none */
    bool journal;
    enum log_level level;
    enum log_format format;
    const char *path;
    pthread_mutex_t lock; /* of `said`, `listener`, and of a live log's lines */
    struct map said;      /* hash of cause -> times */
    struct log_listener listener;
};

/* Opens the log that the settings name. A log file that cannot be opened is said on standard error,
 * which is then used. */
void log_open(struct log *log, const struct settings *settings);
void log_close(struct log *log);

/* Opens the log file again under its name (HUP, after a rotation by somebody else). */
void log_reopen(struct log *log);

/* From now on, instead of whoever was told before. {NULL, NULL}: nobody; who was told is not being
 * told any more when it returns. */
void log_hear(struct log *log, struct log_listener listener);

void log_event(struct log *log, enum log_level level, const char *event,
               const struct log_field *fields, size_t count, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* A message without fields. */
void log_say(struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A message whose repeats are only counted. A repeat has the same text but for its figures (its first 120 bytes without
 * them): words are the cause and what helps against it, figures are how much and to whom, which is another tale with
 * each process. So neither the next pid, CPU or version is said, nor that a loss has grown: amounts are what every
 * window's summary tells. What is to be said each time is log_say's. Of 256 causes; then no new one is said. */
void log_once(struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, where `cause` without its figures tells repeats apart: for texts that name who it happened to first. */
void log_once_for(struct log *log, enum log_level level, const char *cause, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The terminal may have shown "^C": the next message begins on a line of its own. */
void log_interrupted(struct log *log);

/* How wide lines are on a terminal: what is longer is broken. */
size_t log_columns(const struct log *log);

/* Draws the status line, where there may be one: over the last one, without a line end, in less than `columns`; the
 * cursor stays at its beginning. The next message blanks it. Never waits, neither for the terminal nor for another
 * thread's message: then it is not drawn. */
void log_status(struct log *log, struct str text, size_t columns);

#endif
