#include "runtime/generated/jit.h"

#include <stdlib.h>

#include "runtime/generated/jit_private.h"

struct jit_names *jit_names_new(size_t max_bytes)
{
    struct jit_names *names = calloc(1, sizeof *names);
    if (names != NULL) {
        size_t beside = sizeof *names + JIT_DUMP_MAX_BYTES;
        names->index.max_bytes = max_bytes > beside ? max_bytes - beside : 0;
        jit_dump_init(&names->dump);
    }
    return names;
}

void jit_names_free(struct jit_names *names)
{
    if (names != NULL) {
        jit_index_release(&names->index);
        jit_dump_release(&names->dump);
        free(names);
    }
}

bool jit_lookup(struct jit_names *names, uint64_t address, uint64_t time_ns, struct jit_hit *out)
{
    const struct jit_code *code = jit_index_find(&names->index, address, time_ns);
    if (code == NULL) {
        return false;
    }
    struct jit_hit hit = {
        .name = jit_text_name(&names->index.texts, code->text),
        .file = STR(""),
        .start = code->start,
        .limit = code->start + code->bytes,
    };
    (void)jit_lines_find(jit_text_lines(&names->index.texts, code->text),
                         address - code->start + names->dump.line_bias, &hit.line, &hit.file);
    *out = hit;
    return true;
}
