/*
 * help: every text about pillion that pillion prints, made from the tables.
 *
 * All of it is plain text of at most 80 columns, except `man` (roff), `markdown` (docs/options.md)
 * and the completions (bash, zsh, fish). Results go to standard output.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/request.h"

enum { HELP_COLUMNS = 80, HELP_COLUMN = 33, HELP_MAX_BYTES = 256 * 1024 };

/* `pillion -h`: one screen. */
void help_screen(struct buf *out);

/* `pillion --help`: the screen and every further option. */
void help_everything(struct buf *out);

/* `pillion help TOPIC`: a topic, a command or an option's long name. False when it is none. */
bool help_topic(const char *topic, struct buf *out, struct err *err);

/* `pillion help`, -h and --help in all their forms. Returns the exit status. */
int help_run(const struct request *request);

/* A row in words (option_text.c). */
void help_option_label(const struct option *row, struct buf *out);    /* "-f, --x HZ" */
void help_option_text(const struct option *row, struct buf *out);     /* "what it is (99)" */
void help_option_default(const struct option *row, struct buf *out);  /* "99" or nothing */
void help_option_variables(const struct option *row, struct buf *out); /* "PILLION_X, DD_X" */
void help_option_aliases(const struct option *row, struct buf *out);  /* "--service, -g" */

/* Of several rows of one name variables set the first: render has a --format, too. */
bool help_is_set_by_variable(const struct option *row);

/* Screens that are not made of options (screens.c). */
void help_output(struct buf *out);
extern const char help_signals[], help_status[], help_containers[], help_fargate[], help_alpine[];

/* The texts for programs. Completions offer the topics of `pillion help`, blanks between. */
void manual_roff(struct buf *out);
void manual_markdown(struct buf *out);
void completion_bash(struct str topics, struct buf *out);
void completion_zsh(struct str topics, struct buf *out);
void completion_fish(struct str topics, struct buf *out);

#endif
