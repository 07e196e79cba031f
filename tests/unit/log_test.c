/* What is said, byte for byte, and that no name can say more than its name. */
#include "capture/log.h"
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char said_text[1 << 17];

/* What was said since the last call. */
static const char *said(const struct log *log)
{
    ssize_t len = pread(log->fd, said_text, sizeof said_text - 1, 0);
    said_text[len < 0 ? 0 : len] = '\0';
    CHECK_INT(ftruncate(log->fd, 0), 0);
    CHECK_INT(lseek(log->fd, 0, SEEK_SET), 0);
    return said_text;
}

static struct log log_to_memory(void)
{
    struct log log = {.fd = memfd_create("log", MFD_CLOEXEC), .level = LOG_INFO};
    CHECK(log.fd >= 0);
    pthread_mutex_init(&log.lock, NULL);
    return log;
}

static void end(struct log *log)
{
    log->owned = true;
    log_close(log);
    pthread_mutex_destroy(&log->lock);
}

/* Without the time stamp, which leads the line and has a fixed form. */
static const char *without_stamp(const char *line, const char *before, const char *behind)
{
    static const char form[] = "0000-00-00T00:00:00.000Z";
    size_t lead = strlen(before);
    CHECK(strncmp(line, before, lead) == 0);
    for (size_t i = 0; i < sizeof form - 1 && line[lead + i] != '\0'; i++) {
        char c = line[lead + i];
        CHECK(form[i] == '0' ? c >= '0' && c <= '9' : c == form[i]);
    }
    const char *rest = strlen(line) > lead + sizeof form ? line + lead + sizeof form - 1 : "";
    CHECK(strncmp(rest, behind, strlen(behind)) == 0);
    return rest + strlen(behind);
}

/* ---- text ---- */

static void text_lines(void)
{
    struct log log = log_to_memory();
    log_say(&log, LOG_INFO, "%d windows", 3);
    CHECK_TEXT(said(&log), "pillion: 3 windows\n");
    log_say(&log, LOG_WARNING, "upload failed");
    CHECK_TEXT(said(&log), "pillion: warning: upload failed\n");
    log_say(&log, LOG_ERROR, "no process 8");
    CHECK_TEXT(said(&log), "pillion: no process 8\n");
    log_say(&log, LOG_INFO, "pillion 1.0.0: pid 7 profiles x"); /* the first line of a log */
    CHECK_TEXT(said(&log), "pillion 1.0.0: pid 7 profiles x\n");
    log_say(&log, LOG_INFO, "%s", "");
    CHECK_TEXT(said(&log), "pillion: \n");
    end(&log);
}

static void levels(void)
{
    struct log log = log_to_memory();
    log_say(&log, LOG_DEBUG, "detail");
    CHECK_TEXT(said(&log), "");
    log.level = LOG_ERROR;
    log_say(&log, LOG_WARNING, "warning");
    log_say(&log, LOG_INFO, "info");
    log_once(&log, LOG_WARNING, "once");
    CHECK_TEXT(said(&log), "");
    log_say(&log, LOG_ERROR, "bad");
    CHECK_TEXT(said(&log), "pillion: bad\n");
    log.level = LOG_DEBUG;
    log_say(&log, LOG_DEBUG, "detail");
    CHECK_TEXT(said(&log), "pillion: detail\n");
    int fd = log.fd;
    log.fd = -1;
    log_say(&log, LOG_ERROR, "to nobody");
    log.fd = fd;
    CHECK_TEXT(said(&log), "");
    end(&log);
}

static void hostile_text(void)
{
    struct log log = log_to_memory();
    static const struct {
        const char *name, *shown;
    } rows[] = {
        {"a\nb", "a\\x0ab"},
        {"a\n  b", "a\\x0a  b"},
        {"x\r\x1b[31mred\x07", "x\\x0d\\x1b[31mred\\x07"},
        {"tab\tdel\x7f", "tab\\x09del\\x7f"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x80\xa6", "gr\xc3\xbc\xc3\x9f \xe2\x80\xa6"},
        {"c1 \xc2\x9b""31m", "c1 \\xc2\\x9b31m"}, /* U+009B begins a sequence as ESC [ does */
        {"cut \xe2\x80", "cut \\xe2\\x80"},
        {"latin \xfc \x9b", "latin \\xfc \\x9b"},
        {"\xef\xbf\xbd", "\xef\xbf\xbd"}, /* a real U+FFFD is a character like others */
        {"%s%n", "%s%n"},
    };
    for (unsigned terminal = 0; terminal < 2; terminal++) {
        log.terminal = terminal;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            char expected[128];
            bool indented = terminal && strcmp(rows[i].name, "a\n  b") == 0;
            snprintf(expected, sizeof expected, "pillion: <%s>\n",
                     indented ? "a\n  b" : rows[i].shown);
            log_say(&log, LOG_INFO, "<%s>", rows[i].name);
            CHECK_TEXT(said(&log), expected);
        }
    }
    end(&log);
}

