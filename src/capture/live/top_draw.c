/*
 * The screen of `pillion top`, from top to bottom: title, facts, cost, head of the table, its rows, two lines about the
 * selected one, keys. A line is made of cells that are cut and filled up to their columns, so that names of any bytes
 * move nothing.
 */
#include "capture/live/top_draw.h"
#include "base/time.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    NUMBER_COLUMNS = 6,   /* of one share, the blank behind it not counted */
    LANGUAGE_COLUMNS = 10,
    WIDE = 60,            /* columns from which shares since the start are shown, … */
    WIDER = 70,           /* … and languages */
    FACTS_HEIGHT = 9,     /* lines from which facts are shown, … */
    DETAIL_HEIGHT = 12,   /* … and what is known of the selected row */
    LINES_SHOWN = 5,
    MUCH_PERCENT = 5,     /* not seen: from there on it is said why */
};

static const char bold[] = "\x1b[1m", reverse[] = "\x1b[7m", plain[] = "\x1b[0m";

static double seconds(uint64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

/* ---- lines ---- */

struct page {
    struct buf *out;
    struct top_size size;
    unsigned lines;
};

/* A line of the page, cut; the last has no line end. */
static void add_line(struct page *page, struct str text, const char *style)
{
    if (page->lines >= page->size.height) {
        return;
    }
    buf_text(page->out, page->lines > 0 ? "\n" : "");
    page->lines++;
    buf_text(page->out, page->size.color ? style : "");
    size_t used = utf8_add_shown(page->out, text, page->size.width);
    if (page->size.color && style[0] != '\0') {
        buf_printf(page->out, "%*s%s", style == reverse ? (int)(page->size.width - used) : 0, "", plain);
    }
}

__attribute__((format(printf, 3, 4))) static void add_printed(struct page *page, const char *style, const char *format,
                                                              ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    add_line(page, str_of(text), style);
}

/* ---- facts ---- */

static void facts_text(const struct top_model *m, char *out, size_t out_bytes, bool since)
{
    const struct top_facts *f = since ? &m->since : &m->recent;
    snprintf(out, out_bytes, "%.2f cores in %zu process%s, %.0f samples/s, not seen %.1f %%",
             f->length_ns == 0 ? 0.0 : (double)f->cpu_ns / (double)f->length_ns, m->processes,
             m->processes == 1 ? "" : "es", f->length_ns == 0 ? 0.0 : (double)f->samples / seconds(f->length_ns),
             top_percent(f->not_seen_ns, f->cpu_ns));
}

static void cost_text(const struct top_model *m, const struct top_title *title, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "own cost %.1f %% of one core, %.0f MB; %s at %.0f Hz",
             top_percent(m->since.own_cpu_ns, m->since.length_ns), (double)m->own_rss_bytes / 1048576.0, title->mode,
             m->hz);
}

static void add_facts(struct page *page, const struct top_model *m, const struct top_title *title, bool paused)
{
    char text[400];
    add_printed(page, bold, "%spillion top: %s  %.0f s  %.1f s CPU", paused ? "PAUSED  " : "", title->what,
                seconds(title->elapsed_ns), seconds(m->since.cpu_ns));
    if (page->size.height < FACTS_HEIGHT) {
        return;
    }
    facts_text(m, text, sizeof text, false);
    add_line(page, str_of(text), "");
    cost_text(m, title, text, sizeof text);
    add_line(page, str_of(text), "");
}

const char *top_reason(const struct top_facts *f, const struct top_title *title)
{
    return top_percent(f->not_seen_ns, f->cpu_ns) > MUCH_PERCENT ? title->reason : "";
}

/* ---- the table ---- */

static const char *const view_titles[TOP_TABLES] = {"function", "process", "thread", "language", ""};

static void add_share(struct buf *line, uint64_t part_ns, uint64_t whole_ns)
{
    buf_printf(line, "%*.1f ", NUMBER_COLUMNS, top_percent(part_ns, whole_ns));
}

/* Where there is room for two columns: those that it is sorted by. */
static bool shows_since(const struct top_state *s)
{
    return s->sort == TOP_BY_OWN_SINCE || s->sort == TOP_BY_TOTAL_SINCE;
}

