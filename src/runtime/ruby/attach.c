/*
 * Where one process has its virtual machine, threads and names. Every link found is held against another one before
 * it is believed: a thread points back to the virtual machine, its execution context to the thread, its stack holds the
 * frames, and libc knows the thread's number. The process runs on meanwhile, so a contradiction is read again before it
 * counts.
 */
#include "runtime/common/find.h"
#include "runtime/ruby/private.h"

#include <errno.h>
#include <stdlib.h>

enum {
    TRIES = 5,
    THREADS_KEPT = 16, /* whose numbers are looked for */
    BAD_OF = 10,       /* good threads one may contradict itself */
    STACK_MAX = 1 << 30,
    PLUS = '+', /* an operator's number is its character */
    IDS_AT = 16, /* in ruby_global_symbols, behind the last number */
    IDS_A_BLOCK = 512,
    LAST_ID_MAX = 1 << 26,
};

struct attaching {
    struct find in;
    const struct ruby_binary *binary;
    struct ruby *ruby; /* being filled in */
    uint64_t pthreads[THREADS_KEPT];
    size_t thread_count; /* met; the first ones are kept */
    size_t good, bad;    /* threads: some come and go meanwhile */
    uint64_t main_thread;
    bool has_main;
    struct err *err;
};

static bool refuse(struct attaching *a, const char *what)
{
    char text[RUBY_VERSION_TEXT];
    ruby_version_text(a->ruby->version, text);
    return err_set(a->err, ERR_UNSUPPORTED, EAGAIN, "Ruby %s %s", text, what);
}

static bool word_at(struct attaching *a, uint64_t address, uint64_t *out)
{
    return find_word(&a->in, address, out);
}

/* ---- threads ---- */

/* A thread without frames has no stack. */
static bool stack_fits(struct attaching *a, const unsigned char *ec)
{
    uint64_t stack = load_u64(ec), words = load_u64(ec + 8), cfp = load_u64(ec + 16);
    if (stack == 0) {
        return true;
    }
    return find_is_data(&a->in, stack) && words > 0 && words < STACK_MAX / 8 && cfp > stack &&
           cfp < stack + 8 * words && (stack + 8 * words - cfp) % a->ruby->layout.frame_bytes == 0;
}

/* What the outermost frame runs, but for the one that stands at the stack's end: its tag tells that frames are as this
 * version has them. */
static bool runs_code(struct attaching *a, const unsigned char *ec)
{
    uint64_t at = load_u64(ec) + 8 * load_u64(ec + 8) - 2 * (uint64_t)a->ruby->layout.frame_bytes, code, flags;
    return load_u64(ec) == 0 || load_u64(ec + 16) > at ||
           (word_at(a, at + 16, &code) &&
            (code == 0 || (word_at(a, code, &flags) && ruby_is(flags, RUBY_IMEMO))));
}

static bool take_pthread(struct attaching *a, const unsigned char *thread)
{
    const struct ruby_layout *l = &a->ruby->layout;
    uint64_t native, pthread;
    if (l->thread.native == LAYOUT_NONE) {
        pthread = load_u64(thread + l->thread.pthread);
    } else {
        native = load_u64(thread + l->thread.native);
        if (native == 0) {
            return true; /* no thread of the system runs it at this moment */
        }
        if (!word_at(a, native + l->thread.pthread, &pthread)) {
            return false;
        }
    }
    if (a->thread_count < THREADS_KEPT) {
        a->pthreads[a->thread_count] = pthread;
    }
    a->thread_count++;
    return true;
}

/* `next` is 0 where the list leads no further. */
static bool take_thread(struct attaching *a, uint64_t address, uint64_t *next)
{
    const struct ruby_layout *l = &a->ruby->layout;
    unsigned char thread[RUBY_THREAD_BYTES], ec[RUBY_EC_BYTES];
    *next = 0;
    if (!find_is_data(&a->in, address) || !find_read(&a->in, address, thread, sizeof thread) ||
        load_u64(thread + l->thread.vm) != a->ruby->vm) {
        return false;
    }
    *next = load_u64(thread);
    uint64_t at = ruby_ec_of(l, address, thread);
    return find_is_data(&a->in, at) && find_read(&a->in, at, ec, sizeof ec) && ruby_is_ec_of(l, ec, address) &&
           stack_fits(a, ec) && (address != a->main_thread || runs_code(a, ec)) && take_pthread(a, thread);
}

/* The list whose head is here. False: it has no end. */
static bool take_threads(struct attaching *a, uint64_t head)
{
    uint64_t at, next;
    bool ends = word_at(a, head, &at);
    for (unsigned i = 0; ends && at != 0 && at != head; i++) {
        bool good = take_thread(a, at, &next);
        a->good += good;
        a->bad += !good;
        a->has_main = a->has_main || (good && at == a->main_thread);
        at = next;
        ends = i < RUBY_THREADS_MAX;
    }
    return ends;
}

static bool take_ractors(struct attaching *a)
{
    const struct ruby_layout *l = &a->ruby->layout;
    uint64_t head = a->ruby->vm + l->vm.ractors, at;
    if (l->vm.ractors == LAYOUT_NONE) {
        return take_threads(a, a->ruby->vm + l->vm.threads);
    }
    bool good = word_at(a, head, &at);
    for (unsigned i = 0; good && at != head; i++) {
        good = i < RUBY_RACTORS_MAX && find_is_data(&a->in, at) &&
               take_threads(a, at - l->ractor.node + l->ractor.threads) && word_at(a, at, &at);
    }
    return good;
}

