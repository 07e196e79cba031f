/* Many names in little memory. */
#include "symbol/pairs.h"
#include "test.h"

static struct pairs_code code;

static struct str kept(const struct pairs *p, uint32_t place)
{
    static char text[1024];
    struct buf out;
    buf_init(&out, sizeof text);
    pairs_get(p, place, &out);
    CHECK(!out.failed);
    memcpy(text, out.ptr == NULL ? "" : out.ptr, out.len);
    struct str found = {text, out.len};
    buf_release(&out);
    return found;
}

static void any_name(void)
{
    /* even and odd lengths, pairs at the end, one letter, none; a Rust name; UTF-8 */
    static const char *const names[] = {"tcp_v4_rcv", "do_sys_openat2", "x", "", "__",
                                        "_RNvXs3_NtCs1_6kernel", "f [nf_tables]", "gr\xc3\xbc\xc3\x9f"};
    enum { COUNT = sizeof names / sizeof names[0] };
    struct pairs p;
    uint32_t place[COUNT];
    pairs_init(&p, 1 << 16);
    pairs_begin(&code);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(pairs_add(&p, &code, str_of(names[i]), &place[i]));
    }
    pairs_finish(&p);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(str_eq(kept(&p, place[i]), str_of(names[i])));
    }
    pairs_release(&p);
}

static void any_byte(void)
{
    char bytes[512];
    struct pairs p;
    uint32_t place, next;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)(i < 256 ? i : i * 7);
    }
    pairs_init(&p, 1 << 16);
    pairs_begin(&code);
    CHECK(pairs_add(&p, &code, (struct str){bytes, sizeof bytes}, &place));
    CHECK(pairs_add(&p, &code, STR("next"), &next));
    CHECK(str_eq(kept(&p, place), (struct str){bytes, sizeof bytes}));
    CHECK(str_eq(kept(&p, next), STR("next")));
    pairs_release(&p);
}

static void little_memory(void)
{
    struct pairs p;
    uint32_t place;
    pairs_init(&p, 1 << 16);
    pairs_begin(&code);
    /* of 27 letters at most 18 bytes are left, with the one at the end */
    CHECK(pairs_add(&p, &code, STR("tcp_set_state_and_clear_dst"), &place));
    CHECK(p.bytes.len <= 18);
    pairs_release(&p);
}

static void bounded(void)
{
    struct pairs p;
    uint32_t place = 77;
    pairs_init(&p, 40);
    pairs_begin(&code);
    CHECK(pairs_add(&p, &code, STR("abcdefghij"), &place));
    CHECK(!pairs_add(&p, &code, STR("abcdefghijklmnopqrstuvwxyz"), &(uint32_t){0}));
    CHECK(str_eq(kept(&p, place), STR("abcdefghij")));
    pairs_release(&p);
}

TESTS({"a name comes back as it was", any_name},
      {"whatever bytes it has", any_byte},
      {"frequent pairs take one byte", little_memory},
      {"beyond its memory a name is refused, the others stay", bounded})
