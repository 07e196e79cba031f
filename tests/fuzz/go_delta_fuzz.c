/* Two snapshots of anybody, the first two bytes say where the second begins. A difference that is made can be read, and
 * of a snapshot to itself nothing grew. */
#include "runtime/go/delta/delta.h"

#include <stdlib.h>

#include "runtime/go/delta/delta_snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 8 << 20 };

static const char *const growing[] = {"alloc_objects", "alloc_space"};

static bool is_growing(const struct go_snapshot *s, size_t column)
{
    for (size_t i = 0; i < 2; i++) {
        bool is_first = go_snapshot_is_column(s, column, str_of(growing[i]));
        for (size_t before = 0; before < column; before++) {
            is_first &= !go_snapshot_is_column(s, before, str_of(growing[i]));
        }
        if (is_first) {
            return true;
        }
    }
    return false;
}

static void read_back(const struct buf *out, bool is_still)
{
    struct go_snapshot s;
    struct protobuf_field f;
    struct go_sample sample;
    if (!go_snapshot_open(&s, buf_slice(out), NULL)) {
        abort();
    }
    go_scan_start(s.scan, 1u << PROFILE_SAMPLE);
    while (go_scan_next(s.scan, &f, NULL)) {
        if (!go_snapshot_sample(&s, f.bytes, &sample, NULL)) {
            abort();
        }
        for (size_t i = 0; is_still && i < s.columns; i++) {
            if (sample.values[i] != 0 && is_growing(&s, i)) {
                abort();
            }
        }
    }
    go_snapshot_release(&s);
}

static bool take(struct go_delta *d, struct str bytes, bool baseline, struct buf *out)
{
    bool ok = go_delta_take(d, bytes, baseline, out, NULL);
    if (!ok && out->len > 0) {
        abort();
    }
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct go_delta *d = go_delta_new(growing, 2);
    struct buf out;
    buf_init(&out, MAX_BYTES);
    struct str all = {(const char *)data, size}, first = str_sub(all, 2, size), second = {0};
    if (size >= 2) {
        first.len = (size_t)(data[0] | data[1] << 8) % (size - 1);
        second = str_sub(all, 2 + first.len, size);
    }
    bool baseline = first.len & 1;
    if (take(d, first, baseline, &out)) {
        read_back(&out, baseline);
        if (take(d, first, baseline, &out)) {
            read_back(&out, true);
        }
    }
    for (int i = 0; i < 2; i++) { /* after a first one that is refused nothing goes out */
        if (take(d, second, baseline, &out) && out.len > 0) {
            read_back(&out, i == 1);
        }
    }
    go_delta_free(d);
    buf_release(&out);
    return 0;
}
