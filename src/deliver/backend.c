#include "deliver/backend.h"

const struct backend *backend_by_name(struct str name)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        if (str_eq(name, str_of(backends[i]->name))) {
            return backends[i];
        }
    }
    return NULL;
}

unsigned backend_bit(const char *name)
{
    size_t i = 0;
    while (strcmp(backends[i]->name, name) != 0) {
        i++;
    }
    return 1u << i;
}

static bool any_is_set(const char *names, struct str (*get)(void *context, const char *name),
                       void *context)
{
    struct str rest = str_of(names);
    while (rest.len > 0) {
        char name[64];
        struct str one = str_sub(str_cut(&rest, ' '), 0, sizeof name - 1);
        memcpy(name, one.ptr, one.len);
        name[one.len] = '\0';
        if (get(context, name).len > 0) {
            return true;
        }
    }
    return false;
}

/* A server's address says more than a token, which may be there for another program. */
const struct backend *backend_from_environment(struct str (*get)(void *context, const char *name),
                                               void *context)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        if (any_is_set(backends[i]->env_host, get, context)) {
            return backends[i];
        }
    }
    for (size_t i = 0; backends[i] != NULL; i++) {
        if (any_is_set(backends[i]->env_token, get, context)) {
            return backends[i];
        }
    }
    return NULL;
}
