/* Reads the facts that the filters ask for, and no others, from /proc, and evaluates them for targets and for processes
 * that may become one. A target counts as excluded from a window only if nothing of it is in the window's profile. The
 * second container that a prefix fits is excluded, and reported once. */
#include "capture/follow/selection.h"
#include "base/time.h"
#include "os/clock.h"

#include <stdio.h>

enum {
    TEXT_MAX = 256 * 1024, /* mountinfo of a busy host */
    LINE_MAX_BYTES = 32 * 1024,
    PATH_BYTES = 4096,
    SHOWN_BYTES = 60,
};

static const char *const option_names[FILTER_KIND_COUNT] = {
    [FILTER_MATCH] = "--match", [FILTER_EXE] = "--exe", [FILTER_CONTAINER] = "--container"};

void selection_init(struct selection *c, const struct settings *settings, struct log *log)
{
    uint64_t boot_ns = clock_boot_ns(), mono_ns = clock_mono_ns();
    *c = (struct selection){.settings = settings,
                         .log = log,
                         .filters = filter_any(settings->scope.filters),
                         .ahead_ns = boot_ns > mono_ns ? boot_ns - mono_ns : 0,
                         .tick_ns = proc_tick_ns()};
    c->alone = settings->scope.mode == TARGET_PIDS && !settings->scope.children;
    c->active = c->filters || c->alone || settings->scope.min_duration_ns > 0;
    buf_init(&c->line, LINE_MAX_BYTES);
    buf_init(&c->text, TEXT_MAX);
}

void selection_release(struct selection *c)
{
    buf_release(&c->line);
    buf_release(&c->text);
}

/* ---- facts ---- */

struct facts {
    struct filter_facts filter;
    char exe[PATH_BYTES], container[CONTAINER_ID_MAX];
};

static bool asks(const struct selection *c, enum filter_kind kind)
{
    return c->settings->scope.filters[kind].count > 0;
}

static struct str command_line_of(struct selection *c, uint32_t pid, struct str name)
{
    if (!proc_read(pid, 0, "cmdline", &c->line, NULL)) {
        return name;
    }
    filter_join_arguments(&c->line);
    return c->line.len > 0 ? buf_slice(&c->line) : name;
}

static bool read_container(struct selection *c, uint32_t pid, char out[static CONTAINER_ID_MAX])
{
    return (proc_read(pid, 0, "cgroup", &c->text, NULL) &&
            cgroup_container_id(buf_slice(&c->text), out)) ||
           (proc_read(pid, 0, "mountinfo", &c->text, NULL) &&
            mountinfo_container_id(buf_slice(&c->text), out));
}

static void note_conflict(struct selection *c, const struct pattern *pattern, const char *bound,
                          const char *id)
{
    snprintf(c->conflict, sizeof c->conflict,
             "--container %.*s fits %.12s and %.12s; give more of the id", (int)pattern->text.len,
             pattern->text.ptr, bound, id);
    log_once(c->log, LOG_WARNING, "%s. Only %.12s is profiled", c->conflict, bound);
}

/* The id as the patterns may see it: not when it is the second one of a prefix. */
static struct str bind_container(struct selection *c, const char *id)
{
    const struct pattern_list *list = &c->settings->scope.filters[FILTER_CONTAINER];
    const struct pattern *pattern = filter_container_of(list, str_of(id));
    if (pattern == NULL) {
        return str_of(id);
    }
    char *bound = c->bound[pattern - list->at];
    if (bound[0] == '\0') {
        snprintf(bound, CONTAINER_ID_MAX, "%s", id);
    }
    if (strcmp(bound, id) != 0) {
        note_conflict(c, pattern, bound, id);
        return STR("");
    }
    return str_of(id);
}

static void read_facts(struct selection *c, uint32_t pid, uint32_t parent_pid, struct str name,
                       struct facts *out)
{
    out->filter = (struct filter_facts){0};
    if (asks(c, FILTER_MATCH)) {
        out->filter.command_line = command_line_of(c, pid, name);
    }
    if (asks(c, FILTER_EXE) && proc_link(pid, "exe", out->exe, sizeof out->exe)) {
        out->filter.exe = str_of(out->exe);
    }
    if (asks(c, FILTER_CONTAINER) &&
        (read_container(c, pid, out->container) ||
         (!proc_exists(pid) && read_container(c, parent_pid, out->container)))) {
        out->filter.container = bind_container(c, out->container);
    }
}

static uint64_t of_age_ns(const struct selection *c, uint64_t start_ticks)
{
    uint64_t start_ns = start_ticks * c->tick_ns;
    start_ns = start_ns > c->ahead_ns ? start_ns - c->ahead_ns : 0;
    return c->settings->scope.min_duration_ns == 0 ? 0 : start_ns + c->settings->scope.min_duration_ns;
}

/* ---- decisions ---- */