/* ---- the virtual machine ---- */

/* What contradicts itself; null: nothing. */
static const char *contradiction(struct attaching *a)
{
    a->thread_count = a->good = a->bad = 0;
    a->has_main = false;
    if (a->in.process->tid_count == 0) {
        return "has no threads that could be listed";
    }
    if (!word_at(a, a->ruby->vm + a->ruby->layout.vm.main_thread, &a->main_thread) || a->main_thread == 0 ||
        !take_ractors(a) || !a->has_main || a->bad > a->good / BAD_OF) {
        return "keeps its threads elsewhere than this version does: perhaps a modified build";
    }
    size_t kept = a->thread_count < THREADS_KEPT ? a->thread_count : THREADS_KEPT;
    if (!find_tid_in_pthread(&a->in, a->pthreads, kept, &a->ruby->tid_in_pthread)) {
        return "keeps the numbers of its threads elsewhere than this version does: perhaps a modified build";
    }
    return NULL;
}

static bool may_be_vm(void *context, uint64_t at)
{
    struct attaching *a = context;
    return word_at(a, at, &a->ruby->vm) && contradiction(a) == NULL;
}

/* Where no symbol tells it is known by what it leads to: its main thread leads back. */
static bool find_vm(struct attaching *a)
{
    const struct ruby_layout *l = &a->ruby->layout;
    const char *wrong = "has not started yet";
    if (a->binary->vm == 0) {
        return find_ring(&a->in, l->vm.main_thread, l->thread.vm, may_be_vm, a) || refuse(a, wrong);
    }
    for (unsigned i = 0; i < TRIES && wrong != NULL; i++) {
        if (!word_at(a, a->binary->vm + a->in.process->bias, &a->ruby->vm) || a->ruby->vm == 0) {
            break;
        }
        wrong = contradiction(a);
    }
    return wrong == NULL || refuse(a, wrong);
}

/* ---- names of C functions ---- */

static bool are_symbols(struct attaching *a, uint64_t symbols)
{
    struct memory_batch *memory = a->in.process->memory;
    const struct ruby_layout *l = &a->ruby->layout;
    struct buf text;
    uint64_t string;
    a->in.reads += 8;
    buf_init(&text, RUNTIME_NAME_MAX);
    bool good = ruby_id_string(l, symbols, memory, PLUS, &string) && ruby_add_string(l, memory, string, &text) &&
                str_eq(buf_slice(&text), STR("+"));
    buf_release(&text);
    return good;
}

static bool take_symbols(void *context, const struct find_piece *piece)
{
    struct attaching *a = context;
    for (size_t at = 0; at + IDS_AT + 8 <= piece->len; at += 8) {
        uint64_t last = find_number(piece->bytes, (uint32_t)at, 4);
        if (last > a->ruby->layout.last_operator && last < LAST_ID_MAX &&
            find_is_data(&a->in, find_number(piece->bytes, (uint32_t)at + IDS_AT, 8)) &&
            a->in.reads < FIND_READS_MAX && are_symbols(a, piece->address + at)) {
            a->ruby->symbols = piece->address + at;
            return true;
        }
    }
    return false;
}

static void find_symbols(struct attaching *a)
{
    uint64_t told = a->binary->symbols + a->in.process->bias;
    if (a->binary->symbols != 0 && are_symbols(a, told)) {
        a->ruby->symbols = told;
    } else {
        (void)find_scan(&a->in, IDS_AT + 8, take_symbols, a);
    }
}

static void find_collector(struct attaching *a)
{
    const struct ruby_layout *l = &a->ruby->layout;
    uint64_t objspace;
    if (l->vm.objspace != LAYOUT_NONE && word_at(a, a->ruby->vm + l->vm.objspace, &objspace) &&
        find_is_data(&a->in, objspace)) {
        a->ruby->gc_flags = objspace + l->vm.gc_flags;
    }
}

static bool find_all(struct attaching *a)
{
    const struct ruby_binary *b = a->binary;
    a->ruby->version = b->version;
    if (!ruby_layout_of(b->version, b->machine, b->musl, &a->ruby->layout, a->err) || !find_vm(a)) {
        return false;
    }
    find_symbols(a);
    find_collector(a);
    return true;
}

/* ---- verbs ---- */

enum runtime_answer ruby_attach(const void *binary, const struct runtime_process *process, void **state,
                                struct err *why)
{
    struct ruby *ruby = calloc(1, sizeof *ruby);
    struct err err = {0}, unread = {0};
    struct attaching a = {.in = {.process = process, .unread = &unread}, .binary = binary, .ruby = ruby, .err = &err};
    if (ruby == NULL || !find_all(&a)) {
        free(ruby);
        if (why != NULL) {
            *why = unread.kind != ERR_NONE ? unread : err;
        }
        return RUNTIME_UNSUPPORTED;
    }
    *state = ruby;
    return RUNTIME_YES;
}

void ruby_detach(void *state)
{
    free(state);
}

void ruby_describe(const void *state, struct buf *out)
{
    const struct ruby *ruby = state;
    char text[RUBY_VERSION_TEXT];
    ruby_version_text(ruby->version, text);
    buf_printf(out, "Ruby %s", text);
}
