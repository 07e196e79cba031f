/* The command line: parsing, the environment, messages, and the texts made from the table. */
#include "test.h"

#include "base/time.h"
#include "cli/help.h"
#include "base/nearest.h"
#include "cli/say.h"
#include "cli/value.h"
#include "deliver/backend.h"
#include "encode/encode.h"

#include <stdarg.h>

enum { WORDS_MAX = 24 };

/* A parsed line, kept together with what it borrows. */
struct line {
    char *argv[WORDS_MAX + 2];
    char *environment[WORDS_MAX + 1];
    char text[1000];
    struct request request;
    struct err err;
    bool ok;
};

/* Splits at blanks; "''" is the empty word. */
static int split(char *text, char **words)
{
    int n = 0;
    for (char *word = strtok(text, " "); word && n < WORDS_MAX; word = strtok(NULL, " "))
        words[n++] = strcmp(word, "''") == 0 ? word + 2 : word;
    words[n] = NULL;
    return n;
}

static struct line *parse_with(const char *environment, const char *arguments)
{
    struct line *l = calloc(1, sizeof *l);
    char *second = l->text + sizeof l->text / 2;
    snprintf(l->text, sizeof l->text / 2, "%s", arguments);
    snprintf(second, sizeof l->text / 2, "%s", environment);
    l->argv[0] = "pillion";
    int argc = 1 + split(l->text, l->argv + 1);
    split(second, l->environment);
    l->ok = request_parse(&l->request, argc, l->argv, l->environment, &l->err);
    return l;
}

static struct line *parse(const char *arguments)
{
    return parse_with("", arguments);
}

static void done(struct line *l)
{
    request_release(&l->request);
    free(l);
}

/* The line is refused with this sentence and exit status. */
static void refused(const char *arguments, int status, const char *sentence)
{
    struct line *l = parse(arguments);
    CHECK(!l->ok);
    if (!l->ok)
        CHECK_TEXT(l->err.text, sentence);
    CHECK_INT(l->request.exit_status, status);
    done(l);
}

static enum command_id command_of(const char *environment, const char *line)
{
    struct line *l = parse_with(environment, line);
    enum command_id id = l->request.command;
    CHECK(l->ok);
    done(l);
    return id;
}

static void nothing_at_all_is_help(void)
{
    CHECK_INT(command_of("", ""), COMMAND_HELP);
    CHECK_INT(command_of("DD_SERVICE=x HOME=/", ""), COMMAND_HELP); /* the program's own */
    CHECK_INT(command_of("PILLION_SERVICE_NAME=x", ""), COMMAND_RUN);
    CHECK_INT(command_of("GPROFILER_SERVICE_NAME=x", ""), COMMAND_RUN);
    CHECK_INT(command_of("", "-f 11"), COMMAND_RUN);
}

static void defaults(void)
{
    struct line *l = parse("-q");
    const struct settings *s = &l->request.settings;
    CHECK(l->ok);
    CHECK_INT(l->request.command, COMMAND_RUN);
    CHECK_INT(s->scope.mode, TARGET_ALL);
    CHECK_INT(s->sampling.frequency_hz, 99);
    CHECK(s->sampling.window_ns == 60 * NS_PER_S);
    CHECK(!s->sampling.continuous);
    CHECK(s->scope.min_duration_ns == 0);
    CHECK_INT(s->sampling.perf_mode, PERF_SMART);
    CHECK_INT(s->runtime.mode[FRAME_GO], RUNTIME_AUTO);
    CHECK_INT(s->scope.launch, LAUNCH_AUTO);
    CHECK(s->output.dir == NULL && s->service_name == NULL && s->log.file == NULL);
    CHECK_INT(s->output.formats, encoder_bit("col") | encoder_bit("html") | encoder_bit("pprof"));
    CHECK_INT(s->output.max_files, 0);
    CHECK(s->naming.container_names && s->naming.application_identifiers);
    CHECK(s->budget.memory_bytes == 64 << 20);
    CHECK(s->budget.cpu_percent == 1.0);
    CHECK_INT(l->request.warnings.len, 0);
    done(l);
    l = parse("-a");
    CHECK_INT(l->request.settings.log.level, LOG_INFO);
    done(l);
}

static void every_default_parses(void)
{
    for (size_t i = 0; i < option_count; i++) {
        struct request r = {0};
        struct err err;
        const struct option *row = &option_table[i];
        if (row->fallback && row->kind != KIND_ACTION)
            CHECK(value_store(row, row->fallback, &r, &err));
    }
}

static void command_begins_at_first_word(void)
{
    struct line *l = parse("-S svc ./run.sh -f 1 --bogus");
    CHECK(l->ok);
    CHECK_INT(l->request.settings.scope.mode, TARGET_COMMAND);
    CHECK_INT(l->request.settings.sampling.frequency_hz, 99);
    CHECK_TEXT(l->request.settings.service_name, "svc");
    CHECK_TEXT(l->request.settings.scope.command[0], "./run.sh");
    CHECK_TEXT(l->request.settings.scope.command[3], "--bogus");
    CHECK(l->request.settings.scope.command[4] == NULL);
    CHECK(l->request.settings.sampling.continuous);
    done(l);
}

static void two_dashes_end_options(void)
{
    struct line *l = parse("-q -- doctor -x");
    CHECK(l->ok);
    CHECK_INT(l->request.command, COMMAND_RUN);
    CHECK_TEXT(l->request.settings.scope.command[0], "doctor");
    done(l);
    l = parse("-- -weird");
    CHECK(l->ok);
    CHECK_TEXT(l->request.settings.scope.command[0], "-weird");
    done(l);
    l = parse("--");
    CHECK(l->ok);
    CHECK_INT(l->request.settings.scope.mode, TARGET_ALL);
    done(l);
}

static void four_ways_to_give_a_value(void)
{
    static const char *const lines[] = {"-f 250", "-f250", "--profiling-frequency 250",
                                        "--profiling-frequency=250", "-cqf250", "-cf 250",
                                        "--profiling_frequency=250"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct line *l = parse(lines[i]);
        CHECK(l->ok);
        CHECK_INT(l->request.settings.sampling.frequency_hz, 250);
        done(l);
    }
}

static void last_wins(void)
{
    struct line *l = parse("-f 5 --no-continuous -c -f 7 --perf-mode fp --no-perf ./x");
    CHECK(l->ok);
    CHECK_INT(l->request.settings.sampling.frequency_hz, 7);
    CHECK(l->request.settings.sampling.continuous);
    CHECK_INT(l->request.settings.sampling.perf_mode, PERF_DISABLED);
    done(l);
    l = parse("-c --no-continuous ./x");
    CHECK(!l->request.settings.sampling.continuous);
    done(l);
}

