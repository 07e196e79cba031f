/* A small profile with a bit of everything, shared by the tests of the encoders. */
#ifndef SAMPLE_PROFILE_H
#define SAMPLE_PROFILE_H

#include "profile/profile.h"

enum { SAMPLE_PERIOD_NS = 10000000, SAMPLE_MAX_BYTES = 16 * 1024 * 1024 };

/* A name of all bytes but 0. */
enum { ANY_BYTES = 256 };
__attribute__((unused)) static void fill_any_bytes(char name[static ANY_BYTES])
{
    for (unsigned i = 0; i < ANY_BYTES - 1; i++) {
        name[i] = (char)(i + 1);
    }
    name[ANY_BYTES - 1] = '\0';
}

__attribute__((unused)) static uint32_t add_process(struct profile *p, uint32_t pid,
                                                    const char *name, const char *container)
{
    struct process process = {.pid = pid, .start_ticks = pid * 10};
    process.name = profile_cstring(p, name);
    process.container = profile_cstring(p, container);
    return profile_process(p, &process);
}

__attribute__((unused)) static uint32_t add_thread(struct profile *p, uint32_t process,
                                                   uint32_t tid, const char *name)
{
    return profile_thread(p, process, tid, profile_cstring(p, name));
}

__attribute__((unused)) static uint32_t add_name(struct profile *p, uint32_t parent,
                                                 const char *name, enum frame_kind kind)
{
    struct frame frame = {.name = profile_cstring(p, name), .kind = (uint8_t)kind};
    return profile_child(p, parent, profile_frame(p, &frame));
}

__attribute__((unused)) static uint32_t add_address(struct profile *p, uint32_t parent,
                                                    uint32_t module, uint64_t address,
                                                    const char *name, enum frame_kind kind)
{
    struct frame frame = {.module = module, .address = address, .kind = (uint8_t)kind};
    uint32_t id = profile_frame(p, &frame);
    profile_name_frame(p, id, str_of(name), str_of(name));
    return profile_child(p, parent, id);
}

/* web (pid 12) in container "shop" with a Python worker thread and native code in two modules;
 * db (pid 30) with kernel code and something lost. 46 samples of 10 ms, 25 ms lost. */
__attribute__((unused)) static void fill_sample(struct profile *p)
{
    uint32_t web = add_process(p, 12, "web", "shop"), db = add_process(p, 30, "db", "");
    p->processes.at[web].runtime = profile_cstring(p, "CPython 3.11.9");
    p->processes.at[web].cpu_ns = 310000000;
    p->processes.at[db].cpu_ns = 180000000;
    uint32_t main_thread = add_thread(p, web, 12, "web"), worker = add_thread(p, web, 14, "worker");
    uint32_t db_thread = add_thread(p, db, 30, "db");
    struct module program = {.path = profile_cstring(p, "/usr/bin/web"),
                             .build_id = profile_cstring(p, "abcdef0123456789"),
                             .start = 0x55550000,
                             .limit = 0x55560000,
                             .file_offset = 0x1000,
                             .bias = 0x5554f000};
    struct module library = {.path = profile_cstring(p, "/lib/libc.so.6"),
                             .start = 0x7f0000000000,
                             .limit = 0x7f0000100000,
                             .bias = 0x7f0000000000};
    struct module kernel = {.path = profile_cstring(p, "[kernel]")};
    uint32_t libc = profile_module(p, &library), exe = profile_module(p, &program);
    uint32_t kernel_id = profile_module(p, &kernel);

    uint32_t start = add_address(p, 0, exe, 0x1100, "main", FRAME_NATIVE);
    uint32_t copy = add_address(p, start, libc, 0x2200, "memcpy", FRAME_NATIVE);
    uint32_t copy2 = add_address(p, start, libc, 0x2210, "memcpy", FRAME_NATIVE);
    uint32_t script = add_name(p, start, "handle (shop/app.py:12)", FRAME_PYTHON);
    profile_add(p, main_thread, copy, 10 * SAMPLE_PERIOD_NS, 10);
    profile_add(p, main_thread, copy2, 5 * SAMPLE_PERIOD_NS, 5);
    profile_add(p, worker, script, 16 * SAMPLE_PERIOD_NS, 16);

    uint32_t query = add_name(p, 0, "query", FRAME_GO);
    uint32_t call = add_address(p, query, kernel_id, 0xffffffff81000123, "do_syscall", FRAME_KERNEL);
    profile_add(p, db_thread, call, 15 * SAMPLE_PERIOD_NS, 15);
    profile_account(p, db_thread, ACCOUNT_LOST, 25000000);

    p->meta.start_wall_ns = UINT64_C(1795169464) * 1000000000; /* 2026-11-20T10:11:04 */
    p->meta.end_wall_ns = p->meta.start_wall_ns + UINT64_C(60000000000);
    p->meta.period_ns = SAMPLE_PERIOD_NS;
    p->meta.frequency_hz = 100;
    p->meta.service = profile_cstring(p, "shop-web");
    p->meta.host = profile_cstring(p, "box-1");
    p->meta.mode = profile_cstring(p, "perf, user and kernel");
}

#endif
