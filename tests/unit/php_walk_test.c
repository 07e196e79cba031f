/*
 * PHP in a memory made here (php_process.h): attached to, walked, named, for a version of each layout; and each way in
 * which what is read contradicts itself.
 */
#include "base/utf8.h"
#include "php_process.h"
#include "runtime/php/walk.h"
#include "test.h"

#include <stdio.h>

static struct php_process process;
static struct php *php;
static uint64_t plan[RUNTIME_PLAN_MAX / sizeof(uint64_t)];
static struct runtime_stack stack;
static const char expected[] = "<main> 1:3 > Shop::sell 10:11 > array_map > Shop::{closure} 20:23";
static const char without_closure[] = "<main> 1:3 > Shop::sell 10:11 > array_map";
static const struct php_family *const family_8_2 = &php_families[6];

static void make(const struct php_family *family)
{
    struct err err = {0};
    php_make(&process, family);
    memset(plan, 0, sizeof plan);
    CHECK_INT(php_process_attach(&process, &php, &err), RUNTIME_YES);
    CHECK_TEXT(err.text, "");
}

static const struct runtime_registers *registers;

static void walk(bool proven, bool parts)
{
    struct memory_batch memory = {php_process_read, &process};
    struct runtime_thread of = {.tid = PHP_TID, .registers = registers, .proven_later = proven, .takes_parts = parts};
    process.reads = process.pieces = 0;
    php_walk(php, plan, &of, &memory, &stack);
}

/* The stack's names, root first, "a > b", with lines. */
static const char *names(void)
{
    static char text[4096];
    struct memory_batch memory = {php_process_read, &process};
    static struct runtime_name name[RUNTIME_FRAMES_MAX];
    struct buf out;
    void *open = php_open_names(php);
    buf_init(&out, sizeof text);
    php_name_frames(open, stack.frame, stack.count, &memory, name);
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
    php_close_names(open);
    return text;
}

static void each_layout(void)
{
    for (size_t i = 0; i < PHP_FAMILIES; i++) {
        for (unsigned proven = 0; proven < 2; proven++) {
            make(&php_families[i]);
            walk(proven, false);
            CHECK_INT(stack.end, RUNTIME_COMPLETE);
            CHECK_TEXT(names(), expected);
            CHECK_INT(stack.frame[0].flags, RUNTIME_FRAME_ENTRY);
            CHECK_INT(stack.frame[1].flags, 0);
            CHECK_INT(stack.frame[3].flags, RUNTIME_FRAME_ENTRY);
            php_detach(php);
        }
    }
}

/* "method|script|URL" of the last walk's; "": it has none. */
static const char *request(void)
{
    static char text[RUNTIME_TASK_MAX + 1];
    memcpy(text, stack.task, stack.task_bytes);
    text[stack.task_bytes] = '\0';
    for (uint8_t i = 0; i + 1 < stack.task_bytes; i++) {
        text[i] = text[i] != '\0' ? text[i] : '|';
    }
    CHECK_INT((stack.marks & RUNTIME_OF_REQUEST) != 0, stack.task_bytes > 0);
    return text;
}

static void serves(bool urls, bool threads)
{
    if (threads) {
        php_make_threads(&process, family_8_2, 5);
    } else {
        php_make(&process, family_8_2);
    }
    process.shows_urls = urls;
    memset(plan, 0, sizeof plan);
    CHECK_INT(php_process_attach(&process, &php, NULL), RUNTIME_YES);
}

static void requests(void)
{
    for (unsigned how = 0; how < 4; how++) {
        serves(how & 1, false);
        walk(how & 2, false);
        CHECK_TEXT(request(), how & 1 ? "GET|/srv/shop.php|/shop?id=7" : "GET|/srv/shop.php|");
        CHECK_TEXT(names(), expected);
        process.bytes[AT_WORD] = 'P'; /* the next one's lies at the same place */
        php_put(&process, AT_REQUEST + 40, php_there(AT_WORD + 0x300)); /* or elsewhere */
        walk(how & 2, false);
        CHECK_TEXT(request(), how & 1 ? "PET|/shop|/shop?id=7" : "PET|/shop|");
        php_put(&process, AT_GLOBALS + family_8_2->root + 32, 0);
        walk(how & 2, false);
        CHECK_TEXT(request(), "");
        php_detach(php);
        serves(how & 1, true);
        walk(how & 2, false);
        CHECK_TEXT(request(), how & 1 ? "GET|/srv/shop.php|/shop?id=7" : "GET|/srv/shop.php|");
        php_detach(php);
    }
}

