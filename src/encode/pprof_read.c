/* The samples of a pprof file: which of their values is CPU time and what the others are, where they
 * were taken by their labels, and their stacks. The tables that they refer to are read by
 * pprof_table.c. */
#include "encode/pprof_read.h"

#include "base/time.h"
#include "encode/collapsed.h"
#include "base/gzip.h"
#include "encode/pprof_table.h"
#include "encode/value.h"
#include "profile/merge.h"

#include <stdio.h>

/* --- which value is CPU time --- */

uint64_t pprof_time_unit_ns(struct str unit)
{
    static const struct {
        struct str name;
        uint64_t ns;
    } units[] = {
        {STR("nanoseconds"), 1},           {STR("ns"), 1},
        {STR("microseconds"), NS_PER_US},  {STR("us"), NS_PER_US},
        {STR("milliseconds"), NS_PER_MS},  {STR("ms"), NS_PER_MS},
        {STR("seconds"), NS_PER_S},        {STR("s"), NS_PER_S},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (str_eq(unit, units[i].name)) {
            return units[i].ns;
        }
    }
    return 0;
}

/* "samples/count, cpu/nanoseconds": what the file has; without units when only names matter. */
static void list_types(struct pprof_reader *r, bool units, struct buf *out)
{
    enum { SHOWN_MAX = 40 };
    vec_each(&r->types, type)
    {
        struct str name = str_sub(r->strings.at[type->name], 0, SHOWN_MAX);
        struct str unit = str_sub(r->strings.at[type->unit], 0, SHOWN_MAX);
        buf_text(out, out->len > 0 ? ", " : "");
        buf_str(out, name);
        if (units) {
            buf_text(out, "/");
            buf_str(out, unit);
        }
    }
    out->failed = false; /* a cut list is good enough for a sentence */
}

static bool unsuitable(struct pprof_reader *r)
{
    struct buf held;
    buf_init(&held, 200);
    list_types(r, true, &held);
    err_set(r->err, ERR_UNSUPPORTED, 0, "this pprof file holds no CPU time: its values are %s",
            held.len > 0 ? buf_cstr(&held) : "not named");
    buf_release(&held);
    return false;
}

static bool no_such_type(struct pprof_reader *r)
{
    struct buf held;
    struct str wanted = str_sub(r->wanted->type, 0, 40);
    buf_init(&held, 400);
    list_types(r, false, &held);
    err_set(r->err, ERR_USAGE, 0, "there is no sample type %.*s in it; there is: %s",
            (int)wanted.len, wanted.ptr, held.len > 0 ? buf_cstr(&held) : "none");
    buf_release(&held);
    return false;
}

/* The period in nanoseconds; 0 when the file has none; false when it is no time. */
static bool period_in_ns(struct pprof_reader *r, uint64_t *out)
{
    struct str unit;
    if (!pprof_text_at(r, r->period_type.unit, &unit)) {
        return false;
    }
    uint64_t one = pprof_time_unit_ns(unit);
    *out = r->period <= INT64_MAX / (one + (one == 0)) ? r->period * one : 0;
    return unit.len == 0 || one != 0 || r->period == 0;
}

static bool choose_count(struct pprof_reader *r)
{
    uint64_t period;
    if (r->count_value == SIZE_MAX || !period_in_ns(r, &period)) {
        return unsuitable(r);
    }
    r->time_value = r->count_value;
    r->scale_ns = period != 0 ? period : collapsed_period(r->in.profile);
    return true;
}

static bool choose_cpu_time(struct pprof_reader *r)
{
    for (size_t i = r->types.len; i-- > 0;) {
        struct str name, unit;
        if (!pprof_text_at(r, r->types.at[i].name, &name) ||
            !pprof_text_at(r, r->types.at[i].unit, &unit)) {
            return false;
        }
        bool is_chosen = r->time_value != SIZE_MAX &&
                         str_eq(r->strings.at[r->types.at[r->time_value].name], STR("cpu"));
        if (pprof_time_unit_ns(unit) != 0 && (str_eq(name, STR("cpu")) || !is_chosen)) {
            r->time_value = i;
            r->scale_ns = pprof_time_unit_ns(unit);
        }
        if (str_eq(unit, STR("count"))) {
            r->count_value = i;
        }
    }
    return r->time_value != SIZE_MAX || choose_count(r);
}

