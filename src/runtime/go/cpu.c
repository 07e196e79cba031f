#include "runtime/go/cpu.h"
#include "base/time.h"

#include <stdio.h>

enum {
    ASK_MS = 1000,
    LATE_MS = 3000, /* after which the answer is no longer waited for */
    AGAIN_MS = 30000,
};

static bool begin(struct go_cpu *cpu, const struct process_port *port, const struct go_endpoint *at, uint64_t now_ns,
                  struct err *why)
{
    char what[32];
    snprintf(what, sizeof what, "profile?seconds=%d", GO_CPU_SECONDS);
    if (at->socket[0] != '\0') {
        cpu->next_ns = UINT64_MAX;
        return err_set(why, ERR_UNSUPPORTED, 0, "CPU profiles are not had through a Unix socket");
    }
    cpu->runs = go_endpoint_begin(port, at, what, &cpu->stream, ASK_MS, why);
    cpu->next_ns = now_ns + (cpu->runs ? GO_CPU_SECONDS * NS_PER_S : AGAIN_MS * NS_PER_MS);
    return cpu->runs;
}

bool go_cpu_tick(struct go_cpu *cpu, const struct process_port *port, const struct go_endpoint *at, struct buf *profile,
                 struct err *why)
{
    uint64_t now_ns = port->now_ns(port->context);
    bool has_answer = cpu->runs && cpu->stream.readable(cpu->stream.context);
    bool is_late = cpu->runs && now_ns > cpu->next_ns + LATE_MS * NS_PER_MS;
    if (!cpu->runs) {
        (void)(now_ns < cpu->next_ns || begin(cpu, port, at, now_ns, why));
        return false;
    }
    if (!has_answer && !is_late) {
        return false;
    }
    cpu->runs = false;
    bool good = go_endpoint_end(port, &cpu->stream, profile, has_answer ? ASK_MS : 0, why);
    cpu->next_ns = good ? now_ns : now_ns + AGAIN_MS * NS_PER_MS;
    return good;
}

void go_cpu_stop(struct go_cpu *cpu)
{
    if (cpu->runs) {
        cpu->stream.close(cpu->stream.context);
    }
    cpu->runs = false;
}
