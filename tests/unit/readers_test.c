/*
 * The runtimes of followed processes. The registry here has one row, a runtime of this file's own: its
 * frames are an array of numbers in a child process. That this file and its row are all that a
 * runtime takes is part of what is tested.
 */
#include "capture/catch/catch_table.h"
#include "capture/stacks/readers.h"
#include "test.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the runtime ---- */

enum { TOY_MAGIC = 0x70075, TOY_FRAMES = 4 };

struct toy {
    uint32_t magic, version;
    uint32_t frames[TOY_FRAMES];
};

static struct toy toy = {.magic = TOY_MAGIC, .version = 1, .frames = {40, 30, 20, 10}};
static unsigned toy_asked, toy_forgotten, toy_attached, toy_detached, toy_named;

static enum runtime_answer toy_recognise(struct elf *elf, struct str path,
                                         const struct runtime_code *code, void **binary,
                                         struct err *why)
{
    (void)elf;
    (void)code;
    (void)why;
    toy_asked += str_ends(path, STR("readers_test"));
    *binary = &toy_forgotten;
    return str_ends(path, STR("readers_test")) ? RUNTIME_YES : RUNTIME_NO;
}

static void toy_forget(void *binary)
{
    ++*(unsigned *)binary;
}

static enum runtime_native toy_native_at(const void *binary, uint64_t elf_address)
{
    (void)binary;
    return elf_address == 0x1000 ? RUNTIME_NATIVE_LOOP : RUNTIME_NATIVE_PLAIN;
}

static bool toy_read(struct memory_batch *memory, struct toy *out)
{
    struct memory_piece piece = {.address = (uint64_t)(uintptr_t)&toy, .out = out, .len = sizeof *out};
    return memory_batch_read(memory, &piece, 1, NULL) && piece.got == sizeof *out;
}

static enum runtime_answer toy_attach(const void *binary, const struct runtime_process *process,
                                      void **state, struct err *why)
{
    struct toy now;
    (void)binary;
    if (!toy_read(process->memory, &now) || now.magic != TOY_MAGIC) {
        return RUNTIME_NO;
    }
    if (now.version == 0) {
        err_set(why, ERR_UNSUPPORTED, EAGAIN, "it has not started yet");
        return RUNTIME_UNSUPPORTED;
    }
    if (now.version > 1) {
        err_set(why, ERR_UNSUPPORTED, 0, "toy %u is not known here", now.version);
        return RUNTIME_UNSUPPORTED;
    }
    *state = &toy_detached;
    toy_attached++;
    return RUNTIME_YES;
}

static void toy_detach(void *state)
{
    ++*(unsigned *)state;
}

static void toy_describe(const void *state, struct buf *out)
{
    (void)state;
    buf_text(out, "toy 1");
}

static void toy_walk(const void *state, void *plan, const struct runtime_thread *thread,
                     struct memory_batch *memory, struct runtime_stack *out)
{
    struct toy now;
    (void)state;
    (void)plan;
    (void)thread;
    out->end = toy_read(memory, &now) ? RUNTIME_COMPLETE : RUNTIME_UNREADABLE;
    for (out->count = 0; out->end == RUNTIME_COMPLETE && out->count < TOY_FRAMES; out->count++) {
        out->frame[out->count] = (struct runtime_frame){.code = now.frames[out->count]};
    }
}

static void *toy_open_names(const void *state)
{
    (void)state;
    return &toy;
}

static void toy_close_names(void *names)
{
    (void)names;
}

static void toy_name(void *names, const struct runtime_frame *frames, size_t count,
                     struct memory_batch *memory, struct runtime_name *out)
{
    (void)names;
    (void)memory;
    for (size_t i = 0; i < count; i++) {
        toy_named++;
        out[i] = (struct runtime_name){.function = STR("work"),
                                       .file = STR("toy.t"),
                                       .line = (uint32_t)frames[i].code + frames[i].position,
                                       .first_line = (uint32_t)frames[i].code};
    }
}

