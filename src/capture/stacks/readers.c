/* Readers: the runtimes of each followed process, attached to when its mappings change or a pause is over, listed by
 * process, published as the catchers' table, and dropped when their process ends. The sampler alone works here;
 * nothing that catchers were given is freed before readers_sweep. */
#include "capture/stacks/readers_private.h"
#include "base/time.h"
#include "capture/follow/follow.h"
#include "os/access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TEXT_MAX = 32 << 20,
    RETRY_LEAST_MS = 20,     /* a runtime that is starting is tried again after this, later after … */
    RETRY_SHARE = 4,         /* … this part of the time since the first attempt, */
    RETRY_STARTING_MS = 10000, /* so long, */
    RETRY_MS = 30000,  /* and then, like one that refuses, every half minute */
    AGAIN_MS = 500,      /* who may not be stopped */
    ENDED_KEPT_MS = 1000,
};

void readers_init(struct readers *r, const struct settings *settings, struct targets *targets,
                  struct log *log)
{
    *r = (struct readers){
        .settings = settings,
        .runtimes = runtimes,
        .targets = targets,
        .images = targets->images,
        .log = log,
        .next_refresh_ns = UINT64_MAX,
    };
    buf_init(&r->text, TEXT_MAX);
    targets->namer = (struct thread_namer){readers_name_thread, r};
}

void readers_sweep(struct readers *r)
{
    vec_each(&r->ended, reader)
    {
        readers_free(*reader);
    }
    vec_clear(&r->ended);
    vec_each(&r->old_tids, tids)
    {
        vec_release(&tids->list);
    }
    vec_clear(&r->old_tids);
}

void readers_release(struct readers *r)
{
    readers_sweep(r);
    vec_each(&r->all, reader)
    {
        readers_free(*reader);
    }
    vec_each(&r->binaries, binary)
    {
        readers_forget_binary(binary);
    }
    vec_each(&r->orphans, binary)
    {
        readers_forget_binary(binary);
    }
    r->targets->namer = (struct thread_namer){0};
    vec_release(&r->refusals);
    vec_release(&r->orphans);
    vec_release(&r->all);
    vec_release(&r->ended);
    vec_release(&r->old_tids);
    vec_release(&r->binaries);
    vec_release(&r->table);
    vec_release(&r->maps);
    vec_release(&r->tids);
    vec_release(&r->unnamed);
    vec_release(&r->found);
    buf_release(&r->text);
}

/* ---- one process ---- */

static bool still_mapped(const struct reader *reader, const struct target *target)
{
    vec_each(&target->maps, mapping)
    {
        if (mapping->image == reader->image && mapping->bias == reader->bias) {
            return true;
        }
    }
    return reader->runtime == NULL && (target->runtime.deep || target->runtime.stops);
}

/* Takes it out of its process's list; the process goes on as one without a runtime when it was the last. */
static void unlink_reader(struct reader *reader)
{
    struct target *target = reader->target;
    struct reader **link = &target->runtime.reader;
    while (*link != reader) {
        link = &(*link)->next;
    }
    *link = reader->next;
    if (target->runtime.reader == NULL && target->capture_mode == CAPTURE_RUNTIME && !target->ended) {
        target->capture_mode = CAPTURE_PROC;
        target->runtime.caught = false;
    }
    reader->target = NULL;
    reader->next = NULL;
}

static void drop_reader(struct readers *r, struct reader *reader)
{
    for (size_t i = 0; i < r->all.len; i++) {
        if (r->all.at[i] == reader) {
            vec_swap_out(&r->all, i);
            break;
        }
    }
    struct reader **place = vec_push(&r->ended);
    unlink_reader(reader);
    if (place != NULL) { /* else it is lost: catchers may still use it */
        *place = reader;
    }
}

static struct reader_refusal *refusal_of(struct readers *r, uint32_t pid)
{
    vec_each(&r->refusals, refusal)
    {
        if (refusal->pid == pid) {
            return refusal;
        }
    }
    return NULL;
}

static void note_refusal(struct readers *r, const struct target *target, const char *why)
{
    struct reader_refusal *refusal = refusal_of(r, target->pid);
    if (refusal == NULL && r->refusals.len < READERS_REFUSALS_MAX) {
        refusal = vec_push(&r->refusals);
    }
    if (refusal != NULL) {
        refusal->pid = target->pid;
        refusal->start_ticks = target->start_ticks;
        snprintf(refusal->why, sizeof refusal->why, "%s", why);
    }
}

