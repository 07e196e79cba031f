/* Finds the facts of pillion doctor by trying: events, rings, memory and files of the process that
 * is asked about, or of a child of ours, and what can be read of all others. Nothing is evaluated here
 * and no sentence is written. */
#include "base/time.h"
#include "capture/doctor/doctor_private.h"
#include "capture/stacks/readers.h"
#include "capture/stacks/stops.h"
#include "os/stop.h"
#include "os/client.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"
#include "target/stat.h"
#include "target/status.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LOOK_MOST_MS = 2000,  /* at processes */
    LOOK_LEAST_MS = 200,  /* shares of CPU time are of so long, at least */
    STACK_BYTES = 8 * 1024,
    SLICE_US = 100,       /* a catcher's to begin with */
    TEXT_MAX = 64 * 1024,
    ANY_ADDRESS = 4096,   /* where permission alone is asked for */
};

struct survey {
    const struct settings *settings;
    struct doctor_facts *facts;
    struct world world;
    struct images images;
    struct log log; /* silent: what readers say is in their answers */
    struct buf text;
    uint64_t end_ns;
};

static bool is_refusal(int number)
{
    return number == EACCES || number == EPERM;
}

/* ---- perf events ---- */

static void follow_it(struct doctor_facts *f, struct perf *perf)
{
    const struct perf_how how = {.stack_bytes = STACK_BYTES};
    f->events.follow = 0;
    if (!perf_follow_process(perf, f->target.pid, &how, &f->events.followed)) {
        f->events.follow = f->events.followed.number != 0 ? f->events.followed.number : ESRCH;
    }
    f->target.threads = (uint32_t)perf_follower_count(perf);
}

static void try_rings(const struct settings *settings, struct doctor_facts *f)
{
    struct perf *perf = perf_new(&f->events.rings);
    const struct perf_sampling sampling = {
        .frequency_hz = settings->sampling.frequency_hz,
        .kernel = f->events.access.kernel,
        .stack_bytes = STACK_BYTES,
        .registers = unwind_perf_mask(),
    };
    if (perf != NULL && perf_open(perf, &sampling, &f->events.rings)) {
        f->events.ring_bytes = perf_ring_bytes(perf);
        f->events.ring_count = perf_ring_count(perf);
        (void)perf_rings_are_short(perf, &f->events.short_rings);
        if (f->target.exists) {
            follow_it(f, perf);
        }
    }
    perf_free(perf);
}

static void try_perf(const struct settings *settings, struct doctor_facts *f)
{
    f->events.follow = f->events.switches = f->events.cycles = DOCTOR_NOT_TRIED;
    f->events.off = settings->sampling.perf_mode == PERF_DISABLED;
    if (f->events.off) {
        return;
    }
    perf_probe(&f->events.access);
    if (f->events.access.user) {
        f->events.switches = probe_event(PROBE_SWITCHES, 0);
        f->events.cycles = probe_event(PROBE_CYCLES, 0);
        try_rings(settings, f);
    }
}

/* ---- memory and files ---- */

static void try_map_file(struct doctor_facts *f, const struct target *target)
{
    for (size_t i = 0; target != NULL && i < target->maps.len; i++) {
        const struct mapping *mapping = &target->maps.at[i];
        if (mapping->image >= IMAGE_FIRST_FILE) {
            f->memory.map_files = probe_map_file(f->target.pid, mapping->start, mapping->limit);
            return;
        }
    }
}

static void try_memory(struct doctor_facts *f, uint64_t address)
{
    uint32_t own = proc_own_pid();
    f->memory.call_self = probe_memory_call(own, probe_own_address());
    f->memory.call = f->target.exists ? probe_memory_call(f->target.pid, address) : DOCTOR_NOT_TRIED;
    f->memory.file = f->target.exists ? probe_memory_file(f->target.pid, address) : DOCTOR_NOT_TRIED;
}

static void try_stops(struct doctor_facts *f)
{
    enum { STOPS = 100 };
    uint32_t ns[STOPS];
    f->memory.stops_tried = f->events.off || !f->events.access.user;
    if (f->memory.stops_tried && stop_is_possible(&f->memory.stops_why)) {
        unsigned count = stop_measure(STOPS, ns);
        f->memory.stop_ns = stops_quantile(ns, count, 0.5);
        f->memory.stop_long_ns = stops_quantile(ns, count, 0.99);
    }
}

