/*
 * Where one process has its interpreters and threads. Every link found is held against another one
 * before it is believed: a thread's state points back to its interpreter, the numbers it has are
 * threads of the process, its frames lead to code objects. The process runs on meanwhile, so a
 * contradiction is read again before it counts.
 */
#include "runtime/python/find.h"

#include <errno.h>
#include <stdlib.h>

enum {
    RUNTIME_BYTES = 1024, /* of _PyRuntime: more than any _Py_DebugOffsets takes */
    TRIES = 5,
    FRAMES_TRIED = 16, /* of one thread: shims lead to no code object */
    TAGS = 3, /* low bits of a reference in a frame, 3.13 on */
};

/* ---- errors ---- */

static bool starting(struct python_find *f)
{
    return err_set(f->err, ERR_UNSUPPORTED, EAGAIN,
                   "CPython %s has not started its interpreter yet", f->python->version_text);
}

/* Worth another attempt: what changes while it is read contradicts itself as well. */
static bool unlike(struct python_find *f, const char *what)
{
    return err_set(f->err, ERR_UNSUPPORTED, EAGAIN,
                   "CPython %s keeps %s elsewhere than this version does: perhaps a modified build",
                   f->python->version_text, what);
}

/* ---- version and layout ---- */

static bool layout_by_offsets(struct python_find *f, bool *tells)
{
    unsigned char bytes[RUNTIME_BYTES];
    struct memory_piece piece = {f->python->runtime, bytes, sizeof bytes, 0};
    *tells = f->python->runtime != 0 &&
             memory_batch_read(f->in.process->memory, &piece, 1, f->in.unread) &&
             python_tells_layout(bytes, piece.got);
    return *tells && python_layout_read(bytes, piece.got, &f->python->layout, f->err);
}

static uint32_t version_of(struct python_find *f)
{
    uint64_t version;
    if (f->binary->py_version != 0 &&
        find_word(&f->in, f->binary->py_version + f->in.process->bias, &version) &&
        (uint32_t)version != 0) {
        return (uint32_t)version;
    }
    uint32_t known = f->binary->version;
    if ((known & 0xff) != 0) {
        return known;
    }
    uint32_t text = python_find_version(f);
    bool fits = text != 0 && (known == 0 || python_minor(text) == python_minor(known));
    return fits ? text : known;
}

/* Builds whose objects are linked begin them two words later: PyCode_Type's own name tells. */
static bool has_trace_refs(struct python_find *f, uint32_t version)
{
    uint64_t type = f->python->code_type;
    return type == 0 ? f->binary->debug && version < PYTHON_VERSION(3, 8)
                     : !python_is_type(f, type, 8, "code") && python_is_type(f, type, 24, "code");
}

static bool layout_by_version(struct python_find *f)
{
    uint32_t version = version_of(f);
    python_version_text(version, f->python->version_text);
    if (version == 0) {
        return err_set(f->err, ERR_UNSUPPORTED, EAGAIN,
                       "which version of CPython this is, is not known");
    }
    bool trace_refs = has_trace_refs(f, version);
    f->python->debug |= trace_refs && version < PYTHON_VERSION(3, 8);
    return python_layout_of(version, f->binary->machine, f->binary->musl, trace_refs,
                            &f->python->layout, f->err);
}

static uint64_t in_process(struct python_find *f, uint64_t elf_address)
{
    return elf_address == 0 ? 0 : elf_address + f->in.process->bias;
}

static bool find_layout(struct python_find *f)
{
    struct python *p = f->python;
    bool tells;
    p->runtime = in_process(f, f->binary->runtime);
    p->code_type = in_process(f, f->binary->code_type);
    p->debug = f->binary->debug;
    if (!layout_by_offsets(f, &tells) && (tells || !layout_by_version(f))) {
        return false;
    }
    python_version_text(p->layout.version, p->version_text);
    if (p->layout.free_threaded) {
        strncat(p->version_text, "t", sizeof p->version_text - strlen(p->version_text) - 1);
    }
    if (p->code_type != 0 && !python_is_type(f, p->code_type, p->layout.object.type, "code")) {
        return starting(f); /* a copy of the file that nothing has been relocated in yet */
    }
    return p->code_type == 0 || python_check_members(f) || unlike(f, "the fields of code objects");
}

/* ---- interpreters and threads ---- */

static void keep_thread(struct python_find *f, uint64_t address, const unsigned char *bytes)
{
    const struct python_layout *l = &f->python->layout;
    f->threads_seen++;
    if (f->thread_count == PYTHON_FIND_THREADS_MAX) {
        return;
    }
    f->pthreads[f->thread_count] = find_number(bytes, l->thread.thread_id, 8);
    struct found_thread *t = &f->threads[f->thread_count++];
    *t = (struct found_thread){
        .address = address,
        .frame = find_number(bytes, l->thread.frame, 8),
    };
    if (l->thread.native_thread_id != LAYOUT_NONE) {
        t->native = find_number(bytes, l->thread.native_thread_id, 8);
    }
}

