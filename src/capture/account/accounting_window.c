/* accounting_window: what a window's samples do not explain. At its end the accounting of the living is final, and what
 * the events' counters have beyond it is shared out, tree by tree, among those that ended. Samples weigh their period
 * as the accounting measures it; what remains beyond has a name of its own. */
#include "capture/account/accounting_private.h"
#include "capture/account/trees.h"

enum {
    EXCESS_PERCENT = 2, /* clocks differ */
    WAITED_TICKS = 2,   /* that a reading of the times of its children is cut by */
};

/* Samples that were taken seldom, for the sake of the profiler's budget, stand for all: whenever the period
 * changes, and at the end, a part of one has no sample of its own, for each thread and each CPU it ran on. */
static bool is_between_samples(const struct accounting *a, const struct target *target, uint64_t rest)
{
    return target->account.sampled_ns > 0 && a->lost_records == 0 &&
           rest / accounting_threads(target) <= a->unsampled_ns;
}

/* The weight of a process's samples against its accounting. The sampling clock and that do not run
 * in step: it stands still inside context switches and runs on during interrupts, and both amount to
 * a few per cent of a busy server. Within WEIGH_MAX_PERCENT or the noise, and when nothing was lost, the
 * period is taken as the accounting measures it; what remains beyond has a name of its own. Samples of bursts
 * (bursts.c) are drawn by lot and stand for all that it did, however much that was. */
static void explain_rest(struct accounting *a, struct profile *p, struct target *target,
                         uint64_t cpu_ns, uint64_t system_ns)
{
    uint64_t sampled_ns = target->account.sampled_ns;
    uint64_t rest = beyond(cpu_ns, sampled_ns);
    uint32_t thread = targets_thread_id(a->targets, p, target, target->pid);
    bool bursts = target->bursts.samples >= BURST_SAMPLES_MIN;
    if (target->capture_mode == CAPTURE_PERF_USER) {
        uint64_t hidden = bursts && cpu_ns > system_ns ? system_ns : rest < system_ns ? rest : system_ns;
        profile_account(p, thread, ACCOUNT_KERNEL_HIDDEN, hidden);
        rest = beyond(rest, hidden);
        cpu_ns -= hidden;
    }
    bool in_step = accounting_is_in_step(a, target, rest);
    in_step = (in_step && sampled_ns > 0 && a->lost_records == 0) ||
              is_between_samples(a, target, rest) || bursts;
    if (cpu_ns < sampled_ns || in_step) {
        profile_weigh(p, targets_process_id(a->targets, p, target), sampled_ns, cpu_ns);
    } else {
        profile_account(p, thread, ACCOUNT_LOST, rest);
    }
}

static void close_living(struct accounting *a, struct profile *p, struct target *target)
{
    uint64_t user_ns = beyond(cpu_times_sum(&target->account.last), cpu_times_sum(&target->account.before));
    uint64_t system_ns = beyond(target->account.last.system_ns, target->account.before.system_ns);
    system_ns = system_ns < user_ns ? system_ns : user_ns;
    user_ns -= system_ns;
    uint64_t excluded_user_ns = target->filter.excluded_ns < user_ns ? target->filter.excluded_ns : user_ns;
    if (target->filter.skipped) {
        target->account.before = target->account.last;
        target->account.carried_ns = 0;
        return;
    }
    uint64_t cut_ns = accounting_is_exact(target) ? 0 : a->tick_ns;
    if (!target->ended && target->account.sampled_ns == 0 && user_ns + system_ns <= a->period_ns + cut_ns) {
        target->account.carried_ns = user_ns + system_ns; /* too little to be sampled: for the next window */
        return;
    }
    target->account.before = target->account.last;
    target->account.carried_ns = 0;
    system_ns = beyond(system_ns, target->filter.excluded_ns - excluded_user_ns);
    user_ns -= excluded_user_ns;
    accounting_add_to_process(a, p, target, user_ns + system_ns);
    explain_rest(a, p, target, beyond(user_ns + system_ns, target->account.renamed_ns), system_ns);
}

static void close_ended(struct accounting *a, struct profile *p, struct target *target,
                        uint64_t share_ns)
{
    uint64_t cpu_ns = beyond(accounting_known_ns(target) + share_ns, target->filter.excluded_ns);
    if (target->filter.skipped || cpu_ns == 0) {
        return;
    }
    accounting_add_to_process(a, p, target, cpu_ns);
    cpu_ns = beyond(cpu_ns, target->account.renamed_ns);
    if (target->account.sampled_ns == 0) {
        profile_account(p, targets_thread_id(a->targets, p, target, target->pid), accounting_rest_kind(target), cpu_ns);
        return;
    }
    uint64_t system_ns = beyond(target->account.last.system_ns, target->account.before.system_ns);
    explain_rest(a, p, target, cpu_ns, target->account.read_ns == 0 ? cpu_ns : system_ns + share_ns);
}

/* What is known of it by its samples alone. Where its times were read the counters may have more or less than
 * they, by some per cent of its whole life, as the sampling clock does; that is not time that is missing. */
static uint64_t unread_ns(const struct target *target)
{
    return target->account.read_ns == 0 ? target->account.sampled_ns + target->filter.excluded_ns : 0;
}

static double part_of(uint64_t given_ns, uint64_t own_ns, uint64_t all_ns)
{
    return own_ns == 0 ? 0 : (double)given_ns * (double)own_ns / (double)all_ns;
}