static void flags_negate(void)
{
    struct line *l = parse("--no-flamegraph --disable-container-names --continuous=1");
    CHECK(l->ok);
    CHECK_INT(l->request.settings.output.formats, encoder_bit("col") | encoder_bit("pprof"));
    CHECK(!l->request.settings.naming.container_names);
    CHECK(l->request.settings.sampling.continuous);
    done(l);
    l = parse("--no-flamegraph --flamegraph --disable-container-names "
              "--no-disable-container-names");
    CHECK_INT(l->request.settings.output.formats, encoder_bit("col") | encoder_bit("html") | encoder_bit("pprof"));
    CHECK(l->request.settings.naming.container_names);
    done(l);
}

static void names_are_never_completed(void)
{
    refused("--profiling-freq 9", 2,
            "unknown option --profiling-freq; did you mean --profiling-frequency (-f)?");
}

static void units(void)
{
    static const struct {
        const char *line;
        uint64_t window_s;
    } windows[] = {{"-d 30", 30},   {"-d 30s", 30},  {"-d 5m", 300}, {"-d 2h", 7200},
                   {"-d 1d", 86400}, {"-d 1.5m", 90}, {"-d 2000ms", 2}};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        struct line *l = parse(windows[i].line);
        CHECK(l->ok);
        CHECK_INT(l->request.settings.sampling.window_ns / NS_PER_S, windows[i].window_s);
        done(l);
    }
    static const struct {
        const char *line;
        uint64_t kilobytes;
    } sizes[] = {{"--max-memory 32", 32 << 10},     {"--max-memory 32MB", 32 << 10},
                 {"--max-memory=8192K", 8 << 10},   {"--max-memory 1g", 1 << 20},
                 {"--max-memory 0.5GiB", 512 << 10}, {"--max-memory 33554432B", 32 << 10}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct line *l = parse(sizes[i].line);
        CHECK(l->ok);
        CHECK_INT(l->request.settings.budget.memory_bytes >> 10, sizes[i].kilobytes);
        done(l);
    }
    struct request r = {0};
    const struct option *cpu = option_find("max-cpu", 7, COMMAND_ALL).row;
    CHECK(value_store(cpu, "2.5%", &r, NULL) && r.settings.budget.cpu_percent == 2.5);
    CHECK(value_store(cpu, "0.1", &r, NULL) && r.settings.budget.cpu_percent == 0.1);
    struct err err;
    CHECK(!value_store(cpu, "101", &r, &err));
    CHECK_TEXT(err.text, "expects 0.1 to 100 percent, got \"101\"");
}

static void values_are_bounded(void)
{
    refused("-f 10k", 2, "-f expects 1 to 10000 samples per second, got \"10k\"");
    refused("-f 0", 2, "-f expects 1 to 10000 samples per second, got \"0\"");
    refused("-f -5", 2, "-f expects 1 to 10000 samples per second, got \"-5\"");
    refused("-f 10001", 2, "-f expects 1 to 10000 samples per second, got \"10001\"");
    refused("-f 18446744073709551617", 2,
            "-f expects 1 to 10000 samples per second, got \"18446744073709551617\"");
    refused("--profiling-duration=0.5", 2, "--profiling-duration expects 1 s to 24 h, got \"0.5\"");
    refused("-d 99999999999999999999d", 2,
            "-d expects 1 s to 24 h, got \"99999999999999999999d\"");
    refused("--max-memory 1", 2, "--max-memory expects 8 MB to 16 GB, got \"1\"");
    refused("-p 0", 2, "-p expects process ids, such as 812,813, got \"0\"");
    refused("-p 1,,2", 2, "-p expects process ids, such as 812,813, got \"1,,2\"");
    refused("-S ''", 2, "-S expects NAME, got \"\"");
    refused("-f", 2, "-f needs a value: -f HZ");
    refused("--quiet=3", 2, "--quiet takes no value");
}

static void ids_add_up(void)
{
    struct line *l = parse("-p 12,13 --pid 14 -p12");
    CHECK(l->ok);
    CHECK_INT(l->request.settings.scope.mode, TARGET_PIDS);
    CHECK_INT(l->request.settings.scope.pid_count, 3);
    CHECK_INT(l->request.settings.scope.pids[2], 14);
    CHECK(!l->request.settings.sampling.continuous);
    done(l);
    char many[2000] = "-p 1";
    for (int i = 2; i <= SETTINGS_PIDS_MAX + 1; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",%d", i);
    struct request r;
    struct err err;
    char *argv[] = {"pillion", "-p", many + 3, NULL}, *environment[] = {NULL};
    CHECK(!request_parse(&r, 3, argv, environment, &err));
    CHECK_TEXT(err.text, "-p accepts at most 256 processes; -a profiles all");
    request_release(&r);
}

static void targets_exclude_each_other(void)
{
    refused("-p 812 ./x", 125, "-p and a command exclude each other; use one");
    refused("-a ./x", 125, "-a and a command exclude each other; use one");
    refused("-a -p 812", 2, "-p and -a exclude each other; use one");
    struct line *l = parse("-a --no-all ./x");
    CHECK(l->ok);
    done(l);
}

static void nearest_names_are_proposed(void)
{
    refused("--profiling-freqency 99", 2,
            "unknown option --profiling-freqency; did you mean --profiling-frequency (-f)?");
    refused("--no-pyhton", 2, "unknown option --no-pyhton; did you mean --no-python?");
    refused("--no-flamegarph", 2,
            "unknown option --no-flamegarph; did you mean --no-flamegraph?");
    refused("--xyzzy", 2, "unknown option --xyzzy; see pillion help options");
    refused("-X", 2, "unknown option -X; see pillion -h");
    refused("--perf-mode dwrf", 2,
            "--perf-mode expects smart, fp, dwarf, disabled or none, got \"dwrf\"; did you mean "
            "dwarf?");
    refused("--format col,ppof", 2,
            "--format expects col, html, pprof, speedscope, gecko, trace, got \"col,ppof\"; did you mean pprof?");
    refused("--launch fork", 2, "--launch expects auto, exec or init, got \"fork\"");
}

static void usage_with_a_command_is_125(void)
{
    refused("--profiling-freqency 99 ./x", 125,
            "unknown option --profiling-freqency; did you mean --profiling-frequency (-f)?");
    refused("--bogus ./x", 125, "unknown option --bogus; see pillion help options");
    refused("-f 10k -- ./x", 125, "-f expects 1 to 10000 samples per second, got \"10k\"");
    refused("-f 10k -d 5", 2, "-f expects 1 to 10000 samples per second, got \"10k\"");
    refused("-f 10k render", 2, "-f expects 1 to 10000 samples per second, got \"10k\"");
    refused("-f 10k -d 5 --", 2, "-f expects 1 to 10000 samples per second, got \"10k\"");
    refused("--switch-user web ./x", 125,
            "--switch-user is not done here; start pillion as that user, with setpriv or su");
}

