#include "runtime/python/walk.h"

static uint64_t mix_number(uint64_t hash, const struct python_layout *l, const unsigned char *code,
                        uint32_t offset)
{
    bool there = has(offset) && offset + sizeof(uint32_t) <= l->code.bytes;
    return there ? mix_u64(hash, load_u32(code + offset)) : hash;
}

static uint64_t mix_word(uint64_t hash, const struct python_layout *l, const unsigned char *code,
                        uint32_t offset)
{
    bool there = has(offset) && offset + sizeof(uint64_t) <= l->code.bytes;
    return there ? mix_u64(hash, load_u64(code + offset)) : hash;
}

uint64_t python_fingerprint(const struct python_layout *layout, const unsigned char *code)
{
    uint64_t hash = 1;
    hash = mix_number(hash, layout, code, layout->code.first_line);
    hash = mix_number(hash, layout, code, layout->code.flags);
    hash = mix_word(hash, layout, code, layout->code.file);
    hash = mix_word(hash, layout, code, layout->code.name);
    hash = mix_word(hash, layout, code, layout->code.qualname);
    hash = mix_word(hash, layout, code, layout->code.lines);
    hash = mix_number(hash, layout, code, layout->code.version);
    return hash != 0 ? hash : 1;
}