/* False when it is over: the process, the program that it runs, or the refusal. */
static bool is_refused(struct readers *r, struct profile *p, const struct reader_refusal *refusal)
{
    const struct target *target = targets_find(r->targets, refusal->pid);
    if (target == NULL || target->start_ticks != refusal->start_ticks ||
        target->runtime.again_ns == 0 || target->runtime.space != target->space) {
        return false;
    }
    bool named = images_has_names(r->images, target->generated); /* what compiles them writes a perf map or jitdump */
    if (target->window == r->targets->window && target->process != 0 && !named) {
        p->processes.at[target->process].remedy = profile_cstring(p, refusal->why);
    }
    return !target->ended;
}

static void note_refusals(struct readers *r, struct profile *p)
{
    for (size_t i = r->refusals.len; i-- > 0;) {
        if (!is_refused(r, p, &r->refusals.at[i])) {
            vec_swap_out(&r->refusals, i);
        }
    }
}

static bool keep_reader(struct readers *r, struct reader *reader)
{
    struct reader **place = vec_push(&r->all);
    if (place == NULL) {
        readers_free(reader);
        return false;
    }
    *place = reader;
    struct reader **link = &reader->target->runtime.reader;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = reader;
    reader->as_user = r->stops && !access_holds(CAP_SYS_PTRACE) && identity_of(reader->pid, &reader->identity);
    if (reader->runtime != NULL) {
        reader->target->runtime.since_ns = 0;
        reader->target->runtime.again_ns = 0;
    }
    return true;
}

static void report_refused(struct readers *r, struct target *target, const struct runtime *runtime,
                        const struct err *why)
{
    char text[2 * ERR_TEXT_MAX];
    snprintf(text, sizeof text, "%s: the %s stacks of pid %u cannot be read: %s", target->name,
             runtime->name, target->pid, why->text);
    log_once_for(r->log, LOG_WARNING, why->text, "%s", text);
    note_refusal(r, target, why->text);
    if (r->unseen != NULL) {
        unseen_note_process(r->unseen, target->pid, text);
    }
}

/* What a failed attempt means for the next one. */
static void retry_later(struct readers *r, struct target *target, const struct runtime *runtime,
                       const struct err *why, uint64_t now_ns)
{
    r->refused = *why;
    r->refuser = runtime;
    /* what is no verdict on the version may be different in a moment: a program that is being started */
    bool passing = why->number == EAGAIN || why->kind != ERR_UNSUPPORTED;
    target->runtime.since_ns = target->runtime.since_ns != 0 ? target->runtime.since_ns : now_ns;
    uint64_t since_ns = now_ns - target->runtime.since_ns, wait_ns = RETRY_LEAST_MS * NS_PER_MS;
    bool starting = passing && since_ns < RETRY_STARTING_MS * NS_PER_MS;
    wait_ns = since_ns / RETRY_SHARE > wait_ns ? since_ns / RETRY_SHARE : wait_ns;
    target->runtime.again_ns = now_ns + (starting ? wait_ns : RETRY_MS * NS_PER_MS);
    log_say(r->log, LOG_DEBUG, "pid %u (%s): not yet: %s", target->pid, target->name, why->text);
    bool is_first = target->runtime.since_ns == now_ns; /* what becomes another program just now refuses for a moment */
    if ((why->kind == ERR_DENIED && !is_first) || (!starting && why->kind != ERR_GONE)) {
        report_refused(r, target, runtime, why);
    }
}

void readers_tell_unstoppable(struct readers *r, const struct target *target, const char *key, const char *why)
{
    char said[2 * ERR_TEXT_MAX];
    snprintf(said, sizeof said, "pid %u (%s) may not be stopped: %s", target->pid, target->name, why);
    log_once_for(r->log, LOG_WARNING, key, "%s. Its native code counts without stacks", said);
    if (r->unseen != NULL) {
        unseen_note_process(r->unseen, target->pid, said);
    }
}

/* What may have its mappings read, by Yama's leave or CAP_PERFMON, need not let itself be stopped. */
static void note_unstoppable(struct readers *r, struct target *target, uint64_t now_ns)
{
    bool is_first = target->runtime.since_ns == 0 || target->runtime.since_ns == now_ns;
    target->runtime.since_ns = is_first ? now_ns : target->runtime.since_ns;
    target->runtime.again_ns = now_ns + (is_first ? AGAIN_MS : RETRY_MS) * NS_PER_MS;
    if (is_first) { /* what becomes another program just now refuses for a moment */
        return;
    }
    char why[ACCESS_TEXT_MAX];
    access_refusal(target->pid, ACCESS_CALL, why);
    readers_tell_unstoppable(r, target, why, why);
}

