/* Writes events as text, logfmt or JSON. Text of foreign origin is escaped, so that it can neither forge a line nor
 * move a cursor; lines are wrapped on terminals only. log_once compares messages without their digits and remembers
 * CAUSES_MAX of them: what would be one more is not written. */
#include "capture/log.h"
#include "base/err.h"
#include "base/time.h"
#include "base/utf8.h"
#include "os/clock.h"
#include "os/console.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    TEXT_MAX_BYTES = 4096,
    LINE_MAX_BYTES = 8 * TEXT_MAX_BYTES, /* escaping makes up to six bytes of one */
    STDERR_FD = 2,
    CAUSES_MAX = 256,
    CAUSE_BYTES = 120,
    STATUS_MAX = 240,
};

static const char *const level_names[] = {"error", "warning", "info", "debug"};

void log_open(struct log *log, const struct settings *settings)
{
    *log = (struct log){.fd = STDERR_FD,
                        .level = settings->log.level,
                        .format = settings->log.format,
                        .path = settings->log.file};
    struct err err = {0};
    pthread_mutex_init(&log->lock, NULL);
    if (log->path != NULL) {
        int fd = console_open(log->path, &err);
        log->owned = fd >= 0;
        log->fd = fd >= 0 ? fd : STDERR_FD;
    }
    log->terminal = console_is_terminal(log->fd);
    log->journal = console_is_journal(log->fd);
    log->live = console_is_live(log->fd) && log->level >= LOG_INFO && log->format == LOG_TEXT;
    if (err.kind != ERR_NONE) {
        log_say(log, LOG_WARNING, "%s; messages go to standard error", err.text);
    }
}

/* Blanks the status line. A terminal that became narrower has broken it: what of it is above stays. */
static void blank_status(struct log *log)
{
    char line[STATUS_MAX + 4];
    if (log->status_columns > 0) {
        int len = snprintf(line, sizeof line, "\r%*s\r", (int)log->status_columns, "");
        console_write(log->fd, line, (size_t)len);
        log->status_columns = 0;
    }
}

void log_status(struct log *log, struct str text, size_t columns)
{
    char line[2 * STATUS_MAX + 4];
    if (!log->live || text.len >= columns || text.len > STATUS_MAX ||
        pthread_mutex_trylock(&log->lock) != 0) {
        return;
    }
    size_t shown = log->status_columns < columns ? log->status_columns : columns - 1;
    size_t blanks = shown > text.len ? shown - text.len : 0;
    int len = snprintf(line, sizeof line, "\r%.*s%*s\r", (int)text.len, text.ptr, (int)blanks, "");
    if (console_write_now(log->fd, line, (size_t)len)) {
        log->status_columns = text.len;
    }
    pthread_mutex_unlock(&log->lock);
}

static void write_line(struct log *log, const struct buf *line)
{
    if (log->live) {
        pthread_mutex_lock(&log->lock);
        blank_status(log);
    }
    console_write(log->fd, line->ptr, line->len);
    if (log->live) {
        pthread_mutex_unlock(&log->lock);
    }
}

/* A status line goes, and what the terminal wrote over it with it. */
void log_interrupted(struct log *log)
{
    pthread_mutex_lock(&log->lock);
    if (log->status_columns > 0) {
        blank_status(log);
    } else if (log->terminal && log->format == LOG_TEXT && log->level >= LOG_INFO) {
        console_write(log->fd, "\n", 1);
    }
    pthread_mutex_unlock(&log->lock);
}

void log_close(struct log *log)
{
    if (log->fd >= 0) {
        blank_status(log);
    }
    if (log->owned) {
        console_close(log->fd);
    }
    log->fd = -1;
    map_release(&log->said);
}

