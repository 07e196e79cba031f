/*
 * test: the frame of every unit test program.
 *
 * A test's name is the promise it keeps. A program includes this header, writes its tests and ends
 * with the list:
 *
 *     static void cut_record(void) { CHECK(parse("\x01", 1) == false); }
 *     TESTS({"a cut record is counted, not decoded", cut_record})
 *
 * Run without arguments it prints one line per test, "ok NAME" or "not ok NAME", with the failed
 * checks above it, and exits 1 when one failed. `--list` prints the names; a test whose name is an
 * argument is left out. A test that cannot run here says why with SKIP("reason") and is printed as
 * "skip NAME: reason".
 *
 * A program whose tests hold a measurement against the kernel's, or wait for other processes, ends with
 * TESTS_THAT_MEASURE instead: conftest.py sees it there, and tests/run may try a failed one once more.
 */
#ifndef TEST_H
#define TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test {
    const char *name;
    void (*run)(void);
};

static int test_failures;
static const char *test_skip;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition);                               \
            test_failures++;                                                                       \
        }                                                                                          \
    } while (0)

#define CHECK_INT(actual, expected)                                                                \
    do {                                                                                           \
        long long a_ = (long long)(actual), e_ = (long long)(expected);                            \
        if (a_ != e_) {                                                                            \
            printf("# %s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #actual, a_, e_);   \
            test_failures++;                                                                       \
        }                                                                                          \
    } while (0)

/* Both are NUL-terminated. */
#define CHECK_TEXT(actual, expected)                                                               \
    do {                                                                                           \
        const char *a_ = (actual), *e_ = (expected);                                               \
        if (a_ == NULL || strcmp(a_, e_) != 0) {                                                   \
            printf("# %s:%d: %s is \"%s\", expected \"%s\"\n", __FILE__, __LINE__, #actual,        \
                   a_ ? a_ : "(null)", e_);                                                        \
            test_failures++;                                                                       \
        }                                                                                          \
    } while (0)

/* `actual` is a struct str. */
#define CHECK_STR(actual, expected)                                                                \
    do {                                                                                           \
        struct str s_ = (actual);                                                                  \
        const char *e_ = (expected);                                                               \
        if (s_.len != strlen(e_) || memcmp(s_.ptr, e_, s_.len) != 0) {                             \
            printf("# %s:%d: %s is \"%.*s\", expected \"%s\"\n", __FILE__, __LINE__, #actual,      \
                   (int)s_.len, s_.ptr, e_);                                                       \
            test_failures++;                                                                       \
        }                                                                                          \
    } while (0)

#define SKIP(reason)                                                                               \
    do {                                                                                           \
        test_skip = (reason);                                                                      \
        return;                                                                                    \
    } while (0)

static bool test_is_named(const struct test *test, char **names)
{
    while (*names != NULL && strcmp(*names, test->name) != 0) {
        names++;
    }
    return *names != NULL;
}

static int test_main(int argc, char **argv, const struct test *tests, size_t count)
{
    bool list = argc > 1 && strcmp(argv[1], "--list") == 0;
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        if (list) {
            printf("%s\n", tests[i].name);
            continue;
        }
        if (test_is_named(&tests[i], argv + 1)) {
            continue;
        }
        test_failures = 0;
        test_skip = NULL;
        tests[i].run();
        fflush(stdout);
        failed += test_failures > 0;
        printf("%s %s%s%s\n", test_failures ? "not ok" : test_skip ? "skip" : "ok", tests[i].name,
               test_skip ? ": " : "", test_skip ? test_skip : "");
        fflush(stdout);
    }
    return failed > 0;
}

#define TESTS(...)                                                                                 \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const struct test tests[] = {__VA_ARGS__};                                          \
        return test_main(argc, argv, tests, sizeof tests / sizeof tests[0]);                       \
    }

#define TESTS_THAT_MEASURE TESTS

#endif
