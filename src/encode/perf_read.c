/* Lines of perf script, each tried as the first of a sample and then as a frame: what a line begins with does not
 * tell, because names may have blanks and digits in them. The number of a thread is the first one that is followed by
 * what has to follow it. Once for the events there are and the time of the first sample, once for the samples. */
#include "encode/perf_read.h"

#include <stdio.h>

#include "base/ascii.h"
#include "base/time.h"
#include "encode/collapsed.h"
#include "encode/importer.h"

enum { PROBE_LINES = 4096, LIST_MAX = 160 };

struct head {
    struct str comm, event, rest; /* rest: a frame in the same line */
    uint32_t pid, tid;            /* pid 0: not said */
    uint64_t time_ns, period;     /* IMPORTER_NO_TIME, 0: not said */
};

struct reader {
    struct importer in;
    struct collapsed_damage *damage;
    struct err *err;
    bool whole, is_time; /* the chosen event's periods are time */
    struct str events[PERF_EVENTS_MAX];
    uint32_t types[PERF_EVENTS_MAX]; /* of the profile, when whole */
    size_t event_count, chosen;
    uint64_t first_ns, line;
    struct head head; /* of the sample being read, if any */
    bool any;
    VEC(uint32_t) frames; /* leaf first */
};

/* --- a line --- */

static struct str take_word(struct str *text)
{
    *text = str_trim(*text);
    size_t end = 0;
    while (end < text->len && text->ptr[end] != ' ' && text->ptr[end] != '\t') {
        end++;
    }
    struct str word = str_sub(*text, 0, end);
    *text = str_trim(str_sub(*text, end, text->len));
    return word;
}

