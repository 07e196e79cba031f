/* Turns command line and environment into one struct request: reads variables, then options, then
 * resolves what depends on what. Precedence and syntax are explained in request.h; how a text
 * becomes a value is in value.c. */
#include "cli/request.h"

#include "base/nearest.h"
#include "cli/value.h"
#include "deliver/backend.h"
#include "encode/encode.h"
#include "os/secret.h"

#include <stdio.h>

enum { WARNINGS_MAX = 16 * 1024, SPELLED_MAX = 100 };

struct parser {
    struct request *out;
    char **argv;
    int argc;
    int next;          /* index of the argument to be read next */
    unsigned commands; /* options of which commands are known here */
    bool only_words;   /* behind "--" */
};

static size_t row_index(const struct option *row)
{
    return (size_t)(row - option_table);
}

static bool was_given(const struct request *out, const char *name, enum source source)
{
    struct option_match match = option_find(name, strlen(name), COMMAND_BIT(out->command));
    return match.row && out->source[row_index(match.row)] >= source;
}

static void warn(struct request *out, const char *subject, const char *text)
{
    buf_printf(&out->warnings, "%s %s\n", subject, text);
}

/* A flag as it is when nobody says anything, before it is negated for storage. */
static bool flag_default(const struct option *row)
{
    bool value = false;
    if (row->fallback)
        value_flag(row->fallback, &value);
    return value;
}

static void set_defaults(struct request *out)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option *row = &option_table[i];
        if (row->kind == KIND_FLAG)
            value_store_flag(row, flag_default(row), out);
        else if (row->fallback)
            value_store(row, row->fallback, out, NULL);
        else if (row->kind == KIND_FORMATS && !row->shown)
            value_store_default_choices(row, out);
    }
}

/* How a match is spelled: --no-python, -f, --no-verify. */
static void spell(const struct option_match *match, bool letter, char out[static SPELLED_MAX])
{
    const char *name = match->unused  ? match->unused->name
                       : match->alias ? match->alias->name
                                      : match->row->name;
    if (letter)
        snprintf(out, SPELLED_MAX, "-%c",
                 match->unused  ? match->unused->letter
                 : match->alias ? match->alias->letter
                                : match->row->letter);
    else
        snprintf(out, SPELLED_MAX, "--%s%s", match->negated ? "no-" : "", name);
}

static const char *spelled_name(const struct option_match *match, char out[static SPELLED_MAX])
{
    spell(match, false, out);
    return out;
}

/* Once each. */
static bool explain(struct request *out, const struct option_match *match, const char *spelled, struct err *err)
{
    char line[ERR_TEXT_MAX];
    if (match->unused->refused)
        return err_set(err, ERR_USAGE, 0, "%s is not done here; %s", spelled, match->unused->why);
    int len = snprintf(line, sizeof line, "%s has no effect: %s\n", spelled, match->unused->why);
    if (out->warnings.len == 0 || !memmem(out->warnings.ptr, out->warnings.len, line, (size_t)len))
        buf_text(&out->warnings, line);
    return true;
}

static void note_source(struct request *out, const struct option *row, enum source source)
{
    if (row->kind == KIND_PIDS && out->source[row_index(row)] != source)
        out->settings.scope.pid_count = 0;
    if (row->kind == KIND_LIST && out->source[row_index(row)] != source)
        ((struct pattern_list *)((char *)out + row->at))->count = 0;
    if ((row->kind == KIND_SECRETS || row->kind == KIND_TEXTS) && out->source[row_index(row)] != source)
        ((struct text_list *)((char *)out + row->at))->count = 0;
    if (row->kind == KIND_EVENTS && out->source[row_index(row)] != source)
        out->settings.sampling.events = (struct event_list){0};
    out->source[row_index(row)] = (unsigned char)source;
}

