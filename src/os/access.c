/* Explains a refusal to look into a process: collects what the kernel's ptrace check compares (ids,
 * dumpable flag, capabilities, Yama) and applies the check's rules in the kernel's order. The first
 * rule that fails names the gate and its remedy. */
#include "os/access.h"
#include "os/identity.h"
#include "os/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- facts ---- */

static bool read_status(uint32_t pid, struct proc_status *out)
{
    struct buf text;
    buf_init(&text, 64 * 1024);
    bool known = proc_read(pid, 0, "status", &text, NULL) &&
                 status_parse(buf_slice(&text), out, NULL);
    buf_release(&text);
    return known;
}

static int yama_scope(void)
{
    char text[16] = "";
    (void)proc_read_file("/proc/sys/kernel/yama/ptrace_scope", text, sizeof text - 1);
    return atoi(text);
}

/* Files in /proc/PID belong to root although the process does not: the kernel's sign of "not dumpable"
 * (the folder itself always has the process's user). */
static bool is_dumpable(uint32_t pid, uint32_t uid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%u/mem", pid);
    return uid == 0 || stat(path, &st) != 0 || st.st_uid != 0;
}

bool access_holds(unsigned capability)
{
    struct proc_status own;
    return read_status(proc_own_pid(), &own) && status_has_cap(&own, capability);
}

/* Who it runs as is no obstacle where we can be that user for a moment. */
static bool can_be_its_user(uint32_t pid)
{
    struct identity identity;
    bool can = identity_of(pid, &identity) && identity_visit(pid, EPERM);
    if (can) {
        identity_return();
    }
    return can;
}

/* ---- words ---- */

static bool same_ids(const struct proc_ids *target, uint32_t own)
{
    return target->real == own && target->effective == own && target->saved == own;
}

static void say_capabilities(uint64_t missing, char out[static ACCESS_CAUSE_MAX])
{
    int more = __builtin_popcountll(missing) - 1;
    char rest[24] = "";
    struct buf first;
    buf_init(&first, 64);
    status_capability_names(missing & -missing, 1, &first);
    if (more > 0) {
        snprintf(rest, sizeof rest, " and %d more", more);
    }
    snprintf(out, ACCESS_CAUSE_MAX, "it has capabilities that pillion lacks (%s%s)",
             buf_cstr(&first), rest);
    buf_release(&first);
}

static void set_remedy(struct access_verdict *out, const char *remedy)
{
    snprintf(out->remedy, sizeof out->remedy, "%s", remedy);
}

static void explain_yama(int scope, struct access_verdict *out)
{
    static const char *const who[] = {"only its parents and processes with SYS_PTRACE may",
                                      "only processes with SYS_PTRACE may", "no process may until the next boot"};
    static const char *const remedies[] = {
        "start the program with pillion, add SYS_PTRACE, or set kernel.yama.ptrace_scope to 0",
        "add SYS_PTRACE", ""};
    int at = scope < 3 ? scope - 1 : 2;
    out->gate = ACCESS_GATE_YAMA;
    set_remedy(out, remedies[at]);
    snprintf(out->cause, sizeof out->cause, "kernel.yama.ptrace_scope is %d: %s", scope, who[at]);
}

/* What SYS_PTRACE would make up for; false: nothing of it. */
static bool explain_identity(const struct access_facts *facts, struct access_verdict *out)
{
    const struct proc_status *own = &facts->own, *target = &facts->target;
    uint64_t missing = target->cap_permitted & ~own->cap_effective;
    if (!facts->as_user && !same_ids(&target->uid, own->uid.effective)) {
        out->gate = ACCESS_GATE_USER;
        set_remedy(out, "run as its user or add SYS_PTRACE");
        snprintf(out->cause, sizeof out->cause, "it runs as another user (uid %u)",
                 target->uid.effective);
    } else if (!facts->as_user && !same_ids(&target->gid, own->gid.effective)) {
        out->gate = ACCESS_GATE_GROUP;
        set_remedy(out, "run as its user and group or add SYS_PTRACE");
        snprintf(out->cause, sizeof out->cause, "it runs as another group (gid %u)",
                 target->gid.effective);
    } else if (!facts->dumpable) {
        out->gate = ACCESS_GATE_DUMPABLE;
        set_remedy(out, "add SYS_PTRACE");
        snprintf(out->cause, sizeof out->cause,
                 "it is not dumpable (file capabilities, set-uid or prctl)");
    } else if (missing != 0) {
        out->gate = ACCESS_GATE_CAPABILITIES;
        set_remedy(out, "give pillion the same capabilities or add SYS_PTRACE");
        say_capabilities(missing, out->cause);
    } else {
        return false;
    }
    return true;
}

