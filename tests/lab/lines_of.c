/*
 * lines_of FILE [FAULT]: reads addresses (hexadecimal, one per line) and prints, for each in rising
 * order, what the product knows of its lines, innermost first, by a child process as in the product:
 *
 *     ADDRESS FILE:LINE FILE:LINE...
 *
 * then "end END WHY", END being done, late, failed or refused, and "cost CHILD-MS OWN-KB". With FAULT
 * the child is another one: crash, loop, allocate, babble (answers without end), mute. Half of the
 * addresses it answers before that.
 */
#include "base/time.h"
#include "os/clock.h"
#include "os/foreign.h"
#include "os/proc.h"
#include "os/sandbox.h"
#include "symbol/inlines.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BUDGET_S = 20, FAULT_BUDGET_S = 2 };

static struct sandbox real;
static const char *fault = "";
static const char *program;

static bool open_debug(void *context, uint64_t image, const char *path, struct memory_reader *out, void **handle)
{
    int fd;
    (void)context;
    (void)image;
    if (!foreign_open_under(-1, path, &fd)) {
        return false;
    }
    *out = proc_file_reader(fd);
    *handle = (void *)(intptr_t)fd;
    return true;
}

static void close_debug(void *context, void *handle)
{
    (void)context;
    proc_close((int)(intptr_t)handle);
}

static struct str own_path(void *context, uint64_t image)
{
    (void)context;
    (void)image;
    return str_of(program);
}

static void allocate(void)
{
    for (size_t bytes = 0; bytes < (size_t)10 << 30; bytes += 1 << 20) {
        char *piece = malloc(1 << 20);
        if (piece == NULL) {
            return;
        }
        memset(piece, 1, 1 << 20);
    }
    raise(SIGKILL); /* nothing stopped it */
}

static void faulty_work(void *argument, const struct sandbox_port *port)
{
    struct dwarf_task task = *(struct dwarf_task *)argument;
    task.count /= 2;
    dwarf_work(&task, port);
    if (strcmp(fault, "crash") == 0) {
        volatile int *volatile nowhere = NULL;
        *nowhere = 1;
    } else if (strcmp(fault, "allocate") == 0) {
        allocate();
        port->no_memory();
    } else if (strcmp(fault, "babble") == 0) {
        while (port->write(port->context, "\6\0\0\0A\0\0\0\0", 10)) {
        }
    } else if (strcmp(fault, "loop") == 0) {
        for (volatile unsigned i = 0;; i++) {
        }
    }
}

static void *start(void *context, void (*run)(void *argument, const struct sandbox_port *port), void *argument,
                   struct err *err)
{
    (void)context;
    return real.start(real.context, fault[0] != '\0' ? faulty_work : run, argument, err);
}

static int by_value(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

struct addresses {
    VEC(uint64_t) list;
};

static void read_addresses(struct addresses *out)
{
    uint64_t address;
    while (scanf("%" SCNx64, &address) == 1) {
        uint64_t *added = vec_push(&out->list);
        if (added != NULL) {
            *added = address;
        }
    }
    size_t kept = 0;
    qsort(out->list.at, out->list.len, sizeof *out->list.at, by_value);
    for (size_t i = 0; i < out->list.len; i++) {
        if (i == 0 || out->list.at[i] != out->list.at[i - 1]) {
            out->list.at[kept++] = out->list.at[i];
        }
    }
    out->list.len = kept;
}

static void print_lines(struct inlines *in, uint64_t address)
{
    bool late;
    struct source_line lines[PROFILE_INLINES_MAX];
    size_t count = inlines_lookup(in, address, lines, &late);
    printf("%" PRIx64, address);
    for (size_t i = 0; i < count; i++) {
        printf(" %.*s:%u", (int)lines[i].file.len, lines[i].file.ptr, lines[i].line);
    }
    printf(late ? " late\n" : "\n");
}

int main(int argc, char **argv)
{
    static const char *const ends[] = {"done", "late", "failed", "refused"};
    struct addresses addresses = {0};
    struct symbol_files files;
    struct err err = {0};
    int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    struct memory_reader file = proc_file_reader(fd);
    const struct debug_source debug = {.open = open_debug, .close = close_debug, .path = own_path};
    struct clock clock = clock_system();
    real = sandbox_system(128 << 20);
    struct sandbox sandbox = real;
    sandbox.start = start;
    program = argc > 1 ? realpath(argv[1], NULL) : "";
    fault = argc > 2 ? argv[2] : "";
    if (fd < 0 || !symbol_files_open(&files, &file, 1, &debug, &err)) {
        fprintf(stderr, "%s: %s\n", argv[1], err.text);
        return 2;
    }
    read_addresses(&addresses);
    uint64_t budget_ns = (fault[0] != '\0' ? FAULT_BUDGET_S : BUDGET_S) * NS_PER_S;
    struct inlines_request request = {&files, &debug, 1, &sandbox, &clock, addresses.list.at, addresses.list.len,
                                      clock_mono_ns() + budget_ns, budget_ns};
    struct inlines *in = inlines_start(&request, &err);
    if (in == NULL) {
        fprintf(stderr, "%s: %s\n", argv[1], err.text);
        return 1;
    }
    vec_each(&addresses.list, address)
    {
        print_lines(in, *address);
    }
    enum inlines_end end = inlines_end(in, &err);
    printf("end %s %s\n", ends[end], err.text);
    printf("cost %" PRIu64 " %" PRIu64 "\n", clock_children_cpu_ns() / NS_PER_MS, proc_own_rss_bytes() >> 10);
    return 0;
}