void log_reopen(struct log *log)
{
    if (log->owned) {
        (void)console_reopen(log->fd, log->path, NULL);
    } else if (log->path != NULL) {
        int fd = console_open(log->path, NULL);
        log->owned = fd >= 0;
        log->fd = fd >= 0 ? fd : log->fd;
        log->live = log->live && !log->owned;
    }
}

static bool is_malformed(struct str taken, uint32_t character)
{
    return character == 0xfffd && taken.len == 1;
}

/* Control characters would let a process name move the cursor or forge a line; `blocks` keeps the
 * line ends that are followed by an indent. */
static void add_visible(struct buf *line, struct str text, bool blocks)
{
    while (text.len > 0) {
        struct str taken = text;
        uint32_t character = utf8_take(&text);
        taken.len -= text.len;
        bool kept = character == '\n' && blocks && str_starts(text, STR("  "));
        if (kept || (!utf8_is_control(character) && !is_malformed(taken, character))) {
            buf_str(line, taken);
            continue;
        }
        for (size_t i = 0; i < taken.len; i++) {
            buf_printf(line, "\\x%02x", (unsigned char)taken.ptr[i]);
        }
    }
}

static size_t columns_of(struct str text)
{
    size_t columns = 0;
    for (size_t i = 0; i < text.len; i++) {
        columns += ((unsigned char)text.ptr[i] & 0xc0) != 0x80; /* one per UTF-8 character */
    }
    return columns;
}

/* One line of a message, broken with a hanging indent of two more than its own. Runs of blanks are kept. */
static void add_wrapped_line(struct buf *line, struct str text, size_t columns)
{
    size_t indent = 0, column, blanks = 0;
    while (indent < text.len && text.ptr[indent] == ' ') {
        indent++;
    }
    buf_printf(line, "%*s", (int)indent, "");
    text = str_sub(text, indent, text.len);
    column = indent;
    while (text.len > 0) {
        struct str word = str_cut(&text, ' ');
        if (column > indent && column + blanks + columns_of(word) > columns) {
            buf_printf(line, "\n%*s", (int)indent + 2, "");
            column = indent + 2;
        } else {
            buf_printf(line, "%*s", (int)blanks, "");
            column += blanks;
        }
        buf_str(line, word);
        column += columns_of(word);
        blanks = 1;
        while (text.len > 0 && text.ptr[0] == ' ') {
            (void)str_cut(&text, ' ');
            blanks++;
        }
    }
}

/* On terminals only: collectors split at line ends. */
static void add_wrapped(struct buf *line, struct str text, size_t columns)
{
    while (text.len > 0) {
        add_wrapped_line(line, str_cut(&text, '\n'), columns);
        buf_text(line, text.len > 0 ? "\n" : "");
    }
}

size_t log_columns(const struct log *log)
{
    enum { COLUMNS_MOST = 76, COLUMNS_LEAST = 20 };
    unsigned wide = console_columns(log->fd);
    return wide > COLUMNS_LEAST && wide <= COLUMNS_MOST ? wide - 1 : (size_t)COLUMNS_MOST;
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
    buf_text(&whole, level == LOG_WARNING ? "warning: " : "");
    add_visible(&whole, text, log->terminal);
    struct str visible = buf_slice(&whole);
    if (log->terminal) {
        add_wrapped(line, visible, log_columns(log));
    } else {
        buf_str(line, visible);
    }
    buf_release(&whole);
}

/* A JSON string; logfmt quotes alike. What is no UTF-8 becomes U+FFFD: the line stays valid. */
static void add_quoted(struct buf *line, struct str value)
{
    buf_byte(line, '"');
    while (value.len > 0) {
        uint32_t character = utf8_take(&value);
        if (character == '"' || character == '\\') {
            buf_byte(line, '\\');
            buf_byte(line, (char)character);
        } else if (utf8_is_control(character)) {
            buf_printf(line, "\\u%04x", character);
        } else {
            utf8_put(line, character);
        }
    }
    buf_byte(line, '"');
}