/* Of a whole file by their names alone: a heap's bytes are no CPU time, nor is the delay of a mutex. */
static bool is_cpu_time(struct str name)
{
    return str_eq(name, STR("cpu")) || str_eq(name, STR("cpu-time")) || str_eq(name, STR("cpu_time"));
}

static bool choose_named(struct pprof_reader *r)
{
    for (size_t i = r->types.len; i-- > 0;) {
        struct str name, unit;
        if (!pprof_text_at(r, r->types.at[i].name, &name) || !pprof_text_at(r, r->types.at[i].unit, &unit)) {
            return false;
        }
        if (pprof_time_unit_ns(unit) != 0 && is_cpu_time(name)) {
            r->time_value = i;
            r->scale_ns = pprof_time_unit_ns(unit);
        }
        if (str_eq(unit, STR("count")) && str_eq(name, STR("samples"))) {
            r->count_value = i;
        }
    }
    uint64_t period;
    if (r->time_value != SIZE_MAX || r->count_value == SIZE_MAX) {
        return true;
    }
    if (period_in_ns(r, &period)) {
        return choose_count(r);
    }
    r->count_value = SIZE_MAX; /* of something else */
    return true;
}

static bool choose_wanted(struct pprof_reader *r)
{
    struct str unit = STR("");
    vec_each(&r->types, type)
    {
        struct str name;
        if (!pprof_text_at(r, type->name, &name) || !pprof_text_at(r, type->unit, &unit)) {
            return false;
        }
        size_t at = (size_t)(type - r->types.at);
        if (str_eq(unit, STR("count")) && r->count_value == SIZE_MAX) {
            r->count_value = at;
        }
        if (str_eq(name, r->wanted->type) && r->time_value == SIZE_MAX) {
            r->time_value = at;
            r->scale_ns = pprof_time_unit_ns(unit);
        }
    }
    if (r->time_value == SIZE_MAX) {
        return no_such_type(r);
    }
    unit = r->strings.at[r->types.at[r->time_value].unit];
    r->is_counted = r->scale_ns == 0;
    r->scale_ns += r->is_counted;
    return importer_value(&r->in, r->wanted->type, r->is_counted ? unit : STR(VALUE_TIME_UNIT), r->err);
}

static bool has_type(const struct pprof_reader *r, struct str name)
{
    vec_each(&r->types, type)
    {
        if (type->name < r->strings.len && str_eq(r->strings.at[type->name], name)) {
            return true;
        }
    }
    return false;
}

/* What the others are; below OTHER_NONE places of events. */
enum { OTHER_NONE = PROFILE_EVENTS_MAX, OTHER_WAITING };

/* Our own comments tell what pprof has no field for. */
static struct str comment_after(const struct pprof_reader *r, struct str what)
{
    vec_each(&r->comments, index)
    {
        struct str text = *index < r->strings.len ? r->strings.at[*index] : STR("");
        if (str_starts(text, what)) {
            return str_sub(text, what.len, text.len);
        }
    }
    return STR("");
}

/* Ours: time spent waiting, and wall time, which is the sum of that and CPU time. Others may mean something else. */
static bool is_ours(const struct pprof_reader *r)
{
    return comment_after(r, STR("made by: pillion ")).len > 0;
}

static uint32_t other_of(struct pprof_reader *r, size_t at)
{
    struct str name = r->strings.at[r->types.at[at].name], unit = r->strings.at[r->types.at[at].unit];
    bool is_told = is_ours(r) && str_eq(unit, STR(VALUE_TIME_UNIT));
    if (at == r->time_value || at == r->count_value || (is_told && str_eq(name, STR("wall")))) {
        return OTHER_NONE;
    }
    if (is_told && str_eq(name, STR("off_cpu"))) {
        return OTHER_WAITING;
    }
    for (uint32_t i = 0; i < r->events_before; i++) {
        const struct event_type *known = &r->in.profile->event_types.at[i];
        if (str_eq(name, profile_text(r->in.profile, known->name)) &&
            str_eq(unit, profile_text(r->in.profile, known->unit))) {
            return i;
        }
    }
    if (r->in.profile->event_types.len == PROFILE_EVENTS_MAX) {
        r->types_left_out = true;
        return OTHER_NONE;
    }
    char texts[2][64];
    snprintf(texts[0], sizeof texts[0], "%.*s", (int)(name.len < 63 ? name.len : 63), name.ptr);
    snprintf(texts[1], sizeof texts[1], "%.*s", (int)(unit.len < 63 ? unit.len : 63), unit.ptr);
    return profile_event_type(r->in.profile, texts[0], texts[1]);
}

