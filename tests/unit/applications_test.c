/* What each target runs: read once per program, inherited, and read again at the ends of its first windows. */
#include "capture/follow/applications.h"
#include "test.h"

enum { PID = 0x7ffffff0, CHILD = PID + 1 }; /* above the kernel's highest pid */

static const char *told; /* the arguments of every process; null: it has ended */
static unsigned readings;

static bool text_of(void *context, uint32_t pid, uint32_t tid, const char *name, struct buf *out, struct err *err)
{
    (void)context;
    (void)pid;
    (void)tid;
    bool is_arguments = strcmp(name, "cmdline") == 0;
    readings += is_arguments;
    buf_clear(out);
    if (strcmp(name, "cwd") == 0) {
        buf_text(out, "/srv");
        return true;
    }
    for (const char *c = told; is_arguments && c != NULL && *c != '\0'; c++) {
        buf_byte(out, *c == '|' ? '\0' : *c);
    }
    return (is_arguments && told != NULL) || err_set(err, ERR_GONE, 0, "it has ended");
}

struct bench {
    struct settings settings;
    struct world world;
    struct shared shared;
    struct follow follow;
    struct profile p;
    struct applications *applications;
};

static struct bench *set_up(void)
{
    static const struct follow_hooks none;
    struct bench *b = calloc(1, sizeof *b);
    CHECK(b != NULL && profile_init(&b->p, 1 << 20, NULL));
    b->settings.naming.application_identifiers = true;
    b->world = (struct world){.text = text_of};
    b->shared.settings = &b->settings;
    b->shared.world = &b->world;
    b->shared.window.profile = &b->p;
    follow_init(&b->follow, &b->shared, &none);
    b->applications = applications_new(&b->follow);
    CHECK(b->applications != NULL);
    readings = 0;
    return b;
}

static void tear_down(struct bench *b)
{
    applications_concern.release(b->applications);
    follow_release(&b->follow);
    profile_release(&b->p);
    free(b);
}

static struct target *begun(struct bench *b, uint32_t pid)
{
    struct target *target = targets_get(&b->follow.targets, pid);
    target->start_ticks = 1;
    return target;
}

/* As its row in the profile has it. */
static const char *row_of(struct bench *b, struct target *target)
{
    static char text[600];
    uint32_t id = targets_process_id(&b->follow.targets, &b->p, target);
    struct str appid = profile_text(&b->p, b->p.processes.at[id].appid);
    snprintf(text, sizeof text, "%.*s", (int)appid.len, appid.ptr);
    return text;
}

static void end_window(struct bench *b)
{
    applications_concern.window_end(b->applications);
}

static void next_window(struct bench *b)
{
    targets_end_window(&b->follow.targets);
    profile_clear(&b->p);
}

static void once(void)
{
    struct bench *b = set_up();
    told = "python3|shop.py|--key|secret|";
    struct target *target = begun(b, PID);
    for (unsigned i = 0; i < 20; i++) {
        CHECK_TEXT(row_of(b, target), "python: shop.py (/srv/shop.py)");
        (void)row_of(b, target);
        end_window(b);
        next_window(b);
    }
    CHECK_INT(readings, 4);
    tear_down(b);
}

static void titled(void)
{
    struct bench *b = set_up();
    told = "php-fpm8.2|-F|";
    struct target *target = begun(b, PID);
    CHECK_TEXT(row_of(b, target), "");
    told = "php-fpm: pool www";
    end_window(b);
    CHECK_TEXT(row_of(b, target), "php-fpm: www");
    told = "[celeryd: worker]"; /* a title without a rule changes nothing */
    next_window(b);
    (void)row_of(b, target);
    end_window(b);
    CHECK_TEXT(row_of(b, target), "php-fpm: www");
    told = "/bin/sleep|9|"; /* an exec that nobody told of */
    next_window(b);
    (void)row_of(b, target);
    end_window(b);
    CHECK_TEXT(row_of(b, target), "");
    tear_down(b);
}

static void children(void)
{
    struct bench *b = set_up();
    struct targets *t = &b->follow.targets;
    told = "ruby|a.rb|";
    struct target *parent = begun(b, PID);
    CHECK_TEXT(row_of(b, parent), "ruby: a.rb (/srv/a.rb)");
    told = NULL;
    targets_fork(t, CHILD, CHILD, PID, PID, 1000000000);
    CHECK_TEXT(row_of(b, targets_find(t, CHILD)), "ruby: a.rb (/srv/a.rb)");
    CHECK_INT(readings, 1);
    told = "node|b.js|";
    targets_comm(t, CHILD, CHILD, STR("node"), true);
    CHECK_TEXT(row_of(b, targets_find(t, CHILD)), "nodejs: b.js (/srv/b.js)");
    CHECK_TEXT(row_of(b, parent), "ruby: a.rb (/srv/a.rb)");
    told = NULL;
    end_window(b);
    CHECK_TEXT(row_of(b, parent), "ruby: a.rb (/srv/a.rb)");
    tear_down(b);
}

static void unwanted(void)
{
    struct bench *b = set_up();
    b->settings.naming.application_identifiers = false;
    told = "ruby|a.rb|";
    CHECK_TEXT(row_of(b, begun(b, PID)), "");
    end_window(b);
    CHECK_INT(readings, 0);
    tear_down(b);
}

TESTS({"arguments are read once, and at the ends of the first windows", once},
      {"a title that comes later is what it runs, one without a rule is not", titled},
      {"a child is what its parent is until it calls exec", children},
      {"nothing is read where nobody wants it", unwanted})
