/* The screen of `pillion top` as text, at several sizes and with hostile names. */
#include "test.h"

#include "base/time.h"
#include "base/utf8.h"
#include "capture/live/top_draw.h"
#include "sample_profile.h"

static struct top_model model;
static struct top_state state;
static struct top_title title;
static char text[1 << 16];

static void begin(void (*fill)(struct profile *))
{
    struct profile *p = calloc(1, sizeof *p);
    CHECK(profile_init(p, SAMPLE_MAX_BYTES, NULL));
    fill(p);
    CHECK(top_init(&model, NS_PER_S));
    top_add(&model, p);
    top_refresh(&model);
    profile_release(p);
    free(p);
    state = (struct top_state){0};
    title = (struct top_title){.what = "pid 12, 30", .mode = "perf, user and kernel", .message = "", .reason = "",
                               .hint = "", .elapsed_ns = 60 * NS_PER_S};
}

static const char *draw(unsigned width, unsigned height, bool color)
{
    const struct top_size size = {width, height, color};
    struct top_list list = {0};
    struct buf out;
    buf_init(&out, sizeof text);
    top_draw(&model, &state, &title, &size, &list, &out);
    snprintf(text, sizeof text, "%s", buf_cstr(&out));
    buf_release(&out);
    vec_release(&list.at);
    return text;
}

static void end(void)
{
    top_release(&model);
}

static void usual(void)
{
    begin(fill_sample);
    state.view = TOP_FUNCTIONS;
    CHECK_TEXT(draw(80, 14, false),
               "pillion top: pid 12, 30  60 s  0.5 s CPU\n"
               "0.01 cores in 2 processes, 1 samples/s, not seen 5.2 %\n"
               "own cost 0.0 % of one core, 0 MB; perf, user and kernel at 100 Hz\n"
               " >own% total%   own% total%  function   (last seconds, since start)\n"
               "  33.0   33.0   33.0   33.0  python     handle (shop/app.py:12)\n"
               "  30.9   30.9   30.9   30.9  kernel     do_syscall\n"
               "  30.9   30.9   30.9   30.9  native     memcpy\n"
               "   5.2    5.2    5.2    5.2  not seen   [lost]\n"
               "   0.0   63.9    0.0   63.9  native     main\n"
               "   0.0   30.9    0.0   30.9  go         query\n"
               "\n"
               "handle (shop/app.py:12)\n"
               "\n"
               " q end  ? keys  1-4 view  o t sort  / search  space pause");
    end();
}

static void small(void)
{
    begin(fill_sample);
    title.reason = "the rings were full";
    CHECK_TEXT(draw(40, 6, false),
               "pillion top: pid 12, 30  60 s  0.5 s CPU\n"
               " >own% total%  function\n"
               "  33.0   33.0  handle (shop/app.py:12)\n"
               "  30.9   30.9  do_syscall\n"
               "  30.9   30.9  memcpy\n"
               " ? keys  not seen: the rings were full");
    (void)top_state_key(&state, 'T');
    CHECK(strstr(draw(40, 6, false), "\n  own% >total%  function, since start\n") != NULL);
    CHECK_TEXT(draw(10, 24, false), "too small");
    CHECK_TEXT(draw(80, 2, false), "too small");
    CHECK_TEXT(draw(0, 0, false), "");
    end();
}

/* Names that move a cursor, end a line, turn the direction, are wide, combine or are no UTF-8. */
static void fill_hostile(struct profile *p)
{
    static const char *const names[] = {
        "\x1b[2J\x1b]0;title\a", "a\r\nb\tc", "\xe2\x80\xae" "gnp.exe", "\xc2\x9b" "31m", "\xff\xfe\x80",
        "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2",
        "e\xcc\x81\xcc\x81\xcc\x81", "%s%n%p", "\xf0\x9f\x98\x80 smile",
    };
    uint32_t process = add_process(p, 1, "\x1b[31mred\n", ""), thread = add_thread(p, process, 1, "\a\b");
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        profile_add(p, thread, add_name(p, 0, names[i], FRAME_NATIVE), (20 - i) * NS_PER_MS, 1);
    }
    char big[5000];
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = '\0';
    profile_add(p, thread, add_name(p, 0, big, FRAME_NATIVE), NS_PER_MS, 1);
    p->meta.end_wall_ns = NS_PER_S;
}

/* Lines of the screen; none has a control, or more columns than there are. */
static unsigned check_lines(unsigned width)
{
    unsigned lines = 0;
    for (struct str rest = str_of(text); rest.ptr < text + strlen(text) || lines == 0; lines++) {
        struct str line = str_cut(&rest, '\n');
        struct buf shown;
        buf_init(&shown, 1 << 16);
        size_t columns = utf8_add_shown(&shown, line, SIZE_MAX);
        CHECK(columns <= width);
        CHECK(shown.len == line.len); /* nothing had to be escaped */
        buf_release(&shown);
        if (rest.len == 0 && (rest.ptr == NULL || rest.ptr[-1] != '\n')) {
            return lines + 1;
        }
    }
    return lines;
}

