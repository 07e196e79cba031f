/* The options of gProfiler, ddprof and earlier releases that mean nothing here: their command lines keep working, and a
 * warning gives the reason. One is refused, because without it the command would run with rights that it was not meant
 * to have. */
#include "cli/unused.h"

#include <string.h>

#define JVM "nothing is loaded into a Java process"
#define NOT_INSIDE "nothing is loaded into the program"
#define GPROFILER(text, of, reason) {.name = text, .value = of, .why = reason, .gprofiler = true}
#define OTHERS(text, of, reason) {.name = text, .value = of, .why = reason}

const struct unused_option unused_options[] = {
    GPROFILER("disable-pidns-check", NULL, "the host's PID namespace is not needed"),
    GPROFILER("rootless", NULL, "root is not needed, and used where it is given"),
    GPROFILER("profile-spawned-processes", NULL, "new children are always followed"),
    GPROFILER("max-processes-runtime-profiler", "N", "pillion bounds what it reads at once"),
    GPROFILER("skip-system-profilers-above", "N", "events are opened per process"),
    GPROFILER("disable-application-metadata", NULL, "no facts about applications are collected"),
    GPROFILER("enable-hw-metrics-collection", NULL, "no hardware metrics are collected"),
    GPROFILER("perfspect-path", "FILE", "no hardware metrics are collected"),
    GPROFILER("perfspect-duration", "S", "no hardware metrics are collected"),
    GPROFILER("perf-no-memory-restart", NULL, "there is no perf program to restart"),
    GPROFILER("perf-use-cgroups", NULL, "events are opened per process"),
    GPROFILER("perf-max-cgroups", "N", "events are opened per process"),
    GPROFILER("perf-max-docker-containers", "N", "events are opened per process"),
    GPROFILER("no-python-versions", NULL, "frames carry no package versions"),
    GPROFILER("pyperf-user-stacks-pages", "N", "pillion does not use PyPerf"),
    GPROFILER("python-pyperf-verbose", NULL, "pillion does not use PyPerf"),
    GPROFILER("python-skip-pyperf-profiler-above", "N", "pillion does not use PyPerf"),
    GPROFILER("python-pyspy-process", "PID[,PID...]", "pillion does not use py-spy"),
    GPROFILER("php-proc-filter", "PATTERN", "PHP is recognised by its program, not by its name"),
    GPROFILER("java-async-profiler-mode", "MODE", JVM),
    GPROFILER("java-async-profiler-safemode", "N", JVM),
    GPROFILER("java-async-profiler-features", "LIST", JVM),
    GPROFILER("java-async-profiler-args", "TEXT", JVM),
    GPROFILER("java-async-profiler-mcache", "N", JVM),
    GPROFILER("java-async-profiler-no-report-meminfo", NULL, JVM),
    GPROFILER("no-java-async-profiler-buildids", NULL, JVM),
    GPROFILER("java-safemode", "LIST", JVM),
    GPROFILER("java-jattach-timeout", "S", JVM),
    GPROFILER("no-java-version-check", NULL, JVM),
    GPROFILER("java-collect-jvm-flags", "LIST", JVM),
    GPROFILER("java-full-hserr", NULL, JVM),
    GPROFILER("java-include-method-modifiers", NULL, JVM),
    GPROFILER("java-line-numbers", "MODE", JVM),
    GPROFILER("java-collect-spark-app-name-as-appid", NULL, JVM),
    GPROFILER("java-collect-thread-names", NULL, JVM),
    GPROFILER("dotnet-mode", "MODE", ".NET is seen as native code"),
    GPROFILER("no-dotnet", NULL, ".NET is seen as native code"),
    GPROFILER("log-rotate-max-size", "BYTES", "rotate the log from outside, then send HUP"),
    GPROFILER("log-rotate-backup-count", "N", "rotate the log from outside, then send HUP"),
    GPROFILER("log-usage", NULL, "every summary shows what the profiler cost"),
    GPROFILER("diagnostics", NULL, "every summary shows what the profiler cost"),
    GPROFILER("curlify-requests", NULL, "requests are not logged"),
    GPROFILER("profile-api-version", "VERSION", "the version is always v2"),
    GPROFILER("enable-heartbeat-server", NULL, "no orders are taken from a server"),
    GPROFILER("heartbeat-interval", "S", "no orders are taken from a server"),
    GPROFILER("pid-file", "FILE", "the first line names the pid, and several may run"),
    GPROFILER("dont-disable-core-files", NULL, "core files are off only for a profiler that knows a token"),
    GPROFILER("tls-cert-refresh-enabled", NULL, "HUP reads certificates again"),
    GPROFILER("tls-cert-refresh-interval", "S", "HUP reads certificates again"),
    GPROFILER("controller-pid", "PID", "TERM ends it, or the end of what is profiled"),
    GPROFILER("heartbeat-file", "FILE", "a new window's files show that it lives"),
    GPROFILER("insert-dso-name", NULL, "pprof names the file of each native frame; col has the function alone"),
    GPROFILER("app-id-args-filter", "REGEX", "no names of applications are made of arguments"),
    GPROFILER("external-metadata", "FILE", "--tags adds facts"),
    GPROFILER("perf-event-period", "N", "--event counts"),
    GPROFILER("hw-events-file", "FILE", "--event knows the kernel's events by name"),
    GPROFILER("config", "FILE", "settings are options and variables, no file"),
    {.name = "nice", .value = "N", .why = "threads are ranked by what they do; --max-cpu bounds them", .letter = 'n'},
    OTHERS("timeline", NULL, "samples are summed, not listed by time"),
    OTHERS("reorder-events", NULL, "records are always put in order"),
    OTHERS("maximum-pids", "N", "there is no such limit"),
    OTHERS("worker-period", "N", "there is no worker to renew"),
    OTHERS("otlp-schema", "RELEASE", "profiles are always sent as release 1.10"),
    OTHERS("log-mode", "MODE", "the log goes to standard error, or to --log-file"),
    {.name = "switch-user",
     .value = "USER",
     .why = "start pillion as that user, with setpriv or su",
     .refused = true},
    OTHERS("capture-config", NULL, "pillion doctor lists the settings"),
    OTHERS("show-config", NULL, "pillion doctor lists the settings"),
    {.name = "internal-stats", .value = "SOCKET", .why = "every summary shows what the profiler cost", .letter = 'b'},
    OTHERS("show-samples", NULL, "samples are summed, not listed"),
    OTHERS("runtime-id", "ID", "it names a run of a library inside the program"),
    OTHERS("cpu-affinity", "MASK", "its threads run where they read; use taskset to bind all"),
    OTHERS("do-export", "BOOL", "-u uploads, and without it files are written"),
    OTHERS("debug-pprof-prefix", "PREFIX", "-o and --format pprof write profiles"),
    OTHERS("fault-info", "BOOL", "no handler for faults is installed"),
    OTHERS("socket", "NAME", NOT_INSIDE),
    OTHERS("pipefd", "FD", NOT_INSIDE),
    OTHERS("initial-loaded-libs-check-delay", "MS", NOT_INSIDE),
    OTHERS("loaded-libs-check-interval", "MS", NOT_INSIDE),
    OTHERS("remote-symbolization", NULL, "names are found here"),
    OTHERS("disable-symbolization", NULL, "names are found here"),
    {.name = NULL},
};

/* A flag is known with "no-" in front and without. */
static struct str bare(struct str name)
{
    return str_starts(name, STR("no-")) ? str_sub(name, 3, name.len) : name;
}

const struct unused_option *unused_find(struct str name)
{
    const struct unused_option *row = unused_options;
    for (; row->name != NULL; row++) {
        struct str own = str_of(row->name);
        if (str_eq(own, name) || (row->value == NULL && str_eq(bare(own), bare(name)))) {
            return row;
        }
    }
    return NULL;
}
