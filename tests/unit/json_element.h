/* One element of an array of JSON, for the tests of encoders that write it; null: it has fewer. */
#ifndef JSON_ELEMENT_H
#define JSON_ELEMENT_H

#include "base/json.h"

static struct str element(struct str array, unsigned index)
{
    struct str value = {NULL, 0};
    for (unsigned i = 0; i <= index; i++) {
        if (!json_next(&array, NULL, &value)) {
            return (struct str){NULL, 0};
        }
    }
    return value;
}

#endif
