/* files: the unwind tables of files, opened as the product opens them. */
#ifndef BENCH_FILES_H
#define BENCH_FILES_H

#include "elf/elf.h"
#include "unwind/table.h"

enum { TABLE_MAX_BYTES = 64 << 20 };

struct file {
    int fd;
    struct elf elf;
    bool is_elf;
    struct unwind_table *table; /* null: it has none */
};

void file_open_path(struct file *f, const char *path);
void file_open_vdso(struct file *f, struct str vdso);
void file_close(struct file *f);

/* A table of which nothing is compiled yet. */
void file_fresh_table(struct file *f);

uint64_t bench_cpu_ns(void);  /* of this thread */
uint64_t bench_wall_ns(void);

int bench_by_number(const void *left, const void *right); /* for qsort of uint64_t */

#endif
