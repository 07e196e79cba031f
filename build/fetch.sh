#!/bin/sh
# fetch.sh NAME DESTINATION: puts the source tarball of one row of vendor/manifest at DESTINATION.
#
# Looked for in this order: $VENDOR_CACHE (a folder with tarballs under Debian's or upstream's file name), the pool of
# the Debian archives that this machine installs from (or of $DEBIAN_MIRROR), the upstream address. Whatever the way,
# the file is compared with the manifest's SHA-256; a mismatch stops the build.
set -eu

name=$1
destination=$2

row=$(awk -v name="$name" '$1 == name' vendor/manifest)
[ -n "$row" ] || { echo "fetch: vendor/manifest has no row '$name'" >&2; exit 1; }
set -f
# shellcheck disable=SC2086  # the row is a list of words
set -- $row
set +f
package=$4 debian_file=$5 debian_sha=$6 upstream_url=$7 upstream_sha=$8
upstream_file=${upstream_url##*/}

# accept FILE SHA ORIGIN: the only way a tarball gets to its destination.
accept() {
    actual=$(sha256sum "$1" | cut -d ' ' -f 1)
    if [ "$actual" != "$2" ]; then
        cat >&2 <<END
fetch: $name: the tarball is not the one the manifest names.
  from      $3
  expected  $2
  found     $actual
Remedy: delete that file and run make again; if it comes back the same, the source was changed upstream: compare it
with a copy you trust before you change the hash in vendor/manifest.
END
        exit 1
    fi
    mkdir -p "$(dirname "$destination")"
    cp "$1" "$destination.part"
    mv "$destination.part" "$destination"
    echo "  FETCH   $name: $3" >&2
    exit 0
}

from_cache() {
    [ -n "${VENDOR_CACHE:-}" ] || return 0
    [ ! -f "$VENDOR_CACHE/$debian_file" ] ||
        accept "$VENDOR_CACHE/$debian_file" "$debian_sha" "$VENDOR_CACHE/$debian_file"
    [ ! -f "$VENDOR_CACHE/$upstream_file" ] ||
        accept "$VENDOR_CACHE/$upstream_file" "$upstream_sha" "$VENDOR_CACHE/$upstream_file"
}

# Debian's archives among apt's sources: what ends in /debian, or in a dated snapshot of it. Others use that name, too
# (Docker's, Raspberry Pi's); their pools lack the file. A list of mirrors stands for its lines.
debian_mirrors() {
    if [ -n "${DEBIAN_MIRROR:-}" ]; then
        echo "${DEBIAN_MIRROR%/}"
        return
    fi
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
        sed -n -e 's/^deb\(-src\)\{0,1\}[[:space:]]\{1,\}\(\[[^]]*\][[:space:]]*\)\{0,1\}\([^[:space:]]*\).*/\3/p' \
            -e 's/^URIs:[[:space:]]*//p' |
        tr ' \t' '\n\n' |
        while read -r uri; do
            case $uri in
            mirror+file:*) sed 's/[[:space:]#].*//' "${uri#mirror+file:}" 2>/dev/null || true ;;
            *) echo "$uri" ;;
            esac
        done | sed 's,/$,,' | grep -E '/debian(/[0-9TZ]+)?$' | awk '!seen[$0]++'
}

# download URI: to $destination.new; apt's own downloader knows every kind of URI and proxy apt is set up for.
download() {
    mkdir -p "$(dirname "$destination")"
    rm -f "$destination.new"
    if [ -x /usr/lib/apt/apt-helper ]; then
        /usr/lib/apt/apt-helper -q -q download-file "$1" "$destination.new" >/dev/null 2>&1 && return
    fi
    if command -v curl >/dev/null; then
        curl -fsSL -o "$destination.new" "$1" 2>/dev/null && return
    fi
    command -v wget >/dev/null && wget -q -O "$destination.new" "$1" 2>/dev/null
}

# The pool is shared by all suites, so the machine's own need not be the one that has this version. A plus sign is a
# blank to some mirrors.
from_debian() {
    case $package in
    lib?*) pool=pool/main/$(printf %.4s "$package")/$package ;;
    *) pool=pool/main/$(printf %.1s "$package")/$package ;;
    esac
    pool=$pool/$(echo "$debian_file" | sed 's/+/%2b/g')
    for mirror in $(debian_mirrors); do
        ! download "$mirror/$pool" || accept "$destination.new" "$debian_sha" "$mirror/$pool"
    done
}

trap 'rm -f "$destination.new"' EXIT
from_cache
from_debian
! download "$upstream_url" || accept "$destination.new" "$upstream_sha" "$upstream_url"
asked=$(debian_mirrors | awk '{ printf "%s%s", n++ ? ", " : "", $0 }')
cat >&2 <<END
fetch: $name: found neither in VENDOR_CACHE (${VENDOR_CACHE:-not set}),
  nor in a Debian archive (${asked:-none is named}),
  nor at $upstream_url
Remedy: name a Debian mirror that this machine reaches: make DEBIAN_MIRROR=ADDRESS
or put one of these into a folder: make VENDOR_CACHE=THAT_FOLDER
  $debian_file, SHA-256 $debian_sha
  $upstream_file, SHA-256 $upstream_sha
END
exit 1
