/* The stacks of a flight recording: which of its events are CPU time and what others there are, what a sample of theirs
 * stands for, their threads, and frames by the chunk's constants. Chunks know nothing of each other; the profile's own
 * tables join them. */
#include "encode/jfr_read.h"

#include "base/time.h"
#include "encode/importer.h"
#include "encode/jfr_chunk.h"
#include "encode/value.h"
#include "profile/language.h"
#include "profile/merge.h"

#include <stdio.h>

enum {
    TEXT_MAX = 1 << 16,
    RUNTIME_MAX = 200,
    PERIOD_MS = 20,   /* where the recording has none … */
    INTERVAL_MS = 10, /* … and async-profiler, when it writes 0 */
    KIND_SHIFT = 32,
};

/* What an event's amount is of. */
enum unit { UNIT_PERIODS, UNIT_TICKS, UNIT_BYTES };

/* Events with stacks. Of a type those of the lowest rank count that the chunk has any of. */
static const struct row {
    const char *event, *type, *amount, *thread;
    enum unit unit;
    unsigned rank;
} rows[] = {
    {"jdk.CPUTimeSample", "cpu", "samplingPeriod", "eventThread", UNIT_TICKS, 0},
    {"jdk.ExecutionSample", "cpu", "", "sampledThread", UNIT_PERIODS, 1},
    {"jdk.NativeMethodSample", "native", "", "sampledThread", UNIT_PERIODS, 0},
    {"jdk.ObjectAllocationSample", "alloc_space", "weight", "eventThread", UNIT_BYTES, 0},
    {"jdk.ObjectAllocationInNewTLAB", "alloc_space", "tlabSize", "eventThread", UNIT_BYTES, 1},
    {"jdk.ObjectAllocationOutsideTLAB", "alloc_space", "allocationSize", "eventThread", UNIT_BYTES, 1},
    {"jdk.JavaMonitorEnter", "lock", "duration", "eventThread", UNIT_TICKS, 0},
    {"jdk.ThreadPark", "park", "duration", "eventThread", UNIT_TICKS, 0},
};
#define LIVE_MAX_NS (UINT64_C(1) << 40) /* of one sample: no sum of them passes 64 bits */
enum { ROWS = sizeof rows / sizeof rows[0], AS_WEIGHT = PROFILE_EVENTS_MAX + 1 };

struct reader {
    struct importer in;
    struct str wanted, file;
    bool whole;
    struct live *live; /* null: it is no longer written */
    struct err *err;
    struct jfr_chunk chunk;
    const struct jfr_class *class[ROWS]; /* null: its events are not counted */
    uint64_t period_ns[ROWS];
    uint32_t event[ROWS]; /* of the profile, PROFILE_EVENTS_MAX: no room; AS_WEIGHT: the samples' own weight */
    struct map node_of, thread_of, method_of; /* of the chunk's constants */
    VEC(uint32_t) stack;
    struct buf text, more; /* held for one name */
    uint64_t frames;
    struct str runtime;
    uint32_t pid;
    bool any[ROWS]; /* in some chunk */
};

static bool no_memory(struct reader *r)
{
    return err_set(r->err, ERR_MEMORY, 0, "no memory for the recording");
}

static bool damaged(struct reader *r)
{
    return err_set(r->err, ERR_MALFORMED, 0, "no flight recording: an event cannot be read");
}

static bool is_cpu(const struct row *row)
{
    return strcmp(row->type, "cpu") == 0;
}

/* Of a process that is followed what runs is told as it is, for its threads' clocks say how long. */
static bool is_told(const struct reader *r, const struct row *row)
{
    return r->live != NULL && (is_cpu(row) || strcmp(row->type, "native") == 0);
}

static bool is_wanted(const struct reader *r, const struct row *row)
{
    return r->whole || str_eq(str_of(row->type), r->wanted.len > 0 ? r->wanted : STR("cpu"));
}

/* ---- What the chunk has ---- */

