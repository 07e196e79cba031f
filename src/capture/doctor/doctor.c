/* The verdict of pillion doctor: what a profile of this place or process would contain, how each
 * process can be read, and how many changes would help. It works on the facts that doctor_look.c
 * found and the lines that doctor_lines.c and its neighbours made of them. */
#include "capture/doctor/doctor_private.h"

#include <stdio.h>

/* ---- processes ---- */

static bool can_sample(const struct doctor_facts *f)
{
    return doctor_has_rings(f) && !f->events.off;
}

static void describe_mode(const struct doctor_row *row, const struct doctor_process *p,
                          char out[static 64])
{
    bool perf = strncmp(row->capture_mode, "perf", 4) == 0;
    if (p->asked) {
        (void)snprintf(out, 64, "%s by its own recorder", p->reader);
    } else if (p->reader != NULL) {
        (void)snprintf(out, 64, perf ? "perf + %s reader" : "%s reader; native as one block",
                       p->reader);
    } else if (perf && p->runtime_why.kind != ERR_NONE) {
        (void)snprintf(out, 64, "perf, without its interpreter's names");
    } else if (perf && !p->mapped && p->memory != 0) {
        (void)snprintf(out, 64, "perf, without names");
    } else {
        (void)snprintf(out, 64, "%s", perf ? "perf" : "/proc only");
    }
}

static void take_cause(struct doctor_row *row, int number, const struct access_verdict *why)
{
    row->number = number;
    row->gate = doctor_is_refusal(number) ? access_gate_name(why->gate) : "gone";
    row->cause = doctor_is_refusal(number) ? why->cause : "it ended";
    row->remedy = doctor_is_refusal(number) ? why->remedy : "";
}

void doctor_row(const struct doctor_facts *f, const struct doctor_process *p, struct doctor_row *out)
{
    bool perf = can_sample(f) && p->perf == 0;
    bool wants_memory = p->reader == NULL && (!p->mapped || p->runtime_why.kind != ERR_NONE);
    *out = (struct doctor_row){.gate = "", .cause = "", .remedy = ""};
    out->capture_mode = perf ? p->reader != NULL ? "perf+reader" : "perf"
                     : p->reader != NULL ? "reader" : "proc";
    describe_mode(out, p, out->how);
    if (can_sample(f) && p->perf != 0) {
        take_cause(out, p->perf, &p->look_why);
    } else if (wants_memory && p->memory != 0) {
        take_cause(out, p->memory, &p->memory_why);
    } else if (p->reader == NULL && p->runtime_why.kind != ERR_NONE) {
        out->gate = p->runtime_why.kind == ERR_UNSUPPORTED ? "version" : "unknown";
        out->cause = p->runtime_why.text;
    }
}

/* ---- the verdict ---- */

struct counts {
    size_t all, sampled, read;
};

static struct counts count(const struct doctor_facts *f)
{
    struct counts counts = {.all = f->processes.len};
    vec_each(&f->processes, process)
    {
        struct doctor_row row;
        doctor_row(f, process, &row);
        counts.sampled += row.capture_mode[0] == 'p' && row.capture_mode[1] == 'e';
        counts.read += process->reader != NULL;
    }
    return counts;
}

static const char *kind_of_stacks(const struct doctor_facts *f)
{
    return f->events.access.kernel ? "user and kernel stacks" : "user stacks, kernel time as one block";
}

static void evaluate_one(const struct doctor_facts *f, struct doctor_report *r)
{
    const struct doctor_process *p = f->processes.len > 0 ? &f->processes.at[0] : NULL;
    struct doctor_row row = {.capture_mode = "proc"};
    if (!f->target.exists || p == NULL) {
        (void)snprintf(r->verdict, sizeof r->verdict,
                       "No process %u is visible in this PID namespace; host pids mean nothing here. On "
                       "Fargate set \"pidMode\": \"task\".", f->target.pid);
        return;
    }
    doctor_row(f, p, &row);
    bool perf = row.capture_mode[0] == 'p' && row.capture_mode[1] == 'e';
    char functions[DOCTOR_RUNTIME_MAX + 48] = "";
    if (p->asked) {
        (void)snprintf(functions, sizeof functions, "the functions of %s as its own recorder meets them", p->runtime);
    } else if (p->reader != NULL) {
        (void)snprintf(functions, sizeof functions, perf ? ", with the functions of %s woven in"
                                                         : "the functions of %s, native code as one block",
                       p->runtime);
    } else if (p->runtime_why.kind != ERR_NONE) {
        (void)snprintf(functions, sizeof functions, ", without its interpreter's functions");
    }
    bool any = perf || p->reader != NULL;
    r->can_profile = any;
    (void)snprintf(r->verdict, sizeof r->verdict, "A profile of pid %u (%s) would contain %s%s.", f->target.pid,
                   f->target.name, perf ? kind_of_stacks(f) : any ? "" : "its CPU time, without stacks",
                   any ? functions : "");
}

