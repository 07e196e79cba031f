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

static bool fits(struct attaching *a)
{
    unsigned char root[PHP_ROOT_BYTES];
    if (!find_read(&a->in, a->php->root, root, sizeof root)) {
        return false;
    }
    uint64_t current = load_u64(root + ROOT_CURRENT), page = load_u64(root + ROOT_PAGE),
             size = load_u64(root + ROOT_PAGE_SIZE), limit = load_u64(root + ROOT_LIMIT);
    if (current == 0 && page == 0 && size == 0) {
        return true; /* before the first request */
    }
    return (size == PHP_PAGE || size == PHP_FIBER_PAGE) &&
           (current == 0 || (find_is_data(&a->in, page) && limit > page && stack_fits(a, current)));
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
    a->php->root = binary->globals + p->bias + a->php->layout.stack;
    for (unsigned i = 0; i < TRIES; i++) {
        if (fits(a)) {
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
