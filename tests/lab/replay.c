/*
 * replay FILE: a recording through the whole pipeline, printed as text.
 *
 * No rings, no /proc, no rights. What comes out is the collapsed stacks that a live run would have made of
 * the same inputs, without header, ordered, each with its number of samples; then a line per kind of ending
 * ("# complete 120"). The kernel's own symbols are not in a recording, so kernel code is "[kernel]".
 */
#include "capture/stacks/stacks.h"
#include "os/file.h"
#include "profile/fold.h"
#include "recording.h"
#include "sample/order.h"

#include <stdio.h>

#include <stdlib.h>
#include <string.h>

enum {
    REPLAY_PROFILE_MAX_BYTES = 1 << 30,
    REPLAY_NAMER_MAX_BYTES = 64 << 20,
    REPLAY_ORDER_MAX_BYTES = 64 << 20,
    LINE_MAX_BYTES = 4 << 20,
};

struct replay {
    struct recording *recording;
    struct record_format format;
    struct world world;
    struct images images;
    struct targets targets;
    struct unwinder unwinder;
    struct stacks stacks;
    struct order order;
    struct profile profile;
    struct namer namer;
    struct symbol_source source;
    struct debug_source debug;
};

/* ---- steps ---- */

static void on_ordered(void *context, const void *ptr, size_t len)
{
    struct replay *r = context;
    struct record record;
    if (!record_parse(ptr, len, &r->format, &record, NULL)) {
        return;
    }
    if (record.kind == RECORD_SAMPLE) {
        stacks_add(&r->stacks, &r->profile, &record, NULL);
    } else {
        targets_take(&r->targets, &record);
    }
}

static void on_ring(void *context, const void *ptr, size_t len)
{
    struct replay *r = context;
    struct record record;
    if (record_parse(ptr, len, &r->format, &record, NULL)) {
        void *room = order_room(&r->order, record.time_ns, len);
        if (room != NULL) {
            memcpy(room, ptr, len);
        }
    }
}

static void on_round(void *context, bool last)
{
    struct replay *r = context;
    if (last) {
        order_flush(&r->order, on_ordered, r);
    } else {
        order_round(&r->order, UINT64_MAX, on_ordered, r);
    }
}

static void on_target(void *context, uint32_t pid, bool running)
{
    struct replay *r = context;
    struct target *target = targets_get(&r->targets, pid);
    if (target != NULL && running) {
        (void)targets_read_maps(&r->targets, target);
    }
}

/* ---- printing ---- */

struct line {
    char *text;
    uint64_t count;
};

struct lines {
    VEC(struct line) list;
};

static void add_path(const struct profile *p, uint32_t node, struct buf *out)
{
    const struct node *n = &p->nodes.at[node];
    if (n->parent != 0) {
        add_path(p, n->parent, out);
        buf_byte(out, ';');
    }
    uint32_t chain[PROFILE_INLINES_MAX];
    size_t depth = 0;
    for (uint32_t f = n->frame; f != 0 && depth < PROFILE_INLINES_MAX; f = p->frames.at[f].caller) {
        chain[depth++] = f;
    }
    while (depth > 0) {
        const struct frame *frame = &p->frames.at[chain[--depth]];
        buf_str(out, profile_text(p, frame->name));
        buf_text(out, languages[frame->kind].suffix);
        buf_text(out, depth > 0 ? ";" : "");
    }
}

static bool add_line(struct lines *lines, struct profile *p, const struct sample *sample)
{
    struct buf text;
    buf_init(&text, LINE_MAX_BYTES);
    buf_str(&text, profile_text(p, p->threads.at[sample->thread].name));
    buf_byte(&text, ';');
    add_path(p, sample->node, &text);
    struct line *line = text.failed ? NULL : vec_push(&lines->list);
    if (line != NULL) {
        *line = (struct line){strdup(buf_cstr(&text)), sample->count};
    }
    buf_release(&text);
    return line != NULL && line->text != NULL;
}

static int by_text(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    return strcmp(a->text, b->text);
}

