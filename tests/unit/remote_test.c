/* Another process's memory in batches. The other process is a child that shares the layout of this
 * one: addresses of this program are the child's as well. */
#include "os/remote.h"
#include "child.h"
#include "os/clock.h"
#include "os/proc.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { PIECES_MANY = 3000 };

static uint64_t words[PIECES_MANY];

static uint64_t at(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

struct other {
    pid_t pid;
    struct remote remote;
    struct remote_caller caller;
    struct memory_batch memory;
    struct err err;
};

/* false: this machine does not let a parent read its child (a strict Yama level, an emulator). */
static bool open_other(struct other *o)
{
    words[0] = 7;
    *o = (struct other){.pid = child_that_sleeps()};
    if (!remote_open(&o->remote, (uint32_t)o->pid, at(words), &o->err)) {
        end_child(o->pid);
        return false;
    }
    o->caller.remote = &o->remote;
    o->memory = remote_batch(&o->caller);
    return true;
}

static void close_other(struct other *o)
{
    remote_close(&o->remote);
    end_child(o->pid);
}

#define OPEN_OTHER(o)                                                                              \
    if (!open_other(o)) {                                                                          \
        SKIP("a child's memory cannot be read here");                                              \
    }

/* Three pages, of which the last is not mapped; every byte of page n is n + 1. */
static unsigned char *map_edge(size_t page)
{
    unsigned char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                -1, 0);
    CHECK(pages != MAP_FAILED);
    memset(pages, 1, page);
    memset(pages + page, 2, page);
    CHECK_INT(munmap(pages + 2 * page, page), 0);
    return pages;
}

static void all_pieces(void)
{
    for (unsigned i = 0; i < 3; i++) {
        words[i] = 100 + i;
    }
    struct other o;
    OPEN_OTHER(&o);
    uint64_t out[3] = {0};
    struct memory_piece pieces[] = {{at(&words[2]), &out[0], 8, 99},
                                    {at(&words[0]), &out[1], 8, 99},
                                    {at(&words[1]), &out[2], 4, 99}};
    words[0] = 0; /* here, not in the child */
    CHECK(memory_batch_read(&o.memory, pieces, 3, &o.err));
    CHECK_INT(out[0], 102);
    CHECK_INT(out[1], 7); /* as open_other left it */
    CHECK_INT(out[2], 101);
    CHECK_INT(pieces[0].got + pieces[1].got + pieces[2].got, 20);
    CHECK_INT(o.caller.counts.calls, o.remote.mem >= 0 ? 3 : 1); /* an emulator has no such call */
    CHECK_INT(o.caller.counts.bytes, 20);
    CHECK_INT(o.caller.counts.unmapped, 0);
    close_other(&o);
}

/* A piece that begins on the second page and reaches into the third, which is not there, between two
 * others. */
static void read_over_the_edge(struct other *o, const unsigned char *pages, size_t page)
{
    unsigned char first = 0, last = 0, over[32];
    memset(over, 0xee, sizeof over);
    struct memory_piece pieces[] = {{at(pages), &first, 1, 0},
                                    {at(pages + 2 * page - 8), over, sizeof over, 0},
                                    {at(pages + 2 * page), over, 1, 5},
                                    {at(pages + page), &last, 1, 0}};
    CHECK(memory_batch_read(&o->memory, pieces, 4, &o->err));
    CHECK_INT(pieces[0].got, 1);
    CHECK_INT(pieces[1].got, 8);
    CHECK_INT(pieces[2].got, 0);
    CHECK_INT(pieces[3].got, 1);
    CHECK(first == 1 && last == 2);
    CHECK(over[7] == 2 && over[8] == 0xee); /* what could not be read is not written */
    CHECK_INT(o->caller.counts.unmapped, 2);
    CHECK_INT(o->caller.counts.bytes, 10);
}

static void unmapped_pages(void)
{
    size_t page = (size_t)proc_page_bytes();
    unsigned char *pages = map_edge(page);
    struct other o;
    OPEN_OTHER(&o);
    read_over_the_edge(&o, pages, page);
    close_other(&o);
    munmap(pages, 2 * page);
}

