/* Starting a command beside a profiler, with real processes. The "profiler" is a function of this file. */
#include "os/launch.h"
#include "child.h"
#include "os/clock.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { MS = 1000000 };

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[4][256];
    static unsigned next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", dir, name);
    return out;
}

static void begin(void)
{
    snprintf(dir, sizeof dir, "/tmp/launch_test.XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    CHECK_INT(chmod(dir, 0777), 0);
}

static void end(void)
{
    DIR *stream = opendir(dir);
    for (struct dirent *e; (e = readdir(stream)) != NULL;) {
        if (e->d_name[0] != '.') {
            CHECK_INT(remove(in_dir(e->d_name)), 0);
        }
    }
    closedir(stream);
    CHECK_INT(rmdir(dir), 0);
}

static void put(const char *name, const char *text, mode_t mode)
{
    int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    CHECK_INT(fchmod(fd, mode), 0);
    close(fd);
}

static const char *content(const char *name)
{
    static char text[2][8192];
    static unsigned next;
    char *out = text[next++ % 2];
    int fd = open(in_dir(name), O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, out, sizeof text[0] - 1);
    out[len < 0 ? 0 : len] = '\0';
    if (fd >= 0) {
        close(fd);
    }
    return out;
}

/* Waits until a file has content, at most ten seconds. */
static const char *awaited(const char *name)
{
    for (unsigned i = 0; i < 1000 && content(name)[0] == '\0'; i++) {
        clock_sleep_ns(10 * MS);
    }
    return content(name);
}

/* ---- profilers ---- */

static int ready_and_done(void *context, struct launch_target *target)
{
    (void)context;
    return launch_ready(target) ? 0 : 1;
}

static int dies_early(void *context, struct launch_target *target)
{
    (void)context, (void)target;
    return 1;
}

static int never_ready(void *context, struct launch_target *target)
{
    (void)context, (void)target;
    clock_sleep_ns((uint64_t)3000 * MS);
    return 0;
}

static void note(const char *text)
{
    int fd = open(in_dir("profiler"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (write(fd, text, strlen(text)) < 0) {
        _exit(99);
    }
    close(fd);
}

/* "0 1 2 …": the open descriptors, without those to the command and to the parent. */
static int lists_descriptors(void *context, struct launch_target *target)
{
    char text[512] = "";
    (void)context;
    for (int fd = 0; fd < 1024; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 && fd != target->link_fd && fd != target->init_fd) {
            snprintf(text + strlen(text), sizeof text - strlen(text), "%d ", fd);
        }
    }
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", target->fresh ? "fresh" : "",
             getsid(0) == getpid() ? " session" : "");
    note(text);
    return ready_and_done(context, target);
}

static int works_until_the_end(void *context, struct launch_target *target)
{
    (void)context;
    int fd = signals_open();
    (void)launch_ready(target);
    int sig = 0;
    for (unsigned i = 0; i < 100 && (sig = signals_next(fd, NULL)) == 0; i++) {
        signals_wait(fd, 100 * MS);
    }
    note(sig == SIGNAL_COMMAND_ENDED ? "flushed" : "nothing was told");
    return 0;
}

/* A machine under load: the command has come and gone before the profiler looks at its signals. */
static int begins_late(void *context, struct launch_target *target)
{
    (void)launch_ready(target);
    clock_sleep_ns(300 * MS);
    return works_until_the_end(context, target);
}

static int goes_on_alone(void *context, struct launch_target *target)
{
    (void)context;
    int fd = signals_open();
    (void)launch_ready(target);
    for (unsigned i = 0; i < 100 && signals_next(fd, NULL) == 0; i++) {
        signals_wait(fd, 100 * MS);
    }
    launch_leave(target->init_fd);
    clock_sleep_ns((uint64_t)1500 * MS);
    note("went on");
    return 0;
}

static int ignores_the_end(void *context, struct launch_target *target)
{
    (void)context;
    signal(SIGNAL_COMMAND_ENDED, SIG_IGN);
    (void)launch_ready(target);
    clock_sleep_ns((uint64_t)4000 * MS);
    return 0;
}

static int crashes_once(void *context, struct launch_target *target)
{
    (void)context;
    note(target->fresh ? "fresh " : "again ");
    (void)launch_ready(target);
    if (target->fresh) {
        raise(SIGKILL);
    }
    return 0;
}

/* ---- running ---- */

struct caller {
    bool direct; /* without us: what it is compared with */
    bool init;
    int (*profiler)(void *context, struct launch_target *target);
    void (*prepare)(void);
    void (*hide)(void *context);
};

__attribute__((noreturn)) static void become_caller(const struct caller *caller, char *const *argv)
{
    int out = open(in_dir("out"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int problems = open(in_dir("err"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    dup2(out, STDOUT_FILENO);
    dup2(problems, STDERR_FILENO);
    close(out);
    close(problems);
    if (caller->prepare != NULL) {
        caller->prepare();
    }
    if (caller->direct) {
        execvp(argv[0], argv);
        _exit(98);
    }
    struct launch launch = {.argv = argv,
                            .init = caller->init,
                            .run = caller->profiler != NULL ? caller->profiler : ready_and_done,
                            .hide = caller->hide};
    struct err err = {0};
    int status = launch_run(&launch, &err);
    if (err.kind != ERR_NONE) {
        dprintf(STDERR_FILENO, "%s\n", err.text);
    }
    _exit(status);
}

static pid_t start(const struct caller *caller, char *const *argv)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        become_caller(caller, argv);
    }
    CHECK(pid > 0);
    return pid;
}

/* The status as waitpid has it. */
static int finish(pid_t pid)
{
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

static int run(const struct caller *caller, const char *script)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", script);
    char shell[] = "/bin/sh", option[] = "-c";
    char *argv[] = {shell, option, text, NULL};
    return finish(start(caller, argv));
}

static int run_one(const struct caller *caller, const char *word)
{
    char text[5000];
    snprintf(text, sizeof text, "%s", word);
    char *argv[] = {text, NULL};
    return finish(start(caller, argv));
}

static const struct caller shapes[] = {{.init = false}, {.init = true}};

/* ---- finding ---- */

static int find(const char *word, char path[static 4096], struct err *err)
{
    *err = (struct err){0};
    path[0] = '\0';
    return launch_find(word, path, 4096, err);
}

static void found(void)
{
    char path[4096], search[256], kept[4096];
    struct err err;
    begin();
    snprintf(kept, sizeof kept, "%s", getenv("PATH"));
    put("prog", "#!/bin/sh\n", 0755);
    put("plain", "", 0644);
    CHECK_INT(find(in_dir("prog"), path, &err), 0);
    CHECK_TEXT(path, in_dir("prog"));
    snprintf(search, sizeof search, "/nowhere:%s:/bin", dir);
    setenv("PATH", search, 1);
    CHECK_INT(find("prog", path, &err), 0);
    CHECK_TEXT(path, in_dir("prog"));
    CHECK_INT(find("sh", path, &err), 0);
    CHECK_TEXT(path, "/bin/sh");
    snprintf(search, sizeof search, "%s:/bin", dir);
    setenv("PATH", search, 1);
    put("sh", "", 0644); /* not executable: the search goes on */
    CHECK_INT(find("sh", path, &err), 0);
    CHECK_TEXT(path, "/bin/sh");
    unsetenv("PATH");
    CHECK_INT(find("sh", path, &err), 0);
    char here[4096];
    CHECK(getcwd(here, sizeof here) != NULL);
    CHECK_INT(chdir(dir), 0);
    setenv("PATH", "/nowhere:", 1); /* an empty part is the working directory */
    CHECK_INT(find("prog", path, &err), 0);
    CHECK_TEXT(path, "prog");
    setenv("PATH", "", 1);
    CHECK_INT(find("prog", path, &err), 0);
    CHECK_INT(chdir(here), 0);
    setenv("PATH", kept, 1);
    end();
}

static void not_found(void)
{
    char path[4096], word[6000];
    struct err err;
    begin();
    put("plain", "", 0644);
    put("prog", "", 0755);
    CHECK_INT(find("./srve.sh", path, &err), 127);
    CHECK_TEXT(err.text, "./srve.sh: not found");
    CHECK_INT(find("no-such-program-here", path, &err), 127);
    CHECK_TEXT(err.text, "no-such-program-here: not found");
    CHECK_INT(find("", path, &err), 127);
    CHECK_INT(find(in_dir("plain/below"), path, &err), 127);
    CHECK_INT(find(in_dir("plain"), path, &err), 126);
    snprintf(word, sizeof word, "%s/plain: not executable; try: chmod +x %s/plain", dir, dir);
    CHECK_TEXT(err.text, word);
    CHECK_INT(find(dir, path, &err), 126);
    snprintf(word, sizeof word, "%s: not executable: it is a directory", dir);
    CHECK_TEXT(err.text, word);
    char kept[4096];
    snprintf(kept, sizeof kept, "%s", getenv("PATH"));
    setenv("PATH", dir, 1);
    CHECK_INT(find("plain", path, &err), 126); /* there, but not executable */
    setenv("PATH", "/", 1);
    CHECK_INT(find("bin", path, &err), 127); /* a directory on the way is no candidate */
    setenv("PATH", kept, 1);
    memset(word, '/', sizeof word); /* its beginning would be a directory that exists */
    word[sizeof word - 1] = '\0';
    CHECK_INT(find(word, path, &err), 126);
    CHECK_INT(err.number, ENAMETOOLONG);
    memset(word, 'a', sizeof word - 1);
    CHECK_INT(find(word, path, &err), 127);
    end();
}

/* ---- status ---- */

static void statuses(void)
{
    begin();
    static const int codes[] = {0, 1, 7, 125, 126, 127, 255};
    for (unsigned shape = 0; shape < 2; shape++) {
        for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
            char script[32];
            snprintf(script, sizeof script, "exit %d", codes[i]);
            int status = run(&shapes[shape], script);
            CHECK(WIFEXITED(status));
            CHECK_INT(WEXITSTATUS(status), codes[i]);
            CHECK_TEXT(content("err"), "");
        }
    }
    end();
}

static void killed(void)
{
    begin();
    int status = run(&shapes[0], "kill -9 $$");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* it is the command itself */
    status = run(&shapes[1], "kill -9 $$");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 137);
    status = run(&shapes[1], "kill -TERM $$");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 143);
    end();
}

