/* What the heaviest process was begun as. Once a second the one that has used most in this window so far is looked
 * at, if it is another one than before, or runs another program by now; at the window's end the one that has used most
 * by the accounting. What is known then of its process goes into the profile. */
#include "capture/upload/heaviest.h"
#include "base/time.h"
#include "capture/stacks/readers.h"
#include "os/proc.h"
#include "target/entry.h"

#include <stdlib.h>

enum { LOOK_MS = 1000, ARGUMENTS_MAX_BYTES = 64 * 1024, LINK_MAX_BYTES = 4096, RELEASE_MAX_BYTES = 128 };

struct heaviest {
    struct follow *follow;
    const struct runtime *const *rows;
    uint64_t next_ns;
    uint32_t pid; /* 0: none was looked at */
    uint64_t start_ticks, program;
    const char *options; /* of the interpreter that it is; null: it is none, as far as is known */
    struct buf arguments, entry, release;
};

static const char *options_of(const struct target *target)
{
    const struct reader *reader = target->runtime.reader;
    return reader != NULL && reader->runtime != NULL ? languages[reader->runtime->kind].options : NULL;
}

static void find_release(struct heaviest *h, const struct target *target)
{
    struct images *images = &h->follow->images;
    buf_clear(&h->release);
    vec_each(&target->maps, mapping)
    {
        struct elf *elf = mapping->image != IMAGE_NONE ? images_elf(images, mapping->image) : NULL;
        for (size_t i = 0; elf != NULL && h->rows[i] != NULL; i++) {
            if (h->rows[i]->release != NULL && h->rows[i]->release(elf, &h->release)) {
                return;
            }
        }
    }
}

static void look_at(struct heaviest *h, const struct target *target)
{
    const char *options = options_of(target);
    if (h->pid == target->pid && h->start_ticks == target->start_ticks && h->program == target->program &&
        h->options == options) {
        return;
    }
    char exe[LINK_MAX_BYTES], folder[LINK_MAX_BYTES];
    const struct world *world = h->follow->shared->world;
    if (!world->text(world->context, target->pid, 0, "cmdline", &h->arguments, NULL) || h->arguments.len == 0) {
        return; /* it has ended; what is known of it stays */
    }
    h->pid = target->pid;
    h->start_ticks = target->start_ticks;
    h->program = target->program;
    h->options = options;
    const struct entry_facts facts = {
        .arguments = buf_slice(&h->arguments),
        .exe = str_of(proc_link(target->pid, "exe", exe, sizeof exe) ? exe : NULL),
        .folder = str_of(proc_link(target->pid, "cwd", folder, sizeof folder) ? folder : NULL),
        .options = options,
    };
    buf_clear(&h->entry);
    entry_describe(&facts, &h->entry);
    find_release(h, target);
}

static bool is_wanted(const struct heaviest *h)
{
    const struct shared *s = h->follow->shared;
    return s->settings->upload.wanted && s->settings->origin.metadata && s->observer == NULL;
}

static uint64_t used_ns(const struct target *target)
{
    return target->account.sampled_ns + target->account.attributed_ns;
}

static void look(void *state, uint64_t now_ns)
{
    struct heaviest *h = state;
    const struct targets *targets = &h->follow->targets;
    if (now_ns < h->next_ns || !is_wanted(h)) {
        return;
    }
    h->next_ns = now_ns + LOOK_MS * NS_PER_MS;
    const struct target *most = NULL;
    vec_each(&targets->all, target)
    {
        bool is_here = !(*target)->ended && (*target)->window == targets->window;
        most = is_here && (most == NULL || used_ns(*target) > used_ns(most)) ? *target : most;
    }
    if (most != NULL) {
        look_at(h, most);
    }
}

static struct process *most_of(struct profile *p)
{
    struct process *most = NULL;
    for (size_t i = 1; i < p->processes.len; i++) {
        most = most == NULL || p->processes.at[i].cpu_ns > most->cpu_ns ? &p->processes.at[i] : most;
    }
    return most;
}

static void note(void *state)
{
    struct heaviest *h = state;
    struct profile *p = h->follow->shared->window.profile;
    struct process *most = is_wanted(h) ? most_of(p) : NULL;
    const struct target *target = most != NULL ? targets_find(&h->follow->targets, most->pid) : NULL;
    if (target != NULL && !target->ended && target->start_ticks == most->start_ticks) {
        look_at(h, target);
    }
    if (most == NULL || most->pid != h->pid || most->start_ticks != h->start_ticks) {
        return;
    }
    most->entry = profile_string(p, buf_slice(&h->entry));
    if (most->runtime == 0 && h->release.len > 0) {
        most->runtime = profile_string(p, buf_slice(&h->release));
    }
}

struct heaviest *heaviest_new(struct follow *f, const struct runtime *const *rows)
{
    struct heaviest *h = calloc(1, sizeof *h);
    if (h != NULL) {
        *h = (struct heaviest){.follow = f, .rows = rows};
        buf_init(&h->arguments, ARGUMENTS_MAX_BYTES);
        buf_init(&h->entry, ENTRY_MAX_BYTES);
        buf_init(&h->release, RELEASE_MAX_BYTES);
    }
    return h;
}

static void release(void *state)
{
    struct heaviest *h = state;
    buf_release(&h->arguments);
    buf_release(&h->entry);
    buf_release(&h->release);
    free(h);
}

const struct concern heaviest_concern = {
    .name = "heaviest process",
    .round = look,
    .window_end = note,
    .release = release,
};
