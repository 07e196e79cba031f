#include "capture/follow/targets.h"
#include "base/err.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/proc.h"
#include "target/cgroup.h"
#include "target/maps.h"
#include "target/stat.h"

#include <stdlib.h>

enum {
    PROC_TEXT_MAX = 32 * 1024 * 1024, /* maps of a process with 65,530 mappings is about 6 MB */
    MAPS_WAIT_FIRST_MS = 100,
    MAPS_WAIT_MAX_MS = 10000,
    GENERATIONS_MAX = 64,
    START_LATE_NS = 100000, /* the two clocks are not read at one moment */
};

/* Replaces t->text by a text of /proc. */
static bool read_text(struct targets *t, uint32_t pid, uint32_t tid, const char *name)
{
    const struct world *world = t->images->world;
    return world->text(world->context, pid, tid, name, &t->text, NULL);
}

void targets_init(struct targets *t, struct images *images, bool container_names)
{
    *t = (struct targets){.images = images, .window = 1, .container_names = container_names};
    buf_init(&t->text, PROC_TEXT_MAX);
    buf_init(&t->path, PROC_TEXT_MAX);
}

static void free_target(struct target *target)
{
    vec_release(&target->maps);
    free(target);
}

void targets_release(struct targets *t)
{
    targets_recall(t);
    vec_each(&t->all, target)
    {
        free_target(*target);
    }
    vec_release(&t->all);
    vec_release(&t->aside);
    vec_release(&t->threads);
    map_release(&t->by_pid);
    map_release(&t->gone);
    map_release(&t->by_tid);
    buf_release(&t->text);
    buf_release(&t->path);
}

static struct target *target_of(const struct map_slot *slot)
{
    return (struct target *)(uintptr_t)slot->value;
}

static void drop_target(struct targets *t, struct target *target)
{
    struct map_slot *slot = map_find(&t->by_pid, target->pid);
    if (slot != NULL && target_of(slot) == target) {
        map_remove(&t->by_pid, slot);
    }
    t->unmapped++;
    free_target(target);
}

static void drop_thread(struct targets *t, size_t index)
{
    struct map_slot *slot = map_find(&t->by_tid, t->threads.at[index].tid);
    if (slot != NULL && slot->value == index) {
        map_remove(&t->by_tid, slot);
    }
    vec_swap_out(&t->threads, index);
    if (index < t->threads.len) {
        slot = map_find(&t->by_tid, t->threads.at[index].tid);
        if (slot != NULL && slot->value == t->threads.len) {
            slot->value = index;
        }
    }
}

/* Their order stays: the books of children are looked at before their parents'. */
void targets_set_aside(struct targets *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->all.len; i++) {
        struct target *target = t->all.at[i];
        struct target **place = target->ended ? vec_push(&t->aside) : NULL;
        if (place != NULL) {
            *place = target;
        } else {
            t->all.at[kept++] = target;
        }
    }
    t->all.len = kept;
}

void targets_recall(struct targets *t)
{
    for (; t->aside.len > 0; t->aside.len--) {
        struct target **place = vec_push(&t->all);
        if (place == NULL) {
            return; /* they are freed with the window */
        }
        *place = t->aside.at[t->aside.len - 1];
    }
}

/* What stood before a process that was dropped. */
static uint64_t ancestry_of(const struct target *target)
{
    return (uint64_t)target->forked_by << 32 | target->parent_pid;
}

/* The nearest one that is left: chains of dropped ones are followed. */
static uint32_t before_gone(const struct map *gone, uint32_t pid, unsigned shift)
{
    const struct map_slot *slot = map_find(gone, pid);
    for (unsigned i = 0; slot != NULL && i < GENERATIONS_MAX; i++) {
        pid = (uint32_t)(slot->value >> shift);
        slot = map_find(gone, pid);
    }
    return pid;
}

void targets_drop(struct targets *t, bool (*is_done)(void *context, struct target *target),
                  void *context)
{
    map_clear(&t->gone);
    for (size_t i = 0; i < t->aside.len;) {
        struct target *target = t->aside.at[i];
        if (!is_done(context, target)) {
            i++;
            continue;
        }
        if (targets_find(t, target->pid) == target) { /* else its pid is another's now */
            (void)map_put(&t->gone, target->pid, ancestry_of(target));
        }
        drop_target(t, target);
        vec_swap_out(&t->aside, i);
    }
    for (size_t i = 0; t->gone.len > 0 && i < t->all.len; i++) {
        struct target *target = t->all.at[i];
        target->forked_by = before_gone(&t->gone, target->forked_by, 32);
        target->parent_pid = before_gone(&t->gone, target->parent_pid, 0);
    }
}

