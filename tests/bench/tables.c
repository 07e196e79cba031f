/*
 * tables FILE...: compiles all unwind rules of each file, and prints a line of JSON: bytes of
 * text, rows, different rules, bytes held, rows that come from the code itself; the median CPU
 * time of the rounds, from CFI alone ("cfi_ns") and with the analysis of the code that has none
 * ("ns").
 */
#include "compile_all.h"
#include "files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5 };

static uint64_t text_bytes(const struct elf *elf)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < elf->load_count; i++) {
        bytes += (elf->loads[i].prot & 4) != 0 ? elf->loads[i].file_bytes : 0;
    }
    return bytes;
}

static uint64_t median_ns(struct file *f, bool analyse)
{
    uint64_t took[ROUNDS];
    for (unsigned i = 0; i < ROUNDS; i++) {
        file_fresh_table(f);
        if (!analyse) {
            unwind_table_no_analysis(f->table);
        }
        uint64_t begin = bench_cpu_ns();
        compile_all(f->table);
        took[i] = bench_cpu_ns() - begin;
    }
    qsort(took, ROUNDS, sizeof *took, bench_by_number);
    return took[ROUNDS / 2];
}

static void measure(const char *path)
{
    struct file f;
    file_open_path(&f, path);
    if (f.table == NULL) {
        fprintf(stderr, "tables: %s is no ELF file of this machine\n", path);
        exit(1);
    }
    uint64_t cfi_ns = median_ns(&f, false), ns = median_ns(&f, true);
    struct unwind_table_stats stats = unwind_table_stats(f.table);
    printf("{\"file\": \"%s\", \"text\": %" PRIu64 ", \"rows\": %" PRIu64 ", \"rules\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", \"analysed\": %" PRIu64 ", \"malformed\": %" PRIu64
           ", \"evicted\": %" PRIu64 ", \"cfi_ns\": %" PRIu64 ", \"ns\": %" PRIu64 "}\n",
           path, text_bytes(&f.elf), stats.rows, stats.rules, stats.bytes, stats.analysed,
           stats.malformed, stats.evicted, cfi_ns, ns);
    file_close(&f);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        measure(argv[i]);
    }
    return 0;
}