/* Without a runtime: only its native stacks are read. */
static bool add_native(struct readers *r, struct target *target, uint64_t now_ns)
{
    struct err why = {0};
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL || !readers_open_memory(reader, target->pid, target->maps.at[0].start, &why)) {
        if (why.kind == ERR_DENIED && target->runtime.stops) {
            note_unstoppable(r, target, now_ns);
        }
        free(reader);
        return false;
    }
    reader->target = target;
    reader->serial = ++r->serials;
    reader->program = target->program;
    return keep_reader(r, reader);
}

/* It may be read for its deep stacks alone. */
static bool has_runtime(const struct target *target)
{
    return target->runtime.reader != NULL && target->runtime.reader->runtime != NULL;
}

static struct reader *reader_at(const struct target *target, const struct mapping *mapping)
{
    struct reader *reader = target->runtime.reader;
    while (reader != NULL && (reader->image != mapping->image || reader->bias != mapping->bias)) {
        reader = reader->next;
    }
    return reader;
}

static size_t reader_count(const struct target *target)
{
    size_t count = 0;
    for (const struct reader *reader = target->runtime.reader; reader != NULL; reader = reader->next) {
        count += reader->runtime != NULL;
    }
    return count;
}

static bool drop_stale(struct readers *r, struct target *target)
{
    bool changed = false;
    for (struct reader *reader = target->runtime.reader, *next; reader != NULL; reader = next) {
        next = reader->next;
        if (reader->is_suspect || reader->program != target->program || !still_mapped(reader, target) ||
            !readers_is_of_use(reader->runtime, reader->binary, target)) {
            drop_reader(r, reader);
            changed = true;
        }
    }
    return changed;
}

/* A runtime of a mapping that has no reader yet. False: it could not be attached to. */
static bool add_reader(struct readers *r, struct target *target, const struct mapping *mapping,
                       const struct readers_binary *binary, uint64_t now_ns, bool *changed)
{
    struct err why = {0};
    struct reader *reader = readers_attach(r, target, mapping, binary, &why);
    if (reader == NULL) {
        if (!has_runtime(target)) {
            retry_later(r, target, binary->runtime, &why, now_ns);
        }
        return false;
    }
    log_say(r->log, LOG_DEBUG, "pid %u (%s): its %s stacks are read from now on", target->pid, target->name,
            binary->runtime->name);
    if (target->runtime.reader != NULL && target->runtime.reader->runtime == NULL) {
        drop_reader(r, target->runtime.reader);
    }
    *changed = keep_reader(r, reader) || *changed;
    return true;
}

/* Another one of its runtimes cannot be attached to yet: a JVM that may start an embedded interpreter later. */
static void retry_others(struct target *target, uint64_t now_ns)
{
    if (has_runtime(target)) {
        target->runtime.again_ns = now_ns + RETRY_MS * NS_PER_MS;
    }
}

/* Nobody reads this runtime, or not this version, or not in this way; the process is asked again, for it may go on as
 * another program. */
static void note_unread(struct readers *r, struct target *target, const struct readers_binary *binary, uint64_t now_ns)
{
    if (has_runtime(target) || (binary->why == NULL && binary->runtime == NULL)) {
        return;
    }
    bool has_no_stacks = binary->runtime != NULL && (binary->runtime->attach == NULL || binary->runtime->only_labels);
    if (target->runtime.collects != NULL || has_no_stacks) {
        return; /* it tells why where it cannot; nor is one of files read by process */
    }
    r->refuser = binary->runtime != NULL ? binary->runtime : binary->unread;
    if (binary->runtime != NULL) {
        const struct runtime_collect *collect = binary->runtime->collect;
        bool asks = collect != NULL && collect->opt_in != NULL;
        const char *stops = r->stops_useless ? "" : asks ? ", with --brief-stops" : ", or with --brief-stops";
        err_set(&r->refused, ERR_UNSUPPORTED, 0, "%s functions are read with perf events%s%s%s",
                binary->runtime->name, stops, asks ? ", or by " : "", asks ? collect->opt_in : "");
    } else {
        err_set(&r->refused, ERR_UNSUPPORTED, 0, "%s", binary->why);
    }
    note_refusal(r, target, r->refused.text);
    target->runtime.again_ns = target->runtime.again_ns != 0 ? target->runtime.again_ns : now_ns + RETRY_MS * NS_PER_MS;
}

