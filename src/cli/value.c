/* Values of options: parses each kind of text (numbers, times, sizes, choices, lists, secrets),
 * checks its range and stores it in the request; and writes ranges and choices for help and
 * errors. */
#include "cli/value.h"

#include "base/time.h"
#include "base/nearest.h"

#include <stdio.h>
#include <strings.h>

enum { QUOTE_MAX = 60, TEXT_MAX = 300 };

static void *slot(const struct option *row, struct request *out)
{
    return (char *)out + row->at;
}

void value_quote(const char *text, struct buf *out)
{
    buf_byte(out, '"');
    for (size_t i = 0; text[i] && i < QUOTE_MAX; i++)
        buf_byte(out, (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i]);
    buf_text(out, strlen(text) > QUOTE_MAX ? "...\"" : "\"");
}

/* The largest unit that divides the amount. */
static void add_amount(uint64_t amount, const uint64_t *units, const char *const *names, size_t n,
                       struct buf *out)
{
    size_t i = 0;
    while (i + 1 < n && (amount == 0 || amount % units[i] != 0))
        i++;
    buf_printf(out, "%llu %s", (unsigned long long)(amount / units[i]), names[i]);
}

static void add_bound(const struct option *row, uint64_t bound, struct buf *out)
{
    static const uint64_t times[] = {3600 * NS_PER_S, NS_PER_S, NS_PER_MS};
    static const char *const time_names[] = {"h", "s", "ms"};
    static const uint64_t sizes[] = {1 << 30, 1 << 20, 1 << 10, 1};
    static const char *const size_names[] = {"GB", "MB", "KB", "bytes"};
    if (row->kind == KIND_DURATION && bound == 0)
        buf_text(out, "0 s");
    else if (row->kind == KIND_DURATION)
        add_amount(bound, times, time_names, 3, out);
    else if (row->kind == KIND_SIZE)
        add_amount(bound, sizes, size_names, 4, out);
    else if (row->kind == KIND_PERCENT)
        buf_printf(out, "%g", (double)bound / 1000);
    else
        buf_printf(out, "%llu", (unsigned long long)bound);
}

void value_range(const struct option *row, struct buf *out)
{
    add_bound(row, row->min, out);
    buf_text(out, " to ");
    add_bound(row, row->max, out);
}

void value_choices(const struct option *row, const char *last_join, struct buf *out)
{
    const char *pending = NULL;
    bool first = true;
    struct choice c;
    for (size_t i = 0; option_choice(row, i, &c); i++) {
        if (c.hidden)
            continue;
        if (pending)
            buf_printf(out, "%s%s", first ? "" : ", ", pending);
        first = first && !pending;
        pending = c.name;
    }
    buf_printf(out, "%s%s", first ? "" : last_join, pending ? pending : "");
}

static void wants_number(const struct option *row, struct buf *out)
{
    value_range(row, out);
    if (row->kind == KIND_PERCENT)
        buf_text(out, " percent");
    else if (row->unit)
        buf_printf(out, " %s", row->unit);
}

static bool wants(const struct option *row, const char *text, const char *more, struct err *err)
{
    struct buf b;
    buf_init(&b, TEXT_MAX);
    if (row->kind == KIND_PIDS)
        buf_text(&b, "process ids, such as 812,813");
    else if (row->kind == KIND_LIST)
        buf_text(&b, row->unit ? row->unit : row->value);
    else if (option_has_choices(row))
        value_choices(row, row->kind == KIND_FORMATS ? ", " : " or ", &b);
    else if (row->max)
        wants_number(row, &b);
    else if (row->kind == KIND_FLAG)
        buf_text(&b, "1 or 0");
    else
        buf_text(&b, row->value);
    if (row->kind != KIND_SECRET && row->kind != KIND_SECRETS) {
        buf_text(&b, ", got ");
        value_quote(text, &b);
    }
    err_set(err, ERR_USAGE, 0, "expects %s%s", buf_cstr(&b), more);
    buf_release(&b);
    return false;
}

static bool in_range(const struct option *row, uint64_t value)
{
    return row->max == 0 || (value >= row->min && value <= row->max);
}

/* Digits with at most one point, as thousandths, and what stands behind them. */
static bool decimal(const char *text, uint64_t *thousandths, struct str *rest)
{
    struct str t = str_trim(str_of(text));
    uint64_t value = 0;
    size_t i = 0, digits = 0, fraction = 0;
    bool point = false;
    for (; i < t.len; i++) {
        if (t.ptr[i] == '.' && !point) {
            point = true;
        } else if (t.ptr[i] >= '0' && t.ptr[i] <= '9' && value < UINT64_MAX / 10000) {
            digits++;
            fraction += point;
            if (fraction <= 3)
                value = value * 10 + (uint64_t)(t.ptr[i] - '0');
        } else {
            break;
        }
    }
    for (; fraction < 3; fraction++)
        value *= 10;
    *thousandths = value;
    *rest = str_trim(str_sub(t, i, t.len - i));
    return digits > 0;
}

