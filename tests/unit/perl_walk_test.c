/*
 * Perl in a memory made here (perl_process.h): attached to, walked, named, for a version of each layout; and each way
 * in which what is read contradicts itself.
 */
#include "perl_process.h"
#include "runtime/perl/walk.h"
#include "test.h"

#include <stdlib.h>

static struct perl_process process;
static struct perl *perl;
static uint64_t plan[RUNTIME_PLAN_MAX / sizeof(uint64_t)];
static struct runtime_stack stack;
static const struct perl_family *const family_5_36 = &perl_families[4];
static const char whole[] = "<main> 1:3 > Shop::sell 10:11 > (eval) 11:12 >  > main::b\xc3\xbfy 20:21";
static const char until_eval[] = "<main> 1:3 > Shop::sell 10:11 > (eval) 11:";

static void make(const struct perl_family *family)
{
    struct err err = {0};
    perl_make(&process, family);
    memset(plan, 0, sizeof plan);
    CHECK_INT(perl_process_attach(&process, &perl, &err), RUNTIME_YES);
    CHECK_TEXT(err.text, "");
}

static void walk_at(uint64_t ip, bool proven, bool parts)
{
    struct memory_batch memory = {perl_process_read, &process};
    const struct runtime_registers registers = {ip, 0, 0};
    struct runtime_thread of = {
        .tid = PERL_TID, .registers = &registers, .proven_later = proven, .takes_parts = parts};
    process.reads = process.pieces = 0;
    perl_walk(perl, plan, &of, &memory, &stack);
}

static void walk(bool proven, bool parts)
{
    walk_at(0, proven, parts);
}

/* The stack's names, root first, "a > b", with lines. */
static const char *names(void)
{
    static char text[65536];
    struct memory_batch memory = {perl_process_read, &process};
    struct runtime_name name[RUNTIME_FRAMES_MAX];
    struct buf out;
    void *open = perl_open_names(perl);
    buf_init(&out, sizeof text);
    perl_name_frames(open, stack.frame, stack.count, &memory, name);
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
    perl_close_names(open);
    return text;
}

static void each_layout(void)
{
    for (size_t i = 0; i < PERL_FAMILIES; i++) {
        make(&perl_families[i]);
        walk(true, false);
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        CHECK_TEXT(names(), whole);
        CHECK_INT(stack.frame[1].flags, RUNTIME_FRAME_SHIM);
        CHECK_INT(stack.frame[4].flags, RUNTIME_FRAME_ENTRY);
        walk(true, false);
        CHECK_INT(process.reads, 3); /* the eval's file's name is the third */
        walk(false, false);
        CHECK_TEXT(names(), whole);
        perl_detach(perl);
    }
}

static void unknown_versions(void)
{
    struct perl_layout layout;
    struct err err = {0};
    CHECK(!perl_layout_of(PERL_VERSION(46, 0), &layout, &err));
    CHECK_TEXT(err.text, "Perl 5.46.0 is not known here; 5.28 to 5.44 can be read");
    CHECK(!perl_layout_of(PERL_VERSION(26, 3), &layout, &err));
    CHECK(!perl_layout_of(PERL_VERSION(35, 1), &layout, &err));
    CHECK(perl_layout_of(PERL_VERSION(28, 0), &layout, &err));
}

static enum runtime_end walk_other(void)
{
    struct memory_batch memory = {perl_process_read, &process};
    struct runtime_thread of = {.tid = PERL_OTHER_TID, .proven_later = true};
    process.reads = 0;
    perl_walk(perl, plan, &of, &memory, &stack);
    return stack.end;
}

