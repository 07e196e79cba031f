/* Whom a run is about: patterns against what is known of a process, and the answers that targets get. The
 * processes that are asked about are this program and children of it. */
#include "capture/follow/selection.h"
#include "base/time.h"
#include "os/clock.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- patterns ---- */

static bool globs(const char *pattern, const char *text)
{
    return filter_glob(str_of(pattern), str_of(text));
}

static void glob(void)
{
    CHECK(globs("", ""));
    CHECK(globs("*", ""));
    CHECK(globs("**", "x"));
    CHECK(!globs("?", ""));
    CHECK(globs("a?c", "abc"));
    CHECK(!globs("a?c", "ac"));
    CHECK(globs("*worker*", "celery worker -c 4"));
    CHECK(globs("python* *app.py", "python3.11 -u srv/app.py"));
    CHECK(!globs("python* *app.py", "python3.11 -u srv/app.pyc")); /* the whole of it */
    CHECK(!globs("worker", "a worker"));
    CHECK(globs("a*b*c", "aXbYbZc")); /* the second star begins again behind the later b */
    CHECK(!globs("a*b*d", "aXbYbZc"));
    CHECK(!globs("ab*b?", "abc")); /* a star takes nothing that stands before it */
}

/* What would be exponential by recursion: 30 stars against a long text that does not end as it should. */
static void glob_is_bounded(void)
{
    char pattern[64] = "", text[8192];
    for (unsigned i = 0; i < 30; i++) {
        strcat(pattern, "*a");
    }
    strcat(pattern, "b");
    memset(text, 'a', sizeof text);
    CHECK(!filter_glob(str_of(pattern), (struct str){text, sizeof text}));
}

struct kinds {
    filter_kinds at;
};

static void ask_for(struct kinds *k, enum filter_kind kind, const char *text)
{
    struct pattern_list *list = &k->at[kind];
    bool excludes = text[0] == '!';
    list->at[list->count++] = (struct pattern){str_of(text + excludes), excludes};
}

static bool fits(const struct kinds *k, const char *line, const char *exe, const char *container)
{
    const struct filter_facts facts = {str_of(line), str_of(exe), str_of(container)};
    return filter_fits(k->at, &facts);
}

static void nothing_asked(void)
{
    struct kinds k = {0};
    CHECK(!filter_any(k.at));
    CHECK(fits(&k, "", "", ""));
    ask_for(&k, FILTER_EXE, "x");
    CHECK(filter_any(k.at));
}

static void match_is_text_within(void)
{
    struct kinds k = {0};
    ask_for(&k, FILTER_MATCH, "celery worker");
    CHECK(fits(&k, "python3 -m celery worker -c 4", "/usr/bin/python3", ""));
    CHECK(!fits(&k, "python3 -m celery beat", "/usr/bin/python3", ""));
    CHECK(!fits(&k, "", "/usr/bin/python3", "")); /* not known */
    ask_for(&k, FILTER_MATCH, "beat");
    CHECK(fits(&k, "python3 -m celery beat", "/usr/bin/python3", "")); /* any of them */
}

static void exe_is_a_name_or_a_path(void)
{
    struct kinds name = {0}, path = {0}, some = {0};
    ask_for(&name, FILTER_EXE, "nginx");
    CHECK(fits(&name, "nginx: worker process", "/usr/sbin/nginx", ""));
    CHECK(!fits(&name, "nginx", "/usr/sbin/nginx-debug", ""));
    CHECK(!fits(&name, "nginx", "/opt/nginx/run", ""));
    ask_for(&path, FILTER_EXE, "/usr/sbin/nginx");
    CHECK(fits(&path, "x", "/usr/sbin/nginx", ""));
    CHECK(!fits(&path, "x", "/opt/sbin/nginx", ""));
    ask_for(&some, FILTER_EXE, "python3*");
    CHECK(fits(&some, "x", "/usr/bin/python3.11", ""));
    CHECK(!fits(&some, "x", "/usr/bin/python2.7", ""));
}

