/*
 * Is a file CPython? Known by what it defines, never by its name. Asked of every file that any
 * process runs, so a file that is none costs a few look-ups in its own hash table of dynamic
 * symbols; static programs, which may have none, cost a search through their names.
 *
 * A file that only uses CPython (the small `python` of shared builds, extension modules) defines
 * nothing of this.
 */
#include "runtime/python/binary.h"

#include "base/cursor.h"
#include "runtime/common/image.h"

#include <stdlib.h>

enum {
    COOKIE_BYTES = 8,
    VERSION_BYTES = IMAGE_OVERLAP_BYTES,
};

/* ---- symbols ---- */

/* In the dynamic symbols; in all symbols where the program's names are worth a search. */
static uint64_t find(struct elf *elf, const char *name, bool in_all)
{
    struct elf_symbol symbol;
    bool found = elf_find_dynamic(elf, name, &symbol) ||
                 (in_all && elf_find_symbol(elf, ELF_SYMTAB, name, &symbol));
    return found ? symbol.address : 0;
}

/* Programs that embed CPython statically keep it out of their dynamic symbols; libraries do not.
 * All names are searched for one that all versions have and all programs need. */
static bool embeds(struct elf *elf)
{
    struct elf_symbol symbol;
    return elf->entry != 0 && elf_find_symbol(elf, ELF_SYMTAB, "PyEval_RestoreThread", &symbol);
}

/* ---- without symbols ---- */

struct file_scan {
    uint64_t address; /* where it was found */
    uint32_t minor;   /* wanted; 0: any */
    uint32_t version;
};

static bool take_cookie(void *context, const struct image_piece *piece)
{
    struct file_scan *scan = context;
    size_t at = (8 - piece->address % 8) % 8;
    for (; at + COOKIE_BYTES <= piece->len; at += 8) {
        if (python_tells_layout(piece->bytes + at, piece->len - at)) {
            scan->address = piece->address + at;
            return true;
        }
    }
    return false;
}

/* Linkers let PY_VERSION be the end of a longer constant, ".../python-3.9.18"; where the minor
 * version is not known otherwise it must stand alone. */
static bool is_start(char before, bool alone)
{
    return before == '\0' || (!alone && before != '.' && (before < '0' || before > '9'));
}

static bool take_version(void *context, const struct image_piece *piece)
{
    struct file_scan *scan = context;
    for (size_t at = 1; at + VERSION_BYTES <= piece->len; at++) {
        const char *text = (const char *)piece->bytes + at;
        size_t len;
        if (text[1] != '.' || (text[0] != '2' && text[0] != '3') ||
            !is_start(text[-1], scan->minor == 0)) {
            continue;
        }
        uint32_t version = python_version_of((struct str){text, VERSION_BYTES}, &len);
        if (version != 0 && text[len] == '\0' &&
            (scan->minor == 0 || python_minor(version) == scan->minor)) {
            scan->version = version;
            return true;
        }
    }
    return false;
}

/* ---- version ---- */

/* Which minor version first had a function of this name: the newest that is there decides. */
static uint32_t minor_of(struct elf *elf, bool in_all)
{
    static const struct {
        const char *name;
        uint32_t version;
    } firsts[] = {
        {"PyIter_Send", PYTHON_VERSION(3, 10)},
        {"PyFrame_GetCode", PYTHON_VERSION(3, 9)},
        {"PyCode_NewWithPosOnlyArgs", PYTHON_VERSION(3, 8)},
        {"_PyRuntime", PYTHON_VERSION(3, 7)},
        {"_PyEval_EvalFrameDefault", PYTHON_VERSION(3, 6)},
        {"PyODict_New", PYTHON_VERSION(3, 5)},
        {"PyString_Type", PYTHON_VERSION(2, 7)},
    };
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        if (find(elf, firsts[i].name, in_all) != 0) {
            return firsts[i].version;
        }
    }
    return 0;
}

static uint64_t number_in_file(struct elf *elf, uint64_t address)
{
    unsigned char bytes[8];
    uint64_t offset;
    if (address == 0 || !elf_offset_of(elf, address, &offset) ||
        !elf_read(elf, offset, bytes, sizeof bytes, NULL)) {
        return 0;
    }
    struct cursor c = cursor_of(bytes, sizeof bytes);
    return cursor_u64(&c);
}

static bool has_cookie(struct elf *elf, uint64_t runtime)
{
    unsigned char bytes[COOKIE_BYTES];
    uint64_t offset;
    return runtime != 0 && elf_offset_of(elf, runtime, &offset) &&
           elf_read(elf, offset, bytes, sizeof bytes, NULL) &&
           python_tells_layout(bytes, sizeof bytes);
}

