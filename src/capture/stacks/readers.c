/* Readers: which runtimes each followed process has, attached to when its mappings change, and the frames of the
 * profile that a walked stack stands for. The sampler alone works here; catchers see of it what readers_table
 * publishes, and nothing published is freed before readers_sweep. */
#include "capture/stacks/readers.h"
#include "base/intern.h"
#include "base/time.h"
#include "os/proc.h"
#include "target/maps.h"
#include "target/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TEXT_MAX = 32 << 20,
    TIDS_MAX = 8192,
    RETRY_LEAST_MS = 20,     /* a runtime that is starting is tried again after this, later after … */
    RETRY_SHARE = 4,         /* … this part of the time since the first attempt, */
    RETRY_STARTING_MS = 10000, /* so long, */
    RETRY_MS = 30000,  /* and then, like one that refuses, every half minute */
    FAILED_MAX = 64,        /* walks in a row */
    ENDED_KEPT_MS = 1000,
    TIDS_AGAIN_MS = 1000,
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
}

static void free_reader(struct reader *reader)
{
    if (reader->runtime != NULL) {
        if (reader->names != NULL) {
            reader->runtime->close_names(reader->names);
        }
        reader->runtime->detach(reader->state);
    }
    remote_close(&reader->remote);
    map_release(&reader->frames);
    vec_release(&reader->tids.list);
    free(reader);
}

void readers_sweep(struct readers *r)
{
    vec_each(&r->ended, reader)
    {
        free_reader(*reader);
    }
    vec_clear(&r->ended);
    vec_each(&r->old_tids, tids)
    {
        vec_release(&tids->list);
    }
    vec_clear(&r->old_tids);
}

static void forget_binary(struct readers_binary *binary)
{
    if (binary->runtime != NULL) {
        binary->runtime->forget(binary->binary);
    }
    *binary = (struct readers_binary){0};
}

