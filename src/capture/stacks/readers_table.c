/* Readers: the catchers' table. Which of a process's readers have a row in it, which depends on how the process is
 * read: on perf's rings, by a timer, or held by brief stops; and what a row tells a catcher. Nothing in it is owned
 * by it.
 */
#include "capture/stacks/readers_private.h"

static bool walks(const struct reader *reader)
{
    return reader->runtime != NULL && reader->runtime->walk != NULL;
}

bool readers_walk(const struct target *target)
{
    const struct reader *reader = target->runtime.reader;
    while (reader != NULL && !walks(reader)) {
        reader = reader->next;
    }
    return reader != NULL;
}

/* Who is read by a timer, without being held, needs a runtime that walks; who is caught on rings, too, or a deep
 * stack. Of a process whose runtimes do not walk one row is enough. */
static bool has_row(const struct reader *reader, bool timed)
{
    const struct target *target = reader->target;
    bool stops = timed && target->runtime.stops;
    if (timed != (target->capture_mode == CAPTURE_RUNTIME)) {
        return false;
    }
    bool is_caught = stops || (!timed && target->runtime.deep);
    bool stands_for_all = is_caught && target->runtime.reader == reader && !readers_walk(target);
    return walks(reader) || (!timed && reader->runtime == NULL) || stands_for_all;
}

/* Of Go, whose stacks are several. */
static bool has_frame_pointers(const struct readers *r, const struct target *target)
{
    bool has = false;
    for (size_t i = 0; target->runtime.stops && i < target->maps.len && !has; i++) {
        uint64_t image = target->maps.at[i].image;
        has = image >= IMAGE_FIRST_FILE && images_has_frame_pointers(r->images, image);
    }
    return has;
}

const struct catch_target *readers_table(struct readers *r, bool timed, size_t *count)
{
    vec_clear(&r->table);
    vec_each(&r->all, slot)
    {
        struct reader *reader = *slot;
        bool read = has_row(reader, timed);
        struct catch_target *row = read ? vec_push(&r->table) : NULL;
        if (read && row == NULL) {
            break;
        }
        if (!read) {
            continue;
        }
        *row = (struct catch_target){
            .pid = reader->pid,
            .runtime = walks(reader) ? reader->runtime : NULL,
            .state = reader->state,
            .remote = &reader->remote,
            .serial = reader->serial,
            .deep = reader->target->runtime.deep,
            .gaps = reader->target->runtime.gaps,
            .stops = timed && reader->target->runtime.stops,
            .stack_bytes = reader->target->runtime.stack_bytes,
            .chains = has_frame_pointers(r, reader->target),
            .identity = reader->identity,
            .as_user = reader->as_user,
            .tids = reader->tids.list.at,
            .tid_count = reader->tids.list.len,
        };
    }
    *count = r->table.len;
    return r->table.at;
}
