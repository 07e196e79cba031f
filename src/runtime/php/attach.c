/*
 * Where one process has its stack. What executor_globals leads to is held against what a stack of this version must be:
 * frames in a list that ends, functions of a known kind, instructions inside their functions. The process runs on
 * meanwhile, so a contradiction is read again before it counts. A process that runs no PHP at this moment (a worker
 * without a request) shows at least that pages have the size they must have.
 */
#include "runtime/common/find.h"
#include "runtime/php/private.h"

#include <errno.h>
#include <stdlib.h>

enum {
    TRIES = 8,
    FRAMES_LOOKED_AT = 64,
    THREADS_CHECKED = 8,
    SLOTS_READ = 64,
    GLOBALS_MAX = 4096, OFFSET_MAX = 1 << 24,
};

struct attaching {
    struct find in;
    struct php *php; /* being filled in */
    struct err *err;
};

static bool refuse(struct attaching *a, const char *what)
{
    char text[PHP_VERSION_TEXT];
    php_version_text(a->php->version, text);
    return err_set(a->err, ERR_UNSUPPORTED, EAGAIN, "PHP %s %s", text, what);
}

static bool read_function(struct attaching *a, uint64_t address, struct php_function *out)
{
    unsigned char bytes[PHP_FUNCTION_BYTES] = {0};
    struct memory_piece piece = {address, bytes, sizeof bytes, 0};
    a->in.reads++;
    if (!memory_batch_read(a->in.process->memory, &piece, 1, a->in.unread) || piece.got < PHP_FUNCTION_LEAST) {
        return false;
    }
    *out = php_function_of(&a->php->layout, bytes);
    return out->kind != 0;
}

/* Frames from `at` on: good ones, and among them users' that called something by their own instructions. False: what
 * is read contradicts this version. */
static bool stack_fits(struct attaching *a, uint64_t at)
{
    unsigned char frame[PHP_FRAME_BYTES];
    unsigned users = 0, inside = 0;
    for (unsigned i = 0; i < FRAMES_LOOKED_AT && at != 0; i++) {
        struct php_function f;
        if (!find_is_data(&a->in, at) || !find_read(&a->in, at, frame, sizeof frame)) {
            return false;
        }
        uint64_t function = load_u64(frame + FRAME_FUNCTION);
        if (function != 0 && !read_function(a, function, &f)) {
            return false;
        }
        if (function != 0 && f.kind == PHP_USER && i > 0) { /* the leaf's may not have been saved yet */
            users++;
            inside += php_position(&f, load_u64(frame + FRAME_OPLINE)) != PHP_NO_LINE;
        }
        at = load_u64(frame + FRAME_PREVIOUS);
    }
    return 2 * inside >= users;
}

static bool fits(struct attaching *a, uint64_t at)
{
    unsigned char root[PHP_ROOT_BYTES];
    if (!find_read(&a->in, at, root, sizeof root)) {
        return false;
    }
    uint32_t current_at = a->php->layout.current;
    uint64_t current = load_u64(root + current_at), page = load_u64(root + ROOT_PAGE),
             limit = load_u64(root + ROOT_LIMIT);
    bool is_told = current_at > ROOT_PAGE_SIZE; /* else a page of several sizes holds one large frame */
    uint64_t size = is_told ? load_u64(root + ROOT_PAGE_SIZE) : limit - page;
    if (current == 0 && page == 0 && size == 0) {
        return true; /* before the first request */
    }
    return (size == PHP_PAGE || size == PHP_FIBER_PAGE || (!is_told && size % PHP_PAGE == 0)) &&
           (current == 0 || (find_is_data(&a->in, page) && limit > page && stack_fits(a, current)));
}

/* ---- builds for threads ---- */

/* What is found of threads while their table is looked for. */
struct threads {
    struct attaching *a;
    uint64_t pthread[THREADS_CHECKED], root[THREADS_CHECKED];
    size_t count;
};

/* Is there an entry as it must be, in this slot of a table of this size? `next` of its list. */
static bool add_entry(struct threads *t, uint64_t entry, uint32_t slot, uint32_t size, uint64_t *next)
{
    struct find *in = &t->a->in;
    const struct php_threads *at = &t->a->php->threads;
    unsigned char bytes[ENTRY_BYTES];
    uint64_t globals;
    if (!find_is_data(in, entry) || !find_read(in, entry, bytes, sizeof bytes) ||
        load_u64(bytes + ENTRY_PTHREAD) % size != slot ||
        !find_is_data(in, load_u64(bytes + ENTRY_STORAGE)) ||
        !find_word(in, load_u64(bytes + ENTRY_STORAGE) + 8 * (uint64_t)at->slot, &globals) ||
        globals != entry + at->offset) {
        return false;
    }
    t->pthread[t->count] = load_u64(bytes + ENTRY_PTHREAD);
    t->root[t->count++] = globals + t->a->php->layout.stack;
    *next = load_u64(bytes + ENTRY_NEXT);
    return true;
}

static bool add_list(struct threads *t, uint64_t entry, uint32_t slot, uint32_t size)
{
    while (entry != 0 && t->count < THREADS_CHECKED) {
        if (!add_entry(t, entry, slot, size, &entry)) {
            return false;
        }
    }
    return true;
}

