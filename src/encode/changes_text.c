/* What two profiles differ by, in words: lines for a terminal, a section of the page, and what the page's script
 * marks. Names are foreign bytes: the page escapes them, a terminal gets '?' for what would act on it or is not
 * seen, and the data block takes them as JSON. */
#include "encode/changes.h"

#include <stdio.h>

#include "base/json.h"
#include "base/utf8.h"

enum { ROWS_MAX = 10, NAME_MAX_CHARACTERS = 70, CHANGED_MAX = 2000 };

static const char *direction(const struct change *change)
{
    bool grew = change->now > change->was;
    return change->is_own ? grew ? "grew" : "shrank" : grew ? "grew with callees" : "shrank with callees";
}

/* "20.0 % → 28.0 % (+8.0 points, ± 1.1; × 1.56)" */
static void figures(const struct change *change, char *out, size_t bytes)
{
    double points = 100 * (change->now - change->was);
    char ratio[32] = "new";
    if (change->ratio >= 0) {
        snprintf(ratio, sizeof ratio, change->ratio > 0 ? "\xc3\x97 %.2f" : "gone", change->ratio);
    }
    snprintf(out, bytes, "%.1f %% \xe2\x86\x92 %.1f %% (%s%.1f points, \xc2\xb1 %.1f; %s)", 100 * change->was,
             100 * change->now, points < 0 ? "\xe2\x88\x92" : "+", points < 0 ? -points : points,
             100 * change->bound, ratio);
}

static struct str name_of(const struct flame_tally *tally, uint32_t entry)
{
    return profile_text(tally->profile, tally->entries.at[entry].name);
}

static void add_name(struct buf *out, struct str name)
{
    for (size_t i = 0; name.len > 0; i++) {
        struct str from = name;
        uint32_t c = utf8_take(&name);
        if (i == NAME_MAX_CHARACTERS) {
            buf_text(out, "\xe2\x80\xa6");
            return;
        }
        if (c == 0xfffd || flame_text_is_unseen(c)) {
            buf_byte(out, '?');
        } else {
            buf_str(out, str_sub(from, 0, from.len - name.len));
        }
    }
}

/* The sentence below the rows. */
static void conclude(const struct changes *c, size_t shown, char *out, size_t bytes)
{
    if (!c->is_told) {
        snprintf(out, bytes, "Too few samples to tell changes from chance.");
        return;
    }
    size_t others = c->tested - c->list.len - c->callers;
    int len = c->list.len > shown ? snprintf(out, bytes, "%zu more changed. ", c->list.len - shown) : 0;
    if (c->callers > 0) {
        len += snprintf(out + len, bytes - (size_t)len, "Through these, %zu caller%s changed. ", c->callers,
                        c->callers == 1 ? "" : "s");
    }
    snprintf(out + len, bytes - (size_t)len, "%zu %sfunction%s within chance.", others, c->list.len > 0 ? "other " : "",
             others == 1 ? " is" : "s are");
}

static size_t rows_shown(const struct changes *c)
{
    return c->list.len < ROWS_MAX ? c->list.len : ROWS_MAX;
}

void changes_write(const struct changes *c, const struct flame_tally *tally, struct buf *out)
{
    char text[160];
    for (size_t i = 0; i < rows_shown(c); i++) {
        const struct change *change = &c->list.at[i];
        figures(change, text, sizeof text);
        buf_printf(out, "%s: ", direction(change));
        add_name(out, name_of(tally, change->entry));
        buf_printf(out, " %s\n", text);
    }
    conclude(c, rows_shown(c), text, sizeof text);
    buf_printf(out, "%s\n", text);
}

void changes_put(struct page *page, const struct changes *c, const struct flame_tally *tally)
{
    char text[160];
    page_markup(page, "<div id=\"changes\"><b>Beyond chance:</b> ");
    page_markup(page, c->list.len == 0 ? "nothing. " : "\n<ul>\n");
    for (size_t i = 0; i < rows_shown(c); i++) {
        const struct change *change = &c->list.at[i];
        figures(change, text, sizeof text);
        page_printf(page, "<li>%s: <code>", direction(change));
        page_escaped(page, name_of(tally, change->entry));
        page_printf(page, "</code> %s\n", text);
    }
    page_markup(page, c->list.len == 0 ? "" : "</ul>\n");
    conclude(c, rows_shown(c), text, sizeof text);
    page_printf(page, "%s</div>\n", text);
}

/* [[name, kind, own, with callees], …]: 1 grew, -1 shrank */
void changes_json(struct buf *json, const struct changes *c, const struct flame_tally *tally)
{
    size_t made = 0;
    buf_text(json, "[");
    for (size_t i = 1; c->is_told && i < tally->entries.len && made < CHANGED_MAX; i++) {
        if (c->own[i] != 0 || c->all[i] != 0) {
            buf_text(json, made++ > 0 ? ",\n[" : "\n[");
            json_text(json, name_of(tally, (uint32_t)i));
            buf_printf(json, ",%u,%d,%d]", (unsigned)tally->entries.at[i].kind, c->own[i], c->all[i]);
        }
    }
    buf_text(json, "]");
}
