/* What `pillion top` shows where there is no screen: tables for people, objects for programs. The heaviest rows stand
 * there by their own time; the others are summed up, so that own shares are 100 % there, too. Keys of an object keep
 * their names and meaning: programs read them. */
#include "capture/live/top_draw.h"
#include "base/json.h"
#include "base/time.h"
#include "base/utf8.h"

enum { JSON_ROWS = 100 };

static double seconds(uint64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

static double per_second(double amount, uint64_t ns)
{
    return ns == 0 ? 0.0 : amount / seconds(ns);
}

/* ---- tables ---- */

/* A line of it, cut. */
static void add_line(struct buf *out, const struct buf *line, const struct top_room *room)
{
    (void)utf8_add_shown(out, buf_slice(line), room->columns);
    buf_byte(out, '\n');
}

static void facts_line(const struct top_model *m, const struct top_facts *f, const struct top_title *title,
                       struct buf *line)
{
    buf_printf(line, "%.2f cores, %.0f samples/s, not seen %.1f %%; own cost %.1f %% of one core, %.0f MB; %s",
               per_second(seconds(f->cpu_ns), f->length_ns), per_second((double)f->samples, f->length_ns),
               top_percent(f->not_seen_ns, f->cpu_ns), top_percent(m->since.own_cpu_ns, m->since.length_ns),
               (double)m->own_rss_bytes / 1048576.0, title->mode);
}

static void table_row(const struct top_model *m, const struct top_row *row, bool since, struct buf *line)
{
    if (!since) {
        buf_printf(line, "%6.1f %6.1f ", top_percent(row->recent.own_ns, m->recent.cpu_ns),
                   top_percent(row->recent.total_ns, m->recent.cpu_ns));
    }
    buf_printf(line, "%6.1f %6.1f  %-10s ", top_percent(row->since.own_ns, m->since.cpu_ns),
               top_percent(row->since.total_ns, m->since.cpu_ns), languages[row->kind].name);
    buf_str(line, row->name);
}

/* Of own times: the total times of several functions have no sum. */
static void others_row(const struct top_model *m, struct top_time own, size_t count, bool since, struct buf *line)
{
    if (!since) {
        buf_printf(line, "%6.1f        ", top_percent(own.own_ns, m->recent.cpu_ns));
    }
    buf_printf(line, "%6.1f                    %zu others", top_percent(own.total_ns, m->since.cpu_ns), count);
}

/* All but the rows. */
static void add_head(const struct top_model *m, const struct top_title *title, const struct top_room *room, bool since,
                     struct buf *line, struct buf *out)
{
    const struct top_facts *f = since ? &m->since : &m->recent;
    buf_printf(line, "%s: %.1f s, %.1f s CPU", title->what, seconds(title->elapsed_ns), seconds(m->since.cpu_ns));
    add_line(out, line, room);
    buf_clear(line);
    facts_line(m, f, title, line);
    add_line(out, line, room);
    if (top_reason(f, title)[0] != '\0') {
        buf_clear(line);
        buf_printf(line, "not seen: %s", title->reason);
        add_line(out, line, room);
    }
    buf_text(out, since ? "" : "               since the start:\n  own% total%");
    buf_text(out, "  own% total%  language   function\n");
}

void top_lines(const struct top_model *m, const struct top_title *title, const struct top_room *room, bool since,
               struct top_list *list, struct buf *out)
{
    struct top_time rest = {0};
    struct buf line;
    buf_init(&line, 4 * TOP_NAME_MAX);
    add_head(m, title, room, since, &line, out);
    top_list_rows(m, TOP_FUNCTIONS, 0, since ? TOP_BY_OWN_SINCE : TOP_BY_OWN, STR(""), list);
    for (size_t i = 0; i < list->at.len; i++) {
        const struct top_row *row = &m->rows.at[list->at.at[i].row];
        buf_clear(&line);
        if (i < room->rows) {
            table_row(m, row, since, &line);
            add_line(out, &line, room);
        } else {
            rest.own_ns += row->recent.own_ns;
            rest.total_ns += row->since.own_ns;
        }
    }
    if (list->at.len > room->rows) {
        others_row(m, rest, list->at.len - room->rows, since, &line);
        add_line(out, &line, room);
    }
    buf_release(&line);
}

/* ---- objects ---- */

static void add_number(struct buf *out, const char *key, const char *format, double value)
{
    buf_printf(out, "%s\"%s\":", out->ptr[out->len - 1] == '{' ? "" : ",", key);
    buf_printf(out, format, value);
}

static void json_times(const struct top_model *m, const struct top_row *row, struct buf *out)
{
    add_number(out, "own_percent", "%.2f", top_percent(row->recent.own_ns, m->recent.cpu_ns));
    add_number(out, "total_percent", "%.2f", top_percent(row->recent.total_ns, m->recent.cpu_ns));
    add_number(out, "own_percent_since_start", "%.2f", top_percent(row->since.own_ns, m->since.cpu_ns));
    add_number(out, "total_percent_since_start", "%.2f", top_percent(row->since.total_ns, m->since.cpu_ns));
}

static void json_row(const struct top_model *m, const struct top_row *row, struct buf *out)
{
    buf_text(out, out->ptr[out->len - 1] == '[' ? "{\"name\":" : ",{\"name\":");
    json_text(out, row->name);
    if (row->table == TOP_FUNCTIONS) {
        buf_printf(out, ",\"language\":\"%s\"", languages[row->kind].name);
    }
    if (row->file.len > 0) {
        buf_text(out, ",\"file\":");
        json_text(out, row->file);
        add_number(out, "line", "%.0f", row->line);
    }
    json_times(m, row, out);
    buf_byte(out, '}');
}

static void json_rows(const struct top_model *m, const char *key, enum top_table table, struct top_list *list,
                      struct buf *out)
{
    uint64_t recent_ns = 0, since_ns = 0; /* of the others */
    top_list_rows(m, table, 0, TOP_BY_OWN, STR(""), list);
    buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < list->at.len; i++) {
        const struct top_row *row = &m->rows.at[list->at.at[i].row];
        if (i < JSON_ROWS) {
            json_row(m, row, out);
        } else {
            recent_ns += row->recent.own_ns;
            since_ns += row->since.own_ns;
        }
    }
    buf_byte(out, ']');
    if (list->at.len > JSON_ROWS) {
        buf_printf(out, ",\"other_%s\":{", key);
        add_number(out, "count", "%.0f", (double)(list->at.len - JSON_ROWS));
        add_number(out, "own_percent", "%.2f", top_percent(recent_ns, m->recent.cpu_ns));
        add_number(out, "own_percent_since_start", "%.2f", top_percent(since_ns, m->since.cpu_ns));
        buf_byte(out, '}');
    }
}

