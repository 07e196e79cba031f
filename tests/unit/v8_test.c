/* JavaScript's functions, in a process that is made here: optimised code with what is inlined into it, baseline code,
 * frames of the interpreter, regular expressions; strings of all kinds; what was moved, replaced, or is gone. */
#include "stack_words.h"
#include "test.h"
#include "v8_process.h"

#define FP (STACK + 0x40)

/* A frame's words: its context, the function, its bytecode and the offset of the instruction. */
static void frame_is(uint32_t which, int32_t offset)
{
    words[7] = v8_tag(AT_SCRIPT);
    words[6] = v8_tag(AT_CLOSURES + 0x100 * which);
    words[4] = v8_tag(AT_BYTECODE);
    words[3] = v8_number(63 + offset);
}

/* Functions innermost first with their lines; "-": nothing is known. `registers`: a leaf's. */
static const char *told_with(void *v8, uint64_t ip, const uint64_t *registers, bool leaf, struct runtime_caller *caller)
{
    static char text[512];
    const struct runtime_registers all = {.ip = ip, .sp = STACK, .fp = FP, .all = registers};
    const struct runtime_place place = {leaf ? ip : ip - 1, &all, &stack};
    struct runtime_resolved found = {.caller = {.rule = RUNTIME_RULE_NONE}};
    size_t used = 0;
    text[0] = '\0';
    bool good = runtime_v8.resolve(v8, &place, &found);
    if (caller != NULL) {
        *caller = found.caller;
    }
    if (!good) {
        return "-";
    }
    for (size_t i = 0; i < found.lines.count; i++) {
        const struct source_line *line = &found.lines.line[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s at %u", i > 0 ? ", " : "",
                                 (int)line->name.len, line->name.ptr, line->line);
    }
    return text;
}

static const char *told(void *v8, uint64_t ip, bool leaf)
{
    return told_with(v8, ip, NULL, leaf, NULL);
}

#define OUTER "outer /srv/a b.js:2"
#define INNER "inner /srv/a b.js:3"

static void optimised(void)
{
    static struct v8_process p;
    void *v8;
    v8_make(&p);
    CHECK_INT(v8_attach(&p, &v8, NULL), RUNTIME_YES);
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE), true), OUTER " at 2");
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0x40), true), INNER " at 3, " OUTER " at 2");
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0x40), false), OUTER " at 2"); /* a call that ends there */
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0x80), false), INNER " at 3, " OUTER " at 2");
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0xff), true), OUTER " at 2");
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0x101), true), "-");
    /* an entry that says -1 is the function itself, inlined into itself */
    v8_put(&p, AT_INLININGS + 16 + 8, UINT32_MAX, 4);
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0x48), true), OUTER " at 3, " OUTER " at 2");
    /* it stays as it is known for a while; nothing more is read */
    unsigned reads = p.reads;
    (void)told(v8, AT(AT_STREAM_CODE + 0x40), true);
    CHECK_INT(p.reads, reads);
    runtime_v8.detach(v8);
}

static void what_lies_there_now(void)
{
    static struct v8_process p;
    void *v8;
    v8_make(&p);
    CHECK_INT(v8_attach(&p, &v8, NULL), RUNTIME_YES);
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0x90), true), OUTER " at 2");
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0x98), true), OUTER " at 2");
    /* other code, by another Code */
    v8_put(&p, AT_DEOPTIMIZATION + 16 + 8 * 6, v8_tag(AT_SHARED + 0x100), 8);
    memcpy(p.bytes + AT_CODE + 0x80, p.bytes + AT_CODE, 0x80);
    v8_put(&p, AT_STREAM + 8, v8_tag(AT_CODE + 0x80), 8);
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0x90), true), OUTER " at 2");
    for (int i = 0; i < V8_ASK_AGAIN; i++) {
        (void)told(v8, AT(0x8000), true);
    }
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0x90), true), INNER " at 2");
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0x98), true), INNER " at 2");
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0x88), true), INNER " at 2");
    /* of a process that is gone what is known is told on */
    p.is_gone = true;
    for (int i = 0; i < V8_ASK_AGAIN; i++) {
        (void)told(v8, AT(0x8000), true);
    }
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE + 0x90), true), INNER " at 2");
    runtime_v8.detach(v8);
}

