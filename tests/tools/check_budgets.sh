#!/bin/sh
# Proves that tools/check-budgets passes figures within their limits, and refuses those above one,
# those without, and limits of nothing.
set -eu

command -v cloc >/dev/null || { echo "cloc is missing"; exit 77; }
check=$STOOK_SOURCE/tools/check-budgets
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Both misses reach one function, in a file of its own.
mkdir "$work/libstook.a.p"
for miss in stook_malloc_miss stook_drop_in_free_miss; do
        cat <<EOF
node: { title: "$miss" label: "$miss\\nsrc/malloc/miss.c:1:1\\n16 bytes (static)" }
edge: { sourcename: "$miss" targetname: "below" label: "src/malloc/miss.c:2:1" }
EOF
done >"$work/libstook.a.p/graph.ci"
printf '%s\n' 'node: { title: "below" label: "below\nsrc/slab/slab.c:1:1\n16 bytes (static)" }' \
        >>"$work/libstook.a.p/graph.ci"

sed 's/miss, \(.*\): .*/miss, \1: 2/; s/lines: .*/lines: 99999/; s/files\(.*\): .*/files\1: 999/' \
        "$STOOK_SOURCE/.ci/budgets" >"$work/enough"
"$check" "$work" "$work/enough" >"$work/out" || { cat "$work/out"; exit 1; }

# refused SED WHAT
refused() {
        sed "$1" "$work/enough" >"$work/limits"
        if "$check" "$work" "$work/limits" >"$work/out"; then
                echo "not refused: $1"
                exit 1
        fi
        grep -q "$2" "$work/out" || { echo "$1: the reason is not $2"; cat "$work/out"; exit 1; }
        tail -n 1 "$work/out" | grep -q ", 1 faults$"
}
refused 's/^malloc miss, functions: .*/malloc miss, functions: 1/' \
        "2 of *1 malloc miss, functions  above"
refused 's/^free miss, files: .*/free miss, files: 0/' "2 of *0 free miss, files  above"
refused 's/^core, lines: .*/core, lines: 1/' "core, lines  above its limit"
refused '/^slot, lines/d' "slot, lines  no limit"
refused '$s/$/\nnothing, lines: 7/' "nothing, lines: nothing is counted"
