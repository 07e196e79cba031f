/* What people are told of a window, as golden text: user-experience 8.1 (a terminal) and 8.2 (a log). */
#include "capture/window/summary.h"
#include "capture/window/margin.h"
#include "test.h"
#include "encode/encode.h"

#include <sys/mman.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define MS UINT64_C(1000000)
/* 2026-11-20T10:31:04 UTC */
#define WALL (UINT64_C(1795170664) * SECOND)

struct scene {
    struct profile profile;
    uint32_t thread;
    struct log log;
    struct outputs outputs;
    struct outputs_written written;
};

static void begin(struct scene *s, bool terminal)
{
    *s = (struct scene){.outputs = {.dir = ".", .formats = encoder_defaults()},
                        .written = {.stem = "profile_2026-11-20T103104Z",
                                    .formats = encoder_defaults()}};
    s->log = (struct log){
        .fd = memfd_create("log", MFD_CLOEXEC), .level = LOG_INFO, .terminal = terminal};
    pthread_mutex_init(&s->log.lock, NULL);
    CHECK(profile_init(&s->profile, 1 << 20, NULL));
    s->profile.meta.end_wall_ns = WALL;
}

static void last(struct scene *s, uint64_t window_ns)
{
    s->profile.meta.start_wall_ns = WALL - window_ns;
}

static void add_process(struct scene *s, uint32_t pid)
{
    struct process process = {.pid = pid, .start_ticks = 1, .cpu_ns = 1};
    s->thread = profile_thread(&s->profile, profile_process(&s->profile, &process), pid, 0);
}

static void add(struct scene *s, enum frame_kind kind, uint64_t cpu_ns)
{
    struct frame frame = {.name = profile_cstring(&s->profile, "f"), .kind = (uint8_t)kind};
    uint32_t node = profile_child(&s->profile, 0, profile_frame(&s->profile, &frame));
    profile_add(&s->profile, s->thread, node, cpu_ns, cpu_ns / (10 * MS));
}

static void cost(struct scene *s, uint64_t cpu_ns, uint64_t rss_bytes)
{
    s->profile.meta.own_cpu_ns = cpu_ns;
    s->profile.meta.own_rss_bytes = rss_bytes;
}

static const char *told_with(struct scene *s, const char *problem, struct profile *heaviest)
{
    static char text[8192];
    summary_window(&s->log, &s->profile, &s->outputs, &s->written, problem, heaviest);
    ssize_t len = pread(s->log.fd, text, sizeof text - 1, 0);
    text[len < 0 ? 0 : len] = '\0';
    CHECK_INT(ftruncate(s->log.fd, 0), 0);
    CHECK_INT(lseek(s->log.fd, 0, SEEK_SET), 0);
    return text;
}

static void end(struct scene *s)
{
    profile_release(&s->profile);
    s->log.owned = true;
    log_close(&s->log);
}

static const char *told(struct scene *s, const char *problem)
{
    return told_with(s, problem, NULL);
}

/* The window of 8.1: 61.8 s of CPU in 42.3 s, five processes. */
static void busy_window(struct scene *s)
{
    last(s, 42300 * MS);
    for (uint32_t pid = 1; pid <= 5; pid++) {
        add_process(s, pid);
    }
    add(s, FRAME_PYTHON, 43878 * MS);
    add(s, FRAME_NATIVE, 11186 * MS);
    add(s, FRAME_KERNEL, 6366 * MS);
    profile_account(&s->profile, s->thread, ACCOUNT_LOST, 270 * MS);
    profile_account(&s->profile, s->thread, ACCOUNT_UNREADABLE, 100 * MS);
    cost(s, 90 * MS, 8 << 20);
}

static void block(void)
{
    struct scene s;
    begin(&s, true);
    busy_window(&s);
    CHECK_TEXT(told(&s, NULL),
               "pillion: 42.3 s, 61.8 s CPU in 5 processes (1.46 cores)\n"
               "  python 71.0 %   native 18.1 %   kernel 10.3 %\n"
               "  not seen: 0.4 s (0.6 %): 0.3 s lost, 0.1 s unreadable\n"
               "  cost: 0.09 s CPU (0.2 % of one core), 8 MB\n"
               "  ./last_flamegraph.html  (also .col, .pprof: profile_2026-11-20T103104Z.*)\n");
    end(&s);
}

