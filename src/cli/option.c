/* The table of options with their choices and aliases, and how names are found in it. Choices that
 * are rows of other tables (formats, back ends, languages) are read from there, so that a new one
 * is no change here. */
#include "cli/option.h"

#include "base/time.h"
#include "cli/request.h"
#include "deliver/backend.h"
#include "encode/encode.h"
#include "runtime/runtime.h"

#include <string.h>

#define AT(field) offsetof(struct request, field)
#define MB (UINT64_C(1) << 20)
#define GB (UINT64_C(1) << 30)

#define ANY COMMAND_ALL
#define RENDER COMMAND_BIT(COMMAND_RENDER)
#define REPORT COMMAND_BIT(COMMAND_REPORT)
#define DOCTOR COMMAND_BIT(COMMAND_DOCTOR)
#define DUMP COMMAND_BIT(COMMAND_DUMP)
#define TOP COMMAND_BIT(COMMAND_TOP)
#define RUN (COMMAND_BIT(COMMAND_RUN) | DOCTOR)
#define UPLOAD COMMAND_BIT(COMMAND_UPLOAD)
#define SENDING (RUN | UPLOAD)

const char *const option_group_title[GROUP_COUNT] = {
    [GROUP_WHAT] = "What and how long",
    [GROUP_WHERE] = "Where it goes",
    [GROUP_TARGETS] = "Which processes",
    [GROUP_FILES] = "Files",
    [GROUP_STACKS] = "Reading stacks",
    [GROUP_NAMES] = "Names in the profile",
    [GROUP_BUDGET] = "Limits of the profiler itself",
    [GROUP_TALK] = "Log and messages",
    [GROUP_BACKEND] = "Back ends",
    [GROUP_TLS] = "TLS and spool",
    [GROUP_DUMP] = "pillion dump",
    [GROUP_TOP] = "pillion top",
    [GROUP_REPORT] = "pillion report",
    [GROUP_RENDER] = "pillion render",
    [GROUP_DOCTOR] = "pillion doctor",
    [GROUP_UPLOAD] = "pillion upload",
};

#define CHOICE(text, number) {.name = text, .value = number}
#define ALSO(text, number) {.name = text, .value = number, .hidden = true}

static const struct choice perf_modes[] = {
    CHOICE("smart", PERF_SMART),
    CHOICE("fp", PERF_FP),
    CHOICE("dwarf", PERF_DWARF),
    CHOICE("disabled", PERF_DISABLED),
    CHOICE("none", PERF_DISABLED),
    {0},
};

static const struct choice on_or_off[] = {CHOICE("on", NATIVE_ON), CHOICE("off", NATIVE_OFF), {0}};
static const struct choice no_or_yes[] = {CHOICE("no", false), ALSO("yes", true), {0}};
static const struct choice file_names[] = {
    CHOICE("plain", FILE_NAMES_PLAIN), CHOICE("gprofiler", FILE_NAMES_GPROFILER), {0},
};
static const struct choice runtime_events[] = {
    CHOICE("alloc", RUNTIME_WANTS_ALLOC), CHOICE("lock", RUNTIME_WANTS_LOCK), {0},
};
static const struct choice launch_modes[] = {
    CHOICE("auto", LAUNCH_AUTO), CHOICE("exec", LAUNCH_EXEC), CHOICE("init", LAUNCH_INIT), {0},
};
static const struct choice log_levels[] = {
    CHOICE("error", LOG_ERROR),        CHOICE("warning", LOG_WARNING),
    CHOICE("info", LOG_INFO),          CHOICE("debug", LOG_DEBUG),
    ALSO("warn", LOG_WARNING),       ALSO("notice", LOG_INFO),
    ALSO("informational", LOG_INFO), {0},
};
static const struct choice log_formats[] = {
    CHOICE("text", LOG_TEXT), CHOICE("logfmt", LOG_LOGFMT), CHOICE("json", LOG_JSON), {0},
};
static const struct choice colors[] = {
    CHOICE("auto", COLOR_AUTO), CHOICE("always", COLOR_ALWAYS), CHOICE("never", COLOR_NEVER), {0},
};
static const struct choice http_methods[] = {
    CHOICE("put", UPLOAD_PUT), CHOICE("post", UPLOAD_POST), {0},
};
static const struct choice profiler_modes[] = {
    CHOICE("cpu", 0), {0},
};
static const struct choice presets[] = {
    CHOICE("cpu_only", 0),
    ALSO("default", 0),
    {0},
};

/* Shorthands for rows that store nothing of their own. */
#define GPROFILER .gprofiler = true

/* ---- choices that are rows of other tables ---- */

