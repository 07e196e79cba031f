/* reasons: a table of system calls with the words for them, and one of what links of descriptors are called. Calls that
 * only newer or older processors have are not in it everywhere; numbers are this processor's, as everything that is
 * read of a process. */
#include "capture/stacks/reasons.h"
#include "os/proc.h"

#include <stdio.h>
#include <sys/syscall.h>

enum { LINK_MAX = 256 };

static const struct {
    long number;
    const char *word;
    bool of_descriptor; /* the first argument's kind says more than the word */
} calls[] = {
    {SYS_futex, "lock", false},
    {SYS_epoll_pwait, "poll", false},
    {SYS_ppoll, "poll", false},
    {SYS_pselect6, "poll", false},
    {SYS_nanosleep, "sleep", false},
    {SYS_clock_nanosleep, "sleep", false},
    {SYS_read, "read", true},
    {SYS_readv, "read", true},
    {SYS_pread64, "read", true},
    {SYS_preadv, "read", true},
    {SYS_recvfrom, "receive", false},
    {SYS_recvmsg, "receive", false},
    {SYS_recvmmsg, "receive", false},
    {SYS_write, "write", true},
    {SYS_writev, "write", true},
    {SYS_pwrite64, "write", true},
    {SYS_pwritev, "write", true},
    {SYS_sendto, "send", false},
    {SYS_sendmsg, "send", false},
    {SYS_sendmmsg, "send", false},
    {SYS_sendfile, "write", true},
    {SYS_accept, "accept", false},
    {SYS_accept4, "accept", false},
    {SYS_connect, "connect", false},
    {SYS_ioctl, "control", true},
    {SYS_wait4, "child", false},
    {SYS_waitid, "child", false},
    {SYS_fsync, "disk", false},
    {SYS_fdatasync, "disk", false},
    {SYS_flock, "file lock", false},
    {SYS_semtimedop, "semaphore", false},
    {SYS_msgrcv, "message", false},
    {SYS_mq_timedreceive, "message", false},
    {SYS_io_getevents, "disk", false},
    {SYS_rt_sigtimedwait, "signal", false},
    {SYS_rt_sigsuspend, "signal", false},
#ifdef SYS_poll /* the older calls that newer processors never had */
    {SYS_epoll_wait, "poll", false},
    {SYS_poll, "poll", false},
    {SYS_select, "poll", false},
    {SYS_pause, "signal", false},
#endif
};

static const struct {
    const char *begin, *kind;
} links[] = {
    {"socket:", "socket"},
    {"pipe:", "pipe"},
    {"anon_inode:[eventfd]", "eventfd"},
    {"anon_inode:[timerfd]", "timer"},
    {"anon_inode:[signalfd]", "signal"},
    {"anon_inode:inotify", "inotify"},
    {"anon_inode:[fanotify]", "fanotify"},
    {"anon_inode:[eventpoll]", "epoll"},
    {"anon_inode:[pidfd]", "process"},
    {"anon_inode:[userfaultfd]", "userfaultfd"},
    {"/dev/pts/", "terminal"},
    {"/dev/tty", "terminal"},
    {"/dev/console", "terminal"},
    {"/dev/shm/", "file"},
    {"/dev/", "device"},
    {"/", "file"},
};

bool reason_call_parse(struct str text, struct reason_call *out)
{
    uint64_t descriptor;
    *out = (struct reason_call){0};
    text = str_trim(text);
    struct str first = str_cut(&text, ' '), argument = str_cut(&text, ' ');
    if (!str_u64(first, &out->number) || out->number > INT32_MAX) {
        return false;
    }
    bool is_known = str_starts(argument, STR("0x")) &&
                    str_hex(str_sub(argument, 2, argument.len), &descriptor) && descriptor <= INT32_MAX;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if ((uint64_t)calls[i].number == out->number) {
            out->word = calls[i].word;
            out->has_descriptor = calls[i].of_descriptor && is_known;
            out->descriptor = out->has_descriptor ? (uint32_t)descriptor : 0;
        }
    }
    return true;
}

const char *reason_kind(struct str link)
{
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        if (str_starts(link, str_of(links[i].begin))) {
            return links[i].kind;
        }
    }
    return "";
}

/* " socket"; "" when the link may not be read. */
static void tell_kind(uint32_t pid, const struct reason_call *call, char out[static 16])
{
    char name[16], link[LINK_MAX];
    snprintf(name, sizeof name, "fd/%u", (unsigned)call->descriptor);
    const char *kind = proc_link(pid, name, link, sizeof link) ? reason_kind(str_of(link)) : "";
    snprintf(out, 16, "%s%s", kind[0] != '\0' ? " " : "", kind);
}

const char *reason_of(uint32_t pid, struct str text, char out[static REASON_MAX])
{
    struct reason_call call;
    char kind[16] = "";
    out[0] = '\0';
    if (!reason_call_parse(text, &call)) {
        return out;
    }
    if (call.has_descriptor) {
        tell_kind(pid, &call, kind);
    }
    if (call.word != NULL) {
        snprintf(out, REASON_MAX, "[waits: %s%s]", call.word, kind);
    } else {
        snprintf(out, REASON_MAX, "[waits: system call %u]", (unsigned)call.number);
    }
    return out;
}
