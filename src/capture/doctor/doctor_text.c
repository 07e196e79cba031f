/* Shows the doctor's report: as text for a terminal of so many columns, with changes numbered and
 * each given once, or as one JSON object for programs. No fact is found and no verdict is made
 * here. */
#include "base/version.h"
#include "capture/doctor/doctor.h"
#include "base/json.h"

#include <stdio.h>

enum {
    COLUMN_STATE = 17, /* of a line: label, state, detail */
    COLUMN_DETAIL = 26,
    COLUMNS_WIDE = 72, /* with fewer a line is two */
    COLUMNS_LEAST = 30,
    INDENT_NARROW = 4,
    COLUMN_NAME = 9, /* of a process */
    COLUMN_CPU = 25,
    COLUMN_RUNTIME = 30,
    COLUMN_HOW = 45,
    ROWS_MAX = 20,
    CHANGES_MAX = 32,
};

/* ---- changes ---- */

/* Each remedy once, in the order in which they are met. */
struct changes {
    const char *text[CHANGES_MAX];
    uint64_t cpu_ns[CHANGES_MAX]; /* of processes that it opens */
    size_t count;
    uint64_t all_ns;
};

/* 1 …; 0: there is none. */
static size_t change_of(struct changes *c, const char *remedy)
{
    if (remedy == NULL || remedy[0] == '\0') {
        return 0;
    }
    for (size_t i = 0; i < c->count; i++) {
        if (strcmp(c->text[i], remedy) == 0) {
            return i + 1;
        }
    }
    if (c->count == CHANGES_MAX) {
        return 0;
    }
    c->text[c->count] = remedy;
    return ++c->count;
}

/* Remedies are borrowed: of the report's lines, and constant ones of rows. */
static void list_changes(const struct doctor_facts *f, const struct doctor_report *r,
                         struct changes *out)
{
    *out = (struct changes){0};
    for (size_t i = 0; i < r->line_count; i++) {
        (void)change_of(out, r->line[i].remedy);
    }
    vec_each(&f->processes, process)
    {
        struct doctor_row row;
        doctor_row(f, process, &row);
        size_t change = change_of(out, row.remedy);
        out->all_ns += process->cpu_ns;
        if (change > 0) {
            out->cpu_ns[change - 1] += process->cpu_ns;
        }
    }
}

static unsigned percent(uint64_t part, uint64_t all)
{
    return all == 0 ? 0 : (unsigned)((part * 100 + all / 2) / all);
}

/* Of one alone its share says nothing. */
static bool has_shares(const struct doctor_facts *f)
{
    return f->processes.len > 1;
}

/* ---- text ---- */

struct page {
    struct buf *out;
    size_t columns, column;
};

/* Names are others': no character of theirs moves the cursor, and none needs a charset. */
static void put(struct page *page, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        buf_byte(page->out, byte < ' ' || byte > '~' ? '?' : (char)byte);
    }
    page->column += text.len;
}

static void end_line(struct page *page)
{
    while (page->out->len > 0 && page->out->ptr[page->out->len - 1] == ' ') {
        page->out->len--;
    }
    buf_byte(page->out, '\n');
    page->column = 0;
}

static void go_to(struct page *page, size_t column)
{
    if (page->column >= column && page->column > 0) {
        put(page, STR(" "));
    }
    while (page->column < column) {
        put(page, STR(" "));
    }
}

/* Words, broken at the page's width; what follows begins at `indent`. */
static void put_words(struct page *page, const char *text, size_t indent)
{
    struct str rest = str_of(text);
    bool first = true;
    while (rest.len > 0) {
        struct str word = str_cut(&rest, ' ');
        bool fits = page->column + word.len + !first <= page->columns;
        if (!fits && page->column > indent) {
            end_line(page);
            go_to(page, indent);
        } else if (!first && word.len > 0) {
            put(page, STR(" "));
        }
        put(page, word);
        first = false;
    }
}

static void put_change(struct page *page, size_t change, size_t indent)
{
    char text[40];
    if (change > 0) {
        (void)snprintf(text, sizeof text, "-> change %zu", change);
        bool fits = page->column + 2 + strlen(text) <= page->columns;
        if (!fits) {
            end_line(page);
            go_to(page, indent);
        }
        put(page, fits ? STR("  ") : STR(""));
        put(page, str_of(text));
    }
    end_line(page);
}

static const char *const states[] = {
    [DOCTOR_OK] = "ok",
    [DOCTOR_PARTIAL] = "partial",
    [DOCTOR_BLOCKED] = "blocked",
    [DOCTOR_ABSENT] = "absent",
    [DOCTOR_UNTRIED] = "untried",
};

static void put_line(struct page *page, const struct doctor_line *line, struct changes *changes)
{
    bool wide = page->columns >= COLUMNS_WIDE;
    size_t indent = wide ? COLUMN_DETAIL : INDENT_NARROW;
    put(page, STR("  "));
    put(page, str_of(line->label));
    go_to(page, COLUMN_STATE);
    put(page, line->state == DOCTOR_UNTRIED ? STR("-") : str_of(states[line->state]));
    if (!wide) {
        end_line(page);
    }
    go_to(page, indent);
    put_words(page, line->detail, indent);
    put_change(page, change_of(changes, line->remedy), indent);
}

