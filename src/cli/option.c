#include "cli/option.h"

#include "base/time.h"
#include "cli/request.h"

#include <string.h>

#define AT(field) offsetof(struct request, field)
#define KB (UINT64_C(1) << 10)
#define MB (UINT64_C(1) << 20)
#define GB (UINT64_C(1) << 30)

#define ANY COMMAND_ALL
#define RENDER COMMAND_BIT(COMMAND_RENDER)
#define DOCTOR COMMAND_BIT(COMMAND_DOCTOR)
#define RUN (COMMAND_BIT(COMMAND_RUN) | DOCTOR)
#define UPLOAD COMMAND_BIT(COMMAND_UPLOAD)
#define SENDING (RUN | UPLOAD)

const char *const option_group_title[GROUP_COUNT] = {
    [GROUP_WHAT] = "What and how long",
    [GROUP_WHERE] = "Where it goes",
    [GROUP_TARGETS] = "Which processes",
    [GROUP_FILES] = "Files",
    [GROUP_STACKS] = "How stacks are read",
    [GROUP_NAMES] = "What is named in the profile",
    [GROUP_BUDGET] = "What the profiler may use",
    [GROUP_TALK] = "What it says",
    [GROUP_BACKEND] = "Back ends",
    [GROUP_TLS] = "TLS and spool",
    [GROUP_RENDER] = "pillion render",
    [GROUP_DOCTOR] = "pillion doctor",
    [GROUP_UPLOAD] = "pillion upload",
    [GROUP_ELSEWHERE] = "Other profilers' options that need nothing here",
};

static const struct choice perf_modes[] = {
    {"smart", PERF_SMART, 0, 0},       {"fp", PERF_FP, 0, 0},         {"dwarf", PERF_DWARF, 0, 0},
    {"disabled", PERF_DISABLED, 0, 0}, {"none", PERF_DISABLED, 0, 0}, {0},
};

/* What gProfiler calls its readers: its command lines keep working, and ours is what there is. */
#define AUTO_OR_DISABLED {"auto", RUNTIME_AUTO, 0, 0}, {"disabled", RUNTIME_DISABLED, 0, 0}, \
                         {"none", RUNTIME_DISABLED, 0, 1}
#define ITS(name) {name, RUNTIME_AUTO, 0, 1}
static const struct choice python_modes[] = {
    AUTO_OR_DISABLED, ITS("pyperf"), ITS("pyspy"), ITS("py-spy"), {0},
};
static const struct choice on_or_off[] = {{"on", NATIVE_ON, 0, 0}, {"off", NATIVE_OFF, 0, 0}, {0}};
static const struct choice ruby_modes[] = {AUTO_OR_DISABLED, ITS("rbspy"), {0}};
static const struct choice php_modes[] = {AUTO_OR_DISABLED, ITS("phpspy"), {0}};
static const struct choice java_modes[] = {AUTO_OR_DISABLED, ITS("ap"), {0}};
static const struct choice nodejs_modes[] = {
    AUTO_OR_DISABLED, ITS("perf"), ITS("attach-maps"), {0},
};
static const struct choice go_modes[] = {AUTO_OR_DISABLED, {0}};

