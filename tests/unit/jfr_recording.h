/* A small flight recording, made here: types, constants in every form of text, and some samples. */
#ifndef TESTS_UNIT_JFR_RECORDING_H
#define TESTS_UNIT_JFR_RECORDING_H

#include "base/str.h"

#include <stdio.h>

enum { JFR_HEADER = 68, JFR_MADE_MAX = 1 << 16 };

/* Types, by id. */
enum { T_STRING = 20, T_LONG, T_INT, T_BOOLEAN, T_FLOAT, T_THREAD, T_TRACE, T_FRAME, T_METHOD, T_CLASS, T_SYMBOL,
       T_FRAME_TYPE,
       T_SAMPLE = 101, T_CPU, T_ALLOCATION, T_TLAB, T_OUTSIDE, T_LOCK, T_SETTING, T_JVM, T_NATIVE };

static void jfr_put(struct buf *out, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        buf_byte(out, (char)(value < 128 ? value : value | 128));
        if (value < 128) {
            return;
        }
        value >>= 7;
    }
    buf_byte(out, (char)value); /* the ninth has eight bits */
}

static void jfr_put_text(struct buf *out, const char *text)
{
    buf_byte(out, 3);
    jfr_put(out, strlen(text));
    buf_text(out, text);
}

/* Metadata: strings are put as they come, as the JDK puts them: units of 16 bits. */
struct jfr_names {
    const char *at[128];
    size_t count;
};

static size_t jfr_name(struct jfr_names *names, const char *text)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->at[i], text) == 0) {
            return i;
        }
    }
    names->at[names->count] = text;
    return names->count++;
}

static void jfr_element(struct buf *tree, struct jfr_names *names, const char *kind, const char *const *attributes,
                        size_t count, size_t children)
{
    jfr_put(tree, jfr_name(names, kind));
    jfr_put(tree, count);
    for (size_t i = 0; i < count; i++) {
        jfr_put(tree, jfr_name(names, attributes[2 * i]));
        jfr_put(tree, jfr_name(names, attributes[2 * i + 1]));
    }
    jfr_put(tree, children);
}

struct jfr_made_field {
    const char *name, *class;
    char how; /* 'c' a constant, 'a' an array */
};

static const struct jfr_made_class {
    const char *name, *id;
    struct jfr_made_field field[5];
} jfr_made[] = {
    {"java.lang.String", "20", {{0}}},
    {"long", "21", {{0}}},
    {"int", "22", {{0}}},
    {"boolean", "23", {{0}}},
    {"float", "24", {{0}}},
    {"java.lang.Thread", "25", {{"osName", "20", 0}, {"osThreadId", "21", 0}, {"javaName", "20", 0}}},
    {"jdk.types.StackTrace", "26", {{"truncated", "23", 0}, {"frames", "27", 'a'}}},
    {"jdk.types.StackFrame", "27", {{"method", "28", 'c'}, {"lineNumber", "22", 0}, {"type", "31", 'c'}}},
    {"jdk.types.Method", "28", {{"type", "29", 'c'}, {"name", "30", 'c'}, {"descriptor", "30", 'c'}}},
    {"java.lang.Class", "29", {{"weight", "24", 0}, {"name", "30", 'c'}}},
    {"jdk.types.Symbol", "30", {{"string", "20", 0}}},
    {"jdk.types.FrameType", "31", {{"description", "20", 0}}},
    {"jdk.ExecutionSample", "101", {{"startTime", "21", 0}, {"sampledThread", "25", 'c'}, {"stackTrace", "26", 'c'}}},
    {"jdk.CPUTimeSample", "102",
     {{"startTime", "21", 0}, {"stackTrace", "26", 'c'}, {"eventThread", "25", 'c'}, {"samplingPeriod", "21", 0}}},
    {"jdk.ObjectAllocationSample", "103", {{"eventThread", "25", 'c'}, {"stackTrace", "26", 'c'}, {"weight", "21", 0}}},
    {"jdk.ObjectAllocationInNewTLAB", "104",
     {{"eventThread", "25", 'c'}, {"stackTrace", "26", 'c'}, {"tlabSize", "21", 0}}},
    {"jdk.ObjectAllocationOutsideTLAB", "105",
     {{"eventThread", "25", 'c'}, {"stackTrace", "26", 'c'}, {"allocationSize", "21", 0}}},
    {"jdk.JavaMonitorEnter", "106", {{"duration", "21", 0}, {"eventThread", "25", 'c'}, {"stackTrace", "26", 'c'}}},
    {"jdk.ActiveSetting", "107", {{"id", "21", 0}, {"name", "20", 0}, {"value", "20", 0}}},
    {"jdk.JVMInformation", "108", {{"jvmVersion", "20", 0}, {"pid", "21", 0}}},
    {"jdk.NativeMethodSample", "109",
     {{"startTime", "21", 0}, {"sampledThread", "25", 'c'}, {"stackTrace", "26", 'c'}}},
};

