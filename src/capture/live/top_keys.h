/*
 * top_keys: what a person does in `pillion top`: bytes from the terminal become keys, keys change where she is.
 *
 * Pure. A key may arrive in parts, as ESC [ A does: struct top_input remembers them. An ESC at the end of what was read
 * is the key itself (top_input_end).
 */
#ifndef CAPTURE_LIVE_TOP_KEYS_H
#define CAPTURE_LIVE_TOP_KEYS_H

#include "capture/live/top_model.h"

enum top_key {
    TOP_KEY_NONE,
    TOP_KEY_UP = 256, /* below: the byte itself */
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_UNKNOWN,
    TOP_ESC = 27,
    TOP_CTRL_C = 3,
    TOP_CTRL_L = 12,
};

struct top_input {
    char part[8]; /* of a sequence, from its ESC on */
    unsigned len;
};

/* The key that the byte completes; TOP_KEY_NONE: none yet. */
unsigned top_input_byte(struct top_input *input, char byte);
unsigned top_input_end(struct top_input *input);

enum { TOP_SEARCH_MAX = 64 };

enum top_asking { TOP_ASKS_NOTHING, TOP_ASKS_SEARCH, TOP_ASKS_FILES };

struct top_state {
    enum top_table view;
    enum top_sort sort;
    uint32_t selected;  /* its row; 0: whichever is first */
    uint32_t topmost;   /* of the list. Set by top_draw */
    uint32_t only;      /* whose functions are looked at; 0: all. For top_only */
    size_t place, first, page; /* of it in the list, of the line that is highest; lines that fit. Set by top_draw */
    bool paused, help;
    enum top_asking asking;
    bool asks_for_files; /* at the end: false when that was said before */
    char search[TOP_SEARCH_MAX + 1];
    unsigned search_len;
    long move;          /* of the selection, until the next top_draw */
    bool over, writes;  /* the person is through; and wants files */
    bool redraw;        /* all of it anew */
};

/* False: nothing has changed. */
bool top_state_key(struct top_state *s, unsigned key);

#endif