/* "20 ms"; a number alone, as async-profiler has it, is of ns. */
static uint64_t period_of(struct str value, bool is_plain)
{
    static const struct {
        struct str unit;
        uint64_t ns;
    } units[] = {{STR(" ns"), 1}, {STR(" us"), NS_PER_US}, {STR(" ms"), NS_PER_MS}, {STR(" s"), NS_PER_S}};
    uint64_t number = 0;
    if (is_plain) {
        return str_u64(value, &number) ? number : 0;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (str_ends(value, units[i].unit) && str_u64(str_sub(value, 0, value.len - units[i].unit.len), &number) &&
            number < UINT64_C(1) << 40) {
            return number * units[i].ns;
        }
    }
    return 0;
}

static bool read_setting(struct reader *r, const struct jfr_class *class, size_t at)
{
    static const char *const names[] = {"id", "name", "value"};
    uint64_t values[3];
    if (!jfr_fields(&r->chunk, class, at, names, values, 3)) {
        return damaged(r);
    }
    for (size_t i = 0; i < ROWS; i++) {
        struct str name = jfr_text(&r->chunk, (size_t)values[1], &r->text);
        bool is_period = str_eq(name, STR("period")), is_interval = str_eq(name, STR("interval"));
        if (r->class[i] == NULL || r->class[i]->id != values[0] || !(is_period || is_interval)) {
            continue;
        }
        uint64_t period = period_of(jfr_text(&r->chunk, (size_t)values[2], &r->text), is_interval);
        r->period_ns[i] = period > 0 ? period : is_interval ? INTERVAL_MS * NS_PER_MS : r->period_ns[i];
    }
    return true;
}

static bool read_jvm(struct reader *r, const struct jfr_class *class, size_t at)
{
    static const char *const names[] = {"jvmVersion", "pid"};
    uint64_t values[2];
    if (!jfr_fields(&r->chunk, class, at, names, values, 2)) {
        return damaged(r);
    }
    bool fits = true;
    /* "OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1) for …" */
    struct str version = values[0] != 0 ? jfr_text(&r->chunk, (size_t)values[0], &r->text) : STR("");
    size_t end = str_find(version, ')');
    uint32_t text = importer_text(&r->in, str_sub(version, 0, end < RUNTIME_MAX ? end + 1 : RUNTIME_MAX), &fits);
    r->runtime = fits && text != 0 ? profile_text(r->in.profile, text) : r->runtime;
    r->pid = values[1] <= UINT32_MAX ? (uint32_t)values[1] : 0;
    if (r->live != NULL && fits && text != 0) {
        r->in.profile->processes.at[r->live->process].runtime = text;
    }
    return true;
}

/* Does the chunk have events of this type that tell more than the row's? */
static bool is_outranked(struct reader *r, size_t row)
{
    bool any = false;
    for (size_t i = 0; i < ROWS; i++) {
        const struct jfr_class *class = jfr_class_named(&r->chunk, rows[i].event);
        any |= strcmp(rows[i].type, rows[row].type) == 0 && rows[i].rank < rows[row].rank && class != NULL &&
               class->events > 0;
    }
    return any;
}

/* Several rows, and every chunk, may have one. */
static uint32_t event_type(struct reader *r, size_t row)
{
    struct profile *p = r->in.profile;
    for (size_t i = 0; i < p->event_types.len; i++) {
        if (str_eq(profile_text(p, p->event_types.at[i].name), str_of(rows[row].type))) {
            return (uint32_t)i;
        }
    }
    return profile_event_type(p, rows[row].type, rows[row].unit == UNIT_BYTES ? "bytes" : VALUE_TIME_UNIT);
}

/* Which rows count in this chunk, and what its samples stand for. */
static bool choose(struct reader *r)
{
    struct jfr_chunk *c = &r->chunk;
    const struct jfr_class *class, *setting = jfr_class_named(c, "jdk.ActiveSetting"),
                           *jvm = jfr_class_named(c, "jdk.JVMInformation");
    size_t at = 0, fields;
    for (size_t i = 0; i < ROWS; i++) {
        class = jfr_class_named(c, rows[i].event);
        r->class[i] = class != NULL && class->events > 0 && !is_outranked(r, i) ? class : NULL;
        r->any[i] |= r->class[i] != NULL;
        r->period_ns[i] = PERIOD_MS * NS_PER_MS;
        bool is_event = r->class[i] != NULL && r->whole && !is_cpu(&rows[i]) && !is_told(r, &rows[i]);
        r->event[i] = is_event ? event_type(r, i) : AS_WEIGHT;
    }
    while (jfr_next(c, &at, &class, &fields)) {
        if ((class == setting && !read_setting(r, class, fields)) || (class == jvm && !read_jvm(r, class, fields))) {
            return false;
        }
    }
    return true;
}

