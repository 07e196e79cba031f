/* src/runtime/go/walk and label_set: from a thread's registers to the labels of what it works on, in made memory. */
#include "runtime/go/walk.h"
#include "runtime/go/memory/label_set.h"
#include "runtime/go/memory/memory_private.h"
#include "test.h"

enum { BYTES = 0x8000, TID = 77, G0 = 0x100, G = 0x400, OTHER = 0x800, M = 0xc00, LABELS = 0x1000, TEXTS = 0x4000 };
static const uint64_t base = 0xc000000000;

struct made {
    unsigned char bytes[BYTES];
    const struct go_layout *layout;
    size_t texts;
    unsigned reads, turns_at; /* at this read the goroutine gets other labels; 0: never */
    struct memory_batch memory;
    struct elf elf;
    void *state;
    _Alignas(16) unsigned char plan[RUNTIME_PLAN_MAX];
    struct runtime_registers registers;
    struct runtime_stack out;
};

static void put(struct made *m, size_t at, uint64_t value)
{
    memcpy(m->bytes + at, &value, sizeof value);
}

static bool read_made(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct made *m = context;
    (void)err;
    if (++m->reads == m->turns_at) {
        put(m, G + m->layout->labels, base + LABELS + 0x800);
    }
    for (size_t i = 0; i < count; i++) {
        struct memory_piece *p = &pieces[i];
        bool is_there = p->address >= base && p->address - base <= BYTES && p->len <= BYTES - (p->address - base);
        p->got = is_there ? p->len : 0;
        memcpy(p->out, m->bytes + (is_there ? p->address - base : 0), p->got);
    }
    return true;
}

static void put_string(struct made *m, size_t at, const char *text, uint64_t len)
{
    memcpy(m->bytes + TEXTS + m->texts, text, strlen(text));
    put(m, at, base + TEXTS + m->texts);
    put(m, at + 8, len);
    m->texts += strlen(text);
}

/* m's goroutine is G, which has no labels yet; the thread stands in G's code. */
static struct made *set_up(const char *version, enum elf_machine machine)
{
    struct made *m = calloc(1, sizeof *m);
    m->layout = go_layout_of(version);
    m->memory = (struct memory_batch){read_made, m};
    m->elf.machine = machine;
    m->registers.kept[machine == ELF_AARCH64] = base + G;
    put(m, G0 + GO_G_M, base + M);
    put(m, G + GO_G_M, base + M);
    put(m, M + m->layout->procid, TID);
    put(m, M + m->layout->curg, base + G);
    const struct runtime_process process = {.elf = &m->elf, .pid = TID};
    CHECK_INT(go_walk_attach(m->layout, &process, &m->state, NULL), RUNTIME_YES);
    return m;
}

static void tear_down(struct made *m)
{
    go_walk_detach(m->state);
    free(m);
}

static void put_list(struct made *m, size_t count, const char *const *texts)
{
    put(m, G + m->layout->labels, base + LABELS);
    put(m, LABELS, base + LABELS + 0x100);
    put(m, LABELS + 8, count);
    for (size_t i = 0; i < 2 * count; i++) {
        put_string(m, LABELS + 0x100 + 16 * i, texts[i], strlen(texts[i]));
    }
}

/* Pairs, with "=" and ";" for what separates them; "-": none. */
static const char *told(struct made *m)
{
    static char text[RUNTIME_TASK_MAX + 1];
    const struct runtime_thread thread = {.tid = TID, .registers = &m->registers};
    m->reads = 0;
    go_walk(m->state, m->plan, &thread, &m->memory, &m->out);
    CHECK_INT(m->out.end, RUNTIME_EMPTY);
    CHECK_INT(m->out.count, 0);
    memcpy(text, m->out.task, m->out.task_bytes);
    text[m->out.task_bytes] = '\0';
    for (size_t i = 0, n = 0; i < m->out.task_bytes; i++) {
        text[i] = text[i] != '\0' ? text[i] : n++ % 2 == 0 ? '=' : ';';
    }
    CHECK_INT((m->out.marks & RUNTIME_HAS_LABELS) != 0, m->out.task_bytes > 0);
    return m->out.task_bytes > 0 ? text : "-";
}

