/* Gives sequences of snapshots, as go_delta_peer.go describes them, to runtime/go/delta, and writes what it answers.
 * With an argument it also says at the end how much was kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/go/delta/delta.h"

enum { OUT_MAX = 64 << 20, NAMES_MAX = 4 };

static void put(char kind, struct str bytes)
{
    unsigned len = (unsigned)bytes.len;
    unsigned char head[5] = {(unsigned char)kind, len, len >> 8, len >> 16, len >> 24};
    fwrite(head, 1, sizeof head, stdout);
    fwrite(bytes.ptr, 1, bytes.len, stdout);
}

/* The names are cut in place, and stay. */
static struct go_delta *begin(char *names, bool *baseline)
{
    const char *growing[NAMES_MAX];
    size_t count = 0;
    *baseline = false;
    for (char *name = strtok(names, " "); name != NULL && count < NAMES_MAX; name = strtok(NULL, " ")) {
        if (strcmp(name, "baseline") == 0) {
            *baseline = true;
        } else {
            growing[count++] = name;
        }
    }
    return go_delta_new(growing, count);
}

int main(int argc, char **argv)
{
    unsigned char head[5];
    struct go_delta *delta = NULL;
    char *names = NULL;
    bool baseline = false;
    struct buf out;
    (void)argv;
    buf_init(&out, OUT_MAX);
    while (fread(head, 1, sizeof head, stdin) == sizeof head) {
        size_t len = head[1] | head[2] << 8 | head[3] << 16 | (size_t)head[4] << 24;
        char *bytes = calloc(1, len + 1);
        struct err err = {0};
        if (fread(bytes, 1, len, stdin) != len) {
            return 2;
        }
        if (head[0] == 'N') {
            go_delta_free(delta);
            free(names);
            names = bytes;
            delta = begin(names, &baseline);
            continue;
        }
        bool ok = go_delta_take(delta, (struct str){bytes, len}, baseline, &out, &err);
        put(ok ? 'D' : 'E', ok ? buf_slice(&out) : str_of(err.text));
        free(bytes);
    }
    if (argc > 1 && delta != NULL) {
        fprintf(stderr, "%zu bytes kept\n", go_delta_bytes(delta));
    }
    go_delta_free(delta);
    free(names);
    buf_release(&out);
    return 0;
}