static bool print_lines(struct lines *lines, struct sink *out, struct err *err)
{
    if (lines->list.len > 0) {
        qsort(lines->list.at, lines->list.len, sizeof *lines->list.at, by_text);
    }
    struct buf text;
    buf_init(&text, LINE_MAX_BYTES + 32);
    bool good = true;
    for (size_t i = 0; good && i < lines->list.len; i++) {
        uint64_t count = lines->list.at[i].count;
        bool same = i + 1 < lines->list.len &&
                    strcmp(lines->list.at[i].text, lines->list.at[i + 1].text) == 0;
        if (same) {
            lines->list.at[i + 1].count += count;
            continue;
        }
        buf_clear(&text);
        buf_printf(&text, "%s %llu\n", lines->list.at[i].text, (unsigned long long)count);
        good = sink_write(out, text.ptr, text.len, err);
    }
    buf_release(&text);
    return good;
}

static bool print_ends(const struct profile *p, struct sink *out, struct err *err)
{
    static const char *const names[STACK_END_COUNT] = {"complete", "truncated", "no rule",
                                                       "bad memory", "guessed"};
    struct buf text;
    buf_init(&text, 512);
    for (unsigned i = 0; i < STACK_END_COUNT; i++) {
        if (p->meta.stack_ends[i] > 0) {
            buf_printf(&text, "# %s %llu\n", names[i], (unsigned long long)p->meta.stack_ends[i]);
        }
    }
    bool good = sink_write(out, text.ptr, text.len, err);
    buf_release(&text);
    return good;
}

static bool print(struct replay *r, struct sink *out, struct err *err)
{
    struct lines lines = {0};
    bool good = true;
    for (size_t i = 1; good && i < r->profile.samples.len; i++) {
        good = add_line(&lines, &r->profile, &r->profile.samples.at[i]) ||
               err_set(err, ERR_MEMORY, 0, "no memory to print %zu stacks",
                       r->profile.samples.len);
    }
    good = good && print_lines(&lines, out, err) && print_ends(&r->profile, out, err);
    vec_each(&lines.list, line)
    {
        free(line->text);
    }
    vec_release(&lines.list);
    return good;
}

/* ---- the run ---- */

static bool begin(struct replay *r, struct err *err)
{
    const struct observed_format *format = recording_format(r->recording);
    bool stacks = format->registers != 0;
    if (stacks && format->registers != unwind_perf_mask()) {
        return err_set(err, ERR_UNSUPPORTED, 0, "the recording was made on another processor");
    }
    r->format = (struct record_format){format->sample_type, format->registers};
    r->world = recording_world(r->recording);
    images_init(&r->images, &r->world);
    targets_init(&r->targets, &r->images, false);
    order_init(&r->order, REPLAY_ORDER_MAX_BYTES);
    r->source = images_source(&r->images);
    r->debug = images_debug_source(&r->images);
    namer_init(&r->namer, &r->source, REPLAY_NAMER_MAX_BYTES);
    r->namer.debug = &r->debug;
    return profile_init(&r->profile, REPLAY_PROFILE_MAX_BYTES, err) &&
           (!stacks || unwinder_init(&r->unwinder,
                                     format->cfi_only ? UNWIND_CFI_ONLY : UNWIND_HYBRID, err)) &&
           (stacks_init(&r->stacks, &r->targets, NULL, stacks ? &r->unwinder : NULL,
                        format->registers) ||
            err_set(err, ERR_MEMORY, 0, "no memory to unwind"));
}

static void end(struct replay *r)
{
    namer_release(&r->namer);
    stacks_release(&r->stacks);
    unwinder_release(&r->unwinder);
    order_release(&r->order);
    targets_release(&r->targets);
    images_release(&r->images);
    profile_release(&r->profile);
}

static bool replay(const char *path, struct sink *out, struct err *err)
{
    struct replay r = {.recording = recording_open(path, err)};
    if (r.recording == NULL) {
        return false;
    }
    bool good = begin(&r, err);
    if (good) {
        const struct recording_steps steps = {on_target, on_ring, on_round, &r};
        recording_replay(r.recording, &steps);
        order_flush(&r.order, on_ordered, &r);
        stacks_end_window(&r.stacks, &r.profile);
        good = namer_run(&r.namer, &r.profile, err) && print(&r, out, err);
    }
    end(&r);
    recording_release(r.recording);
    return good;
}

int main(int argc, char **argv)
{
    struct file_writer writer;
    struct err err;
    if (argc != 2) {
        fprintf(stderr, "usage: replay RECORDING\n");
        return 2;
    }
    bool good = file_create_atomic(&writer, "-", &err);
    if (good) {
        struct sink sink = file_sink(&writer);
        good = replay(argv[1], &sink, &err) && file_commit(&writer, &err);
    }
    if (!good) {
        fprintf(stderr, "replay: %s\n", err.text);
    }
    return good ? 0 : 1;
}
