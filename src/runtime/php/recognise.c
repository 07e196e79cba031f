/* Is a file PHP, and which of its code runs PHP's frames? Known by what it exports, which extensions need, so that
 * stripped files have it as well: php, php-fpm, the library for Apache and for others. The version stands in a text
 * that is sent with each response; another one tells builds whose structures are different. */
#include "runtime/php/private.h"

#include "runtime/common/image.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANGES_MAX = 16384, TEXT_BYTES = 27, NUMBERS = 3 };

/* How the interpreter calls itself. */
static const char *const plumbing_names[] = {
    "ZEND_*", "zend_call_*", "zend_execute*", "php_execute_*", "zend_include_or_eval*", "zend_eval_string*",
    "zend_user_it_*", "zend_std_call_user_call", "zend_leave_helper*", "zend_do_fcall*", "zend_dispatch_*",
    "zend_generator_*", "zend_fiber_*", "zend_call", "_zend_observe*", "zend_observer_*", "execute_internal",
    "_call_user_function*",
};

/* What calls the loop, and nothing else. */
static const char *const callers[] = {"zend_execute", "zend_generator_resume"};
enum { CALLERS = sizeof callers / sizeof callers[0] };

void php_version_text(uint32_t version, char out[static PHP_VERSION_TEXT])
{
    (void)snprintf(out, PHP_VERSION_TEXT, "%u.%u.%u", version >> 16 & 255, version >> 8 & 255, version & 255);
}

/* ---- texts ---- */

struct texts {
    uint32_t version;             /* 0: not found */
    bool is_threaded, is_debug;
};

/* The number at the start of `text`, of at most 3 digits; false: there is none. */
static bool take_number(struct str *text, unsigned *out)
{
    size_t len = 0;
    for (*out = 0; len < text->len && len < 3 && text->ptr[len] >= '0' && text->ptr[len] <= '9'; len++) {
        *out = *out * 10 + (unsigned)(text->ptr[len] - '0');
    }
    *text = str_sub(*text, len, text->len);
    return len > 0 && *out <= 255;
}

static uint32_t version_of(struct str text)
{
    unsigned part[NUMBERS];
    for (size_t i = 0; i < NUMBERS; i++) {
        bool good = i == 0 || str_starts(text, STR("."));
        text = i == 0 ? text : str_sub(text, 1, text.len);
        if (!good || !take_number(&text, &part[i])) {
            return 0;
        }
    }
    return PHP_VERSION(part[0], part[1], part[2]);
}

/* "API20220829,NTS": the date, then whether it is for threads, then whether it is a debug build. */
static void take_build(struct texts *t, struct str text)
{
    enum { DATE = 8 };
    for (size_t i = 0; i < DATE; i++) {
        if (i >= text.len || text.ptr[i] < '0' || text.ptr[i] > '9') {
            return;
        }
    }
    text = str_sub(text, DATE, text.len);
    t->is_threaded = t->is_threaded || str_starts(text, STR(",TS"));
    t->is_debug = t->is_debug || str_starts(text, STR(",NTS,debug")) || str_starts(text, STR(",TS,debug"));
}

static bool take_texts(void *context, const struct image_piece *piece)
{
    static const struct str sent = {"X-Powered-By: PHP/", 18}, build = {"API", 3};
    struct texts *t = context;
    for (size_t at = 0; at + TEXT_BYTES <= piece->len; at++) {
        struct str text = {(const char *)piece->bytes + at, TEXT_BYTES};
        if (text.ptr[0] == 'X' && t->version == 0 && str_starts(text, sent)) {
            t->version = version_of(str_sub(text, sent.len, text.len));
        } else if (text.ptr[0] == 'A' && str_starts(text, build)) {
            take_build(t, str_sub(text, build.len, text.len));
        }
    }
    return false;
}

static struct texts texts_of(struct elf *elf)
{
    struct texts t = {0};
    (void)image_scan(elf, 0, take_texts, &t);
    if (t.version == 0) { /* older linkers put constants beside the code */
        (void)image_scan(elf, IMAGE_EXECUTE, take_texts, &t);
    }
    return t;
}

/* ---- code ---- */

static bool find(struct elf *elf, const char *name, struct elf_symbol *out)
{
    return elf_find_dynamic(elf, name, out) || elf_find_symbol(elf, ELF_SYMTAB, name, out);
}