bool selection_accepts(struct selection *c, const struct proc_stat *stat, struct scan_known *known)
{
    struct facts facts;
    if (!c->active) {
        return true;
    }
    uint64_t age_ns = of_age_ns(c, stat->start_ticks);
    if (clock_mono_ns() < age_ns) {
        known->again_ns = age_ns;
        known->excluded = true;
        known->checks = 0;
        return false;
    }
    read_facts(c, stat->pid, stat->ppid, stat->comm, &facts);
    known->excluded = !filter_fits(c->settings->scope.filters, &facts.filter);
    return !known->excluded;
}

/* Nothing of it is in the profile yet: a child that was in as long as it was its parent's copy is one. */
static bool is_unseen(const struct target *target)
{
    return target->account.sampled_ns == 0 && target->account.attributed_ns == 0;
}

static void note_result(struct target *target, uint64_t now_ns)
{
    if (!targets_is_excluded(target, now_ns)) {
        target->filter.skipped = false;
    } else if (is_unseen(target)) {
        target->filter.skipped = true;
    }
}

static void apply_facts(struct selection *c, struct target *target, const struct filter_facts *facts,
                     uint64_t now_ns)
{
    target->filter.evaluated = true;
    target->filter.excluded = c->alone || (c->filters && !filter_fits(c->settings->scope.filters, facts));
    note_result(target, now_ns);
}

void selection_evaluate(struct selection *c, struct target *target, uint64_t now_ns)
{
    struct facts facts;
    if (!c->active) {
        return;
    }
    if (!target->filter.evaluated && target->filter.of_age_ns == 0) {
        target->filter.of_age_ns = of_age_ns(c, target->start_ticks);
    }
    read_facts(c, target->pid, target->parent_pid, str_of(target->name), &facts);
    target->filter.exe_unknown = asks(c, FILTER_EXE) && facts.filter.exe.len == 0;
    apply_facts(c, target, &facts.filter, now_ns);
}

void selection_evaluate_path(struct selection *c, struct target *target, struct str path,
                          uint64_t now_ns)
{
    struct facts facts;
    read_facts(c, target->pid, target->parent_pid, str_of(target->name), &facts);
    target->filter.exe_unknown = false;
    facts.filter.exe = facts.filter.exe.len > 0 ? facts.filter.exe : path;
    apply_facts(c, target, &facts.filter, now_ns);
}

/* ---- windows ---- */

/* How old a process became whose end no record has is not known: too young, or it would have been selected. */
static bool is_in_now(const struct target *target, uint64_t now_ns)
{
    if (target->ended && target->ended_ns == 0) {
        return false;
    }
    return !targets_is_excluded(target, target->ended_ns != 0 ? target->ended_ns : now_ns);
}

void selection_close_window(struct targets *targets, uint64_t now_ns)
{
    vec_each(&targets->all, slot)
    {
        struct target *target = *slot;
        target->filter.skipped = target->filter.skipped && !is_in_now(target, now_ns);
    }
}

void selection_begin_window(struct targets *targets, uint64_t now_ns)
{
    vec_each(&targets->all, slot)
    {
        struct target *target = *slot;
        target->filter.skipped = targets_is_excluded(target, now_ns);
    }
}

uint64_t selection_excluded(const struct targets *targets)
{
    uint64_t count = 0;
    for (size_t i = 0; i < targets->all.len; i++) {
        count += targets->all.at[i]->filter.skipped;
    }
    return count;
}

/* ---- for people ---- */

void selection_describe(struct selection *c, uint32_t pid, struct buf *out)
{
    struct facts facts;
    char id[CONTAINER_ID_MAX];
    struct str line = command_line_of(c, pid, STR("?"));
    buf_printf(out, "%u ", pid);
    buf_str(out, str_sub(line, 0, SHOWN_BYTES));
    buf_text(out, line.len > SHOWN_BYTES ? "..." : "");
    if (asks(c, FILTER_EXE)) {
        bool known = proc_link(pid, "exe", facts.exe, sizeof facts.exe);
        buf_printf(out, " (%s)", known ? facts.exe : "executable not readable");
    }
    if (asks(c, FILTER_CONTAINER)) {
        bool known = read_container(c, pid, id);
        buf_printf(out, known ? " [%.12s]" : " [%s]", known ? id : "no container");
    }
}

void selection_describe_filters(const struct selection *c, struct buf *out)
{
    const char *separator = "";
    for (unsigned kind = 0; kind < FILTER_KIND_COUNT; kind++) {
        const struct pattern_list *list = &c->settings->scope.filters[kind];
        for (size_t i = 0; i < list->count; i++) {
            buf_printf(out, "%s%s %s%.*s", separator, option_names[kind],
                       list->at[i].excludes ? "!" : "", (int)list->at[i].text.len,
                       list->at[i].text.ptr);
            separator = " ";
        }
    }
    if (c->settings->scope.min_duration_ns > 0) {
        buf_printf(out, "%s--min-duration %gs", separator,
                   (double)c->settings->scope.min_duration_ns / (double)NS_PER_S);
    }
}
