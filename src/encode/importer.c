/* What the readers of profile files share: texts, threads, frames and stacks of a file become rows of
 * a profile that may hold other files already. What does not fit goes to "[lost]", and totals are
 * bounded. */
#include "encode/importer.h"

#include "encode/value.h"

void importer_init(struct importer *in, struct profile *p)
{
    struct profile_totals sum = profile_sum(p);
    *in = (struct importer){.profile = p, .total_ns = sum.cpu_ns, .count = sum.count};
}

uint32_t importer_text(struct importer *in, struct str text, bool *fits)
{
    uint32_t id = profile_string(in->profile, text);
    *fits &= id != 0 || text.len == 0;
    return id;
}

bool importer_value(struct importer *in, struct str name, struct str unit, struct err *err)
{
    enum { SHOWN_MAX = 40 };
    struct profile *p = in->profile;
    if (p->samples.len > 1 && !str_eq(name, profile_text(p, p->meta.value))) {
        struct str this = name.len > 0 ? str_sub(name, 0, SHOWN_MAX) : STR("CPU time");
        struct str that = str_sub(value_name(p), 0, SHOWN_MAX);
        return err_set(err, ERR_UNSUPPORTED, 0,
                       "%.*s cannot be added to %.*s, which the files before it hold",
                       (int)this.len, this.ptr, (int)that.len, that.ptr);
    }
    bool fits = true;
    p->meta.value = importer_text(in, name, &fits);
    p->meta.unit = importer_text(in, unit, &fits);
    return fits || err_set(err, ERR_MEMORY, 0, "no memory for the name of a sample type");
}

/* Stands in for the start time of a process that the file has no id of. */
static uint64_t key_of_names(const struct importer_origin *o, struct str comm)
{
    return hash_u64(str_hash(o->container) ^ hash_u64(str_hash(comm))) ^ str_hash(o->appid);
}

uint32_t importer_thread(struct importer *in, const struct importer_origin *o)
{
    bool fits = true;
    struct str comm = o->comm.len > 0 ? o->comm : o->thread_name;
    struct process process = {
        .pid = o->pid,
        .start_ticks = o->pid != 0 ? o->start_ticks : key_of_names(o, comm),
        .name = importer_text(in, comm, &fits),
        .container = importer_text(in, o->container, &fits),
        .appid = importer_text(in, o->appid, &fits),
        .runtime = importer_text(in, o->runtime, &fits),
    };
    uint32_t name = o->thread_name.len > 0 ? importer_text(in, o->thread_name, &fits) : process.name;
    uint32_t id = fits ? profile_process(in->profile, &process) : 0;
    uint32_t thread = id == 0 ? 0 : profile_thread(in->profile, id, o->tid, name);
    return thread == 0 ? 0 : profile_labelled(in->profile, thread, o->labels);
}

uint32_t importer_frame(struct importer *in, struct str name, uint32_t line, enum frame_kind kind)
{
    bool fits = true;
    struct frame frame = {.name = importer_text(in, name, &fits), .line = line, .kind = (uint8_t)kind};
    return fits ? profile_frame(in->profile, &frame) : 0;
}

uint32_t importer_stack(struct importer *in, const uint32_t *frames, size_t depth)
{
    uint32_t node = 0;
    if (depth > IMPORTER_DEPTH_MAX) {
        node = profile_child(in->profile, 0, importer_frame(in, STR("[truncated]"), 0, FRAME_NATIVE));
        frames += depth - IMPORTER_DEPTH_MAX;
        depth = IMPORTER_DEPTH_MAX;
        if (node == 0) {
            return 0;
        }
    }
    for (size_t i = 0; i < depth; i++) {
        node = profile_child(in->profile, node, frames[i]);
        if (node == 0) {
            return 0;
        }
    }
    return node;
}

bool importer_add(struct importer *in, uint32_t thread, uint32_t node, uint64_t cpu_ns, uint64_t count, struct err *err)
{
    if (cpu_ns > IMPORTER_TOTAL_MAX_NS - in->total_ns || count > IMPORTER_TOTAL_MAX_NS - in->count) {
        return err_set(err, ERR_LIMIT, 0, "the weights add up to more than 146 years of CPU time");
    }
    struct profile *p = in->profile;
    in->total_ns += cpu_ns;
    in->count += count;
    uint32_t process = p->threads.at[thread].process;
    if (process != 0) {
        p->processes.at[process].cpu_ns += cpu_ns;
    }
    profile_add(p, thread, node, cpu_ns, count);
    return true;
}

enum frame_kind importer_plain_kind(struct str name)
{
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        if (str_eq(name, str_of(account_name((enum account)a)))) {
            return FRAME_ACCOUNT;
        }
    }
    return FRAME_NATIVE;
}
