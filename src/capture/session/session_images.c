#include "base/time.h"
#include "capture/session/session_private.h"

enum { SWEEP_MS = 1000 }; /* between two sweeps: a mapping of a living process costs each 30 ns */

/* The window that is being filled and the one that is being published name images; nobody else holds a key
 * between two rounds but what targets_mark_images marks. */
void session_release_images(struct session *s, uint64_t now_ns)
{
    if (s->observer != NULL || now_ns < s->next_sweep_ns) {
        return; /* what is opened again would be observed again */
    }
    uint32_t since = s->targets.window - !publisher_ready(s->publisher);
    if (since == s->swept_since && s->targets.unmapped == s->swept_unmapped) {
        return;
    }
    s->next_sweep_ns = now_ns + SWEEP_MS * NS_PER_MS;
    s->swept_since = since;
    s->swept_unmapped = s->targets.unmapped;
    targets_mark_images(&s->targets);
    if (images_sweep(&s->images, since) > 0 && s->reads_runtimes) {
        readers_forget_images(&s->readers);
    }
}
