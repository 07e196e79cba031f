/* accounting_children: what a target's times of waited-for children hold, without perf. Of each child that was seen and
 * ended it is known what was told of it; what its parent's times have beyond is the ends of those, and children that
 * nobody saw. */
#include "capture/account/accounting_private.h"
#include "os/clock.h"
#include "target/stat.h"

enum {
    GENERATIONS_MAX = 64,
    ZOMBIES_MAX = 1024, /* each asked when its parent is read, 0.3 us, 10 where others' clocks are not told */
    CUT_TICKS = 2, /* that the times of waited-for children lack, at most: user and system time are cut to whole ones */
};

/* Whose times hold an ended process's: its parent's, or those of that one's parent. */
static struct target *heir_of(struct accounting *a, const struct target *target)
{
    struct target *heir = targets_find(a->targets, target->parent_pid);
    for (unsigned i = 0; heir != NULL && heir->ended && !heir->account.ends && i < GENERATIONS_MAX; i++) {
        heir = targets_find(a->targets, heir->parent_pid);
    }
    return heir;
}

static uint64_t seen_children_ns(const struct target_account *account)
{
    const struct target_children *children = &account->children;
    return children->gone_before_ns + children->gone_ns + children->zombies_ns + children->on_perf_ns +
           children->cut_ns;
}

/* Returns how much of it they are. */
static uint64_t settle_tails(struct target_children *children, struct profile *p, uint64_t rest_ns)
{
    uint64_t most_ns = 0, told_ns = 0;
    for (uint32_t i = 0; i < children->tail_count; i++) {
        most_ns += children->tails[i].most_ns;
    }
    double part = rest_ns < most_ns ? (double)rest_ns / (double)most_ns : 1;
    for (uint32_t i = 0; i < children->tail_count; i++) {
        struct target_tail *tail = &children->tails[i];
        uint64_t end_ns = (uint64_t)(part * (double)tail->most_ns);
        profile_account(p, tail->row, ACCOUNT_NATIVE_NO_PERF, end_ns);
        p->processes.at[p->threads.at[tail->row].process].cpu_ns += end_ns;
        tail->most_ns -= end_ns;
        told_ns += end_ns;
    }
    return told_ns;
}

/* Children that ended: their parent has their times once it waited for them, and then a second time what was attributed
 * to those that were seen. What it has beyond are the ends that nobody could read any more, of each for as long as it
 * can have lived since; and, beyond that, children that nobody saw: they came and went
 * between two looks, as with perf between two samples. */
void accounting_settle_children(struct accounting *a, struct profile *p, struct target *target)
{
    struct target_account *account = &target->account;
    uint64_t rest_ns = account->children.waited_ns;
    rest_ns -= take(&account->children.gone_before_ns, rest_ns);
    rest_ns -= take(&account->children.gone_ns, rest_ns);
    rest_ns -= take(&account->children.on_perf_ns, rest_ns);
    rest_ns -= take(&account->children.cut_ns, rest_ns);
    account->children.waited_ns = 0;
    account->children.cut_ns += account->children.gone_before_ns;
    if (account->children.cut_ns > CUT_TICKS * a->tick_ns) {
        account->children.cut_ns = CUT_TICKS * a->tick_ns;
    }
    account->children.gone_before_ns = account->children.gone_ns;
    account->children.gone_ns = 0;
    if (rest_ns > 0 && account->children.window == a->targets->window) {
        rest_ns -= settle_tails(&account->children, p, rest_ns);
    }
    bool selected = a->selection == NULL || !a->selection->active;
    if (rest_ns > 0 && selected && !targets_is_excluded(target, a->now_ns)) {
        profile_account(p, targets_thread_id(a->targets, p, target, target->pid), ACCOUNT_LOST, rest_ns);
        account->attributed_ns += rest_ns;
    }
}

static void add_tail(const struct accounting *a, struct target_children *children, uint32_t row, uint64_t most_ns)
{
    children->tail_count = children->window == a->targets->window ? children->tail_count : 0;
    children->window = a->targets->window;
    bool grows = children->tail_count < TARGET_TAILS;
    children->tail_count += grows;
    struct target_tail *tail = &children->tails[children->tail_count - 1];
    *tail = (struct target_tail){row, most_ns + (grows ? 0 : tail->most_ns)};
}

static bool note_zombie(struct accounting *a, struct target *heir, uint32_t pid, uint64_t used_ns)
{
    struct zombie *zombie = a->zombies.len < ZOMBIES_MAX ? vec_push(&a->zombies) : NULL;
    if (zombie != NULL) {
        *zombie = (struct zombie){pid, heir->pid, heir->start_ticks, used_ns, 0, false};
        zombie->clocked = clock_process_cpu_ns(pid, &zombie->clock_ns);
        heir->account.children.zombies_ns += used_ns;
    }
    return zombie != NULL;
}

void accounting_adopt_zombie(struct accounting *a, const struct target *target)
{
    struct target *heir = heir_of(a, target);
    if (heir != NULL) {
        (void)note_zombie(a, heir, target->pid, target->account.lifetime_ns);
    }
}