static bool is_any(void *context, struct target *target)
{
    (void)context;
    (void)target;
    return true;
}

/* No record tells of the end of a thread whose time is read from /proc. */
static bool has_left(struct targets *t, const struct target_thread *thread)
{
    const struct target *target = targets_find(t, thread->pid);
    if (target == NULL) {
        return true;
    }
    bool polled = target->capture_mode == CAPTURE_PROC || target->capture_mode == CAPTURE_RUNTIME;
    return polled && thread->window != t->window && !proc_thread_exists(thread->pid, thread->tid);
}

void targets_set_mode(struct targets *t, struct target *target, enum capture_mode mode)
{
    target->capture_mode = (uint8_t)mode;
    t->any_on_proc = t->any_on_proc || mode == CAPTURE_PROC;
}

void targets_end_window(struct targets *t)
{
    targets_set_aside(t);
    targets_drop(t, is_any, NULL);
    vec_each(&t->all, slot)
    {
        struct target *target = *slot;
        target->account.sampled_ns = target->account.attributed_ns = target->account.since_read_ns = 0;
        target->account.settled_ns = target->filter.excluded_ns = target->bursts.samples = 0;
    }
    for (size_t i = 0; i < t->threads.len;) {
        if (has_left(t, &t->threads.at[i])) {
            drop_thread(t, i);
        } else {
            i++;
        }
    }
    t->window++;
}

struct target *targets_find(struct targets *t, uint32_t pid)
{
    struct map_slot *slot = map_find(&t->by_pid, pid);
    return slot == NULL ? NULL : target_of(slot);
}

/* The kernel notes the start just before it tells of it. Its clock goes on while the machine sleeps, and the
 * records' does not. */
bool targets_may_be(const struct target *target, uint64_t start_ticks)
{
    if (target->start_ticks != 0 || target->began_ns == 0) {
        return target->start_ticks == 0 || target->start_ticks == start_ticks;
    }
    uint64_t boot_ns = clock_boot_ns(), mono_ns = clock_mono_ns();
    uint64_t ahead_ns = boot_ns > mono_ns ? boot_ns - mono_ns : 0;
    return start_ticks <= (target->began_ns + ahead_ns + START_LATE_NS) / proc_tick_ns();
}

/* A pid that is younger than what it is said to have started is another's now. */
struct target *targets_source(struct targets *t, const struct target *target)
{
    struct target *source = target->forked_by == 0 ? NULL : targets_find(t, target->forked_by);
    return source == NULL || source->began_ns > target->began_ns ? NULL : source;
}

static void set_name(char name[static COMM_MAX], struct str text)
{
    size_t len = text.len < COMM_MAX - 1 ? text.len : COMM_MAX - 1;
    if (len > 0) {
        memcpy(name, text.ptr, len);
    }
    name[len] = '\0';
}

/* Its pid may have been another's, whose first thread had the same id. */
static void forget_first_thread(struct targets *t, uint32_t pid)
{
    struct map_slot *slot = map_find(&t->by_tid, pid);
    if (slot != NULL && t->threads.at[slot->value].pid == pid) {
        t->threads.at[slot->value] = (struct target_thread){.tid = pid, .pid = pid};
    }
}

static struct target *make_target(struct targets *t, uint32_t pid)
{
    struct target *target = calloc(1, sizeof *target);
    struct target **place = target == NULL ? NULL : vec_push(&t->all);
    if (place == NULL || !map_put(&t->by_pid, pid, (uintptr_t)target)) {
        t->all.len -= place != NULL;
        free(target);
        return NULL;
    }
    *place = target;
    forget_first_thread(t, pid);
    target->pid = pid;
    target->space = ++t->spaces;
    target->copy.bytes = t->stack_bytes;
    target->reread.wait_ns = MAPS_WAIT_FIRST_MS * NS_PER_MS;
    return target;
}

static void name_from_proc(struct targets *t, struct target *target)
{
    struct str name = {NULL, 0};
    if (read_text(t, target->pid, 0, "comm")) {
        name = str_trim(buf_slice(&t->text));
    }
    if (name.len > 0) { /* a zombie may have none any more */
        set_name(target->name, name);
    }
    if (target->name[0] == '\0') {
        set_name(target->name, STR("[unknown]"));
    }
}