/* No method: none is served. What is no text is not shown, and what is long is cut between characters. */
static void requests_of_any_bytes(void)
{
    static const uint64_t methods[] = {0, 1, PHP_BASE + AT_WORD + 0x100, PHP_BASE + PHP_BYTES - 2,
                                       PHP_BASE + PHP_BYTES};
    serves(true, false);
    memset(process.bytes + PHP_BYTES - 2, 'G', 2);
    for (unsigned i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        php_put(&process, AT_REQUEST + 8, methods[i]);
        walk(true, false);
        CHECK_TEXT(names(), expected);
        CHECK_TEXT(request(), methods[i] == PHP_BASE + PHP_BYTES - 2 ? "GG|/srv/shop.php|/shop?id=7" : "");
    }
    php_put(&process, AT_REQUEST + 8, php_there(AT_WORD));
    for (unsigned i = 0; i < 0x100; i += 2) { /* of two bytes each */
        memcpy(process.bytes + AT_WORD + 0x200 + i, "\xc3\xa4", 2);
        memcpy(process.bytes + AT_WORD + 0x300 + i, "a\x80", 2);
    }
    walk(false, false);
    const char *text = request();
    CHECK_INT(stack.task_bytes, 4 + 107 + 128 + 5 + 1);
    CHECK(utf8_valid(str_of(text)));
    CHECK(memcmp(text + 4 + 106, "|a?a?", 5) == 0);
    php_detach(php);
}

static void unknown_versions(void)
{
    struct php_layout layout;
    struct err err = {0};
    CHECK(!php_layout_of(PHP_VERSION(8, 7, 0), &layout, &err));
    CHECK_TEXT(err.text, "PHP 8.7.0 is not known here; 7.1 to 8.6 can be read");
    CHECK(!php_layout_of(PHP_VERSION(7, 0, 33), &layout, &err));
}

static void idle(void)
{
    make(family_8_2);
    php_put(&process, AT_GLOBALS + 488, 0);
    walk(false, true);
    CHECK_INT(stack.end, RUNTIME_EMPTY);
    CHECK_INT(stack.count, 0);
    CHECK_INT(process.reads, 1);
    php_detach(php);
    struct err err = {0}; /* one that never had a request, either */
    memset(process.bytes + AT_GLOBALS + 456, 0, 40);
    CHECK_INT(php_process_attach(&process, &php, &err), RUNTIME_YES);
    struct memory_batch memory = {php_process_read, &process};
    struct runtime_thread other = {.tid = PHP_TID + 1};
    php_walk(php, plan, &other, &memory, &stack);
    CHECK_INT(stack.end, RUNTIME_NO_THREAD);
    php_detach(php);
}

static void refused(uint64_t at, uint64_t value)
{
    struct err err = {0};
    php_make(&process, family_8_2);
    php_put(&process, at, value);
    CHECK_INT(php_process_attach(&process, &php, &err), RUNTIME_UNSUPPORTED);
    CHECK(err.kind != ERR_NONE && php == NULL);
}

static void contradictions(void)
{
    refused(AT_GLOBALS + 480, 4096);                    /* pages of another size */
    refused(AT_GLOBALS + 488, php_there(PHP_BYTES));    /* no frame */
    refused(AT_GLOBALS + 472, 0);                       /* no page */
    refused(AT_PAGE + 32 + 24, php_there(AT_CLASS));    /* what runs is no function */
    refused(AT_PAGE + 32 + 48, 8);                      /* a list that leads nowhere */
    php_make(&process, family_8_2);
    php_put(&process, AT_PAGE + 32, php_there(AT_CODE + 0x500)); /* instructions of others */
    php_put(&process, AT_PAGE + 32 + FRAME_STEP, php_there(AT_CODE));
    struct err err = {0};
    CHECK_INT(php_process_attach(&process, &php, &err), RUNTIME_UNSUPPORTED);
}

