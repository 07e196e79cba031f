/* Parses /proc/PID/cgroup and mountinfo: the container id in a control group's path or in the files
 * that a container engine mounts, and the paths by which quotas are looked up. Pure text in, slices
 * out. */
#include "target/cgroup.h"

enum { DOCKER_ID_DIGITS = 64, FARGATE_HEX_DIGITS = 32, UUID_LEN = 36 };

static bool is_decimal(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_hex(char byte)
{
    return is_decimal(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

/* How many bytes in front of `end` satisfy `test`. */
static size_t count_back(struct str text, size_t end, bool (*test)(char))
{
    size_t count = 0;
    while (count < end && test(text.ptr[end - 1 - count])) {
        count++;
    }
    return count;
}

static bool prefix_ends_well(struct str text, size_t len)
{
    return len == 0 || text.ptr[len - 1] == '-' || text.ptr[len - 1] == ':';
}

static struct str docker_id(struct str part)
{
    size_t digits = count_back(part, part.len, is_hex);
    bool good = digits == DOCKER_ID_DIGITS && prefix_ends_well(part, part.len - digits);
    return good ? str_sub(part, part.len - digits, digits) : STR("");
}

static struct str fargate_id(struct str part)
{
    size_t digits = count_back(part, part.len, is_decimal);
    size_t dash = part.len - digits;
    if (digits == 0 || dash == 0 || part.ptr[dash - 1] != '-') {
        return STR("");
    }
    size_t hex = count_back(part, dash - 1, is_hex);
    size_t start = dash - 1 - hex;
    bool good = hex == FARGATE_HEX_DIGITS && prefix_ends_well(part, start);
    return good ? str_sub(part, start, part.len) : STR("");
}

static struct str uuid(struct str part)
{
    if (part.len != UUID_LEN) {
        return STR("");
    }
    for (size_t i = 0; i < UUID_LEN; i++) {
        bool separator = i == 8 || i == 13 || i == 18 || i == 23;
        char byte = part.ptr[i];
        if (separator ? byte != '-' && byte != '_' : !is_hex(byte)) {
            return STR("");
        }
    }
    return part;
}

static struct str id_of_component(struct str part)
{
    struct str whole = part;
    const struct str scope = STR(".scope");
    if (str_ends(part, scope)) {
        part.len -= scope.len;
    }
    struct str id = docker_id(part);
    if (id.len == 0) {
        id = fargate_id(part);
    }
    return id.len > 0 ? id : uuid(whole);
}

static bool store(struct str id, char out[static CONTAINER_ID_MAX])
{
    if (id.len == 0 || id.len >= CONTAINER_ID_MAX) {
        return false;
    }
    memcpy(out, id.ptr, id.len);
    out[id.len] = '\0';
    return true;
}

/* From the last component to the first: a service manager within the container adds some after. */
static bool id_of_path(struct str path, char out[static CONTAINER_ID_MAX])
{
    while (path.len > 0) {
        size_t slash = str_find_last(path, '/');
        size_t from = slash == path.len ? 0 : slash + 1;
        if (store(id_of_component(str_sub(path, from, path.len)), out)) {
            return true;
        }
        path.len = slash == path.len ? 0 : slash;
    }
    return false;
}

bool cgroup_container_id(struct str text, char out[static CONTAINER_ID_MAX])
{
    while (text.len > 0) {
        struct str path = str_cut(&text, '\n');
        (void)str_cut(&path, ':');
        (void)str_cut(&path, ':');
        if (id_of_path(path, out)) {
            return true;
        }
    }
    return false;
}

/* The component after `folder` in `path` when it is 64 digits. */
static struct str id_behind(struct str path, struct str folder)
{
    while (path.len > 0) {
        struct str part = str_cut(&path, '/');
        if (str_eq(part, folder)) {
            struct str id = docker_id(str_cut(&path, '/'));
            if (id.len > 0) {
                return id;
            }
        }
    }
    return STR("");
}

static bool is_runtime_file(struct str mount_point)
{
    return str_eq(mount_point, STR("/etc/hostname")) || str_eq(mount_point, STR("/etc/hosts")) ||
           str_eq(mount_point, STR("/etc/resolv.conf"));
}

/* "id parent major:minor root mount-point …": the root of one of the three files, else nothing. */
static struct str runtime_file_root(struct str line)
{
    for (int i = 0; i < 3; i++) {
        (void)str_cut(&line, ' ');
    }
    struct str root = str_cut(&line, ' ');
    return is_runtime_file(str_cut(&line, ' ')) ? root : STR("");
}

bool mountinfo_own_container_id(struct str text, char out[static CONTAINER_ID_MAX])
{
    while (text.len > 0) {
        struct str root = runtime_file_root(str_cut(&text, '\n'));
        if (store(id_behind(root, STR("containers")), out) ||
            store(id_behind(root, STR("overlay-containers")), out)) {
            return true;
        }
    }
    return false;
}

bool mountinfo_container_id(struct str text, char out[static CONTAINER_ID_MAX])
{
    struct str pod = STR("");
    if (mountinfo_own_container_id(text, out)) {
        return true;
    }
    while (text.len > 0 && pod.len == 0) {
        pod = id_behind(runtime_file_root(str_cut(&text, '\n')), STR("sandboxes"));
    }
    return store(pod, out);
}

static bool has_name(struct str controllers, struct str name)
{
    while (controllers.len > 0) {
        if (str_eq(str_cut(&controllers, ','), name)) {
            return true;
        }
    }
    return false;
}

bool cgroup_of(struct str text, struct str controller, unsigned *version, struct str *path)
{
    unsigned found = 0;
    while (text.len > 0) {
        struct str rest = str_cut(&text, '\n'), number = str_cut(&rest, ':');
        struct str controllers = str_cut(&rest, ':');
        bool first = has_name(controllers, controller);
        if (first || (found == 0 && str_eq(number, STR("0")) && controllers.len == 0)) {
            found = first ? 1 : 2;
            *path = rest;
        }
        if (first) {
            break; /* where both are mounted, the controller is with version 1 */
        }
    }
    *version = found;
    return found != 0;
}

bool cgroup_of_memory(struct str text, unsigned *version, struct str *path)
{
    return cgroup_of(text, STR("memory"), version, path);
}

uint64_t cgroup_cpu_millis(struct str text)
{
    uint64_t quota, period;
    size_t first = 0;
    text = str_trim(text);
    while (first < text.len && text.ptr[first] != ' ' && text.ptr[first] != '\n') {
        first++;
    }
    bool known = str_u64(str_sub(text, 0, first), &quota) &&
                 str_u64(str_trim(str_sub(text, first, text.len)), &period) && period > 0 &&
                 quota < UINT64_C(1) << 50;
    return known ? (quota * 1000 + period - 1) / period : 0;
}

/* The end of the component after `at`, where a slash is. */
static size_t component_end(struct str path, size_t at)
{
    return at >= path.len ? at : at + 1 + str_find(str_sub(path, at + 1, path.len), '/');
}

bool cgroup_part(struct str first, struct str second, struct cgroup_parting *out)
{
    first = str_eq(first, STR("/")) ? STR("") : first;
    second = str_eq(second, STR("/")) ? STR("") : second;
    size_t at = 0;
    for (;;) {
        size_t one = component_end(first, at), other = component_end(second, at);
        bool same = one > at && str_eq(str_sub(first, 0, one), str_sub(second, 0, other));
        if (!same) {
            *out = (struct cgroup_parting){
                .first = str_sub(first, 0, one > at ? one : 0),
                .second = str_sub(second, 0, other > at ? other : 0),
            };
            return one > at || other > at;
        }
        at = one;
    }
}