/* ---- Stacks ---- */

static struct str symbol(struct reader *r, uint64_t key, struct buf *held)
{
    static const char *const names[] = {"string"};
    const struct jfr_class *class = jfr_class_named(&r->chunk, "jdk.types.Symbol");
    uint64_t value = 0;
    size_t at;
    return jfr_constant(class, key, &at) && jfr_fields(&r->chunk, class, at, names, &value, 1)
               ? jfr_text(&r->chunk, (size_t)value, held)
               : STR("");
}

static struct str class_name(struct reader *r, uint64_t key, struct buf *held)
{
    static const char *const names[] = {"name"};
    const struct jfr_class *class = jfr_class_named(&r->chunk, "java.lang.Class");
    uint64_t value = 0;
    size_t at;
    return jfr_constant(class, key, &at) && jfr_fields(&r->chunk, class, at, names, &value, 1) ? symbol(r, value, held)
                                                                                               : STR("");
}

/* The name's id, and above KIND_SHIFT the kind of its frames; 0: there is no room. async-profiler has native code as
 * methods of a library's name, whose descriptor no method of Java can have. */
static uint64_t method(struct reader *r, uint64_t key)
{
    static const char *const names[] = {"type", "name", "descriptor"};
    const struct map_slot *known = map_find(&r->method_of, key);
    if (known != NULL) {
        return known->value;
    }
    const struct jfr_class *class = jfr_class_named(&r->chunk, "jdk.types.Method");
    uint64_t values[3] = {0};
    size_t at;
    bool fits = true, is_known = jfr_constant(class, key, &at) && jfr_fields(&r->chunk, class, at, names, values, 3);
    bool is_native = is_known && str_eq(symbol(r, values[2], &r->text), STR("()L;"));
    buf_clear(&r->more);
    if (is_native) {
        buf_str(&r->more, symbol(r, values[1], &r->text));
    } else if (is_known) {
        buf_str(&r->more, language_class_without_address(class_name(r, values[0], &r->text)));
        for (size_t i = 0; i < r->more.len; i++) { /* of hidden classes some have dots */
            r->more.ptr[i] = r->more.ptr[i] == '.' ? '/' : r->more.ptr[i];
        }
        buf_byte(&r->more, '.');
        buf_str(&r->more, symbol(r, values[1], &r->text));
    } else {
        buf_text(&r->more, "[unknown]");
    }
    uint64_t name = importer_text(&r->in, buf_slice(&r->more), &fits);
    name |= (uint64_t)(is_native ? FRAME_NATIVE : FRAME_JVM) << KIND_SHIFT;
    return fits && map_put(&r->method_of, key, name) ? name : 0;
}

/* What the recording calls the kind of a frame. */
static struct str frame_type(struct reader *r, uint64_t key)
{
    static const char *const names[] = {"description"};
    const struct jfr_class *class = jfr_class_named(&r->chunk, "jdk.types.FrameType");
    uint64_t value = 0;
    size_t at;
    return jfr_constant(class, key, &at) && jfr_fields(&r->chunk, class, at, names, &value, 1)
               ? jfr_text(&r->chunk, (size_t)value, &r->text)
               : STR("");
}

/* The name with the ending that tells how it ran. A recorder of HotSpot's does not tell which compiler it was. */
static uint32_t with_tier(struct reader *r, uint32_t name, uint64_t key)
{
    static const struct {
        const char *type, *ending;
    } tiers[] = {{"Interpreted", "_[0]"}, {"C1 compiled", "_[1]"}, {"Inlined", "_[i]"}};
    struct str type = frame_type(r, key);
    bool fits = true;
    for (size_t i = 0; i < sizeof tiers / sizeof tiers[0]; i++) {
        if (str_eq(type, str_of(tiers[i].type))) {
            buf_clear(&r->more);
            buf_str(&r->more, profile_text(r->in.profile, name));
            buf_text(&r->more, tiers[i].ending);
            name = importer_text(&r->in, buf_slice(&r->more), &fits);
        }
    }
    return fits ? name : 0;
}