static void add_head(struct page *page, const struct top_model *m, const struct top_state *s, bool narrow)
{
    const struct top_row *only = m->only != 0 && s->view == TOP_FUNCTIONS ? &m->rows.at[m->only] : NULL;
    static const char *const heads[] = {"own%", "total%", "own%", "total%"};
    char text[400];
    size_t used = 0;
    unsigned first = narrow && shows_since(s) ? 2 : 0, end = narrow ? first + 2 : 4;
    for (unsigned i = first; i < end; i++) {
        char head[16];
        snprintf(head, sizeof head, "%s%s", (unsigned)s->sort == i ? ">" : "", heads[i]);
        used += (size_t)snprintf(text + used, sizeof text - used, "%*s ", NUMBER_COLUMNS, head);
    }
    used += (size_t)snprintf(text + used, sizeof text - used, " %s%s%s%s", s->sort == TOP_BY_NAME ? ">" : "",
                             view_titles[s->view], s->search_len > 0 ? " /" : "", s->search);
    if (only != NULL) {
        snprintf(text + used, sizeof text - used, " of %.*s only", (int)(only->name.len < 200 ? only->name.len : 200),
                 only->name.ptr);
    } else {
        const char *when = !narrow ? "   (last seconds, since start)" : first == 0 ? "" : ", since start";
        snprintf(text + used, sizeof text - used, "%s", when);
    }
    add_line(page, str_of(text), bold);
}

static void row_text(const struct top_model *m, const struct top_state *s, const struct top_row *row, unsigned width,
                     struct buf *line)
{
    uint64_t recent_ns = top_recent_ns(m, row), since_ns = top_since_ns(m, row);
    if (width >= WIDE || !shows_since(s)) {
        add_share(line, row->recent.own_ns, recent_ns);
        add_share(line, row->recent.total_ns, recent_ns);
    }
    if (width >= WIDE || shows_since(s)) {
        add_share(line, row->since.own_ns, since_ns);
        add_share(line, row->since.total_ns, since_ns);
    }
    buf_byte(line, ' ');
    if (width >= WIDER && row->table == TOP_FUNCTIONS) {
        buf_printf(line, "%-*s ", LANGUAGE_COLUMNS, languages[row->kind].name);
    }
    buf_str(line, row->name);
}

static void add_rows(struct page *page, const struct top_model *m, const struct top_state *s,
                     const struct top_list *list)
{
    struct buf line;
    buf_init(&line, 2 * TOP_NAME_MAX);
    for (size_t i = 0; i < s->page; i++) {
        size_t at = s->first + i;
        bool selected = at == s->place && s->selected != 0;
        buf_clear(&line);
        if (at < list->at.len) {
            row_text(m, s, &m->rows.at[list->at.at[at].row], page->size.width, &line);
        }
        if (selected && line.len > 0) {
            line.ptr[0] = '>';
        }
        add_line(page, buf_slice(&line), selected ? reverse : "");
    }
    buf_release(&line);
}

/* ---- the selected row ---- */

/* "a.py:12" where a function's file is known; its hottest lines. */
static void add_detail(struct page *page, const struct top_model *m, const struct top_row *row, uint32_t id)
{
    struct top_list lines = {0};
    struct buf text;
    buf_init(&text, 4 * TOP_NAME_MAX);
    buf_printf(&text, "%.*s", (int)row->name.len, row->name.ptr);
    add_line(page, buf_slice(&text), bold);
    buf_clear(&text);
    if (row->file.len > 0) {
        buf_str(&text, row->file);
        if (row->line != 0) {
            buf_printf(&text, ":%u", row->line);
        }
    }
    top_list_rows(m, TOP_LINES, id, TOP_BY_OWN_SINCE, STR(""), &lines);
    for (size_t i = 0; i < lines.at.len && i < LINES_SHOWN; i++) {
        const struct top_row *l = &m->rows.at[lines.at.at[i].row];
        buf_printf(&text, "%s%u: %.1f%%", i == 0 ? "  own by line " : ", ", l->line,
                   top_percent(l->since.own_ns, top_since_ns(m, row)));
    }
    add_line(page, buf_slice(&text), "");
    buf_release(&text);
    vec_release(&lines.at);
}

/* ---- help, the last line ---- */

