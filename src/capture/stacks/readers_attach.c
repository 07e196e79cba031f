/* One process and one of its runtimes: reads its mappings and threads, opens its memory, and has the runtime find its
 * structures there. In another PID namespace threads have other numbers inside, which are listed again when
 * threads come and go. */
#include "base/time.h"
#include "capture/follow/follow.h"
#include "capture/stacks/readers_private.h"
#include "os/proc.h"
#include "target/maps.h"
#include "target/status.h"

#include <stdlib.h>

enum {
    TIDS_MAX = 8192,
    TIDS_AGAIN_MS = 1000,
};

/* ---- ways to read one ---- */

/* Does what is sampled of it have registers? */
static bool has_registers(const struct target *target)
{
    return follow_is_on_perf(target) || target->runtime.stops;
}

bool readers_is_of_use(const struct runtime *runtime, const void *binary, const struct target *target)
{
    if (runtime == NULL) {
        return true;
    }
    bool is_of_files = runtime->attach == NULL; /* the publisher asks it */
    bool is_any = runtime->is_walked == NULL || runtime->is_walked(binary);
    bool stands_alone = !runtime->only_labels && (runtime->walk != NULL || runtime->resolve == NULL);
    return !is_of_files && is_any && (stands_alone || has_registers(target));
}

bool readers_is_collected(const struct readers *r, const struct target *target, const struct readers_binary *binary)
{
    const struct runtime *runtime = binary->runtime;
    const struct runtime_settings *s = &r->settings->runtime;
    if (runtime == NULL || runtime->collect == NULL) {
        return false;
    }
    enum runtime_mode mode = s->mode[runtime->kind];
    if (runtime->collect->is_aside || !r->collects) {
        return runtime->collect->is_aside && mode != RUNTIME_DISABLED;
    }
    bool is_opt_in = runtime->collect->opt_in != NULL;
    bool is_wanted = is_opt_in ? mode == RUNTIME_COLLECT : s->attaches && mode != RUNTIME_WALK;
    return is_wanted && ((s->collected != 0 && !is_opt_in) || !readers_is_of_use(runtime, binary->binary, target));
}

/* ---- a reader ---- */

void readers_free(struct reader *reader)
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

bool readers_open_memory(struct reader *reader, uint32_t pid, uint64_t probe, struct err *why)
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

static bool read_file(void *context, const char *path, struct buf *out)
{
    const struct reader *reader = context;
    return world_read(reader->world, reader->pid, path, out);
}

/* Null, with the reason: the process has the runtime but it cannot be read (now). */
struct reader *readers_attach(struct readers *r, struct target *target, const struct mapping *mapping,
                              const struct readers_binary *binary, struct err *why)
{
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        err_set(why, ERR_MEMORY, 0, "no memory to read the stacks of pid %u", target->pid);
        return NULL;
    }
    bool good = readers_open_memory(reader, target->pid, mapping->start, why);
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
        .shows_urls = r->settings->runtime.shows_urls,
        .file = r->settings->runtime.maps_sources ? read_file : NULL,
        .files = reader,
    };
    reader->world = r->images->world;
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
        readers_free(reader);
        return NULL;
    }
    reader->target = target;
    reader->serial = ++r->serials;
    reader->program = target->program;
    reader->image = mapping->image;
    reader->bias = mapping->bias;
    reader->binary = binary->binary;
    return reader;
}

void readers_find_extension(struct readers *r, const struct reader *reader)
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
bool readers_list_tids_again(struct readers *r, struct reader *reader, uint64_t now_ns)
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