static void what_gprofiler_has_around_a_run(void)
{
    struct line *l = parse("--controller-pid 7 --heartbeat-file alive --external-metadata=x.json "
                           "--app-id-args-filter ^-D --app-id-args-filter a,b ./x");
    const struct settings *s = &l->request.settings;
    CHECK(l->ok && s->scope.controller_pid == 7);
    CHECK_TEXT(s->output.heartbeat_file, "alive");
    CHECK_TEXT(s->origin.external_metadata, "x.json");
    CHECK_INT(s->naming.application_filters.count, 2);
    CHECK_TEXT(s->naming.application_filters.at[1], "a,b");
    done(l);
    l = parse_with("GPROFILER_CONTROLLER_PID=8 PILLION_CONTROLLER_PID=9 GPROFILER_APP_ID_ARGS_FILTER=^-D", "./x");
    s = &l->request.settings;
    CHECK_INT(s->scope.controller_pid, 9);
    CHECK_TEXT(s->naming.application_filters.at[0], "^-D");
    done(l);
    l = parse_with("GPROFILER_APP_ID_ARGS_FILTER=^-D", "--app-id-args-filter x ./x");
    CHECK_INT(l->request.settings.naming.application_filters.count, 1);
    done(l);
    refused("--controller-pid me ./x", 125, "--controller-pid expects 1 to 4194304 as a pid, got \"me\"");
}

static void events_add_up(void)
{
    struct line *l = parse("-e sPF,p=9 --event=hCMISS;sMig --perf-event cycles ./x");
    CHECK(l->ok);
    CHECK_INT(l->request.settings.sampling.events.count, 4);
    CHECK_TEXT(l->request.settings.sampling.events.at[0].name, "page-faults");
    CHECK_INT(l->request.settings.sampling.events.at[0].period, 9);
    CHECK_TEXT(l->request.settings.sampling.events.at[3].name, "cycles");
    CHECK_INT(l->request.settings.sampling.frequency_hz, 99);
    done(l);
    l = parse("-e sCPU,f=250 ./x");
    CHECK_INT(l->request.settings.sampling.frequency_hz, 250);
    CHECK_INT(l->request.settings.sampling.events.count, 0);
    done(l);
    l = parse("-f 50 -e sCPU,f=250 ./x"); /* what is made for it wins */
    CHECK_INT(l->request.settings.sampling.frequency_hz, 50);
    done(l);
    refused("-e sPF -e sPF ./x", 125, "-e names page-faults twice");
    refused("--event sALLOC", 2, "--event sALLOC is not available: no code is put into the program "
                                 "that could see its allocations");
}

static void events_of_the_environment(void)
{
    struct line *l = parse_with("GPROFILER_PERF_EVENT=cycles DD_PROFILING_NATIVE_EVENTS=sMig", "./x");
    CHECK_INT(l->request.settings.sampling.events.count, 1); /* the command line's, else one source's */
    CHECK_TEXT(l->request.settings.sampling.events.at[0].name, "cycles");
    done(l);
    l = parse_with("PILLION_EVENT=cycles", "-e sPF ./x");
    CHECK_INT(l->request.settings.sampling.events.count, 1);
    CHECK_TEXT(l->request.settings.sampling.events.at[0].name, "page-faults");
    done(l);
    l = parse_with("DD_PROFILING_NATIVE_EVENTS=sCPU;sALLOC", "./x"); /* the program's own, too */
    CHECK(l->ok && l->request.warnings.len == 0 && l->request.settings.sampling.events.count == 0);
    done(l);
    l = parse_with("PILLION_EVENT=cycels DD_PROFILING_NATIVE_EVENTS=sMig", "./x");
    CHECK(l->ok);
    CHECK_INT(l->request.settings.sampling.events.count, 1); /* a wrong one takes nothing away */
    CHECK_TEXT(buf_cstr(&l->request.warnings),
               "PILLION_EVENT expects an event such as page-faults or cycles, got \"cycels\"; did you "
               "mean cycles? (ignored)\n");
    done(l);
}

/* An ancestor's command line starts the program, with a warning for what pillion cannot do. */
static void warned_of(const char *line, const char *warning)
{
    struct line *l = parse(line);
    CHECK(l->ok);
    CHECK_TEXT(buf_cstr(&l->request.warnings), warning);
    CHECK(l->ok && strcmp(l->request.settings.scope.command[0], "./x") == 0);
    done(l);
}

static void what_ancestors_have_starts_the_program(void)
{
    warned_of("-e sCPU;sALLOC ./x", "-e sALLOC is not available: no code is put into the program that could see its "
                                    "allocations (ignored)\n");
    warned_of("--mode allocation -- ./x", "--mode expects cpu, got \"allocation\" (ignored)\n");
    warned_of("-n 5 ./x", "-n has no effect: threads are ranked by what they do; --max-cpu bounds them\n");
    warned_of("-o stdout ./x", "-o stdout has no effect: the log goes to standard error, or to --log-file; for a "
                               "folder of this name: -o ./stdout\n");
    warned_of("-o ./stdout ./x", "");
    warned_of("--backend http ./x", "--backend sends nothing without -u\n");
    warned_of("-u 59 ./x", "-u 59 is read as --upload-results --profiling-duration 59: -u has no value here\n");
    struct line *l = parse("-u 59 ./x");
    CHECK(l->request.settings.upload.wanted);
    CHECK_INT(l->request.settings.sampling.window_ns, 59000000000u);
    done(l);
    l = parse("-u -- 59"); /* a command after all */
    CHECK(l->ok && strcmp(l->request.settings.scope.command[0], "59") == 0);
    done(l);
}

static bool enabled_by(const char *environment, const char *line)
{
    struct line *l = parse_with(environment, line);
    bool enabled = l->ok && l->request.settings.scope.enabled && l->request.warnings.len == 0;
    done(l);
    return enabled;
}

static void profiling_is_switched_off(void)
{
    CHECK(enabled_by("PILLION_ENABLED=1", "./x"));
    CHECK(!enabled_by("PILLION_ENABLED=0", "./x"));
    CHECK(!enabled_by("PILLION_NO_ENABLE=1", "./x"));
    CHECK(!enabled_by("DD_PROFILING_ENABLED=false", "./x"));
    CHECK(enabled_by("DD_PROFILING_ENABLED=auto", "./x")); /* the library's own word */
    CHECK(enabled_by("DD_PROFILING_ENABLED=false PILLION_ENABLED=1", "./x"));
    CHECK(enabled_by("PILLION_ENABLED=0", "--enable ./x"));
    CHECK(!enabled_by("PILLION_ENABLED=1", "--no-enable ./x"));
}