static void changed(uint64_t at, uint64_t value, enum runtime_end end)
{
    make(family_8_2);
    walk(true, false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    php_put(&process, at, value);
    walk(true, false);
    CHECK_INT(stack.end, end);
    php_detach(php);
}

static void contradicting_stacks(void)
{
    uint64_t leaf = AT_PAGE + 32 + 3 * FRAME_STEP;
    changed(leaf + 24, 8, RUNTIME_TORN);                       /* no function */
    changed(leaf + 24, php_there(AT_CLASS), RUNTIME_TORN);     /* of no kind */
    changed(leaf + 48, 12, RUNTIME_TORN);                      /* nowhere */
    changed(leaf + 48, php_there(PHP_BYTES), RUNTIME_TORN);
    changed(AT_GLOBALS + 488, php_there(leaf + 4), RUNTIME_TORN);
    changed(leaf + 24, 0, RUNTIME_COMPLETE);                   /* a frame of C code is nobody's */
    changed(leaf, 0, RUNTIME_COMPLETE);                        /* not saved yet */
    make(family_8_2);
    walk(true, false);
    process.gone = true;
    walk(true, false);
    CHECK_INT(stack.end, RUNTIME_UNREADABLE);
    php_detach(php);
}

static void list_without_end(void)
{
    make(family_8_2);
    php_put(&process, AT_PAGE + 32 + 48, php_there(process.leaf));
    walk(true, false);
    CHECK_INT(stack.end, RUNTIME_TORN);
    CHECK(process.reads <= 2);
    walk(false, true);
    CHECK_INT(stack.end, RUNTIME_TORN);
    php_detach(php);
    make(family_8_2); /* through the heap, where frames are in no order */
    php_push_at(&process, AT_GENERATOR, F_SELL, 4, INFO_OF_GENERATOR);
    php_push(&process, F_SELL, 0, 0);
    php_put(&process, AT_GENERATOR + 48, php_there(process.leaf));
    walk(true, false);
    CHECK_INT(stack.end, RUNTIME_TORN);
    CHECK(process.reads <= 4);
    php_detach(php);
}

/* A fiber's pages are smaller. */
static void in_fiber(void)
{
    struct err err = {0};
    php_make(&process, family_8_2);
    php_put(&process, AT_GLOBALS + 480, 16384);
    CHECK_INT(php_process_attach(&process, &php, &err), RUNTIME_YES);
    memset(plan, 0, sizeof plan);
    walk(false, false);
    CHECK_TEXT(names(), expected);
    php_detach(php);
}

/* A chain of generators is whole, by whatever layout, and from the second sample on in a few reads. */
static void yield_from(void)
{
    for (size_t i = 0; i < PHP_FAMILIES; i++) {
        for (unsigned proven = 0; proven < 2; proven++) {
            make(&php_families[i]);
            php_push_generators(&process, 0, 3);
            php_push(&process, F_SELL, 3, 0);
            walk(proven, false);
            CHECK_INT(stack.end, RUNTIME_COMPLETE);
            CHECK_INT(stack.count, 4 + 4 + 1);
            walk(proven, false);
            CHECK_INT(stack.count, 4 + 4 + 1);
            CHECK(process.reads <= 4);
            php_put(&process, AT_OBJECT + 0x200 * 3 + php_families[i].generator, php_there(AT_GENERATOR));
            walk(proven, false); /* it ends elsewhere */
            CHECK_INT(stack.end, RUNTIME_TORN);
            php_detach(php);
        }
    }
}

static void yield_from_many(void)
{
    make(family_8_2);
    php_push_generators(&process, 0, PLAN_OUTER + 8);
    walk(true, false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_INT(stack.count, 4 + 1 + PLAN_OUTER);
    CHECK(stack.frame[0].flags & RUNTIME_FRAME_CUT);
    php_put(&process, AT_OBJECT + 0x200 + 56 + 96, php_there(AT_OBJECT)); /* a ring */
    walk(true, false);
    CHECK(process.reads <= PLAN_OUTER + 6);
    php_detach(php);
}

/* As in a pipeline of closures. */
static void many_without_names(void)
{
    make(family_8_2);
    for (unsigned i = 0; i < 150; i++) {
        php_push(&process, F_CLOSURE, 4, 0);
    }
    walk(true, false);
    CHECK_INT(stack.count, 154);
    CHECK(strstr(names(), "sell 10:11 > array_map > Shop::{closure} 20:23 > Shop::{closure} 20:22 >") != NULL);
    CHECK(strstr(names(), " >  > ") == NULL);
    php_detach(php);
}

static void registers_tell_the_leaf(void)
{
    make(family_8_2);
    php_push(&process, F_SELL, 0, 0);
    php->keeps_in_registers = true;
    struct runtime_registers r = {.kept = {php_there(process.leaf), php_there(AT_CODE + 0x400 * F_SELL + 32 * 7)}};
    registers = &r;
    walk(true, false);
    CHECK_INT(stack.frame[0].position, 7);
    walk(false, false); /* it may have run on since */
    CHECK_INT(stack.frame[0].position, 0);
    r.kept[1] += 8; /* no instruction */
    walk(true, false);
    CHECK_INT(stack.frame[0].position, 0);
    r = (struct runtime_registers){.kept = {php_there(process.leaf - 8), php_there(AT_CODE + 0x400 * F_SELL + 32 * 7)}};
    walk(true, false); /* another frame's */
    CHECK_INT(stack.frame[0].position, 0);
    registers = NULL;
    php_detach(php);
}

static void of_threads(void)
{
    static const uint32_t slots[] = {1, 7, 64};
    struct err err = {0};
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        php_make_threads(&process, family_8_2, slots[i]);
        CHECK_INT(php_process_attach(&process, &php, &err), RUNTIME_YES);
        CHECK_TEXT(err.text, "");
        memset(plan, 0, sizeof plan);
        walk(true, false);
        CHECK_TEXT(names(), expected);
        walk(false, false);
        CHECK_INT(process.reads, 2);
        CHECK_TEXT(names(), expected);
        php_put_u32(&process, AT_PTHREAD + 0x4000 + 720, PHP_TID + 2); /* another one has its place */
        walk(true, false);
        CHECK_INT(stack.end, RUNTIME_NO_THREAD);
        walk(true, false);
        CHECK_INT(stack.end, RUNTIME_NO_THREAD);
        php_put_u32(&process, AT_PTHREAD + 0x4000 + 720, PHP_TID);
        memset(plan, 0, sizeof plan);
        php_put(&process, AT_THREAD + 24, php_there(AT_THREAD)); /* a list without end */
        walk(true, false);
        CHECK(process.reads <= 2 * THREADS_LIST_MAX + 8);
        php_detach(php);
    }
}

static void of_threads_refused(void)
{
    static const uint64_t at[] = {AT_ID, AT_OFFSET, AT_TABLE, AT_SIZE, AT_THREAD, AT_STORAGE + 16};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        struct err err = {0};
        php_make_threads(&process, family_8_2, 1);
        php_put_u32(&process, at[i], 0);
        CHECK_INT(php_process_attach(&process, &php, &err), RUNTIME_UNSUPPORTED);
        CHECK(err.kind != ERR_NONE && php == NULL);
    }
}

