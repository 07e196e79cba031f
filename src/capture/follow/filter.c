/* Compares a process's command line, executable and container with the patterns of the options. Among the patterns of a
 * kind one that excludes wins; where no pattern selects, everything that is not excluded is selected. The work of a
 * glob is at most its length times the text's. */
#include "capture/follow/filter.h"

bool filter_any(const filter_kinds kinds)
{
    for (unsigned kind = 0; kind < FILTER_KIND_COUNT; kind++) {
        if (kinds[kind].count > 0) {
            return true;
        }
    }
    return false;
}

static bool is_glob(struct str pattern)
{
    return str_find(pattern, '*') < pattern.len || str_find(pattern, '?') < pattern.len;
}

/* One star is open at a time: a later one makes what an earlier one took final, so that the work is
 * at most pattern times text. */
bool filter_glob(struct str pattern, struct str text)
{
    size_t p = 0, t = 0, star = pattern.len, resume = 0;
    while (t < text.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.len && (pattern.ptr[p] == '?' || pattern.ptr[p] == text.ptr[t])) {
            p++;
            t++;
        } else if (star < pattern.len) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*') {
        p++;
    }
    return p == pattern.len;
}

static bool holds(struct str text, struct str part)
{
    return part.len > 0 && part.len <= text.len &&
           memmem(text.ptr, text.len, part.ptr, part.len) != NULL;
}

static bool fits_line(struct str pattern, struct str line)
{
    return line.len > 0 && (is_glob(pattern) ? filter_glob(pattern, line) : holds(line, pattern));
}

static bool fits_exe(struct str pattern, struct str path)
{
    struct str text = str_find(pattern, '/') < pattern.len ? path : str_base_name(path);
    return text.len > 0 && (is_glob(pattern) ? filter_glob(pattern, text) : str_eq(pattern, text));
}

static bool fits_container(struct str pattern, struct str id)
{
    return id.len > 0 && str_starts(id, pattern);
}

static bool fits_kind(const struct pattern_list *list, struct str fact,
                      bool (*fits)(struct str pattern, struct str fact))
{
    bool wanted = false, held = false;
    for (size_t i = 0; i < list->count; i++) {
        const struct pattern *pattern = &list->at[i];
        bool good = fits(pattern->text, fact);
        if (pattern->excludes && good) {
            return false;
        }
        wanted = wanted || !pattern->excludes;
        held = held || (!pattern->excludes && good);
    }
    return held || !wanted;
}

bool filter_fits(const filter_kinds kinds, const struct filter_facts *facts)
{
    return fits_kind(&kinds[FILTER_MATCH], facts->command_line, fits_line) &&
           fits_kind(&kinds[FILTER_EXE], facts->exe, fits_exe) &&
           fits_kind(&kinds[FILTER_CONTAINER], facts->container, fits_container);
}

const struct pattern *filter_container_of(const struct pattern_list *list, struct str id)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!list->at[i].excludes && fits_container(list->at[i].text, id)) {
            return &list->at[i];
        }
    }
    return NULL;
}

void filter_join_arguments(struct buf *text)
{
    while (text->len > 0 && (text->ptr[text->len - 1] == '\0' || text->ptr[text->len - 1] == ' ')) {
        text->len--;
    }
    for (size_t i = 0; i < text->len; i++) {
        text->ptr[i] = text->ptr[i] == '\0' ? ' ' : text->ptr[i];
    }
}
