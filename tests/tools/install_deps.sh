#!/bin/sh
# Proves that tools/install-deps asks for nothing on a machine that has all, and that without apt,
# or without the right to use it, it names what is missing and stops; that make and make install
# tell what installs it. Nothing is installed here: .ci/run does that in a bare Debian.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
deps=$STOOK_SOURCE/tools/install-deps

# A machine without meson, ninja, apt and sudo: only these are on its path.
mkdir "$work/bin"
for name in sh env ls grep test cat; do
        ln -s "$(command -v "$name")" "$work/bin/$name"
done
printf '#!/bin/sh\nexit 0\n' >"$work/bin/cc"
printf '#!/bin/sh\necho 1000\n' >"$work/bin/id"
chmod +x "$work/bin/cc" "$work/bin/id"

says_missing() {
        status=0
        PATH=$work/bin CC=cc "$deps" run >"$work/out" 2>&1 || status=$?
        [ "$status" = 1 ] || { cat "$work/out"; echo "$1: status $status, not 1"; exit 1; }
        for package in meson ninja-build pkg-config; do
                grep -qw "$package" "$work/out" ||
                        { cat "$work/out"; echo "$1: does not name $package"; exit 1; }
        done
}
says_missing "without apt"
printf '#!/bin/sh\necho "apt-get was called"\nexit 0\n' >"$work/bin/apt-get"
chmod +x "$work/bin/apt-get"
without_apt() {
        if grep "apt-get was called" "$work/out"; then exit 1; fi
}
says_missing "without root and sudo"
without_apt

if make=$(command -v make); then
        for goal in build install; do
                if PATH=$work/bin CC=cc "$make" -C "$STOOK_SOURCE" BUILD="$work/none" $goal \
                        >"$work/out" 2>&1; then echo "make $goal succeeded"; exit 1; fi
                without_apt
                grep -q 'Missing here.* meson ninja-build$' "$work/out" &&
                        grep -q 'make run' "$work/out" ||
                        { cat "$work/out"; echo "make $goal does not tell what to run"; exit 1; }
        done
fi

printf '#!/bin/sh\nexit 0\n' >"$work/bin/meson"
cp "$work/bin/meson" "$work/bin/ninja"
cp "$work/bin/meson" "$work/bin/pkg-config"
chmod +x "$work/bin/meson" "$work/bin/ninja" "$work/bin/pkg-config"
if [ -x /usr/bin/python3 ]; then
        PATH=$work/bin CC=cc "$deps" run >"$work/out" 2>&1
        [ ! -s "$work/out" ] ||
                { cat "$work/out"; echo "has something to say where nothing is missing"; exit 1; }
fi

status=0
"$deps" nonsense >"$work/out" 2>&1 || status=$?
[ "$status" = 2 ] && grep -q usage "$work/out" ||
        { echo "an unknown goal: status $status"; exit 1; }
