#include "base/iface.h"

static bool buf_write(void *context, const void *ptr, size_t len, struct err *err)
{
    struct buf *buf = context;
    buf_add(buf, ptr, len);
    if (buf->failed) {
        return err_set(err, ERR_LIMIT, 0, "output is larger than %zu bytes", buf->max);
    }
    return true;
}

struct sink sink_of_buf(struct buf *buf)
{
    return (struct sink){buf_write, buf};
}