static const struct choice launch_modes[] = {
    {"auto", LAUNCH_AUTO, 0, 0}, {"exec", LAUNCH_EXEC, 0, 0}, {"init", LAUNCH_INIT, 0, 0}, {0},
};
static const struct choice formats[] = {
    {"col", FORMAT_COL, 0, 0},
    {"html", FORMAT_HTML, 0, 0},
    {"pprof", FORMAT_PPROF, 0, 0},
    {"speedscope", FORMAT_SPEEDSCOPE, 0, 0},
    {0},
};
static const struct choice log_levels[] = {
    {"error", LOG_ERROR, 0, 0},        {"warning", LOG_WARNING, 0, 0},
    {"info", LOG_INFO, 0, 0},          {"debug", LOG_DEBUG, 0, 0},
    {"warn", LOG_WARNING, 0, 1},       {"notice", LOG_INFO, 0, 1},
    {"informational", LOG_INFO, 0, 1}, {0},
};
static const struct choice log_formats[] = {
    {"text", LOG_TEXT, 0, 0}, {"logfmt", LOG_LOGFMT, 0, 0}, {"json", LOG_JSON, 0, 0}, {0},
};
static const struct choice colors[] = {
    {"auto", COLOR_AUTO, 0, 0}, {"always", COLOR_ALWAYS, 0, 0}, {"never", COLOR_NEVER, 0, 0}, {0},
};
static const struct choice back_ends[] = {
    {"studio", UPLOAD_STUDIO, 0, 0},
    {"pyroscope", UPLOAD_PYROSCOPE, 0, 0},
    {"http", UPLOAD_HTTP, 0, 0},
    {"datadog", UPLOAD_DATADOG, 0, 0},
    {"otlp", UPLOAD_OTLP, 0, 0},
    {0},
};
static const struct choice http_methods[] = {
    {"put", UPLOAD_PUT, 0, 0}, {"post", UPLOAD_POST, 0, 0}, {0},
};
static const struct choice profiler_modes[] = {
    {"cpu", 0, 0, 0}, {"allocation", 1, 1, 0}, {"none", 2, 1, 0}, {0},
};
static const struct choice presets[] = {
    {"cpu_only", 0, 0, 0},
    {"default", 0, 0, 1},
    {"alloc_only", 1, 1, 1},
    {"alloc_live_heap", 2, 1, 1},
    {"cpu_live_heap", 3, 1, 1},
    {0},
};

/* Shorthands for rows that store nothing of their own. */
#define UNSTORED_TEXT .at = AT(ignored_text), .kind = KIND_TEXT
#define UNSTORED_FLAG .at = AT(ignored_flag), .kind = KIND_FLAG
#define NO_EFFECT .state = STATE_NO_EFFECT, .group = GROUP_ELSEWHERE, .commands = SENDING
#define GPROFILER .gprofiler = true
#define LANGUAGE(option_name, language, modes, text)                                               \
    {.name = option_name, .value = "MODE", .kind = KIND_CHOICE, .group = GROUP_STACKS,             \
     .at = AT(settings.runtime_mode[language]), .choices = modes, .fallback = "auto",              \
     .help = text, GPROFILER}

