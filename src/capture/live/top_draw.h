/*
 * top_draw: what `pillion top` shows, as text. Pure: the model, where the person is in it, and a size go in; text comes
 * out.
 *
 *     top_draw     a whole screen: `height` lines of at most `width` columns, line ends between, no movement of the
 *                  cursor in it. Less fits into a smaller one: first the lines about the selected row go, then the
 *                  facts, then the columns since the start.
 *     top_lines    the same as plain text for pipes and dumb terminals: facts and a table
 *     top_json     the same as an object in a line
 *
 * Names are escaped (utf8_add_shown). `color` adds bold and reverse video; what they say is said in characters, too.
 */
#ifndef CAPTURE_LIVE_TOP_DRAW_H
#define CAPTURE_LIVE_TOP_DRAW_H

#include "capture/live/top_keys.h"
#include "capture/live/top_model.h"

/* What the model does not know. Texts are foreign. */
struct top_title {
    const char *what;    /* is profiled: "pid 812" */
    const char *mode;    /* "perf, user and kernel" */
    const char *message; /* the last that the log had; "" */
    const char *reason;  /* why something is not seen; "" */
    const char *hint;    /* about the command's output; "" */
    uint64_t elapsed_ns;
};

struct top_size {
    unsigned width, height;
    bool color;
};

enum { TOP_WIDTH_LEAST = 20, TOP_HEIGHT_LEAST = 5, TOP_WIDTH_MOST = 400, TOP_SCREEN_MAX = 1 << 19 };

/* Also settles `state`: the selected row is in the list and on the screen. `list` is scratch. */
void top_draw(const struct top_model *m, struct top_state *state, const struct top_title *title,
              const struct top_size *size, struct top_list *list, struct buf *out);

/* Why so much is not seen, if it is worth a line; else "". */
const char *top_reason(const struct top_facts *f, const struct top_title *title);

struct top_room {
    size_t rows, columns;
};

/* `since`: only what was since the start. */
void top_lines(const struct top_model *m, const struct top_title *title, const struct top_room *room, bool since,
               struct top_list *list, struct buf *out);

void top_json(const struct top_model *m, const struct top_title *title, struct top_list *list, struct buf *out);

#endif
