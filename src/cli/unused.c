/* The options of gProfiler, ddprof and earlier releases that mean nothing here: their command lines keep working, and a
 * warning gives the reason. One is refused, because without it the command would run with rights that it was not meant
 * to have. */
#include "cli/unused.h"

#include <string.h>

#define JVM "nothing is loaded into a Java process"
#define NOT_INSIDE "nothing is loaded into the program"
enum { FLAG, VALUED };

#define GPROFILER(text, of, reason) {.name = text, .valued = of, .why = reason, .gprofiler = true}
#define OTHERS(text, of, reason) {.name = text, .valued = of, .why = reason}

const struct unused_option unused_options[] = {
    GPROFILER("disable-pidns-check", FLAG, "the host's PID namespace is not needed"),
    GPROFILER("rootless", FLAG, "root is not needed, and used where it is given"),
    GPROFILER("profile-spawned-processes", FLAG, "new children are always followed"),
    GPROFILER("max-processes-runtime-profiler", VALUED, "pillion bounds what it reads at once"),
    GPROFILER("skip-system-profilers-above", VALUED, "events are opened per process"),
    GPROFILER("disable-application-metadata", FLAG, "no facts about applications are collected"),
    GPROFILER("enable-hw-metrics-collection", FLAG, "no hardware metrics are collected"),
    GPROFILER("perfspect-path", VALUED, "no hardware metrics are collected"),
    GPROFILER("perfspect-duration", VALUED, "no hardware metrics are collected"),
    GPROFILER("perf-no-memory-restart", FLAG, "there is no perf program to restart"),
    GPROFILER("perf-use-cgroups", FLAG, "events are opened per process"),
    GPROFILER("perf-max-cgroups", VALUED, "events are opened per process"),
    GPROFILER("perf-max-docker-containers", VALUED, "events are opened per process"),
    GPROFILER("no-python-versions", FLAG, "frames carry no package versions"),
    GPROFILER("pyperf-user-stacks-pages", VALUED, "pillion does not use PyPerf"),
    GPROFILER("python-pyperf-verbose", FLAG, "pillion does not use PyPerf"),
    GPROFILER("python-skip-pyperf-profiler-above", VALUED, "pillion does not use PyPerf"),
    GPROFILER("python-pyspy-process", VALUED, "pillion does not use py-spy"),
    GPROFILER("php-proc-filter", VALUED, "PHP is recognised by its program, not by its name"),
    GPROFILER("java-async-profiler-mode", VALUED, JVM),
    GPROFILER("java-async-profiler-safemode", VALUED, JVM),
    GPROFILER("java-async-profiler-features", VALUED, JVM),
    GPROFILER("java-async-profiler-args", VALUED, JVM),
    GPROFILER("java-async-profiler-mcache", VALUED, JVM),
    GPROFILER("java-async-profiler-no-report-meminfo", FLAG, JVM),
    GPROFILER("no-java-async-profiler-buildids", FLAG, JVM),
    GPROFILER("java-safemode", VALUED, JVM),
    GPROFILER("java-jattach-timeout", VALUED, JVM),
    GPROFILER("no-java-version-check", FLAG, JVM),
    GPROFILER("java-collect-jvm-flags", VALUED, JVM),
    GPROFILER("java-full-hserr", FLAG, JVM),
    GPROFILER("java-include-method-modifiers", FLAG, JVM),
    GPROFILER("java-line-numbers", VALUED, JVM),
    GPROFILER("java-collect-spark-app-name-as-appid", FLAG, "it always is where it is known"),
    GPROFILER("java-collect-thread-names", FLAG, JVM),
    GPROFILER("dotnet-mode", VALUED, ".NET is seen as native code"),
    GPROFILER("no-dotnet", FLAG, ".NET is seen as native code"),
    GPROFILER("log-rotate-max-size", VALUED, "rotate the log from outside, then send HUP"),
    GPROFILER("log-rotate-backup-count", VALUED, "rotate the log from outside, then send HUP"),
    GPROFILER("log-usage", FLAG, "every summary shows what the profiler cost"),
    GPROFILER("diagnostics", FLAG, "every summary shows what the profiler cost"),
    GPROFILER("curlify-requests", FLAG, "requests are not logged"),
    GPROFILER("profile-api-version", VALUED, "the version is always v2"),
    GPROFILER("enable-heartbeat-server", FLAG, "no orders are taken from a server"),
    GPROFILER("heartbeat-interval", VALUED, "no orders are taken from a server"),
    GPROFILER("pid-file", VALUED, "the first line names the pid, and several may run"),
    GPROFILER("dont-disable-core-files", FLAG, "core files are off only for a profiler that knows a token"),
    GPROFILER("tls-cert-refresh-enabled", FLAG, "HUP reads certificates again"),
    GPROFILER("tls-cert-refresh-interval", VALUED, "HUP reads certificates again"),
    GPROFILER("insert-dso-name", FLAG, "pprof names the file of each native frame; col has the function alone"),
    GPROFILER("perf-event-period", VALUED, "--event EVENT,period=N has it"),
    GPROFILER("hw-events-file", VALUED, "--event knows the kernel's events by name"),
    GPROFILER("config", VALUED, "settings are options and variables, no file"),
    {.name = "nice", .valued = true, .why = "threads are ranked by what they do; --max-cpu bounds them", .letter = 'n'},
    OTHERS("timeline", FLAG, "samples are summed, not listed by time"),
    OTHERS("reorder-events", FLAG, "records are always put in order"),
    OTHERS("maximum-pids", VALUED, "there is no such limit"),
    OTHERS("worker-period", VALUED, "there is no worker to renew"),
    OTHERS("otlp-schema", VALUED, "profiles are always sent as release 1.10"),
    OTHERS("log-mode", VALUED, "the log goes to standard error, or to --log-file"),
    {.name = "switch-user",
     .valued = true,
     .why = "start pillion as that user, with setpriv or su",
     .refused = true},
    OTHERS("capture-config", FLAG, "pillion doctor lists the settings"),
    OTHERS("show-config", FLAG, "pillion doctor lists the settings"),
    {.name = "internal-stats", .valued = true, .why = "every summary shows what the profiler cost", .letter = 'b'},
    OTHERS("show-samples", FLAG, "samples are summed, not listed"),
    OTHERS("runtime-id", VALUED, "it names a run of a library inside the program"),
    OTHERS("cpu-affinity", VALUED, "its threads run where they read; use taskset to bind all"),
    OTHERS("do-export", VALUED, "-u uploads, and without it files are written"),
    OTHERS("debug-pprof-prefix", VALUED, "-o and --format pprof write profiles"),
    OTHERS("fault-info", VALUED, "no handler for faults is installed"),
    OTHERS("socket", VALUED, NOT_INSIDE),
    OTHERS("pipefd", VALUED, NOT_INSIDE),
    OTHERS("initial-loaded-libs-check-delay", VALUED, NOT_INSIDE),
    OTHERS("loaded-libs-check-interval", VALUED, NOT_INSIDE),
    OTHERS("remote-symbolization", FLAG, "names are found here"),
    OTHERS("disable-symbolization", FLAG, "names are found here"),
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
        if (str_eq(own, name) || (!row->valued && str_eq(bare(own), bare(name)))) {
            return row;
        }
    }
    return NULL;
}
