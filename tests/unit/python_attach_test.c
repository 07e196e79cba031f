/* Which file is CPython, and where one process has its interpreter and threads. */
#include "elf_build.h"
#include "elf_dynamic.h"
#include "python_process.h"
#include "runtime/common/image.h"
#include "test.h"

#include <errno.h>

static struct python_process p;

static struct python *attached(void)
{
    struct python *state = NULL;
    struct err err = {0};
    if (process_attach(&p, &state, &err) != RUNTIME_YES) {
        printf("# %x: %s\n", p.binary.version, err.text);
        test_failures++;
        exit(1); /* what follows would read a null pointer */
    }
    return state;
}

static void refused(const char *what, enum err_kind kind, int number, const char *text)
{
    struct python *state = NULL;
    struct err err = {0};
    enum runtime_answer answer = process_attach(&p, &state, &err);
    if (answer != RUNTIME_UNSUPPORTED || state != NULL || err.kind != kind ||
        err.number != number || strstr(err.text, text) == NULL) {
        printf("# %x, %s: answer %d, kind %d, number %d, '%s'\n", p.binary.version, what, answer,
               err.kind, err.number, err.text);
        test_failures++;
    }
    python_detach(state);
}

/* ---- attach ---- */

static void every_family(void)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        process_make(&p, &families[i], 3);
        struct python *state = attached();
        CHECK_INT(state->layout.version, families[i].version);
        CHECK_INT(state->pid, PROCESS_PID);
        CHECK(state->interp == at(PLACE_INTERP));
        CHECK(state->code_type == at(PLACE_CODE_TYPE));
        CHECK(state->head == at(families[i].head == ABSENT
                                    ? PLACE_HEAD
                                    : PLACE_RUNTIME + (uint64_t)families[i].head));
        CHECK(p.reads < 100 && p.bytes_read < 64 * 1024);
        python_detach(state);
    }
}

static void described(void)
{
    static const struct {
        int family;
        bool debug;
        const char *text;
    } rows[] = {{PY_2_7, false, "CPython 2.7.18"}, {PY_3_8, true, "CPython 3.8.18 debug"},
                {PY_3_13, false, "CPython 3.13.5"}};
    struct buf text;
    buf_init(&text, 100);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        process_make(&p, &families[rows[i].family], 1);
        p.binary.debug = rows[i].debug;
        struct python *state = attached();
        buf_clear(&text);
        python_describe(state, &text);
        CHECK_TEXT(buf_cstr(&text), rows[i].text);
        python_detach(state);
    }
    buf_release(&text);
}

static void not_started(void)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        const struct family *f = &families[i];
        process_make(&p, f, 1);
        put_word(&p, f->head == ABSENT ? PLACE_HEAD : PLACE_RUNTIME + (uint64_t)f->head, 0);
        refused("no interpreter", ERR_UNSUPPORTED, EAGAIN, "has not started its interpreter yet");
        process_make(&p, f, 1);
        put_word(&p, PLACE_INTERP + (uint64_t)f->threads, 0);
        refused("no thread", ERR_UNSUPPORTED, EAGAIN, "has not started its interpreter yet");
        process_make(&p, f, 1);
        put_word(&p, PLACE_CODE_TYPE + 24, 0);
        refused("nothing relocated", ERR_UNSUPPORTED, EAGAIN, "has not started");
    }
}

static void contradictions(void)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        const struct family *f = &families[i];
        process_make(&p, f, 3);
        put_word(&p, place_thread(1) + (uint64_t)f->interp, at(PLACE_INTERP + 64));
        refused("another's thread", ERR_UNSUPPORTED, EAGAIN, "keeps its threads elsewhere");
        process_make(&p, f, 3);
        put_word(&p, place_thread(2) + (uint64_t)f->next, at(place_thread(0)));
        refused("a ring of threads", ERR_UNSUPPORTED, EAGAIN, "keeps its threads elsewhere");
        CHECK(p.reads <= 32768 + 100);
        process_make(&p, f, 3);
        put_word(&p, place_thread(2) + (uint64_t)f->next, 0x1000);
        refused("a thread nowhere", ERR_UNSUPPORTED, EAGAIN, "keeps its threads elsewhere");
        process_make(&p, f, 2);
        p.tids[0] = 1;
        p.tids[1] = 2;
        refused("other numbers", ERR_UNSUPPORTED, EAGAIN, "the numbers of its threads");
        process_make(&p, f, 2);
        put_word(&p, PLACE_CODE + 8, at(PLACE_HEAP));
        refused("frames without code", ERR_UNSUPPORTED, EAGAIN, "keeps its frames elsewhere");
        process_make(&p, f, 2);
        put_word(&p, PLACE_CODE_TYPE + 240, at(PLACE_HEAP));
        refused("no members", ERR_UNSUPPORTED, EAGAIN, "the fields of code objects");
    }
}

static void idle_threads(void)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        const struct family *f = &families[i];
        process_make(&p, f, 2);
        put_word(&p, place_thread(0) + (uint64_t)f->frame, 0);
        put_word(&p, place_thread(1) + (uint64_t)f->frame, 0);
        python_detach(attached());
    }
}

