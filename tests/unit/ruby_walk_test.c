/*
 * Ruby in a memory made here (ruby_process.h): attached to, walked, named, for a version of each layout; and each way
 * in which what is read contradicts itself.
 */
#include "ruby_process.h"
#include "runtime/ruby/walk.h"
#include "test.h"

#include <stdlib.h>

static struct ruby_process process;
static struct ruby *ruby;
static uint64_t plan[RUNTIME_PLAN_MAX / sizeof(uint64_t)];
static struct runtime_stack stack;
static const struct ruby_family *const family_3_4 = &ruby_families[7];
static const char without_block[] = "<main> 1:3 > Shop#sell 10:11 > Array#each";

static void make(const struct ruby_family *family)
{
    struct err err = {0};
    ruby_make(&process, family, true);
    memset(plan, 0, sizeof plan);
    CHECK_INT(ruby_process_attach(&process, &ruby, &err), RUNTIME_YES);
    CHECK_TEXT(err.text, "");
}

static void walk(unsigned thread, bool proven, bool parts)
{
    struct memory_batch memory = {ruby_process_read, &process};
    struct runtime_thread of = {.tid = RUBY_TID + thread, .proven_later = proven, .takes_parts = parts};
    process.reads = process.pieces = 0;
    ruby_walk(ruby, plan, &of, &memory, &stack);
}

/* The stack's names, root first, "a > b", with lines. */
static const char *names(void)
{
    static char text[4096];
    struct memory_batch memory = {ruby_process_read, &process};
    struct runtime_name name[RUNTIME_FRAMES_MAX];
    struct buf out;
    void *open = ruby_open_names(ruby);
    buf_init(&out, sizeof text);
    ruby_name_frames(open, stack.frame, stack.count, &memory, name);
    for (uint32_t i = stack.count; i > 0; i--) {
        const struct runtime_name *n = &name[i - 1];
        buf_str(&out, n->function);
        if (n->file.len > 0) {
            buf_printf(&out, " %u:%u", n->first_line, n->line);
        }
        buf_text(&out, i > 1 ? " > " : "");
    }
    snprintf(text, sizeof text, "%.*s", (int)out.len, buf_slice(&out).ptr);
    buf_release(&out);
    ruby_close_names(open);
    return text;
}

static const char *expected(const struct ruby_family *f)
{
    return f->path != RUBY_ABSENT ? "<main> 1:3 > Shop#sell 10:11 > Array#each > block in Shop#sell 11:12"
                                  : "<main> 1:3 > sell 10:11 > each > block in sell 11:12";
}

static void each_layout(void)
{
    for (size_t i = 0; i < RUBY_FAMILIES; i++) {
        make(&ruby_families[i]);
        for (unsigned thread = 0; thread < 2; thread++) {
            memset(plan, 0, sizeof plan);
            walk(thread, true, false);
            CHECK_INT(stack.end, RUNTIME_COMPLETE);
            CHECK_TEXT(names(), expected(&ruby_families[i]));
            /* all were among the values of the batch */
            CHECK_INT(((struct ruby_plan *)(void *)plan)->escaped_count, 0);
            bool is_holder = ruby_families[i].version >= RUBY_VERSION(2, 7, 0) && thread == 0;
            CHECK_INT(stack.marks, is_holder ? RUNTIME_HOLDS_LOCK : 0);
        }
        CHECK_INT(stack.frame[0].flags, RUNTIME_FRAME_ENTRY);
        CHECK_INT(stack.frame[2].flags, 0);
        CHECK_INT(stack.frame[3].flags, RUNTIME_FRAME_ENTRY);
        walk(1, true, false);
        CHECK_INT(process.reads, 1);
        ruby_detach(ruby);
    }
}

static void without_symbols(void)
{
    for (size_t i = 0; i < RUBY_FAMILIES; i++) {
        struct err err = {0};
        ruby_make(&process, &ruby_families[i], false);
        memset(plan, 0, sizeof plan);
        CHECK_INT(ruby_process_attach(&process, &ruby, &err), RUNTIME_YES);
        CHECK_INT(ruby->vm, ruby_there(AT_VM));
        walk(1, false, false);
        CHECK_TEXT(names(), expected(&ruby_families[i]));
        ruby_detach(ruby);
    }
}

