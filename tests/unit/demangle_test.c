/* Names of real compilers, and names made to cost memory, stack or time. */
#include "symbol/demangle.h"
#include "test.h"

#include <pthread.h>
#include <time.h>

static struct buf out;

static const char *readable(const char *mangled)
{
    buf_release(&out);
    buf_init(&out, 64 * 1024);
    return demangle(str_of(mangled), &out) ? buf_cstr(&out) : NULL;
}

#define LEFT_ALONE(mangled) CHECK(readable(mangled) == NULL && out.len == 0 && !out.failed)

static void cpp(void)
{
    CHECK_TEXT(readable("_ZN3foo3barEi"), "foo::bar");
    CHECK_TEXT(readable("_ZNSt6vectorIiSaIiEE9push_backEOi"),
               "std::vector<int, std::allocator<int> >::push_back");
    CHECK_TEXT(readable("_ZZ4mainENKUlvE_clEv"), "main::{lambda()#1}::operator()");
    CHECK_TEXT(readable("_ZN12_GLOBAL__N_14workEv"), "(anonymous namespace)::work");
    CHECK_TEXT(readable("_ZTv0_n24_N1A1fEv"), "virtual thunk to A::f()");
    buf_release(&out);
}

static void rust(void)
{
    CHECK_TEXT(readable("_ZN4core3ptr85drop_in_place$LT$std..rt..lang_start$LT$$LP$$RP$$GT$"
                        "..$u7b$$u7b$closure$u7d$$u7d$$GT$17h0123456789abcdefE"),
               "core::ptr::drop_in_place<std::rt::lang_start<()>::{{closure}}>");
    CHECK_TEXT(readable("_ZN3app4main17h05af221e174051e9E.llvm.1234567"), "app::main");
    CHECK_TEXT(readable("_RNvC6_123foo3bar"), "123foo::bar");
    CHECK_TEXT(readable("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
    CHECK_TEXT(readable("_RINvNtC3std3mem8align_ofdE"), "std::mem::align_of::<f64>");
    CHECK_TEXT(readable("_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y"),
               "utf8_idents::საჭმელად_გემრიელი_სადილი");
    buf_release(&out);
}

static void d_names(void)
{
    CHECK_TEXT(readable("_Dmain"), "D main");
    CHECK_TEXT(readable("_D8demangle4testFaZv"), "demangle.test(char)");
    buf_release(&out);
}

static void clones(void)
{
    CHECK_TEXT(readable("work.part.0"), "work");
    CHECK_TEXT(readable("work.constprop.0.isra.0"), "work");
    CHECK_TEXT(readable("_ZN3foo3barEi.part.0.cold"), "foo::bar");
    CHECK_TEXT(readable("_ZN3foo3barEi.lto_priv.12"), "foo::bar");
    CHECK_TEXT(readable("read_all.llvm.10234567890123456789"), "read_all");
    CHECK_TEXT(readable("f.cold.3"), "f");
    LEFT_ALONE(".part.0");
    LEFT_ALONE("main.func1");     /* Go: a closure is a function of its own */
    LEFT_ALONE("type..eq.12");
    LEFT_ALONE("x.particle");
    buf_release(&out);
}

static void others(void)
{
    LEFT_ALONE("");
    LEFT_ALONE("main");
    LEFT_ALONE("_start");
    LEFT_ALONE("__libc_start_main");
    LEFT_ALONE("_Z");
    LEFT_ALONE("_ZN");
    LEFT_ALONE("_R");
    LEFT_ALONE("_D");
    LEFT_ALONE("_Deal_with_it");
    LEFT_ALONE("runtime.(*mcache).nextFree");
    CHECK(!demangle((struct str){"_ZN3foo3barEi\0x", 15}, &out));
    buf_release(&out);
}

static double seconds_of(const char *mangled)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    const char *text = readable(mangled);
    clock_gettime(CLOCK_MONOTONIC, &b);
    CHECK(text == NULL || strlen(text) <= DEMANGLE_OUTPUT_MAX);
    return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

/* "prefix" + part × count + "suffix" */
static const char *repeat(const char *prefix, const char *part, unsigned count, const char *suffix)
{
    static char text[8192];
    size_t len = (size_t)snprintf(text, sizeof text, "%s", prefix);
    for (unsigned i = 0; i < count && len + strlen(part) + 64 < sizeof text; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s", part);
    }
    snprintf(text + len, sizeof text - len, "%s", suffix);
    return text;
}

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* f<P<int, int>, P<P<int, int>, P<int, int> >, …>: each argument is twice the one before. S_ is f,
 * S0_ is P, S1_ is P<int, int>, and each argument adds one. */
static const char *cpp_bomb(int levels)
{
    static char text[1000];
    strcpy(text, "_Z1fI1PIiiE");
    for (int i = 1; i < levels; i++) {
        char part[] = {'S', '0', '_', 'I', 'S', digits[i], '_', 'S', digits[i], '_', 'E', 0};
        strcat(text, part);
    }
    return strcat(text, "Evv");
}

/* a::f::<(i32, i32), ((i32, i32), (i32, i32)), …>: "B" and a position behind "_R" repeat a type;
 * the position is in base 62 less one, the lower-case digits first. */
static const char *rust_bomb(int levels)
{
    static const char digit62[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static char text[2000];
    size_t before = 0;
    strcpy(text, "_RINvC1a1f");
    for (int i = 0; i < levels; i++) {
        size_t here = strlen(text) - 2;
        char part[40] = "TllE";
        if (i > 0 && before - 1 < 62) {
            snprintf(part, sizeof part, "TB%c_B%c_E", digit62[before - 1], digit62[before - 1]);
        } else if (i > 0) {
            char high = digit62[(before - 1) / 62], low = digit62[(before - 1) % 62];
            snprintf(part, sizeof part, "TB%c%c_B%c%c_E", high, low, high, low);
        }
        strcat(text, part);
        before = here;
    }
    return strcat(text, "E");
}

static void bombs(void)
{
    CHECK_TEXT(readable(cpp_bomb(2)), "f<P<int, int>, P<P<int, int>, P<int, int> > >");
    CHECK(readable(cpp_bomb(6)) != NULL);
    CHECK(seconds_of(cpp_bomb(35)) < 0.5);
    LEFT_ALONE(cpp_bomb(35));

    CHECK_TEXT(readable(rust_bomb(2)), "a::f::<(i32, i32), ((i32, i32), (i32, i32))>");
    CHECK(readable(rust_bomb(6)) != NULL);
    CHECK(seconds_of(rust_bomb(60)) < 0.5);
    LEFT_ALONE(rust_bomb(60));

    /* Rust: a binder of 2^64 lifetimes; D: nested and repeated types */
    CHECK(seconds_of("_RMC0FGZZZZZZZZZZ_Eu") < 0.5);
    CHECK(seconds_of(repeat("_D1aF", "QaQaQaQb", 500, "Zv")) < 0.5);
    CHECK(seconds_of(repeat("_D1aFA", "A", 5000, "iZv")) < 0.5);
    CHECK(seconds_of(repeat("_D1a", "FS1a", 200, "")) < 0.5);
    buf_release(&out);
}

static const char *const deep[][4] = {
    {"_Z1fP", "P", "i", "pointers"},
    {"_Z1f", "PFv", "v", "function pointers"},
    {"_Z", "1fIX", "L", "expressions"},
    {"_ZN", "1aI", "i", "templates"},
    {"_Z1fIXsr", "1aI", "E", "scopes"},
    {"_ZZ", "Z", "1fvE", "local names"},
    {"_RINvC1a1f", "R", "lE", "references"},
    {"_RINvC1a1f", "T", "lE", "tuples"},
    {"_RNvX", "Y", "l", "paths"},
    {"_RINvC1a1f", "DINvC1a1f", "E", "traits"},
    {"_D1aF", "A", "iZv", "arrays"},
    {"_D1aF", "PF", "Zv", "functions"},
    {"_D1aFS", "1a__T1b", "Zv", "templates"},
    {"_D1aF", "H", "iZv", "associative arrays"},
};

static void demangle_deep(void)
{
    struct buf text;
    buf_init(&text, 64 * 1024);
    for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++) {
        for (unsigned count = 1; count < 5000; count = count * 3 / 2 + 1) {
            buf_clear(&text);
            (void)demangle(str_of(repeat(deep[i][0], deep[i][1], count, deep[i][2])), &text);
        }
    }
    buf_release(&text);
}

static void *on_small_stack(void *unused)
{
    (void)unused;
    demangle_deep();
    return NULL;
}

/* The sanitizers make frames several times larger, so this stack is 4 times the one that is asked
 * of callers. */
static void deep_names(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 4 * (size_t)DEMANGLE_STACK_BYTES);
    CHECK(pthread_create(&thread, &attributes, on_small_stack, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&attributes);
}

static void limits(void)
{
    static char name[DEMANGLE_INPUT_MAX + 2];
    memset(name, 'a', sizeof name - 1);
    memcpy(name + DEMANGLE_INPUT_MAX - 7, ".part.0", 7);
    name[DEMANGLE_INPUT_MAX] = '\0';
    CHECK(readable(name) != NULL && out.len == DEMANGLE_INPUT_MAX - 7);
    memmove(name + 1, name, DEMANGLE_INPUT_MAX + 1);
    LEFT_ALONE(name);
    struct buf small;
    buf_init(&small, 12);
    buf_text(&small, "12345");
    CHECK(!demangle(STR("_ZN3foo3barEi"), &small)); /* 8 bytes do not fit */
    CHECK_STR(buf_slice(&small), "12345");
    CHECK(demangle(STR("_Z3fooi"), &small));
    CHECK_STR(buf_slice(&small), "12345foo");
    buf_release(&small);
    buf_release(&out);
}

TESTS({"C++ names lose their parameters, keep their template arguments", cpp},
      {"Rust names of both schemes lose their hash", rust},
      {"D names are readable", d_names},
      {"clones of a function carry the function's name", clones},
      {"other names are left alone", others},
      {"names that stand for gigabytes are given up at once", bombs},
      {"deeply nested names stay within the stack that is asked for", deep_names},
      {"a name that does not fit leaves the buffer as it was", limits})