/* The middle page of a piece is missing: what is behind it stays unread, too. */
static void hole_in_a_piece(void)
{
    size_t page = (size_t)proc_page_bytes();
    unsigned char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    CHECK_INT(munmap(pages + page, page), 0);
    struct other o;
    OPEN_OTHER(&o);
    unsigned char *out = malloc(3 * page);
    struct memory_piece pieces[] = {{at(pages + 16), out, (uint32_t)(2 * page + 100), 0},
                                    {at(words), out, 8, 0}};
    CHECK(memory_batch_read(&o.memory, pieces, 2, &o.err));
    CHECK_INT(pieces[0].got, page - 16);
    CHECK_INT(pieces[1].got, 8);
    free(out);
    close_other(&o);
    munmap(pages, page);
    munmap(pages + 2 * page, page);
}

/* Pieces so near each other that they are read at once, up to and over pages that are not mapped: of
 * four pages the first and the third are there. */
static void near_each_other(void)
{
    size_t page = (size_t)proc_page_bytes();
    unsigned char *pages = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                -1, 0);
    for (size_t i = 0; i < 4; i++) {
        memset(pages + i * page, (int)i + 1, page);
    }
    CHECK_INT(munmap(pages + page, page), 0);
    CHECK_INT(munmap(pages + 3 * page, page), 0);
    struct other o;
    OPEN_OTHER(&o);
    unsigned char out[8] = {0};
    struct memory_piece pieces[] = {
        {at(pages + 100), &out[0], 1, 0},          {at(pages + 100), &out[1], 1, 0},
        {at(pages + 1000), &out[2], 1, 0},         {at(pages + page - 4), &out[3], 1, 0},
        {at(pages + page + 4), &out[4], 1, 0},     {at(pages + 2 * page - 4), &out[5], 1, 0},
        {at(pages + 2 * page + 4), &out[6], 1, 0}, {at(pages + 3 * page + 4), &out[7], 1, 0}};
    CHECK(memory_batch_read(&o.memory, pieces, 8, &o.err));
    for (size_t i = 0; i < 8; i++) {
        static const unsigned char there[] = {1, 1, 1, 1, 0, 0, 3, 0};
        CHECK_INT(out[i], there[i]);
        CHECK_INT(pieces[i].got, there[i] != 0);
    }
    CHECK_INT(o.caller.counts.unmapped, 3);
    CHECK_INT(o.caller.counts.bytes, 5); /* what lies between does not count */
    close_other(&o);
    munmap(pages, page);
    munmap(pages + 2 * page, page);
}

static void whole_address_space(void)
{
    struct other o;
    OPEN_OTHER(&o);
    unsigned char out[64];
    struct memory_piece pieces[] = {{0, out, 64, 0},
                                    {UINT64_MAX - 7, out, 64, 0},
                                    {UINT64_C(0x8000000000000000), out, 64, 0},
                                    {at(words), out, 0, 9},
                                    {at(words), out, 8, 0}};
    CHECK(memory_batch_read(&o.memory, pieces, 5, &o.err));
    CHECK_INT(pieces[0].got + pieces[1].got + pieces[2].got + pieces[3].got, 0);
    CHECK_INT(pieces[4].got, 8);
    CHECK(memory_batch_read(&o.memory, NULL, 0, &o.err));
    close_other(&o);
}

static void many_pieces(void)
{
    for (unsigned i = 0; i < PIECES_MANY; i++) {
        words[i] = i;
    }
    struct other o;
    OPEN_OTHER(&o);
    static uint64_t out[PIECES_MANY];
    static struct memory_piece pieces[PIECES_MANY];
    for (unsigned i = 0; i < PIECES_MANY; i++) {
        pieces[i] = (struct memory_piece){at(&words[i]), &out[i], 8, 0};
    }
    CHECK(memory_batch_read(&o.memory, pieces, PIECES_MANY, &o.err));
    unsigned wrong = 0;
    for (unsigned i = 1; i < PIECES_MANY; i++) {
        wrong += out[i] != i || pieces[i].got != 8;
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(o.caller.counts.bytes, PIECES_MANY * 8);
    CHECK_INT(o.caller.counts.unmapped, 0);
    close_other(&o);
}

/* 700 pages are one part. */
static void large_piece(void)
{
    size_t page = (size_t)proc_page_bytes(), bytes = 700 * page;
    unsigned char *source = malloc(bytes + page), *out = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) {
        source[i] = (unsigned char)(i * 31 >> 3);
    }
    struct other o;
    OPEN_OTHER(&o);
    struct memory_piece pieces[] = {{at(source), out, (uint32_t)bytes, 0},
                                    {at(words), out, 0, 0}};
    CHECK(memory_batch_read(&o.memory, pieces, 2, &o.err));
    CHECK_INT(pieces[0].got, bytes);
    CHECK(memcmp(out, source, bytes) == 0);
    CHECK_INT(o.caller.counts.calls, 1);
    close_other(&o);
    free(source);
    free(out);
}

