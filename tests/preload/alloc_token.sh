#!/bin/sh
# Proves that a program that clang 22 compiles with -fsanitize=alloc-token gets its objects with
# pointers and its data from different heaps of the drop-in, in C and in C++, with 64-bit tokens and
# with few.
set -eu
clang=
for name in clang-22 clang-23 clang; do
        if echo 'int here;' | "$name" -x c - -fsanitize=alloc-token -fsyntax-only 2>/dev/null; then
                clang=$name
                break
        fi
done
[ -n "$clang" ] || { echo "no clang that knows -fsanitize=alloc-token"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
include="-I$STOOK_SOURCE/include -I$STOOK_BUILD/include"

cat >"$work/program.c" <<'END'
#include <stdlib.h>
#include <stook/heap.h>
struct node { struct node *next; long n; };
struct text { char bytes[16]; };
static struct node *volatile node;
static struct text *volatile text;
int main(void)
{
#ifdef __cplusplus
        node = new struct node();
        text = new struct text();
#else
        node = (struct node *)malloc(sizeof(struct node));
        text = (struct text *)calloc(3, sizeof(struct text));
#endif
        if (!stook_heap_of(node) || !stook_heap_of(text))
                return 1;
        return stook_heap_of(node) == stook_heap_of(text) ? 2 : 0;
}
END

for language in c c++; do
        for options in -O0 -O2 '-O1 -falloc-token-max=2' '-O1 -falloc-token-max=16'; do
                # shellcheck disable=SC2086 # flags are words
                "$clang" -x "$language" $options -fsanitize=alloc-token $include \
                        -o "$work/program" "$work/program.c" \
                        -x none "$STOOK_BUILD/libstook-malloc.so" \
                        "-Wl,-rpath,$STOOK_BUILD" $([ "$language" = c++ ] && echo -lstdc++)
                "$work/program" || { echo "$language $options: $?"; exit 1; }
        done
done
