#include "cli/help.h"

#include "base/nearest.h"
#include "cli/say.h"
#include "cli/value.h"

#include <stdio.h>

const char help_output[] =
    "Every window leaves these files in the output directory, named by the UTC time\n"
    "of its end:\n"
    "\n"
    "  profile_2026-11-20T10:31:04.col     collapsed stacks, as gProfiler writes them\n"
    "  profile_2026-11-20T10:31:04.html    flame graph, one file, no network needed\n"
    "  profile_2026-11-20T10:31:04.pprof   for go tool pprof and what reads its form\n"
    "  profile_2026-11-20T10:31:04.speedscope.json   with --format speedscope\n"
    "\n"
    "The links last_profile.col, last_flamegraph.html and last_profile.pprof name the\n"
    "newest. A file appears under its name only when it is complete.\n"
    "\n"
    "Every weight is CPU time. What was spent but could not be seen is in the profile\n"
    "under names in brackets, such as [lost]; nothing is left out of the sum.\n";

const char help_signals[] =
    "Signals to the profiler's own process, which its first line names:\n"
    "\n"
    "  HUP         open the log file again, read tokens and certificates again, and\n"
    "              send what waits to be sent\n"
    "  USR1        write the running window now and go on\n"
    "  USR2        print the state\n"
    "  TERM, INT   write the last window and end\n"
    "\n"
    "With --launch init, signals sent to pillion itself go to the command.\n";

const char help_status[] =
    "With a command, the command's own exit status; besides that\n"
    "\n"
    "  125   pillion's command line is wrong\n"
    "  126   the command cannot be executed\n"
    "  127   the command was not found\n"
    "  128+N the command was killed by signal N\n"
    "\n"
    "Without a command\n"
    "\n"
    "  0     a profile was made\n"
    "  1     no profile could be made; the last line says why\n"
    "  2     pillion's command line is wrong\n";

/* ---- parts ---- */

void help_option_label(const struct option *row, struct buf *out)
{
    if (row->letter)
        buf_printf(out, "-%c, ", row->letter);
    const char *no = row->label == LABEL_BOTH ? "[no-]" : row->label == LABEL_NEGATIVE ? "no-" : "";
    buf_printf(out, "--%s%s", no, row->name);
    if (row->value)
        buf_printf(out, " %s", row->value);
}

void help_option_default(const struct option *row, struct buf *out)
{
    const char *text = row->shown ? row->shown : row->kind == KIND_FLAG ? NULL : row->fallback;
    if (!text && row->kind == KIND_FORMATS)
        value_default_choices(row, out);
    else
        buf_text(out, text ? text : "");
}

void help_option_text(const struct option *row, struct buf *out)
{
    buf_text(out, row->help);
    if (option_has_choices(row)) {
        buf_text(out, ": ");
        value_choices(row, row->state == STATE_WORKS, ", ", out);
    }
    struct buf value;
    buf_init(&value, 100);
    help_option_default(row, &value);
    if (row->state == STATE_NOT_YET)
        buf_text(out, " (not available yet)");
    else if (value.len > 0)
        buf_printf(out, " (%s)", buf_cstr(&value));
    buf_release(&value);
}

static void add_variable(const char *prefix, const char *name, struct buf *out)
{
    char env[OPTION_NAME_MAX + 1];
    option_env_name(name, env);
    buf_printf(out, "%s%s%s", out->len ? ", " : "", prefix, env);
}

/* A variable sets the first row of its name: render has a --format, too. */
static bool is_set_by_variable(const struct option *row)
{
    return row->kind != KIND_ACTION &&
           option_find(row->name, strlen(row->name), COMMAND_ALL).row == row;
}

void help_option_variables(const struct option *row, struct buf *out)
{
    struct buf list;
    buf_init(&list, 1024);
    char negative[OPTION_NAME_MAX + 4];
    snprintf(negative, sizeof negative, "%s%s", row->label == LABEL_NEGATIVE ? "no-" : "",
             row->name);
    if (is_set_by_variable(row))
        add_variable("PILLION_", negative, &list);
    if (row->gprofiler)
        add_variable("GPROFILER_", negative, &list);
    for (size_t i = 0; i < option_alias_count; i++)
        if (strcmp(option_aliases[i].option, row->name) == 0 && option_aliases[i].gprofiler)
            add_variable("GPROFILER_", option_aliases[i].name, &list);
    struct str names = str_of(row->env);
    while (names.len > 0) {
        buf_text(&list, list.len ? ", " : "");
        buf_str(&list, str_cut(&names, ' '));
    }
    buf_str(out, buf_slice(&list));
    buf_release(&list);
}