const struct option option_table[] = {
    /* What and how long */
    {.name = "profiling-frequency", .letter = 'f', .value = "HZ", .kind = KIND_NUMBER,
     .group = GROUP_WHAT, .at = AT(settings.frequency_hz), .min = 1, .max = 10000,
     .unit = "samples per second", .fallback = "99", .help = "samples per second of CPU",
     GPROFILER},
    {.name = "profiling-duration", .letter = 'd', .value = "S", .kind = KIND_DURATION,
     .group = GROUP_WHAT, .at = AT(settings.window_ns), .min = NS_PER_S,
     .max = 86400 * NS_PER_S, .fallback = "60", .help = "length of one window", GPROFILER,
     .env = "DD_PROFILING_UPLOAD_PERIOD"},
    {.name = "continuous", .letter = 'c', .kind = KIND_FLAG, .group = GROUP_WHAT,
     .at = AT(settings.continuous), .label = LABEL_BOTH, .shown = "on for a command",
     .help = "window after window", GPROFILER},

    /* Where it goes */
    {.name = "output-dir", .letter = 'o', .value = "DIR", .kind = KIND_DIR, .group = GROUP_WHERE,
     .at = AT(settings.output_dir), .shown = ". unless -u", .help = "files", GPROFILER},
    {.name = "upload-results", .letter = 'u', .kind = KIND_FLAG, .group = GROUP_WHERE,
     .commands = RUN, .at = AT(settings.upload.wanted), .shown = "see --backend",
     .help = "send to a back end; files only with -o or --format", GPROFILER},
    {.name = "service-name", .letter = 'S', .value = "NAME", .kind = KIND_TEXT,
     .group = GROUP_WHERE, .commands = SENDING, .at = AT(settings.service_name),
     .shown = "from the command", .help = "name shown there", GPROFILER,
     .env = "DD_SERVICE OTEL_SERVICE_NAME PYROSCOPE_APPLICATION_NAME"},

    /* Which processes */
    {.name = "pids", .letter = 'p', .value = "PID[,PID...]", .kind = KIND_PIDS,
     .group = GROUP_TARGETS, .at = AT(settings.pids), .min = 1, .max = 4194304,
     .unit = "process ids", .help = "these processes, their threads and future children",
     GPROFILER},
    {.name = "all", .letter = 'a', .kind = KIND_FLAG, .group = GROUP_TARGETS, .at = AT(all),
     .shown = "without a command or -p", .help = "every process visible in this PID namespace"},
    {.name = "children", .kind = KIND_FLAG, .group = GROUP_TARGETS, .at = AT(settings.children),
     .shown = "", .help = "with -p: the children that they have already, too"},
    {.name = "match", .value = "TEXT[,TEXT...]", .kind = KIND_LIST, .group = GROUP_TARGETS,
     .at = AT(settings.filters[FILTER_MATCH]), .min = 1, .shown = "",
     .help = "only processes with this text in their command line; with * or ? a pattern of the "
             "whole of it. ! before a text leaves out. Like the next two for -a, and for what a "
             "command or -p starts"},
    {.name = "exe", .value = "NAME|PATH[,...]", .kind = KIND_LIST, .group = GROUP_TARGETS,
     .at = AT(settings.filters[FILTER_EXE]), .min = 1, .shown = "",
     .help = "only processes that run this executable; * and ? as above"},
    {.name = "container", .value = "ID[,ID...]", .kind = KIND_LIST, .group = GROUP_TARGETS,
     .at = AT(settings.filters[FILTER_CONTAINER]), .min = 4, .shown = "",
     .unit = "4 or more characters of a container's id",
     .help = "only processes of this container; the first 4 or more characters are enough"},
    {.name = "min-duration", .value = "S", .kind = KIND_DURATION,
     .group = GROUP_TARGETS, .at = AT(settings.min_duration_ns), .max = 86400 * NS_PER_S,
     .fallback = "0", .help = "leave out processes younger than this, but for the command itself "
     "and -p", GPROFILER},
    {.name = "launch", .value = "MODE", .kind = KIND_CHOICE, .group = GROUP_TARGETS,
     .at = AT(settings.launch), .choices = launch_modes, .fallback = "auto",
     .help = "start the command in pillion's place (exec) or below a tiny parent that forwards "
             "signals (init; auto: as PID 1, and when standard error is a terminal)"},
    {.name = "nice", .letter = 'n', .value = "N", .kind = KIND_NUMBER, .state = STATE_NOT_YET,
     .group = GROUP_TARGETS, .at = AT(ignored_choice), .max = 19, .unit = "as niceness",
     .shown = "", .help = "niceness of the profiler", .env = "DD_PROFILING_NICE"},
    {.name = "enable", .kind = KIND_FLAG, .state = STATE_NOT_YET, .group = GROUP_TARGETS,
     .at = AT(ignored_flag), .label = LABEL_NEGATIVE, .fallback = "1", .shown = "",
     .help = "run the command without profiling it", .env = "DD_PROFILING_ENABLED"},
    {.name = "controller-pid", .value = "PID", .state = STATE_NOT_YET, .group = GROUP_TARGETS,
     UNSTORED_TEXT, .shown = "", .help = "end when that process ends", GPROFILER},

    /* Files */
    {.name = "format", .value = "LIST", .kind = KIND_FORMATS, .group = GROUP_FILES,
     .at = AT(settings.formats), .choices = formats, .fallback = "col,html,pprof",
     .help = "what is written, any of"},
    {.name = "flamegraph", .kind = KIND_FLAG, .group = GROUP_FILES, .at = AT(flamegraph),
     .label = LABEL_NEGATIVE, .fallback = "1", .shown = "",
     .help = "no html, whatever --format says", GPROFILER},
    {.name = "rotating-output", .kind = KIND_FLAG, .group = GROUP_FILES,
     .at = AT(settings.rotating), .shown = "", .help = "keep only the newest window's files",
     GPROFILER},
    {.name = "max-output-files", .value = "N", .kind = KIND_NUMBER, .group = GROUP_FILES,
     .at = AT(settings.max_output_files), .max = 1000000, .unit = "sets of files",
     .fallback = "0", .shown = "all", .help = "keep the files of this many windows"},
    {.name = "heartbeat-file", .value = "FILE", .state = STATE_NOT_YET, .group = GROUP_FILES,
     UNSTORED_TEXT, .shown = "", .help = "touch this file at the start of each window",
     GPROFILER},

    /* How stacks are read */
    {.name = "perf-mode", .value = "MODE", .kind = KIND_CHOICE, .group = GROUP_STACKS,
     .at = AT(settings.perf_mode), .choices = perf_modes, .fallback = "smart",
     .help = "native stacks", GPROFILER},
    {.name = "perf-dwarf-stack-size", .value = "BYTES", .kind = KIND_SIZE,
     .group = GROUP_STACKS, .at = AT(settings.stack_bytes), .max = 65528,
     .shown = "by need", .help = "how much of a stack a sample copies, to begin with", GPROFILER,
     .env = "DD_PROFILING_SAMPLE_STACK_USER"},
    LANGUAGE("python-mode", FRAME_PYTHON, python_modes, "Python code by its own names"),
    {.name = "python-native", .value = "ON", .kind = KIND_CHOICE, .group = GROUP_STACKS,
     .at = AT(settings.python_native), .choices = on_or_off, .fallback = "on",
     .help = "native code in its place in Python stacks"},
    {.name = "wall", .kind = KIND_FLAG, .group = GROUP_STACKS, .at = AT(settings.wall), .shown = "",
     .help = "also where threads of interpreters wait: sample types off_cpu and wall in pprof"},
    {.name = "off-cpu", .kind = KIND_FLAG, .group = GROUP_STACKS, .at = AT(settings.off_cpu),
     .shown = "",
     .help = "also where threads of all kinds do not run: the same sample types, by the kernel's "
             "context switches (perf events only)"},
    /* No reader of theirs asks for these yet. */
    LANGUAGE("ruby-mode", FRAME_RUBY, ruby_modes, "Ruby is seen as native code, either way"),
    LANGUAGE("php-mode", FRAME_PHP, php_modes, "PHP is seen as native code, either way"),
    LANGUAGE("java-mode", FRAME_JVM, java_modes, "Java is seen as native code, either way"),
    LANGUAGE("nodejs-mode", FRAME_JS, nodejs_modes,
             "Node.js code by the perf map or jitdump that it writes, either way"),
    LANGUAGE("go-mode", FRAME_GO, go_modes, "Go code by its own table, either way"),
    {.name = "mode", .value = "MODE", .kind = KIND_CHOICE, .group = GROUP_STACKS,
     .at = AT(ignored_choice), .choices = profiler_modes, .fallback = "cpu",
     .help = "what is measured", GPROFILER},
    {.name = "event", .letter = 'e', .value = "EVENT", .kind = KIND_EVENTS,
     .group = GROUP_STACKS, .at = AT(settings.events), .shown = "",
     .help = "also sample another event, such as page-faults or cycles: a sample type in pprof",
     .env = "DD_PROFILING_NATIVE_EVENTS"},
    {.name = "preset", .value = "NAME", .kind = KIND_CHOICE, .group = GROUP_STACKS,
     .at = AT(ignored_choice), .choices = presets, .fallback = "cpu_only",
     .help = "a named set of events", .env = "DD_PROFILING_NATIVE_PRESET"},

    /* What is named */
    {.name = "insert-dso-name", .kind = KIND_FLAG, .state = STATE_NOT_YET, .group = GROUP_NAMES,
     .at = AT(settings.insert_dso_name), .shown = "", .help = "native frames as \"symbol (file)\"",
     GPROFILER},
    {.name = "inlines", .letter = 'I', .kind = KIND_FLAG, .group = GROUP_NAMES,
     .at = AT(settings.inlines), .shown = "",
     .help = "frames for inlined functions, and lines, where there is debug information",
     .env = "DD_PROFILING_INLINED_FUNCTIONS"},
    {.name = "disable-container-names", .kind = KIND_FLAG, .group = GROUP_NAMES,
     .at = AT(settings.container_names), .inverse = true, .shown = "",
     .help = "no container in the profile", GPROFILER},
    {.name = "disable-application-identifiers", .kind = KIND_FLAG, .group = GROUP_NAMES,
     .at = AT(settings.application_identifiers), .inverse = true, .shown = "",
     .help = "no [appid: ...] frames", GPROFILER},
    {.name = "app-id-args-filter", .value = "REGEX", .state = STATE_NOT_YET,
     .group = GROUP_NAMES, UNSTORED_TEXT, .shown = "",
     .help = "arguments that become application identifiers", GPROFILER},
    {.name = "external-metadata", .value = "FILE", .state = STATE_NOT_YET, .group = GROUP_NAMES,
     UNSTORED_TEXT, .shown = "", .help = "JSON with more facts about processes", GPROFILER},

    /* What the profiler may use */
    {.name = "max-memory", .value = "MB", .kind = KIND_SIZE, .group = GROUP_BUDGET,
     .at = AT(settings.max_memory_bytes), .min = 8 * MB, .max = 16 * GB, .scale = MB,
     .fallback = "64", .help = "memory; less detail rather than more memory"},
    {.name = "max-cpu", .value = "PERCENT", .kind = KIND_PERCENT, .group = GROUP_BUDGET,
     .at = AT(settings.max_cpu_percent), .min = 100, .max = 100000,
     .fallback = "1", .help = "share of one core; a lower frequency rather than more CPU"},

    /* What it says */
    {.name = "log-level", .letter = 'l', .value = "LEVEL", .kind = KIND_CHOICE,
     .group = GROUP_TALK, .commands = SENDING, .at = AT(settings.log_level),
     .choices = log_levels, .fallback = "info", .help = "what is told",
     .env = "DD_PROFILING_NATIVE_LOG_LEVEL"},
    {.name = "log-file", .value = "FILE", .kind = KIND_PATH, .group = GROUP_TALK,
     .commands = SENDING, .at = AT(settings.log_file), .shown = "standard error",
     .help = "where it is told; HUP opens the file again", GPROFILER},
    {.name = "log-format", .value = "FORM", .kind = KIND_CHOICE, .group = GROUP_TALK,
     .commands = SENDING, .at = AT(settings.log_format), .choices = log_formats,
     .fallback = "text", .help = "how it is told"},
    {.name = "quiet", .letter = 'q', .kind = KIND_FLAG, .group = GROUP_TALK, .commands = ANY,
     .at = AT(quiet), .shown = "", .help = "errors only"},
    {.name = "verbose", .letter = 'v', .kind = KIND_FLAG, .group = GROUP_TALK, .commands = ANY,
     .at = AT(verbose), .shown = "", .help = "as --log-level debug", GPROFILER},
    {.name = "color", .value = "WHEN", .kind = KIND_CHOICE, .group = GROUP_TALK, .commands = ANY,
     .at = AT(settings.color), .choices = colors, .fallback = "auto", .help = "colours on a "
     "terminal; NO_COLOR, CLICOLOR_FORCE and FORCE_COLOR are heeded"},
    {.name = "help", .letter = 'h', .kind = KIND_ACTION, .group = GROUP_TALK, .commands = ANY,
     .shown = "", .help = "-h one screen, --help everything"},
    {.name = "version", .kind = KIND_ACTION, .group = GROUP_TALK, .commands = ANY, .shown = "",
     .help = "the version, and what a report of a problem needs"},

    /* Back ends */
#define BACKEND .group = GROUP_BACKEND, .commands = SENDING, .shown = ""
    {.name = "backend", .value = "LIST", .kind = KIND_FORMATS, .at = AT(settings.upload.backends),
     .choices = back_ends, .group = GROUP_BACKEND, .commands = SENDING,
     .shown = "whose variables are set, else studio", .help = "where to, any of"},
    {.name = "server-host", .value = "URL", .kind = KIND_TEXT,
     .at = AT(settings.upload.server_host),
     .help = "address of the back end; of several NAME=URL,NAME=URL", BACKEND, GPROFILER},
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
     .help = "secret of the back end; rather use --token-file", BACKEND, GPROFILER},
    {.name = "token-file", .value = "FILE", .kind = KIND_PATH, .at = AT(settings.upload.token_file),
     .help = "file that holds the secret; of several back ends NAME=FILE,NAME=FILE", BACKEND},
    {.name = "header", .value = "NAME:VALUE", .kind = KIND_SECRETS,
     .at = AT(settings.upload.headers), .help = "a further header of each request; again for more",
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
     .help = "patience with one request", GPROFILER},

    {.name = "disable-metadata-collection", .kind = KIND_FLAG, .at = AT(settings.metadata),
     .inverse = true, .help = "no facts about the machine, but for the host's name to the studio",
     BACKEND, GPROFILER},
    {.name = "disable-metrics-collection", .kind = KIND_FLAG, .at = AT(settings.metrics),
     .inverse = true, .help = "do not look how busy the container or machine is", BACKEND,
     GPROFILER},
    {.name = "dont-send-logs", .kind = KIND_FLAG, .at = AT(settings.send_logs), .inverse = true,
     .help = "do not send pillion's messages to the studio", BACKEND, GPROFILER},
    {.name = "api-server", .value = "URL", .kind = KIND_TEXT, .at = AT(settings.upload.api_server),
     .help = "where the studio takes messages; else where it takes windows", BACKEND, GPROFILER},

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
     .help = "and not more than this, nor than a tenth of what is free"},

    /* pillion's own commands */
    {.name = "output", .letter = 'o', .value = "OUT", .kind = KIND_PATH, .group = GROUP_RENDER,
     .commands = RENDER, .at = AT(render_output), .shown = "",
     .help = "file to write, its form by its extension: .html .pprof .col .speedscope.json; "
             "- is standard output and needs --format"},
    {.name = "format", .value = "FORM", .kind = KIND_FORMATS, .group = GROUP_RENDER,
     .commands = RENDER, .at = AT(render_format), .choices = formats, .shown = "",
     .help = "its form, whatever the extension, one of"},
    {.name = "type", .value = "NAME", .kind = KIND_TEXT, .group = GROUP_RENDER,
     .commands = RENDER, .at = AT(render_type), .shown = "cpu",
     .help = "another value of a pprof file instead of CPU time: off_cpu, wall, page-faults; a name "
             "that is not there lists those that are"},
    {.name = "diff", .value = "BASE", .kind = KIND_PATH, .group = GROUP_RENDER,
     .commands = RENDER, .at = AT(diff_base), .shown = "",
     .help = "colour by the difference to this profile"},
    {.name = "dry-run", .kind = KIND_FLAG, .group = GROUP_UPLOAD, .commands = UPLOAD,
     .at = AT(dry_run), .shown = "",
     .help = "print the requests, secrets starred out, and send nothing"},
    {.name = "json", .kind = KIND_FLAG, .group = GROUP_DOCTOR, .commands = DOCTOR, .at = AT(json),
     .shown = "", .help = "for programs: one JSON object"},

    /* No effect, and why */