static bool apply_flag(struct request *out, const struct option_match *match, bool value,
                       const char *spelled, enum source source)
{
    const struct option *row = match->row;
    if (match->unused)
        return explain(out, match, spelled, NULL);
    note_source(out, row, source);
    value_store_flag(row, value, out);
    out->given[row_index(row)] = (struct given){.text = value ? "on" : "off"};
    return true;
}

static bool apply_value(struct request *out, const struct option_match *match, const char *text,
                        const char *spelled, enum source source, struct err *err)
{
    const struct option *row = match->row;
    if (match->unused && text[0] == '\0')
        return err_set(err, ERR_USAGE, 0, "%s expects %s, got \"\"", spelled, match->row->value);
    if (match->unused)
        return explain(out, match, spelled, err);
    size_t pids = out->settings.scope.pid_count;
    struct event_list events = out->settings.sampling.events;
    enum source before = out->source[row_index(row)];
    note_source(out, row, source);
    struct err why;
    if (value_store(row, text, out, &why)) {
        out->given[row_index(row)] = (struct given){.text = text};
        return true;
    }
    out->source[row_index(row)] = (unsigned char)before;
    out->settings.scope.pid_count = pids;
    out->settings.sampling.events = events;
    return err_set(err, why.kind, 0, "%s %s", spelled, why.text);
}

/* ---- environment ---- */

static bool from_backend(enum source source)
{
    return source == SOURCE_BACKEND;
}

/* One variable whose option is known. What is wrong with it is a warning, or nothing where the
 * variable is the profiled program's own as well. */
static void apply_variable(struct request *out, const struct option_match *match,
                           const char *variable, const char *text, enum source source)
{
    struct err why;
    bool value, ok;
    if (match->row->kind == KIND_ACTION || text[0] == '\0')
        return;
    if (option_takes_value(match)) {
        ok = apply_value(out, match, text, variable, source, &why);
    } else if (!value_flag(text, &value)) {
        struct buf quoted;
        buf_init(&quoted, SPELLED_MAX);
        value_quote(text, &quoted);
        ok = err_set(&why, ERR_USAGE, 0, "%s expects 1 or 0, got %s", variable, buf_cstr(&quoted));
        buf_release(&quoted);
    } else if (match->alias && match->alias->value) {
        ok = !value || apply_value(out, match, match->alias->value, variable, source, &why);
    } else {
        ok = apply_flag(out, match, value != match->negated, variable, source);
    }
    if (!ok && !from_backend(source))
        warn(out, why.text, "(ignored)");
}

/* After a variable was applied, if it was: then the row has a text without a name so far. */
static void note_variable(struct request *out, const struct option *row, struct str variable)
{
    struct given *given = &out->given[row_index(row)];
    if (given->text && given->variable.len == 0)
        given->variable = variable;
}

static void offer_env_name(void *context, const char *name)
{
    char env[OPTION_NAME_MAX + 1];
    option_env_name(name, env);
    nearest_offer(context, env);
}

static void warn_unknown_variable(struct request *out, const char *variable, const char *name)
{
    struct nearest near = nearest_to(name, strlen(name));
    option_each_name(COMMAND_ALL, offer_env_name, &near);
    if (near.count)
        buf_printf(&out->warnings, "%s is not a setting; did you mean PILLION_%s?\n", variable,
                   near.word[0]);
    else
        buf_printf(&out->warnings, "%s is not a setting; see pillion help environment\n", variable);
}

/* "PROFILING_FREQUENCY" -> profiling-frequency; the table knows '_' as '-'. */
static struct option_match find_variable(const char *name)
{
    char lower[OPTION_NAME_MAX + 1];
    size_t len = 0;
    for (; name[len] && len < OPTION_NAME_MAX; len++)
        lower[len] = (char)(name[len] >= 'A' && name[len] <= 'Z' ? name[len] + 32 : name[len]);
    return option_find(lower, len, COMMAND_ALL);
}

