/* Flight recordings of anybody. What begins with a byte below 128 spoils one that is made here
 * (tests/unit/jfr_recording.h), by records of a place (16 bits) and a byte; else the bytes are a file. */
#include "encode/jfr_read.h"

#include "../unit/jfr_recording.h"
#include "base/cursor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20, IS_FILE = 128 };

static void make(struct buf *out, struct cursor c)
{
    static const uint64_t samples[][4] = {{1000, 5, 1, 0}, {1000, 5, 2, 0}, {5, 1, 1024, 0}, {1000, 1, 5, 7000}};
    static const uint64_t types[] = {T_SAMPLE, T_SAMPLE, T_ALLOCATION, T_CPU};
    jfr_begin(out);
    for (size_t i = 0; i < 4; i++) {
        jfr_sample(out, types[i], samples[i], types[i] == T_CPU ? 4 : 3);
    }
    jfr_end(out, 0);
    while (c.len >= 3) {
        uint16_t place = cursor_u16(&c);
        out->ptr[place % out->len] = (char)cursor_u8(&c);
    }
}

static void read_as(struct str file, struct str type, bool whole)
{
    struct profile p = {0};
    struct err err = {0};
    bool ok = profile_init(&p, MAX_BYTES, &err);
    ok = ok && (whole ? jfr_read_whole(&p, file, &err) : jfr_read(&p, file, type, &err));
    if (!ok && err.kind == ERR_NONE) {
        abort();
    }
    profile_release(&p);
}

static uint32_t thread_of(void *context, uint32_t tid)
{
    (void)context;
    return tid % 2 == 0 ? tid : 0;
}

static void take(void *context, const struct live_sample *sample)
{
    const struct profile *p = context;
    if (sample->thread >= p->threads.len || sample->node >= p->nodes.len) {
        abort();
    }
}

/* As while it is written: its first half, and then all of it. */
static void read_live(struct str file)
{
    struct profile p = {0};
    struct err err = {0};
    struct live live = {.pid = 7, .start_ticks = 9, .thread = thread_of, .sample = take, .context = &p};
    if (profile_init(&p, MAX_BYTES, &err)) {
        (void)jfr_read_live(&p, str_sub(file, 0, file.len / 2), &live, &err);
        (void)jfr_read_live(&p, file, &live, &err);
    }
    profile_release(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf made;
    buf_init(&made, JFR_MADE_MAX);
    struct cursor c = cursor_of(data, size);
    bool is_file = size > 0 && cursor_u8(&c) >= IS_FILE;
    if (!is_file) {
        make(&made, c);
    }
    struct str file = is_file ? (struct str){(const char *)c.ptr, c.len} : buf_slice(&made);
    read_as(file, STR(""), false);
    read_as(file, STR("alloc_space"), false);
    read_as(file, STR(""), true);
    read_live(file);
    buf_release(&made);
    return 0;
}
