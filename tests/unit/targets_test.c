/* The table of followed processes, fed as records feed it. Pids that cannot exist stand for processes
 * that are gone; our own stands for one whose /proc can be read. */
#include "capture/follow/targets.h"
#include "os/clock.h"
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GONE = 0x7ffffff0 }; /* above the kernel's highest pid */

#define MS UINT64_C(1000000)

struct table {
    struct world world;
    struct images images;
    struct targets t;
};

static void begin(struct table *table)
{
    table->world = world_here();
    images_init(&table->images, &table->world);
    targets_init(&table->t, &table->images, false);
}

static void end(struct table *table)
{
    targets_release(&table->t);
    images_release(&table->images);
}

static void map(struct targets *t, struct target *target, uint64_t start, uint64_t limit,
                uint64_t offset)
{
    targets_map(t, target,
                &(struct mapped_file){.start = start,
                                      .limit = limit,
                                      .file_offset = offset,
                                      .path = STR("//anon")});
}

/* ---- mappings ---- */

enum { PAGES = 8, PAGE = 0x1000, BASE = 0x10000 };

/* What is mapped, page by page: the file offset, or 0 for nothing. */
struct model {
    uint64_t offset[PAGES];
};

static void map_both(struct targets *t, struct target *target, struct model *model, unsigned from,
                     unsigned to, uint64_t offset)
{
    map(t, target, BASE + from * PAGE, BASE + to * PAGE, offset);
    for (unsigned i = from; i < to; i++) {
        model->offset[i] = offset + (uint64_t)(i - from) * PAGE;
    }
}

static bool sorted(const struct target *target)
{
    for (size_t i = 0; i < target->maps.len; i++) {
        const struct mapping *m = &target->maps.at[i];
        if (m->start >= m->limit || (i > 0 && m[-1].limit > m->start)) {
            return false;
        }
    }
    return true;
}

static bool agrees(struct targets *t, struct target *target, const struct model *model)
{
    for (unsigned i = 0; i < PAGES; i++) {
        for (unsigned at = 0; at < PAGE; at += PAGE - 1) { /* the first and the last byte */
            uint64_t address = BASE + i * PAGE + at;
            const struct mapping *m = targets_mapping(t, target, address, 0);
            uint64_t offset = m == NULL ? 0 : m->file_offset + (address - m->start) - at;
            if (offset != model->offset[i]) {
                return false;
            }
        }
    }
    return targets_mapping(t, target, BASE - 1, 0) == NULL &&
           targets_mapping(t, target, BASE + PAGES * PAGE, 0) == NULL && sorted(target);
}

static void every_overlap(void)
{
    struct table table;
    begin(&table);
    struct target *target = targets_get(&table.t, GONE);
    target->reread.retry_ns = UINT64_MAX; /* only what is told here */
    unsigned wrong = 0, shapes = 0;
    for (unsigned a = 0; a < PAGES; a++)
        for (unsigned b = a + 1; b <= PAGES; b++)
            for (unsigned c = 0; c < PAGES; c++)
                for (unsigned d = c + 1; d <= PAGES; d++)
                    for (unsigned e = 0; e < PAGES; e++)
                        for (unsigned f = e + 1; f <= PAGES; f++) {
                            struct model model = {{0}};
                            vec_clear(&target->maps);
                            map_both(&table.t, target, &model, a, b, 0x100000);
                            map_both(&table.t, target, &model, c, d, 0x200000);
                            map_both(&table.t, target, &model, e, f, 0x300000);
                            wrong += !agrees(&table.t, target, &model);
                            shapes++;
                        }
    CHECK_INT(shapes, 36 * 36 * 36);
    CHECK_INT(wrong, 0);
    end(&table);
}

static void empty_mapping(void)
{
    struct table table;
    begin(&table);
    struct target *target = targets_get(&table.t, GONE);
    target->reread.retry_ns = UINT64_MAX;
    map(&table.t, target, 0x5000, 0x6000, 0);
    map(&table.t, target, 0x5800, 0x5800, 0);
    map(&table.t, target, 0x5800, 0x5000, 0);
    CHECK_INT(target->maps.len, 1);
    map(&table.t, target, UINT64_MAX - 0xfff, UINT64_MAX, 0);
    CHECK(targets_mapping(&table.t, target, UINT64_MAX - 1, 0) != NULL);
    CHECK(targets_mapping(&table.t, target, UINT64_MAX, 0) == NULL);
    CHECK(targets_mapping(&table.t, target, 0, 0) == NULL);
    end(&table);
}

