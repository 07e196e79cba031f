/* Finds new processes (scan.h). Each round either asks for the few ids given out since the last one, or lists /proc;
 * it then asks the caller about each process until the answer is final. A pid stands for one process only as long as
 * its start time is the same: a target whose pid has a new owner is marked here as ended. */
#include "capture/follow/scan.h"
#include "base/time.h"
#include "target/status.h"


enum {
    TEXT_MAX = 8 * 1024,
    DOUBLINGS_MAX = 10,
    IDS_PER_NEW_ID = 8, /* one id asked for costs as much as so many listed */
    NEW_IDS_AGAIN = 2,
    TARGETS_SHARE = 32, /* of the targets are checked per list where the last id is not known */
};

void scan_init(struct scan *s, struct targets *targets)
{
    *s = (struct scan){.targets = targets};
    buf_init(&s->text, TEXT_MAX);
    buf_init(&s->status, TEXT_MAX);
}

void scan_release(struct scan *s)
{
    vec_release(&s->known);
    vec_release(&s->pids.ids);
    map_release(&s->by_pid);
    buf_release(&s->text);
    buf_release(&s->status);
}

bool scan_is_new(uint32_t before, uint32_t last, uint32_t pid)
{
    if (before == 0 || last == 0 || before == last) {
        return false;
    }
    return before < last ? pid > before && pid <= last : pid > before || pid <= last;
}

static struct scan_known *find_known(const struct scan *s, uint32_t pid)
{
    struct map_slot *slot = map_find(&s->by_pid, pid);
    return slot == NULL ? NULL : &s->known.at[slot->value];
}

static struct scan_known *add_known(struct scan *s, uint32_t pid)
{
    struct scan_known *known = vec_push(&s->known);
    if (known == NULL || !map_put(&s->by_pid, pid, s->known.len - 1)) {
        s->known.len -= known != NULL;
        return NULL;
    }
    known->pid = pid;
    return known;
}

static void drop_known(struct scan *s, size_t index)
{
    s->ended_excluded += s->known.at[index].excluded;
    map_remove(&s->by_pid, map_find(&s->by_pid, s->known.at[index].pid));
    vec_swap_out(&s->known, index);
    if (index < s->known.len) {
        map_find(&s->by_pid, s->known.at[index].pid)->value = index;
    }
}

static uint64_t pause_ns(uint32_t checks)
{
    uint32_t doublings = checks < DOUBLINGS_MAX ? checks : DOUBLINGS_MAX;
    uint64_t ms = (uint64_t)SCAN_FIRST_MS << doublings;
    return (ms < SCAN_MOST_MS ? ms : SCAN_MOST_MS) * NS_PER_MS;
}

/* A target of this pid that began at another moment has ended, and perhaps no record came. False: the target is the
 * process itself, which may have ended and wait for its parent. */
static bool end_other_owner(struct scan *s, const struct proc_stat *stat)
{
    struct target *target = targets_find(s->targets, stat->pid);
    if (target == NULL) {
        return true;
    }
    bool known = target->start_ticks != 0;
    bool same = known ? target->start_ticks == stat->start_ticks
                      : !target->ended || stat_has_ended(stat);
    target->ended = target->ended || !same;
    return !same;
}

/* One that was taken stays remembered: a target is dropped when it has ended, while its parent may not have waited
 * for it yet. */
static void ask_about(struct scan_known *one, const struct proc_stat *stat, scan_ask *ask,
                      void *context)
{
    enum scan_answer answer =
        stat_is_kernel_thread(stat) ? SCAN_NEVER : ask(context, stat, one);
    one->checks++;
    one->settled = answer != SCAN_LATER;
    one->stranger = answer == SCAN_STRANGER;
    one->excluded = one->excluded && answer != SCAN_TAKEN; /* as a target it is counted there */
}

/* Its parent was a stranger already in the round before. What is remembered of an id that was given out since may be of
 * its last owner. */
static bool is_strangers(const struct scan *s, const struct proc_stat *stat)
{
    const struct scan_known *parent = find_known(s, stat->ppid);
    return parent != NULL && parent->stranger && s->last_id != 0 &&
           !scan_is_new(s->before_id, s->last_id, stat->ppid) && targets_find(s->targets, stat->ppid) == NULL;
}

/* /proc/TID exists for every thread, though only processes are listed. */
static bool is_process(struct scan *s, uint32_t id)
{
    struct proc_status status;
    return proc_read(id, 0, "status", &s->status, NULL) &&
           status_parse(buf_slice(&s->status), &status, NULL) && status.tgid == id;
}

