/* Keys of `pillion top`, from the bytes of a terminal to what they do. */
#include "test.h"

#include "capture/live/top_keys.h"

static unsigned typed(const char *bytes, size_t len)
{
    struct top_input input = {0};
    unsigned key = TOP_KEY_NONE;
    for (size_t i = 0; i < len; i++) {
        CHECK_INT(key, TOP_KEY_NONE);
        key = top_input_byte(&input, bytes[i]);
    }
    unsigned end = top_input_end(&input);
    return key != TOP_KEY_NONE ? key : end;
}

static void sequences(void)
{
    CHECK_INT(typed("\x1b[A", 3), TOP_KEY_UP);
    CHECK_INT(typed("\x1bOB", 3), TOP_KEY_DOWN);
    CHECK_INT(typed("\x1b[5~", 4), TOP_KEY_PAGE_UP);
    CHECK_INT(typed("\x1b[6~", 4), TOP_KEY_PAGE_DOWN);
    CHECK_INT(typed("\x1b[1;5A", 6), TOP_KEY_UNKNOWN);
    CHECK_INT(typed("\x1b", 1), TOP_ESC);
    CHECK_INT(typed("\x1b" "x", 2), TOP_KEY_UNKNOWN);
    CHECK_INT(typed("q", 1), 'q');
    CHECK_INT(typed("\xc3", 1), 0xc3);
}

/* One that came in two reads, and one that never ends. */
static void parts(void)
{
    struct top_input input = {0};
    CHECK_INT(top_input_byte(&input, 27), TOP_KEY_NONE);
    CHECK_INT(top_input_byte(&input, '['), TOP_KEY_NONE);
    CHECK_INT(top_input_end(&input), TOP_KEY_NONE);
    CHECK_INT(top_input_byte(&input, 'B'), TOP_KEY_DOWN);
    CHECK_INT(top_input_byte(&input, 27), TOP_KEY_NONE);
    CHECK_INT(top_input_byte(&input, '['), TOP_KEY_NONE);
    unsigned key = TOP_KEY_NONE;
    for (unsigned i = 0; i < 40 && key == TOP_KEY_NONE; i++) {
        key = top_input_byte(&input, '1');
    }
    CHECK_INT(key, TOP_KEY_UNKNOWN);
    CHECK_INT(top_input_byte(&input, 'q'), 'q');
}

static void press(struct top_state *s, const char *keys)
{
    for (; *keys != '\0'; keys++) {
        (void)top_state_key(s, (unsigned char)*keys);
    }
}

static void views_and_sorts(void)
{
    struct top_state s = {.selected = 7, .first = 3};
    press(&s, "2T");
    CHECK_INT(s.view, TOP_PROCESSES);
    CHECK_INT(s.sort, TOP_BY_TOTAL_SINCE);
    CHECK_INT(s.selected, 0);
    CHECK_INT(s.first, 0);
    press(&s, "\t\t\to");
    CHECK_INT(s.view, TOP_FUNCTIONS);
    CHECK_INT(s.sort, TOP_BY_OWN);
    press(&s, "4t1n ");
    CHECK_INT(s.view, TOP_FUNCTIONS);
    CHECK_INT(s.sort, TOP_BY_NAME);
    CHECK(s.paused);
    CHECK(!top_state_key(&s, 'x'));
    CHECK(!top_state_key(&s, TOP_KEY_UNKNOWN));
    CHECK(!top_state_key(&s, TOP_KEY_NONE));
}

static void search(void)
{
    struct top_state s = {0};
    press(&s, "/memq");
    CHECK(!s.over); /* q is a letter there */
    CHECK_TEXT(s.search, "memq");
    press(&s, "\x7f\r");
    CHECK_TEXT(s.search, "mem");
    CHECK_INT(s.asking, TOP_ASKS_NOTHING);
    (void)top_state_key(&s, TOP_ESC);
    CHECK_TEXT(s.search, "");
    press(&s, "/\xc3\xa4\x7f");
    CHECK_TEXT(s.search, ""); /* a character of two bytes */
    for (unsigned i = 0; i < 200; i++) {
        press(&s, "a");
    }
    CHECK_INT(s.search_len, TOP_SEARCH_MAX);
    press(&s, "\x15");
    CHECK_INT(s.search_len, 0);
}

static void the_end(void)
{
    struct top_state asks = {.asks_for_files = true}, given = {0};
    press(&asks, "q");
    CHECK(!asks.over);
    (void)top_state_key(&asks, TOP_ESC);
    CHECK(!asks.over);
    press(&asks, "qy");
    CHECK(asks.over && asks.writes);
    asks = (struct top_state){.asks_for_files = true};
    press(&asks, "q\r");
    CHECK(asks.over && !asks.writes);
    press(&given, "q");
    CHECK(given.over && !given.writes);
    asks = (struct top_state){.asks_for_files = true, .help = true};
    press(&asks, "\x03");
    CHECK(asks.over && !asks.writes);
}

static void one_only(void)
{
    struct top_state s = {.view = TOP_THREADS, .selected = 9, .topmost = 4};
    press(&s, "\r");
    CHECK_INT(s.only, 9);
    CHECK_INT(s.view, TOP_FUNCTIONS);
    press(&s, "2\r");
    CHECK_INT(s.only, 4); /* nothing was selected: the first */
    press(&s, "\r");
    CHECK_INT(s.only, 4); /* a function is nothing to choose by */
    (void)top_state_key(&s, TOP_ESC);
    CHECK_INT(s.only, 0);
}

TESTS({"arrows and pages are known, other sequences are passed over whole", sequences},
      {"a key in two parts is one, and a sequence without an end ends", parts},
      {"views, sorts and pause", views_and_sorts},
      {"a search takes all letters, and is bounded", search},
      {"q asks for files unless that was said, Ctrl-C never", the_end},
      {"Enter chooses a process, thread or language, Esc all again", one_only})