static void try_files(struct doctor_facts *f, const struct target *target)
{
    struct doctor_memory *m = &f->memory;
    m->maps = m->root = m->map_files = m->schedstat = m->sched = DOCTOR_NOT_TRIED;
    if (!f->target.exists) {
        return;
    }
    f->memory.maps = probe_text(f->target.pid, "maps");
    f->memory.root = probe_root(f->target.pid);
    f->memory.schedstat = probe_text(f->target.pid, "schedstat");
    f->memory.sched = probe_text(f->target.pid, "sched");
    try_map_file(f, target);
}

static void ask_why(struct doctor_facts *f)
{
    if (is_refusal(f->events.follow) || is_refusal(f->memory.maps) || is_refusal(f->memory.root) ||
        is_refusal(f->memory.schedstat) || is_refusal(f->memory.sched)) {
        access_verdict_of(f->target.pid, ACCESS_LOOK, &f->memory.look_why);
    }
    if (is_refusal(f->memory.call)) {
        access_verdict_of(f->target.pid, ACCESS_CALL, &f->memory.call_why);
    }
    if (is_refusal(f->memory.file)) {
        access_verdict_of(f->target.pid, ACCESS_MEMORY, &f->memory.memory_why);
    }
}

/* The folder, or the nearest above it that is there: the rest is made when it is needed. */
static void try_output(const struct settings *settings, struct doctor_facts *f)
{
    char path[4096];
    if (settings->output.dir != NULL) {
        (void)snprintf(path, sizeof path, "%s", settings->output.dir);
    } else {
        file_working_dir(path, sizeof path);
    }
    (void)snprintf(f->output_dir, sizeof f->output_dir, "%.250s", path);
    f->output = probe_folder(path);
    for (size_t len = strlen(path); f->output == ENOENT && len > 0;) {
        while (len > 0 && path[--len] != '/') {
        }
        (void)snprintf(path + len, sizeof path - len, "%s", len > 0 ? "" : path[0] == '/' ? "/" : ".");
        f->output = probe_folder(path);
    }
}

/* ---- processes ---- */

static bool read_text(struct survey *l, uint32_t pid, const char *name)
{
    return proc_read(pid, 0, name, &l->text, NULL);
}

static bool is_program(struct survey *l, uint32_t pid)
{
    struct proc_stat stat;
    return read_text(l, pid, "stat") && stat_parse(buf_slice(&l->text), &stat, NULL) &&
           !stat_is_kernel_thread(&stat) && !stat_has_ended(&stat);
}

static void note_reader(const struct reader *reader, struct doctor_process *out)
{
    struct buf text;
    buf_init(&text, DOCTOR_RUNTIME_MAX);
    reader->runtime->describe(reader->state, &text);
    out->reader = reader->runtime->name;
    (void)snprintf(out->runtime, sizeof out->runtime, "%s", buf_cstr(&text));
    buf_release(&text);
}

/* What is asked for stacks, where it may be. */
static void note_collector(const struct target *target, struct doctor_process *out)
{
    struct client client;
    const struct runtime *runtime = target->runtime.collects;
    (void)snprintf(out->runtime, sizeof out->runtime, "%s", languages[runtime->kind].name);
    out->asked = client_open(&client, target->pid, &out->runtime_why) &&
                 runtime->collect->may_start(&client.port, &out->runtime_why);
    out->reader = out->asked ? runtime->name : NULL;
    client_close(&client);
}

/* As a profile finds it: by the registry, in the mappings. */
static void find_runtime(struct survey *l, struct targets *targets, const struct target *target,
                         struct doctor_process *out)
{
    struct readers readers;
    readers_init(&readers, l->settings, targets, &l->log);
    readers.collects = true;
    (void)readers_refresh(&readers, clock_mono_ns());
    if (target->runtime.reader != NULL && target->runtime.reader->runtime != NULL) {
        note_reader(target->runtime.reader, out);
    } else if (target->runtime.collects != NULL && !target->runtime.collects->collect->is_aside) {
        note_collector(target, out);
    } else {
        out->runtime_why = readers.refused;
        (void)snprintf(out->runtime, sizeof out->runtime, "%s",
                       readers.refuser != NULL ? languages[readers.refuser->kind].name : "");
    }
    readers_release(&readers);
}