/* Reads who that is, and asks about it. `listed`: it is a process for sure. */
static void check(struct scan *s, uint32_t pid, bool listed, uint64_t now_ns, scan_ask *ask, void *context)
{
    struct proc_stat stat;
    s->checks++;
    if (!proc_read(pid, 0, "stat", &s->text, NULL) ||
        !stat_parse(buf_slice(&s->text), &stat, NULL)) {
        return;
    }
    bool strangers = is_strangers(s, &stat);
    if (!end_other_owner(s, &stat) || (!strangers && !listed && !is_process(s, pid))) {
        return; /* it is a target already, or a thread */
    }
    struct scan_known *known = find_known(s, pid);
    struct scan_known one = known == NULL ? (struct scan_known){.pid = pid} : *known;
    if (one.start_ticks != stat.start_ticks) { /* the pid's next owner, or new here */
        s->ended_excluded += one.excluded;
        one = (struct scan_known){.pid = pid, .start_ticks = stat.start_ticks};
    }
    one.round = s->round;
    one.again_ns = now_ns + pause_ns(one.checks);
    if (!one.settled && strangers) {
        one.settled = one.stranger = true;
    } else if (!one.settled) {
        ask_about(&one, &stat, ask, context);
    }
    if (one.settled) {
        one.again_ns = s->last_id == 0 ? now_ns + pause_ns(DOUBLINGS_MAX) : 0;
    }
    known = find_known(s, pid);
    known = known != NULL ? known : add_known(s, pid);
    if (known != NULL) {
        *known = one;
    }
}

static bool is_due(const struct scan_known *known, uint64_t now_ns)
{
    return known->again_ns != 0 && now_ns >= known->again_ns;
}

static void check_listed(struct scan *s, uint32_t before, uint64_t now_ns, scan_ask *ask,
                           void *context)
{
    uint32_t own = proc_own_pid();
    s->round++;
    for (size_t i = 0; i < s->pids.ids.len; i++) {
        uint32_t pid = s->pids.ids.at[i];
        bool is_new = scan_is_new(before, s->last_id, pid);
        bool is_known = targets_find(s->targets, pid) != NULL &&
                        (s->last_id != 0 || (pid + s->round) % TARGETS_SHARE != 0);
        struct scan_known *known = find_known(s, pid);
        if (known != NULL) {
            known->round = s->round;
        }
        if (pid == own || (is_known && !is_new)) {
            continue;
        }
        if (known == NULL || is_due(known, now_ns) || is_new) {
            check(s, pid, true, now_ns, ask, context);
        }
    }
    for (size_t i = s->known.len; i-- > 0;) {
        if (s->known.at[i].round != s->round) {
            drop_known(s, i);
        }
    }
}

static void check_due(struct scan *s, uint64_t now_ns, scan_ask *ask, void *context)
{
    for (size_t i = s->known.len; i-- > 0;) { /* one that is taken goes, and the last comes in its place */
        uint32_t pid = s->known.at[i].pid;
        if (is_due(&s->known.at[i], now_ns) && targets_find(s->targets, pid) == NULL) {
            check(s, pid, true, now_ns, ask, context);
        }
    }
}

/* So few ids were given out since that asking for each is cheaper than a list. The last ones before are asked for
 * once more: they may not have stood in /proc yet. */
static bool are_few_new(const struct scan *s, uint32_t last_id, uint64_t now_ns)
{
    return s->list_ns != 0 && now_ns < s->list_ns + SCAN_IDLE_MS * NS_PER_MS && last_id != 0 &&
           s->last_id > NEW_IDS_AGAIN && last_id >= s->last_id &&
           (last_id - s->last_id) * IDS_PER_NEW_ID <= s->pids.ids.len;
}

static void check_new_ids(struct scan *s, uint32_t last_id, uint64_t now_ns, scan_ask *ask,
                            void *context)
{
    uint32_t from = s->last_id, own = proc_own_pid();
    s->last_id = last_id;
    for (uint32_t id = from - NEW_IDS_AGAIN + 1; from != last_id && id <= last_id; id++) {
        if (id != own && (id > from || find_known(s, id) == NULL)) {
            check(s, id, false, now_ns, ask, context);
        }
    }
}

/* The last id is asked for before the list is made: what begins in between is new to the next round, too. */
void scan_round(struct scan *s, uint64_t now_ns, scan_ask *ask, void *context)
{
    uint32_t before = s->last_id, last_id = proc_last_id();
    s->before_id = before;
    if (are_few_new(s, last_id, now_ns)) {
        check_new_ids(s, last_id, now_ns, ask, context);
        check_due(s, now_ns, ask, context);
    } else if (proc_list_processes(&s->pids, NULL)) {
        s->last_id = last_id;
        s->list_ns = now_ns;
        check_listed(s, before, now_ns, ask, context);
    }
}

void scan_note_taken(struct scan *s, uint32_t pid, uint64_t start_ticks)
{
    struct scan_known *known = find_known(s, pid);
    known = known != NULL ? known : add_known(s, pid);
    if (known != NULL) {
        *known = (struct scan_known){.pid = pid, .round = s->round, .settled = true, .start_ticks = start_ticks,
                                     .again_ns = s->last_id == 0}; /* where a new owner is not told: at once */
    }
}

uint64_t scan_excluded(const struct scan *s)
{
    uint64_t count = s->ended_excluded;
    vec_each(&s->known, known)
    {
        count += known->excluded;
    }
    return count;
}

void scan_end_window(struct scan *s)
{
    s->ended_excluded = 0;
}
