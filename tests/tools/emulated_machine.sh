#!/bin/sh
# Proves what tools/machines/emulated-machine makes of a machine that does not start: it starts
# again, three times in all, then says what the kernel said last and fails. A machine that began a
# program is never started again; its result is the tool's. The machine is a script that says what
# one would.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
cat >"$work/bin/qemu-system-x86_64" <<'EOF'
#!/bin/sh
echo start >>"$WORK/starts"
starts=$(wc -l <"$WORK/starts")
echo "kernel: start $starts"
[ "$starts" -ge "$FROM" ] || exit 0
echo "BEGUN 0"
[ "$RESULT" != none ] || exit 0
echo "ENDED 0 $RESULT"
echo "RESULT $RESULT"
EOF
chmod +x "$work/bin/qemu-system-x86_64"
# Linked statically, as the tool's own first program in a machine is: no libraries to take along.
if ! echo 'int main(void) { return 0; }' | ${CC:-cc} -static -x c - -o "$work/program"; then
        echo "no static C library, left out"
        exit 77
fi
: >"$work/kernel"

# machine FROM RESULT: it runs its program at start FROM, which ends with RESULT
machine() {
        rm -f "$work/starts"
        status=0
        env PATH="$work/bin:$PATH" WORK="$work" FROM="$1" RESULT="$2" \
                "$STOOK_SOURCE/tools/machines/emulated-machine" "$work" --kernel "$work/kernel" \
                --run program >"$work/out" 2>&1 || status=$?
        starts=$(wc -l <"$work/starts")
}

# expect STATUS STARTS TEXT
expect() {
        if [ "$status" != "$1" ] || [ "$starts" != "$2" ] || ! grep -q "$3" "$work/out"; then
                cat "$work/out"
                echo "status $status after $starts starts, not $1 after $2 with '$3'"
                exit 1
        fi
}

machine 1 0
expect 0 1 "1 of 1 ended with 0"
machine 1 5
expect 5 1 "program: status 5"
machine 3 0
expect 0 3 "its kernel did not start; once more"
machine 3 77
expect 77 3 "1 with 77"
machine 4 0
expect 1 3 "kernel: start 3"
machine 1 none
expect 1 1 "no result"
echo "starts: 1 where it runs, 3 at most"
