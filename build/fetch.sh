#!/bin/sh
# fetch.sh NAME DESTINATION: puts the source tarball of one row of vendor/manifest at DESTINATION.
#
# Looked for in this order: $VENDOR_CACHE (a folder with tarballs under Debian's or upstream's file name), the Debian
# archive this machine already uses (as a source package; only its .orig tarball is fetched), the upstream address.
# Whatever the way, the file is compared with the manifest's SHA-256; a mismatch stops the build.
#
# The machine's own package lists are not touched: apt works on a private configuration below build/out/apt.
set -eu

name=$1
destination=$2
root=$(pwd)
apt_dir=$root/build/out/apt
fetch_helper=/usr/lib/apt/apt-helper

row=$(awk -v name="$name" '$1 == name' vendor/manifest)
[ -n "$row" ] || { echo "fetch: vendor/manifest has no row '$name'" >&2; exit 1; }
set -f
# shellcheck disable=SC2086  # the row is a list of words
set -- $row
set +f
package=$4 suite=$5 debian_file=$6 debian_sha=$7 upstream_url=$8 upstream_sha=$9
upstream_file=${upstream_url##*/}

sha_of() { sha256sum "$1" | cut -d ' ' -f 1; }

# accept FILE SHA ORIGIN: the only way a tarball gets to its destination.
accept() {
    actual=$(sha_of "$1")
    if [ "$actual" != "$2" ]; then
        cat >&2 <<EOF
fetch: $name: the tarball is not the one the manifest names.
  from      $3
  expected  $2
  found     $actual
Remedy: delete that file and run make again; if it comes back the same, the source was changed upstream: compare it
with a copy you trust before you change the hash in vendor/manifest.
EOF
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
    if [ -f "$VENDOR_CACHE/$debian_file" ]; then
        if [ "$debian_file" != "$upstream_file" ] || [ "$(sha_of "$VENDOR_CACHE/$debian_file")" = "$debian_sha" ]; then
            accept "$VENDOR_CACHE/$debian_file" "$debian_sha" "$VENDOR_CACHE/$debian_file"
        fi
    fi
    if [ "$upstream_url" != - ] && [ -f "$VENDOR_CACHE/$upstream_file" ]; then
        accept "$VENDOR_CACHE/$upstream_file" "$upstream_sha" "$VENDOR_CACHE/$upstream_file"
    fi
    return 0
}

# The Debian archive this machine is configured for: the first URI whose path ends in /debian (or a dated snapshot of it).
debian_mirror() {
    if [ -n "${DEBIAN_MIRROR:-}" ]; then
        echo "$DEBIAN_MIRROR"
        return
    fi
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
        sed -n -e 's/^deb\(-src\)\{0,1\}[[:space:]]\{1,\}\(\[[^]]*\][[:space:]]*\)\{0,1\}\([^[:space:]]*\).*/\3/p' \
            -e 's/^URIs:[[:space:]]*//p' |
        tr ' \t' '\n\n' | grep -E '/debian(/[0-9TZ]+)?/?$|/debian\.list$' | head -n 1
}

prepare_apt() {
    mkdir -p "$apt_dir/parts" "$apt_dir/preferences" "$apt_dir/state/lists/partial" "$apt_dir/cache/archives/partial"
    : >"$apt_dir/state/status"
    # Trusted: the hash in the manifest decides, so an old or missing archive key need not stop a build.
    cat >"$apt_dir/parts/vendor.sources" <<EOF
Types: deb-src
URIs: $1
Suites: $suite
Components: main
Trusted: yes
EOF
    cat >"$apt_dir/apt.conf" <<EOF
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt_dir/parts";
Dir::Etc::preferencesparts "$apt_dir/preferences";
Dir::State "$apt_dir/state";
Dir::State::Lists "$apt_dir/state/lists";
Dir::State::status "$apt_dir/state/status";
Dir::Cache "$apt_dir/cache";
APT::Sandbox::User "root";
APT::Update::Post-Invoke {};
APT::Update::Post-Invoke-Success {};
Acquire::Languages "none";
Acquire::Retries "3";
EOF
    [ "$(cat "$apt_dir/updated" 2>/dev/null)" = "$1 $suite" ] && return
    apt-get -q -q -c "$apt_dir/apt.conf" update >&2 || return
    echo "$1 $suite" >"$apt_dir/updated"
}

# download URI SHA: to $destination.new; apt's own downloader knows every kind of URI and proxy apt is set up for.
download() {
    mkdir -p "$(dirname "$destination")"
    rm -f "$destination.new"
    if [ -x "$fetch_helper" ]; then
        "$fetch_helper" -q -q download-file "$1" "$destination.new" >/dev/null 2>&1 && return
    fi
    if command -v curl >/dev/null; then
        curl -fsSL -o "$destination.new" "$1" 2>/dev/null && return
    fi
    command -v wget >/dev/null && wget -q -O "$destination.new" "$1"
}

from_debian() {
    command -v apt-get >/dev/null || return 0
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || return 0
    prepare_apt "$mirror" || { echo "fetch: $name: no package lists of $suite from $mirror" >&2; return 0; }
    uri=$(apt-get -q -q -c "$apt_dir/apt.conf" source --print-uris "$package" 2>/dev/null |
        awk -v file="$debian_file" '$2 == file { gsub("\047", "", $1); print $1 }')
    # A later upload of the package may carry another upstream version while the pool still holds this one.
    [ -n "$uri" ] || uri=$mirror/pool/main/$(printf %.1s "$package")/$package/$debian_file
    download "$uri" || { echo "fetch: $name: $uri could not be fetched" >&2; return 0; }
    accept "$destination.new" "$debian_sha" "$uri"
}

from_upstream() {
    [ "$upstream_url" != - ] || return 0
    download "$upstream_url" || return 0
    accept "$destination.new" "$upstream_sha" "$upstream_url"
}

# One at a time: the private package lists are shared by all rows.
mkdir -p "$root/build/out"
exec 9>"$root/build/out/fetch.lock"
flock 9
trap 'rm -f "$destination.new"' EXIT

from_cache
from_debian
from_upstream
cat >&2 <<EOF
fetch: $name: found neither in VENDOR_CACHE (${VENDOR_CACHE:-not set}), nor in a Debian archive, nor upstream.
Remedy: put $debian_file (SHA-256 $debian_sha)
into a folder and run: make VENDOR_CACHE=THAT_FOLDER
EOF
exit 1