static void try_process(struct doctor_facts *f, struct doctor_process *p, uint64_t address)
{
    p->perf = f->events.access.user ? probe_event(PROBE_CLOCK, p->pid) : DOCTOR_NOT_TRIED;
    p->memory = probe_memory_call(p->pid, address);
    if (p->memory != 0) {
        p->memory = probe_memory_file(p->pid, address);
    }
    if (is_refusal(p->perf)) {
        access_verdict_of(p->pid, ACCESS_LOOK, &p->look_why);
    }
    if (is_refusal(p->memory)) {
        access_verdict_of(p->pid, ACCESS_MEMORY, &p->memory_why);
    }
}

/* `whole`: this is what all else is tried on, too. */
static void probe_one(struct survey *l, uint32_t pid, struct doctor_process *p, bool whole)
{
    struct targets targets;
    struct proc_status status = {0};
    targets_init(&targets, &l->images, false);
    struct target *target = targets_begin(&targets, pid);
    bool mapped = target != NULL && targets_read_maps(&targets, target);
    uint64_t address = mapped && target->maps.len > 0 ? target->maps.at[0].start : ANY_ADDRESS;
    *p = (struct doctor_process){.pid = pid, .mapped = mapped};
    if (read_text(l, pid, "status") && status_parse(buf_slice(&l->text), &status, NULL)) {
        p->uid = status.uid.effective;
    }
    if (target != NULL) {
        memcpy(p->name, target->name, sizeof p->name);
    }
    if (whole) {
        try_memory(l->facts, address);
        try_files(l->facts, target);
    }
    try_process(l->facts, p, address);
    if (mapped) {
        bool sampled = p->perf == 0 && !l->facts->events.off;
        target->capture_mode = sampled ? CAPTURE_PERF : CAPTURE_PROC; /* some runtimes are read by registers only */
        find_runtime(l, &targets, target, p);
    }
    targets_release(&targets);
}

static void probe_all(struct survey *l, uint32_t child)
{
    struct pid_list list = {0};
    uint32_t own = proc_own_pid();
    (void)proc_list_processes(&list, NULL);
    vec_each(&list.ids, pid)
    {
        uint64_t before_ns = 0;
        if (*pid == own || *pid == child || !is_program(l, *pid)) {
            continue;
        }
        bool fits = l->facts->processes.len < DOCTOR_PROCESSES_MAX && clock_mono_ns() < l->end_ns;
        struct doctor_process *process = fits ? vec_push(&l->facts->processes) : NULL;
        if (process == NULL) {
            l->facts->unchecked++;
            continue;
        }
        (void)clock_process_cpu_ns(*pid, &before_ns);
        probe_one(l, *pid, process, false);
        process->cpu_ns = before_ns;
    }
    vec_release(&list.ids);
}

static void probe_given(struct survey *l)
{
    for (size_t i = 0; i < l->settings->scope.pid_count; i++) {
        uint32_t pid = (uint32_t)l->settings->scope.pids[i];
        struct doctor_process *process = proc_exists(pid) ? vec_push(&l->facts->processes) : NULL;
        uint64_t before_ns = 0;
        if (process != NULL) {
            (void)clock_process_cpu_ns(pid, &before_ns);
            probe_one(l, pid, process, i == 0);
            process->cpu_ns = before_ns;
        }
    }
}

