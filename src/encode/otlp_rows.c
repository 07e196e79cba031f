/* The tables of an OpenTelemetry profile and its samples: rows interned by their bytes, nodes that look
 * the same made one stack, and every sample with its process, type, stack and attributes, sorted and
 * merged. */
#include "encode/otlp_rows.h"

#include "base/protobuf.h"
#include "base/utf8.h"
#include "encode/otlp_wire.h"
#include "encode/pprof.h"

#include <stdlib.h>

enum { RECORD_MAX = 64 * 1024 * 1024 };

/* ---- texts and attributes ---- */

uint32_t otlp_rows_text(struct otlp_rows *rows, struct str text)
{
    buf_clear(&rows->text);
    utf8_add(&rows->text, text);
    return otlp_table_add(&rows->strings, buf_slice(&rows->text));
}

static uint32_t text_of(struct otlp_rows *rows, uint32_t string)
{
    return otlp_rows_text(rows, profile_text(rows->p, string));
}

void otlp_put_text(struct buf *out, struct str text)
{
    protobuf_varint(out, ANY_TEXT << 3 | PROTOBUF_BYTES);
    protobuf_varint(out, text.len);
    buf_str(out, text);
}

void otlp_put_number(struct buf *out, uint64_t number)
{
    protobuf_varint(out, ANY_NUMBER << 3 | PROTOBUF_VARINT);
    protobuf_varint(out, number);
}

/* The place of an attribute whose value is in rows->part. */
static uint32_t attribute(struct otlp_rows *rows, const char *key)
{
    struct buf row;
    buf_init(&row, RECORD_MAX);
    protobuf_u64(&row, ATTRIBUTE_KEY, otlp_rows_text(rows, str_of(key)));
    protobuf_message(&row, ATTRIBUTE_VALUE, &rows->part);
    uint32_t place = otlp_table_add(&rows->attributes, buf_slice(&row));
    rows->attributes.failed |= row.failed;
    buf_release(&row);
    return place;
}

static uint32_t text_attribute(struct otlp_rows *rows, const char *key, struct str value)
{
    if (value.len == 0) {
        return 0;
    }
    buf_clear(&rows->text);
    utf8_add(&rows->text, value);
    buf_clear(&rows->part);
    otlp_put_text(&rows->part, buf_slice(&rows->text));
    return attribute(rows, key);
}

static uint32_t number_attribute(struct otlp_rows *rows, const char *key, uint64_t value)
{
    if (value == 0) {
        return 0;
    }
    buf_clear(&rows->part);
    otlp_put_number(&rows->part, value);
    return attribute(rows, key);
}

/* One attribute at most, as a list of them. */
static void put_attribute(struct otlp_rows *rows, unsigned field, uint32_t place)
{
    buf_clear(&rows->part);
    protobuf_varint(&rows->part, place);
    if (place != 0) {
        protobuf_message(&rows->message, field, &rows->part);
    }
}

/* ---- locations ---- */

static uint32_t mapping_of(struct otlp_rows *rows, const struct frame *frame)
{
    uint32_t number = pprof_mapping_of(rows->p, frame);
    if (number == 0 || number >= rows->p->modules.len) {
        return 0;
    }
    const struct module *module = &rows->p->modules.at[number];
    const struct pprof_mapping *m = &rows->mappings_of.at[number];
    struct str path = profile_text(rows->p, module->path);
    bool is_kernel = str_eq(path, STR("[kernel]"));
    uint32_t file = otlp_rows_text(rows, is_kernel ? STR(PPROF_KERNEL_MAPPING) : path);
    uint32_t build_id = text_attribute(rows, "process.executable.build_id.gnu",
                                       profile_text(rows->p, module->build_id));
    buf_clear(&rows->message);
    protobuf_u64(&rows->message, MAPPING_START, m->start);
    protobuf_u64(&rows->message, MAPPING_LIMIT, m->limit);
    protobuf_u64(&rows->message, MAPPING_OFFSET, m->file_offset);
    protobuf_u64(&rows->message, MAPPING_FILE, file);
    put_attribute(rows, MAPPING_ATTRIBUTES, build_id);
    return otlp_table_add(&rows->mappings, buf_slice(&rows->message));
}

