/* What the doctor makes of facts: one row for each gate, one text for each kind of place. */
#include "test.h"

#include "capture/doctor/doctor.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

/* A machine where everything works, and two processes. */
static struct doctor_process apps[2];

static struct doctor_facts good(void)
{
    apps[0] = (struct doctor_process){.pid = 19,
                                      .name = "python3",
                                      .cpu_ns = 620,
                                      .mapped = true,
                                      .reader = "python",
                                      .runtime = "CPython 3.11.9"};
    apps[1] = (struct doctor_process){.pid = 40, .name = "envoy", .cpu_ns = 380, .mapped = true};
    return (struct doctor_facts){
        .target.pid = 900,
        .target.exists = true,
        .events.access = {.user = true, .kernel = true, .around = {.paranoid = 1, .has_perf = true}},
        .events.ring_bytes = 2048 << 10,
        .events.ring_count = 2,
        .target.threads = 1,
        .catching.catcher = {.allowed = 2, .bound = 2, .rank = {.slice = true}, .policy = SCHED_OTHER},
        .output_dir = ".",
        .processes = {.at = apps, .len = 2},
    };
}

static struct doctor_facts about(uint32_t pid)
{
    struct doctor_facts f = good();
    f.target.pid = f.catching.rival = pid;
    f.target.given = f.catching.rank_known = true;
    f.catching.weights.same = true;
    f.processes.len = 1;
    strcpy(f.target.name, "python3");
    return f;
}

static struct doctor_report report;

static const struct doctor_line *line_of(const struct doctor_facts *f, const char *name)
{
    static const struct doctor_line none = {.name = "", .gate = ""};
    doctor_evaluate(f, &report);
    for (size_t i = 0; i < report.line_count; i++) {
        if (strcmp(report.line[i].name, name) == 0) {
            return &report.line[i];
        }
    }
    CHECK(!"a line of this name");
    return &none;
}

static void check_line(const struct doctor_facts *f, const char *name, enum doctor_state state,
                       int number, const char *gate, const char *detail, const char *remedy)
{
    const struct doctor_line *line = line_of(f, name);
    CHECK_INT(line->state, state);
    CHECK_INT(line->number, number);
    CHECK_TEXT(line->gate, gate);
    CHECK_TEXT(line->detail, detail);
    CHECK_TEXT(line->remedy, remedy);
}

static void all_good(void)
{
    struct doctor_facts f = good();
    doctor_evaluate(&f, &report);
    CHECK_TEXT(report.headline, "everything works here; nothing to change");
    CHECK(report.can_profile);
    for (size_t i = 0; i < report.line_count; i++) {
        bool untried = strcmp(report.line[i].name, "target_nice") == 0;
        CHECK_INT(report.line[i].state, untried ? DOCTOR_UNTRIED : DOCTOR_OK);
        CHECK_TEXT(report.line[i].remedy, "");
    }
    CHECK_TEXT(report.verdict,
               "A profile would contain user and kernel stacks, of commands that pillion starts and of 2 "
               "of 2 processes, with the functions of interpreters woven in for 1.");
}

/* ---- perf events ---- */

static struct doctor_facts without_perf(int number, enum perf_gate gate, int paranoid)
{
    struct doctor_facts f = good();
    f.events.access = (struct perf_access){.gate = gate,
                                  .kernel_gate = gate,
                                  .number = number,
                                  .kernel_number = number,
                                  .around = {.paranoid = paranoid, .has_perf = true}};
    f.events.follow = f.events.switches = f.events.cycles = DOCTOR_NOT_TRIED;
    return f;
}

static void perf_is_refused(void)
{
    struct doctor_facts f = without_perf(EPERM, PERF_GATE_SECCOMP, 2);
    check_line(&f, "perf_events", DOCTOR_BLOCKED, EPERM, "seccomp", "EPERM: seccomp filter",
               "allow perf_event_open in the container's seccomp profile, or add CAP_PERFMON if the "
               "profile allows the call with it (Docker's does since version 23)");
    check_line(&f, "perf_process", DOCTOR_UNTRIED, 0, "", "not tried: no perf events", "");
    CHECK_TEXT(report.headline, "works, with gaps; 1 change helps");
    CHECK(report.can_profile); /* a command's interpreter could be read */
    f = without_perf(EACCES, PERF_GATE_PARANOID, 3);
    check_line(&f, "perf_events", DOCTOR_BLOCKED, EACCES, "paranoid",
               "EACCES: kernel.perf_event_paranoid is 3",
               "set kernel.perf_event_paranoid to 2 or less on the host");
    f = without_perf(ENODEV, PERF_GATE_GVISOR, PERF_PARANOID_UNKNOWN);
    check_line(&f, "perf_events", DOCTOR_BLOCKED, ENODEV, "gvisor", "ENODEV: gVisor sandbox",
               "use a runtime class without gVisor");
    f = without_perf(EMFILE, PERF_GATE_DESCRIPTORS, 2);
    check_line(&f, "perf_events", DOCTOR_BLOCKED, EMFILE, "nofile", "EMFILE: limit of open files",
               "raise the limit of open files (ulimit -n)");
}

