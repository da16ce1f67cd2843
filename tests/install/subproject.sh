#!/bin/sh
# Proves that a project of Meson's can have Stook as a subproject: it finds the names of the
# pkg-config files, shared and static, programs link and run, and of Stook it gets what is
# installed, no tests and no benchmarks.
set -eu
unset LD_LIBRARY_PATH                           # Meson's would show the build folder

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/subprojects"
ln -s "$STOOK_SOURCE" "$work/subprojects/stook"
cp "$STOOK_SOURCE/examples/points.c" "$work"
printf 'int main(void) { return 0; }\n' >"$work/empty.c"
cat >"$work/meson.build" <<'EOT'
project('parent', 'c')
names = ['stook', 'stook-maple', 'stook-malloc']
if dependency('liburcu-memb', required: false).found()
  names += 'stook-urcu'
endif
foreach name : names
  executable('linked-' + name, 'empty.c', dependencies: dependency(name, static: false))
  executable('static-' + name, 'empty.c', dependencies: dependency(name, static: true))
endforeach
executable('shared', 'points.c', dependencies: dependency('stook'))
executable('static', 'points.c', dependencies: dependency('stook', static: true))
EOT
CFLAGS=-O0 meson setup "$work/build" "$work" --buildtype=plain >"$work/log" 2>&1 ||
        { cat "$work/log"; exit 1; }
targets=$(meson introspect --targets "$work/build" |
        /usr/bin/python3 -c 'import json, sys; print(*(t["name"] for t in json.load(sys.stdin)))')
case $targets in
*test*) echo "tests or benchmarks: $targets"; exit 1 ;;
esac
[ "$(echo "$targets" | wc -w)" -lt 30 ] || { echo "many targets: $targets"; exit 1; }
ninja -C "$work/build" shared static >"$work/log" || { cat "$work/log"; exit 1; }
for program in shared static; do
        "$work/build/$program" | grep -qx 'a point at (0, 0)'
done
