/* console: where messages go: a descriptor that is appended to, never buffered. */
#ifndef OS_CONSOLE_H
#define OS_CONSOLE_H

#include "base/err.h"

#include <stddef.h>

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

/* Columns of a terminal, or 0. */
unsigned console_columns(int fd);

#endif