struct target *targets_get(struct targets *t, uint32_t pid)
{
    struct target *target = targets_find(t, pid);
    if (target == NULL) {
        target = make_target(t, pid);
        if (target != NULL) {
            name_from_proc(t, target);
        }
    }
    return target;
}

static struct target_thread *find_thread(struct targets *t, uint32_t tid)
{
    struct map_slot *slot = map_find(&t->by_tid, tid);
    return slot == NULL ? NULL : &t->threads.at[slot->value];
}

struct target_thread *targets_thread(struct targets *t, uint32_t pid, uint32_t tid)
{
    struct target_thread *thread = find_thread(t, tid);
    if (thread != NULL && thread->pid == pid) {
        return thread;
    }
    if (thread == NULL) {
        thread = vec_push(&t->threads);
        if (thread == NULL || !map_put(&t->by_tid, tid, t->threads.len - 1)) {
            t->threads.len -= thread != NULL;
            return NULL;
        }
    }
    *thread = (struct target_thread){.tid = tid, .pid = pid};
    return thread;
}

static void name_thread(struct targets *t, struct target_thread *thread, const struct target *target)
{
    if (thread->named) {
        return;
    }
    thread->named = true;
    set_name(thread->name, str_of(target->name));
    if (thread->tid != thread->pid &&
        read_text(t, thread->pid, thread->tid, "comm")) {
        set_name(thread->name, str_trim(buf_slice(&t->text)));
    }
}

/* ---- what records say ---- */

static void inherit_maps(struct target *child, struct target *parent)
{
    vec_clear(&child->maps);
    vec_each(&parent->maps, mapping)
    {
        struct mapping *copy = vec_push(&child->maps);
        if (copy != NULL) {
            *copy = *mapping;
        }
    }
    child->maps_read = parent->maps_read;
    child->generated = IMAGE_NONE; /* what it generates from now on is its own */
}

/* Its last thread has ended: only what the books need is kept. */
static void end_target(struct targets *t, struct target *target)
{
    target->ended = true;
    t->unmapped++;
    vec_release(&target->maps);
}

/* The next owner of a pid may have threads of the same ids, and has one at least. */
static void forget_threads(struct targets *t, uint32_t pid)
{
    vec_each(&t->threads, thread)
    {
        if (thread->pid == pid) {
            *thread = (struct target_thread){.tid = thread->tid, .pid = pid};
        }
    }
}

/* A pid that comes again is another process: the old one's samples of this window keep their rows
 * in the profile, which are told apart by the start time. */
static struct target *fresh_target(struct targets *t, uint32_t pid)
{
    struct target *old = targets_find(t, pid);
    uint32_t owner = old == NULL ? 0 : old->owner + 1;
    if (old != NULL) {
        end_target(t, old);
        map_remove(&t->by_pid, map_find(&t->by_pid, pid));
        forget_threads(t, pid);
    }
    struct target *target = make_target(t, pid);
    if (target != NULL) {
        target->owner = owner;
    }
    return target;
}

struct target *targets_begin(struct targets *t, uint32_t pid)
{
    struct target *target = targets_find(t, pid);
    if (target == NULL || !target->ended) {
        return targets_get(t, pid);
    }
    target = fresh_target(t, pid);
    if (target != NULL) {
        name_from_proc(t, target);
    }
    return target;
}

/* It is what its parent is, until it calls exec. */
static void inherit_answer(const struct targets *t, struct target *child,
                           const struct target *parent)
{
    child->filter.evaluated = parent->filter.evaluated;
    child->filter.excluded = parent->filter.excluded;
    child->filter.of_age_ns = t->min_duration_ns > 0 ? child->began_ns + t->min_duration_ns : 0;
    child->filter.skipped = targets_is_excluded(child, child->began_ns);
}

