/*
 * doctor: what a profile would contain here, found out by trying.
 *
 * Three steps, so that the judgement can be tested without a kernel for each of its rows:
 *
 *     doctor_look   tries everything that a profile needs, once (doctor_look.c, doctor_reach.c): facts, mostly errnos
 *     doctor_evaluate  says what the facts mean (doctor.c, doctor_lines.c, doctor_rank.c, doctor_upload.c): pure
 *     doctor_text, doctor_json  show it, to people and to programs (doctor_text.c): pure
 *
 * A mechanism is tried on the process that was given, else on a child of ours. It has one line: whether it
 * works, the errno and the gate that refused it, and the one change that opens the gate. Where a profile's
 * own code tries and explains (perf_probe, perf_open, perf_follow_process, access.h, readers.h), that is what
 * is called, so the sentences are those that a profile says when it begins.
 *
 * Each visible process has a row: what works for it, which runtime it has, and its share of the CPU time that
 * was used while the doctor looked.
 *
 * Where windows are to be sent (-u, --backend, an address or a token, or a back end's own variables), each back end
 * is connected to and asked whether it is there, by the code that uploads (sender_try); 3 s each at most.
 *
 * What decides how many stacks of interpreters can be proven (catch.h) are lines as well: CPU binding, rank,
 * the weights of the control groups, the other's nice value. Without a process given these are about the
 * one that used most CPU time meanwhile.
 */
#ifndef CAPTURE_DOCTOR_H
#define CAPTURE_DOCTOR_H

#include "capture/settings.h"
#include "capture/follow/targets.h"
#include "capture/upload/sender.h"
#include "os/access.h"
#include "os/perf.h"
#include "os/probe.h"

enum {
    DOCTOR_NOT_TRIED = -1, /* instead of an errno; 0: it worked */
    DOCTOR_TEXT_MAX = 440, /* a sentence of ours, and whose it is */
    DOCTOR_RUNTIME_MAX = 64,
    DOCTOR_LINES_MAX = 32,
    DOCTOR_PROCESSES_MAX = 512, /* checked; the others are counted */
};

/* ---- facts ---- */

struct doctor_process {
    uint32_t pid, uid;
    char name[COMM_MAX];
    uint64_t cpu_ns;         /* used while the doctor looked */
    int perf, memory;        /* errno */
    bool mapped;             /* its mappings could be read, so a runtime would have been found */
    struct access_verdict look_why, memory_why; /* of EACCES and EPERM */
    const char *reader;      /* a runtime: its stacks can be read; null: no */
    bool asked;              /* by its own recorder, which is asked for them */
    char runtime[DOCTOR_RUNTIME_MAX]; /* as it describes itself; "": none that is known */
    struct err runtime_why;  /* it has one that cannot be read */
};

/* A back end that windows would be sent to. */
struct doctor_upload {
    const char *backend;
    char name[24];        /* "upload_studio": of its line */
    char address[280];
    enum sender_gate gate;
    bool confirmed;            /* it responded itself that it is there and knows us; else it was only connected to */
    struct err why;       /* the sentence that uploading says */
};

/* The process that things were tried on. */
struct doctor_target {
    uint32_t pid;
    bool given;              /* else it is a child of ours */
    bool exists;
    char name[COMM_MAX];
    uint32_t threads;
};

struct doctor_rights {
    bool fixed_filter;       /* the platform's seccomp filter and its capabilities but SYS_PTRACE cannot be
                              * changed (ECS on Fargate) */
    bool holds_ptrace;       /* SYS_PTRACE */
    int proc, first;         /* of our own entry in /proc, and of process 1, which always is */
};

struct doctor_events {
    bool off;                /* --perf-mode disabled */
    struct perf_access access;
    struct err rings, short_rings;
    uint64_t ring_bytes;
    unsigned ring_count;
    int follow;
    struct err followed;     /* the sentence of a refusal, or that not all threads could be */
    int switches, cycles;
    int kernel_names;
    bool names_hidden;
};

struct doctor_memory {
    int call_self, call, file; /* process_vm_readv on ourselves and on it; /proc/PID/mem */
    int maps, root, map_files, schedstat, sched;
    struct access_verdict look_why, memory_why, call_why;
    bool stops_tried;        /* where there are no perf events: */
    const char *stops_why;   /* a sentence: why no thread may be stopped; null: the calls pass */
    uint32_t stop_ns, stop_long_ns; /* what stops of a child take: the median, 99 of 100; 0: not known */
};

/* What decides how many stacks of interpreters can be proven. */
struct doctor_catching {
    struct probe_catcher catcher;
    unsigned cpus_outside;   /* CPUs that it may use and we may not */
    uint32_t rival;          /* whose scheduling is compared with ours; 0: nobody's */
    struct probe_weights weights;
    int weights_number;
    bool rank_known;
    int policy, nice;
};

struct doctor_facts {
    struct doctor_target target;
    struct doctor_rights rights;
    struct doctor_events events;
    struct doctor_memory memory;
    struct doctor_catching catching;

    int output;
    char output_dir[256];

    struct doctor_upload uploads[BACKENDS_MAX]; /* none unless settings or variables name one */
    size_t upload_count;

    VEC(struct doctor_process) processes; /* those that used most CPU time first */
    size_t unchecked;        /* more than DOCTOR_PROCESSES_MAX */
};

/* Fails only when memory ends. The settings say which process, and the folder for output. */
bool doctor_probe(const struct settings *settings, struct doctor_facts *out, struct err *err);
void doctor_release(struct doctor_facts *facts);

/* ---- evaluation ---- */

enum doctor_state {
    DOCTOR_OK,
    DOCTOR_PARTIAL,
    DOCTOR_BLOCKED,
    DOCTOR_ABSENT,  /* not to be had here, and not missed */
    DOCTOR_UNTRIED, /* something it needs is blocked */
};

struct doctor_line {
    const char *name, *label; /* for programs, for people */
    enum doctor_state state;
    int number;               /* errno, or 0 */
    const char *gate;         /* "seccomp", "paranoid", "capability", …; "" none */
    char detail[DOCTOR_TEXT_MAX], remedy[DOCTOR_TEXT_MAX];
};

struct doctor_report {
    struct doctor_line line[DOCTOR_LINES_MAX];
    size_t line_count;
    bool can_profile;
    char headline[DOCTOR_TEXT_MAX]; /* "works; 1 change helps" */
    char verdict[DOCTOR_TEXT_MAX];  /* what a profile would contain */
};

void doctor_evaluate(const struct doctor_facts *facts, struct doctor_report *out);

/* What works for one process. */
struct doctor_row {
    const char *capture_mode; /* "perf+reader", "perf", "reader", "proc" */
    char how[64];      /* "perf + NAME reader" */
    int number;        /* of what its own rights refuse; 0 */
    const char *gate, *cause, *remedy;
};
void doctor_row(const struct doctor_facts *facts, const struct doctor_process *process,
                struct doctor_row *out);

/* ---- showing ---- */

void doctor_text(const struct doctor_facts *facts, const struct doctor_report *report,
                 size_t columns, struct buf *out);

/* One option of a profile as it would hold, and where it comes from. */
struct doctor_setting {
    struct str name, value; /* value empty: nothing */
    struct str source;      /* "command line", a variable's name, "default" */
    char secret[40];        /* room for what is shown of one */
};
void doctor_json(const struct doctor_facts *facts, const struct doctor_report *report,
                 const struct doctor_setting *settings, size_t setting_count, struct buf *out);

#endif
