/*
 * cgroup: in which container a process is, from the text of /proc/PID/cgroup.
 *
 * Each line is "number:controllers:path"; a container runtime puts the container's id into the
 * path. The id is the last path component that looks like one:
 *     64 hexadecimal digits                       Docker, containerd, CRI-O, Podman, ECS on EC2
 *     32 hexadecimal digits, '-', decimal digits  ECS on Fargate
 *     8-4-4-4-12 hexadecimal digits               Garden (Cloud Foundry); '_' may stand for '-'
 * The first two may have a prefix that ends in '-' or ':' ("docker-", "cri-containerd-",
 * "system.slice:docker:") and the suffix ".scope". A UUID must be the whole component, because
 * desktops name the scope of a terminal window after one, and Kubernetes a pod ("pod<uuid>").
 * The first line that has an id wins.
 *
 * With version 2 and a cgroup namespace of its own (the default of Docker and Kubernetes now) the
 * process sees "0::/" and there is no id here; see mountinfo_container_id.
 */
#ifndef TARGET_CGROUP_H
#define TARGET_CGROUP_H

#include "base/str.h"

/* 64 digits and the NUL; "<32 hex>-<digits>" is cut off by the same bound. */
enum { CONTAINER_ID_MAX = 65 };

/* Writes the id, NUL-terminated, in the case found; false, and `out` untouched, without one. */
bool cgroup_container_id(struct str text, char out[static CONTAINER_ID_MAX]);

/* The path of the group that a controller ("memory", "cpu") acts on, from the same text: the controller's
 * line, or with version 2 the line "0::PATH". `version` is 1 or 2. False: there is none. */
bool cgroup_of(struct str text, struct str controller, unsigned *version, struct str *path);

/* That which bounds a process's memory. */
bool cgroup_of_memory(struct str text, unsigned *version, struct str *path);

/* How much CPU time a group may use, in thousandths of a processor (rounded up), from the text of cpu.max, or of
 * cpu.cfs_quota_us and cpu.cfs_period_us one after the other. 0: as much as there is ("max", -1). */
uint64_t cgroup_cpu_millis(struct str text);

/* Two paths of one controller as far as the component in which they part. At
 * the level where groups part the kernel's scheduler compares them. False: they are the same path. */
struct cgroup_parting {
    struct str first, second; /* "/a/b/c", "/a/b/d"; empty: it is in the group of both itself */
};
bool cgroup_part(struct str first, struct str second, struct cgroup_parting *out);

/*
 * A container's id from the text of /proc/PID/mountinfo: runtimes mount /etc/hostname, /etc/resolv.conf and
 * /etc/hosts from the container's own folder, whose name is the id (".../containers/<64 hex>/..."
 * of Docker and Podman; ".../sandboxes/<64 hex>/..." of containerd names the pod, and is taken when
 * there is nothing better). Only the mount points of these three files count.
 */
bool mountinfo_container_id(struct str text, char out[static CONTAINER_ID_MAX]);

/* The same without the pod's: what is found names the container alone. */
bool mountinfo_own_container_id(struct str text, char out[static CONTAINER_ID_MAX]);

#endif