static uint32_t function_of(struct otlp_rows *rows, uint32_t frame)
{
    const struct function *f = &rows->functions_of.list.at[rows->functions_of.of_frame[frame]];
    /* a runtime's name for people holds the file and first line, which have fields of their own */
    bool told_apart = f->first_line != 0 && f->system_name != 0;
    uint32_t name = text_of(rows, told_apart ? f->system_name : f->name);
    uint32_t system_name = told_apart ? 0 : text_of(rows, f->system_name);
    uint32_t file = text_of(rows, f->file);
    name = name != 0 ? name : otlp_rows_text(rows, STR("[unknown]"));
    buf_clear(&rows->message);
    protobuf_u64(&rows->message, FUNCTION_NAME, name);
    protobuf_u64(&rows->message, FUNCTION_SYSTEM_NAME, system_name);
    protobuf_u64(&rows->message, FUNCTION_FILE, file);
    protobuf_u64(&rows->message, FUNCTION_START, f->first_line);
    return otlp_table_add(&rows->functions, buf_slice(&rows->message));
}

static uint32_t location_of(struct otlp_rows *rows, uint32_t id)
{
    const struct frame *frame = &rows->p->frames.at[id];
    uint32_t chain[PROFILE_INLINES_MAX], functions[PROFILE_INLINES_MAX];
    size_t count = profile_expand(rows->p, id, chain);
    uint32_t mapping = mapping_of(rows, frame);
    uint32_t type = text_attribute(rows, "profile.frame.type",
                                   str_of(languages[frame->kind].otel));
    for (size_t i = 0; i < count; i++) {
        functions[i] = function_of(rows, chain[i]);
    }
    buf_clear(&rows->message);
    protobuf_u64(&rows->message, LOCATION_MAPPING, mapping);
    protobuf_u64(&rows->message, LOCATION_ADDRESS, pprof_address_of(rows->p, frame));
    for (size_t i = 0; i < count; i++) {
        buf_clear(&rows->part);
        protobuf_u64(&rows->part, LINE_FUNCTION, functions[i]);
        protobuf_u64(&rows->part, LINE_NUMBER, rows->p->frames.at[chain[i]].line);
        protobuf_message(&rows->message, LOCATION_LINE, &rows->part);
    }
    put_attribute(rows, LOCATION_ATTRIBUTES, type);
    return otlp_table_add(&rows->locations, buf_slice(&rows->message));
}

/* ---- stacks ---- */

struct twin_key {
    uint32_t parent, location;
};

static struct twin_key key_of(const struct otlp_rows *rows, uint32_t node)
{
    const struct node *n = &rows->p->nodes.at[node];
    return (struct twin_key){rows->twin[n->parent], rows->location[n->frame]};
}

static uint64_t hash_key(struct twin_key key)
{
    return hash_u64((uint64_t)key.parent << 32 | key.location);
}

static uint64_t twin_hash(const void *owner, uint32_t id)
{
    return hash_key(key_of(owner, id));
}

static bool twin_same(const void *owner, uint32_t id, const void *key)
{
    struct twin_key one = key_of(owner, id), other = *(const struct twin_key *)key;
    return one.parent == other.parent && one.location == other.location;
}

static const struct intern_owner twin_ops = {twin_hash, twin_same};

/* twin[] says which nodes are used, until each has its twin. Parents stand before children. */
static void use_nodes(struct otlp_rows *rows)
{
    const struct profile *p = rows->p;
    for (size_t i = 1; i < p->samples.len; i++) {
        rows->twin[p->samples.at[i].node] |= p->samples.at[i].cpu_ns != 0;
    }
    vec_each(&p->waits, wait)
    {
        rows->twin[wait->node] |= wait->wait_ns != 0;
    }
    vec_each(&p->occurrences, o)
    {
        rows->twin[o->node] |= o->amount != 0;
    }
    for (size_t i = p->nodes.len; i-- > 1;) {
        rows->twin[p->nodes.at[i].parent] |= rows->twin[i];
    }
    rows->twin[0] = 0;
}