/* The collector moves closures: what lies there then is another's, or says where it went. */
static void moved(void)
{
    static struct v8_process p;
    void *v8;
    v8_make(&p);
    CHECK_INT(v8_attach(&p, &v8, NULL), RUNTIME_YES);
    frame_is(1, 0); /* inner's closure, whose function has not this bytecode */
    v8_put(&p, AT_SHARED + 0x100 + 8, v8_tag(AT_BYTECODE_POSITIONS), 8);
    CHECK_TEXT(told(v8, AT(AT_BUILTINS + 0x100), false), "-");
    memcpy(p.bytes + 0x2c00, p.bytes + AT_CLOSURES, 0x100);
    v8_put(&p, AT_CLOSURES + 0x100, AT(0x2c00), 8);
    for (int i = 0; i < 8; i++) { /* what is not known is asked about again sooner */
        (void)told(v8, AT(0x8000), true);
    }
    CHECK_TEXT(told(v8, AT(AT_BUILTINS + 0x100), false), OUTER " at 2");
    /* from then on the bytecode tells whose it is */
    v8_put(&p, AT_CLOSURES + 0x100, 0, 8);
    frame_is(1, 4);
    CHECK_TEXT(told(v8, AT(AT_BUILTINS + 0x100), false), OUTER " at 2");
    runtime_v8.detach(v8);
}

static void interpreted(void)
{
    static struct v8_process p;
    struct runtime_caller caller;
    void *v8;
    uint64_t registers[33] = {[12] = v8_tag(AT_BYTECODE), [9] = 63 + 4};
    v8_make(&p);
    static const unsigned char far[] = {STEP(0, 42), STEP(4, 50)}; /* the second one is on line 3 */
    v8_bytes(&p, AT_BYTECODE_POSITIONS, far, sizeof far);
    CHECK_INT(v8_attach(&p, &v8, NULL), RUNTIME_YES);
    frame_is(0, 0);
    CHECK_TEXT(told(v8, AT(AT_BUILTINS + 0x100), false), OUTER " at 2");
    frame_is(0, 5);
    CHECK_TEXT(told(v8, AT(AT_BUILTINS + 0x100), false), OUTER " at 3");
    /* a leaf's registers tell the instruction that runs, if it is the frame's bytecode, and only beside it */
    frame_is(0, 0);
    CHECK_TEXT(told_with(v8, AT(AT_BUILTINS + 0x200), registers, true, NULL), "-");
    CHECK_TEXT(told(v8, AT(AT_BUILTINS + 0x100), false), OUTER " at 3");
    CHECK_TEXT(told(v8, AT(AT_BUILTINS + 0x100), false), OUTER " at 2");
    CHECK_TEXT(told_with(v8, AT(AT_STREAM_CODE), registers, true, NULL), OUTER " at 2");
    CHECK_TEXT(told(v8, AT(AT_BUILTINS + 0x100), false), OUTER " at 2");
    /* a builtin function's leaf is none of a program */
    CHECK_TEXT(told_with(v8, AT(AT_BUILTINS + 0x100), registers, true, &caller), "-");
    CHECK(caller.rule == RUNTIME_RULE_NONE);
    p.layout.is_stripped = true; /* its frame is not made: the return address is on top */
    (void)told_with(v8, AT(AT_BUILTINS + 0x100), registers, true, &caller);
    CHECK(caller.rule == RUNTIME_RULE_FRAME_SIZE && caller.value == 0);
    words[7] = v8_number(18); /* a frame of its own */
    (void)told_with(v8, AT(AT_BUILTINS + 0x100), registers, true, &caller);
    CHECK(caller.rule == RUNTIME_RULE_NONE);
    runtime_v8.detach(v8);
}

