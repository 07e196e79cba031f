/* The lines of pillion doctor, one per mechanism: events, rings, /proc, memory, files, clocks. Each
 * says whether it works here, which gate closes it and what opens that gate. Lines about catching
 * are in doctor_rank.c, those about back ends in doctor_upload.c. */
#include "capture/doctor/doctor_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- lines ---- */

struct doctor_line *doctor_add(struct doctor_report *r, const char *name, const char *label)
{
    struct doctor_line *line = &r->line[r->line_count++];
    *line = (struct doctor_line){.name = name, .label = label, .state = DOCTOR_OK, .gate = ""};
    return line;
}

void doctor_say(struct doctor_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line->detail, sizeof line->detail, format, arguments);
    va_end(arguments);
}

void doctor_say_more(struct doctor_line *line, const char *text)
{
    (void)strncat(line->detail, text, sizeof line->detail - strlen(line->detail) - 1);
}

void doctor_set_remedy(struct doctor_line *line, const char *remedy)
{
    (void)snprintf(line->remedy, sizeof line->remedy, "%s", remedy);
}

void doctor_refuse(struct doctor_line *line, int number, const char *gate, const char *cause,
                   const char *remedy)
{
    line->state = DOCTOR_BLOCKED;
    line->number = number;
    line->gate = gate;
    doctor_say(line, "%s: %s", err_name(number), cause);
    doctor_set_remedy(line, remedy);
}

void doctor_leave_untried(struct doctor_line *line, const char *why)
{
    line->state = DOCTOR_UNTRIED;
    doctor_say(line, "not tried: %s", why);
}

/* A sentence of a profile's own is "what failed, and why; what helps". */
static void refuse_by_sentence(struct doctor_line *line, const struct err *err, const char *gate)
{
    struct str text = str_of(err->text);
    size_t end = text.len;
    for (size_t i = 0; i + 1 < text.len; i++) {
        end = text.ptr[i] == ';' && text.ptr[i + 1] == ' ' ? i : end;
    }
    line->state = DOCTOR_BLOCKED;
    line->number = err->number;
    line->gate = gate;
    doctor_say(line, "%.*s", (int)end, text.ptr);
    doctor_set_remedy(line, end < text.len ? text.ptr + end + 2 : "");
}

/* ---- perf events ---- */

static const char *gate_word(enum perf_gate gate)
{
    static const char *const words[] = {
        [PERF_GATE_NONE] = "",
        [PERF_GATE_SECCOMP] = "seccomp",
        [PERF_GATE_PARANOID] = "paranoid",
        [PERF_GATE_NO_KERNEL_SUPPORT] = "kernel",
        [PERF_GATE_GVISOR] = "gvisor",
        [PERF_GATE_MODULE] = "module",
        [PERF_GATE_OLD_KERNEL] = "kernel",
        [PERF_GATE_DESCRIPTORS] = "nofile",
        [PERF_GATE_HARDWARE] = "hardware",
        [PERF_GATE_OTHER] = "unknown",
    };
    return words[gate];
}

static void refuse_event(const struct doctor_facts *f, struct doctor_line *line, int number,
                         enum perf_gate gate, bool kernel)
{
    char cause[80];
    (void)snprintf(cause, sizeof cause, "%s", perf_gate_name(gate));
    if (gate == PERF_GATE_PARANOID && f->events.access.around.paranoid != PERF_PARANOID_UNKNOWN) {
        (void)snprintf(cause, sizeof cause, "%s is %d", perf_gate_name(gate),
                       f->events.access.around.paranoid);
    }
    bool fixed = f->rights.fixed_filter && (gate == PERF_GATE_SECCOMP || gate == PERF_GATE_PARANOID);
    doctor_refuse(line, number, gate_word(gate), cause,
                  fixed ? "" : perf_gate_remedy(gate, kernel, &f->events.access.around));
    if (fixed) {
        doctor_say_more(line, "; Fargate forbids changing it");
    }
}

static void check_events(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "perf_events", "perf events");
    if (f->events.off) {
        doctor_leave_untried(line, "disabled by --perf-mode");
    } else if (f->events.access.user) {
        doctor_say(line, "samples of user code, by CPU time");
    } else {
        refuse_event(f, line, f->events.access.number, f->events.access.gate, false);
    }
}