void readers_release(struct readers *r)
{
    readers_sweep(r);
    vec_each(&r->all, reader)
    {
        free_reader(*reader);
    }
    vec_each(&r->binaries, binary)
    {
        forget_binary(binary);
    }
    vec_each(&r->orphans, binary)
    {
        forget_binary(binary);
    }
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

/* ---- binaries ---- */

static bool function_at(void *context, uint64_t address, uint64_t *start, uint64_t *limit)
{
    return unwind_table_function(context, address, start, limit);
}

static void ask_runtimes(struct readers *r, uint64_t image, struct readers_binary *out)
{
    struct elf *elf = images_elf(r->images, image);
    struct unwind_table *table = elf == NULL ? NULL : images_table(r->images, image);
    const struct runtime_code code = {function_at, table};
    out->image = image;
    for (size_t i = 0; elf != NULL && r->runtimes[i] != NULL; i++) {
        const struct runtime *runtime = r->runtimes[i];
        struct err why = {0};
        if (runtime->recognise == NULL || r->settings->runtime.mode[runtime->kind] == RUNTIME_DISABLED) {
            continue;
        }
        enum runtime_answer answer =
            runtime->recognise(elf, images_path(r->images, image), table == NULL ? NULL : &code,
                               &out->binary, &why);
        if (answer == RUNTIME_YES) {
            out->runtime = runtime;
            return;
        }
        if (answer == RUNTIME_UNSUPPORTED) {
            r->refused = why;
            log_once(r->log, LOG_WARNING, "%s", why.text);
            return;
        }
    }
}

static const struct readers_binary *binary_of(struct readers *r, uint64_t image)
{
    size_t place = images_place(image);
    while (r->binaries.len <= place) {
        if (vec_push(&r->binaries) == NULL) {
            return NULL;
        }
    }
    struct readers_binary *binary = &r->binaries.at[place];
    if (binary->image == IMAGE_NONE) {
        ask_runtimes(r, image, binary);
    }
    return binary->runtime == NULL || binary->image != image ? NULL : binary;
}

static bool is_used(const struct readers *r, const struct readers_binary *binary)
{
    vec_each(&r->all, reader)
    {
        if ((*reader)->binary == binary->binary) {
            return true;
        }
    }
    vec_each(&r->ended, reader) /* catchers may still walk by it */
    {
        if ((*reader)->binary == binary->binary) {
            return true;
        }
    }
    return false;
}

static void forget_image(struct readers *r, struct readers_binary *binary)
{
    bool orphan = binary->runtime != NULL && is_used(r, binary);
    struct readers_binary *place = orphan ? vec_push(&r->orphans) : NULL;
    if (place != NULL) {
        *place = *binary;
        *binary = (struct readers_binary){0};
    } else if (!orphan) {
        forget_binary(binary);
    }
}

void readers_forget_images(struct readers *r)
{
    for (size_t i = r->orphans.len; i-- > 0;) {
        if (!is_used(r, &r->orphans.at[i])) {
            forget_binary(&r->orphans.at[i]);
            vec_swap_out(&r->orphans, i);
        }
    }
    vec_each(&r->binaries, binary)
    {
        if (images_is_gone(r->images, binary->image)) {
            forget_image(r, binary);
        }
    }
}

/* ---- one process ---- */

static bool read_text(struct readers *r, uint32_t pid, uint32_t tid, const char *name)
{
    const struct world *world = r->images->world;
    return world->text(world->context, pid, tid, name, &r->text, NULL);
}

static bool list_maps(struct readers *r, const struct target *target, const struct mapping *of)
{
    struct map_line line;
    vec_clear(&r->maps);
    if (!read_text(r, target->pid, 0, "maps")) {
        return false;
    }
    struct str rest = buf_slice(&r->text);
    uint64_t inode = 0;
    uint32_t major = 0, minor = 0;
    while (maps_next(&rest, &line)) { /* which file the mapping is of */
        if (line.start <= of->start && of->start < line.limit) {
            inode = line.inode;
            major = line.dev_major;
            minor = line.dev_minor;
        }
    }
    for (rest = buf_slice(&r->text); maps_next(&rest, &line);) {
        struct runtime_map *map = vec_push(&r->maps);
        if (map == NULL) {
            return false;
        }
        *map = (struct runtime_map){
            .start = line.start,
            .limit = line.limit,
            .file_offset = line.file_offset,
            .prot = line.prot,
            .of_binary = inode != 0 && line.inode == inode && line.dev_major == major &&
                         line.dev_minor == minor,
            .anonymous = line.inode == 0,
        };
    }
    return true;
}

/* The ids of its threads as the process itself numbers them. */
static bool list_tids(struct readers *r, uint32_t pid, struct reader *reader)
{
    struct reader_tids *tids = &reader->tids;
    struct proc_status status;
    struct pid_list list = {0};
    bool good = read_text(r, pid, 0, "status") &&
                status_parse(buf_slice(&r->text), &status, NULL) &&
                proc_list_threads(pid, &list, NULL);
    bool inner = good && status.ns_pid_depth > 1;
    vec_clear(&r->tids);
    vec_clear(&tids->list);
    reader->is_inner = inner;
    for (size_t i = 0; good && i < list.ids.len && i < TIDS_MAX; i++) {
        uint32_t *tid = vec_push(&r->tids);
        struct catch_tid *pair = inner ? vec_push(&tids->list) : NULL;
        good = tid != NULL && (pair != NULL || !inner);
        if (!good) {
            break;
        }
        *tid = list.ids.at[i];
        if (inner && read_text(r, pid, *tid, "status") &&
            status_parse(buf_slice(&r->text), &status, NULL) && status.ns_pid != 0) {
            *pair = (struct catch_tid){*tid, status.ns_pid};
            *tid = status.ns_pid;
        }
    }
    vec_release(&list.ids);
    return good;
}

static bool open_memory(struct reader *reader, uint32_t pid, uint64_t probe, struct err *why)
{
    reader->pid = pid;
    reader->remote.mem = -1;
    if (!remote_open(&reader->remote, pid, probe, why)) {
        return false;
    }
    reader->caller.remote = &reader->remote;
    reader->memory = remote_batch(&reader->caller);
    return true;
}

/* Null, with the reason: the process has the runtime but it cannot be read (now). */
static struct reader *attach(struct readers *r, struct target *target, const struct mapping *mapping,
                             const struct readers_binary *binary, struct err *why)
{
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        err_set(why, ERR_MEMORY, 0, "no memory to read the stacks of pid %u", target->pid);
        return NULL;
    }
    bool good = open_memory(reader, target->pid, mapping->start, why);
    if (good && (!list_maps(r, target, mapping) || !list_tids(r, target->pid, reader))) {
        good = err_set(why, ERR_GONE, 0, "pid %u has ended", target->pid);
    }
    const struct runtime_process process = {
        .pid = target->pid,
        .bias = mapping->bias,
        .elf = images_elf(r->images, mapping->image),
        .memory = &reader->memory,
        .maps = r->maps.at,
        .map_count = r->maps.len,
        .tids = r->tids.at,
        .tid_count = r->tids.len,
    };
    good = good && binary->runtime->attach(binary->binary, &process, &reader->state, why) ==
                       RUNTIME_YES;
    if (good) {
        reader->runtime = binary->runtime;
        bool walks = reader->runtime->walk != NULL; /* else it resolves addresses, with their names */
        reader->names = walks ? reader->runtime->open_names(reader->state) : NULL;
        good = !walks || reader->names != NULL ||
               err_set(why, ERR_MEMORY, 0, "no memory to name the stacks of pid %u", target->pid);
    }
    if (!good) {
        free_reader(reader);
        return NULL;
    }
    reader->target = target;
    reader->serial = ++r->serials;
    reader->image = mapping->image;
    reader->bias = mapping->bias;
    reader->binary = binary->binary;
    return reader;
}

