/*
 * unwind RECORDING: unwinds the samples of a recording over and over, by pillion and by the peer,
 * and prints one object of JSON.
 *
 * The samples are in memory before the first is unwound; the rules come from the files themselves,
 * read as the product reads them. Each sample's stack is copied to one place before it is unwound,
 * because the product has just copied it from a ring: it is in the processor's cache then. Stacks
 * that go on beyond their copy count for how stacks end; they are not timed, because their time is
 * that of reading another process's memory.
 *
 * Every stack is timed alone by the wall clock, once per pass over all of them, and its median
 * over the passes counts: what else the machine does interrupts few of them, and not the same ones
 * each time. What reading the clock takes is taken off. Warm is every pass but the first; passes
 * of the two take turns.
 */
#include "files.h"
#include "peer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SAMPLES_MOST = 2000, /* evenly spread over the recording */
    STACK_MAX = 64 * 1024,
    PASSES = 25,
    PEER_PASSES = 5,
};

struct bench {
    struct samples samples;
    struct file *files; /* by image */
    size_t file_count;
    struct unwinder unwinder;
    size_t timed; /* of the samples, the first ones */
    const struct lab_sample *at;
    unsigned char stack[STACK_MAX];
    struct lab_sample copy;
    struct unwind_result result;
};

/* ---- one stack ---- */

static bool find_place(void *context, uint64_t address, struct unwind_place *out)
{
    struct bench *b = context;
    const struct mapping *m = samples_mapping(&b->samples, b->at, address);
    if (m == NULL) {
        return false;
    }
    *out = (struct unwind_place){
        .start = m->start,
        .limit = m->limit,
        .bias = m->bias,
        .image = m->image,
        .table = m->image < b->file_count ? b->files[m->image].table : NULL,
        .frame_pointers = images_has_frame_pointers(&b->samples.images, m->image),
    };
    return true;
}

/* The sample with its stack where every sample's stack comes. */
static const struct lab_sample *present(struct bench *b, const struct lab_sample *sample)
{
    b->copy = *sample;
    b->copy.stack = b->stack;
    b->copy.stack_len = sample->stack_len < STACK_MAX ? sample->stack_len : STACK_MAX;
    memcpy(b->stack, sample->stack, b->copy.stack_len);
    return &b->copy;
}

static void unwind_one(struct bench *b, const struct lab_sample *sample)
{
    b->at = sample;
    struct memory_reader memory = samples_memory(&b->samples, sample);
    const struct unwind_space space = {.id = sample->life + 1, .find = find_place, .code = &memory, .context = b};
    const struct unwind_stack stack = {.base = unwind_sp(&sample->registers), .copy = sample->stack,
                                       .len = sample->stack_len, .beyond = &memory};
    unwind(&b->unwinder, &sample->registers, &stack, &space, UNWIND_FRAMES_MAX, &b->result);
}

/* ---- files ---- */

static void open_files(struct bench *b)
{
    b->file_count = IMAGE_FIRST_FILE + b->samples.images.slots.len;
    b->files = calloc(b->file_count, sizeof *b->files);
    if (b->files == NULL) {
        abort();
    }
    for (uint64_t image = 0; image < b->file_count; image++) {
        struct str path = images_path(&b->samples.images, image);
        b->files[image].fd = -1;
        if (image == IMAGE_VDSO) {
            file_open_vdso(&b->files[image], b->samples.world.vdso);
        } else if (path.len > 0 && path.ptr[0] == '/') {
            file_open_path(&b->files[image], path.ptr);
        }
    }
}

/* Keeps SAMPLES_MOST of the samples. */
static void thin_out(struct samples *s)
{
    size_t count = s->all.len, kept = 0;
    for (size_t i = 0; count > SAMPLES_MOST && i < count; i++) {
        struct lab_sample *sample = &s->all.at[i];
        if (kept * count / SAMPLES_MOST == i) {
            s->all.at[kept++] = *sample;
        } else {
            free(sample->stack);
        }
    }
    s->all.len = kept > 0 ? kept : count;
}

static void begin_cold(struct bench *b)
{
    for (size_t i = 0; i < b->file_count; i++) {
        file_fresh_table(&b->files[i]);
    }
    unwinder_release(&b->unwinder);
    if (!unwinder_init(&b->unwinder, UNWIND_HYBRID, NULL)) {
        abort();
    }
}

/* ---- measurements ---- */

struct times {
    VEC(uint64_t) ns;
};

