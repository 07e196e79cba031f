/* Java's frames, in a process that is made here: compiled code with what is inlined into it, whole frames and those
 * that a leaf is entering or leaving, the interpreter's frames, stubs; and what is refused. */
#include "java_process.h"
#include "stack_words.h"
#include "test.h"


/* Functions innermost first with their lines; "-": not the JVM's. */
static const char *told(void *java, uint64_t ip, bool leaf, struct runtime_caller *caller)
{
    static char text[256];
    const struct runtime_registers registers = {.ip = ip, .sp = STACK, .fp = STACK + 0x40};
    const struct runtime_place place = {leaf ? ip : ip - 1, &registers, &stack};
    struct runtime_resolved found;
    size_t used = 0;
    text[0] = '\0';
    if (!runtime_java.resolve(java, &place, &found)) {
        return "-";
    }
    for (size_t i = 0; i < found.lines.count; i++) {
        const struct source_line *line = &found.lines.line[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s %.*s:%u", i > 0 ? ", " : "",
                                 (int)line->name.len, line->name.ptr, (int)line->file.len,
                                 line->file.ptr == NULL ? "" : line->file.ptr, line->line);
    }
    *caller = found.caller;
    return text;
}

static void compiled(void)
{
    static struct java_process p;
    struct runtime_caller caller;
    void *java;
    java_make(&p);
    CHECK_INT(java_attach(&p, &java, NULL), RUNTIME_YES);
    CHECK_TEXT(told(java, AT(AT_CODE + 0x40), false, &caller), "shop/B$$Lambda$3.outer B.java:10");
    CHECK(caller.rule == RUNTIME_RULE_FRAME_SIZE && caller.value == 5 * 8 && caller.saved_fp == 16);
    CHECK_TEXT(told(java, AT(AT_CODE + 0x80), false, &caller),
               "shop/A.inner A.java:10, shop/B$$Lambda$3.outer B.java:10");
    /* a leaf between two places has the next one's */
    CHECK_TEXT(told(java, AT(AT_CODE + 0x60), true, &caller),
               "shop/A.inner A.java:10, shop/B$$Lambda$3.outer B.java:10");
    /* and one at a place, which is the end of what is before it */
    CHECK_TEXT(told(java, AT(AT_CODE + 0x40), true, &caller),
               "shop/A.inner A.java:10, shop/B$$Lambda$3.outer B.java:10");
    CHECK_TEXT(told(java, AT(AT_CODE + 0x100), true, &caller), "-");
    CHECK_TEXT(told(java, AT(AT_HEAP + 0x900), true, &caller), "-");
    /* where it is undone its frame has the place before */
    words[1] = AT(AT_CODE + 0x80);
    CHECK_TEXT(told(java, AT(AT_CODE + 0xf0), false, &caller),
               "shop/A.inner A.java:10, shop/B$$Lambda$3.outer B.java:10");
    /* it stays as it is known for a while; nothing more is read */
    unsigned reads = p.reads;
    (void)told(java, AT(AT_CODE + 0x80), false, &caller);
    CHECK_INT(p.reads, reads);
    runtime_java.detach(java);
}

/* Instructions before and at the leaf's place in code, and how its caller is found. */
struct leaf {
    uint32_t at;
    const char *before, *here;
    size_t before_len, here_len;
    uint32_t rule;
    uint64_t value;
    uint32_t saved_fp;
};

