/* Why a window lacks stacks: which sentences stand together, and which are news. */
#include "capture/unseen.h"
#include "test.h"

#include <string.h>

#define SECOND UINT64_C(1000000000)
#define MS UINT64_C(1000000)

static const char refused[] = "perf events refused (EPERM: seccomp filter); add CAP_PERFMON";
static const char user[] = "pid 1 (web) may not be looked into: it runs as another user (uid 7); add SYS_PTRACE";

/* A window of ten seconds of CPU time of which an account has a part. */
static struct profile_totals window(enum account account, uint64_t missing_ns)
{
    struct profile_totals sum = {.cpu_ns = 10 * SECOND};
    sum.leaf_ns[FRAME_ACCOUNT] = sum.account_ns[account] = missing_ns;
    sum.leaf_ns[FRAME_NATIVE] = sum.cpu_ns - missing_ns;
    return sum;
}

/* By two processes: 1 has used little, 9 much. */
static const struct profile used = {
    .processes = {(struct process[]){{0}, {.pid = 1, .cpu_ns = 1}, {.pid = 9, .cpu_ns = 2}}, 3, 3}};

static const char *reason(const struct unseen *u, struct profile_totals sum, bool *news)
{
    static char text[4096];
    struct buf out;
    buf_init(&out, sizeof text);
    const char *told = unseen_describe(u, &used, &sum, &out);
    if (news != NULL) {
        *news = told != NULL;
    }
    snprintf(text, sizeof text, "%s", buf_cstr(&out));
    buf_release(&out);
    return text;
}

static void little(void)
{
    static struct unseen u;
    unseen_note_process(&u, 1, user);
    CHECK_TEXT(reason(&u, window(ACCOUNT_NATIVE_NO_PERF, 500 * MS), NULL), ""); /* 5.0 % */
    CHECK_TEXT(reason(&u, window(ACCOUNT_NATIVE_NO_PERF, 501 * MS), NULL), user);
    CHECK(!unseen_is_much(&(struct profile_totals){0}));
    /* a command of 40 ms without one sample: that is no loss worth a word */
    struct profile_totals tiny = {.cpu_ns = 40 * MS, .leaf_ns[FRAME_ACCOUNT] = 40 * MS};
    CHECK(!unseen_is_much(&tiny));
}

static void two_gates(void)
{
    static struct unseen u;
    bool news = true;
    unseen_note(&u, UNSEEN_PERF, refused);
    CHECK_TEXT(reason(&u, window(ACCOUNT_NATIVE_NO_PERF, 0), &news), refused);
    unseen_note_process(&u, 1, user);
    char both[1024];
    snprintf(both, sizeof both, "%s. %s", user, refused);
    CHECK_TEXT(reason(&u, window(ACCOUNT_NATIVE_NO_PERF, 9 * SECOND), &news), both);
    CHECK(!news); /* both were warnings when they were met */
}

static void first_kept(void)
{
    static struct unseen u;
    unseen_note(&u, UNSEEN_PERF, refused);
    unseen_note(&u, UNSEEN_PERF, "another");
    CHECK_TEXT(reason(&u, window(ACCOUNT_LOST, 0), NULL), refused);
}

static void hidden_kernel(void)
{
    static struct unseen u;
    bool news = false;
    unseen_note(&u, UNSEEN_KERNEL, "kernel code may not be sampled");
    CHECK_TEXT(reason(&u, window(ACCOUNT_KERNEL_HIDDEN, SECOND), &news), "kernel code may not be sampled");
    CHECK(news);
    CHECK_TEXT(reason(&u, window(ACCOUNT_NATIVE_NO_PERF, SECOND), &news), "");
    CHECK(!news);
    unseen_note(&u, UNSEEN_PERF, refused); /* then it is one refusal, not two */
    CHECK_TEXT(reason(&u, window(ACCOUNT_KERNEL_HIDDEN, SECOND), &news), refused);
}

static void over(void)
{
    static struct unseen u;
    unseen_note_process(&u, 1, user);
    unseen_note_process(&u, 4711, "another of the same window");
    unseen_end_window(&u, 30 * SECOND);
    unseen_end_window(&u, 30 * SECOND);
    unseen_end_window(&u, 30 * SECOND);
    CHECK_TEXT(reason(&u, window(ACCOUNT_NATIVE_NO_PERF, SECOND), NULL), user);
    unseen_note_process(&u, 9, "pid 9 refuses"); /* who has used most */
    CHECK_TEXT(reason(&u, window(ACCOUNT_NATIVE_NO_PERF, SECOND), NULL), "pid 9 refuses");
    for (int i = 0; i < 4; i++) {
        unseen_end_window(&u, 30 * SECOND);
    }
    CHECK_TEXT(reason(&u, window(ACCOUNT_NATIVE_NO_PERF, SECOND), NULL), "");
    unseen_note_process(&u, 1, user);
    unseen_end_window(&u, 600 * SECOND); /* a window longer than a minute */
    CHECK_TEXT(reason(&u, window(ACCOUNT_NATIVE_NO_PERF, SECOND), NULL), user);
}

static void more_than_there_is_room_for(void)
{
    static struct unseen u;
    for (uint32_t pid = 100; pid < 100 + 2 * UNSEEN_PROCESSES; pid++) {
        unseen_note_process(&u, pid, pid == 100 ? "the first" : "another");
    }
    unseen_note_process(&u, 9, "no room for it");
    CHECK_TEXT(reason(&u, window(ACCOUNT_NATIVE_NO_PERF, SECOND), NULL), "the first");
    unseen_end_window(&u, 30 * SECOND);
    for (int i = 0; i < 3; i++) {
        unseen_note_process(&u, 100, "the first");
        unseen_end_window(&u, 30 * SECOND);
    }
    unseen_note_process(&u, 9, "pid 9 refuses"); /* the others have let go */
    CHECK_TEXT(reason(&u, window(ACCOUNT_NATIVE_NO_PERF, SECOND), NULL), "pid 9 refuses");
}

static void lost(void)
{
    static struct unseen u;
    bool news = false;
    CHECK(str_starts(str_of(reason(&u, window(ACCOUNT_LOST, SECOND), &news)),
                     STR("processes or threads ran for less than a sample each")));
    CHECK(news);
    unseen_note(&u, UNSEEN_THREADS, "raise ulimit -n");
    CHECK_TEXT(reason(&u, window(ACCOUNT_LOST, SECOND), &news), "raise ulimit -n");
    CHECK(!news);
    unseen_note(&u, UNSEEN_BUDGET, "raise --max-cpu");
    unseen_note(&u, UNSEEN_RECORDS, "lower -f");
    CHECK_TEXT(reason(&u, window(ACCOUNT_LOST, SECOND), &news), "raise ulimit -n. raise --max-cpu. lower -f");
    unseen_end_window(&u, SECOND); /* what happened in that window is over; descriptors are still few */
    CHECK_TEXT(reason(&u, window(ACCOUNT_LOST, SECOND), &news), "raise ulimit -n");
}

TESTS({"a twentieth and a few samples are not worth a reason, more is", little},
      {"memory and perf that are both refused are both named, what opens most first", two_gates},
      {"the first sentence of a cause stays", first_kept},
      {"hidden kernel time is named, and said when it is much", hidden_kernel},
      {"a process that has refused is not blamed when it does so no more", over},
      {"of those that refuse the heaviest is told, and more than are kept are no harm", more_than_there_is_room_for},
      {"lost time has its cause, and a general one when there is no other", lost})
