/* Finds the linkage stubs of an image and the function that each calls: its instructions lead to a slot or a number,
 * and that to a relocation with the symbol. x86-64 and AArch64, as ld and mold write them; bytes that are no known stub
 * are stepped over. At most SECTIONS_MAX sections of stubs, and of relocations, are read. */
#include "symbol/plt.h"

#include <elf.h>
#include <stdlib.h>

#include "base/cursor.h"

enum {
    STUB_MAX_BYTES = 32, /* the first one of AArch64 and of mold; others have 8 to 24 */
    SECTIONS_MAX = 4,    /* of stubs, of relocations; real files have up to 3 and 2 */
    X86_STEP_BYTES = 8,  /* stubs begin at multiples of this */
    AARCH64_STEP_BYTES = 4,
};

/* What leads from a stub to its relocation: the address of its slot, or the relocation's number in
 * .rela.plt, which no address can be taken for. */
#define BY_NUMBER (UINT64_C(1) << 63)
#define BY_NOTHING UINT64_MAX

struct want {
    uint64_t key;
    uint32_t stub;
};

struct search {
    struct plt *plt;
    VEC(struct want) wants; /* by key */
    size_t missing;
    bool is_plt; /* the relocations at hand are those that BY_NUMBER counts */
};

/* ---- one stub ---- */

static bool skip_bytes(struct cursor *c, const char *bytes, size_t len)
{
    if (c->len < len || memcmp(c->ptr, bytes, len) != 0) {
        return false;
    }
    cursor_skip(c, len);
    return true;
}

#define SKIP_BYTES(c, bytes) skip_bytes(c, bytes, sizeof(bytes) - 1)

/*
 * ld        ff 25 SLOT              jmp *SLOT(%rip); in .plt a push and a jmp follow
 *           f3 0f 1e fa [f2] ff 25 SLOT    the same behind endbr64, as bnd jmp
 *           [f3 0f 1e fa] 68 NUMBER …      push NUMBER, where .plt.sec has the jump
 * mold      f3 0f 1e fa 41 bb NUMBER ff 25 SLOT   mov NUMBER, %r11d first
 * the first [f3 0f 1e fa 41 53] ff 35 …    push of the library's own slot, then its resolver
 */
static bool decode_x86(const unsigned char *code, size_t len, uint64_t address, uint64_t *key)
{
    struct cursor c = cursor_of(code, len);
    bool landing = SKIP_BYTES(&c, "\xf3\x0f\x1e\xfa");
    *key = BY_NOTHING;
    if (landing && SKIP_BYTES(&c, "\x41\xbb")) {
        cursor_skip(&c, 4);
    } else if (landing) {
        (void)SKIP_BYTES(&c, "\x41\x53");
    }
    if (SKIP_BYTES(&c, "\xff\x35")) {
        return true;
    }
    if (SKIP_BYTES(&c, "\x68")) {
        *key = BY_NUMBER | cursor_u32(&c);
        return !c.short_read;
    }
    (void)SKIP_BYTES(&c, "\xf2");
    if (!SKIP_BYTES(&c, "\xff\x25")) {
        return false;
    }
    int64_t distance = (int32_t)cursor_u32(&c);
    *key = (address + (uint64_t)(c.ptr - code) + (uint64_t)distance) & ~BY_NUMBER;
    return !c.short_read;
}

#define AARCH64_BTI_C UINT32_C(0xd503245f)
#define AARCH64_PUSH UINT32_C(0xa9bf7bf0) /* stp x16, x30, [sp, #-16]!: the first stub only */
#define AARCH64_PUSH_TLS UINT32_C(0xa9bf0fe2) /* stp x2, x3, [sp, #-16]!: of thread-local data */

/* An ADRP to x16 and an LDR of x17 from there; "bti c" may stand in front, and the first stub's
 * push. The last one may be no call but what finds a thread's data. */