/* ---- the other way: /proc/PID/mem ---- */

static void use_file(struct other *o)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)o->pid);
    remote_close(&o->remote);
    o->remote.mem = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(o->remote.mem >= 0);
}

static void file_gives_the_same(void)
{
    size_t page = (size_t)proc_page_bytes();
    unsigned char *pages = map_edge(page);
    struct other o;
    OPEN_OTHER(&o);
    use_file(&o);
    read_over_the_edge(&o, pages, page);
    CHECK_INT(o.caller.counts.calls, 4);
    close_other(&o);
    whole_address_space();
    munmap(pages, 2 * page);
}

/* Answers process_vm_readv with `number`, as container profiles do. */
static bool refuse_call(unsigned number)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | number),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool behind_filter(void *context)
{
    const unsigned *number = context;
    uint64_t word = 0, out = 0;
    if (!refuse_call(*number) || process_vm_readv(getpid(), NULL, 0, NULL, 0, 0) == 0) {
        return false;
    }
    words[5] = 55;
    struct other o;
    if (!open_other(&o)) {
        return false;
    }
    CHECK(o.remote.mem >= 0);
    struct memory_piece pieces[] = {{at(&words[5]), &out, 8, 0}};
    CHECK(memory_batch_read(&o.memory, pieces, 1, &o.err));
    CHECK_INT(out, 55);
    struct memory_reader reader = remote_reader((uint32_t)o.pid);
    CHECK(reader.read(reader.context, at(&words[5]), &word, 8, &o.err));
    CHECK_INT(word, 55);
    close_other(&o);
    return true;
}

static void filtered_call(void)
{
    const unsigned numbers[] = {EPERM, ENOSYS};
    for (unsigned i = 0; i < 2; i++) {
        unsigned number = numbers[i];
        if (!in_child(behind_filter, &number)) {
            SKIP("no seccomp filter can be set here");
        }
    }
}

/* ---- what ends it ---- */

static void check_gone(struct other *o)
{
    uint64_t out = 0;
    struct memory_piece pieces[] = {{at(words), &out, 8, 8}, {at(words), &out, 8, 8}};
    struct err err = {0};
    CHECK(!memory_batch_read(&o->memory, pieces, 2, &err));
    CHECK_INT(err.kind, ERR_GONE);
    CHECK_INT(pieces[0].got + pieces[1].got, 0);
    CHECK_INT(o->caller.counts.gone, 1);
    remote_close(&o->remote);
}

static void ended_process(void)
{
    struct other o;
    OPEN_OTHER(&o);
    end_child(o.pid);
    check_gone(&o);
    struct err err = {0};
    uint64_t word;
    CHECK(!remote_open(&o.remote, (uint32_t)o.pid, at(words), &err));
    CHECK_INT(err.kind, ERR_GONE);
    struct memory_reader reader = remote_reader((uint32_t)o.pid);
    CHECK(!reader.read(reader.context, at(words), &word, 8, &err));
    CHECK_INT(err.kind, ERR_GONE);

    OPEN_OTHER(&o);
    use_file(&o);
    end_child(o.pid);
    check_gone(&o);
}

/* Ended, and not waited for by its parent: its memory is gone already. */
static void zombie(void)
{
    struct other o;
    OPEN_OTHER(&o);
    kill(o.pid, SIGKILL);
    siginfo_t info;
    CHECK_INT(waitid(P_PID, (id_t)o.pid, &info, WEXITED | WNOWAIT), 0);
    check_gone(&o);
    CHECK(waitpid(o.pid, NULL, 0) == o.pid);
}

/* A child that becomes another program when told; the pipe closes at that moment. */
static pid_t start_execing(int *tell, int *told)
{
    int go[2], gone[2];
    CHECK(pipe2(go, O_CLOEXEC) == 0 && pipe2(gone, O_CLOEXEC) == 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(go[0], &byte, 1) == 1) {
            execl("/bin/sleep", "sleep", "60", NULL);
        }
        _exit(1);
    }
    close(go[0]);
    close(gone[1]);
    *tell = go[1];
    *told = gone[0];
    return pid;
}

