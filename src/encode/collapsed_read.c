/* Collapsed stacks into a profile: which of three dialects a file is in, what its header says of the
 * window and the processes, and then line by line a head, frames and a count. Lines that are none
 * are skipped and counted. */
#include "encode/collapsed_read.h"


#include "base/time.h"
#include "encode/collapsed.h"
#include "encode/importer.h"
#include "base/json.h"
#include "encode/value.h"
#include "profile/merge.h"

enum {
    TEXT_MAX = 64 * 1024, /* of one text of the header */
    PROBE_LINES = 64,     /* how many lines decide about a file without a header */
    DESCRIBED_MAX = 1000 * 1000, /* processes of the header; lines of others are theirs by name */
};

/* An element of "application_metadata". */
struct described {
    uint32_t pid;
    uint64_t start_ticks;
    struct str comm, runtime; /* JSON strings */
    uint32_t process;         /* id in the profile once met */
    uint64_t cpu_ns, seen_ns;
};

struct reader {
    struct importer in;
    struct collapsed_damage *damage;
    bool has_index, has_container, is_nameless;
    uint64_t period_ns;
    struct str wanted; /* a sample type's name; "": whatever it holds */
    uint64_t line, good;
    VEC(struct described) described; /* element 0 stands for null */
    VEC(uint32_t) frames;
    struct buf comm, runtime; /* texts of the header, decoded */
};

/* --- the header --- */

