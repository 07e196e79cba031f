/* Which readers of a process are asked about an address: those whose row resolves a process's, not a file's. */
#include "capture/stacks/resolve.h"

#include "test.h"

static int asked_file, asked_process;

static void *open_code(struct elf *elf, struct err *why)
{
    (void)elf, (void)why;
    return NULL;
}

static bool of_file(void *code, const struct runtime_place *at, struct runtime_resolved *out)
{
    (void)code, (void)at, (void)out;
    asked_file++;
    return true;
}

static bool of_process(void *state, const struct runtime_place *at, struct runtime_resolved *out)
{
    (void)at;
    asked_process += state == &asked_process;
    out->caller = (struct runtime_caller){RUNTIME_RULE_FRAME_SIZE, 8, 16};
    return true;
}

static const struct runtime file_row = {.name = "file", .open_code = open_code, .resolve = of_file};
static const struct runtime process_row = {.name = "process", .resolve = of_process};

static void rows_of_files_are_not_asked(void)
{
    static struct resolve r;
    static struct target target;
    static struct profile p;
    struct unwind_answer answer = {0};
    const struct unwind_question question = {.number = 1};
    struct reader second = {.runtime = &process_row, .state = &asked_process};
    struct reader first = {.runtime = &file_row, .state = &asked_file};
    target.runtime.reader = &first;
    CHECK(!resolve_begin(&r, &target, &p, false));
    CHECK(!resolve_ask(&r, &question, &answer));
    first.next = &second;
    CHECK(resolve_begin(&r, &target, &p, false));
    CHECK(resolve_ask(&r, &question, &answer));
    CHECK(asked_file == 0 && asked_process == 1);
    CHECK(answer.way == UNWIND_BY_SIZE && answer.value == 8 && answer.saved_fp == 16);
}

TESTS({"a row that resolves addresses of files is not given a process's state", rows_of_files_are_not_asked})
