#include "capture/log.h"
#include "base/err.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/console.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_MAX_BYTES = 4096, STDERR_FD = 2, CAUSES_MAX = 256 };

static const char *const level_names[] = {"error", "warning", "info", "debug"};

void log_open(struct log *log, const struct settings *settings)
{
    *log = (struct log){.fd = STDERR_FD,
                        .level = settings->log_level,
                        .format = settings->log_format,
                        .path = settings->log_file};
    struct err err = {0};
    pthread_mutex_init(&log->lock, NULL);
    if (log->path != NULL) {
        int fd = console_open(log->path, &err);
        log->owned = fd >= 0;
        log->fd = fd >= 0 ? fd : STDERR_FD;
    }
    log->terminal = console_is_terminal(log->fd);
    log->journal = console_is_journal(log->fd);
    if (err.kind != ERR_NONE) {
        log_say(log, LOG_WARNING, "%s; messages go to standard error", err.text);
    }
}

void log_close(struct log *log)
{
    if (log->owned) {
        console_close(log->fd);
    }
    log->fd = -1;
    map_release(&log->said);
}

void log_reopen(struct log *log)
{
    int fd = log->path == NULL ? -1 : console_open(log->path, NULL);
    if (fd >= 0) {
        if (log->owned) {
            console_close(log->fd);
        }
        log->fd = fd;
        log->owned = true;
    }
}

/* Control characters would let a process name move the cursor or forge a line. */
static void add_visible(struct buf *line, struct str text, bool keep_lines)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        if ((byte >= 0x20 && byte != 0x7f) || (keep_lines && byte == '\n')) {
            buf_byte(line, (char)byte);
        } else {
            buf_printf(line, "\\x%02x", byte);
        }
    }
}

/* Column 76 and a hanging indent, on terminals only: collectors split at line ends. */
static void add_wrapped(struct buf *line, struct str text)
{
    enum { COLUMNS = 76 };
    size_t column = 0;
    while (text.len > 0) {
        struct str word = str_cut(&text, ' ');
        size_t first = str_find(word, '\n');
        if (column > 2 && column + 1 + (first < word.len ? first : word.len) > COLUMNS) {
            buf_text(line, "\n  ");
            column = 2;
        } else if (column > 0 && (line->len == 0 || line->ptr[line->len - 1] != ' ')) {
            buf_byte(line, ' ');
            column++;
        }
        add_visible(line, word, true);
        size_t last = str_find_last(word, '\n');
        column = last < word.len ? word.len - last - 1 : column + word.len;
    }
}

static void text_line(const struct log *log, enum log_level level, struct str text,
                      struct buf *line)
{
    static const int priorities[] = {3, 4, 6, 7};
    if (log->journal) {
        buf_printf(line, "<%d>", priorities[level]);
    }
    struct buf whole;
    buf_init(&whole, LINE_MAX_BYTES);
    buf_text(&whole, level == LOG_INFO && str_starts(text, STR("pillion ")) ? "" : "pillion: ");
    buf_text(&whole, level == LOG_ERROR     ? "error: "
                     : level == LOG_WARNING ? "warning: "
                                            : "");
    buf_str(&whole, text);
    if (log->terminal && memchr(text.ptr, '\n', text.len) == NULL) {
        add_wrapped(line, buf_slice(&whole));
    } else {
        add_visible(line, buf_slice(&whole), log->terminal);
    }
    buf_release(&whole);
}

static void add_quoted(struct buf *line, struct str value)
{
    buf_byte(line, '"');
    for (size_t i = 0; i < value.len; i++) {
        unsigned char byte = (unsigned char)value.ptr[i];
        if (byte == '"' || byte == '\\') {
            buf_byte(line, '\\');
            buf_byte(line, (char)byte);
        } else if (byte < 0x20 || byte == 0x7f) {
            buf_printf(line, "\\u%04x", byte);
        } else {
            buf_byte(line, (char)byte);
        }
    }
    buf_byte(line, '"');
}

static void logfmt_field(struct buf *line, const char *key, struct str value)
{
    bool plain = value.len > 0;
    for (size_t i = 0; i < value.len; i++) {
        unsigned char byte = (unsigned char)value.ptr[i];
        plain = plain && byte > 0x20 && byte != '"' && byte != '=' && byte != '\\' && byte != 0x7f;
    }
    buf_printf(line, "%s%s=", line->len > 0 ? " " : "", key);
    if (plain) {
        buf_str(line, value);
    } else {
        add_quoted(line, value);
    }
}

static void json_field(struct buf *line, const char *key, struct str value)
{
    buf_printf(line, "%c\"%s\":", line->len > 0 ? ',' : '{', key);
    add_quoted(line, value);
}

static void keyed_line(const struct log *log, enum log_level level, const char *event,
                       const struct log_field *fields, size_t count, struct str text,
                       struct buf *line)
{
    void (*add)(struct buf *, const char *, struct str) =
        log->format == LOG_JSON ? json_field : logfmt_field;
    char stamp[TIME_TEXT_MAX];
    time_rfc3339(clock_wall_ns(), stamp);
    add(line, "ts", str_of(stamp));
    add(line, "level", str_of(level_names[level]));
    add(line, "event", str_of(event));
    for (size_t i = 0; i < count; i++) {
        add(line, fields[i].key, fields[i].value);
    }
    if (count == 0) {
        add(line, "msg", text);
    }
    if (log->format == LOG_JSON) {
        buf_byte(line, '}');
    }
}

static void write_event(struct log *log, enum log_level level, const char *event,
                        const struct log_field *fields, size_t count, struct str text)
{
    if (log->fd < 0 || level > log->level) {
        return;
    }
    struct buf line;
    buf_init(&line, 2 * LINE_MAX_BYTES);
    if (log->format == LOG_TEXT) {
        text_line(log, level, text, &line);
    } else {
        keyed_line(log, level, event, fields, count, text, &line);
    }
    buf_byte(&line, '\n');
    if (!line.failed) {
        console_write(log->fd, line.ptr, line.len);
    }
    buf_release(&line);
}

void log_event(struct log *log, enum log_level level, const char *event,
               const struct log_field *fields, size_t count, const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_event(log, level, event, fields, count, str_of(text));
}

void log_say(struct log *log, enum log_level level, const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_event(log, level, "message", NULL, 0, str_of(text));
}

void log_once(struct log *log, const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    uint64_t cause = str_hash(str_sub(str_of(text), 0, 60));
    pthread_mutex_lock(&log->lock);
    struct map_slot *seen = map_find(&log->said, cause);
    bool first = seen == NULL && log->said.len < CAUSES_MAX && map_put(&log->said, cause, 1);
    if (seen != NULL) {
        seen->value++;
    }
    pthread_mutex_unlock(&log->lock);
    if (first) {
        write_event(log, LOG_WARNING, "message", NULL, 0, str_of(text));
    }
}