static void hostile(void)
{
    begin(fill_hostile);
    title.what = "\x1b[5m evil";
    title.message = "\x1b]52;c;\n";
    for (unsigned view = 0; view < TOP_VIEWS; view++) {
        for (unsigned width = TOP_WIDTH_LEAST; width < 130; width++) {
            state.view = (enum top_table)view;
            (void)draw(width, 24, false);
            CHECK_INT(check_lines(width), 24);
        }
    }
    state.view = TOP_FUNCTIONS;
    CHECK(strstr(draw(80, 24, false), "native     \\x1b[2J\\x1b]0;title\\x07\n") != NULL);
    CHECK(strstr(text, "\\xe2\\x80\\xaegnp.exe\n") != NULL);
    end();
}

static void every_size(void)
{
    begin(fill_sample);
    for (unsigned width = 0; width < 140; width++) {
        for (unsigned height = 0; height < 45; height++) {
            for (unsigned help = 0; help < 2; help++) {
                state.help = help == 1;
                (void)draw(width, height, false);
                bool fits = width >= TOP_WIDTH_LEAST && height >= TOP_HEIGHT_LEAST;
                CHECK_INT(text[0] == '\0' ? 0 : check_lines(width), fits ? height : width > 0 && height > 0);
            }
        }
    }
    end();
}

static void selection(void)
{
    begin(fill_sample);
    (void)draw(80, 9, false);
    CHECK_INT(state.page, 4);
    (void)top_state_key(&state, 'j');
    CHECK(strstr(draw(80, 9, false), "\n> 33.0") != NULL);
    for (unsigned i = 0; i < 4; i++) {
        (void)top_state_key(&state, 'j');
    }
    CHECK(strstr(draw(80, 9, false), "\n>  0.0   63.9    0.0   63.9  native     main\n") != NULL);
    CHECK(strstr(text, "handle") == NULL); /* scrolled away */
    (void)top_state_key(&state, 'T'); /* and stays selected in another order */
    CHECK(strstr(draw(80, 9, false), "\n>  0.0   63.9    0.0   63.9  native     main\n") != NULL);
    CHECK_INT(state.place, 0);
    (void)top_state_key(&state, 'G');
    (void)draw(80, 9, false);
    CHECK_INT(state.place, 5);
    (void)top_state_key(&state, 'g');
    (void)draw(80, 9, false);
    CHECK_INT(state.place, 0);
    end();
}

static void colour(void)
{
    begin(fill_sample);
    (void)top_state_key(&state, 'j');
    CHECK(strstr(draw(80, 24, true), "\x1b[7m> 33.0") != NULL);
    CHECK(strchr(draw(80, 24, false), 27) == NULL);
    end();
}

static void chosen(void)
{
    begin(fill_sample);
    struct top_list list = {0};
    top_list_rows(&model, TOP_PROCESSES, 0, TOP_BY_OWN, STR("db"), &list);
    top_only(&model, list.at.at[0].row);
    CHECK(strstr(draw(80, 24, false), "function of db (pid 30) only\n") != NULL);
    vec_release(&list.at);
    end();
}

static const char *plain(bool json, bool since)
{
    struct top_list list = {0};
    struct buf out;
    buf_init(&out, sizeof text);
    if (json) {
        top_json(&model, &title, &list, &out);
    } else {
        const struct top_room room = {20, 120};
        top_lines(&model, &title, &room, since, &list, &out);
    }
    snprintf(text, sizeof text, "%s", buf_cstr(&out));
    buf_release(&out);
    vec_release(&list.at);
    return text;
}

static void table(void)
{
    begin(fill_sample);
    CHECK_TEXT(plain(false, true),
               "pid 12, 30: 60.0 s, 0.5 s CPU\n"
               "0.01 cores, 1 samples/s, not seen 5.2 %; own cost 0.0 % of one core, 0 MB; perf, user and kernel\n"
               "  own% total%  language   function\n"
               "  33.0   33.0  python     handle (shop/app.py:12)\n"
               "  30.9   30.9  kernel     do_syscall\n"
               "  30.9   30.9  native     memcpy\n"
               "   5.2    5.2  not seen   [lost]\n"
               "   0.0   63.9  native     main\n"
               "   0.0   30.9  go         query\n");
    CHECK(strstr(plain(false, false), "  33.0   33.0   33.0   33.0  python     handle (shop/app.py:12)\n") != NULL);
    end();
    begin(fill_hostile);
    (void)plain(false, false);
    CHECK(strchr(text, 27) == NULL && strchr(text, '\r') == NULL);
    end();
}

static void object(void)
{
    begin(fill_sample);
    CHECK(strstr(plain(true, false), "\"functions\":[{\"name\":\"handle (shop/app.py:12)\",\"language\":\"python\","
                                     "\"own_percent\":32.99,") != NULL);
    CHECK_INT(strchr(text, '\n') - text + 1, strlen(text)); /* one line */
    end();
}

TESTS({"a screen of 80 columns", usual},
      {"a small one has less, and a tiny one says so", small},
      {"hostile names neither act nor move a column, at any width", hostile},
      {"each size has its lines, help as well", every_size},
      {"the selected row stays selected and on the screen", selection},
      {"without colour no escape sequence is drawn, and the mark is a character", colour},
      {"the head says whose functions they are", chosen},
      {"a table for pipes", table},
      {"an object in one line", object})
