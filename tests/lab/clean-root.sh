#!/bin/sh
# clean-root.sh [FOLDER] [GOAL...]: does this repository build and test on a fresh Debian 12? With SUITE=bullseye
# or trixie: does `demo` work on another Debian?
#
# Makes a minbase of it with git, make and ca-certificates and nothing else in FOLDER (default: a new folder
# below /var/tmp, removed at the end), clones the last commit into it, and runs `make demo` and `make test` there (or
# the GOALs), in own PID, mount and IPC namespaces so that nothing stays behind. The network is used for packages
# and library sources only. VENDOR_CACHE, when set, is offered to the build inside. Wants root and debootstrap.
#
# Not part of `make test`: takes 10-20 minutes, most of it installing packages and building twice.
set -eu

repository=$(cd "$(dirname "$0")/../.." && pwd)
keep=${1:+yes}
root=${1:-$(mktemp -d /var/tmp/clean-root.XXXXXX)}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- demo test

[ "$(id -u)" = 0 ] || { echo "clean-root: wants root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "clean-root: debootstrap is missing; apt-get install debootstrap" >&2; exit 1; }

# The archive this machine installs from serves the new root too, and its security updates if it has them.
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -E '/debian(/[0-9TZ]+)?/?$' | head -n 1)
archive=${DEBIAN_MIRROR:-${archive%/}}
suite=${SUITE:-bookworm}
kept=$repository/build/lab/debootstrap
mkdir -p "$kept" "$root"
chmod 755 "$root" # mktemp makes it 700, and in the root that would be "/" for every other user
[ -e "$repository/build/lab/.gitignore" ] || echo '*' >"$repository/build/lab/.gitignore"

cleanup() { [ -n "$keep" ] || rm -rf --one-file-system "$root"; }
trap cleanup EXIT

begin=$(date +%s)
lap() { printf '=== %s: %d s since the start\n' "$1" $(($(date +%s) - begin)); }

if [ ! -e "$root/etc/debian_version" ]; then
    debootstrap --variant=minbase --cache-dir="$kept" --include=git,make,ca-certificates "$suite" "$root" "$archive" |
        grep -E '^(E|W):' || true
fi
[ -x "$root/usr/bin/make" ] || { echo "clean-root: debootstrap failed, see $root/debootstrap/debootstrap.log" >&2; exit 1; }
lap "$suite minbase with git, make, ca-certificates"

# How this machine reaches packages (mirror, proxy, certificates) is the machine's matter, not the repository's.
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
cp /etc/hosts "$root/etc/hosts" 2>/dev/null || true
[ "$suite" = bookworm ] && sources='/etc/apt/sources.list.d/debian*' || sources=
# shellcheck disable=SC2086  # a pattern, or nothing
for file in $sources /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf.d/*mirror* /etc/apt/auth.conf.d/*; do
    [ -e "$file" ] && mkdir -p "$root$(dirname "$file")" && cp -a "$file" "$root$file"
done
[ ! -e "$root/etc/apt/sources.list.d/debian.sources" ] || rm -f "$root/etc/apt/sources.list"
mkdir -p "$root/usr/local/share/ca-certificates"
cp -a /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
chroot "$root" update-ca-certificates >/dev/null 2>&1 || true

# The clone is made from outside: the root sees a repository, not this machine's folders.
rm -rf "$root/src/pillion"
mkdir -p "$root/src"
git -c safe.directory='*' clone -q --no-hardlinks "$repository" "$root/src/pillion"
if [ -n "${VENDOR_CACHE:-}" ]; then
    mkdir -p "$root/src/tarballs"
    cp "$VENDOR_CACHE"/* "$root/src/tarballs/"
fi

status=0
for goal; do
    # A PID namespace of its own: when its first process ends, everything started inside ends.
    unshare --mount --pid --fork --ipc --kill-child --propagation private sh -c '
        root=$1 goal=$2
        # A mount of its own: container runtimes cannot pivot out of a plain folder.
        mount --bind "$root" "$root"
        mount --rbind /dev "$root/dev"
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount -t tmpfs tmpfs "$root/run"
        exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            TERM=dumb DEBIAN_FRONTEND=noninteractive VENDOR_CACHE="$3" \
            make -C /src/pillion "$goal"' sh "$root" "$goal" "${VENDOR_CACHE:+/src/tarballs}" || status=$?
    lap "make $goal ended with status $status"
    [ "$status" = 0 ] || break
done
exit "$status"
