/* A profile as pprof, field by field: types, numbers, samples, mappings, locations, functions, and at
 * last the strings, whose numbers follow from where they stand. Only what samples lead to is
 * written. */
#include "encode/pprof.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/version.h"
#include "encode/functions.h"
#include "base/gzip.h"
#include "encode/pprof_mapping.h"
#include "base/protobuf.h"
#include "encode/value.h"
#include "base/utf8.h"
#include "encode/encode.h"

/* Strings of the format itself, the first of the string table. */
enum word {
    WORD_EMPTY, WORD_SAMPLES, WORD_COUNT, WORD_CPU, WORD_NANOSECONDS, WORD_PROCESS_ID,
    WORD_THREAD_ID, WORD_THREAD_NAME, WORD_COMM, WORD_CONTAINER, WORD_APPID, WORD_OFF_CPU,
    WORD_WALL, WORD_KERNEL, WORD_LABEL, WORD_KIND = WORD_LABEL + PROFILE_LABELS_NAMED,
    WORD_UNKNOWN = WORD_KIND + FRAME_KIND_COUNT, WORD_COMMENT,
};

static const char *const words[WORD_LABEL] = {
    "", "samples", "count", "cpu", "nanoseconds", "process_id", "thread id", "thread name", "comm",
    "container", "appid", "off_cpu", "wall", PPROF_KERNEL_MAPPING,
};

/* The string table in order: words, comments, process ids, thread ids, used texts of the profile.
 * Only the last need a table; the others are numbered by where they stand. */
struct writer {
    const struct profile *p;
    const struct encode_rules *rules;
    struct sink *out;
    struct err *err;
    struct functions functions;
    struct pprof_mappings mappings;
    struct buf comments; /* each ended by a line end */
    uint32_t comment_count;
    uint32_t *string_of_text; /* by string id of the profile, 0 unused */
    uint8_t *used;            /* by frame id */
    struct buf message, part, prefix;
};

static uint32_t process_string(const struct writer *w, size_t process)
{
    return (uint32_t)(WORD_COMMENT + w->comment_count + process);
}

static uint32_t thread_string(const struct writer *w, size_t thread)
{
    return (uint32_t)(process_string(w, w->p->processes.len) + thread);
}

/* --- what is said in words --- */

static void comment(struct writer *w, const char *what, struct str text)
{
    if (text.len > 0) {
        size_t start = w->comments.len;
        buf_text(&w->comments, what);
        buf_str(&w->comments, text);
        for (size_t i = start; i < w->comments.len; i++) {
            char *c = &w->comments.ptr[i];
            *c = *c == '\n' || *c == '\r' || *c == '\0' ? ' ' : *c;
        }
        buf_byte(&w->comments, '\n');
        w->comment_count++;
    }
}

static void comment_not_seen(struct writer *w)
{
    struct profile_totals sum = profile_sum(w->p);
    if (value_is_other(w->p)) {
        return;
    }
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        if (sum.account_ns[a] > 0) {
            char text[96];
            snprintf(text, sizeof text, "%s %.3f s of %.3f s CPU time",
                     account_name((enum account)a), (double)sum.account_ns[a] / 1e9,
                     (double)sum.cpu_ns / 1e9);
            comment(w, "not seen: ", str_of(text));
        }
    }
}

/* What the profiler itself took. */
static void comment_own(struct writer *w)
{
    const struct profile_meta *m = &w->p->meta;
    char text[160];
    if (m->own_cpu_ns == 0) {
        return;
    }
    int len = snprintf(text, sizeof text, "%.3f s CPU, %.1f MB, at most %.1f MB",
                       (double)m->own_cpu_ns / 1e9, (double)m->own_rss_bytes / 1048576.0,
                       (double)m->own_rss_peak_bytes / 1048576.0);
    if (m->mean_hz > 0) {
        snprintf(text + len, sizeof text - (size_t)len, "; sampled at %.1f Hz", m->mean_hz);
    }
    comment(w, "own cost: ", str_of(text));
}

