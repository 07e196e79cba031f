/*
 * settings: what a profiling run was asked to do.
 *
 * A plain value without behaviour. cli/ fills it from the command line, the environment and the
 * defaults, checks every range and resolves every "depends on" (continuous, output_dir, formats,
 * color stay exactly as the comments below say); capture/ only reads it. All texts are borrowed
 * from argv or the environment and live as long as the process; NULL means "not given" where a
 * comment says so and cannot occur elsewhere.
 *
 * A field belongs here when capture/ acts on it. Options that are "not available yet" never reach
 * this structure: cli/ has ended the run with exit status 2 before.
 */
#ifndef CAPTURE_SETTINGS_H
#define CAPTURE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Three ways to name what is profiled; exactly one per run. */
enum target_mode {
    TARGET_COMMAND, /* `command` is started */
    TARGET_PIDS,    /* `pids`, their threads and future children */
    TARGET_ALL,     /* every process visible in this PID namespace */
};

/* How native stacks are read. */
enum perf_mode {
    PERF_SMART, /* unwind tables first, frame pointers and the code itself where there are none */
    PERF_FP,    /* frame pointers, followed by the kernel: cheapest, and blind to code without them */
    PERF_DWARF, /* unwind tables only */
    PERF_DISABLED, /* no perf events: runtime readers and /proc accounting only */
};

enum runtime_mode {
    RUNTIME_AUTO,
    RUNTIME_DISABLED,
};

enum runtime_language {
    LANGUAGE_PYTHON,
    LANGUAGE_RUBY,
    LANGUAGE_PHP,
    LANGUAGE_JAVA,
    LANGUAGE_NODEJS,
    LANGUAGE_GO,
    LANGUAGE_COUNT,
};

/* Who is whose parent when a command is started. */
enum launch_mode {
    LAUNCH_AUTO, /* INIT when this is PID 1 or standard error is a terminal, else EXEC */
    LAUNCH_EXEC, /* the command takes pillion's place and PID */
    LAUNCH_INIT, /* a small parent stays, forwards signals and returns the status */
};

/* Bits of settings.formats: which files a window leaves. */
enum output_format {
    FORMAT_COL = 1 << 0,
    FORMAT_HTML = 1 << 1,
    FORMAT_PPROF = 1 << 2,
    FORMAT_SPEEDSCOPE = 1 << 3,
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

enum { SETTINGS_PIDS_MAX = 256 };

struct settings {
    /* What is profiled. */
    enum target_mode target;
    char *const *command;     /* TARGET_COMMAND: its argv, NULL-terminated; else NULL */
    const char *command_hint; /* NULL, or one sentence to add when the command is not found, such as
                               * "did you mean: pillion doctor?" */
    int pids[SETTINGS_PIDS_MAX]; /* TARGET_PIDS: in the order given, each once, each > 0 */
    size_t pid_count;

    /* How it is sampled. */
    unsigned frequency_hz;    /* 1 … 10000 per thread of CPU time; 99 */
    uint64_t window_ns;       /* 1 s … 24 h; 60 s */
    bool continuous;          /* window after window. Resolved: as given, else true for a command,
                               * false for pids and all */
    uint64_t stack_bytes;     /* of a stack that a sample copies, to begin with; 0 = by frequency */
    uint64_t min_duration_ns; /* processes younger than this are left out; 0 = none */
    enum perf_mode perf_mode; /* PERF_SMART */
    enum runtime_mode runtime_mode[LANGUAGE_COUNT]; /* RUNTIME_AUTO */

    const char *recording;    /* NULL, or the file to record the run's raw inputs in */

    /* How a command is started. */
    enum launch_mode launch; /* LAUNCH_AUTO */

    /* What is written. */
    const char *output_dir;    /* as given; NULL = the current directory */
    unsigned formats;          /* FORMAT_ bits, never 0 unless nothing was wanted:
                                * COL | HTML | PPROF; --no-flamegraph has taken HTML away */
    bool rotating;             /* keep only the newest set of files */
    unsigned max_output_files; /* keep this many sets of files, the oldest go first; 0 = all */
    const char *service_name;  /* as given; NULL = the command's or the program's name */
    bool insert_dso_name;      /* "symbol (file)" in native frames; false */
    bool inlines;              /* inlined functions and lines from debug information; false */
    bool container_names;      /* container frame and label; true */
    bool application_identifiers; /* "[appid: …]" frames where known; true */

    /* The profiler's own budget. */
    uint64_t max_memory_bytes; /* 64 MiB; a megabyte on the command line is 1024 * 1024 bytes */
    double max_cpu_percent;    /* of one core, > 0 … 100; 1 */

    /* What it says. */
    enum log_level log_level;   /* LOG_INFO; -q has made it LOG_ERROR (no first line, no summary),
                                 * -v LOG_DEBUG */
    const char *log_file;       /* NULL = standard error */
    enum log_format log_format; /* LOG_TEXT */
    enum color_mode color;      /* COLOR_AUTO */
};

#endif