/* From 3.12 on frames of C stand between those of Python, and have no code object. */
static void shims(void)
{
    process_make(&p, &families[PY_3_13], 1);
    put_word(&p, PLACE_FRAME + 0x80, at(PLACE_HEAP));       /* None, say */
    put_word(&p, PLACE_FRAME + 0x80 + 8, at(PLACE_FRAME));
    put_word(&p, place_thread(0) + 72, at(PLACE_FRAME + 0x80));
    python_detach(attached());
    put_word(&p, PLACE_FRAME + 0x80 + 8, at(PLACE_FRAME + 0x80)); /* and leads to itself */
    refused("a ring of shims", ERR_UNSUPPORTED, EAGAIN, "keeps its frames elsewhere");
}

static void sub_interpreters(void)
{
    const struct family *f = &families[PY_3_8];
    process_make(&p, f, 1);
    uint64_t second = PLACE_INTERP + 0x1000, thread = place_thread(4);
    put_word(&p, second, at(PLACE_INTERP)); /* next: a new one is put first */
    put_word(&p, second + 8, at(thread));
    put_word(&p, thread + 16, at(second));
    put_word(&p, PLACE_RUNTIME + 32, at(second));
    struct python *state = attached();
    CHECK(state->interp == at(PLACE_INTERP));
    python_detach(state);
    put_word(&p, PLACE_INTERP, at(second));
    refused("a ring of interpreters", ERR_UNSUPPORTED, EAGAIN, "keeps its threads elsewhere");
}

static void ending(void)
{
    process_make(&p, &families[PY_3_11], 1);
    put_word(&p, PLACE_RUNTIME + 24, at(place_thread(0))); /* _finalizing */
    refused("ending", ERR_GONE, 0, "CPython 3.11.7 is ending");
}

static void denied(void)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        process_make(&p, &families[i], 1);
        p.denied = true;
        refused("denied", ERR_DENIED, 1, "not allowed");
    }
}

/* ---- member table ---- */

static void moved_fields(void)
{
    process_make(&p, &families[PY_3_11], 1);
    put_member(&p, 5, "co_name", 128);
    put_member(&p, 7, "co_qualname", 120);
    put_word(&p, PLACE_CODE_TYPE + 32, 200); /* tp_basicsize */
    struct python *state = attached();
    CHECK(state->layout.code.name == 128 && state->layout.code.qualname == 120);
    CHECK_INT(state->layout.code.bytecode, 200);
    python_detach(state);
    put_member(&p, 5, "co_name", 129);
    refused("a name at an odd place", ERR_UNSUPPORTED, EAGAIN, "the fields of code objects");
    put_member(&p, 5, "co_name", 100000);
    refused("a name far outside", ERR_UNSUPPORTED, EAGAIN, "the fields of code objects");
    process_make(&p, &families[PY_3_11], 1);
    put_word(&p, PLACE_MEMBERS + 4 * 40, 0); /* ends before the file, the names and the lines */
    refused("half a table", ERR_UNSUPPORTED, EAGAIN, "the fields of code objects");
}

static void newer_version(void)
{
    struct family newer = families[PY_3_13];
    newer.version = 0x031000f0;
    newer.offsets = offsets_3_15;
    newer.offsets_count = sizeof offsets_3_15 / 8;
    newer.head = 936;
    newer.threads = 7336;
    newer.id = 176;
    newer.native = 184;
    newer.basic_size = 208;
    process_make(&p, &newer, 1);
    put_word(&p, PLACE_RUNTIME + 8, 0x031000f0);
    struct python *state = attached();
    CHECK_TEXT(state->version_text, "3.16.0");
    python_detach(state);
    put_member(&p, 5, "co_name", 136);
    put_member(&p, 6, "co_linetable", 120);
    refused("3.16 with moved fields", ERR_UNSUPPORTED, EAGAIN, "CPython 3.16.0");
}

static void linked_objects(void)
{
    for (size_t i = PY_2_7; i <= PY_3_11; i++) {
        process_make_shifted(&p, &families[i], 2, 16);
        struct python *state = attached();
        CHECK_INT(state->layout.object.type, 24);
        CHECK_INT(state->layout.code.name, families[i].name + 16);
        CHECK(state->debug == (i <= PY_3_6)); /* later ones can link objects without Py_DEBUG */
        python_detach(state);
    }
}

/* ---- threads' numbers ---- */

static void learnt_place(void)
{
    for (size_t i = PY_2_7; i <= PY_3_10; i++) {
        process_make(&p, &families[i], 2);
        struct python *state = attached();
        CHECK_INT(state->tid_in_pthread, 720);
        python_detach(state);
        for (size_t k = 0; k < 2; k++) { /* as no libc has it */
            put(&p, PLACE_PTHREAD + k * 0x1000 + 720, 0, 4);
            put(&p, PLACE_PTHREAD + k * 0x1000 + 100, p.tids[k], 4);
        }
        put(&p, PLACE_PTHREAD + 60, p.tids[0], 4); /* a thread's number, but of one for both */
        put(&p, PLACE_PTHREAD + 0x1000 + 60, p.tids[0], 4);
        state = attached();
        CHECK_INT(state->tid_in_pthread, 100);
        python_detach(state);
    }
}