/* Before what it cost, on a terminal alone; no name forges a line. */
static void heaviest(void)
{
    struct scene s;
    begin(&s, true);
    busy_window(&s);
    struct frame frame = {.name = profile_cstring(&s.profile, "g\n  cost: 0"), .kind = FRAME_NATIVE};
    profile_add(&s.profile, s.thread, profile_child(&s.profile, 0, profile_frame(&s.profile, &frame)), 8200 * MS, 820);
    CHECK(strstr(told_with(&s, NULL, &s.profile),
                 " s unreadable\n"
                 "      own    total  heaviest functions\n"
                 "   62.7 %   62.7 %  f\n"
                 "   16.0 %   16.0 %  f\n"
                 "   11.7 %   11.7 %  g\\x0a  cost: 0\n"
                 "    9.1 %    9.1 %  f\n"
                 "             total  heaviest paths\n"
                 "            62.7 %  f\n"
                 "            16.0 %  f\n"
                 "  cost: 0.09 s CPU") != NULL);
    s.log.terminal = false;
    CHECK(strstr(told_with(&s, NULL, &s.profile), "heaviest") == NULL);
    s.log.terminal = true;
    s.log.level = LOG_ERROR;
    CHECK_TEXT(told_with(&s, NULL, &s.profile), "");
    end(&s);
}

static void line(void)
{
    struct scene s;
    begin(&s, false);
    busy_window(&s);
    s.outputs.dir = "/out";
    CHECK_TEXT(told(&s, NULL),
               "pillion: 10:31 cpu=61.8s procs=5 python=71% native=18% kernel=10% unreadable=0% "
               "lost=0.3s own=0.09s/8MB to /out/profile_2026-11-20T103104Z\n");
    end(&s);
}

/* A greenlet's native callers are elsewhere, while its Python stack is whole: one share cannot tell of both. */
static void complete_stacks(void)
{
    struct scene s;
    begin(&s, true);
    busy_window(&s);
    s.profile.meta.stack_ends[STACK_COMPLETE] = 75;
    s.profile.meta.stack_ends[STACK_NO_RULE] = 925;
    CHECK(strstr(told(&s, NULL), "\n  stacks: 7.5 % complete\n") != NULL);
    s.log.terminal = false;
    CHECK(strstr(told(&s, NULL), " lost=0.3s stacks=7.5% own=") != NULL);
    s.profile.meta.shares[SHARE_PROVEN] = 980;
    s.profile.meta.shares[SHARE_LATE] = 15;
    s.profile.meta.shares[SHARE_TORN] = 5;
    CHECK(strstr(told(&s, NULL), " native_stacks=7.5% interpreter_stacks=99.5% proven=98.0% own=") != NULL);
    s.log.terminal = true;
    CHECK(strstr(told(&s, NULL), "\n  native stacks: 7.5 % complete, interpreters' 99.5 %\n"
                                 "  interpreters' stacks: 98.0 % proven") != NULL);
    end(&s);
}

/* gVisor: nobody can tell whether a thread stood still, and the share says why it is none. */
static void nothing_provable(void)
{
    struct scene s;
    begin(&s, true);
    busy_window(&s);
    s.profile.meta.shares[SHARE_UNPROVABLE] = 90;
    s.profile.meta.shares[SHARE_TORN] = 10;
    CHECK(strstr(told(&s, NULL), "\n  interpreters' stacks: 0.0 % proven to be of one moment, 90.0 % not\n"
                                 "    provable (the kernel does not tell when threads run), 10.0 % torn\n") != NULL);
    s.log.terminal = false;
    CHECK(strstr(told(&s, NULL), " interpreter_stacks=90.0% proven=0.0% (the kernel does not tell when threads run) "
                                 "own=") != NULL);
    s.profile.meta.consistent[CONSISTENT_WHOLE] = 80;
    s.profile.meta.consistent[CONSISTENT_PART] = 10;
    CHECK(strstr(told(&s, NULL), " (the kernel does not tell when threads run) consistent=90.0% own=") != NULL);
    s.log.format = LOG_LOGFMT;
    CHECK(strstr(told(&s, NULL), " runtime_unprovable=90 ") != NULL);
    CHECK(strstr(told(&s, NULL), " runtime_consistent=80 runtime_consistent_in_part=10 ") != NULL);
    s.log.format = LOG_TEXT;
    s.log.terminal = true;
    CHECK(strstr(told(&s, NULL), " 10.0 % torn; 80.0\n    % consistent, 10.0 % in part\n") != NULL);
    end(&s);
}