static void put_cell(struct page *page, size_t column, const char *text, size_t most)
{
    go_to(page, column);
    put(page, str_sub(str_of(text), 0, most));
}

/* The reason in a word where a change is named, which says the rest; else in full. */
static void why_in_words(const struct doctor_process *p, const struct doctor_row *row, char *out,
                         size_t out_bytes)
{
    if (row->cause[0] == '\0') {
        (void)snprintf(out, out_bytes, "%s", row->how);
    } else if (row->remedy[0] == '\0') {
        (void)snprintf(out, out_bytes, "%s: %s", row->how, row->cause);
    } else if (strcmp(row->gate, "uid") == 0) {
        (void)snprintf(out, out_bytes, "%s (uid %u)", row->how, p->uid);
    } else {
        (void)snprintf(out, out_bytes, "%s (%s)", row->how, row->gate);
    }
}

static void put_columns(struct page *page, const struct doctor_process *p, const char *cpu)
{
    char pid[12];
    (void)snprintf(pid, sizeof pid, "%u", p->pid);
    put_cell(page, 2, pid, sizeof pid);
    put_cell(page, COLUMN_NAME, p->name, COMM_MAX);
    put_cell(page, COLUMN_CPU, cpu, strlen(cpu));
    put_cell(page, COLUMN_RUNTIME, p->runtime[0] != '\0' ? p->runtime : "-",
             COLUMN_HOW - COLUMN_RUNTIME - 1);
    go_to(page, COLUMN_HOW);
}

static void put_narrow(struct page *page, const struct doctor_process *p, const char *cpu)
{
    char text[120];
    (void)snprintf(text, sizeof text, "%u %s %s %s", p->pid, p->name, cpu, p->runtime);
    go_to(page, 2);
    put_words(page, text, INDENT_NARROW);
    end_line(page);
    go_to(page, INDENT_NARROW);
}

static void put_process(struct page *page, const struct doctor_facts *f,
                        const struct doctor_process *p, struct changes *changes)
{
    struct doctor_row row;
    char how[DOCTOR_TEXT_MAX + ERR_TEXT_MAX];
    char cpu[12] = "-";
    bool wide = page->columns >= COLUMNS_WIDE;
    size_t indent = wide ? COLUMN_HOW : INDENT_NARROW;
    doctor_row(f, p, &row);
    why_in_words(p, &row, how, sizeof how);
    if (has_shares(f)) {
        (void)snprintf(cpu, sizeof cpu, "%u %%", percent(p->cpu_ns, changes->all_ns));
    }
    if (wide) {
        put_columns(page, p, cpu);
    } else {
        put_narrow(page, p, cpu);
    }
    put_words(page, how, indent);
    put_change(page, change_of(changes, row.remedy), indent);
}

static void put_rest(struct page *page, const struct doctor_facts *f, size_t from)
{
    size_t sampled = 0, more = f->processes.len - from;
    for (size_t i = from; i < f->processes.len; i++) {
        struct doctor_row row;
        doctor_row(f, &f->processes.at[i], &row);
        sampled += strcmp(row.capture_mode, "proc") != 0;
    }
    char text[120];
    (void)snprintf(text, sizeof text, "and %zu more: %zu with stacks, %zu with CPU time only", more,
                   sampled, more - sampled);
    go_to(page, 2);
    put_words(page, text, 2);
    end_line(page);
}

static void put_processes(struct page *page, const struct doctor_facts *f, struct changes *changes)
{
    size_t count = f->processes.len;
    if (count > 0 && page->columns >= COLUMNS_WIDE) {
        put_cell(page, 2, "PID", 3);
        put_cell(page, COLUMN_NAME, "COMMAND", 7);
        put_cell(page, COLUMN_CPU, "CPU", 3);
        put_cell(page, COLUMN_RUNTIME, "RUNTIME", 7);
        put_cell(page, COLUMN_HOW, "HOW", 3);
        end_line(page);
    }
    for (size_t i = 0; i < count && i < ROWS_MAX; i++) {
        put_process(page, f, &f->processes.at[i], changes);
    }
    if (count > ROWS_MAX) {
        put_rest(page, f, ROWS_MAX);
    }
    if (f->unchecked > 0) {
        char text[60];
        (void)snprintf(text, sizeof text, "%zu more were not checked", f->unchecked);
        go_to(page, 2);
        put_words(page, text, 2);
        end_line(page);
    }
}

/* What is to be pasted on ECS. */
static const char task_definition[] =
    "\"linuxParameters\": {\"capabilities\": {\"add\": [\"SYS_PTRACE\"]}}";