static void read_prefixed(struct request *out, char *const *environment, const char *prefix,
                          enum source source)
{
    size_t prefix_len = strlen(prefix);
    for (; *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        char variable[SPELLED_MAX];
        if (!equals || strncmp(*environment, prefix, prefix_len) != 0)
            continue;
        snprintf(variable, sizeof variable, "%.*s", (int)(equals - *environment), *environment);
        struct option_match match = find_variable(variable + prefix_len);
        bool gprofiler = match.unused  ? match.unused->gprofiler
                         : match.alias ? match.alias->gprofiler
                                       : match.row && match.row->gprofiler;
        if (match.row && (source == SOURCE_PILLION || gprofiler)) {
            apply_variable(out, &match, variable, equals + 1, source);
            if (!match.unused)
                note_variable(out, match.row, (struct str){*environment, (size_t)(equals - *environment)});
        } else if (source == SOURCE_PILLION)
            warn_unknown_variable(out, variable, variable + prefix_len);
    }
}

/* Its value, and its name as the environment has it. */
static const char *look_up(char *const *environment, struct str name, struct str *found)
{
    for (; *environment; environment++)
        if (strncmp(*environment, name.ptr, name.len) == 0 && (*environment)[name.len] == '=' &&
            (*environment)[name.len + 1] != '\0') {
            *found = (struct str){*environment, name.len};
            return *environment + name.len + 1;
        }
    return NULL;
}

/* One buffer for all rows: this is done before the command starts, and one for each row would be some eighty
 * pages asked of the kernel and given back. */
static void read_backend_variables(struct request *out, char *const *environment)
{
    struct buf list;
    buf_init(&list, 1024);
    for (size_t i = 0; i < option_count; i++) {
        struct str found = {0};
        const char *text = NULL;
        buf_clear(&list);
        option_variables(&option_table[i], &list);
        for (struct str names = buf_slice(&list); names.len > 0 && !text;)
            text = look_up(environment, str_cut(&names, ' '), &found);
        if (!text)
            continue;
        apply_variable(out, &(struct option_match){.row = &option_table[i]}, "", text, SOURCE_BACKEND);
        note_variable(out, &option_table[i], found);
    }
    buf_release(&list);
}

/* The agent of ECS sets it; there a task's seccomp profile cannot be chosen, and of capabilities only
 * SYS_PTRACE can be added. */
static bool is_fargate(char *const *environment)
{
    struct str name;
    const char *place = look_up(environment, STR("AWS_EXECUTION_ENV"), &name);
    return place && strcmp(place, "AWS_ECS_FARGATE") == 0;
}

/* ---- arguments ---- */

static void offer_option(void *context, const char *name)
{
    nearest_offer(context, name);
}

/* An option of another of pillion's commands. */
static bool misplaced_option(const struct parser *p, const struct option_match *match,
                             const char *spelled, struct err *err)
{
    const struct option *row = match->row;
    const char *word = command_table[p->out->command].word;
    if (p->out->command == COMMAND_HELP)
        return err_set(err, ERR_USAGE, 0, "%s is not an option of help; try: pillion help %s", spelled,
                       match->unused ? match->unused->name : row->name);
    if (word)
        return err_set(err, ERR_USAGE, 0, "%s is not an option of %s", spelled, word);
    for (enum command_id id = 0; id < COMMAND_COUNT && !word; id++)
        if (command_table[id].word && (option_commands(row) & COMMAND_BIT(id)))
            word = command_table[id].word;
    return err_set(err, ERR_USAGE, 0, "%s is an option of another command: pillion %s ... %s", spelled,
                   word ? word : "help", spelled);
}

