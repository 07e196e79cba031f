/* Java on HotSpot, the row: where samples have registers (perf, brief stops), an address in the JVM's code is told as
 * its methods, and how to go on to their caller. The JVM is only read then: nothing is loaded into it, sent to it or
 * asked of it. Where samples have none its own recorder is asked (recording.c). */
#include "runtime/java/attach.h"
#include "runtime/java/private.h"

#include <errno.h>

enum {
    WORD = 8,
    METHOD_SLOT = 3,
    SENDER_SLOT = 1, /* words below an interpreter's frame pointer; */
    BYTECODE_SLOT = 7, BYTECODE_SLOT_LAST = 9, /* one of these, by version and processor */
};

static enum runtime_answer recognise(struct elf *elf, struct str path, const struct runtime_code *code, void **binary,
                                     struct err *why)
{
    struct elf_symbol symbol;
    (void)path, (void)code;
    if (!elf_find_dynamic(elf, "JNI_CreateJavaVM", &symbol)) {
        return RUNTIME_NO;
    }
    struct java_tables *tables = malloc(sizeof *tables);
    if (tables == NULL) {
        return RUNTIME_NO;
    }
    if (!java_find_tables(elf, tables)) {
        free(tables);
        err_set(why, ERR_UNSUPPORTED, 0, "this JVM is not HotSpot: its Java functions are not read");
        return RUNTIME_UNSUPPORTED;
    }
    *binary = tables;
    return RUNTIME_YES;
}

static void detach(void *state)
{
    struct java *j = state;
    map_release(&j->place_of);
    map_release(&j->method_of);
    vec_release(&j->places);
    vec_release(&j->scopes);
    vec_release(&j->methods);
    arena_release(&j->texts);
    free(j);
}

/* The interpreter's code is there once the JVM has started. */
static bool find_code(struct java *j, struct err *why)
{
    const struct java_layout *l = &j->layout;
    uint64_t queue;
    bool good = java_read_heaps(j) && java_word(j, l->variable[JAVA_STUB_QUEUE], &queue) &&
                java_word(j, queue + l->field[JAVA_STUBS_BUFFER], &j->interpreter);
    uint32_t limit;
    good = good && java_read(j, queue + l->field[JAVA_STUBS_LIMIT], &limit, sizeof limit);
    j->interpreter_limit = j->interpreter + (good ? limit : 0);
    if (l->variable[JAVA_CALL_STUB_RETURN] != 0) {
        (void)java_word(j, l->variable[JAVA_CALL_STUB_RETURN], &j->call_stub_return);
    }
    return (good && plausible(j->interpreter)) || err_set(why, ERR_UNSUPPORTED, EAGAIN, "the JVM has no code yet");
}

static enum runtime_answer attach(const void *binary, const struct runtime_process *process, void **state,
                                  struct err *why)
{
    struct java *j = calloc(1, sizeof *j);
    if (j == NULL) {
        err_set(why, ERR_MEMORY, 0, "no memory for a JVM's tables");
        return RUNTIME_UNSUPPORTED;
    }
    j->memory = process->memory;
    arena_init(&j->texts, JAVA_TEXTS_MAX);
    if (!java_read_layout(binary, process, &j->layout, why) || !find_code(j, why)) {
        detach(j);
        return RUNTIME_UNSUPPORTED;
    }
    *state = j;
    return RUNTIME_YES;
}

static void describe(const void *state, struct buf *out)
{
    const uint32_t *v = ((const struct java *)state)->layout.version;
    buf_printf(out, "HotSpot %u.%u.%u", v[0], v[1], v[2]);
}

static void add_line(struct code_lines *lines, const struct java_method *m, uint32_t line, const char *tier)
{
    if (lines->count < PROFILE_INLINES_MAX) {
        lines->line[lines->count++] = (struct source_line){m->name, m->name, m->file, line, tier};
    }
}

static bool stack_word(const struct runtime_place *at, uint64_t address, uint64_t *out)
{
    return address % WORD == 0 && at->stack->read(at->stack->context, address, out, sizeof *out, NULL);
}