static bool choose_others(struct pprof_reader *r)
{
    r->events_before = (uint32_t)r->in.profile->event_types.len;
    for (size_t i = 0; r->wanted->whole && i < r->types.len; i++) {
        struct str text;
        if (!pprof_text_at(r, r->types.at[i].name, &text) || !pprof_text_at(r, r->types.at[i].unit, &text)) {
            return false;
        }
        uint32_t *other = vec_push(&r->others);
        if (other == NULL) {
            return pprof_no_memory(r);
        }
        *other = other_of(r, i);
        r->in.profile->watches_waits |= *other == OTHER_WAITING;
    }
    return !r->types_left_out || err_set(r->err, ERR_LIMIT, 0, "this pprof file holds %zu sample types; %d are read",
                                         r->types.len, PROFILE_EVENTS_MAX);
}

/* CPU time by its name is what is chosen anyway. */
static bool choose_value(struct pprof_reader *r)
{
    bool is_cpu = str_eq(r->wanted->type, STR("cpu")) && has_type(r, r->wanted->type);
    r->time_value = r->count_value = SIZE_MAX;
    if (r->wanted->type.len > 0 && !is_cpu) {
        return choose_wanted(r);
    }
    return (r->types.len == 0 || (r->wanted->whole ? choose_named(r) : choose_cpu_time(r))) &&
           importer_value(&r->in, STR(""), STR(""), r->err) && choose_others(r);
}

/* --- fourth pass: samples --- */

static bool push_numbers(struct pprof_reader *r, const struct protobuf_field *f)
{
    size_t at = 0;
    uint64_t number;
    bool damaged = false;
    while (protobuf_packed_next(f, &at, &number, &damaged)) {
        uint64_t *added = vec_push(&r->numbers);
        if (added == NULL) {
            return pprof_no_memory(r);
        }
        *added = number;
    }
    return !damaged || pprof_malformed(r, "a sample is cut off");
}

/* All numbers of one repeated field of a sample, into r->numbers. */
static bool collect(struct pprof_reader *r, struct cursor sample, unsigned field)
{
    struct protobuf_field f;
    vec_clear(&r->numbers);
    while (protobuf_next(&sample, &f)) {
        if (f.number == field && !push_numbers(r, &f)) {
            return false;
        }
    }
    return !sample.short_read || pprof_malformed(r, "a sample is cut off");
}

/* Locations come leaf first, a stack is root first. */
static bool read_stack(struct pprof_reader *r, struct cursor sample)
{
    if (!collect(r, sample, PPROF_SAMPLE_LOCATION)) {
        return false;
    }
    vec_clear(&r->stack);
    for (size_t i = r->numbers.len; i-- > 0;) {
        const struct map_slot *slot = map_find(&r->location_ids, r->numbers.at[i]);
        if (slot == NULL) {
            return pprof_malformed(r, "a sample at a location that does not exist");
        }
        const struct pprof_location_row *row = &r->locations.at[slot->value];
        for (uint32_t k = 0; k < row->count; k++) {
            if (++r->steps > PPROF_READ_MAX_STEPS) {
                return err_set(r->err, ERR_LIMIT, 0, "too many frames: at most %d are read",
                               PPROF_READ_MAX_STEPS);
            }
            uint32_t *frame = vec_push(&r->stack);
            if (frame == NULL) {
                return pprof_no_memory(r);
            }
            *frame = r->frames.at[row->first + k];
        }
    }
    return true;
}

struct label {
    struct str key, text;
    uint64_t number;
};

