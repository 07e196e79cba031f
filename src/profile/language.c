#include "profile/language.h"

const struct language languages[FRAME_KIND_COUNT] = {
#define LANGUAGE(id, title, ...) \
    [FRAME_##id] = {.name = title, .key = title "_percent", __VA_ARGS__},
#define LANGUAGE_MODE(id, title, option, help, ...) LANGUAGE(id, title, __VA_ARGS__)
#include "profile/language.def"
#undef LANGUAGE
#undef LANGUAGE_MODE
};

struct str language_line_in(struct str name, uint32_t *line)
{
    uint64_t number;
    size_t end = str_ends(name, STR("])")) ? str_find_last(name, '[') : name.len;
    struct str front = str_sub(name, 0, end - (end > 0));
    size_t colon = str_find_last(front, ':');
    struct str digits = str_sub(front, colon + 1, front.len);
    if (colon == front.len || (name.ptr[front.len] != ')' && name.ptr[front.len] != ' ') || !str_u64(digits, &number) ||
        number > UINT32_MAX) {
        return STR("");
    }
    *line = (uint32_t)number;
    return str_sub(front, colon, front.len);
}

static bool has_one(const char *list, struct str text, bool (*has)(struct str text, struct str part))
{
    for (struct str rest = str_of(list); rest.len > 0;) {
        struct str part = str_cut(&rest, ' ');
        if (text.len > part.len && has(text, part)) {
            return true;
        }
    }
    return false;
}

struct str language_class_without_address(struct str name)
{
    for (size_t i = 1; i + 3 < name.len; i++) {
        if (strchr("+/.", name.ptr[i]) != NULL && name.ptr[i + 1] == '0' && name.ptr[i + 2] == 'x') {
            return str_sub(name, 0, i);
        }
    }
    return name;
}

bool language_calls_system(enum frame_kind kind, struct str name)
{
    return has_one(languages[kind].system_calls, name, str_starts);
}

enum frame_kind language_by_ending(struct str file)
{
    unsigned kind = 0;
    while (kind < FRAME_KIND_COUNT && !has_one(languages[kind].endings, file, str_ends)) {
        kind++;
    }
    return kind < FRAME_KIND_COUNT ? (enum frame_kind)kind : FRAME_NATIVE;
}

bool language_is_source(struct str file)
{
    unsigned kind = 0;
    while (kind < FRAME_KIND_COUNT && (languages[kind].form != NAME_WITH_FILE ||
                                       !(has_one(languages[kind].endings, file, str_ends) ||
                                         has_one(languages[kind].more_endings, file, str_ends)))) {
        kind++;
    }
    return kind < FRAME_KIND_COUNT;
}

enum frame_kind language_by_mark(struct str name)
{
    unsigned kind = 0;
    while (kind < FRAME_KIND_COUNT && !has_one(languages[kind].more_suffixes, name, str_ends) &&
           !has_one(languages[kind].more_prefixes, name, str_starts)) {
        kind++;
    }
    return kind < FRAME_KIND_COUNT ? (enum frame_kind)kind : FRAME_NATIVE;
}