struct unit_name {
    const char *name;
    uint64_t amount;
};

/* A decimal number with one of the units; plain numbers count `plain`. */
static bool amount(const char *text, const struct unit_name *units, uint64_t plain, uint64_t *out)
{
    uint64_t thousandths, unit = 0;
    struct str rest;
    if (!decimal(text, &thousandths, &rest))
        return false;
    if (rest.len == 0)
        unit = plain;
    for (; rest.len > 0 && unit == 0 && units->name; units++)
        if (rest.len == strlen(units->name) && strncasecmp(rest.ptr, units->name, rest.len) == 0)
            unit = units->amount;
    uint64_t scaled; /* one that overflows is beyond every range */
    if (unit == 0 || __builtin_mul_overflow(thousandths, unit, &scaled))
        return false;
    *out = scaled / 1000;
    return true;
}

static bool store_duration(const struct option *row, const char *text, uint64_t *out,
                           struct err *err)
{
    static const struct unit_name units[] = {
        {"ms", NS_PER_MS},         {"s", NS_PER_S},          {"sec", NS_PER_S},
        {"m", 60 * NS_PER_S},      {"min", 60 * NS_PER_S},   {"h", 3600 * NS_PER_S},
        {"d", 86400 * NS_PER_S},   {0},
    };
    uint64_t value;
    if (!amount(text, units, NS_PER_S, &value) || !in_range(row, value))
        return wants(row, text, "", err);
    *out = value;
    return true;
}

static bool store_size(const struct option *row, const char *text, uint64_t *out, struct err *err)
{
    static const struct unit_name units[] = {
        {"B", 1},          {"K", 1 << 10},  {"KB", 1 << 10},  {"KiB", 1 << 10},
        {"M", 1 << 20},    {"MB", 1 << 20}, {"MiB", 1 << 20}, {"G", 1 << 30},
        {"GB", 1 << 30},   {"GiB", 1 << 30}, {0},
    };
    uint64_t value;
    if (!amount(text, units, row->scale ? row->scale : 1, &value) || !in_range(row, value))
        return wants(row, text, "", err);
    *out = value;
    return true;
}

static bool store_percent(const struct option *row, const char *text, double *out, struct err *err)
{
    uint64_t thousandths;
    struct str rest;
    if (!decimal(text, &thousandths, &rest) || (rest.len && !str_eq(rest, STR("%"))) ||
        !in_range(row, thousandths))
        return wants(row, text, "", err);
    *out = (double)thousandths / 1000;
    return true;
}

static bool store_number(const struct option *row, const char *text, unsigned *out,
                         struct err *err)
{
    uint64_t value;
    if (!str_u64(str_trim(str_of(text)), &value) || value > UINT32_MAX || !in_range(row, value))
        return wants(row, text, "", err);
    *out = (unsigned)value;
    return true;
}

static bool find_choice(const struct option *row, struct str name, struct choice *out)
{
    size_t i = 0;
    while (option_choice(row, i, out) && !str_eq(name, str_of(out->name)))
        i++;
    return out->name != NULL;
}

static bool unknown_choice(const struct option *row, struct str name, const char *text,
                           struct err *err)
{
    struct nearest near = nearest_to(name.ptr, name.len);
    struct choice c;
    for (size_t i = 0; option_choice(row, i, &c); i++)
        if (!c.hidden)
            nearest_offer(&near, c.name);
    char hint[2 * NEAREST_WORD_MAX + 40] = "";
    if (near.count)
        snprintf(hint, sizeof hint, "; did you mean %s%s%s?", near.word[0],
                 near.count > 1 ? " or " : "", near.count > 1 ? near.word[1] : "");
    (void)wants(row, text, hint, err);
    if (row->at == offsetof(struct request, ignored_choice)) /* an ancestor had it: its command lines go on */
        err->kind = ERR_UNSUPPORTED;
    return false;
}

static bool store_choice(const struct option *row, const char *text, int *out, struct err *err)
{
    struct choice choice;
    if (!find_choice(row, str_of(text), &choice))
        return unknown_choice(row, str_of(text), text, err);
    *out = choice.value;
    return true;
}

static bool store_formats(const struct option *row, const char *text, unsigned *out,
                          struct err *err)
{
    struct str rest = str_of(text);
    unsigned bits = 0;
    while (rest.len > 0) {
        struct str name = str_trim(str_cut(&rest, ','));
        struct choice choice;
        if (!find_choice(row, name, &choice))
            return unknown_choice(row, name, text, err);
        bits |= (unsigned)choice.value;
    }
    if (bits == 0)
        return wants(row, text, "", err);
    *out = bits;
    return true;
}

static bool add_pid(struct settings *settings, int pid, struct err *err)
{
    for (size_t i = 0; i < settings->scope.pid_count; i++)
        if (settings->scope.pids[i] == pid)
            return true;
    if (settings->scope.pid_count == SETTINGS_PIDS_MAX)
        return err_set(err, ERR_LIMIT, 0, "accepts at most %d processes; -a profiles all",
                       SETTINGS_PIDS_MAX);
    settings->scope.pids[settings->scope.pid_count++] = pid;
    return true;
}

