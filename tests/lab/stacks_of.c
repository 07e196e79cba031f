/*
 * stacks_of RECORDING: unwinds the samples of a recording, as the product does, and prints a line
 * for each:
 *
 *     TIME PID TID END FRAME...
 *
 * TIME is the record's, in ns; END is complete, truncated, no-rule, bad-memory or guessed. A
 * FRAME, leaf first, is OFFSET[FLAGS]@FILE: where the instruction stands in its file (a caller's
 * address less one), hexadecimal, or its runtime address when there is no file; how the frame was
 * found (f frame pointer, a code analysed, g guessed, c memory read later, x exact); the file's
 * path, with %20 for a blank.
 *
 * The rules come from the recording, not from the files of this machine.
 */
#include "samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct run {
    struct samples samples;
    struct unwinder unwinder;
    const struct lab_sample *at;
    struct unwind_result result;
};

static bool find_place(void *context, uint64_t address, struct unwind_place *out)
{
    struct run *run = context;
    const struct mapping *m = samples_mapping(&run->samples, run->at, address);
    if (m == NULL) {
        return false;
    }
    *out = (struct unwind_place){
        .start = m->start,
        .limit = m->limit,
        .bias = m->bias,
        .image = m->image,
        .table = images_table(&run->samples.images, m->image),
        .frame_pointers = images_has_frame_pointers(&run->samples.images, m->image),
    };
    return true;
}

static void unwind_one(struct run *run, const struct lab_sample *sample)
{
    run->at = sample;
    struct memory_reader memory = samples_memory(&run->samples, sample);
    const struct lab_life *life = &run->samples.lives.at[sample->life];
    const struct unwind_space space = {life->space, find_place, NULL, &memory, run};
    const struct unwind_stack stack = {.base = unwind_sp(&sample->registers), .copy = sample->stack,
                                       .len = sample->stack_len, .beyond = &memory};
    unwind(&run->unwinder, &sample->registers, &stack, &space, UNWIND_FRAMES_MAX, &run->result);
}

static void print_path(struct str path)
{
    for (size_t i = 0; i < path.len; i++) {
        fputs(path.ptr[i] == ' ' ? "%20" : (char[2]){path.ptr[i], '\0'}, stdout);
    }
}

static void print_frame(struct run *run, const struct lab_sample *sample,
                        const struct unwind_frame *frame)
{
    static const char letters[] = "fagcx";
    char flags[sizeof letters] = "";
    size_t count = 0;
    for (size_t bit = 0; letters[bit] != '\0'; bit++) {
        if ((frame->flags >> bit & 1) != 0) {
            flags[count++] = letters[bit];
        }
    }
    struct str path = images_path(&run->samples.images, frame->image);
    const struct mapping *m = samples_mapping(&run->samples, sample, frame->address);
    bool has_file = m != NULL && (frame->image == IMAGE_VDSO || path.ptr[0] == '/');
    uint64_t offset = has_file ? frame->address - m->start + m->file_offset : frame->address;
    printf(" %" PRIx64 "[%s]@", offset, flags);
    print_path(path);
}

static void print_stack(struct run *run, const struct lab_sample *sample)
{
    static const char *const ends[STACK_END_COUNT] = {"complete", "truncated", "no-rule",
                                                      "bad-memory", "guessed"};
    printf("%" PRIu64 " %u %u %s", sample->time_ns, sample->pid, sample->tid,
           ends[run->result.end]);
    for (size_t i = 0; i < run->result.count; i++) {
        print_frame(run, sample, &run->result.frame[i]);
    }
    putchar('\n');
}

static void on_sample(void *context, const struct lab_sample *sample)
{
    struct run *run = context;
    if (run->unwinder.cache == NULL) {
        bool cfi_only = recording_format(run->samples.recording)->cfi_only;
        if (!unwinder_init(&run->unwinder, cfi_only ? UNWIND_CFI_ONLY : UNWIND_HYBRID, NULL)) {
            abort();
        }
    }
    unwind_one(run, sample);
    print_stack(run, sample);
}

int main(int argc, char **argv)
{
    static struct run run;
    struct err err;
    if (argc != 2) {
        fprintf(stderr, "usage: stacks_of RECORDING\n");
        return 2;
    }
    if (!samples_load(&run.samples, argv[1], on_sample, &run, &err)) {
        fprintf(stderr, "stacks_of: %s\n", err.text);
        return 1;
    }
    unwinder_release(&run.unwinder);
    samples_release(&run.samples);
    return 0;
}