static bool check(struct readers *r, struct target *target, uint64_t now_ns)
{
    bool failed = false;
    target->runtime.space = target->space;
    target->runtime.again_ns = 0;
    target->runtime.collects = NULL;
    target->runtime.stops = r->stops && !follow_is_on_perf(target) && now_ns >= target->runtime.stops_again_ns;
    bool changed = drop_stale(r, target);
    for (size_t i = 0; i < target->maps.len && reader_count(target) < READERS_PER_PROCESS; i++) {
        const struct mapping mapping = target->maps.at[i];
        const struct readers_binary *binary =
            mapping.image < IMAGE_FIRST_FILE ? NULL : readers_binary_of(r, mapping.image);
        bool has_other = target->runtime.collects != NULL && !target->runtime.collects->collect->is_aside;
        if (binary != NULL && !has_other && readers_is_collected(r, target, binary)) {
            target->runtime.collects = binary->runtime;
        }
        bool is_any = binary != NULL && binary->runtime != NULL;
        bool is_of_use = is_any && readers_is_of_use(binary->runtime, binary->binary, target);
        if (binary != NULL && !is_of_use) {
            note_unread(r, target, binary, now_ns);
        } else if (binary != NULL && reader_at(target, &mapping) == NULL) {
            failed = !add_reader(r, target, &mapping, binary, now_ns, &changed) || failed;
        }
    }
    if (failed) {
        retry_others(target, now_ns);
    }
    for (const struct reader *reader = target->runtime.reader; reader != NULL; reader = reader->next) {
        if (reader->runtime != NULL) {
            readers_find_extension(r, reader);
        }
    }
    bool native = target->runtime.deep || target->runtime.stops;
    return (native && target->runtime.reader == NULL && add_native(r, target, now_ns)) || changed;
}

/* Of a process that is not sampled. They are attached to again when it is. */
static bool drop_all(struct readers *r, struct target *target)
{
    bool any = target->runtime.reader != NULL;
    while (target->runtime.reader != NULL) {
        drop_reader(r, target->runtime.reader);
    }
    target->runtime.space = any ? 0 : target->runtime.space;
    return any;
}

/* Its last samples may still wait in the rings. */
static bool drop_ended(struct readers *r, struct reader *reader, uint64_t now_ns)
{
    if (!reader->target->ended) {
        return false;
    }
    if (reader->drop_ns == 0) {
        reader->drop_ns = now_ns + ENDED_KEPT_MS * NS_PER_MS;
    }
    if (now_ns < reader->drop_ns) {
        return false;
    }
    drop_reader(r, reader);
    return true;
}

static void note_next(struct readers *r, const struct target *target)
{
    if (!target->ended && target->maps.len > 0 && target->runtime.again_ns != 0 &&
        target->runtime.again_ns < r->next_refresh_ns) {
        r->next_refresh_ns = target->runtime.again_ns;
    }
}

bool readers_refresh(struct readers *r, uint64_t now_ns)
{
    bool changed = false;
    r->next_refresh_ns = UINT64_MAX;
    for (size_t i = r->all.len; i-- > 0;) {
        changed = readers_list_tids_again(r, r->all.at[i], now_ns) || changed;
        changed = drop_ended(r, r->all.at[i], now_ns) || changed;
    }
    vec_each(&r->targets->all, slot)
    {
        struct target *target = *slot;
        if (targets_is_excluded(target, now_ns)) {
            changed = drop_all(r, target) || changed;
            continue;
        }
        bool due = target->runtime.again_ns != 0 && now_ns >= target->runtime.again_ns;
        if (!target->ended && target->maps.len > 0 &&
            (due || target->runtime.space != target->space)) {
            changed = check(r, target, now_ns) || changed;
        }
        note_next(r, target);
    }
    return changed;
}

/* ---- the window's end ---- */

/* "PHP 8.2.7", of several "PHP 8.2.7, Perl 5.36.0". */
static void describe(struct readers *r, const struct reader *reader)
{
    buf_clear(&r->text);
    for (; reader != NULL; reader = reader->next) {
        if (reader->runtime != NULL) {
            buf_text(&r->text, r->text.len > 0 ? ", " : "");
            reader->runtime->describe(reader->state, &r->text);
        }
    }
}

void readers_end_window(struct readers *r, struct profile *p)
{
    vec_each(&r->all, slot)
    {
        const struct reader *reader = *slot;
        const struct target *target = reader->target;
        if (reader != target->runtime.reader || reader->runtime == NULL || target->window != r->targets->window ||
            target->process == 0) {
            continue;
        }
        describe(r, reader);
        uint32_t text = profile_string(p, buf_slice(&r->text));
        p->processes.at[target->process].runtime = text;
        p->processes.at[target->process].capture_mode = target->capture_mode;
    }
    note_refusals(r, p);
    for (size_t i = r->all.len; i-- > 0;) {
        if (r->all.at[i]->target->ended) {
            drop_reader(r, r->all.at[i]);
        }
    }
}
