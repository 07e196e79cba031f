/* Both texts have the same numbers under the same names, those of the fields of Go's runtime.MemStats: one table names
 * them, and each text has its own way to find one. The pauses are a ring of the last cycles, of which those
 * are taken that came since the earlier state. */
#include "runtime/go/metrics.h"

#include "base/json.h"

/* Finds a field's value in one of the texts; {null, 0}: it has none. */
typedef struct str find_field(struct str text, const char *name);

static struct str line_of(struct str text, const char *name)
{
    while (text.len > 0) {
        struct str value = str_cut(&text, '\n');
        struct str key = str_cut(&value, '=');
        if (str_starts(key, STR("# ")) && str_eq(str_trim(str_sub(key, 2, key.len)), str_of(name))) {
            return str_trim(value);
        }
    }
    return (struct str){NULL, 0};
}

/* "[12 0 0]" or "[12,0,0]" */
static bool read_pauses(struct str list, struct go_memstats *out)
{
    size_t count = 0;
    if (!str_starts(list, STR("[")) || !str_ends(list, STR("]"))) {
        return false;
    }
    list = str_sub(list, 1, list.len - 2);
    while (list.len > 0 && count < GO_PAUSES) {
        size_t len = str_find(list, str_find(list, ',') < list.len ? ',' : ' ');
        if (!str_u64(str_trim(str_sub(list, 0, len)), &out->pause_ns[count])) {
            return false;
        }
        list = str_sub(list, len + 1, list.len);
        count++;
    }
    return count == GO_PAUSES && list.len == 0;
}

static bool read_fields(struct str text, find_field *find, struct go_memstats *out, struct err *err)
{
    const struct {
        const char *name;
        uint64_t *to;
    } fields[] = {
        {"TotalAlloc", &out->total_alloc}, {"Mallocs", &out->mallocs}, {"Frees", &out->frees},
        {"HeapAlloc", &out->heap_alloc}, {"NumGC", &out->num_gc},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (!str_u64(find(text, fields[i].name), fields[i].to)) {
            return err_set(err, ERR_MALFORMED, 0, "a Go program's memory statistics have no number %s", fields[i].name);
        }
    }
    if (!read_pauses(find(text, "PauseNs"), out)) {
        return err_set(err, ERR_MALFORMED, 0, "a Go program's memory statistics have no list PauseNs of %d numbers",
                       GO_PAUSES);
    }
    out->has_pause_total = str_u64(find(text, "PauseTotalNs"), &out->pause_total_ns);
    return true;
}

static bool set_on_success(struct str text, find_field *find, struct go_memstats *out, struct err *err)
{
    struct go_memstats read = {0};
    bool ok = read_fields(text, find, &read, err);
    if (ok) {
        *out = read;
    }
    return ok;
}

/* The last one: before it stand names that the program chose. */
bool go_memstats_of_text(struct str text, struct go_memstats *out, struct err *err)
{
    static const struct str title = STR("# runtime.MemStats\n");
    size_t at = text.len;
    while (at > 0 && !str_starts(str_sub(text, at, text.len), title)) {
        at--;
    }
    if (!str_starts(str_sub(text, at, text.len), title)) {
        return err_set(err, ERR_MALFORMED, 0, "a Go program's heap profile has no memory statistics");
    }
    return set_on_success(str_sub(text, at + title.len, text.len), line_of, out, err);
}

bool go_memstats_of_json(struct str text, struct go_memstats *out, struct err *err)
{
    if (!json_valid(text)) {
        return err_set(err, ERR_MALFORMED, 0, "a Go program's published variables are no JSON");
    }
    return set_on_success(json_member(str_trim(text), "memstats"), json_member, out, err);
}

bool go_memstats_goroutines(struct str text, struct go_memstats *stats, struct err *err)
{
    static const struct str title = STR("goroutine profile: total ");
    struct str line = str_cut(&text, '\n');
    uint64_t count;
    if (!str_starts(line, title) || !str_u64(str_sub(line, title.len, line.len), &count)) {
        return err_set(err, ERR_MALFORMED, 0, "a Go program's goroutine profile does not begin with their number");
    }
    stats->num_goroutine = count;
    stats->has_num_goroutine = true;
    return true;
}

/* ---- the difference ---- */

struct pauses {
    double total_ns, longest_ns;
};

static struct pauses pauses_between(const struct go_memstats *before, const struct go_memstats *now)
{
    uint64_t cycles = now->num_gc - before->num_gc;
    uint64_t known = cycles < GO_PAUSES ? cycles : GO_PAUSES;
    struct pauses sum = {0, 0};
    for (uint64_t i = 0; i < known; i++) {
        double ns = (double)now->pause_ns[(now->num_gc - 1 - i) % GO_PAUSES];
        sum.total_ns += ns;
        sum.longest_ns = ns > sum.longest_ns ? ns : sum.longest_ns;
    }
    sum.total_ns *= known > 0 ? (double)cycles / (double)known : 0;
    if (before->has_pause_total && now->has_pause_total) {
        sum.total_ns = (double)(now->pause_total_ns - before->pause_total_ns);
    }
    return sum;
}

static bool is_older(const struct go_memstats *before, const struct go_memstats *now)
{
    return before->total_alloc <= now->total_alloc && before->mallocs <= now->mallocs && before->frees <= now->frees &&
           before->num_gc <= now->num_gc &&
           (!before->has_pause_total || !now->has_pause_total || before->pause_total_ns <= now->pause_total_ns);
}

/* All are quotients of finite numbers by more than 0: JSON has no word for others. */
static void add(struct buf *json, size_t start, const char *name, double value)
{
    buf_printf(json, "%s[\"%s\",%.12g]", json->len == start ? "[" : ",", name, value);
}

bool go_metrics(const struct go_memstats *before, const struct go_memstats *now, uint64_t elapsed_ns, struct buf *json,
                struct err *err)
{
    if (elapsed_ns == 0) {
        return err_set(err, ERR_USAGE, 0, "metrics of a Go program want two moments, not one");
    }
    if (!is_older(before, now)) {
        return err_set(err, ERR_GONE, 0, "a Go program's counters fell: it was started again");
    }
    double s = (double)elapsed_ns / 1e9;
    struct pauses pauses = pauses_between(before, now);
    size_t start = json->len;
    add(json, start, "go_alloc_bytes_per_sec", (double)(now->total_alloc - before->total_alloc) / s);
    add(json, start, "go_allocs_per_sec", (double)(now->mallocs - before->mallocs) / s);
    add(json, start, "go_frees_per_sec", (double)(now->frees - before->frees) / s);
    add(json, start, "go_heap_growth_bytes_per_sec", ((double)now->heap_alloc - (double)before->heap_alloc) / s);
    add(json, start, "go_gcs_per_sec", (double)(now->num_gc - before->num_gc) / s);
    add(json, start, "go_gc_pause_time", pauses.total_ns / (double)elapsed_ns);
    add(json, start, "go_max_gc_pause_time", pauses.longest_ns);
    if (now->has_num_goroutine) {
        add(json, start, "go_num_goroutine", (double)now->num_goroutine);
    }
    buf_byte(json, ']');
    return true;
}