static void put_changes(struct page *page, const struct doctor_facts *f,
                        const struct changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        char text[DOCTOR_TEXT_MAX + 60], of[40] = "";
        unsigned share = percent(changes->cpu_ns[i], changes->all_ns);
        if (share > 0 && has_shares(f)) {
            (void)snprintf(of, sizeof of, " (for %u %% of the CPU time now)", share);
        }
        (void)snprintf(text, sizeof text, "Change %zu%s: %s", i + 1, of, changes->text[i]);
        put_words(page, text, 2);
        end_line(page);
        if (f->rights.fixed_filter && str_ends(str_of(changes->text[i]), STR("add SYS_PTRACE"))) {
            go_to(page, 2);
            put_words(page, task_definition, 2);
            end_line(page);
        }
    }
}

void doctor_text(const struct doctor_facts *facts, const struct doctor_report *report,
                 size_t columns, struct buf *out)
{
    struct changes changes;
    struct page page = {out, columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns, 0};
    list_changes(facts, report, &changes);
    put(&page, STR("pillion doctor: "));
    put_words(&page, report->headline, 2);
    end_line(&page);
    for (size_t i = 0; i < report->line_count; i++) {
        if (report->line[i].state != DOCTOR_UNTRIED) {
            put_line(&page, &report->line[i], &changes);
        }
    }
    put_processes(&page, facts, &changes);
    put_changes(&page, facts, &changes);
    put_words(&page, report->verdict, 2);
    end_line(&page);
}

/* ---- JSON ---- */

/* `text` empty: null. */
static void put_member(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, ", \"%s\": ", key);
    if (text[0] == '\0') {
        buf_text(out, "null");
    } else {
        json_text(out, str_of(text));
    }
}

static void put_mechanism(struct buf *out, const struct doctor_line *line)
{
    bool works = line->state == DOCTOR_OK || line->state == DOCTOR_PARTIAL;
    buf_printf(out, "  {\"name\": \"%s\", \"works\": %s, \"state\": \"%s\"", line->name,
               works ? "true" : "false", states[line->state]);
    put_member(out, "errno", line->number != 0 ? err_name(line->number) : "");
    put_member(out, "gate", line->gate);
    put_member(out, "remedy", line->remedy);
    put_member(out, "detail", line->detail);
    buf_byte(out, '}');
}

static void put_process_member(struct buf *out, const struct doctor_facts *f,
                               const struct doctor_process *p, uint64_t all_ns)
{
    struct doctor_row row;
    doctor_row(f, p, &row);
    buf_printf(out, "  {\"pid\": %u, \"uid\": %u", p->pid, p->uid);
    put_member(out, "comm", p->name);
    put_member(out, "runtime", p->runtime);
    uint64_t thousandths = all_ns == 0 ? 0 : p->cpu_ns * 1000 / all_ns;
    buf_printf(out, ", \"cpu_share\": %u.%03u", (unsigned)(thousandths / 1000),
               (unsigned)(thousandths % 1000));
    buf_printf(out, ", \"works\": %s", strcmp(row.capture_mode, "proc") != 0 ? "true" : "false");
    put_member(out, "capture_mode", row.capture_mode);
    put_member(out, "rung", row.capture_mode); /* what the key was called: none is ever taken away */
    put_member(out, "how", row.how);
    put_member(out, "errno", row.number > 0 ? err_name(row.number) : "");
    put_member(out, "gate", row.gate);
    put_member(out, "remedy", row.remedy);
    put_member(out, "detail", row.cause);
    buf_byte(out, '}');
}

/* What was typed may be no UTF-8; json_text sees to it. */
static void put_setting(struct buf *out, const struct doctor_setting *setting)
{
    buf_text(out, "  {\"name\": ");
    json_text(out, setting->name);
    buf_text(out, ", \"value\": ");
    if (setting->value.len == 0) {
        buf_text(out, "null");
    } else {
        json_text(out, setting->value);
    }
    buf_text(out, ", \"source\": ");
    json_text(out, setting->source);
    buf_byte(out, '}');
}

void doctor_json(const struct doctor_facts *facts, const struct doctor_report *report,
                 const struct doctor_setting *settings, size_t setting_count, struct buf *out)
{
    struct changes changes;
    list_changes(facts, report, &changes);
    buf_text(out, "{\"version\": \"" PILLION_VERSION "\"");
    put_member(out, "verdict", report->verdict);
    put_member(out, "summary", report->headline);
    buf_printf(out, ", \"can_profile\": %s,\n \"mechanisms\": [", report->can_profile ? "true" : "false");
    for (size_t i = 0; i < report->line_count; i++) {
        buf_text(out, i == 0 ? "\n" : ",\n");
        put_mechanism(out, &report->line[i]);
    }
    buf_text(out, "],\n \"processes\": [");
    for (size_t i = 0; i < facts->processes.len; i++) {
        buf_text(out, i == 0 ? "\n" : ",\n");
        put_process_member(out, facts, &facts->processes.at[i], changes.all_ns);
    }
    buf_text(out, "],\n \"settings\": [");
    for (size_t i = 0; i < setting_count; i++) {
        buf_text(out, i == 0 ? "\n" : ",\n");
        put_setting(out, &settings[i]);
    }
    buf_printf(out, "],\n \"not_looked_at\": %zu}\n", facts->unchecked);
}