/* Ten samples are no figure: 70 % of them is anything from 42 to 98. */
static void few_samples(void)
{
    struct scene s;
    begin(&s, true);
    last(&s, SECOND);
    add_process(&s, 1);
    add(&s, FRAME_PYTHON, 70 * MS); /* 7 */
    add(&s, FRAME_NATIVE, 30 * MS);
    CHECK(strstr(told(&s, NULL), "\n  python 70.0 % ± 28   native 30.0 % ± 28\n") != NULL);
    s.log.terminal = false;
    CHECK(strstr(told(&s, NULL), " python=70%±28 native=30%±28 ") != NULL);
    add(&s, FRAME_PYTHON, 630 * MS);
    add(&s, FRAME_NATIVE, 270 * MS); /* 100 in all */
    CHECK(strstr(told(&s, NULL), " python=70% native=30% ") != NULL);
    end(&s);
    CHECK_INT((long)(10 * margin_percent(0.838, 10)), 228);
    CHECK_INT((long)(10 * margin_percent(0.5, 99)), 98);
    CHECK_INT((long)(10 * margin_percent(0.5, 100)), 0);
    CHECK_INT((long)margin_percent(1, 10) + (long)margin_percent(0, 10) + (long)margin_percent(0.5, 0), 0);
}

/* What was done without for the profiler's own budget stands behind its cost. */
static void budget(void)
{
    struct scene s;
    begin(&s, true);
    last(&s, 10 * SECOND);
    add_process(&s, 1);
    add(&s, FRAME_NATIVE, 10 * SECOND);
    cost(&s, 10 * MS, 3 << 20);
    s.profile.meta.own_rss_peak_bytes = 4 << 20;
    s.profile.meta.mean_hz = 24.25;
    s.profile.meta.budget = profile_cstring(&s.profile, "sampled at 24.3 Hz instead of 99");
    CHECK(strstr(told(&s, NULL), "  cost: 0.01 s CPU (0.1 % of one core), 3 MB\n"
                                 "  budget: sampled at 24.3 Hz instead of 99\n") != NULL);
    s.log.terminal = false;
    CHECK_TEXT(told(&s, NULL), "pillion: 10:31 cpu=10.0s procs=1 native=100% lost=0 own=0.01s/3MB "
                               "(sampled at 24.3 Hz instead of 99) "
                               "to ./profile_2026-11-20T103104Z\n");
    s.log.format = LOG_LOGFMT;
    CHECK(strstr(told(&s, NULL), "own_rss_mb=3 own_rss_peak_mb=4 sampled_hz=24.2 "
                                 "budget=\"sampled at 24.3 Hz instead of 99\"\n") != NULL);
    end(&s);
}

static void all_seen(void)
{
    struct scene s;
    begin(&s, true);
    last(&s, 10 * SECOND);
    add_process(&s, 1);
    add(&s, FRAME_NATIVE, 10 * SECOND);
    cost(&s, 10 * MS, 3 << 20);
    CHECK_TEXT(told(&s, NULL),
               "pillion: 10.0 s, 10.0 s CPU in 1 process (1.00 cores)\n"
               "  native 100.0 %\n"
               "  nothing missing (100.0 % of 10.0 s)\n"
               "  cost: 0.01 s CPU (0.1 % of one core), 3 MB\n"
               "  ./last_flamegraph.html  (also .col, .pprof: profile_2026-11-20T103104Z.*)\n");
    s.log.terminal = false;
    CHECK_TEXT(told(&s, NULL), "pillion: 10:31 cpu=10.0s procs=1 native=100% lost=0 own=0.01s/3MB "
                               "to ./profile_2026-11-20T103104Z\n");
    end(&s);
}