static void collect_comments(struct writer *w)
{
    const struct profile_meta *m = &w->p->meta;
    char window[24];
    snprintf(window, sizeof window, "%llu", (unsigned long long)m->window);
    comment(w, "made by: ", STR("pillion " PILLION_VERSION));
    comment(w, "window: ", m->window > 0 ? str_of(window) : STR(""));
    comment(w, "service: ", profile_text(w->p, m->service));
    comment(w, "host: ", profile_text(w->p, m->host));
    comment(w, "mode: ", profile_text(w->p, m->mode));
    comment_not_seen(w);
    comment(w, "reason: ", profile_text(w->p, m->reason));
    comment(w, "budget: ", profile_text(w->p, m->budget));
    comment_own(w);
}

/* --- which texts are used --- */

static void use(struct writer *w, uint32_t text)
{
    if (text != 0) {
        w->string_of_text[text] = 1;
    }
}

static void use_labels(struct writer *w, uint32_t thread)
{
    const struct thread *t = &w->p->threads.at[thread];
    const struct process *process = &w->p->processes.at[t->process];
    use(w, t->name);
    for (unsigned i = 0; i < PROFILE_LABELS_NAMED; i++) {
        use(w, t->label[i]);
    }
    struct str key, value;
    struct str own = profile_text(w->p, t->label[PROFILE_LABEL_OWN]);
    while (profile_next_pair(&own, &key, &value)) {
        use(w, profile_find_string(w->p, key));
        use(w, profile_find_string(w->p, value));
    }
    use(w, process->name);
    use(w, process->container);
    use(w, process->appid);
}

static void number_texts(struct writer *w)
{
    const struct profile *p = w->p;
    vec_each(&w->functions.list, f)
    {
        use(w, f->name);
        use(w, f->system_name);
        use(w, f->file);
    }
    for (size_t i = 1; i < p->modules.len; i++) {
        use(w, w->mappings.at[i].used ? p->modules.at[i].path : 0);
        use(w, w->mappings.at[i].used ? p->modules.at[i].build_id : 0);
    }
    for (size_t i = 1; i < p->samples.len; i++) {
        use_labels(w, p->samples.at[i].thread);
    }
    vec_each(&p->waits, wait)
    {
        use_labels(w, wait->thread);
    }
    vec_each(&p->occurrences, o)
    {
        use_labels(w, o->thread);
    }
    vec_each(&p->event_types, t)
    {
        use(w, t->name);
        use(w, t->unit);
    }
    use(w, p->meta.value);
    use(w, p->meta.unit);
    uint32_t next = thread_string(w, p->threads.len);
    for (size_t i = 1; i < p->strings.len; i++) {
        if (w->string_of_text[i] != 0) {
            w->string_of_text[i] = next++;
        }
    }
}

/* --- messages --- */

static bool send(struct writer *w, unsigned field, const struct buf *message)
{
    buf_clear(&w->prefix);
    protobuf_varint(&w->prefix, (uint64_t)field << 3 | PROTOBUF_BYTES);
    protobuf_varint(&w->prefix, message->len);
    if (message->failed || w->prefix.failed) {
        return err_set(w->err, ERR_LIMIT, 0, "one record is larger than %zu bytes", message->max);
    }
    return sink_write(w->out, w->prefix.ptr, w->prefix.len, w->err) &&
           sink_write(w->out, message->ptr, message->len, w->err);
}

static bool send_type(struct writer *w, unsigned field, uint32_t name, uint32_t unit)
{
    buf_clear(&w->message);
    protobuf_u64(&w->message, PPROF_TYPE_NAME, name);
    protobuf_u64(&w->message, PPROF_TYPE_UNIT, unit);
    return send(w, field, &w->message);
}

static void add_label(struct writer *w, uint32_t key, uint32_t string)
{
    buf_clear(&w->part);
    protobuf_u64(&w->part, PPROF_LABEL_KEY, key);
    protobuf_u64(&w->part, PPROF_LABEL_TEXT, string);
    if (string != 0) {
        protobuf_message(&w->message, PPROF_SAMPLE_LABEL, &w->part);
    }
}