static void what_is_not_built_says_so(void)
{
    refused("--mode allocation", 2, "--mode expects cpu, got \"allocation\"");
    refused("-p 1 -e sALLOC", 2,
            "-e sALLOC is not available: no code is put into the program that could see its allocations");
    struct line *l = parse("--verify --no-upload-results --python-mode auto --mode cpu");
    CHECK(l->ok); /* what asks for the default asks for nothing that is missing */
    done(l);
}

static void gprofilers_readers_are_taken_for_ours(void)
{
    static const char *const lines[] = {"--java-mode ap",     "--ruby-mode rbspy",
                                        "--php-mode phpspy",  "--nodejs-mode attach-maps",
                                        "--nodejs-mode perf", "--python-mode pyperf",
                                        "--python-mode pyspy"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct line *l = parse(lines[i]);
        CHECK(l->ok);
        for (size_t language = 0; language < FRAME_KIND_COUNT; language++) {
            CHECK_INT(l->request.settings.runtime.mode[language], RUNTIME_AUTO);
        }
        done(l);
    }
}

static void report_takes_files(void)
{
    struct line *l = parse("report a.col b.pprof --top 3 --json --type off_cpu");
    CHECK(l->ok && l->request.command == COMMAND_REPORT && l->request.word_count == 2);
    CHECK_INT(l->request.report_top, 3);
    CHECK(l->request.json);
    CHECK_TEXT(l->request.render_type, "off_cpu");
    done(l);
    refused("report", 2, "wrong arguments for report; usage: pillion report FILE... [--top N] [--json]");
    refused("report a --top 1001", 2, "--top expects 1 to 1000 rows, got \"1001\"");
    refused("report a -o b", 2, "-o is not an option of report");
}

static void doctor_looks_at_one_process(void)
{
    struct line *l = parse("doctor -p 812 --json -o /tmp");
    CHECK(l->ok && l->request.json);
    CHECK_INT(l->request.command, COMMAND_DOCTOR);
    CHECK_INT(l->request.settings.scope.pid_count, 1);
    CHECK_INT(l->request.settings.scope.pids[0], 812);
    CHECK_TEXT(l->request.settings.output.dir, "/tmp");
    done(l);
    refused("doctor -p 1,2", 2, "wrong arguments for doctor; usage: pillion doctor [-p PID] [--json]");
    refused("doctor 812", 2, "wrong arguments for doctor; usage: pillion doctor [-p PID] [--json]");
    refused("--json", 2, "--json is an option of another command: pillion dump ... --json");
}

static void filters_add_up(void)
{
    struct line *l = parse("-a --match web,!debug --exe /usr/bin/python3* --match job --container 0123abcd");
    const struct pattern_list *list = l->request.settings.scope.filters;
    CHECK(l->ok);
    CHECK_INT(list[FILTER_MATCH].count, 3);
    CHECK_STR(list[FILTER_MATCH].at[0].text, "web");
    CHECK_STR(list[FILTER_MATCH].at[1].text, "debug");
    CHECK(!list[FILTER_MATCH].at[0].excludes && list[FILTER_MATCH].at[1].excludes);
    CHECK_STR(list[FILTER_MATCH].at[2].text, "job");
    CHECK_STR(list[FILTER_EXE].at[0].text, "/usr/bin/python3*");
    CHECK_STR(list[FILTER_CONTAINER].at[0].text, "0123abcd");
    done(l);
    refused("-a --container abc", 2,
            "--container expects 4 or more characters of a container's id, got \"abc\"");
    refused("-a --match web,,job", 2, "--match expects TEXT[,TEXT...], got \"web,,job\"");
    refused("-a --exe !", 2, "--exe expects NAME|PATH[,...], got \"!\"");
    l = parse("-p 1 --min-duration 2.5");
    CHECK(l->ok && l->request.settings.scope.children);
    CHECK_INT(l->request.settings.scope.min_duration_ns, UINT64_C(2500000000));
    done(l);
    l = parse("-p 1 --no-children");
    CHECK(l->ok && !l->request.settings.scope.children);
    done(l);
}

static void other_profilers_options_are_explained(void)
{
    struct line *l = parse("--disable-pidns-check --java-safemode= --disable-pidns-check");
    CHECK(!l->ok);
    done(l);
    l = parse("--disable-pidns-check --java-safemode hserr --disable-pidns-check -f 11 ./x");
    CHECK(l->ok);
    CHECK_TEXT(buf_cstr(&l->request.warnings),
               "--disable-pidns-check has no effect: the host's PID namespace is not needed\n"
               "--java-safemode has no effect: nothing is loaded into a Java process\n");
    CHECK_INT(l->request.settings.sampling.frequency_hz, 11);
    CHECK_TEXT(l->request.settings.scope.command[0], "./x");
    done(l);
}

static bool is_bounded(const char *line)
{
    struct line *l = parse(line);
    bool bounded = l->ok && l->request.settings.output.bounded;
    done(l);
    return bounded;
}

static void files_of_a_command_are_bounded(void)
{
    CHECK(is_bounded("./x"));
    CHECK(is_bounded("-o /tmp --format col ./x"));
    CHECK(!is_bounded("-u -o /tmp ./x"));
    CHECK(!is_bounded("--max-output-files 0 ./x")); /* all */
    CHECK(!is_bounded("--max-output-files 9 ./x"));
    CHECK(!is_bounded("--rotating-output ./x"));
    CHECK(!is_bounded("-p 1 -c"));
}

static void lines_in_col_are_for_runs_and_for_render(void)
{
    struct line *l = parse("--col-lines ./x");
    CHECK(l->ok && l->request.settings.output.col_lines);
    done(l);
    l = parse("render a.pprof -o b.col --col-lines");
    CHECK(l->ok && l->request.settings.output.col_lines);
    done(l);
    l = parse("render a.pprof -o b.col");
    CHECK(l->ok && !l->request.settings.output.col_lines);
    done(l);
}

static void command_lines_of_others_work(void)
{
    struct line *l = parse("-cf 11 -d 30 -o /tmp --no-java --no-php --perf-mode=fp --pids 5,6 "
                           "--rotating-output --service-name x --log-file /tmp/l -v");
    CHECK(l->ok);
    CHECK_INT(l->request.settings.runtime.mode[FRAME_JVM], RUNTIME_DISABLED);
    CHECK_INT(l->request.settings.runtime.mode[FRAME_RUBY], RUNTIME_AUTO);
    CHECK_INT(l->request.settings.sampling.perf_mode, PERF_FP);
    CHECK_INT(l->request.settings.log.level, LOG_DEBUG);
    CHECK(l->request.settings.output.rotating);
    done(l);
    l = parse("--service x --log_level warn --preset cpu_only --upload-period 59 -g");
    CHECK(l->ok);
    CHECK_INT(l->request.settings.log.level, LOG_WARNING);
    CHECK_INT(l->request.settings.sampling.window_ns / NS_PER_S, 59);
    CHECK_INT(l->request.settings.scope.mode, TARGET_ALL);
    done(l);
}

