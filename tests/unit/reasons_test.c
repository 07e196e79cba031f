/* What a thread waits for, as its syscall file tells. Numbers are those of this processor. */
#include "capture/stacks/reasons.h"
#include "test.h"

#include <sys/syscall.h>
#include <unistd.h>

static const char *reason(const char *format, long number)
{
    static char text[128], out[REASON_MAX];
    snprintf(text, sizeof text, format, number);
    return reason_of((uint32_t)getpid(), str_of(text), out);
}

static void known_calls(void)
{
    static const char line[] = "%ld 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffc00 0x7f01\n";
    CHECK_TEXT(reason(line, SYS_futex), "[waits: lock]");
    CHECK_TEXT(reason(line, SYS_epoll_pwait), "[waits: poll]");
    CHECK_TEXT(reason(line, SYS_clock_nanosleep), "[waits: sleep]");
    CHECK_TEXT(reason(line, SYS_recvfrom), "[waits: receive]");
    CHECK_TEXT(reason(line, SYS_accept4), "[waits: accept]");
    CHECK_TEXT(reason(line, SYS_flock), "[waits: file lock]");
    CHECK_TEXT(reason(line, 9999), "[waits: system call 9999]");
}

static void no_call(void)
{
    CHECK_TEXT(reason("running\n", 0), "");
    CHECK_TEXT(reason("-1 0x7ffc00 0x7f01\n", 0), ""); /* stopped outside of a call */
    CHECK_TEXT(reason("", 0), "");
    CHECK_TEXT(reason("99999999999999999999 0x0", 0), "");
}

/* The descriptors are this process's. */
static void descriptors(void)
{
    char line[128];
    int ends[2];
    CHECK(pipe(ends) == 0);
    snprintf(line, sizeof line, "%%ld 0x%x 0x7f00 0x1 0x0 0x0 0x0 0x7ffc00 0x7f01\n", (unsigned)ends[0]);
    CHECK_TEXT(reason(line, SYS_read), "[waits: read pipe]");
    CHECK_TEXT(reason(line, SYS_writev), "[waits: write pipe]");
    CHECK_TEXT(reason(line, SYS_flock), "[waits: file lock]");
    close(ends[0]);
    close(ends[1]);
    CHECK_TEXT(reason(line, SYS_read), "[waits: read]"); /* closed while it waits: the kind is not known */
    CHECK_TEXT(reason("%ld 0xffffffffffffffff 0x7f00\n", SYS_read), "[waits: read]");
    CHECK_TEXT(reason("%ld\n", SYS_read), "[waits: read]");
    CHECK_TEXT(reason("%ld 0xzz\n", SYS_read), "[waits: read]");
}

static void kinds(void)
{
    CHECK_TEXT(reason_kind(STR("socket:[4711]")), "socket");
    CHECK_TEXT(reason_kind(STR("pipe:[4711]")), "pipe");
    CHECK_TEXT(reason_kind(STR("anon_inode:[eventfd]")), "eventfd");
    CHECK_TEXT(reason_kind(STR("anon_inode:inotify")), "inotify");
    CHECK_TEXT(reason_kind(STR("anon_inode:[timerfd]")), "timer");
    CHECK_TEXT(reason_kind(STR("/dev/pts/3")), "terminal");
    CHECK_TEXT(reason_kind(STR("/dev/nvme0n1")), "device");
    CHECK_TEXT(reason_kind(STR("/srv/a/b (deleted)")), "file");
    CHECK_TEXT(reason_kind(STR("anon_inode:[of tomorrow]")), "");
    CHECK_TEXT(reason_kind(STR("")), "");
}

TESTS({"a system call is told by what one waits for in it", known_calls},
      {"a thread outside of system calls waits for nothing that is known", no_call},
      {"where reading and writing wait, the descriptor's kind is told", descriptors},
      {"a descriptor's kind is what its link is called", kinds})
