/*
 * _AsyncioDebug: from 3.14 on asyncio's C module declares where the fields of its structures are, in a
 * section ".AsyncioDebug" of its own file, or of the interpreter where it is built in: numbers of 64
 * bits. Those of a task come first (its size, its name, who awaits it, two flags, its coroutine, its place in the
 * thread's list), then two of the interpreter's state, then of the thread's state (its size, the running loop, the
 * running task, the list of tasks).
 *
 * Source: Modules/_asynciomodule.c, tags v3.14.0, v3.15.0. Before 3.14 the running task is a value in a
 * dict by event loop: too much to look up while the thread waits.
 */
#include "runtime/python/private.h"

#include "base/cursor.h"

enum {
    TABLE_BYTES = 104,
    TASK_BYTES_AT = 0,
    NAME_AT = 8,
    AWAITED_BY_AT = 16,
    CORO_AT = 40,
    NODE_AT = 48,
    THREAD_BYTES_AT = 72,
    RUNNING_AT = 88,
    HEAD_AT = 96,
    STRUCTURE_MAX = 1 << 16,
};

static uint64_t number_at(const unsigned char table[static TABLE_BYTES], size_t at)
{
    struct cursor c = cursor_of(table + at, TABLE_BYTES - at);
    return cursor_u64(&c);
}

/* 0: it is no field of a pointer in a structure of that size. */
static uint32_t field_at(const unsigned char table[static TABLE_BYTES], size_t at, size_t size_at)
{
    uint64_t field = number_at(table, at), size = number_at(table, size_at);
    bool fits = size <= STRUCTURE_MAX && field % 8 == 0 && field < size && size - field >= 8;
    return fits ? (uint32_t)field : 0;
}

static bool read_table(struct elf *elf, unsigned char table[static TABLE_BYTES])
{
    const struct elf_section *section = elf_section(elf, ".AsyncioDebug");
    return section != NULL && section->bytes >= TABLE_BYTES &&
           elf_read(elf, section->offset, table, TABLE_BYTES, NULL);
}

void python_extend(void *state, struct elf *elf)
{
    struct python *python = state;
    unsigned char table[TABLE_BYTES];
    if (python->layout.version < PYTHON_VERSION(3, 14) || !read_table(elf, table)) {
        return;
    }
    uint32_t running = field_at(table, RUNNING_AT, THREAD_BYTES_AT);
    uint32_t name = field_at(table, NAME_AT, TASK_BYTES_AT);
    uint64_t coro = field_at(table, CORO_AT, TASK_BYTES_AT), node = field_at(table, NODE_AT, TASK_BYTES_AT);
    uint64_t awaited_by = field_at(table, AWAITED_BY_AT, TASK_BYTES_AT);
    uint64_t head = field_at(table, HEAD_AT, THREAD_BYTES_AT);
    uint64_t links = awaited_by | coro << 16 * TASK_CORO | node << 16 * TASK_NODE | head << 16 * TASK_HEAD;
    __atomic_store_n(&python->task_links, coro != 0 && node != 0 && head != 0 ? links : 0, __ATOMIC_RELAXED);
    uint64_t fields = running != 0 && name != 0 ? (uint64_t)running << 32 | name : 0;
    __atomic_store_n(&python->task_fields, fields, __ATOMIC_RELEASE);
}