static void cannot_start(void)
{
    begin();
    put("plain", "", 0644);
    put("script", "#!/nowhere/interpreter -x\n", 0755);
    char expected[512];
    for (unsigned shape = 0; shape < 2; shape++) {
        int status = run_one(&shapes[shape], "/nowhere/prog");
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 127);
        CHECK(strstr(content("err"), "/nowhere/prog: not found\n") != NULL);
        status = run_one(&shapes[shape], in_dir("plain"));
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 126);
        CHECK(strstr(content("err"), "plain: not executable; try: chmod +x ") != NULL);
        status = run_one(&shapes[shape], in_dir("script"));
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 127);
        snprintf(expected, sizeof expected,
                 "%s/script: its interpreter /nowhere/interpreter does not exist\n", dir);
        CHECK(strstr(content("err"), expected) != NULL);
    }
    end();
}

static void script_without_first_line(void)
{
    begin();
    put("script", "echo \"$0 $1 $#\"\nexit 6\n", 0755);
    char word[256], one[] = "one", two[] = "two words";
    snprintf(word, sizeof word, "%s", in_dir("script"));
    char *argv[] = {word, one, two, NULL};
    for (unsigned shape = 0; shape < 2; shape++) {
        int status = finish(start(&shapes[shape], argv));
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 6);
        char expected[300];
        snprintf(expected, sizeof expected, "%s one 2\n", word);
        CHECK_TEXT(content("out"), expected);
    }
    end();
}