static bool decode_aarch64(const unsigned char *code, size_t len, uint64_t address, uint64_t *key)
{
    struct cursor c = cursor_of(code, len);
    uint32_t adrp = cursor_u32(&c);
    bool is_first = false;
    if (adrp == AARCH64_BTI_C) {
        adrp = cursor_u32(&c);
        address += 4;
    }
    if (adrp == AARCH64_PUSH) {
        is_first = true;
        adrp = cursor_u32(&c);
        address += 4;
    }
    if (adrp == AARCH64_PUSH_TLS) {
        *key = BY_NOTHING;
        return true;
    }
    uint32_t ldr = cursor_u32(&c);
    if (c.short_read || (adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211) {
        return false;
    }
    uint64_t pages = (uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
    pages = (pages ^ (1 << 20)) - (1 << 20); /* 21 bits with a sign */
    uint64_t slot = (address & ~UINT64_C(0xfff)) + (pages << 12) + (ldr >> 10 & 0xfff) * 8;
    *key = is_first ? BY_NOTHING : slot & ~BY_NUMBER;
    return true;
}

/* ---- a section of stubs ---- */

static bool add_stub(struct search *s, uint64_t address, uint64_t key)
{
    struct plt_stub *stub = vec_push(&s->plt->stubs);
    if (stub == NULL) {
        return false;
    }
    *stub = (struct plt_stub){.address = address};
    if (key == BY_NOTHING) {
        return true;
    }
    struct want *want = vec_push(&s->wants);
    if (want == NULL) {
        return false;
    }
    *want = (struct want){key, (uint32_t)(s->plt->stubs.len - 1)};
    return true;
}

/* A stub reaches to the next one. */
static void set_ends(struct plt *plt, size_t from, uint64_t limit)
{
    for (size_t i = plt->stubs.len; i > from; i--) {
        struct plt_stub *stub = &plt->stubs.at[i - 1];
        uint64_t bytes = limit - stub->address;
        stub->bytes = bytes < STUB_MAX_BYTES ? (uint32_t)bytes : STUB_MAX_BYTES;
        limit = stub->address;
    }
}

static bool decode_section(struct search *s, const struct elf *elf, struct str code,
                           uint64_t address)
{
    bool is_arm = elf->machine == ELF_AARCH64;
    size_t step = is_arm ? AARCH64_STEP_BYTES : X86_STEP_BYTES, first = s->plt->stubs.len;
    for (size_t at = 0; at < code.len;) {
        const unsigned char *ptr = (const unsigned char *)code.ptr + at;
        uint64_t key;
        bool found = is_arm ? decode_aarch64(ptr, code.len - at, address + at, &key)
                            : decode_x86(ptr, code.len - at, address + at, &key);
        if (found && !add_stub(s, address + at, key)) {
            return false;
        }
        at += found && is_arm ? 4 * AARCH64_STEP_BYTES : step; /* not again behind its "bti c" */
    }
    set_ends(s->plt, first, address + code.len);
    return true;
}

/* A section whose code cannot be read has no stubs to name. */
static bool read_section(struct search *s, struct elf *elf, const struct elf_section *section,
                         struct err *err)
{
    struct buf code;
    buf_init(&code, PLT_SECTION_MAX_BYTES);
    bool good = !elf_section_read(elf, section, &code, NULL) ||
                decode_section(s, elf, buf_slice(&code), section->address) ||
                err_set(err, ERR_MEMORY, 0, "no memory for the linkage table's stubs");
    buf_release(&code);
    return good;
}

/* .plt, .plt.sec, .plt.got, and .iplt of programs without dynamic linking. */
static bool is_plt(struct elf *elf, const struct elf_section *section)
{
    struct str name;
    return section->executable && !section->compressed &&
           elf_section_name(elf, section, &name) &&
           (str_eq(name, STR(".plt")) || str_starts(name, STR(".plt.")) ||
            str_eq(name, STR(".iplt")));
}

static bool read_sections(struct search *s, struct elf *elf, struct err *err)
{
    bool good = true;
    for (size_t i = 0, found = 0; good && i < elf->sections.len && found < SECTIONS_MAX; i++) {
        if (is_plt(elf, &elf->sections.at[i])) {
            good = read_section(s, elf, &elf->sections.at[i], err);
            found++;
        }
    }
    return good;
}

/* ---- from stubs to symbols ---- */

static int by_key(const void *left, const void *right)
{
    const struct want *a = left, *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

/* The first of the wants with this key, or where it would be. */
static size_t find_key(const struct search *s, uint64_t key)
{
    size_t low = 0, high = s->wants.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->wants.at[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The first relocation of a slot gives all its stubs their symbol; others find nothing to do, or a
 * hostile file could make all of them walk over all stubs. */
static void give(struct search *s, uint64_t key, const struct elf_relocation *r)
{
    for (size_t i = find_key(s, key); i < s->wants.len && s->wants.at[i].key == key; i++) {
        struct plt_stub *stub = &s->plt->stubs.at[s->wants.at[i].stub];
        if (stub->symbol != 0 || stub->resolver != 0) {
            return;
        }
        if (r->kind == ELF_RELOCATION_FUNCTION) {
            stub->symbol = r->symbol;
        } else {
            stub->resolver = r->addend;
        }
        s->missing--;
    }
}

static bool take_relocation(void *context, const struct elf_relocation *r)
{
    struct search *s = context;
    if ((r->kind == ELF_RELOCATION_FUNCTION && r->symbol != 0) ||
        (r->kind == ELF_RELOCATION_RESOLVED && r->addend != 0)) {
        give(s, r->slot & ~BY_NUMBER, r);
        if (s->is_plt) {
            give(s, BY_NUMBER | r->index, r);
        }
    }
    return s->missing > 0;
}

static bool is_rela(struct elf *elf, const struct elf_section *section, bool of_plt)
{
    struct str name;
    return section->type == SHT_RELA && elf_section_name(elf, section, &name) &&
           str_eq(name, STR(".rela.plt")) == of_plt;
}

/* First those that fill the slots of .plt; what is left, of .plt.got, is among all others. */
static bool read_relocations(struct search *s, struct elf *elf, struct err *err)
{
    bool good = true;
    if (s->wants.len > 0) {
        qsort(s->wants.at, s->wants.len, sizeof *s->wants.at, by_key);
    }
    s->missing = s->wants.len;
    for (size_t i = 0, found = 0; i < 2 * elf->sections.len && found < SECTIONS_MAX; i++) {
        const struct elf_section *section = &elf->sections.at[i % elf->sections.len];
        s->is_plt = i < elf->sections.len;
        if (good && s->missing > 0 && is_rela(elf, section, s->is_plt)) {
            good = elf_each_relocation(elf, section, take_relocation, s, err);
            found++;
        }
    }
    return good;
}

bool plt_read(struct plt *plt, struct elf *elf, struct err *err)
{
    struct search s = {.plt = plt};
    *plt = (struct plt){0};
    bool good = elf->machine == ELF_I386 ||
                (read_sections(&s, elf, err) && read_relocations(&s, elf, err));
    vec_release(&s.wants);
    if (!good) {
        plt_release(plt);
    }
    return good;
}

void plt_release(struct plt *plt)
{
    vec_release(&plt->stubs);
}
