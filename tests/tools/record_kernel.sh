#!/bin/sh
# Proves what tools/machines/record-kernel makes of what a machine says: events and figures of
# caches, as `stook replay` reads them; nothing where something is missing or damaged, or where the
# machine fails. The machine is a script that says what one would.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/emulated/busybox-amd64/bin"
cat >"$work/bin/qemu-system-x86_64" <<'EOF'
#!/bin/sh
echo "BEGUN 0"
cat "$WORK/said"
echo "ENDED 0 $RESULT"
echo "RESULT $RESULT"
EOF
chmod +x "$work/bin/qemu-system-x86_64"
if ! echo 'int main(void) { return 0; }' |
        ${CC:-cc} -static -x c - -o "$work/emulated/busybox-amd64/bin/busybox"; then
        echo "no static C library, left out"
        exit 77
fi
: >"$work/kernel"

# record RESULT: what the machine says is in $work/said
record() {
        rm -rf "$work/events.gz" "$work/slab"
        status=0
        env PATH="$work/bin:$PATH" WORK="$work" RESULT="$1" \
                "$STOOK_SOURCE/tools/machines/record-kernel" "$work" --kernel "$work/kernel" \
                --events "$work/events.gz" --slab "$work/slab" >"$work/out" 2>&1 || status=$?
}

# fails STATUS RESULT TEXT
fails() {
        record "$2"
        if [ "$status" != "$1" ] || ! grep -q "$3" "$work/out" || [ -e "$work/events.gz" ] ||
                [ -e "$work/slab" ]; then
                cat "$work/out"
                echo "status $status, not $1 with '$3', or something was written"
                exit 1
        fi
}

{
        echo "# tracer: nop"
        for i in 1 2 3; do
                echo "  sh-9 [00$((i % 2))] ..... 1.00000$i: kmem_cache_alloc: ptr=ff$i" \
                        "name=node bytes_req=200 bytes_alloc=200 gfp_flags=GFP_KERNEL node=-1"
        done
} >"$work/trace"
{
        echo "RECORD events"
        gzip -9c "$work/trace" | base64
        echo "RECORD slab"
        echo "node/object_size 200"
        echo "node/sheaf_capacity 28"
        echo "node/alloc_fastpath 7 C0=7"
        echo "RECORD end"
} >"$work/whole"

cp "$work/whole" "$work/said"
record 0
[ "$status" = 0 ] || { cat "$work/out"; exit 1; }
gzip -dc "$work/events.gz" | cmp - "$work/trace"
[ "$(cat "$work/slab/node/sheaf_capacity")" = 28 ]
if "$STOOK_BUILD/stook" replay --repeat 1 --kernel "$work/slab" "$work/events.gz" \
        >"$work/replayed" 2>&1; then
        grep -q "3 events of 1 cache on 2 CPUs" "$work/replayed"
        grep -q "1 of the trace's 1 caches, 1 with sheaves" "$work/replayed"
elif ! grep -q "need restartable sequences" "$work/replayed"; then
        cat "$work/replayed"
        exit 1
fi

fails 5 5 "status 5"
sed '/RECORD end/d' "$work/whole" >"$work/said"
fails 1 0 "did not write it all"
sed '3s/^/[    9.1] a word of the kernel/' "$work/whole" >"$work/said"
fails 1 0 "did not write it all"
sed 2d "$work/whole" >"$work/said"
fails 1 0 "did not write it all"
sed '/^node/d' "$work/whole" >"$work/said"
fails 1 0 "did not write it all"
echo "recorded whole, or not at all"