static void check_kernel_code(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "perf_kernel", "kernel code");
    if (!f->events.access.user) {
        doctor_leave_untried(line, "no perf events");
    } else if (f->events.access.kernel) {
        doctor_say(line, "samples of kernel code");
    } else {
        refuse_event(f, line, f->events.access.kernel_number, f->events.access.kernel_gate, true);
        doctor_say_more(line, "; kernel time is counted as one block");
    }
}

bool doctor_has_rings(const struct doctor_facts *f)
{
    return f->events.access.user && f->events.rings.kind == ERR_NONE;
}

static void add_to_remedy(struct doctor_line *line, const char *more)
{
    (void)strncat(line->remedy, more, sizeof line->remedy - strlen(line->remedy) - 1);
}

static void check_rings(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "perf_rings", "perf rings");
    if (!f->events.access.user) {
        doctor_leave_untried(line, "no perf events");
    } else if (f->events.rings.kind != ERR_NONE) {
        refuse_by_sentence(line, &f->events.rings, f->events.rings.number == EPERM ? "memlock" : "unknown");
    } else if (f->events.short_rings.kind != ERR_NONE) {
        refuse_by_sentence(line, &f->events.short_rings, "memlock");
        line->state = DOCTOR_PARTIAL;
    } else {
        doctor_say(line, "%u x %llu KiB of locked memory", f->events.ring_count,
                   (unsigned long long)f->events.ring_bytes >> 10);
    }
    if (line->remedy[0] != '\0' && line->number == EPERM) {
        add_to_remedy(line, " (ulimit -l, or add IPC_LOCK)");
    }
}

/* "pid 812", "a child of ours" */
static void name_it(const struct doctor_facts *f, char out[static 32])
{
    if (f->target.given) {
        (void)snprintf(out, 32, "pid %u", f->target.pid);
    } else {
        (void)snprintf(out, 32, "a child of ours");
    }
}

static void check_following(const struct doctor_facts *f, struct doctor_report *r)
{
    char it[32];
    name_it(f, it);
    struct doctor_line *line = doctor_add(r, "perf_process", "perf on it");
    if (!doctor_has_rings(f)) {
        doctor_leave_untried(line, f->events.access.user ? "no perf rings" : "no perf events");
    } else if (f->events.follow == DOCTOR_NOT_TRIED) {
        doctor_leave_untried(line, "there is no process to test");
    } else if (f->events.follow == EACCES || f->events.follow == EPERM) {
        const struct access_verdict *why = &f->memory.look_why;
        doctor_refuse(line, f->events.follow, access_gate_name(why->gate), why->cause, why->remedy);
    } else if (f->events.follow != 0) {
        bool full = f->events.follow == EMFILE || f->events.follow == ENFILE;
        refuse_by_sentence(line, &f->events.followed,
                           full ? "nofile" : f->events.follow == ESRCH ? "gone" : "unknown");
    } else if (f->events.followed.kind == ERR_LIMIT) {
        refuse_by_sentence(line, &f->events.followed, "nofile");
        line->state = DOCTOR_PARTIAL;
    } else {
        doctor_say(line, "%s: %u thread%s, with registers and stacks", it, f->target.threads,
                   f->target.threads == 1 ? "" : "s");
    }
}

static void check_switches(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "perf_switches", "switches");
    if (!f->events.access.user) {
        doctor_leave_untried(line, "no perf events");
    } else if (f->events.switches != 0) {
        line->state = DOCTOR_ABSENT;
        line->number = f->events.switches;
        line->gate = "kernel";
        doctor_say(line, "%s: this kernel does not report context switches (4.3 and later do); "
                         "stacks are proven by delays alone", err_name(f->events.switches));
    } else {
        doctor_say(line, "records of context switches, which prove stacks");
    }
}

static void check_hardware(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "perf_hardware", "hardware");
    enum perf_gate gate = perf_gate_of(f->events.cycles, false, &f->events.access.around);
    if (!f->events.access.user) {
        doctor_leave_untried(line, "no perf events");
    } else if (f->events.cycles == 0) {
        doctor_say(line, "counters (-e cycles)");
    } else {
        line->state = DOCTOR_ABSENT;
        line->number = f->events.cycles;
        line->gate = gate_word(gate);
        doctor_say(line, "%s: %s; CPU time is sampled by the clock", err_name(f->events.cycles),
                   perf_gate_name(gate));
    }
}

