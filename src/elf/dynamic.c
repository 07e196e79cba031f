/* The dynamic symbols of a file without section headers, found by PT_DYNAMIC. The length of the table
 * is not stored there: DT_HASH has it as its chain count; else it follows from DT_GNU_HASH, whose last
 * chain ends at the last symbol. */
#include <elf.h>

#include "base/cursor.h"
#include "elf/private.h"

enum {
    DYNAMIC_ENTRIES_MAX = 512,   /* real files have 20 to 60 */
    DYNAMIC_ENTRIES_PER_READ = 64,
    HASH_BUCKETS_MAX = 1 << 20,  /* 4 MiB of file, read in pieces */
    HASH_WORDS_PER_READ = 256,
};

static void take_entry(struct elf_dynamic *d, uint64_t tag, uint64_t value)
{
    switch (tag) {
    case DT_NEEDED:
        if (d->needed_count < ELF_NEEDED_MAX) {
            d->needed[d->needed_count++] = value;
        }
        break;
    case DT_SYMTAB:
        d->symbols = value;
        break;
    case DT_STRTAB:
        d->names = value;
        break;
    case DT_STRSZ:
        d->names_bytes = value;
        break;
    case DT_HASH:
        d->hash = value;
        break;
    case DT_GNU_HASH:
        d->gnu_hash = value;
        break;
    case DT_RELA:
        d->relocations = value;
        break;
    case DT_RELACOUNT:
        d->relative_count = value;
        break;
    default:
        break;
    }
}

/* Takes the entries of one piece; false at DT_NULL. */
static bool take_entries(const struct elf *e, struct elf_dynamic *d, struct cursor *c)
{
    while (c->len > 0) {
        uint64_t tag = e->is_32bit ? cursor_u32(c) : cursor_u64(c);
        uint64_t value = e->is_32bit ? cursor_u32(c) : cursor_u64(c);
        if (tag == DT_NULL) {
            return false;
        }
        take_entry(d, tag, value);
    }
    return true;
}

void elf_read_dynamic(const struct elf *e, struct elf_dynamic *d)
{
    unsigned char bytes[DYNAMIC_ENTRIES_PER_READ * sizeof(Elf64_Dyn)];
    size_t each = e->is_32bit ? sizeof(Elf32_Dyn) : sizeof(Elf64_Dyn);
    uint64_t count = e->dynamic.bytes / each;
    count = count < DYNAMIC_ENTRIES_MAX ? count : DYNAMIC_ENTRIES_MAX;
    for (uint64_t done = 0, now; done < count; done += now) {
        now = count - done < DYNAMIC_ENTRIES_PER_READ ? count - done : DYNAMIC_ENTRIES_PER_READ;
        if (!elf_read(e, e->dynamic.offset + done * each, bytes, (size_t)now * each, NULL)) {
            return;
        }
        struct cursor c = cursor_of(bytes, (size_t)now * each);
        if (!take_entries(e, d, &c)) {
            return;
        }
    }
}

uint64_t elf_relative_count(const struct elf *e, const struct elf_section *section)
{
    struct elf_dynamic d = {0};
    elf_read_dynamic(e, &d);
    return d.relocations == section->address ? d.relative_count : 0;
}

/* Calls `each` with the 32-bit words at `offset` until it returns false; false when the file ends
 * first. */
static bool each_word(const struct elf *e, uint64_t offset, uint64_t count,
                      bool (*each)(uint32_t *state, uint32_t word), uint32_t *state)
{
    unsigned char bytes[HASH_WORDS_PER_READ * 4];
    for (uint64_t done = 0; done < count;) {
        uint64_t now = count - done < HASH_WORDS_PER_READ ? count - done : HASH_WORDS_PER_READ;
        if (!elf_read(e, offset + done * 4, bytes, (size_t)now * 4, NULL)) {
            now = 1; /* the last chain may end right before the end of the file */
            if (!elf_read(e, offset + done * 4, bytes, 4, NULL)) {
                return false;
            }
        }
        struct cursor c = cursor_of(bytes, (size_t)now * 4);
        for (uint64_t i = 0; i < now; i++) {
            if (!each(state, cursor_u32(&c))) {
                return true;
            }
        }
        done += now;
    }
    return true;
}

static bool keep_highest(uint32_t *state, uint32_t word)
{
    *state = word > *state ? word : *state;
    return true;
}

/* The low bit of a chain's word marks its end. */
static bool count_chain(uint32_t *state, uint32_t word)
{
    *state += 1;
    return (word & 1) == 0 && *state < ELF_SYMBOLS_MAX;
}

/* Header: bucket count, index of the first hashed symbol, Bloom words, shift; then the Bloom words,
 * the buckets (lowest symbol of each chain), and one word per hashed symbol. */
static uint64_t count_by_gnu_hash(const struct elf *e, uint64_t offset)
{
    unsigned char header[16];
    if (!elf_read(e, offset, header, sizeof header, NULL)) {
        return 0;
    }
    struct cursor c = cursor_of(header, sizeof header);
    uint64_t buckets = cursor_u32(&c), first = cursor_u32(&c), bloom = cursor_u32(&c);
    uint64_t buckets_at = offset + sizeof header + bloom * (e->is_32bit ? 4 : 8);
    uint32_t last = 0;
    if (buckets > HASH_BUCKETS_MAX || !each_word(e, buckets_at, buckets, keep_highest, &last)) {
        return 0;
    }
    if (last < first) {
        return first; /* nothing is hashed: the symbols before are all there are */
    }
    uint64_t chain_at = buckets_at + buckets * 4 + (last - first) * 4;
    bool good = each_word(e, chain_at, ELF_SYMBOLS_MAX, count_chain, &last);
    return good ? last : 0;
}

static uint64_t count_by_hash(const struct elf *e, uint64_t offset)
{
    unsigned char header[8];
    if (!elf_read(e, offset, header, sizeof header, NULL)) {
        return 0;
    }
    struct cursor c = cursor_of(header, sizeof header);
    cursor_skip(&c, 4);
    return cursor_u32(&c);
}

void elf_find_dynamic_table(struct elf *e, struct elf_symbol_table *out)
{
    struct elf_dynamic d = {0};
    struct elf_symbol_table t = {0};
    uint64_t hash;
    elf_read_dynamic(e, &d);
    if (!elf_offset_of(e, d.symbols, &t.offset) || !elf_offset_of(e, d.names, &t.names_offset)) {
        return;
    }
    if (d.hash != 0 && elf_offset_of(e, d.hash, &hash)) {
        t.count = count_by_hash(e, hash);
    } else if (d.gnu_hash != 0 && elf_offset_of(e, d.gnu_hash, &hash)) {
        t.count = count_by_gnu_hash(e, hash);
    }
    t.names_bytes = d.names_bytes > UINT64_MAX - t.names_offset ? 0 : d.names_bytes;
    *out = t;
}
