/* src/capture/stacks/labels, and where src/runtime/python/task finds tasks. */
#include "capture/stacks/labels.h"
#include "elf_build.h"
#include "runtime/python/private.h"
#include "sample_profile.h"
#include "test.h"

static struct caught *caught_of(uint8_t marks, uint32_t interpreter, const char *task)
{
    static struct caught caught;
    caught = (struct caught){.serial = 1, .end = RUNTIME_COMPLETE, .marks = marks,
                             .interpreter = interpreter, .task_bytes = (uint8_t)strlen(task)};
    memcpy(caught.task, task, strlen(task));
    return &caught;
}

struct bench {
    struct profile p;
    uint32_t thread;
};

static struct bench *set_up(void)
{
    struct bench *b = calloc(1, sizeof *b);
    CHECK(profile_init(&b->p, SAMPLE_MAX_BYTES, NULL));
    b->thread = add_thread(&b->p, add_process(&b->p, 5, "x", ""), 6, "n");
    return b;
}

static void tear_down(struct bench *b)
{
    profile_release(&b->p);
    free(b);
}

/* "gil|task|interpreter|method|script|url" of the row that it gives. */
static const char *told(struct bench *b, const struct caught *caught)
{
    static char out[200];
    const struct thread *t = &b->p.threads.at[labels_thread(&b->p, b->thread, caught)];
    size_t len = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < PROFILE_LABELS_NAMED; i++) {
        struct str text = profile_text(&b->p, t->label[i]);
        len += (size_t)snprintf(out + len, sizeof out - len, "%s%.*s", i == 0 ? "" : "|",
                                (int)text.len, text.ptr);
    }
    return out;
}

static void what_was_caught_is_told(void)
{
    struct bench *b = set_up();
    CHECK_TEXT(told(b, caught_of(0, 0, "")), "|||||");
    CHECK_TEXT(told(b, caught_of(RUNTIME_HOLDS_LOCK, 0, "")), "held|||||");
    CHECK_TEXT(told(b, caught_of(RUNTIME_HOLDS_LOCK | RUNTIME_IN_GC, 0, "")), "held|||||");
    CHECK_TEXT(told(b, caught_of(RUNTIME_WAITS_LOCK, 0, "")), "waiting|||||");
    CHECK_TEXT(told(b, caught_of(RUNTIME_HOLDS_LOCK, 1, "pay")), "held|pay|0|||");
    CHECK_TEXT(told(b, caught_of(0, UINT32_MAX, "")), "||4294967294|||");
    tear_down(b);
}

static void requests_are_told(void)
{
    static const char *const texts[][2] = {
        {"GET\n/srv/a.php\n/a?b\n", "|||GET|/srv/a.php|/a?b"}, {"GET\n/srv/a.php\n\n", "|||GET|/srv/a.php|"},
        {"GET\n\n/a\n", "|||GET||/a"}, {"GET", "|||GET||"}, {"GET\na", "|||GET|a|"},
    };
    struct bench *b = set_up();
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct caught *caught = caught_of(RUNTIME_OF_REQUEST, 0, texts[i][0]);
        for (unsigned k = 0; k < caught->task_bytes; k++) {
            caught->task[k] = caught->task[k] != '\n' ? caught->task[k] : '\0';
        }
        CHECK_TEXT(told(b, caught), texts[i][1]);
    }
    tear_down(b);
}

/* Of a runtime without stacks: of the sample's moment only. */
static void the_programs_own_are_told(void)
{
    static const char own[] = "a\0001\0b\0" "2";
    static const struct { uint8_t marks, verdict; bool is_told; } cases[] = {
        {RUNTIME_HAS_LABELS, CATCH_PROVEN, true}, {RUNTIME_HAS_LABELS, CATCH_LATE, false},
        {RUNTIME_HAS_LABELS | RUNTIME_SAME_TASK, CATCH_LATE, true}, {0, CATCH_PROVEN, false},
    };
    struct bench *b = set_up();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct caught *caught = caught_of(cases[i].marks, 0, "");
        memcpy(caught->task, own, sizeof own);
        caught->task_bytes = sizeof own;
        caught->end = RUNTIME_EMPTY;
        caught->verdict = cases[i].verdict;
        uint32_t thread = labels_thread(&b->p, b->thread, caught);
        struct str text = profile_text(&b->p, b->p.threads.at[thread].label[PROFILE_LABEL_OWN]);
        CHECK(str_eq(text, cases[i].is_told ? (struct str){own, sizeof own} : STR("")));
        CHECK_INT(thread != b->thread, cases[i].is_told);
    }
    tear_down(b);
}