/* ---- nothing else changes ---- */

static void pid_is_kept(void)
{
    begin();
    char shell[] = "/bin/sh", option[] = "-c", text[] = "echo $$ $PPID";
    char *argv[] = {shell, option, text, NULL};
    char expected[64];
    pid_t pid = start(&shapes[0], argv);
    CHECK_INT(finish(pid), 0);
    snprintf(expected, sizeof expected, "%d %d\n", (int)pid, (int)getpid());
    CHECK_TEXT(content("out"), expected);
    pid = start(&shapes[1], argv);
    CHECK_INT(finish(pid), 0);
    snprintf(expected, sizeof expected, " %d\n", (int)pid);
    CHECK(strstr(content("out"), expected) != NULL); /* its parent is what was started */
    end();
}

static void same_as_without(void (*prepare)(void), char *const *argv)
{
    char direct[8192];
    begin();
    struct caller caller = {.direct = true, .prepare = prepare};
    int status = finish(start(&caller, argv));
    snprintf(direct, sizeof direct, "%s", content("out"));
    CHECK(strlen(direct) > 0);
    caller.direct = false;
    for (unsigned shape = 0; shape < 2; shape++) {
        caller.init = shape == 1;
        CHECK_INT(finish(start(&caller, argv)), status);
        CHECK_TEXT(content("out"), direct);
        CHECK_TEXT(content("err"), "");
    }
    end();
}

