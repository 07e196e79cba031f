/* The manual page (man(7) macros) and docs/options.md, both made of the option table, the commands and the
 * screens of `pillion help`. Nothing is written here that those do not hold, but for the frame: name, synopsis,
 * description. */
#include "base/version.h"
#include "cli/help.h"
#include "cli/value.h"

/* roff: hyphens that are typed, backslashes, and lines that would be requests. */
static void roff_text(struct str text, struct buf *out)
{
    bool line_start = true;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (line_start && (c == '.' || c == '\''))
            buf_text(out, "\\&");
        if (c == '-' || c == '\\')
            buf_text(out, c == '-' ? "\\-" : "\\e");
        else
            buf_byte(out, c);
        line_start = c == '\n';
    }
}

static void roff_made(void (*make)(const struct option *, struct buf *), const struct option *row,
                      struct buf *out)
{
    struct buf text;
    buf_init(&text, 2000);
    make(row, &text);
    roff_text(buf_slice(&text), out);
    buf_release(&text);
}

static bool has_aliases(const struct option *row)
{
    for (size_t i = 0; i < option_alias_count; i++)
        if (strcmp(option_aliases[i].option, row->name) == 0)
            return true;
    return false;
}

static void roff_option(const struct option *row, struct buf *out)
{
    buf_text(out, ".TP\n.B ");
    roff_made(help_option_label, row, out);
    buf_byte(out, '\n');
    roff_made(help_option_text, row, out);
    buf_byte(out, '\n');
    if (has_aliases(row)) {
        buf_text(out, ".br\nAlso ");
        roff_made(help_option_aliases, row, out);
        buf_text(out, ".\n");
    }
    struct buf variables;
    buf_init(&variables, 2000);
    help_option_variables(row, &variables);
    if (variables.len > 0) {
        buf_text(out, ".br\nEnvironment: ");
        roff_text(buf_slice(&variables), out);
        buf_text(out, ".\n");
    }
    buf_release(&variables);
}

static void roff_options(struct buf *out)
{
    buf_text(out, ".SH OPTIONS\n");
    for (enum option_group g = 0; g < GROUP_COUNT; g++) {
        buf_text(out, ".SS ");
        roff_text(str_of(option_group_title[g]), out);
        buf_byte(out, '\n');
        for (size_t i = 0; i < option_count; i++)
            if (option_table[i].group == g)
                roff_option(&option_table[i], out);
    }
}

static void roff_unused(struct buf *out)
{
    buf_text(out, ".SH COMPATIBILITY\nOptions of gProfiler and ddprof that are accepted and have no "
                  "effect here.\n");
    for (const struct unused_option *u = unused_options; u->name; u++) {
        buf_text(out, ".TP\n.B \\-\\-");
        roff_text(str_of(u->name), out);
        buf_printf(out, "%s\n", u->valued ? " VALUE" : "");
        roff_text(str_of(u->why), out);
        buf_byte(out, '\n');
    }
}

static void roff_section(const char *title, const char *text, struct buf *out)
{
    buf_printf(out, ".SH %s\n.nf\n", title);
    roff_text(str_of(text), out);
    buf_text(out, ".fi\n");
}

void manual_roff(struct buf *out)
{
    buf_text(out, ".TH PILLION 1 \"\" \"pillion " PILLION_VERSION "\"\n"
                  ".SH NAME\npillion \\- profiles the programs it shares a container with\n"
                  ".SH SYNOPSIS\n.nf\n"
                  "pillion [options] [\\-\\-] command [args...]\n"
                  "pillion [options] \\-p PID[,PID...]\n"
                  "pillion [options] \\-a\n");
    for (enum command_id id = 0; id < COMMAND_COUNT; id++) {
        if (command_is_shown(id)) {
            buf_printf(out, "pillion %s ", command_table[id].word);
            roff_text(str_of(command_table[id].usage), out);
            buf_byte(out, '\n');
        }
    }
    buf_text(out, ".fi\n.SH DESCRIPTION\n"
                  "pillion runs a command, or attaches to running processes, and shows where their "
                  "CPU time goes.\nIt needs no root, no host PID namespace and no ptrace, and "
                  "changes nothing in what it profiles.\nThe first word that is no option begins "
                  "the command.\nWithout a command and without \\-p every visible process is "
                  "profiled.\n");
    roff_options(out);
    roff_unused(out);
    struct buf files;
    buf_init(&files, HELP_MAX_BYTES);
    help_output(&files);
    roff_section("FILES", buf_cstr(&files), out);
    buf_release(&files);
    roff_section("SIGNALS", help_signals, out);
    roff_section("EXIT STATUS", help_status, out);
    roff_section("CONTAINERS", help_containers, out);
    roff_section("FARGATE", help_fargate, out);
    roff_section("ALPINE", help_alpine, out);
}