static void no_forged_line(void)
{
    struct log log = log_to_memory();
    log.terminal = true;
    log_say(&log, LOG_WARNING, "pid 7 (%s) is gone", "x\npillion: all is well\n");
    const char *text = said(&log);
    CHECK_TEXT(text, "pillion: warning: pid 7 (x\\x0apillion: all is well\\x0a) is gone\n");
    end(&log);
}

static void long_texts(void)
{
    struct log log = log_to_memory();
    static char text[5000];
    static const char *const fillings = "a\x01\"\xfc";
    for (const char *filling = fillings; *filling != '\0'; filling++) {
        for (unsigned format = LOG_TEXT; format <= LOG_JSON; format++) {
            log.format = format;
            memset(text, *filling, sizeof text - 1);
            log_say(&log, LOG_INFO, "%s", text);
            const char *line = said(&log);
            size_t len = strlen(line);
            CHECK(len > 4000); /* cut, but said */
            CHECK(len > 0 && line[len - 1] == '\n' && strchr(line, '\n') == line + len - 1);
        }
    }
    end(&log);
}

static void wrapped(void)
{
    struct log log = log_to_memory();
    log.terminal = true;
    log_say(&log, LOG_ERROR,
            "no process 8121 in this PID namespace (visible: 1, 19, 31); host pids mean nothing "
            "here. On Fargate set \"pidMode\": \"task\"");
    CHECK_TEXT(said(&log),
               "pillion: no process 8121 in this PID namespace (visible: 1, 19, 31); host\n"
               "  pids mean nothing here. On Fargate set \"pidMode\": \"task\"\n");
    log.terminal = false; /* a collector splits at line ends */
    log_say(&log, LOG_ERROR,
            "no process 8121 in this PID namespace (visible: 1, 19, 31); host pids mean nothing "
            "here. On Fargate set \"pidMode\": \"task\"");
    const char *line = said(&log);
    CHECK(strchr(line, '\n') == line + strlen(line) - 1);
    end(&log);
}

