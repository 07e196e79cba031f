#!/bin/sh
# setup.sh PURPOSE...: sees to it that the Debian packages of these purposes (build/packages.txt; "all") are installed.
# As root it installs the missing ones; otherwise it prints the command to run and stops. Without dpkg it stops where a
# program that the build calls is missing.
# setup.sh tools: only that last check, whatever the system; the first `make` does it before anything else.
set -eu

packages_of() {
    awk -v purpose="$1" '!/^#/ && NF && ($1 == purpose || purpose == "all" && $1 !~ /-/) {
        for (i = 2; i <= NF; i++) print $i }' build/packages.txt
}

# What the build calls and includes, by name; CROSS_COMPILE is the prefix of the compiler for another processor.
missing_tools() {
    for tool in gcc "${CROSS_COMPILE:-}gcc" "${CROSS_COMPILE:-}ar" "${CROSS_COMPILE:-}ld" "${CROSS_COMPILE:-}objcopy" \
        "${CROSS_COMPILE:-}ranlib" $([ "${ARCH:-}" != aarch64 ] || echo ld.lld) make awk sed grep find gzip bzip2 xz sha256sum; do
        command -v "$tool" >/dev/null || echo "$tool"
    done
    # Busybox's own does not tell by itself how a file is compressed.
    tar --version 2>/dev/null | grep -q GNU || echo "GNU tar"
    for header in stdio.h linux/perf_event.h; do
        ! command -v gcc >/dev/null || echo "#include <$header>" | gcc -E - >/dev/null 2>&1 || echo "the header $header"
    done
    [ -n "${VENDOR_CACHE:-}" ] || [ -x /usr/lib/apt/apt-helper ] || command -v curl >/dev/null ||
        command -v wget >/dev/null || echo "curl or wget"
}

check_tools() {
    missing=$(missing_tools | awk '!seen[$0]++ { printf "%s%s", n++ ? ", " : "", $0 }')
    [ -n "$missing" ] || return 0
    echo "setup: the build needs, and this machine lacks: $missing" >&2
    if command -v apt-get >/dev/null; then
        # shellcheck disable=SC2046  # a list of words
        echo "Run this as root, then make again:
  apt-get update && apt-get install -y --no-install-recommends" $(packages_of build) \
            $([ -z "${CROSS_COMPILE:-}" ] || packages_of "build-$ARCH") >&2
    else
        echo "Install that from this system's packages, then make again." >&2
    fi
    exit 1
}

[ "$*" != tools ] || { check_tools; exit 0; }

wanted=$(for purpose in "$@"; do packages_of "$purpose"; done | sort -u)
# The compiler for another processor: of the product, and for the tests, which build for aarch64 too.
tested=
case " $* " in *" test "* | *" all "*) tested=aarch64 ;; esac
for arch in ${ARCH:-} $tested; do
    [ "$arch" = "$(uname -m)" ] ||
        wanted="$wanted $(packages_of "build-$arch")"
done

if ! command -v dpkg-query >/dev/null; then
    check_tools
    case " $* " in
    *" test "* | *" bench "* | *" all "*)
        echo "setup: no dpkg here; what is missing of these, by Debian's names, is skipped:" $wanted ;;
    esac
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
