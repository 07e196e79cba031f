/* The text of functions' heaviest lines: for each function, heaviest first, its file is asked for, cut into lines, and
 * pieces of it go into a JSON text that becomes a block of the page. Files' names and texts are foreign: they meet
 * nothing but JSON in base64 here, and textContent in the page. */
#include "encode/flame_sources.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/utf8.h"

enum { FUNCTIONS_MAX = 2000, LINE_MAX_BYTES = 400, BLOCK_MAX_BYTES = 4 << 20 };

struct wanted {
    uint32_t entry, file; /* string id */
};

struct collector {
    struct flame_tally *tally;
    const struct source_reader *reader;
    struct wanted *wanted;
    size_t count;
    bool *missing;  /* by string id of a file */
    struct buf json;
    size_t taken;   /* bytes of text */
};

/* Where the profile does not know it: "main (a.py)", "main (a.py [app==1.2])". */
static struct str file_in(struct str name)
{
    size_t open = str_find_last(name, '('), last = str_find_last(name, '[');
    size_t end = str_ends(name, STR("])")) && last > 0 && last < name.len ? last - 1 : name.len - 1;
    bool has = open < name.len && end > open && str_ends(name, STR(")"));
    return has ? str_sub(name, open + 1, end - open - 1) : STR("");
}

static int by_weight(const void *left, const void *right, void *context)
{
    const struct flame_tally *t = context;
    const struct flame_entry *a = &t->entries.at[((const struct wanted *)left)->entry];
    const struct flame_entry *b = &t->entries.at[((const struct wanted *)right)->entry];
    return a->total_ns != b->total_ns ? (a->total_ns < b->total_ns) - (a->total_ns > b->total_ns)
                                      : (a->name > b->name) - (a->name < b->name);
}

static void find_wanted(struct collector *c, struct profile *p)
{
    for (size_t i = 1; i < c->tally->entries.len; i++) {
        const struct flame_entry *e = &c->tally->entries.at[i];
        if (e->line_count > 0) {
            uint32_t file = e->place != 0 ? e->place : profile_string(p, file_in(profile_text(p, e->name)));
            c->wanted[c->count++] = (struct wanted){(uint32_t)i, file};
        }
    }
    qsort_r(c->wanted, c->count, sizeof *c->wanted, by_weight, c->tally);
}

/* Is the line near one of the function's? */
static bool is_near(const struct collector *c, const struct flame_entry *e, uint64_t line)
{
    for (size_t i = 0; i < e->line_count; i++) {
        uint64_t heavy = c->tally->lines.at[e->lines + i].line;
        if (line + SOURCES_CONTEXT >= heavy && line <= heavy + SOURCES_CONTEXT) {
            return true;
        }
    }
    return false;
}

/* Tabs would be shown as what they are not. */
static void add_line(struct collector *c, struct str line)
{
    char text[LINE_MAX_BYTES + 8];
    size_t len = 0;
    while (line.len > 0 && len < LINE_MAX_BYTES - 8 && line.ptr[0] != '\r') {
        struct str from = line;
        bool is_tab = utf8_take(&line) == '\t';
        struct str one = is_tab ? STR("    ") : str_sub(from, 0, from.len - line.len);
        memcpy(text + len, one.ptr, one.len);
        len += one.len;
    }
    buf_text(&c->json, ",");
    json_text(&c->json, (struct str){text, len});
    c->taken += len + 1;
}

static void add_pieces(struct collector *c, const struct flame_entry *e, struct str text)
{
    bool is_open = false;
    for (uint64_t number = 1; text.len > 0; number++) {
        struct str line = str_cut(&text, '\n');
        if (!is_near(c, e, number)) {
            buf_text(&c->json, is_open ? "]" : "");
            is_open = false;
            continue;
        }
        if (!is_open) {
            buf_printf(&c->json, ",[%llu", (unsigned long long)number);
            is_open = true;
        }
        add_line(c, line);
    }
    buf_text(&c->json, is_open ? "]" : "");
}

static void add_function(struct collector *c, const struct wanted *w)
{
    struct str name = profile_text(c->tally->profile, w->file);
    struct buf file;
    if (name.len == 0 || c->missing[w->file]) {
        return;
    }
    buf_init(&file, SOURCES_FILE_MAX_BYTES);
    bool ok = c->reader->read(c->reader->context, name, &file);
    struct str text = buf_slice(&file);
    if (ok && !file.failed && utf8_valid(text) && str_find(text, '\0') == text.len) {
        const struct flame_entry *e = &c->tally->entries.at[w->entry];
        buf_text(&c->json, c->json.len > 1 ? ",\n[" : "[");
        json_text(&c->json, profile_text(c->tally->profile, e->name));
        buf_printf(&c->json, ",%u", (unsigned)e->kind);
        add_pieces(c, e, text);
        buf_text(&c->json, "]");
    } else {
        c->missing[w->file] = true;
    }
    buf_release(&file);
}

bool flame_put_sources(struct page *page, struct flame_tally *tally, struct profile *p,
                       const struct source_reader *reader)
{
    struct collector c = {.tally = tally, .reader = reader};
    buf_init(&c.json, BLOCK_MAX_BYTES);
    buf_text(&c.json, "[");
    c.wanted = calloc(tally->entries.len, sizeof *c.wanted);
    if (c.wanted != NULL) {
        find_wanted(&c, p);
        c.missing = calloc(p->strings.len + 1, sizeof *c.missing);
    }
    for (size_t i = 0; c.missing != NULL && i < c.count && i < FUNCTIONS_MAX && c.taken < SOURCES_MAX_BYTES; i++) {
        add_function(&c, &c.wanted[i]);
    }
    bool is_any = c.json.len > 1, ok = c.missing != NULL;
    buf_text(&c.json, "]");
    ok = ok && !c.json.failed;
    if (ok && is_any) {
        page_markup(page, "<script type=\"application/octet-stream\" id=\"sources\">\n");
        ok = flame_data_pack(page, buf_slice(&c.json));
        page_markup(page, "</script>\n");
    } else if (!ok) {
        err_set(page->err, ERR_MEMORY, 0, "no memory for the text of functions");
    }
    buf_release(&c.json);
    free(c.wanted);
    free(c.missing);
    return ok;
}
