/* Bytes to keys, keys to where the person is. Sequences of terminals are taken whole, also those that mean nothing
 * here: the letter at their end must not be a command. What a key does depends on what is asked at the time: a search,
 * whether files are wanted, or nothing. */
#include "capture/live/top_keys.h"

#include <string.h>

/* ---- bytes ---- */

static unsigned key_of(const char *part, unsigned len)
{
    static const struct {
        char text[5];
        unsigned short key;
    } keys[] = {
        {"[A", TOP_KEY_UP},       {"[B", TOP_KEY_DOWN},      {"OA", TOP_KEY_UP},   {"OB", TOP_KEY_DOWN},
        {"[5~", TOP_KEY_PAGE_UP}, {"[6~", TOP_KEY_PAGE_DOWN}, {"[H", TOP_KEY_HOME}, {"[F", TOP_KEY_END},
        {"[1~", TOP_KEY_HOME},    {"[4~", TOP_KEY_END},      {"OH", TOP_KEY_HOME}, {"OF", TOP_KEY_END},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strlen(keys[i].text) == len && memcmp(keys[i].text, part, len) == 0) {
            return keys[i].key;
        }
    }
    return TOP_KEY_UNKNOWN;
}

/* ESC [ parameters final, ESC O final; anything else behind an ESC is Alt and a key, which is none here. */
unsigned top_input_byte(struct top_input *input, char byte)
{
    if (input->len == 0 && byte != TOP_ESC) {
        return (unsigned char)byte;
    }
    if (input->len < sizeof input->part) {
        input->part[input->len] = byte;
    }
    input->len++;
    bool begins = input->len == 1 || (input->len == 2 && (byte == '[' || byte == 'O'));
    bool goes_on = input->len > 2 && byte < '@' && input->len < 32;
    if (begins || goes_on) {
        return TOP_KEY_NONE;
    }
    unsigned len = input->len - 1;
    input->len = 0;
    return len < sizeof input->part ? key_of(input->part + 1, len) : TOP_KEY_UNKNOWN;
}

unsigned top_input_end(struct top_input *input)
{
    bool alone = input->len == 1;
    input->len = alone ? 0 : input->len;
    return alone ? TOP_ESC : TOP_KEY_NONE;
}

/* ---- keys ---- */

static void end(struct top_state *s, bool writes)
{
    s->over = true;
    s->writes = writes;
}

static void search_key(struct top_state *s, unsigned key)
{
    if (key == '\r' || key == '\n') {
        s->asking = TOP_ASKS_NOTHING;
    } else if (key == TOP_ESC || key == TOP_CTRL_C) {
        s->asking = TOP_ASKS_NOTHING;
        s->search_len = 0;
    } else if (key == 0x7f || key == '\b') {
        while (s->search_len > 0 && (s->search[--s->search_len] & 0xc0) == 0x80) {
        }
    } else if (key == 21) { /* Ctrl-U */
        s->search_len = 0;
    } else if (key >= ' ' && key < 256 && s->search_len < TOP_SEARCH_MAX) {
        s->search[s->search_len++] = (char)key;
    }
    s->search[s->search_len] = '\0';
    s->selected = 0;
    s->first = 0;
}

static void set_view(struct top_state *s, enum top_table view)
{
    if (s->view != view) {
        s->view = view;
        s->selected = 0;
        s->first = 0;
    }
}

static bool sort_key(struct top_state *s, unsigned key)
{
    static const char sorts[TOP_SORTS + 1] = "otOTn";
    const char *found = key > 0 && key < 128 ? strchr(sorts, (char)key) : NULL;
    if (found == NULL || *found == '\0') {
        return false;
    }
    s->sort = (enum top_sort)(found - sorts);
    return true;
}

static bool move_key(struct top_state *s, unsigned key)
{
    long page = s->page > 1 ? (long)s->page - 1 : 1, all = (long)TOP_ROWS_MAX;
    long by = key == TOP_KEY_UP || key == 'k'     ? -1
              : key == TOP_KEY_DOWN || key == 'j' ? 1
              : key == TOP_KEY_PAGE_UP            ? -page
              : key == TOP_KEY_PAGE_DOWN          ? page
              : key == TOP_KEY_HOME || key == 'g' ? -all
              : key == TOP_KEY_END || key == 'G'  ? all
                                                  : 0;
    s->move += by;
    return by != 0;
}

static bool other_key(struct top_state *s, unsigned key)
{
    if (key >= '1' && key < '1' + TOP_VIEWS) {
        set_view(s, (enum top_table)(key - '1'));
    } else if (key == '\t') {
        set_view(s, (enum top_table)((s->view + 1) % TOP_VIEWS));
    } else if (key == '/') {
        s->asking = TOP_ASKS_SEARCH;
    } else if (key == ' ' || key == 'p') {
        s->paused = !s->paused;
    } else if (key == '?' || key == 'h') {
        s->help = true;
    } else if (key == '\r' || key == '\n') {
        s->only = s->view == TOP_FUNCTIONS ? s->only : s->selected != 0 ? s->selected : s->topmost;
        set_view(s, TOP_FUNCTIONS);
    } else if (key == TOP_ESC) {
        s->only = s->search_len > 0 ? s->only : 0;
        s->selected = s->search_len = 0;
        s->search[0] = '\0';
    } else if (key == TOP_CTRL_L) {
        s->redraw = true;
    } else if (key == 'q' && s->asks_for_files) {
        s->asking = TOP_ASKS_FILES;
    } else if (key == 'q' || key == TOP_CTRL_C) {
        end(s, false);
    } else {
        return false;
    }
    return true;
}

bool top_state_key(struct top_state *s, unsigned key)
{
    if (key == TOP_KEY_NONE) {
        return false;
    }
    if (s->asking == TOP_ASKS_SEARCH) {
        search_key(s, key);
        return true;
    }
    if (s->asking == TOP_ASKS_FILES) { /* Esc: not yet */
        s->asking = TOP_ASKS_NOTHING;
        if (key != TOP_ESC) {
            end(s, key == 'y' || key == 'Y');
        }
        return true;
    }
    if (s->help && key != TOP_CTRL_C) {
        s->help = false;
        return true;
    }
    return sort_key(s, key) || move_key(s, key) || other_key(s, key);
}