static void labels_are_those_of_the_goroutine(void)
{
    static const enum elf_machine machines[] = {ELF_X86_64, ELF_AARCH64};
    for (size_t i = 0; i < 2; i++) {
        struct made *m = set_up("go 1.24.4", machines[i]);
        CHECK_TEXT(told(m), "-");
        put_list(m, 2, (const char *const[]){"endpoint", "/pay", "span id", "17"});
        CHECK_TEXT(told(m), "endpoint=/pay;span id=17;");
        CHECK((m->out.marks & RUNTIME_SAME_TASK) != 0);
        m->registers.kept[machines[i] == ELF_AARCH64] = base + G0; /* the runtime works for it */
        CHECK_TEXT(told(m), "endpoint=/pay;span id=17;");
        CHECK((m->out.marks & RUNTIME_SAME_TASK) == 0);
        m->registers.kept[machines[i] == ELF_AARCH64] = 12; /* C */
        CHECK_TEXT(told(m), "endpoint=/pay;span id=17;");
        put(m, M + m->layout->curg, 0);
        CHECK_TEXT(told(m), "-");
        tear_down(m);
    }
}

static void another_thread_is_not_believed(void)
{
    struct made *m = set_up("go 1.26.0", ELF_X86_64);
    put_list(m, 1, (const char *const[]){"a", "b"});
    m->registers.kept[0] = 12;
    CHECK_TEXT(told(m), "-"); /* it was never met in Go code */
    m->registers.kept[0] = base + G;
    put(m, M + m->layout->procid, TID + 1);
    CHECK_TEXT(told(m), "-");
    put(m, M + m->layout->procid, TID);
    CHECK_TEXT(told(m), "a=b;");
    put(m, M + m->layout->procid, TID + 1); /* the thread is known, and has become another one */
    CHECK_TEXT(told(m), "-");
    tear_down(m);
}

static void labels_that_change_meanwhile_are_not_told(void)
{
    struct made *m = set_up("go 1.25.1", ELF_X86_64);
    put_list(m, 1, (const char *const[]){"a", "b"});
    CHECK_TEXT(told(m), "a=b;");
    CHECK_TEXT(told(m), "a=b;");
    unsigned all = m->reads, left_out = 0;
    for (unsigned at = 3; at <= all; at++) {
        put(m, G + m->layout->labels, base + LABELS);
        m->turns_at = at;
        left_out += strcmp(told(m), "-") == 0;
    }
    CHECK_INT(left_out, all - 2);
    tear_down(m);
}

static void what_does_not_fit_is_left_out(void)
{
    char wide[301] = "";
    struct made *m = set_up("go 1.27.0", ELF_X86_64);
    memset(wide, 'w', 300);
    put_list(m, 3, (const char *const[]){"a", "1", "b", wide, "c", "3"});
    CHECK_TEXT(told(m), "a=1;c=3;");
    put(m, LABELS + 8, UINT64_MAX); /* bounded: what follows is empty */
    CHECK_TEXT(told(m), "a=1;c=3;");
    put(m, LABELS + 8, 1);
    put(m, LABELS + 0x108, UINT64_MAX); /* a text longer than there is memory */
    put(m, LABELS + 0x100, base + BYTES - 8);
    CHECK_TEXT(told(m), "-");
    tear_down(m);
}

/* Up to Go 1.23: a bucket of a map, in any order, with free places. */
static void a_map_is_sorted(void)
{
    struct made *m = set_up("go 1.23.2", ELF_X86_64);
    size_t map = LABELS + 0x100, bucket = LABELS + 0x200;
    put(m, G + m->layout->labels, base + LABELS);
    CHECK_TEXT(told(m), "-"); /* an empty one */
    put(m, LABELS, base + map);
    put(m, map, 2);
    put(m, map + 16, base + bucket);
    m->bytes[bucket + 1] = 200;
    m->bytes[bucket + 5] = 5;
    put_string(m, bucket + 8 + 16, "z", 1);
    put_string(m, bucket + 136 + 16, "26", 2);
    put_string(m, bucket + 8 + 16 * 5, "a", 1);
    put_string(m, bucket + 136 + 16 * 5, "1", 1);
    CHECK_TEXT(told(m), "a=1;z=26;");
    put(m, map + 24, base + bucket); /* it grows */
    CHECK_TEXT(told(m), "-");
    put(m, map + 24, 0);
    put(m, bucket + 264, base + bucket); /* a chain in a circle */
    CHECK_TEXT(told(m), "-");
    put(m, bucket + 264, 0);
    m->bytes[map + 9] = 200; /* 2^200 buckets */
    CHECK_TEXT(told(m), "-");
    tear_down(m);
}

TESTS({"labels are those of the goroutine that the thread runs", labels_are_those_of_the_goroutine},
      {"a thread's structure with another number is not believed", another_thread_is_not_believed},
      {"labels that change while they are read are not told", labels_that_change_meanwhile_are_not_told},
      {"what does not fit, or is no text, is left out", what_does_not_fit_is_left_out},
      {"a map's labels are told in order, a spoilt one's not", a_map_is_sorted})