void help_option_aliases(const struct option *row, struct buf *out)
{
    bool first = true;
    for (size_t i = 0; i < option_alias_count; i++) {
        const struct option_alias *alias = &option_aliases[i];
        if (strcmp(alias->option, row->name) != 0)
            continue;
        buf_printf(out, "%s--%s", first ? "" : ", ", alias->name);
        if (alias->letter)
            buf_printf(out, ", -%c", alias->letter);
        if (alias->value)
            buf_printf(out, " (%s)", alias->value);
        first = false;
    }
}

/* Words from `column` on, broken before HELP_COLUMNS, further lines indented. */
static void add_wrapped(struct str text, size_t column, size_t indent, struct buf *out)
{
    bool first = true;
    while (text.len > 0) {
        struct str word = str_cut(&text, ' ');
        if (!first && column + 1 + word.len > HELP_COLUMNS) {
            buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            buf_byte(out, ' ');
            column++;
        }
        buf_str(out, word);
        column += word.len;
        first = false;
    }
    buf_byte(out, '\n');
}

static void add_option(const struct option *row, struct buf *out)
{
    struct buf label, text;
    buf_init(&label, 200);
    buf_init(&text, 1000);
    buf_text(&label, row->letter ? "  " : "      ");
    help_option_label(row, &label);
    help_option_text(row, &text);
    buf_str(out, buf_slice(&label));
    if (label.len + 2 > HELP_COLUMN)
        buf_printf(out, "\n%*s", HELP_COLUMN, "");
    else
        buf_printf(out, "%*s", (int)(HELP_COLUMN - label.len), "");
    add_wrapped(buf_slice(&text), HELP_COLUMN, HELP_COLUMN, out);
    buf_release(&label);
    buf_release(&text);
}

/* A group's options that one of `commands` knows; nothing when there is none. */
static void add_group(enum option_group group, unsigned commands, struct buf *out)
{
    bool first = true;
    for (size_t i = 0; i < option_count; i++) {
        const struct option *row = &option_table[i];
        if (row->group != group || !(option_commands(row) & commands))
            continue;
        if (first)
            buf_printf(out, "%s\n", option_group_title[group]);
        first = false;
        add_option(row, out);
    }
}

/* ---- the screen ---- */

static const char usage[] =
    "pillion profiles the programs it shares a container with.\n"
    "\n"
    "  pillion [options] [--] command [args...]   run a command and profile it\n"
    "  pillion [options] -p PID[,PID...]          profile running processes\n"
    "  pillion [options] -a                       profile every visible process\n";

/* An example is shown when what it shows is built. */
static const struct example {
    const char *line, *meaning;
    const char *option;      /* that must work, or NULL */
    enum command_id command; /* that must work */
} examples[] = {
    {"pillion -- ./serve.sh", "flame graph in ./last_flamegraph.html", NULL, COMMAND_RUN},
    {"pillion -p 812 -d 30 -o /tmp", "30 seconds of process 812", NULL, COMMAND_RUN},
    {"pillion -u -S checkout -- ./serve.sh", "send every minute, as \"checkout\"",
     "upload-results", COMMAND_RUN},
    {"pillion doctor", "what works here, and what to change", NULL, COMMAND_DOCTOR},
};

static bool works(const struct example *e)
{
    struct option_match match = {0};
    if (e->option)
        match = option_find(e->option, strlen(e->option), COMMAND_ALL);
    return !command_table[e->command].not_yet && (!match.row || match.row->state == STATE_WORKS);
}

static void add_introduction(struct buf *out)
{
    buf_text(out, usage);
    const char *before = "  pillion ";
    for (enum command_id id = 0; id < COMMAND_COUNT; id++) {
        const struct command_info *info = &command_table[id];
        if (!command_is_shown(id))
            continue;
        buf_printf(out, "%s%s%s", before, info->word, id == COMMAND_HELP ? " TOPIC" : "");
        before = " | ";
    }
    buf_text(out, "\n\nExamples\n");
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        if (works(&examples[i]))
            buf_printf(out, "  %-38s %s\n", examples[i].line, examples[i].meaning);
    buf_byte(out, '\n');
    add_group(GROUP_WHAT, COMMAND_ALL, out);
    add_group(GROUP_WHERE, COMMAND_ALL, out);
}