/* Its part of what its tree has for those that ended: for their tails first. */
static uint64_t share_of(const struct accounting *a, const struct tree *tree,
                         const struct target *target)
{
    struct tail tail = accounting_tail(a, target);
    double share_ns = part_of(tree->to_sampled_ns, unread_ns(target), tree->sampled_ns);
    for (unsigned i = 0; i < TAIL_PARTS; i++) {
        share_ns += part_of(tree->to_tails.ns[i], tail.ns[i], tree->tails.ns[i]);
    }
    share_ns += part_of(tree->to_least_ns, tail_sum_ns(&tail), tail_sum_ns(&tree->tails));
    return (uint64_t)share_ns;
}

/* Settles the living; adds up what they and all samples of the ended explain. */
static void close_all_living(struct accounting *a, struct profile *p, struct trees *trees)
{
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        if (accounting_is_polled(target)) {
            continue;
        }
        struct tree *tree = trees_of(trees, target);
        uint64_t earlier_ns = target->account.carried_ns;
        target->account.final_known = !target->account.folded && accounting_update_times(a, target, NULL);
        if (target->account.final_known) {
            uint64_t used_ns = beyond(cpu_times_sum(&target->account.last), cpu_times_sum(&target->account.before));
            trees_explain(tree, target, beyond(used_ns, earlier_ns));
            close_living(a, p, target);
            continue;
        }
        trees_explain(tree, target, beyond(accounting_known_ns(target), earlier_ns));
        tree->sampled_ns += unread_ns(target);
        struct tail tail = accounting_tail(a, target);
        tail_add(&tree->tails, &tail);
    }
}

/* What it and those of its descendants used that were waited for, since it is followed. */
static uint64_t with_waited_ns(const struct accounting *a, const struct target *target)
{
    const struct target_account *account = &target->account;
    uint64_t cut_ns = account->lifetime_ns == 0 ? 0 : WAITED_TICKS * a->tick_ns;
    return beyond(cpu_times_sum(&account->last) + account->last.children_ns, account->lifetime_ns + cut_ns);
}

/* Who ended since, and ran before it was followed: its ancestor's time has that, too. */
static void note_ran_before(struct accounting *a)
{
    vec_each(&a->targets->all, target)
    {
        a->ran_before_ns += (*target)->ended && !accounting_is_polled(*target) ? (*target)->account.lifetime_ns : 0;
    }
}

/* Gives the tree of whose time has most in it what that has beyond all that was accounted so far. The sums are of the
 * whole session: whatever was told earlier, of a zombie perhaps, is in them. */
static void add_waited(struct accounting *a, struct trees *trees, uint64_t counted_ns)
{
    uint64_t most_ns = 0, accounted_ns = trees_accounted_ns(trees, counted_ns);
    const struct target *ancestor = NULL;
    vec_each(&a->targets->all, slot)
    {
        uint64_t all_ns = accounting_is_polled(*slot) ? 0 : with_waited_ns(a, *slot);
        ancestor = all_ns > most_ns ? *slot : ancestor;
        most_ns = all_ns > most_ns ? all_ns : most_ns;
    }
    a->accounted_ns += accounted_ns;
    note_ran_before(a);
    if (ancestor != NULL && a->follows_all && !a->targets->any_on_proc) {
        uint64_t own_before_ns = ancestor->ended ? ancestor->account.lifetime_ns : 0;
        struct tree *tree = trees_of(trees, ancestor);
        uint64_t own_ns = trees_part_ns(trees, tree, accounted_ns);
        tree->least_ns = beyond(most_ns + own_before_ns, a->accounted_ns - own_ns + a->ran_before_ns);
        a->accounted_ns += beyond(tree->least_ns, own_ns);
    }
}

static void close_on_perf(struct accounting *a, struct profile *p, struct perf *perf,
                          uint64_t counted_ns)
{
    struct trees trees;
    if (!trees_begin(&trees, a->targets, &a->followed, perf)) {
        return;
    }
    close_all_living(a, p, &trees);
    add_waited(a, &trees, counted_ns);
    trees_settle(&trees, counted_ns);
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        if (!accounting_is_polled(target) && !target->account.final_known) {
            close_ended(a, p, target, share_of(a, trees_of(&trees, target), target));
        }
    }
    trees_release(&trees);
}

void accounting_close_window(struct accounting *a, struct profile *p, struct perf *perf, uint64_t lost_records)
{
    targets_recall(a->targets);
    map_clear(&a->folded);
    p->meta.lost_records = a->lost_records = lost_records;
    if (perf != NULL) {
        uint64_t now_ns = perf_count_ns(perf);
        close_on_perf(a, p, perf, beyond(now_ns, a->counted_ns));
        a->counted_ns = now_ns;
    }
    accounting_poll_all(a, p, true);
    profile_apply_weights(p);
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        /* it may have lost its events within the window; samples of a runtime are part of what was polled */
        bool lost_events = perf != NULL && target->capture_mode == CAPTURE_PROC;
        uint64_t cpu_ns = target->account.attributed_ns + (lost_events ? target->account.sampled_ns : 0);
        if (accounting_is_polled(target) && !target->filter.skipped && cpu_ns > 0) {
            accounting_add_to_process(a, p, target, cpu_ns);
        }
    }
    a->lost_records = 0; /* none is known of the next window */
}

uint64_t accounting_excess_ns(const struct accounting *a, const struct profile *p, uint64_t there_ns)
{
    uint64_t sum_ns = 0, cut_ns = a->period_ns + 3 * a->tick_ns; /* carried from the window before; and two readings */
    for (size_t i = 1; i < p->processes.len; i++) {
        sum_ns += beyond(p->processes.at[i].cpu_ns, cut_ns);
    }
    return beyond(sum_ns, there_ns + there_ns / 100 * EXCESS_PERCENT);
}