static void jfr_put_metadata(struct buf *out)
{
    struct jfr_names names = {0};
    struct buf tree;
    size_t classes = sizeof jfr_made / sizeof jfr_made[0];
    buf_init(&tree, JFR_MADE_MAX);
    jfr_element(&tree, &names, "root", NULL, 0, 1);
    jfr_element(&tree, &names, "metadata", NULL, 0, classes);
    for (size_t i = 0; i < classes; i++) {
        const struct jfr_made_field *f = jfr_made[i].field;
        size_t count = 0;
        while (count < 5 && f[count].name != NULL) {
            count++;
        }
        const char *const attributes[] = {"name", jfr_made[i].name, "id", jfr_made[i].id};
        jfr_element(&tree, &names, "class", attributes, 2, count);
        for (size_t k = 0; k < count; k++) {
            bool is_constant = f[k].how == 'c';
            const char *key = is_constant ? "constantPool" : "dimension", *value = is_constant ? "true" : "1";
            const char *const of[] = {"name", f[k].name, "class", f[k].class, key, value};
            jfr_element(&tree, &names, "field", of, f[k].how != 0 ? 3 : 2, 0);
        }
    }
    for (int i = 0; i < 3; i++) {
        jfr_put(out, 0);
    }
    jfr_put(out, names.count);
    for (size_t i = 0; i < names.count; i++) {
        buf_byte(out, 4);
        jfr_put(out, strlen(names.at[i]));
        buf_text(out, names.at[i]);
    }
    buf_str(out, buf_slice(&tree));
    buf_release(&tree);
}

static void jfr_event(struct buf *out, uint64_t type, const struct buf *body)
{
    uint64_t size = 4 + (type < 128 ? 1 : 2) + body->len;
    for (int i = 0; i < 4; i++) { /* of four bytes, as the JDK keeps room for it */
        buf_byte(out, (char)((size >> 7 * i & 127) | (i < 3 ? 128 : 0)));
    }
    jfr_put(out, type);
    buf_str(out, buf_slice(body));
}

/* Constants: a symbol of each form of text, a class with an address, two methods and one that is native code, three
 * stacks, a thread. */
