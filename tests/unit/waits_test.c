/* What a thread waits for, as its syscall file tells. Numbers are those of this processor. */
#include "capture/stacks/waits.h"
#include "test.h"

#include <sys/syscall.h>

static const char *reason(const char *format, long number)
{
    static char text[128], out[32];
    snprintf(text, sizeof text, format, number);
    return waits_reason(str_of(text), out);
}

static void known_calls(void)
{
    static const char line[] = "%ld 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffc00 0x7f01\n";
    CHECK_TEXT(reason(line, SYS_futex), "[waits: lock]");
    CHECK_TEXT(reason(line, SYS_epoll_pwait), "[waits: poll]");
    CHECK_TEXT(reason(line, SYS_clock_nanosleep), "[waits: sleep]");
    CHECK_TEXT(reason(line, SYS_recvfrom), "[waits: receive]");
    CHECK_TEXT(reason(line, 9999), "[waits: system call 9999]");
}

static void no_call(void)
{
    CHECK_TEXT(reason("running\n", 0), "");
    CHECK_TEXT(reason("-1 0x7ffc00 0x7f01\n", 0), ""); /* stopped outside of a call */
    CHECK_TEXT(reason("", 0), "");
    CHECK_TEXT(reason("99999999999999999999 0x0", 0), "");
}

TESTS_THAT_MEASURE({"a system call is told by what one waits for in it", known_calls},
      {"a thread outside of system calls waits for nothing that is known", no_call})