/* PID 1 of a container: its number stands anywhere. */
static void common_number(void)
{
    process_make(&p, &families[PY_3_8], 1);
    p.tids[0] = 1;
    for (unsigned i = 0; i < 1024; i += 4) {
        put(&p, PLACE_PTHREAD + i, 1, 4);
    }
    struct python *state = attached();
    CHECK_INT(state->tid_in_pthread, 720);
    python_detach(state);
}

/* ---- the GIL ---- */

static void holder(void)
{
    process_make(&p, &families[PY_3_8], 1);
    struct python *state = attached();
    CHECK(state->current == at(PLACE_RUNTIME + 1368));
    python_detach(state);
    put_word(&p, PLACE_RUNTIME + 1368, at(PLACE_HEAP)); /* another libc's lock stands there */
    state = attached();
    CHECK(state->current == 0);
    python_detach(state);
    process_make(&p, &families[PY_2_7], 1);
    state = attached();
    CHECK(state->current == at(PLACE_CURRENT));
    python_detach(state);
}

/* ---- without symbols ---- */

static void head_by_scan(void)
{
    for (size_t i = PY_2_7; i <= PY_3_6; i++) {
        process_make(&p, &families[i], 2);
        p.binary.interp_head = 0;
        put_word(&p, PLACE_CURRENT, 0); /* nobody holds the GIL */
        for (unsigned k = 0; k < 40; k++) { /* rings of two, before it: the same pattern */
            uint64_t one = PLACE_HEAP + k * 64, other = one + 32;
            put_word(&p, PLACE_BSS + 0x400 + k * 8, at(one));
            put_word(&p, one + 8, at(other));
            put_word(&p, other + (uint64_t)families[i].interp, at(one));
        }
        struct python *state = attached();
        CHECK(state->head == at(PLACE_HEAD));
        CHECK(state->interp == at(PLACE_INTERP));
        python_detach(state);
        put_word(&p, PLACE_HEAD, 0);
        put_word(&p, PLACE_HEAD + 24, 0);
        refused("nothing to be found", ERR_UNSUPPORTED, EAGAIN, "has not started");
    }
}

static void runtime_by_scan(void)
{
    process_make(&p, &families[PY_3_8], 2);
    p.binary.runtime = 0;
    put_word(&p, PLACE_BSS + 0x100, at(PLACE_INTERP)); /* another pointer to it, seen first */
    struct python *state = attached();
    CHECK(state->runtime == at(PLACE_RUNTIME) && state->head == at(PLACE_RUNTIME + 32));
    python_detach(state);
}

static void type_by_frames(void)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        process_make(&p, &families[i], 2);
        p.binary.code_type = 0;
        struct python *state = attached();
        CHECK(state->code_type == at(PLACE_CODE_TYPE));
        python_detach(state);
        strcpy((char *)p.bytes + PLACE_TEXTS, "cell");
        refused("frames that lead to cells", ERR_UNSUPPORTED, EAGAIN, "its frames");
    }
}

static void version_from_memory(void)
{
    process_make(&p, &families[PY_3_8], 1);
    p.binary.version = 0;
    refused("no version", ERR_UNSUPPORTED, EAGAIN, "which version");
    strcpy((char *)p.bytes + PLACE_VERSION, "3.8.18 (default, Aug 25 2023, 13:20:30) [GCC 11]");
    struct python *state = attached();
    CHECK_TEXT(state->version_text, "3.8.18");
    python_detach(state);
    p.binary.py_version = PLACE_VERSION + 0x100;
    put_word(&p, PLACE_VERSION + 0x100, 0x030804f0); /* Py_Version goes first */
    state = attached();
    CHECK_TEXT(state->version_text, "3.8.4");
    python_detach(state);
    put_word(&p, PLACE_VERSION + 0x100, 0x03040af0);
    refused("3.4", ERR_UNSUPPORTED, 0, "CPython 3.4.10 is not known here");
}

/* ---- every byte ---- */

/* 64 interpreters in a ring, each with 64 threads in a ring: a quarter of a million of steps, five
 * times. */
static void many_rings(void)
{
    process_make(&p, &families[PY_3_8], 1);
    for (uint64_t i = 0; i < 64; i++) {
        uint64_t interp = PLACE_HEAP + i * 0x400, thread = interp + 0x200;
        put_word(&p, interp, at(PLACE_HEAP + (i + 1) % 64 * 0x400));
        put_word(&p, interp + 8, at(thread));
        put_word(&p, thread + 8, i < 63 ? 0 : at(thread));
        put_word(&p, thread + 16, at(interp));
    }
    put_word(&p, PLACE_RUNTIME + 32, at(PLACE_HEAP));
    refused("rings of rings", ERR_UNSUPPORTED, EAGAIN, "keeps its threads elsewhere");
    CHECK(p.reads <= 32768 + 100);
}

static void spoiled_memory(void)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        for (uint64_t place = 0; place < PLACE_PTHREAD; place += 8) {
            struct python *state = NULL;
            process_make(&p, &families[i], 2);
            uint64_t was = 0;
            memcpy(&was, p.bytes + place, 8);
            if (was == 0) {
                continue; /* what is nowhere read */
            }
            put_word(&p, place, was ^ 0xff00ff);
            (void)process_attach(&p, &state, NULL);
            CHECK(p.reads <= 32768 + 100);
            python_detach(state);
        }
    }
}