static uint64_t at_share(struct times *t, double share)
{
    if (t->ns.len == 0) {
        return 0;
    }
    qsort(t->ns.at, t->ns.len, sizeof *t->ns.at, bench_by_number);
    size_t at = (size_t)(share * (double)t->ns.len);
    return t->ns.at[at < t->ns.len ? at : t->ns.len - 1];
}

static void note(struct times *t, uint64_t ns)
{
    uint64_t *place = vec_push(&t->ns);
    if (place == NULL) {
        abort();
    }
    *place = ns;
}

static bool goes_beyond(const struct unwind_result *r)
{
    bool beyond = r->end == STACK_TRUNCATED;
    for (size_t i = 0; i < r->count; i++) {
        beyond |= (r->frame[i].flags & FRAME_CONTINUED) != 0;
    }
    return beyond;
}

/* Unwinds all samples, and puts those to be timed to the front. */
static void sort_out(struct bench *b)
{
    struct lab_sample *all = b->samples.all.at;
    b->timed = 0;
    for (size_t i = 0; i < b->samples.all.len; i++) {
        unwind_one(b, &all[i]);
        if (!goes_beyond(&b->result)) {
            struct lab_sample swapped = all[b->timed];
            all[b->timed++] = all[i];
            all[i] = swapped;
        }
    }
}

/* Times of every stack in each pass: stack i in pass p is at[i * passes + p]. */
struct grid {
    uint64_t *at;
    size_t stacks, passes;
};

static struct grid make_grid(size_t stacks, size_t passes)
{
    struct grid g = {calloc(stacks * passes + 1, sizeof *g.at), stacks, passes};
    if (g.at == NULL) {
        abort();
    }
    return g;
}

/* What it takes to read the clock twice. */
static uint64_t clock_ns(void)
{
    struct times times = {0};
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t begin = bench_wall_ns();
        note(&times, bench_wall_ns() - begin);
    }
    uint64_t median = at_share(&times, .5);
    vec_release(&times.ns);
    return median;
}

/* The median of each stack. Empties the grid. */
static struct times medians(struct grid *g)
{
    struct times out = {0};
    uint64_t clock = clock_ns();
    for (size_t i = 0; i < g->stacks; i++) {
        uint64_t *row = g->at + i * g->passes;
        qsort(row, g->passes, sizeof *row, bench_by_number);
        uint64_t median = row[g->passes / 2];
        note(&out, median > clock ? median - clock : 0);
    }
    free(g->at);
    return out;
}

static void pass(struct bench *b, struct grid *g, size_t number)
{
    for (size_t i = 0; i < b->timed; i++) {
        const struct lab_sample *copy = present(b, &b->samples.all.at[i]);
        uint64_t begin = bench_wall_ns();
        unwind_one(b, copy);
        g->at[i * g->passes + number] = bench_wall_ns() - begin;
    }
}

struct peer_counts {
    uint64_t frames, ends;
};

static struct peer_counts peer_stacks(struct bench *b, struct peer *peer, size_t count,
                                      struct grid *g, size_t number)
{
    struct peer_counts counts = {0};
    for (size_t i = 0; i < count; i++) {
        bool ended;
        const struct lab_sample *copy = present(b, &b->samples.all.at[i]);
        uint64_t begin = bench_wall_ns();
        counts.frames += peer_unwind(peer, copy, &ended);
        counts.ends += ended;
        if (g != NULL) {
            g->at[i * g->passes + number] = bench_wall_ns() - begin;
        }
    }
    return counts;
}

/* The first address that the samples touch in each page of code. */
struct touch {
    uint64_t image, address;
};

struct touches {
    VEC(struct touch) list;
};

static void find_touches(struct bench *b, struct touches *out)
{
    struct map seen = {0};
    vec_each(&b->samples.all, sample) {
        unwind_one(b, sample);
        for (size_t i = 0; i < b->result.count; i++) {
            const struct unwind_frame *frame = &b->result.frame[i];
            uint64_t page = frame->elf_address / UNWIND_PAGE_BYTES;
            uint64_t key = hash_u64(page ^ hash_u64(frame->image));
            bool has_table = frame->image < b->file_count && b->files[frame->image].table != NULL;
            if (!has_table || map_find(&seen, key) != NULL) {
                continue;
            }
            struct touch *touch = vec_push(&out->list);
            if (touch == NULL || !map_put(&seen, key, 1)) {
                abort();
            }
            *touch = (struct touch){frame->image, frame->elf_address};
        }
    }
    map_release(&seen);
}