/* A frame of the interpreter; false: none has been made here yet, or it is gone. */
static bool interpreted(struct java *j, const struct runtime_place *at, struct runtime_resolved *out)
{
    uint64_t fp = at->registers->fp, method, sender, bytecode;
    if (fp < at->registers->sp || !stack_word(at, fp - METHOD_SLOT * WORD, &method) ||
        !stack_word(at, fp - SENDER_SLOT * WORD, &sender)) {
        return false;
    }
    if (sender <= fp) { /* on AArch64 a caller that is interpreted, too, keeps room below for what it may push */
        if (!java_return_is_in_register) {
            return false;
        }
        sender = 0;
    }
    const struct java_method *m = java_method(j, method);
    if (m == NULL) {
        return false;
    }
    int32_t bci = -1; /* the others are no places in its bytecode */
    for (uint64_t slot = BYTECODE_SLOT; bci < 0 && slot <= BYTECODE_SLOT_LAST; slot++) {
        if (stack_word(at, fp - slot * WORD, &bytecode) && bytecode - m->bytecode < m->code_size) {
            bci = (int32_t)(bytecode - m->bytecode);
        }
    }
    add_line(&out->lines, m, java_line(m, bci), "_[0]");
    out->caller = (struct runtime_caller){RUNTIME_RULE_FRAME_POINTER, sender, 0};
    return true;
}

static void compiled(struct java *j, const struct java_place *place, struct runtime_resolved *out)
{
    enum { C1_MOST = 3 }; /* with less and more counting; above it is C2, and its methods need no further ending */
    const char *tier = place->tier >= 1 && place->tier <= C1_MOST ? "_[1]" : NULL;
    for (uint32_t i = 0; i < place->scope_count; i++) {
        struct java_scope *scope = &j->scopes.at[place->scopes + i];
        const struct java_method *m = java_method(j, scope->method);
        if (m != NULL && scope->of != m->const_method) { /* a table of lines is read from its beginning on */
            scope->line = java_line(m, scope->bci);
            scope->of = m->const_method;
        }
        if (m != NULL) {
            add_line(&out->lines, m, scope->line, i + 1 < place->scope_count ? "_[i]" : tier);
        }
    }
}

/* Of compiled code that was found to be no longer valid the return address leads to what undoes it: told is the place
 * that it was at before. */
static bool deoptimising(struct java *j, const struct java_place *place, const struct runtime_place *at,
                         struct runtime_resolved *out)
{
    uint64_t ip;
    const struct java_place now = *place; /* asking for another may move it */
    const struct java_place *before =
        stack_word(at, at->registers->sp + now.orig_pc, &ip) ? java_place(j, ip, false) : NULL;
    compiled(j, before != NULL && before->blob == now.blob ? before : &now, out);
    java_caller(j, &now, at->registers->fp, &out->caller);
    return true;
}

static bool resolve(void *state, const struct runtime_place *at, struct runtime_resolved *out)
{
    struct java *j = state;
    out->lines.count = 0;
    out->lines.kind = FRAME_JVM;
    if (at->registers == NULL || at->stack == NULL) {
        return false;
    }
    bool exact = at->registers->ip == at->address;
    j->stacks += exact || at->registers->sp <= j->sp;
    j->sp = at->registers->sp;
    java_forget_methods(j);
    if (java_is_interpreter(j, at->address)) {
        if (!interpreted(j, at, out) && exact) { /* it is as it was called */
            java_as_called(0, &out->caller);
        }
        return out->lines.count > 0 || exact;
    }
    const struct java_place *place = java_place(j, at->registers->ip, exact);
    if (place == NULL) {
        return false;
    }
    if (place->deopt != 0 && at->registers->ip == place->deopt) {
        return deoptimising(j, place, at, out);
    }
    if (place->kind == JAVA_COMPILED) {
        compiled(j, place, out);
    } else {
        out->lines.kind = FRAME_NATIVE;
        memcpy(j->stub, place->name, sizeof j->stub);
        struct str name = str_of(j->stub);
        out->lines.line[out->lines.count++] = (struct source_line){.name = name, .system_name = name};
    }
    java_caller(j, place, at->registers->fp, &out->caller);
    return true;
}

static const struct runtime_collect java_collects = {
    .price = "a recording of its own, which costs it some 20 to 30 MB and a second of CPU time; --no-java-attach lets "
             "it alone",
    .carriers = "ForkJoinPool-",
    .needs_bytes = 64 << 20, /* for its recorder */
    .tick_ms = 100,
    .tick_part = 50,
    .may_start = attach_may,
    .start = java_collect,
    .tick = java_collect_tick,
    .poll = java_collect_poll,
    .stop = java_collect_stop,
};

const struct runtime runtime_java = {
    .name = "java",
    .versions = "8 to 25",
    .kind = FRAME_JVM,
    .recognise = recognise,
    .forget = free,
    .attach = attach,
    .detach = detach,
    .describe = describe,
    .resolve = resolve,
    .collect = &java_collects,
};