static void shell_same_as_without(void (*prepare)(void), const char *script)
{
    char shell[] = "/bin/sh", option[] = "-c", text[1024];
    char *argv[] = {shell, option, text, NULL};
    snprintf(text, sizeof text, "%s", script);
    same_as_without(prepare, argv);
}

/* Not by the shell, which sets some itself. */
static char signals_program[] = "grep", signals_of[] = "^\\(Sig\\|Shd\\)[PBIC]",
            signals_file[] = "/proc/self/status";
static char *const signals[] = {signals_program, signals_of, signals_file, NULL};

static void signals_kept(void)
{
    same_as_without(NULL, signals);
}

static void odd_signals(void)
{
    signal(SIGUSR1, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGRTMIN + 3, SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGRTMAX);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_SETMASK, &set, NULL);
}

static void odd_signals_kept(void)
{
    same_as_without(odd_signals, signals);
}

static void pending_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGRTMIN + 3);
    sigprocmask(SIG_SETMASK, &set, NULL);
    CHECK_INT(kill(getpid(), SIGUSR1), 0);
    CHECK_INT(kill(getpid(), SIGTERM), 0);
    CHECK_INT(sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 7}), 0);
}

/* A machine under load: the command has long begun before this process comes to its own. */
static void take_long(void *context)
{
    (void)context;
    clock_sleep_ns(300 * MS);
}

static void pending_signals_kept(void)
{
    char bare[4096];
    begin();
    CHECK_INT(finish(start(&(struct caller){.direct = true, .prepare = pending_signals}, signals)), 0);
    snprintf(bare, sizeof bare, "%s", content("out"));
    CHECK(strstr(bare, "ShdPnd:\t") != NULL && strstr(bare, "ShdPnd:\t0000000000000000\n") == NULL);
    for (unsigned i = 0; i < 2; i++) {
        struct caller caller = {.init = i == 1, .prepare = pending_signals, .hide = take_long};
        CHECK_INT(finish(start(&caller, signals)), 0);
        CHECK_TEXT(content("out"), bare);
    }
    end();
}

static void child_signal_blocked(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_SETMASK, &set, NULL);
}

static void no_child_signal(void)
{
    /* read by the shell itself: it would get a signal of its own children */
    shell_same_as_without(child_signal_blocked,
                    "while read -r key value; do case $key in ShdPnd:|SigPnd:) echo $key $value;; "
                    "esac; done </proc/self/status");
}

static void odd_descriptors(void)
{
    close(STDIN_FILENO);
    CHECK_INT(dup2(STDOUT_FILENO, 3), 3);
    CHECK_INT(dup2(STDOUT_FILENO, 11), 11);
    CHECK_INT(dup2(STDOUT_FILENO, 700), 700);
}

static void descriptors_kept(void)
{
    shell_same_as_without(NULL, "ls /proc/self/fd");
    shell_same_as_without(odd_descriptors, "ls /proc/self/fd");
}

static void no_descriptors(void)
{
    for (int fd = 0; fd < 3; fd++) {
        close(fd);
    }
}

static void all_closed(void)
{
    begin();
    struct caller caller = {.direct = true, .prepare = no_descriptors};
    char script[256], direct[8192];
    snprintf(script, sizeof script, "ls /proc/self/fd >%s/seen; exit 9", dir);
    CHECK(WEXITSTATUS(run(&caller, script)) == 9);
    snprintf(direct, sizeof direct, "%s", content("seen"));
    CHECK(strncmp(direct, "0\n1\n", 4) == 0 && strstr(direct, "\n2\n") == NULL);
    caller.direct = false;
    for (unsigned shape = 0; shape < 2; shape++) {
        CHECK_INT(unlink(in_dir("seen")), 0);
        caller.init = shape == 1;
        int status = run(&caller, script);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9);
        CHECK_TEXT(content("seen"), direct);
    }
    end();
}

static void odd_surroundings(void)
{
    umask(0123);
    CHECK_INT(chdir("/proc"), 0);
    setenv("ODD", "a b=c", 1);
    struct rlimit limit = {77, 99};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_INT(nice(3), 3);
}

static void surroundings_kept(void)
{
    shell_same_as_without(odd_surroundings, "umask; pwd; env | grep -v '^_='; ulimit -n; ulimit -Hn; nice; "
                                      "cat /proc/self/oom_score_adj");
}

