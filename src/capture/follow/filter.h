/*
 * filter: is a process selected by the patterns?
 *
 * Pure decisions on what is known of a process. There are three kinds of patterns (settings.h), each a
 * list: a process fits a kind when one of its patterns holds, or there are only excluding ones, and
 * none of the excluding ones holds. It fits when it fits every kind.
 *
 *   match      text anywhere in the command line; with * or ? a glob over the whole of it
 *   exe        name of the executable file, or with a slash its whole path; globs as well
 *   container  id, or a prefix of it
 *
 * What is not known is an empty text: it fits no pattern, so such a process is excluded where one
 * must hold, and stays where patterns only exclude.
 *
 * In globs * stands for any bytes and ? for one. A command line is its arguments, one blank between them.
 */
#ifndef CAPTURE_FOLLOW_FILTER_H
#define CAPTURE_FOLLOW_FILTER_H

#include "base/str.h"
#include "capture/settings.h"

struct filter_facts {
    struct str command_line; /* "" of a kernel thread, a zombie, or when it cannot be read */
    struct str exe;          /* "" when it may not be read */
    struct str container;    /* "" without one */
};

typedef struct pattern_list filter_kinds[FILTER_KIND_COUNT];

/* Is anything asked for at all? */
bool filter_any(const filter_kinds kinds);

bool filter_fits(const filter_kinds kinds, const struct filter_facts *facts);

/* The pattern of a container list, with its bytes, that a container's id begins with; null: none. */
const struct pattern *filter_container_of(const struct pattern_list *list, struct str id);

bool filter_glob(struct str pattern, struct str text);

/* The text of /proc/PID/cmdline as one line: blanks for the bytes that end arguments, none at its end. */
void filter_join_arguments(struct buf *text);

#endif