/* Its scheduler is the host's, it has no schedstat, and neither a seccomp profile nor a capability changes that. */
static void in_gvisor_nothing_false_is_advised(void)
{
    static const char host[] = "gVisor leaves it to the host; no stack is proven, each is read twice";
    struct doctor_facts f = without_perf(ENODEV, PERF_GATE_GVISOR, PERF_PARANOID_UNKNOWN);
    f.catching.catcher.rank = (struct thread_rank){.refused = {.number = ENOSYS}};
    f.memory.schedstat = f.memory.sched = ENOENT;
    check_line(&f, "affinity", DOCTOR_ABSENT, 0, "gvisor", host, "");
    check_line(&f, "policy", DOCTOR_ABSENT, 0, "gvisor", host, "");
    check_line(&f, "target_nice", DOCTOR_ABSENT, 0, "gvisor", host, "");
    check_line(&f, "schedstat", DOCTOR_ABSENT, ENOENT, "kernel",
               "ENOENT: this kernel has no schedstat; CPU time is counted in ticks, and no stack is proven", "");
    f.memory.stops_tried = true;
    check_line(&f, "brief_stops", DOCTOR_ABSENT, ENOENT, "kernel",
               "ENOENT: no schedstat tells which thread had a CPU", "");
    f.memory.maps = ENOENT; /* now it may be so */
    check_line(&f, "schedstat", DOCTOR_BLOCKED, ENOENT, "gone",
               "ENOENT: the process ended, or /proc does not show it", "");
}

static void where_nothing_can_be_changed_nothing_is_advised(void)
{
    struct doctor_facts f = without_perf(EPERM, PERF_GATE_SECCOMP, 2);
    f.rights.fixed_filter = true;
    check_line(&f, "perf_events", DOCTOR_BLOCKED, EPERM, "seccomp",
               "EPERM: seccomp filter; Fargate forbids changing it", "");
    CHECK_TEXT(report.headline, "works, with gaps; nothing to change");
}

static void only_user_code(void)
{
    struct doctor_facts f = good();
    f.events.access.kernel = false;
    f.events.access.kernel_number = EACCES;
    f.events.access.kernel_gate = PERF_GATE_PARANOID;
    f.events.access.around.paranoid = 2;
    check_line(&f, "perf_kernel", DOCTOR_BLOCKED, EACCES, "paranoid",
               "EACCES: kernel.perf_event_paranoid is 2; kernel time is counted as one block",
               "set kernel.perf_event_paranoid to 1 or less on the host, or add CAP_PERFMON");
    CHECK(strstr(report.verdict, "user stacks, kernel time as one block") != NULL);
}

static void perf_chosen_off_is_no_gap(void)
{
    struct doctor_facts f = without_perf(0, PERF_GATE_NONE, 2);
    f.events.off = true;
    check_line(&f, "perf_events", DOCTOR_UNTRIED, 0, "",
               "not tried: disabled by --perf-mode", "");
    CHECK_TEXT(report.headline, "everything works here; nothing to change");
}

static void no_locked_memory(void)
{
    struct doctor_facts f = good();
    err_set(&f.events.rings, ERR_DENIED, EPERM,
            "cannot lock memory for perf rings of 2 x 36 KiB (EPERM): uid 1000 may lock 2 x 516 KiB; stop "
            "the other profiler or raise a limit");
    check_line(&f, "perf_rings", DOCTOR_BLOCKED, EPERM, "memlock",
               "cannot lock memory for perf rings of 2 x 36 KiB (EPERM): uid 1000 may lock 2 x 516 KiB",
               "stop the other profiler or raise a limit (ulimit -l, or add IPC_LOCK)");
    CHECK_TEXT(line_of(&f, "perf_process")->detail, "not tried: no perf rings");
    f.events.rings = (struct err){0};
    err_set(&f.events.short_rings, ERR_LIMIT, EPERM, "perf rings are 2 x 64 KiB; raise a limit");
    CHECK_INT(line_of(&f, "perf_rings")->state, DOCTOR_PARTIAL);
}

