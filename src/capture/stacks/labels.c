#include "capture/stacks/labels.h"

#include <stdio.h>

static struct str lock_of(const struct caught *caught)
{
    return (caught->marks & RUNTIME_HOLDS_LOCK) != 0   ? STR("held")
           : (caught->marks & RUNTIME_WAITS_LOCK) != 0 ? STR("waiting")
                                                       : STR("");
}

/* The next of the texts that end with 0, taken off `rest`. */
static struct str next_of(struct str *rest)
{
    size_t len = 0;
    while (len < rest->len && rest->ptr[len] != '\0') {
        len++;
    }
    struct str text = str_sub(*rest, 0, len);
    *rest = str_sub(*rest, len < rest->len ? len + 1 : len, rest->len);
    return text;
}

/* Labels without a stack are of the sample if it is proven, or if its own registers say so. */
static bool tells(const struct caught *caught, bool proven)
{
    bool has_labels = (caught->marks & RUNTIME_HAS_LABELS) != 0;
    return caught->end == RUNTIME_COMPLETE || (has_labels && (proven || (caught->marks & RUNTIME_SAME_TASK) != 0));
}

uint32_t labels_thread(struct profile *p, uint32_t thread, const struct caught *caught)
{
    char number[16] = "";
    bool proven = caught != NULL && caught->verdict == CATCH_PROVEN;
    while (caught != NULL && !tells(caught, proven)) { /* the first runtime that has a stack */
        caught = caught_next(caught);
    }
    if (caught == NULL || caught->serial == 0) {
        return thread;
    }
    if (caught->interpreter != 0) {
        snprintf(number, sizeof number, "%u", caught->interpreter - 1);
    }
    struct str task = {caught->task, caught->task_bytes};
    struct str labels[PROFILE_LABELS] = {
        [PROFILE_LABEL_GIL] = lock_of(caught),
        [PROFILE_LABEL_INTERPRETER] = str_of(number),
    };
    if ((caught->marks & RUNTIME_OF_REQUEST) != 0) {
        labels[PROFILE_LABEL_METHOD] = next_of(&task);
        labels[PROFILE_LABEL_SCRIPT] = next_of(&task);
        labels[PROFILE_LABEL_URL] = next_of(&task);
    } else if ((caught->marks & RUNTIME_HAS_LABELS) != 0) {
        labels[PROFILE_LABEL_OWN] = task;
    } else {
        labels[PROFILE_LABEL_TASK] = task;
    }
    return profile_labelled(p, thread, labels);
}