static bool walk_threads(struct python_find *f, uint64_t interp)
{
    const struct python_layout *l = &f->python->layout;
    unsigned char bytes[LAYOUT_THREAD_MAX];
    uint64_t at;
    if (!find_word(&f->in, interp + l->interp.threads, &at)) {
        return false;
    }
    for (unsigned i = 0; at != 0; i++) {
        if (i == PYTHON_THREADS_MAX || !find_is_data(&f->in, at) ||
            !find_read(&f->in, at, bytes, l->thread.bytes) ||
            find_number(bytes, l->thread.interp, 8) != interp) {
            return false;
        }
        keep_thread(f, at, bytes);
        at = find_number(bytes, l->thread.next, 8);
    }
    return true;
}

/* The first interpreter made is the last of the list. */
static bool walk_interpreters(struct python_find *f)
{
    const struct python_layout *l = &f->python->layout;
    uint64_t at;
    f->thread_count = f->threads_seen = 0;
    f->is_proven = false;
    f->python->interp = 0;
    if (!find_word(&f->in, f->python->head, &at)) {
        return false;
    }
    for (unsigned i = 0; at != 0; i++) {
        if (i == PYTHON_INTERPRETERS_MAX || !find_is_data(&f->in, at) || !walk_threads(f, at)) {
            return false;
        }
        f->python->interp = at;
        if (!find_word(&f->in, at + l->interp.next, &at)) {
            return false;
        }
    }
    return true;
}

/* ---- proofs ---- */

static bool ids_fit(struct python_find *f)
{
    if (f->in.process->tid_count == 0) {
        return true;
    }
    if (f->python->layout.thread.native_thread_id == LAYOUT_NONE) {
        return find_tid_in_pthread(&f->in, f->pthreads, f->thread_count,
                                   &f->python->tid_in_pthread);
    }
    for (size_t i = 0; i < f->thread_count; i++) {
        if (find_is_tid(&f->in, f->threads[i].native)) {
            return true;
        }
    }
    /* a process that C forked behind the interpreter's back (uwsgi): the ids are its parent's, but
     * libc knows better */
    if (!find_tid_in_pthread(&f->in, f->pthreads, f->thread_count,
                                   &f->python->tid_in_pthread)) {
        return false;
    }
    f->python->layout.thread.native_thread_id = LAYOUT_NONE;
    return true;
}

/* A code object's type is PyCode_Type; where no symbol says where that is, a type named "code". */
static bool is_code(struct python_find *f, uint64_t code)
{
    const struct python_layout *l = &f->python->layout;
    uint64_t type;
    if (code % 8 != 0 || code == 0 || !find_word(&f->in, code + l->object.type, &type)) {
        return false;
    }
    if (f->python->code_type != 0) {
        return type == f->python->code_type;
    }
    if (!python_is_type(f, type, l->object.type, "code")) {
        return false;
    }
    f->python->code_type = type;
    return true;
}

static bool top_frame(struct python_find *f, const struct found_thread *thread, uint64_t *out)
{
    const struct python_layout *l = &f->python->layout;
    *out = thread->frame;
    return l->frames != PYTHON_FRAMES_CFRAME || thread->frame == 0 ||
           find_word(&f->in, thread->frame + l->thread.cframe_top, out);
}

/* Does the thread's stack begin with code? Shims are passed over. */
static bool leads_to_code(struct python_find *f, uint64_t frame)
{
    const struct python_layout *l = &f->python->layout;
    uint64_t code, previous;
    for (unsigned i = 0; i < FRAMES_TRIED && frame != 0 && frame % 8 == 0; i++) {
        if (!find_word(&f->in, frame + l->frame.code, &code) ||
            !find_word(&f->in, frame + l->frame.previous, &previous)) {
            return false;
        }
        code &= l->frames == PYTHON_FRAMES_CURRENT ? ~(uint64_t)TAGS : UINT64_MAX;
        if (is_code(f, code)) {
            return true;
        }
        frame = previous;
    }
    return false;
}

/* False: there are frames, and none leads anywhere. */
static bool frames_fit(struct python_find *f)
{
    bool has_frames = false;
    uint64_t frame;
    for (size_t i = 0; i < f->thread_count; i++) {
        if (!top_frame(f, &f->threads[i], &frame) || frame == 0) {
            continue;
        }
        has_frames = true;
        if (leads_to_code(f, frame)) {
            f->is_proven = true;
            return true;
        }
    }
    return !has_frames;
}

