/* Any text as goroutines, and as numbers of memory in both forms: what is told adds up, and what is written can be
 * unpacked. */
#include "base/gzip.h"
#include "runtime/go/metrics.h"
#include "runtime/go/waits.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_waits(struct str text)
{
    struct buf out, plain;
    struct go_waits_told told;
    buf_init(&out, 0);
    buf_init(&plain, 64 << 20);
    if (go_waits_read(text, 1, &out, &told, NULL)) {
        if (!gzip_inflate(out.ptr, out.len, &plain, NULL) || told.goroutines + told.own == 0 ||
            told.goroutines + told.own + told.damaged > text.len) {
            abort();
        }
    }
    buf_release(&plain);
    buf_release(&out);
}

static void read_metrics(struct str text)
{
    struct go_memstats a = {0}, b = {0};
    struct buf json;
    bool is_text = go_memstats_of_text(text, &a, NULL), is_json = go_memstats_of_json(text, &b, NULL);
    (void)go_memstats_goroutines(text, &a, NULL);
    buf_init(&json, 4096);
    if (go_metrics(&a, &b, 1, &json, NULL) && json.failed) {
        abort();
    }
    buf_clear(&json);
    const struct go_memstats none = {0}, *before = is_json ? &b : &none, *now = is_text ? &a : &b;
    if (go_metrics(before, now, 60000000000, &json, NULL) && json.failed) {
        abort();
    }
    buf_release(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    read_waits(text);
    read_metrics(text);
    return 0;
}