static void unknown_versions(void)
{
    struct ruby_layout layout;
    struct err err = {0};
    CHECK(!ruby_layout_of(RUBY_VERSION(4, 1, 0), ELF_X86_64, false, &layout, &err));
    CHECK_TEXT(err.text, "Ruby 4.1.0 is not known here; 2.3 to 4.0 can be read");
    CHECK(!ruby_layout_of(RUBY_VERSION(2, 2, 10), ELF_X86_64, false, &layout, &err));
    CHECK(!ruby_layout_of(RUBY_VERSION(3, 0, 0), ELF_AARCH64, false, &layout, &err));
    CHECK_TEXT(err.text, "Ruby 3.0.0 is not known here; 3.1 to 4.0 can be read");
    CHECK(!ruby_layout_of(RUBY_VERSION(2, 8, 0), ELF_X86_64, false, &layout, &err)); /* between two that are known */
    CHECK(!ruby_layout_of(RUBY_VERSION(3, 5, 0), ELF_X86_64, false, &layout, &err));
}

static void libc_moves_fields(void)
{
    struct ruby_layout l;
    CHECK(ruby_layout_of(RUBY_VERSION(3, 3, 5), ELF_AARCH64, false, &l, NULL));
    CHECK_INT(l.vm.objspace, 1320);
    CHECK_INT(l.ractor.threads, 264);
    CHECK_INT(l.ractor.node, 448);
    CHECK_INT(l.ractor.running, 344);
    CHECK(ruby_layout_of(RUBY_VERSION(4, 0, 6), ELF_AARCH64, false, &l, NULL));
    CHECK_INT(l.vm.objspace, 1280);
    CHECK(ruby_layout_of(RUBY_VERSION(3, 3, 5), ELF_AARCH64, true, &l, NULL));
    CHECK_INT(l.ractor.threads, 256);
}

static void refused(uint64_t at, uint64_t value)
{
    struct err err = {0};
    ruby_make(&process, family_3_4, true);
    ruby_put(&process, at, value);
    CHECK_INT(ruby_process_attach(&process, &ruby, &err), RUNTIME_UNSUPPORTED);
    CHECK(err.kind != ERR_NONE && ruby == NULL);
}

static void contradictions(void)
{
    refused(AT_VM_POINTER, 0);
    refused(AT_VM + 40, 0);                           /* no main thread */
    refused(AT_VM + 40, ruby_there(AT_EC));           /* that is in no list */
    refused(AT_THREAD + 32, ruby_there(AT_RACTOR));   /* of another virtual machine */
    refused(AT_THREAD + 0x400, ruby_there(AT_THREAD + 0x400)); /* a list that never ends */
    refused(AT_EC + 48, ruby_there(AT_THREAD + 0x400)); /* another thread's */
    refused(AT_EC + 16, ruby_there(AT_EC));           /* the leaf lies outside the stack */
    refused(AT_EC + 8, 1ULL << 40);
    refused(AT_STACK + STACK_BYTES - 2 * 56 + 16, ruby_there(AT_STRING)); /* a frame that runs a string */
    for (unsigned i = 0; i < RUBY_THREADS; i++) {
        ruby_make(&process, family_3_4, true);
    }
    struct err err = {0};
    memset(process.bytes + AT_PTHREAD, 0, RUBY_THREADS * 0x800);
    CHECK_INT(ruby_process_attach(&process, &ruby, &err), RUNTIME_UNSUPPORTED);
    refused(AT_EC + 0x100 + 48, ruby_there(AT_THREAD)); /* one in four is too many */
}

/* ---- a thread that runs on ---- */

static unsigned pops_at;

static void pop(struct ruby_process *p, unsigned piece)
{
    if (piece == pops_at) {
        ruby_put(p, AT_EC + 0x100 + 16, ruby_there(p->cfp[1] + (unsigned)p->family->frame_bytes));
        memset(p->bytes + p->cfp[1], 0x55, (size_t)p->family->frame_bytes);
    }
}