/* What contradicts itself; null: nothing. */
static const char *contradiction(struct python_find *f)
{
    return !walk_interpreters(f)    ? "its threads"
           : f->thread_count == 0 ? NULL
           : !ids_fit(f)          ? "the numbers of its threads"
           : !frames_fit(f)       ? "its frames"
                                  : NULL;
}

static bool find_threads(struct python_find *f)
{
    const char *wrong = NULL;
    for (unsigned i = 0; i < TRIES; i++) {
        wrong = contradiction(f);
        if (wrong == NULL) {
            return f->thread_count > 0 || starting(f);
        }
    }
    return unlike(f, wrong);
}

/* ---- the first interpreter ---- */

/* From 3.7 on it is part of _PyRuntime, with the pointer to the main interpreter behind it. */
static bool may_be_head(void *context, uint64_t head)
{
    struct python_find *f = context;
    uint32_t at = f->python->layout.runtime.head;
    uint64_t main_interp;
    f->python->head = head;
    f->python->runtime = at == 0 ? 0 : head - at;
    return contradiction(f) == NULL && f->thread_count > 0 && f->is_proven &&
           (at == 0 || (find_word(&f->in, head + 8, &main_interp) && main_interp == f->python->interp));
}

static bool find_head(struct python_find *f)
{
    struct python *p = f->python;
    p->head = p->runtime != 0 ? p->runtime + p->layout.runtime.head
                              : in_process(f, f->binary->interp_head);
    /* without a symbol it is the pointer to an interpreter, which leads to a thread, and that back to it */
    return p->head != 0 ||
           find_ring(&f->in, p->layout.interp.threads, p->layout.thread.interp, may_be_head, f) || starting(f);
}

/* ---- the GIL ---- */

static bool is_known_thread(struct python_find *f, uint64_t address)
{
    for (size_t i = 0; i < f->thread_count; i++) {
        if (f->threads[i].address == address) {
            return true;
        }
    }
    return f->threads_seen > f->thread_count; /* one of those that were not kept, perhaps */
}

/* Where the holder stands depends on libc too (3.7 on): what is no thread there is not read. */
static void find_current(struct python_find *f)
{
    struct python *p = f->python;
    uint32_t at = p->layout.runtime.current;
    uint64_t holder;
    p->current = p->runtime == 0 || at == LAYOUT_NONE ? in_process(f, f->binary->current)
                                                      : p->runtime + at;
    if (p->current != 0 && (!find_word(&f->in, p->current, &holder) ||
                            (holder != 0 && !is_known_thread(f, holder)))) {
        p->current = 0;
    }
}

static bool is_ending(struct python_find *f)
{
    uint32_t at = f->python->layout.runtime.finalizing;
    uint64_t thread;
    if (f->python->runtime == 0 || at == LAYOUT_NONE ||
        !find_word(&f->in, f->python->runtime + at, &thread) || thread == 0) {
        return false;
    }
    (void)err_set(f->err, ERR_GONE, 0, "CPython %s is ending", f->python->version_text);
    return true;
}

static bool find_all(struct python_find *f)
{
    if (!find_layout(f) || !find_head(f) || is_ending(f) || !find_threads(f)) {
        return false;
    }
    find_current(f);
    f->python->str_type = in_process(f, f->binary->str_type);
    f->python->int_type = in_process(f, f->binary->int_type);
    if (f->in.process->elf != NULL) {
        python_extend(f->python, f->in.process->elf); /* asyncio may be built in */
    }
    return true;
}

/* ---- verbs ---- */

enum runtime_answer python_attach(const void *binary, const struct runtime_process *process,
                                  void **state, struct err *why)
{
    struct python_find *f = calloc(1, sizeof *f);
    struct python *python = calloc(1, sizeof *python);
    struct err err = {0}, unread = {0};
    bool good = f != NULL && python != NULL;
    if (good) {
        *f = (struct python_find){.in = {.process = process, .unread = &unread},
                                  .binary = binary, .python = python, .err = &err};
        python->pid = process->pid;
        good = find_all(f);
    } else {
        (void)err_set(&err, ERR_MEMORY, 0, "no memory for a CPython");
    }
    free(f);
    if (!good) {
        free(python);
        if (why != NULL) {
            *why = unread.kind != ERR_NONE ? unread : err;
        }
        return RUNTIME_UNSUPPORTED;
    }
    *state = python;
    return RUNTIME_YES;
}

void python_detach(void *state)
{
    free(state);
}

void python_describe(const void *state, struct buf *out)
{
    const struct python *python = state;
    buf_printf(out, "CPython %s%s", python->version_text, python->debug ? " debug" : "");
}