void top_json(const struct top_model *m, const struct top_title *title, struct top_list *list, struct buf *out)
{
    const struct top_facts *f = &m->recent;
    buf_text(out, "{\"target\":");
    json_text(out, str_of(title->what));
    buf_text(out, ",\"mode\":");
    json_text(out, str_of(title->mode));
    add_number(out, "elapsed_s", "%.2f", seconds(title->elapsed_ns));
    add_number(out, "interval_s", "%.2f", seconds(f->length_ns));
    add_number(out, "cpu_s", "%.3f", seconds(f->cpu_ns));
    add_number(out, "cpu_s_since_start", "%.3f", seconds(m->since.cpu_ns));
    add_number(out, "cores", "%.3f", per_second(seconds(f->cpu_ns), f->length_ns));
    add_number(out, "samples", "%.0f", (double)f->samples);
    add_number(out, "not_seen_percent", "%.2f", top_percent(f->not_seen_ns, f->cpu_ns));
    add_number(out, "own_cpu_percent", "%.2f", top_percent(f->own_cpu_ns, f->length_ns));
    add_number(out, "own_rss_mb", "%.1f", (double)m->own_rss_bytes / 1048576.0);
    if (top_reason(f, title)[0] != '\0') {
        buf_text(out, ",\"not_seen_reason\":");
        json_text(out, str_of(title->reason));
    }
    static const char *const keys[TOP_VIEWS] = {"functions", "processes", "threads", "languages"};
    for (unsigned view = 0; view < TOP_VIEWS; view++) {
        json_rows(m, keys[view], (enum top_table)view, list, out);
    }
    buf_text(out, "}\n");
}
