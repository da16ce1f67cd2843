#!/bin/sh
# The part of debian.sh that runs as root in a file system of its own: installs the packages of
# /packages, uses them as a stranger would, and removes them.
set -eu
cd /packages
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
packages="libstook0 libstook-dev libstook-malloc stook-tools"

# Triggers of others, of the manual's index above all, take their time and are not ours.
dpkg --no-triggers -i ./*.deb >dpkg.log 2>&1 || { cat dpkg.log; exit 1; }
dpkg-deb -I libstook0_*.deb triggers | grep -q 'activate.* ldconfig'
ldconfig
# shellcheck disable=SC2086
dpkg -L $packages | sort -u >installed
# shellcheck disable=SC2086
dpkg -V $packages

# shellcheck disable=SC2046 # flags are words
cc -o points points.c $(pkg-config --cflags --libs stook)
[ "$(./points)" = "a point at (0, 0)" ] || { echo "the shared library does not work"; exit 1; }
# shellcheck disable=SC2046
cc -static -o points-static points.c $(pkg-config --static --cflags --libs stook)
[ "$(./points-static)" = "a point at (0, 0)" ] || { echo "the static one does not work"; exit 1; }
ldd points | grep -q 'libstook.so.0 => /' || { echo "points is not linked with it"; exit 1; }
stook run --stats -- cat points.c 2>stats | cmp - points.c
grep -q '^ *malloc-' stats || { cat stats; echo "stook run was without the drop-in"; exit 1; }
for page in man1/stook.1 man3/stook_cache_alloc.3 man7/stook-env.7; do
        zcat "/usr/share/man/$page.gz" >/dev/null
done
# Folders in which others have files stay.
# shellcheck disable=SC2086
dpkg --no-triggers --purge $packages >dpkg.log 2>&1 || { cat dpkg.log; exit 1; }
while read -r path; do
        if [ -L "$path" ] || { [ -e "$path" ] && [ ! -d "$path" ]; }; then
                echo "left: $path"
                exit 1
        fi
done <installed
[ ! -e /usr/include/stook ] || { echo "left: /usr/include/stook"; exit 1; }
echo "$(wc -l <installed) files and folders installed, used and removed"