/* ---- recognise ---- */

static struct elf_dynamic_image file;

static const struct dynamic_symbol python_symbols[] = {
    {"PyCode_Type", 0x8500, 0x1a0, STT_OBJECT, 0},
    {"_PyRuntime", 0xa100, 0x290, STT_OBJECT, 0},
    {"PyFrame_GetCode", 0x4010, 0x10, STT_FUNC, 0}, /* 3.9 on */
    {"_PyEval_EvalFrameDefault", 0x4100, 0x100, STT_FUNC, 0},
    {"PyEval_EvalFrameEx", 0x4020, 0x10, STT_FUNC, 0},
    {"_PyObject_Vectorcall", 0x4030, 0x10, STT_FUNC, 0},
    {"PyObject_CallMethodObjArgs", 0x4040, 0x10, STT_FUNC, 0},
    {"PyRun_SimpleString", 0x4050, 0x10, STT_FUNC, 0},
    {"PyCMethod_New", 0x6000, 0x40, STT_FUNC, 0},
    {"PyCFunction_Type", 0x8800, 0x1a0, STT_OBJECT, 0},
};
enum { SYMBOLS = sizeof python_symbols / sizeof python_symbols[0] };

static void make_file(void)
{
    static const char texts[] = "\0.1.2\0" "23.9.1\0v/3.9.18\0" "3.8.1";
    dynamic_make(&file, EM_X86_64, DYNAMIC_GNU_HASH, python_symbols, SYMBOLS, "libc.so.6");
    memcpy(file.bytes + 0x7000, texts, sizeof texts);
}

static enum runtime_answer recognised(const struct runtime_code *code,
                                      struct python_binary **binary, struct err *err)
{
    struct elf e;
    void *found = NULL;
    CHECK(elf_open_bytes(&e, file.bytes, sizeof file.bytes, NULL));
    enum runtime_answer answer = python_recognise(&e, STR("/usr/bin/prog"), code, &found, err);
    *binary = found;
    elf_release(&e);
    return answer;
}

static void known_file(void)
{
    struct python_binary *b;
    make_file();
    CHECK_INT(recognised(NULL, &b, NULL), RUNTIME_YES);
    CHECK(b != NULL && b->runtime == 0xa100 && b->runtime_bytes == 0x290);
    CHECK(b->code_type == 0x8500 && b->version == 0x030912f0 && !b->musl && !b->debug);
    python_forget(b);
    dynamic_make(&file, EM_X86_64, DYNAMIC_HASH, python_symbols, SYMBOLS, "libc.musl-x86_64.so.1");
    CHECK_INT(recognised(NULL, &b, NULL), RUNTIME_YES);
    CHECK(b != NULL && b->musl && b->version == 0x03090000); /* the release stands nowhere */
    python_forget(b);
}

static void ranges_of_file(void)
{
    struct python_binary *b;
    make_file();
    CHECK_INT(recognised(NULL, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x40ff), RUNTIME_NATIVE_PLAIN);
    CHECK_INT(python_native_at(b, 0x4100), RUNTIME_NATIVE_LOOP);
    CHECK_INT(python_native_at(b, 0x41ff), RUNTIME_NATIVE_LOOP);
    CHECK_INT(python_native_at(b, 0x4200), RUNTIME_NATIVE_PLAIN);
    CHECK_INT(python_native_at(b, 0x4028), RUNTIME_NATIVE_PLUMBING); /* a wrapper since 3.6 */
    CHECK_INT(python_native_at(b, 0x4038), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x4048), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x4058), RUNTIME_NATIVE_PLAIN);    /* PyRun_… is shown */
    CHECK_INT(python_native_at(b, UINT64_MAX), RUNTIME_NATIVE_PLAIN);
    python_forget(b);
}

static void old_loop(void)
{
    static const struct dynamic_symbol symbols[] = {
        {"PyString_Type", 0x8500, 0x1a0, STT_OBJECT, 0},
        {"_PyThreadState_Current", 0xa100, 8, STT_OBJECT, 0},
        {"PyEval_EvalFrameEx", 0x4100, 0x100, STT_FUNC, 0},
    };
    struct python_binary *b;
    dynamic_make(&file, EM_X86_64, DYNAMIC_HASH, symbols, 3, "libc.so.6");
    CHECK_INT(recognised(NULL, &b, NULL), RUNTIME_YES);
    CHECK(b != NULL && b->version == 0x02070000 && b->current == 0xa100 && b->runtime == 0);
    CHECK_INT(python_native_at(b, 0x4180), RUNTIME_NATIVE_LOOP);
    python_forget(b);
}

/* clang's, as 3.14 is built --with-tail-call-interp: what enters the loop stays below it, and is no
 * frame of its own. */
