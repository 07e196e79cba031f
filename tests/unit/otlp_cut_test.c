/* src/deliver/otlp_cut: smaller, and the sum of each profile is what it was. */
#include "deliver/otlp_cut.h"
#include "deliver/shrink.h"
#include "encode/otlp.h"
#include "otlp_read.h"
#include "sample_profile.h"
#include "deliver.h"

enum { STACKS = 50 }; /* few: how it is checked takes the cube of it */

/* Two processes with many stacks each, of which the first weigh most; page faults at some. */
static struct str profile_of(struct buf *file)
{
    struct profile p;
    struct sink sink = sink_of_buf(file);
    buf_init(file, ROOM);
    CHECK(profile_init(&p, ROOM, NULL));
    uint32_t faults = profile_event_type(&p, "page-faults", "count");
    for (uint32_t i = 0; i < 2; i++) {
        struct process process = {.pid = 10 + i, .name = profile_cstring(&p, "sh")};
        uint32_t thread = profile_thread(&p, profile_process(&p, &process), 10 + i, process.name);
        for (uint32_t k = 0; k < STACKS; k++) {
            char name[40];
            snprintf(name, sizeof name, "a_function_with_a_name_%u_%u", i, k);
            struct frame f = {.kind = FRAME_NATIVE, .name = profile_cstring(&p, name)};
            uint32_t node = profile_child(&p, 0, profile_frame(&p, &f));
            profile_add(&p, thread, node, 1000 * (STACKS - k), 1);
            if (k == 0) {
                profile_add_event(&p, faults, thread, node, 2);
            }
        }
    }
    p.meta.start_wall_ns = 1;
    CHECK(otlp_write(&p, &sink, NULL));
    profile_release(&p);
    return buf_slice(file);
}

/* 1000 x (1 + … + 50), twice */
enum { SUM = 2 * 1000 * (STACKS * (STACKS + 1) / 2) };

static struct str sums_stay(struct str before, size_t most, struct buf *out)
{
    struct err err = {0};
    buf_init(out, ROOM);
    CHECK(otlp_cut(before, most, out, &err));
    struct str after = buf_slice(out);
    CHECK(after.len <= most);
    CHECK_INT(parts(after, 1), 2);
    CHECK_INT(sum_of(after, "samples"), SUM);
    CHECK_INT(sum_of(after, "page_faults"), 4);
    for (unsigned i = 0; i < 2; i++) { /* each process keeps its own */
        CHECK_INT(sum_of_profile(part(part(part(after, 1, i), 2, 0), 2, 0)), SUM / 2);
    }
    CHECK(otlp_rows_are_unique(part(after, 2, 0)));
    return after;
}

static void the_lightest_go_and_every_profile_keeps_its_sum(void)
{
    struct buf file, out;
    struct str before = profile_of(&file);
    struct str after = sums_stay(before, before.len / 3, &out);
    CHECK(find(after, "a_function_with_a_name_0_0") && find(after, "a_function_with_a_name_1_0"));
    CHECK(!find(after, "a_function_with_a_name_0_49") && !find(before, SHRINK_FRAME));
    CHECK(find(after, SHRINK_FRAME) && after.len > before.len / 4);
    buf_release(&file);
    buf_release(&out);
}

static void nothing_goes_where_all_fits(void)
{
    struct buf file, out;
    struct str before = profile_of(&file);
    struct str after = sums_stay(before, before.len, &out);
    CHECK_INT(after.len, before.len);
    CHECK(memcmp(after.ptr, before.ptr, after.len) == 0);
    buf_release(&file);
    buf_release(&out);
}

static void a_second_time_there_is_still_one_sample_of_what_went(void)
{
    struct buf file, once, twice;
    struct str before = profile_of(&file);
    struct str first = sums_stay(before, before.len / 2, &once);
    struct str second = sums_stay(first, first.len / 2, &twice);
    for (unsigned i = 0; i < 2; i++) {
        struct str profile = part(part(part(second, 1, i), 2, 0), 2, 0);
        uint64_t dropped = parts(part(second, 2, 0), 7) - 1; /* its stack is the last */
        unsigned count = 0;
        for (unsigned k = 0; k < parts(profile, 2); k++) {
            count += number(part(profile, 2, k), 1) == dropped;
        }
        CHECK_INT(count, 1);
    }
    buf_release(&file);
    buf_release(&once);
    buf_release(&twice);
}

static void a_delivery_is_shrunk(void)
{
    struct buf file, out;
    struct err err = {0};
    struct delivery delivery = delivery_of("otlp", profile_of(&file));
    buf_init(&out, ROOM);
    CHECK(shrink(&delivery, 0, 0, &out, &err));
    CHECK(out.len <= delivery.profile.len / 2);
    CHECK_INT(sum_of(buf_slice(&out), "samples"), SUM);
    buf_release(&file);
    buf_release(&out);
}

static void what_is_too_small_or_damaged_is_refused(void)
{
    struct buf file, out;
    struct err err = {0};
    struct str before = profile_of(&file);
    buf_init(&out, ROOM);
    CHECK(!otlp_cut(before, 40, &out, &err));
    CHECK_INT(err.kind, ERR_LIMIT);
    CHECK(!otlp_cut(str_sub(before, 0, before.len - 3), before.len / 2, &out, &err));
    CHECK_INT(err.kind, ERR_MALFORMED);
    /* a sample of a stack that is not there: one profile with sample {1: 9} */
    static const char lost[] = "\x0a\x08\x12\x06\x12\x04\x12\x02\x08\x09\x12\x02\x2a\0";
    CHECK(!otlp_cut((struct str){lost, sizeof lost - 1}, 1000, &out, &err));
    CHECK_INT(err.kind, ERR_MALFORMED);
    CHECK_INT(out.len, 0);
    buf_release(&file);
    buf_release(&out);
}

TESTS({"the lightest samples go, and every profile keeps its sum",
       the_lightest_go_and_every_profile_keeps_its_sum},
      {"nothing goes where all fits", nothing_goes_where_all_fits},
      {"the second time there is still one sample of what went",
       a_second_time_there_is_still_one_sample_of_what_went},
      {"a delivery is shrunk", a_delivery_is_shrunk},
      {"what is too small or damaged is refused", what_is_too_small_or_damaged_is_refused})