static void add_labels(struct writer *w, uint32_t thread_id)
{
    const struct thread *thread = &w->p->threads.at[thread_id];
    const struct process *process = &w->p->processes.at[thread->process];
    add_label(w, WORD_PROCESS_ID, process->pid != 0 ? process_string(w, thread->process) : 0);
    add_label(w, WORD_THREAD_ID, thread->tid != 0 ? thread_string(w, thread_id) : 0);
    add_label(w, WORD_THREAD_NAME, w->string_of_text[thread->name]);
    add_label(w, WORD_COMM, w->string_of_text[process->name]);
    add_label(w, WORD_CONTAINER, w->string_of_text[process->container]);
    add_label(w, WORD_APPID, w->string_of_text[process->appid]);
    for (unsigned i = 0; i < PROFILE_LABELS_NAMED; i++) {
        add_label(w, WORD_LABEL + i, w->string_of_text[thread->label[i]]);
    }
    struct str key, value;
    struct str own = profile_text(w->p, thread->label[PROFILE_LABEL_OWN]);
    while (profile_next_pair(&own, &key, &value)) {
        add_label(w, w->string_of_text[profile_find_string(w->p, key)],
                  w->string_of_text[profile_find_string(w->p, value)]);
    }
}

static bool has_waits(const struct profile *p)
{
    return p->watches_waits || p->waits.len > 0;
}

/* What a stack counts beside CPU time. */
struct besides {
    uint64_t wait_ns;
    uint32_t event;
    uint64_t amount; /* of this event; 0: of none */
};

/* A file of other values alone, such as a heap's, has no column of CPU time. */
static bool has_cpu_time(const struct profile *p)
{
    return p->event_types.len == 0 || p->samples.len > 1 || has_waits(p);
}

/* Wall time is CPU time and time spent waiting; a profile that looked at no waiting thread has neither. */
static void add_values(struct writer *w, const struct sample *s, const struct besides *besides)
{
    if (has_cpu_time(w->p)) {
        protobuf_varint(&w->part, s->count);
        protobuf_varint(&w->part, s->cpu_ns);
    }
    if (has_waits(w->p)) {
        protobuf_varint(&w->part, besides->wait_ns);
        protobuf_varint(&w->part, s->cpu_ns + besides->wait_ns);
    }
    for (size_t i = 0; i < w->p->event_types.len; i++) {
        protobuf_varint(&w->part, i == besides->event ? besides->amount : 0);
    }
}

static bool send_sample(struct writer *w, const struct sample *s, const struct besides *besides)
{
    buf_clear(&w->message);
    buf_clear(&w->part);
    for (uint32_t n = s->node; n != 0; n = w->p->nodes.at[n].parent) {
        protobuf_varint(&w->part, w->p->nodes.at[n].frame);
    }
    protobuf_message(&w->message, PPROF_SAMPLE_LOCATION, &w->part);
    buf_clear(&w->part);
    add_values(w, s, besides);
    protobuf_message(&w->message, PPROF_SAMPLE_VALUE, &w->part);
    add_labels(w, s->thread);
    return send(w, PPROF_SAMPLE, &w->message);
}

static bool send_samples(struct writer *w)
{
    const struct profile *p = w->p;
    bool ok = true;
    for (size_t i = 1; ok && i < p->samples.len; i++) {
        const struct sample *s = &p->samples.at[i];
        ok = (s->cpu_ns == 0 && s->count == 0) || send_sample(w, s, &(struct besides){0}); /* forgotten ones */
    }
    for (size_t i = 0; ok && i < p->waits.len; i++) {
        const struct wait *wait = &p->waits.at[i];
        const struct sample sample = {.thread = wait->thread, .node = wait->node};
        ok = send_sample(w, &sample, &(struct besides){.wait_ns = wait->wait_ns});
    }
    for (size_t i = 0; ok && i < p->occurrences.len; i++) {
        const struct occurrence *o = &p->occurrences.at[i];
        const struct sample sample = {.thread = o->thread, .node = o->node};
        const struct besides besides = {.event = o->event, .amount = o->amount};
        ok = send_sample(w, &sample, &besides);
    }
    return ok;
}