static bool still_mapped(const struct reader *reader, const struct target *target)
{
    vec_each(&target->maps, mapping)
    {
        if (mapping->image == reader->image && mapping->bias == reader->bias) {
            return true;
        }
    }
    return reader->runtime == NULL && target->runtime.deep;
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
    if (target->window == r->targets->window && target->process != 0) {
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
        free_reader(reader);
        return false;
    }
    *place = reader;
    struct reader **link = &reader->target->runtime.reader;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = reader;
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
        unseen_note(r->unseen, UNSEEN_MEMORY, text);
    }
}

/* What a failed attempt means for the next one. */
static void retry_later(struct readers *r, struct target *target, const struct runtime *runtime,
                       const struct err *why, uint64_t now_ns)
{
    r->refused = *why;
    /* what is no verdict on the version may be different in a moment: a program that is being started */
    bool passing = why->number == EAGAIN || why->kind != ERR_UNSUPPORTED;
    target->runtime.since_ns = target->runtime.since_ns != 0 ? target->runtime.since_ns : now_ns;
    uint64_t since_ns = now_ns - target->runtime.since_ns, wait_ns = RETRY_LEAST_MS * NS_PER_MS;
    bool starting = passing && since_ns < RETRY_STARTING_MS * NS_PER_MS;
    wait_ns = since_ns / RETRY_SHARE > wait_ns ? since_ns / RETRY_SHARE : wait_ns;
    target->runtime.again_ns = now_ns + (starting ? wait_ns : RETRY_MS * NS_PER_MS);
    log_say(r->log, LOG_DEBUG, "pid %u (%s): not yet: %s", target->pid, target->name, why->text);
    if (why->kind == ERR_DENIED || (!starting && why->kind != ERR_GONE)) {
        report_refused(r, target, runtime, why);
    }
}

/* Without a runtime: only its stacks are read. */
static bool add_deep(struct readers *r, struct target *target)
{
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL || !open_memory(reader, target->pid, target->maps.at[0].start, NULL)) {
        free(reader);
        return false;
    }
    reader->target = target;
    reader->serial = ++r->serials;
    return keep_reader(r, reader);
}

/* It may be read for its deep stacks alone. */
static bool has_runtime(const struct target *target)
{
    return target->runtime.reader != NULL && target->runtime.reader->runtime != NULL;
}

