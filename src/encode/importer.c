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

bool importer_type(struct importer *in, struct str wanted, struct str name, struct str unit, struct err *err)
{
    struct str held = name.len > 0 ? str_sub(name, 0, 40) : STR("cpu");
    if (wanted.len > 0 && !str_eq(wanted, name.len > 0 ? name : held)) {
        wanted = str_sub(wanted, 0, 40);
        return err_set(err, ERR_USAGE, 0, "there is no sample type %.*s in it; there is: %.*s",
                       (int)wanted.len, wanted.ptr, (int)held.len, held.ptr);
    }
    return importer_value(in, name, unit, err);
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

uint32_t importer_frame_in(struct importer *in, struct str name, struct str file, uint32_t line, enum frame_kind kind)
{
    bool fits = true;
    struct frame frame = {.name = importer_text(in, name, &fits), .line = line, .file = importer_text(in, file, &fits)};
    frame.kind = (uint8_t)(kind == FRAME_ACCOUNT ? importer_plain_kind(name) : kind);
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

bool importer_add_at(struct importer *in, uint32_t thread, uint32_t node, uint64_t cpu_ns, uint64_t count,
                     uint64_t time_ns, struct err *err)
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
    uint32_t sample = profile_add(p, thread, node, cpu_ns, count);
    if (sample != 0 && time_ns != IMPORTER_NO_TIME) {
        moments_add(&p->moments, sample, in->later_ns + time_ns, cpu_ns);
    }
    return true;
}

bool importer_add(struct importer *in, uint32_t thread, uint32_t node, uint64_t cpu_ns, uint64_t count, struct err *err)
{
    return importer_add_at(in, thread, node, cpu_ns, count, IMPORTER_NO_TIME, err);
}

void importer_begin(struct importer *in, uint64_t start_wall_ns)
{
    struct profile *p = in->profile;
    uint64_t there_ns = p->meta.start_wall_ns;
    if (p->moments.most == 0) {
        profile_keep_moments(p, 0);
    }
    if (there_ns != 0 && start_wall_ns != 0 && start_wall_ns < there_ns) {
        moments_shift(&p->moments, there_ns - start_wall_ns);
    }
    in->later_ns = there_ns != 0 && start_wall_ns > there_ns ? start_wall_ns - there_ns : 0;
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