#define TEXT_OF(option_name, placeholder, why)                                                     \
    {.name = option_name, .value = placeholder, UNSTORED_TEXT, NO_EFFECT, GPROFILER, .help = why}
#define FLAG_OF(option_name, why)                                                                  \
    {.name = option_name, UNSTORED_FLAG, NO_EFFECT, GPROFILER, .help = why}
#define PLAIN_JVM "nothing is loaded into a Java process"
    {.name = "otlp-schema", .value = "RELEASE", UNSTORED_TEXT, NO_EFFECT,
     .help = "release 1.10 is sent, which the collector reads since 0.148, Pyroscope since 1.20"},
    FLAG_OF("disable-pidns-check", "the host's PID namespace is not needed"),
    FLAG_OF("rootless", "root is used where there is, and not needed"),
    FLAG_OF("profile-spawned-processes", "new children are always followed"),
    TEXT_OF("max-processes-runtime-profiler", "N", "what is read at once is bounded"),
    TEXT_OF("skip-system-profilers-above", "N", "events are opened per process"),
    FLAG_OF("disable-application-metadata", "no facts about applications are collected"),
    FLAG_OF("enable-hw-metrics-collection", "no hardware metrics are collected"),
    TEXT_OF("perfspect-path", "FILE", "no hardware metrics are collected"),
    TEXT_OF("perfspect-duration", "S", "no hardware metrics are collected"),
    FLAG_OF("perf-no-memory-restart", "there is no perf program to restart"),
    FLAG_OF("perf-use-cgroups", "events are opened per process"),
    TEXT_OF("perf-max-cgroups", "N", "events are opened per process"),
    TEXT_OF("perf-max-docker-containers", "N", "events are opened per process"),
    {.name = "python-versions", UNSTORED_FLAG, NO_EFFECT, GPROFILER, .label = LABEL_NEGATIVE,
     .help = "frames carry no package versions"},
    TEXT_OF("pyperf-user-stacks-pages", "N", "there is no PyPerf"),
    FLAG_OF("python-pyperf-verbose", "there is no PyPerf"),
    TEXT_OF("python-skip-pyperf-profiler-above", "N", "there is no PyPerf"),
    TEXT_OF("python-pyspy-process", "PID[,PID...]", "there is no py-spy"),
    TEXT_OF("php-proc-filter", "PATTERN", "PHP is told by its program, not by its name"),
    TEXT_OF("java-async-profiler-mode", "MODE", PLAIN_JVM),
    TEXT_OF("java-async-profiler-safemode", "N", PLAIN_JVM),
    TEXT_OF("java-async-profiler-features", "LIST", PLAIN_JVM),
    TEXT_OF("java-async-profiler-args", "TEXT", PLAIN_JVM),
    TEXT_OF("java-async-profiler-mcache", "N", PLAIN_JVM),
    FLAG_OF("java-async-profiler-no-report-meminfo", PLAIN_JVM),
    {.name = "java-async-profiler-buildids", UNSTORED_FLAG, NO_EFFECT, GPROFILER,
     .label = LABEL_NEGATIVE, .help = PLAIN_JVM},
    TEXT_OF("java-safemode", "LIST", PLAIN_JVM),
    TEXT_OF("java-jattach-timeout", "S", PLAIN_JVM),
    {.name = "java-version-check", UNSTORED_FLAG, NO_EFFECT, GPROFILER, .label = LABEL_NEGATIVE,
     .help = PLAIN_JVM},
    TEXT_OF("java-collect-jvm-flags", "LIST", PLAIN_JVM),
    FLAG_OF("java-full-hserr", PLAIN_JVM),
    FLAG_OF("java-include-method-modifiers", PLAIN_JVM),
    TEXT_OF("java-line-numbers", "MODE", PLAIN_JVM),
    FLAG_OF("java-collect-spark-app-name-as-appid", PLAIN_JVM),
    FLAG_OF("java-collect-thread-names", PLAIN_JVM),
    {.name = "dotnet-mode", .value = "MODE", UNSTORED_TEXT, NO_EFFECT, GPROFILER,
     .help = ".NET is seen as native code"},
    TEXT_OF("log-rotate-max-size", "BYTES", "rotate the log from outside, then send HUP"),
    TEXT_OF("log-rotate-backup-count", "N", "rotate the log from outside, then send HUP"),
    FLAG_OF("log-usage", "every summary says what the profiler cost"),
    FLAG_OF("diagnostics", "every summary says what the profiler cost"),
    FLAG_OF("curlify-requests", "requests are not logged"),
    TEXT_OF("profile-api-version", "VERSION", "the version is always v2"),
    FLAG_OF("enable-heartbeat-server", "no orders are taken from a server"),
    TEXT_OF("heartbeat-interval", "S", "no orders are taken from a server"),
    TEXT_OF("pid-file", "FILE", "the first line names the pid, and several may run"),
    FLAG_OF("dont-disable-core-files", "core files are off only for a profiler that knows a token"),
    FLAG_OF("tls-cert-refresh-enabled", "HUP reads certificates again"),
    TEXT_OF("tls-cert-refresh-interval", "S", "HUP reads certificates again"),
    {.name = "timeline", UNSTORED_FLAG, NO_EFFECT, .label = LABEL_BOTH,
     .help = "samples are added up, not listed by time"},
    {.name = "reorder-events", UNSTORED_FLAG, NO_EFFECT, .label = LABEL_BOTH,
     .help = "records are always put in order"},
    {.name = "maximum-pids", .value = "N", UNSTORED_TEXT, NO_EFFECT,
     .help = "there is no such limit"},
    {.name = "worker-period", .value = "N", UNSTORED_TEXT, NO_EFFECT,
     .help = "there is no worker to renew"},
    {.name = "log-mode", .value = "MODE", UNSTORED_TEXT, NO_EFFECT,
     .help = "the log goes to standard error, or to --log-file"},
};
const size_t option_count = sizeof option_table / sizeof option_table[0];
_Static_assert(sizeof option_table / sizeof option_table[0] <= OPTION_MAX, "raise OPTION_MAX");