static void the_process_refuses_events(void)
{
    struct doctor_facts f = about(19);
    f.events.follow = apps[0].perf = EACCES;
    f.memory.look_why = apps[0].look_why =
        (struct access_verdict){.gate = ACCESS_GATE_USER,
                                .cause = "it runs as another user (uid 1000)",
                                .remedy = "run as its user or add SYS_PTRACE"};
    check_line(&f, "perf_process", DOCTOR_BLOCKED, EACCES, "uid",
               "EACCES: it runs as another user (uid 1000)", "run as its user or add SYS_PTRACE");
    CHECK_TEXT(report.verdict, "A profile of pid 19 (python3) would contain the functions of CPython "
                               "3.11.9, native code as one block.");
    apps[0].reader = NULL;
    apps[0].runtime[0] = '\0';
    doctor_evaluate(&f, &report);
    CHECK_TEXT(report.verdict, "A profile of pid 19 (python3) would contain its CPU time, without stacks.");
    CHECK(!report.can_profile);
    CHECK_TEXT(report.headline, "no stacks are possible here; 1 change helps");
}

static void threads_that_are_too_many(void)
{
    struct doctor_facts f = about(19);
    err_set(&f.events.followed, ERR_LIMIT, EMFILE,
            "7 of the 9 threads have no events; raise the hard limit (ulimit -Hn)");
    check_line(&f, "perf_process", DOCTOR_PARTIAL, EMFILE, "nofile", "7 of the 9 threads have no events",
               "raise the hard limit (ulimit -Hn)");
    f.events.follow = EMFILE; /* not even one */
    CHECK_INT(line_of(&f, "perf_process")->state, DOCTOR_BLOCKED);
    CHECK_TEXT(line_of(&f, "perf_process")->gate, "nofile");
    f.events.follow = ESRCH;
    CHECK_TEXT(line_of(&f, "perf_process")->gate, "gone");
    f.events.follow = EINVAL;
    CHECK_TEXT(line_of(&f, "perf_process")->gate, "unknown");
}

static void what_is_absent_is_no_gap(void)
{
    struct doctor_facts f = good();
    f.events.cycles = ENOENT;
    f.events.switches = EINVAL;
    f.memory.sched = ENOENT;
    f.memory.map_files = EPERM;
    check_line(&f, "perf_hardware", DOCTOR_ABSENT, ENOENT, "hardware",
               "ENOENT: no such hardware counter; CPU time is sampled by the clock", "");
    CHECK_INT(line_of(&f, "perf_switches")->state, DOCTOR_ABSENT);
    CHECK_INT(line_of(&f, "sched")->state, DOCTOR_ABSENT);
    CHECK_INT(line_of(&f, "map_files")->state, DOCTOR_ABSENT);
    CHECK_TEXT(report.headline, "everything works here; nothing to change");
}

/* ---- memory and files ---- */

static void memory_is_refused(void)
{
    struct doctor_facts f = about(19);
    f.memory.call = EPERM;
    f.memory.file = EACCES;
    f.memory.memory_why = f.memory.call_why = (struct access_verdict){
        .gate = ACCESS_GATE_YAMA,
        .cause = "kernel.yama.ptrace_scope is 1: only its parents and processes with SYS_PTRACE may",
        .remedy = "start the program with pillion, add SYS_PTRACE, or set kernel.yama.ptrace_scope to 0"};
    check_line(&f, "process_vm_readv", DOCTOR_BLOCKED, EPERM, "yama",
               "EPERM: kernel.yama.ptrace_scope is 1: only its parents and processes with SYS_PTRACE may",
               "start the program with pillion, add SYS_PTRACE, or set kernel.yama.ptrace_scope to 0");
    CHECK_INT(line_of(&f, "proc_mem")->number, EACCES);
    CHECK_TEXT(report.headline, "works, with gaps; 1 change helps"); /* one remedy for both */
}

static void what_is_refused_on_ourselves_is_a_filter(void)
{
    struct doctor_facts f = about(19);
    f.memory.call_self = f.memory.call = EPERM;
    check_line(&f, "process_vm_readv", DOCTOR_BLOCKED, EPERM, "seccomp", "EPERM: seccomp filter",
               "allow process_vm_readv in the container's seccomp profile, or add SYS_PTRACE if the "
               "profile allows the call with it (Docker's before version 23 does)");
    CHECK_INT(line_of(&f, "proc_mem")->state, DOCTOR_OK);
    f.rights.holds_ptrace = true; /* and it did not help */
    CHECK_TEXT(line_of(&f, "process_vm_readv")->remedy,
               "allow process_vm_readv in the container's seccomp profile");
    f.rights.fixed_filter = true; /* on Fargate the right is the only thing that can be added */
    CHECK_TEXT(line_of(&f, "process_vm_readv")->remedy, "");
    f.rights.holds_ptrace = false;
    CHECK_TEXT(line_of(&f, "process_vm_readv")->remedy, "add SYS_PTRACE");
    f.rights.fixed_filter = false;
    f.memory.call_self = f.memory.call = ENOSYS;
    CHECK_TEXT(line_of(&f, "process_vm_readv")->detail,
               "ENOSYS: seccomp filter, or a kernel without it");
}