static void runs_on(void)
{
    unsigned parts = 0, whole = 0, torn = 0;
    for (unsigned piece = 0; piece < 30; piece++) {
        make(family_3_4);
        walk(1, false, true); /* the plan is right from here on */
        process.at_piece = pop;
        pops_at = piece;
        walk(1, false, true);
        process.at_piece = NULL;
        bool is_part = stack.end == RUNTIME_COMPLETE && (stack.frame[0].flags & RUNTIME_FRAME_PART) != 0;
        parts += is_part;
        whole += stack.end == RUNTIME_COMPLETE && !is_part;
        torn += stack.end != RUNTIME_COMPLETE;
        const char *text = stack.end == RUNTIME_COMPLETE ? names() : "";
        CHECK(stack.end != RUNTIME_COMPLETE || strcmp(text, expected(family_3_4)) == 0 ||
              strcmp(text, without_block) == 0);
        ruby_detach(ruby);
    }
    CHECK(parts > 0 && whole > 0 && torn == 0);
}

/* The leaf's frame and environment are another's, and its own again two pieces later. */
static void run_aside(struct ruby_process *p, unsigned piece)
{
    static unsigned char frame[56], env[24];
    uint64_t ep = AT_STACK + STACK_BYTES + 0x40 + 5 * 56;
    if (piece == pops_at) {
        memcpy(frame, p->bytes + p->cfp[1], sizeof frame);
        memcpy(env, p->bytes + ep - 16, sizeof env);
        pop(p, piece);
        ruby_put(p, ep, 0x22220003);
        ruby_put(p, ep - 16, ruby_there(AT_METHOD + 0x100));
    } else if (piece == pops_at + 2) {
        memcpy(p->bytes + p->cfp[1], frame, sizeof frame);
        memcpy(p->bytes + ep - 16, env, sizeof env);
        ruby_put(p, AT_EC + 0x100 + 16, ruby_there(p->cfp[1]));
    }
}

static void runs_aside(void)
{
    for (unsigned piece = 0; piece < 30; piece++) {
        make(family_3_4);
        walk(1, false, true);
        process.at_piece = run_aside;
        pops_at = piece;
        walk(1, false, true);
        process.at_piece = NULL;
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        const char *text = names();
        CHECK(strcmp(text, expected(family_3_4)) == 0 || strcmp(text, without_block) == 0);
        ruby_detach(ruby);
    }
}

