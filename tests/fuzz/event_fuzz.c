/* Any text as events: what is accepted is within the bounds that the rest relies on. */
#include "capture/event.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
    if (!condition) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event_list list = {0};
    struct err err = {0};
    if (!event_parse((struct str){(const char *)data, size}, &list, &err)) {
        check(err.kind != ERR_NONE && err.text[0] != '\0' && list.count == 0);
        return 0;
    }
    check(list.count <= EVENTS_MAX && list.cpu_hz <= 10000);
    for (size_t i = 0; i < list.count; i++) {
        const struct event *e = &list.at[i];
        check(e->label[0] != '\0' && e->label[EVENT_LABEL_MAX - 1] == '\0');
        check(e->scale > 0 && (e->period == 0 || e->frequency_hz == 0));
        check(e->frequency_hz <= 10000);
    }
    return 0;
}