static void add_footer(struct buf *out)
{
    buf_text(out, "Every option --like-this is also PILLION_LIKE_THIS.\n"
                  "All options: pillion help options.");
    if (!command_table[COMMAND_DOCTOR].not_yet)
        buf_text(out, "  Problems: pillion doctor.");
    buf_byte(out, '\n');
}

void help_screen(struct buf *out)
{
    add_introduction(out);
    add_footer(out);
}

static void add_groups(enum option_group from, struct buf *out)
{
    for (enum option_group g = from; g < GROUP_COUNT; g++) {
        buf_text(out, out->len ? "\n" : "");
        add_group(g, COMMAND_ALL, out);
    }
}

void help_everything(struct buf *out)
{
    add_introduction(out);
    add_groups(GROUP_TARGETS, out);
    buf_byte(out, '\n');
    add_footer(out);
}

/* ---- topics ---- */

static void topic_options(struct buf *out)
{
    add_groups(GROUP_WHAT, out);
}

static void topic_environment(struct buf *out)
{
    buf_text(out,
             "Every option --like-this is also PILLION_LIKE_THIS; flags take 1 or 0. The\n"
             "command line wins over PILLION_, that over GPROFILER_, that over the variables\n"
             "of the back ends. A bad value is a warning and is not used.\n\n");
    for (size_t i = 0; i < option_count; i++) {
        const struct option *row = &option_table[i];
        if (!is_set_by_variable(row) || row->state == STATE_NO_EFFECT)
            continue;
        struct buf text;
        buf_init(&text, 1024);
        help_option_variables(row, &text);
        buf_text(&text, row->state == STATE_NOT_YET ? " (not available yet)" : "");
        buf_text(out, "  ");
        add_wrapped(buf_slice(&text), 2, 6, out);
        buf_release(&text);
    }
}

static void topic_signals(struct buf *out)
{
    buf_text(out, help_signals);
}

static void topic_status(struct buf *out)
{
    buf_text(out, help_status);
}

static void topic_output(struct buf *out)
{
    buf_text(out, help_output);
}

static void topic_containers(struct buf *out)
{
    buf_text(out, help_containers);
}

static void topic_fargate(struct buf *out)
{
    buf_text(out, help_fargate);
}

static void topic_alpine(struct buf *out)
{
    buf_text(out, help_alpine);
}

static const struct topic {
    const char *name;
    const char *help;
    void (*write)(struct buf *out);
    const char *also; /* blank-separated words that are looked for, too */
} topics[] = {
    {"options", "every option", topic_options, ""},
    {"environment", "the variables that set them", topic_environment, "variables"},
    {"output", "the files of a window", topic_output, "files"},
    {"signals", "what the profiler does on which signal", topic_signals, ""},
    {"status", "exit statuses", topic_status, ""},
    {"containers", "Docker, Podman, pods", topic_containers, "container docker podman kubernetes"},
    {"fargate", "ECS with Fargate: three recipes", topic_fargate, "ecs aws"},
    {"alpine", "Alpine, distroless and scratch images", topic_alpine, "musl scratch distroless"},
    {"man", "the manual page: pillion help man | man -l -", manual_roff, ""},
    {"bash", "completion: source <(pillion help bash)", completion_bash, ""},
    {"zsh", "completion: a file _pillion in $fpath", completion_zsh, ""},
    {"fish", "completion: pillion help fish | source", completion_fish, ""},
    {"markdown", "every option, as docs/options.md", manual_markdown, ""},
};
enum { TOPIC_COUNT = sizeof topics / sizeof topics[0] };

void help_topic_names(char separator, struct buf *out)
{
    for (size_t i = 0; i < TOPIC_COUNT; i++) {
        if (i > 0)
            buf_byte(out, separator);
        buf_text(out, topics[i].name);
    }
}

static void add_topics(struct buf *out)
{
    buf_text(out, "\nTopics of pillion help\n");
    for (size_t i = 0; i < TOPIC_COUNT; i++)
        buf_printf(out, "  %-12s %s\n", topics[i].name, topics[i].help);
}