static const struct runtime toy_runtime = {
    .name = "toy",
    .kind = FRAME_PERL,
    .recognise = toy_recognise,
    .forget = toy_forget,
    .native_at = toy_native_at,
    .attach = toy_attach,
    .detach = toy_detach,
    .describe = toy_describe,
    .walk = toy_walk,
    .open_names = toy_open_names,
    .close_names = toy_close_names,
    .name_frames = toy_name,
};

/* Another one, in the C library: its process has it as soon as its own toy runs. */
static unsigned second_detached;

static enum runtime_answer second_recognise(struct elf *elf, struct str path, const struct runtime_code *code,
                                            void **binary, struct err *why)
{
    static unsigned forgotten;
    (void)elf, (void)code, (void)why;
    *binary = &forgotten;
    return str_starts(str_sub(path, str_find_last(path, '/') + 1, path.len), STR("libc.so")) ? RUNTIME_YES : RUNTIME_NO;
}

static enum runtime_answer second_attach(const void *binary, const struct runtime_process *process, void **state,
                                         struct err *why)
{
    (void)binary, (void)process, (void)why;
    *state = &second_detached;
    return RUNTIME_YES;
}

static void second_describe(const void *state, struct buf *out)
{
    (void)state;
    buf_text(out, "second 2");
}

static const struct runtime second_runtime = {
    .name = "second",
    .kind = FRAME_PHP,
    .recognise = second_recognise,
    .forget = toy_forget,
    .native_at = toy_native_at,
    .attach = second_attach,
    .detach = toy_detach,
    .describe = second_describe,
    .walk = toy_walk,
    .open_names = toy_open_names,
    .close_names = toy_close_names,
    .name_frames = toy_name,
};

const struct runtime *const runtimes[] = {&toy_runtime, NULL};
static const struct runtime *const both_runtimes[] = {&toy_runtime, &second_runtime, NULL};

/* ---- a session's part ---- */

struct bench {
    struct settings settings;
    struct log log;
    struct world world;
    struct images images;
    struct targets targets;
    struct readers readers;
    struct profile profile;
    struct target *target;
    pid_t child;
    int go; /* closing it ends the child */
};

static void begin(struct bench *b, uint32_t version)
{
    int ends[2];
    *b = (struct bench){.log = {.fd = -1, .level = LOG_ERROR}};
    pthread_mutex_init(&b->log.lock, NULL);
    toy_asked = toy_forgotten = toy_attached = toy_detached = toy_named = 0;
    toy.version = version;
    CHECK(pipe(ends) == 0);
    b->child = fork();
    if (b->child == 0) {
        char byte;
        close(ends[1]);
        while (read(ends[0], &byte, 1) == 1) {
            toy.version = (uint32_t)byte;
        }
        _exit(0);
    }
    close(ends[0]);
    b->go = ends[1];
    toy.version = 77; /* what is read must be the child's */
    b->world = world_here();
    images_init(&b->images, &b->world);
    targets_init(&b->targets, &b->images, false);
    readers_init(&b->readers, &b->settings, &b->targets, &b->log);
    CHECK(profile_init(&b->profile, 1 << 20, NULL));
    b->target = targets_get(&b->targets, (uint32_t)b->child);
    CHECK(targets_read_maps(&b->targets, b->target));
}

static void end(struct bench *b)
{
    close(b->go);
    waitpid(b->child, NULL, 0);
    readers_release(&b->readers);
    targets_release(&b->targets);
    images_release(&b->images);
    profile_release(&b->profile);
    map_release(&b->log.said);
}

/* Tells the child to be of another version, and waits until it is. */
static void set_version(struct bench *b, char version)
{
    CHECK(write(b->go, &version, 1) == 1);
    struct memory_reader memory = remote_reader((uint32_t)b->child);
    for (uint32_t now = 0; now != (uint32_t)version;) {
        CHECK(memory.read(memory.context, (uint64_t)(uintptr_t)&toy.version, &now, sizeof now, NULL));
        usleep(1000);
    }
}

/* ---- tests ---- */

