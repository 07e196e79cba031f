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

/*
 * The same from the text of /proc/PID/mountinfo: runtimes mount /etc/hostname, /etc/resolv.conf and
 * /etc/hosts from the container's own folder, whose name is the id (".../containers/<64 hex>/..."
 * of Docker and Podman; ".../sandboxes/<64 hex>/..." of containerd names the pod, and is taken when
 * there is nothing better). Only the mount points of these three files are looked at.
 */
bool mountinfo_container_id(struct str text, char out[static CONTAINER_ID_MAX]);

#endif
