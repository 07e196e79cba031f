/* The text of a dump, line by line: of a thread first its name and numbers, then its state, then its frames; a blank
 * line ends it. A thread is written with its first frame, once it is known to run: most of them wait, and VM threads
 * have no frames. */
#include "runtime/java/dumps.h"
#include "runtime/java/attach.h"

#include <errno.h>
#include <string.h>

enum { DUMP_MAX = 8 << 20, KEPT_MAX = 8 << 20, LATE_MAX = 3 };

void dumps_init(struct dumps *d, const struct process_port *port)
{
    *d = (struct dumps){.port = port};
    buf_init(&d->answer, DUMP_MAX);
    buf_init(&d->moment, KEPT_MAX);
    buf_init(&d->kept, KEPT_MAX);
}

void dumps_release(struct dumps *d)
{
    buf_release(&d->answer);
    buf_release(&d->moment);
    buf_release(&d->kept);
}

/* ---- the text ---- */

struct thread {
    struct str name;
    uint64_t tid;
    bool runs, is_written, is_native; /* native: what it has called is */
};

/* `"main" #1 prio=5 os_prio=0 cpu=45.03ms … nid=0x1a2b runnable [0x…]`; later versions have nid=6699. Behind the name
 * there are no quotes. */
static void read_head(struct thread *t, struct str line)
{
    static const char mark[] = " nid=";
    *t = (struct thread){.tid = 0};
    size_t end = line.len;
    while (end > 1 && line.ptr[end - 1] != '"') {
        end--;
    }
    struct str tail = str_sub(line, end, line.len);
    const char *at = memmem(tail.ptr, tail.len, mark, sizeof mark - 1);
    if (end > 1 && at != NULL) {
        struct str rest = str_sub(tail, (size_t)(at - tail.ptr) + sizeof mark - 1, tail.len);
        struct str number = str_cut(&rest, ' ');
        bool is_hex = str_starts(number, STR("0x"));
        t->name = str_sub(line, 1, end - 2);
        if (!(is_hex ? str_hex(str_sub(number, 2, number.len), &t->tid) : str_u64(number, &t->tid))) {
            t->tid = 0;
        }
    }
}

/* "Shop.java:12", "java.base@17.0.15/Thread.java:840", "Native Method", "Unknown Source" */
static uint64_t line_in(struct str place)
{
    uint64_t line;
    size_t colon = place.len;
    while (colon > 0 && place.ptr[colon - 1] != ':') {
        colon--;
    }
    return colon > 0 && str_u64(str_sub(place, colon, place.len), &line) ? line : 0;
}

/* "shop.Cart$$Lambda$14/0x00000008001.add" as "shop/Cart$$Lambda$14.add": behind the slash is what makes one class
 * many. */
static void put_name(struct str called, struct buf *out)
{
    size_t dot = called.len;
    while (dot > 0 && called.ptr[dot - 1] != '.') {
        dot--;
    }
    struct str rest = str_sub(called, 0, dot > 0 ? dot - 1 : 0);
    struct str class = str_cut(&rest, '/');
    for (size_t i = 0; i < class.len; i++) {
        buf_byte(out, class.ptr[i] == '.' ? '/' : class.ptr[i]);
    }
    buf_text(out, dot > 0 ? "." : "");
    buf_str(out, str_sub(called, dot, called.len));
}

/* "shop.Cart.add(Cart.java:12)" */
static void put_frame(struct thread *t, struct str frame, struct buf *out)
{
    struct str place = frame;
    struct str called = str_cut(&place, '(');
    if (place.len == 0 || called.len == 0) {
        return;
    }
    place = str_sub(place, 0, place.len - 1);
    if (!t->is_written) {
        t->is_native = str_ends(place, STR("Native Method"));
        buf_printf(out, "thread %llu %d ", (unsigned long long)t->tid, t->is_native);
        buf_str(out, t->name);
        buf_byte(out, '\n');
        t->is_written = true;
    }
    buf_printf(out, "%llu ", (unsigned long long)line_in(place));
    put_name(called, out);
    buf_byte(out, '\n');
}

/* "OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1 mixed mode, sharing):", without its modes. */
static void put_runtime(struct str rest, struct buf *out)
{
    struct str name = str_cut(&rest, '('), version = str_cut(&rest, ' ');
    if (name.len > 0 && version.len > 0) {
        buf_text(out, "runtime ");
        buf_str(out, name);
        buf_byte(out, '(');
        buf_str(out, version);
        buf_text(out, ")\n");
    }
}

unsigned dumps_write(struct str dump, uint64_t since_ns, struct buf *out)
{
    static const char state[] = "   java.lang.Thread.State: ", frame[] = "\tat ", head[] = "Full thread dump ";
    struct thread t = {.tid = 0};
    unsigned running = 0;
    buf_printf(out, "moment %llu\n", (unsigned long long)since_ns);
    while (dump.len > 0) {
        struct str line = str_cut(&dump, '\n');
        if (str_starts(line, STR("\""))) {
            read_head(&t, line);
        } else if (str_starts(line, str_of(head))) {
            put_runtime(str_sub(line, sizeof head - 1, line.len), out);
        } else if (str_starts(line, str_of(state))) {
            t.runs = t.tid != 0 && str_starts(str_sub(line, sizeof state - 1, line.len), STR("RUNNABLE"));
        } else if (t.runs && str_starts(line, str_of(frame))) {
            bool begins = !t.is_written;
            put_frame(&t, str_sub(line, sizeof frame - 1, line.len), out);
            running += begins && t.is_written && !t.is_native;
        } else if (line.len == 0) {
            t.runs = false;
        }
    }
    return running;
}

/* ---- asking ---- */

void dumps_forget(struct dumps *d)
{
    buf_clear(&d->kept);
    d->skipped_ns = 0;
}

bool dumps_take(struct dumps *d, uint64_t since_ns)
{
    if (d->why.kind != ERR_NONE) {
        return false;
    }
    if (!attach_ask(d->port, "Thread.print", &d->answer, ATTACH_MS, &d->why)) {
        bool is_late = d->why.number == ETIMEDOUT && ++d->late < LATE_MAX; /* it is stopped, or collects garbage */
        d->why = is_late ? (struct err){0} : d->why;
        return is_late;
    }
    d->late = 0;
    d->skipped_ns += since_ns;
    buf_clear(&d->moment);
    d->running = dumps_write(buf_slice(&d->answer), d->skipped_ns, &d->moment);
    if (!d->moment.failed && d->kept.len + d->moment.len <= KEPT_MAX) {
        buf_str(&d->kept, buf_slice(&d->moment));
        d->skipped_ns = 0;
    }
    return true;
}