/* Cells of a table: | would end them, < and [ could begin something. */
static void markdown_made(void (*make)(const struct option *, struct buf *),
                          const struct option *row, const char *quote, struct buf *out)
{
    struct buf text;
    buf_init(&text, 2000);
    make(row, &text);
    if (text.len > 0)
        buf_text(out, quote);
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '|' || (quote[0] == '\0' && strchr("<[*", text.ptr[i])))
            buf_byte(out, '\\');
        buf_byte(out, text.ptr[i]);
    }
    if (text.len > 0)
        buf_text(out, quote);
    buf_release(&text);
}

static void markdown_help(const struct option *row, struct buf *out)
{
    buf_text(out, row->help);
    if (option_has_choices(row)) {
        buf_text(out, ": ");
        value_choices(row, ", ", out);
    } else if (row->max && row->kind != KIND_PIDS) {
        buf_text(out, "; ");
        value_range(row, out);
    }
}

static void markdown_row(const struct option *row, struct buf *out)
{
    buf_text(out, "| ");
    markdown_made(help_option_label, row, "`", out);
    buf_text(out, " | ");
    markdown_made(help_option_default, row, "", out);
    buf_text(out, " | ");
    markdown_made(markdown_help, row, "", out);
    buf_text(out, " | ");
    markdown_made(help_option_aliases, row, "", out);
    buf_text(out, " | ");
    markdown_made(help_option_variables, row, "", out);
    buf_text(out, " |\n");
}

static void markdown_group(enum option_group group, struct buf *out)
{
    buf_printf(out, "\n## %s\n\n"
                    "| option | default | meaning | also | environment |\n"
                    "|---|---|---|---|---|\n",
               option_group_title[group]);
    for (size_t i = 0; i < option_count; i++)
        if (option_table[i].group == group)
            markdown_row(&option_table[i], out);
}

void manual_markdown(struct buf *out)
{
    buf_text(out,
             "# Options\n\n"
             "This file is printed by `pillion help markdown` from the table that parses; a test "
             "compares the two.\n\n"
             "`--name=value` and `--name value` mean the same, letters may be grouped (`-cq`), "
             "`--no-x` negates every\nflag, the last one wins, `--` ends the options, names are "
             "never abbreviated. Times take `ms s m h d`, sizes\n`K M G`. The first word that is "
             "no option begins the command.\n\n"
             "The command line wins over `PILLION_*`, that over `GPROFILER_*`, that over the "
             "variables of the back ends.\nFlags in the environment take `1` or `0`. A bad value "
             "or a misspelt name there is a warning and is not used.\n");
    for (enum option_group g = 0; g < GROUP_COUNT; g++)
        markdown_group(g, out);
    buf_text(out, "\n## Exit status\n\n```\n");
    buf_text(out, help_status);
    buf_text(out, "```\n\n## Signals\n\n```\n");
    buf_text(out, help_signals);
    buf_text(out, "```\n\n## Accepted without effect\n\n"
                  "Options of gProfiler and ddprof that mean nothing here, so that their command lines "
                  "keep working. Using one\nis a warning.\n\n"
                  "| option | why it has no effect |\n|---|---|\n");
    for (const struct unused_option *u = unused_options; u->name; u++)
        buf_printf(out, "| `--%s%s` | %s |\n", u->name, u->valued ? " VALUE" : "",
                   u->why);
}