static void split_keeps_bias(void)
{
    struct table table;
    begin(&table);
    struct target *target = targets_get(&table.t, GONE);
    targets_map(&table.t, target,
                &(struct mapped_file){.start = 0x10000,
                                      .limit = 0x20000,
                                      .file_offset = 0x3000,
                                      .inode = 99,
                                      .path = STR("/nowhere/gone.so")});
    map(&table.t, target, 0x14000, 0x15000, 0);
    struct mapping *low = targets_mapping(&table.t, target, 0x10000, 0);
    struct mapping *high = targets_mapping(&table.t, target, 0x15000, 0);
    CHECK(low != NULL && high != NULL && low != high);
    CHECK_INT(high->file_offset, 0x8000);
    CHECK(low->bias == high->bias && low->image == high->image);
    CHECK(low->image >= IMAGE_FIRST_FILE);
    CHECK_INT(0x15000 - high->bias, 0x8000); /* without headers: where in the file */
    CHECK_STR(images_path(&table.images, low->image), "/nowhere/gone.so");
    end(&table);
}

static void vdso_of_32_bits(void)
{
    struct table table;
    begin(&table);
    struct target *target = targets_get(&table.t, GONE);
    targets_map(&table.t, target,
                &(struct mapped_file){
                    .start = 0xf7fc0000, .limit = 0xf7fc2000, .path = STR("[vdso]")});
    targets_map(&table.t, target,
                &(struct mapped_file){
                    .start = 0x7fff00000000, .limit = 0x7fff00002000, .path = STR("[vdso]")});
    CHECK_INT(target->maps.at[0].image, IMAGE_ANON);
    CHECK_INT(target->maps.at[1].image, IMAGE_VDSO);
    end(&table);
}

/* ---- reading /proc/PID/maps ---- */

static void own_maps(void)
{
    struct table table;
    begin(&table);
    struct target *target = targets_get(&table.t, (uint32_t)getpid());
    struct mapping *m = targets_mapping(&table.t, target, (uint64_t)(uintptr_t)own_maps, 0);
    CHECK(m != NULL);
    if (m != NULL) {
        char exe[4096] = "";
        CHECK(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
        CHECK_STR(images_path(&table.images, m->image), exe);
        static int data;
        CHECK(targets_mapping(&table.t, target, (uint64_t)(uintptr_t)&data, 0) == NULL);
    }
    end(&table);
}

/* The kernel writes it as "\\012", by which name there is no file. */
static void a_newline_in_a_name(void)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/targets\n%d\\x", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
    CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0);
    void *at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
        unlink(path);
        SKIP("no code can be mapped from a file in /tmp here");
    }
    struct table table;
    begin(&table);
    struct target *target = targets_get(&table.t, (uint32_t)getpid());
    struct mapping *m = targets_mapping(&table.t, target, (uint64_t)(uintptr_t)at, 0);
    CHECK(m != NULL);
    if (m != NULL) {
        CHECK_STR(images_path(&table.images, m->image), path);
    }
    end(&table);
    munmap(at, PAGE);
    close(fd);
    unlink(path);
}

