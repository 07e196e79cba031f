/* The flame graph's page: its head, styles, the tables of names and nodes as text that the script
 * unpacks, the picture for those without script, and the script itself. What stands in the page is
 * escaped where it is put. */
#include "encode/flame.h"

#include <bearssl_hash.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/time.h"
#include "base/version.h"
#include "encode/flame_block.h"
#include "encode/flame_sources.h"
#include "encode/flame_types.h"
#include "encode/value.h"
#include "encode/encode.h"

/* The constant script and style, embedded by the build. */
/* build/assets.S: the script is deflated already, its hash 64 digits. */
extern const unsigned char flame_js[], flame_js_end[], flame_js_sha256[], flame_css[], flame_css_end[];

enum { TOP_FUNCTIONS = 20 };

#define DOT " \xc2\xb7 "
#define DASH " \xe2\x80\x93 "

/* Unpacks the script, which is in the page deflated because it is constant and repeats in every
 * profile. The browser runs it only if its hash is the one the policy names. */
static const char loader[] =
    "'use strict';\n"
    "const unpack = async id => {\n"
    "  const packed = atob(document.getElementById(id).textContent);\n"
    "  const bytes = new Uint8Array(packed.length);\n"
    "  for (let i = 0; i < bytes.length; i++) bytes[i] = packed.charCodeAt(i);\n"
    "  const inflate = new DecompressionStream('deflate-raw');\n"
    "  const stream = new Blob([bytes]).stream().pipeThrough(inflate);\n"
    "  return new Uint8Array(await new Response(stream).arrayBuffer());\n"
    "};\n"
    "unpack('code').then(bytes => {\n"
    "  const script = document.createElement('script');\n"
    "  script.textContent = new TextDecoder().decode(bytes);\n"
    "  document.body.append(script);\n"
    "}).catch(() => {\n"
    "  const status = document.getElementById('status');\n"
    "  if (status) status.textContent = 'This browser cannot unpack the graph; Chromium 103, '\n"
    "    + 'Firefox 113, Safari 16.4 and later can. The tables below hold the essence.';\n"
    "});\n";

static uint64_t window_ns(const struct profile *p)
{
    return p->meta.end_wall_ns > p->meta.start_wall_ns
               ? p->meta.end_wall_ns - p->meta.start_wall_ns
               : 0;
}

/* "3.42 s" of a time, "1.23 MB" of memory, "1,234" of what else is counted. */
static void put_weight(struct page *page, const struct flame *f, uint64_t weight)
{
    if (value_is_bytes(f->p)) {
        page_size(page, weight);
    } else if (value_is_counted(f->p)) {
        page_count(page, weight);
    } else {
        page_seconds(page, weight);
    }
}

/* Sections of the page, in their order. */

static void put_moment(struct page *page, uint64_t wall_ns)
{
    char text[TIME_TEXT_MAX];
    time_iso_seconds(wall_ns, text);
    text[10] = ' ';
    page_markup(page, text);
}

static void put_hash(struct page *page, const unsigned char *from, const unsigned char *end)
{
    unsigned char hash[br_sha256_SIZE];
    br_sha256_context context;
    br_sha256_init(&context);
    br_sha256_update(&context, from, (size_t)(end - from));
    br_sha256_out(&context, hash);
    page_base64(page, hash, sizeof hash);
}

static unsigned digit_of(unsigned char letter)
{
    return letter <= '9' ? letter - (unsigned)'0' : letter - 'a' + 10u;
}

static void put_script_hash(struct page *page)
{
    unsigned char hash[br_sha256_SIZE];
    for (size_t i = 0; i < sizeof hash; i++) {
        hash[i] = (unsigned char)(digit_of(flame_js_sha256[2 * i]) << 4 | digit_of(flame_js_sha256[2 * i + 1]));
    }
    page_base64(page, hash, sizeof hash);
}

static void put_title(struct page *page, const struct flame *f)
{
    const struct profile *p = f->p;
    page_markup(page, "pillion" DOT);
    page_escaped(page, flame_service(p));
    if (value_is_other(p)) {
        page_markup(page, DOT);
        page_escaped(page, value_name(p));
    }
    if (p->meta.end_wall_ns != 0) {
        page_markup(page, DOT);
        put_moment(page, p->meta.end_wall_ns);
        page_markup(page, " UTC" DOT);
        page_seconds(page, window_ns(p));
    }
}

