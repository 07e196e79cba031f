#!/bin/sh
# check.sh: `make release-check`. What is committed is built and packed twice, in two folders, as two users' settings would have it and,
# where faketime is installed, a day apart; all files must be the same bytes. Then each is read by other programs, installed and
# run (tests/live/test_dist.py), and as root in whole roots of its kind as well (tests/lab/packages.py; CLEAN_ROOTS has its options).
set -eu

[ -z "$(git status --porcelain)" ] || { echo "release-check: commit first; what is changed would not be checked" >&2; exit 1; }
place=$(mktemp -d "${TMPDIR:-/var/tmp}/release-check.XXXXXX")
trap 'rm -rf "$place"' EXIT INT TERM
first=$place/first second=$place/the/second/one

for folder in "$first" "$second"; do
    git clone -q . "$folder"
    mkdir -p "$folder/build/out"
    [ ! -d build/out/tarballs ] || cp -r build/out/tarballs "$folder/build/out"
done

# The given time, if any, is for both; the rest of what the caller has set is for the first.
unset TZ
make -C "$first" dist
later=
if command -v faketime >/dev/null; then later="faketime -f +1d"; else echo "release-check: both at this time; faketime is not installed"; fi
another=
if [ "$(id -u)" = 0 ]; then another='unshare --uts sh -c "hostname another; exec \"\$@\"" sh'; fi
(
    umask 077
    export TZ=Asia/Tokyo LC_ALL=C USER=another NO_FAKE_STAT=1
    # shellcheck disable=SC2086  # words, or nothing
    eval "$another" $later make -C "$second" dist
)

if ! diff -r "$first/build/out/dist" "$second/build/out/dist"; then
    echo "release-check: two builds differ; they are kept in $place" >&2
    trap - EXIT INT TERM
    exit 1
fi
echo "release-check: two builds, $(wc -l <"$first/build/out/dist/SHA256SUMS") files, the same bytes"
sha256sum "$first/build/out/dist/SHA256SUMS" | sed "s|  .*|  SHA256SUMS|"

(cd "$first" && DIST=$first/build/out/dist /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/live/test_dist.py)
if [ "$(id -u)" = 0 ]; then
    # shellcheck disable=SC2086  # a list of words
    /usr/bin/python3 tests/lab/packages.py "$first/build/out/dist" ${CLEAN_ROOTS:-}
else
    echo "release-check: not root, so no whole roots were made"
fi
rm -rf build/out/dist
mkdir -p build/out
cp -r "$first/build/out/dist" build/out/dist
echo "release-check: build/out/dist is what was checked"