#ifdef __aarch64__
enum { CALLED = RUNTIME_RULE_LINK_REGISTER, BARE = 0, ROOM = 48 };
#define SUB "\xff\xc3\0\xd1"         /* sub sp, sp, #48 */
#define SUB_REGISTER "\xff\x63\x28\xcb" /* sub sp, sp, x8 */
#define STP "\xfd\x7b\x02\xa9"         /* stp x29, x30, [sp, #32] */
#define PUSH "\xfd\x7b\xbf\xa9"        /* stp x29, x30, [sp, #-16]! */
#define POINT "\xfd\x03\0\x91"         /* mov x29, sp */
#define LDP "\xfd\x7b\x42\xa9"
#define ADD "\xff\xc3\0\x91"
#define POP "\xfd\x7b\xc1\xa8"
#define POLL "\x88\x23\x42\xf9\xff\x63\x28\xeb\xe8\x03\0\x54" /* ldr x8, [x28, #n]; cmp sp, x8; b.hi */
#define POLL_11 "\x88\x23\x42\xf9\x1f\x01\x40\xb9"           /* …; ldr wzr, [x8] */
#define RET "\xc0\x03\x5f\xd6"
#define NOP "\x1f\x20\x03\xd5"
static const struct leaf leaf_cases[] = {
    {0x00, "", NOP SUB STP, 0, 12, CALLED, BARE, 0},
    {0x04, NOP, SUB STP, 4, 8, CALLED, BARE, 0},
    {0x08, NOP SUB, STP, 8, 4, CALLED, ROOM, 0},
    {0x0c, NOP SUB STP, NOP, 12, 4, RUNTIME_RULE_FRAME_SIZE, 40, 16},
    {0x04, PUSH, POINT, 4, 4, RUNTIME_RULE_FRAME_SIZE, 8, 16},
    {0x08, PUSH NOP, SUB_REGISTER, 8, 4, RUNTIME_RULE_FRAME_SIZE, 8, 16},
    {0x08, PUSH SUB_REGISTER, NOP, 8, 4, RUNTIME_RULE_FRAME_SIZE, 40, 16},
    {0x50, NOP, LDP ADD RET, 4, 12, RUNTIME_RULE_FRAME_SIZE, 40, 16},
    {0x50, LDP, ADD POLL RET, 4, 20, CALLED, ROOM, 0},
    {0x50, ADD, POLL RET, 4, 16, CALLED, BARE, 0},
    {0x50, ADD, POLL_11 RET, 4, 12, CALLED, BARE, 0},
    {0x50, LDP ADD, RET, 8, 4, CALLED, BARE, 0},
    {0x50, ADD, POP RET, 4, 8, RUNTIME_RULE_FRAME_SIZE, 8, 16},
    {0x50, NOP, ADD POP RET, 4, 12, RUNTIME_RULE_FRAME_SIZE, 40, 16},
    {0x50, NOP, POLL NOP ADD, 4, 20, RUNTIME_RULE_FRAME_SIZE, 40, 16},
};
#else
enum { CALLED = RUNTIME_RULE_FRAME_SIZE, BARE = 0, ROOM = 40 };
static const struct leaf leaf_cases[] = {
    {0x00, "", "\x55", 0, 1, CALLED, BARE, 0},                                                /* push rbp */
    {0x01, "\x55", "\x48\x83\xec\x20", 1, 4, RUNTIME_RULE_FRAME_SIZE, 8, 16},              /* … done */
    {0x05, "\x55\x48\x83\xec\x20", "\x90", 5, 1, RUNTIME_RULE_FRAME_SIZE, 40, 16},        /* sub rsp done */
    {0x04, "\x48\x83\xec\x28", "\x48\x89\x6c\x24\x20", 4, 5, CALLED, ROOM, 0}, /* sub rsp done, rbp is not kept yet */
    {0x50, "", "\x5d\xc3", 0, 2, RUNTIME_RULE_FRAME_SIZE, 8, 16},                            /* pop rbp */
    {0x50, "\x5d", "\xc3", 1, 1, CALLED, BARE, 0},                                           /* ret */
    {0x50, "\x5d", "\x49\x3b\xa7\x50\x04\0\0\x0f\x87\0\0\0\0\xc3", 1, 14, CALLED, BARE, 0}, /* asks, in 17 */
    {0x50, "\x5d", "\x4d\x8b\x97\x08\x01\0\0\x41\x85\x02\xc3", 1, 11, CALLED, BARE, 0},     /* 11 */
    {0x50, "\x5d", "\x85\x05\0\0\0\0\xc3", 1, 7, CALLED, BARE, 0},                          /* 8 */
    {0x50, "\x90", "\x90\x90\xc3", 1, 3, RUNTIME_RULE_FRAME_SIZE, 40, 16},
};
#endif