static void put_head(struct page *page, const struct flame *f)
{
    page_markup(page, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                      "script-src 'sha256-");
    put_hash(page, (const unsigned char *)loader, (const unsigned char *)loader + strlen(loader));
    page_markup(page, "' 'sha256-");
    put_script_hash(page);
    page_markup(page, "'; style-src 'sha256-");
    put_hash(page, flame_css, flame_css_end);
    page_markup(page, "'; base-uri 'none'; form-action 'none'\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta name=\"color-scheme\" content=\"light dark\">\n"
                      "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    put_title(page, f);
    page_markup(page, "</title>\n<style>");
    page_bytes(page, flame_css, (size_t)(flame_css_end - flame_css));
    page_markup(page, "</style>\n</head>\n<body>\n");
}

static void begin_fact(struct page *page, const char *term)
{
    page_printf(page, "<div><dt>%s</dt><dd>", term);
}

static void end_fact(struct page *page)
{
    page_markup(page, "</dd></div>\n");
}

static void put_fact(struct page *page, const char *term, struct str text)
{
    if (text.len > 0) {
        begin_fact(page, term);
        page_escaped(page, text);
        end_fact(page);
    }
}

static void put_count_fact(struct page *page, const char *term, uint64_t count)
{
    if (count > 0) {
        begin_fact(page, term);
        page_count(page, count);
        end_fact(page);
    }
}

static void put_window_facts(struct page *page, const struct profile *p)
{
    if (window_ns(p) == 0) {
        return;
    }
    begin_fact(page, "Window, UTC");
    put_moment(page, p->meta.start_wall_ns);
    char end[TIME_TEXT_MAX];
    time_iso_seconds(p->meta.end_wall_ns, end);
    page_printf(page, DASH "%s (", end + 11);
    page_seconds(page, window_ns(p));
    page_markup(page, ")");
    end_fact(page);
}

static void put_facts(struct page *page, const struct flame *f)
{
    const struct profile *p = f->p;
    page_markup(page, "<dl>\n");
    page_markup(page, "<div><dt>");
    page_escaped(page, value_name(p));
    page_markup(page, "</dt><dd>");
    put_weight(page, f, f->sum.cpu_ns);
    end_fact(page);
    if (window_ns(p) != 0 && !value_is_other(p)) {
        begin_fact(page, "Cores in use");
        page_printf(page, "%.2f", (double)f->sum.cpu_ns / (double)window_ns(p));
        end_fact(page);
    }
    put_count_fact(page, "Processes", p->processes.len - 1);
    put_count_fact(page, "Threads", profile_thread_count(p));
    if (p->meta.frequency_hz != 0) {
        begin_fact(page, "Rate");
        page_printf(page, "%u Hz", p->meta.frequency_hz);
        end_fact(page);
    }
    put_fact(page, "Host", profile_text(p, p->meta.host));
    put_fact(page, "How", profile_text(p, p->meta.mode));
    put_fact(page, "Budget", profile_text(p, p->meta.budget));
    put_window_facts(page, p);
    page_markup(page, "</dl>\n");
}

static void put_share(struct page *page, const struct flame *f, uint64_t part_ns, uint64_t whole_ns,
                      const char *what)
{
    put_weight(page, f, part_ns);
    page_printf(page, " %s (", what);
    page_percent(page, part_ns, whole_ns);
    page_markup(page, ")");
}

/* "[kernel, hidden]" as a word of a sentence. */
static void put_accounts(struct page *page, const struct flame *f, uint64_t whole_ns,
                         uint64_t unclaimed_ns)
{
    const char *between = ": ";
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        if (f->sum.account_ns[a] != 0) {
            char word[32];
            const char *name = account_name((enum account)a);
            snprintf(word, sizeof word, "%.*s", (int)strlen(name) - 2, name + 1);
            page_markup(page, between);
            put_share(page, f, f->sum.account_ns[a], whole_ns, word);
            between = DOT;
        }
    }
    if (unclaimed_ns != 0) {
        page_markup(page, between);
        put_share(page, f, unclaimed_ns, whole_ns, "in no sample");
    }
}