static void find_ranges(struct elf *elf, const struct runtime_code *code, struct php_binary *binary)
{
    struct elf_symbol symbol;
    struct code_range known[CALLERS + 1];
    size_t count = 0;
    if (!code_ranges_open(&binary->ranges, RANGES_MAX)) {
        return;
    }
    if (find(elf, "execute_ex", &symbol)) {
        known[count++] = (struct code_range){symbol.address, symbol.address + symbol.size, RUNTIME_NATIVE_LOOP};
    }
    for (size_t i = 0; i < CALLERS; i++) {
        if (find(elf, callers[i], &symbol)) {
            known[count++] = (struct code_range){symbol.address, symbol.address + symbol.size, RUNTIME_NATIVE_ENTERS};
        }
    }
    for (size_t i = 0; i < count; i++) {
        code_ranges_add_with_cold(&binary->ranges, elf, code, &known[i]);
    }
    const struct code_plumbing plumbing = {plumbing_names, sizeof plumbing_names / sizeof plumbing_names[0], known,
                                           count};
    code_ranges_add_named(&binary->ranges, elf, &plumbing);
    code_ranges_close(&binary->ranges);
}

enum runtime_native php_native_at(const void *binary, uint64_t elf_address)
{
    return code_range_or_unnamed(&((const struct php_binary *)binary)->ranges, elf_address);
}

/* The kind of loop that compilers with global register variables make ("hybrid"): zend_vm_kind returns 4. */
static bool is_hybrid(struct elf *elf)
{
    static const unsigned char returns_4[][10] = {
        {0xb8, 4, 0, 0, 0, 0xc3},                         /* x86-64: mov $4,%eax; ret */
        {0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 4, 0, 0, 0, 0xc3}, /* endbr64 before */
        {0x80, 0, 0x80, 0x52, 0xc0, 3, 0x5f, 0xd6},       /* AArch64: mov w0,#4; ret */
    };
    static const uint8_t len[] = {6, 10, 8};
    struct elf_symbol symbol;
    uint64_t offset;
    unsigned char code[sizeof returns_4[0]];
    if (!find(elf, "zend_vm_kind", &symbol) || !elf_offset_of(elf, symbol.address, &offset) ||
        !elf_read(elf, offset, code, sizeof code, NULL)) {
        return false;
    }
    for (size_t i = 0; i < sizeof len; i++) {
        if (memcmp(code, returns_4[i], len[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- the verbs ---- */

/* Why this build cannot be read; null: it can. */
static const char *obstacle(const struct elf *elf, const struct texts *t, bool has_globals)
{
    return elf->is_32bit                     ? "a 32-bit PHP is not read"
           : !has_globals                    ? "this PHP does not tell where its globals are"
           : t->is_debug                     ? "a debug build of PHP is not read"
           : t->version == 0                 ? "a PHP that does not tell its version is not read"
                                             : NULL;
}

enum runtime_answer php_recognise(struct elf *elf, struct str path, const struct runtime_code *code, void **binary,
                                  struct err *why)
{
    (void)path;
    struct elf_symbol symbol, globals = {0}, id = {0}, offset = {0};
    struct php_layout layout;
    if (!elf_find_dynamic(elf, "zend_execute_ex", &symbol) || !elf_find_dynamic(elf, "sapi_module", &symbol)) {
        return RUNTIME_NO;
    }
    struct texts t = texts_of(elf);
    bool has_globals = t.is_threaded ? elf_find_dynamic(elf, "executor_globals_id", &id) &&
                                           elf_find_dynamic(elf, "executor_globals_offset", &offset)
                                     : elf_find_dynamic(elf, "executor_globals", &globals);
    const char *sentence = obstacle(elf, &t, has_globals);
    if (sentence != NULL) {
        (void)err_set(why, ERR_UNSUPPORTED, 0, "%s", sentence);
        return RUNTIME_UNSUPPORTED;
    }
    if (!php_layout_of(t.version, &layout, why)) {
        return RUNTIME_UNSUPPORTED;
    }
    struct php_binary *found = calloc(1, sizeof *found);
    if (found == NULL) {
        (void)err_set(why, ERR_MEMORY, 0, "no memory for a PHP");
        return RUNTIME_UNSUPPORTED;
    }
    found->version = t.version;
    found->sapi = symbol.address;
    found->globals = globals.address;
    found->id = id.address;
    found->offset = offset.address;
    bool tells = elf_find_dynamic(elf, t.is_threaded ? "sapi_globals_offset" : "sapi_globals", &symbol);
    found->request = tells ? symbol.address : 0;
    found->keeps_in_registers = is_hybrid(elf);
    find_ranges(elf, code, found);
    *binary = found;
    return RUNTIME_YES;
}

void php_forget(void *binary)
{
    struct php_binary *b = binary;
    if (b != NULL) {
        code_ranges_release(&b->ranges);
    }
    free(b);
}