static void found_and_named(void)
{
    struct bench b;
    struct runtime_stack stack;
    uint32_t frames[TOY_FRAMES];
    begin(&b, 1);
    CHECK(readers_refresh(&b.readers, 1));
    CHECK(!readers_refresh(&b.readers, 2)); /* nothing changed */
    struct reader *reader = b.target->runtime.reader;
    CHECK(reader != NULL && reader->serial != 0);
    if (reader == NULL) {
        return end(&b);
    }
    reader->runtime->walk(reader->state, NULL, &(struct runtime_thread){.tid = 1}, &reader->memory,
                          &stack);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_INT(stack.count, TOY_FRAMES);
    readers_frames(&b.readers, reader, &b.profile, stack.frame, stack.count, frames);
    const struct frame *leaf = &b.profile.frames.at[frames[0]];
    CHECK_STR(profile_text(&b.profile, leaf->name), "work (toy.t:40)");
    CHECK_STR(profile_text(&b.profile, leaf->system_name), "work");
    CHECK_INT(leaf->line, 40);
    CHECK_INT(leaf->kind, FRAME_PERL);
    CHECK(frames[0] != frames[1]);
    CHECK_INT(toy_named, TOY_FRAMES);
    readers_frames(&b.readers, reader, &b.profile, stack.frame, stack.count, frames);
    CHECK_INT(toy_named, TOY_FRAMES); /* a frame is named once in a window */
    b.targets.window++;
    readers_frames(&b.readers, reader, &b.profile, stack.frame, stack.count, frames);
    CHECK_INT(toy_named, 2 * TOY_FRAMES); /* the next one's profile has other ids */
    CHECK(readers_native(reader, reader->image, 0x1000) == RUNTIME_NATIVE_LOOP);
    CHECK(readers_native(reader, reader->image, 0x1001) == RUNTIME_NATIVE_PLAIN);
    CHECK(readers_native(reader, reader->image + 1, 0x1000) == RUNTIME_NATIVE_PLAIN);
    end(&b);
    CHECK_INT(toy_detached, 1);
    CHECK_INT(toy_forgotten, 1);
}

static void asked_once_per_file(void)
{
    struct bench b;
    begin(&b, 1);
    struct target *self = targets_get(&b.targets, (uint32_t)getpid());
    CHECK(targets_read_maps(&b.targets, self));
    (void)readers_refresh(&b.readers, 1);
    CHECK_INT(toy_asked, 1); /* both have the same file mapped */
    CHECK_INT(toy_attached, 1);
    CHECK(self->runtime.reader == NULL); /* its toy says version 77 */
    end(&b);
}

static void switched_off(void)
{
    struct bench b;
    begin(&b, 1);
    b.settings.runtime.mode[FRAME_PERL] = RUNTIME_DISABLED;
    CHECK(!readers_refresh(&b.readers, 1));
    CHECK(b.target->runtime.reader == NULL);
    CHECK_INT(toy_asked, 0);
    end(&b);
}

static void starting(void)
{
    struct bench b;
    begin(&b, 0);
    CHECK(!readers_refresh(&b.readers, 1));
    CHECK(b.target->runtime.reader == NULL);
    set_version(&b, 1);
    CHECK(!readers_refresh(&b.readers, 2)); /* 20 ms are not over */
    CHECK(readers_refresh(&b.readers, 21000000));
    CHECK(b.target->runtime.reader != NULL);
    end(&b);
}

/* A worker that is started by a program with deep stacks is read for these until its runtime is there. */
static void starting_deep(void)
{
    struct bench b;
    begin(&b, 0);
    b.target->runtime.deep = true;
    CHECK(readers_refresh(&b.readers, 1));
    CHECK(b.target->runtime.reader != NULL && b.target->runtime.reader->runtime == NULL);
    set_version(&b, 1);
    CHECK(readers_refresh(&b.readers, 21000000));
    CHECK(b.target->runtime.reader != NULL && b.target->runtime.reader->runtime == runtimes[0]);
    CHECK_INT(b.readers.all.len, 1);
    end(&b);
}

