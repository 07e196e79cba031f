/*
 * container: which container this is, from the texts of /proc/self/cgroup and mountinfo.
 *
 * The id is in the path of the control group, or, where a namespace hides that ("0::/"), in the
 * folder that /etc/hostname and the like are mounted from. containerd mounts them from the pod's
 * folder (".../sandboxes/<id>/..."): that id is the sandbox's, not the container's, and not taken.
 *
 * A kubelet mounts /etc/hosts from ".../pods/<uid>/etc-hosts" and /dev/termination-log from
 * ".../pods/<uid>/containers/<name>/<hash>", and names control groups "pod<uid>" (with '_' for '-'
 * where systemd makes them).
 *
 * Source: cgroups(7), proc_pid_mountinfo(5); Docker, Podman, containerd; the kubelet's folders.
 */
#ifndef ORIGIN_CONTAINER_H
#define ORIGIN_CONTAINER_H

#include "origin/facts.h"

/* container.id, k8s.pod.uid, k8s.container.name: as far as the texts tell. */
void container_take(struct facts *facts, struct str cgroup, struct str mountinfo);

#endif
