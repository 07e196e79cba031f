/* Where messages go: standard error or a log file, which HUP opens again. Each message is one write,
 * so that lines of several processes do not mix, and a terminal that blocks does not hold up
 * profiling for long. */
#include "os/console.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITE_WAIT_MS = 1000 };

void console_occupy(void)
{
    int fd;
    do {
        fd = open("/", O_PATH | O_CLOEXEC); /* is there also where /dev/null is not */
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

/* A link that another user put there (in /tmp) may lead to any file that we may write to. */
static bool is_others_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid != geteuid() && st.st_uid != 0;
}

int console_open(const char *path, struct err *err)
{
    if (is_others_link(path)) {
        err_set(err, ERR_DENIED, EPERM, "the log file %s is a link that belongs to another user", path);
        return -1;
    }
    /* non-blocking because the name may be a pipe's that nobody reads */
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
    if (fd < 0) {
        err_errno(err, errno, "cannot open the log file %s", path);
    }
    return fd;
}

bool console_reopen(int fd, const char *path, struct err *err)
{
    int fresh = console_open(path, err);
    if (fresh < 0) {
        return false;
    }
    bool ok = dup3(fresh, fd, O_CLOEXEC) >= 0 ||
              err_errno(err, errno, "cannot replace the log file %s", path);
    close(fresh);
    return ok;
}

void console_close(int fd)
{
    close(fd);
}

void console_write(int fd, const char *ptr, size_t len)
{
    /* a pipe that nobody empties and a stopped terminal must not hold the profiler up */
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    ssize_t put;
    do {
        put = poll(&one, 1, WRITE_WAIT_MS) == 0 ? 0 : write(fd, ptr, len);
    } while (put < 0 && errno == EINTR);
}

bool console_write_now(int fd, const char *ptr, size_t len)
{
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    return poll(&one, 1, 0) == 1 && (one.revents & POLLOUT) != 0 &&
           write(fd, ptr, len) == (ssize_t)len;
}

bool console_is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    unsigned long long device, inode;
    return stream != NULL && fstat(fd, &st) == 0 &&
           sscanf(stream, "%llu:%llu", &device, &inode) == 2 && st.st_dev == device &&
           st.st_ino == inode;
}

bool console_is_terminal(int fd)
{
    return isatty(fd) == 1;
}

bool console_is_pipe(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

unsigned console_columns(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

unsigned console_rows(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

bool console_is_live(int fd)
{
    const char *kind = getenv("TERM");
    return console_is_terminal(fd) && !is_set("CI") &&
           (kind == NULL || strcmp(kind, "dumb") != 0);
}

unsigned console_live_columns(int fd)
{
    pid_t front = tcgetpgrp(fd); /* -1: it is not the one we belong to, and has no jobs of ours */
    return front < 0 || front == getpgrp() ? console_columns(fd) : 0;
}

bool console_size(int fd, unsigned *columns, unsigned *rows)
{
    struct winsize size;
    bool known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *columns = known ? size.ws_col : 0;
    *rows = known ? size.ws_row : 0;
    return known;
}

bool console_is_same(int fd, int other)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* By the calls that the C library's functions make: it is built without those. */
bool console_take_keys(int fd, struct termios *before)
{
    if (ioctl(fd, TCGETS, before) != 0) {
        return false;
    }
    struct termios keys = *before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
    keys.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    return ioctl(fd, TCSETSW, &keys) == 0;
}

void console_give_back(int fd, const struct termios *before)
{
    (void)ioctl(fd, TCSETSW, before);
}

size_t console_read(int fd, char *out, size_t bytes)
{
    ssize_t got;
    do {
        got = read(fd, out, bytes);
    } while (got < 0 && errno == EINTR);
    return got > 0 ? (size_t)got : 0;
}