static void stdin_is_the_commands(void)
{
    int ends[2];
    CHECK_INT(pipe2(ends, 0), 0);
    CHECK(write(ends[1], "line\n", 5) == 5);
    close(ends[1]);
    CHECK_INT(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
}

static void stdin_kept(void)
{
    shell_same_as_without(stdin_is_the_commands, "read a; echo \"<$a>\"; read b || echo end");
}

/* ---- the profiler ---- */

static void profiler_closes_everything(void)
{
    begin();
    struct caller caller = {.profiler = lists_descriptors, .prepare = odd_descriptors};
    for (unsigned shape = 0; shape < 2; shape++) {
        caller.init = shape == 1;
        CHECK_INT(run(&caller, "exit 0"), 0);
        CHECK_TEXT(awaited("profiler"), "0 1 2 fresh session");
        CHECK_INT(unlink(in_dir("profiler")), 0);
    }
    end();
}

static void dead_profiler(void)
{
    begin();
    struct caller caller = {.profiler = dies_early};
    for (unsigned shape = 0; shape < 2; shape++) {
        caller.init = shape == 1;
        uint64_t took_ns = UINT64_MAX;
        for (unsigned i = 0; i < 3 && took_ns >= LAUNCH_READY_MAX_MS * (uint64_t)MS; i++) {
            uint64_t began_ns = clock_mono_ns(); /* others may want the CPUs once, or twice */
            int status = run(&caller, "echo ran; exit 3");
            took_ns = clock_mono_ns() - began_ns;
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
            CHECK_TEXT(content("out"), "ran\n");
        }
        const char *said = shape == 1 ? "" : "pillion: no profile: the profiler died before it could begin\n";
        CHECK_TEXT(content("err"), said); /* beside a parent that stays it has ended as it meant to: by 1 */
        CHECK(took_ns < LAUNCH_READY_MAX_MS * (uint64_t)MS);
    }
    end();
}

static void hanging_profiler(void)
{
    begin();
    struct caller caller = {.profiler = never_ready};
    for (unsigned shape = 0; shape < 2; shape++) {
        caller.init = shape == 1;
        uint64_t began_ns = clock_mono_ns();
        int status = run(&caller, "echo ran; exit 3");
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
        CHECK_TEXT(content("out"), "ran\n");
        uint64_t took_ms = (clock_mono_ns() - began_ns) / MS;
        uint64_t most_ms = LAUNCH_READY_MAX_MS + (shape == 1 ? LAUNCH_FLUSH_MAX_MS : 0); /* it may still write */
        CHECK(took_ms >= LAUNCH_READY_MAX_MS - 10 && took_ms < most_ms + 1500);
    }
    end();
}

static void no_process_left(void)
{
    drop_root();
    struct rlimit limit = {1, 1};
    CHECK_INT(setrlimit(RLIMIT_NPROC, &limit), 0);
    pid_t pid = fork();
    if (pid >= 0) { /* the limit does not hold for this user */
        _exit(pid == 0 ? 0 : 77);
    }
}

static void limit_of_processes(void)
{
    begin();
    struct caller caller = {.prepare = no_process_left};
    bool ran = true;
    for (unsigned shape = 0; shape < 2 && ran; shape++) {
        caller.init = shape == 1;
        int status = run(&caller, "echo ran; exit 5");
        ran = !(WIFEXITED(status) && WEXITSTATUS(status) == 77);
        CHECK(!ran || (WIFEXITED(status) && WEXITSTATUS(status) == 5));
        CHECK(!ran || strcmp(content("out"), "ran\n") == 0);
    }
    end();
    if (!ran) {
        SKIP("a limit of processes does not hold for this user");
    }
}

/* ---- the parent that stays ---- */

static void passes_signals_on(void)
{
    begin();
    char shell[] = "/bin/sh", option[] = "-c";
    char text[] = "trap 'echo term; exit 8' TERM; trap 'echo hup' HUP; echo ready; "
                  "while :; do sleep 0.05; done";
    char *argv[] = {shell, option, text, NULL};
    pid_t pid = start(&shapes[1], argv);
    CHECK_TEXT(awaited("out"), "ready\n");
    kill(pid, SIGHUP);
    for (unsigned i = 0; i < 1000 && strstr(content("out"), "hup") == NULL; i++) {
        clock_sleep_ns(10 * MS);
    }
    kill(pid, SIGTERM);
    int status = finish(pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 8);
    CHECK_TEXT(content("out"), "ready\nhup\nterm\n");
    end();
}

static void waits_for_the_flush(void)
{
    begin();
    struct caller caller = {.init = true, .profiler = works_until_the_end};
    uint64_t began_ns = clock_mono_ns();
    int status = run(&caller, "exit 4");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    CHECK_TEXT(content("profiler"), "flushed"); /* before the status was there */
    CHECK(clock_mono_ns() - began_ns < LAUNCH_FLUSH_MAX_MS * (uint64_t)MS);
    end();
}

static void told_early(void)
{
    begin();
    struct caller caller = {.init = true, .profiler = begins_late};
    int status = run(&caller, "exit 4");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    CHECK_TEXT(content("profiler"), "flushed");
    end();
}

static void set_alarm(void)
{
    (void)alarm(1);
}

static void alarm_rings(void)
{
    begin();
    struct caller caller = {.init = true, .prepare = set_alarm};
    int status = run(&caller, "trap 'echo rang; exit 6' ALRM; for i in $(seq 200); do sleep 0.05; done");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 6);
    CHECK_TEXT(content("out"), "rang\n");
    end();
}