static bool store_pids(const struct option *row, const char *text, struct settings *settings,
                       struct err *err)
{
    struct str rest = str_of(text);
    size_t before = settings->scope.pid_count;
    do {
        uint64_t pid;
        bool ok = str_u64(str_trim(str_cut(&rest, ',')), &pid) && in_range(row, pid);
        if (!ok ? !wants(row, text, "", err) : !add_pid(settings, (int)pid, err)) {
            settings->scope.pid_count = before;
            return false;
        }
    } while (rest.len > 0);
    return true;
}

static bool add_pattern(const struct option *row, struct str text, struct pattern_list *list,
                        struct err *err)
{
    struct pattern pattern = {text, text.len > 0 && text.ptr[0] == '!'};
    if (pattern.excludes)
        pattern.text = str_trim(str_sub(text, 1, text.len));
    if (pattern.text.len < row->min)
        return false;
    if (list->count == SETTINGS_PATTERNS_MAX)
        return err_set(err, ERR_LIMIT, 0, "accepts at most %d patterns", SETTINGS_PATTERNS_MAX);
    list->at[list->count++] = pattern;
    return true;
}

static bool store_list(const struct option *row, const char *text, struct pattern_list *list,
                       struct err *err)
{
    struct str rest = str_of(text);
    size_t before = list->count;
    do {
        struct err why = {0};
        if (!add_pattern(row, str_trim(str_cut(&rest, ',')), list, &why)) {
            list->count = before;
            return why.kind == ERR_NONE ? wants(row, text, "", err)
                                        : err_set(err, why.kind, 0, "%s", why.text);
        }
    } while (rest.len > 0);
    return true;
}

static bool store_events(const char *text, struct event_list *out, struct err *err)
{
    return event_parse(str_of(text), out, err);
}

static bool store_text(const struct option *row, const char *text, const char **out,
                       struct err *err)
{
    if (text[0] == '\0')
        return wants(row, text, "", err);
    *out = text;
    return true;
}

static bool store_another(const struct option *row, const char *text, struct text_list *list,
                         struct err *err)
{
    if (text[0] == '\0')
        return wants(row, text, "", err);
    if (list->count == SETTINGS_HEADERS_MAX)
        return err_set(err, ERR_LIMIT, 0, "accepts at most %d values", SETTINGS_HEADERS_MAX);
    list->at[list->count++] = text;
    return true;
}

void value_default_choices(const struct option *row, struct buf *out)
{
    struct choice c;
    for (size_t i = 0, n = 0; option_choice(row, i, &c); i++)
        if (c.by_default)
            buf_printf(out, "%s%s", n++ ? "," : "", c.name);
}

void value_store_default_choices(const struct option *row, struct request *out)
{
    unsigned bits = 0;
    struct choice c;
    for (size_t i = 0; option_choice(row, i, &c); i++)
        bits |= c.by_default ? (unsigned)c.value : 0;
    if (bits != 0)
        *(unsigned *)slot(row, out) = bits;
}

bool value_flag(const char *text, bool *out)
{
    static const char *const words[] = {"0", "false", "no", "off", "n", "1", "true", "yes", "on",
                                        "y"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *out = i >= 5;
            return true;
        }
    }
    return false;
}

void value_store_flag(const struct option *row, bool value, struct request *out)
{
    *(bool *)slot(row, out) = value != row->inverse;
}

bool value_store(const struct option *row, const char *text, struct request *out, struct err *err)
{
    bool flag;
    switch (row->kind) {
    case KIND_FLAG:
        if (!value_flag(text, &flag))
            return wants(row, text, "", err);
        value_store_flag(row, flag, out);
        return true;
    case KIND_NUMBER:
        return store_number(row, text, slot(row, out), err);
    case KIND_PERCENT:
        return store_percent(row, text, slot(row, out), err);
    case KIND_DURATION:
        return store_duration(row, text, slot(row, out), err);
    case KIND_SIZE:
        return store_size(row, text, slot(row, out), err);
    case KIND_CHOICE:
        return store_choice(row, text, slot(row, out), err);
    case KIND_FORMATS:
        return store_formats(row, text, slot(row, out), err);
    case KIND_PIDS:
        return store_pids(row, text, &out->settings, err);
    case KIND_LIST:
        return store_list(row, text, slot(row, out), err);
    case KIND_EVENTS:
        return store_events(text, slot(row, out), err);
    case KIND_TEXT:
    case KIND_PATH:
    case KIND_DIR:
    case KIND_SECRET:
        return store_text(row, text, slot(row, out), err);
    case KIND_TEXTS:
    case KIND_SECRETS:
        return store_another(row, text, slot(row, out), err);
    case KIND_ACTION:
        break;
    }
    return true;
}