static int by_cpu_time(const void *one, const void *other)
{
    const struct doctor_process *a = one, *b = other;
    if (a->cpu_ns != b->cpu_ns) {
        return a->cpu_ns < b->cpu_ns ? 1 : -1;
    }
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* What each used since it was probed: those that were probed first are not taken for busier, since all
 * of them were before the rest was tried. */
static void measure(struct doctor_facts *f, uint64_t began_ns)
{
    uint64_t least_ns = began_ns + LOOK_LEAST_MS * NS_PER_MS, now_ns = clock_mono_ns();
    if (now_ns < least_ns) {
        clock_sleep_ns(least_ns - now_ns);
    }
    vec_each(&f->processes, process)
    {
        uint64_t after_ns = 0;
        bool alive = clock_process_cpu_ns(process->pid, &after_ns);
        process->cpu_ns = alive && after_ns > process->cpu_ns ? after_ns - process->cpu_ns : 0;
    }
    if (f->processes.len > 1 && !f->target.given) {
        qsort(f->processes.at, f->processes.len, sizeof f->processes.at[0], by_cpu_time);
    }
}

/* ---- scheduling ---- */

static void try_scheduling(struct doctor_facts *f)
{
    (void)probe_catcher(SLICE_US * NS_PER_US, &f->catching.catcher);
    f->catching.rival = f->target.given ? f->target.exists ? f->target.pid : 0 : 0;
    if (!f->target.given && f->processes.len > 0 && f->processes.at[0].cpu_ns > 0) {
        f->catching.rival = f->processes.at[0].pid;
    }
    if (f->catching.rival == 0) {
        return;
    }
    f->catching.weights_number = probe_weights(f->catching.rival, &f->catching.weights);
    f->catching.rank_known = thread_rank_of(f->catching.rival, &f->catching.policy, &f->catching.nice);
    (void)thread_cpus_outside(f->catching.rival, &f->catching.cpus_outside);
}

/* ---- all of it ---- */

static void try_all(struct survey *l, uint32_t child)
{
    struct doctor_facts *f = l->facts;
    uint64_t began_ns = clock_mono_ns();
    l->end_ns = began_ns + LOOK_MOST_MS * NS_PER_MS;
    f->rights.proc = probe_text(proc_own_pid(), "stat");
    f->rights.first = probe_text(1, "stat");
    try_perf(l->settings, f);
    if (f->target.given) {
        struct doctor_memory *m = &f->memory;
        m->call = m->file = m->maps = m->root = m->map_files = m->schedstat = m->sched =
            DOCTOR_NOT_TRIED;
        f->memory.call_self = probe_memory_call(proc_own_pid(), probe_own_address());
        probe_given(l);
    } else {
        struct doctor_process process;
        probe_one(l, f->target.pid, &process, true);
        probe_all(l, child);
    }
    ask_why(f);
    f->events.kernel_names = probe_kernel_names(&f->events.names_hidden);
    try_output(l->settings, f);
    measure(f, began_ns);
    try_scheduling(f);
    try_stops(f); /* last, for it binds this thread to a CPU */
}

static void name_it(struct doctor_facts *f)
{
    if (f->target.given && f->processes.len > 0) {
        memcpy(f->target.name, f->processes.at[0].name, sizeof f->target.name);
    }
}

bool doctor_probe(const struct settings *settings, struct doctor_facts *out, struct err *err)
{
    struct probe_child child = {0};
    struct survey l = {
        .settings = settings,
        .facts = out,
        .world = world_here(),
        .log = {.fd = -1, .level = LOG_ERROR, .lock = PTHREAD_MUTEX_INITIALIZER},
    };
    *out = (struct doctor_facts){
        .target.given = settings->scope.pid_count > 0,
        .rights.fixed_filter = settings->origin.fixed_filter,
        .rights.holds_ptrace = access_holds(CAP_SYS_PTRACE),
    };
    out->target.pid = out->target.given ? (uint32_t)settings->scope.pids[0] : 0;
    out->target.exists = out->target.given && proc_exists(out->target.pid);
    bool has_child = !out->target.given && probe_child_start(&child, err);
    if (!out->target.given && !has_child) {
        return false;
    }
    if (has_child) {
        out->target.pid = child.pid;
        out->target.exists = true;
    }
    buf_init(&l.text, TEXT_MAX);
    images_init(&l.images, &l.world);
    try_all(&l, child.pid);
    name_it(out);
    images_release(&l.images);
    log_close(&l.log);
    buf_release(&l.text);
    if (has_child) {
        probe_child_end(&child);
    }
    doctor_try_uploads(settings, out);
    return true;
}

void doctor_release(struct doctor_facts *facts)
{
    vec_release(&facts->processes);
}