static void adopt(void)
{
    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

static void still_adopts(void)
{
    begin();
    struct caller caller = {.init = true, .prepare = adopt};
    CHECK_INT(run(&caller, "(sh -c 'sleep 0.3; cut -d\" \" -f4 /proc/$$/stat; :' &); sleep 1; echo $$"), 0);
    unsigned parent = 0, command = 1;
    CHECK_INT(sscanf(content("out"), "%u %u", &parent, &command), 2);
    CHECK_INT(parent, command);
    end();
}

static void left_alone(void)
{
    begin();
    struct caller caller = {.init = true, .profiler = goes_on_alone};
    int status = run(&caller, "exit 5");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    CHECK_TEXT(content("profiler"), ""); /* it has not waited for the profiler's end */
    CHECK_TEXT(awaited("profiler"), "went on");
    end();
}

static void flush_is_bounded(void)
{
    begin();
    struct caller caller = {.init = true, .profiler = ignores_the_end};
    uint64_t began_ns = clock_mono_ns();
    int status = run(&caller, "exit 4");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    uint64_t took_ms = (clock_mono_ns() - began_ns) / MS;
    CHECK(took_ms >= LAUNCH_FLUSH_MAX_MS - 10 && took_ms < LAUNCH_FLUSH_MAX_MS + 1500);
    end();
}

static void restarts(void)
{
    begin();
    struct caller caller = {.init = true, .profiler = crashes_once};
    int status = run(&caller, "sleep 2; exit 2");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    CHECK_TEXT(content("profiler"), "fresh again "); /* once, a second later */
    end();
}

static int pipe_ends[2];

static void give_a_pipe(void)
{
    close(pipe_ends[0]);
    CHECK_INT(dup2(pipe_ends[1], 7), 7);
    close(pipe_ends[1]);
}

/* The command ends when it is told to, 60 s later at the latest: what ends before is not the profiler's. */
static void holds_no_pipe(void)
{
    begin();
    struct caller caller = {.prepare = give_a_pipe};
    char shell[] = "/bin/sh", option[] = "-c", text[256];
    snprintf(text, sizeof text, "exec 7>&-; for i in $(seq 1200); do [ -e %s ] && exit 0; sleep 0.05; done",
             in_dir("go"));
    char *argv[] = {shell, option, text, NULL};
    for (unsigned shape = 0; shape < 2; shape++) {
        caller.init = shape == 1;
        caller.profiler = shape == 1 ? works_until_the_end : ready_and_done;
        CHECK_INT(pipe2(pipe_ends, 0), 0);
        pid_t pid = start(&caller, argv);
        close(pipe_ends[1]);
        struct pollfd end_of_pipe = {.fd = pipe_ends[0], .events = POLLIN};
        char byte;
        CHECK_INT(poll(&end_of_pipe, 1, 8000), 1); /* the profiler waits 10 s for its TERM */
        CHECK((end_of_pipe.revents & POLLHUP) != 0 && read(pipe_ends[0], &byte, 1) == 0);
        put("go", "", 0644);
        close(pipe_ends[0]);
        CHECK_INT(finish(pid), 0);
        CHECK_INT(unlink(in_dir("go")), 0);
    }
    end();
}

static void stop_and_continue(void)
{
    begin();
    char shell[] = "/bin/sh", option[] = "-c", text[] = "kill -STOP $$; exit 4";
    char *argv[] = {shell, option, text, NULL};
    pid_t pid = start(&shapes[1], argv);
    int status = 0;
    CHECK(waitpid(pid, &status, WUNTRACED) == pid);
    CHECK(WIFSTOPPED(status));
    kill(pid, SIGCONT);
    status = finish(pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    end();
}

static void stopped_and_killed(void)
{
    begin();
    char shell[] = "/bin/sh", option[] = "-c", text[] = "echo $$; kill -STOP $$; exit 4";
    char *argv[] = {shell, option, text, NULL};
    pid_t pid = start(&shapes[1], argv);
    int status = 0;
    CHECK(waitpid(pid, &status, WUNTRACED) == pid);
    CHECK_INT(kill((pid_t)atoi(content("out")), SIGKILL), 0);
    kill(pid, SIGCONT);
    status = finish(pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 137);
    end();
}

/* ---- the profiler's signals ---- */

static bool take_signals(void *context)
{
    (void)context;
    int fd = signals_open();
    CHECK(fd >= 0);
    CHECK_INT(signals_next(fd, NULL), 0);
    uint64_t began_ns = clock_mono_ns();
    signals_wait(fd, 100 * MS);
    CHECK(clock_mono_ns() - began_ns >= 99 * (uint64_t)MS);
    raise(SIGUSR1);
    raise(SIGPIPE); /* ignored */
    began_ns = clock_mono_ns();
    signals_wait(fd, (uint64_t)5000 * MS);
    CHECK(clock_mono_ns() - began_ns < 4000 * (uint64_t)MS);
    CHECK_INT(signals_next(fd, NULL), SIGUSR1);
    CHECK_INT(signals_next(fd, NULL), 0);
    CHECK_INT(signals_next(-1, NULL), 0);
    signals_wait(-1, 1 * MS);
    raise(SIGTERM);
    CHECK_INT(signals_next(fd, NULL), SIGTERM);
    signals_default();
    return true;
}

static void signals_are_taken(void)
{
    CHECK(in_child(take_signals, NULL));
}

TESTS_THAT_MEASURE({"a command is found as the shell would find it", found},
      {"127 for what is not there, 126 for what may not run, each with its sentence", not_found},
      {"the exit status is the command's own", statuses},
      {"a killed command is a killed command, or 128 + signal", killed},
      {"a command that cannot start gives 126 or 127 in both shapes", cannot_start},
      {"a script without a first line runs in the shell, its arguments whole",
       script_without_first_line},
      {"in exec mode the command has our pid, in init mode we are its parent", pid_is_kept},
      {"signal mask and dispositions are those without us", signals_kept},
      {"ignored signals stay ignored and blocked ones blocked", odd_signals_kept},
      {"signals that wait for the command are there when it begins", pending_signals_kept},
      {"the command is sent no signal for a child it never had", no_child_signal},
      {"the command has the descriptors it would have without us", descriptors_kept},
      {"a caller that closed everything gets a command with everything closed", all_closed},
      {"limits, mask, directory, environment and niceness are those without us", surroundings_kept},
      {"standard input is read by the command alone", stdin_kept},
      {"the profiler keeps no descriptor of the caller and has its own session",
       profiler_closes_everything},
      {"a profiler that dies early does not hold the command up", dead_profiler},
      {"a profiler that hangs holds the command up for the bound only", hanging_profiler},
      {"without room for another process the command runs all the same", limit_of_processes},
      {"signals reach the command in init mode", passes_signals_on},
      {"the status comes after the last window", waits_for_the_flush},
      {"a command that ended before the profiler looked loses no last window", told_early},
      {"an alarm that was set for the command reaches it in init mode", alarm_rings},
      {"a command that orphans come to has them in init mode, too", still_adopts},
      {"the profiler may go on alone with what the command left", left_alone},
      {"the wait for the last window is bounded", flush_is_bounded},
      {"a profiler that crashed is started again", restarts},
      {"a pipe that the command closes is closed", holds_no_pipe},
      {"a command that stops is seen as stopped and goes on", stop_and_continue},
      {"a command that is killed while stopped still has its status", stopped_and_killed},
      {"the profiler's signals are waited for and taken in turn", signals_are_taken})