static void changed(uint64_t at, uint64_t value, enum runtime_end end)
{
    make(family_3_4);
    walk(1, true, false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    ruby_put(&process, at, value);
    walk(1, true, false);
    CHECK_INT(stack.end, end);
    ruby_detach(ruby);
}

static void contradicting_stacks(void)
{
    uint64_t leaf = AT_STACK + STACK_BYTES + STACK_BYTES - 5 * 56, ec = AT_EC + 0x100;
    uint64_t env_of_c = AT_STACK + STACK_BYTES + 0x40 + 4 * 56;
    changed(leaf + 32, 8, RUNTIME_TORN);                       /* no environment */
    changed(leaf + 32, ruby_there(AT_STRING), RUNTIME_TORN);   /* of no kind */
    changed(leaf + 16, 3, RUNTIME_TORN);                       /* no instructions */
    changed(leaf + 16, ruby_there(AT_METHOD), RUNTIME_TORN);   /* those are none */
    changed(leaf + 56 + 16, ruby_there(AT_ISEQ), RUNTIME_TORN); /* a C function that has some */
    changed(env_of_c - 16, ruby_there(RUBY_BYTES), RUNTIME_TORN); /* one whose method cannot be read */
    changed(ec + 16, ruby_there(leaf + 8), RUNTIME_TORN);      /* between two frames */
    changed(ec + 16, ruby_there(AT_VM), RUNTIME_TORN);
    changed(ec, 0, RUNTIME_EMPTY);
    changed(ec + 48, ruby_there(AT_THREAD), RUNTIME_TORN);     /* another thread's */
    changed(AT_PTHREAD + 0x800 + 720, 1, RUNTIME_NO_THREAD);   /* it ended, and another has its memory */
    make(family_3_4);
    walk(1, true, false);
    process.gone = true;
    walk(1, true, false);
    CHECK(stack.end == RUNTIME_UNREADABLE || stack.end == RUNTIME_NO_THREAD);
    ruby_detach(ruby);
}

static void other_function(void)
{
    make(family_3_4);
    walk(0, true, false);
    /* freed, and made anew with another name before it was named */
    ruby_put(&process, AT_ISEQ + 0x2000 + 0x100 + 80, ruby_there(AT_STRING));
    CHECK_TEXT(names(), "<main> 1:3 > Shop#sell 10:11 > Array#each > ");
    walk(0, true, false);
    CHECK_INT(stack.marks & RUNTIME_SHORT_LIVED, RUNTIME_SHORT_LIVED);
    CHECK(strstr(names(), "> Array#each > shop.rb") != NULL);
    ruby_detach(ruby);
}

/* A block's environment on the heap. */
static void escaped(void)
{
    make(family_3_4);
    uint64_t ep = AT_STRING + 0x1000, kept = ruby_ep(&process, 1, 0);
    memcpy(process.bytes + ep - 16, process.bytes + ruby_ep(&process, 1, 0) - RUBY_BASE - 16, 24);
    ruby_put(&process, process.cfp[1] + 32, ruby_there(ep));
    walk(1, false, false);
    CHECK_TEXT(names(), expected(family_3_4));
    walk(1, false, false);
    CHECK_INT(process.reads, 1); /* it was predicted */
    ruby_put(&process, process.cfp[1] + 32, kept);
    walk(1, false, false);
    CHECK_INT(((struct ruby_plan *)(void *)plan)->escaped_count, 0); /* no longer than it is met */
    ruby_detach(ruby);
}

static void pop_escaped(struct ruby_process *p, unsigned piece)
{
    uint64_t ep = AT_STRING + 0x1000;
    if (piece == pops_at) { /* its memory is another's, of another method */
        ruby_put(p, AT_EC + 0x100 + 16, ruby_there(p->cfp[1] + 56));
        ruby_put(p, ep, 0x22220003);
        ruby_put(p, ep - 16, ruby_there(AT_METHOD + 0x100));
        memset(p->bytes + p->cfp[1], 0x55, 56);
    }
}

/* An environment that no batch predicted, of a block that ends before it is read, or meanwhile. */
static void escaped_and_gone(void)
{
    for (unsigned piece = 0; piece < 40; piece++) {
        make(family_3_4);
        walk(1, false, true);
        uint64_t ep = AT_STRING + 0x1000;
        memcpy(process.bytes + ep - 16, process.bytes + ruby_ep(&process, 1, 0) - RUBY_BASE - 16, 24);
        ruby_put(&process, process.cfp[1] + 32, ruby_there(ep));
        process.at_piece = pop_escaped;
        pops_at = piece;
        walk(1, false, true);
        process.at_piece = NULL;
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        const char *text = names();
        CHECK(strcmp(text, expected(family_3_4)) == 0 || strcmp(text, without_block) == 0);
        ruby_detach(ruby);
    }
}

/* A method that has matched a pattern: its environment leads to a holder, another one in each invocation. */
static void special_variables(void)
{
    struct memory_batch memory = {ruby_process_read, &process};
    struct runtime_name name[RUNTIME_FRAMES_MAX];
    make(family_3_4);
    void *open = ruby_open_names(ruby);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t holder = AT_STRING + 0x1000 + 0x40 * i;
        ruby_put(&process, holder, 0x1a | 2 << 12);
        ruby_put(&process, holder + 8, ruby_there(AT_METHOD));
        ruby_put(&process, AT_STACK + STACK_BYTES + 0x40 + 3 * 56 - 16, ruby_there(holder));
        walk(1, true, false);
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        process.reads = 0;
        ruby_name_frames(open, stack.frame, stack.count, &memory, name);
        CHECK(i == 0 || process.reads == 2); /* the holder, for a block and its method */
        CHECK_TEXT(names(), expected(family_3_4));
    }
    ruby_close_names(open);
    ruby_detach(ruby);
}

