/* The lines of pillion doctor about what decides how many stacks of interpreters can be proven:
 * whether threads can be bound, the profiler's scheduling policy, CPU weights of control groups,
 * and the rank of the process beside it. */
#include "capture/doctor/doctor_private.h"

#include <sched.h>
#include <stdio.h>

enum {
    WEIGHT_UNIT_1 = 1024, /* a group's usual weight with control groups of version 1, … */
    WEIGHT_UNIT_2 = 100,  /* … and of version 2 */
    WEIGHT_SHARE = 4,     /* of the other's weight: with less the catcher loses most wake-ups */
    WEIGHT_THIRD = 3,     /* of the usual one, whatever the other's is: older schedulers scale by it */
};

/* It takes the calls that bind and rank a thread, or refuses them with ENOSYS; either way the host's kernel decides
 * which thread runs where, and nothing that could be changed here helps. */
static bool is_for_the_host(const struct doctor_facts *f, struct doctor_line *line)
{
    bool is = doctor_in_gvisor(f);
    if (is) {
        line->state = DOCTOR_ABSENT;
        line->gate = "gvisor";
        doctor_say(line, "gVisor leaves it to the host; no stack is proven, each is read twice");
    }
    return is;
}

static void check_binding(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "affinity", "CPU binding");
    const struct probe_catcher *c = &f->catching.catcher;
    if (is_for_the_host(f, line)) {
        return;
    }
    if (c->bound < c->allowed || c->allowed == 0) {
        doctor_refuse(line, c->bind_number, "seccomp", "a thread cannot be bound to a CPU; nothing is proven",
                      f->rights.fixed_filter ? "" : "allow sched_setaffinity in the container's "
                                                    "seccomp profile");
    } else if (f->catching.cpus_outside > 0) {
        line->state = DOCTOR_PARTIAL;
        line->gate = "cpuset";
        doctor_say(line, "pid %u may use %u CPUs that pillion may not; samples there are not "
                   "proven", f->catching.rival, f->catching.cpus_outside);
        doctor_set_remedy(line, "give pillion the CPUs that the program has (taskset, cpuset)");
    } else {
        doctor_say(line, "%u CPU%s", c->allowed, c->allowed == 1 ? "" : "s");
    }
}

static const char *policy_name(int policy)
{
    static const char *const names[] = {
        [SCHED_OTHER] = "OTHER", [SCHED_FIFO] = "FIFO", [SCHED_RR] = "RR",
        [SCHED_BATCH] = "BATCH", [4] = "ISO",           [SCHED_IDLE] = "IDLE",
        [6] = "DEADLINE",
    };
    bool known = policy >= 0 && (size_t)policy < sizeof names / sizeof names[0];
    return known ? names[policy] : "unknown";
}

static void check_rank(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "policy", "own rank");
    const struct probe_catcher *c = &f->catching.catcher;
    if (is_for_the_host(f, line)) {
        return;
    }
    if (c->rank.fifo) {
        doctor_say(line, "policy FIFO: first on its CPU");
    } else if (c->policy != SCHED_OTHER) {
        doctor_refuse(line, c->rank.refused.number, "policy", "policy OTHER is refused; hardly "
                                                              "anything is proven",
                      "start pillion with policy OTHER (chrt --other 0)");
        doctor_say_more(line, ", policy ");
        doctor_say_more(line, policy_name(c->policy));
    } else if (!c->rank.slice) {
        line->state = DOCTOR_PARTIAL;
        line->number = c->rank.refused.number;
        line->gate = "seccomp";
        doctor_say(line, "policy OTHER, nice %d; a short slice is refused (sched_setattr)",
                   c->rank.nice);
        doctor_set_remedy(line, f->rights.fixed_filter ? "" : "allow sched_setattr in the "
                                                              "container's seccomp profile");
    } else {
        doctor_say(line, "policy OTHER, nice %d, short slice", c->rank.nice);
    }
}