/* Of those that used more than a twentieth: what would name their functions, or show them. False: of none. */
static bool put_unread(struct page *page, const struct flame *f)
{
    enum { UNREAD_MAX = 3, UNREAD_SHARE = 20 };
    unsigned told = 0;
    for (size_t i = 0; i < f->process_count && i < FLAME_PROCESS_ROWS_MAX && told < UNREAD_MAX; i++) {
        const struct process *process = &f->p->processes.at[f->heaviest[i]];
        if (process->remedy == 0 || process->cpu_ns <= f->sum.cpu_ns / UNREAD_SHARE) {
            continue;
        }
        told++;
        if (page != NULL) {
            page_markup(page, ". <span>");
            page_escaped(page, profile_text(f->p, process->name));
            page_markup(page, ": ");
            page_escaped(page, profile_text(f->p, process->remedy));
            page_markup(page, "</span>");
        }
    }
    return told > 0;
}

/* Always there: what the reader must know before believing the picture. */
static void put_not_seen(struct page *page, const struct flame *f)
{
    uint64_t lost_ns = f->sum.leaf_ns[FRAME_ACCOUNT], whole_ns = f->sum.cpu_ns, unclaimed_ns = 0;
    /* The kernel's books may hold a little more or less than the samples: ticks. */
    if (f->sum.process_cpu_ns > whole_ns + whole_ns / 32 + 20 * NS_PER_MS) {
        unclaimed_ns = f->sum.process_cpu_ns - whole_ns;
        whole_ns += unclaimed_ns;
        lost_ns += unclaimed_ns;
    }
    const char *level = lost_ns > whole_ns / 5 ? "red" : lost_ns > whole_ns / 20 ? "amber" : "ok";
    bool unread = put_unread(NULL, f);
    if (whole_ns == 0 && f->p->meta.reason != 0) {
        level = "red";
    } else if (lost_ns == 0 && unread) {
        level = "amber";
    }
    page_printf(page, "<p id=\"unseen\" class=\"%s\"><b>Not seen:</b> ", level);
    if (whole_ns == 0) {
        page_markup(page, value_is_other(f->p) ? "nothing of it is in these files"
                                               : "no CPU time was used, or none could be seen; the "
                                                 "reason stands below");
    } else if (lost_ns == 0) {
        page_markup(page, unread ? "nothing missing but names (100.0 % of " : "nothing missing (100.0 % of ");
        put_weight(page, f, whole_ns);
        page_markup(page, ")");
    } else {
        put_share(page, f, lost_ns, whole_ns,
                  value_is_other(f->p) ? "of all" : "of the CPU time");
        put_accounts(page, f, whole_ns, unclaimed_ns);
    }
    if (f->p->meta.lost_records != 0) {
        page_markup(page, DOT);
        page_count(page, f->p->meta.lost_records);
        page_markup(page, " records lost");
    }
    if (f->p->meta.reason != 0 && f->sum.cpu_ns != 0) {
        page_markup(page, ". <span>");
        page_escaped(page, profile_text(f->p, f->p->meta.reason));
        page_markup(page, "</span>");
    }
    (void)put_unread(page, f);
    page_markup(page, "</p>\n");
}

static void put_compared(struct page *page, const struct flame *f)
{
    if (f->base == NULL) {
        return;
    }
    page_markup(page, "<p>Compared with ");
    page_escaped(page, flame_service(f->base));
    if (f->base->meta.end_wall_ns != 0) {
        page_markup(page, " of ");
        put_moment(page, f->base->meta.end_wall_ns);
        page_markup(page, " UTC");
    }
    page_markup(page, " (");
    put_weight(page, f, f->base_sum.cpu_ns);
    page_markup(page, value_is_other(f->p) ? "" : " CPU");
    page_markup(page, "), relative to equal totals: "
                      "<b>&#8722; blue</b> takes a smaller share than before, "
                      "<b>+ orange</b> a larger one.</p>\n");
    if (!value_is_other(f->p)) {
        changes_put(page, &f->changes, &f->tally);
    }
}

static void put_header(struct page *page, const struct flame *f)
{
    page_markup(page, "<header>\n<h1><small>pillion</small> ");
    page_escaped(page, flame_service(f->p));
    page_markup(page, "</h1>\n");
    put_facts(page, f);
    put_not_seen(page, f);
    put_compared(page, f);
    page_markup(page, "</header>\n");
}

