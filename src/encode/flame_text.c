/* Text on its way into a page: in blocks to the sink, escaped for HTML or for a script, and numbers in
 * the alphabet of the tables. A failure is sticky and is told
 * once, at the end. */
#include "encode/flame_text.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"

void page_begin(struct page *page, struct sink *out, struct err *err)
{
    page->out = out;
    page->err = err;
    page->ok = true;
    page->total = 0;
    page->len = 0;
}

static void flush(struct page *page)
{
    page->ok = page->ok && sink_write(page->out, page->block, page->len, page->err);
    page->len = 0;
}

bool page_end(struct page *page)
{
    flush(page);
    return page->ok;
}

void page_bytes(struct page *page, const void *ptr, size_t len)
{
    page->total += len;
    if (len > sizeof page->block - page->len) {
        flush(page);
    }
    if (len > sizeof page->block) {
        page->ok = page->ok && sink_write(page->out, ptr, len, page->err);
    } else if (len > 0) {
        memcpy(page->block + page->len, ptr, len);
        page->len += len;
    }
}

void page_markup(struct page *page, const char *text)
{
    page_bytes(page, text, strlen(text));
}

void page_printf(struct page *page, const char *format, ...)
{
    char text[201];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len > 0) {
        page_bytes(page, text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
    }
}

bool flame_text_is_unseen(uint32_t code)
{
    return utf8_is_control(code) || utf8_is_invisible(code);
}

void page_escaped(struct page *page, struct str text)
{
    for (size_t chars = 0; text.len > 0; chars++) {
        if (chars == FLAME_TEXT_MAX) {
            page_markup(page, "\xe2\x80\xa6");
            return;
        }
        const char *from = text.ptr;
        uint32_t c = utf8_take(&text);
        size_t used = (size_t)(text.ptr - from);
        if ((c == 0xfffd && used == 1) || utf8_is_control(c)) {
            page_printf(page, "\\x%02x", used == 1 ? (unsigned char)*from : (unsigned)c);
        } else if (utf8_is_invisible(c)) {
            page_printf(page, "\\u%04x", (unsigned)c);
        } else if (c < 0x80 && strchr("&<>\"'", (int)c) != NULL) {
            page_printf(page, "&#%u;", (unsigned)c);
        } else {
            page_bytes(page, from, used);
        }
    }
}

void page_count(struct page *page, uint64_t count)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) {
            page_markup(page, ",");
        }
        page_bytes(page, digits + i, 1);
    }
}

void page_seconds(struct page *page, uint64_t ns)
{
    double s = (double)ns / 1e9;
    page_printf(page, "%.*f s", s == 0 || s >= 9.995 ? 1 : s >= 0.0995 ? 2 : 3, s);
}

void page_size(struct page *page, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    unsigned unit = 0;
    for (; value >= 999.5; value /= 1000) {
        unit++;
    }
    page_printf(page, "%.*f %s", unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, units[unit]);
}

void page_percent(struct page *page, uint64_t part, uint64_t whole)
{
    page_printf(page, "%.1f %%", whole == 0 ? 0.0 : 100.0 * (double)part / (double)whole);
}

void page_base64(struct page *page, const unsigned char *ptr, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t bits = (uint32_t)ptr[i] << 16 | (left > 1 ? (uint32_t)ptr[i + 1] << 8 : 0) |
                        (left > 2 ? ptr[i + 2] : 0u);
        char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                        left > 1 ? digits[bits >> 6 & 63] : '=',
                        left > 2 ? digits[bits & 63] : '='};
        page_bytes(page, four, sizeof four);
    }
}
