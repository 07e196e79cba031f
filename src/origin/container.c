#include "origin/container.h"

#include "target/cgroup.h"

enum { UID_LEN = 36, CONTAINER_NAME_MAX = 63 };

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* 8-4-4-4-12 digits at the front of the text, with '-' put for '_'. */
static bool uid_at(struct str text, char out[static UID_LEN])
{
    for (size_t i = 0; i < UID_LEN; i++) {
        bool separator = i == 8 || i == 13 || i == 18 || i == 23;
        char c = i < text.len ? text.ptr[i] : '\0';
        if (separator ? c != '-' && c != '_' : !is_hex(c)) {
            return false;
        }
        out[i] = separator ? '-' : c;
    }
    return text.len == UID_LEN || !is_hex(text.ptr[UID_LEN]);
}

/* ".../pod<uid>/..." and "...-pod<uid>.slice" */
static void take_pod_of_group(struct facts *facts, struct str line)
{
    char uid[UID_LEN];
    for (size_t i = 0; i + 3 < line.len; i++) {
        bool begins = i == 0 || line.ptr[i - 1] == '/' || line.ptr[i - 1] == '-';
        if (begins && str_starts(str_sub(line, i, 3), STR("pod")) &&
            uid_at(str_sub(line, i + 3, line.len), uid)) {
            facts_add(facts, "k8s.pod.uid", (struct str){uid, UID_LEN});
            return;
        }
    }
}

/* The kubelet's folder of a pod, which the root of a mount lies in; what is behind it. */
static bool take_pod_of_root(struct facts *facts, struct str *root)
{
    char uid[UID_LEN];
    while (root->len > 0) {
        if (str_eq(str_cut(root, '/'), STR("pods"))) {
            struct str part = str_cut(root, '/');
            if (part.len == UID_LEN && uid_at(part, uid)) {
                facts_add(facts, "k8s.pod.uid", (struct str){uid, UID_LEN});
                return true;
            }
        }
    }
    return false;
}

/* "id parent major:minor root mount-point …" */
static void take_mount(struct facts *facts, struct str line)
{
    for (int i = 0; i < 3; i++) {
        (void)str_cut(&line, ' ');
    }
    struct str root = str_cut(&line, ' '), point = str_cut(&line, ' ');
    bool is_log = str_eq(point, STR("/dev/termination-log"));
    if ((!is_log && !str_eq(point, STR("/etc/hosts"))) || !take_pod_of_root(facts, &root)) {
        return;
    }
    if (is_log && str_eq(str_cut(&root, '/'), STR("containers"))) {
        struct str name = str_cut(&root, '/');
        facts_add(facts, "k8s.container.name", name.len <= CONTAINER_NAME_MAX ? name : STR(""));
    }
}

void container_take(struct facts *facts, struct str cgroup, struct str mountinfo)
{
    char id[CONTAINER_ID_MAX];
    if (cgroup_container_id(cgroup, id) || mountinfo_own_container_id(mountinfo, id)) {
        facts_add(facts, "container.id", str_of(id));
    }
    while (cgroup.len > 0) {
        take_pod_of_group(facts, str_cut(&cgroup, '\n'));
    }
    while (mountinfo.len > 0) {
        take_mount(facts, str_cut(&mountinfo, '\n'));
    }
}