static void put_empty(struct page *page, const struct flame *f)
{
    page_markup(page, "<div class=\"empty\">\n<h2>No ");
    page_escaped(page, value_name(f->p));
    page_markup(page, " was seen");
    if (window_ns(f->p) != 0) {
        page_markup(page, " in ");
        page_seconds(page, window_ns(f->p));
    }
    page_markup(page, "</h2>\n<p>");
    if (f->p->meta.reason != 0) {
        page_escaped(page, profile_text(f->p, f->p->meta.reason));
    } else if (!value_is_other(f->p)) {
        page_markup(page, "Nothing ran: the processes were idle, and waiting takes no CPU time.");
    }
    page_markup(page, "</p>\n<p>What can be seen here, and what would have to change to see more: "
                      "<code>pillion doctor</code></p>\n</div>\n");
}

/* The controls that the script brings to life. */
static const char graph_markup[] =
    "<section id=\"graph\" aria-label=\"Flame graph\">\n"
    "<div id=\"bar\" class=\"bar\">\n"
    "<span class=\"group\"><input id=\"query\" type=\"search\" placeholder=\"Search  /\" "
    "aria-label=\"Search functions\" autocomplete=\"off\" spellcheck=\"false\">"
    "<button id=\"regex\" aria-pressed=\"false\" title=\"Regular expression\">.*</button></span>\n"
    "<output id=\"found\"></output>\n"
    "<span id=\"views\" class=\"group\" role=\"group\" aria-label=\"View\">"
    "<button id=\"graphview\" title=\"Callers above, callees below (g)\">Graph</button>"
    "<button id=\"bottom\" title=\"Own time first, then its callers (b)\">Bottom-up</button>"
    "<button id=\"sandwich\" title=\"Callers and callees of one function (w)\">Sandwich</button>"
    "<button id=\"table\" title=\"All functions (t)\">Table</button></span>\n"
    "<span class=\"group\"><button id=\"flip\" title=\"Upside down (i)\">Flip</button>"
    "<button id=\"filter\" aria-expanded=\"false\" aria-controls=\"chips\" "
    "title=\"By process, thread, container (p)\">Filter</button>"
    "<button id=\"colour\" title=\"Colour by (c)\">Colour</button>"
    "<button id=\"more\" aria-haspopup=\"menu\">More</button>"
    "<button id=\"keys\" title=\"Keys (?)\" aria-label=\"Keys\">?</button></span>\n"
    "</div>\n"
    "<div id=\"legendbar\" class=\"bar\"><span id=\"legend\" role=\"group\" "
    "aria-label=\"Kinds of code shown\"></span><span id=\"crumbs\" role=\"group\" "
    "aria-label=\"What is left out\"></span></div>\n"
    "<div id=\"chips\" hidden><div class=\"bar\"><input id=\"pick\" type=\"search\" "
    "placeholder=\"Find by name or PID\" aria-label=\"Find a process, thread or container\" "
    "autocomplete=\"off\" spellcheck=\"false\"></div>"
    "<div id=\"choices\"></div></div>\n"
    "<div id=\"scroll\"><div id=\"tall\"><canvas id=\"canvas\" tabindex=\"0\" role=\"application\" "
    "aria-label=\"Flame graph: arrow keys move, Enter zooms, question mark lists the keys. The "
    "table view is the text alternative.\" aria-describedby=\"status\"></canvas></div></div>\n"
    "<div id=\"list\" hidden></div>\n"
    "<p id=\"status\" role=\"status\" aria-live=\"polite\">The graph appears here once the page's "
    "script has run. The tables below need no script.</p>\n"
    "</section>\n";

static const char closing_markup[] =
    "<div id=\"menu\" role=\"menu\" hidden></div>\n"
    "<dialog id=\"help\" aria-label=\"Keys\"></dialog>\n";

static bool is_function(const struct flame_entry *e)
{
    return e->kind < FRAME_KIND_COUNT && e->kind != FRAME_ACCOUNT;
}

static bool heavier(const struct flame *f, const struct flame_entry *a, const struct flame_entry *b)
{
    if (a->self_ns != b->self_ns) {
        return a->self_ns > b->self_ns;
    }
    return str_compare(profile_text(f->p, a->name), profile_text(f->p, b->name)) < 0;
}