static void a_process_that_ended(void)
{
    struct doctor_facts f = about(19);
    f.memory.call = ESRCH;
    f.memory.maps = ENOENT;
    CHECK_TEXT(line_of(&f, "process_vm_readv")->gate, "gone");
    CHECK_TEXT(line_of(&f, "maps")->gate, "gone");
    f.target.exists = false;
    doctor_evaluate(&f, &report);
    CHECK(!report.can_profile);
    CHECK_TEXT(report.headline, "no process 19 to examine"); /* not: no stacks are possible here */
    CHECK(strstr(report.verdict, "No process 19 is visible in this PID namespace") != NULL);
    CHECK(strstr(report.verdict, "\"pidMode\": \"task\"") != NULL);
}

static void no_proc(void)
{
    struct doctor_facts f = good();
    f.rights.proc = ENOENT;
    f.processes.len = 0;
    CHECK_TEXT(line_of(&f, "proc")->gate, "mount");
    CHECK_TEXT(line_of(&f, "proc")->remedy, "mount -t proc proc /proc");
    f = good();
    f.rights.first = ENOENT;
    check_line(&f, "proc", DOCTOR_PARTIAL, ENOENT, "mount",
               "ENOENT: /proc hides other users' processes (hidepid)",
               "mount /proc with hidepid=0, or add SYS_PTRACE");
}

static void a_folder_that_cannot_be_written(void)
{
    struct doctor_facts f = good();
    f.output = EROFS;
    strcpy(f.output_dir, "/app");
    check_line(&f, "output", DOCTOR_BLOCKED, EROFS, "mount",
               "EROFS: /app cannot be written: it is mounted read-only",
               "give -o DIR with a folder that can be written");
    f.output = EACCES;
    CHECK_TEXT(line_of(&f, "output")->gate, "permission");
}

static void kernel_symbols_without_addresses(void)
{
    struct doctor_facts f = good();
    f.events.names_hidden = true;
    CHECK_TEXT(line_of(&f, "kernel_names")->gate, "sysctl");
    CHECK(strstr(line_of(&f, "kernel_names")->remedy, "add SYSLOG") != NULL);
    f.events.access.kernel = false; /* then nobody needs them */
    CHECK_INT(line_of(&f, "kernel_names")->state, DOCTOR_UNTRIED);
}

/* ---- looking ---- */

