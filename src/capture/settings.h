/*
 * settings: what a profiling run was asked to do.
 *
 * A plain value without behaviour. cli/ fills it from the command line, the environment and the
 * defaults, checks every range and resolves every "depends on" (continuous, output_dir, formats,
 * color stay exactly as the comments below say); capture/ only reads it. All texts are borrowed
 * from argv or the environment and live as long as the process; NULL means "not given" where a
 * comment says so and cannot occur elsewhere.
 *
 * A field belongs here when capture/ acts on it.
 */
#ifndef CAPTURE_SETTINGS_H
#define CAPTURE_SETTINGS_H

#include "base/str.h"
#include "capture/event.h"
#include "profile/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Three ways to name what is profiled; exactly one per run. */
enum target_mode {
    TARGET_COMMAND, /* `command` is started */
    TARGET_PIDS,    /* `pids` and all below them */
    TARGET_ALL,     /* every process visible in this PID namespace */
};

/* How native stacks are read. */
enum perf_mode {
    PERF_SMART, /* unwind tables first, frame pointers and the code itself where there are none */
    PERF_FP,    /* frame pointers, followed by the kernel: cheapest, and blind to code without them */
    PERF_DWARF, /* unwind tables only */
    PERF_DISABLED, /* no perf events: runtime readers and /proc accounting only */
};

enum runtime_mode { /* from RUNTIME_WALK on as enum language_way */
    RUNTIME_AUTO,
    RUNTIME_DISABLED,
    RUNTIME_WALK,    /* as its memory tells: it is asked nothing */
    RUNTIME_COLLECT, /* asked for a profile of its own where there is no other way, whatever that costs */
    RUNTIME_MOMENTS, /* likewise for its threads' stacks, again and again */
    RUNTIME_TRACE,   /* for an execution trace, now and then */
    RUNTIME_COLLECT_TRACE,
};

/* Whether stacks of an interpreter's threads show the native code it calls, in its place. */
enum native_frames {
    NATIVE_ON,
    NATIVE_OFF,
};

/* Who is whose parent when a command is started. */
enum launch_mode {
    LAUNCH_AUTO, /* as launch_prefers_init says (os/launch.h) */
    LAUNCH_EXEC, /* the command takes pillion's place and PID */
    LAUNCH_INIT, /* a small parent stays, forwards signals and returns the status */
};

/* A message is written when its level is <= the chosen one. */
enum log_level {
    LOG_ERROR,
    LOG_WARNING,
    LOG_INFO,
    LOG_DEBUG,
};

enum log_format {
    LOG_TEXT,
    LOG_LOGFMT,
    LOG_JSON,
};

enum color_mode {
    COLOR_AUTO, /* NO_COLOR, CLICOLOR_FORCE, FORCE_COLOR and the terminal decide */
    COLOR_ALWAYS,
    COLOR_NEVER,
};

enum { STOPS_HZ = 19 }; /* 40 µs each: 0.1 % of a thread's time */

enum { SETTINGS_PIDS_MAX = 256, SETTINGS_PATTERNS_MAX = 32 };

/* What a process can be told by (filter.h). */
enum filter_kind { FILTER_MATCH, FILTER_EXE, FILTER_CONTAINER, FILTER_KIND_COUNT };

struct pattern {
    struct str text;
    bool excludes; /* "!" stood before it */
};

struct pattern_list {
    struct pattern at[SETTINGS_PATTERNS_MAX];
    size_t count;
};

enum { SETTINGS_HEADERS_MAX = 16 };

/* Releases of OpenTelemetry's protocol; what they call a profile cannot be read by each other. */

enum upload_method { UPLOAD_PUT, UPLOAD_POST };

struct text_list {
    const char *at[SETTINGS_HEADERS_MAX];
    size_t count;
};

/* Where windows are sent. With several back ends, addresses and tokens are lists, NAME=VALUE,NAME=VALUE; one
 * without a name is of the only back end (capture/upload/sender.h). */
struct upload_settings {
    bool wanted;
    unsigned backends;         /* bits by backend_bit; 0: the one that the environment names, else studio */
    const char *server_host;   /* NULL: the back end's own variables, or its default */
    const char *api_server;    /* where the studio takes messages; NULL: where it takes windows */
    const char *token;         /* NULL: token_file, or the back end's own variables */
    const char *token_file;
    struct text_list headers; /* "NAME:VALUE"; with several back ends for those that take any */
    enum upload_method method;  /* for http; UPLOAD_PUT */
    const char *agent_host;    /* for datadog; NULL: none */
    unsigned agent_port;       /* likewise; 0: none */
    bool agent_told;           /* one of them by an option, not only by a variable of Datadog's */
    bool agentless;            /* to Datadog itself; false */
    bool send_logs;            /* Performance Studio is sent pillion's messages, too; true */
    const char *environment, *service_version, *tags; /* NULL: none */
    uint64_t timeout_ns;       /* of one request; 120 s */
    bool timeout_given;        /* false: the back end's own variables may say another */
    const char *ca_file, *client_cert, *client_key; /* NULL: none */
    const char *pins;          /* "sha256//…", commas between; NULL */
    bool verify;               /* true */
    const char *spool_dir;     /* NULL: no spool */
    uint64_t spool_max_bytes;  /* 64 MiB */
};