static size_t find_top(const struct flame *f, const struct flame_entry *top[TOP_FUNCTIONS])
{
    size_t count = 0;
    for (size_t i = 0; i < f->tally.entries.len; i++) {
        const struct flame_entry *e = &f->tally.entries.at[i];
        if (!is_function(e) || e->self_ns == 0) {
            continue;
        }
        size_t at = count;
        while (at > 0 && heavier(f, e, top[at - 1])) {
            at--;
        }
        if (at < TOP_FUNCTIONS) {
            size_t kept = count < TOP_FUNCTIONS ? count : TOP_FUNCTIONS - 1;
            memmove(top + at + 1, top + at, (kept - at) * sizeof *top);
            top[at] = e;
            count = kept + 1;
        }
    }
    return count;
}

static void put_number_cells(struct page *page, const struct flame *f, uint64_t ns,
                             uint64_t whole_ns)
{
    page_markup(page, "<td>");
    page_percent(page, ns, whole_ns);
    page_markup(page, "<td>");
    put_weight(page, f, ns);
}

static void put_top_functions(struct page *page, const struct flame *f)
{
    const struct flame_entry *top[TOP_FUNCTIONS + 1];
    size_t count = find_top(f, top);
    page_printf(page, "<section>\n<h2>Heaviest functions by their own time%s</h2>\n", f->base != NULL ? ", now" : "");
    if (count == 0) {
        page_markup(page, "<p>No function was seen.</p>\n</section>\n");
        return;
    }
    page_markup(page, "<table class=\"functions\">\n<thead><tr><th scope=\"col\" colspan=\"2\">Own time"
                      "<th scope=\"col\" colspan=\"2\">With callees<th scope=\"col\">Kind"
                      "<th scope=\"col\">Function</thead>\n<tbody>\n");
    for (size_t i = 0; i < count; i++) {
        page_markup(page, "<tr>");
        put_number_cells(page, f, top[i]->self_ns, f->sum.cpu_ns);
        put_number_cells(page, f, top[i]->total_ns, f->sum.cpu_ns);
        page_printf(page, "<td>%s<td>", languages[top[i]->kind].name);
        page_escaped(page, profile_text(f->p, top[i]->name));
        if (top[i]->line_count > 0) {
            page_printf(page, ", line %u", f->tally.lines.at[top[i]->lines].line);
        }
        page_markup(page, "\n");
    }
    page_markup(page, "</tbody>\n</table>\n</section>\n");
}

/* Columns that no process fills are left out: a collapsed file knows neither pids nor capture modes. */
struct columns {
    bool pid, container, runtime, mode, remedy;
};

static struct columns find_columns(const struct profile *p)
{
    struct columns c = {0};
    for (size_t i = 1; i < p->processes.len; i++) {
        const struct process *process = &p->processes.at[i];
        c.pid |= process->pid != 0;
        c.container |= process->container != 0;
        c.runtime |= process->runtime != 0;
        c.mode |= process->capture_mode != CAPTURE_UNKNOWN;
        c.remedy |= process->remedy != 0;
    }
    return c;
}

static void put_text_cell(struct page *page, const struct flame *f, bool wanted, uint32_t text)
{
    if (wanted) {
        page_markup(page, "<td>");
        page_escaped(page, profile_text(f->p, text));
    }
}

static void put_process(struct page *page, const struct flame *f, struct columns c, uint32_t id)
{
    const struct process *process = &f->p->processes.at[id];
    page_markup(page, "<tr>");
    put_number_cells(page, f, flame_process_ns(f, id),
                     f->sum.process_cpu_ns != 0 ? f->sum.process_cpu_ns : f->sum.cpu_ns);
    if (c.pid) {
        page_printf(page, "<td>%u", process->pid);
    }
    put_text_cell(page, f, true, process->name);
    put_text_cell(page, f, c.container, process->container);
    put_text_cell(page, f, c.runtime, process->runtime);
    if (c.mode) {
        page_printf(page, "<td>%s", capture_mode_name((enum capture_mode)process->capture_mode));
    }
    put_text_cell(page, f, c.remedy, process->remedy);
    page_markup(page, "\n");
}

