#!/bin/sh
# What this proves: base and os build and link with musl, whose libc registers no rseq area, and
# rseq_threads.c holds there.
set -eu

command -v musl-gcc >/dev/null || { echo "no musl-gcc"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
src=$STOOK_SOURCE/src
case $(uname -m) in
x86_64) machine=-mcx16 ;;
*) machine= ;;
esac
base=
for file in "$src"/base/*.c; do
        case $file in
        */pair_locked.c) ;;             # of machines without the instruction
        *) base="$base $file" ;;
        esac
done
for link in "" -static; do
        # shellcheck disable=SC2086
        musl-gcc -std=gnu17 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -ftls-model=initial-exec \
                -fvisibility=hidden $machine $link -I"$src" -I"$STOOK_SOURCE/include" \
                -o "$folder/threads" \
                "$STOOK_SOURCE/tests/unit/os/rseq_threads.c" "$src"/os/*.c $base
        "$folder/threads" 30000
done
