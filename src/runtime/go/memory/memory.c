/* A Go process whose memory is read: opened once, when its tables are found and tried; then its settings, which say why
 * a profile may be empty. */
#include "runtime/go/memory/memory_private.h"

#include <stdlib.h>

#include "runtime/common/load.h"

static bool find(struct go_memory *m, struct err *why)
{
    if (!go_memory_find(m, why)) {
        return false;
    }
    if (m->unread.kind != ERR_NONE) {
        return go_unread(m, why, "profiles of a Go program");
    }
    if (m->head_count < 3 && m->goroutines == 0) {
        return err_set(why, ERR_MALFORMED, 0, "profiles of a Go program: its tables were not found in its memory");
    }
    return true;
}

struct go_memory *go_memory_open(const struct go_process *process, struct err *why)
{
    const struct elf *elf = process->elf;
    const struct go_layout *layout = go_layout_of(process->version);
    if (layout == NULL || (elf->machine != ELF_X86_64 && elf->machine != ELF_AARCH64) || elf->is_32bit) {
        const char *name = process->version[0] == '\0' ? "a Go before 1.18" : process->version;
        (void)err_set(why, ERR_UNSUPPORTED, 0,
                      layout == NULL ? "profiles from memory know go 1.18 to go 1.27, not %.60s"
                                     : "profiles from memory know x86-64 and AArch64, this is another %.60s", name);
        return NULL;
    }
    struct go_memory *m = calloc(1, sizeof *m);
    if (m == NULL) {
        (void)err_set(why, ERR_MEMORY, 0, "no memory for profiles of a Go program");
        return NULL;
    }
    m->process = *process;
    m->layout = layout;
    m->keeps_lr = elf->machine == ELF_AARCH64;
    if (!find(m, why)) {
        go_memory_free(m);
        return NULL;
    }
    return m;
}

void go_memory_free(struct go_memory *m)
{
    free(m);
}

bool go_memory_settings(struct go_memory *m, struct go_settings *out, struct err *why)
{
    struct go_settings s = {0};
    unsigned char cycle[4];
    s.has_memory_rate = m->memory_rate != 0 && go_peek_word(m, m->memory_rate, &s.memory_rate) &&
                        s.memory_rate <= INT64_MAX;
    s.has_block_rate = m->block_rate != 0 && go_peek_word(m, m->block_rate, &s.block_rate);
    s.has_mutex_rate = m->mutex_rate != 0 && go_peek_word(m, m->mutex_rate, &s.mutex_rate);
    if (m->cycle != 0 && go_peek(m, m->cycle, cycle, sizeof cycle)) {
        s.collections = load_u32(cycle) >> (m->layout->cycle_has_flag ? 1 : 0);
    }
    if (m->unread.kind != ERR_NONE) {
        return go_unread(m, why, "settings of a Go program");
    }
    *out = s;
    return true;
}

const char *go_memory_remark(struct go_memory *m, enum go_profile profile)
{
    struct go_settings s;
    if (!go_memory_settings(m, &s, NULL)) {
        return NULL;
    }
    if (profile == GO_HEAP && s.has_memory_rate && s.memory_rate == 0) {
        return "the program samples no allocations: runtime.MemProfileRate is 0, as it is where nothing in the program "
               "refers to runtime.MemProfile (import net/http/pprof or runtime/pprof)";
    }
    if (profile == GO_BLOCK && s.has_block_rate && s.block_rate == 0) {
        return "the program samples no blocking: runtime.SetBlockProfileRate was not called";
    }
    if (profile == GO_MUTEX && s.has_mutex_rate && s.mutex_rate == 0) {
        return "the program samples no contention: runtime.SetMutexProfileFraction was not called";
    }
    if (profile == GO_WAITS && s.collections == 0 && m->cycle != 0) {
        return "the program has not collected garbage yet: how long goroutines wait is known from then on";
    }
    return NULL;
}
