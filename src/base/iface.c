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

bool stream_write(const struct stream *stream, struct str bytes, uint64_t deadline_ns, struct err *err)
{
    while (bytes.len > 0) {
        ptrdiff_t put = stream->write(stream->context, bytes.ptr, bytes.len, deadline_ns, err);
        if (put <= 0) {
            return false;
        }
        bytes = str_sub(bytes, (size_t)put, bytes.len);
    }
    return true;
}
