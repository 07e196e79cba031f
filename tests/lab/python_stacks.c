/*
 * python_stacks PID [TIMES]: finds the CPython of a process and prints the stacks of all its
 * threads, without stopping it and without perf:
 *
 *     CPython 3.11.7 in /usr/bin/python3.11: attached in 312 us, 2 ranges of loop, 61 of plumbing
 *     TID END
 *       FUNCTION FILE:LINE (first line N)[, entry][, shim][, unstarted][, collects]
 *
 * TID is the thread's number in its own PID namespace, END complete, empty, no-thread, torn or
 * unreadable. With TIMES, the stacks are read that often and only the numbers of their ends are
 * printed.
 */
#include "os/foreign.h"
#include "os/proc.h"
#include "os/remote.h"
#include "runtime/runtime.h"
#include "target/maps.h"
#include "target/status.h"
#include "unwind/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAPS_MAX_BYTES = 16 << 20, TABLE_MAX_BYTES = 16 << 20 };

static const char *const ends[RUNTIME_END_COUNT] = {
    [RUNTIME_COMPLETE] = "complete", [RUNTIME_EMPTY] = "empty", [RUNTIME_NO_THREAD] = "no-thread",
    [RUNTIME_TORN] = "torn",         [RUNTIME_UNREADABLE] = "unreadable",
};

struct found {
    const struct runtime *runtime;
    void *binary, *state;
    struct elf elf;
    struct unwind_table *table;
    int fd;
    uint64_t bias, device, inode;
    char path[4096];
    double recognised_us, attached_us;
};

