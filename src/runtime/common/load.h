/*
 * load: numbers in bytes that were read from a process of this byte order, and which numbers can be addresses.
 */
#ifndef RUNTIME_COMMON_LOAD_H
#define RUNTIME_COMMON_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t load_u64(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint32_t load_u32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Could this be the address of something in the target? Neither the first page nor the kernel's half. */
static inline bool plausible(uint64_t address)
{
    return address >= 4096 && address < (uint64_t)1 << 57;
}

/* One step of a multiplicative hash; the constant is 2^64 divided by the golden ratio. */
static inline uint64_t mix_u64(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
}

#endif
