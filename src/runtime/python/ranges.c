/*
 * Which code of a CPython is its loop, and which is only how the loop calls: names of functions,
 * exported ones from .dynsym, all of them where .symtab is left. A compiler's parts of a function
 * ("NAME.cold", "NAME.constprop.0") count as the function.
 *
 * From 3.14 on the loop may be one function for each instruction, which jump to each other
 * (--with-tail-call-interp). What used to be the loop then only calls the first of them: it stays below
 * whichever is running, and stands for nothing itself.
 */
#include "runtime/python/binary.h"

enum { COLD_MAX = 8, ENTERS = RUNTIME_NATIVE_PLUMBING + 1 };

static const char *const tail_call_names[] = {"_TAIL_CALL_*"};
static const char *const loop_names[] = {"_PyEval_EvalFrameDefault"};
static const char *const old_loop_names[] = {"PyEval_EvalFrameEx"}; /* 2.7, 3.5; later a wrapper */

static const char *const plumbing_names[] = {
    /* what calls an object */
    "PyObject_Call*", "_PyObject_Call*", "PyObject_Vectorcall*", "_PyObject_Vectorcall*",
    "_PyObject_FastCall*", "_PyObject_MakeTpCall", "PyVectorcall_Call", "_PyVectorcall_Call",
    "_PyStack_AsTuple*", "object_vacall", "vectorcall_*", "call_method", "call_maybe",
    "call_attribute", "call_unbound*", "callmethod*", "lookup_maybe_method", "_Py_VectorCall*",
    "_PyCallMethodDescriptor*",
    /* what calls a function in Python */
    "PyEval_EvalCode*", "_PyEval_EvalCode*", "PyEval_EvalFrame", "PyEval_EvalFrameEx",
    "_PyEval_EvalFrame", "_PyEval_Vector*", "PyEval_CallObject*", "_PyFunction_Vectorcall*",
    "_PyFunction_FastCall*", "function_call", "function_code_fastcall", "fast_function",
    "call_function", "do_call", "do_call_core", "ext_do_call",
    /* what calls a function in C */
    "cfunction_*", "PyCFunction_Call", "_PyCFunction_*", "_PyMethodDef_RawFastCall*",
    "_PyMethodDescr_*", "method_vectorcall*", "method_call", "methoddescr_call",
    "classmethoddescr_call", "_PyMethod_Vectorcall", "instancemethod_call", "instance_call",
    "wrapper_call", "wrapperdescr_call", "wrapperdescr_raw_call",
    /* what calls a class, or what an operator stands for */
    "type_call", "_PyType_Call*", "slot_tp_*", "slot_nb_*", "slot_sq_*", "slot_mp_*",
    "slot_am_*", "wrap_call", "wrap_init", "wrap_next", "wrap_del", "wrap_unaryfunc",
    "wrap_binaryfunc*", "wrap_richcmpfunc", "wrap_descr_get",
    /* what resumes a generator */
    "gen_send_ex*", "gen_iternext", "_PyGen_Send", "PyGen_am_send", "gen_send", "PyIter_Send",
};

#define AMONG(name, list) code_name_among(name, list, sizeof(list) / sizeof(list)[0])

/* ---- from symbols ---- */

struct collecting {
    struct elf *elf;
    const struct runtime_code *code;
    struct python_binary *binary;
    bool old_loop;   /* the loop is PyEval_EvalFrameEx */
    bool tail_calls; /* it is many functions */
};

/* ENTERS: the loop itself, or what enters it. */
static uint8_t native_of(const struct collecting *c, struct str name)
{
    if (c->old_loop ? AMONG(name, old_loop_names) : AMONG(name, loop_names)) {
        return ENTERS;
    }
    return AMONG(name, tail_call_names)  ? RUNTIME_NATIVE_LOOP
           : AMONG(name, plumbing_names) ? RUNTIME_NATIVE_PLUMBING
                                         : RUNTIME_NATIVE_PLAIN;
}

static bool take_function(void *context, const struct elf_symbol *symbol)
{
    struct collecting *c = context;
    uint64_t start = symbol->address, limit = symbol->address + symbol->size;
    struct str name;
    if (!elf_name(c->elf, symbol->table, symbol->name, &name)) {
        return true;
    }
    uint8_t native = native_of(c, name);
    if (native == RUNTIME_NATIVE_PLAIN) {
        return true;
    }
    if (symbol->size == 0 &&
        (c->code == NULL || !c->code->function_at(c->code->context, start, &start, &limit))) {
        return true;
    }
    code_ranges_add(&c->binary->ranges, start, limit, native);
    c->tail_calls |= native == RUNTIME_NATIVE_LOOP;
    return true;
}

static void tell_entering(struct collecting *c)
{
    for (size_t i = 0; i < c->binary->ranges.count; i++) {
        struct code_range *r = &c->binary->ranges.at[i];
        if (r->native == ENTERS) {
            r->native = c->tail_calls ? RUNTIME_NATIVE_PLUMBING : RUNTIME_NATIVE_LOOP;
        }
    }
}

/* ---- the loop's other part, where no symbol tells it ---- */

static void add_cold(struct collecting *c)
{
    struct code_range cold[COLD_MAX];
    size_t known = c->binary->ranges.count;
    for (size_t i = 0; i < known; i++) {
        struct code_range *r = &c->binary->ranges.at[i];
        if (r->native != RUNTIME_NATIVE_LOOP) {
            continue;
        }
        size_t count = code_find_cold(c->elf, c->code, r->start, r->limit, cold, COLD_MAX);
        for (size_t k = 0; k < count; k++) {
            code_ranges_add(&c->binary->ranges, cold[k].start, cold[k].limit, RUNTIME_NATIVE_LOOP);
        }
        return;
    }
}

void python_find_ranges(struct elf *elf, const struct runtime_code *code,
                        struct python_binary *binary)
{
    struct collecting c = {.elf = elf, .code = code, .binary = binary};
    c.old_loop = binary->version != 0 && binary->version < PYTHON_VERSION(3, 6);
    if (!code_ranges_open(&binary->ranges, PYTHON_RANGES_MAX)) {
        return;
    }
    enum elf_table table = elf->tables[ELF_SYMTAB].count > 0 ? ELF_SYMTAB : ELF_DYNSYM;
    (void)elf_each_function(elf, table, take_function, &c, NULL);
    tell_entering(&c);
    if (table == ELF_DYNSYM && code != NULL) {
        add_cold(&c);
        python_add_nameless(elf, code, binary);
    }
    code_ranges_close(&binary->ranges);
}