const struct option_alias option_aliases[] = {
    /* gProfiler */
    {"no-perf", 0, "perf-mode", "disabled", true},
    {"inlined-functions", 0, "inlines", NULL, false},
    {"no-python", 0, "python-mode", "disabled", true},
    {"no-ruby", 0, "ruby-mode", "disabled", true},
    {"no-php", 0, "php-mode", "disabled", true},
    {"no-java", 0, "java-mode", "disabled", true},
    {"no-nodejs", 0, "nodejs-mode", "disabled", true},
    {"no-go", 0, "go-mode", "disabled", false},
    {"no-dotnet", 0, "dotnet-mode", "disabled", true},
    {"perf-event", 0, "event", NULL, true},
    {"glogger-server", 0, "api-server", NULL, true},
    {"tls-client-cert", 0, "client-cert", NULL, true},
    {"tls-client-key", 0, "client-key", NULL, true},
    {"tls-ca-bundle", 0, "ca-file", NULL, true},
    /* ddprof */
    {"service", 0, "service-name", NULL, false},
    {"pid", 0, "pids", NULL, false},
    {"global", 'g', "all", NULL, false},
    {"url", 'U', "server-host", NULL, false},
    {"api-key", 0, "token", NULL, false},
    {"upload-period", 0, "profiling-duration", NULL, false},
    {"stack-sample-size", 0, "perf-dwarf-stack-size", NULL, false},
};
const size_t option_alias_count = sizeof option_aliases / sizeof option_aliases[0];

unsigned option_commands(const struct option *row)
{
    return row->commands ? row->commands : RUN;
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
        if (positive.row && positive.row->kind == KIND_FLAG && !positive.negated) {
            match = positive;
            match.negated = true;
        }
    }
    return match;
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
}

void option_env_name(const char *name, char out[static OPTION_NAME_MAX + 1])
{
    size_t i = 0;
    for (; name[i] && i < OPTION_NAME_MAX; i++)
        out[i] = name[i] == '-' ? '_' : name[i] >= 'a' && name[i] <= 'z' ? name[i] - 32 : name[i];
    out[i] = '\0';
}
