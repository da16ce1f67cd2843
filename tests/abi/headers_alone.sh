#!/bin/sh
# Proves that each header of C compiles when it is included alone, without a warning, in every
# standard of C and C++ that the library is for, by gcc and clang; and that STOOK_OBJECT_MAX may
# stand in #if. Those of C++ are cpp/headers's.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-Wall -Wextra -Wconversion -pedantic -Werror -fsyntax-only
       -I$STOOK_SOURCE/include -I$STOOK_BUILD/include"
folder=$STOOK_SOURCE/include/stook
count=0

# compile COMPILER LANGUAGE STANDARD FILE
compile() {
        # shellcheck disable=SC2086 # flags are words
        "$1" $flags -x "$2" -std="$3" "$4" || { echo "$1 -std=$3: $(cat "$4")"; exit 1; }
        count=$((count + 1))
}

# alone COMPILER LANGUAGE STANDARD HEADER...
alone() {
        compiler=$1 language=$2 standard=$3
        shift 3
        # A standard that this compiler is too old for.
        echo 'int here;' >"$work/empty"
        "$compiler" -x "$language" -std="$standard" -fsyntax-only "$work/empty" 2>/dev/null ||
                return 0
        for header; do
                printf '#include <stook/%s>\nextern int here;\n' "${header##*/}" >"$work/alone"
                compile "$compiler" "$language" "$standard" "$work/alone"
        done
}

printf '#include <stook/cache.h>\n#if STOOK_OBJECT_MAX != 131072\n#error\n#endif\n' >"$work/macro"
for compiler in gcc clang clang-22; do
        command -v "$compiler" >/dev/null || continue
        for standard in c11 c17 c2x; do
                alone "$compiler" c "$standard" "$folder"/*.h "$STOOK_BUILD"/include/stook/version.h
        done
        compile "$compiler" c c11 "$work/macro"
done
for compiler in g++ clang++ clang++-22; do
        command -v "$compiler" >/dev/null || continue
        for standard in c++17 c++20 c++2b; do
                alone "$compiler" c++ "$standard" "$folder"/*.h
        done
        compile "$compiler" c++ c++17 "$work/macro"
done
echo "$count compilations"
[ "$count" -gt 100 ] || { echo "too few: no compiler is here"; exit 1; }