static void jfr_put_constants(struct buf *out)
{
    for (int i = 0; i < 3; i++) {
        jfr_put(out, i < 2 ? 0 : UINT64_MAX - 99); /* a step back */
    }
    buf_byte(out, 0);
    jfr_put(out, 7);
    jfr_put(out, T_SYMBOL), jfr_put(out, 5);
    jfr_put(out, 1), jfr_put_text(out, "shop/A$$Lambda$3+0x00007f0012345678");
    jfr_put(out, 2), buf_byte(out, 4), jfr_put(out, 4); /* "g\303\266\360\235\204\236" in units of 16 bits */
    jfr_put(out, 'g'), jfr_put(out, 0xf6), jfr_put(out, 0xd834), jfr_put(out, 0xdd1e);
    jfr_put(out, 3), buf_byte(out, 5), jfr_put(out, 4), buf_text(out, "na\xefv");
    jfr_put(out, UINT64_MAX), buf_byte(out, 2), jfr_put(out, 7);
    jfr_put(out, 4), jfr_put_text(out, "()L;");
    jfr_put(out, T_FRAME_TYPE), jfr_put(out, 1), jfr_put(out, 2), jfr_put_text(out, "Kernel");
    jfr_put(out, T_STRING), jfr_put(out, 1);
    jfr_put(out, 7), jfr_put_text(out, "shop/B");
    jfr_put(out, T_CLASS), jfr_put(out, 2);
    jfr_put(out, 1), buf_text(out, "wxyz"), jfr_put(out, 1);
    jfr_put(out, 2), buf_text(out, "wxyz"), jfr_put(out, UINT64_MAX);
    jfr_put(out, T_METHOD), jfr_put(out, 3);
    jfr_put(out, 1), jfr_put(out, 1), jfr_put(out, 2), jfr_put(out, 0);
    jfr_put(out, 2), jfr_put(out, 2), jfr_put(out, 3), jfr_put(out, 0);
    jfr_put(out, 3), jfr_put(out, 2), jfr_put(out, 3), jfr_put(out, 4);
    jfr_put(out, T_TRACE), jfr_put(out, 3);
    jfr_put(out, 1), buf_byte(out, 0), jfr_put(out, 2);
    jfr_put(out, 1), jfr_put(out, 12), jfr_put(out, 0), jfr_put(out, 2), jfr_put(out, 30), jfr_put(out, 0);
    jfr_put(out, 2), buf_byte(out, 1), jfr_put(out, 1), jfr_put(out, 2), jfr_put(out, UINT32_MAX), jfr_put(out, 0);
    jfr_put(out, 3), buf_byte(out, 0), jfr_put(out, 2); /* kernel, native */
    jfr_put(out, 3), jfr_put(out, 0), jfr_put(out, 2), jfr_put(out, 3), jfr_put(out, 0), jfr_put(out, 0);
    jfr_put(out, T_THREAD), jfr_put(out, 1);
    jfr_put(out, 5), jfr_put_text(out, "main"), jfr_put(out, 4711), jfr_put_text(out, "worker 1");
}

static void jfr_put_be(struct buf *out, size_t at, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        out->ptr[at + (size_t)i] = (char)(value >> (56 - 8 * i));
    }
}

static void jfr_sample(struct buf *out, uint64_t type, const uint64_t *values, size_t count)
{
    struct buf body;
    buf_init(&body, JFR_MADE_MAX);
    for (size_t i = 0; i < count; i++) {
        jfr_put(&body, values[i]);
    }
    jfr_event(out, type, &body);
    buf_release(&body);
}

/* A chunk up to its events; then jfr_sample, and jfr_end. `from`: where it begins in `out`. */
static void jfr_begin(struct buf *out)
{
    static const char header[JFR_HEADER] = {'F', 'L', 'R', 0, 0, 2, 0, 1, [67] = 1};
    struct buf body;
    size_t from = out->len;
    buf_init(&body, JFR_MADE_MAX);
    buf_add(out, header, sizeof header);
    jfr_put_be(out, from + 24, JFR_HEADER);
    jfr_put_be(out, from + 32, UINT64_C(1700000000000000000));
    jfr_put_be(out, from + 40, UINT64_C(2000000000));
    jfr_put_be(out, from + 48, 1000);
    jfr_put_be(out, from + 56, 1000000); /* a tick is a microsecond */
    jfr_put_metadata(&body);
    jfr_event(out, 0, &body);
    buf_clear(&body);
    jfr_put_constants(&body);
    jfr_event(out, 1, &body);
    buf_clear(&body);
    jfr_put(&body, T_SAMPLE), jfr_put_text(&body, "period"), jfr_put_text(&body, "10 ms");
    jfr_event(out, T_SETTING, &body);
    buf_clear(&body);
    jfr_put_text(&body, "OpenJDK 64-Bit Server VM (17.0.15+6) for linux"), jfr_put(&body, 42);
    jfr_event(out, T_JVM, &body);
    buf_release(&body);
}

static void jfr_end(struct buf *out, size_t from)
{
    jfr_put_be(out, from + 8, out->len - from);
}

#endif