/* Those of earlier requests leave room for others. */
static void other_generators(void)
{
    make(family_8_2);
    for (unsigned i = 0; i < 3 * WALK_LONE; i++) {
        php_make(&process, family_8_2);
        php_push_at(&process, AT_GENERATOR + 0x100 * i, F_SELL, 4, INFO_TOP_CALL | INFO_OF_GENERATOR);
        php_push(&process, F_SELL, 0, 0);
        walk(false, false);
        CHECK_INT(stack.count, 6);
        CHECK_INT(((struct php_plan *)plan)->lone_count, 1);
    }
    php_detach(php);
}

/* ---- a thread that runs on ---- */

static unsigned pops_at;

static void pop(struct php_process *p, unsigned piece)
{
    if (piece == pops_at) {
        php_put(p, AT_GLOBALS + 488, php_there(p->leaf - FRAME_STEP));
        memset(p->bytes + p->leaf, 0x55, FRAME_STEP);
    }
}

static void runs_on(void)
{
    unsigned parts = 0, whole = 0;
    for (unsigned piece = 0; piece < 24; piece++) {
        make(family_8_2);
        walk(false, true); /* the plan is right from here on */
        process.at_piece = pop;
        pops_at = piece;
        walk(false, true);
        process.at_piece = NULL;
        bool is_part = stack.end == RUNTIME_COMPLETE && (stack.frame[0].flags & RUNTIME_FRAME_PART) != 0;
        parts += is_part;
        whole += stack.end == RUNTIME_COMPLETE && !is_part;
        CHECK_INT(stack.end, RUNTIME_COMPLETE);
        const char *text = names();
        CHECK(strcmp(text, expected) == 0 || strcmp(text, without_closure) == 0);
        php_detach(php);
    }
    CHECK(parts > 0 && whole > 0);
}