static bool read_label(struct pprof_reader *r, struct cursor message, struct label *label)
{
    uint64_t value[PPROF_FIELDS_MAX];
    if (!pprof_numbers_of(r, message, value, "a label is cut off")) {
        return false;
    }
    label->number = value[PPROF_LABEL_NUMBER];
    return pprof_text_at(r, value[PPROF_LABEL_KEY], &label->key) &&
           pprof_text_at(r, value[PPROF_LABEL_TEXT], &label->text);
}

static uint32_t id_number(const struct label *label)
{
    uint64_t number = label->number;
    if (label->text.len > 0 && !str_u64(label->text, &number)) {
        number = 0;
    }
    return number <= UINT32_MAX ? (uint32_t)number : 0;
}

enum { OWN_LABELS_MAX = 4096 }; /* bytes of a sample's; more are left out */
enum label_meaning { LABEL_PID, LABEL_TID, LABEL_THREAD, LABEL_COMM, LABEL_CONTAINER, LABEL_APPID,
                     LABEL_OTHER };

static enum label_meaning meaning_of(struct str key)
{
    static const struct {
        struct str key;
        enum label_meaning meaning;
    } keys[] = {
        {STR("process_id"), LABEL_PID},       {STR("pid"), LABEL_PID},
        {STR("thread id"), LABEL_TID},        {STR("thread_id"), LABEL_TID},
        {STR("tid"), LABEL_TID},              {STR("thread name"), LABEL_THREAD},
        {STR("thread_name"), LABEL_THREAD},   {STR("thread"), LABEL_THREAD},
        {STR("comm"), LABEL_COMM},            {STR("process_name"), LABEL_COMM},
        {STR("container"), LABEL_CONTAINER},  {STR("container_id"), LABEL_CONTAINER},
        {STR("appid"), LABEL_APPID},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (str_eq(key, keys[i].key)) {
            return keys[i].meaning;
        }
    }
    return LABEL_OTHER;
}

/* Those that a runtime told keep the names that we write; others are the program's own. */
static void take_told(struct pprof_reader *r, struct importer_origin *o, const struct label *label)
{
    for (unsigned i = 0; i < PROFILE_LABELS_NAMED; i++) {
        if (str_eq(label->key, str_of(profile_label_name((enum profile_label)i)))) {
            o->labels[i] = label->text;
            return;
        }
    }
    if (label->text.len > 0) {
        buf_str(&r->own_labels, label->key);
        buf_byte(&r->own_labels, '\0');
        buf_str(&r->own_labels, label->text);
        buf_byte(&r->own_labels, '\0');
    }
}

static void take_label(struct pprof_reader *r, struct importer_origin *o, const struct label *label)
{
    switch (meaning_of(label->key)) {
    case LABEL_PID:
        o->pid = id_number(label);
        break;
    case LABEL_TID:
        o->tid = id_number(label);
        break;
    case LABEL_THREAD:
        o->thread_name = label->text;
        break;
    case LABEL_COMM:
        o->comm = label->text;
        break;
    case LABEL_CONTAINER:
        o->container = label->text;
        break;
    case LABEL_APPID:
        o->appid = label->text;
        break;
    case LABEL_OTHER:
        take_told(r, o, label);
        break;
    }
}

static bool read_origin(struct pprof_reader *r, struct cursor sample, struct importer_origin *o)
{
    struct protobuf_field f;
    *o = r->wanted->of != NULL ? *r->wanted->of : (struct importer_origin){0};
    buf_clear(&r->own_labels);
    while (protobuf_next(&sample, &f)) {
        struct label label;
        if (f.number == PPROF_SAMPLE_LABEL) {
            if (!read_label(r, pprof_message(&f), &label)) {
                return false;
            }
            take_label(r, o, &label);
        }
    }
    o->labels[PROFILE_LABEL_OWN] = r->own_labels.failed ? STR("") : buf_slice(&r->own_labels);
    if (o->comm.len == 0 && o->thread_name.len == 0) {
        o->comm = r->mappings.len > 0 ? str_base_name(r->mappings.at[0].file) : STR("");
    }
    if (o->comm.len == 0 && o->thread_name.len == 0) {
        o->comm = STR("all");
    }
    return true;
}