static bool find_twins(struct otlp_rows *rows)
{
    const struct profile *p = rows->p;
    use_nodes(rows);
    for (uint32_t i = 1; i < p->nodes.len; i++) {
        uint32_t frame = p->nodes.at[i].frame;
        if (rows->twin[i] == 0) {
            continue;
        }
        if (rows->location[frame] == 0) {
            rows->location[frame] = location_of(rows, frame);
        }
        struct twin_key key = key_of(rows, i);
        uint32_t found = intern_find(&rows->twins, &twin_ops, rows, hash_key(key), &key);
        rows->twin[i] = found != 0 ? found : i;
        if (found == 0 && !intern_add(&rows->twins, &twin_ops, rows, hash_key(key), i)) {
            return false;
        }
    }
    return true;
}

/* ---- samples ---- */

/* The stack's place; 0 for none, SIZE_MAX when memory ends. */
static size_t stack_of(struct otlp_rows *rows, uint32_t node)
{
    uint32_t twin = rows->twin[node];
    if (twin != 0 && rows->stack[twin] == 0) {
        uint32_t *leaf = vec_push(&rows->stacks);
        if (leaf == NULL) {
            return SIZE_MAX;
        }
        *leaf = twin;
        rows->stack[twin] = (uint32_t)(rows->stacks.len - 1);
    }
    return rows->stack[twin];
}

static bool add(struct otlp_rows *rows, unsigned type, uint32_t thread_id, uint32_t node,
                uint64_t value)
{
    const struct thread *thread = &rows->p->threads.at[thread_id];
    if (value == 0) {
        return true;
    }
    size_t stack = stack_of(rows, node);
    struct otlp_sample *s = stack == SIZE_MAX ? NULL : vec_push(&rows->samples);
    if (s == NULL) {
        return false;
    }
    uint32_t name = text_attribute(rows, "thread.name", profile_text(rows->p, thread->name));
    uint32_t id = number_attribute(rows, "thread.id", thread->tid);
    *s = (struct otlp_sample){rows->owner[thread->process], type, (uint32_t)stack, name, id, value};
    return true;
}

/* Wall time is CPU time and time spent waiting. */
static bool add_all(struct otlp_rows *rows)
{
    const struct profile *p = rows->p;
    bool has_waits = p->watches_waits || p->waits.len > 0, ok = vec_push(&rows->stacks) != NULL;
    for (size_t i = 1; ok && i < p->samples.len; i++) {
        const struct sample *s = &p->samples.at[i];
        ok = add(rows, OTLP_CPU, s->thread, s->node, s->cpu_ns) &&
             (!has_waits || add(rows, OTLP_WALL, s->thread, s->node, s->cpu_ns));
    }
    for (size_t i = 0; ok && i < p->waits.len; i++) {
        const struct wait *w = &p->waits.at[i];
        ok = add(rows, OTLP_OFF_CPU, w->thread, w->node, w->wait_ns) &&
             add(rows, OTLP_WALL, w->thread, w->node, w->wait_ns);
    }
    for (size_t i = 0; ok && i < p->occurrences.len; i++) {
        const struct occurrence *o = &p->occurrences.at[i];
        ok = add(rows, OTLP_EVENT + o->event, o->thread, o->node, o->amount);
    }
    return ok;
}

static int compare(const void *left, const void *right)
{
    const struct otlp_sample *a = left, *b = right;
    if (a->owner != b->owner) {
        return a->owner < b->owner ? -1 : 1;
    }
    if (a->type != b->type) {
        return a->type < b->type ? -1 : 1;
    }
    if (a->stack != b->stack) {
        return a->stack < b->stack ? -1 : 1;
    }
    if (a->thread_name != b->thread_name) {
        return a->thread_name < b->thread_name ? -1 : 1;
    }
    return (a->thread_id > b->thread_id) - (a->thread_id < b->thread_id);
}

