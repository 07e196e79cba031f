/* Samples: which reader a stack belongs to, what a native frame is to its runtime, and the frames of the profile that a
 * runtime's frames stand for. Frames are named several at once and each once in a window, but those that
 * the runtime may call otherwise at the next stack. */
#include "base/intern.h"
#include "capture/catch/catch_table.h"
#include "capture/stacks/readers_private.h"

enum {
    FAILED_MAX = 64, /* walks in a row */
    NAMES_ASKED_MAX = 256, /* of a process's threads, in a window */
};

struct reader *readers_of(struct readers *r, const struct target *target, uint64_t serial)
{
    (void)r;
    struct reader *reader = target->runtime.reader;
    while (reader != NULL && reader->serial != serial) {
        reader = reader->next;
    }
    return reader != NULL && reader->program == target->program ? reader : NULL;
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

/* As its own PID namespace numbers it; 0: not listed yet. */
static uint32_t number_inside(const struct reader *reader, uint32_t tid)
{
    const struct catch_target numbers = {.tids = reader->tids.list.at, .tid_count = reader->tids.list.len};
    uint32_t inside = catch_table_inner_tid(&numbers, tid);
    return reader->is_inner && inside == tid ? 0 : inside;
}

bool readers_name_thread(void *context, struct target *target, struct target_thread *thread, struct buf *out)
{
    struct readers *r = context;
    struct target_runtime *asked = &target->runtime;
    asked->asked = asked->asked_window == r->targets->window ? asked->asked : 0;
    asked->asked_window = r->targets->window;
    for (struct reader *reader = asked->reader; reader != NULL; reader = reader->next) {
        const struct runtime *runtime = reader->runtime;
        bool can = runtime != NULL && runtime->name_thread != NULL && reader->program == target->program;
        uint32_t tid = can ? number_inside(reader, thread->tid) : 0;
        if (tid == 0 || asked->asked >= NAMES_ASKED_MAX) {
            continue;
        }
        asked->asked++;
        thread->asked++;
        if (runtime->name_thread(reader->names, tid, &reader->memory, out)) {
            return true;
        }
    }
    return false;
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