static bool read_weight(struct pprof_reader *r, struct cursor sample, uint64_t *cpu_ns,
                        uint64_t *count)
{
    if (!collect(r, sample, PPROF_SAMPLE_VALUE)) {
        return false;
    }
    if (r->numbers.len != r->types.len) {
        return pprof_malformed(r, "a sample has not as many values as there are sample types");
    }
    for (size_t i = 0; i < r->numbers.len; i++) {
        if (r->numbers.at[i] > INT64_MAX) {
            return err_set(r->err, ERR_UNSUPPORTED, 0,
                           "this pprof file holds negative values, as a difference of two profiles "
                           "does");
        }
    }
    if (r->time_value == SIZE_MAX) {
        *cpu_ns = *count = 0;
    } else {
        if (__builtin_mul_overflow(r->numbers.at[r->time_value], r->scale_ns, cpu_ns)) {
            *cpu_ns = UINT64_MAX; /* beyond the total's limit: importer_add refuses it */
        }
        *count = r->count_value != SIZE_MAX ? r->numbers.at[r->count_value] : 1;
    }
    vec_clear(&r->values);
    for (size_t i = 0; i < r->others.len; i++) {
        uint64_t *value = vec_push(&r->values);
        if (value == NULL) {
            return pprof_no_memory(r);
        }
        *value = r->numbers.at[i];
    }
    return true;
}

static void add_others(struct pprof_reader *r, uint32_t thread, uint32_t node)
{
    for (size_t i = 0; i < r->values.len; i++) {
        if (r->others.at[i] == OTHER_WAITING && r->values.at[i] > 0) {
            profile_add_wait(r->in.profile, thread, node, r->values.at[i]);
        } else if (r->others.at[i] < OTHER_NONE && r->values.at[i] > 0) {
            profile_add_event(r->in.profile, r->others.at[i], thread, node, r->values.at[i]);
        }
    }
}

static bool add_sample(struct pprof_reader *r, struct cursor sample)
{
    uint64_t cpu_ns = 0, count = 0;
    struct importer_origin origin;
    if (r->types.len == 0) {
        return pprof_malformed(r, "it has samples but no sample types");
    }
    if (!read_weight(r, sample, &cpu_ns, &count) || !read_origin(r, sample, &origin) ||
        !read_stack(r, sample)) {
        return false;
    }
    if (r->stack.len == 0) {
        uint32_t *frame = vec_push(&r->stack);
        if (frame == NULL) {
            return pprof_no_memory(r);
        }
        *frame = importer_frame(&r->in, STR("[unknown]"), 0, FRAME_NATIVE);
    }
    if (cpu_ns == 0 && r->values.len == 0 && (count == 0 || r->wanted->type.len > 0)) {
        return true;
    }
    if (r->wanted->live != NULL) {
        struct live_sample told = {.cpu_ns = cpu_ns, .node = importer_stack(&r->in, r->stack.at, r->stack.len)};
        r->wanted->live->sample(r->wanted->live->context, &told);
        return true;
    }
    uint32_t thread = importer_thread(&r->in, &origin);
    uint32_t node = importer_stack(&r->in, r->stack.at, r->stack.len);
    add_others(r, thread, node);
    return (cpu_ns == 0 && count == 0) || importer_add(&r->in, thread, node, cpu_ns, count, r->err);
}

static bool fourth_field(struct pprof_reader *r, const struct protobuf_field *f)
{
    return f->number != PPROF_SAMPLE || add_sample(r, pprof_message(f));
}

/* --- the whole --- */

static bool each_field(struct pprof_reader *r,
                       bool (*take)(struct pprof_reader *, const struct protobuf_field *))
{
    struct cursor message = cursor_of(r->file.ptr, r->file.len);
    struct protobuf_field f;
    while (protobuf_next(&message, &f)) {
        bool is_record = f.number <= PPROF_STRING || f.number == PPROF_PERIOD_TYPE;
        if (is_record && f.wire != PROTOBUF_BYTES) {
            return pprof_malformed(r, "a record is a number");
        }
        if (!take(r, &f)) {
            return false;
        }
    }
    return !message.short_read || pprof_malformed(r, "it is cut off or no protocol buffer");
}