static bool push(struct reader *r, uint32_t frame)
{
    uint32_t *added = vec_push(&r->stack);
    if (added == NULL) {
        return no_memory(r);
    }
    *added = frame;
    return true;
}

static bool read_frame(struct reader *r, const struct jfr_class *class, size_t *at)
{
    static const char *const names[] = {"method", "lineNumber", "type"};
    uint64_t values[3];
    if (!jfr_fields(&r->chunk, class, *at, names, values, 3) || !jfr_skip(&r->chunk, class, at)) {
        return damaged(r);
    }
    uint64_t name = method(r, values[0]);
    uint32_t line = (int32_t)values[1] > 0 ? (uint32_t)values[1] : 0, kind = (uint32_t)(name >> KIND_SHIFT);
    if (kind == FRAME_NATIVE && str_eq(frame_type(r, values[2]), STR("Kernel"))) {
        kind = FRAME_KERNEL;
    } else if (kind == FRAME_JVM && r->live != NULL && r->live->shows_tiers) {
        name = with_tier(r, (uint32_t)name, values[2]);
    }
    struct frame frame = {.name = (uint32_t)name, .line = line, .kind = (uint8_t)kind};
    return push(r, name != 0 ? profile_frame(r->in.profile, &frame) : 0);
}

/* Leaf first in the file, root first in a profile. */
static void turn(struct reader *r)
{
    for (size_t i = 0; i < r->stack.len / 2; i++) {
        uint32_t other = r->stack.at[i];
        r->stack.at[i] = r->stack.at[r->stack.len - 1 - i];
        r->stack.at[r->stack.len - 1 - i] = other;
    }
}

static bool read_stack(struct reader *r, uint64_t key, uint32_t *node)
{
    static const char *const names[] = {"truncated", "frames"};
    struct jfr_chunk *c = &r->chunk;
    const struct map_slot *known = map_find(&r->node_of, key);
    if (known != NULL) {
        *node = (uint32_t)known->value;
        return true;
    }
    const struct jfr_class *class = jfr_class_named(c, "jdk.types.StackTrace"),
                           *frame = jfr_class_named(c, "jdk.types.StackFrame");
    uint64_t values[2] = {0}, count = 0;
    size_t at;
    vec_clear(&r->stack);
    if (frame != NULL && jfr_constant(class, key, &at)) {
        size_t place;
        if (!jfr_fields(c, class, at, names, values, 2) || (place = (size_t)values[1], !jfr_array(c, &place, &count))) {
            return damaged(r);
        }
        for (; count > 0; count--) {
            if (++r->frames > JFR_FRAMES_MAX) {
                return err_set(r->err, ERR_LIMIT, 0, "too many frames: at most %d are read", JFR_FRAMES_MAX);
            }
            if (!read_frame(r, frame, &place)) {
                return false;
            }
        }
    }
    bool none = r->stack.len == 0, cut = values[0] != 0;
    struct str mark = none ? STR("[unknown]") : STR("[truncated]");
    if ((none || cut) && !push(r, importer_frame(&r->in, mark, 0, FRAME_NATIVE))) {
        return false;
    }
    turn(r);
    *node = importer_stack(&r->in, r->stack.at, r->stack.len);
    return map_put(&r->node_of, key, *node) || no_memory(r);
}

/* ---- Samples ---- */

/* The thread's number for its JVM. */
static bool read_tid(struct reader *r, uint64_t key, uint32_t *tid)
{
    static const char *const names[] = {"osThreadId"};
    const struct jfr_class *class = jfr_class_named(&r->chunk, "java.lang.Thread");
    uint64_t value = 0;
    size_t at;
    if (jfr_constant(class, key, &at) && !jfr_fields(&r->chunk, class, at, names, &value, 1)) {
        return damaged(r);
    }
    *tid = value <= UINT32_MAX ? (uint32_t)value : 0;
    return true;
}

