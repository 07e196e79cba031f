/* Looks for the mount point that holds a path: the longest, and of those the last, which hides the others. What a file
 * system may do is told by its type. */
#include "target/mounts.h"

#include <stddef.h>

struct mount {
    struct str point, type; /* the point as it is written: with "\040" for a space */
};

/* "id parent major:minor root point options [optional …] - type source options" */
static bool mount_of(struct str line, struct mount *out)
{
    for (unsigned i = 0; i < 4; i++) {
        (void)str_cut(&line, ' ');
    }
    out->point = str_cut(&line, ' ');
    while (line.len > 0 && !str_eq(str_cut(&line, ' '), STR("-"))) {
    }
    out->type = str_cut(&line, ' ');
    return out->point.len > 0 && out->type.len > 0;
}

static bool may_hang(struct str type)
{
    static const char *const types[] = {"fuse",   "fuseblk", "autofs", "nfs",    "nfs4",  "cifs",    "smb3",  "smbfs",
                                        "ceph",   "afs",     "coda",   "lustre", "gpfs",  "beegfs",  "gfs2",  "ocfs2",
                                        "pvfs2",  "orangefs", "panfs", "vboxsf", "vmhgfs", NULL};
    for (size_t i = 0; types[i] != NULL; i++) {
        if (str_eq(type, str_of(types[i]))) {
            return true;
        }
    }
    return str_starts(type, STR("fuse."));
}

/* The byte that stands at `at` of a mount point, and where the next one stands. */
static char byte_at(struct str point, size_t *at)
{
    struct str code = str_sub(point, *at, 4);
    if (code.len == 4 && code.ptr[0] == '\\') {
        *at += 4;
        return (char)((code.ptr[1] - '0') << 6 | (code.ptr[2] - '0') << 3 | (code.ptr[3] - '0'));
    }
    return point.ptr[(*at)++];
}

static bool is_below(struct str path, struct str point)
{
    size_t from = 0;
    if (str_eq(point, STR("/"))) {
        return true;
    }
    for (size_t at = 0; at < point.len; from++) {
        if (from == path.len || byte_at(point, &at) != path.ptr[from]) {
            return false;
        }
    }
    return from == path.len || path.ptr[from] == '/';
}

static bool is_of_the_system(struct str point)
{
    return is_below(point, STR("/proc")) || is_below(point, STR("/sys")) || is_below(point, STR("/dev"));
}

bool mounts_may_hang(struct str text, struct str path)
{
    size_t longest = 0;
    bool hangs = false;
    while (text.len > 0) {
        struct mount mount;
        if (!mount_of(str_cut(&text, '\n'), &mount)) {
            continue;
        }
        if (path.len == 0) {
            hangs = hangs || (may_hang(mount.type) && !is_of_the_system(mount.point));
        } else if (mount.point.len >= longest && is_below(path, mount.point)) { /* a later one hides an earlier one */
            longest = mount.point.len;
            hangs = may_hang(mount.type);
        }
    }
    return hangs;
}
