/* Trampolines of -X perf: "py::Server.handle:/srv/app.py" in a perf map becomes "Server.handle (/srv/app.py)". */
#include "runtime/python/private.h"

/* "name:file"; neither is without colons by law, but names are. */
bool python_read_name(struct str raw, struct buf *out, struct runtime_named *named)
{
    static const struct str prefix = STR("py::");
    struct str file = str_sub(raw, prefix.len, raw.len);
    if (!str_starts(raw, prefix)) {
        return false;
    }
    struct str name = str_cut(&file, ':');
    buf_str(out, name.len > 0 ? name : STR("[unknown]"));
    if (file.len > 0) {
        buf_text(out, " (");
        buf_str(out, file);
        buf_byte(out, ')');
    }
    *named = (struct runtime_named){FRAME_PYTHON, file, 0};
    return true;
}