/* ---- memory and files ---- */

static void check_proc(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "proc", "/proc");
    if (f->rights.proc != 0) {
        doctor_refuse(line, f->rights.proc, "mount", "/proc is not mounted here, or it belongs to "
                                                     "another PID namespace",
                      "mount -t proc proc /proc");
    } else if (f->rights.first != 0) {
        doctor_refuse(line, f->rights.first, "mount", "/proc hides other users' processes (hidepid)",
                      "mount /proc with hidepid=0, or add SYS_PTRACE");
        line->state = DOCTOR_PARTIAL;
    } else {
        size_t count = f->processes.len + f->unchecked;
        if (count == 0 && !f->target.given) {
            doctor_say(line, "no other process is visible");
            return;
        }
        doctor_say(line, "%zu process%s %s", count, count == 1 ? "" : "es",
                   f->target.given ? "looked at" : "visible");
    }
}

bool doctor_is_refusal(int number)
{
    return number == EACCES || number == EPERM;
}

bool doctor_in_gvisor(const struct doctor_facts *f)
{
    /* a filter may answer as it does, but takes no file away */
    return f->events.access.gate == PERF_GATE_GVISOR && f->memory.schedstat == ENOENT;
}

/* What the kernel's ptrace check decides. */
static void check_access(struct doctor_line *line, int number, const struct access_verdict *why,
                         const char *good)
{
    if (number == 0) {
        doctor_say(line, "%s", good);
    } else if (number == DOCTOR_NOT_TRIED) {
        doctor_leave_untried(line, "there is no process to test");
    } else if (doctor_is_refusal(number)) {
        doctor_refuse(line, number, access_gate_name(why->gate), why->cause, why->remedy);
    } else if (number == ESRCH || number == ENOENT) {
        doctor_refuse(line, number, "gone", "the process ended, or /proc does not show it", "");
    } else {
        doctor_refuse(line, number, "unknown", "unknown gate", "");
    }
}

/* Docker's profile let memory be read by call with SYS_PTRACE only, until 23.0; others still do. */
static const char *call_remedy(const struct doctor_facts *f)
{
    if (f->rights.fixed_filter) {
        return f->rights.holds_ptrace ? "" : "add SYS_PTRACE";
    }
    return f->rights.holds_ptrace
               ? "allow process_vm_readv in the container's seccomp profile"
               : "allow process_vm_readv in the container's seccomp profile, or add SYS_PTRACE if "
                 "the profile allows the call with it (Docker's before version 23 does)";
}

/* What fails on ourselves is no matter of rights on a process. */
static void check_call(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "process_vm_readv", "memory by call");
    if (f->memory.call_self != 0) {
        doctor_refuse(line, f->memory.call_self, "seccomp",
                      f->memory.call_self == ENOSYS ? "seccomp filter, or a kernel without it"
                                             : "seccomp filter",
                      call_remedy(f));
        return;
    }
    check_access(line, f->memory.call, &f->memory.call_why, "process_vm_readv");
}

static void check_memory(const struct doctor_facts *f, struct doctor_report *r)
{
    check_call(f, r);
    struct doctor_line *line = doctor_add(r, "proc_mem", "memory by file");
    check_access(line, f->memory.file, &f->memory.memory_why, "/proc/PID/mem");
}

static bool has_no_schedstat(const struct doctor_facts *f)
{
    return f->memory.schedstat == ENOENT && f->memory.maps == 0; /* the process is there */
}

/* Asked for by --brief-stops; what lets memory be read by call lets a thread be stopped. */
static void check_stops(const struct doctor_facts *f, struct doctor_report *r)
{
    if (!f->memory.stops_tried) {
        return;
    }
    struct doctor_line *line = doctor_add(r, "brief_stops", "brief stops");
    if (has_no_schedstat(f)) {
        line->state = DOCTOR_ABSENT;
        line->number = f->memory.schedstat;
        line->gate = "kernel";
        doctor_say(line, "%s: no schedstat tells which thread had a CPU", err_name(line->number));
        return;
    }
    if (f->memory.stops_why != NULL) {
        doctor_refuse(line, EPERM, "seccomp", f->memory.stops_why,
                      f->rights.fixed_filter ? "" : "allow ptrace in the container's seccomp profile");
        return;
    }
    check_access(line, f->memory.call_self == 0 ? f->memory.call : 0, &f->memory.call_why, "ptrace");
    if (line->state == DOCTOR_OK && f->memory.stop_ns > 0) {
        doctor_say(line, "--brief-stops would show native stacks; a stop takes %.0f us, 99 of 100 at most %.0f",
                   (double)f->memory.stop_ns / 1e3, (double)f->memory.stop_long_ns / 1e3);
    }
}

