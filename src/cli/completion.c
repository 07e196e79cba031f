/* Shell completions for bash, zsh and fish, made of the option table and the commands. Offered are
 * options, their values, pillion's own words and commands; behind a command of the user's
 * its own completion is asked. */
#include "cli/help.h"

static bool has_value(const struct option *row)
{
    return row->kind != KIND_FLAG && row->kind != KIND_ACTION;
}

static void add_words(char separator, struct buf *out)
{
    bool first = true;
    for (enum command_id id = 0; id < COMMAND_COUNT; id++) {
        if (!command_is_shown(id))
            continue;
        if (!first)
            buf_byte(out, separator);
        buf_text(out, command_table[id].word);
        first = false;
    }
}

static void add_choices(const struct option *row, struct buf *out)
{
    const char *before = "";
    struct choice c;
    for (size_t i = 0; option_choice(row, i, &c); i++) {
        if (c.hidden)
            continue;
        buf_printf(out, "%s%s", before, c.name);
        before = " ";
    }
}

static void add_names(const struct option *row, const char *separator, struct buf *out)
{
    if (row->letter)
        buf_printf(out, "-%c%s", row->letter, separator);
    buf_printf(out, "--%s", row->name);
}

/* ---- bash ---- */

static void bash_value(const struct option *row, struct buf *out)
{
    if (option_has_choices(row)) {
        buf_text(out, "-W '");
        add_choices(row, out);
        buf_text(out, "'");
    } else if (row->kind == KIND_DIR) {
        buf_text(out, "-d");
    } else if (row->kind == KIND_PATH) {
        buf_text(out, "-f");
    } else if (row->kind == KIND_PIDS) {
        buf_text(out, "-W \"$(cd /proc && echo [0-9]*)\"");
    } else {
        buf_text(out, "-W ''");
    }
}

/* One case per option with a value. -o means two things; the first is the profiling run's. */
static void bash_values(struct buf *out)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option *row = &option_table[i];
        if (!has_value(row))
            continue;
        buf_text(out, "    ");
        add_names(row, "|", out);
        buf_text(out, ") COMPREPLY=($(compgen ");
        bash_value(row, out);
        buf_text(out, " -- \"$cur\")); return ;;\n");
    }
}

/* Finds the word that begins the command, at COMP_WORDS[i]. */
static void bash_find_word(struct buf *out)
{
    buf_text(out, "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                  "        case ${COMP_WORDS[i]} in\n"
                  "        --) ((i++)); break ;;\n"
                  "        ");
    const char *before = "";
    for (size_t i = 0; i < option_count; i++) {
        if (!has_value(&option_table[i]))
            continue;
        buf_text(out, before);
        add_names(&option_table[i], "|", out);
        before = "|";
    }
    buf_text(out, ")\n"
                  "            ((i++)); [[ ${COMP_WORDS[i]} == = ]] && ((i++)) ;;\n"
                  "        -*) ;;\n"
                  "        *) break ;;\n"
                  "        esac\n"
                  "    done\n");
}

/* Behind a command that is not pillion's own, its own completion is asked. */
static void bash_behind_word(struct str topics, struct buf *out)
{
    buf_text(out, "    if ((i < COMP_CWORD)); then\n"
                  "        case ${COMP_WORDS[i]} in\n"
                  "        help) COMPREPLY=($(compgen -W '");
    buf_str(out, topics);
    buf_text(out, "' -- \"$cur\")); return ;;\n        ");
    add_words('|', out);
    buf_text(out, ") ;;\n"
                  "        *) if declare -F _command_offset >/dev/null; then\n"
                  "               _command_offset $i\n"
                  "           else\n"
                  "               COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                  "           fi\n"
                  "           return ;;\n"
                  "        esac\n"
                  "    fi\n");
}

static void bash_options(struct buf *out)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option *row = &option_table[i];
        if (row->label != LABEL_NEGATIVE)
            buf_printf(out, "--%s ", row->name);
        if (row->label != LABEL_PLAIN)
            buf_printf(out, "--no-%s ", row->name);
    }
}

void completion_bash(struct str topics, struct buf *out)
{
    buf_text(out, "# bash completion of pillion: source <(pillion help bash)\n"
                  "_pillion() {\n"
                  "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i\n"
                  "    if [[ $cur == = ]]; then\n"
                  "        cur=\n"
                  "    elif [[ $prev == = ]]; then\n"
                  "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                  "    fi\n"
                  "    COMPREPLY=()\n");
    bash_find_word(out);
    bash_behind_word(topics, out);
    buf_text(out, "    case $prev in\n");
    bash_values(out);
    buf_text(out, "    esac\n"
                  "    if [[ $cur == -* ]]; then\n"
                  "        COMPREPLY=($(compgen -W '");
    bash_options(out);
    buf_text(out, "' -- \"$cur\"))\n"
                  "    elif ((i < COMP_CWORD)); then\n"
                  "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                  "    else\n"
                  "        COMPREPLY=($(compgen -W '");
    add_words(' ', out);
    buf_text(out, "' -- \"$cur\") $(compgen -c -- \"$cur\"))\n"
                  "    fi\n"
                  "}\n"
                  "complete -o filenames -F _pillion pillion\n");
}

