#include "os/console.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int console_open(const char *path, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
    if (fd < 0) {
        err_errno(err, errno, "cannot open the log file %s", path);
    }
    return fd;
}

void console_close(int fd)
{
    close(fd);
}

void console_write(int fd, const char *ptr, size_t len)
{
    ssize_t put;
    do {
        put = write(fd, ptr, len);
    } while (put < 0 && errno == EINTR);
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