/* A library that its program has loaded meanwhile, perhaps. */
static void find_extension(struct readers *r, const struct reader *reader)
{
    const char *wanted = reader->runtime->extension;
    for (size_t i = 0; wanted != NULL && i < reader->target->maps.len; i++) {
        uint64_t image = reader->target->maps.at[i].image;
        struct str path = image < IMAGE_FIRST_FILE ? STR("") : images_path(r->images, image);
        struct str name = str_sub(path, str_find_last(path, '/') + 1, path.len);
        struct elf *elf = str_starts(name, str_of(wanted)) ? images_elf(r->images, image) : NULL;
        if (elf != NULL) {
            reader->runtime->extend(reader->state, elf);
            return;
        }
    }
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
        if (reader->is_suspect || !still_mapped(reader, target)) {
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
    struct reader *reader = attach(r, target, mapping, binary, &why);
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

static bool check(struct readers *r, struct target *target, uint64_t now_ns)
{
    bool failed = false;
    target->runtime.space = target->space;
    target->runtime.again_ns = 0;
    bool changed = drop_stale(r, target);
    for (size_t i = 0; i < target->maps.len && reader_count(target) < READERS_PER_PROCESS; i++) {
        const struct mapping mapping = target->maps.at[i];
        const struct readers_binary *binary =
            mapping.image < IMAGE_FIRST_FILE ? NULL : binary_of(r, mapping.image);
        if (binary != NULL && reader_at(target, &mapping) == NULL) {
            failed = !add_reader(r, target, &mapping, binary, now_ns, &changed) || failed;
        }
    }
    if (failed) {
        retry_others(target, now_ns);
    }
    for (const struct reader *reader = target->runtime.reader; reader != NULL; reader = reader->next) {
        if (reader->runtime != NULL) {
            find_extension(r, reader);
        }
    }
    return (target->runtime.deep && target->runtime.reader == NULL && add_deep(r, target)) || changed;
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

static bool has_same_threads(const struct reader *reader)
{
    struct pid_list now = {0};
    bool same = proc_list_threads(reader->pid, &now, NULL) &&
                now.ids.len == reader->tids.list.len;
    for (size_t i = 0; same && i < now.ids.len; i++) {
        same = now.ids.at[i] == reader->tids.list.at[i].tid;
    }
    vec_release(&now.ids);
    return same;
}

/* Threads that a process in another PID namespace has started since. The list that catchers use is left as
 * it is until the next one is published. */
static bool list_tids_again(struct readers *r, struct reader *reader, uint64_t now_ns)
{
    if (!reader->is_inner || now_ns < reader->tids_ns || reader->target->ended) {
        return false;
    }
    reader->tids_ns = now_ns + TIDS_AGAIN_MS * NS_PER_MS;
    if (has_same_threads(reader)) {
        return false;
    }
    struct reader_tids before = reader->tids;
    reader->tids = (struct reader_tids){0};
    bool listed = list_tids(r, reader->pid, reader);
    struct reader_tids *place = listed ? vec_push(&r->old_tids) : NULL;
    if (place == NULL) {
        vec_release(&reader->tids.list);
        reader->tids = before;
        reader->is_inner = true;
        return false;
    }
    *place = before;
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
        changed = list_tids_again(r, r->all.at[i], now_ns) || changed;
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

const struct catch_target *readers_table(struct readers *r, size_t *count)
{
    vec_clear(&r->table);
    vec_each(&r->all, slot)
    {
        struct reader *reader = *slot;
        bool read = reader->runtime == NULL || reader->runtime->walk != NULL;
        struct catch_target *row = read ? vec_push(&r->table) : NULL;
        if (read && row == NULL) {
            break;
        }
        if (!read) {
            continue;
        }
        *row = (struct catch_target){
            .pid = reader->pid,
            .runtime = reader->runtime,
            .state = reader->state,
            .remote = &reader->remote,
            .serial = reader->serial,
            .deep = reader->target->runtime.deep,
            .tids = reader->tids.list.at,
            .tid_count = reader->tids.list.len,
        };
    }
    *count = r->table.len;
    return r->table.at;
}

/* ---- samples ---- */

struct reader *readers_of(struct readers *r, const struct target *target, uint64_t serial)
{
    (void)r;
    struct reader *reader = target->runtime.reader;
    while (reader != NULL && reader->serial != serial) {
        reader = reader->next;
    }
    return reader;
}

enum runtime_native readers_native(const struct reader *reader, uint64_t image,
                                   uint64_t elf_address)
{
    return image == reader->image && reader->runtime != NULL && reader->runtime->native_at != NULL
               ? reader->runtime->native_at(reader->binary, elf_address)
               : RUNTIME_NATIVE_PLAIN;
}

void readers_walked(struct readers *r, struct reader *reader, enum runtime_end end)
{
    (void)r;
    bool failed = end == RUNTIME_UNREADABLE || end == RUNTIME_TORN;
    reader->failed = failed ? reader->failed + 1 : 0;
    if (reader->failed == FAILED_MAX) {
        reader->target->runtime.space = 0; /* it may have become another program unseen */
        reader->is_suspect = true;
    }
}

static uint64_t key_of(const struct runtime_frame *frame)
{
    uint64_t key = hash_u64(frame->code ^ hash_u64(frame->check));
    return hash_u64(key ^ ((uint64_t)frame->position << 8) ^
                    (frame->flags & RUNTIME_FRAME_UNSTARTED));
}

/* "func (file:first line)": of two functions of one name the file tells. */
static uint32_t frame_of(struct readers *r, const struct reader *reader, struct profile *p,
                         const struct runtime_name *name)
{
    struct frame frame = {.kind = (uint8_t)reader->runtime->kind};
    if (name->function.len == 0) {
        frame.name = profile_cstring(p, "[code is gone]");
        return profile_frame(p, &frame);
    }
    buf_clear(&r->text);
    buf_str(&r->text, name->function);
    if (name->file.len > 0) {
        buf_text(&r->text, " (");
        buf_str(&r->text, name->file);
        buf_printf(&r->text, ":%u)", name->first_line);
    }
    frame.name = profile_string(p, buf_slice(&r->text));
    frame.system_name = profile_string(p, name->function);
    frame.file = profile_string(p, name->file);
    frame.line = name->line != 0 ? name->line : name->first_line;
    frame.first_line = name->first_line;
    return profile_frame(p, &frame);
}

static bool has_room(struct readers *r, size_t count)
{
    while (r->found.len < count) {
        if (vec_push(&r->found) == NULL) {
            return false;
        }
    }
    return true;
}

static bool collect_unnamed(struct readers *r, struct reader *reader,
                            const struct runtime_frame *frames, size_t count, uint32_t *out)
{
    vec_clear(&r->unnamed);
    for (size_t i = 0; i < count; i++) {
        const struct map_slot *slot = map_find(&reader->frames, key_of(&frames[i]));
        out[i] = slot == NULL ? 0 : (uint32_t)slot->value;
        struct runtime_frame *asked = slot != NULL ? NULL : vec_push(&r->unnamed);
        if (slot == NULL && asked == NULL) {
            return false;
        }
        if (asked != NULL) {
            *asked = frames[i];
        }
    }
    return has_room(r, r->unnamed.len);
}

/* What may be called otherwise at its next stack is asked for again. */
static void forget_doubtful(struct readers *r, struct reader *reader)
{
    for (size_t i = 0; i < r->unnamed.len; i++) {
        struct map_slot *slot = r->found.at[i].may_change
                                    ? map_find(&reader->frames, key_of(&r->unnamed.at[i]))
                                    : NULL;
        if (slot != NULL) {
            map_remove(&reader->frames, slot);
        }
    }
}

void readers_frames(struct readers *r, struct reader *reader, struct profile *p,
                    const struct runtime_frame *frames, size_t count, uint32_t *out)
{
    if (reader->window != r->targets->window) {
        map_clear(&reader->frames);
        reader->window = r->targets->window;
    }
    if (!collect_unnamed(r, reader, frames, count, out) || r->unnamed.len == 0) {
        return;
    }
    reader->runtime->name_frames(reader->names, r->unnamed.at, r->unnamed.len, &reader->memory,
                                 r->found.at);
    for (size_t i = 0; i < r->unnamed.len; i++) {
        (void)map_put(&reader->frames, key_of(&r->unnamed.at[i]),
                      frame_of(r, reader, p, &r->found.at[i]));
    }
    for (size_t i = 0; i < count; i++) {
        const struct map_slot *slot =
            out[i] != 0 ? NULL : map_find(&reader->frames, key_of(&frames[i]));
        out[i] = slot == NULL ? out[i] : (uint32_t)slot->value;
    }
    forget_doubtful(r, reader);
}

/* "CPython 3.11.9", of several "CPython 3.11.9, PHP 8.2". */
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