static bool read_thread(struct reader *r, uint64_t key, uint32_t *thread)
{
    static const char *const names[] = {"javaName", "osName"};
    const struct map_slot *known = map_find(&r->thread_of, key);
    if (known != NULL) {
        *thread = (uint32_t)known->value;
        return true;
    }
    const struct jfr_class *class = jfr_class_named(&r->chunk, "java.lang.Thread");
    uint64_t values[2] = {0};
    size_t at;
    struct importer_origin o = {.pid = r->pid, .comm = STR("java"), .runtime = r->runtime};
    if (!read_tid(r, key, &o.tid)) {
        return false;
    }
    if (r->live != NULL) {
        o.pid = r->live->pid;
        o.start_ticks = r->live->start_ticks;
        o.comm = r->live->comm;
        o.tid = o.tid != 0 ? r->live->thread(r->live->context, o.tid) : 0;
    }
    if (jfr_constant(class, key, &at)) {
        if (!jfr_fields(&r->chunk, class, at, names, values, 2)) {
            return damaged(r);
        }
        o.thread_name = jfr_text(&r->chunk, (size_t)values[0], &r->text);
        o.thread_name = o.thread_name.len == 0 ? jfr_text(&r->chunk, (size_t)values[1], &r->text) : o.thread_name;
    }
    *thread = importer_thread(&r->in, &o);
    return map_put(&r->thread_of, key, *thread) || no_memory(r);
}

static bool read_sample(struct reader *r, size_t row, size_t at)
{
    const char *const names[] = {"stackTrace", rows[row].thread, rows[row].amount, "startTime"};
    uint64_t values[4];
    uint32_t thread = 0, node = 0;
    if (!jfr_fields(&r->chunk, r->class[row], at, names, values, 4)) {
        return damaged(r);
    }
    if (!read_thread(r, values[1], &thread) || !read_stack(r, values[0], &node)) {
        return false;
    }
    uint64_t amount = rows[row].unit == UNIT_PERIODS ? r->period_ns[row]
                      : rows[row].unit == UNIT_TICKS ? jfr_span_ns(&r->chunk, values[2])
                                                     : values[2];
    if (is_told(r, &rows[row])) {
        struct live_sample sample = {.thread = thread, .node = node, .may_wait = !is_cpu(&rows[row])};
        sample.cpu_ns = amount < LIVE_MAX_NS ? amount : LIVE_MAX_NS;
        sample.wall_ns = values[3] > r->chunk.start_ticks ? jfr_time_ns(&r->chunk, values[3]) : 0;
        bool good = read_tid(r, values[1], &sample.tid);
        r->live->sample(r->live->context, &sample);
        return good;
    }
    if (r->event[row] == AS_WEIGHT) {
        return importer_add(&r->in, thread, node, amount, 1, r->err);
    }
    if (amount > 0 && amount < IMPORTER_TOTAL_MAX_NS && r->event[row] < PROFILE_EVENTS_MAX) {
        profile_add_event(r->in.profile, r->event[row], thread, node, amount);
    }
    return true;
}

static bool read_samples(struct reader *r)
{
    const struct jfr_class *class;
    size_t at = r->live != NULL ? r->live->chunk_bytes : 0, fields;
    while (jfr_next(&r->chunk, &at, &class, &fields)) {
        for (size_t i = 0; i < ROWS; i++) {
            if (class == r->class[i] && is_wanted(r, &rows[i]) && !read_sample(r, i, fields)) {
                return false;
            }
        }
    }
    return true;
}

static void note_meta(struct reader *r)
{
    struct profile_meta meta = {.start_wall_ns = r->chunk.start_ns, .end_wall_ns = r->chunk.start_ns};
    meta.end_wall_ns += r->chunk.duration_ns < IMPORTER_TOTAL_MAX_NS ? r->chunk.duration_ns : 0;
    meta.period_ns = value_is_counted(r->in.profile); /* else what a sample stands for */
    for (size_t i = 0; i < ROWS && meta.period_ns == 0; i++) {
        if (r->class[i] != NULL && is_wanted(r, &rows[i]) && rows[i].unit == UNIT_PERIODS) {
            meta.period_ns = r->period_ns[i];
            meta.frequency_hz = (uint32_t)((NS_PER_S + meta.period_ns / 2) / meta.period_ns);
        }
    }
    profile_merge_meta(r->in.profile, &meta);
}