static void baseline(void)
{
    static struct v8_process p;
    void *v8;
    v8_make(&p);
    static const unsigned char far[] = {STEP(0, 42), STEP(2, 50), STEP(3, 20)};
    v8_bytes(&p, AT_BYTECODE_POSITIONS, far, sizeof far);
    v8_put(&p, AT_SHARED + 8, v8_tag(AT_BASELINE_OBJECT), 8);
    v8_put(&p, AT_SHARED + 0x100 + 8, v8_number(0), 8);
    CHECK_INT(v8_attach(&p, &v8, NULL), RUNTIME_YES);
    frame_is(0, 0);
    /* entering: the frame is its caller's, and nobody knows whose bytecode it is */
    CHECK_TEXT(told(v8, AT(AT_BASELINE_CODE + 8), true), "-");
    CHECK_TEXT(told(v8, AT(AT_BASELINE_CODE + 0x30), false), OUTER " at 2"); /* the first one: to 0x30 */
    CHECK_TEXT(told(v8, AT(AT_BASELINE_CODE + 0x31), false), OUTER " at 3");
    CHECK_TEXT(told(v8, AT(AT_BASELINE_CODE + 0x51), false), OUTER " at 3");
    frame_is(1, 0);
    CHECK_TEXT(told(v8, AT(AT_BASELINE_CODE + 0x12), true), OUTER " at 2");
    CHECK_TEXT(told(v8, AT(AT_BASELINE_CODE + 0x80), true), OUTER " at 0"); /* behind the last */
    runtime_v8.detach(v8);
}

static void others(void)
{
    static struct v8_process p;
    struct err why = {0};
    void *v8;
    memset(words, 0, sizeof words);
    v8_make(&p);
    CHECK_INT(v8_attach(&p, &v8, NULL), RUNTIME_YES);
    CHECK_TEXT(told(v8, AT(AT_REGEXP + 0x30), true), "(regular expression) at 0");
    runtime_v8.detach(v8);
    v8_put(&p, AT_REGEXP_OBJECT + 48, 2, 4);
    CHECK_INT(v8_attach(&p, &v8, NULL), RUNTIME_YES);
    CHECK_TEXT(told(v8, AT(AT_REGEXP + 0x34), false), "(V8 builtin) at 0");
    CHECK_TEXT(told(v8, AT(0x9000), true), "-");
    CHECK_TEXT(told(v8, 8, true), "-");
    runtime_v8.detach(v8);
    v8_put(&p, 0x20, 11, 4); /* what the file says stands elsewhere: its code is mapped a second time */
    CHECK_INT(v8_attach(&p, &v8, &why), RUNTIME_NO);
}

static const char *text_of(struct v8_process *p, uint64_t word)
{
    static struct buf out;
    const struct v8 v = {.memory = &p->memory, .layout = &p->layout};
    buf_release(&out);
    buf_init(&out, 256);
    return v8_read_string(&v, word, &out) ? buf_cstr(&out) : "-";
}