/* A sample is what its stack and attributes are: equal ones are one. */
static void merge(struct otlp_rows *rows)
{
    size_t kept = 0;
    if (rows->samples.len > 0) {
        qsort(rows->samples.at, rows->samples.len, sizeof *rows->samples.at, compare);
    }
    for (size_t i = 0; i < rows->samples.len; i++) {
        struct otlp_sample *s = &rows->samples.at[i];
        if (kept > 0 && compare(&rows->samples.at[kept - 1], s) == 0) {
            rows->samples.at[kept - 1].value += s->value;
        } else {
            rows->samples.at[kept++] = *s;
        }
    }
    rows->samples.len = kept;
}

/* ---- owners ---- */

/* A process without a pid stands for all of its container. */
static bool find_owners(struct otlp_rows *rows)
{
    struct map of_container = {0};
    bool ok = true;
    for (uint32_t i = 1; ok && i < rows->p->processes.len; i++) {
        const struct process *process = &rows->p->processes.at[i];
        const struct map_slot *slot =
            process->pid == 0 ? map_find(&of_container, process->container) : NULL;
        rows->owner[i] = slot != NULL ? (uint32_t)slot->value : i;
        ok = process->pid != 0 || slot != NULL || map_put(&of_container, process->container, i);
    }
    map_release(&of_container);
    return ok;
}

bool otlp_rows_failed(const struct otlp_rows *rows)
{
    return rows->strings.failed || rows->attributes.failed || rows->mappings.failed ||
           rows->locations.failed || rows->functions.failed || rows->message.failed ||
           rows->part.failed || rows->text.failed;
}

static bool allocate(struct otlp_rows *rows)
{
    const struct profile *p = rows->p;
    rows->location = calloc(p->frames.len + 1, sizeof *rows->location);
    rows->twin = calloc(p->nodes.len + 1, sizeof *rows->twin);
    rows->stack = calloc(p->nodes.len + 1, sizeof *rows->stack);
    rows->owner = calloc(p->processes.len + 1, sizeof *rows->owner);
    return rows->location != NULL && rows->twin != NULL && rows->stack != NULL &&
           rows->owner != NULL;
}

bool otlp_rows_init(struct otlp_rows *rows, const struct profile *p, struct err *err)
{
    *rows = (struct otlp_rows){.p = p};
    struct otlp_table *const tables[] = {&rows->strings, &rows->attributes, &rows->mappings,
                                         &rows->locations, &rows->functions};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        otlp_table_init(tables[i]);
    }
    buf_init(&rows->message, RECORD_MAX);
    buf_init(&rows->part, RECORD_MAX);
    buf_init(&rows->text, RECORD_MAX);
    if (!functions_init(&rows->functions_of, p, NULL, err) ||
        !pprof_mappings_init(&rows->mappings_of, p, NULL, err)) {
        return false;
    }
    if (!allocate(rows) || !find_owners(rows) || !find_twins(rows) || !add_all(rows)) {
        return err_set(err, ERR_MEMORY, 0, "no memory for the tables of a profile");
    }
    merge(rows);
    return true;
}

void otlp_rows_release(struct otlp_rows *rows)
{
    otlp_table_release(&rows->strings);
    otlp_table_release(&rows->attributes);
    otlp_table_release(&rows->mappings);
    otlp_table_release(&rows->locations);
    otlp_table_release(&rows->functions);
    vec_release(&rows->stacks);
    vec_release(&rows->samples);
    free(rows->location);
    free(rows->twin);
    free(rows->stack);
    free(rows->owner);
    intern_release(&rows->twins);
    functions_release(&rows->functions_of);
    pprof_mappings_release(&rows->mappings_of);
    buf_release(&rows->message);
    buf_release(&rows->part);
    buf_release(&rows->text);
}
