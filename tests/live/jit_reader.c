/*
 * jit_reader: what the product's reader makes of a perf map or a jitdump.
 *
 *     jit_reader map|dump FILE PIECE_BYTES [MAX_BYTES] <QUESTIONS
 *
 * Feeds the file in pieces, then answers each line "ADDRESS TIME" (hexadecimal, decimal or "now") with
 * "START LIMIT LINE TAB FILE TAB NAME", or "-". Standard error: one line of JSON with the stats.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../lab/jit_stats.h"

static void feed(struct jit_names *names, bool dump, FILE *file, size_t piece)
{
    char *bytes = malloc(piece);
    struct err err;
    size_t len;
    while (bytes != NULL && (len = fread(bytes, 1, piece, file)) > 0) {
        if (!dump) {
            jit_feed_map(names, bytes, len);
        } else if (!jit_feed_dump(names, bytes, len, &err)) {
            fprintf(stderr, "jit_reader: %s\n", err.text);
            exit(1);
        }
    }
    free(bytes);
}

static void answer(struct jit_names *names, uint64_t address, uint64_t time_ns)
{
    struct jit_hit hit;
    if (!jit_lookup(names, address, time_ns, &hit)) {
        puts("-");
        return;
    }
    printf("%" PRIx64 " %" PRIx64 " %u\t%.*s\t%.*s\n", hit.start, hit.limit, hit.line,
           (int)hit.file.len, hit.file.ptr, (int)hit.name.len, hit.name.ptr);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    FILE *file = argc > 3 ? fopen(argv[2], "rb") : NULL;
    size_t max_bytes = argc > 4 ? strtoul(argv[4], NULL, 10) : JIT_NAMES_MAX_BYTES;
    struct jit_names *names = jit_names_new(max_bytes);
    char time_text[32];
    uint64_t address;
    if (file == NULL || names == NULL) {
        fprintf(stderr, "usage: jit_reader map|dump FILE PIECE_BYTES [MAX_BYTES]\n");
        return 2;
    }
    double begin = seconds();
    feed(names, strcmp(argv[1], "dump") == 0, file, strtoul(argv[3], NULL, 10));
    double fed = seconds();
    unsigned long asked = 0;
    while (scanf("%" SCNx64 " %31s", &address, time_text) == 2) {
        answer(names, address,
               strcmp(time_text, "now") == 0 ? UINT64_MAX : strtoull(time_text, NULL, 10));
        asked++;
    }
    struct jit_stats stats = jit_names_stats(names);
    fprintf(stderr,
            "{\"names\": %" PRIu64 ", \"replaced\": %" PRIu64 ", \"refused\": %" PRIu64
            ", \"damaged\": %" PRIu64 ", \"bytes\": %zu, \"feed_s\": %.4f, \"asked\": %lu, "
            "\"answers_s\": %.4f}\n",
            stats.names, stats.replaced, stats.refused, stats.damaged, stats.bytes, fed - begin,
            asked, seconds() - fed);
    jit_names_free(names);
    fclose(file);
    return 0;
}