static bool take_u32(struct str text, uint32_t *out)
{
    uint64_t number;
    if (!str_u64(text, &number) || number > UINT32_MAX) {
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

/* "12" or "12/34". */
static bool take_ids(struct str word, struct head *head)
{
    struct str pid = str_cut(&word, '/');
    head->pid = 0;
    return word.len == 0 ? take_u32(pid, &head->tid) : take_u32(pid, &head->pid) && take_u32(word, &head->tid);
}

/* "29803.035932:". */
static bool take_time(struct str word, uint64_t *time_ns)
{
    uint64_t seconds, part, unit = NS_PER_S;
    if (!str_ends(word, STR(":"))) {
        return false;
    }
    struct str fraction = str_sub(word, 0, word.len - 1), whole = str_cut(&fraction, '.');
    if (fraction.len == 0 || fraction.len > 9 || !str_u64(whole, &seconds) || !str_u64(fraction, &part) ||
        seconds > UINT64_MAX / NS_PER_S - 1) {
        return false;
    }
    for (size_t i = 0; i < fraction.len; i++) {
        unit /= 10;
    }
    *time_ns = seconds * NS_PER_S + part * unit;
    return true;
}

/* "cpu-clock:uhH:" without what stands behind its name. */
static struct str event_name(struct str word)
{
    word.len--;
    size_t colon = str_find_last(word, ':');
    for (size_t i = colon + 1; i < word.len; i++) {
        if (memchr("ukhHGpPSDIWe", word.ptr[i], 12) == NULL) {
            return word;
        }
    }
    return str_sub(word, 0, colon);
}

/* What stands behind the ids; false: that is no first line of a sample. */
static bool take_fields(struct str rest, struct head *head)
{
    uint64_t number;
    struct str after = rest, word = take_word(&after);
    head->time_ns = IMPORTER_NO_TIME;
    head->period = 0;
    head->event = head->rest = (struct str){NULL, 0};
    if (word.len > 2 && word.ptr[0] == '[' && str_u64(str_sub(word, 1, word.len - 2), &number)) {
        rest = after;
        word = take_word(&after);
    }
    bool ok = rest.len == 0;
    if (take_time(word, &head->time_ns)) {
        ok = true;
        rest = after;
        word = take_word(&after);
    }
    if (str_u64(word, &number) && after.len > 0) {
        head->period = number;
        rest = after;
        word = take_word(&after);
    }
    if (word.len > 1 && word.ptr[word.len - 1] == ':') {
        head->event = event_name(word);
        head->rest = after;
        ok = true;
    }
    return ok;
}

static bool take_head(struct str line, struct head *head)
{
    struct str rest = line;
    (void)take_word(&rest);
    while (rest.len > 0) {
        const char *end = rest.ptr;
        struct str word = take_word(&rest);
        if (ascii_is_digit(word.ptr[0]) && take_ids(word, head) && take_fields(rest, head)) {
            head->comm = str_trim((struct str){line.ptr, (size_t)(end - line.ptr)});
            return true;
        }
    }
    return false;
}

/* --- frames --- */

/* Where the bracket that closes at the end of the text opens; its length: nowhere. */
static size_t last_bracket(struct str text)
{
    size_t depth = 0;
    for (size_t i = text.len; str_ends(text, STR(")")) && i-- > 0;) {
        depth += text.ptr[i] == ')';
        depth -= text.ptr[i] == '(';
        if (depth == 0) {
            return i;
        }
    }
    return text.len;
}

static void cut_offset(struct str *name)
{
    uint64_t offset;
    size_t plus = str_find_last(*name, '+');
    struct str tail = str_sub(*name, plus, name->len);
    if (str_starts(tail, STR("+0x")) && str_hex(str_sub(tail, 3, tail.len), &offset)) {
        name->len = plus;
    }
}

/* "py::f:/a.py" is "f (/a.py)". */
static uint32_t python_frame(struct reader *r, struct str name)
{
    char text[512];
    struct str file = str_sub(name, 4, name.len), function = str_cut(&file, ':');
    int len = snprintf(text, sizeof text, "%.*s (%.*s)", (int)str_sub(function, 0, 200).len, function.ptr,
                       (int)str_sub(file, 0, 300).len, file.ptr);
    return importer_frame_in(&r->in, (struct str){text, (size_t)len}, file, 0, FRAME_PYTHON);
}

static bool add_frame(struct reader *r, struct str line)
{
    uint64_t address;
    struct str name = str_trim(line), word = take_word(&name);
    if (!r->any || !str_hex(word, &address) || name.len == 0) {
        return false;
    }
    size_t open = last_bracket(name);
    struct str file = str_sub(name, open, name.len);
    file = str_sub(file, 1, file.len > 2 ? file.len - 2 : 0);
    name = str_trim(str_sub(name, 0, open));
    cut_offset(&name);
    bool is_kernel = address >> 63 != 0 || str_starts(file, STR("[kernel")) || str_starts(file, STR("[guest.kernel"));
    bool is_named = name.len > 0 && !str_eq(name, STR("[unknown]"));
    char place[256];
    if (!is_named) {
        struct str base = file.len > 0 && file.ptr[0] != '[' ? str_base_name(file) : file;
        base = str_sub(base, 0, 200);
        bool is_file = base.len > 0 && base.ptr[0] != '[';
        int len = snprintf(place, sizeof place, is_file ? "[%.*s]" : "%.*s", (int)base.len, base.ptr);
        name = len > 0 ? (struct str){place, (size_t)len} : STR("[unknown]");
    }
    uint32_t *frame = vec_push(&r->frames);
    if (frame != NULL) {
        *frame = str_starts(name, STR("py::")) ? python_frame(r, name)
                 : importer_frame(&r->in, name, 0, is_kernel ? FRAME_KERNEL : language_by_mark(name));
    }
    return true;
}

/* --- samples --- */

static size_t event_at(const struct reader *r, struct str name)
{
    size_t i = 0;
    while (i < r->event_count && !str_eq(r->events[i], name)) {
        i++;
    }
    return i;
}

static bool end_sample(struct reader *r)
{
    const struct head *head = &r->head;
    size_t event = event_at(r, head->event);
    if (!r->any || event == r->event_count || (event != r->chosen && !r->whole)) {
        return true;
    }
    struct importer_origin o = {.pid = head->pid, .tid = head->tid, .comm = head->comm, .thread_name = head->comm};
    for (size_t i = 0; i < r->frames.len / 2; i++) { /* root first */
        uint32_t other = r->frames.at[i];
        r->frames.at[i] = r->frames.at[r->frames.len - 1 - i];
        r->frames.at[r->frames.len - 1 - i] = other;
    }
    uint32_t unknown = r->frames.len > 0 ? 0 : importer_frame(&r->in, STR("[unknown]"), 0, FRAME_NATIVE);
    uint32_t node = r->frames.len > 0 ? importer_stack(&r->in, r->frames.at, r->frames.len)
                                      : importer_stack(&r->in, &unknown, 1);
    uint32_t thread = importer_thread(&r->in, &o);
    uint64_t weight = head->period > 0 ? head->period : r->is_time && event == r->chosen ? COLLAPSED_PERIOD_NS : 1;
    if (event != r->chosen) {
        profile_add_event(r->in.profile, r->types[event], thread, node, weight);
        return true;
    }
    uint64_t *period_ns = &r->in.profile->meta.period_ns;
    *period_ns = *period_ns == 0 ? (r->is_time ? weight : 1) : *period_ns;
    uint64_t time_ns = head->time_ns == IMPORTER_NO_TIME ? IMPORTER_NO_TIME : head->time_ns - r->first_ns;
    return importer_add_at(&r->in, thread, node, weight, 1, time_ns, r->err);
}

static bool read_line(struct reader *r, struct str line)
{
    struct head head;
    bool is_inner = line.len > 0 && (line.ptr[0] == ' ' || line.ptr[0] == '\t'), ok = true;
    if (str_trim(line).len == 0 || line.ptr[0] == '#') {
        return true;
    }
    if (take_head(line, &head)) {
        ok = end_sample(r);
        r->head = head;
        r->any = true;
        vec_clear(&r->frames);
        (void)(head.rest.len > 0 && add_frame(r, head.rest));
    } else if (!add_frame(r, line) && !is_inner && r->damage->lines++ == 0) {
        r->damage->first_line = r->line;
    }
    return ok;
}

static bool read_lines(struct reader *r, struct str file)
{
    bool ok = true;
    for (r->line = 1; ok && file.len > 0; r->line++) {
        ok = read_line(r, str_cut(&file, '\n'));
    }
    return ok && end_sample(r);
}

/* --- the whole --- */

static bool is_clock(struct str event)
{
    return event.len == 0 || str_starts(event, STR("cpu-clock")) || str_starts(event, STR("task-clock"));
}

static void survey(struct reader *r, struct str file)
{
    struct head head;
    while (file.len > 0) {
        struct str line = str_cut(&file, '\n');
        if (line.len == 0 || line.ptr[0] == '#' || !take_head(line, &head)) {
            continue;
        }
        r->first_ns = head.time_ns < r->first_ns ? head.time_ns : r->first_ns;
        if (r->event_count < PERF_EVENTS_MAX && event_at(r, head.event) == r->event_count) {
            r->events[r->event_count++] = head.event;
        }
    }
}

/* Which event counts; false: what was asked for is none of them. */
static bool choose(struct reader *r, struct str wanted)
{
    char list[LIST_MAX] = "";
    size_t len = 0;
    r->chosen = r->event_count;
    for (size_t i = 0; i < r->event_count; i++) {
        bool is_any = wanted.len == 0 || str_eq(wanted, STR("cpu"));
        bool is_it = is_any ? is_clock(r->events[i]) : str_eq(wanted, r->events[i]);
        r->chosen = is_it && r->chosen == r->event_count ? i : r->chosen;
        struct str name = r->events[i].len > 0 ? r->events[i] : STR("cpu");
        int more = snprintf(list + len, sizeof list - len, i > 0 ? ", %.*s" : "%.*s", (int)name.len, name.ptr);
        len = len + (size_t)more < sizeof list ? len + (size_t)more : sizeof list - 1;
    }
    if (r->chosen == r->event_count && wanted.len == 0) {
        r->chosen = 0;
    }
    return r->chosen < r->event_count ||
           err_set(r->err, ERR_USAGE, 0, "there is no sample type %.*s in it; there is: %s",
                   (int)str_sub(wanted, 0, 40).len, wanted.ptr, list);
}

/* The event's type in the profile, which may have it of another file. */
static uint32_t type_of(struct reader *r, struct str event)
{
    struct profile *p = r->in.profile;
    bool fits = true;
    uint32_t name = importer_text(&r->in, event, &fits), i = 0;
    while (i < p->event_types.len && p->event_types.at[i].name != name) {
        i++;
    }
    if (i == p->event_types.len && profile_event_type(p, "", "count") < PROFILE_EVENTS_MAX) {
        p->event_types.at[i].name = name;
    }
    return i;
}

static bool prepare(struct reader *r, struct str wanted)
{
    if (!choose(r, wanted)) {
        return false;
    }
    struct str name = r->events[r->chosen];
    r->is_time = is_clock(name);
    for (size_t i = 0; r->whole && i < r->event_count; i++) {
        r->types[i] = i == r->chosen ? 0 : type_of(r, r->events[i]);
    }
    importer_begin(&r->in, 0);
    return importer_type(&r->in, STR(""), r->is_time ? STR("") : name, r->is_time ? STR("") : STR("count"), r->err);
}

bool perf_is(struct str file)
{
    struct head head;
    for (unsigned i = 0; i < PROBE_LINES && file.len > 0; i++) {
        struct str line = str_cut(&file, '\n');
        if (str_trim(line).len == 0 || line.ptr[0] == '#') {
            continue;
        }
        uint64_t address;
        struct str frame = str_cut(&file, '\n');
        bool is_inner = frame.len > 0 && (frame.ptr[0] == ' ' || frame.ptr[0] == '\t');
        bool is_frame = is_inner && str_hex(take_word(&frame), &address);
        return take_head(line, &head) && (is_frame || (head.time_ns != IMPORTER_NO_TIME && head.event.len > 0));
    }
    return false;
}

bool perf_read(struct profile *p, struct str file, struct str type, bool whole, struct collapsed_damage *damage,
               struct err *err)
{
    struct reader r = {.damage = damage, .err = err, .whole = whole, .first_ns = IMPORTER_NO_TIME};
    importer_init(&r.in, p);
    survey(&r, file);
    bool ok = prepare(&r, type) && read_lines(&r, file);
    vec_release(&r.frames);
    return ok;
}