static void container_is_a_prefix(void)
{
    struct kinds k = {0};
    ask_for(&k, FILTER_CONTAINER, "0123abcd");
    CHECK(fits(&k, "x", "/x", "0123abcd4567"));
    CHECK(!fits(&k, "x", "/x", "0123abc"));
    CHECK(!fits(&k, "x", "/x", ""));
}

static void kinds_hold_together(void)
{
    struct kinds k = {0};
    ask_for(&k, FILTER_EXE, "python3");
    ask_for(&k, FILTER_MATCH, "web");
    CHECK(fits(&k, "python3 web.py", "/usr/bin/python3", ""));
    CHECK(!fits(&k, "python3 job.py", "/usr/bin/python3", ""));
    CHECK(!fits(&k, "sh web.sh", "/bin/sh", ""));
}

static void exclamation_marks_leave_out(void)
{
    struct kinds k = {0};
    ask_for(&k, FILTER_EXE, "!gcc");
    CHECK(fits(&k, "make", "/usr/bin/make", "")); /* with excluding ones alone the rest fits … */
    CHECK(fits(&k, "make", "", ""));              /* … and so does what is not known */
    CHECK(!fits(&k, "gcc -c x.c", "/usr/bin/gcc", ""));
    ask_for(&k, FILTER_EXE, "*c*");
    CHECK(!fits(&k, "gcc -c x.c", "/usr/bin/gcc", "")); /* they win over those that must hold */
    CHECK(fits(&k, "cc1 x.c", "/usr/lib/cc1", ""));
    CHECK(!fits(&k, "make", "/usr/bin/make", ""));
}

static void arguments_are_joined(void)
{
    struct buf text;
    buf_init(&text, 64);
    buf_add(&text, "sh\0-c\0echo a  b\0\0\0", 18);
    filter_join_arguments(&text);
    CHECK_STR(buf_slice(&text), "sh -c echo a  b");
    buf_clear(&text);
    buf_add(&text, "\0", 1);
    filter_join_arguments(&text);
    CHECK_INT(text.len, 0);
    filter_join_arguments(&text);
    buf_release(&text);
}

/* ---- answers ---- */

struct run {
    struct settings settings;
    struct log log;
    struct world world;
    struct images images;
    struct targets targets;
    struct selection selection;
};

static void begin(struct run *r, enum filter_kind kind, const char *pattern, uint64_t min_ns)
{
    *r = (struct run){.settings = {.scope.min_duration_ns = min_ns, .log.level = LOG_ERROR}};
    if (pattern != NULL) {
        struct pattern_list *list = &r->settings.scope.filters[kind];
        bool excludes = pattern[0] == '!';
        list->at[list->count++] = (struct pattern){str_of(pattern + excludes), excludes};
    }
    log_open(&r->log, &r->settings);
    r->world = world_here();
    images_init(&r->images, &r->world);
    targets_init(&r->targets, &r->images, false);
    r->targets.min_duration_ns = min_ns;
    selection_init(&r->selection, &r->settings, &r->log);
}

static void end(struct run *r)
{
    selection_release(&r->selection);
    targets_release(&r->targets);
    images_release(&r->images);
    log_close(&r->log);
}

/* A child that has become `sleep 60`, or waits as a copy of this program. */
static pid_t start(bool exec)
{
    int ends[2];
    char byte;
    fflush(stdout);
    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        if (exec) {
            execlp("sleep", "sleep", "60", NULL);
        }
        (void)!write(ends[1], "", 1);
        pause();
    }
    close(ends[1]);
    CHECK_INT(read(ends[0], &byte, 1), exec ? 0 : 1); /* closed by the exec … */
    close(ends[0]);
    struct buf text;
    buf_init(&text, 8192);
    while (exec && (!proc_read((uint32_t)pid, 0, "cmdline", &text, NULL) || text.len == 0)) {
        usleep(1000); /* … which makes the arguments a moment later */
    }
    buf_release(&text);
    return pid;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
}