static void tail_calls(void)
{
    static const struct dynamic_symbol symbols[] = {
        {"_PyRuntime", 0xa100, 0x290, STT_OBJECT, 0},
        {"_PyEval_EvalFrameDefault", 0x4100, 0x100, STT_FUNC, 0},
        {"_TAIL_CALL_BINARY_OP", 0x4200, 0x80, STT_FUNC, 0},
        {"_TAIL_CALL_CALL.llvm.1234567", 0x4280, 0x40, STT_FUNC, 0},
        {"_TAIL_CALL_exception_unwind.cold", 0x4300, 0x40, STT_FUNC, 0},
        {"TAIL_CALL_of_somebody", 0x4400, 0x40, STT_FUNC, 0},
    };
    struct python_binary *b;
    dynamic_make(&file, EM_X86_64, DYNAMIC_HASH, symbols, 6, "libc.so.6");
    CHECK_INT(recognised(NULL, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x4180), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x4200), RUNTIME_NATIVE_LOOP);
    CHECK_INT(python_native_at(b, 0x42bf), RUNTIME_NATIVE_LOOP);
    CHECK_INT(python_native_at(b, 0x4320), RUNTIME_NATIVE_LOOP);
    CHECK_INT(python_native_at(b, 0x4400), RUNTIME_NATIVE_PLAIN);
    python_forget(b);
}

static void other_files(void)
{
    static const struct dynamic_symbol user[] = {
        {"_PyRuntime", 0, 0, STT_OBJECT, 1}, /* wanted from a library */
        {"PyInit_module", 0x4000, 0x10, STT_FUNC, 0},
    };
    static const struct dynamic_symbol pypy[] = {
        {"pypy_main_startup", 0x4000, 0x10, STT_FUNC, 0},
        {"PyPyRun_SimpleString", 0x4010, 0x10, STT_FUNC, 0},
    };
    struct python_binary *b;
    struct err err = {0};
    dynamic_make(&file, EM_X86_64, DYNAMIC_GNU_HASH, user, 2, "libpython3.9.so.1.0");
    CHECK_INT(recognised(NULL, &b, &err), RUNTIME_NO);
    CHECK(b == NULL && err.kind == ERR_NONE);
    dynamic_make(&file, EM_X86_64, DYNAMIC_GNU_HASH, pypy, 2, "libc.so.6");
    CHECK_INT(recognised(NULL, &b, &err), RUNTIME_UNSUPPORTED);
    CHECK(strstr(err.text, "PyPy") != NULL);
    make_file();
    memcpy(file.bytes + DYNAMIC_NAMES + 1 + 12 + 11, "PyFrame_GetXode", 15); /* no more 3.9 */
    CHECK_INT(recognised(NULL, &b, &err), RUNTIME_YES);
    CHECK(b != NULL && b->version == 0x03070000);
    python_forget(b);
}

static void unknown_version(void)
{
    static const struct dynamic_symbol symbols[] = {
        {"_PyRuntime", 0xa100, 0x290, STT_OBJECT, 0},
        {"Py_Version", 0x7100, 8, STT_OBJECT, 0},
    };
    struct python_binary *b;
    struct err err = {0};
    dynamic_make(&file, EM_X86_64, DYNAMIC_GNU_HASH, symbols, 2, "libc.so.6");
    dynamic_put(&file, 0x7100, 0x03040af0, 8);
    CHECK_INT(recognised(NULL, &b, &err), RUNTIME_UNSUPPORTED);
    CHECK(strstr(err.text, "CPython 3.4.10") != NULL && b == NULL);
    dynamic_put(&file, 0x7100, 0x030c04f0, 8);
    CHECK_INT(recognised(NULL, &b, &err), RUNTIME_YES);
    CHECK(b != NULL && b->version == 0x030c04f0 && b->py_version == 0x7100);
    python_forget(b);
}

/* Neither sections nor symbols: the mark in the data is left. */
static void file_by_mark(void)
{
    static const struct dynamic_symbol none[] = {{"x", 0x4000, 1, STT_FUNC, 0}};
    struct python_binary *b;
    dynamic_make(&file, EM_X86_64, DYNAMIC_GNU_HASH, none, 1, "libc.so.6");
    memcpy(file.bytes + 0x9004, "xdebugpy", 8); /* not aligned: a text */
    CHECK_INT(recognised(NULL, &b, NULL), RUNTIME_NO);
    dynamic_put(&file, 0x9100, XDEBUGPY, 8);
    dynamic_put(&file, 0x9108, 0x030e00f0, 8);
    CHECK_INT(recognised(NULL, &b, NULL), RUNTIME_YES);
    CHECK(b != NULL && b->runtime == 0x9100 && b->version == 0x030e00f0);
    python_forget(b);
}

