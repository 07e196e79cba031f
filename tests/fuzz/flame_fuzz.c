/* Any bytes as names, titles, labels and sample types of a flame graph page, and as a file that a runtime made: its
 * elements are those that harmless names give, no byte of a name is left that could act, and the data blocks are
 * nothing but base64. */
#include "encode/flame.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAMES = 16, PAGE_MAX_BYTES = 16 << 20 };

/* Cuts the input at 0xfe into names. */
static size_t take_names(const uint8_t *data, size_t size, struct str names[NAMES])
{
    struct str rest = {(const char *)data, size};
    size_t count = 0;
    while (count < NAMES && rest.len > 0) {
        names[count++] = str_cut(&rest, (char)0xfe);
    }
    return count;
}

/* The name itself, or a plain word for each distinct one. */
static uint32_t name_id(struct profile *p, const struct str names[NAMES], size_t i, bool harmless)
{
    if (!harmless || names[i].len == 0) {
        return profile_string(p, names[i]);
    }
    size_t first = 0;
    while (!str_eq(names[first], names[i])) {
        first++;
    }
    char word[16];
    snprintf(word, sizeof word, "word%zu", first);
    return profile_cstring(p, word);
}

static void fill(struct profile *p, const struct str names[NAMES], size_t count, bool harmless)
{
    uint32_t id[NAMES] = {0}, node = 0;
    for (size_t i = 0; i < count; i++) {
        id[i] = name_id(p, names, i, harmless);
    }
    p->meta.service = id[0];
    p->meta.host = id[1];
    p->meta.mode = id[2];
    p->meta.reason = id[3];
    p->meta.period_ns = 10;
    struct process process = {.pid = 7, .name = id[4], .container = id[5], .runtime = id[6],
                              .remedy = id[7]};
    uint32_t thread = profile_thread(p, profile_process(p, &process), 7, id[8]);
    for (size_t i = 9; i < count; i++) {
        struct module module = {.path = id[i - 1]};
        struct frame frame = {.name = id[i], .kind = (uint8_t)(i % FRAME_KIND_COUNT)};
        if (i % 3 == 0) {
            frame.module = profile_module(p, &module);
            frame.address = i;
        }
        node = profile_child(p, i % 5 == 0 ? 0 : node, profile_frame(p, &frame));
        profile_add(p, thread, node, 10 * i, i);
        if (i % 2 == 0) {
            uint32_t event = profile_event_type(p, "", "");
            p->event_types.at[event] = (struct event_type){id[i], id[i - 1]};
            profile_add_event(p, event, thread, node, i);
            profile_add_wait(p, thread, node, i);
        }
    }
}

static void put_file(struct profile *p, struct str file)
{
    struct buf bytes;
    buf_init(&bytes, RUNTIME_PROFILES_MAX_BYTES);
    buf_str(&bytes, file);
    (void)runtime_profiles_put(&p->of_runtimes, 7, FRAME_GO, "mutex", &bytes);
    buf_release(&bytes);
}

static void write_page(struct str file, const struct str names[NAMES], size_t count, bool harmless, struct buf *page)
{
    struct profile p;
    buf_init(page, PAGE_MAX_BYTES);
    struct sink sink = sink_of_buf(page);
    if (!profile_init(&p, 1 << 22, NULL)) {
        abort();
    }
    fill(&p, names, count, harmless);
    put_file(&p, file);
    if (!flame_write(&p, &sink, NULL)) {
        abort();
    }
    profile_release(&p);
}

/* The next tag from *at on, as it stands. */
static struct str next_tag(const struct buf *page, size_t *at, size_t end)
{
    while (*at < end && page->ptr[*at] != '<') {
        unsigned char byte = (unsigned char)page->ptr[*at];
        if ((byte < 0x20 && byte != '\n') || byte == 0x7f) {
            abort();
        }
        (*at)++;
    }
    size_t start = *at;
    while (*at < end && page->ptr[*at] != '>') {
        (*at)++;
    }
    return str_sub((struct str){page->ptr, end}, start, *at - start);
}

static void compare(const struct buf *page, const struct buf *harmless)
{
    size_t a = 0, b = 0;
    while (a < page->len || b < harmless->len) {
        if (!str_eq(next_tag(page, &a, page->len), next_tag(harmless, &b, harmless->len))) {
            abort();
        }
    }
}

static void check_data(const struct buf *page)
{
    static const char before[] = "<script type=\"application/octet-stream\" id=\"data";
    struct str rest = buf_slice(page);
    unsigned blocks = 0;
    for (const char *at; (at = memmem(rest.ptr, rest.len, before, sizeof before - 1)) != NULL; blocks++) {
        rest = str_sub(rest, (size_t)(at - rest.ptr) + sizeof before - 1, rest.len);
        rest = str_sub(rest, str_find(rest, '>') + 1, rest.len);
        for (size_t i = 0; rest.ptr[i] != '<'; i++) {
            if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n", rest.ptr[i]) == NULL) {
                abort();
            }
        }
    }
    if (blocks == 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str names[NAMES];
    struct buf page, harmless;
    struct str file = {(const char *)data, size};
    size_t count = take_names(data, size, names);
    write_page(file, names, count, false, &page);
    write_page(file, names, count, true, &harmless);
    compare(&page, &harmless);
    check_data(&page);
    buf_release(&page);
    buf_release(&harmless);
    return 0;
}
