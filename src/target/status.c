/* Parses /proc/PID/status: name, ids, capabilities, seccomp mode, namespaces, caught signals and
 * memory in use. A missing line leaves a documented default, except for the user ids. Also names
 * capabilities, for messages. */
#include "target/status.h"

static bool is_octal(char byte)
{
    return byte >= '0' && byte <= '7';
}

/* One byte of an escaped name: "\n", "\\" (string_escape_mem) or "\012" (older kernels). */
static char unescape(struct str *rest)
{
    char byte = rest->ptr[0];
    size_t used = 1;
    if (byte == '\\' && rest->len >= 2 && rest->ptr[1] == 'n') {
        byte = '\n';
        used = 2;
    } else if (byte == '\\' && rest->len >= 2 && rest->ptr[1] == '\\') {
        used = 2;
    } else if (byte == '\\' && rest->len >= 4 && is_octal(rest->ptr[1]) &&
               is_octal(rest->ptr[2]) && is_octal(rest->ptr[3])) {
        byte = (char)((rest->ptr[1] - '0') << 6 | (rest->ptr[2] - '0') << 3 | (rest->ptr[3] - '0'));
        used = 4;
    }
    *rest = str_sub(*rest, used, rest->len);
    return byte;
}

static void set_name(struct str value, struct proc_status *out)
{
    size_t len = 0;
    while (value.len > 0 && len < STATUS_NAME_MAX - 1) {
        out->name[len++] = unescape(&value);
    }
    out->name[len] = '\0';
}

static struct str next_word(struct str *rest)
{
    *rest = str_trim(*rest);
    size_t len = 0;
    while (len < rest->len && rest->ptr[len] != ' ' && rest->ptr[len] != '\t') {
        len++;
    }
    struct str word = str_sub(*rest, 0, len);
    *rest = str_sub(*rest, len, rest->len);
    return word;
}

static bool next_u32(struct str *rest, uint32_t *out)
{
    uint64_t value;
    if (!str_u64(next_word(rest), &value) || value > UINT32_MAX) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

static void set_u32(struct str value, uint32_t *out)
{
    (void)next_u32(&value, out);
}

static void set_flag(struct str value, int *out)
{
    uint32_t number;
    if (next_u32(&value, &number) && number <= 2) {
        *out = (int)number;
    }
}

static bool set_ids(struct str value, struct proc_ids *out)
{
    struct proc_ids ids;
    if (!next_u32(&value, &ids.real) || !next_u32(&value, &ids.effective) ||
        !next_u32(&value, &ids.saved) || !next_u32(&value, &ids.fs)) {
        return false;
    }
    *out = ids;
    return true;
}

static void set_ns_pid(struct str value, struct proc_status *out)
{
    uint32_t pid;
    while (next_u32(&value, &pid)) {
        out->ns_pid = pid;
        out->ns_pid_depth++;
    }
}

static void set_kib(struct str value, uint64_t *bytes)
{
    uint64_t kib;
    if (str_u64(next_word(&value), &kib) && kib <= UINT64_MAX / 1024) {
        *bytes = kib * 1024;
    }
}

static void set_mask(struct str value, uint64_t *out)
{
    uint64_t mask;
    if (str_hex(str_trim(value), &mask)) {
        *out = mask;
    }
}

static bool key_is(struct str key, const char *name)
{
    return str_eq(key, str_of(name));
}

/* Returns true when this was a good Uid line. */
static bool take_line(struct str key, struct str value, struct proc_status *out)
{
    if (key_is(key, "Name")) {
        set_name(str_sub(value, 1, value.len), out); /* blanks in it count; one tab stands before */
    } else if (key_is(key, "Uid")) {
        return set_ids(value, &out->uid);
    } else if (key_is(key, "Gid")) {
        (void)set_ids(value, &out->gid);
    } else if (key_is(key, "Tgid")) {
        set_u32(value, &out->tgid);
    } else if (key_is(key, "PPid")) {
        set_u32(value, &out->ppid);
    } else if (key_is(key, "TracerPid")) {
        set_u32(value, &out->tracer_pid);
    } else if (key_is(key, "Threads")) {
        set_u32(value, &out->num_threads);
    } else if (key_is(key, "NSpid")) {
        set_ns_pid(value, out);
    } else if (key_is(key, "Seccomp")) {
        set_flag(value, &out->seccomp);
    } else if (key_is(key, "NoNewPrivs")) {
        set_flag(value, &out->no_new_privs);
    } else if (key_is(key, "CapEff")) {
        set_mask(value, &out->cap_effective);
    } else if (key_is(key, "CapPrm")) {
        set_mask(value, &out->cap_permitted);
    } else if (key_is(key, "CapBnd")) {
        set_mask(value, &out->cap_bounding);
    } else if (key_is(key, "SigCgt")) {
        out->tells_caught = str_hex(str_trim(value), &out->caught);
    } else if (key_is(key, "VmRSS")) {
        set_kib(value, &out->rss_bytes);
    }
    return false;
}

bool status_parse(struct str text, struct proc_status *out, struct err *err)
{
    struct proc_status status = {.seccomp = -1, .no_new_privs = -1};
    bool has_uid = false;
    while (text.len > 0) {
        struct str value = str_cut(&text, '\n');
        struct str key = str_cut(&value, ':');
        has_uid |= take_line(key, value, &status);
    }
    if (!has_uid) {
        return err_set(err, ERR_MALFORMED, 0, "status: the line with the user ids is missing");
    }
    *out = status;
    return true;
}

/* linux/capability.h, by number. */
static const char *const capability_names[] = {
    "CHOWN",           "DAC_OVERRIDE",  "DAC_READ_SEARCH",  "FOWNER",         "FSETID",
    "KILL",            "SETGID",        "SETUID",           "SETPCAP",        "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN",        "NET_RAW",        "IPC_LOCK",
    "IPC_OWNER",       "SYS_MODULE",    "SYS_RAWIO",        "SYS_CHROOT",     "SYS_PTRACE",
    "SYS_PACCT",       "SYS_ADMIN",     "SYS_BOOT",         "SYS_NICE",       "SYS_RESOURCE",
    "SYS_TIME",        "SYS_TTY_CONFIG", "MKNOD",            "LEASE",          "AUDIT_WRITE",
    "AUDIT_CONTROL",   "SETFCAP",       "MAC_OVERRIDE",     "MAC_ADMIN",      "SYSLOG",
    "WAKE_ALARM",      "BLOCK_SUSPEND", "AUDIT_READ",       "PERFMON",        "BPF",
    "CHECKPOINT_RESTORE",
};

void status_capability_names(uint64_t capabilities, unsigned most, struct buf *out)
{
    const char *separator = "";
    for (unsigned i = 0, count = 0; i < 64; i++) {
        if ((capabilities >> i & 1) == 0) {
            continue;
        }
        if (count++ == most) {
            buf_text(out, ", ...");
            return;
        }
        if (i < sizeof capability_names / sizeof capability_names[0]) {
            buf_printf(out, "%s%s", separator, capability_names[i]);
        } else {
            buf_printf(out, "%s%u", separator, i);
        }
        separator = ", ";
    }
}