void targets_fork(struct targets *t, uint32_t pid, uint32_t tid, uint32_t parent_pid,
                  uint32_t parent_tid, uint64_t time_ns)
{
    struct target_thread *parent_thread = find_thread(t, parent_tid);
    char name[COMM_MAX] = "";
    if (parent_thread != NULL && parent_thread->named) {
        memcpy(name, parent_thread->name, COMM_MAX);
    }
    if (pid != parent_pid) {
        struct target *parent = targets_find(t, parent_pid);
        struct target *child = fresh_target(t, pid);
        if (child == NULL) {
            return;
        }
        child->began_ns = time_ns;
        child->alive = 1;
        child->parent_pid = child->forked_by = parent_pid;
        if (parent != NULL) {
            memcpy(child->name, name[0] != '\0' ? name : parent->name, COMM_MAX);
            child->capture_mode = parent->capture_mode;
            child->copy.bytes = parent->copy.bytes; /* with the events it inherited */
            child->runtime.caught = parent->runtime.caught;
            child->runtime.deep = parent->runtime.deep;
            inherit_maps(child, parent);
            inherit_answer(t, child, parent);
        } else {
            name_from_proc(t, child);
        }
        memcpy(name, child->name, COMM_MAX);
    }
    struct target *target = targets_find(t, pid);
    struct target_thread *thread = targets_thread(t, pid, tid);
    if (thread != NULL) {
        *thread = (struct target_thread){.tid = tid, .pid = pid};
        thread->named = name[0] != '\0';
        memcpy(thread->name, name, COMM_MAX);
    }
    if (target != NULL) {
        target->threads_seen++;
        target->alive += target->alive > 0 && pid == parent_pid;
    }
}

void targets_comm(struct targets *t, uint32_t pid, uint32_t tid, struct str name, bool exec)
{
    struct target *target = targets_get(t, pid);
    struct target_thread *thread = targets_thread(t, pid, tid);
    if (target == NULL || thread == NULL) {
        return;
    }
    set_name(thread->name, name);
    thread->named = true;
    thread->window = 0;    /* a renamed thread is a new row */
    if (pid == tid || exec) {
        set_name(target->name, name);
        target->window = 0;
    }
    if (exec) {
        vec_clear(&target->maps);
        t->unmapped++;
        target->space = ++t->spaces;
        target->generated = IMAGE_NONE;
        target->maps_read = true; /* every later mapping has its record */
        target->alive = target->alive > 0; /* exec ends all other threads */
    }
}

void targets_rename(struct targets *t, struct target *target)
{
    char before[COMM_MAX];
    memcpy(before, target->name, COMM_MAX);
    name_from_proc(t, target);
    struct target_thread *thread = find_thread(t, target->pid);
    if (strcmp(before, target->name) != 0 && thread != NULL && thread->pid == target->pid) {
        thread->named = false;
        thread->window = target->window = 0;
    }
}

void targets_exit(struct targets *t, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
    struct target_thread *thread = find_thread(t, tid);
    if (thread != NULL && thread->pid == pid) {
        drop_thread(t, (size_t)(thread - t->threads.at)); /* no sample comes after its end */
    }
    struct target *target = targets_find(t, pid);
    if (target == NULL) {
        return;
    }
    target->ended_ns = time_ns; /* the last thread's counts */
    if (target->alive > 0 && --target->alive == 0) {
        end_target(t, target);
    }
}

/* ---- mappings ---- */

static void learn_start(struct targets *t, struct target *target)
{
    struct proc_stat stat;
    if (target->start_ticks == 0 && read_text(t, target->pid, 0, "stat") &&
        stat_parse(buf_slice(&t->text), &stat, NULL) && targets_may_be(target, stat.start_ticks)) {
        target->start_ticks = stat.start_ticks;
    }
    if (target->start_ticks == 0) {
        /* gone already: the time of its fork tells it from another owner of the pid */
        target->start_ticks = target->began_ns / proc_tick_ns();
    }
}

/* What is remembered about the addresses of the process holds no more. */
static void changed_space(struct targets *t, struct target *target)
{
    target->space = ++t->spaces;
}

