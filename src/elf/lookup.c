/* Symbols by name. DT_GNU_HASH: 16 bytes of header, a Bloom filter that settles most look-ups, then
 * buckets and chains of hashes in the order of the symbols. DT_HASH (gABI): buckets and chains of
 * symbol numbers. .symtab has no such table: the bytes of its names are searched instead. */
#include <elf.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "elf/private.h"

enum {
    CHAIN_MAX = 4096,        /* a chain of a real table has less than 30 */
    SYMBOLS_PER_READ = 512,
    NAMES_PER_READ = 64 * 1024,
    NAMES_MAX_BYTES = 16 << 20,
    SAME_NAMES_MAX = 16,     /* places in the names where this one ends a longer one */
};

static bool read_words(const struct elf *e, uint64_t offset, uint32_t *out, size_t count)
{
    unsigned char bytes[16];
    if (!elf_read(e, offset, bytes, count * 4, NULL)) {
        return false;
    }
    struct cursor c = cursor_of(bytes, count * 4);
    for (size_t i = 0; i < count; i++) {
        out[i] = cursor_u32(&c);
    }
    return true;
}

/* Where its bytes end that belong together: its section's end, else its segment's. */
static uint64_t limit_of(const struct elf *e, const struct elf_raw_symbol *raw)
{
    if (raw->section < e->sections.len) {
        const struct elf_section *s = &e->sections.at[raw->section];
        if (raw->value >= s->address && raw->value - s->address < s->bytes) {
            return s->address + s->bytes;
        }
    }
    for (uint32_t i = 0; i < e->load_count; i++) {
        const struct elf_load *load = &e->loads[i];
        if (raw->value >= load->address && raw->value - load->address < load->memory_bytes) {
            return load->address + load->memory_bytes;
        }
    }
    return 0; /* nowhere in the image */
}

static bool accept(const struct elf *e, enum elf_table table, const struct elf_raw_symbol *raw,
                   struct elf_symbol *out)
{
    uint64_t limit = limit_of(e, raw);
    if (raw->section == SHN_UNDEF || limit == 0) {
        return false;
    }
    *out = (struct elf_symbol){
        .address = raw->value,
        .size = raw->size < limit - raw->value ? raw->size : limit - raw->value,
        .limit = limit,
        .name = raw->name,
        .table = (uint8_t)table,
        .binding = (uint8_t)elf_binding_of(raw->info),
    };
    return true;
}

/* ---- by a hash table ---- */

/* Is dynamic symbol number `index` the one? */
static bool is_symbol(struct elf *e, uint32_t index, struct str name, struct elf_symbol *out)
{
    const struct elf_symbol_table *t = &e->tables[ELF_DYNSYM];
    unsigned char bytes[sizeof(Elf64_Sym)];
    size_t each = elf_symbol_bytes(e);
    struct str text;
    if (index >= t->count ||
        !elf_read(e, t->offset + (uint64_t)index * each, bytes, each, NULL)) {
        return false;
    }
    struct cursor c = cursor_of(bytes, each);
    struct elf_raw_symbol raw = elf_take_symbol(&c, e->is_32bit);
    return elf_text(e, t->names_offset, t->names_bytes, raw.name, &text) && str_eq(text, name) &&
           accept(e, ELF_DYNSYM, &raw, out);
}

static bool find_by_gnu_hash(struct elf *e, uint64_t offset, struct str name,
                             struct elf_symbol *out)
{
    uint32_t hash = 5381, header[4], bloom[2] = {0}, index, word;
    uint32_t bits = e->is_32bit ? 32 : 64;
    for (size_t i = 0; i < name.len; i++) {
        hash = hash * 33 + (unsigned char)name.ptr[i];
    }
    if (!read_words(e, offset, header, 4) || header[0] == 0 || header[2] == 0 || header[3] > 31) {
        return false;
    }
    uint64_t buckets = header[0], first = header[1], words = header[2];
    uint64_t bloom_at = offset + 16 + hash / bits % words * (bits / 8);
    uint64_t buckets_at = offset + 16 + words * (bits / 8);
    if (!read_words(e, bloom_at, bloom, bits / 32)) {
        return false;
    }
    uint64_t filter = bloom[0] | (uint64_t)bloom[1] << 32;
    if ((filter >> hash % bits & filter >> (hash >> header[3]) % bits & 1) == 0 ||
        !read_words(e, buckets_at + hash % buckets * 4, &index, 1) || index < first) {
        return false;
    }
    for (unsigned i = 0; i < CHAIN_MAX; i++, index++) {
        if (!read_words(e, buckets_at + buckets * 4 + (index - first) * 4, &word, 1)) {
            return false;
        }
        if ((word | 1) == (hash | 1) && is_symbol(e, index, name, out)) {
            return true;
        }
        if ((word & 1) != 0) {
            return false; /* the low bit ends the chain */
        }
    }
    return false;
}

