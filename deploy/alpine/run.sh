#!/bin/sh
# run.sh CONTAINER [options of pillion]: profiles a container that runs already, from a second one beside it, and
# leaves the files in ./profiles. Nothing is changed in the first one. Ctrl-C ends it early and still writes.
#
#   PILLION_IMAGE   the image of the profiler (example.com/pillion:1, see ../fargate/Dockerfile)
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

mkdir -p profiles
exec "${DOCKER:-docker}" run --rm --name "pillion-of-$container" \
    --pid "container:$container" --user 0 --cap-add SYS_PTRACE --cap-add PERFMON \
    --cpu-shares "$weight" --memory 128m --read-only --network none --stop-timeout 30 \
    --volume "$PWD/profiles:/profiles" \
    "${PILLION_IMAGE:-example.com/pillion:1}" -a -o /profiles "$@"