/* Which processes are profiled. */
struct scope_settings {
    enum target_mode mode;
    char *const *command;     /* TARGET_COMMAND: its argv, NULL-terminated; else NULL */
    const char *command_hint; /* NULL, or one sentence to add when the command is not found, such as
                               * "did you mean: pillion doctor?" */
    enum launch_mode launch;  /* LAUNCH_AUTO */
    bool enabled;             /* true. False: the command runs alone */
    int pids[SETTINGS_PIDS_MAX]; /* TARGET_PIDS: in the order given, each once, each > 0 */
    size_t pid_count;
    unsigned controller_pid;  /* the run ends when this process has; 0: none */
    bool children;            /* with pids: all below them, too; true */
    struct pattern_list filters[FILTER_KIND_COUNT]; /* empty: everything fits. The command itself and
                                                     * the pids are profiled whatever they say */
    uint64_t min_duration_ns; /* younger processes are excluded, but for the command itself and the
                               * pids; 0 = none */
};

/* How they are sampled. */
struct sampling_settings {
    unsigned frequency_hz;    /* 1 … 10000 per thread of CPU time; 99 */
    uint64_t window_ns;       /* 1 s … 24 h; 60 s */
    bool continuous;          /* window after window. Resolved: as given, else true for a command,
                               * false for pids and all */
    enum perf_mode perf_mode; /* PERF_SMART */
    uint64_t stack_bytes;     /* of a stack that a sample copies, to begin with; 0 = by frequency */
    bool wall;                /* waiting threads of interpreters, too; false */
    bool brief_stops;         /* where perf is refused, threads that run are held for some microseconds; false */
    unsigned stops_hz;        /* then so often. Resolved: frequency_hz if that was given, else STOPS_HZ */
    bool off_cpu;             /* every followed thread, too, by its context switches; false */
    struct event_list events; /* sampled besides CPU time; none */
};

struct runtime_settings {
    enum runtime_mode mode[FRAME_KIND_COUNT]; /* RUNTIME_AUTO; by enum frame_kind */
    enum native_frames native_frames; /* between an interpreter's own; NATIVE_ON */
    bool only_light; /* nothing is asked for but stacks of light threads, in memory (live/); false */
    bool attaches; /* runtimes that have no other way are asked for a profile of their own; true */
    unsigned collected; /* what they are asked for besides CPU time, whatever ways there are: bits of
                         * enum runtime_wanted; none */
    const char *go_addresses; /* where net/http/pprof of Go programs listens; NULL: it is found */
    bool shows_urls; /* of requests that interpreters serve; false */
    bool maps_sources; /* of scripts that a compiler has made, where it says so beside them; false */
    bool shows_tiers; /* names end in what made their code, where that is told; false */
};

/* How the end of a window stands in the names of its files. */
enum file_names {
    FILE_NAMES_PLAIN,     /* 2026-11-20T103104Z: no colon, which many systems refuse in names */
    FILE_NAMES_GPROFILER, /* 2026-11-20T10:31:04 */
};

/* What is written into files. */
struct output_settings {
    const char *dir;          /* as given; NULL = the current directory */
    unsigned formats;         /* bits as encode/encode.h says; --no-flamegraph has taken html away. 0 when
                               * windows are uploaded and neither -o nor --format was given */
    bool rotating;            /* keep only the newest set of files */
    unsigned max_files;       /* keep this many sets of files, the oldest go first; 0 = all */
    bool bounded;             /* of this run keep OUTPUTS_RUN_SETS and OUTPUTS_RUN_BYTES at most. Resolved: a command's,
                               * when nothing was said and nothing is uploaded */
    bool whole_run;           /* files of the whole run at its end. Resolved: a command's that is not uploaded */
    enum file_names names;    /* FILE_NAMES_PLAIN */
    const char *heartbeat_file; /* touched when a window has been published; NULL: none */
    bool col_lines;           /* lines being executed in collapsed stacks; false */
};

/* What a profile names besides functions. */
struct naming_settings {
    bool inlines;             /* inlined functions and lines from debug information; false */
    bool container_names;     /* container frame and label; true */
    bool application_identifiers; /* "[appid: …]" frames where known; true */
    struct text_list application_filters; /* which arguments of JVMs they show, as expressions; none */
};

/* What is found out about the place that pillion runs in. */
struct origin_settings {
    const char *external_metadata; /* file of facts for the header of collapsed stacks; NULL: none */
    bool metadata;            /* facts about the machine and the platform are collected; true */
    bool metrics;             /* CPU and memory use of the container or the machine; true */
    bool fixed_filter;        /* the platform's seccomp filter cannot be changed, nor any capability but
                               * SYS_PTRACE be added (ECS on Fargate): nothing else is advised */
};

/* What the profiler itself may use. */
struct budget_settings {
    bool memory_given;        /* false: a small container's share of it may be less */
    uint64_t memory_bytes;    /* 64 MiB; a megabyte on the command line is 1024 * 1024 bytes */
    double cpu_percent;       /* of one core, > 0 … 100; 1 */
};

struct log_settings {
    enum log_level level;     /* LOG_INFO; -q has made it LOG_ERROR (no first line, no summary),
                               * -v LOG_DEBUG */
    const char *file;         /* NULL = standard error */
    enum log_format format;   /* LOG_TEXT */
    enum color_mode color;    /* COLOR_AUTO */
};

/* pillion top: windows are shown instead of written. */
struct live_settings {
    bool on;                  /* false */
    bool once;                /* one window, then the end */
    bool json;                /* an object per window on standard output; else a screen, or tables without one */
    uint64_t interval_ns;     /* of windows; 0: half a second on a screen, else two */
};

struct settings {
    struct live_settings live;
    struct scope_settings scope;
    struct sampling_settings sampling;
    struct runtime_settings runtime;
    struct output_settings output;
    struct upload_settings upload;
    struct naming_settings naming;
    struct origin_settings origin;
    struct budget_settings budget;
    struct log_settings log;
    const char *service_name;  /* as given; NULL = the command's or the program's name */
};

#endif
