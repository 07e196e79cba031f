/* Functions of the runtime by name. The names stand in the order in which the linker met them, so all functions are
 * looked at once; of each only its name's first bytes, until they are the runtime's. */
#include "runtime/go/table/private.h"

#define PACKAGE "runtime."

enum { NAMES_MAX_BYTES = 64 };

/* The text at `at` of the names is exactly `name`. */
static bool is_named(struct go_table *t, uint64_t at, const char *name)
{
    char text[NAMES_MAX_BYTES];
    size_t len = strlen(name) + 1;
    return len <= sizeof text && go_read(&t->reader, t->names, at, text, len) && memcmp(text, name, len) == 0;
}

static bool name_of(struct go_table *t, uint64_t index, uint32_t *name)
{
    char package[sizeof PACKAGE - 1];
    uint32_t at;
    return go_u32(&t->reader, t->list, (2 * index + 1) * 4, &at) &&
           go_u32(&t->reader, t->functions, (uint64_t)at + 4, name) &&
           go_read(&t->reader, t->names, *name, package, sizeof package) &&
           memcmp(package, PACKAGE, sizeof package) == 0;
}

void go_table_find(struct go_table *table, struct go_code *codes, size_t count)
{
    uint32_t name;
    size_t left = count;
    for (size_t i = 0; i < count; i++) {
        codes[i].start = codes[i].limit = 0;
    }
    for (uint64_t index = 0; table->format->relative && left > 0 && index < table->function_count; index++) {
        if (!name_of(table, index, &name)) {
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            struct go_function f;
            if (codes[i].limit == 0 && is_named(table, name, codes[i].name) && go_function_at(table, index, &f)) {
                codes[i].start = f.start;
                codes[i].limit = f.limit;
                left--;
            }
        }
    }
}
