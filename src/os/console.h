/* console: where messages go: a descriptor, written to without buffering. */
#ifndef OS_CONSOLE_H
#define OS_CONSOLE_H

#include "base/err.h"

#include <stddef.h>
#include <termios.h>

/* Closed standard descriptors are taken by one that can be neither read nor written: else the next
 * file, event or socket of ours has number 2, and messages go there. To be called before
 * anything is opened, and not where a command inherits what we have. */
void console_occupy(void);

/* Opens a log file for appending, made with mode 644 when new; -1 on failure. */
int console_open(const char *path, struct err *err);
void console_close(int fd);

/* Makes `fd` the file that has this name now, in one step: a writer in another thread meets the old
 * file or the new one. On failure `fd` stays as it is. */
bool console_reopen(int fd, const char *path, struct err *err);

/* One write, so that lines of several writers do not mix. What cannot be written within a second is
 * lost. */
void console_write(int fd, const char *ptr, size_t len);

/* Standard error is the journal's stream (systemd's JOURNAL_STREAM names its device and inode). */
bool console_is_journal(int fd);

bool console_is_terminal(int fd);

/* Is it a pipe or socket, whose reader waits for the last writer to close it? */
bool console_is_pipe(int fd);

/* May a line there be redrawn? Only on a terminal that is not a dumb one, and not in a job whose
 * output is kept (CI). */
bool console_is_live(int fd);

/* As console_columns; 0 also while another job has the terminal. */
unsigned console_live_columns(int fd);

/* As console_write, but without waiting: false when it could not be written at once. */
bool console_write_now(int fd, const char *ptr, size_t len);

/* Columns of a terminal, or 0; its rows. */
unsigned console_columns(int fd);
unsigned console_rows(int fd);

/* Both, of a terminal that has any; false: not known. */
bool console_size(int fd, unsigned *columns, unsigned *rows);

/* Are two descriptors the same terminal, file or pipe? */
bool console_is_same(int fd, int other);

/* A terminal whose keys are read one by one, unseen, Ctrl-C, Ctrl-Z and Ctrl-S as keys like others. `before` is for
 * console_give_back. False: it is none. */
bool console_take_keys(int fd, struct termios *before);
void console_give_back(int fd, const struct termios *before);

/* What was typed, at least a byte: waits for it. 0: the terminal has gone. */
size_t console_read(int fd, char *out, size_t bytes);

#endif
