#include "files.h"
#include "os/proc.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

void file_open_path(struct file *f, const char *path)
{
    *f = (struct file){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    struct memory_reader reader = proc_file_reader(f->fd);
    f->is_elf = f->fd >= 0 && elf_open(&f->elf, &reader, NULL);
    file_fresh_table(f);
}

void file_open_vdso(struct file *f, struct str vdso)
{
    *f = (struct file){.fd = -1};
    f->is_elf = elf_open_bytes(&f->elf, vdso.ptr, vdso.len, NULL);
    file_fresh_table(f);
}

void file_close(struct file *f)
{
    unwind_table_free(f->table);
    if (f->is_elf) {
        elf_release(&f->elf);
    }
    if (f->fd >= 0) {
        close(f->fd);
    }
}

void file_fresh_table(struct file *f)
{
    unwind_table_free(f->table);
    f->table = f->is_elf ? unwind_table_new(&f->elf, TABLE_MAX_BYTES) : NULL;
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t bench_cpu_ns(void)
{
    return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t bench_wall_ns(void)
{
    return now_ns(CLOCK_MONOTONIC);
}

int bench_by_number(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}
