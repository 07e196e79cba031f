/*
 * access: why the kernel refuses us access to a process, in words.
 *
 * The kernel's ptrace check (__ptrace_may_access) asks in this order, and the first rule that fails is the
 * reason: the same user and group, or SYS_PTRACE; a target that is dumpable, or SYS_PTRACE; no capability in
 * the target that we do not have, or SYS_PTRACE; then the security modules. One of these, Yama, has a say only
 * where memory is read or written (PTRACE_MODE_ATTACH): perf events and the files maps, exe and root of
 * /proc/PID (PTRACE_MODE_READ) are not its business.
 *
 * The result explains a refusal that has happened. Nothing is deduced from it: whether something is allowed
 * is found out by trying.
 *
 * Sources: ptrace(2) "Ptrace access mode checking"; Documentation/admin-guide/LSM/Yama.rst; capabilities(7).
 */
#ifndef OS_ACCESS_H
#define OS_ACCESS_H

#include "target/status.h"

#include <linux/capability.h>
#include <stdint.h>

enum { ACCESS_TEXT_MAX = 256, ACCESS_CAUSE_MAX = 120, ACCESS_REMEDY_MAX = 120 };

enum access_kind {
    ACCESS_LOOK,   /* perf events, maps, the files it has mapped */
    ACCESS_MEMORY, /* its memory, by file: opened as its user, if that helps */
    ACCESS_CALL,   /* its memory, by process_vm_readv: always as ourselves */
};

/* What decides. */
struct access_facts {
    struct proc_status own, target;
    bool known;      /* false: `target` could not be read */
    bool as_user;    /* we can act as its user for a moment (identity.h), and do */
    bool dumpable;
    int yama_scope;  /* kernel.yama.ptrace_scope; 0: off, or there is no Yama */
};

/* The rule that failed. */
enum access_gate {
    ACCESS_GATE_USER,
    ACCESS_GATE_GROUP,
    ACCESS_GATE_DUMPABLE,
    ACCESS_GATE_CAPABILITIES,
    ACCESS_GATE_YAMA,
    ACCESS_GATE_MODULE, /* or another user namespace */
};

struct access_verdict {
    enum access_gate gate;
    char cause[ACCESS_CAUSE_MAX];   /* "it runs as another user (uid 1000)" */
    char remedy[ACCESS_REMEDY_MAX]; /* "run as its user or add SYS_PTRACE"; "" when nothing helps */
};

/* "uid", "gid", "dumpable", "capability", "yama", "module" */
const char *access_gate_name(enum access_gate gate);

/* Both parts as one: "it runs as another user; run as its user or add SYS_PTRACE" */
void access_explain(const struct access_facts *facts, enum access_kind kind,
                    char out[static ACCESS_TEXT_MAX]);

/* The same, of a process as it is now. */
void access_verdict_of(uint32_t pid, enum access_kind kind, struct access_verdict *out);
void access_refusal(uint32_t pid, enum access_kind kind, char out[static ACCESS_TEXT_MAX]);

/* Does this process hold the capability (CAP_… number)? */
bool access_holds(unsigned capability);

#endif