/* Each request has an id of its own: of more than there is room for the rest has one row. */
static void of_too_many_the_rest_is_one(void)
{
    struct bench *b = set_up();
    uint32_t last = 0, before = 0;
    for (unsigned i = 0; i < PROFILE_LABEL_OWN_VALUES + 2; i++) {
        struct caught *caught = caught_of(RUNTIME_HAS_LABELS, 0, "");
        caught->end = RUNTIME_EMPTY;
        caught->verdict = CATCH_PROVEN;
        caught->task_bytes = (uint8_t)(snprintf(caught->task, sizeof caught->task, "id%c%u", 0, i) + 1);
        before = last;
        last = labels_thread(&b->p, b->thread, caught);
    }
    struct str rest = profile_text(&b->p, b->p.threads.at[last].label[PROFILE_LABEL_OWN]), key, value;
    CHECK_INT(last, before);
    CHECK(profile_next_pair(&rest, &key, &value) && str_eq(key, STR("labels")) && str_eq(value, STR("(other)")));
    CHECK(!profile_next_pair(&rest, &key, &value));
    tear_down(b);
}

static void what_was_not_read_is_not_told(void)
{
    struct bench *b = set_up();
    CHECK_INT(labels_thread(&b->p, b->thread, NULL), b->thread);
    struct caught *caught = caught_of(RUNTIME_HOLDS_LOCK, 1, "pay");
    caught->serial = 0;
    CHECK_INT(labels_thread(&b->p, b->thread, caught), b->thread);
    for (unsigned end = RUNTIME_COMPLETE + 1; end < RUNTIME_END_COUNT; end++) {
        caught = caught_of(RUNTIME_HOLDS_LOCK, 1, "pay");
        caught->end = (uint8_t)end;
        CHECK_INT(labels_thread(&b->p, b->thread, caught), b->thread);
    }
    tear_down(b);
}

/* ---- where tasks are ---- */

/* .AsyncioDebug of Debian's 3.14.10. */
static const uint64_t table_3_14[] = {0xa8, 0x88, 0x60, 0x6c, 0x6d, 0x80, 0x98, 0x37248, 0x2a80,
                                      0x3a8, 0x360, 0x368, 0x370};
enum { TASK_BYTES, TASK_NAME, THREAD_BYTES = 9, RUNNING = 11 };

static uint64_t fields_of(uint32_t version, const char *name, const uint64_t *table, size_t len)
{
    static struct elf_build b;
    struct elf elf;
    struct python python = {.layout = {.version = version}};
    build_start(&b, EM_X86_64);
    build_section(&b, (struct build_row){name, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x2000, table,
                                         len, 0});
    build_end(&b);
    CHECK(elf_open_bytes(&elf, b.bytes, b.len, NULL));
    python_extend(&python, &elf);
    elf_release(&elf);
    return python.task_fields;
}

static uint64_t fields_with(unsigned number, uint64_t value)
{
    uint64_t table[13];
    memcpy(table, table_3_14, sizeof table);
    table[number] = value;
    return fields_of(PYTHON_VERSION(3, 14), ".AsyncioDebug", table, sizeof table);
}

static void asyncio_tells_where_tasks_are(void)
{
    CHECK(fields_with(TASK_NAME, 0x88) == ((uint64_t)872 << 32 | 136));
    CHECK(fields_of(PYTHON_VERSION(3, 14), ".Asyncio", table_3_14, sizeof table_3_14) == 0);
    CHECK(fields_of(PYTHON_VERSION(3, 13), ".AsyncioDebug", table_3_14, sizeof table_3_14) == 0);
    CHECK(fields_of(PYTHON_VERSION(3, 14), ".AsyncioDebug", table_3_14, 96) == 0);
}

static void fields_outside_their_structures_are_not_believed(void)
{
    CHECK(fields_with(TASK_NAME, 0xa8) == 0);
    CHECK(fields_with(TASK_NAME, 0x84) == 0);
    CHECK(fields_with(TASK_NAME, 0) == 0);
    CHECK(fields_with(TASK_BYTES, UINT64_MAX) == 0);
    CHECK(fields_with(RUNNING, UINT64_MAX - 7) == 0);
    CHECK(fields_with(THREAD_BYTES, 0x368) == 0);
}

TESTS({"lock, task and interpreter are labels", what_was_caught_is_told},
      {"of a request method, script and URL are told", requests_are_told},
      {"of a thread that could not be read nothing is told", what_was_not_read_is_not_told},
      {"the program's own are told if they are of the sample's moment", the_programs_own_are_told},
      {"of too many different ones the rest is one", of_too_many_the_rest_is_one},
      {"asyncio's own table tells where tasks are, from 3.14 on", asyncio_tells_where_tasks_are},
      {"a field outside its structure is not believed",
       fields_outside_their_structures_are_not_believed})