/* A method that is made of a block: called by a Method it is another one each time, freed before it is named. */
static void made_of_block(void)
{
    static const char without_class[] = "<main> 1:3 > sell 10:11 > Array#each > block in sell 11:12";
    for (unsigned kind = 0; kind < 6; kind++) {
        make(family_3_4);
        uint64_t ep = ruby_ep(&process, 1, 2) - RUBY_BASE;
        ruby_put(&process, ep, load_u64(process.bytes + ep) | 0x40);
        walk(1, true, false);
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        ruby_put(&process, AT_METHOD + 0x80, kind); /* what lies there now */
        ruby_put(&process, AT_METHOD + 0x88, ruby_there(AT_ISEQ));
        CHECK_TEXT(names(), kind == 4 ? expected(family_3_4) : without_class);
        ruby_detach(ruby);
    }
}

/* Kinds of frames that a version does not have, and what no frame is of. */
static void old_kinds(void)
{
    static const uint64_t of_2_3[] = {0x51ab0, 0x1, 0xc1, 0x13, 0x1011};
    static const uint64_t of_2_4[] = {0xcccc0001, 0x11110000, 0x12120001, 1, 1ULL << 32};
    for (size_t i = 10; i < RUBY_FAMILIES; i++) {
        const struct ruby_family *f = &ruby_families[i];
        for (unsigned k = 0; k < 5; k++) {
            make(f);
            uint64_t ep = ruby_ep(&process, 1, 1) - RUBY_BASE, flags = process.cfp[1] + (uint64_t)f->frame_bytes + 24;
            ruby_put(&process, f->flags != 0 ? flags : ep, f->flags != 0 ? of_2_3[k] : of_2_4[k]);
            walk(1, true, false);
            CHECK_INT(stack.end, RUNTIME_TORN);
            ruby_detach(ruby);
        }
        make(f); /* a method made of a block */
        uint64_t ep = ruby_ep(&process, 1, 2) - RUBY_BASE;
        ruby_put(&process, f->flags != 0 ? process.cfp[1] + 2U * 64 + 24 : ep, f->flags != 0 ? 0x421 : 0x22220041);
        walk(1, true, false);
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        CHECK_TEXT(names(), expected(f));
        ruby_detach(ruby);
    }
}