static bool two_digits(struct str text, size_t at, uint64_t *out)
{
    return str_u64(str_sub(text, at, 2), out) && at + 2 <= text.len;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar. */
static uint64_t days_of(uint64_t year, uint64_t month, uint64_t day)
{
    static const unsigned before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    uint64_t past = year - 1; /* complete years */
    uint64_t leaps = past / 4 - past / 100 + past / 400 - (1969 / 4 - 1969 / 100 + 1969 / 400);
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return (year - 1970) * 365 + leaps + before[month - 1] + (is_leap && month > 2) + day - 1;
}

/* "2026-11-20T10:31:04", anything behind it is not looked at; 0 when it is no moment. */
static uint64_t moment_of(struct str json)
{
    struct str t = str_sub(json, 1, 19);
    uint64_t year, month, day, hour, minute, second;
    if (t.len != 19 || t.ptr[4] != '-' || t.ptr[10] != 'T' || !str_u64(str_sub(t, 0, 4), &year) ||
        !two_digits(t, 5, &month) || !two_digits(t, 8, &day) || !two_digits(t, 11, &hour) ||
        !two_digits(t, 14, &minute) || !two_digits(t, 17, &second)) {
        return 0;
    }
    if (year < 1970 || year > 2500 || month < 1 || month > 12 || day < 1 || day > 31) {
        return 0;
    }
    return ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 * NS_PER_S +
           second * NS_PER_S;
}

static uint32_t header_text(struct reader *r, struct str json)
{
    buf_clear(&r->comm);
    bool fits = true;
    if (!json_text_of(json, &r->comm) || r->comm.failed) {
        return 0;
    }
    return importer_text(&r->in, buf_slice(&r->comm), &fits);
}

static uint64_t header_period(struct str header, struct str arguments, uint64_t *frequency_hz)
{
    uint64_t period = 0, frequency = 0;
    struct str own = json_member(header, "pillion");
    if (!json_u64_of(json_member(header, "sampling_frequency"), &frequency)) {
        json_u64_of(json_member(arguments, "frequency"), &frequency);
    }
    json_u64_of(json_member(own, "period_ns"), &period);
    *frequency_hz = frequency > NS_PER_S ? 0 : frequency;
    if (period == 0 && *frequency_hz > 0) {
        period = NS_PER_S / frequency;
    }
    return period;
}

/* Whose weights the lines have, by our own header or without one. */
static bool read_value(struct reader *r, struct str own, struct err *err)
{
    struct str name = STR(""), unit = STR("");
    buf_clear(&r->comm);
    buf_clear(&r->runtime);
    if (json_text_of(json_member(own, "value"), &r->comm) &&
        json_text_of(json_member(own, "unit"), &r->runtime) && !r->comm.failed &&
        !r->runtime.failed) {
        name = buf_slice(&r->comm);
        unit = buf_slice(&r->runtime);
    }
    return importer_type(&r->in, r->wanted, name, unit, err);
}

static void read_meta(struct reader *r, struct str header)
{
    struct str metadata = json_member(header, "metadata");
    struct str arguments = json_member(metadata, "run_arguments");
    struct str own = json_member(header, "pillion");
    uint64_t frequency;
    struct profile_meta meta = {.start_wall_ns = moment_of(json_member(header, "start_time")),
                                .end_wall_ns = moment_of(json_member(header, "end_time"))};
    if (meta.end_wall_ns == 0) {
        meta.end_wall_ns = moment_of(json_member(metadata, "current_time"));
    }
    meta.period_ns = header_period(header, arguments, &frequency);
    meta.frequency_hz = (uint32_t)frequency;
    meta.service = header_text(r, json_member(arguments, "service_name"));
    meta.host = header_text(r, json_member(metadata, "hostname"));
    meta.mode = header_text(r, json_member(own, "mode"));
    meta.reason = header_text(r, json_member(own, "reason"));
    json_u64_of(json_member(own, "lost_records"), &meta.lost_records);
    json_u64_of(json_member(own, "window"), &meta.window);
    struct str cost = json_member(own, "own");
    json_u64_of(json_member(cost, "cpu_ns"), &meta.own_cpu_ns);
    json_u64_of(json_member(cost, "rss_bytes"), &meta.own_rss_bytes);
    json_u64_of(json_member(cost, "rss_peak_bytes"), &meta.own_rss_peak_bytes);
    meta.budget = header_text(r, json_member(cost, "budget"));
    json_bool_of(json_member(metadata, "continuous"), &meta.continuous);
    if (value_is_counted(r->in.profile)) {
        meta.period_ns = 1;
        meta.frequency_hz = 0;
    }
    if (meta.period_ns != 0) {
        r->period_ns = meta.period_ns;
    }
    profile_merge_meta(r->in.profile, &meta);
}

static bool read_described(struct reader *r, struct str list, struct err *err)
{
    struct str entry;
    while (r->described.len < DESCRIBED_MAX && json_next(&list, NULL, &entry)) {
        struct described *d = vec_push(&r->described);
        if (d == NULL) {
            return err_set(err, ERR_MEMORY, 0, "no memory for the processes of the header");
        }
        uint64_t pid = 0;
        json_u64_of(json_member(entry, "pid"), &pid);
        d->pid = pid <= UINT32_MAX ? (uint32_t)pid : 0;
        json_u64_of(json_member(entry, "start_ticks"), &d->start_ticks);
        json_u64_of(json_member(entry, "cpu_ns"), &d->cpu_ns);
        d->comm = json_member(entry, "comm");
        d->runtime = json_member(entry, "runtime");
    }
    return true;
}

static bool read_header(struct reader *r, struct str header, struct err *err)
{
    if (!json_valid(header)) {
        return err_set(err, ERR_MALFORMED, 0,
                       "line 1: the header behind \"# \" is not valid JSON");
    }
    if (!read_value(r, json_member(header, "pillion"), err)) {
        return false;
    }
    read_meta(r, header);
    struct str arguments = json_member(json_member(header, "metadata"), "run_arguments");
    r->has_container =
        !str_eq(json_member(arguments, "profile_api_version"), STR("\"v1\""));
    r->has_index = false;
    json_bool_of(json_member(header, "application_metadata_enabled"), &r->has_index);
    return read_described(r, json_member(header, "application_metadata"), err);
}

/* --- lines --- */

static struct str take_line(struct str *rest)
{
    struct str line = str_cut(rest, '\n');
    if (line.len > 0 && line.ptr[line.len - 1] == '\r') {
        line.len--;
    }
    return line;
}

/* Cuts the count off the end of a line. */
static bool take_count(struct str *line, uint64_t *count)
{
    *line = str_trim(*line);
    size_t blank = str_find_last(*line, ' ');
    size_t tab = str_find_last(*line, '\t');
    if (tab < line->len && (blank == line->len || tab > blank)) {
        blank = tab;
    }
    if (blank == line->len || !str_u64(str_sub(*line, blank + 1, line->len), count)) {
        return false;
    }
    *line = str_trim(str_sub(*line, 0, blank));
    return *count > 0 && line->len > 0;
}

static void skip_line(struct reader *r)
{
    if (r->damage->lines++ == 0) {
        r->damage->first_line = r->line;
    }
}

static bool push_frame(struct reader *r, struct str name, enum frame_kind kind)
{
    uint32_t *frame = vec_push(&r->frames), line = collapsed_line(&name, kind);
    if (frame != NULL) {
        *frame = importer_frame(&r->in, name, line, kind);
    }
    return frame != NULL;
}

static bool read_frames(struct reader *r, struct str fields)
{
    vec_clear(&r->frames);
    while (fields.len > 0) {
        struct str name = str_trim(str_cut(&fields, ';'));
        enum frame_kind kind = collapsed_kind(&name);
        bool is_alone = r->frames.len == 0 && fields.len == 0;
        if (is_alone && kind == FRAME_NATIVE) {
            kind = importer_plain_kind(name);
        }
        if (name.len > 0 && !push_frame(r, name, kind)) {
            return false;
        }
    }
    return r->frames.len > 0 || push_frame(r, STR("[unknown]"), FRAME_NATIVE);
}

/* The header's element a line points to, or null. */
static struct described *described_at(struct reader *r, struct str index)
{
    uint64_t at;
    if (!str_u64(index, &at) || at >= r->described.len || r->described.at[at].pid == 0) {
        return NULL;
    }
    return &r->described.at[at];
}

static void use_described(struct reader *r, const struct described *d,
                          struct importer_origin *origin)
{
    buf_clear(&r->comm);
    buf_clear(&r->runtime);
    if (json_text_of(d->comm, &r->comm) && !r->comm.failed) {
        origin->comm = buf_slice(&r->comm);
    }
    if (json_text_of(d->runtime, &r->runtime) && !r->runtime.failed) {
        origin->runtime = buf_slice(&r->runtime);
    }
    origin->pid = d->pid;
    origin->start_ticks = d->start_ticks;
}

/* Takes everything before the frames off *line. */
static struct described *read_head(struct reader *r, struct str *line, struct importer_origin *origin)
{
    struct described *d = NULL;
    if (r->has_index) {
        d = described_at(r, str_cut(line, ';'));
    }
    if (r->has_container) {
        origin->container = str_trim(str_cut(line, ';'));
    }
    origin->thread_name = r->is_nameless ? STR("all") : str_trim(str_cut(line, ';'));
    struct str rest = *line;
    struct str appid = str_trim(str_cut(&rest, ';'));
    if (str_starts(appid, STR("appid: "))) {
        origin->appid = appid;
        *line = rest;
    }
    if (d != NULL) {
        use_described(r, d, origin);
    }
    return d;
}

static bool add_line(struct reader *r, struct str line, uint64_t count, struct err *err)
{
    uint64_t cpu_ns;
    struct importer_origin origin = {0};
    struct described *d = read_head(r, &line, &origin);
    if (origin.thread_name.len == 0) {
        skip_line(r);
        return true;
    }
    if (__builtin_mul_overflow(count, r->period_ns, &cpu_ns)) {
        cpu_ns = UINT64_MAX; /* beyond the total's limit: importer_add refuses it */
    }
    uint32_t thread = importer_thread(&r->in, &origin);
    if (!read_frames(r, line)) {
        return err_set(err, ERR_MEMORY, 0, "line %llu: no memory for its frames",
                       (unsigned long long)r->line);
    }
    bool is_account = r->frames.len == 1 && r->frames.at[0] != 0 &&
                      r->in.profile->frames.at[r->frames.at[0]].kind == FRAME_ACCOUNT;
    struct err why;
    uint32_t node = importer_stack(&r->in, r->frames.at, r->frames.len);
    if (!importer_add(&r->in, thread, node, cpu_ns, is_account ? 0 : count, &why)) {
        return err_set(err, why.kind, 0, "line %llu: %s", (unsigned long long)r->line, why.text);
    }
    if (d != NULL) {
        d->process = r->in.profile->threads.at[thread].process;
        d->seen_ns += cpu_ns;
    }
    r->good++;
    return true;
}

static bool read_lines(struct reader *r, struct str rest, struct err *err)
{
    for (; rest.len > 0; r->line++) {
        uint64_t count;
        struct str line = take_line(&rest);
        if (str_trim(line).len == 0) {
            continue;
        }
        if (!take_count(&line, &count)) {
            skip_line(r);
        } else if (!add_line(r, line, count, err)) {
            return false;
        }
    }
    return true;
}

/* --- which dialect, and the whole --- */

static void judge_plain(struct reader *r, struct str rest)
{
    bool all_indexed = true;
    unsigned seen = 0;
    while (rest.len > 0) {
        uint64_t number;
        struct str line = take_line(&rest);
        if (!take_count(&line, &number)) {
            continue;
        }
        r->is_nameless |= str_find(line, ';') == line.len;
        if (seen++ < PROBE_LINES) {
            struct str fields = line;
            bool is_indexed = str_u64(str_cut(&fields, ';'), &number);
            str_cut(&fields, ';');
            all_indexed &= is_indexed && fields.len > 0;
        }
    }
    r->has_index = r->has_container = seen > 0 && all_indexed;
    r->is_nameless &= !r->has_index;
}

/* The kernel's books are better than the sum of the lines, where the header has them. */
static void settle_books(struct reader *r)
{
    vec_each(&r->described, d)
    {
        if (d->process != 0 && d->cpu_ns > 0) {
            r->in.profile->processes.at[d->process].cpu_ns += d->cpu_ns - d->seen_ns;
        }
    }
}

static bool read_all(struct reader *r, struct str file, struct err *err)
{
    struct str rest = file;
    struct str first = take_line(&rest);
    r->line = 1;
    if (str_starts(first, STR("# {"))) {
        if (!read_header(r, str_sub(first, 2, first.len), err)) {
            return false;
        }
        r->line = 2;
        file = rest;
    } else if (read_value(r, STR(""), err)) {
        judge_plain(r, file);
    } else {
        return false;
    }
    if (!read_lines(r, file, err)) {
        return false;
    }
    settle_books(r);
    if (r->good == 0 && r->damage->lines > 0) {
        return err_set(err, ERR_MALFORMED, 0,
                       "line %llu: no collapsed stack, which is frames joined by ';', a blank and "
                       "a count",
                       (unsigned long long)r->damage->first_line);
    }
    return true;
}

bool collapsed_read(struct profile *p, struct str file, struct str type, struct collapsed_damage *damage,
                    struct err *err)
{
    struct reader r = {.damage = damage, .wanted = type, .period_ns = collapsed_period(p)};
    importer_init(&r.in, p);
    buf_init(&r.comm, TEXT_MAX);
    buf_init(&r.runtime, TEXT_MAX);
    *damage = (struct collapsed_damage){0};
    bool ok = read_all(&r, file, err);
    if (ok && p->meta.period_ns == 0) {
        p->meta.period_ns = r.period_ns;
    }
    buf_release(&r.comm);
    buf_release(&r.runtime);
    vec_release(&r.described);
    vec_release(&r.frames);
    return ok;
}