/* Static programs have .symtab, until it is stripped, and the section from 3.10 on. */
static void static_files(void)
{
    static struct elf_build built;
    static const struct build_symbol symbols[] = {
        {"PyEval_RestoreThread", 0x1010, 8, STT_FUNC, 1},
        {"_PyThreadState_Current", 0x2000, 8, STT_OBJECT, 1},
        {"interp_head", 0x2008, 8, STT_OBJECT, 1},
        {"PyCode_Type", 0x2010, 8, STT_OBJECT, 1},
        {"PyEval_EvalFrameEx", 0x3000, 0x100, STT_FUNC, 1},
        {"_PyEval_EvalFrameDefault", 0x3100, 0x100, STT_FUNC, 1},
        {"_PyEval_EvalFrameDefault.cold", 0x4100, 0x40, STT_FUNC, 1},
        {"cfunction_vectorcall_NOARGS", 0x5100, 0x40, STT_FUNC, 1},
        {"cfunctions", 0x5200, 0x40, STT_FUNC, 1},
        {"do_callback", 0x5280, 0x40, STT_FUNC, 1}, /* do_call is plumbing */
        {"gen_send_ex2.constprop.0", 0x5300, 0x40, STT_FUNC, 1},
    };
    struct elf e;
    void *found = NULL;
    build_start(&built, EM_X86_64);
    build_text(&built);
    build_symbols(&built, SHT_SYMTAB, symbols, sizeof symbols / sizeof symbols[0]);
    build_end(&built);
    Elf64_Addr entry = 0x1000;
    memcpy(built.bytes + offsetof(Elf64_Ehdr, e_entry), &entry, sizeof entry);
    CHECK(elf_open_bytes(&e, built.bytes, built.len, NULL));
    CHECK_INT(python_recognise(&e, STR("/opt/tool"), NULL, &found, NULL), RUNTIME_YES);
    struct python_binary *b = found;
    CHECK(b != NULL && b->interp_head == 0x2008 && b->current == 0x2000 && b->code_type == 0x2010);
    CHECK(b->version == 0x03060000 && b->musl); /* static, and no glibc is wanted */
    CHECK_INT(python_native_at(b, 0x3110), RUNTIME_NATIVE_LOOP);
    CHECK_INT(python_native_at(b, 0x4110), RUNTIME_NATIVE_LOOP);
    CHECK_INT(python_native_at(b, 0x3010), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x5110), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x5210), RUNTIME_NATIVE_PLAIN);
    CHECK_INT(python_native_at(b, 0x5290), RUNTIME_NATIVE_PLAIN);
    CHECK_INT(python_native_at(b, 0x5310), RUNTIME_NATIVE_PLUMBING);
    python_forget(b);
    elf_release(&e);

    build_start(&built, EM_X86_64);
    build_text(&built);
    build_section(&built, (struct build_row){".PyRuntime", SHT_PROGBITS, SHF_ALLOC, 0x6000, "x", 1,
                  0});
    build_end(&built);
    CHECK(elf_open_bytes(&e, built.bytes, built.len, NULL));
    CHECK_INT(python_recognise(&e, STR("/opt/tool"), NULL, &found, NULL), RUNTIME_YES);
    b = found;
    CHECK(b != NULL && b->runtime == 0x6000 && b->version == 0);
    python_forget(b);
    elf_release(&e);
}

/* ---- the loop's other part ---- */

/* Functions as unwind tables tell them: the loop, its cold part, one it calls, one that is like it.
 * */
static bool function_at(void *context, uint64_t address, uint64_t *start, uint64_t *limit)
{
    static const uint64_t functions[][2] = {
        {0x4100, 0x4200}, {0x5000, 0x5400}, {0x6000, 0x6100}, {0x6100, 0x6200}};
    (void)context;
    for (size_t i = 0; i < 4; i++) {
        if (address >= functions[i][0] && address < functions[i][1]) {
            *start = functions[i][0];
            *limit = functions[i][1];
            return true;
        }
    }
    return false;
}

static void x86_jump(uint64_t from, uint64_t to, bool conditional)
{
    size_t at_rel = conditional ? 2 : 1;
    file.bytes[from] = conditional ? 0x0f : 0xe9;
    file.bytes[from + 1] = 0x84;
    dynamic_put(&file, from + at_rel, (uint64_t)(to - (from + at_rel + 4)), 4);
}

static void cold_part(void)
{
    struct runtime_code code = {function_at, NULL};
    struct python_binary *b;
    make_file();
    x86_jump(0x4110, 0x5080, true);
    x86_jump(0x4120, 0x6000, false);  /* a tail call */
    x86_jump(0x4130, 0x6180, false);
    x86_jump(0x5010, 0x4150, false);
    x86_jump(0x5020, 0x4160, true);
    x86_jump(0x6010, 0x4100, false);  /* a call of the loop: to its start */
    x86_jump(0x6020, 0x4100, false);
    x86_jump(0x6110, 0x4170, false);  /* bytes that look like one jump */
    CHECK_INT(recognised(&code, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x5000), RUNTIME_NATIVE_LOOP);
    CHECK_INT(python_native_at(b, 0x53ff), RUNTIME_NATIVE_LOOP);
    CHECK_INT(python_native_at(b, 0x5400), RUNTIME_NATIVE_PLAIN);
    CHECK_INT(python_native_at(b, 0x6000), RUNTIME_NATIVE_PLAIN);
    CHECK_INT(python_native_at(b, 0x6100), RUNTIME_NATIVE_PLAIN);
    python_forget(b);
}

static void cold_part_aarch64(void)
{
    struct runtime_code code = {function_at, NULL};
    struct python_binary *b;
    make_file();
    dynamic_put(&file, offsetof(Elf64_Ehdr, e_machine), EM_AARCH64, 2);
    dynamic_put(&file, 0x4110, 0x54000000 | (0xf70 / 4) << 5 | 1, 4);          /* b.ne 0x5080 */
    dynamic_put(&file, 0x5010, 0x14000000 | (0x3ffffff & -(0xec0 / 4)), 4);    /* b 0x4150 */
    dynamic_put(&file, 0x5020, 0x34000000 | (0x7ffff & -(0xec0 / 4)) << 5, 4); /* cbz w0, 0x4160 */
    CHECK_INT(recognised(&code, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x5200), RUNTIME_NATIVE_LOOP);
    CHECK_INT(python_native_at(b, 0x6000), RUNTIME_NATIVE_PLAIN);
    python_forget(b);
}

