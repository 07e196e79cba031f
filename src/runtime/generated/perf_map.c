#include "runtime/generated/perf_map.h"

static bool read_any_name(struct str raw, struct buf *out, struct runtime_named *named)
{
    buf_str(out, raw);
    *named = (struct runtime_named){FRAME_NATIVE, STR(""), 0};
    return true;
}

const struct runtime runtime_perf_map = {
    .name = "perf map",
    .kind = FRAME_NATIVE,
    .read_name = read_any_name,
};