static uint32_t version_of(struct elf *elf, const struct python_binary *binary, bool in_all)
{
    struct file_scan scan = {.minor = 0};
    if (has_cookie(elf, binary->runtime)) {
        return (uint32_t)number_in_file(elf, binary->runtime + COOKIE_BYTES);
    }
    uint32_t version = (uint32_t)number_in_file(elf, binary->py_version);
    if (version != 0) {
        return version;
    }
    scan.minor = minor_of(elf, in_all);
    /* older linkers put constants and code into one segment */
    bool found = image_scan(elf, 0, take_version, &scan) ||
                 image_scan(elf, IMAGE_EXECUTE, take_version, &scan);
    return found ? scan.version : scan.minor;
}

/* ---- what it defines ---- */

static uint64_t runtime_section(struct elf *elf, uint64_t *bytes)
{
    const struct elf_section *section = elf_section(elf, ".PyRuntime");
    *bytes = section != NULL ? section->bytes : 0;
    return section != NULL ? section->address : 0;
}

/* A program without section headers still has the mark of _Py_DebugOffsets in its data. */
static uint64_t runtime_by_cookie(struct elf *elf)
{
    struct file_scan scan = {.minor = 0};
    bool found = elf->sections.len == 0 && image_scan(elf, IMAGE_WRITE, take_cookie, &scan);
    return found ? scan.address : 0;
}

static bool find_state(struct elf *elf, struct python_binary *b, bool in_all)
{
    struct elf_symbol symbol;
    b->runtime = runtime_section(elf, &b->runtime_bytes);
    if (b->runtime == 0 &&
        (elf_find_dynamic(elf, "_PyRuntime", &symbol) ||
         (in_all && elf_find_symbol(elf, ELF_SYMTAB, "_PyRuntime", &symbol)))) {
        b->runtime = symbol.address;
        b->runtime_bytes = symbol.size;
    }
    b->current = b->runtime == 0 ? find(elf, "_PyThreadState_Current", in_all) : 0;
    return b->runtime != 0 || b->current != 0;
}

static void find_rest(struct elf *elf, struct python_binary *b, bool in_all)
{
    struct elf_symbol symbol;
    b->machine = elf->machine;
    b->py_version = find(elf, "Py_Version", true);
    b->code_type = find(elf, "PyCode_Type", true);
    b->str_type = find(elf, "PyUnicode_Type", true);
    b->int_type = find(elf, "PyLong_Type", true);
    b->debug = find(elf, "_Py_NegativeRefcount", true) != 0;
    b->musl = !elf_needs(elf, "libc.so.6");
    b->version = version_of(elf, b, in_all);
    if (b->current != 0 && elf_find_symbol(elf, ELF_SYMTAB, "interp_head", &symbol)) {
        b->interp_head = symbol.address;
    }
}

/* ---- what is refused ---- */

/* Other programs that run Python, by what only they define. */
static bool refuse_others(struct elf *elf, struct err *why)
{
    struct elf_symbol symbol;
    if (elf_find_dynamic(elf, "pypy_main_startup", &symbol) ||
        elf_find_dynamic(elf, "rpython_startup_code", &symbol)) {
        return err_set(why, ERR_UNSUPPORTED, 0,
                       "PyPy keeps its stacks in a way of its own: its Python functions are not "
                       "shown, its native ones are");
    }
    return true;
}

/* From 3.13 on the process itself declares its layout. */
static bool refuse_version(const struct python_binary *b, struct err *why)
{
    struct python_layout layout;
    return b->version == 0 || b->version >= PYTHON_VERSION(3, 13) ||
           python_layout_of(b->version, b->machine, b->musl, false, &layout, why);
}

enum runtime_answer python_recognise(struct elf *elf, struct str path,
                                     const struct runtime_code *code, void **binary,
                                     struct err *why)
{
    (void)path;
    struct python_binary found = {0};
    if (!refuse_others(elf, why)) {
        return RUNTIME_UNSUPPORTED;
    }
    bool in_all = false;
    if (!find_state(elf, &found, false)) {
        in_all = embeds(elf);
        found.runtime = runtime_by_cookie(elf);
        if (found.runtime == 0 && (!in_all || !find_state(elf, &found, true))) {
            return RUNTIME_NO;
        }
    }
    if (elf->is_32bit) {
        (void)err_set(why, ERR_UNSUPPORTED, 0, "a 32-bit CPython is not read");
        return RUNTIME_UNSUPPORTED;
    }
    find_rest(elf, &found, in_all);
    if (!refuse_version(&found, why)) {
        return RUNTIME_UNSUPPORTED;
    }
    struct python_binary *kept = malloc(sizeof *kept);
    if (kept == NULL) {
        (void)err_set(why, ERR_MEMORY, 0, "no memory for a CPython");
        return RUNTIME_UNSUPPORTED;
    }
    *kept = found;
    python_find_ranges(elf, code, kept);
    *binary = kept;
    return RUNTIME_YES;
}

void python_forget(void *binary)
{
    struct python_binary *b = binary;
    if (b != NULL) {
        code_ranges_release(&b->ranges);
    }
    free(b);
}

enum runtime_native python_native_at(const void *binary, uint64_t elf_address)
{
    return code_range_at(&((const struct python_binary *)binary)->ranges, elf_address);
}