static uint32_t told(struct pprof_reader *r, struct str what)
{
    bool fits = true;
    return importer_text(&r->in, comment_after(r, what), &fits);
}

static bool read_meta(struct pprof_reader *r)
{
    uint64_t period;
    struct profile_meta meta = {.start_wall_ns = r->when.time_ns, .end_wall_ns = r->when.time_ns};
    if (r->when.duration_ns < IMPORTER_TOTAL_MAX_NS && r->when.time_ns < IMPORTER_TOTAL_MAX_NS) {
        meta.end_wall_ns += r->when.duration_ns;
    }
    if (r->is_counted) {
        meta.period_ns = 1;
    } else if (r->period_type.unit < r->strings.len && period_in_ns(r, &period) && period > 0) {
        meta.period_ns = period;
        meta.frequency_hz = (uint32_t)((NS_PER_S + period / 2) / period);
    }
    meta.service = told(r, STR("service: "));
    meta.host = told(r, STR("host: "));
    meta.mode = told(r, STR("mode: "));
    meta.reason = told(r, STR("reason: "));
    meta.budget = told(r, STR("budget: "));
    (void)str_u64(comment_after(r, STR("window: ")), &meta.window);
    profile_merge_meta(r->in.profile, &meta);
    return true;
}

static bool read_all(struct pprof_reader *r)
{
    if (r->file.len == 0) {
        return pprof_malformed(r, "it is empty");
    }
    if (!each_field(r, pprof_first_pass)) {
        return false;
    }
    if (r->strings.len == 0) {
        return pprof_malformed(r, "it has no string table");
    }
    return choose_value(r) && each_field(r, pprof_second_pass) &&
           each_field(r, pprof_third_pass) && each_field(r, fourth_field) && (r->wanted->live != NULL || read_meta(r));
}

static bool read_plain(struct profile *p, struct str file, const struct pprof_wanted *wanted, struct err *err)
{
    struct pprof_reader r = {.file = file, .wanted = wanted, .err = err};
    importer_init(&r.in, p);
    buf_init(&r.own_labels, OWN_LABELS_MAX);
    bool ok = read_all(&r);
    pprof_release(&r);
    return ok;
}

static bool read_packed(struct profile *p, struct str file, const struct pprof_wanted *wanted, struct err *err)
{
    if (str_starts(file, STR("\x28\xb5\x2f\xfd"))) {
        return err_set(err, ERR_UNSUPPORTED, 0,
                       "compressed with zstd, which is not supported: unpack it with zstd -d");
    }
    if (!gzip_is(file.ptr, file.len)) {
        return read_plain(p, file, wanted, err);
    }
    struct buf plain;
    buf_init(&plain, wanted->most_bytes);
    bool ok = gzip_inflate(file.ptr, file.len, &plain, err) &&
              read_plain(p, buf_slice(&plain), wanted, err);
    buf_release(&plain);
    return ok;
}

bool pprof_read(struct profile *p, struct str file, struct str type, struct err *err)
{
    const struct pprof_wanted wanted = {.type = type, .most_bytes = PPROF_READ_MAX_BYTES};
    return read_packed(p, file, &wanted, err);
}

bool pprof_read_whole(struct profile *p, struct str file, struct err *err)
{
    const struct pprof_wanted wanted = {.type = STR(""), .whole = true, .most_bytes = PPROF_READ_MAX_BYTES};
    return read_packed(p, file, &wanted, err);
}

bool pprof_read_runtime(struct profile *p, struct str file, const struct importer_origin *of, struct err *err)
{
    const struct pprof_wanted wanted = {.type = STR(""), .whole = true, .of = of, .most_bytes = p->max_bytes};
    return read_packed(p, file, &wanted, err);
}

bool pprof_read_live(struct profile *p, struct str file, const struct live *live, struct err *err)
{
    const struct pprof_wanted wanted = {.type = STR(""), .live = live, .most_bytes = PPROF_READ_MAX_BYTES};
    return read_packed(p, file, &wanted, err);
}