static void put_processes(struct page *page, const struct flame *f)
{
    struct columns c = find_columns(f->p);
    if (f->process_count == 0) {
        return;
    }
    page_markup(page, "<section>\n<h2>Processes</h2>\n<table>\n<thead><tr>"
                      "<th scope=\"col\" colspan=\"2\">");
    page_escaped(page, value_name(f->p));
    page_markup(page, c.pid ? "<th scope=\"col\">PID" : "");
    page_markup(page, "<th scope=\"col\">Process");
    page_markup(page, c.container ? "<th scope=\"col\">Container" : "");
    page_markup(page, c.runtime ? "<th scope=\"col\">Runtime" : "");
    page_markup(page, c.mode ? "<th scope=\"col\">How" : "");
    page_markup(page, c.remedy ? "<th scope=\"col\">To see more" : "");
    page_markup(page, "</thead>\n<tbody>\n");
    size_t rows = f->process_count < FLAME_PROCESS_ROWS_MAX ? f->process_count : FLAME_PROCESS_ROWS_MAX;
    for (size_t i = 0; i < rows; i++) {
        put_process(page, f, c, f->heaviest[i]);
    }
    page_markup(page, "</tbody>\n</table>\n");
    if (rows < f->process_count) {
        page_printf(page, "<p>%zu more processes used less.</p>\n", f->process_count - rows);
    }
    page_markup(page, "</section>\n");
}

static void put_footer(struct page *page, const struct flame *f)
{
    page_markup(page, "<footer><p>Width is ");
    page_escaped(page, value_name(f->p));
    page_markup(page, value_is_other(f->p) ? "" : ", not wall time");
    page_markup(page, ". Order from left to right is by weight, not by time.</p>\n<p>");
    if (f->p->meta.own_cpu_ns != 0) {
        page_markup(page, "The profiler itself took ");
        page_seconds(page, f->p->meta.own_cpu_ns);
        page_printf(page, " CPU and %.1f MB" DOT, (double)f->p->meta.own_rss_bytes / 1e6);
    }
    page_printf(page, "pillion " PILLION_VERSION DOT "page format %d</p></footer>\n",
                FLAME_FORMAT_VERSION);
}

static void put_script(struct page *page)
{
    page_markup(page, "<script type=\"application/octet-stream\" id=\"code\">\n");
    page_base64(page, flame_js, (size_t)(flame_js_end - flame_js));
    page_markup(page, "</script>\n<script>");
    page_markup(page, loader);
    page_markup(page, "</script>\n");
}

/* Further sample types. */

struct offer {
    char label[FLAME_TYPE_LABEL_MAX];
    unsigned number; /* of its data block; 0: it is not in the page, … */
    struct err why;  /* … for this */
};

/* Is made aside: whether it is small enough is known when it is done. */
static bool put_further(struct page *page, struct profile *view, unsigned number, struct err *why)
{
    struct buf block;
    struct page aside;
    struct flame f = {.p = view};
    buf_init(&block, page->total < FLAME_PAGE_MAX_BYTES ? FLAME_PAGE_MAX_BYTES - page->total : 0);
    struct sink sink = sink_of_buf(&block);
    page_begin(&aside, &sink, why);
    bool ok = flame_prepare(&f, why) && flame_put_block(&aside, &f, number) && page_end(&aside);
    if (ok) {
        page_bytes(page, block.ptr, block.len);
    } else if (why->kind == ERR_LIMIT) {
        err_set(why, ERR_LIMIT, 0, "too large for a page");
    }
    flame_release(&f);
    buf_release(&block);
    return ok;
}

static void put_option(struct page *page, unsigned number, struct str label)
{
    page_printf(page, "<option value=\"%u\">", number);
    page_escaped(page, label);
    page_markup(page, "</option>\n");
}

static void put_choice(struct page *page, struct str first, const struct offer *offers, size_t count)
{
    page_markup(page, "<select id=\"type\" aria-label=\"Sample type\" title=\"Sample type (v)\" hidden>\n");
    if (first.len > 0) {
        put_option(page, 0, first);
    }
    for (size_t i = 0; i < count; i++) {
        if (offers[i].number != 0) {
            put_option(page, offers[i].number, str_of(offers[i].label));
        }
    }
    page_markup(page, "</select>\n");
}

static void put_left_out(struct page *page, const struct offer *offers, size_t count)
{
    page_markup(page, "<footer><p>Not in this page: ");
    const char *between = "";
    for (size_t i = 0; i < count; i++) {
        if (offers[i].number == 0) {
            page_markup(page, between);
            page_escaped(page, str_of(offers[i].label));
            page_markup(page, " (");
            page_escaped(page, str_of(offers[i].why.text));
            page_markup(page, ")");
            between = ", ";
        }
    }
    page_markup(page, "; <code>pillion render FILE --type NAME</code> draws one of a file.</p></footer>\n");
}

/* One after the other: neither their trees nor their texts are in memory together. `first` is what the page's first
 * type is called, empty when there is nothing of it. */