struct lines {
    VEC(struct map_line) at;
};
struct numbers {
    VEC(uint32_t) at;
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static bool function_at(void *context, uint64_t address, uint64_t *start, uint64_t *limit)
{
    return unwind_table_function(context, address, start, limit);
}

/* ---- the file ---- */

static bool try_runtimes(struct found *found, struct str path)
{
    struct runtime_code code = {function_at, found->table};
    for (size_t i = 0; runtimes[i] != NULL; i++) {
        struct err err = {0};
        if (runtimes[i]->recognise == NULL) {
            continue;
        }
        double start = now_us();
        enum runtime_answer answer =
            runtimes[i]->recognise(&found->elf, path, &code, &found->binary, &err);
        found->recognised_us = now_us() - start;
        if (answer == RUNTIME_UNSUPPORTED) {
            printf("%.*s: %s\n", (int)path.len, path.ptr, err.text);
        } else if (answer == RUNTIME_YES) {
            found->runtime = runtimes[i];
            return true;
        }
    }
    return false;
}

static void close_file(struct found *found)
{
    unwind_table_free(found->table);
    elf_release(&found->elf);
    proc_close(found->fd);
}

static bool try_file(struct found *found, uint32_t pid, const struct map_line *line)
{
    struct foreign_mapping mapping = {line->path, line->inode, line->start, line->limit};
    if (!foreign_open_mapped(pid, &mapping, &found->fd, NULL)) {
        return false;
    }
    struct memory_reader file = proc_file_reader(found->fd);
    if (!elf_open(&found->elf, &file, NULL)) {
        proc_close(found->fd);
        return false;
    }
    found->table = unwind_table_new(&found->elf, TABLE_MAX_BYTES);
    if (found->table != NULL &&
        elf_bias(&found->elf, line->start, line->file_offset, proc_page_bytes(), &found->bias) &&
        try_runtimes(found, line->path)) {
        found->inode = line->inode;
        found->device = (uint64_t)line->dev_major << 32 | line->dev_minor;
        snprintf(found->path, sizeof found->path, "%.*s", (int)line->path.len, line->path.ptr);
        return true;
    }
    close_file(found);
    return false;
}

static bool find_file(struct found *found, uint32_t pid, const struct lines *maps)
{
    vec_each(&maps->at, line) {
        if (line->kind == MAPPING_FILE && (line->prot & MAPPING_EXEC) != 0 &&
            try_file(found, pid, line)) {
            return true;
        }
    }
    return false;
}

/* ---- the process ---- */

static void read_maps(uint32_t pid, struct buf *text, struct lines *out)
{
    struct str rest;
    struct map_line line;
    buf_init(text, MAPS_MAX_BYTES);
    if (proc_read(pid, 0, "maps", text, NULL)) {
        rest = buf_slice(text);
        while (maps_next(&rest, &line)) {
            *vec_push(&out->at) = line;
        }
    }
}

/* Their numbers in their own namespace. */
static void read_tids(uint32_t pid, struct numbers *out)
{
    struct pid_list tasks = {0};
    struct buf text;
    struct proc_status status;
    buf_init(&text, 65536);
    (void)proc_list_threads(pid, &tasks, NULL);
    vec_each(&tasks.ids, tid) {
        if (proc_read(pid, *tid, "status", &text, NULL) &&
            status_parse(buf_slice(&text), &status, NULL)) {
            *vec_push(&out->at) = status.ns_pid != 0 ? status.ns_pid : *tid;
        }
    }
    vec_release(&tasks.ids);
    buf_release(&text);
}

static bool attach(struct found *found, uint32_t pid, const struct lines *maps,
                   const struct numbers *tids, struct memory_batch *memory)
{
    struct err err = {0};
    struct runtime_map *copies = calloc(maps->at.len + 1, sizeof *copies);
    for (size_t i = 0; i < maps->at.len; i++) {
        const struct map_line *line = &maps->at.at[i];
        copies[i] = (struct runtime_map){
            .start = line->start,
            .limit = line->limit,
            .file_offset = line->file_offset,
            .prot = line->prot,
            .of_binary = line->kind == MAPPING_FILE && line->inode == found->inode &&
                         ((uint64_t)line->dev_major << 32 | line->dev_minor) == found->device,
            .anonymous = line->kind == MAPPING_ANON || line->kind == MAPPING_HEAP,
        };
    }
    struct runtime_process process = {
        .pid = pid, .bias = found->bias, .elf = &found->elf, .memory = memory, .maps = copies,
        .map_count = maps->at.len, .tids = tids->at.at, .tid_count = tids->at.len,
    };
    double start = now_us();
    enum runtime_answer answer =
        found->runtime->attach(found->binary, &process, &found->state, &err);
    found->attached_us = now_us() - start;
    free(copies);
    if (answer != RUNTIME_YES) {
        printf("%s: %s (%d)\n", found->path, err.text, err.number);
    }
    return answer == RUNTIME_YES;
}

static void print_found(const struct found *found)
{
    struct buf text;
    unsigned loop = 0, plumbing = 0;
    enum runtime_native before = RUNTIME_NATIVE_PLAIN;
    for (uint64_t at = found->elf.text_start; at < found->elf.text_limit; at++) {
        enum runtime_native now = found->runtime->native_at(found->binary, at);
        loop += now == RUNTIME_NATIVE_LOOP && now != before;
        plumbing += now == RUNTIME_NATIVE_PLUMBING && now != before;
        before = now;
    }
    buf_init(&text, 4096);
    found->runtime->describe(found->state, &text);
    printf("%s in %s: recognised in %.0f us, attached in %.0f us, %u ranges of loop, "
           "%u of plumbing\n",
           buf_cstr(&text), found->path, found->recognised_us, found->attached_us, loop, plumbing);
    buf_release(&text);
}

/* ---- stacks ---- */

static void print_frame(const struct runtime_frame *frame, const struct runtime_name *name)
{
    static const char *const flags[] = {"entry", "unstarted", "cut", "collects", "shim"};
    printf("  %.*s %.*s:%u (first line %u)", (int)name->function.len,
           name->function.ptr != NULL ? name->function.ptr : "", (int)name->file.len,
           name->file.ptr != NULL ? name->file.ptr : "", name->line, name->first_line);
    for (unsigned i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if ((frame->flags >> i & 1) != 0) {
            printf(", %s", flags[i]);
        }
    }
    putchar('\n');
}

static void print_stack(const struct found *found, void *names, uint32_t tid,
                        const struct runtime_stack *stack, struct memory_batch *memory)
{
    static struct runtime_name text[RUNTIME_FRAMES_MAX];
    memset(text, 0, sizeof text);
    found->runtime->name_frames(names, stack->frame, stack->count, memory, text);
    printf("%u %s%s%s%s\n", tid, ends[stack->end],
           stack->marks & RUNTIME_HOLDS_LOCK ? " holds" : "",
           stack->marks & RUNTIME_WAITS_LOCK ? " waits" : "",
           stack->marks & RUNTIME_IN_GC ? " gc" : "");
    for (uint32_t i = 0; i < stack->count; i++) {
        print_frame(&stack->frame[i], &text[i]);
    }
}

static void read_stacks(const struct found *found, const struct numbers *tids, unsigned long times,
                        struct memory_batch *memory)
{
    static struct runtime_stack stack;
    unsigned long counts[RUNTIME_END_COUNT] = {0};
    unsigned char *plans = calloc(tids->at.len + 1, RUNTIME_PLAN_MAX);
    void *names = found->runtime->open_names(found->state);
    for (unsigned long n = 0; n < (times > 0 ? times : 1); n++) {
        for (size_t i = 0; i < tids->at.len; i++) {
            const struct runtime_thread thread = {.tid = tids->at.at[i]};
            found->runtime->walk(found->state, plans + i * RUNTIME_PLAN_MAX, &thread,
                                 memory, &stack);
            counts[stack.end]++;
            if (times == 0) {
                print_stack(found, names, tids->at.at[i], &stack, memory);
            }
        }
    }
    for (unsigned i = 0; i < RUNTIME_END_COUNT; i++) {
        printf("%s%s %lu", i > 0 ? ", " : "", ends[i], counts[i]);
    }
    putchar('\n');
    found->runtime->close_names(names);
    free(plans);
}

int main(int argc, char **argv)
{
    static struct found found;
    struct lines maps = {0};
    struct numbers tids = {0};
    struct buf text;
    struct remote remote;
    struct err err = {0};
    uint32_t pid = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    if (pid == 0) {
        fprintf(stderr, "usage: python_stacks PID [TIMES]\n");
        return 2;
    }
    read_maps(pid, &text, &maps);
    read_tids(pid, &tids);
    if (!find_file(&found, pid, &maps)) {
        printf("no runtime in pid %u\n", pid);
        return 1;
    }
    if (!remote_open(&remote, pid, maps.at.at[0].start, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    struct remote_caller caller = {.remote = &remote};
    struct memory_batch memory = remote_batch(&caller);
    bool good = attach(&found, pid, &maps, &tids, &memory);
    if (good) {
        print_found(&found);
        read_stacks(&found, &tids, argc > 2 ? strtoul(argv[2], NULL, 10) : 0, &memory);
        found.runtime->detach(found.state);
    }
    found.runtime->forget(found.binary);
    close_file(&found);
    remote_close(&remote);
    buf_release(&text);
    vec_release(&maps.at);
    vec_release(&tids.at);
    return good ? 0 : 1;
}