/* What gProfiler calls its readers: its command lines keep working, and ours is what there is. */
static bool language_mode(const struct option *row, size_t i, struct choice *out)
{
    static const struct choice modes[] = {
        {.name = "auto", .value = RUNTIME_AUTO},
        {.name = "disabled", .value = RUNTIME_DISABLED},
        {.name = "none", .value = RUNTIME_DISABLED, .hidden = true},
    };
    enum { COUNT = sizeof modes / sizeof modes[0] };
    const struct language *language = &languages[row->language];
    if (i < COUNT) {
        *out = modes[i];
        return true;
    }
    i -= COUNT;
    for (size_t way = 0; way < LANGUAGE_WAYS; way++) {
        if (language->ways[way] != NULL && i-- == 0) {
            *out = (struct choice){.name = language->ways[way], .value = RUNTIME_WALK + (int)way};
            return true;
        }
    }
    *out = (struct choice){.name = language->readers[i], .hidden = true};
    return out->name != NULL;
}

static bool file_format(const struct option *row, size_t i, struct choice *out)
{
    (void)row;
    size_t at = 0;
    for (; encoders[at] != NULL; at++) {
        if (encoders[at]->link != NULL && i-- == 0) {
            break;
        }
    }
    const struct encoder *e = encoders[at];
    *out = e == NULL ? (struct choice){0}
                     : (struct choice){.name = e->name, .value = 1 << at, .by_default = e->by_default};
    return e != NULL;
}

static bool back_end(const struct option *row, size_t i, struct choice *out)
{
    (void)row;
    const struct backend *b = backends[i];
    *out = b == NULL ? (struct choice){0} : (struct choice){.name = b->name, .value = 1 << i};
    return b != NULL;
}

bool option_choice(const struct option *row, size_t i, struct choice *out)
{
    if (row->choice_at)
        return row->choice_at(row, i, out);
    *out = row->choices ? row->choices[i] : (struct choice){0};
    return out->name != NULL;
}

bool option_has_choices(const struct option *row)
{
    return row->choices || row->choice_at;
}