static struct target *judged(struct run *r, pid_t pid)
{
    struct target *target = targets_get(&r->targets, (uint32_t)pid);
    selection_evaluate(&r->selection, target, clock_mono_ns());
    return target;
}

static bool is_out(const struct target *target)
{
    return targets_is_excluded(target, clock_mono_ns());
}

static void by_command_line_and_exe(void)
{
    struct run r;
    pid_t sleeper = start(true), copy = start(false);
    begin(&r, FILTER_MATCH, "sleep 60", 0);
    CHECK(r.selection.active);
    CHECK(!is_out(judged(&r, sleeper)));
    CHECK(is_out(judged(&r, copy)));
    CHECK_INT(selection_excluded(&r.targets), 1);
    end(&r);
    begin(&r, FILTER_EXE, "filter_test", 0);
    CHECK(is_out(judged(&r, sleeper)));
    CHECK(!is_out(judged(&r, copy)));
    end(&r);
    begin(&r, FILTER_CONTAINER, "ffffffffffff", 0);
    CHECK(is_out(judged(&r, sleeper)));
    end(&r);
    stop(sleeper);
    stop(copy);
}

static void what_is_named(void)
{
    struct run r;
    pid_t copy = start(false);
    begin(&r, FILTER_MATCH, "sleep 60", 3600 * NS_PER_S);
    struct target *target = targets_get(&r.targets, (uint32_t)copy);
    target->named = true;
    selection_evaluate(&r.selection, target, clock_mono_ns());
    CHECK(!is_out(target));
    CHECK(!target->filter.skipped);
    targets_fork(&r.targets, 77777777, 77777777, (uint32_t)copy, (uint32_t)copy, clock_mono_ns());
    CHECK(is_out(targets_find(&r.targets, 77777777))); /* what it starts is judged */
    CHECK_INT(selection_excluded(&r.targets), 1);
    end(&r);
    stop(copy);
}

static void gone_before_its_exec_was_read(void)
{
    enum { GONE = 0x7ffffff0 };
    struct run r;
    begin(&r, FILTER_MATCH, "gcc", 0);
    struct target *target = targets_get(&r.targets, GONE);
    targets_comm(&r.targets, GONE, GONE, STR("x86_64-gcc"), true);
    selection_evaluate(&r.selection, target, 1);
    CHECK(!is_out(target)); /* its name stands for its command line */
    targets_comm(&r.targets, GONE, GONE, STR("as"), true);
    selection_evaluate(&r.selection, target, 2);
    CHECK(is_out(target));
    CHECK(target->filter.skipped); /* nothing was sampled while it was in … */
    targets_comm(&r.targets, GONE, GONE, STR("gcc"), true);
    selection_evaluate(&r.selection, target, 3);
    CHECK(!target->filter.skipped);
    target->account.sampled_ns = 1;
    targets_comm(&r.targets, GONE, GONE, STR("as"), true);
    selection_evaluate(&r.selection, target, 4);
    CHECK(is_out(target) && !target->filter.skipped); /* … or some was */
    end(&r);
    begin(&r, FILTER_EXE, "/usr/bin/gcc", 0);
    target = targets_get(&r.targets, GONE);
    selection_evaluate(&r.selection, target, 1);
    CHECK(is_out(target) && target->filter.exe_unknown && target->filter.skipped);
    selection_evaluate_path(&r.selection, target, STR("/usr/bin/gcc"), 2); /* the first file it mapped */
    CHECK(!is_out(target) && !target->filter.exe_unknown && !target->filter.skipped);
    end(&r);
}