/* ---- plumbing without names ---- */

/* What PyCMethod_New (0x6000 to 0x6100) takes the address of: 0x6100 begins a function, 0x5010 does
 * not. */
static void handed_out(void)
{
    struct runtime_code code = {function_at, NULL};
    struct python_binary *b;
    make_file();
    memcpy(file.bytes + 0x6010, "\x4c\x8d\x35\xe9\0\0\0", 7);       /* lea r14, [0x6017 + 0xe9] */
    memcpy(file.bytes + 0x6020, "\x48\x8d\x05\xe9\xef\xff\xff", 7); /* lea rax, [0x6027 - 0x1017] */
    memcpy(file.bytes + 0x6030, "\xb8\0\x50\0\0", 5); /* mov eax, 0x5000: a number here */
    CHECK_INT(recognised(&code, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x6100), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x61ff), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x5010), RUNTIME_NATIVE_PLAIN);
    CHECK_INT(python_native_at(b, 0x6010), RUNTIME_NATIVE_PLAIN); /* makes a method: shown */
    python_forget(b);
}

static void handed_out_at_fixed_places(void)
{
    struct runtime_code code = {function_at, NULL};
    struct python_binary *b;
    make_file();
    dynamic_put(&file, offsetof(Elf64_Ehdr, e_type), ET_EXEC, 2);
    memcpy(file.bytes + 0x6010, "\x41\xbf\0\x61\0\0", 6); /* mov r15d, 0x6100 */
    dynamic_put(&file, 0x8800 + 128, 0x5000, 8);             /* PyCFunction_Type.tp_call */
    CHECK_INT(recognised(&code, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x6180), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x5180), RUNTIME_NATIVE_PLUMBING);
    python_forget(b);
    make_file();
    dynamic_put(&file, offsetof(Elf64_Ehdr, e_type), ET_EXEC, 2);
    memcpy(file.bytes + 0x6010, "\x49\xc7\xc0\0\x61\0\0", 7); /* mov r8, 0x6100 */
    CHECK_INT(recognised(&code, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x6180), RUNTIME_NATIVE_PLUMBING);
    python_forget(b);
    make_file();
    dynamic_put(&file, offsetof(Elf64_Ehdr, e_type), ET_EXEC, 2);
    /* mov qword [rax + 40], 0x6100 */
    memcpy(file.bytes + 0x6010, "\x48\xc7\x40\x28\0\x61\0\0", 8);
    /* mov qword [r12 + 256], 0x5000 */
    memcpy(file.bytes + 0x6020, "\x49\xc7\x84\x24\0\x1\0\0\0\x50\0\0", 12);
    CHECK_INT(recognised(&code, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x6180), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x5180), RUNTIME_NATIVE_PLUMBING);
    python_forget(b);
}

/* A function without a name that calls the loop, which begins at 0x4100; another one calls what is
 * behind its beginning. */
static void callers_of_the_loop(void)
{
    struct runtime_code code = {function_at, NULL};
    struct python_binary *b;
    make_file();
    memcpy(file.bytes + 0x6150, "\xe8\xab\xdf\xff\xff", 5); /* call 0x6155 - 0x2055 */
    memcpy(file.bytes + 0x5150, "\xe8\xac\xef\xff\xff", 5); /* call 0x5155 - 0x1054 */
    CHECK_INT(recognised(&code, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x6100), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x5100), RUNTIME_NATIVE_PLAIN);
    CHECK_INT(python_native_at(b, 0x4100), RUNTIME_NATIVE_LOOP);
    python_forget(b);
    make_file();
    dynamic_put(&file, offsetof(Elf64_Ehdr, e_machine), EM_AARCH64, 2);
    dynamic_put(&file, 0x6150, 0x94000000 | (0x3ffffff & -(0x2050 / 4)), 4); /* bl 0x4100 */
    CHECK_INT(recognised(&code, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x6100), RUNTIME_NATIVE_PLUMBING);
    python_forget(b);
}

/* slotdefs: three records, of which the middle one has the name that is looked for, as the end of a
 * longer text; a fourth is no method's. */
static void table_of_methods(void)
{
    static const char texts[] = "__len__\0object.__getattribute__\0__eq__\0richcmp";
    static const uint64_t names[] = {0x7100, 0x710f, 0x7120, 0x7127};
    static const uint64_t functions[] = {0x5000, 0, 0x6000, 0x4100};
    struct runtime_code code = {function_at, NULL};
    struct python_binary *b;
    make_file();
    memcpy(file.bytes + 0x7100, texts, sizeof texts);
    for (uint64_t i = 0; i < 4; i++) {
        dynamic_put(&file, 0x9000 + i * 56, names[i], 8);
        dynamic_put(&file, 0x9000 + i * 56 + 16, functions[i], 8);
    }
    dynamic_put(&file, 0x9000 + 56 + 24, 0x6100, 8); /* a wrapper */
    CHECK_INT(recognised(&code, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x5000), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x6000), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x6100), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x4100), RUNTIME_NATIVE_LOOP);
    python_forget(b);
    memcpy(file.bytes + 0x710f, "__getattr_bute__", 16); /* another name: nothing to begin with */
    CHECK_INT(recognised(&code, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x5000), RUNTIME_NATIVE_PLAIN);
    python_forget(b);
}

