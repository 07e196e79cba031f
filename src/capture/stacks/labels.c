#include "capture/stacks/labels.h"

#include <stdio.h>

static struct str lock_of(const struct caught *caught)
{
    return (caught->marks & RUNTIME_HOLDS_LOCK) != 0   ? STR("held")
           : (caught->marks & RUNTIME_WAITS_LOCK) != 0 ? STR("waiting")
                                                       : STR("");
}

uint32_t labels_thread(struct profile *p, uint32_t thread, const struct caught *caught)
{
    char number[16] = "";
    while (caught != NULL && caught->end != RUNTIME_COMPLETE) { /* the first runtime that has a stack */
        caught = caught_next(caught);
    }
    if (caught == NULL || caught->serial == 0) {
        return thread;
    }
    if (caught->interpreter != 0) {
        snprintf(number, sizeof number, "%u", caught->interpreter - 1);
    }
    const struct str labels[PROFILE_LABELS] = {
        [PROFILE_LABEL_GIL] = lock_of(caught),
        [PROFILE_LABEL_TASK] = {caught->task, caught->task_bytes},
        [PROFILE_LABEL_INTERPRETER] = str_of(number),
    };
    return profile_labelled(p, thread, labels);
}
