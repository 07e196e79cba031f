/* What a row of the option table is in words: its label, what it is, its default, its variables and other
 * names. Help, manual page, docs/options.md and completions are made of it. */
#include "cli/help.h"

#include "cli/value.h"

#include <stdio.h>

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
        value_choices(row, ", ", out);
    }
    struct buf value;
    buf_init(&value, 100);
    help_option_default(row, &value);
    if (value.len > 0)
        buf_printf(out, " (%s)", buf_cstr(&value));
    buf_release(&value);
}

static void add_variable(const char *prefix, const char *name, struct buf *out)
{
    char env[OPTION_NAME_MAX + 1];
    option_env_name(name, env);
    buf_printf(out, "%s%s%s", out->len ? ", " : "", prefix, env);
}

bool help_is_set_by_variable(const struct option *row)
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
    if (help_is_set_by_variable(row))
        add_variable("PILLION_", negative, &list);
    if (row->gprofiler)
        add_variable("GPROFILER_", negative, &list);
    for (size_t i = 0; i < option_alias_count; i++)
        if (strcmp(option_aliases[i].option, row->name) == 0 && option_aliases[i].gprofiler)
            add_variable("GPROFILER_", option_aliases[i].name, &list);
    struct buf more;
    buf_init(&more, 1024);
    option_variables(row, &more);
    struct str names = buf_slice(&more);
    while (names.len > 0) {
        buf_text(&list, list.len ? ", " : "");
        buf_str(&list, str_cut(&names, ' '));
    }
    buf_str(out, buf_slice(&list));
    buf_release(&list);
    buf_release(&more);
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