static bool put_types(struct page *page, struct flame_types *types, struct str first)
{
    VEC(struct offer) offers = {0};
    unsigned number = 0;
    bool ok = true;
    while (ok && page->ok && offers.len < FLAME_TYPES_MAX && flame_types_next(types)) {
        struct offer *offer = vec_push(&offers);
        ok = offer != NULL || err_set(page->err, ERR_MEMORY, 0, "no memory for the types of a flame graph");
        if (ok) {
            memcpy(offer->label, types->label, sizeof offer->label);
            offer->why = types->why;
            bool is_in = offer->why.kind == ERR_NONE && put_further(page, &types->view, number + 1, &offer->why);
            number += is_in;
            offer->number = is_in ? number : 0;
        }
    }
    if (number > 0) {
        put_choice(page, first, offers.at, offers.len);
    }
    if (number < offers.len) {
        put_left_out(page, offers.at, offers.len);
    }
    vec_release(&offers);
    return ok;
}

/* The whole. */

static bool put_page(struct flame *f, struct flame_types *types, const struct encode_rules *rules, struct sink *out,
                     struct err *err)
{
    struct page page;
    page_begin(&page, out, err);
    put_head(&page, f);
    put_header(&page, f);
    if (f->sum.cpu_ns == 0) {
        put_empty(&page, f);
    }
    if (f->sum.cpu_ns != 0 || (types != NULL && flame_types_any(f->p))) {
        page_markup(&page, graph_markup);
    }
    page_markup(&page, "<div id=\"tables\">\n");
    put_top_functions(&page, f);
    put_processes(&page, f);
    page_markup(&page, "</div>\n");
    put_footer(&page, f);
    page_markup(&page, closing_markup);
    bool ok = flame_put_block(&page, f, 0);
    put_script(&page);
    if (ok && rules != NULL && rules->sources != NULL) {
        ok = flame_put_sources(&page, &f->tally, f->p, rules->sources);
    }
    if (ok && types != NULL) {
        char first[FLAME_TYPE_LABEL_MAX] = "";
        struct str name = value_name(f->p);
        if (f->sum.cpu_ns != 0) {
            snprintf(first, sizeof first, "%.*s", (int)name.len, name.ptr);
        }
        flame_release(f); /* its tree is not needed any more */
        ok = put_types(&page, types, str_of(first));
    }
    page_markup(&page, "</body>\n</html>\n");
    return page_end(&page) && ok;
}

static bool write_page(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err)
{
    struct flame_types types;
    flame_types_init(&types, p);
    bool is_of_cpu = p->samples.len > 1 || p->occurrences.len == 0 || p->waits.len > 0;
    struct flame f = {.p = !is_of_cpu && flame_types_next(&types) && types.why.kind == ERR_NONE ? &types.view : p};
    bool ok = flame_prepare(&f, err) && put_page(&f, &types, rules, out, err);
    flame_release(&f);
    flame_types_release(&types);
    return ok;
}

bool flame_write(struct profile *p, struct sink *out, struct err *err)
{
    return write_page(p, NULL, out, err);
}

static void say_total(struct buf *words, const char *when, const struct profile_totals *sum)
{
    buf_printf(words, "%s: %.3g s of CPU time, %llu samples\n", when, (double)sum->cpu_ns / 1e9,
               (unsigned long long)sum->count);
}

bool flame_write_diff(struct profile *p, struct profile *base, const struct encode_rules *rules, struct sink *out,
                      struct buf *words, struct err *err)
{
    struct flame f = {.p = p, .base = base};
    bool ok = flame_prepare(&f, err) && put_page(&f, NULL, rules, out, err);
    if (ok && words != NULL && !value_is_other(p)) {
        say_total(words, "before", &f.base_sum);
        say_total(words, "now", &f.sum);
        changes_write(&f.changes, &f.tally, words);
    }
    flame_release(&f);
    return ok;
}

static bool write_row(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err)
{
    return write_page(p, rules, out, err);
}

const struct encoder encoder_html = {
    .name = "html",
    .extension = ".html",
    .extensions = ".htm",
    .mime = "text/html; charset=utf-8",
    .description = "flame graph, one file, no network needed",
    .link = "last_flamegraph.html",
    .by_default = true,
    .is_page = true,
    .shows_moments = true,
    .apart = FIT_BY_THREAD,
    .write = write_row,
};
