#!/bin/sh
# Proves that the manual pages are clean mdoc, and that each public call, each STOOK_* variable the sources
# read, and each page a page refers to is in them.
set -eu

cd "$STOOK_SOURCE"
command -v mandoc >/dev/null || { echo "mandoc is not installed"; exit 77; }

status=0
mandoc -T lint -W warning man/*.[1-9] || status=1

sed -n 's/^ *\(stook_[a-z_]*\);$/\1/p' src/libstook.sym | while read -r name; do
        grep -q "^\.F[no] $name\b" man/libstook.3 || echo "libstook.3: no $name"
done >"$STOOK_BUILD/man-missing"
grep -rhoE '"STOOK_[A-Z_]+"' src malloc cli | tr -d '"' | sort -u | while read -r name; do
        grep -q "$name" man/stook-env.7 || echo "stook-env.7: no $name"
done >>"$STOOK_BUILD/man-missing"
sed -n 's/^\.Xr \(stook[^ ]*\|libstook\) \([0-9]\).*/\1.\2/p' man/*.[1-9] | sort -u | while read -r page; do
        [ -e "man/$page" ] || echo "no page $page"
done >>"$STOOK_BUILD/man-missing"
cat "$STOOK_BUILD/man-missing"
[ ! -s "$STOOK_BUILD/man-missing" ] || status=1
rm -f "$STOOK_BUILD/man-missing"
exit $status
