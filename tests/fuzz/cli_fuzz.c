/* Any command line and any environment: the input is lines, those before an empty line are
 * arguments, those behind it are variables. What is parsed must satisfy what capture/ relies on. */
#include "cli/help.h"
#include "cli/say.h"
#include "deliver/backend.h"
#include "encode/encode.h"

#include <stdlib.h>

enum { WORDS_MAX = 64, INPUT_MAX = 8192 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
    if (!condition)
        abort();
}

static void check_settings(const struct settings *s)
{
    check(s->sampling.frequency_hz >= 1 && s->sampling.frequency_hz <= 10000);
    check(s->sampling.window_ns >= 1000000000 && s->sampling.window_ns <= UINT64_C(86400) * 1000000000);
    check((s->output.formats != 0 || s->upload.wanted) && s->output.formats < 1u << ENCODERS_MAX);
    check(s->upload.backends < 1u << BACKENDS_MAX && s->upload.timeout_ns >= 1000000000);
    check(s->upload.headers.count <= SETTINGS_HEADERS_MAX);
    check(s->budget.memory_bytes >= 8 << 20 && s->budget.cpu_percent > 0 && s->budget.cpu_percent <= 100);
    check((s->scope.mode == TARGET_COMMAND) == (s->scope.command != NULL));
    check(!s->scope.command || s->scope.command[0]);
    check(s->scope.mode != TARGET_PIDS || s->scope.pid_count > 0);
    check(s->scope.pid_count <= SETTINGS_PIDS_MAX);
    for (size_t i = 0; i < s->scope.pid_count; i++)
        check(s->scope.pids[i] > 0);
}

static void show(struct str text)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    say_format(text, SAY_COLUMNS, &out);
    for (size_t i = 0; i < out.len; i++)
        check((unsigned char)out.ptr[i] >= ' ' || out.ptr[i] == '\n');
    buf_release(&out);
}

static void show_topic(const struct request *request)
{
    struct buf out;
    struct err err;
    buf_init(&out, HELP_MAX_BYTES);
    if (request->word_count > 0 && !help_topic(request->words[0], &out, &err))
        show(str_of(err.text));
    buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[INPUT_MAX + 1], *argv[WORDS_MAX + 2] = {"pillion"}, *variables[WORDS_MAX + 1] = {0};
    size_t argc = 1, variable_count = 0;
    bool behind = false;
    size = size < INPUT_MAX ? size : INPUT_MAX;
    memcpy(text, data, size);
    text[size] = '\0';
    struct str rest = {text, size};
    while (rest.len > 0) {
        struct str line = str_cut(&rest, '\n');
        text[line.ptr - text + (ptrdiff_t)line.len] = '\0';
        if (line.len == 0 && !behind)
            behind = true;
        else if (!behind && argc <= WORDS_MAX)
            argv[argc++] = text + (line.ptr - text);
        else if (variable_count < WORDS_MAX)
            variables[variable_count++] = text + (line.ptr - text);
    }
    struct request request;
    struct err err;
    if (!request_parse(&request, (int)argc, argv, variables, &err)) {
        check(request.exit_status == EXIT_USAGE || request.exit_status == EXIT_USAGE_COMMAND);
        show(str_of(err.text));
    } else if (request.command == COMMAND_RUN) {
        check_settings(&request.settings);
    } else if (request.command == COMMAND_HELP) {
        show_topic(&request);
    }
    struct str warnings = buf_slice(&request.warnings);
    while (warnings.len > 0)
        show(str_cut(&warnings, '\n'));
    request_release(&request);
    return 0;
}