/* ---- zsh ---- */

/* Inside '[...]' of an _arguments specification in single quotes. */
static void zsh_text(struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\'') {
            buf_text(out, "'\\''");
            continue;
        }
        if (strchr("[]:\\", text.ptr[i]))
            buf_byte(out, '\\');
        buf_byte(out, text.ptr[i]);
    }
}

static void zsh_value(const struct option *row, struct buf *out)
{
    buf_byte(out, ':');
    zsh_text(str_of(row->value), out);
    buf_byte(out, ':');
    if (option_has_choices(row)) {
        buf_text(out, row->kind == KIND_FORMATS ? "_sequence compadd - " : "(");
        add_choices(row, out);
        buf_text(out, row->kind == KIND_FORMATS ? "" : ")");
    } else if (row->kind == KIND_DIR) {
        buf_text(out, "_files -/");
    } else if (row->kind == KIND_PATH) {
        buf_text(out, "_files");
    } else if (row->kind == KIND_PIDS) {
        buf_text(out, "_pids");
    }
}

static void zsh_option(const struct option *row, struct buf *out)
{
    bool valued = has_value(row);
    buf_text(out, "    ");
    if (row->letter)
        buf_printf(out, "{-%c%s,--%s%s}", row->letter, valued ? "+" : "", row->name,
                   valued ? "=" : "");
    else
        buf_printf(out, "--%s%s%s", row->label == LABEL_NEGATIVE ? "no-" : "", row->name,
                   valued ? "=" : "");
    buf_text(out, "'[");
    zsh_text(str_of(row->help), out);
    buf_text(out, "]");
    if (valued)
        zsh_value(row, out);
    buf_text(out, "' \\\n");
}

void completion_zsh(struct str topics, struct buf *out)
{
    buf_text(out, "#compdef pillion\n"
                  "# zsh completion of pillion: write it to a file _pillion in $fpath\n"
                  "local context state line\n"
                  "_arguments -s -S -A '-*' \\\n");
    for (size_t i = 0; i < option_count; i++) {
        const struct option *row = &option_table[i];
        if (option_commands(row) & COMMAND_BIT(COMMAND_RUN))
            zsh_option(row, out);
    }
    buf_text(out, "    '1: :->word' '*:: :->rest' && return\n"
                  "case $state in\n"
                  "word) _alternative 'own:pillion command:(");
    add_words(' ', out);
    buf_text(out, ")' 'commands:command:_path_commands' ;;\n"
                  "rest) case $words[1] in\n      help) compadd ");
    buf_str(out, topics);
    buf_text(out, " ;;\n      ");
    add_words('|', out);
    buf_text(out, ") _files ;;\n"
                  "      *) _normal ;;\n"
                  "      esac ;;\n"
                  "esac\n");
}

/* ---- fish ---- */

static void fish_text(struct str text, struct buf *out)
{
    buf_byte(out, '\'');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\'' || text.ptr[i] == '\\')
            buf_byte(out, '\\');
        buf_byte(out, text.ptr[i]);
    }
    buf_byte(out, '\'');
}

static void fish_option(const struct option *row, struct buf *out)
{
    buf_text(out, "complete -c pillion");
    if (row->letter)
        buf_printf(out, " -s %c", row->letter);
    buf_printf(out, " -l %s%s", row->label == LABEL_NEGATIVE ? "no-" : "", row->name);
    if (option_has_choices(row)) {
        buf_text(out, " -x -a '");
        add_choices(row, out);
        buf_text(out, "'");
    } else if (row->kind == KIND_DIR) {
        buf_text(out, " -x -a '(__fish_complete_directories)'");
    } else if (row->kind == KIND_PATH) {
        buf_text(out, " -r -F");
    } else if (row->kind == KIND_PIDS) {
        buf_text(out, " -x -a '(__fish_complete_pids)'");
    } else if (has_value(row)) {
        buf_text(out, " -x");
    }
    buf_text(out, " -d ");
    fish_text(str_of(row->help), out);
    buf_byte(out, '\n');
}

void completion_fish(struct str topics, struct buf *out)
{
    buf_text(out, "# fish completion of pillion: pillion help fish | source\n");
    for (size_t i = 0; i < option_count; i++)
        if (option_commands(&option_table[i]) & COMMAND_BIT(COMMAND_RUN))
            fish_option(&option_table[i], out);
    for (enum command_id id = 0; id < COMMAND_COUNT; id++) {
        if (!command_is_shown(id))
            continue;
        buf_printf(out, "complete -c pillion -n __fish_use_subcommand -a %s -d ",
                   command_table[id].word);
        fish_text(str_of(command_table[id].help), out);
        buf_byte(out, '\n');
    }
    buf_text(out, "complete -c pillion -n '__fish_seen_subcommand_from help' -x -a '");
    buf_str(out, topics);
    buf_text(out, "'\ncomplete -c pillion -n __fish_use_subcommand -x -a "
                  "'(__fish_complete_command)'\n"
                  "complete -c pillion -n 'not __fish_use_subcommand' -x -a "
                  "'(__fish_complete_subcommand --fcs-skip=1)'\n");
}