/* "; did you mean" with at most two names, each with its letter. */
static bool unknown_option(const struct parser *p, const char *name, size_t len, struct err *err)
{
    char spelled[SPELLED_MAX];
    struct option_match elsewhere = option_find(name, len, COMMAND_ALL);
    if (elsewhere.row)
        return misplaced_option(p, &elsewhere, spelled_name(&elsewhere, spelled), err);
    struct nearest near = nearest_to(name, len);
    option_each_name(p->commands, offer_option, &near);
    struct buf hint;
    buf_init(&hint, ERR_TEXT_MAX);
    for (size_t i = 0; i < near.count; i++) {
        struct option_match match = option_find(near.word[i], strlen(near.word[i]), p->commands);
        buf_printf(&hint, "%s--%s", i ? " or " : "; did you mean ", near.word[i]);
        if (match.row && !match.alias && !match.negated && match.row->letter)
            buf_printf(&hint, " (-%c)", match.row->letter);
    }
    err_set(err, ERR_USAGE, 0, "unknown option --%.*s%s%s", (int)(len < 80 ? len : 80), name,
            buf_cstr(&hint), near.count ? "?" : "; see pillion help options");
    buf_release(&hint);
    return false;
}

static bool unknown_letter(const struct parser *p, char letter, struct err *err)
{
    char spelled[SPELLED_MAX];
    struct option_match elsewhere = option_find_letter(letter, COMMAND_ALL);
    if (!elsewhere.row)
        return err_set(err, ERR_USAGE, 0, "unknown option -%c; see pillion -h", letter);
    spell(&elsewhere, true, spelled);
    return misplaced_option(p, &elsewhere, spelled, err);
}

static bool act(struct parser *p, const struct option *row, bool letter)
{
    struct request *out = p->out;
    if (strcmp(row->name, "version") == 0) {
        out->command = COMMAND_VERSION;
    } else {
        out->help_for = out->command == COMMAND_HELP ? COMMAND_RUN : out->command;
        out->command = COMMAND_HELP;
        out->long_help = !letter;
        out->word_count = 0;
    }
    p->next = p->argc;
    return true;
}

/* The value of an option: the rest of its own argument or the next argument. */
static char *take_value(struct parser *p, char *attached)
{
    if (attached)
        return attached;
    return p->next < p->argc ? p->argv[p->next++] : NULL;
}

/* Argv can be read in /proc by whoever sees the process: what stands there is overwritten, and the
 * copy is used. */
static const char *hide_secret(struct request *out, char *text, struct err *err)
{
    if (text[0] == '\0')
        return text;
    bool room = out->secret_count < REQUEST_SECRETS_MAX;
    char *copy = secret_take(text);
    if (!copy || !room) {
        secret_forget(copy);
        err_set(err, ERR_LIMIT, 0, "too many secrets");
        return NULL;
    }
    out->secrets[out->secret_count++] = copy;
    return copy;
}

static bool is_secret(const struct option *row)
{
    return row->kind == KIND_SECRET || row->kind == KIND_SECRETS;
}

/* ddprof's -o is where its log goes; a folder of that name is hardly meant. */
static bool is_log_mode(const struct option_match *match, bool letter, const char *text)
{
    static const char *const modes[] = {"stdout", "stderr", "syslog", "disabled"};
    bool is = false;
    for (size_t i = 0; letter && match->row->letter == 'o' && i < sizeof modes / sizeof modes[0]; i++)
        is = is || strcmp(text, modes[i]) == 0;
    return is;
}

static bool apply(struct parser *p, const struct option_match *match, bool letter,
                  char *attached, struct err *err)
{
    char spelled[SPELLED_MAX];
    spell(match, letter, spelled);
    if (option_takes_value(match)) {
        char *typed = take_value(p, attached);
        if (!typed)
            return err_set(err, ERR_USAGE, 0, "%s needs a value: %s %s", spelled, spelled,
                           match->row->value);
        const char *text = is_secret(match->row) ? hide_secret(p->out, typed, err) : typed;
        if (!text)
            return false;
        if (is_log_mode(match, letter, text)) {
            buf_printf(&p->out->warnings,
                       "-o %s has no effect: the log goes to standard error, or to --log-file; for a folder of this "
                       "name: -o ./%s\n", text, text);
            return true;
        }
        return apply_value(p->out, match, text, spelled, SOURCE_ARGUMENT, err);
    }
    if (match->row->kind == KIND_ACTION)
        return act(p, match->row, letter);
    if (match->alias && match->alias->value)
        return apply_value(p->out, match, match->alias->value, spelled, SOURCE_ARGUMENT, err);
    return apply_flag(p->out, match, !match->negated, spelled, SOURCE_ARGUMENT);
}

