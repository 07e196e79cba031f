/* Any text as a source map, alone and as the mappings of one that is sound: nothing is told but of a line and a
 * column. */
#include "runtime/v8/source_map.h"
#include "base/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(struct str json)
{
    struct source_map *m = source_map_read(json, STR("/app/x.js"));
    for (uint32_t i = 0; m != NULL && i < 64; i++) {
        struct source_place p;
        if (source_map_find(m, 1 + i % 8, 1 + i * i, &p) && (p.line == 0 || p.column == 0)) {
            abort();
        }
    }
    source_map_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf json;
    struct str text = {(const char *)data, size};
    ask(text);
    buf_init(&json, 1 << 20);
    buf_text(&json, "{\"version\":3,\"sources\":[\"a\",\"../b\"],\"names\":[\"n\"],\"mappings\":");
    json_text(&json, text);
    buf_byte(&json, '}');
    ask(buf_slice(&json));
    buf_release(&json);
    return 0;
}