static void handed_out_aarch64(void)
{
    struct runtime_code code = {function_at, NULL};
    struct python_binary *b;
    make_file();
    dynamic_put(&file, offsetof(Elf64_Ehdr, e_machine), EM_AARCH64, 2);
    dynamic_put(&file, 0x6010, 0x90000013, 4); /* adrp x19, 0x6000 */
    dynamic_put(&file, 0x6014, 0x91040273, 4); /* add x19, x19, #0x100 */
    dynamic_put(&file, 0x6018, 0xf0ffffe0, 4); /* adrp x0, 0x5000: immlo 3, immhi -1: a page back */
    dynamic_put(&file, 0x601c, 0x91000001, 4); /* add x1, x0, #0 */
    CHECK_INT(recognised(&code, &b, NULL), RUNTIME_YES);
    CHECK_INT(python_native_at(b, 0x6180), RUNTIME_NATIVE_PLUMBING);
    CHECK_INT(python_native_at(b, 0x5080), RUNTIME_NATIVE_PLUMBING);
    python_forget(b);
}

static void relocated_pointers(void)
{
    static struct elf_build built;
    static const Elf64_Rela rela[] = {{0x2010, R_X86_64_RELATIVE, 0x1234},
                                      {0x2008, R_X86_64_RELATIVE, 0x99},
                                      {0x2018, ELF64_R_INFO(3, R_X86_64_GLOB_DAT), 0x55},
                                      {0x2020, R_X86_64_RELATIVE, 0x1234}};
    struct image_pointers pointers;
    struct elf e;
    uint64_t places[2] = {0};
    build_start(&built, EM_X86_64);
    build_section(&built, (struct build_row){".rela.dyn", SHT_RELA, 0, 0, rela, sizeof rela, 0});
    build_end(&built);
    CHECK(elf_open_bytes(&e, built.bytes, built.len, NULL));
    image_pointers_open(&pointers, &e);
    CHECK_INT(image_pointer_at(&pointers, 0x2010), 0x1234);
    CHECK_INT(image_pointer_at(&pointers, 0x2008), 0x99);
    CHECK_INT(image_pointer_at(&pointers, 0x2018), 0); /* a symbol's address */
    CHECK_INT(image_pointers_to(&pointers, 0x1234, places, 2), 2);
    CHECK(places[0] == 0x2010 && places[1] == 0x2020);
    CHECK_INT(image_pointers_to(&pointers, 0x1234, places, 1), 1);
    CHECK_INT(image_pointers_to(&pointers, 0x55, places, 2), 0);
    image_pointers_close(&pointers);
    elf_release(&e);
}

TESTS({"a process of every family is found, with few reads", every_family},
      {"a process is described by its release and build", described},
      {"a process that has not started is worth another look", not_started},
      {"a process that contradicts itself is refused, with bounded reads", contradictions},
      {"threads without frames prove nothing and refuse nothing", idle_threads},
      {"frames without code are passed over, not for ever", shims},
      {"the main interpreter is the last of the list", sub_interpreters},
      {"a process that ends is gone", ending},
      {"memory that may not be read says so", denied},
      {"the process's own member table corrects the row", moved_fields},
      {"a newer version must agree with its member table", newer_version},
      {"objects that are linked are told by the type's own name", linked_objects},
      {"the thread's number in libc's structure is learnt from the threads", learnt_place},
      {"a number that stands everywhere is taken where libc has it", common_number},
      {"the GIL's holder is read only where a thread stands", holder},
      {"without a symbol the head is found by what it leads to", head_by_scan},
      {"without a symbol _PyRuntime is found by its head", runtime_by_scan},
      {"without a symbol the type of code is learnt from frames", type_by_frames},
      {"the version is read from memory when the file does not tell", version_from_memory},
      {"rings within rings are left", many_rings},
      {"no spoiled word leads astray for long", spoiled_memory},
      {"CPython is known by what a file defines", known_file},
      {"the loop and its plumbing are told from what is worth showing", ranges_of_file},
      {"up to 3.5 the loop has another name", old_loop},
      {"a loop of functions that jump to each other is found by their names", tail_calls},
      {"who uses CPython is not CPython, PyPy is refused by name", other_files},
      {"a version that is not known is refused when the file tells it", unknown_version},
      {"a file without any symbol is known by its mark", file_by_mark},
      {"static programs are known by their symbols or their section", static_files},
      {"the loop's moved part is found by the jumps between both", cold_part},
      {"on AArch64 too", cold_part_aarch64},
      {"what exported functions hand out is plumbing without a name", handed_out},
      {"at fixed addresses it is numbers in code and in types", handed_out_at_fixed_places},
      {"what calls the loop itself is plumbing, named or not", callers_of_the_loop},
      {"on AArch64 it is pairs of instructions", handed_out_aarch64},
      {"the table of methods names who calls them", table_of_methods},
      {"pointers that are relocated are known as those in place", relocated_pointers})