/* Later looks are rarer, but a start that takes long is never missed by more than a quarter. */
static void starting_slowly(void)
{
    struct bench b;
    begin(&b, 0);
    CHECK(!readers_refresh(&b.readers, 1000000000));
    CHECK_INT(b.readers.next_refresh_ns, 1020000000);
    b.target->runtime.space = 0; /* a library was mapped */
    CHECK(!readers_refresh(&b.readers, 1001000000));
    CHECK_INT(b.readers.next_refresh_ns, 1021000000);
    CHECK(!readers_refresh(&b.readers, 1400000000));
    CHECK_INT(b.readers.next_refresh_ns, 1500000000);
    end(&b);
}

static void unknown_version(void)
{
    struct bench b;
    begin(&b, 9);
    CHECK(!readers_refresh(&b.readers, 1));
    CHECK(!readers_refresh(&b.readers, 29000000000));
    CHECK(readers_refresh(&b.readers, 31000000000) == false);
    CHECK_INT(b.target->runtime.again_ns, 61000000000);
    CHECK_INT(b.log.said.len, 1); /* said once, with the reason */
    end(&b);
}

/* A server with two interpreters: both are attached to, published as rows of one process, dropped one by one. */
static void two_runtimes(void)
{
    struct bench b;
    size_t count;
    begin(&b, 0); /* the first one has not started */
    b.readers.runtimes = both_runtimes;
    second_detached = 0;
    CHECK(readers_refresh(&b.readers, 1));
    CHECK(b.target->runtime.reader != NULL && b.target->runtime.reader->runtime == &second_runtime);
    set_version(&b, 1);
    CHECK(readers_refresh(&b.readers, 31000000000)); /* it is tried again, rarely */
    struct reader *second = b.target->runtime.reader, *first = second == NULL ? NULL : second->next;
    CHECK(first != NULL && first->runtime == &toy_runtime && first->next == NULL);
    CHECK(first != NULL && readers_of(&b.readers, b.target, first->serial) == first);
    CHECK(second != NULL && readers_of(&b.readers, b.target, second->serial) == second);
    const struct catch_target *rows = readers_table(&b.readers, false, &count);
    CHECK_INT(count, 2);
    struct catch_table *table = catch_table_make(rows, count);
    const struct catch_target *row = catch_table_find(table, (uint32_t)b.child);
    CHECK(row != NULL && row->more && row->runtime == &second_runtime);
    CHECK(row != NULL && !row[1].more && row[1].runtime == &toy_runtime && row[1].pid == row->pid);
    free(table);
    (void)targets_process_id(&b.targets, &b.profile, b.target);
    readers_end_window(&b.readers, &b.profile);
    CHECK_STR(profile_text(&b.profile, b.profile.processes.at[b.target->process].runtime), "second 2, toy 1");
    first->is_suspect = true;
    b.target->runtime.space = 0;
    set_version(&b, 9);
    CHECK(readers_refresh(&b.readers, 32000000000));
    CHECK(b.target->runtime.reader == second && second->next == NULL);
    CHECK_INT(second_detached, 0);
    end(&b);
    CHECK_INT(second_detached, 1);
}

static void other_program(void)
{
    struct bench b;
    size_t count;
    begin(&b, 1);
    CHECK(readers_refresh(&b.readers, 1));
    CHECK_INT((readers_table(&b.readers, false, &count), count), 1);
    uint64_t serial = b.target->runtime.reader->serial;
    CHECK(readers_of(&b.readers, b.target, serial) != NULL);
    targets_comm(&b.targets, b.target->pid, b.target->pid, STR("other"), true); /* an exec */
    targets_map(&b.targets, b.target,
                &(struct mapped_file){.start = 0x1000, .limit = 0x2000, .path = STR("//anon")});
    CHECK(readers_refresh(&b.readers, 2));
    CHECK(b.target->runtime.reader == NULL);
    CHECK(readers_of(&b.readers, b.target, serial) == NULL);
    CHECK_INT((readers_table(&b.readers, false, &count), count), 0);
    CHECK_INT(toy_detached, 0); /* catchers may still use it */
    readers_sweep(&b.readers);
    CHECK_INT(toy_detached, 1);
    end(&b);
}