/* Index of the first mapping that ends behind `address`. */
static size_t first_ending_behind(const struct target *target, uint64_t address)
{
    size_t low = 0, high = target->maps.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (target->maps.at[middle].limit > address) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static bool insert_mapping(struct target *target, size_t at, struct mapping mapping)
{
    if (vec_push(&target->maps) == NULL) {
        return false;
    }
    struct mapping *place = &target->maps.at[at];
    memmove(place + 1, place, (target->maps.len - 1 - at) * sizeof *place);
    *place = mapping;
    return true;
}

/* Cuts [start, limit) out of what is mapped: a new mapping replaces what it covers. */
static void cut_out(struct target *target, uint64_t start, uint64_t limit)
{
    size_t at = first_ending_behind(target, start);
    while (at < target->maps.len && target->maps.at[at].start < limit) {
        struct mapping *old = &target->maps.at[at];
        struct mapping behind = *old;
        if (old->limit > limit) { /* the part behind stays */
            behind.file_offset += limit - behind.start;
            behind.start = limit;
            if (old->start >= start) {
                *old = behind;
                return;
            }
            old->limit = start;
            (void)insert_mapping(target, at + 1, behind);
            return;
        }
        if (old->start < start) {
            old->limit = start;
            at++;
            continue;
        }
        memmove(old, old + 1, (target->maps.len - 1 - at) * sizeof *old);
        target->maps.len--;
    }
}

/* Code without a file is the process's own making. */
static uint64_t generated_image(struct targets *t, struct target *target)
{
    if (target->generated == IMAGE_NONE) {
        learn_start(t, target);
        target->generated = images_generated(t->images, target->pid, target->start_ticks);
    }
    return target->generated;
}

/* "…/jit-PID.dump", mapped executable only to be noticed. */
static bool is_jitdump(struct str path)
{
    size_t slash = str_find_last(path, '/');
    struct str name = slash == path.len ? path : str_sub(path, slash + 1, path.len);
    return str_starts(name, STR("jit-")) && str_ends(name, STR(".dump"));
}

static uint64_t image_of(struct targets *t, struct target *target, const struct mapped_file *file)
{
    switch (mapping_kind_of(file->path)) {
    case MAPPING_VDSO:
        /* below 4 GiB it is that of a 32-bit process, which is not the one mapped here */
        return file->start >> 32 != 0 ? IMAGE_VDSO : IMAGE_ANON;
    case MAPPING_FILE:
    case MAPPING_MEMFD:
        return images_file(t->images, target->pid, file);
    default:
        return generated_image(t, target);
    }
}

void targets_map(struct targets *t, struct target *target, const struct mapped_file *file)
{
    if (file->limit <= file->start) {
        return;
    }
    struct mapping mapping = {.start = file->start,
                              .limit = file->limit,
                              .file_offset = file->file_offset,
                              .image = image_of(t, target, file)};
    if (is_jitdump(file->path)) {
        images_set_jitdump(t->images, generated_image(t, target), mapping.image);
        return;
    }
    mapping.bias = images_bias(t->images, mapping.image, file->start, file->file_offset);
    changed_space(t, target);
    size_t count = target->maps.len;
    cut_out(target, file->start, file->limit);
    t->unmapped += target->maps.len < count;
    (void)insert_mapping(target, first_ending_behind(target, file->start), mapping);
}

/* The name as the file system has it. Borrowed until the next one. */
static struct str name_of_file(struct targets *t, struct str path)
{
    if (str_find(path, '\\') == path.len) {
        return path;
    }
    buf_clear(&t->path);
    map_path_decode(path, &t->path);
    return t->path.failed ? path : buf_slice(&t->path);
}

bool targets_read_maps(struct targets *t, struct target *target)
{
    /* a process that is ending has an empty text: what is known of it is worth more */
    if (!read_text(t, target->pid, 0, "maps") || t->text.len == 0) {
        return false;
    }
    struct str rest = buf_slice(&t->text);
    struct map_line line;
    struct mapped_file file = {0};
    t->unmapped += target->maps.len > 0;
    vec_clear(&target->maps);
    while (maps_next(&rest, &line)) {
        bool same = line.inode != 0 && line.inode == file.inode;
        uint64_t base = line.file_offset == 0 ? line.start : same ? file.base : 0;
        file = (struct mapped_file){line.start,     line.limit,     line.file_offset, line.inode,
                                    line.dev_major, line.dev_minor, line.path,        base};
        if ((line.prot & MAPPING_EXEC) != 0) {
            file.path = name_of_file(t, line.path);
            targets_map(t, target, &file);
        }
    }
    target->maps_read = true;
    return true;
}

/* The last samples of one that has ended may still wait in the rings; its mappings go with its last record,
 * or with the window. */
static void mark_images_of(struct images *images, const struct target *target)
{
    vec_each(&target->maps, mapping)
    {
        images_mark(images, mapping->image);
    }
    if (!target->ended) {
        images_mark(images, target->generated);
    }
}

void targets_mark_images(const struct targets *t)
{
    vec_each(&t->all, target)
    {
        mark_images_of(t->images, *target);
    }
    vec_each(&t->aside, target)
    {
        mark_images_of(t->images, *target);
    }
}

static struct mapping *holding(struct target *target, uint64_t address)
{
    size_t at = first_ending_behind(target, address);
    return at < target->maps.len && target->maps.at[at].start <= address ? &target->maps.at[at]
                                                                         : NULL;
}

struct mapping *targets_known_mapping(struct target *target, uint64_t address)
{
    return holding(target, address);
}

struct mapping *targets_mapping(struct targets *t, struct target *target, uint64_t address,
                                uint64_t now_ns)
{
    struct mapping *mapping = holding(target, address);
    if (mapping != NULL || target->ended || now_ns < target->reread.retry_ns) {
        return mapping;
    }
    bool again = target->maps_read;
    if (!targets_read_maps(t, target) || again) {
        /* a miss after the first reading is rarely worth another, and a refusal stays one */
        target->reread.retry_ns = now_ns + target->reread.wait_ns;
        target->reread.wait_ns *= 2;
        if (target->reread.wait_ns > MAPS_WAIT_MAX_MS * NS_PER_MS) {
            target->reread.wait_ns = MAPS_WAIT_MAX_MS * NS_PER_MS;
        }
    }
    return holding(target, address);
}

/* ---- by record ---- */

static void take_mapping(struct targets *t, const struct record *record)
{
    struct target *target = targets_get(t, record->pid);
    if (target != NULL && record->as.mmap.executable) {
        targets_map(t, target,
                    &(struct mapped_file){record->as.mmap.start,
                                          record->as.mmap.start + record->as.mmap.bytes,
                                          record->as.mmap.file_offset, record->as.mmap.inode,
                                          record->as.mmap.major, record->as.mmap.minor,
                                          record->as.mmap.path, 0});
    }
}

void targets_take(struct targets *t, const struct record *record)
{
    switch (record->kind) {
    case RECORD_MMAP:
        take_mapping(t, record);
        break;
    case RECORD_COMM:
        targets_comm(t, record->pid, record->tid, record->as.comm.name, record->as.comm.exec);
        break;
    case RECORD_FORK:
        targets_fork(t, record->pid, record->tid, record->as.fork.parent_pid,
                     record->as.fork.parent_tid, record->time_ns);
        break;
    case RECORD_EXIT:
        targets_exit(t, record->pid, record->tid, record->time_ns);
        break;
    default:
        break;
    }
}

/* ---- ids in the running profile ---- */

static uint32_t container_of(struct targets *t, struct profile *p, uint32_t pid)
{
    char id[CONTAINER_ID_MAX];
    if (!t->container_names || !read_text(t, pid, 0, "cgroup") ||
        !cgroup_container_id(buf_slice(&t->text), id)) {
        return 0;
    }
    return profile_cstring(p, id);
}

uint32_t targets_process_id(struct targets *t, struct profile *p, struct target *target)
{
    if (target->window == t->window) {
        return target->process;
    }
    bool needed = profile_need(p, true); /* samples that have no room of their own have it here */
    learn_start(t, target);
    struct process process = {
        .pid = target->pid,
        .start_ticks = target->start_ticks,
        .owner = target->owner,
        .name = profile_cstring(p, target->name),
        .container = container_of(t, p, target->pid),
        .capture_mode = target->capture_mode,
    };
    target->process = profile_process(p, &process);
    target->window = t->window;
    (void)profile_need(p, needed);
    if (target->process != 0) {
        p->processes.at[target->process].name = process.name; /* an exec renames it */
    }
    return target->process;
}

uint32_t targets_thread_id(struct targets *t, struct profile *p, struct target *target,
                           uint32_t tid)
{
    struct target_thread *thread = targets_thread(t, target->pid, tid);
    if (thread == NULL) {
        return 0;
    }
    if (thread->window != t->window) {
        bool needed = profile_need(p, true);
        name_thread(t, thread, target);
        thread->thread = profile_thread(p, targets_process_id(t, p, target), tid,
                                        profile_cstring(p, thread->name));
        (void)profile_need(p, needed);
        thread->window = t->window;
    }
    return thread->thread;
}

uint32_t targets_module_id(struct targets *t, struct profile *p, struct mapping *mapping)
{
    if (mapping->window != t->window) {
        bool needed = profile_need(p, true);
        images_need(t->images, mapping->image, t->window);
        struct module module = {
            .path = profile_string(p, images_path(t->images, mapping->image)),
            .start = mapping->start,
            .limit = mapping->limit,
            .file_offset = mapping->file_offset,
            .bias = mapping->bias,
            .image = mapping->image,
        };
        mapping->module = profile_module(p, &module);
        (void)profile_need(p, needed);
        mapping->window = t->window;
    }
    return mapping->module;
}