static void leaves(void)
{
    for (size_t i = 0; i < sizeof leaf_cases / sizeof leaf_cases[0]; i++) {
        static struct java_process p;
        const struct leaf *c = &leaf_cases[i];
        struct runtime_caller caller = {0};
        void *java;
        java_make(&p);
        memcpy(p.bytes + AT_CODE + c->at - c->before_len, c->before, c->before_len);
        memcpy(p.bytes + AT_CODE + c->at, c->here, c->here_len);
        CHECK_INT(java_attach(&p, &java, NULL), RUNTIME_YES);
        (void)told(java, AT(AT_CODE + c->at), true, &caller);
        CHECK_INT(caller.rule, c->rule);
        CHECK_INT(caller.value, c->value);
        CHECK_INT(caller.saved_fp, c->saved_fp);
        runtime_java.detach(java);
    }
}

static void interpreted(void)
{
    static struct java_process p;
    struct runtime_caller caller;
    void *java;
    java_make(&p);
    CHECK_INT(java_attach(&p, &java, NULL), RUNTIME_YES);
    memset(words, 0, sizeof words);
    words[8 - 1] = STACK + 0x60;                /* its caller's stack pointer */
    words[8 - 3] = AT(AT_METHODS);              /* the method */
    words[0] = AT(AT_METHODS + 0x100 + 48 + 5); /* the instruction, 8 words below */
    CHECK_TEXT(told(java, AT(AT_INTERPRETER + 0x10), false, &caller), "shop/A.inner A.java:12");
    CHECK(caller.rule == RUNTIME_RULE_FRAME_POINTER && caller.value == STACK + 0x60);
    words[8 - 3] = AT(AT_HEAPS + 0x800); /* no method: a leaf has only just been called */
    CHECK_TEXT(told(java, AT(AT_INTERPRETER + 0x10), true, &caller), "");
    CHECK_INT(caller.rule, CALLED);
    CHECK_INT(caller.value, BARE);
    CHECK_TEXT(told(java, AT(AT_INTERPRETER + 0x10), false, &caller), "-");
    CHECK_TEXT(told(java, AT(AT_STUB_CODE + 0x20), false, &caller), "call_stub :0");
    CHECK_INT(caller.rule, RUNTIME_RULE_FRAME_POINTER);
    CHECK_TEXT(told(java, AT(AT_STUB_CODE + 0x40), false, &caller), "StubRoutines (1) :0");
    runtime_java.detach(java);
}

static void refused(void)
{
    static struct java_process p;
    struct err why = {0};
    void *java;
    java_make(&p);
    java_put(&p, AT_VALUES + 8 * 7, 4096, 8); /* entries as large as that */
    CHECK_INT(java_attach(&p, &java, &why), RUNTIME_UNSUPPORTED);
    CHECK_TEXT(why.text, "the JVM's tables cannot be read yet");
    java_make(&p);
    java_put(&p, AT_ENTRIES, java_text(&p, "CodeHole"), 8);
    CHECK_INT(java_attach(&p, &java, &why), RUNTIME_UNSUPPORTED);
    CHECK_TEXT(why.text, "this JVM does not describe its code as HotSpot does");
    java_make(&p);
    java_put(&p, AT_QUEUE + 8, 0, 8);
    CHECK_INT(java_attach(&p, &java, &why), RUNTIME_UNSUPPORTED);
    CHECK_TEXT(why.text, "the JVM has no code yet");
}

static void described(void)
{
    static struct java_process p;
    struct buf text;
    void *java;
    java_make(&p);
    CHECK_INT(java_attach(&p, &java, NULL), RUNTIME_YES);
    buf_init(&text, 64);
    runtime_java.describe(java, &text);
    CHECK_STR(buf_slice(&text), "HotSpot 17.0.15");
    buf_release(&text);
    runtime_java.detach(java);
}

TESTS({"compiled code: functions, inlined ones, what is undone, and how large its frame is", compiled},
      {"a leaf that enters or leaves its frame", leaves}, {"the interpreter's frames, and stubs", interpreted},
      {"what is no JVM, or none yet, is refused with the reason", refused}, {"a version is told", described})