/* The same file at the same addresses, but another program's memory. */
static void same_program_again(void)
{
    struct bench b;
    begin(&b, 1);
    CHECK(readers_refresh(&b.readers, 1));
    uint64_t serial = b.target->runtime.reader->serial;
    targets_comm(&b.targets, b.target->pid, b.target->pid, STR("again"), true); /* an exec */
    CHECK(readers_of(&b.readers, b.target, serial) == NULL); /* at once */
    CHECK(targets_read_maps(&b.targets, b.target));
    CHECK(readers_refresh(&b.readers, 2));
    CHECK(b.target->runtime.reader != NULL && b.target->runtime.reader->serial != serial);
    CHECK_INT(toy_attached, 2);
    end(&b);
}

static void ended(void)
{
    struct bench b;
    begin(&b, 1);
    CHECK(readers_refresh(&b.readers, 1));
    b.target->ended = true;
    CHECK(!readers_refresh(&b.readers, 2));
    CHECK(b.target->runtime.reader != NULL); /* its last samples may still come */
    CHECK(readers_refresh(&b.readers, 2000000000));
    CHECK(b.target->runtime.reader == NULL);
    end(&b);
}

static void told_in_the_profile(void)
{
    struct bench b;
    begin(&b, 1);
    CHECK(readers_refresh(&b.readers, 1));
    uint32_t process = targets_process_id(&b.targets, &b.profile, b.target);
    readers_end_window(&b.readers, &b.profile);
    CHECK_STR(profile_text(&b.profile, b.profile.processes.at[process].runtime), "toy 1");
    end(&b);
}

/* Each window, though it is found out once in half a minute; no more when another program runs. */
static void refusals_are_told(void)
{
    struct bench b;
    begin(&b, 9);
    CHECK(!readers_refresh(&b.readers, 1));
    for (unsigned window = 0; window < 2; window++) {
        uint32_t process = targets_process_id(&b.targets, &b.profile, b.target);
        readers_end_window(&b.readers, &b.profile);
        CHECK_STR(profile_text(&b.profile, b.profile.processes.at[process].remedy), "toy 9 is not known here");
        CHECK_INT(b.profile.processes.at[process].runtime, 0);
        b.profile.processes.at[process].remedy = 0;
    }
    targets_comm(&b.targets, b.target->pid, b.target->pid, STR("other"), true); /* an exec */
    readers_end_window(&b.readers, &b.profile);
    CHECK_INT(b.profile.processes.at[b.target->process].remedy, 0);
    CHECK_INT(b.readers.refusals.len, 0);
    end(&b);
}

static void walks_in_vain(void)
{
    struct bench b;
    begin(&b, 1);
    CHECK(readers_refresh(&b.readers, 1));
    for (unsigned i = 0; b.target->runtime.reader != NULL && i < 63; i++) {
        readers_walked(&b.readers, b.target->runtime.reader, RUNTIME_UNREADABLE);
    }
    CHECK(b.target->runtime.space == b.target->space);
    readers_walked(&b.readers, b.target->runtime.reader, RUNTIME_TORN);
    uint64_t serial = b.target->runtime.reader->serial;
    CHECK(readers_refresh(&b.readers, 2));
    CHECK(b.target->runtime.reader != NULL && b.target->runtime.reader->serial != serial);
    end(&b);
}

TESTS_THAT_MEASURE({"a runtime is found, walked and named, with one row", found_and_named},
      {"a file is asked about once, a process for itself", asked_once_per_file},
      {"a runtime that is switched off is not searched for", switched_off},
      {"a process that is starting is tried again soon", starting},
      {"deep stacks are read before the runtime is there, and do not hide it", starting_deep},
      {"a start that takes long is tried by its own length", starting_slowly},
      {"a process has as many readers as runtimes", two_runtimes},
      {"an unknown version is logged once and tried again rarely", unknown_version},
      {"an exec ends a reader, which lives until it is swept", other_program},
      {"an exec of the same file ends a reader", same_program_again},
      {"a reader outlives its process for its last samples", ended},
      {"the profile names the runtime of a process", told_in_the_profile},
      {"a runtime that cannot be read is told with its process, as long as it is there", refusals_are_told},
      {"walks that all fail make the process be attached to anew", walks_in_vain})
