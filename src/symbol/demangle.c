/* Calls libiberty's demanglers within bounds. A printer that goes beyond DEMANGLE_OUTPUT_MAX is left by longjmp,
 * because it cannot be told to stop; D names are refused by their form, because that demangler has no bounds of its
 * own. The suffixes of clones are cut off first. */
#include "symbol/demangle.h"
#include "base/ascii.h"

#include <demangle.h> /* libiberty's */
#include <setjmp.h>
#include <stdlib.h>

enum {
    /* d-demangle.c has no bounds of its own. A name's back references expand like a tree: 20 of
     * them give at most about e^(20/e) = 1,600 copies of a part of the name. And where an
     * identifier is followed by what may be a function's type, it tries both ways, so that each
     * doubles the time. */
    D_INPUT_MAX = 1024,
    D_BACK_REFERENCES_MAX = 20,
    D_BRANCHES_MAX = 6,
    RUST_HASH_LEN = 19, /* "::h" and 16 hexadecimal digits */
};

/* Collects what libiberty prints. It cannot be told to stop, and may go on for ever, so the first
 * byte too many leaves it by longjmp. */
struct printed {
    struct buf *out;
    size_t limit; /* of out->len */
    bool holds_memory; /* the printer may hold an allocation while it prints */
    jmp_buf full;
};

/* rust-demangle.c holds one while it prints an identifier, never while it prints a separator; and
 * whatever grows without end prints those. */
static bool is_separator(const char *text, size_t len)
{
    return len == 2 && (memcmp(text, ", ", 2) == 0 || memcmp(text, "::", 2) == 0);
}

static void take_printed(const char *text, size_t len, void *context)
{
    struct printed *p = context;
    if (len <= p->limit - p->out->len) {
        buf_add(p->out, text, len);
        return;
    }
    p->out->len = p->limit; /* nothing fits any more: the result is not used */
    if (!p->holds_memory || is_separator(text, len)) {
        longjmp(p->full, 1);
    }
    p->out->failed = true;
}

typedef int printer(const char *mangled, int options, demangle_callbackref callback, void *opaque);

static bool print_with(printer *print, bool holds_memory, const char *mangled, struct buf *out)
{
    size_t limit = out->len + DEMANGLE_OUTPUT_MAX;
    struct printed p = {
        .out = out,
        .limit = limit < out->max ? limit : out->max,
        .holds_memory = holds_memory,
    };
    if (setjmp(p.full) != 0) {
        return false;
    }
    return print(mangled, DMGL_NO_OPTS, take_printed, &p) != 0 && !out->failed;
}

/* If an identifier (its length, then its bytes) begins at `at`: may a function's type follow it?
 * The letters are those of calling conventions, and M in front of one. */
static bool is_d_branch(struct str name, size_t at)
{
    size_t len = 0;
    while (at < name.len && ascii_is_digit(name.ptr[at]) && len <= name.len) {
        len = len * 10 + (size_t)(name.ptr[at++] - '0');
    }
    return len < name.len - at && memchr("FUWVRYM", name.ptr[at + len], 7) != NULL;
}

static bool is_cheap_d_name(struct str name)
{
    size_t references = 0, branches = 0;
    for (size_t i = 0; i < name.len; i++) {
        references += name.ptr[i] == 'Q';
        branches += ascii_is_digit(name.ptr[i]) && is_d_branch(name, i);
    }
    return name.len <= D_INPUT_MAX && references <= D_BACK_REFERENCES_MAX &&
           branches <= D_BRANCHES_MAX;
}

static bool print_d(const char *mangled, struct buf *out)
{
    if (!is_cheap_d_name(str_of(mangled))) {
        return false;
    }
    char *text = dlang_demangle(mangled, DMGL_NO_OPTS);
    bool good = text != NULL && strlen(text) <= DEMANGLE_OUTPUT_MAX;
    if (good) {
        buf_text(out, text);
    }
    free(text);
    return good && !out->failed;
}

/* Rust's legacy scheme is C++'s with a hash at the end, so Rust goes first. */
static bool print_readable(const char *mangled, struct buf *out)
{
    size_t start = out->len;
    if (mangled[0] != '_') {
        return false;
    }
    if (print_with(rust_demangle_callback, true, mangled, out)) {
        return true;
    }
    out->len = start;
    out->failed = false;
    if (mangled[1] == 'Z' || mangled[1] == 'G') {
        return print_with(cplus_demangle_v3_callback, false, mangled, out);
    }
    return mangled[1] == 'D' && print_d(mangled, out);
}

static bool is_clone_word(struct str word)
{
    static const char *const words[] = {"part", "constprop", "isra", "cold", "lto_priv",
                                        "llvm", "localalias", "__uniq"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (str_eq(word, str_of(words[i]))) {
            return true;
        }
    }
    return false;
}

/* Takes one ".word" or ".word.N" off the end; false when there is none. */
static bool cut_one_suffix(struct str *name)
{
    size_t digits = 0;
    while (digits < name->len && ascii_is_digit(name->ptr[name->len - 1 - digits])) {
        digits++;
    }
    struct str rest = *name;
    if (digits > 0) {
        if (digits == rest.len || rest.ptr[rest.len - digits - 1] != '.') {
            return false;
        }
        rest.len -= digits + 1;
    }
    size_t dot = str_find_last(rest, '.');
    if (dot == rest.len || dot == 0 || !is_clone_word(str_sub(rest, dot + 1, rest.len))) {
        return false;
    }
    name->len = dot;
    return true;
}

/* "::h" and 16 digits: libiberty leaves it when it took a Rust name for a C++ one. */
static bool ends_in_rust_hash(struct str name)
{
    if (name.len <= RUST_HASH_LEN) {
        return false;
    }
    struct str hash = str_sub(name, name.len - RUST_HASH_LEN, RUST_HASH_LEN);
    uint64_t value;
    return str_starts(hash, STR("::h")) && str_hex(str_sub(hash, 3, hash.len), &value);
}

bool demangle(struct str mangled, struct buf *out)
{
    char text[DEMANGLE_INPUT_MAX + 1];
    size_t start = out->len;
    if (out->failed || mangled.len == 0 || mangled.len > DEMANGLE_INPUT_MAX ||
        memchr(mangled.ptr, 0, mangled.len) != NULL) {
        return false;
    }
    struct str plain = mangled;
    while (cut_one_suffix(&plain)) {
    }
    memcpy(text, plain.ptr, plain.len);
    text[plain.len] = '\0';
    if (print_readable(text, out) && out->len > start) {
        struct str readable = str_sub(buf_slice(out), start, out->len);
        out->len -= ends_in_rust_hash(readable) ? RUST_HASH_LEN : 0;
        return true;
    }
    out->len = start;
    out->failed = false;
    if (plain.len < mangled.len) {
        buf_str(out, plain); /* a clone of a C function */
        return !out->failed;
    }
    return false;
}
