/* Where one process has its interpreter. It is believed after the arrays of contexts lead back to that of the main
 * program, each inside its bounds, so that a build whose structures are others is refused. The process runs on
 * meanwhile: a contradiction is read again before it counts. */
#include "runtime/common/find.h"
#include "runtime/perl/private.h"

#include <errno.h>
#include <stdlib.h>

enum {
    TRIES = 5,
    TYPE_LEAST = -1, TYPE_MOST = 16, TYPE_MAIN = 1,
};

struct attaching {
    struct find in;
    const struct perl_binary *binary;
    struct perl *perl; /* being filled in */
    struct err *err;
};

static bool refuse(struct attaching *a, const char *what)
{
    char text[PERL_VERSION_TEXT];
    perl_version_text(a->perl->version, text);
    return err_set(a->err, ERR_UNSUPPORTED, EAGAIN, "Perl %s %s", text, what);
}

static bool is_info(struct attaching *a, const unsigned char *info, int32_t type)
{
    int32_t index = (int32_t)load_u32(info + INFO_INDEX), limit = (int32_t)load_u32(info + INFO_MAX);
    return find_is_data(&a->in, load_u64(info + INFO_CONTEXTS)) && type >= TYPE_LEAST && type <= TYPE_MOST &&
           limit >= 0 && limit < PERL_CONTEXTS_MAX * 4 && index >= -1 && index <= limit;
}

/* Does the chain that begins here end with the main program's? */
static bool leads_to_main(struct attaching *a, uint64_t at)
{
    unsigned char info[PERL_INFO_BYTES];
    for (int i = 0; i < PERL_INFOS_MAX * 16; i++) {
        if (!find_is_data(&a->in, at) || !find_read(&a->in, at, info, sizeof info)) {
            return false;
        }
        int32_t type = (int32_t)load_u32(info + a->perl->layout.info_type);
        uint64_t prev = load_u64(info + INFO_PREV);
        if (!is_info(a, info, type) || (prev == 0) != (type == TYPE_MAIN)) {
            return false;
        }
        if (prev == 0) {
            return true;
        }
        at = prev;
    }
    return false;
}

/* The thread that began the process has its number, where the number is not of another PID namespace. */
static uint32_t main_thread(const struct attaching *a)
{
    const struct runtime_process *process = a->in.process;
    return find_is_tid(&a->in, process->pid) ? process->pid : process->tids[0];
}

static bool find_variables(struct attaching *a)
{
    const struct perl_binary *b = a->binary;
    const struct perl_layout *l = &a->perl->layout;
    struct perl *p = a->perl;
    uint64_t bias = a->in.process->bias, interpreter;
    p->threaded = b->threads;
    p->tid = main_thread(a);
    if (b->interpreter == 0) {
        uint64_t compiling = b->compiling != 0 ? b->compiling + bias : 0;
        p->main = (struct perl_interpreter){.curcop = b->curcop + bias, .curstackinfo = b->curstackinfo + bias,
                                            .comppad = b->comppad != 0 ? b->comppad + bias : 0,
                                            .compiling = compiling,
                                            .compiling_limit = compiling + (compiling != 0)};
        return true;
    }
    if (!find_word(&a->in, b->interpreter + bias, &interpreter) || !find_is_data(&a->in, interpreter)) {
        return false;
    }
    p->interpreter = interpreter;
    /* of a process that another thread has forked it is that one's */
    struct perl_thread forked = {.tid = p->tid};
    bool found = perl_find_thread(p, a->in.process->memory, &forked) && find_is_data(&a->in, forked.interpreter);
    p->main = perl_interpreter_at(l, found ? forked.interpreter : interpreter);
    return true;
}

/* What contradicts itself; null: nothing. */
static const char *contradiction(struct attaching *a)
{
    uint64_t cop, info;
    if (a->in.process->tid_count == 0) {
        return "has no threads that could be listed";
    }
    if (!find_variables(a) || !find_word(&a->in, a->perl->main.curcop, &cop) ||
        !find_word(&a->in, a->perl->main.curstackinfo, &info) || cop == 0 || info == 0) {
        return "has not started yet";
    }
    return find_is_data(&a->in, cop) && leads_to_main(a, info)
               ? NULL
               : "keeps its calls elsewhere than this version does: perhaps a modified build";
}

static bool find_all(struct attaching *a)
{
    const struct perl_binary *b = a->binary;
    const char *wrong = "";
    a->perl->version = b->version;
    if (!perl_layout_of(b->version, &a->perl->layout, a->err)) {
        return false;
    }
    for (unsigned i = 0; i < TRIES && wrong != NULL; i++) {
        wrong = contradiction(a);
    }
    if (wrong != NULL) {
        return refuse(a, wrong);
    }
    if (b->entersub != 0) {
        a->perl->entersub = b->entersub + a->in.process->bias;
        a->perl->entersub_limit = b->entersub_limit + a->in.process->bias;
    }
    return true;
}

enum runtime_answer perl_attach(const void *binary, const struct runtime_process *process, void **state,
                                struct err *why)
{
    struct perl *perl = calloc(1, sizeof *perl);
    struct err err = {0}, unread = {0};
    struct attaching a = {.in = {.process = process, .unread = &unread}, .binary = binary, .perl = perl, .err = &err};
    if (perl == NULL || !find_all(&a)) {
        free(perl);
        if (why != NULL) {
            *why = unread.kind != ERR_NONE ? unread : err;
        }
        return RUNTIME_UNSUPPORTED;
    }
    *state = perl;
    return RUNTIME_YES;
}

void perl_detach(void *state)
{
    free(state);
}

void perl_describe(const void *state, struct buf *out)
{
    const struct perl *perl = state;
    char text[PERL_VERSION_TEXT];
    perl_version_text(perl->version, text);
    buf_printf(out, "Perl %s", text);
}
