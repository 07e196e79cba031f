#include "capture/live/dump_frames.h"

static void add(const struct profile *p, uint32_t id, struct dump_frames *out)
{
    const struct frame *frame = &p->frames.at[id];
    struct str name = profile_text(p, frame->name);
    struct dump_frame *to = str_starts(name, STR("[waits")) ? NULL : vec_push(&out->all);
    if (to == NULL) {
        return;
    }
    bool has_own = frame->system_name != 0 && frame->kind != FRAME_NATIVE && frame->kind != FRAME_KERNEL;
    *to = (struct dump_frame){.function = has_own ? profile_text(p, frame->system_name) : name,
                              .file = profile_text(p, frame->file),
                              .line = frame->line,
                              .kind = frame->kind};
    if (frame->module != 0) {
        to->module = str_base_name(profile_text(p, p->modules.at[frame->module].path));
    }
}

const char *dump_state(char state)
{
    static const char letters[] = "RSDTtZXIP";
    static const char *const words[] = {"running", "sleeping", "disk wait", "stopped",  "traced",
                                        "zombie",  "zombie",   "sleeping",  "sleeping", "ended"};
    const char *at = state != 0 ? strchr(letters, state) : NULL;
    return words[at != NULL ? (size_t)(at - letters) : sizeof letters - 1];
}

void dump_frames(const struct profile *p, uint32_t node, struct dump_frames *out)
{
    uint32_t chain[PROFILE_INLINES_MAX];
    vec_clear(&out->all);
    for (; node != 0; node = p->nodes.at[node].parent) {
        size_t count = profile_expand(p, p->nodes.at[node].frame, chain);
        for (size_t i = 0; i < count; i++) {
            add(p, chain[i], out);
        }
    }
}