static void precedence(void)
{
    const char *all = "PILLION_SERVICE_NAME=b GPROFILER_SERVICE_NAME=c DD_SERVICE=d "
                      "OTEL_SERVICE_NAME=e";
    struct line *l = parse_with(all, "-S a");
    CHECK_TEXT(l->request.settings.service_name, "a");
    done(l);
    l = parse_with(all, "");
    CHECK_TEXT(l->request.settings.service_name, "b");
    done(l);
    l = parse_with("OTEL_SERVICE_NAME=e DD_SERVICE=d GPROFILER_SERVICE_NAME=c", "");
    CHECK_TEXT(l->request.settings.service_name, "c");
    done(l);
    l = parse_with("OTEL_SERVICE_NAME=e DD_SERVICE=d", "");
    CHECK_TEXT(l->request.settings.service_name, "d");
    done(l);
    l = parse_with("OTEL_SERVICE_NAME=e DD_SERVICE=", "");
    CHECK_TEXT(l->request.settings.service_name, "e");
    done(l);
}

static void environment_alone_suffices(void)
{
    struct line *l = parse_with("PILLION_PIDS=7,8 PILLION_NO_FLAMEGRAPH=1 PILLION_CONTINUOUS=yes "
                                "GPROFILER_NO_PYTHON=true PILLION_NO_RUBY=0 PILLION_FORMAT=col",
                                "");
    CHECK(l->ok);
    CHECK_INT(l->request.settings.scope.mode, TARGET_PIDS);
    CHECK_INT(l->request.settings.scope.pid_count, 2);
    CHECK_INT(l->request.settings.output.formats, encoder_bit("col"));
    CHECK(l->request.settings.sampling.continuous);
    CHECK_INT(l->request.settings.runtime.mode[FRAME_PYTHON], RUNTIME_DISABLED);
    CHECK_INT(l->request.settings.runtime.mode[FRAME_RUBY], RUNTIME_AUTO);
    CHECK_INT(l->request.warnings.len, 0);
    done(l);
}

static void command_line_target_beats_environment(void)
{
    struct line *l = parse_with("PILLION_PIDS=7", "./x");
    CHECK(l->ok);
    CHECK_INT(l->request.settings.scope.mode, TARGET_COMMAND);
    done(l);
    l = parse_with("PILLION_PIDS=7 PILLION_ALL=1", "-p 9");
    CHECK(l->ok);
    CHECK_INT(l->request.settings.scope.mode, TARGET_PIDS);
    CHECK_INT(l->request.settings.scope.pid_count, 1);
    CHECK_INT(l->request.settings.scope.pids[0], 9);
    done(l);
}

static void bad_variables_only_warn(void)
{
    struct line *l = parse_with("PILLION_PROFILING_FREQUENCY=fast PILLION_PERF_MOED=fp "
                                "PILLION_QUIET=maybe GPROFILER_PIDS=1,x PILLION_HELP=1",
                                "./x");
    CHECK(l->ok);
    CHECK_TEXT(buf_cstr(&l->request.warnings),
               "GPROFILER_PIDS expects process ids, such as 812,813, got \"1,x\" (ignored)\n"
               "PILLION_PROFILING_FREQUENCY expects 1 to 10000 samples per second, got \"fast\" "
               "(ignored)\n"
               "PILLION_PERF_MOED is not a setting; did you mean PILLION_PERF_MODE?\n"
               "PILLION_QUIET expects 1 or 0, got \"maybe\" (ignored)\n");
    CHECK_INT(l->request.settings.sampling.frequency_hz, 99);
    CHECK_INT(l->request.settings.scope.pid_count, 0);
    done(l);
}