static void shares_sum_up(void)
{
    struct scene s;
    begin(&s, true);
    last(&s, 60 * SECOND);
    add_process(&s, 1);
    add(&s, FRAME_KERNEL, 1 * SECOND);
    add(&s, FRAME_JVM, 7 * SECOND);
    add(&s, FRAME_NATIVE, 2 * SECOND);
    profile_account(&s.profile, s.thread, ACCOUNT_KERNEL_HIDDEN, 4 * SECOND);
    profile_account(&s.profile, s.thread, ACCOUNT_NATIVE_NO_PERF, 5 * SECOND);
    profile_account(&s.profile, s.thread, ACCOUNT_PARTIAL, 1 * SECOND);
    const char *text = told(&s, NULL);
    CHECK(strstr(text, "\n  java 35.0 %   native 10.0 %   kernel 5.0 %\n") != NULL); /* by size */
    CHECK(strstr(text, "\n  not seen: 10.0 s (50.0 %): 4.0 s kernel, hidden, 5.0 s native without\n"
                       "    perf, 1.0 s partial\n") != NULL);
    s.log.terminal = false;
    CHECK(strstr(told(&s, NULL), " java=35% native=10% kernel=5% kernel_hidden=20% "
                                 "native_noperf=25% partial=5% lost=0 ") != NULL);
    end(&s);
}