static bool send_event_types(struct writer *w)
{
    bool ok = true;
    for (size_t i = 0; ok && i < w->p->event_types.len; i++) {
        const struct event_type *type = &w->p->event_types.at[i];
        ok = send_type(w, PPROF_SAMPLE_TYPE, w->string_of_text[type->name],
                       w->string_of_text[type->unit]);
    }
    return ok;
}

static bool send_types(struct writer *w)
{
    const uint32_t *texts = w->string_of_text;
    const struct profile_meta *m = &w->p->meta;
    if (value_is_other(w->p)) {
        return send_type(w, PPROF_SAMPLE_TYPE, WORD_SAMPLES, WORD_COUNT) &&
               send_type(w, PPROF_SAMPLE_TYPE, texts[m->value], texts[m->unit]);
    }
    if (!has_cpu_time(w->p)) {
        return send_event_types(w);
    }
    return send_type(w, PPROF_SAMPLE_TYPE, WORD_SAMPLES, WORD_COUNT) &&
           send_type(w, PPROF_SAMPLE_TYPE, WORD_CPU, WORD_NANOSECONDS) &&
           (!has_waits(w->p) ||
            (send_type(w, PPROF_SAMPLE_TYPE, WORD_OFF_CPU, WORD_NANOSECONDS) &&
             send_type(w, PPROF_SAMPLE_TYPE, WORD_WALL, WORD_NANOSECONDS))) &&
           send_event_types(w) &&
           send_type(w, PPROF_PERIOD_TYPE, WORD_CPU, WORD_NANOSECONDS);
}

static uint32_t mapping_file(const struct writer *w, uint32_t number)
{
    if (number >= w->p->modules.len) {
        return (uint32_t)(WORD_KIND + number - w->p->modules.len);
    }
    uint32_t path = w->p->modules.at[number].path;
    bool is_kernel = str_eq(profile_text(w->p, path), STR("[kernel]"));
    return is_kernel ? WORD_KERNEL : w->string_of_text[path];
}

static bool send_mapping(struct writer *w, uint32_t number)
{
    const struct pprof_mapping *m = &w->mappings.at[number];
    uint32_t build_id = number < w->p->modules.len ? w->p->modules.at[number].build_id : 0;
    buf_clear(&w->message);
    protobuf_u64(&w->message, PPROF_MAPPING_ID, number);
    protobuf_u64(&w->message, PPROF_MAPPING_START, m->start);
    protobuf_u64(&w->message, PPROF_MAPPING_LIMIT, m->limit);
    protobuf_u64(&w->message, PPROF_MAPPING_OFFSET, m->file_offset);
    protobuf_u64(&w->message, PPROF_MAPPING_FILE, mapping_file(w, number));
    protobuf_u64(&w->message, PPROF_MAPPING_BUILD_ID, w->string_of_text[build_id]);
    protobuf_u64(&w->message, PPROF_MAPPING_HAS_FUNCTIONS, m->has_functions);
    protobuf_u64(&w->message, PPROF_MAPPING_HAS_FILES, m->has_files);
    protobuf_u64(&w->message, PPROF_MAPPING_HAS_LINES, m->has_lines);
    protobuf_u64(&w->message, PPROF_MAPPING_HAS_INLINES, m->has_inlines);
    return send(w, PPROF_MAPPING, &w->message);
}

static void add_line(struct writer *w, uint32_t frame)
{
    buf_clear(&w->part);
    protobuf_u64(&w->part, PPROF_LINE_FUNCTION, w->functions.of_frame[frame]);
    protobuf_u64(&w->part, PPROF_LINE_NUMBER, w->p->frames.at[frame].line);
    protobuf_message(&w->message, PPROF_LOCATION_LINE, &w->part);
}

static bool send_location(struct writer *w, uint32_t id)
{
    const struct frame *f = &w->p->frames.at[id];
    uint32_t chain[PROFILE_INLINES_MAX];
    size_t count = profile_expand(w->p, id, chain);
    buf_clear(&w->message);
    protobuf_u64(&w->message, PPROF_LOCATION_ID, id);
    protobuf_u64(&w->message, PPROF_LOCATION_MAPPING, pprof_mapping_of(w->p, f));
    protobuf_u64(&w->message, PPROF_LOCATION_ADDRESS, pprof_address_of(w->p, f));
    for (size_t i = 0; i < count; i++) {
        add_line(w, chain[i]);
    }
    return send(w, PPROF_LOCATION, &w->message);
}

