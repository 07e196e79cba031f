/* Small reads of a Go process. The reason why it cannot be read at all (it ended, or refuses) is kept, and told by
 * whatever was asked for. */
#include "runtime/common/load.h"
#include "runtime/go/memory/memory_private.h"

bool go_peek(struct go_memory *m, uint64_t address, void *out, size_t len)
{
    struct memory_piece piece = {.address = address, .out = out, .len = (uint32_t)len};
    return plausible(address) && memory_batch_read(m->process.memory, &piece, 1, &m->unread) && piece.got == len;
}

bool go_peek_word(struct go_memory *m, uint64_t address, uint64_t *out)
{
    unsigned char raw[8];
    if (!go_peek(m, address, raw, sizeof raw)) {
        return false;
    }
    *out = load_u64(raw);
    return true;
}

bool go_unread(const struct go_memory *m, struct err *why, const char *what)
{
    if (m->unread.kind != ERR_NONE) {
        return err_set(why, m->unread.kind, m->unread.number, "%s: %s", what, m->unread.text);
    }
    return err_set(why, ERR_MALFORMED, 0, "%s: the Go program's tables contradict themselves", what);
}
