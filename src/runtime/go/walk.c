/* A sampled thread's goroutine and its labels: m is found by the register that holds g, then m tells the goroutine
 * (curg), that its labels. What was read is the sample's if the catcher proves it, or if the register holds this very
 * goroutine; its labels are looked at again after their texts were read, for the thread may have gone on. */
#include "runtime/go/walk.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/common/load.h"
#include "runtime/go/go.h"
#include "runtime/go/memory/label_set.h"
#include "runtime/go/memory/memory_private.h"
#include "runtime/go/table/table.h"

enum {
    RELEASE_MAX = 32,
    M_BYTES = 256, /* more than what is between procid and curg */
};

struct threads { /* of one process */
    const struct go_layout *layout;
    unsigned kept; /* the register of g: R14, or X28 */
    char release[RELEASE_MAX];
};

struct plan {
    uint64_t m; /* 0: not known */
};

/* ---- a file, a process ---- */

const void *go_walk_binary(struct elf *elf)
{
    struct buf release;
    buf_init(&release, RELEASE_MAX);
    bool is_known = go_version(elf, &release) && (elf->machine == ELF_X86_64 || elf->machine == ELF_AARCH64) &&
                    !elf->is_32bit;
    const struct go_layout *layout = is_known ? go_layout_of(buf_cstr(&release)) : NULL;
    struct go_table *table = layout == NULL ? NULL : go_table_open(elf, NULL);
    bool has = table != NULL && go_table_has(table, "runtime/pprof.runtime_setProfLabel");
    go_table_release(table);
    buf_release(&release);
    return has ? layout : NULL;
}

bool go_walk_is_any(const void *binary)
{
    return binary != NULL;
}

enum runtime_answer go_walk_attach(const void *binary, const struct runtime_process *process, void **state,
                                   struct err *why)
{
    struct threads *threads = calloc(1, sizeof *threads);
    struct buf release;
    if (threads == NULL) {
        (void)err_set(why, ERR_MEMORY, 0, "no memory for the labels of pid %u", process->pid);
        return RUNTIME_UNSUPPORTED;
    }
    buf_init(&release, RELEASE_MAX);
    (void)go_version(process->elf, &release);
    (void)snprintf(threads->release, sizeof threads->release, "%s", buf_cstr(&release));
    buf_release(&release);
    threads->layout = binary;
    threads->kept = process->elf->machine == ELF_AARCH64;
    *state = threads;
    return RUNTIME_YES;
}

void go_walk_detach(void *state)
{
    free(state);
}

void go_walk_describe(const void *state, struct buf *out)
{
    const struct threads *threads = state;
    buf_text(out, threads->release);
}

void *go_walk_open_names(const void *state)
{
    return (void *)(uintptr_t)state;
}

void go_walk_close_names(void *names)
{
    (void)names;
}

/* ---- a thread ---- */

struct walk {
    const struct threads *threads;
    struct memory_batch *memory;
    struct runtime_stack *out;
};

static bool peek(struct walk *w, uint64_t address, void *to, size_t len)
{
    struct memory_piece piece = {.address = address, .out = to, .len = (uint32_t)len};
    w->out->reads++;
    return plausible(address) && memory_batch_read(w->memory, &piece, 1, NULL) && piece.got == len;
}

static bool peek_word(struct walk *w, uint64_t address, uint64_t *out)
{
    unsigned char raw[8];
    bool good = peek(w, address, raw, sizeof raw);
    *out = good ? load_u64(raw) : 0;
    return good;
}

/* The goroutine that the thread's m runs; 0: none. False: it is not this thread's. */
static bool running(struct walk *w, uint64_t m, uint32_t tid, uint64_t *goroutine)
{
    const struct go_layout *layout = w->threads->layout;
    unsigned char raw[M_BYTES];
    size_t at = (size_t)(layout->curg - layout->procid);
    if (!peek(w, m + layout->procid, raw, at + 8) || load_u64(raw) != tid) {
        return false;
    }
    *goroutine = load_u64(raw + at);
    return true;
}

/* `g`: what the register holds. */
static bool find(struct walk *w, struct plan *plan, uint64_t g, uint32_t tid, uint64_t *goroutine)
{
    if (plan->m != 0 && running(w, plan->m, tid, goroutine)) {
        return true;
    }
    bool good = peek_word(w, g + GO_G_M, &plan->m) && running(w, plan->m, tid, goroutine);
    plan->m = good ? plan->m : 0;
    return good;
}

static void put(struct runtime_stack *out, struct str text)
{
    memcpy(out->task + out->task_bytes, text.ptr, text.len);
    out->task[out->task_bytes + text.len] = '\0';
    out->task_bytes += (uint8_t)(text.len + 1);
}

static void tell(struct walk *w, uint64_t goroutine, struct go_label_set *set)
{
    uint64_t labels = 0, after = 0, at = goroutine + w->threads->layout->labels;
    bool good = peek_word(w, at, &labels) && labels != 0 &&
                go_label_set_read(w->memory, w->threads->layout->lists_labels, labels, set, NULL) &&
                peek_word(w, at, &after) && after == labels;
    for (size_t i = 0; good && i < set->count; i++) {
        size_t len = set->keys[i].len + set->values[i].len + 2;
        if (set->keys[i].len > 0 && len <= (size_t)(RUNTIME_TASK_MAX - w->out->task_bytes)) {
            put(w->out, set->keys[i]);
            put(w->out, set->values[i]);
        }
    }
}

void go_walk(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
             struct runtime_stack *out)
{
    struct walk w = {.threads = state, .memory = memory, .out = out};
    struct go_label_set set;
    uint64_t goroutine = 0;
    out->count = out->marks = out->reads = out->retries = out->task_bytes = 0;
    out->interpreter = 0;
    out->end = RUNTIME_EMPTY;
    uint64_t g = thread->registers == NULL ? 0 : thread->registers->kept[w.threads->kept];
    if (find(&w, plan, g, thread->tid, &goroutine) && goroutine != 0) {
        tell(&w, goroutine, &set);
    }
    if (out->task_bytes > 0) {
        out->marks = (uint8_t)(RUNTIME_HAS_LABELS | (g == goroutine ? RUNTIME_SAME_TASK : 0));
    }
}
