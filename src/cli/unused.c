/* The options of gProfiler, ddprof and earlier releases that mean nothing here: their command lines keep working, and a
 * warning gives the reason. */
#include "cli/unused.h"

#include <string.h>

#define JVM "nothing is loaded into a Java process"

const struct unused_option unused_options[] = {
    {"disable-pidns-check", NULL, "the host's PID namespace is not needed", true},
    {"rootless", NULL, "root is not needed, and used where it is given", true},
    {"profile-spawned-processes", NULL, "new children are always followed", true},
    {"max-processes-runtime-profiler", "N", "pillion bounds what it reads at once", true},
    {"skip-system-profilers-above", "N", "events are opened per process", true},
    {"disable-application-metadata", NULL, "no facts about applications are collected", true},
    {"enable-hw-metrics-collection", NULL, "no hardware metrics are collected", true},
    {"perfspect-path", "FILE", "no hardware metrics are collected", true},
    {"perfspect-duration", "S", "no hardware metrics are collected", true},
    {"perf-no-memory-restart", NULL, "there is no perf program to restart", true},
    {"perf-use-cgroups", NULL, "events are opened per process", true},
    {"perf-max-cgroups", "N", "events are opened per process", true},
    {"perf-max-docker-containers", "N", "events are opened per process", true},
    {"no-python-versions", NULL, "frames carry no package versions", true},
    {"pyperf-user-stacks-pages", "N", "pillion does not use PyPerf", true},
    {"python-pyperf-verbose", NULL, "pillion does not use PyPerf", true},
    {"python-skip-pyperf-profiler-above", "N", "pillion does not use PyPerf", true},
    {"python-pyspy-process", "PID[,PID...]", "pillion does not use py-spy", true},
    {"php-proc-filter", "PATTERN", "PHP is recognised by its program, not by its name", true},
    {"java-async-profiler-mode", "MODE", JVM, true},
    {"java-async-profiler-safemode", "N", JVM, true},
    {"java-async-profiler-features", "LIST", JVM, true},
    {"java-async-profiler-args", "TEXT", JVM, true},
    {"java-async-profiler-mcache", "N", JVM, true},
    {"java-async-profiler-no-report-meminfo", NULL, JVM, true},
    {"no-java-async-profiler-buildids", NULL, JVM, true},
    {"java-safemode", "LIST", JVM, true},
    {"java-jattach-timeout", "S", JVM, true},
    {"no-java-version-check", NULL, JVM, true},
    {"java-collect-jvm-flags", "LIST", JVM, true},
    {"java-full-hserr", NULL, JVM, true},
    {"java-include-method-modifiers", NULL, JVM, true},
    {"java-line-numbers", "MODE", JVM, true},
    {"java-collect-spark-app-name-as-appid", NULL, JVM, true},
    {"java-collect-thread-names", NULL, JVM, true},
    {"dotnet-mode", "MODE", ".NET is seen as native code", true},
    {"no-dotnet", NULL, ".NET is seen as native code", true},
    {"log-rotate-max-size", "BYTES", "rotate the log from outside, then send HUP", true},
    {"log-rotate-backup-count", "N", "rotate the log from outside, then send HUP", true},
    {"log-usage", NULL, "every summary shows what the profiler cost", true},
    {"diagnostics", NULL, "every summary shows what the profiler cost", true},
    {"curlify-requests", NULL, "requests are not logged", true},
    {"profile-api-version", "VERSION", "the version is always v2", true},
    {"enable-heartbeat-server", NULL, "no orders are taken from a server", true},
    {"heartbeat-interval", "S", "no orders are taken from a server", true},
    {"pid-file", "FILE", "the first line names the pid, and several may run", true},
    {"dont-disable-core-files", NULL, "core files are off only for a profiler that knows a token", true},
    {"tls-cert-refresh-enabled", NULL, "HUP reads certificates again", true},
    {"tls-cert-refresh-interval", "S", "HUP reads certificates again", true},
    {"timeline", NULL, "samples are summed, not listed by time", false},
    {"reorder-events", NULL, "records are always put in order", false},
    {"maximum-pids", "N", "there is no such limit", false},
    {"worker-period", "N", "there is no worker to renew", false},
    {"otlp-schema", "RELEASE", "profiles are always sent as release 1.10", false},
    {"log-mode", "MODE", "the log goes to standard error, or to --log-file", false},
    {0},
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
