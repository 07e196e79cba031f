#include "cli/say.h"

#include "os/console.h"
#include "os/file.h"

#include <stdarg.h>
#include <stdio.h>

enum { MESSAGE_MAX = 16 * 1024, STANDARD_ERROR = 2 };

/* Columns of a text: bytes that do not continue a UTF-8 character. */
static size_t width(struct str text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
    return n;
}

/* Control characters would act on the terminal; messages repeat what others typed. */
static void add_printable(struct str word, struct buf *out)
{
    for (size_t i = 0; i < word.len; i++)
        buf_byte(out, (unsigned char)word.ptr[i] < ' ' || word.ptr[i] == 0x7f ? '?' : word.ptr[i]);
}

void say_format(struct str text, size_t columns, struct buf *out)
{
    size_t column = 8;
    buf_text(out, "pillion:");
    while (text.len > 0) {
        struct str word = str_cut(&text, ' ');
        if (columns && column > 8 && column + 1 + width(word) > columns) {
            buf_text(out, "\n ");
            column = 1;
        }
        buf_byte(out, ' ');
        add_printable(word, out);
        column += 1 + width(word);
    }
    buf_byte(out, '\n');
}

static size_t columns(void)
{
    if (!console_is_terminal(STANDARD_ERROR))
        return 0;
    unsigned wide = console_columns(STANDARD_ERROR);
    return wide > 0 && wide <= SAY_COLUMNS ? wide - 1 : SAY_COLUMNS;
}

static void write_message(struct str text)
{
    struct buf out;
    buf_init(&out, MESSAGE_MAX);
    say_format(text, columns(), &out);
    struct str whole = out.failed ? STR("pillion: out of memory\n") : buf_slice(&out);
    console_write(STANDARD_ERROR, whole.ptr, whole.len);
    buf_release(&out);
}

void say(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    write_message(str_of(text));
}

bool say_result(struct str text)
{
    struct file_writer writer;
    struct err err;
    if (!file_create_atomic(&writer, "-", &err)) {
        say("%s", err.text);
        return false;
    }
    struct sink sink = file_sink(&writer);
    bool ok = sink_write(&sink, text.ptr, text.len, &err) && file_commit(&writer, &err);
    if (!ok) {
        file_abandon(&writer);
        say("%s", err.text);
    }
    return ok;
}

void say_warnings(struct str lines)
{
    while (lines.len > 0) {
        struct str line = str_cut(&lines, '\n');
        say("warning: %.*s", (int)line.len, line.ptr);
    }
}