static void collects(const struct ruby_family *f, bool during, unsigned thread)
{
    bool known = f->objspace != RUBY_ABSENT;
    bool holds = thread == 0 && (f->ractors != RUBY_ABSENT || f->running != RUBY_ABSENT);
    uint32_t flags = (during ? 0x20 : 0) | 0x1f; /* the bits beside it mean other things */
    memcpy(process.bytes + AT_OBJSPACE + f->gc_flags, &flags, sizeof flags);
    memset(plan, 0, sizeof plan);
    walk(thread, true, false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_INT((stack.marks & RUNTIME_HOLDS_LOCK) != 0, holds);
    CHECK_INT((stack.marks & RUNTIME_IN_GC) != 0, during && known);
    CHECK_INT((stack.frame[0].flags & RUNTIME_FRAME_COLLECTS) != 0, during && known && holds);
    CHECK_INT(stack.frame[1].flags & RUNTIME_FRAME_COLLECTS, 0);
}

/* The collector runs on top of who holds the lock. Nobody else is told to collect, be there a holder or not. */
static void collector(void)
{
    for (size_t i = 0; i < RUBY_FAMILIES; i++) {
        const struct ruby_family *f = &ruby_families[i];
        make(f);
        for (unsigned which = 0; which < 4; which++) {
            collects(f, (which & 1) != 0, which >> 1);
        }
        ruby_detach(ruby);
    }
    make(family_3_4);
    ruby_put(&process, AT_RACTOR + (uint64_t)family_3_4->ractor_running, 0);
    ruby_put(&process, AT_OBJSPACE + 16, 0x20ULL << 32);
    walk(0, true, false);
    CHECK_INT(stack.marks & (RUNTIME_HOLDS_LOCK | RUNTIME_IN_GC), RUNTIME_IN_GC);
    CHECK_INT(stack.frame[0].flags & RUNTIME_FRAME_COLLECTS, 0);
    ruby_detach(ruby);
}

/* Code of a file that is met for the first time: it is freed once it has run. */
static void runs_once(void)
{
    make(family_3_4);
    walk(0, true, false);
    CHECK_INT(stack.marks & RUNTIME_SHORT_LIVED, 0);
    ruby_put(&process, AT_ISEQ + 0x1000 + 0x100, 0 | 100ULL << 32);
    memset(plan, 0, sizeof plan);
    walk(0, true, false);
    CHECK_INT(stack.marks & RUNTIME_SHORT_LIVED, RUNTIME_SHORT_LIVED);
    for (int i = 0; i < 100; i++) {
        walk(0, true, false);
    }
    CHECK_INT(stack.marks & RUNTIME_SHORT_LIVED, 0); /* it lives longer */
    ruby_detach(ruby);
}

static void deep(void)
{
    make(family_3_4);
    for (unsigned i = 0; i < 250; i++) {
        ruby_push(&process, 1, ruby_there(AT_ISEQ + 0x1000), 5, 0x11110003, ruby_there(AT_METHOD), 0);
    }
    walk(1, false, false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_INT(stack.count, 254);
    ruby_put(&process, AT_EC + 0x100 + 16, ruby_there(process.cfp[1] + 8)); /* between two frames */
    walk(1, true, false);
    CHECK_INT(stack.end, RUNTIME_TORN);
    ruby_put(&process, AT_EC + 0x100 + 16, ruby_there(process.cfp[1]));
    walk(1, false, false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_INT(stack.count, 254);
    ruby_detach(ruby);
}

/* Environments in environments, another row of them for each group of frames: more batches than a sample may take. */
static void batches_end(void)
{
    make(family_3_4);
    for (unsigned i = 0; i < 16 * 16; i++) {
        ruby_put(&process, 0x40000 + 0x20 * i, 0x22220001);
        ruby_put(&process, 0x40000 + 0x20 * i - 8, ruby_there(0x40000 + 0x20 * (i + 1)));
    }
    for (unsigned i = 0; i < 500; i++) {
        uint64_t outer = ruby_there(0x40000 + 0x20 * 16 * (i / 32));
        ruby_push(&process, 1, ruby_there(AT_ISEQ + 0x2000), 5, 0x22220001, 0, outer);
    }
    walk(1, true, false);
    CHECK_INT(stack.end, RUNTIME_TORN);
    CHECK_INT(stack.reads, WALK_BATCHES_MAX);
    ruby_detach(ruby);
}

/* ---- the search for a thread ---- */

static void list_without_end(void)
{
    unsigned most_reads = 0, none = 0;
    make(family_3_4);
    ruby_put(&process, AT_THREAD + 0x400, ruby_there(AT_THREAD + 0x400));
    for (unsigned i = 0; i < 200; i++) {
        walk(3, true, false);
        CHECK_INT(stack.end, RUNTIME_NO_THREAD);
        most_reads = process.reads > most_reads ? process.reads : most_reads;
        none += process.reads == 0;
    }
    CHECK(most_reads < 200 && none > 16);
    ruby_put(&process, AT_THREAD + 0x400, ruby_there(AT_THREAD + 0x800));
    for (unsigned i = 0; i < 200 && stack.end != RUNTIME_COMPLETE; i++) {
        walk(3, true, false);
    }
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    ruby_detach(ruby);
}

static void many_ractors(void)
{
    make(family_3_4);
    for (unsigned i = 0; i < 100; i++) { /* without threads, before the one that has them */
        uint64_t at = 0x40000 + 0x200 * i;
        ruby_put(&process, at + 256, ruby_there(at + 256));
        ruby_put(&process, at + 432, i < 99 ? ruby_there(at + 0x200 + 432) : ruby_there(AT_RACTOR + 432));
    }
    ruby_put(&process, AT_VM + 8, ruby_there(0x40000 + 432));
    walk(1, true, false);
    CHECK_INT(stack.end, RUNTIME_NO_THREAD);
    walk(1, true, false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    ruby_detach(ruby);
}

/* The search takes eight reads to find the thread; its number is another one in the ninth, the batch. */
static void hide(struct ruby_process *p, unsigned piece)
{
    (void)piece;
    uint32_t tid = p->reads % 9 == 8 || p->reads % 9 == 0 ? 1 : RUBY_TID + 1;
    memcpy(p->bytes + AT_PTHREAD + 0x800 + 720, &tid, sizeof tid);
}

static void searched_once(void)
{
    make(family_3_4);
    process.at_piece = hide;
    walk(1, false, true);
    process.at_piece = NULL;
    CHECK_INT(stack.end, RUNTIME_TORN);
    CHECK_INT(process.reads, 9);
    memcpy(process.bytes + AT_PTHREAD + 0x800 + 720, &process.tids[1], sizeof process.tids[1]);
    walk(1, false, true);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    ruby_detach(ruby);
}

static void running(void)
{
    uint32_t tids[8] = {0};
    make(family_3_4);
    struct memory_batch memory = {ruby_process_read, &process};
    CHECK_INT(ruby_running(ruby, &memory, tids, 8), RUBY_THREADS);
    CHECK_INT(tids[0], RUBY_TID);
    CHECK_INT(tids[1], RUBY_TID + RUBY_THREADS - 1);
    CHECK_INT(ruby_running(ruby, &memory, tids, 1), 1);
    ruby_detach(ruby);
}

static void lines(void)
{
    /* two entries before position 54, one at 54 + 64, one at 54 + 512 + 3 */
    unsigned char index[48 + 160] = {0};
    uint32_t entries[] = {7, 8, 9, 10};
    uint64_t word = 0;
    for (unsigned i = 0; i < 9; i++) {
        word |= 1ULL << (7 * i);
    }
    for (unsigned i = 0; i < 6; i++) {
        uint64_t two = i == 0 ? word : 2 * word;
        memcpy(index + 8 * i, &two, 8);
    }
    memcpy(index + 48, &(uint32_t){2}, 4);
    memcpy(index + 48 + 16 + 8, &(uint64_t){1}, 8);
    word = 0;
    for (unsigned small = 2; small < 8; small++) {
        word |= 1ULL << (9 * (small - 1));
    }
    memcpy(index + 48 + 8, &word, 8);
    memcpy(index + 128, &(uint32_t){3}, 4);
    word |= 1;
    memcpy(index + 128 + 8, &word, 8);
    memcpy(index + 128 + 16, &(uint64_t){8}, 8);
    struct ruby_lines l = {(unsigned char *)entries, 4, 4, false, index, sizeof index};
    static const uint32_t wanted[][2] = {{0, 7}, {8, 7}, {9, 8}, {53, 8}, {54, 8}, {117, 8}, {118, 9}, {565, 9},
                                         {566, 9},
                                         {568, 9}, {569, 10}, {1077, 10}, {1078, 0}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        CHECK_INT(ruby_line(&l, wanted[i][0]), wanted[i][1]);
    }
    CHECK_INT(ruby_index_bytes(54), 48);
    CHECK_INT(ruby_index_bytes(55), 128);
    l.count = 1;
    CHECK_INT(ruby_line(&l, 700), 7); /* one entry needs no index */
}

TESTS({"each layout is attached to, walked and named; a warm stack takes one read", each_layout},
      {"without symbols the virtual machine and the names are found by what they lead to", without_symbols},
      {"a version that is not known is refused by name", unknown_versions},
      {"glibc's larger mutexes on AArch64 move fields", libc_moves_fields},
      {"what contradicts itself is not attached to", contradictions},
      {"of a thread that runs on what stood is kept, or it is read again", runs_on},
      {"what another frame left where the leaf is again is not the leaf's", runs_aside},
      {"a stack that contradicts itself is torn", contradicting_stacks},
      {"a function that was freed has no name, and not another's", other_function},
      {"an environment on the heap is read, and predicted from then on", escaped},
      {"an environment whose frame has ended meanwhile is not believed", escaped_and_gone},
      {"holders of special variables lead to names that were read once", special_variables},
      {"a method made of a block is that block, whatever became of it", made_of_block},
      {"frames of 2.3 and 2.4 have kinds of their own", old_kinds},
      {"the collector runs on top of the thread that holds the lock", collector},
      {"code of a file is named at once when it is new", runs_once},
      {"a stack of 250 frames is read in parts", deep},
      {"a sample takes so many batches at most", batches_end},
      {"a list of threads that never ends is given up, and searched again later", list_without_end},
      {"threads of many ractors are found in several samples", many_ractors},
      {"a thread is searched for once a sample", searched_once},
      {"who holds the lock may be running, and who began last", running},
      {"lines are found by the index, zero words too", lines})
