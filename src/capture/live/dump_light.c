#include "capture/live/dump_light.h"
#include "encode/pprof_read.h"

#include <stdlib.h>

enum { PROFILE_MAX_BYTES = 64 << 20 };

static struct str state_of(const struct profile *p, uint32_t thread)
{
    struct str rest = profile_text(p, p->threads.at[thread].label[PROFILE_LABEL_OWN]), key, value;
    while (profile_next_pair(&rest, &key, &value)) {
        if (str_eq(key, STR("state"))) {
            return value;
        }
    }
    return STR("");
}

static uint64_t waited(const struct profile *p, uint32_t thread, uint32_t node)
{
    vec_each(&p->samples, sample)
    {
        if (sample->thread == thread && sample->node == node) {
            return sample->cpu_ns;
        }
    }
    return 0;
}

static int in_order(const void *a, const void *b)
{
    const struct dump_light *x = a, *y = b;
    bool x_runs = str_starts(x->state, STR("run")), y_runs = str_starts(y->state, STR("run"));
    return x_runs != y_runs       ? y_runs - x_runs
           : x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                                  : (x->node > y->node) - (x->node < y->node);
}

bool dump_lights_read(struct dump_lights *lights, const struct runtime_profiles *of, uint32_t pid)
{
    const struct importer_origin origin = {.pid = pid};
    struct profile *p = &lights->profile;
    struct err err;
    *lights = (struct dump_lights){0};
    bool any = false;
    vec_each(&of->all, made)
    {
        if (made->pid == pid && strcmp(made->type, "goroutinewait") == 0) {
            any = profile_init(p, PROFILE_MAX_BYTES, &err) &&
                  pprof_read_runtime(p, buf_slice(&made->bytes), &origin, &err);
        }
    }
    for (size_t i = 0; any && i < p->occurrences.len; i++) {
        const struct occurrence *o = &p->occurrences.at[i];
        struct dump_light *light = vec_push(&lights->all);
        if (light != NULL) {
            *light = (struct dump_light){o->node, state_of(p, o->thread), o->amount, waited(p, o->thread, o->node)};
        }
    }
    if (lights->all.len > 0) {
        qsort(lights->all.at, lights->all.len, sizeof lights->all.at[0], in_order);
    }
    return any && lights->all.len > 0;
}

void dump_lights_release(struct dump_lights *lights)
{
    vec_release(&lights->all);
    profile_release(&lights->profile);
}