static void logfmt_field(struct buf *line, const char *key, struct str value)
{
    bool plain = value.len > 0 && utf8_valid(value);
    for (size_t i = 0; i < value.len; i++) {
        unsigned char byte = (unsigned char)value.ptr[i];
        plain = plain && byte > 0x20 && byte != '"' && byte != '=' && byte != '\\' && byte < 0x7f;
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

void log_hear(struct log *log, struct log_listener listener)
{
    pthread_mutex_lock(&log->lock);
    log->listener = listener;
    pthread_mutex_unlock(&log->lock);
}

static void tell_listener(struct log *log, const struct log_heard *heard)
{
    if (heard->level > LOG_INFO) {
        return;
    }
    pthread_mutex_lock(&log->lock);
    if (log->listener.hear != NULL) {
        log->listener.hear(log->listener.context, heard);
    }
    pthread_mutex_unlock(&log->lock);
}

/* Where there is no memory for a line: what it would have said, as far as it is plain text. */
static void write_without_memory(const struct log *log, struct str text)
{
    static const char head[] = "pillion: out of memory: ";
    char line[sizeof head + 400];
    size_t len = sizeof head - 1;
    memcpy(line, head, len);
    for (size_t i = 0; i < text.len && len < sizeof line - 1; i++) {
        line[len++] = (char)(text.ptr[i] >= ' ' && text.ptr[i] < 0x7f ? text.ptr[i] : '?');
    }
    line[len++] = '\n';
    console_write(log->fd, line, len);
}

static void write_event(struct log *log, enum log_level level, const char *event,
                        const struct log_field *fields, size_t count, struct str text)
{
    tell_listener(log, &(struct log_heard){level, event, fields, count, text});
    if (log->fd < 0 || level > log->level) {
        return;
    }
    struct buf line;
    buf_init(&line, LINE_MAX_BYTES);
    if (log->format == LOG_TEXT) {
        text_line(log, level, text, &line);
    } else {
        keyed_line(log, level, event, fields, count, text, &line);
    }
    buf_byte(&line, '\n');
    if (!line.failed) {
        write_line(log, &line);
    } else if (log->format == LOG_TEXT) {
        write_without_memory(log, text);
    }
    buf_release(&line);
}

void log_event(struct log *log, enum log_level level, const char *event,
               const struct log_field *fields, size_t count, const char *format, ...)
{
    char text[TEXT_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_event(log, level, event, fields, count, str_of(text));
}

void log_say(struct log *log, enum log_level level, const char *format, ...)
{
    char text[TEXT_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_event(log, level, "message", NULL, 0, str_of(text));
}

/* Figures change from time to time and from process to process; the cause is the same. */
static uint64_t cause_of(struct str text)
{
    char words[CAUSE_BYTES];
    size_t len = 0;
    for (size_t i = 0; i < text.len && len < sizeof words; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            words[len++] = text.ptr[i];
        }
    }
    return str_hash((struct str){words, len});
}

static bool is_first(struct log *log, uint64_t cause)
{
    pthread_mutex_lock(&log->lock);
    struct map_slot *seen = map_find(&log->said, cause);
    bool first = seen == NULL && log->said.len < CAUSES_MAX;
    if (seen != NULL) {
        seen->value++;
    } else if (first) {
        (void)map_put(&log->said, cause, 1); /* without memory it is said again rather than not at all */
    }
    pthread_mutex_unlock(&log->lock);
    return first;
}

void log_once(struct log *log, enum log_level level, const char *format, ...)
{
    char text[TEXT_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (is_first(log, cause_of(str_of(text)))) {
        write_event(log, level, "message", NULL, 0, str_of(text));
    }
}

void log_once_for(struct log *log, enum log_level level, const char *cause, const char *format, ...)
{
    char text[TEXT_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (is_first(log, cause_of(str_of(cause)))) {
        write_event(log, level, "message", NULL, 0, str_of(text));
    }
}
