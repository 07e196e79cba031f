/* Any bytes as the answer of every platform, as variables, as control groups and mounts: what is taken could be a
 * label, each name once, and what comes of the same bytes cut is bounded as well. */
#include "base/utf8.h"
#include "origin/container.h"
#include "origin/platform.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_facts(const struct facts *facts)
{
    check(facts->count <= FACTS_MAX);
    for (size_t i = 0; i < facts->count; i++) {
        struct str value = facts->at[i].value;
        check(value.len > 0 && value.len <= FACT_VALUE_MAX && utf8_valid(value));
        for (size_t k = 0; k < value.len; k++) {
            check((unsigned char)value.ptr[k] >= ' ');
        }
        for (size_t k = 0; k < i; k++) {
            check(!str_eq(facts->at[k].name, facts->at[i].name));
        }
    }
    check(facts->cpu_millis <= 100001000 && facts->memory_bytes < UINT64_C(1) << 60);
}

static void answer(const struct platform *platform, struct facts *facts, struct str body)
{
    for (size_t i = 0; i < platform->request_count; i++) {
        size_t count = facts->count;
        if (platform->requests[i].take != NULL && !platform->requests[i].take(facts, body)) {
            check(facts->count == count);
        }
    }
    if (platform->finish != NULL) {
        platform->finish(facts);
    }
}

static struct str get(void *context, const char *name)
{
    struct str rest = *(const struct str *)context;
    size_t wanted = str_hash(str_of(name)) % 8; /* the line is each variable's that has its number */
    for (size_t i = 0; i < wanted; i++) {
        (void)str_cut(&rest, '\n');
    }
    return str_cut(&rest, '\n');
}

static void surround(struct facts *facts, struct str text)
{
    const struct signs signs = {{get, &text}, str_sub(text, 0, str_find(text, '\n'))};
    environment_take(facts, &signs.environment);
    for (size_t i = 0; i < PLATFORM_COUNT; i++) {
        char address[PLATFORM_ADDRESS_MAX];
        (void)platform_is_here(&platforms[i], &signs);
        for (size_t at = 0; at < 3; at++) {
            if (platform_address(&platforms[i], &signs.environment, at, address)) {
                check(strncmp(address, "http://", 7) == 0 && strlen(address) < sizeof address);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena texts;
    struct facts facts;
    if (size == 0) {
        return 0;
    }
    struct str text = {(const char *)data + 1, size - 1};
    arena_init(&texts, 64 << 10);
    facts_init(&facts, &texts);
    if (data[0] % 8 < PLATFORM_COUNT) {
        answer(&platforms[data[0] % 8], &facts, text);
    } else if (data[0] % 8 == 5) {
        surround(&facts, text);
    } else {
        struct str mounts = text, group = str_cut(&mounts, '\0');
        container_take(&facts, group, mounts);
    }
    check_facts(&facts);
    arena_release(&texts);
    return 0;
}
