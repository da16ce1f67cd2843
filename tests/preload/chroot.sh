#!/bin/sh
# Proves that the drop-in needs neither /proc nor /sys: a program runs on it in a chroot that has
# only the program, its libraries, and the drop-in.
set -u
program=$STOOK_BUILD/tests/test-preload_system_calls
drop_in=$STOOK_BUILD/libstook-malloc.so
[ "$(id -u)" = 0 ] || { echo "skipped: chroot needs root"; exit 77; }
chroot=$(command -v chroot) || { echo "skipped: no chroot"; exit 77; }
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
copy() { mkdir -p "$root$(dirname "$2")" && cp -L "$1" "$root$2"; }
copy "$program" /program || exit 1
copy "$drop_in" /libstook-malloc.so || exit 1
ldd "$program" | grep -o '/[^ )]*' | while read -r library; do copy "$library" "$library"; done
# The same work as without: exit status 0 means no fault in any thread.
"$program" work || { echo "fails outside already"; exit 1; }
for slots in rseq locked; do
        env -i LD_LIBRARY_PATH=/ STOOK_SLOTS=$slots \
                "$chroot" "$root" /program work || {
                        echo "failed in the chroot, slots $slots: $?"; exit 1; }
done
echo "ran without /proc and /sys"
