/*
 * flame_text: how the flame graph page writes text.
 *
 * A `struct page` gathers small pieces and hands them to the sink in blocks. The first failure is
 * kept in `err`, later calls do nothing, and page_end says whether all went well.
 *
 * page_markup and page_printf write as is: constants and numbers only. Whatever comes from outside
 * goes through page_escaped: the five characters of HTML as numeric references; NUL, control
 * characters, line and paragraph separators, bidirectional controls, zero-width characters and
 * bytes that are no UTF-8 as visible "\x1b" or "\u202e"; at most FLAME_TEXT_MAX characters, then an
 * ellipsis. So no byte of a name can end an element, an attribute or a line of the source.
 */
#ifndef ENCODE_FLAME_TEXT_H
#define ENCODE_FLAME_TEXT_H

#include "base/iface.h"

enum { FLAME_TEXT_MAX = 512 };

struct page {
    struct sink *out;
    struct err *err;
    bool ok;
    uint64_t total; /* bytes so far */
    size_t len;
    char block[4096];
};

void page_begin(struct page *page, struct sink *out, struct err *err);
bool page_end(struct page *page);

void page_bytes(struct page *page, const void *ptr, size_t len);
void page_markup(struct page *page, const char *text);

/* At most 200 bytes per call. */
void page_printf(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_escaped(struct page *page, struct str text);

/* Does a character show nothing of itself, or act on what shows it? Controls and what reorders text. */
bool flame_text_is_unseen(uint32_t code);

/* "1,234,567" */
void page_count(struct page *page, uint64_t count);

/* "0.034 s", "3.42 s", "61.8 s" */
void page_seconds(struct page *page, uint64_t ns);

/* "512 bytes", "1.23 kB", "45.6 MB": by thousands */
void page_size(struct page *page, uint64_t bytes);

/* "33.1 %"; "0.0 %" when the whole is 0. */
void page_percent(struct page *page, uint64_t part, uint64_t whole);

/* Base64 with padding; the input of all calls but the last has a multiple of three bytes. */
void page_base64(struct page *page, const unsigned char *ptr, size_t len);

#endif