/* Its parent has ended without waiting: another waits for it now. */
static void note_orphan(struct accounting *a, const struct zombie *zombie)
{
    struct proc_stat stat;
    struct target *heir = accounting_read_stat(a, zombie->pid, 0, &stat) ? targets_find(a->targets, stat.ppid) : NULL;
    if (heir != NULL && !heir->ended && accounting_is_polled(heir)) {
        (void)note_zombie(a, heir, zombie->pid, zombie->used_ns);
    }
}

/* Its clock stands still; an id's next owner has another. Where others' clocks are not told /proc says it, which is
 * dearer. */
static bool is_zombie(struct accounting *a, const struct zombie *zombie)
{
    uint64_t own_ns;
    struct proc_stat stat;
    if (!zombie->clocked) {
        return accounting_read_stat(a, zombie->pid, 0, &stat) && stat_has_ended(&stat);
    }
    return clock_process_cpu_ns(zombie->pid, &own_ns) && own_ns + a->tick_ns > zombie->clock_ns &&
           own_ns < zombie->clock_ns + a->tick_ns;
}

/* After all parents were read, and before they are settled: what is no zombie any more was waited for, so its time is
 * among its parent's. Others' is in it although a parent never waits for some. */
void accounting_bury_zombies(struct accounting *a)
{
    for (size_t i = a->zombies.len; i-- > 0;) {
        struct zombie zombie = a->zombies.at[i];
        struct target *heir = targets_find(a->targets, zombie.heir);
        bool is_due = heir != NULL && (!heir->ended || heir->account.ends) && heir->start_ticks == zombie.heir_ticks;
        bool goes_on = is_due && !heir->ended, is_read = goes_on && heir->account.read_ns == a->now_ns;
        bool is_there = (goes_on && !is_read) || is_zombie(a, &zombie); /* times that are not read have nobody's */
        if (is_there && goes_on) {
            continue;
        }
        vec_swap_out(&a->zombies, i);
        if (is_due) {
            heir->account.children.zombies_ns -= zombie.used_ns;
            heir->account.children.gone_ns += is_there ? 0 : zombie.used_ns;
        }
        if (is_there) {
            note_orphan(a, &zombie);
        }
    }
}

/* What its parent's times will hold of it was attributed by now; the last part of its life perhaps not. */
static void leave_to_heir(struct accounting *a, struct profile *p, struct target *target)
{
    struct target *heir = heir_of(a, target);
    if (heir == NULL) {
        return;
    }
    heir->account.idle_polls = 0; /* a shell that hardly ran has waited for it, and may end before it would be read */
    if (!targets_is_excluded(target, a->now_ns)) { /* its clock may hide that it ran: a hypervisor took that away */
        heir->account.clock_ns = 0;
    }
    /* a zombie's times hold the children it waited for; of one that is gone all are supposed to be */
    uint64_t children_ns = target->account.final_known ? 0 : seen_children_ns(&target->account);
    if (!target->account.final_known || !note_zombie(a, heir, target->pid, target->account.lifetime_ns)) {
        heir->account.children.gone_ns += target->account.lifetime_ns + children_ns;
    }
    uint32_t row = target->account.unread_ns == 0 || targets_is_excluded(target, a->now_ns)
                       ? 0 : targets_thread_id(a->targets, p, target, target->pid);
    if (row != 0) {
        add_tail(a, &heir->account.children, row, target->account.unread_ns * accounting_threads(target));
    }
}

/* The younger ones first: they may be children of the others, and are later in the list, until ids begin again from the
 * lowest. */
void accounting_leave_all_ended(struct accounting *a, struct profile *p)
{
    vec_clear(&a->ending);
    for (size_t i = a->targets->all.len; i-- > 0;) {
        struct target *target = a->targets->all.at[i], **last = target->account.ends ? vec_push(&a->ending) : NULL;
        if (last != NULL) {
            for (; last > a->ending.at && last[-1]->start_ticks < target->start_ticks; last--) {
                *last = last[-1];
            }
            *last = target;
        }
    }
    vec_each(&a->ending, target)
    {
        (*target)->account.ends = false;
        leave_to_heir(a, p, *target);
    }
}

/* A child on perf of one that is polled: its own samples tell of it, its parent's times do not. What is held against
 * them may be too much by what it cannot have used unseen, which is little, rather than too little. */
static void leave_on_perf(struct accounting *a, struct target *target, bool ask)
{
    struct target_account *account = &target->account;
    uint64_t cpu_ns;
    bool gone = target->ended || (ask && !clock_process_cpu_ns(target->pid, &cpu_ns));
    struct target *heir = !gone || account->left || accounting_is_polled(target) ? NULL : heir_of(a, target);
    if (heir != NULL) {
        uint64_t read_ns = cpu_times_sum(&account->last) + account->since_read_ns;
        read_ns += accounting_threads(target) * a->period_ns + 2 * a->tick_ns;
        account->left = true;
        heir->account.children.on_perf_ns += read_ns + seen_children_ns(account); /* it may be waited for much later */
    }
}

/* The younger ones first: they may be children of the others. */
void accounting_leave_all_on_perf(struct accounting *a, bool ask)
{
    for (size_t i = a->targets->all.len; i-- > 0;) {
        leave_on_perf(a, a->targets->all.at[i], ask);
    }
    for (size_t i = a->targets->aside.len; i-- > 0;) {
        leave_on_perf(a, a->targets->aside.at[i], ask);
    }
}