/* What a stack pays that comes to new code, in the order in which the samples came there. */
static void time_touches(struct bench *b, struct times *times)
{
    struct touches touches = {0};
    find_touches(b, &touches);
    begin_cold(b);
    vec_each(&touches.list, touch) {
        bool analysed;
        uint64_t begin = bench_wall_ns();
        (void)unwind_table_rule(b->files[touch->image].table, touch->address, &analysed);
        note(times, bench_wall_ns() - begin);
    }
    vec_release(&touches.list);
}

/* ---- the whole ---- */

static void print_times(const char *name, struct times *times, const char *end)
{
    uint64_t sum = 0;
    vec_each(&times->ns, ns) {
        sum += *ns;
    }
    printf("\"%s\": {\"sum\": %" PRIu64 ", \"median\": %" PRIu64 ", \"p90\": %" PRIu64
           ", \"p99\": %" PRIu64 ", \"most\": %" PRIu64 ", \"count\": %zu}%s",
           name, sum, at_share(times, .5), at_share(times, .9), at_share(times, .99),
           at_share(times, 1), times->ns.len, end);
    vec_release(&times->ns);
}

static void print_counts(const char *name, const struct unwind_counters *c)
{
    static const char *const ends[STACK_END_COUNT] = {"complete", "truncated", "no_rule",
                                                      "bad_memory", "guessed"};
    printf("\"%s\": {\"frames\": %" PRIu64 ", \"hits\": %" PRIu64 ", \"by_fp\": %" PRIu64
           ", \"analysed\": %" PRIu64 ", \"continued\": %" PRIu64,
           name, c->frames, c->hits, c->by_fp, c->analysed, c->continued);
    for (unsigned i = 0; i < STACK_END_COUNT; i++) {
        printf(", \"%s\": %" PRIu64, ends[i], c->stacks[i]);
    }
    printf("}, ");
}

static void print_peer_counts(const char *name, struct peer_counts counts)
{
    printf("\"%s\": {\"frames\": %" PRIu64 ", \"ends\": %" PRIu64 "}, ", name, counts.frames,
           counts.ends);
}

/* All stacks once: how they end. */
static void count_all(struct bench *b, struct peer *peer)
{
    b->unwinder.counters = (struct unwind_counters){0};
    sort_out(b);
    printf("\"stacks\": %zu, \"timed\": %zu, ", b->samples.all.len, b->timed);
    print_counts("all", &b->unwinder.counters);
    if (peer != NULL) {
        print_peer_counts("peer_all", peer_stacks(b, peer, b->samples.all.len, NULL, 0));
    }
}

/* Warm passes of both, in turns. */
static void compare(struct bench *b, struct peer *peer)
{
    struct grid ours = make_grid(b->timed, PASSES), theirs = make_grid(b->timed, PEER_PASSES);
    struct peer_counts counts = {0};
    pass(b, &ours, 0);
    for (size_t n = 0; n < PASSES; n++) {
        b->unwinder.counters = (struct unwind_counters){0};
        pass(b, &ours, n);
        if (peer != NULL && n < PEER_PASSES) {
            counts = peer_stacks(b, peer, b->timed, &theirs, n);
        }
    }
    print_counts("warm", &b->unwinder.counters);
    struct times warm = medians(&ours), peer_warm = medians(&theirs);
    print_times("stack", &warm, ", ");
    if (peer != NULL) {
        printf("\"peer\": \"%s\", ", peer_name());
        print_peer_counts("peer_warm", counts);
        print_times("peer_stack", &peer_warm, ", ");
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct times touches = {0};
    struct err err;
    if (argc != 2) {
        fprintf(stderr, "usage: unwind RECORDING\n");
        return 2;
    }
    if (!samples_load(&b.samples, argv[1], NULL, NULL, &err) ||
        !unwinder_init(&b.unwinder, UNWIND_HYBRID, &err)) {
        fprintf(stderr, "unwind: %s\n", err.text);
        return 1;
    }
    thin_out(&b.samples);
    open_files(&b);
    sort_out(&b);
    time_touches(&b, &touches);
    struct peer *peer = peer_new(&b.samples);
    printf("{\"without\": %" PRIu64 ", ", b.samples.without);
    count_all(&b, peer);
    compare(&b, peer);
    peer_free(peer);
    print_times("touch", &touches, "}\n");
    for (size_t i = 0; i < b.file_count; i++) {
        file_close(&b.files[i]);
    }
    free(b.files);
    unwinder_release(&b.unwinder);
    samples_release(&b.samples);
    return 0;
}