static bool long_option(struct parser *p, char *text, struct err *err)
{
    size_t len = strcspn(text, "=");
    struct option_match match = option_find(text, len, p->commands);
    if (!match.row)
        return unknown_option(p, text, len, err);
    char *attached = text[len] == '=' ? text + len + 1 : NULL;
    if (attached && !option_takes_value(&match)) {
        bool value;
        bool settable = match.row->kind == KIND_FLAG && !match.negated;
        if (!settable || !value_flag(attached, &value))
            return err_set(err, ERR_USAGE, 0, "--%.*s takes no value", (int)len, text);
        match.negated = !value;
    }
    return apply(p, &match, false, attached, err);
}

static bool letters(struct parser *p, char *text, struct err *err)
{
    while (*text) {
        struct option_match match = option_find_letter(*text, p->commands);
        if (!match.row)
            return unknown_letter(p, *text, err);
        text++;
        bool valued = option_takes_value(&match);
        if (!apply(p, &match, true, valued && *text ? text : NULL, err))
            return false;
        if (valued || match.row->kind == KIND_ACTION)
            return true;
    }
    return true;
}

static bool is_option(const char *argument)
{
    return argument[0] == '-' && argument[1] != '\0';
}

/* One of pillion's own commands: were the options before it meant for it? */
static bool enter_command(struct parser *p, enum command_id id, struct err *err)
{
    struct request *out = p->out;
    out->command = id;
    p->commands = COMMAND_BIT(id);
    for (size_t i = 0; i < option_count; i++)
        if (out->source[i] == SOURCE_ARGUMENT && !(option_commands(&option_table[i]) & p->commands))
            return err_set(err, ERR_USAGE, 0, "--%s is not an option of %s, whose options follow "
                                              "the word", option_table[i].name, command_table[id].word);
    return true;
}

/* ddprof's -u has a value, ours has none: "-u 59". */
static bool is_upload_period(const struct parser *p)
{
    const char *word = p->argv[p->next];
    return !p->only_words && p->next > 1 && strcmp(p->argv[p->next - 1], "-u") == 0 &&
           word[strspn(word, "0123456789")] == '\0';
}

static bool take_upload_period(struct parser *p, struct err *err)
{
    const char *period = p->argv[p->next++];
    static const char row[] = "profiling-duration";
    struct option_match match = option_find(row, sizeof row - 1, p->commands);
    buf_printf(&p->out->warnings, "-u %s is read as --upload-results --profiling-duration %s: -u has no value here\n",
               period, period);
    return apply_value(p->out, &match, period, "-u", SOURCE_ARGUMENT, err);
}

/* All that follows is the command to be profiled. */
static bool take_command(struct parser *p)
{
    p->out->settings.scope.command = p->argv + p->next;
    p->next = p->argc;
    return true;
}

/* The first word that is no option. */
static bool first_word(struct parser *p, struct err *err)
{
    if (is_upload_period(p))
        return take_upload_period(p, err);
    enum command_id id = p->only_words ? COMMAND_RUN : command_find(p->argv[p->next]);
    if (id != COMMAND_RUN) {
        p->next++;
        p->out->words = p->argv;
        return enter_command(p, id, err);
    }
    return take_command(p);
}

static bool word(struct parser *p, struct err *err)
{
    if (p->out->command == COMMAND_RUN)
        return first_word(p, err);
    if (p->out->command == COMMAND_TOP)
        return take_command(p);
    p->out->words[p->out->word_count++] = p->argv[p->next++];
    return true;
}

