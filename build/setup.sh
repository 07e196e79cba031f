#!/bin/sh
# setup.sh PURPOSE...: sees to it that the Debian packages of these purposes (build/packages.txt; "all") are installed.
# As root it installs the missing ones; otherwise it prints the command to run and stops. On a system without dpkg it
# prints the list and goes on: the build says itself what it misses.
set -eu

wanted=$(for purpose in "$@"; do
    awk -v purpose="$purpose" '!/^#/ && NF && ($1 == purpose || purpose == "all" && $1 !~ /-/) {
        for (i = 2; i <= NF; i++) print $i }' build/packages.txt
done | sort -u)
# The compiler for another processor: of the product, and for the tests, which build for aarch64 too.
tested=
case " $* " in *" test "* | *" all "*) tested=aarch64 ;; esac
for arch in ${ARCH:-} $tested; do
    [ "$arch" = "$(uname -m)" ] ||
        wanted="$wanted $(awk -v purpose="build-$arch" '$1 == purpose { $1 = ""; print }' build/packages.txt)"
done

if ! command -v dpkg-query >/dev/null; then
    echo "setup: not a Debian system; needed here are the equivalents of:" $wanted
    exit 0
fi

missing=
for package in $wanted; do
    case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) in
    installed) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
    cat >&2 <<EOF
setup: these packages are missing:$missing
Run this as root, then make again:
  apt-get update && apt-get install -y --no-install-recommends$missing
EOF
    exit 1
fi
echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
# shellcheck disable=SC2086  # a list of words
apt-get -q install -y --no-install-recommends $missing
