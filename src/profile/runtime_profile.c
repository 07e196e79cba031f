#include "profile/runtime_profile.h"

#include <stdio.h>

static size_t bytes_of(const struct runtime_profiles *list)
{
    size_t sum = 0;
    vec_each(&list->all, one)
    {
        sum += one->bytes.len;
    }
    return sum;
}

static struct runtime_profile *find(struct runtime_profiles *list, uint32_t pid, const char *type)
{
    vec_each(&list->all, one)
    {
        if (one->pid == pid && strcmp(one->type, type) == 0) {
            return one;
        }
    }
    return NULL;
}

bool runtime_profiles_put(struct runtime_profiles *list, uint32_t pid, enum frame_kind language,
                          const char *type, struct buf *bytes)
{
    struct runtime_profile *place = find(list, pid, type);
    size_t before = place != NULL ? place->bytes.len : 0;
    if (bytes_of(list) - before + bytes->len > RUNTIME_PROFILES_MAX_BYTES ||
        (place == NULL && list->all.len >= RUNTIME_PROFILES_MAX)) {
        return false;
    }
    place = place != NULL ? place : vec_push(&list->all);
    if (place == NULL) {
        return false;
    }
    snprintf(place->type, sizeof place->type, "%s", type);
    buf_release(&place->bytes);
    place->pid = pid;
    place->language = language;
    place->bytes = *bytes;
    buf_init(bytes, bytes->max);
    return true;
}

uint32_t runtime_profiles_next(const struct runtime_profiles *list, uint32_t pid)
{
    uint32_t next = 0;
    vec_each(&list->all, one)
    {
        next = one->pid > pid && (next == 0 || one->pid < next) ? one->pid : next;
    }
    return next;
}

void runtime_profiles_clear(struct runtime_profiles *list)
{
    vec_each(&list->all, one)
    {
        buf_release(&one->bytes);
    }
    vec_clear(&list->all);
}

void runtime_profiles_release(struct runtime_profiles *list)
{
    runtime_profiles_clear(list);
    vec_release(&list->all);
}

bool runtime_profile_is_pprof(struct str type)
{
    return str_find(type, '.') == type.len;
}

bool runtime_profile_is_trace(struct str type)
{
    return str_ends(type, STR(".trace"));
}

struct str runtime_profile_of_file(struct str path)
{
    struct str name = str_base_name(path), stem = str_cut(&name, '.'), type = str_cut(&name, '.');
    bool is_one = str_starts(stem, STR("profile_")) && str_eq(name, STR("pprof"));
    return is_one ? str_cut(&type, '-') : STR("");
}