static bool read_argument(struct parser *p, struct err *err)
{
    char *argument = p->argv[p->next];
    if (p->only_words || !is_option(argument))
        return word(p, err);
    p->next++;
    if (strcmp(argument, "--") == 0) {
        p->only_words = true;
        return true;
    }
    return argument[1] == '-' ? long_option(p, argument + 2, err)
                              : letters(p, argument + 1, err);
}

/* After an error at argument `at`: does the line also name a command to be profiled? An unknown
 * option is taken to have a value when the nearest known one has. */
static bool option_uses_next(const char *argument)
{
    struct option_match match = {0};
    if (argument[1] != '-') {
        for (const char *c = argument + 1; *c; c++) {
            match = option_find_letter(*c, COMMAND_ALL);
            if (match.row && option_takes_value(&match))
                return c[1] == '\0';
        }
        return false;
    }
    if (strchr(argument, '='))
        return false;
    size_t len = strlen(argument + 2);
    match = option_find(argument + 2, len, COMMAND_ALL);
    if (!match.row) {
        struct nearest near = nearest_to(argument + 2, len);
        option_each_name(COMMAND_ALL, offer_option, &near);
        if (near.count)
            match = option_find(near.word[0], strlen(near.word[0]), COMMAND_ALL);
    }
    return match.row && option_takes_value(&match);
}

static bool names_command(const struct parser *p, int at)
{
    for (; at < p->argc; at++) {
        const char *argument = p->argv[at];
        if (strcmp(argument, "--") == 0)
            return at + 1 < p->argc;
        if (!is_option(argument))
            return command_find(argument) == COMMAND_RUN;
        at += option_uses_next(argument);
    }
    return false;
}

/* What pillion knows and cannot do keeps nobody's program from starting; what is misspelt does. */
static bool starts_without(struct parser *p, const struct err *err)
{
    bool is = err->kind == ERR_UNSUPPORTED && p->out->command == COMMAND_RUN && names_command(p, p->next);
    if (is)
        warn(p->out, err->text, "(ignored)");
    return is;
}

/* ---- what depends on what ---- */

static bool resolve_target(struct request *out, struct err *err)
{
    struct settings *s = &out->settings;
    bool pids = was_given(out, "pids", SOURCE_ARGUMENT);
    bool all = was_given(out, "all", SOURCE_ARGUMENT) && out->all;
    if (s->scope.command && (pids || all))
        return err_set(err, ERR_USAGE, 0, "-%c and a command exclude each other; use one",
                       pids ? 'p' : 'a');
    if (pids && all)
        return err_set(err, ERR_USAGE, 0, "-p and -a exclude each other; use one");
    if (s->scope.command)
        s->scope.mode = TARGET_COMMAND;
    else if (s->scope.pid_count > 0 && !all)
        s->scope.mode = TARGET_PIDS;
    else
        s->scope.mode = TARGET_ALL;
    return true;
}

/* "pillion doctr": goes on to "not found", with what was probably meant. */
static void hint_at_command(struct settings *s)
{
    static const char *const hints[COMMAND_COUNT] = {
        [COMMAND_DUMP] = "did you mean: pillion dump?",
        [COMMAND_TOP] = "did you mean: pillion top?",
        [COMMAND_REPORT] = "did you mean: pillion report?",
        [COMMAND_DOCTOR] = "did you mean: pillion doctor?",
        [COMMAND_RENDER] = "did you mean: pillion render?",
        [COMMAND_UPLOAD] = "did you mean: pillion upload?",
        [COMMAND_INSTALL] = "did you mean: pillion install?",
        [COMMAND_HELP] = "did you mean: pillion help?",
    };
    struct nearest near = nearest_to(s->scope.command[0], strlen(s->scope.command[0]));
    for (enum command_id id = 0; id < COMMAND_COUNT; id++)
        if (hints[id])
            nearest_offer(&near, command_table[id].word);
    if (near.count)
        s->scope.command_hint = hints[command_find(near.word[0])];
}

