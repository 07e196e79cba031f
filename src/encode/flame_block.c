/* A profile's data block in the flame graph's page: the profile is folded, its names are tallied and its weights' unit
 * is chosen, of which the static part is made as well; then the block's header is written as JSON, and the rest by
 * flame_data.c. */
#include "encode/flame_block.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/time.h"
#include "base/version.h"
#include "encode/flame.h"
#include "encode/value.h"

enum { HEADER_MAX_BYTES = 16 << 20 };

struct str flame_service(const struct profile *p)
{
    return p->meta.service != 0 ? profile_text(p, p->meta.service) : STR("profile");
}

uint64_t flame_process_ns(const struct flame *f, uint32_t id)
{
    uint64_t cpu_ns = f->p->processes.at[id].cpu_ns;
    return cpu_ns != 0 ? cpu_ns : f->sampled_ns[id];
}

/* Preparation. */

static bool weigh_processes(struct flame *f)
{
    const struct profile *p = f->p;
    f->sampled_ns = calloc(p->processes.len, sizeof *f->sampled_ns);
    f->heaviest = calloc(FLAME_PROCESS_ROWS_MAX + 1, sizeof *f->heaviest);
    if (f->sampled_ns == NULL || f->heaviest == NULL) {
        return false;
    }
    for (size_t i = 1; i < p->samples.len; i++) {
        const struct sample *s = &p->samples.at[i];
        f->sampled_ns[p->threads.at[s->thread].process] += s->cpu_ns;
    }
    f->process_count = p->processes.len - 1;
    size_t kept = 0;
    for (uint32_t id = 1; id < p->processes.len; id++) {
        size_t at = kept;
        while (at > 0 && flame_process_ns(f, f->heaviest[at - 1]) < flame_process_ns(f, id)) {
            at--;
        }
        memmove(f->heaviest + at + 1, f->heaviest + at, (kept - at) * sizeof *f->heaviest);
        f->heaviest[at] = id;
        kept += kept < FLAME_PROCESS_ROWS_MAX;
    }
    return true;
}

static bool all_whole(const struct fold *fold, uint64_t unit_ns)
{
    for (size_t i = 0; i < fold->nodes.len; i++) {
        if (fold->nodes.at[i].self_ns % unit_ns != 0) {
            return false;
        }
    }
    return true;
}

static void choose_unit(struct flame *f)
{
    const struct profile_meta *meta = &f->p->meta;
    f->unit_ns = meta->period_ns != 0 ? meta->period_ns
                 : meta->frequency_hz != 0 ? NS_PER_S / meta->frequency_hz : 1;
    f->exact = all_whole(&f->fold, f->unit_ns) && all_whole(&f->base_fold, f->unit_ns);
}

static void find_places(struct flame *f, const struct profile *p, const struct fold *fold, const uint32_t *ids)
{
    for (size_t i = 1; i < p->frames.len; i++) {
        const struct frame *frame = &p->frames.at[i];
        uint32_t place = frame->module != 0 ? p->modules.at[frame->module].path : frame->file;
        uint32_t name = fold->name_of[i];
        flame_tally_place(&f->tally, ids ? ids[name] : name, (enum frame_kind)frame->kind, ids ? ids[place] : place);
    }
}

/* The ids that base's strings have in p. */
static uint32_t *adopt_strings(struct profile *p, const struct profile *base)
{
    uint32_t *ids = calloc(base->strings.len, sizeof *ids);
    for (size_t i = 1; ids != NULL && i < base->strings.len; i++) {
        ids[i] = profile_string(p, base->strings.at[i]);
    }
    return ids;
}

/* Pids differ from run to run, so a comparison is by container and thread name. */
static bool prepare_diff(struct flame *f, struct err *err)
{
    if (!fold_build(&f->fold, f->p, FOLD_BY_COMM, err) ||
        !fold_build(&f->base_fold, f->base, FOLD_BY_COMM, err)) {
        return false;
    }
    uint32_t *ids = adopt_strings(f->p, f->base);
    if (ids == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory to compare two profiles");
    }
    vec_each(&f->base_fold.nodes, n)
    {
        n->name = ids[n->name];
    }
    bool ok = flame_tally_init(&f->tally, f->p, &f->fold, &f->base_fold, err);
    if (ok) {
        find_places(f, f->base, &f->base_fold, ids);
        ok = changes_find(&f->changes, &f->tally, f->p, f->base, err);
    }
    free(ids);
    return ok;
}