static void say_weights(const struct doctor_facts *f, struct doctor_line *line)
{
    const struct probe_weights *w = &f->catching.weights;
    char other[64];
    (void)snprintf(other, sizeof other, "%llu", (unsigned long long)w->other);
    doctor_say(line, "own group %llu, that of pid %u %s", (unsigned long long)w->own, f->catching.rival,
               w->other != 0 ? other : "is not visible here");
}

/* 0: the weight is enough. */
static uint64_t wanted_weight(const struct probe_weights *w)
{
    uint64_t third = (w->version == 1 ? WEIGHT_UNIT_1 : WEIGHT_UNIT_2) / WEIGHT_THIRD + 1;
    uint64_t share = (w->other + WEIGHT_SHARE - 1) / WEIGHT_SHARE;
    if (w->other != 0 && w->own >= share) {
        return 0;
    }
    uint64_t wanted = share > third ? share : third;
    return w->own >= wanted ? 0 : wanted;
}

static void check_weight(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "cpu_weight", "CPU weight");
    const struct probe_weights *w = &f->catching.weights;
    if (f->catching.rival == 0) {
        doctor_say(line, "what pillion starts is in its own group");
        return;
    }
    if (f->catching.weights_number != 0) {
        line->state = DOCTOR_UNTRIED;
        doctor_say(line, "%s: the groups cannot be read", err_name(f->catching.weights_number));
        return;
    }
    uint64_t wanted = w->same || f->catching.catcher.rank.fifo || w->own == 0 ? 0 : wanted_weight(w);
    if (w->same) {
        doctor_say(line, "one group with pid %u", f->catching.rival);
    } else if (f->catching.catcher.rank.fifo) {
        doctor_say(line, "not the group of pid %u, which does not matter with policy FIFO",
                   f->catching.rival);
    } else if (w->own == 0) {
        line->state = DOCTOR_UNTRIED;
        doctor_say(line, "not the group of pid %u; the weights are not visible here", f->catching.rival);
    } else {
        say_weights(f, line);
    }
    if (wanted != 0) {
        line->state = DOCTOR_PARTIAL;
        line->gate = "cgroup";
        doctor_say_more(line, ": few stacks can be proven");
        (void)snprintf(line->remedy, sizeof line->remedy,
                       "give pillion's container a CPU weight of %llu or more (%s), or run pillion in "
                       "the program's container",
                       (unsigned long long)wanted, w->version == 1 ? "cpu.shares" : "cpu.weight");
    }
}

static void check_nice(const struct doctor_facts *f, struct doctor_report *r)
{
    struct doctor_line *line = doctor_add(r, "target_nice", "its rank");
    const struct thread_rank *own = &f->catching.catcher.rank;
    if (is_for_the_host(f, line)) {
        return;
    }
    if (f->catching.rival == 0 || !f->catching.rank_known) {
        doctor_leave_untried(line, "there is no process to examine");
        return;
    }
    doctor_say(line, "pid %u: policy %s, nice %d", f->catching.rival,
               policy_name(f->catching.policy), f->catching.nice);
    bool real_time = f->catching.policy == SCHED_FIFO || f->catching.policy == SCHED_RR;
    if (real_time) {
        line->state = DOCTOR_PARTIAL;
        line->gate = "policy";
        doctor_say_more(line, "; real-time threads are not caught: few stacks are proven");
    } else if (!own->fifo && f->catching.nice < own->nice) {
        line->state = DOCTOR_PARTIAL;
        line->gate = "nice";
        doctor_say_more(line, ", less than pillion's: few stacks can be proven");
        doctor_set_remedy(line, f->rights.fixed_filter ? "" : "add SYS_NICE");
    }
}

void doctor_check_rank(const struct doctor_facts *f, struct doctor_report *r)
{
    check_binding(f, r);
    check_rank(f, r);
    check_weight(f, r);
    check_nice(f, r);
}