static bool send_function(struct writer *w, size_t id)
{
    const struct function *f = &w->functions.list.at[id];
    /* a runtime's name for people holds the file and first line, which have fields of their own here */
    bool told_apart = f->first_line != 0 && f->system_name != 0;
    uint32_t name = told_apart ? f->system_name : f->name;
    buf_clear(&w->message);
    protobuf_u64(&w->message, PPROF_FUNCTION_ID, id);
    protobuf_u64(&w->message, PPROF_FUNCTION_NAME,
                 name != 0 ? w->string_of_text[name] : WORD_UNKNOWN);
    /* Where both names are the same, pprof takes the name for a C++ one and cuts out what stands
     * in brackets: Python's "<module>" would be nothing. */
    protobuf_u64(&w->message, PPROF_FUNCTION_SYSTEM_NAME,
                 told_apart ? 0 : w->string_of_text[f->system_name]);
    protobuf_u64(&w->message, PPROF_FUNCTION_FILE, w->string_of_text[f->file]);
    protobuf_u64(&w->message, PPROF_FUNCTION_START_LINE, f->first_line);
    return send(w, PPROF_FUNCTION, &w->message);
}

static bool send_string(struct writer *w, struct str text)
{
    buf_clear(&w->message);
    utf8_add(&w->message, text);
    return send(w, PPROF_STRING, &w->message);
}

/* A sample type's name as it is wanted. */
static bool send_type_name(struct writer *w, struct str name)
{
    const struct encode_name *other = w->rules->type_names;
    buf_clear(&w->message);
    while (other != NULL && other->from != NULL && !str_eq(name, str_of(other->from))) {
        other++;
    }
    utf8_add(&w->message, other != NULL && other->from != NULL ? str_of(other->to) : name);
    for (size_t i = 0; w->rules->plain_types && i < w->message.len; i++) {
        w->message.ptr[i] = w->message.ptr[i] == '-' ? '_' : w->message.ptr[i];
    }
    return send(w, PPROF_STRING, &w->message);
}

static bool is_type_name(const struct profile *p, uint32_t string)
{
    bool found = string == p->meta.value;
    vec_each(&p->event_types, type)
    {
        found |= string == type->name;
    }
    return found;
}

static bool send_number_string(struct writer *w, uint32_t number)
{
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    return send_string(w, str_of(text));
}

static bool send_words(struct writer *w)
{
    for (unsigned i = 0; i < WORD_KIND; i++) {
        const char *word = i < WORD_LABEL ? words[i]
                                          : profile_label_name((enum profile_label)(i - WORD_LABEL));
        bool is_type = i == WORD_SAMPLES || i == WORD_CPU || i == WORD_OFF_CPU || i == WORD_WALL;
        if (!(is_type ? send_type_name(w, str_of(word)) : send_string(w, str_of(word)))) {
            return false;
        }
    }
    for (unsigned k = 0; k < FRAME_KIND_COUNT; k++) {
        if (!send_string(w, str_of(languages[k].mapping))) {
            return false;
        }
    }
    if (!send_string(w, STR("[unknown]"))) {
        return false;
    }
    struct str comments = buf_slice(&w->comments);
    for (uint32_t i = 0; i < w->comment_count; i++) {
        if (!send_string(w, str_cut(&comments, '\n'))) {
            return false;
        }
    }
    return true;
}

static bool send_strings(struct writer *w)
{
    const struct profile *p = w->p;
    bool ok = send_words(w);
    for (size_t i = 0; ok && i < p->processes.len; i++) {
        ok = send_number_string(w, p->processes.at[i].pid);
    }
    for (size_t i = 0; ok && i < p->threads.len; i++) {
        ok = send_number_string(w, p->threads.at[i].tid);
    }
    for (size_t i = 1; ok && i < p->strings.len; i++) {
        ok = w->string_of_text[i] == 0 ||
             (is_type_name(p, (uint32_t)i) ? send_type_name(w, p->strings.at[i])
                                           : send_string(w, p->strings.at[i]));
    }
    return ok;
}