static void *map_code(void)
{
    void *at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static void reading_again_waits(void)
{
    struct table table;
    begin(&table);
    struct target *target = targets_get(&table.t, (uint32_t)getpid());
    CHECK(targets_mapping(&table.t, target, 0x1000, 1) == NULL);
    CHECK(target->reread.has_all);
    void *code = map_code();
    uint64_t address = (uint64_t)(uintptr_t)code;
    CHECK(targets_mapping(&table.t, target, address, 1) != NULL); /* the second reading is allowed */
    void *more = map_code();
    uint64_t other = (uint64_t)(uintptr_t)more;
    munmap(code, PAGE);
    CHECK(targets_mapping(&table.t, target, other, 50 * MS) == NULL); /* the third has to wait */
    CHECK(targets_mapping(&table.t, target, other, 101 * MS) != NULL);
    CHECK(targets_mapping(&table.t, target, address, 102 * MS) == NULL);
    munmap(more, PAGE);
    uint64_t now = 103 * MS, readings = 0, before = target->reread.retry_ns;
    for (unsigned i = 0; i < 36000; i++, now += 100 * MS) { /* an hour of misses */
        CHECK(targets_mapping(&table.t, target, 0x1000, now) == NULL);
        readings += target->reread.retry_ns != before;
        before = target->reread.retry_ns;
    }
    CHECK(readings > 300 && readings < 400); /* every 10 s at last */
    end(&table);
}

static void refused_maps_wait_too(void)
{
    struct table table;
    begin(&table);
    struct target *target = targets_get(&table.t, GONE);
    CHECK(targets_mapping(&table.t, target, 0x1000, 5) == NULL);
    CHECK(target->reread.retry_ns > 5);
    uint64_t until = target->reread.retry_ns;
    CHECK(targets_mapping(&table.t, target, 0x1000, until - 1) == NULL);
    CHECK_INT(target->reread.retry_ns, until);
    end(&table);
}

/* Readings in [from, to) of one whose mappings read so each time, where a round is each tenth of a second. */
static unsigned readings(struct maps_pace *pace, struct maps_reading reading, uint64_t from_s, uint64_t to_s)
{
    enum { ROUND_MS = 100, BOOT_S = 3 }; /* no clock stands at 0 */
    unsigned count = 0;
    for (uint64_t now = (BOOT_S + from_s) * 1000 * MS; now < (BOOT_S + to_s) * 1000 * MS; now += ROUND_MS * MS) {
        if (now >= pace->again_ns) {
            maps_pace_next(pace, &reading, now);
            count++;
        }
    }
    return count;
}

/* Then every 10 s: 60 in ten minutes. */
static void often_for_so_long(void)
{
    struct maps_pace pace = {0};
    const struct maps_reading new = {.bytes = 20000, .is_new = true};
    CHECK_INT(readings(&pace, new, 0, 10), 51); /* 0.0 to 4.9 s, and at 5 s the first with a pause of 10 s */
    CHECK_INT(readings(&pace, new, 10, 610), 60);
    const struct maps_reading found = {.bytes = 20000, .is_new = true, .found = true};
    pace = (struct maps_pace){0};
    CHECK_INT(readings(&pace, found, 0, 30), 51); /* every half second to 24.5 s, and at 25 s */
    CHECK_INT(readings(&pace, found, 30, 630), 60);
    pace = (struct maps_pace){0};
    CHECK_INT(readings(&pace, new, 0, 2), 20);
    CHECK_INT(readings(&pace, found, 2, 30), 47); /* its runtime begins at 2 s: to 24.5 s, and at 25 s */
}

/* 2,000 threads have some 4,000 lines of 50 bytes: a second apart, but not for ten times as long. */
static void long_maps(void)
{
    struct maps_pace pace = {0};
    const struct maps_reading new = {.bytes = 200000, .is_new = true};
    CHECK_INT(readings(&pace, new, 0, 10), 6); /* 0 to 4 s, and at 5 s */
    CHECK_INT(readings(&pace, new, 10, 610), 60);
    const struct maps_reading found = {.bytes = 200000, .is_new = true, .found = true};
    pace = (struct maps_pace){0};
    CHECK_INT(readings(&pace, found, 0, 30), 26); /* 0 to 24 s, and at 25 s */
    CHECK_INT(readings(&pace, found, 30, 630), 60);
    const struct maps_reading longest = {.bytes = 4000000, .is_new = true};
    pace = (struct maps_pace){0};
    CHECK_INT(readings(&pace, longest, 0, 600), 30); /* every 20 s from the first on */
}

static void long_running(void)
{
    struct maps_pace pace = {0};
    const struct maps_reading old = {.bytes = 20000, .found = true};
    CHECK_INT(readings(&pace, old, 0, 600), 60);
    pace = (struct maps_pace){0};
    maps_pace_next(&pace, &(struct maps_reading){.passing = true}, 7000 * MS);
    CHECK_INT(pace.again_ns, 7100 * MS); /* it was becoming another program */
}

/* ---- processes ---- */

static void fork_inherits(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    targets_comm(t, GONE, GONE, STR("parent"), true);
    struct target *parent = targets_find(t, GONE);
    parent->capture_mode = CAPTURE_PERF;
    map(t, parent, 0x10000, 0x20000, 0x1000);
    targets_fork(t, GONE + 1, GONE + 1, GONE, GONE, 77);
    struct target *child = targets_find(t, GONE + 1);
    CHECK(child != NULL);
    CHECK_TEXT(child->name, "parent");
    CHECK_INT(child->capture_mode, CAPTURE_PERF);
    CHECK_INT(child->began_ns, 77);
    CHECK_INT(child->parent_pid, GONE);
    CHECK_INT(child->alive, 1);
    CHECK(child->reread.has_all);
    CHECK(targets_mapping(t, child, 0x11000, 0) != NULL);
    map(t, child, 0x10000, 0x12000, 0x9000); /* what it maps now is its own */
    CHECK_INT(targets_mapping(t, child, 0x11000, 0)->file_offset, 0x9000);
    CHECK_INT(targets_mapping(t, parent, 0x11000, 0)->file_offset, 0x1000);
    end(&table);
}

static void fork_takes_the_threads_name(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    targets_comm(t, GONE, GONE, STR("server"), true);
    targets_fork(t, GONE, GONE + 5, GONE, GONE, 1);
    targets_comm(t, GONE, GONE + 5, STR("worker"), false);
    CHECK_TEXT(targets_find(t, GONE)->name, "server"); /* a thread's name is its own */
    targets_fork(t, GONE + 6, GONE + 6, GONE, GONE + 5, 2);
    CHECK_TEXT(targets_find(t, GONE + 6)->name, "worker");
    end(&table);
}

static void exec_clears(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    targets_comm(t, GONE, GONE, STR("sh"), true);
    struct target *target = targets_find(t, GONE);
    map(t, target, 0x10000, 0x20000, 0);
    targets_comm(t, GONE, GONE, STR("renamed"), false);
    CHECK_INT(target->maps.len, 1);
    CHECK_TEXT(target->name, "renamed");
    targets_comm(t, GONE, GONE, STR("a-name-longer-than-the-kernel's"), true);
    CHECK_INT(target->maps.len, 0);
    CHECK_TEXT(target->name, "a-name-longer-t");
    CHECK(target->reread.has_all); /* whatever comes has its record */
    end(&table);
}

static void alive_counts(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    targets_get(t, GONE);
    targets_fork(t, GONE + 1, GONE + 1, GONE, GONE, 1);
    struct target *child = targets_find(t, GONE + 1);
    map(t, child, 0x1000, 0x2000, 0);
    targets_fork(t, GONE + 1, GONE + 2, GONE + 1, GONE + 1, 2);
    targets_fork(t, GONE + 1, GONE + 3, GONE + 1, GONE + 1, 3);
    CHECK_INT(child->alive, 3);
    targets_exit(t, GONE + 1, GONE + 1, 10); /* the first thread may end first */
    CHECK(!child->ended);
    targets_exit(t, GONE + 1, GONE + 3, 11);
    CHECK(!child->ended);
    targets_exit(t, GONE + 1, GONE + 2, 12);
    CHECK(child->ended);
    CHECK_INT(child->ended_ns, 12);
    CHECK_INT(child->maps.len, 0);
    CHECK(targets_find(t, GONE + 1) == child); /* until the window ends */
    CHECK(targets_mapping(t, child, 0x1000, 0) == NULL);
    targets_exit(t, GONE + 1, GONE + 2, 13); /* once too often */
    targets_exit(t, GONE + 9, GONE + 9, 13); /* never seen */
    CHECK_INT(child->alive, 0);
    end(&table);
}

/* While a process's events are opened anew two of each write records. */
static void told_twice(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    targets_get(t, GONE);
    targets_fork(t, GONE + 1, GONE + 1, GONE, GONE, 1 * MS);
    struct target *child = targets_find(t, GONE + 1);
    targets_fork(t, GONE + 1, GONE + 1, GONE, GONE, 1 * MS + 300);
    CHECK(targets_find(t, GONE + 1) == child && !child->ended);
    targets_fork(t, GONE + 1, GONE + 2, GONE + 1, GONE + 1, 2 * MS);
    targets_fork(t, GONE + 1, GONE + 2, GONE + 1, GONE + 1, 2 * MS + 300);
    CHECK_INT(child->alive, 2);
    CHECK_INT(child->threads_seen, 2);
    targets_exit(t, GONE + 1, GONE + 2, 3 * MS);
    targets_exit(t, GONE + 1, GONE + 2, 3 * MS + 300);
    CHECK_INT(child->alive, 1);
    targets_exit(t, GONE + 1, GONE + 3, 4 * MS); /* whose start was lost */
    CHECK(!child->ended);
    targets_exit(t, GONE + 1, GONE + 1, 5 * MS);
    CHECK(child->ended);
    targets_fork(t, GONE + 1, GONE + 1, GONE, GONE, 6 * MS); /* another one */
    CHECK(targets_find(t, GONE + 1) != child);
    end(&table);
}

static void exec_by_another_thread(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    targets_get(t, GONE);
    targets_fork(t, GONE + 1, GONE + 1, GONE, GONE, 1);
    targets_fork(t, GONE + 1, GONE + 2, GONE + 1, GONE + 1, 2);
    targets_exit(t, GONE + 1, GONE + 1, 3); /* the kernel ends the first thread … */
    targets_comm(t, GONE + 1, GONE + 1, STR("new"), true); /* … and gives its tid to the other */
    struct target *target = targets_find(t, GONE + 1);
    CHECK_INT(target->alive, 1);
    CHECK(!target->ended);
    targets_end_window(t);
    CHECK_TEXT(targets_thread(t, GONE + 1, GONE + 1)->name, "new");
    targets_fork(t, GONE + 1, GONE + 3, GONE + 1, GONE + 1, 5);
    targets_fork(t, GONE + 1, GONE + 4, GONE + 1, GONE + 1, 6);
    targets_comm(t, GONE + 1, GONE + 1, STR("newer"), true); /* their ends got lost */
    CHECK_INT(target->alive, 1);
    targets_exit(t, GONE + 1, GONE + 1, 7);
    CHECK(target->ended);
    end(&table);
}

/* The maps of a zombie open and are empty, as are those of any process that is ending. */
static void maps_of_a_zombie(void)
{
    struct table table;
    begin(&table);
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    siginfo_t info;
    CHECK(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0);
    struct target *target = targets_get(&table.t, (uint32_t)child);
    map(&table.t, target, 0x10000, 0x20000, 0);
    CHECK(!targets_read_maps(&table.t, target));
    CHECK_INT(target->maps.len, 1);
    CHECK(targets_mapping(&table.t, target, 0x10000, 0) != NULL);
    CHECK(waitpid(child, NULL, 0) == child);
    end(&table);
}

static void ended_thread(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    targets_comm(t, GONE, GONE, STR("x"), true);
    targets_fork(t, GONE, GONE + 1, GONE, GONE, 1);
    targets_fork(t, GONE, GONE + 2, GONE, GONE, 2);
    CHECK_INT(t->threads.len, 3);
    targets_exit(t, GONE, GONE + 1, 3);
    targets_exit(t, GONE + 7, GONE + 2, 3); /* of another process: not this one */
    CHECK_INT(t->threads.len, 2);
    CHECK_INT(targets_thread(t, GONE, GONE + 2)->tid, GONE + 2); /* found where it moved to */
    CHECK_INT(t->threads.len, 2);
    targets_end_window(t);
    CHECK_INT(t->threads.len, 2);
    end(&table);
}

/* Where no record tells of ends: our own process has one thread, whatever is said of another. */
static void ended_unrecorded_thread(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    uint32_t own = (uint32_t)getpid();
    targets_get(t, own)->capture_mode = CAPTURE_PROC;
    targets_thread(t, own, own);
    targets_thread(t, own, GONE);
    targets_thread(t, own, GONE + 1)->window = t->window; /* it has a row in this window */
    targets_end_window(t);
    CHECK_INT(t->threads.len, 2);
    targets_end_window(t);
    CHECK_INT(t->threads.len, 1);
    CHECK_INT(t->threads.at[0].tid, own);
    end(&table);
}

static void set_aside(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    targets_get(t, GONE);
    for (uint32_t i = 1; i <= 6; i++) {
        targets_fork(t, GONE + i, GONE + i, GONE, GONE, i);
        if (i % 2 == 0) {
            targets_exit(t, GONE + i, GONE + i, 10 + i);
        }
    }
    targets_set_aside(t);
    CHECK_INT(t->all.len, 4);
    CHECK_INT(t->aside.len, 3);
    for (size_t i = 1; i < t->all.len; i++) {
        CHECK(t->all.at[i - 1]->began_ns < t->all.at[i]->began_ns); /* in their order */
    }
    CHECK_INT(targets_find(t, GONE + 2)->ended_ns, 12);
    targets_fork(t, GONE + 2, GONE + 2, GONE, GONE, 20); /* its pid comes again */
    CHECK(!targets_find(t, GONE + 2)->ended);
    targets_recall(t);
    CHECK_INT(t->aside.len, 0);
    CHECK_INT(t->all.len, 8);
    targets_end_window(t);
    CHECK_INT(t->all.len, 5);
    CHECK(targets_find(t, GONE + 2) != NULL && targets_find(t, GONE + 4) == NULL);
    end(&table);
}

static bool is_even(void *context, struct target *target)
{
    (*(unsigned *)context)++;
    return target->pid % 2 == 0;
}

/* 0 starts 2, which starts 4, which starts 5; 1 is started by 0, and starts 3. GONE is even. */
static void drop_parents(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    unsigned asked = 0;
    static const uint32_t starts[][2] = {{2, 0}, {4, 2}, {5, 4}, {1, 0}, {3, 1}};
    targets_get(t, GONE);
    for (unsigned i = 0; i < 5; i++) {
        targets_fork(t, GONE + starts[i][0], GONE + starts[i][0], GONE + starts[i][1],
                     GONE + starts[i][1], i + 1);
    }
    for (uint32_t i = 1; i <= 4; i++) {
        if (i != 3) {
            targets_exit(t, GONE + i, GONE + i, 10);
        }
    }
    targets_drop(t, is_even, &asked);
    CHECK_INT(asked, 0); /* only those set aside are dropped */
    targets_set_aside(t);
    targets_drop(t, is_even, &asked);
    CHECK_INT(asked, 3);
    CHECK(targets_find(t, GONE + 2) == NULL && targets_find(t, GONE + 4) == NULL);
    CHECK(targets_find(t, GONE + 1) != NULL);
    CHECK_INT(targets_find(t, GONE + 5)->forked_by, GONE);
    CHECK_INT(targets_find(t, GONE + 5)->parent_pid, GONE);
    CHECK_INT(targets_find(t, GONE + 3)->forked_by, GONE + 1);
    targets_end_window(t);
    CHECK_INT(targets_find(t, GONE + 3)->forked_by, GONE); /* windows end likewise */
    CHECK_INT(t->all.len, 3);
    end(&table);
}

static void ran_before(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    struct target *target = targets_get(t, GONE);
    targets_fork(t, GONE, GONE + 1, GONE, GONE, 1);
    targets_exit(t, GONE, GONE + 1, 2); /* other threads, never told of, may live */
    targets_exit(t, GONE, GONE, 3);
    CHECK(!target->ended);
    end(&table);
}

static void pid_reuse(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    targets_get(t, GONE);
    targets_fork(t, GONE + 1, GONE + 1, GONE, GONE, 10);
    struct target *old = targets_find(t, GONE + 1);
    map(t, old, 0x10000, 0x20000, 0);
    old->account.sampled_ns = 5;
    targets_exit(t, GONE + 1, GONE + 1, 20);
    targets_fork(t, GONE + 1, GONE + 1, GONE, GONE, 30000000000);
    struct target *fresh = targets_find(t, GONE + 1);
    CHECK(fresh != old && !fresh->ended && old->ended);
    CHECK_INT(fresh->maps.len, 0);
    CHECK_INT(fresh->account.sampled_ns, 0);
    CHECK_INT(old->account.sampled_ns, 5); /* its samples stay in the window's accounting */
    CHECK_INT(t->all.len, 3);

    struct profile p;
    CHECK(profile_init(&p, 1 << 20, NULL));
    uint32_t a = targets_process_id(t, &p, old), b = targets_process_id(t, &p, fresh);
    CHECK(a != 0 && b != 0 && a != b);
    profile_release(&p);

    targets_end_window(t);
    CHECK(targets_find(t, GONE + 1) == fresh);
    CHECK_INT(t->all.len, 2);
    end(&table);
}

static void end_of_window(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    enum { MANY = 500 };
    targets_get(t, GONE);
    for (uint32_t i = 1; i <= MANY; i++) {
        targets_fork(t, GONE - i, GONE - i, GONE, GONE, i);
        if (i % 3 != 0) {
            targets_exit(t, GONE - i, GONE - i, i);
        }
    }
    CHECK_INT(t->all.len, MANY + 1);
    targets_find(t, GONE - 3)->account.sampled_ns = 7;
    uint32_t window = t->window;
    targets_end_window(t);
    CHECK_INT(t->window, window + 1);
    CHECK_INT(t->all.len, MANY / 3 + 1);
    CHECK_INT(t->threads.len, MANY / 3);
    for (uint32_t i = 1; i <= MANY; i++) {
        struct target *target = targets_find(t, GONE - i);
        CHECK((target != NULL) == (i % 3 == 0));
        CHECK(target == NULL || (target->pid == GONE - i && target->account.sampled_ns == 0));
    }
    targets_end_window(t);
    CHECK_INT(t->all.len, MANY / 3 + 1);
    end(&table);
}

static void unknown_parent(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    targets_fork(t, GONE + 1, GONE + 1, GONE, GONE, 1);
    struct target *child = targets_find(t, GONE + 1);
    CHECK(child != NULL);
    CHECK_TEXT(child->name, "[unknown]");
    CHECK(!child->reread.has_all); /* so /proc may be asked */
    targets_fork(t, GONE + 7, GONE + 8, GONE + 7, GONE + 7, 1); /* a thread of nobody known */
    CHECK(targets_find(t, GONE + 7) == NULL);
    targets_end_window(t);
    CHECK_INT(t->threads.len, 1); /* such a thread does not stay */
    end(&table);
}

static void own_name(void)
{
    struct table table;
    begin(&table);
    FILE *file = fopen("/proc/self/comm", "r");
    char name[32] = "";
    CHECK(file != NULL && fscanf(file, "%31[^\n]", name) == 1);
    fclose(file);
    struct target *target = targets_get(&table.t, (uint32_t)getpid());
    CHECK_TEXT(target->name, name);
    CHECK(targets_get(&table.t, (uint32_t)getpid()) == target);
    end(&table);
}

/* ---- rows of the profile ---- */

static void rename_is_a_row(void)
{
    struct table table;
    struct profile p;
    begin(&table);
    CHECK(profile_init(&p, 1 << 20, NULL));
    struct targets *t = &table.t;
    targets_comm(t, GONE, GONE, STR("sh"), true);
    struct target *target = targets_find(t, GONE);
    uint32_t before = targets_thread_id(t, &p, target, GONE);
    CHECK_INT(targets_thread_id(t, &p, target, GONE), before);
    targets_comm(t, GONE, GONE, STR("redis"), true);
    uint32_t after = targets_thread_id(t, &p, target, GONE);
    CHECK(before != 0 && after != 0 && before != after);
    CHECK_STR(profile_text(&p, p.threads.at[before].name), "sh");
    CHECK_STR(profile_text(&p, p.threads.at[after].name), "redis");
    uint32_t process = p.threads.at[after].process;
    CHECK_INT(process, p.threads.at[before].process); /* one process, by its last name */
    CHECK_STR(profile_text(&p, p.processes.at[process].name), "redis");
    profile_release(&p);
    end(&table);
}

/* What a runtime would say, and how often it was asked. */
struct said {
    const char *name;
    unsigned asked;
};

static bool say_name(void *context, struct target *target, struct target_thread *thread, struct buf *out)
{
    struct said *said = context;
    (void)target;
    said->asked++;
    thread->asked++;
    buf_text(out, said->name != NULL ? said->name : "");
    return said->name != NULL;
}

static struct str thread_name(struct targets *t, struct profile *p, struct target *target, uint32_t tid)
{
    return profile_text(p, p->threads.at[targets_thread_id(t, p, target, tid)].name);
}

static void named_by_the_runtime(void)
{
    struct table table;
    struct profile p;
    struct said said = {0};
    struct reader *reader = (struct reader *)(void *)&said;
    begin(&table);
    CHECK(profile_init(&p, 1 << 20, NULL));
    struct targets *t = &table.t;
    targets_comm(t, GONE, GONE, STR("python3"), true);
    for (uint32_t i = 1; i <= 3; i++) {
        targets_fork(t, GONE, GONE + i, GONE, GONE, i);
    }
    struct target *target = targets_find(t, GONE);
    t->namer = (struct thread_namer){say_name, &said};
    CHECK_STR(thread_name(t, &p, target, GONE + 1), "python3");
    CHECK_INT(said.asked, 0); /* there is no runtime yet */
    target->runtime.reader = reader;
    CHECK_STR(thread_name(t, &p, target, GONE + 1), "python3");
    said.name = "worker-db"; /* it ran before it had a name */
    CHECK_STR(thread_name(t, &p, target, GONE + 1), "worker-db");
    CHECK_STR(thread_name(t, &p, target, GONE + 1), "worker-db");
    CHECK_INT(said.asked, 2);
    CHECK_STR(thread_name(t, &p, target, GONE), "python3"); /* the first thread is the program */
    targets_comm(t, GONE, GONE + 2, STR("own-name"), false);
    CHECK_STR(thread_name(t, &p, target, GONE + 2), "own-name");
    CHECK_INT(said.asked, 2);
    said.name = NULL;
    for (unsigned i = 0; i < 100; i++) {
        CHECK_STR(thread_name(t, &p, target, GONE + 3), "python3");
    }
    CHECK_INT(said.asked, 2 + TARGET_NAME_TRIES);
    profile_clear(&p);
    targets_end_window(t);
    CHECK_STR(thread_name(t, &p, target, GONE + 1), "worker-db"); /* kept */
    CHECK_STR(thread_name(t, &p, target, GONE + 3), "python3");
    CHECK_INT(said.asked, 2 + TARGET_NAME_TRIES);
    targets_fork(t, GONE, GONE + 1, GONE, GONE, 1 << 30); /* another thread of the same number */
    CHECK_STR(thread_name(t, &p, target, GONE + 1), "python3");
    target->runtime.reader = NULL;
    t->namer = (struct thread_namer){0};
    profile_release(&p);
    end(&table);
}

static void renamed_by_proc(void)
{
    struct table table;
    struct profile p;
    begin(&table);
    CHECK(profile_init(&p, 1 << 20, NULL));
    uint32_t pid = (uint32_t)getpid();
    struct target *target = targets_get(&table.t, pid);
    char name[COMM_MAX];
    memcpy(name, target->name, COMM_MAX);
    uint32_t same = targets_thread_id(&table.t, &p, target, pid);
    targets_rename(&table.t, target);
    CHECK_INT(targets_thread_id(&table.t, &p, target, pid), same);
    memcpy(target->name, "before-exec", 12);
    targets_rename(&table.t, target);
    CHECK_TEXT(target->name, name);
    profile_release(&p);
    end(&table);
}

static void ids_per_window(void)
{
    struct table table;
    struct profile p;
    begin(&table);
    CHECK(profile_init(&p, 1 << 20, NULL));
    struct targets *t = &table.t;
    targets_comm(t, GONE, GONE, STR("x"), true);
    struct target *target = targets_find(t, GONE);
    map(t, target, 0x10000, 0x20000, 0);
    for (unsigned window = 0; window < 3; window++) {
        /* other strings first, so that an id of the window before would name something else */
        for (unsigned i = 0; i < window; i++) {
            char other[16];
            snprintf(other, sizeof other, "other %u", i);
            (void)profile_cstring(&p, other);
        }
        struct mapping *m = targets_mapping(t, target, 0x10000, 0);
        uint32_t thread = targets_thread_id(t, &p, target, GONE);
        uint32_t module = targets_module_id(t, &p, m);
        CHECK_INT(targets_module_id(t, &p, m), module);
        CHECK_STR(profile_text(&p, p.threads.at[thread].name), "x");
        CHECK_STR(profile_text(&p, p.modules.at[module].path), "[anon]");
        CHECK_INT(p.processes.at[p.threads.at[thread].process].pid, GONE);
        profile_clear(&p);
        targets_end_window(t);
    }
    profile_release(&p);
    end(&table);
}

static void tid_of_another(void)
{
    struct table table;
    begin(&table);
    struct targets *t = &table.t;
    struct target_thread *thread = targets_thread(t, GONE, GONE + 1);
    memcpy(thread->name, "old", 4);
    thread->named = true;
    thread->cpu_ns = 99;
    thread = targets_thread(t, GONE + 2, GONE + 1); /* the tid belongs to another process now */
    CHECK(!thread->named && thread->cpu_ns == 0 && thread->pid == GONE + 2);
    CHECK_INT(t->threads.len, 1);
    end(&table);
}

/* Our own pid, said to have been forked long before we were: /proc shows a later owner. */
static void next_owner(void)
{
    struct table table;
    struct profile p;
    uint32_t own = (uint32_t)getpid();
    begin(&table);
    CHECK(profile_init(&p, 1 << 20, NULL));
    targets_fork(&table.t, own, own, GONE, GONE, 20000000);
    struct target *first = targets_find(&table.t, own);
    CHECK(!targets_may_be(first, UINT64_MAX));
    CHECK(targets_may_be(first, 1));
    uint32_t row = targets_process_id(&table.t, &p, first);
    CHECK_INT(first->start_ticks, 2); /* by its fork: a tick is 10 ms */
    targets_exit(&table.t, own, own, 21000000);
    targets_fork(&table.t, own, own, GONE, GONE, 22000000); /* within the same tick */
    struct target *second = targets_find(&table.t, own);
    CHECK(second != first);
    CHECK(targets_process_id(&table.t, &p, second) != row);
    CHECK_INT(second->start_ticks, 2);
    targets_fork(&table.t, own, own, GONE, GONE, clock_mono_ns());
    struct target *third = targets_find(&table.t, own);
    (void)targets_process_id(&table.t, &p, third);
    CHECK(third->start_ticks > 2); /* it may be us */
    profile_release(&p);
    end(&table);
}

TESTS_THAT_MEASURE({"a pid's owner is not taken for the one that /proc shows later", next_owner},
      {"a process that is ending keeps the mappings that are known", maps_of_a_zombie},
      {"a new mapping replaces exactly what it covers, in every shape of overlap", every_overlap},
      {"empty and backward mappings change nothing", empty_mapping},
      {"both parts of a split mapping keep file and bias", split_keeps_bias},
      {"the vdso of a 32-bit process is not taken for ours", vdso_of_32_bits},
      {"what ran before us is found in its maps, code only", own_maps},
      {"a file whose name has a newline in it is found by that name", a_newline_in_a_name},
      {"maps are read again ever more rarely", reading_again_waits},
      {"maps that may not be read are not asked for per sample", refused_maps_wait_too},
      {"a new process's mappings are read often for 5 s, or 25 with a runtime, then seldom", often_for_so_long},
      {"mappings whose text is long are read at longer pauses, and often for no longer", long_maps},
      {"mappings of what has long been running are read seldom, unless they were refused for a moment", long_running},
      {"a forked process inherits name, capture mode and a copy of the mappings", fork_inherits},
      {"a process forked by a thread has the thread's name", fork_takes_the_threads_name},
      {"exec forgets all mappings, a rename none", exec_clears},
      {"a process ends with its last thread, whichever that is", alive_counts},
      {"a start or an end that two events tell counts once", told_twice},
      {"an exec by another thread than the first leaves one living thread",
       exec_by_another_thread},
      {"a thread that ended is not kept", ended_thread},
      {"a thread that is read from /proc is not kept when it is gone there", ended_unrecorded_thread},
      {"what ended can be set aside, is found all the same, and comes back", set_aside},
      {"who was started by a process that is dropped belongs to the one before it", drop_parents},
      {"a process that ran before us is not ended by counting", ran_before},
      {"a pid that comes again is another process", pid_reuse},
      {"the end of a window drops what ended and nothing else", end_of_window},
      {"records of an unknown parent make a process of its own", unknown_parent},
      {"a process that ran before us has its name from /proc", own_name},
      {"a thread has the name that its runtime says, asked a few times", named_by_the_runtime},
      {"a renamed thread is a new row of the same process", rename_is_a_row},
      {"a name that did not change in /proc keeps its row", renamed_by_proc},
      {"ids of a window are not used in the next", ids_per_window},
      {"a tid that comes again belongs to its new process", tid_of_another})
