/* Reads the text of -e by two tables, of words and of keys; each row that is refused says why. An unknown word or key
 * is an error that suggests the nearest known one. A frequency is refused for software events, because the periods
 * that the kernel finds for them make wrong sums (check_frequency). */
#include "capture/event.h"
#include "base/nearest.h"
#include "base/time.h"

#include <linux/perf_event.h>

enum {
    FREQUENCY_MOST_HZ = 10000, /* as the CPU clock's */
    QUOTED_MAX = 40,
};

#define PERIOD_MOST UINT64_C(1000000000000)
#define SCALE_DIGITS 9

enum kind { KIND_EVENT, KIND_KERNEL, KIND_CLOCK, KIND_NOTHING, KIND_REFUSED };

struct word {
    const char *name, *short_name, *other; /* perf's, ddprof's, a second one of perf's or none */
    uint8_t kind;
    uint8_t type;
    uint8_t config;
    uint8_t period;  /* unless asked otherwise; 0: by frequency */
    const char *why; /* KIND_REFUSED */
};

#define HARDWARE(name, word, other, number)                                                        \
    {name, word, other, KIND_EVENT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##number, 0, 0}
#define SOFTWARE(name, word, other, kind, number, period)                                          \
    {name, word, other, kind, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##number, period, 0}

static const struct word words[] = {
    HARDWARE("cycles", "hCPU", "cpu-cycles", CPU_CYCLES),
    HARDWARE("ref-cycles", "hREF", "", REF_CPU_CYCLES),
    HARDWARE("instructions", "hINST", "", INSTRUCTIONS),
    HARDWARE("bus-cycles", "hBUS", "", BUS_CYCLES),
    HARDWARE("stalled-cycles-frontend", "hBSTF", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND),
    HARDWARE("stalled-cycles-backend", "hBSTB", "idle-cycles-backend", STALLED_CYCLES_BACKEND),
    HARDWARE("cache-references", "hCREF", "", CACHE_REFERENCES),
    HARDWARE("cache-misses", "hCMISS", "", CACHE_MISSES),
    HARDWARE("branches", "hBRANCH", "branch-instructions", BRANCH_INSTRUCTIONS),
    HARDWARE("branch-misses", "hBMISS", "", BRANCH_MISSES),
    SOFTWARE("page-faults", "sPF", "faults", KIND_EVENT, PAGE_FAULTS, 100),
    SOFTWARE("major-faults", "sPFMAJ", "", KIND_EVENT, PAGE_FAULTS_MAJ, 1),
    SOFTWARE("minor-faults", "sPFMIN", "", KIND_EVENT, PAGE_FAULTS_MIN, 100),
    SOFTWARE("context-switches", "sCS", "cs", KIND_KERNEL, CONTEXT_SWITCHES, 100),
    SOFTWARE("cpu-migrations", "sMig", "migrations", KIND_KERNEL, CPU_MIGRATIONS, 1),
    SOFTWARE("alignment-faults", "sALGN", "", KIND_EVENT, ALIGNMENT_FAULTS, 1),
    SOFTWARE("emulation-faults", "sEMU", "", KIND_EVENT, EMULATION_FAULTS, 1),
    SOFTWARE("cpu-clock", "sCPU", "task-clock", KIND_CLOCK, CPU_CLOCK, 0),
    SOFTWARE("dummy", "sDUM", "", KIND_NOTHING, DUMMY, 0),
    {.name = "alloc",
     .short_name = "sALLOC",
     .other = "",
     .kind = KIND_REFUSED,
     .why = "no code is put into the program that could see its allocations"},
};
enum { WORD_COUNT = sizeof words / sizeof words[0] };

static const char no_tracepoints[] =
    "tracepoints are named and read through tracefs, which containers do not have";
static const char no_raw_data[] = "what is counted is events, not their registers or raw data";

static const struct key {
    const char *name, *short_name;
    const char *why; /* it is refused; null: it is not */
} keys[] = {
    {"event", "e", NULL},         {"period", "p", NULL},
    {"frequency", "f", NULL},     {"label", "l", NULL},
    {"value_scale", "s", NULL},   {"mode", "m", NULL},
    {"group", "g", no_tracepoints}, {"id", "i", no_tracepoints},
    {"arg_num", "n", no_raw_data}, {"register", "r", no_raw_data},
    {"raw_offset", "o", no_raw_data}, {"raw_size", "z", no_raw_data},
    {"stack_sample_size", "st", "--perf-dwarf-stack-size is for all events"},
};
enum { KEY_EVENT, KEY_PERIOD, KEY_FREQUENCY, KEY_LABEL, KEY_SCALE, KEY_MODE,
       KEY_COUNT = sizeof keys / sizeof keys[0] };

/* One event as it is read. */
struct reading {
    const struct word *word;
    struct str label;
    uint64_t period, frequency_hz;
    double scale;
};

static int shown(struct str text)
{
    return (int)(text.len < QUOTED_MAX ? text.len : QUOTED_MAX);
}

/* ---- words ---- */

static void offer_words(struct nearest *near)
{
    for (unsigned i = 0; i < WORD_COUNT; i++) {
        const char *const names[] = {words[i].name, words[i].short_name, words[i].other};
        for (unsigned k = 0; k < 3 && words[i].kind != KIND_REFUSED; k++) {
            if (names[k][0] != '\0') {
                nearest_offer(near, names[k]);
            }
        }
    }
}

static bool unknown_word(struct str text, struct err *err)
{
    if (str_find(text, ':') < text.len) {
        return err_set(err, ERR_UNSUPPORTED, 0, "%.*s is not available: %s", shown(text), text.ptr,
                       no_tracepoints);
    }
    uint64_t number;
    if (text.len > 1 && text.ptr[0] == 'r' && str_hex(str_sub(text, 1, text.len), &number)) {
        return err_set(err, ERR_UNSUPPORTED, 0,
                       "%.*s is not available: raw events mean something else on each processor",
                       shown(text), text.ptr);
    }
    struct nearest near = nearest_to(text.ptr, text.len);
    offer_words(&near);
    return err_set(err, ERR_USAGE, 0,
                   "expects an event such as page-faults or cycles, got \"%.*s\"%s%s%s%s%s",
                   shown(text), text.ptr, near.count > 0 ? "; did you mean " : "",
                   near.count > 0 ? near.word[0] : "", near.count > 1 ? " or " : "",
                   near.count > 1 ? near.word[1] : "", near.count > 0 ? "?" : "");
}

static bool take_word(struct str text, struct reading *r, struct err *err)
{
    if (r->word != NULL) {
        return err_set(err, ERR_USAGE, 0, "expects a semicolon between %s and \"%.*s\"",
                       r->word->name, shown(text), text.ptr);
    }
    for (unsigned i = 0; i < WORD_COUNT; i++) {
        if (str_eq(text, str_of(words[i].name)) || str_eq(text, str_of(words[i].short_name)) ||
            (text.len > 0 && str_eq(text, str_of(words[i].other)))) {
            r->word = &words[i];
        }
    }
    if (r->word == NULL) {
        return unknown_word(text, err);
    }
    return r->word->kind != KIND_REFUSED ||
           err_set(err, ERR_UNSUPPORTED, 0, "%.*s is not available: %s", shown(text), text.ptr,
                   r->word->why);
}

/* ---- values ---- */

static bool take_number(const char *what, struct str text, uint64_t most, uint64_t *out,
                        struct err *err)
{
    uint64_t value;
    if (!str_u64(text, &value) || value == 0 || value > most) {
        return err_set(err, ERR_USAGE, 0, "expects a %s of 1 to %llu, got \"%.*s\"", what,
                       (unsigned long long)most, shown(text), text.ptr);
    }
    *out = value;
    return true;
}

static bool is_label_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

static bool take_label(struct str text, struct str *out, struct err *err)
{
    bool good = text.len > 0 && text.len < EVENT_LABEL_MAX;
    for (size_t i = 0; good && i < text.len; i++) {
        good = is_label_byte(text.ptr[i]);
    }
    if (!good) {
        return err_set(err, ERR_USAGE, 0,
                       "expects a label of at most %d letters, digits, '-', '_' and '.', got "
                       "\"%.*s\"",
                       EVENT_LABEL_MAX - 1, shown(text), text.ptr);
    }
    *out = text;
    return true;
}

/* Digits with at most one point; no sign, no exponent. */
static bool take_scale(struct str text, double *out, struct err *err)
{
    struct str fraction = text, whole = str_cut(&fraction, '.');
    uint64_t before = 0, behind = 0;
    bool good = (whole.len > 0 || fraction.len > 0) && whole.len <= SCALE_DIGITS &&
                fraction.len <= SCALE_DIGITS && (whole.len == 0 || str_u64(whole, &before)) &&
                (fraction.len == 0 || str_u64(fraction, &behind));
    double value = (double)behind;
    for (size_t i = 0; good && i < fraction.len; i++) {
        value /= 10;
    }
    value += (double)before;
    if (!good || value <= 0) {
        return err_set(err, ERR_USAGE, 0, "expects a value_scale above 0 such as 0.5, got \"%.*s\"",
                       shown(text), text.ptr);
    }
    *out = value;
    return true;
}

static bool take_mode(struct str text, struct err *err)
{
    if (str_eq(text, STR("s"))) {
        return true;
    }
    return err_set(err, ERR_UNSUPPORTED, 0,
                   "mode=%.*s is not available: only allocations can be live, and events are "
                   "summed",
                   shown(text), text.ptr);
}

static bool unknown_key(struct str name, struct err *err)
{
    struct nearest near = nearest_to(name.ptr, name.len);
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        if (keys[i].why == NULL) {
            nearest_offer(&near, keys[i].name);
        }
    }
    return err_set(err, ERR_USAGE, 0,
                   "knows event, period, frequency, label, value_scale and mode, got "
                   "\"%.*s\"%s%s%s",
                   shown(name), name.ptr, near.count > 0 ? "; did you mean " : "",
                   near.count > 0 ? near.word[0] : "", near.count > 0 ? "?" : "");
}

static unsigned find_key(struct str name)
{
    unsigned key = 0;
    while (key < KEY_COUNT && !str_eq(name, str_of(keys[key].name)) &&
           !str_eq(name, str_of(keys[key].short_name))) {
        key++;
    }
    return key;
}

static bool take_pair(struct str name, struct str value, struct reading *r, struct err *err)
{
    unsigned key = find_key(name);
    switch (key) {
    case KEY_EVENT:
        return take_word(value, r, err);
    case KEY_PERIOD:
        return take_number("period", value, PERIOD_MOST, &r->period, err);
    case KEY_FREQUENCY:
        return take_number("frequency", value, FREQUENCY_MOST_HZ, &r->frequency_hz, err);
    case KEY_LABEL:
        return take_label(value, &r->label, err);
    case KEY_SCALE:
        return take_scale(value, &r->scale, err);
    case KEY_MODE:
        return take_mode(value, err);
    case KEY_COUNT:
        return unknown_key(name, err);
    default:
        return err_set(err, ERR_UNSUPPORTED, 0, "%s= is not available: %s", keys[key].name,
                       keys[key].why);
    }
}

/* ---- one event ---- */

static bool is_gap(char c)
{
    return c == ' ' || c == ',' || c == '\t' || c == '\n';
}

/* The next word or pair; empty at the end. */
static struct str next_token(struct str *rest)
{
    size_t from = 0, to;
    while (from < rest->len && is_gap(rest->ptr[from])) {
        from++;
    }
    for (to = from; to < rest->len && !is_gap(rest->ptr[to]);) {
        to++;
    }
    struct str token = str_sub(*rest, from, to - from);
    *rest = str_sub(*rest, to, rest->len - to);
    return token;
}

static bool read_one(struct str text, struct reading *r, struct err *err)
{
    for (struct str token; (token = next_token(&text)).len > 0;) {
        size_t equals = str_find(token, '=');
        struct str value = str_sub(token, equals + 1, token.len);
        bool good = equals == token.len ? take_word(token, r, err)
                                        : take_pair(str_sub(token, 0, equals), value, r, err);
        if (!good) {
            return false;
        }
    }
    if (r->word == NULL) {
        return err_set(err, ERR_USAGE, 0, "expects an event, such as page-faults or cycles");
    }
    return r->period == 0 || r->frequency_hz == 0 ||
           err_set(err, ERR_USAGE, 0, "expects a period or a frequency for %s, not both",
                   r->word->name);
}

/* The kernel finds the period that makes a frequency badly for software events: each switch of tasks
 * begins anew, and what a sample then says it stands for belongs to the next one
 * (perf_swevent_set_period). Sums were five times too large, and shares wrong. */
static bool check_frequency(const struct reading *r, struct err *err)
{
    return r->frequency_hz == 0 || r->word->type == PERF_TYPE_HARDWARE ||
           r->word->kind == KIND_CLOCK ||
           err_set(err, ERR_UNSUPPORTED, 0,
                   "frequency= is not available for %s: the kernel's periods would be wrong, use "
                   "period=",
                   r->word->name);
}

/* The clock counts nanoseconds. */
static bool set_clock(const struct reading *r, struct event_list *list, struct err *err)
{
    uint64_t hz = r->period > 0 ? NS_PER_S / r->period : r->frequency_hz;
    if (r->period > 0 && (hz == 0 || hz > FREQUENCY_MOST_HZ)) {
        return err_set(err, ERR_USAGE, 0, "expects a period of 100000 to 1000000000 ns for %s",
                       r->word->name);
    }
    list->cpu_hz = hz > 0 ? (uint32_t)hz : list->cpu_hz;
    return true;
}

/* A profile's sample types are told apart by name. */
static bool is_taken(const struct event_list *list, struct str label)
{
    static const char *const own[] = {"samples", "cpu", "off_cpu", "wall"};
    bool taken = false;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        taken = taken || str_eq(label, str_of(own[i]));
    }
    for (size_t i = 0; i < list->count; i++) {
        taken = taken || str_eq(label, str_of(list->at[i].label));
    }
    return taken;
}