static void resolve_log_level(struct request *out)
{
    struct settings *s = &out->settings;
    if (was_given(out, "log-level", SOURCE_ARGUMENT))
        return;
    if (out->verbose)
        s->log.level = LOG_DEBUG;
    else if (out->quiet)
        s->log.level = LOG_ERROR;
}

/* An option of one back end alone names it. Datadog's variables do not: they are the profiled
 * program's, too. */
static void resolve_agent(struct request *out)
{
    struct upload_settings *upload = &out->settings.upload;
    upload->agent_told = was_given(out, "host", SOURCE_GPROFILER) ||
                         was_given(out, "port", SOURCE_GPROFILER);
    bool agentless = upload->agentless && was_given(out, "agentless", SOURCE_GPROFILER);
    if (upload->backends == 0 && (upload->agent_told || agentless))
        upload->backends = backend_bit("datadog");
    upload->timeout_given = was_given(out, "server-upload-timeout", SOURCE_GPROFILER);
}

/* --format html and --no-flamegraph contradict each other. Both on the command line are an error; of a
 * variable and the command line the variable yields, and of two variables the one that leaves nothing:
 * they may be a whole fleet's, and must not keep a command from starting. */
static bool resolve_flamegraph(struct request *out, struct err *err)
{
    struct settings *s = &out->settings;
    unsigned others = s->output.formats & ~encoder_bit("html");
    if (out->flamegraph || others != 0) {
        s->output.formats = out->flamegraph ? s->output.formats : others;
        return true;
    }
    bool refused = was_given(out, "flamegraph", SOURCE_ARGUMENT);
    if (refused && was_given(out, "format", SOURCE_ARGUMENT))
        return err_set(err, ERR_USAGE, 0, "--format html and --no-flamegraph leave nothing to "
                       "write");
    if (refused)
        s->output.formats = encoder_defaults() & ~encoder_bit("html");
    warn(out, "--format html and --no-flamegraph leave nothing to write;",
         refused ? "col and pprof are written" : "html is written");
    return true;
}

static bool resolve_run(struct request *out, struct err *err)
{
    struct settings *s = &out->settings;
    if (!resolve_target(out, err))
        return false;
    if (!was_given(out, "continuous", SOURCE_BACKEND))
        s->sampling.continuous = s->scope.mode == TARGET_COMMAND;
    if (s->sampling.events.cpu_hz != 0 && !was_given(out, "profiling-frequency", SOURCE_BACKEND))
        s->sampling.frequency_hz = s->sampling.events.cpu_hz;
    bool asked = was_given(out, "profiling-frequency", SOURCE_BACKEND);
    s->sampling.stops_hz = asked ? s->sampling.frequency_hz : STOPS_HZ;
    if (!resolve_flamegraph(out, err))
        return false;
    bool upload_only = s->upload.wanted && !was_given(out, "output-dir", SOURCE_BACKEND) &&
                       !was_given(out, "format", SOURCE_BACKEND);
    if (upload_only)
        s->output.formats = 0;
    if (!s->upload.wanted && was_given(out, "backend", SOURCE_ARGUMENT))
        warn(out, "--backend", "sends nothing without -u");
    s->output.whole_run = s->scope.mode == TARGET_COMMAND && !s->upload.wanted;
    s->output.bounded = s->output.whole_run && !s->output.rotating &&
                        !was_given(out, "max-output-files", SOURCE_BACKEND);
    resolve_log_level(out);
    s->budget.memory_given = was_given(out, "max-memory", SOURCE_BACKEND);
    if (s->scope.mode == TARGET_COMMAND)
        hint_at_command(s);
    return true;
}