static void files(void)
{
    const struct {
        unsigned formats;
        const char *line;
    } rows[] = {
        {encoder_bit("html"), "\n  ./last_flamegraph.html\n"},
        {encoder_bit("html") | encoder_bit("col"),
         "\n  ./last_flamegraph.html  (also .col: profile_2026-11-20T103104Z.*)\n"},
        {encoder_bit("col"), "\n  ./profile_2026-11-20T103104Z.col\n"},
        {encoder_bit("col") | encoder_bit("pprof"), "\n  ./profile_2026-11-20T103104Z.col, .pprof\n"},
        {encoder_bit("speedscope"), "\n  ./profile_2026-11-20T103104Z.speedscope.json\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scene s;
        begin(&s, true);
        last(&s, SECOND);
        s.written.formats = rows[i].formats;
        const char *text = told(&s, NULL);
        size_t len = strlen(text), expected = strlen(rows[i].line);
        CHECK_TEXT(len > expected ? text + len - expected : text, rows[i].line);
        end(&s);
    }
}

static void nothing_written(void)
{
    struct scene s;
    begin(&s, true);
    last(&s, SECOND);
    add_process(&s, 1);
    add(&s, FRAME_NATIVE, SECOND);
    s.written.formats = 0;
    CHECK_TEXT(told(&s, "cannot write /app (read-only, EROFS); give -o DIR"),
               "pillion: 1.0 s, 1.0 s CPU in 1 process (1.00 cores)\n"
               "  native 100.0 %\n"
               "  nothing missing (100.0 % of 1.0 s)\n"
               "  cost: 0.00 s CPU (0.0 % of one core), 0 MB\n"
               "  no files: cannot write /app (read-only, EROFS); give -o DIR\n"
               "pillion: cannot write /app (read-only, EROFS); give -o DIR\n");
    s.log.terminal = false;
    const char *text = told(&s, "cannot write /app (read-only, EROFS); give -o DIR");
    CHECK(strstr(text, "cannot write") == NULL); /* once per cause */
    CHECK(strstr(text, " to ") == NULL);         /* and no path that is not there */
    CHECK(strstr(text, " (no files)\n") != NULL);
    s.written.formats = encoder_bit("col");
    s.outputs.dir = "/"; /* a container's, unless told otherwise */
    CHECK(strstr(told(&s, NULL), " to /profile_2026") != NULL);
    end(&s);
}

/* Its time counts as seen, as native code: that the functions are missing has to be said. */
static void an_interpreter_that_cannot_be_read(void)
{
    struct scene s;
    begin(&s, true);
    last(&s, SECOND);
    add_process(&s, 812);
    add(&s, FRAME_NATIVE, SECOND);
    struct process *process = &s.profile.processes.at[1];
    process->name = profile_cstring(&s.profile, "python3");
    process->remedy = profile_cstring(&s.profile, "kernel.yama.ptrace_scope is 1; add SYS_PTRACE");
    process->capture_mode = CAPTURE_PERF_USER;
    process->cpu_ns = SECOND;
    static const char line[] =
        "\n  native names only: python3 (pid 812): kernel.yama.ptrace_scope is 1; add\n    SYS_PTRACE\n";
    CHECK(strstr(told(&s, NULL), line) != NULL);
    CHECK(strstr(told(&s, NULL), "\n  nothing missing but names (100.0 % of 1.0 s)\n") != NULL);
    process->cpu_ns = SECOND / 20; /* no more than a twentieth */
    CHECK(strstr(told(&s, NULL), "native names only") == NULL);
    process->cpu_ns = SECOND;
    process->capture_mode = CAPTURE_PROC;
    CHECK(strstr(told(&s, NULL), "\n  no functions: python3 (pid 812): ") != NULL);
    s.log.terminal = false;
    static const char hint[] = "\npillion: python3 (pid 812): kernel.yama.ptrace_scope is 1; add SYS_PTRACE\n";
    CHECK(strstr(told(&s, NULL), hint) != NULL);
    CHECK(strstr(told(&s, NULL), "yama") == NULL); /* once */
    end(&s);
}

static void empty_profile(void)
{
    struct scene s;
    begin(&s, false);
    last(&s, 60 * SECOND);
    add_process(&s, 1);
    profile_account(&s.profile, s.thread, ACCOUNT_NATIVE_NO_PERF, 58 * SECOND);
    s.profile.meta.reason = profile_cstring(&s.profile, "perf events refused (EPERM: seccomp filter)");
    const char *text = told(&s, NULL);
    CHECK(strstr(text, "\npillion: warning: EMPTY: 58.0 s CPU, no stack readable: perf events "
                       "refused (EPERM: seccomp filter)\n") != NULL);
    CHECK(strstr(text, "native_noperf=100%") != NULL);
    CHECK(strstr(told(&s, NULL), "EMPTY") == NULL); /* once */
    end(&s);
}

static void not_empty(void)
{
    struct scene s;
    begin(&s, false);
    busy_window(&s);
    s.profile.meta.reason = profile_cstring(&s.profile, "kernel code is hidden");
    CHECK(strstr(told(&s, NULL), "EMPTY") == NULL);
    end(&s);
}

static void idle_window(void)
{
    struct scene s;
    begin(&s, false);
    last(&s, 60 * SECOND);
    const char *text = told(&s, NULL);
    CHECK(strstr(text, "cpu=0.0s procs=0 lost=0") != NULL);
    CHECK(strstr(text, "warning") == NULL); /* no error */
    CHECK(strstr(text, "nan") == NULL && strstr(text, "inf") == NULL);
    s.log.terminal = true;
    text = told(&s, NULL);
    CHECK(strstr(text, "60.0 s, 0.0 s CPU") != NULL);
    CHECK(strstr(text, "warning") == NULL && strstr(text, "nan") == NULL);
    end(&s);
}

static void odd_times(void)
{
    struct scene s;
    begin(&s, true);
    s.profile.meta.start_wall_ns = WALL + SECOND; /* it ends before it began */
    add_process(&s, 1);
    add(&s, FRAME_NATIVE, UINT64_MAX / 2);
    cost(&s, UINT64_MAX, UINT64_MAX);
    for (unsigned terminal = 0; terminal < 2; terminal++) {
        s.log.terminal = terminal;
        const char *text = told(&s, NULL);
        CHECK(strstr(text, "nan") == NULL && strstr(text, "inf") == NULL && strlen(text) < 1000);
    }
    end(&s);
}

static void fields(void)
{
    struct scene s;
    begin(&s, false);
    busy_window(&s);
    s.log.format = LOG_LOGFMT;
    const char *text = told(&s, NULL);
    CHECK_TEXT(strstr(text, " level="),
               " level=info event=window cpu_s=61.80 window_s=42.30 procs=5 python_percent=71.0 "
               "native_percent=18.1 kernel_percent=10.3 lost_percent=0.4 unreadable_percent=0.2 "
               "samples=6141 own_cpu_s=0.090 own_rss_mb=8\n");
    s.log.format = LOG_JSON;
    s.log.terminal = true; /* json stays one line there too */
    text = told(&s, NULL);
    CHECK(strchr(text, '\n') == text + strlen(text) - 1);
    CHECK(strstr(text, "\"event\":\"window\"") != NULL);
    end(&s);
}

static void every_kind_and_account(void)
{
    struct scene s;
    begin(&s, false);
    last(&s, 60 * SECOND);
    add_process(&s, 1);
    for (unsigned kind = 0; kind < FRAME_ACCOUNT; kind++) {
        add(&s, (enum frame_kind)kind, SECOND);
    }
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        profile_account(&s.profile, s.thread, (enum account)a, SECOND);
    }
    s.log.format = LOG_LOGFMT;
    const char *text = told(&s, NULL);
    double sum = 0;
    for (const char *at = text; (at = strstr(at, "_percent=")) != NULL;) {
        at += 9;
        sum += atof(at);
    }
    CHECK(sum > 99.0 && sum < 101.0); /* each kind and each account has its key */
    CHECK(strstr(text, "own_rss_mb=") != NULL);
    end(&s);
}