/* It takes the options of a profile, whose answer it gives; these are the ones that change it. */
static void add_doctor(struct buf *out)
{
    static const char *const names[] = {"pids", "json", "output-dir", "perf-mode", "python-mode"};
    buf_byte(out, '\n');
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        add_option(option_find(names[i], strlen(names[i]), COMMAND_BIT(COMMAND_DOCTOR)).row, out);
    buf_text(out, "\nThe other options of a profile may stand here, too, and change nothing.\n"
                  "Exit status: 0 some profile can be made, 1 none, 2 the call is wrong.\n");
}

static void add_command(enum command_id id, struct buf *out)
{
    const struct command_info *info = &command_table[id];
    struct buf text;
    buf_init(&text, 1000);
    buf_printf(&text, "  %s", info->help);
    buf_printf(out, "pillion %s %s\n", info->word, info->usage);
    add_wrapped(buf_slice(&text), 0, 2, out);
    buf_release(&text);
    if (id == COMMAND_DOCTOR) {
        add_doctor(out);
        return;
    }
    /* what is taken without effect is no help here; `help options` lists it */
    for (enum option_group g = 0; g < GROUP_ELSEWHERE; g++) {
        size_t before = out->len;
        buf_byte(out, '\n');
        size_t start = out->len;
        add_group(g, COMMAND_BIT(id), out);
        if (out->len == start)
            out->len = before;
    }
    if (id == COMMAND_HELP)
        add_topics(out);
}

static void add_facts(const char *title, const struct option *row,
                      void (*make)(const struct option *, struct buf *), struct buf *out)
{
    struct buf text;
    buf_init(&text, 1024);
    buf_text(&text, title);
    size_t bare = text.len;
    make(row, &text);
    if (text.len > bare) {
        buf_printf(out, "%*s", HELP_COLUMN, "");
        add_wrapped(buf_slice(&text), HELP_COLUMN, HELP_COLUMN, out);
    }
    buf_release(&text);
}

/* All rows of this name: two commands may have an option of one name each. */
static bool add_named_option(const char *word, struct buf *out)
{
    struct option_match match = option_find(word, strlen(word), COMMAND_ALL);
    for (size_t i = 0; match.row && i < option_count; i++) {
        const struct option *row = &option_table[i];
        if (strcmp(row->name, match.row->name) != 0)
            continue;
        add_option(row, out);
        add_facts("also ", row, help_option_aliases, out);
        add_facts("environment: ", row, help_option_variables, out);
    }
    return match.row != NULL;
}

static bool unknown_topic(const char *topic, struct err *err)
{
    struct nearest near = nearest_to(topic, strlen(topic));
    for (size_t i = 0; i < TOPIC_COUNT; i++)
        nearest_offer(&near, topics[i].name);
    for (enum command_id id = 0; id < COMMAND_COUNT; id++)
        if (command_is_shown(id))
            nearest_offer(&near, command_table[id].word);
    return err_set(err, ERR_USAGE, 0, "no help about %.60s; %s%s%s", topic,
                   near.count ? "did you mean " : "topics: pillion help help",
                   near.count ? near.word[0] : "", near.count ? "?" : "");
}

static bool is_called(const struct topic *topic, const char *word)
{
    struct str also = str_of(topic->also);
    bool found = strcmp(topic->name, word) == 0;
    while (also.len > 0 && !found)
        found = str_eq(str_cut(&also, ' '), str_of(word));
    return found;
}

bool help_topic(const char *topic, struct buf *out, struct err *err)
{
    for (size_t i = 0; i < TOPIC_COUNT; i++) {
        if (is_called(&topics[i], topic)) {
            topics[i].write(out);
            return true;
        }
    }
    enum command_id id = command_find(topic);
    if (!command_is_shown(id))
        return add_named_option(topic, out) || unknown_topic(topic, err);
    add_command(id, out);
    return true;
}

int help_run(const struct request *request)
{
    struct buf out;
    struct err err = {0};
    bool ok = true;
    buf_init(&out, HELP_MAX_BYTES);
    if (request->word_count > 0)
        ok = help_topic(request->words[0], &out, &err);
    else if (request->help_for != COMMAND_RUN)
        add_command(request->help_for, &out);
    else if (request->long_help)
        help_everything(&out);
    else
        help_screen(&out);
    int status = EXIT_USAGE;
    if (ok)
        status = say_result(buf_slice(&out)) ? 0 : 1;
    else
        say("%s", err.text);
    buf_release(&out);
    return status;
}