static bool add(const struct reading *r, struct event_list *list, struct err *err)
{
    struct str label = r->label.len > 0 ? r->label : str_of(r->word->name);
    for (size_t i = 0; i < list->count; i++) {
        if (list->at[i].name == r->word->name) {
            return err_set(err, ERR_USAGE, 0, "names %s twice", r->word->name);
        }
    }
    if (is_taken(list, label)) {
        return err_set(err, ERR_USAGE, 0, "expects another label, %.*s is taken", shown(label),
                       label.ptr);
    }
    if (list->count == EVENTS_MAX) {
        return err_set(err, ERR_LIMIT, 0, "takes at most %d events besides CPU time", EVENTS_MAX);
    }
    struct event *event = &list->at[list->count++];
    *event = (struct event){.name = r->word->name,
                            .type = r->word->type,
                            .config = r->word->config,
                            .period = r->period > 0         ? r->period
                                      : r->frequency_hz > 0 ? 0
                                                            : r->word->period,
                            .frequency_hz = (uint32_t)r->frequency_hz,
                            .scale = r->scale,
                            .in_kernel = r->word->kind == KIND_KERNEL};
    memcpy(event->label, label.ptr, label.len);
    return true;
}

bool event_parse(struct str text, struct event_list *list, struct err *err)
{
    struct event_list made = *list;
    bool any = false;
    while (text.len > 0) {
        struct str one = str_trim(str_cut(&text, ';'));
        struct reading r = {.scale = 1};
        if (one.len == 0) {
            continue; /* "a; b;" */
        }
        any = true;
        if (!read_one(one, &r, err) || !check_frequency(&r, err)) {
            return false;
        }
        bool good = r.word->kind == KIND_CLOCK     ? set_clock(&r, &made, err)
                    : r.word->kind == KIND_NOTHING ? true
                                                   : add(&r, &made, err);
        if (!good) {
            return false;
        }
    }
    if (!any) {
        return err_set(err, ERR_USAGE, 0, "expects an event, such as page-faults or cycles");
    }
    *list = made;
    return true;
}
