#!/bin/sh
# Proves that the Debian packages build, that two builds in different folders give the same bytes,
# and that what they install works: programs are compiled against libstook-dev, shared and static,
# and run; `stook run` of stook-tools brings libstook-malloc into one. And that nothing is left of
# them when they are removed.
#
# dpkg installs them over this machine's files in an overlay, which vanishes with its mount
# namespace: dependencies are looked for as everywhere, and the machine stays as it is.
set -eu
unset LD_LIBRARY_PATH LD_PRELOAD MALLOC_PERTURB_        # Meson's would show the build folder

for tool in dpkg-buildpackage dh unshare; do
        command -v $tool >/dev/null || { echo "$tool is not installed"; exit 77; }
done
dpkg-checkbuilddeps "$STOOK_SOURCE/packaging/debian/control" || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/over"

# over COMMAND...: with an overlay of this machine's files at $work/over/root
over() {
        unshare -m sh -euc '
                work=$1
                shift
                mount -t tmpfs none "$work/over"
                mkdir "$work/over/changes" "$work/over/work" "$work/over/root"
                mount -t overlay none "$work/over/root" -o \
                        "lowerdir=/,upperdir=$work/over/changes,workdir=$work/over/work"
                for place in proc dev; do mount --rbind /$place "$work/over/root/$place"; done
                "$@"' over "$work" "$@"
}
if ! over true 2>"$work/why"; then
        echo "no overlay can be mounted here: $(cat "$work/why")"
        exit 77
fi

# Without optimisation: what is tested here is not the compiler's work. Both at a time: much of a
# build of packages is one process after the other.
build_in() {
        TMPDIR=$work CC=gcc DEB_BUILD_OPTIONS="nocheck noopt noautodbgsym parallel=2" \
                "$STOOK_SOURCE/tools/release/debian-packages" "$work/$1"
}
build_in another &
other=$!
build_in one || { wait; exit 1; }
wait $other
for package in "$work"/one/*.deb; do
        cmp "$package" "$work/another/${package##*/}" ||
                { echo "${package##*/} differs if it is built in another folder"; exit 1; }
done
[ "$(find "$work/one" -name '*.deb' | wc -l)" = 4 ] || { echo "not four packages"; exit 1; }

cp "$STOOK_SOURCE/tests/install/debian_use.sh" "$STOOK_SOURCE/examples/points.c" "$work/one"
# shellcheck disable=SC2016
over sh -euc 'cp -r "$0/one" "$0/over/root/packages"
        exec chroot "$0/over/root" sh -eu /packages/debian_use.sh' "$work"
