/* The help: the screens that are made of the option table, and the topics of `pillion help`. Other
 * files write the manual page and docs/options.md (manual.c), completions (completion.c) and screens
 * of plain text (screens.c). */
#include "cli/help.h"

#include "base/nearest.h"
#include "cli/say.h"

#include <stdio.h>

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

static const struct example {
    const char *line, *meaning;
} examples[] = {
    {"pillion -- ./serve.sh", "flame graph in ./last_flamegraph.html"},
    {"pillion -p 812 -d 30 -o /tmp", "30 seconds of 812 and all below it"},
    {"pillion -u -S checkout -- ./serve.sh", "send every minute, as \"checkout\""},
    {"pillion doctor", "what works here, and what to change"},
};

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
        buf_printf(out, "  %-38s %s\n", examples[i].line, examples[i].meaning);
    buf_byte(out, '\n');
    add_group(GROUP_WHAT, COMMAND_ALL, out);
    add_group(GROUP_WHERE, COMMAND_ALL, out);
}

static void add_footer(struct buf *out)
{
    buf_text(out, "Every option --like-this is also PILLION_LIKE_THIS.\n"
                  "All options: pillion help options.  Problems: pillion doctor.\n");
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
        if (!help_is_set_by_variable(row))
            continue;
        struct buf text;
        buf_init(&text, 1024);
        help_option_variables(row, &text);
        buf_text(out, "  ");
        add_wrapped(buf_slice(&text), 2, 6, out);
        buf_release(&text);
    }
}

static void topic_compatibility(struct buf *out)
{
    buf_text(out, "Options of gProfiler and ddprof that are accepted and have no effect here:\n\n");
    for (const struct unused_option *u = unused_options; u->name; u++) {
        buf_printf(out, "  --%s%s\n      %s\n", u->name, u->valued ? " VALUE" : "", u->why);
    }
}

static const struct topic {
    const char *name;
    const char *help;
    const char *also; /* blank-separated words that are looked for, too */
    const char *text;                /* a screen of screens.c, or … */
    void (*write)(struct buf *out);  /* … its writer, or … */
    void (*complete)(struct str topics, struct buf *out); /* … a completion, which offers the topics */
} topics[] = {
    {"options", "every option", "", .write = topic_options},
    {"environment", "the variables that set them", "variables", .write = topic_environment},
    {"output", "the files of a window", "files", .write = help_output},
    {"signals", "what the profiler does on which signal", "", .text = help_signals},
    {"status", "exit statuses", "", .text = help_status},
    {"containers", "Docker, Podman, pods", "container docker podman kubernetes", .text = help_containers},
    {"fargate", "ECS with Fargate: three recipes", "ecs aws", .text = help_fargate},
    {"alpine", "Alpine, distroless and scratch images", "musl scratch distroless", .text = help_alpine},
    {"compatibility", "gProfiler's and ddprof's options without effect", "gprofiler ddprof",
     .write = topic_compatibility},
    {"man", "the manual page: pillion help man | man -l -", "", .write = manual_roff},
    {"bash", "completion: source <(pillion help bash)", "", .complete = completion_bash},
    {"zsh", "completion: a file _pillion in $fpath", "", .complete = completion_zsh},
    {"fish", "completion: pillion help fish | source", "", .complete = completion_fish},
    {"markdown", "every option, as docs/options.md", "", .write = manual_markdown},
};
enum { TOPIC_COUNT = sizeof topics / sizeof topics[0] };

static void write_topic(const struct topic *topic, struct buf *out)
{
    if (topic->text)
        buf_text(out, topic->text);
    else if (topic->write)
        topic->write(out);
    else {
        struct buf names;
        buf_init(&names, TOPIC_COUNT * 20);
        for (size_t i = 0; i < TOPIC_COUNT; i++)
            buf_printf(&names, "%s%s", i ? " " : "", topics[i].name);
        topic->complete(buf_slice(&names), out);
        buf_release(&names);
    }
}

static void add_topics(struct buf *out)
{
    buf_text(out, "\nTopics of pillion help\n");
    for (size_t i = 0; i < TOPIC_COUNT; i++)
        buf_printf(out, "  %-13s %s\n", topics[i].name, topics[i].help);
}

static void add_options(struct str names, enum command_id id, struct buf *out)
{
    buf_byte(out, '\n');
    while (names.len > 0) {
        struct str name = str_cut(&names, ' ');
        add_option(option_find(name.ptr, name.len, COMMAND_BIT(id)).row, out);
    }
}

static void add_top(struct buf *out)
{
    add_options(STR("pids all once interval json output-dir profiling-frequency inlines color"), COMMAND_TOP, out);
    buf_text(out, "\nThe other options of a profile that say what is profiled and how hold here, too.\n"
                  "Keys: ? shows them, q ends.\n");
}

/* It takes the options of a profile, whose answer it gives; these are the ones that change it. */
static void add_doctor(struct buf *out)
{
    add_options(STR("pids json output-dir perf-mode python-mode"), COMMAND_DOCTOR, out);
    buf_text(out, "\nThe other options of a profile are accepted and change nothing here.\n"
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
    if (id == COMMAND_TOP || id == COMMAND_DOCTOR) {
        (id == COMMAND_TOP ? add_top : add_doctor)(out);
        return;
    }
    for (enum option_group g = 0; g < GROUP_COUNT; g++) {
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
    if (match.unused)
        buf_printf(out, "  --%s has no effect: %s\n", match.unused->name, match.unused->why);
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
            write_topic(&topics[i], out);
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