static const char *const help[] = {
    "",
    "  1 2 3 4    functions, processes, threads, languages (Tab: next)",
    "  o t        sort by own, total share of the last seconds",
    "  O T n      sort by own, total share since the start; by name",
    "  Enter      functions of the selected process, thread or language only",
    "  / Esc      search; all again",
    "  arrows     select a row, also j k, page up and down, g G",
    "  space      pause and go on",
    "  q          end; the profile can be written as files",
    "  Ctrl-C     end at once; Ctrl-L draw anew",
    "",
    "  own: it was running itself. total: it or what it called.",
    "  Shares are of all CPU time that was used; own shares sum up to",
    "  100 %, [lost] and its like included.",
};

static void add_help(struct page *page)
{
    for (size_t i = 0; i < sizeof help / sizeof help[0] && page->lines + 1 < page->size.height; i++) {
        add_line(page, str_of(help[i]), "");
    }
    while (page->lines + 1 < page->size.height) {
        add_line(page, STR(""), "");
    }
    add_line(page, STR(" any key goes back"), reverse);
}

static void add_last(struct page *page, const struct top_model *m, const struct top_state *s,
                     const struct top_title *title)
{
    const char *reason = top_reason(&m->recent, title);
    if (s->asking == TOP_ASKS_FILES) {
        add_line(page, STR("write the flame graph? [y/N]"), reverse);
    } else if (s->asking == TOP_ASKS_SEARCH) {
        add_printed(page, reverse, "search: %s_", s->search);
    } else if (title->message[0] != '\0') {
        add_line(page, str_of(title->message), reverse);
    } else if (reason[0] != '\0') {
        add_printed(page, reverse, " ? keys  not seen: %s", reason);
    } else {
        add_printed(page, reverse, " q end  ? keys  1-4 view  o t sort  / search  space pause%s%s",
                    title->hint[0] != '\0' ? "  " : "", title->hint);
    }
}

/* ---- the screen ---- */

/* The selected row keeps its place under the eye while others pass it. */
static void settle(struct top_state *s, const struct top_list *list)
{
    bool found = false;
    for (size_t i = 0; i < list->at.len && s->selected != 0 && !found; i++) {
        found = list->at.at[i].row == s->selected;
        s->place = found ? i : s->place;
    }
    s->place = found ? s->place : 0;
    if (s->move != 0 && list->at.len > 0) {
        long place = (long)s->place + (s->selected != 0 || s->move < 0 ? s->move : s->move - 1);
        place = place < 0 ? 0 : place;
        s->place = (size_t)place < list->at.len ? (size_t)place : list->at.len - 1;
        s->selected = list->at.at[s->place].row;
    } else if (!found) {
        s->selected = 0;
    }
    s->move = 0;
    s->topmost = list->at.len > 0 ? list->at.at[0].row : 0;
    if (s->selected == 0) {
        s->first = 0;
    } else if (s->place < s->first) {
        s->first = s->place;
    } else if (s->page > 0 && s->place >= s->first + s->page) {
        s->first = s->place - s->page + 1;
    }
}

void top_draw(const struct top_model *m, struct top_state *s, const struct top_title *title,
              const struct top_size *size, struct top_list *list, struct buf *out)
{
    struct page page = {.out = out, .size = *size};
    page.size.width = size->width < TOP_WIDTH_MOST ? size->width : TOP_WIDTH_MOST;
    if (size->width < TOP_WIDTH_LEAST || size->height < TOP_HEIGHT_LEAST) {
        add_line(&page, STR("too small"), "");
        return;
    }
    struct str search = {s->search, s->search_len};
    top_list_rows(m, s->view, s->view == TOP_FUNCTIONS ? m->only : 0, s->sort, search, list);
    bool detail = size->height >= DETAIL_HEIGHT;
    unsigned above = size->height >= FACTS_HEIGHT ? 4 : 2, below = detail ? 3 : 1;
    s->page = size->height - above - below;
    settle(s, list);
    add_facts(&page, m, title, s->paused);
    if (s->help) {
        add_help(&page);
        return;
    }
    add_head(&page, m, s, size->width < WIDE);
    add_rows(&page, m, s, list);
    uint32_t shown = list->at.len == 0 ? 0 : list->at.at[s->place].row;
    if (detail) {
        add_detail(&page, m, &m->rows.at[shown], shown);
    }
    add_last(&page, m, s, title);
}