static void evaluate_all(const struct doctor_facts *f, struct doctor_report *r)
{
    struct counts counts = count(f);
    bool perf = can_sample(f) && f->events.follow == 0;
    bool memory = f->memory.call == 0 || f->memory.file == 0;
    r->can_profile = perf || memory || counts.read > 0;
    if (perf && counts.all == 0) {
        (void)snprintf(r->verdict, sizeof r->verdict,
                       "A profile of a command that pillion starts would contain %s, with the functions "
                       "of interpreters woven in. No other process is visible here.",
                       kind_of_stacks(f));
    } else if (perf) {
        (void)snprintf(r->verdict, sizeof r->verdict,
                       "A profile would contain %s, of commands that pillion starts and of %zu of %zu "
                       "processes, with the functions of interpreters woven in for %zu.",
                       kind_of_stacks(f), counts.sampled, counts.all, counts.read);
    } else if (r->can_profile && counts.all == 0) {
        (void)snprintf(r->verdict, sizeof r->verdict,
                       "A profile of a command that pillion starts would contain the functions of "
                       "interpreters, and all other CPU time without stacks. No other process is "
                       "visible here.");
    } else if (r->can_profile) {
        (void)snprintf(r->verdict, sizeof r->verdict,
                       "A profile would contain the functions of interpreters (%zu of %zu processes, "
                       "and commands that pillion starts), and all other CPU time without stacks.",
                       counts.read, counts.all);
    } else {
        (void)snprintf(r->verdict, sizeof r->verdict,
                       "A profile would contain CPU time per thread, without stacks.");
    }
}

static size_t count_changes(const struct doctor_facts *f, const struct doctor_report *r)
{
    size_t changes = 0;
    for (size_t i = 0; i < r->line_count; i++) {
        bool is_new = r->line[i].remedy[0] != '\0';
        for (size_t j = 0; j < i; j++) {
            is_new = is_new && strcmp(r->line[i].remedy, r->line[j].remedy) != 0;
        }
        changes += is_new;
    }
    vec_each(&f->processes, process)
    {
        struct doctor_row row, other;
        doctor_row(f, process, &row);
        bool is_new = row.remedy[0] != '\0';
        for (size_t i = 0; is_new && i < r->line_count; i++) {
            is_new = strcmp(row.remedy, r->line[i].remedy) != 0;
        }
        for (struct doctor_process *p = f->processes.at; is_new && p < process; p++) {
            doctor_row(f, p, &other);
            is_new = strcmp(row.remedy, other.remedy) != 0;
        }
        changes += is_new;
    }
    return changes;
}

static void headline(const struct doctor_facts *f, struct doctor_report *r)
{
    size_t changes = count_changes(f, r);
    bool gaps = false;
    if (f->target.given && !f->target.exists) { /* what works here says nothing of a process that is not */
        (void)snprintf(r->headline, sizeof r->headline, "no process %u to examine", f->target.pid);
        return;
    }
    for (size_t i = 0; i < r->line_count; i++) {
        gaps = gaps || r->line[i].state == DOCTOR_BLOCKED || r->line[i].state == DOCTOR_PARTIAL;
    }
    const char *works = !r->can_profile    ? "no stacks are possible here"
                        : gaps || changes > 0 ? "works, with gaps"
                                              : "everything works here";
    if (changes == 0) {
        (void)snprintf(r->headline, sizeof r->headline, "%s; nothing to change", works);
    } else {
        (void)snprintf(r->headline, sizeof r->headline, "%s; %zu change%s", works, changes,
                       changes == 1 ? " helps" : "s help");
    }
}

void doctor_evaluate(const struct doctor_facts *f, struct doctor_report *out)
{
    *out = (struct doctor_report){0};
    doctor_check_mechanisms(f, out);
    doctor_check_rank(f, out);
    doctor_check_output(f, out);
    doctor_check_uploads(f, out);
    if (f->target.given) {
        evaluate_one(f, out);
    } else {
        evaluate_all(f, out);
    }
    headline(f, out);
}
