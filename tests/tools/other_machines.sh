#!/bin/sh
# Proves that meson refuses machines that Stook has no code for, in one line that names them, before
# it looks for anything. No compiler for them is needed.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for machine in riscv32 ppc64 x86; do
        cat >"$work/cross.ini" <<EOF
[binaries]
c = '${CC:-cc}'
ar = 'ar'
[host_machine]
system = 'linux'
cpu_family = '$machine'
cpu = '$machine'
endian = 'little'
EOF
        status=0
        meson setup "$work/$machine" "$STOOK_SOURCE" --cross-file "$work/cross.ini" \
                >"$work/out" 2>&1 || status=$?
        [ "$status" = 1 ] || { cat "$work/out"; echo "$machine: status $status, not 1"; exit 1; }
        grep -q "ERROR: .*Stook is for x86-64, aarch64 and RISC-V .*: for $machine it has no code" \
                "$work/out" || { cat "$work/out"; echo "$machine: no clear line"; exit 1; }
        rm -rf "${work:?}/$machine"
done
echo "refused: riscv32, ppc64, x86"
