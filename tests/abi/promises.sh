#!/bin/sh
# Proves that tools/release/abi finds what breaks programs that were compiled before, and nothing
# else; and that the tree keeps what the last release promised, if one is out.
set -eu

for tool in gcc readelf nm; do
        command -v $tool >/dev/null || { echo "$tool is not installed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
abi() { "$STOOK_SOURCE/tools/release/abi" "$STOOK_BUILD" "$@"; }

abi >"$work/now"
for kind in symbol function structure field enumerator macro; do
        [ "$(grep -c "^$kind " "$work/now")" -gt 9 ] || { echo "hardly any $kind"; exit 1; }
done
abi --check

# told STATUS EDIT: the release promised what EDIT, a script for sed, makes of today's list
told() {
        { echo "# release 0, out"; sed "$2" "$work/now"; } >"$work/list"
        cmp -s "$work/now" "$work/list" && { echo "$2 changes nothing"; exit 1; }
        status=0
        abi --check "$work/list" >"$work/out" || status=$?
        [ "$status" = "$1" ] || { cat "$work/out"; echo "$2: status $status, not $1"; exit 1; }
}
told 0 ''
told 0 '/symbol libstook.so stook_trim/d'
told 0 's/^\(structure stook_cache_args of\) .*/\1 8 bytes/'
told 1 's|^\(structure stook_maple of\) .*|\1 8 bytes|'
told 1 's/^\(structure stook_cache_args of\) .*/\1 4000 bytes/'
told 1 's/stook_trim/stook_prune/'
told 1 's/\(stook_trim\) STOOK_0.2/\1 STOOK_0.0/'
told 1 's/^function void stook_free (.*/function void stook_free (void *, int)/'
told 1 's/^\(field stook_report.offset at\)/\1 1/'
told 1 's/^\(enumerator STOOK_FAULT_FOREIGN\) .*/\1 77/'
told 1 's/^\(macro STOOK_CACHE_RCU\) .*/\1 77/'
# Not out yet: the same differences break nothing.
sed -i '1s/out/not out yet/' "$work/list"
abi --check "$work/list" >"$work/out"