/* A generator's frame lies elsewhere: found, then predicted. */
static void generator(void)
{
    make(family_8_2);
    php_push_at(&process, AT_GENERATOR, F_SELL, 4, INFO_TOP_CALL);
    php_push(&process, F_SELL, 0, 0);
    walk(false, false);
    CHECK_INT(stack.count, 6);
    walk(false, false);
    CHECK_INT(stack.count, 6);
    CHECK_INT(process.reads, 2); /* the lines of what has no name */
    process.leaf = AT_GENERATOR; /* it is the leaf */
    php_put(&process, AT_GLOBALS + 488, php_there(AT_GENERATOR));
    memset(plan, 0, sizeof plan);
    walk(false, false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_INT(stack.count, 5);
    php_detach(php);
}

static void deep(void)
{
    make(family_8_2);
    for (unsigned i = 0; i < 1500; i++) {
        php_push(&process, F_SELL, 3, 0);
    }
    walk(false, false);
    CHECK_INT(stack.end, RUNTIME_COMPLETE);
    CHECK_INT(stack.count, RUNTIME_FRAMES_MAX);
    CHECK_INT(stack.frame[RUNTIME_FRAMES_MAX * 3 / 4 - 1].flags, RUNTIME_FRAME_CUT);
    stack.frame[0] = stack.frame[RUNTIME_FRAMES_MAX - 1];
    stack.frame[1] = stack.frame[RUNTIME_FRAMES_MAX - 2];
    stack.count = 2;
    CHECK_TEXT(names(), "Shop::sell 10:11 > <main> 1:3");
    php_detach(php);
}

static void other_function(void)
{
    make(family_8_2);
    walk(true, false);
    php_put(&process, AT_FUNCTION + 0x200 * F_SELL + 8, php_there(AT_STRING + 0x100));
    CHECK_TEXT(names(), "<main> 1:3 >  > array_map > Shop::{closure} 20:23");
    php_put(&process, AT_STRING + 0x200, 0x7f1200000000); /* the class's name is freed */
    CHECK_TEXT(names(), "<main> 1:3 >  > array_map > ");
    memset(process.bytes + AT_STRING, 0x7f, 24); /* the file's, too */
    CHECK_TEXT(names(), " >  > array_map > ");
    php_detach(php);
}

TESTS({"each layout is attached to, walked and named", each_layout},
      {"the request that a thread serves is told", requests},
      {"what a request tells may be any bytes", requests_of_any_bytes},
      {"a version that is not known is refused by name", unknown_versions},
      {"a process without a request is empty, and takes one read", idle},
      {"what contradicts itself is not attached to", contradictions},
      {"a stack that contradicts itself is torn", contradicting_stacks},
      {"a list that never ends is bounded", list_without_end},
      {"a fiber's pages are known", in_fiber},
      {"generators that yield from others are all there", yield_from},
      {"a chain of them is bounded", yield_from_many},
      {"of many functions without names all have what they are called by", many_without_names},
      {"registers tell where the leaf is, if they are its own", registers_tell_the_leaf},
      {"frames on the heap that were not met again are forgotten", other_generators},
      {"of a build for threads the thread's own stack is read", of_threads},
      {"a table of threads that contradicts itself is not believed", of_threads_refused},
      {"of a thread that runs on what stood is kept, or it is read again", runs_on},
      {"a frame on the heap is read, and predicted from then on", generator},
      {"of a deep stack the middle is left out", deep},
      {"a function that was freed has no name, and not another's", other_function})
