#!/bin/sh
# Proves that tools/check-walk passes a walk whose steps call each other, through a function of the
# caller's file, too, and refuses a step that is not called, that is elsewhere, or that has no file.
set -eu

check=$STOOK_SOURCE/tools/check-walk
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/libstook.a.p"
node() {
        printf 'node: { title: "%s" label: "%s\\nsrc/%s:1:1\\n16 bytes (static)" }\n' "$1" "$1" "$2"
}
edge() { printf 'edge: { sourcename: "%s" targetname: "%s" label: "src/x.c:2:1" }\n' "$1" "$2"; }
{
        node stook_malloc malloc/malloc_api.c
        node within malloc/malloc_api.c
        node stook_usable_size malloc/malloc_api.c
        node stook_os_commit os/map.c
        edge stook_malloc within
        edge within stook_os_commit
} >"$work/libstook.a.p/graph.ci"

cat >"$work/walk.md" <<'EOF'
```walk
stook_malloc         malloc/malloc_api.c  begins
  stook_os_commit    os/map.c             is called through a function of the caller's file
```
EOF
"$check" "$work" "$work/walk.md" >"$work/out" || { cat "$work/out"; exit 1; }
grep -qx "check-walk: 1 walks, 2 steps, 0 faults" "$work/out"

# refused SED WHAT
refused() {
        sed "$1" "$work/walk.md" >"$work/bad.md"
        if "$check" "$work" "$work/bad.md" >"$work/out"; then
                echo "not refused: $1"
                exit 1
        fi
        grep -q "$2" "$work/out" || { echo "$1: the reason is not $2"; cat "$work/out"; exit 1; }
}
refused 's/stook_malloc  /stook_usable_size/' "stook_usable_size does not call stook_os_commit"
refused 's,os/map.c,os/cpu.c,' "os/cpu.c does not define stook_os_commit"
refused 's,os/map.c,os/maps.c,' "no such file: os/maps.c"

# Nothing to look at is a fault.
echo "no walk" >"$work/none.md"
if "$check" "$work" "$work/none.md" >"$work/out" 2>&1; then echo "nothing passes"; exit 1; fi