static void strings(void)
{
    static struct v8_process p;
    v8_make(&p);
    v8_string(&p, 0x8000, "caf\xe9");
    CHECK_TEXT(text_of(&p, v8_tag(0x8000)), "café");
    v8_is(&p, 0x8100, IS_TWO_BYTE);
    v8_put(&p, 0x8100 + 12, 4, 4);
    memcpy(p.bytes + 0x8100 + 16, "\x3d\xd8\0\xde!\0\0\xd8", 8); /* a pair, "!", half a pair */
    CHECK_TEXT(text_of(&p, v8_tag(0x8100)), "😀!\xef\xbf\xbd");
    v8_is(&p, 0x8200, IS_CONS);
    v8_put(&p, 0x8200 + 12, 8, 4);
    v8_put(&p, 0x8200 + 16, v8_tag(0x8000), 8);
    v8_put(&p, 0x8200 + 24, v8_tag(0x8100), 8);
    CHECK_TEXT(text_of(&p, v8_tag(0x8200)), "café😀!\xef\xbf\xbd");
    v8_is(&p, 0x8300, IS_SLICED);
    v8_put(&p, 0x8300 + 12, 2, 4);
    v8_put(&p, 0x8300 + 16, v8_tag(0x8000), 8);
    v8_put(&p, 0x8300 + 24, v8_number(1), 8);
    CHECK_TEXT(text_of(&p, v8_tag(0x8300)), "af");
    v8_put(&p, 0x8300 + 24, v8_number(3), 8);
    CHECK_TEXT(text_of(&p, v8_tag(0x8300)), "-"); /* beyond its parent's end */
    v8_is(&p, 0x8400, IS_THIN);
    v8_put(&p, 0x8400 + 16, v8_tag(0x8000), 8);
    v8_put(&p, 0x8400 + 12, 4, 4);
    CHECK_TEXT(text_of(&p, v8_tag(0x8400)), "café");
    v8_is(&p, 0x8500, IS_EXTERNAL);
    v8_put(&p, 0x8500 + 12, 4, 4);
    v8_put(&p, 0x8500 + 24, AT(0x8600), 8);
    memcpy(p.bytes + 0x8600, "text", 4);
    CHECK_TEXT(text_of(&p, v8_tag(0x8500)), "text");
    /* one that leads back to itself, and what is none */
    v8_put(&p, 0x8400 + 16, v8_tag(0x8400), 8);
    CHECK_TEXT(text_of(&p, v8_tag(0x8400)), "-");
    v8_put(&p, 0x8200 + 16, v8_tag(0x8200), 8);
    CHECK_TEXT(text_of(&p, v8_tag(0x8200)), "-");
    CHECK_TEXT(text_of(&p, v8_tag(AT_SCRIPT)), "-");
    CHECK_TEXT(text_of(&p, v8_number(3)), "-");
}

static void names(void)
{
    static struct v8_process p;
    void *v8;
    v8_make(&p);
    /* no name but one that was inferred; none at all; a script without a name; a text without lines */
    v8_put(&p, AT_SCOPES + 8 + 8 * 5, v8_number(0), 8);
    v8_put(&p, AT_SCOPES + 8 + 8 * 7, v8_tag(AT_NAMES + 0x40), 8);
    v8_put(&p, AT_SCOPES + 8 + 8 * 8, v8_number(26), 8);
    v8_put(&p, AT_SCOPES + 8 + 8 * 9, v8_number(41), 8);
    v8_put(&p, AT_SCOPES + 8 + 8 * 10, v8_tag(AT_SCOPES), 8);
    CHECK_INT(v8_attach(&p, &v8, NULL), RUNTIME_YES);
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE), true), "inner /srv/a b.js:2 at 2");
    runtime_v8.detach(v8);
    v8_put(&p, AT_SCOPES + 8 + 8 * 7, v8_tag(AT_SCRIPT), 8);
    CHECK_INT(v8_attach(&p, &v8, NULL), RUNTIME_YES);
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE), true), "(anonymous) /srv/a b.js:2:15 at 2");
    runtime_v8.detach(v8);
    v8_put(&p, AT_SCRIPT + 16, v8_tag(AT_SCRIPT), 8);
    CHECK_INT(v8_attach(&p, &v8, NULL), RUNTIME_YES);
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE), true), "(anonymous) (eval):2:15 at 2");
    runtime_v8.detach(v8);
    v8_put(&p, AT_SCRIPT + 8, v8_tag(AT_SCRIPT), 8);
    CHECK_INT(v8_attach(&p, &v8, NULL), RUNTIME_YES);
    CHECK_TEXT(told(v8, AT(AT_STREAM_CODE), true), "(anonymous) (eval) at 0");
    runtime_v8.detach(v8);
}

TESTS({"optimised code: its function and what is inlined", optimised},
      {"other code at the same place, and a process that is gone", what_lies_there_now},
      {"closures that were moved", moved}, {"frames of the interpreter, and a leaf's registers", interpreted},
      {"baseline code", baseline}, {"regular expressions, builtin functions, what is none", others},
      {"strings of all kinds", strings}, {"functions and scripts without names or text", names})