bool flame_prepare(struct flame *f, struct err *err)
{
    f->sum = profile_sum(f->p);
    if (f->base != NULL) {
        f->base_sum = profile_sum(f->base);
        if (!prepare_diff(f, err)) {
            return false;
        }
    } else if (!fold_build(&f->fold, f->p, FOLD_BY_PROCESS, err) ||
               !flame_tally_init(&f->tally, f->p, &f->fold, NULL, err)) {
        return false;
    }
    if (!flame_tally_lines(&f->tally, f->p, err)) {
        return false;
    }
    if (!weigh_processes(f)) {
        return err_set(err, ERR_MEMORY, 0, "no memory to write the flame graph");
    }
    find_places(f, f->p, &f->fold, NULL);
    choose_unit(f);
    if (f->base == NULL) {
        f->times = flame_times_of(f->p, &f->fold, f->unit_ns);
    }
    return true;
}

void flame_release(struct flame *f)
{
    flame_tally_release(&f->tally);
    flame_times_release(&f->times);
    changes_release(&f->changes);
    fold_release(&f->fold);
    fold_release(&f->base_fold);
    free(f->sampled_ns);
    free(f->heaviest);
    *f = (struct flame){.p = f->p, .base = f->base};
}

/* The header of the data block. */

static void json_key(struct buf *json, const char *key)
{
    buf_printf(json, ",\n\"%s\":", key);
}

static void json_member_text(struct buf *json, const char *key, struct str text)
{
    json_key(json, key);
    json_text(json, text);
}

static void json_number(struct buf *json, const char *key, uint64_t value)
{
    json_key(json, key);
    buf_printf(json, "%llu", (unsigned long long)value);
}

/* [[name, suffix of collapsed stacks, light and dark colour, how names look], …] by kind */
static void json_kinds(struct buf *json)
{
    json_key(json, "kinds");
    for (unsigned kind = 0; kind < FRAME_KIND_COUNT; kind++) {
        const struct language *l = &languages[kind];
        buf_printf(json, "%s[\"%s\",\"%s\",%u,%u,%u]", kind == 0 ? "[" : ",", l->name, l->suffix,
                   (unsigned)l->light, (unsigned)l->dark, (unsigned)l->form);
    }
    buf_text(json, "]");
    json_number(json, "unseen", FRAME_ACCOUNT);
}

/* [[name, container], …] one per node below the root, in their order */
static void json_processes(struct buf *json, const struct flame *f)
{
    const struct fold_node *at = f->fold.nodes.at;
    json_key(json, "processes");
    buf_text(json, "[");
    for (uint32_t n = at[0].first_child; n != 0; n = at[n].next_sibling) {
        const struct process *process = &f->p->processes.at[at[n].process];
        buf_text(json, n == at[0].first_child ? "\n[" : ",\n[");
        json_text(json, profile_text(f->p, process->name));
        buf_text(json, ",");
        json_text(json, profile_text(f->p, process->container));
        buf_text(json, "]");
    }
    buf_text(json, "]");
}

static void write_header(struct buf *json, const struct flame *f)
{
    const struct profile_meta *meta = &f->p->meta;
    buf_printf(json, "{\"format\":%d", FLAME_FORMAT_VERSION);
    json_member_text(json, "version", STR(PILLION_VERSION));
    json_member_text(json, "service", flame_service(f->p));
    json_member_text(json, "host", profile_text(f->p, meta->host));
    json_number(json, "start_ms", meta->start_wall_ns / NS_PER_MS);
    json_number(json, "end_ms", meta->end_wall_ns / NS_PER_MS);
    json_number(json, "hz", meta->frequency_hz);
    json_number(json, "unit_ns", f->unit_ns);
    if (value_is_other(f->p)) {
        json_member_text(json, "value", value_name(f->p));
        json_member_text(json, "unit", profile_text(f->p, meta->unit));
        json_member_text(json, "noun", value_is_counted(f->p) ? value_noun(f->p) : STR(""));
    }
    json_key(json, "exact");
    buf_text(json, f->exact ? "true" : "false");
    json_key(json, "compared");
    buf_text(json, f->base != NULL ? "true" : "false");
    if (f->times.steps > 0) {
        json_number(json, "step_ns", f->times.step_ns);
        json_number(json, "steps", f->times.steps);
    }
    if (f->changes.is_told) {
        json_key(json, "changed");
        changes_json(json, &f->changes, &f->tally);
    }
    json_kinds(json);
    json_processes(json, f);
    buf_text(json, "}");
}

bool flame_put_block(struct page *page, struct flame *f, unsigned number)
{
    struct buf json;
    buf_init(&json, HEADER_MAX_BYTES);
    write_header(&json, f);
    if (json.failed) {
        buf_release(&json);
        return err_set(page->err, ERR_MEMORY, 0, "no memory to write the flame graph");
    }
    char id[12] = "";
    if (number > 0) {
        snprintf(id, sizeof id, "%u", number);
    }
    page_printf(page, "<script type=\"application/octet-stream\" id=\"data%s\">\n", id);
    bool ok = flame_data_write(&f->tally, &f->times, buf_slice(&json), f->unit_ns, f->exact, page);
    buf_release(&json);
    page_markup(page, "</script>\n");
    return ok;
}