static bool is_table(struct threads *t, uint64_t table, uint32_t size)
{
    struct find *in = &t->a->in;
    unsigned char slots[8 * SLOTS_READ];
    t->count = 0;
    if (size == 0 || size > THREADS_SIZE_MAX || !find_is_data(in, table)) {
        return false;
    }
    for (uint32_t slot = 0; slot < size && t->count < THREADS_CHECKED; slot++) {
        uint32_t at = slot % SLOTS_READ;
        size_t len = 8 * (size_t)least(SLOTS_READ, size - slot);
        if (at == 0 && !find_read(in, table + 8 * (uint64_t)slot, slots, len)) {
            return false;
        }
        if (!add_list(t, load_u64(slots + 8 * (size_t)at), slot, size)) {
            return false;
        }
    }
    return t->count > 0;
}

/* The table's size is an int beside the pointer to it: where, is up to the compiler. */
static bool look_for_table(void *context, const struct find_piece *piece)
{
    struct threads *t = context;
    struct php_threads *found = &t->a->php->threads;
    for (size_t at = 8; at + 16 <= piece->len; at += 8) {
        uint64_t table = load_u64(piece->bytes + at);
        const uint32_t sizes[] = {load_u32(piece->bytes + at - 4), load_u32(piece->bytes + at + 8),
                                  load_u32(piece->bytes + at + 12), load_u32(piece->bytes + at - 8)};
        for (size_t i = 0; table != 0 && i < sizeof sizes / sizeof sizes[0]; i++) {
            if (is_table(t, table, sizes[i])) {
                found->table = table;
                found->size = sizes[i];
                return true;
            }
        }
    }
    return false;
}

/* What programs for threads tell of where to look. */
static bool read_place(struct attaching *a, const struct php_binary *binary)
{
    const struct runtime_process *p = a->in.process;
    struct php_threads *found = &a->php->threads;
    uint64_t id = 0;
    if (!find_word(&a->in, (binary->id + p->bias) & ~(uint64_t)7, &id) ||
        !find_word(&a->in, binary->offset + p->bias, &found->offset)) {
        return refuse(a, "does not tell where its threads have their globals");
    }
    id = (binary->id & 4) != 0 ? id >> 32 : id & UINT32_MAX;
    if (id == 0 || id > GLOBALS_MAX || found->offset == 0 || found->offset > OFFSET_MAX) {
        return refuse(a, "has not made its globals yet");
    }
    found->slot = (uint32_t)id - 1;
    return true;
}

static bool find_threads(struct attaching *a, const struct php_binary *binary)
{
    struct php_threads *found = &a->php->threads;
    struct threads t = {.a = a};
    if (!read_place(a, binary)) {
        return false;
    }
    if (!find_scan(&a->in, 32, look_for_table, &t)) {
        return refuse(a, "keeps its threads elsewhere than this version does: perhaps a modified build");
    }
    if (!find_tid_in_pthread(&a->in, t.pthread, t.count, &found->tid_in_pthread)) {
        return refuse(a, "runs in threads whose number is not found");
    }
    for (unsigned i = 0; i < TRIES; i++) {
        size_t good = 0;
        while (good < t.count && fits(a, t.root[good])) {
            good++;
        }
        if (good == t.count) {
            a->php->root = t.root[0];
            return true;
        }
    }
    return refuse(a, "keeps its frames elsewhere than this version does: perhaps a modified build");
}

/* Of what serves no requests the script is in every stack. */
static void find_request(struct attaching *a, const struct php_binary *binary)
{
    uint64_t at = binary->request + a->in.process->bias, offset;
    if (!a->php->serves || binary->request == 0) {
        return;
    }
    if (binary->globals != 0) {
        a->php->request = at + REQUEST_AT;
    } else if (find_word(&a->in, at, &offset) && offset > 0 && offset < OFFSET_MAX) {
        a->php->request = offset + REQUEST_AT;
    }
}

static bool find_all(struct attaching *a, const struct php_binary *binary)
{
    const struct runtime_process *p = a->in.process;
    a->php->version = binary->version;
    a->php->keeps_in_registers = binary->keeps_in_registers;
    if (!php_layout_of(binary->version, &a->php->layout, a->err)) {
        return false;
    }
    if (p->tid_count == 0) {
        return refuse(a, "has no threads that could be listed");
    }
    a->php->tid = p->tids[0]; /* the first one is the process's own */
    uint64_t name;
    a->php->serves = !find_word(&a->in, binary->sapi + p->bias, &name) || !find_is_text(&a->in, name, "cli");
    a->php->shows_urls = p->shows_urls;
    find_request(a, binary);
    if (binary->globals == 0) {
        return find_threads(a, binary);
    }
    a->php->root = binary->globals + p->bias + a->php->layout.stack;
    for (unsigned i = 0; i < TRIES; i++) {
        if (fits(a, a->php->root)) {
            return true;
        }
    }
    return refuse(a, "keeps its frames elsewhere than this version does: perhaps a modified build");
}

enum runtime_answer php_attach(const void *binary, const struct runtime_process *process, void **state,
                               struct err *why)
{
    struct php *php = calloc(1, sizeof *php);
    struct err err = {0}, unread = {0};
    struct attaching a = {.in = {.process = process, .unread = &unread}, .php = php, .err = &err};
    if (php == NULL || !find_all(&a, binary)) {
        free(php);
        if (why != NULL) {
            *why = unread.kind != ERR_NONE ? unread : err;
        }
        return RUNTIME_UNSUPPORTED;
    }
    *state = php;
    return RUNTIME_YES;
}

void php_detach(void *state)
{
    free(state);
}

void php_describe(const void *state, struct buf *out)
{
    const struct php *php = state;
    char text[PHP_VERSION_TEXT];
    php_version_text(php->version, text);
    buf_printf(out, "PHP %s", text);
}