static void variables_that_contradict(void)
{
    const struct {
        const char *environment, *arguments, *warning;
        unsigned formats;
    } rows[] = {
        {"PILLION_FORMAT=html PILLION_NO_FLAMEGRAPH=1", "./x", "html is written", encoder_bit("html")},
        {"PILLION_NO_FLAMEGRAPH=1", "--format html ./x", "html is written", encoder_bit("html")},
        {"PILLION_FORMAT=html", "--no-flamegraph ./x", "col and pprof are written",
         encoder_bit("col") | encoder_bit("pprof")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct line *l = parse_with(rows[i].environment, rows[i].arguments);
        CHECK(l->ok);
        CHECK(strstr(buf_cstr(&l->request.warnings), rows[i].warning));
        CHECK_INT(l->request.settings.output.formats, rows[i].formats);
        done(l);
    }
    struct line *l = parse("--format html --no-flamegraph ./x");
    CHECK(!l->ok);
    CHECK_INT(l->request.exit_status, 125);
    done(l);
}

static void the_programs_own_variables_are_left_alone(void)
{
    struct line *l = parse_with("DD_API_KEY=secret DD_PROFILING_ENABLED=false DD_ENV=prod "
                                "DD_PROFILING_UPLOAD_PERIOD=often OTEL_RESOURCE_ATTRIBUTES=a=b "
                                "GPROFILER_IN_K8S=1 PYROSCOPE_SERVER_ADDRESS=http://x",
                                "./x");
    CHECK(l->ok);
    CHECK_INT(l->request.warnings.len, 0);
    CHECK_INT(l->request.settings.sampling.window_ns / NS_PER_S, 60);
    done(l);
}

static void secrets_are_not_repeated(void)
{
    static const char *const lines[] = {"--tokne=hunter2", "--quiet=hunter2", "--token hunter2 -f 0",
                                        "--header X:hunter2 -f x"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct line *l = parse(lines[i]);
        CHECK(!l->ok && !strstr(l->err.text, "hunter2"));
        done(l);
    }
    struct line *l = parse_with("PILLION_TOKEN=hunter2 GPROFILER_TOKEN=hunter2", "");
    CHECK(l->ok && !strstr(buf_cstr(&l->request.warnings), "hunter2"));
    CHECK_TEXT(l->request.settings.upload.token, "hunter2");
    done(l);
}

/* What stands in argv can be read in /proc by everybody who sees the process. */
static void secrets_are_overwritten_in_argv(void)
{
    static const char *const lines[] = {"--token hunter2 ./x", "--token=hunter2 ./x", "--api-key=hunter2 ./x",
                                        "--token first --token hunter2 ./x"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct line *l = parse(lines[i]);
        CHECK(l->ok);
        CHECK_TEXT(l->request.settings.upload.token, "hunter2");
        CHECK(memmem(l->text, sizeof l->text, "hunter2", 7) == NULL);
        CHECK(memmem(l->text, sizeof l->text, "first", 5) == NULL);
        done(l);
    }
    struct line *l = parse("--header X-A:hunter2 --header=X-B:hunter3 ./x --header hunter4");
    CHECK_INT(l->request.settings.upload.headers.count, 2);
    CHECK_TEXT(l->request.settings.upload.headers.at[1], "X-B:hunter3");
    CHECK(memmem(l->text, sizeof l->text, "hunter2", 7) == NULL);
    CHECK(memmem(l->text, sizeof l->text, "hunter4", 7) != NULL); /* the command's own */
    done(l);
}

static void uploading_writes_files_only_when_asked(void)
{
    const struct {
        const char *line;
        unsigned formats;
    } cases[] = {{"-u ./x", 0},
                 {"-u -o out ./x", encoder_bit("col") | encoder_bit("html") | encoder_bit("pprof")},
                 {"-u --format col ./x", encoder_bit("col")},
                 {"--no-upload-results ./x", encoder_bit("col") | encoder_bit("html") | encoder_bit("pprof")}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct line *l = parse(cases[i].line);
        CHECK(l->ok);
        CHECK_INT(l->request.settings.output.formats, cases[i].formats);
        done(l);
    }
    struct line *l = parse_with("PILLION_OUTPUT_DIR=out PILLION_UPLOAD_RESULTS=1", "./x");
    CHECK(l->request.settings.upload.wanted && l->request.settings.output.formats != 0);
    done(l);
}

static void back_ends_are_a_list(void)
{
    struct line *l = parse("-u --backend http,studio -U http://x --no-verify --spool-dir s --spool-max 5 ./x");
    const struct upload_settings *u = &l->request.settings.upload;
    CHECK(l->ok);
    CHECK_INT(u->backends, backend_bit("http") | backend_bit("studio"));
    CHECK_TEXT(u->server_host, "http://x");
    CHECK(!u->verify);
    CHECK_INT(u->spool_max_bytes, 5 << 20);
    CHECK(u->timeout_ns == 120 * NS_PER_S);
    done(l);
    refused("--backend studoi ./x", 125,
            "--backend expects studio, pyroscope, http, datadog, otlp, got \"studoi\"; did you mean studio?");
    refused("upload", 2, "wrong arguments for upload; usage: pillion upload FILE|DIR...");
    l = parse("upload a.col --dry-run b.pprof --backend pyroscope");
    CHECK(l->ok && l->request.dry_run);
    CHECK_INT(l->request.word_count, 2);
    done(l);
}

static void an_agents_place_names_datadog(void)
{
    const struct {
        const char *environment, *line;
        unsigned backends;
        bool told, agentless;
    } cases[] = {
        {"", "-u -H agent ./x", backend_bit("datadog"), true, false},
        {"", "-u --port 8127 ./x", backend_bit("datadog"), true, false},
        {"PILLION_HOST=agent", "-u ./x", backend_bit("datadog"), true, false},
        {"", "-u --agentless ./x", backend_bit("datadog"), false, true},
        {"", "-u --no-agentless ./x", 0, false, false},
        {"", "-u --backend http -H agent ./x", backend_bit("http"), true, false},
        /* the program's own variables choose nothing here; the sender asks whether they may */
        {"DD_AGENT_HOST=a DD_TRACE_AGENT_PORT=9 DD_PROFILING_AGENTLESS=true", "-u ./x", 0, false,
         true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct line *l = parse_with(cases[i].environment, cases[i].line);
        const struct upload_settings *u = &l->request.settings.upload;
        CHECK(l->ok);
        CHECK_INT(u->backends, cases[i].backends);
        CHECK(u->agent_told == cases[i].told && u->agentless == cases[i].agentless);
        done(l);
    }
    struct line *l = parse_with("DD_AGENT_HOST=a DD_TRACE_AGENT_PORT=none", "-P 9 ./x");
    CHECK_TEXT(l->request.settings.upload.agent_host, "a");
    CHECK_INT(l->request.settings.upload.agent_port, 9);
    CHECK(!l->request.settings.upload.timeout_given);
    done(l);
    refused("-P 70000 ./x", 125, "-P expects 1 to 65535 as a port, got \"70000\"");
    l = parse("--server-upload-timeout 5 ./x");
    CHECK(l->request.settings.upload.timeout_given);
    done(l);
}

static void own_commands_mix_words_and_options(void)
{
    struct line *l = parse("render a.col -o out.html b.col --diff=base.col -- -c.col");
    CHECK(l->ok);
    CHECK_INT(l->request.command, COMMAND_RENDER);
    CHECK_INT(l->request.word_count, 3);
    CHECK_TEXT(l->request.words[1], "b.col");
    CHECK_TEXT(l->request.words[2], "-c.col");
    CHECK_TEXT(l->request.render_output, "out.html");
    CHECK_TEXT(l->request.diff_base, "base.col");
    CHECK_INT(l->request.render_format, 0);
    done(l);
    l = parse("render a.pprof -o x.html --type off_cpu");
    CHECK(l->ok);
    CHECK_TEXT(l->request.render_type, "off_cpu");
    done(l);
    l = parse("render a.col -o - --format pprof");
    CHECK(l->ok);
    CHECK_INT(l->request.render_format, encoder_bit("pprof"));
    done(l);
    refused("render a.col", 2,
            "wrong arguments for render; usage: pillion render FILE... -o OUT [--diff BASE]");
    refused("install", 2, "wrong arguments for install; usage: pillion install DIR");
    refused("install a b", 2, "wrong arguments for install; usage: pillion install DIR");
    refused("render a.col -f 5 -o x", 2,
            "-f is not an option of render");
    refused("-o x render a.col", 2,
            "--output-dir is not an option of render, whose options follow the word");
    refused("--diff x", 2, "--diff is an option of another command: pillion render ... --diff");
}

static void help_is_found_everywhere(void)
{
    struct line *l = parse("-h --bogus");
    CHECK(l->ok);
    CHECK_INT(l->request.command, COMMAND_HELP);
    CHECK(!l->request.long_help);
    done(l);
    l = parse("-q --help");
    CHECK(l->ok && l->request.long_help);
    done(l);
    l = parse("render --help");
    CHECK(l->ok);
    CHECK_INT(l->request.command, COMMAND_HELP);
    CHECK_INT(l->request.help_for, COMMAND_RENDER);
    done(l);
    l = parse("--version");
    CHECK_INT(l->request.command, COMMAND_VERSION);
    done(l);
    l = parse("./x --help");
    CHECK_INT(l->request.command, COMMAND_RUN);
    done(l);
}

static void a_mistyped_word_is_hinted_at(void)
{
    struct line *l = parse("rendr a.col");
    CHECK(l->ok);
    CHECK_TEXT(l->request.settings.scope.command_hint, "did you mean: pillion render?");
    done(l);
    l = parse("./serve.sh");
    CHECK(l->ok && l->request.settings.scope.command_hint == NULL);
    done(l);
}

static void messages_break_on_a_terminal_only(void)
{
    struct str text = STR("unknown option --profiling-freqency; did you mean "
                          "--profiling-frequency (-f)?");
    struct buf out;
    buf_init(&out, 1000);
    say_format(text, SAY_COLUMNS, &out);
    CHECK_TEXT(buf_cstr(&out), "pillion: unknown option --profiling-freqency; did you mean\n"
                               "  --profiling-frequency (-f)?\n");
    buf_clear(&out);
    say_format(text, 0, &out);
    CHECK_TEXT(buf_cstr(&out), "pillion: unknown option --profiling-freqency; did you mean "
                               "--profiling-frequency (-f)?\n");
    buf_clear(&out);
    say_format(STR("\xc3\xa4\xc3\xb6\xc3\xbc b"), 13, &out); /* 8 + 4 columns, then 2 more */
    CHECK_TEXT(buf_cstr(&out), "pillion: \xc3\xa4\xc3\xb6\xc3\xbc\n  b\n");
    buf_release(&out);
}

static size_t distance(const char *a, const char *b)
{
    return edit_distance(a, strlen(a), b, strlen(b));
}

static void distances(void)
{
    CHECK_INT(distance("", "abc"), 3);
    CHECK_INT(distance("abc", "abc"), 0);
    CHECK_INT(distance("abc", "acb"), 1);
    CHECK_INT(distance("kitten", "sitting"), 3);
    CHECK_INT(distance("fp", "pf"), 1);
    char longer[200];
    memset(longer, 'x', sizeof longer);
    CHECK_INT(edit_distance(longer, sizeof longer, "x", 1), NEAREST_WORD_MAX - 1);
}

static void at_most_two_proposals(void)
{
    struct nearest n = nearest_to("cat", 3);
    const char *words[] = {"bat", "hat", "rat", "catalogue"};
    for (size_t i = 0; i < 4; i++)
        nearest_offer(&n, words[i]);
    CHECK_INT(n.count, 2);
    CHECK_TEXT(n.word[0], "bat");
    n = nearest_to("x", 1);
    nearest_offer(&n, "y"); /* one letter is not meant by another */
    CHECK_INT(n.count, 0);
}

static void control_characters_do_not_reach_the_terminal(void)
{
    struct line *l = parse("-f \x1b[31m9\n");
    CHECK_TEXT(l->err.text, "-f expects 1 to 10000 samples per second, got \"?[31m9?\"");
    done(l);
    l = parse("--\x1b[31m");
    struct buf out;
    buf_init(&out, 1000);
    say_format(str_of(l->err.text), 0, &out);
    CHECK_TEXT(buf_cstr(&out), "pillion: unknown option --?[31m; see pillion help options\n");
    buf_release(&out);
    done(l);
}

static bool contains(const char *text, const char *what)
{
    return strstr(text, what) != NULL;
}

static void every_option_is_in_every_text(void)
{
    static const char *const topics[] = {"options", "man", "markdown"};
    for (size_t t = 0; t < 3; t++) {
        struct buf out, name;
        buf_init(&out, HELP_MAX_BYTES);
        buf_init(&name, 200);
        CHECK(help_topic(topics[t], &out, NULL));
        CHECK(!out.failed);
        for (size_t i = 0; i < option_count; i++) {
            buf_clear(&name);
            for (const char *c = option_table[i].name; *c; c++)
                buf_printf(&name, "%s%c", *c == '-' && t == 1 ? "\\" : "", *c);
            CHECK(contains(buf_cstr(&out), buf_cstr(&name)));
        }
        buf_release(&out);
        buf_release(&name);
    }
}

static void what_has_no_effect_is_in_one_place(void)
{
    struct buf all, list;
    buf_init(&all, HELP_MAX_BYTES);
    buf_init(&list, HELP_MAX_BYTES);
    help_everything(&all);
    CHECK(help_topic("compatibility", &list, NULL));
    for (const struct unused_option *u = unused_options; u->name; u++) {
        char spelled[100];
        snprintf(spelled, sizeof spelled, "  --%s%s", u->name, u->valued ? " " : "\n");
        CHECK(contains(buf_cstr(&list), spelled) && contains(buf_cstr(&list), u->why));
        CHECK(!contains(buf_cstr(&all), spelled));
        struct option_match match = option_find(u->name, strlen(u->name), COMMAND_ALL);
        CHECK(match.unused == u && option_takes_value(&match) == u->valued);
    }
    buf_release(&all);
    buf_release(&list);
}

static void texts_fit_80_columns(void)
{
    static const char *const topics[] = {"options", "environment", "output", "signals",
                                         "status",  "render",      "install", "help",  "compatibility",
                                         "doctor",  "containers",  "fargate", "alpine"};
    for (size_t t = 0; t < sizeof topics / sizeof topics[0] + 2; t++) {
        struct buf out;
        buf_init(&out, HELP_MAX_BYTES);
        if (t == 0)
            help_screen(&out);
        else if (t == 1)
            help_everything(&out);
        else
            CHECK(help_topic(topics[t - 2], &out, NULL));
        struct str rest = buf_slice(&out);
        size_t lines = 0;
        for (; rest.len > 0; lines++) {
            struct str line = str_cut(&rest, '\n');
            CHECK(line.len <= HELP_COLUMNS);
            CHECK(line.len == 0 || line.ptr[line.len - 1] != ' ');
        }
        if (t == 0)
            CHECK(lines <= 24);
        buf_release(&out);
    }
}

/* Names must be unique among the rows and aliases that one command knows. */
static void names_and_letters_are_unique(void)
{
    for (enum command_id id = 0; id < COMMAND_COUNT; id++) {
        for (size_t i = 0; i < option_count; i++) {
            const struct option *row = &option_table[i];
            if (!(option_commands(row) & COMMAND_BIT(id)))
                continue;
            CHECK(option_find(row->name, strlen(row->name), COMMAND_BIT(id)).row == row);
            CHECK(!row->letter || option_find_letter(row->letter, COMMAND_BIT(id)).row == row);
            CHECK(strlen(row->name) + 3 < OPTION_NAME_MAX);
        }
        for (size_t i = 0; i < option_alias_count; i++) {
            const struct option_alias *alias = &option_aliases[i];
            struct option_match match =
                option_find(alias->name, strlen(alias->name), COMMAND_BIT(id));
            CHECK(match.row == NULL || match.alias == alias);
        }
    }
    for (size_t i = 0; i < option_alias_count; i++)
        CHECK(option_find(option_aliases[i].name, strlen(option_aliases[i].name), COMMAND_ALL).row);
}

static void places_are_one_screen_by_the_words_people_look_for(void)
{
    static const char *const words[][2] = {
        {"fargate", "ecs"},       {"containers", "docker"}, {"containers", "kubernetes"},
        {"alpine", "scratch"},    {"alpine", "musl"},       {"alpine", "distroless"},
        {"containers", "podman"}, {"fargate", "aws"},
    };
    enum { LINES_MOST = 40 };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct buf topic, other;
        buf_init(&topic, HELP_MAX_BYTES);
        buf_init(&other, HELP_MAX_BYTES);
        CHECK(help_topic(words[i][0], &topic, NULL) && help_topic(words[i][1], &other, NULL));
        CHECK_TEXT(buf_cstr(&other), buf_cstr(&topic));
        size_t lines = 0;
        for (size_t c = 0; c < topic.len; c++)
            lines += topic.ptr[c] == '\n';
        CHECK(lines > 10 && lines <= LINES_MOST);
        buf_release(&topic);
        buf_release(&other);
    }
    struct buf out;
    struct err err;
    buf_init(&out, HELP_MAX_BYTES);
    CHECK(!help_topic("o", &out, &err)); /* a part of a word is none */
    CHECK(!help_topic("", &out, &err));
    buf_release(&out);
}

static void unknown_topics_name_the_nearest(void)
{
    struct buf out;
    struct err err;
    buf_init(&out, HELP_MAX_BYTES);
    CHECK(!help_topic("optoins", &out, &err));
    CHECK_TEXT(err.text, "no help about optoins; did you mean options?");
    CHECK(help_topic("upload", &out, &err));
    CHECK(strstr(buf_cstr(&out), "--dry-run") && !strstr(buf_cstr(&out), "--java-safemode"));
    out.len = 0;
    CHECK(help_topic("perf-dwarf-stack-size", &out, &err));
    CHECK_TEXT(buf_cstr(&out),
               "      --perf-dwarf-stack-size BYTES\n"
               "                                 initial size of a stack copy (by need)\n"
               "                                 also --stack-sample-size\n"
               "                                 environment: PILLION_PERF_DWARF_STACK_SIZE,\n"
               "                                 GPROFILER_PERF_DWARF_STACK_SIZE,\n"
               "                                 DD_PROFILING_SAMPLE_STACK_USER\n");
    out.len = 0;
    CHECK(help_topic("format", &out, &err)); /* of a profile, and of render */
    CHECK(strstr(buf_cstr(&out), "--format LIST") && strstr(buf_cstr(&out), "--format FORM"));
    const char *variable = strstr(buf_cstr(&out), "PILLION_FORMAT"); /* which sets the first alone */
    CHECK(variable && !strstr(variable + 1, "PILLION_FORMAT"));
    buf_release(&out);
}

TESTS({"with options alone every process is profiled with the documented defaults", defaults},
      {"without a word, an option or a setting there is the short help", nothing_at_all_is_help},
      {"every default is a valid value of its option", every_default_parses},
      {"the first word begins the command and ends the options", command_begins_at_first_word},
      {"two dashes end the options", two_dashes_end_options},
      {"a value may be attached or follow, for letters and names", four_ways_to_give_a_value},
      {"the last of several options wins", last_wins},
      {"--no- negates every flag", flags_negate},
      {"names are never completed", names_are_never_completed},
      {"times, sizes and percentages take units", units},
      {"values are bounded and the bounds are said", values_are_bounded},
      {"process ids add up, each once, to a maximum", ids_add_up},
      {"command, -p and -a exclude each other", targets_exclude_each_other},
      {"the nearest name is proposed", nearest_names_are_proposed},
      {"a usage error with a command word is 125, else 2", usage_with_a_command_is_125},
      {"what is not built yet says so and is refused", what_is_not_built_says_so},
      {"what a command leaves is bounded when nothing was said", files_of_a_command_are_bounded},
      {"an ancestor's command line starts the program", what_ancestors_have_starts_the_program},
      {"profiling is switched off by an option or a variable", profiling_is_switched_off},
      {"names of gProfiler's readers are taken for ours", gprofilers_readers_are_taken_for_ours},
      {"report takes files, and how many rows", report_takes_files},
      {"the doctor takes one process, and JSON is its own option", doctor_looks_at_one_process},
      {"filters are lists, repeatable, and refuse what cannot be one", filters_add_up},
      {"other profilers' options are accepted and explained once",
       other_profilers_options_are_explained},
      {"lines in .col are for runs and for render", lines_in_col_are_for_runs_and_for_render},
      {"command lines of gProfiler and ddprof work", command_lines_of_others_work},
      {"command line before PILLION_ before GPROFILER_ before back ends", precedence},
      {"everything can be set by the environment", environment_alone_suffices},
      {"a target on the command line replaces the environment's",
       command_line_target_beats_environment},
      {"bad and misspelt variables only warn", bad_variables_only_warn},
      {"variables that contradict each other keep no command from starting",
       variables_that_contradict},
      {"variables of the profiled program are left alone",
       the_programs_own_variables_are_left_alone},
      {"what gProfiler has around a run", what_gprofiler_has_around_a_run},
      {"events add up, and leave CPU time as it is", events_add_up},
      {"events of the environment count when the command line has none", events_of_the_environment},
      {"a secret is not repeated in messages", secrets_are_not_repeated},
      {"a secret is overwritten in argv", secrets_are_overwritten_in_argv},
      {"uploading writes files only when asked", uploading_writes_files_only_when_asked},
      {"back ends are a list", back_ends_are_a_list},
      {"an agent's place names Datadog, a variable does not", an_agents_place_names_datadog},
      {"words and options of own commands mix", own_commands_mix_words_and_options},
      {"help and version are found before the command only", help_is_found_everywhere},
      {"a mistyped own command leaves a hint for 'not found'", a_mistyped_word_is_hinted_at},
      {"messages are broken on a terminal only", messages_break_on_a_terminal_only},
      {"edit distance counts a swap as one", distances},
      {"at most two words are proposed", at_most_two_proposals},
      {"control characters do not reach the terminal",
       control_characters_do_not_reach_the_terminal},
      {"every option is in every text", every_option_is_in_every_text},
      {"what has no effect is in one place", what_has_no_effect_is_in_one_place},
      {"help texts fit 80 columns and the first 24 lines", texts_fit_80_columns},
      {"names and letters are unique", names_and_letters_are_unique},
      {"a place has one screen, by each word that people look for",
       places_are_one_screen_by_the_words_people_look_for},
      {"an unknown topic names the nearest", unknown_topics_name_the_nearest})