/* What is known of this chunk already. False: all of it. */
static bool is_new(struct live *live, const struct jfr_chunk *chunk)
{
    if (chunk->start_ns > live->chunk_start_ns) {
        live->chunk_start_ns = chunk->start_ns;
        live->chunk_bytes = 0;
    }
    return chunk->start_ns == live->chunk_start_ns && chunk->bytes.len > live->chunk_bytes;
}

static bool read_chunk(struct reader *r, struct str bytes)
{
    bool ok = jfr_chunk_read(&r->chunk, bytes, r->err);
    if (ok && (r->live == NULL || is_new(r->live, &r->chunk))) {
        ok = choose(r) && read_samples(r);
        if (ok && r->live == NULL) {
            note_meta(r);
        } else if (r->live != NULL) {
            r->live->chunk_bytes = r->chunk.bytes.len; /* also of a damaged one: it is not read twice */
        }
    }
    jfr_chunk_release(&r->chunk);
    map_clear(&r->node_of);
    map_clear(&r->thread_of);
    map_clear(&r->method_of);
    return ok;
}

/* ---- The whole ---- */

static bool is_any(const struct reader *r, struct str type)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (r->any[i] && str_eq(str_of(rows[i].type), type)) {
            return true;
        }
    }
    return false;
}

/* A recording without what was asked for, but with something else. */
static bool is_there(struct reader *r)
{
    char list[100] = "";
    for (size_t i = 0; i < ROWS; i++) {
        if (r->any[i] && strstr(list, rows[i].type) == NULL) {
            size_t len = strlen(list);
            snprintf(list + len, sizeof list - len, "%s%s", len > 0 ? ", " : "", rows[i].type);
        }
    }
    if (r->whole || is_any(r, r->wanted.len > 0 ? r->wanted : STR("cpu")) || (list[0] == '\0' && r->wanted.len == 0)) {
        return true;
    }
    struct str wanted = str_sub(r->wanted, 0, 40);
    return r->wanted.len > 0 ? err_set(r->err, ERR_USAGE, 0, "there is no sample type %.*s in it; there is: %s",
                                       (int)wanted.len, wanted.ptr, list[0] != '\0' ? list : "none")
                             : err_set(r->err, ERR_UNSUPPORTED, 0,
                                       "this flight recording holds no CPU time: its stacks are of %s", list);
}

static bool read_all(struct reader *r)
{
    struct str value = str_eq(r->wanted, STR("cpu")) ? STR("") : r->wanted, unit = STR("");
    if (value.len > 0) {
        unit = str_eq(value, STR("alloc_space")) ? STR("bytes") : STR(VALUE_TIME_UNIT);
    }
    if (r->live == NULL && !importer_value(&r->in, value, unit, r->err)) {
        return false;
    }
    for (struct str rest = r->file; rest.len > 0;) {
        size_t size = jfr_chunk_size(rest);
        if (r->live != NULL && size == 0) {
            break; /* what is behind is still being written */
        }
        if (!read_chunk(r, rest)) {
            return false;
        }
        rest = str_sub(rest, size, rest.len);
    }
    return is_there(r);
}

static bool read(struct reader *r, struct profile *p)
{
    importer_init(&r->in, p);
    buf_init(&r->text, TEXT_MAX);
    buf_init(&r->more, TEXT_MAX);
    bool ok = read_all(r);
    map_release(&r->node_of);
    map_release(&r->thread_of);
    map_release(&r->method_of);
    vec_release(&r->stack);
    buf_release(&r->text);
    buf_release(&r->more);
    return ok;
}

bool jfr_is(struct str file)
{
    return str_starts(file, (struct str){"FLR\0", 4});
}

bool jfr_read(struct profile *p, struct str file, struct str type, struct err *err)
{
    struct reader r = {.file = file, .wanted = type, .err = err};
    return read(&r, p);
}

bool jfr_read_whole(struct profile *p, struct str file, struct err *err)
{
    struct reader r = {.file = file, .whole = true, .err = err};
    return read(&r, p);
}

bool jfr_read_live(struct profile *p, struct str file, struct live *live, struct err *err)
{
    struct reader r = {.file = file, .whole = true, .live = live, .err = err};
    return read(&r, p);
}