static void exec_meanwhile(void)
{
    int tell, told;
    char byte = 0;
    struct other o = {0};
    o.pid = start_execing(&tell, &told);
    if (!remote_open(&o.remote, (uint32_t)o.pid, at(words), &o.err)) {
        end_child(o.pid);
        SKIP("a child's memory cannot be read here");
    }
    use_file(&o);
    o.caller.remote = &o.remote;
    o.memory = remote_batch(&o.caller);
    CHECK(write(tell, "x", 1) == 1);
    CHECK_INT(read(told, &byte, 1), 0);
    check_gone(&o);
    close(tell);
    close(told);
    end_child(o.pid);
}

static bool as_nobody(void *context)
{
    const pid_t *pid = context;
    struct remote remote;
    struct err err = {0};
    drop_root();
    CHECK(!remote_open(&remote, (uint32_t)*pid, at(words), &err));
    CHECK_INT(err.kind, ERR_DENIED);
    CHECK(strstr(err.text, "another user") != NULL);
    if (process_vm_readv(getpid(), NULL, 0, NULL, 0, 0) < 0) {
        return true; /* an emulator: opening is all that can be refused */
    }
    struct remote_caller caller = {.remote = &(struct remote){(uint32_t)*pid, -1}};
    struct memory_batch memory = remote_batch(&caller);
    struct memory_piece piece = {at(words), &remote, 8, 8};
    CHECK(!memory_batch_read(&memory, &piece, 1, &err));
    CHECK_INT(err.kind, ERR_DENIED);
    CHECK_INT(piece.got, 0);
    CHECK_INT(caller.counts.denied, 1);
    return true;
}

static void denied(void)
{
    if (geteuid() != 0) {
        SKIP("needs root, to become another user");
    }
    pid_t pid = child_that_sleeps();
    CHECK(in_child(as_nobody, &pid));
    end_child(pid);
}

static bool undumpable_sibling(void *context)
{
    int *pipe_end = context;
    char byte;
    drop_root();
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_DUMPABLE, 0);
        CHECK(write(pipe_end[1], "x", 1) == 1);
        pause();
    }
    CHECK(read(pipe_end[0], &byte, 1) == 1);
    struct remote remote;
    struct err err = {0};
    CHECK(!remote_open(&remote, (uint32_t)pid, at(words), &err));
    CHECK_INT(err.kind, ERR_DENIED);
    CHECK(strstr(err.text, "not dumpable") != NULL);
    end_child(pid);
    return true;
}

static void not_dumpable(void)
{
    int pipe_ends[2];
    CHECK_INT(pipe2(pipe_ends, O_CLOEXEC), 0);
    CHECK(in_child(undumpable_sibling, pipe_ends));
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void probe_unmapped(void)
{
    struct other o;
    OPEN_OTHER(&o);
    struct remote remote;
    struct err err = {0};
    CHECK(!remote_open(&remote, (uint32_t)o.pid, 8, &err));
    CHECK_INT(err.kind, ERR_MALFORMED);
    struct memory_reader reader = remote_reader((uint32_t)o.pid);
    CHECK(!reader.read(reader.context, 8, &remote, 4, &err));
    CHECK_INT(err.kind, ERR_MALFORMED);
    close_other(&o);
}

TESTS_THAT_MEASURE({"a batch reads its pieces with one call, in the order given", all_pieces},
      {"a piece that reaches into an unmapped page keeps what is before it", unmapped_pages},
      {"a piece ends at its first hole", hole_in_a_piece},
      {"pieces near each other are read at once, each as far as it is mapped", near_each_other},
      {"no address is special", whole_address_space},
      {"more pieces than a call takes are all read", many_pieces},
      {"a piece of many pages is whole", large_piece},
      {"/proc/PID/mem gives the same pieces", file_gives_the_same},
      {"where the call is refused, /proc/PID/mem is read", filtered_call},
      {"a process that ended is gone, and no piece was read", ended_process},
      {"a process that nobody waited for is gone as well", zombie},
      {"a process that became another program is gone for /proc/PID/mem", exec_meanwhile},
      {"a process of another user is refused, and that is said", denied},
      {"a process that is not dumpable is refused, and that is said", not_dumpable},
      {"a probe where nothing is mapped is no right that is missing", probe_unmapped})