const char *access_gate_name(enum access_gate gate)
{
    static const char *const names[] = {
        [ACCESS_GATE_USER] = "uid",
        [ACCESS_GATE_GROUP] = "gid",
        [ACCESS_GATE_DUMPABLE] = "dumpable",
        [ACCESS_GATE_CAPABILITIES] = "capability",
        [ACCESS_GATE_YAMA] = "yama",
        [ACCESS_GATE_MODULE] = "module",
    };
    return names[gate];
}

/* An engine that is asked to add a capability gives it to root, and puts it within bounds for others, who then
 * do not have it (no ambient set). Bounds without SYS_ADMIN are a container's. */
static bool was_added_in_vain(const struct proc_status *own)
{
    uint64_t bounds = own->cap_bounding;
    return own->uid.effective != 0 && !status_has_cap(own, CAP_SYS_PTRACE) &&
           (bounds >> CAP_SYS_PTRACE & 1) != 0 && (bounds >> CAP_SYS_ADMIN & 1) == 0;
}

static void find_gate(const struct access_facts *facts, enum access_kind kind, struct access_verdict *out)
{
    bool may_trace = status_has_cap(&facts->own, CAP_SYS_PTRACE);
    if (facts->known && !may_trace && explain_identity(facts, out)) {
        return;
    }
    if (kind != ACCESS_LOOK && facts->yama_scope > 0 && (!may_trace || facts->yama_scope > 2)) {
        explain_yama(facts->yama_scope, out);
        return;
    }
    out->gate = ACCESS_GATE_MODULE;
    set_remedy(out, may_trace ? "" : "add SYS_PTRACE");
    snprintf(out->cause, sizeof out->cause,
             "it is in another user namespace, or a security module forbids it");
}

static void evaluate(const struct access_facts *facts, enum access_kind kind, struct access_verdict *out)
{
    find_gate(facts, kind, out);
    if (was_added_in_vain(&facts->own) && str_ends(str_of(out->remedy), STR("SYS_PTRACE"))) {
        size_t len = strlen(out->remedy);
        snprintf(out->remedy + len, sizeof out->remedy - len,
                 ", which was added but takes effect for root only: run pillion as root");
    }
}

static void look_at(uint32_t pid, enum access_kind kind, struct access_facts *out)
{
    *out = (struct access_facts){.yama_scope = yama_scope()};
    out->known = read_status(proc_own_pid(), &out->own) && read_status(pid, &out->target);
    out->dumpable = !out->known || is_dumpable(pid, out->target.uid.effective);
    out->as_user = kind != ACCESS_CALL && can_be_its_user(pid);
}

void access_verdict_of(uint32_t pid, enum access_kind kind, struct access_verdict *out)
{
    struct access_facts facts;
    look_at(pid, kind, &facts);
    evaluate(&facts, kind, out);
}

void access_explain(const struct access_facts *facts, enum access_kind kind,
                    char out[static ACCESS_TEXT_MAX])
{
    struct access_verdict verdict;
    evaluate(facts, kind, &verdict);
    snprintf(out, ACCESS_TEXT_MAX, "%s%s%s", verdict.cause, verdict.remedy[0] != '\0' ? "; " : "",
             verdict.remedy);
}

void access_refusal(uint32_t pid, enum access_kind kind, char out[static ACCESS_TEXT_MAX])
{
    struct access_facts facts;
    look_at(pid, kind, &facts);
    access_explain(&facts, kind, out);
}