static void check_files(const struct doctor_facts *f, struct doctor_report *r)
{
    check_access(doctor_add(r, "maps", "mappings"), f->memory.maps, &f->memory.look_why, "/proc/PID/maps");
    check_access(doctor_add(r, "root", "its files"), f->memory.root, &f->memory.look_why, "below /proc/PID/root");
    struct doctor_line *line = doctor_add(r, "map_files", "deleted files");
    if (f->memory.map_files == 0 || f->memory.map_files == DOCTOR_NOT_TRIED) {
        check_access(line, f->memory.map_files, &f->memory.look_why, "/proc/PID/map_files");
        return;
    }
    line->state = DOCTOR_ABSENT;
    line->number = f->memory.map_files;
    line->gate = doctor_is_refusal(f->memory.map_files) ? "capability" : "kernel";
    doctor_say(line, "%s: map_files needs CHECKPOINT_RESTORE; deleted files are read from memory",
               err_name(f->memory.map_files));
}

static void check_clocks(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "schedstat", "thread clocks");
    if (has_no_schedstat(f)) {
        line->state = DOCTOR_ABSENT;
        line->number = f->memory.schedstat;
        line->gate = "kernel";
        doctor_say(line, "%s: this kernel has no schedstat; CPU time is counted in ticks, and no stack is proven",
                   err_name(f->memory.schedstat));
    } else {
        check_access(line, f->memory.schedstat, &f->memory.look_why, "/proc/PID/schedstat");
    }
    line = doctor_add(r, "sched", "switch counts");
    if (f->memory.sched == ENOENT || f->memory.sched == ENOSYS) {
        line->state = DOCTOR_ABSENT;
        line->number = f->memory.sched;
        line->gate = "kernel";
        doctor_say(line, "%s: this kernel has no /proc/PID/sched; stat is read instead",
                   err_name(f->memory.sched));
    } else {
        check_access(line, f->memory.sched, &f->memory.look_why, "/proc/PID/sched");
    }
}

static void check_kernel_names(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "kernel_names", "kernel names");
    if (!f->events.access.kernel) {
        doctor_leave_untried(line, "no kernel code is sampled");
    } else if (f->events.kernel_names != 0) {
        doctor_refuse(line, f->events.kernel_names, f->events.kernel_names == ENOENT ? "mount" : "module",
                      "/proc/kallsyms cannot be read; kernel frames are addresses", "");
    } else if (f->events.names_hidden) {
        line->state = DOCTOR_BLOCKED;
        line->gate = "sysctl";
        doctor_say(line, "/proc/kallsyms has no addresses: kernel.kptr_restrict; kernel frames have "
                   "no names");
        doctor_set_remedy(line, "add SYSLOG, or set kernel.kptr_restrict to 0 and kernel.perf_event_paranoid "
                          "to 1 on the host");
    } else {
        doctor_say(line, "/proc/kallsyms");
    }
}

void doctor_check_output(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "output", "output folder");
    if (f->output == 0) {
        doctor_say(line, "%.200s", f->output_dir);
        return;
    }
    bool mounted = f->output == EROFS;
    char cause[DOCTOR_TEXT_MAX];
    (void)snprintf(cause, sizeof cause, "%.200s cannot be written%s", f->output_dir,
                   mounted ? ": it is mounted read-only" : "");
    doctor_refuse(line, f->output, mounted ? "mount" : "permission", cause,
                  "give -o DIR with a folder that can be written");
}

void doctor_check_mechanisms(const struct doctor_facts *f, struct doctor_report *r)
{
    check_events(f, r);
    check_kernel_code(f, r);
    check_rings(f, r);
    check_following(f, r);
    check_switches(f, r);
    check_hardware(f, r);
    check_kernel_names(f, r);
    check_proc(f, r);
    check_memory(f, r);
    check_stops(f, r);
    check_files(f, r);
    check_clocks(f, r);
}
