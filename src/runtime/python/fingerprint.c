#include "runtime/python/walk.h"

/* One step of a multiplicative hash; the constant is 2^64 divided by the golden ratio. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
}

static uint64_t mix_u32(uint64_t hash, const struct python_layout *l, const unsigned char *code,
                        uint32_t offset)
{
    bool there = has(offset) && offset + sizeof(uint32_t) <= l->code.bytes;
    return there ? mix(hash, load_u32(code + offset)) : hash;
}

static uint64_t mix_u64(uint64_t hash, const struct python_layout *l, const unsigned char *code,
                        uint32_t offset)
{
    bool there = has(offset) && offset + sizeof(uint64_t) <= l->code.bytes;
    return there ? mix(hash, load_u64(code + offset)) : hash;
}

uint64_t python_fingerprint(const struct python_layout *layout, const unsigned char *code)
{
    uint64_t hash = 1;
    hash = mix_u32(hash, layout, code, layout->code.first_line);
    hash = mix_u32(hash, layout, code, layout->code.flags);
    hash = mix_u64(hash, layout, code, layout->code.file);
    hash = mix_u64(hash, layout, code, layout->code.name);
    hash = mix_u64(hash, layout, code, layout->code.qualname);
    hash = mix_u64(hash, layout, code, layout->code.lines);
    hash = mix_u32(hash, layout, code, layout->code.version);
    return hash != 0 ? hash : 1;
}