static void other_threads(void)
{
    make(family_5_36);
    CHECK_INT(walk_other(), RUNTIME_NO_THREAD);
    perl_add_thread(&process, 0x780);
    for (unsigned i = 0; i < 40 && walk_other() == RUNTIME_NO_THREAD; i++) {
    }
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_TEXT(names(), "Shop::sell 10:11");
    CHECK_INT(stack.frame[0].flags, RUNTIME_FRAME_ENTRY);
    (void)walk_other();
    CHECK_INT(process.reads, 2);
    perl_put(&process, AT_POOL + 0x80 + 16, 0); /* it has ended */
    CHECK_INT(walk_other(), RUNTIME_NO_THREAD);
    CHECK_INT(walk_other(), RUNTIME_NO_THREAD);
    CHECK_INT(walk_other(), RUNTIME_NO_THREAD);
    CHECK_INT(process.reads, 0); /* is not looked for each time */
    walk(true, false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    perl_detach(perl);
}

/* In a process that another thread has forked the first interpreter is nobody's. */
static void forked(void)
{
    struct err err = {0};
    perl_make(&process, family_5_36);
    perl_add_thread(&process, 0x780);
    perl_put32(&process, AT_PTHREAD + 720, 99);
    perl_put32(&process, AT_PTHREAD + 0x400 + 720, PERL_TID);
    CHECK_INT(perl_process_attach(&process, &perl, &err), RUNTIME_YES);
    memset(plan, 0, sizeof plan);
    walk(true, false);
    CHECK_TEXT(names(), "Shop::sell 10:11");
    perl_detach(perl);
}

static void threads_that_contradict(void)
{
    static const struct {
        uint64_t at, value;
    } changes[] = {
        {AT_GLOBALS + 12, 7},                       /* no hash */
        {AT_GLOBALS + 0x40 + 24, UINT64_MAX},       /* of no size */
        {AT_GLOBALS + 0x100, PERL_BASE + AT_GLOBALS + 0x100}, /* entries in a ring, */
        {AT_GLOBALS + 0x148, 0},                    /* without the key */
        {AT_POOL + 16, PERL_BASE + AT_OTHER},       /* not the first one's */
        {AT_POOL + 8, PERL_BASE + AT_TEXT},
        {AT_POOL + 0x80 + 104, 12},
        {AT_PTHREAD + 0x400 + 720, 99},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        make(family_5_36);
        perl_add_thread(&process, 0x780);
        perl_put(&process, changes[i].at, changes[i].value);
        if (i == 2) {
            perl_put(&process, AT_GLOBALS + 0x148, 0);
        }
        CHECK_INT(walk_other(), RUNTIME_NO_THREAD);
        CHECK(process.reads < 140);
        perl_detach(perl);
    }
}

static void refused(uint64_t at, uint64_t value)
{
    struct err err = {0};
    perl_make(&process, family_5_36);
    perl_put(&process, at, value);
    CHECK_INT(perl_process_attach(&process, &perl, &err), RUNTIME_UNSUPPORTED);
    CHECK(err.kind != ERR_NONE && perl == NULL);
}

static void contradictions(void)
{
    refused(AT_POINTER, 0);                                  /* has not started */
    refused(AT_POINTER, perl_there(AT_TEXT));
    refused(AT_INTERPRETER + 0xe0, perl_there(AT_TEXT));     /* no stackinfo */
    refused(AT_INFO + 0x40 + 16, 0);                         /* does not lead to the main program */
    refused(AT_INFO + 0x40 + 16, perl_there(AT_INFO + 0x40)); /* never ends */
    refused(AT_INFO + 32, 1401ULL | 1400ULL << 32);          /* more contexts than there is room for */
    refused(AT_INFO + 8, 3);
}

/* ---- what contradicts itself ---- */

static void changed(uint64_t at, uint64_t value, enum runtime_end end)
{
    make(family_5_36);
    walk(true, false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    perl_put(&process, at, value);
    walk(true, false);
    CHECK_INT(stack.end, end);
    perl_detach(perl);
}

static void contradicting_stacks(void)
{
    uint64_t sell = AT_CONTEXTS + 0x68;
    changed(sell + 0x48, 3, RUNTIME_TORN);                      /* no sub */
    changed(sell + 0x48, perl_there(AT_GV), RUNTIME_TORN);      /* a glob */
    changed(sell + 0x48, perl_there(PERL_BYTES), RUNTIME_TORN);
    changed(sell + 16, 0, RUNTIME_TORN);                        /* called from nowhere */
    changed(AT_INTERPRETER + 0xe0, perl_there(AT_TEXT), RUNTIME_TORN);
    changed(AT_INFO + 0x40 + 16, perl_there(AT_INFO + 0x40), RUNTIME_TORN); /* a ring */
    make(family_5_36);
    perl_put(&process, AT_INFO + 0x40 + 16, perl_there(AT_INFO + 0x40));
    walk(true, false);
    CHECK_INT(stack.end, RUNTIME_TORN); /* nothing is known yet */
    perl_detach(perl);
    make(family_5_36);
    process.gone = true;
    walk(true, false);
    CHECK_INT(stack.end, RUNTIME_UNREADABLE);
    perl_detach(perl);
}

static void other_function(void)
{
    make(family_5_36);
    walk(true, false);
    perl_put(&process, AT_CV + 0x200 + 0x40 + 48, 99); /* other code where it was */
    CHECK_TEXT(names(), "<main> 1:3 > Shop::sell 10:11 > (eval) 11:12 >  > ");
    memcpy(process.bytes + AT_TEXT, "cart.pl", 8);     /* another file's name where it was */
    CHECK_TEXT(names(), "<main> 1:3 > Shop::sell 10:11 > (eval) >  > ");
    perl_detach(perl);
}

static void while_it_is_compiled(void)
{
    make(family_5_36);
    perl_put(&process, AT_CONTEXTS + 0x68 + 16, perl_there(AT_INTERPRETER + 0x790)); /* a BEGIN block */
    walk(true, false);
    CHECK_TEXT(names(), "Shop::sell 10:11 > (eval) 11:12 >  > main::b\xc3\xbfy 20:21");
    perl_put(&process, AT_INTERPRETER + 0xe0, perl_there(AT_INFO));
    perl_put32(&process, AT_INFO + 32, UINT32_MAX); /* no calls */
    perl_put(&process, AT_INTERPRETER + 0xd0, perl_there(AT_INTERPRETER + 0x790));
    walk(true, false);
    CHECK_INT(stack.end, RUNTIME_EMPTY);
    perl_detach(perl);
}

/* ---- the newest context ---- */

static void unfilled(void)
{
    struct err err = {0};
    perl_make(&process, family_5_36);
    process.binary.entersub = 0x100;
    process.binary.entersub_limit = 0x200;
    CHECK_INT(perl_process_attach(&process, &perl, &err), RUNTIME_YES);
    uint64_t newest = perl_context(&process, 1, 1);
    perl_put(&process, newest + 0x40, 77);            /* the caller's pad */
    perl_put(&process, AT_INTERPRETER + 0x120, perl_there(AT_CV + 0x200 + 0x180)); /* its own */
    walk_at(PERL_BASE + 0x110, true, false);
    CHECK_TEXT(names(), whole);                       /* it calls another sub */
    perl_put(&process, AT_INTERPRETER + 0x120, 77);
    walk_at(PERL_BASE + 0x110, true, false);
    CHECK_TEXT(names(), "<main> 1:3 > Shop::sell 10:11 > (eval) 11:21 > "); /* it is being called */
    perl_put(&process, AT_INTERPRETER + 0x120, 78);   /* what was there is another caller's */
    walk_at(PERL_BASE + 0x110, true, false);
    CHECK_INT(stack.count, 4);
    walk_at(PERL_BASE + 0x210, true, false);          /* stands elsewhere */
    CHECK_INT(stack.count, 5);
    perl_put(&process, newest + 0x48, 0);             /* it is being left */
    walk(true, false);
    CHECK_TEXT(names(), "<main> 1:3 > Shop::sell 10:11 > (eval) 11:12 > ");
    perl_put(&process, newest + 48, 0);               /* the loop that ran it ends */
    walk(true, false);
    CHECK_TEXT(names(), "<main> 1:3 > Shop::sell 10:11 > (eval) 11:12 >  > ");
    perl_put(&process, newest + 0x48, perl_there(AT_CV + 0x200));
    process.index[0] = 1;                             /* what it frees calls Perl */
    perl_put32(&process, AT_INFO + 32, 1);
    perl_put(&process, perl_context(&process, 0, 1) + 0x48, 0);
    walk(true, false);
    CHECK_TEXT(names(), "<main> 1:3 >  > main::b\xc3\xbfy 20:21");
    perl_detach(perl);
}

/* try is part of its sub; what defer puts off is, too, but a loop runs it. */
static void no_functions(void)
{
    make(family_5_36);
    perl_put(&process, AT_INTERPRETER + 0xe0, perl_there(AT_INFO));
    perl_push(&process, 0, KIND_EVAL | 0x80, COP_EVAL, 0, perl_there(AT_COP));
    perl_push(&process, 0, 13, COP_EVAL, 0, 0);
    walk(true, false);
    CHECK_TEXT(names(), "<main> 1:3 > Shop::sell 10:11 > (eval) 11:21 > ");
    CHECK_INT(stack.frame[0].flags, RUNTIME_FRAME_SHIM);
    perl_detach(perl);
}

/* ---- a thread that runs on ---- */

static unsigned pops_at;

/* The sort ends, and its contexts' memory is another's. */
static void pop(struct perl_process *p, unsigned piece)
{
    if (piece == pops_at) {
        perl_put(p, AT_INTERPRETER + 0xd0, perl_there(AT_COP + 0x40 * COP_BLOCK));
        perl_put(p, AT_INTERPRETER + 0xe0, perl_there(AT_INFO));
        memset(p->bytes + perl_context(p, 1, 0), 0x55, 2 * 0x68);
        perl_put32(p, AT_INFO + 0x40 + 32, UINT32_MAX);
    }
}

static void runs_on(void)
{
    unsigned parts = 0, all = 0;
    for (unsigned piece = 0; piece < 24; piece++) {
        make(family_5_36);
        walk(false, true); /* the plan is right from here on */
        process.at_piece = pop;
        pops_at = piece;
        walk(false, true);
        process.at_piece = NULL;
        bool is_part = stack.end == RUNTIME_COMPLETE && (stack.frame[0].flags & RUNTIME_FRAME_PART) != 0;
        parts += is_part;
        all += stack.end == RUNTIME_COMPLETE && !is_part;
        const char *text = stack.end == RUNTIME_COMPLETE ? names() : "";
        CHECK(stack.end != RUNTIME_COMPLETE || strcmp(text, whole) == 0 ||
              strncmp(text, until_eval, sizeof until_eval - 1) == 0);
        perl_detach(perl);
    }
    CHECK(parts > 0 && all > 0);
}

/* A sub is called and left while both copies are read without it. */
static void calls(struct perl_process *p, unsigned piece)
{
    if (piece == 7) {
        perl_put(p, AT_INTERPRETER + 0xd0, perl_there(AT_COP + 0x40 * COP_START));
        perl_put(p, AT_INTERPRETER + 0x120, 99);
    } else if (piece == 10) {
        perl_put(p, AT_INTERPRETER + 0x120, 0);
    }
}

static void line_of_another(void)
{
    make(family_5_36);
    walk(false, false);
    process.at_piece = calls;
    walk(false, false);
    process.at_piece = NULL;
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_TEXT(names(), "<main> 1:3 > Shop::sell 10:11 > (eval) 11:12 >  > main::b\xc3\xbfy 20:0");
    perl_detach(perl);
}

/* ---- deep stacks ---- */

static void make_deep(unsigned depth)
{
    make(family_5_36);
    for (unsigned i = 0; i < depth; i++) {
        perl_push(&process, 0, KIND_SUB, COP_SELL, CV_SELL, perl_there(AT_COP));
    }
}

static void deep(void)
{
    make_deep(700);
    for (int proven = 0; proven < 2; proven++) {
        memset(plan, 0, sizeof plan);
        walk(proven == 1, false);
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        CHECK_INT(stack.count, 705);
        CHECK(process.pieces < 200); /* what 700 calls from one place point to is read once for forty of them */
        CHECK(str_ends(str_of(names()), STR(" > main::b\xc3\xbfy 20:21")));
    }
    perl_detach(perl);
    make_deep(1300);
    for (int proven = 0; proven < 2; proven++) {
        walk(proven == 1, false);
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        CHECK_INT(stack.count, RUNTIME_FRAMES_MAX);
        CHECK((stack.frame[RUNTIME_FRAMES_MAX * 3 / 4 - 1].flags & RUNTIME_FRAME_CUT) != 0);
        CHECK(strncmp(names(), "<main> 1:3 > Shop::sell 10:11 > (eval) 11:11 > Shop::sell", 50) == 0);
        CHECK(str_ends(str_of(names()), STR(" > main::b\xc3\xbfy 20:21")));
    }
    perl_detach(perl);
}

static void grows(void)
{
    make(family_5_36);
    walk(true, false);
    perl_put(&process, AT_INTERPRETER + 0xe0, perl_there(AT_INFO)); /* the sort has ended */
    perl_put(&process, AT_INTERPRETER + 0xd0, perl_there(AT_COP + 0x40 * COP_SELL));
    walk(true, false);
    CHECK_TEXT(names(), "<main> 1:3 > Shop::sell 10:11 > (eval) 11:11");
    for (unsigned i = 0; i < 20; i++) {
        perl_push(&process, 0, KIND_SUB, COP_SELL, CV_SELL, perl_there(AT_COP));
        walk(true, false);
        CHECK_INT(stack.count, 4 + i);
    }
    perl_put(&process, AT_INTERPRETER + 0xe0, perl_there(AT_INFO + 0x40)); /* and sorts anew, deeper */
    walk(true, false);
    CHECK_INT(stack.count, 25);
    perl_put(&process, AT_INTERPRETER + 0xe0, perl_there(AT_INFO));
    walk(true, false);
    memcpy(process.bytes + AT_ELSEWHERE, process.bytes + AT_CONTEXTS, CONTEXTS_BYTES); /* the array gets more room */
    memset(process.bytes + AT_CONTEXTS, 0x55, CONTEXTS_BYTES);
    perl_put(&process, AT_INFO + 8, perl_there(AT_ELSEWHERE));
    perl_put(&process, AT_INTERPRETER + 0xe0, perl_there(AT_INFO + 0x40));
    walk(true, false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_INT(stack.count, 25);
    perl_detach(perl);
}

TESTS({"each layout is attached to, walked and named; a warm stack takes three reads", each_layout},
      {"a version that is not known is refused by name", unknown_versions},
      {"a thread of the module threads is read while it runs", other_threads},
      {"a process that a thread has forked is that one's", forked},
      {"what contradicts itself is no thread", threads_that_contradict},
      {"what contradicts itself is not attached to", contradictions},
      {"a stack that contradicts itself is torn", contradicting_stacks},
      {"a sub or a file's name that was freed has no name, and not another's", other_function},
      {"a program that is compiled does not run", while_it_is_compiled},
      {"a context that is not filled in yet, or is being left, is none", unfilled},
      {"of a thread that runs on what stood is kept, or it is read again", runs_on},
      {"try and defer are no functions", no_functions},
      {"a line that may be another sub's is not told", line_of_another},
      {"deep stacks are read in parts, and the middle left out", deep},
      {"arrays of contexts come, grow and go", grows})
