#!/bin/sh
# run.sh CONTAINER [options of pillion]: profiles a container that runs already, from a second one beside it, and
# leaves the files in ./profiles. Nothing is changed in the first one. Ctrl-C ends it early and still writes.
#
# With -u it uploads as well, by the container's own network.
#
#   PILLION_IMAGE   the image of the profiler (example.com/pillion:1, see ../fargate/Dockerfile)
#   PILLION_SERVER_HOST, PILLION_TOKEN, PILLION_BACKEND   are passed on with -u
#   DOCKER          docker, or podman
set -eu
if [ $# -eq 0 ]; then
    echo "usage: run.sh CONTAINER [options of pillion]" >&2
    exit 2
fi
container=$1
shift

# Stacks are exact when the kernel lets the profiler in the moment it is woken, and between two containers their weights
# decide that: 512 per CPU is enough on every kernel. It takes about 1 % of one CPU whatever its weight.
weight=$((512 * $(getconf _NPROCESSORS_ONLN)))
[ "$weight" -ge 1024 ] || weight=1024

# Docker before 23 may not know PERFMON, and its seccomp profile does not open for it: asked for, nothing would run.
perf="--cap-add PERFMON"
case $("${DOCKER:-docker}" version --format '{{.Server.Version}}' 2>/dev/null) in
1[0-9].* | 20.*)
    perf=
    echo "run.sh: this engine is older than Docker 23: no native stacks, unless its seccomp profile allows perf_event_open" >&2
    ;;
esac

network="--network none"
for word in "$@"; do
    if [ "$word" = -u ]; then
        network="--network container:$container --env PILLION_SERVER_HOST --env PILLION_TOKEN --env PILLION_BACKEND"
    fi
done

mkdir -p profiles
# shellcheck disable=SC2086  # several words or none
exec "${DOCKER:-docker}" run --rm --name "pillion-of-$container" \
    --pid "container:$container" --user 0 --cap-add SYS_PTRACE $perf $network \
    --cpu-shares "$weight" --memory 128m --read-only --stop-timeout 30 \
    --volume "$PWD/profiles:/profiles" \
    "${PILLION_IMAGE:-example.com/pillion:1}" -a -o /profiles "$@"