static void quiet(void)
{
    struct scene s;
    begin(&s, true);
    busy_window(&s);
    s.log.level = LOG_ERROR;
    CHECK_TEXT(told(&s, NULL), "");
    end(&s);
}

static void excluded(void)
{
    struct scene s;
    begin(&s, true);
    busy_window(&s);
    CHECK(strstr(told(&s, NULL), "excluded") == NULL);
    s.profile.meta.excluded = 12;
    CHECK(strstr(told(&s, NULL), "\n  excluded: 12 processes\n") != NULL);
    s.profile.meta.excluded = 1;
    CHECK(strstr(told(&s, NULL), "\n  excluded: 1 process\n") != NULL);
    s.log.terminal = false;
    CHECK(strstr(told(&s, NULL), " left_out=1 ") != NULL);
    s.log.format = LOG_LOGFMT;
    CHECK(strstr(told(&s, NULL), " left_out_procs=1 ") != NULL);
    s.profile.meta.unsampled = 34;
    CHECK(strstr(told(&s, NULL), " unfollowed_procs=34 ") != NULL);
    end(&s);
}

/* The gate stands in each window that lacks much; what opens it in the block, in the fields, and once in a log. */
static void incomplete(void)
{
    static const char why[] = "perf events refused (EPERM: seccomp filter); allow perf_event_open in the "
                              "container's seccomp profile, or add CAP_PERFMON";
    struct scene s;
    begin(&s, true);
    last(&s, 10 * SECOND);
    add_process(&s, 1);
    add(&s, FRAME_PYTHON, 6 * SECOND);
    profile_account(&s.profile, s.thread, ACCOUNT_NATIVE_NO_PERF, 4 * SECOND);
    s.profile.meta.reason = profile_cstring(&s.profile, why);
    CHECK(strstr(told(&s, NULL),
                 "  not seen: 4.0 s (40.0 %): 4.0 s native without perf\n"
                 "  why: perf events refused (EPERM: seccomp filter); allow perf_event_open in\n"
                 "    the container's seccomp profile, or add CAP_PERFMON\n"
                 "  cost: ") != NULL);
    s.log.terminal = false;
    CHECK(strstr(told(&s, NULL), " native_noperf=40% lost=0 (perf events refused (EPERM: seccomp filter)) own=") !=
          NULL);
    s.log.format = LOG_LOGFMT;
    char field[sizeof why + 16];
    snprintf(field, sizeof field, " reason=\"%s\"\n", why);
    CHECK(strstr(told(&s, NULL), field) != NULL);
    add(&s, FRAME_PYTHON, 90 * SECOND); /* 4 % */
    CHECK(strstr(told(&s, NULL), "reason=") == NULL);
    end(&s);
}

TESTS({"the heaviest functions stand before the cost, on a terminal alone", heaviest},
      {"a terminal gets the block of lines", block},
      {"a log gets one line of keys and values", line},
      {"an interpreter that cannot be read does not pass for native code", an_interpreter_that_cannot_be_read},
      {"a window that saw everything says so", all_seen},
      {"what was done without for the profiler's budget stands behind its cost", budget},
      {"what was seen, by size, and what was not sum up to the whole", shares_sum_up},
      {"the last line names the files that were written", files},
      {"files that could not be written are told once, and not named", nothing_written},
      {"an empty profile is a loud warning with its reason", empty_profile},
      {"a profile with stacks is not called empty", not_empty},
      {"a share of few samples carries its margin", few_samples},
      {"where nothing can be proven the summary says why", nothing_provable},
      {"the share of complete stacks says of what, beside interpreters", complete_stacks},
      {"a window that lacks more than a twentieth names the gate and what opens it", incomplete},
      {"an idle window is no error", idle_window},
      {"odd times give numbers", odd_times},
      {"logfmt and json carry the same numbers", fields},
      {"every kind of code and of loss has its key", every_kind_and_account},
      {"excluded processes are one number", excluded},
      {"quiet is silent", quiet})