static void young(void)
{
    struct run r;
    uint64_t now_ns = clock_mono_ns(), hour_ns = 3600 * NS_PER_S;
    begin(&r, 0, NULL, hour_ns);
    CHECK(r.selection.active && !r.selection.filters);
    targets_fork(&r.targets, 77777777, 77777777, (uint32_t)getpid(), (uint32_t)getpid(), now_ns);
    struct target *child = targets_find(&r.targets, 77777777);
    CHECK(child != NULL && child->filter.of_age_ns == 0); /* an unknown parent's: judged by itself */
    (void)targets_get(&r.targets, (uint32_t)getpid());
    targets_fork(&r.targets, 77777778, 77777778, (uint32_t)getpid(), (uint32_t)getpid(), now_ns);
    child = targets_find(&r.targets, 77777778);
    CHECK_INT(child->filter.of_age_ns, now_ns + hour_ns);
    CHECK(targets_is_excluded(child, now_ns + hour_ns - 1));
    CHECK(!targets_is_excluded(child, now_ns + hour_ns));
    CHECK(child->filter.skipped);
    selection_close_window(&r.targets, now_ns + hour_ns - 1);
    CHECK(child->filter.skipped);
    selection_close_window(&r.targets, now_ns + hour_ns);
    CHECK(!child->filter.skipped); /* it came of age in this window */
    end(&r);
}

static void young_strangers(void)
{
    struct run r;
    pid_t copy = start(false);
    struct buf text;
    struct proc_stat stat;
    buf_init(&text, 8192);
    CHECK(proc_read((uint32_t)copy, 0, "stat", &text, NULL));
    CHECK(stat_parse(buf_slice(&text), &stat, NULL));
    begin(&r, 0, NULL, 3600 * NS_PER_S);
    struct scan_known known = {.checks = 4};
    CHECK(!selection_accepts(&r.selection, &stat, &known));
    CHECK(known.excluded);
    uint64_t left_ns = known.again_ns - clock_mono_ns(); /* when it will be of age, to the tick */
    CHECK(left_ns > 3590 * NS_PER_S && left_ns < 3601 * NS_PER_S);
    end(&r);
    begin(&r, FILTER_EXE, "!filter_test", 1);
    CHECK(!selection_accepts(&r.selection, &stat, &known));
    end(&r);
    begin(&r, FILTER_EXE, "filter_test", 1);
    CHECK(selection_accepts(&r.selection, &stat, &known));
    CHECK(!known.excluded);
    end(&r);
    begin(&r, 0, NULL, 0);
    CHECK(!r.selection.active);
    CHECK(selection_accepts(&r.selection, &stat, &known));
    end(&r);
    buf_release(&text);
    stop(copy);
}

static void descriptions(void)
{
    struct run r;
    struct buf text;
    pid_t sleeper = start(true);
    buf_init(&text, 8192);
    begin(&r, FILTER_EXE, "!bash", 2 * NS_PER_S);
    selection_describe_filters(&r.selection, &text);
    CHECK_STR(buf_slice(&text), "--exe !bash --min-duration 2s");
    buf_clear(&text);
    selection_describe(&r.selection, (uint32_t)sleeper, &text);
    CHECK(strstr(buf_cstr(&text), " sleep 60 (/") != NULL);
    end(&r);
    stop(sleeper);
    buf_release(&text);
}

TESTS({"a glob is over the whole text, * any bytes and ? one", glob},
      {"a glob of many stars takes time by pattern and text alone", glob_is_bounded},
      {"without patterns everything fits", nothing_asked},
      {"--match is text anywhere in the command line", match_is_text_within},
      {"--exe is the file's name, or with a slash its path", exe_is_a_name_or_a_path},
      {"--container is the beginning of an id", container_is_a_prefix},
      {"patterns of different kinds must all hold", kinds_hold_together},
      {"a pattern behind ! leaves out, and wins", exclamation_marks_leave_out},
      {"arguments are joined by blanks", arguments_are_joined},
      {"targets are judged by what /proc says of them", by_command_line_and_exe},
      {"what was given by name stays whatever the filters say, and not what it starts", what_is_named},
      {"what ended before its facts were read is judged by its records", gone_before_its_exec_was_read},
      {"a target is excluded until it is of age", young},
      {"a young stranger is asked about again when it is of age", young_strangers},
      {"filters and processes are described for people", descriptions})