static void wrapped_at_76(void)
{
    struct log log = log_to_memory();
    log.terminal = true;
    for (int first = 60; first < 72; first++) {
        log_say(&log, LOG_INFO, "%.*s 345 7", first,
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        const char *line = said(&log);
        size_t len = strcspn(line, "\n");
        CHECK(len <= 76);
        bool fits = 9 + first + 4 <= 76;
        CHECK_INT(line[9 + (size_t)first] == ' ', fits);
    }
    /* characters count, not bytes; a word longer than the line stays whole */
    log_say(&log, LOG_INFO, "%s %s", "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
            "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
            "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
            "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", "b");
    CHECK(strstr(said(&log), "\xa4 b\n") != NULL);
    char path[200];
    memset(path, '/', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    log_say(&log, LOG_INFO, "cannot write %s now", path);
    CHECK(strstr(said(&log), path) != NULL);
    end(&log);
}

/* Each line of a block is broken for itself, and columns that were set apart stay so. */
static void wrapped_blocks(void)
{
    struct log log = log_to_memory();
    log.terminal = true;
    log_say(&log, LOG_INFO,
            "1.0 s\n  python 71.0 %%   native 18.1 %%\n  why: perf events refused (EPERM: seccomp filter); allow "
            "perf_event_open in the container's profile\n  cost: 8 MB");
    CHECK_TEXT(said(&log),
               "pillion: 1.0 s\n"
               "  python 71.0 %   native 18.1 %\n"
               "  why: perf events refused (EPERM: seccomp filter); allow perf_event_open in\n"
               "    the container's profile\n"
               "  cost: 8 MB\n");
    end(&log);
}

static void one_cause_many_names(void)
{
    struct log log = log_to_memory();
    log_once_for(&log, LOG_WARNING, "uid 7", "pid %d (%s) may not be read: uid 7", 1, "web");
    CHECK_TEXT(said(&log), "pillion: warning: pid 1 (web) may not be read: uid 7\n");
    log_once_for(&log, LOG_WARNING, "uid 8", "pid %d (%s) may not be read: uid 8", 2, "db"); /* figures */
    CHECK_TEXT(said(&log), "");
    log_once_for(&log, LOG_WARNING, "not dumpable", "pid %d (%s) may not be read: not dumpable", 2, "db");
    CHECK_TEXT(said(&log), "pillion: warning: pid 2 (db) may not be read: not dumpable\n");
    end(&log);
}

static void blocks(void)
{
    struct log log = log_to_memory();
    const char *block = "10.0 s, 9.9 s CPU\n  native 100.0 %   kernel 0.0 %\n  cost";
    log.terminal = true;
    log_event(&log, LOG_INFO, "window", NULL, 0, "%s", block);
    CHECK_TEXT(said(&log), "pillion: 10.0 s, 9.9 s CPU\n  native 100.0 %   kernel 0.0 %\n  cost\n");
    log.terminal = false;
    log_event(&log, LOG_INFO, "window", NULL, 0, "%s", "a\n  b");
    CHECK_TEXT(said(&log), "pillion: a\\x0a  b\n");
    end(&log);
}

static void journal(void)
{
    struct log log = log_to_memory();
    log.journal = true;
    log.level = LOG_DEBUG;
    log_say(&log, LOG_ERROR, "e");
    CHECK_TEXT(said(&log), "<3>pillion: e\n");
    log_say(&log, LOG_WARNING, "w");
    CHECK_TEXT(said(&log), "<4>pillion: warning: w\n");
    log_say(&log, LOG_INFO, "i");
    CHECK_TEXT(said(&log), "<6>pillion: i\n");
    log_say(&log, LOG_DEBUG, "d");
    CHECK_TEXT(said(&log), "<7>pillion: d\n");
    end(&log);
}

/* ---- the status line ---- */

static struct log live_log(void)
{
    struct log log = log_to_memory();
    log.terminal = log.live = true;
    return log;
}

static void drawn_over_itself(void)
{
    struct log log = live_log();
    log_status(&log, STR("  12 s  9 samples"), 40);
    CHECK_TEXT(said(&log), "\r  12 s  9 samples\r");
    log_status(&log, STR("  13 s"), 40); /* what was longer is blanked: 17 - 6 columns */
    CHECK_TEXT(said(&log), "\r  13 s           \r");
    log_say(&log, LOG_WARNING, "upload failed");
    CHECK_TEXT(said(&log), "\r      \rpillion: warning: upload failed\n");
    log_say(&log, LOG_WARNING, "again"); /* nothing is left to be blanked */
    CHECK_TEXT(said(&log), "pillion: warning: again\n");
    log_status(&log, STR("  14 s"), 40);
    (void)said(&log);
    log_say(&log, LOG_DEBUG, "not said"); /* and so nothing is blanked */
    CHECK_TEXT(said(&log), "");
    end(&log);
}

static void blanked_at_the_end(void)
{
    struct log log = live_log();
    log_status(&log, STR("  1 s"), 40);
    int fd = log.fd;
    (void)said(&log);
    log_close(&log);
    struct log closed = {.fd = fd};
    CHECK_TEXT(said(&closed), "\r     \r");
    close(fd);
    pthread_mutex_destroy(&log.lock);
}

/* A line that filled the terminal would scroll it. */
static void never_as_wide_as_the_terminal(void)
{
    struct log log = live_log();
    log_status(&log, STR("  12345678"), 10);
    CHECK_TEXT(said(&log), "");
    log_status(&log, STR("  1234567"), 10);
    CHECK_TEXT(said(&log), "\r  1234567\r");
    log_status(&log, STR("  1"), 6); /* it became narrower: 5 columns at most */
    CHECK_TEXT(said(&log), "\r  1  \r");
    log_status(&log, STR("  1"), 0);
    CHECK_TEXT(said(&log), "");
    end(&log);
}

static void only_where_it_may_be_drawn(void)
{
    struct log log = log_to_memory();
    log_status(&log, STR("  1 s"), 80);
    CHECK_TEXT(said(&log), "");
    log.terminal = true; /* a dumb one, CI, another format, a quiet run */
    log_status(&log, STR("  1 s"), 80);
    CHECK_TEXT(said(&log), "");
    end(&log);
}

static void not_while_another_thread_says_something(void)
{
    struct log log = live_log();
    pthread_mutex_lock(&log.lock);
    log_status(&log, STR("  1 s"), 80);
    CHECK_TEXT(said(&log), "");
    pthread_mutex_unlock(&log.lock);
    log_status(&log, STR("  1 s"), 80);
    CHECK_TEXT(said(&log), "\r  1 s\r");
    end(&log);
}

/* ---- who hears ---- */

static char heard_text[256];

static void hear(void *context, const struct log_heard *heard)
{
    CHECK(context == heard_text);
    size_t len = strlen(heard_text);
    snprintf(heard_text + len, sizeof heard_text - len, "%d %s %zu %.*s|", (int)heard->level, heard->event,
             heard->count, (int)heard->text.len, heard->text.ptr);
}

/* Whatever is shown here, each once per cause. */
static void a_listener_hears_what_is_said_at_info_and_above(void)
{
    struct log log = log_to_memory();
    struct log_field field = {"cpu_s", STR("1")};
    log.level = LOG_ERROR;
    log_hear(&log, (struct log_listener){hear, heard_text});
    log_say(&log, LOG_INFO, "a\nb");
    log_event(&log, LOG_WARNING, "window", &field, 1, "c");
    log_say(&log, LOG_DEBUG, "d");
    log_once(&log, LOG_ERROR, "e 1");
    log_once(&log, LOG_ERROR, "e 2");
    CHECK_TEXT(said(&log), "pillion: e 1\n");
    log_hear(&log, (struct log_listener){NULL, NULL});
    log_say(&log, LOG_INFO, "f");
    CHECK_TEXT(heard_text, "2 message 0 a\nb|1 window 1 c|0 message 0 e 1|");
    end(&log);
}

/* ---- keys and values ---- */

static const struct log_field numbers[] = {{"cpu_s", {"61.80", 5}}, {"procs", {"5", 1}}};

static void logfmt_lines(void)
{
    struct log log = log_to_memory();
    log.format = LOG_LOGFMT;
    log_event(&log, LOG_INFO, "window", numbers, 2, "for people");
    CHECK_TEXT(without_stamp(said(&log), "ts=", " level=info"),
               " event=window cpu_s=61.80 procs=5\n");
    log_say(&log, LOG_WARNING, "upload failed: \"no\"");
    CHECK_TEXT(without_stamp(said(&log), "ts=", " level=warning"),
               " event=message msg=\"upload failed: \\\"no\\\"\"\n");
    end(&log);
}

static void json_lines(void)
{
    struct log log = log_to_memory();
    log.format = LOG_JSON;
    log_event(&log, LOG_INFO, "window", numbers, 2, "for people");
    CHECK_TEXT(without_stamp(said(&log), "{\"ts\":\"", "\",\"level\":\"info\""),
               ",\"event\":\"window\",\"cpu_s\":\"61.80\",\"procs\":\"5\"}\n");
    log_say(&log, LOG_ERROR, "plain");
    CHECK_TEXT(without_stamp(said(&log), "{\"ts\":\"", "\",\"level\":\"error\""),
               ",\"event\":\"message\",\"msg\":\"plain\"}\n");
    end(&log);
}

static void hostile_values(void)
{
    static const struct {
        const char *value, *logfmt, *json;
    } rows[] = {
        {"plain", "plain", "\"plain\""},
        {"", "\"\"", "\"\""},
        {"a b", "\"a b\"", "\"a b\""},
        {"a=b", "\"a=b\"", "\"a=b\""},
        {"q\"q", "\"q\\\"q\"", "\"q\\\"q\""},
        {"b\\n", "\"b\\\\n\"", "\"b\\\\n\""},
        {"a\nlevel=error", "\"a\\u000alevel=error\"", "\"a\\u000alevel=error\""},
        {"\x1b[2J\x7f", "\"\\u001b[2J\\u007f\"", "\"\\u001b[2J\\u007f\""},
        {"\xc2\x9b", "\"\\u009b\"", "\"\\u009b\""},
        {"gr\xc3\xbcn", "\"gr\xc3\xbcn\"", "\"gr\xc3\xbcn\""},
        {"bad\xff\xc3", "\"bad\xef\xbf\xbd\xef\xbf\xbd\"", "\"bad\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    struct log log = log_to_memory();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct log_field field = {"name", str_of(rows[i].value)};
        char expected[128];
        log.format = LOG_LOGFMT;
        log_event(&log, LOG_INFO, "x", &field, 1, "text");
        snprintf(expected, sizeof expected, " event=x name=%s\n", rows[i].logfmt);
        CHECK_TEXT(without_stamp(said(&log), "ts=", " level=info"), expected);
        log.format = LOG_JSON;
        log_event(&log, LOG_INFO, "x", &field, 1, "text");
        snprintf(expected, sizeof expected, ",\"event\":\"x\",\"name\":%s}\n", rows[i].json);
        CHECK_TEXT(without_stamp(said(&log), "{\"ts\":\"", "\",\"level\":\"info\""), expected);
    }
    end(&log);
}

/* ---- once ---- */

static void once_per_cause(void)
{
    struct log log = log_to_memory();
    for (unsigned i = 0; i < 100; i++) {
        log_once(&log, LOG_WARNING, "cannot write %s", "/data");
        log_once(&log, LOG_WARNING, "cannot read %s", "/proc");
    }
    CHECK_TEXT(said(&log),
               "pillion: warning: cannot write /data\npillion: warning: cannot read /proc\n");
    struct map_slot *slot = log.said.slot;
    uint64_t times = 0;
    for (size_t i = 0; i < log.said.cap; i++) {
        times += slot[i].used ? slot[i].value : 0;
    }
    CHECK_INT(times, 200); /* repeats are counted */
    end(&log);
}

static void figures_are_no_cause(void)
{
    struct log log = log_to_memory();
    for (unsigned i = 0; i < 100; i++) {
        log_once(&log, LOG_WARNING, "EMPTY: %u.%u s CPU, pid %u (sh) refuses", i, i % 10, i * 7);
    }
    CHECK_TEXT(said(&log), "pillion: warning: EMPTY: 0.0 s CPU, pid 0 (sh) refuses\n");
    log_once(&log, LOG_WARNING, "EMPTY: 0.0 s CPU, pid 0 (nc) refuses");
    CHECK_TEXT(said(&log), "pillion: warning: EMPTY: 0.0 s CPU, pid 0 (nc) refuses\n");
    /* a long path in front does not hide that the reason is another */
    log_once(&log, LOG_ERROR, "cannot write /var/lib/a/directory/whose/name/is/long/enough (EROFS)");
    log_once(&log, LOG_ERROR, "cannot write /var/lib/a/directory/whose/name/is/long/enough (ENOSPC)");
    CHECK_TEXT(said(&log),
               "pillion: cannot write /var/lib/a/directory/whose/name/is/long/enough (EROFS)\n"
               "pillion: cannot write /var/lib/a/directory/whose/name/is/long/enough (ENOSPC)\n");
    end(&log);
}

static void causes_are_bounded(void)
{
    struct log log = log_to_memory();
    for (int i = 0; i < 10000; i++) {
        log_once(&log, LOG_WARNING, "cause %c%c%c", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676);
    }
    unsigned lines = 0;
    for (const char *at = said(&log); (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    CHECK(lines >= 100 && lines <= 256);
    end(&log);
}

/* ---- files ---- */

static void read_file(const char *path, char *out, size_t max)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, out, max - 1);
    out[len < 0 ? 0 : len] = '\0';
    if (fd >= 0) {
        close(fd);
    }
}

static void reopened(void)
{
    char dir[] = "/tmp/log_test.XXXXXX", path[64], moved[64], text[256];
    CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof path, "%s/log", dir);
    snprintf(moved, sizeof moved, "%s/log.1", dir);
    struct settings settings = {.log.level = LOG_INFO, .log.file = path};
    struct log log;
    log_open(&log, &settings);
    int fd = log.fd;
    CHECK(log.owned && !log.terminal && !log.journal);
    log_say(&log, LOG_INFO, "one");
    CHECK_INT(rename(path, moved), 0);
    log_say(&log, LOG_INFO, "two"); /* still to the file that was renamed */
    log_reopen(&log);
    CHECK_INT(log.fd, fd); /* another thread may hold this number */
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    log_say(&log, LOG_INFO, "three");
    read_file(moved, text, sizeof text);
    CHECK_TEXT(text, "pillion: one\npillion: two\n");
    read_file(path, text, sizeof text);
    CHECK_TEXT(text, "pillion: three\n");
    CHECK_INT(unlink(path), 0);
    CHECK_INT(mkdir(path, 0755), 0); /* cannot be opened: the old file goes on */
    log_reopen(&log);
    CHECK_INT(log.fd, fd);
    CHECK(fcntl(fd, F_GETFD) >= 0);
    log_close(&log);
    CHECK(fcntl(fd, F_GETFD) < 0);
    CHECK_INT(rmdir(path), 0);
    CHECK_INT(unlink(moved), 0);
    CHECK_INT(rmdir(dir), 0);
}

static void appended(void)
{
    char path[] = "/tmp/log_test.XXXXXX", text[256];
    int fd = mkstemp(path);
    CHECK(write(fd, "before\n", 7) == 7);
    close(fd);
    struct settings settings = {.log.level = LOG_INFO, .log.file = path};
    struct log log;
    log_open(&log, &settings);
    log_say(&log, LOG_INFO, "behind");
    log_close(&log);
    read_file(path, text, sizeof text);
    CHECK_TEXT(text, "before\npillion: behind\n");
    unlink(path);
}

static void full_pipe(void)
{
    int ends[2];
    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    char page[4096] = {0};
    CHECK(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(ends[1], page, sizeof page) > 0) {
    }
    CHECK(fcntl(ends[1], F_SETFL, 0) == 0); /* blocking, full, and nobody reads */
    struct log log = {.fd = ends[1], .level = LOG_INFO};
    log_say(&log, LOG_INFO, "lost");
    CHECK(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0); /* EAGAIN */
    log_say(&log, LOG_INFO, "lost as well");
    CHECK(read(ends[0], page, sizeof page) == sizeof page);
    log_say(&log, LOG_INFO, "said");
    close(ends[1]);
    size_t len = 0;
    char last[4096] = "";
    for (ssize_t got; (got = read(ends[0], page, sizeof page)) > 0; len = (size_t)got) {
        memcpy(last, page, (size_t)got);
    }
    CHECK(len >= 14 && memcmp(last + len - 14, "pillion: said\n", 14) == 0);
    close(ends[0]);
}

TESTS({"text lines begin with the program's name and the level of a warning", text_lines},
      {"messages above the chosen level are not written", levels},
      {"control characters and broken UTF-8 of a name are shown as bytes", hostile_text},
      {"a name with line ends cannot forge a line on a terminal", no_forged_line},
      {"a message longer than the maximum is cut, never swallowed", long_texts},
      {"on a terminal a long message is wrapped with a hanging indent, elsewhere not", wrapped},
      {"no wrapped line is wider than 76 columns, counted in characters", wrapped_at_76},
      {"a block keeps its lines on a terminal and is one line elsewhere", blocks},
      {"in the journal each level has its priority in front", journal},
      {"logfmt has stamp, level, event and fields", logfmt_lines},
      {"json has stamp, level, event and fields", json_lines},
      {"hostile values are quoted in logfmt and json", hostile_values},
      {"a warning is written once per cause and its repeats are counted", once_per_cause},
      {"a cause that many processes have is written once, with the first one's name", one_cause_many_names},
      {"the lines of a block are wrapped one by one", wrapped_blocks},
      {"figures do not make another cause, words do", figures_are_no_cause},
      {"the number of remembered causes is bounded", causes_are_bounded},
      {"a log file that was renamed is opened again, under the same descriptor", reopened},
      {"a log file is appended to", appended},
      {"the status line is drawn over itself and blanked by what is said next", drawn_over_itself},
      {"the status line is blanked at the end", blanked_at_the_end},
      {"the status line is narrower than the terminal, whatever was there", never_as_wide_as_the_terminal},
      {"where no line may be drawn none is", only_where_it_may_be_drawn},
      {"the status line waits for nobody", not_while_another_thread_says_something},
      {"a full pipe loses the message and does not hold the profiler up", full_pipe},
      {"a listener hears what is said at info and above",
       a_listener_hears_what_is_said_at_info_and_above})
