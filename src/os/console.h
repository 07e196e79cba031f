/* console: where messages go: a descriptor, written to without buffering. */
#ifndef OS_CONSOLE_H
#define OS_CONSOLE_H

#include "base/err.h"

#include <stddef.h>

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

#endif