static bool find_by_hash(struct elf *e, uint64_t offset, struct str name, struct elf_symbol *out)
{
    uint32_t hash = 0, header[2], index;
    for (size_t i = 0; i < name.len; i++) {
        hash = (hash << 4) + (unsigned char)name.ptr[i];
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    if (!read_words(e, offset, header, 2) || header[0] == 0 ||
        !read_words(e, offset + 8 + hash % header[0] * 4, &index, 1)) {
        return false;
    }
    uint64_t chains_at = offset + 8 + (uint64_t)header[0] * 4;
    for (unsigned i = 0; i < CHAIN_MAX && index != 0 && index < header[1]; i++) {
        if (is_symbol(e, index, name, out)) {
            return true;
        }
        if (!read_words(e, chains_at + (uint64_t)index * 4, &index, 1)) {
            return false;
        }
    }
    return false;
}

bool elf_find_dynamic(struct elf *e, const char *name, struct elf_symbol *out)
{
    struct elf_dynamic d = {0};
    uint64_t offset;
    elf_read_dynamic(e, &d);
    if (d.gnu_hash != 0 && elf_offset_of(e, d.gnu_hash, &offset)) {
        return find_by_gnu_hash(e, offset, str_of(name), out);
    }
    return d.hash != 0 && elf_offset_of(e, d.hash, &offset) &&
           find_by_hash(e, offset, str_of(name), out);
}

/* ---- by all names ---- */

struct same_names {
    uint32_t at[SAME_NAMES_MAX]; /* offsets in the names */
    size_t count;
};

static void find_in(struct same_names *found, const char *bytes, size_t len, uint64_t base,
                    struct str name)
{
    size_t from = 0;
    const char *at;
    while (found->count < SAME_NAMES_MAX &&
           (at = memmem(bytes + from, len - from, name.ptr, name.len + 1)) != NULL) {
        found->at[found->count++] = (uint32_t)(base + (uint64_t)(at - bytes));
        from = (size_t)(at - bytes) + 1;
    }
}

/* Linkers let a name be the end of a longer one, so a match need not begin a string. `name` is
 * followed by its NUL. Pieces overlap by a name. */
static void find_names(const struct elf *e, const struct elf_symbol_table *t, struct str name,
                       struct same_names *found)
{
    char *bytes = malloc(NAMES_PER_READ);
    uint64_t limit = t->names_bytes < NAMES_MAX_BYTES ? t->names_bytes : NAMES_MAX_BYTES;
    for (uint64_t at = 0; bytes != NULL && at < limit; at += NAMES_PER_READ - name.len) {
        uint64_t len = limit - at < NAMES_PER_READ ? limit - at : NAMES_PER_READ;
        if (!elf_read(e, t->names_offset + at, bytes, (size_t)len, NULL)) {
            break;
        }
        find_in(found, bytes, (size_t)len, at, name);
    }
    free(bytes);
}

static bool is_named(const struct same_names *names, uint32_t name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (names->at[i] == name) {
            return true;
        }
    }
    return false;
}

static bool find_named(struct elf *e, enum elf_table table, const struct same_names *names,
                       unsigned char *chunk, struct elf_symbol *out)
{
    const struct elf_symbol_table *t = &e->tables[table];
    size_t each = elf_symbol_bytes(e);
    for (uint64_t done = 0; done < t->count;) {
        uint64_t count = t->count - done < SYMBOLS_PER_READ ? t->count - done : SYMBOLS_PER_READ;
        if (!elf_read(e, t->offset + done * each, chunk, (size_t)count * each, NULL)) {
            return false;
        }
        struct cursor c = cursor_of(chunk, (size_t)count * each);
        for (uint64_t i = 0; i < count; i++) {
            struct elf_raw_symbol raw = elf_take_symbol(&c, e->is_32bit);
            if (is_named(names, raw.name) && accept(e, table, &raw, out)) {
                return true;
            }
        }
        done += count;
    }
    return false;
}

bool elf_find_symbol(struct elf *e, enum elf_table table, const char *name,
                     struct elf_symbol *out)
{
    struct same_names names = {.count = 0};
    find_names(e, &e->tables[table], str_of(name), &names);
    unsigned char *chunk =
        names.count > 0 ? malloc(SYMBOLS_PER_READ * elf_symbol_bytes(e)) : NULL;
    bool found = chunk != NULL && find_named(e, table, &names, chunk, out);
    free(chunk);
    return found;
}

/* ---- libraries ---- */

bool elf_needs(struct elf *e, const char *prefix)
{
    struct elf_dynamic d = {0};
    uint64_t names;
    struct str text;
    elf_read_dynamic(e, &d);
    if (!elf_offset_of(e, d.names, &names) || d.names_bytes > UINT64_MAX - names) {
        return false;
    }
    for (uint32_t i = 0; i < d.needed_count; i++) {
        if (elf_text(e, names, d.names_bytes, d.needed[i], &text) &&
            str_starts(text, str_of(prefix))) {
            return true;
        }
    }
    return false;
}