static bool send_numbers(struct writer *w)
{
    const struct profile_meta *m = &w->p->meta;
    uint64_t span = m->end_wall_ns > m->start_wall_ns ? m->end_wall_ns - m->start_wall_ns : 0;
    struct buf *out = &w->message;
    buf_clear(out);
    protobuf_u64(out, PPROF_TIME, m->start_wall_ns);
    protobuf_u64(out, PPROF_DURATION, span);
    if (!value_is_other(w->p) && has_cpu_time(w->p)) {
        protobuf_u64(out, PPROF_PERIOD, m->period_ns);
    }
    for (uint32_t i = 0; i < w->comment_count; i++) {
        protobuf_u64(out, PPROF_COMMENT, WORD_COMMENT + i);
    }
    if (has_cpu_time(w->p)) {
        protobuf_u64(out, PPROF_DEFAULT_TYPE, value_is_other(w->p) ? w->string_of_text[m->value] : WORD_CPU);
    }
    return sink_write(w->out, out->ptr, out->len, w->err);
}

static bool send_all(struct writer *w)
{
    const struct profile *p = w->p;
    bool ok = send_types(w) && send_numbers(w) && send_samples(w);
    for (size_t i = 0; ok && i < w->mappings.used; i++) {
        ok = send_mapping(w, w->mappings.order[i]);
    }
    for (size_t i = 1; ok && i < p->frames.len; i++) {
        ok = (w->used[i] & FRAME_OF_NODE) == 0 || send_location(w, (uint32_t)i);
    }
    for (size_t i = 1; ok && i < w->functions.list.len; i++) {
        ok = send_function(w, i);
    }
    return ok && send_strings(w);
}

static bool prepare(struct writer *w)
{
    enum { RECORD_MAX = 64 * 1024 * 1024 };
    buf_init(&w->message, RECORD_MAX);
    buf_init(&w->part, RECORD_MAX);
    buf_init(&w->prefix, 32);
    buf_init(&w->comments, 64 * 1024);
    collect_comments(w);
    w->string_of_text = calloc(w->p->strings.len, sizeof *w->string_of_text);
    w->used = frames_used(w->p);
    if (w->string_of_text == NULL || w->used == NULL || w->comments.failed) {
        return err_set(w->err, ERR_MEMORY, 0, "no memory for a table of %zu strings",
                       w->p->strings.len);
    }
    return functions_init(&w->functions, w->p, w->used, w->err) &&
           pprof_mappings_init(&w->mappings, w->p, w->used, w->err);
}

bool pprof_write_plain(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err)
{
    static const struct encode_rules none;
    struct writer w = {.p = p, .rules = rules != NULL ? rules : &none, .out = out, .err = err};
    bool ok = prepare(&w);
    if (ok) {
        number_texts(&w);
        ok = send_all(&w);
    }
    functions_release(&w.functions);
    pprof_mappings_release(&w.mappings);
    free(w.string_of_text);
    free(w.used);
    buf_release(&w.comments);
    buf_release(&w.message);
    buf_release(&w.part);
    buf_release(&w.prefix);
    return ok;
}

bool pprof_write(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err)
{
    struct gzip *gzip = malloc(sizeof *gzip);
    if (gzip == NULL || !gzip_open(gzip, out, err)) {
        free(gzip);
        return err_set(err, ERR_MEMORY, 0, "no memory to compress with");
    }
    struct sink plain = gzip_sink(gzip);
    bool ok = pprof_write_plain(p, rules, &plain, err) && gzip_finish(gzip, err);
    gzip_release(gzip);
    free(gzip);
    return ok;
}

const struct encoder encoder_pprof = {
    .name = "pprof",
    .extension = ".pprof",
    .extensions = ".pprof.gz .pb.gz .pb",
    .mime = "application/vnd.google.protobuf+gzip",
    .description = "for go tool pprof and its like",
    .link = "last_profile.pprof",
    .by_default = true,
    .is_read = true,
    .apart = FIT_ONE,
    .write = pprof_write,
    .plain = pprof_write_plain,
};