static unsigned open_files(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static void look_and_leave(void)
{
    struct settings settings = {.sampling.frequency_hz = 99, .scope.pid_count = 1, .scope.pids = {getpid()}};
    struct doctor_facts f;
    struct err err = {0};
    unsigned before = open_files();
    CHECK(doctor_probe(&settings, &f, &err));
    CHECK_INT(f.processes.len, 1);
    CHECK_INT(f.memory.call, 0); /* who may not read himself may read nobody */
    CHECK_INT(f.memory.maps, 0);
    doctor_release(&f);
    settings.scope.pid_count = 0;
    CHECK(doctor_probe(&settings, &f, &err));
    CHECK(f.target.pid != (uint32_t)getpid() && f.target.exists);
    doctor_release(&f);
    CHECK_INT(open_files(), before);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* ---- what decides the proven share ---- */

static void binding_is_refused(void)
{
    struct doctor_facts f = good();
    f.catching.catcher.bound = 0;
    f.catching.catcher.bind_number = EPERM;
    check_line(&f, "affinity", DOCTOR_BLOCKED, EPERM, "seccomp",
               "EPERM: a thread cannot be bound to a CPU; nothing is proven",
               "allow sched_setaffinity in the container's seccomp profile");
    f = about(19);
    f.catching.cpus_outside = 6;
    CHECK_TEXT(line_of(&f, "affinity")->gate, "cpuset");
}

static void own_rank(void)
{
    struct doctor_facts f = good();
    CHECK_TEXT(line_of(&f, "policy")->detail, "policy OTHER, nice 0, short slice");
    f.catching.catcher.rank.fifo = true;
    CHECK_TEXT(line_of(&f, "policy")->detail, "policy FIFO: first on its CPU");
    f.catching.catcher.rank = (struct thread_rank){.refused = {.number = EPERM}};
    f.catching.catcher.policy = SCHED_IDLE;
    check_line(&f, "policy", DOCTOR_BLOCKED, EPERM, "policy",
               "EPERM: policy OTHER is refused; hardly anything is proven, policy IDLE",
               "start pillion with policy OTHER (chrt --other 0)");
}

/* Weights of version 1 are out of 1024, of version 2 out of 100; a quarter of the other's is enough, and so is a third
 * of the usual one where the other's is not visible. */
static void weights(void)
{
    static const struct {
        unsigned version;
        uint64_t own, other;
        uint64_t wanted; /* 0: it is enough */
    } weighed[] = {
        {1, 2, 1024, 342}, {1, 256, 1024, 0},  {1, 255, 1024, 342}, {1, 1024, 4096, 0},
        {1, 512, 8192, 2048}, {2, 1, 100, 34}, {2, 25, 100, 0},     {2, 24, 100, 34},
        {1, 2, 0, 342},    {1, 342, 0, 0},     {2, 33, 0, 34},      {2, 34, 0, 0},
        {1, 2, 2, 0},
    };
    for (size_t i = 0; i < sizeof weighed / sizeof weighed[0]; i++) {
        struct doctor_facts f = about(19);
        char wanted[60];
        f.catching.weights = (struct probe_weights){
            .version = weighed[i].version, .own = weighed[i].own, .other = weighed[i].other};
        const struct doctor_line *line = line_of(&f, "cpu_weight");
        snprintf(wanted, sizeof wanted, "a CPU weight of %llu or more (cpu.%s)",
                 (unsigned long long)weighed[i].wanted,
                 weighed[i].version == 1 ? "shares" : "weight");
        CHECK_INT(line->state, weighed[i].wanted != 0 ? DOCTOR_PARTIAL : DOCTOR_OK);
        CHECK(weighed[i].wanted == 0 ? line->remedy[0] == '\0'
                                     : strstr(line->remedy, wanted) != NULL);
        f.catching.catcher.rank.fifo = true; /* crosses groups */
        CHECK_INT(line_of(&f, "cpu_weight")->state, DOCTOR_OK);
    }
    struct doctor_facts f = about(19);
    f.catching.weights = (struct probe_weights){.version = 2};
    CHECK_INT(line_of(&f, "cpu_weight")->state, DOCTOR_UNTRIED);
    f.catching.weights.same = true;
    CHECK_TEXT(line_of(&f, "cpu_weight")->detail, "one group with pid 19");
}

static void the_others_rank(void)
{
    struct doctor_facts f = about(19);
    f.catching.nice = -5;
    check_line(&f, "target_nice", DOCTOR_PARTIAL, 0, "nice",
               "pid 19: policy OTHER, nice -5, less than pillion's: few stacks can be proven",
               "add SYS_NICE");
    f.catching.catcher.rank.fifo = true;
    CHECK_INT(line_of(&f, "target_nice")->state, DOCTOR_OK);
    f.catching.catcher.rank.fifo = false;
    f.catching.catcher.rank.nice = -20;
    CHECK_INT(line_of(&f, "target_nice")->state, DOCTOR_OK);
    f.catching.policy = SCHED_RR;
    CHECK_INT(line_of(&f, "target_nice")->state, DOCTOR_PARTIAL);
    CHECK_TEXT(line_of(&f, "target_nice")->remedy, "");
}

/* ---- processes ---- */

static void a_runtime_that_cannot_be_read(void)
{
    struct doctor_facts f = about(19);
    struct doctor_row row;
    apps[0].reader = NULL;
    apps[0].runtime[0] = '\0';
    err_set(&apps[0].runtime_why, ERR_UNSUPPORTED, 0, "python 3.4 is not known");
    doctor_row(&f, &apps[0], &row);
    CHECK_TEXT(row.how, "perf, without its interpreter's names");
    CHECK_TEXT(row.gate, "version");
    CHECK_TEXT(row.cause, "python 3.4 is not known");
    CHECK(strstr((doctor_evaluate(&f, &report), report.verdict),
                 "stacks, without its interpreter's functions.") != NULL);
}

static void a_native_process_wants_no_memory(void)
{
    struct doctor_facts f = good();
    struct doctor_row row;
    apps[1].memory = EPERM;
    apps[1].memory_why =
        (struct access_verdict){.cause = "it is not dumpable", .remedy = "add SYS_PTRACE"};
    doctor_row(&f, &apps[1], &row);
    CHECK_TEXT(row.capture_mode, "perf");
    CHECK_TEXT(row.remedy, "");
    apps[1].mapped = false; /* then it may have a runtime */
    doctor_row(&f, &apps[1], &row);
    CHECK_TEXT(row.remedy, "add SYS_PTRACE");
    CHECK_TEXT(row.how, "perf, without names"); /* or its cause would read as if perf did not work */
}

/* The first look in a container: pillion is all there is. */
static void nobody_else_is_there(void)
{
    struct doctor_facts f = without_perf(EPERM, PERF_GATE_SECCOMP, 2);
    f.processes.len = 0;
    CHECK_TEXT(line_of(&f, "proc")->detail, "no other process is visible");
    CHECK_TEXT(report.verdict,
               "A profile of a command that pillion starts would contain the functions of interpreters, and "
               "all other CPU time without stacks. No other process is visible here.");
    CHECK(report.can_profile);
    f = good();
    f.processes.len = 0;
    doctor_evaluate(&f, &report);
    CHECK_TEXT(report.verdict,
               "A profile of a command that pillion starts would contain user and kernel stacks, with the "
               "functions of interpreters woven in. No other process is visible here.");
}

/* ---- showing ---- */

/* A sidecar on Fargate beside a process of another user. */
static struct doctor_facts fargate(void)
{
    struct doctor_facts f = without_perf(EPERM, PERF_GATE_SECCOMP, 2);
    f.rights.fixed_filter = true;
    f.catching.rival = 19;
    f.catching.rank_known = true;
    f.catching.weights = (struct probe_weights){.version = 1, .own = 2, .other = 0};
    apps[1] = (struct doctor_process){.pid = 31, .uid = 1000, .name = "java\x1b[31m\xc3\xa9", .cpu_ns = 380};
    apps[1].perf = DOCTOR_NOT_TRIED;
    apps[1].memory = EACCES;
    apps[1].memory_why = (struct access_verdict){.gate = ACCESS_GATE_CAPABILITIES,
                                                 .cause = "it has capabilities that pillion lacks "
                                                          "(NET_ADMIN)",
                                                 .remedy = "give pillion the same capabilities or add SYS_PTRACE"};
    apps[0].perf = DOCTOR_NOT_TRIED;
    return f;
}

static const char wide[] =
    "pillion doctor: works, with gaps; 2 changes help\n"
    "  perf events    blocked  EPERM: seccomp filter; Fargate forbids changing it\n"
    "  /proc          ok       2 processes visible\n"
    "  memory by call ok       process_vm_readv\n"
    "  memory by file ok       /proc/PID/mem\n"
    "  mappings       ok       /proc/PID/maps\n"
    "  its files      ok       below /proc/PID/root\n"
    "  deleted files  ok       /proc/PID/map_files\n"
    "  thread clocks  ok       /proc/PID/schedstat\n"
    "  switch counts  ok       /proc/PID/sched\n"
    "  CPU binding    ok       2 CPUs\n"
    "  own rank       ok       policy OTHER, nice 0, short slice\n"
    "  CPU weight     partial  own group 2, that of pid 19 is not visible here: few\n"
    "                          stacks can be proven  -> change 1\n"
    "  its rank       ok       pid 19: policy OTHER, nice 0\n"
    "  output folder  ok       .\n"
    "  PID    COMMAND         CPU  RUNTIME        HOW\n"
    "  19     python3         62 % CPython 3.11.9 python reader; native as one block\n"
    "  31     java?[31m??     38 % -              /proc only (capability)\n"
    "                                             -> change 2\n"
    "Change 1: give pillion's container a CPU weight of 342 or more (cpu.shares), or\n"
    "  run pillion in the program's container\n"
    "Change 2 (for 38 % of the CPU time now): give pillion the same capabilities or\n"
    "  add SYS_PTRACE\n"
    "  \"linuxParameters\": {\"capabilities\": {\"add\": [\"SYS_PTRACE\"]}}\n"
    "A profile would contain the functions of interpreters (1 of 2 processes, and\n"
    "  commands that pillion starts), and all other CPU time without stacks.\n";

static const char *shown(const struct doctor_facts *f, size_t columns, struct buf *out)
{
    buf_init(out, 1 << 16);
    doctor_evaluate(f, &report);
    doctor_text(f, &report, columns, out);
    return buf_cstr(out);
}

static void on_80_columns(void)
{
    struct doctor_facts f = fargate();
    struct buf out;
    CHECK_TEXT(shown(&f, 80, &out), wide);
    buf_release(&out);
    strcat(apps[1].memory_why.remedy, ", which was added but takes effect for root only");
    CHECK(strstr(shown(&f, 80, &out), "linuxParameters") == NULL); /* it is there already */
    buf_release(&out);
}

/* An ordinary user on a host with Yama 1, about one process. */
static void yama_host(void)
{
    struct doctor_facts f = about(812);
    struct buf out;
    f.events.access.kernel = false;
    f.events.access.kernel_number = EACCES;
    f.events.access.kernel_gate = PERF_GATE_PARANOID;
    f.events.access.around.paranoid = 2;
    f.events.cycles = ENOENT;
    f.memory.call = EPERM;
    f.memory.file = EACCES;
    f.memory.memory_why = f.memory.call_why = (struct access_verdict){
        .gate = ACCESS_GATE_YAMA,
        .cause = "kernel.yama.ptrace_scope is 1: only its parents and processes with SYS_PTRACE may",
        .remedy = "start the program with pillion, add SYS_PTRACE, or set kernel.yama.ptrace_scope to 0"};
    apps[0].pid = 812;
    apps[0].reader = NULL;
    apps[0].runtime[0] = '\0';
    apps[0].memory = EACCES;
    apps[0].memory_why = f.memory.memory_why;
    err_set(&apps[0].runtime_why, ERR_DENIED, EPERM, "cannot read the memory of pid 812");
    const char *text = shown(&f, 80, &out);
    CHECK(strstr(text, "pillion doctor: works, with gaps; 2 changes help\n") == text);
    CHECK(strstr(text, "  812    python3         -    -              perf, without its interpreter's\n"
                       "                                             names (yama)  -> change 2\n"
                       "Change 1: set kernel.perf_event_paranoid to 1 or less on the host, or add\n"
                       "  CAP_PERFMON\n"
                       "Change 2: start the program with pillion, add SYS_PTRACE, or set\n"
                       "  kernel.yama.ptrace_scope to 0\n"
                       "A profile of pid 812 (python3) would contain user stacks, kernel time as one\n"
                       "  block, without its interpreter's functions.\n") != NULL);
    buf_release(&out);
}

static void never_wider(void)
{
    for (size_t columns = 30; columns <= 80; columns++) {
        struct doctor_facts f = fargate();
        struct buf out;
        struct str rest = str_of(shown(&f, columns, &out));
        while (rest.len > 0) {
            struct str line = str_cut(&rest, '\n');
            /* a word that has no room anywhere stays whole */
            bool word = str_find(str_trim(line), ' ') == str_trim(line).len;
            CHECK(line.len <= columns || word);
            CHECK(line.len == 0 || line.ptr[line.len - 1] != ' ');
            for (size_t i = 0; i < line.len; i++) {
                CHECK(line.ptr[i] >= ' ' && line.ptr[i] <= '~');
            }
        }
        buf_release(&out);
    }
}

static void json(void)
{
    struct doctor_facts f = fargate();
    struct buf out;
    bool flag = true;
    buf_init(&out, 1 << 16);
    doctor_evaluate(&f, &report);
    const struct doctor_setting settings[] = {
        {.name = STR("output-dir"), .value = STR("a\"b\n"), .source = STR("PILLION_OUTPUT_DIR")},
        {.name = STR("service-name"), .source = STR("default")},
    };
    doctor_json(&f, &report, settings, 2, &out);
    CHECK(strstr(buf_cstr(&out), "\"settings\": [\n  {\"name\": \"output-dir\", \"value\": \"a\\\"b\\n\", "
                                 "\"source\": \"PILLION_OUTPUT_DIR\"},\n  {\"name\": \"service-name\", "
                                 "\"value\": null, \"source\": \"default\"}],\n") != NULL);
    struct str all = buf_slice(&out);
    CHECK(json_valid(all));
    CHECK(json_bool_of(json_member(all, "can_profile"), &flag) && flag);
    static const char *const keys[] = {"verdict", "mechanisms", "processes"};
    for (size_t i = 0; i < 3; i++) {
        CHECK(json_member(all, keys[i]).len > 2);
    }
    size_t count = 0;
    struct str rest = json_member(all, "mechanisms"), value;
    while (json_next(&rest, NULL, &value)) {
        static const char *const members[] = {"name", "works", "errno", "gate", "remedy", "detail"};
        for (size_t i = 0; i < 6; i++) {
            CHECK(json_member(value, members[i]).len > 0);
        }
        CHECK(count != 0 || json_bool_of(json_member(value, "works"), &flag));
        count++;
    }
    CHECK(!flag); /* the first is perf_events */
    CHECK_INT(count, report.line_count);
    CHECK(report.line_count <= DOCTOR_LINES_MAX);
    CHECK_INT(out.ptr[out.len - 1], '\n');
    buf_release(&out);
}

/* ---- back ends ---- */

static struct doctor_facts sending(const char *backend, enum sender_gate gate, int number, const char *why)
{
    struct doctor_facts f = good();
    f.upload_count = 1;
    f.uploads[0] = (struct doctor_upload){.backend = backend, .gate = gate};
    snprintf(f.uploads[0].name, sizeof f.uploads[0].name, "upload_%s", backend);
    snprintf(f.uploads[0].address, sizeof f.uploads[0].address, "https://h:443");
    if (why != NULL) {
        err_set(&f.uploads[0].why, ERR_NETWORK, number, "%s", why);
    }
    return f;
}

static void a_back_end_that_answers_is_told_from_one_that_is_only_there(void)
{
    struct doctor_facts f = sending("studio", SENDER_OPEN, 0, NULL);
    check_line(&f, "upload_studio", DOCTOR_OK, 0, "", "studio: https://h:443 is reachable; "
               "nothing was sent", "");
    f.uploads[0].confirmed = true;
    check_line(&f, "upload_studio", DOCTOR_OK, 0, "", "studio: https://h:443 responds and accepts the token", "");
    CHECK_TEXT(report.headline, "everything works here; nothing to change");
}

/* A sentence's own remedy is the line's; one that has none gets its gate's. */
static void what_is_in_an_uploads_way_has_its_gate_and_remedy(void)
{
    static const struct {
        enum sender_gate gate;
        int number, told;
        const char *why, *word, *detail, *remedy;
    } rows[] = {
        {SENDER_CONNECT, ECONNREFUSED, ECONNREFUSED, "cannot connect to ::1 port 9: Connection refused", "connect",
         "http: cannot connect to ::1 port 9: Connection refused", "check the address (--server-host)"},
        {SENDER_TLS, EPROTONOSUPPORT, 0, "TLS with h: the authority \"a: b\" is unknown: give its "
                                "certificate with --ca-file",
         "tls", "http: TLS with h: the authority \"a: b\" is unknown", "give its certificate with --ca-file"},
        {SENDER_TLS, EPROTONOSUPPORT, 0, "TLS with h: the server sent no certificate", "tls",
         "http: TLS with h: the server sent no certificate", "let the server speak TLS 1.2"},
        {SENDER_TLS, EPROTONOSUPPORT, 0, "TLS with h: the key of h is none of the 1 pinned ones: is this the "
                                "server?", "tls",
         "http: TLS with h: the key of h is none of the 1 pinned ones: is this the server?", "let the server"},
        {SENDER_TOKEN, 0, 0, "the server at h answered 401: no; the token is missing or wrong "
                             "(--token-file)", "token",
         "http: the server at h answered 401: no", "the token is missing or wrong (--token-file)"},
        {SENDER_TOKEN, 0, 0, "http needs a token: set PILLION_TOKEN_FILE", "token", "http: http needs a token",
         "set PILLION_TOKEN_FILE"},
        {SENDER_SETTING, 0, 0, "cannot open /x: No such file", "setting", "http: cannot open /x: No "
                                                                          "such file", ""},
        {SENDER_SERVER, 0, 0, "the server at h answered 503", "server", "http: the server at h "
                                                                        "answered 503", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct doctor_facts f = sending("http", rows[i].gate, rows[i].number, rows[i].why);
        const struct doctor_line *line = line_of(&f, "upload_http");
        CHECK_INT(line->state, DOCTOR_BLOCKED);
        CHECK_INT(line->number, rows[i].told);
        CHECK_TEXT(line->gate, rows[i].word);
        CHECK_TEXT(line->detail, rows[i].detail);
        CHECK(strncmp(line->remedy, rows[i].remedy, strlen(rows[i].remedy)) == 0);
        CHECK_INT(line->remedy[0] == '\0', rows[i].remedy[0] == '\0');
        CHECK(report.can_profile); /* a profile does not depend on it */
    }
}

TESTS({"where everything works nothing is advised", all_good},
      {"a back end that answers is told from one that is only there",
       a_back_end_that_answers_is_told_from_one_that_is_only_there},
      {"what is in an upload's way has its gate and its remedy",
       what_is_in_an_uploads_way_has_its_gate_and_remedy},
      {"each refusal of perf events has its gate and remedy", perf_is_refused},
      {"in gVisor nothing is said that is true of other kernels", in_gvisor_nothing_false_is_advised},
      {"what a platform does not let anybody change is no advice",
       where_nothing_can_be_changed_nothing_is_advised},
      {"without the right to kernel code the rest is still there", only_user_code},
      {"perf that was switched off is no gap", perf_chosen_off_is_no_gap},
      {"locked memory has the arithmetic of a profile's own sentence", no_locked_memory},
      {"a process that refuses events is told with its reason, and what a profile lacks then",
       the_process_refuses_events},
      {"threads without descriptors are a part, not a failure", threads_that_are_too_many},
      {"what is not to be had and not missed is no gap", what_is_absent_is_no_gap},
      {"memory that is refused names the rule, once for both ways", memory_is_refused},
      {"what is refused on ourselves is a filter, not a matter of rights",
       what_is_refused_on_ourselves_is_a_filter},
      {"a process that is not there is told as such", a_process_that_ended},
      {"without /proc, or a /proc that hides, that is the change", no_proc},
      {"a look leaves no child and no open file", look_and_leave},
      {"a folder that cannot be written is told before the run", a_folder_that_cannot_be_written},
      {"hidden kernel addresses matter only where kernel code is sampled", kernel_symbols_without_addresses},
      {"binding that is refused, and CPUs that are not ours", binding_is_refused},
      {"a rank that keeps catchers from their turn is named", own_rank},
      {"weights of control groups are told where they are too small", weights},
      {"a program of higher rank is told", the_others_rank},
      {"a runtime that cannot be read says why", a_runtime_that_cannot_be_read},
      {"where nobody else is no count of nobody is told", nobody_else_is_there},
      {"a native program is not told to open its memory", a_native_process_wants_no_memory},
      {"a Fargate sidecar on 80 columns", on_80_columns},
      {"a host with Yama on 80 columns", yama_host},
      {"no line is wider than the terminal, and all is printable ASCII", never_wider},
      {"one JSON object with every key in every row", json})