const struct option option_table[] = {
    /* What and how long */
    {.name = "profiling-frequency", .letter = 'f', .value = "HZ", .kind = KIND_NUMBER,
     .group = GROUP_WHAT, .at = AT(settings.sampling.frequency_hz), .min = 1, .max = 10000,
     .unit = "samples per second", .fallback = "99", .help = "samples per second of CPU",
     GPROFILER},
    {.name = "profiling-duration", .letter = 'd', .value = "S", .kind = KIND_DURATION,
     .group = GROUP_WHAT, .commands = RUN, .at = AT(settings.sampling.window_ns), .min = NS_PER_S,
     .max = 86400 * NS_PER_S, .fallback = "60", .help = "length of one window", GPROFILER,
     .env = "DD_PROFILING_UPLOAD_PERIOD"},
    {.name = "continuous", .letter = 'c', .kind = KIND_FLAG, .group = GROUP_WHAT,
     .commands = RUN, .at = AT(settings.sampling.continuous), .label = LABEL_BOTH, .shown = "on for a command",
     .help = "window after window", GPROFILER},

    /* Where it goes */
    {.name = "output-dir", .letter = 'o', .value = "DIR", .kind = KIND_DIR, .group = GROUP_WHERE,
     .at = AT(settings.output.dir), .shown = ". unless -u", .help = "files", GPROFILER},
    {.name = "upload-results", .letter = 'u', .kind = KIND_FLAG, .group = GROUP_WHERE,
     .commands = RUN, .at = AT(settings.upload.wanted), .shown = "see --backend",
     .help = "send to a back end; files only with -o or --format", GPROFILER},
    {.name = "service-name", .letter = 'S', .value = "NAME", .kind = KIND_TEXT,
     .group = GROUP_WHERE, .commands = SENDING, .at = AT(settings.service_name),
     .shown = "from the command", .help = "name of the service", GPROFILER,
     .env = "DD_SERVICE OTEL_SERVICE_NAME", /* where several are set the first counts */
     .env_of_backends = true},

    /* Which processes */
    {.name = "pids", .letter = 'p', .value = "PID[,PID...]", .kind = KIND_PIDS,
     .group = GROUP_TARGETS, .commands = RUN | TOP | DUMP, .at = AT(settings.scope.pids), .min = 1, .max = 4194304,
     .unit = "process ids", .help = "these processes and all below them",
     GPROFILER},
    {.name = "all", .letter = 'a', .kind = KIND_FLAG, .group = GROUP_TARGETS, .at = AT(all),
     .shown = "without a command or -p", .help = "every process visible in this PID namespace"},
    {.name = "children", .kind = KIND_FLAG, .group = GROUP_TARGETS, .at = AT(settings.scope.children),
     .label = LABEL_NEGATIVE, .fallback = "1", .shown = "",
     .help = "with -p: these processes alone, none that they start or started"},
    {.name = "match", .value = "TEXT[,TEXT...]", .kind = KIND_LIST, .group = GROUP_TARGETS,
     .at = AT(settings.scope.filters[FILTER_MATCH]), .min = 1, .shown = "",
     .help = "only processes with this text in their command line; with * or ? a pattern of all of it; ! "
             "excludes. Like the next two for -a, and what a command or -p starts"},
    {.name = "exe", .value = "NAME|PATH[,...]", .kind = KIND_LIST, .group = GROUP_TARGETS,
     .at = AT(settings.scope.filters[FILTER_EXE]), .min = 1, .shown = "",
     .help = "only processes that run this executable; * and ? as above"},
    {.name = "container", .value = "ID[,ID...]", .kind = KIND_LIST, .group = GROUP_TARGETS,
     .at = AT(settings.scope.filters[FILTER_CONTAINER]), .min = 4, .shown = "",
     .unit = "4 or more characters of a container's id",
     .help = "only processes of this container; its first 4 characters are enough"},
    {.name = "min-duration", .value = "S", .kind = KIND_DURATION,
     .group = GROUP_TARGETS, .at = AT(settings.scope.min_duration_ns), .max = 86400 * NS_PER_S,
     .fallback = "0", .help = "exclude processes younger than this, but not the command and -p", GPROFILER},
    {.name = "controller-pid", .value = "PID", .kind = KIND_NUMBER, .group = GROUP_TARGETS,
     .at = AT(settings.scope.controller_pid), .min = 1, .max = 4194304, .unit = "as a pid", .shown = "",
     .help = "end when this process does", GPROFILER},
    {.name = "launch", .value = "MODE", .kind = KIND_CHOICE, .group = GROUP_TARGETS,
     .commands = RUN, .at = AT(settings.scope.launch), .choices = launch_modes, .fallback = "auto",
     .help = "start the command in pillion's place (exec) or below a tiny parent that forwards signals and "
             "waits for the last window (init; auto: on a terminal, as a container's first process or its "
             "child)"},
    {.name = "enable", .kind = KIND_FLAG, .group = GROUP_TARGETS,
     .commands = RUN, .at = AT(settings.scope.enabled), .label = LABEL_NEGATIVE, .fallback = "1", .shown = "",
     .help = "run the command unprofiled (as PILLION_ENABLED=0 does)",
     .env = "DD_PROFILING_ENABLED"},

    /* Files */
    {.name = "format", .value = "LIST", .kind = KIND_FORMATS, .group = GROUP_FILES,
     .at = AT(settings.output.formats), .choice_at = file_format,
     .help = "formats to write, any of"},
    {.name = "flamegraph", .kind = KIND_FLAG, .group = GROUP_FILES, .at = AT(flamegraph),
     .label = LABEL_NEGATIVE, .fallback = "1", .shown = "",
     .help = "no html, whatever --format says", GPROFILER},
    {.name = "rotating-output", .kind = KIND_FLAG, .group = GROUP_FILES,
     .commands = RUN, .at = AT(settings.output.rotating), .shown = "", .help = "keep only the newest window's files",
     GPROFILER},
    {.name = "max-output-files", .value = "N", .kind = KIND_NUMBER, .group = GROUP_FILES,
     .at = AT(settings.output.max_files), .max = 1000000, .unit = "sets of files",
     .fallback = "0", .shown = "all, but of a command that is not uploaded 60 and 256 MB",
     .help = "keep the files of this many windows"},
    {.name = "file-names", .value = "FORM", .kind = KIND_CHOICE, .group = GROUP_FILES,
     .at = AT(settings.output.names), .choices = file_names, .fallback = "plain",
     .help = "time in file names as 2026-11-20T103104Z (plain), or with colons as gProfiler has it"},
    {.name = "heartbeat-file", .value = "FILE", .kind = KIND_PATH, .group = GROUP_FILES,
     .commands = RUN, .at = AT(settings.output.heartbeat_file), .shown = "", .help = "touch it after each window",
     GPROFILER},
    {.name = "col-lines", .kind = KIND_FLAG, .group = GROUP_FILES, .commands = RUN | RENDER,
     .at = AT(settings.output.col_lines), .shown = "",
     .help = "in .col the line that a Python function executes, too: f (a.py:12):15"},

    /* How stacks are read */
    {.name = "perf-mode", .value = "MODE", .kind = KIND_CHOICE, .group = GROUP_STACKS, .commands = RUN | TOP | DUMP,
     .at = AT(settings.sampling.perf_mode), .choices = perf_modes, .fallback = "smart",
     .help = "native stacks", GPROFILER},
    {.name = "perf-dwarf-stack-size", .value = "BYTES", .kind = KIND_SIZE,
     .group = GROUP_STACKS, .at = AT(settings.sampling.stack_bytes), .max = 65528,
     .shown = "by need", .help = "initial size of a stack copy", GPROFILER,
     .env = "DD_PROFILING_SAMPLE_STACK_USER"},
#define LANGUAGE(...)
#define LANGUAGE_MODE(id, title, option, text, ...)                                                \
    {.name = option "-mode", .value = "MODE", .kind = KIND_CHOICE, .group = GROUP_STACKS,          \
     .at = AT(settings.runtime.mode[FRAME_##id]), .choice_at = language_mode,                      \
     .language = FRAME_##id, .fallback = "auto", .help = text, GPROFILER},
#include "profile/language.def"
#undef LANGUAGE_MODE
    {.name = "java-events", .value = "LIST", .kind = KIND_FORMATS, .group = GROUP_STACKS,
     .at = AT(settings.runtime.collected), .choices = runtime_events, .shown = "",
     .help = "ask JVMs where they allocate and wait for locks: sample types in pprof, any of"},
    {.name = "code-tiers", .kind = KIND_FLAG, .group = GROUP_STACKS,
     .at = AT(settings.runtime.shows_tiers), .shown = "",
     .help = "Java names end in how they ran: _[0] interpreted, _[1] C1, _[j] C2, _[i] inlined"},
    {.name = "source-maps", .kind = KIND_FLAG, .group = GROUP_STACKS, .at = AT(settings.runtime.maps_sources),
     .shown = "", .help = "JavaScript by source maps: FILE.js.map beside FILE.js"},
    {.name = "no-java-attach", .kind = KIND_FLAG, .group = GROUP_STACKS, .at = AT(settings.runtime.attaches),
     .inverse = true, .shown = "",
     .help = "ask no JVM for a recording without perf events"},
    {.name = "go-pprof", .value = "URL[,URL...]", .kind = KIND_TEXT, .group = GROUP_STACKS,
     .at = AT(settings.runtime.go_addresses), .shown = "where they listen",
     .help = "ask Go programs there for profiles of heap, locks, goroutines"},
    {.name = "python-native", .value = "ON", .kind = KIND_CHOICE, .group = GROUP_STACKS,
     .at = AT(settings.runtime.native_frames), .choices = on_or_off, .fallback = "on",
     .help = "native code in its place in Python stacks"},
    {.name = "request-urls", .kind = KIND_FLAG, .group = GROUP_STACKS, .at = AT(settings.runtime.shows_urls),
     .shown = "",
     .help = "label PHP samples with the request's URL and query, in pprof: these may hold tokens"},
    {.name = "wall", .kind = KIND_FLAG, .group = GROUP_STACKS, .at = AT(settings.sampling.wall), .shown = "",
     .help = "waiting threads, too, ten times a second: sample types off_cpu and wall in pprof"},
    {.name = "brief-stops", .kind = KIND_FLAG, .group = GROUP_STACKS, .commands = RUN | TOP | DUMP,
     .at = AT(settings.sampling.brief_stops), .shown = "",
     .help = "where perf events are refused, stop running threads for microseconds by ptrace, 19 times a "
             "second without -f, for native stacks"},
    {.name = "off-cpu", .kind = KIND_FLAG, .group = GROUP_STACKS, .at = AT(settings.sampling.off_cpu),
     .shown = "",
     .help = "off-CPU time of all threads, by their context switches (without perf events as --wall): the "
             "same sample types"},
    {.name = "mode", .value = "MODE", .kind = KIND_CHOICE, .group = GROUP_STACKS,
     .at = AT(ignored_choice), .choices = profiler_modes, .fallback = "cpu",
     .help = "what is measured", GPROFILER},
    {.name = "event", .letter = 'e', .value = "EVENT", .kind = KIND_EVENTS,
     .group = GROUP_STACKS, .at = AT(settings.sampling.events), .shown = "",
     .help = "also sample another event, such as page-faults or cycles: a sample type in pprof",
     .env = "DD_PROFILING_NATIVE_EVENTS"},
    {.name = "preset", .value = "NAME", .kind = KIND_CHOICE, .group = GROUP_STACKS,
     .at = AT(ignored_choice), .choices = presets, .fallback = "cpu_only",
     .help = "a named set of events", .env = "DD_PROFILING_NATIVE_PRESET"},

    /* What is named */
    {.name = "inlines", .letter = 'I', .kind = KIND_FLAG, .group = GROUP_NAMES, .commands = RUN | TOP | DUMP,
     .at = AT(settings.naming.inlines), .shown = "",
     .help = "frames for inlined functions, and lines, where there is debug information",
     .env = "DD_PROFILING_INLINED_FUNCTIONS"},
    {.name = "disable-container-names", .kind = KIND_FLAG, .group = GROUP_NAMES,
     .at = AT(settings.naming.container_names), .inverse = true, .shown = "",
     .help = "no container in the profile", GPROFILER},
    {.name = "disable-application-identifiers", .kind = KIND_FLAG, .group = GROUP_NAMES,
     .at = AT(settings.naming.application_identifiers), .inverse = true, .shown = "",
     .help = "no [appid: ...] frames", GPROFILER},
    {.name = "app-id-args-filter", .value = "REGEX", .kind = KIND_TEXTS, .group = GROUP_NAMES,
     .at = AT(settings.naming.application_filters), .shown = "",
     .help = "show the arguments of JVMs that fit in these frames; repeatable", GPROFILER},
    {.name = "external-metadata", .value = "FILE", .kind = KIND_PATH, .group = GROUP_NAMES,
     .at = AT(settings.origin.external_metadata), .shown = "",
     .help = "JSON for the header of .col: {\"static\": {}, \"application\": {\"PID\": {}}}", GPROFILER},

    /* What the profiler may use */
    {.name = "max-memory", .value = "MB", .kind = KIND_SIZE, .group = GROUP_BUDGET,
     .at = AT(settings.budget.memory_bytes), .min = 8 * MB, .max = 16 * GB, .scale = MB,
     .fallback = "64", .help = "memory limit; detail is reduced to stay below it"},
    {.name = "max-cpu", .value = "PERCENT", .kind = KIND_PERCENT, .group = GROUP_BUDGET,
     .at = AT(settings.budget.cpu_percent), .min = 100, .max = 100000,
     .fallback = "1", .help = "share of one core; the frequency is lowered to stay below it"},

    /* What it says */
    {.name = "log-level", .letter = 'l', .value = "LEVEL", .kind = KIND_CHOICE,
     .group = GROUP_TALK, .commands = SENDING | TOP, .at = AT(settings.log.level),
     .choices = log_levels, .fallback = "info", .help = "messages to log",
     .env = "DD_PROFILING_NATIVE_LOG_LEVEL"},
    {.name = "log-file", .value = "FILE", .kind = KIND_PATH, .group = GROUP_TALK,
     .commands = SENDING | TOP, .at = AT(settings.log.file), .shown = "standard error",
     .help = "file to log to; HUP reopens it", GPROFILER},
    {.name = "log-format", .value = "FORM", .kind = KIND_CHOICE, .group = GROUP_TALK,
     .commands = SENDING | TOP, .at = AT(settings.log.format), .choices = log_formats,
     .fallback = "text", .help = "format of the log"},
    {.name = "quiet", .letter = 'q', .kind = KIND_FLAG, .group = GROUP_TALK, .commands = ANY,
     .at = AT(quiet), .shown = "", .help = "errors only"},
    {.name = "verbose", .letter = 'v', .kind = KIND_FLAG, .group = GROUP_TALK, .commands = ANY,
     .at = AT(verbose), .shown = "", .help = "as --log-level debug", GPROFILER},
    {.name = "color", .value = "WHEN", .kind = KIND_CHOICE, .group = GROUP_TALK, .commands = ANY,
     .at = AT(settings.log.color), .choices = colors, .fallback = "auto", .help = "colours on a "
     "terminal; NO_COLOR, CLICOLOR_FORCE and FORCE_COLOR apply"},
    {.name = "help", .letter = 'h', .kind = KIND_ACTION, .group = GROUP_TALK, .commands = ANY,
     .shown = "", .help = "-h one screen, --help everything"},
    {.name = "version", .kind = KIND_ACTION, .group = GROUP_TALK, .commands = ANY, .shown = "",
     .help = "version and build, for bug reports"},

    /* Back ends */
#define BACKEND .group = GROUP_BACKEND, .commands = SENDING, .shown = ""
    {.name = "backend", .value = "LIST", .kind = KIND_FORMATS, .at = AT(settings.upload.backends),
     .choice_at = back_end, .group = GROUP_BACKEND, .commands = SENDING,
     .shown = "whose variables are set, else studio", .help = "back ends to send to, any of"},
    {.name = "server-host", .value = "URL", .kind = KIND_TEXT,
     .at = AT(settings.upload.server_host),
     .help = "address of the back end; for several NAME=URL,NAME=URL", BACKEND, GPROFILER},
    {.name = "host", .letter = 'H', .value = "HOST", .kind = KIND_TEXT,
     .at = AT(settings.upload.agent_host), .help = "host of a Datadog agent", BACKEND,
     .env = "DD_AGENT_HOST"},
    {.name = "port", .letter = 'P', .value = "PORT", .kind = KIND_NUMBER,
     .at = AT(settings.upload.agent_port), .min = 1, .max = 65535, .unit = "as a port",
     .help = "port of a Datadog agent", BACKEND, .env = "DD_TRACE_AGENT_PORT"},
    {.name = "agentless", .kind = KIND_FLAG, .at = AT(settings.upload.agentless),
     .help = "to Datadog itself, with DD_API_KEY and DD_SITE", BACKEND,
     .env = "DD_PROFILING_AGENTLESS"},
    {.name = "token", .value = "TOKEN", .kind = KIND_SECRET, .at = AT(settings.upload.token),
     .help = "secret of the back end; --token-file is safer", BACKEND, GPROFILER},
    {.name = "token-file", .value = "FILE", .kind = KIND_PATH, .at = AT(settings.upload.token_file),
     .help = "file with the secret; for several back ends NAME=FILE,NAME=FILE", BACKEND},
    {.name = "header", .value = "NAME:VALUE", .kind = KIND_SECRETS,
     .at = AT(settings.upload.headers), .help = "a further header of each request; repeatable",
     BACKEND},
    {.name = "http-method", .value = "METHOD", .kind = KIND_CHOICE,
     .at = AT(settings.upload.method), .choices = http_methods, .fallback = "put",
     .group = GROUP_BACKEND, .commands = SENDING,
     .help = "of --backend http"},
    {.name = "environment", .letter = 'E', .value = "NAME", .kind = KIND_TEXT,
     .at = AT(settings.upload.environment), .help = "tag env, such as staging", BACKEND,
     .env = "DD_ENV"},
    {.name = "service-version", .letter = 'V', .value = "VERSION", .kind = KIND_TEXT,
     .at = AT(settings.upload.service_version), .help = "tag version", BACKEND,
     .env = "DD_VERSION"},
    {.name = "tags", .letter = 'T', .value = "K:V[,K:V...]", .kind = KIND_TEXT,
     .at = AT(settings.upload.tags), .help = "further tags", BACKEND,
     .env = "DD_TAGS PYROSCOPE_LABELS OTEL_RESOURCE_ATTRIBUTES"},
    {.name = "server-upload-timeout", .value = "S", .kind = KIND_DURATION,
     .at = AT(settings.upload.timeout_ns), .min = NS_PER_S, .max = 3600 * NS_PER_S,
     .fallback = "120", .group = GROUP_BACKEND, .commands = SENDING,
     .help = "time limit of one request", GPROFILER},

    {.name = "disable-metadata-collection", .kind = KIND_FLAG, .at = AT(settings.origin.metadata),
     .inverse = true, .help = "collect no facts about the machine; the studio still gets the host's name",
     BACKEND, GPROFILER},
    {.name = "disable-metrics-collection", .kind = KIND_FLAG, .at = AT(settings.origin.metrics),
     .inverse = true, .help = "do not measure CPU and memory use of the container or machine", BACKEND,
     GPROFILER},
    {.name = "dont-send-logs", .kind = KIND_FLAG, .at = AT(settings.upload.send_logs), .inverse = true,
     .help = "do not send pillion's messages to the studio", BACKEND, GPROFILER},
    {.name = "api-server", .value = "URL", .kind = KIND_TEXT, .at = AT(settings.upload.api_server),
     .help = "address of the studio for messages, if not --server-host", BACKEND, GPROFILER},

    /* TLS and spool */
#define TLS .group = GROUP_TLS, .commands = SENDING, .shown = ""
    {.name = "ca-file", .value = "FILE", .kind = KIND_PATH, .at = AT(settings.upload.ca_file),
     .help = "trust these certificate authorities, and no others", TLS},
    {.name = "pin", .value = "sha256//HASH", .kind = KIND_TEXT, .at = AT(settings.upload.pins),
     .help = "trust a server with this public key, whoever signed it; commas between several", TLS},
    {.name = "client-cert", .value = "FILE", .kind = KIND_PATH,
     .at = AT(settings.upload.client_cert), .help = "certificate shown to the server", TLS},
    {.name = "client-key", .value = "FILE", .kind = KIND_PATH, .at = AT(settings.upload.client_key),
     .help = "its private key, when it is not in the same file", TLS},
    {.name = "verify", .kind = KIND_FLAG, .at = AT(settings.upload.verify), .label = LABEL_NEGATIVE,
     .fallback = "1", .help = "do not check the server's certificate", TLS, GPROFILER},
    {.name = "spool-dir", .value = "DIR", .kind = KIND_DIR, .at = AT(settings.upload.spool_dir),
     .help = "keep unsent windows here, over restarts too", TLS},
    {.name = "spool-max", .value = "MB", .kind = KIND_SIZE,
     .at = AT(settings.upload.spool_max_bytes), .min = MB, .max = 1024 * GB, .scale = MB,
     .fallback = "64", .group = GROUP_TLS, .commands = SENDING,
     .help = "at most this much, and at most a tenth of the free space"},

    /* pillion's own commands */
    {.name = "top", .value = "N", .kind = KIND_NUMBER, .group = GROUP_REPORT, .commands = REPORT,
     .at = AT(report_top), .min = 1, .max = 1000, .fallback = "10", .unit = "rows",
     .help = "functions, paths and processes to print"},
    {.name = "output", .letter = 'o', .value = "OUT", .kind = KIND_PATH, .group = GROUP_RENDER,
     .commands = RENDER, .at = AT(render_output), .shown = "",
     .help = "file to write, its format by its extension (help output); - is standard output, "
             "with --format"},
    {.name = "format", .value = "FORM", .kind = KIND_FORMATS, .group = GROUP_RENDER,
     .commands = RENDER, .at = AT(render_format), .choice_at = file_format, .shown = "",
     .help = "its format, whatever the extension, one of"},
    {.name = "type", .value = "NAME", .kind = KIND_TEXT, .group = GROUP_RENDER,
     .commands = RENDER | REPORT, .at = AT(render_type), .shown = "cpu, in pages all",
     .help = "a value of a pprof or jfr file, such as off_cpu; any other name lists them"},
    {.name = "diff", .value = "BASE", .kind = KIND_PATH, .group = GROUP_RENDER,
     .commands = RENDER, .at = AT(diff_base), .shown = "",
     .help = "colour by the difference to this profile"},
    {.name = "sources", .value = "DIR", .kind = KIND_DIR, .group = GROUP_RENDER,
     .commands = RENDER, .at = AT(sources), .shown = "",
     .help = "show in the page the lines that functions executed, of Python, Ruby, PHP and Perl files below DIR"},
    {.name = "dry-run", .kind = KIND_FLAG, .group = GROUP_UPLOAD, .commands = UPLOAD,
     .at = AT(dry_run), .shown = "",
     .help = "print requests with secrets masked; send nothing"},
    {.name = "all-frames", .kind = KIND_FLAG, .group = GROUP_DUMP, .commands = DUMP, .at = AT(all_frames), .shown = "",
     .help = "every frame and thread on a terminal, too, however many screens"},
    {.name = "locals", .value = "no", .kind = KIND_CHOICE, .group = GROUP_DUMP, .commands = DUMP, .at = AT(locals),
     .choices = no_or_yes, .fallback = "no", .help = "values of variables: never read, they may be secrets"},
    {.name = "once", .kind = KIND_FLAG, .group = GROUP_TOP, .commands = TOP, .at = AT(settings.live.once),
     .shown = "", .help = "one table, then the end"},
    {.name = "interval", .value = "S", .kind = KIND_DURATION, .group = GROUP_TOP, .commands = TOP,
     .at = AT(settings.live.interval_ns), .min = NS_PER_S / 5, .max = 86400 * NS_PER_S,
     .shown = "0.5 on a screen, else 2", .help = "between two screens or tables"},
    {.name = "json", .kind = KIND_FLAG, .group = GROUP_DOCTOR, .commands = DUMP | TOP | REPORT | DOCTOR, .at = AT(json),
     .shown = "", .help = "print one JSON object; top: one for each interval, a line each"},
};
const size_t option_count = sizeof option_table / sizeof option_table[0];
_Static_assert(sizeof option_table / sizeof option_table[0] <= OPTION_MAX, "raise OPTION_MAX");

const struct option_alias option_aliases[] = {
    /* gProfiler */
    {"no-perf", 0, "perf-mode", "disabled", true},
    {"no-go-pprof", 0, "go-mode", "walk", true},
    {"inlined-functions", 0, "inlines", NULL, false},
#define LANGUAGE_MODE(id, title, option, ...) {"no-" option, 0, option "-mode", "disabled", true},
#include "profile/language.def"
#undef LANGUAGE_MODE
    {"perf-event", 0, "event", NULL, true},
    {"glogger-server", 0, "api-server", NULL, true},
    {"tls-client-cert", 0, "client-cert", NULL, true},
    {"tls-client-key", 0, "client-key", NULL, true},
    {"tls-ca-bundle", 0, "ca-file", NULL, true},
    /* ddprof */
    {"enabled", 0, "enable", NULL, false},
    {"service", 0, "service-name", NULL, false},
    {"pid", 0, "pids", NULL, false},
    {"global", 'g', "all", NULL, false},
    {"url", 'U', "server-host", NULL, false},
    {"api-key", 0, "token", NULL, false},
    {"upload-period", 0, "profiling-duration", NULL, false},
    {"stack-sample-size", 0, "perf-dwarf-stack-size", NULL, false},
};
const size_t option_alias_count = sizeof option_aliases / sizeof option_aliases[0];

/* What stands for a row of unused.h. */
static const struct option unused_flag = {.name = "", .kind = KIND_FLAG, .commands = SENDING};
static const struct option unused_text = {
    .name = "", .value = "VALUE", .kind = KIND_TEXT, .commands = SENDING};

unsigned option_commands(const struct option *row)
{
    return row->commands ? row->commands : RUN | TOP;
}

static bool same_name(const char *typed, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++)
        if (name[i] == '\0' || (typed[i] == '_' ? '-' : typed[i]) != name[i])
            return false;
    return name[len] == '\0';
}

static const struct option *find_row(const char *name, size_t len, unsigned commands)
{
    for (size_t i = 0; i < option_count; i++)
        if ((option_commands(&option_table[i]) & commands) &&
            same_name(name, len, option_table[i].name))
            return &option_table[i];
    return NULL;
}

static const struct option *row_of_alias(const struct option_alias *alias, unsigned commands)
{
    return find_row(alias->option, strlen(alias->option), commands);
}

static bool has_word(struct str words, struct str word)
{
    while (words.len > 0)
        if (str_eq(str_cut(&words, ' '), word))
            return true;
    return false;
}

/* GPROFILER_ variables are the option's own name. */
void option_variables(const struct option *row, struct buf *out)
{
    buf_text(out, row->env ? row->env : "");
    for (size_t i = 0; row->env_of_backends && backends[i]; i++) {
        struct str names = str_of(backends[i]->env_service);
        while (names.len > 0) {
            struct str name = str_cut(&names, ' ');
            if (!str_starts(name, STR("GPROFILER_")) && !has_word(buf_slice(out), name)) {
                buf_text(out, out->len > 0 ? " " : "");
                buf_str(out, name);
            }
        }
    }
}

static struct option_match match_of_unused(const struct unused_option *unused)
{
    return (struct option_match){.row = unused->valued ? &unused_text : &unused_flag, .unused = unused};
}

static struct option_match find_unused(const char *name, size_t len, unsigned commands)
{
    char plain[OPTION_NAME_MAX];
    size_t kept = len < sizeof plain ? len : 0;
    for (size_t i = 0; i < kept; i++)
        plain[i] = name[i] == '_' ? '-' : name[i];
    const struct unused_option *unused = unused_find((struct str){plain, kept});
    if (!unused || !(commands & SENDING))
        return (struct option_match){0};
    return match_of_unused(unused);
}

struct option_match option_find(const char *name, size_t len, unsigned commands)
{
    struct option_match match = {.row = find_row(name, len, commands)};
    for (size_t i = 0; !match.row && i < option_alias_count; i++) {
        if (same_name(name, len, option_aliases[i].name)) {
            match.alias = &option_aliases[i];
            match.row = row_of_alias(match.alias, commands);
        }
    }
    if (!match.row && len > 3 && same_name(name, 3, "no-")) {
        struct option_match positive = option_find(name + 3, len - 3, commands);
        if (positive.row && positive.row->kind == KIND_FLAG && !positive.negated && !positive.unused) {
            match = positive;
            match.negated = true;
        }
    }
    return match.row ? match : find_unused(name, len, commands);
}

struct option_match option_find_letter(char letter, unsigned commands)
{
    for (size_t i = 0; i < option_count; i++)
        if (option_table[i].letter == letter && (option_commands(&option_table[i]) & commands))
            return (struct option_match){.row = &option_table[i]};
    for (size_t i = 0; i < option_alias_count; i++)
        if (option_aliases[i].letter == letter && row_of_alias(&option_aliases[i], commands))
            return (struct option_match){.row = row_of_alias(&option_aliases[i], commands),
                                         .alias = &option_aliases[i]};
    for (const struct unused_option *u = unused_options; u->name && (commands & SENDING); u++)
        if (u->letter == letter)
            return match_of_unused(u);
    return (struct option_match){0};
}

bool option_takes_value(const struct option_match *match)
{
    return match->row->kind != KIND_FLAG && match->row->kind != KIND_ACTION &&
           !(match->alias && match->alias->value);
}

void option_each_name(unsigned commands, void (*each)(void *context, const char *name),
                      void *context)
{
    char negative[OPTION_NAME_MAX + 1] = "no-";
    for (size_t i = 0; i < option_count; i++) {
        const struct option *row = &option_table[i];
        if (!(option_commands(row) & commands))
            continue;
        each(context, row->name);
        if (row->kind == KIND_FLAG) {
            strncpy(negative + 3, row->name, sizeof negative - 4);
            each(context, negative);
        }
    }
    for (size_t i = 0; i < option_alias_count; i++)
        if (row_of_alias(&option_aliases[i], commands))
            each(context, option_aliases[i].name);
    for (const struct unused_option *u = unused_options; u->name && (commands & SENDING); u++)
        each(context, u->name);
}

void option_env_name(const char *name, char out[static OPTION_NAME_MAX + 1])
{
    size_t i = 0;
    for (; name[i] && i < OPTION_NAME_MAX; i++)
        out[i] = name[i] == '-' ? '_' : name[i] >= 'a' && name[i] <= 'z' ? name[i] - 32 : name[i];
    out[i] = '\0';
}