/* A run whose windows are shown. Uploads are a fleet's, and hardly for who sits before a terminal. */
static bool resolve_top(struct request *out, struct err *err)
{
    struct settings *s = &out->settings;
    s->upload.wanted = false;
    s->log.level = LOG_WARNING;
    if (!resolve_run(out, err))
        return false;
    s->live.on = true;
    s->live.json = out->json;
    s->sampling.continuous = !s->live.once;
    s->output.whole_run = s->output.bounded = false;
    return true;
}

static bool wrong_count(const struct request *out, struct err *err)
{
    const struct command_info *info = &command_table[out->command];
    return err_set(err, ERR_USAGE, 0, "wrong arguments for %s; usage: pillion %s %s", info->word, info->word,
                   info->usage);
}

static bool resolve_dump(struct request *out, struct err *err)
{
    if (out->word_count > 0 || !was_given(out, "pids", SOURCE_ARGUMENT))
        return wrong_count(out, err);
    return !out->locals ||
           err_set(err, ERR_USAGE, 0, "--locals yes is not done: values of variables may be secrets, and are never "
                                      "read; use a debugger");
}

static bool resolve_own(struct request *out, struct err *err)
{
    switch (out->command) {
    case COMMAND_TOP:
        return resolve_top(out, err);
    case COMMAND_UPLOAD:
        out->settings.scope.mode = TARGET_ALL; /* there is no command to be named after */
        return out->word_count > 0 || wrong_count(out, err);
    case COMMAND_REPORT:
        return out->word_count > 0 || wrong_count(out, err);
    case COMMAND_RENDER:
        return (out->word_count > 0 && out->render_output) || wrong_count(out, err);
    case COMMAND_INSTALL:
        return out->word_count == 1 || wrong_count(out, err);
    case COMMAND_DUMP:
        return resolve_dump(out, err);
    case COMMAND_DOCTOR:
        return (out->word_count == 0 && !(out->settings.scope.pid_count > 1 &&
                                          was_given(out, "pids", SOURCE_ARGUMENT))) ||
               wrong_count(out, err);
    case COMMAND_HELP:
        return out->word_count <= 1 || wrong_count(out, err);
    default:
        return true;
    }
}

/* Neither a word nor an option nor a variable of ours: somebody wants to know what this is. */
static bool says_nothing(const struct request *out, int argc)
{
    bool nothing = argc <= 1;
    for (size_t i = 0; i < option_count; i++)
        nothing = nothing && out->source[i] < SOURCE_GPROFILER;
    return nothing;
}

bool request_parse(struct request *out, int argc, char **argv, char *const *environment,
                   struct err *err)
{
    *out = (struct request){.command = COMMAND_RUN};
    buf_init(&out->warnings, WARNINGS_MAX);
    set_defaults(out);
    out->settings.origin.fixed_filter = is_fargate(environment);
    read_backend_variables(out, environment);
    read_prefixed(out, environment, "GPROFILER_", SOURCE_GPROFILER);
    read_prefixed(out, environment, "PILLION_", SOURCE_PILLION);

    int at = 1;
    struct parser p = {out, argv, argc, at, COMMAND_BIT(COMMAND_RUN), false};
    bool ok = true;
    while (ok && p.next < argc) {
        at = p.next;
        ok = read_argument(&p, err) || starts_without(&p, err);
    }
    if (says_nothing(out, argc))
        out->command = COMMAND_HELP;
    resolve_agent(out);
    if (ok)
        ok = out->command == COMMAND_RUN ? resolve_run(out, err) : resolve_own(out, err);
    bool own = out->command != COMMAND_RUN;
    bool command = out->settings.scope.command || (!own && !p.only_words && names_command(&p, at));
    out->exit_status = ok ? 0 : command ? EXIT_USAGE_COMMAND : EXIT_USAGE;
    return ok;
}

void request_release(struct request *request)
{
    for (size_t i = 0; i < request->secret_count; i++)
        secret_forget(request->secrets[i]);
    request->secret_count = 0;
    buf_release(&request->warnings);
}
