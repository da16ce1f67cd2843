#!/bin/sh
# Proves what the headers tell compilers. Objects of caches have the content that constructors and
# earlier users left, at every level of optimization, out of line and inlined, in C and C++. Of
# malloc's calls a compiler warns where a result is not used, and nowhere else. All bytes of
# stook_usable_size() may be used where the C library checks for overruns.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
include="-I$STOOK_SOURCE/include -I$STOOK_BUILD/include"
library="-L$STOOK_BUILD -lstook -Wl,-rpath,$STOOK_BUILD"

# for_each_compiler COMMAND...: with the compiler and its language as the last two words
for_each_compiler() {
        for compiler in cc clang-19; do
                command -v "$compiler" >/dev/null || continue
                "$@" "$compiler" c
        done
        for compiler in c++ clang++-19; do
                command -v "$compiler" >/dev/null || continue
                "$@" "$compiler" c++
        done
}

content() {
        for options in -O0 -O1 -O2 '-O0 -DINLINED' '-O1 -DINLINED' '-O2 -DINLINED'; do
                # shellcheck disable=SC2086 # flags are words
                "$1" -x "$2" $options $include -o "$work/content" \
                        "$STOOK_SOURCE/tests/abi/earlier_content.c" $library
                "$work/content" || { echo "$1 -x $2 $options"; exit 1; }
        done
}

cat >"$work/good.c" <<'END'
#include <stdlib.h>
#include <string.h>
#include <stook/malloc.h>
void on_the_drop_in(void);
void on_the_drop_in(void)
{
        free(stook_malloc(8));
}
int main(void)
{
        struct stook_cache *cache = stook_cache_create("node", 64, NULL);
        char *a = (char *)stook_malloc(5), *b = (char *)stook_calloc(5, 1);
        void *c = stook_aligned_alloc(64, 64), *d = stook_malloc_nolock(8);
        void *e = stook_realloc(stook_malloc(8), 100), *f = stook_reallocarray(NULL, 8, 8);
        void *g = stook_cache_alloc(cache), *h = stook_cache_zalloc(cache), *i = stook_malloc(8);

        if (!a || !b || stook_usable_size(a) <= 5)
                return 1;
        memset(a, 1, stook_usable_size(a));
        memset(b, 1, stook_usable_size(b));
        stook_free(a);
        stook_free_nolock(b);
        stook_free_aligned_sized(c, 64, 64);
        stook_free_sized(d, 8);
        stook_free(e);
        stook_free(f);
        stook_free(g);
        stook_free(h);
        stook_cache_free_bulk(NULL, 1, &i);
        return 0;
}
END
cat >"$work/lost.c" <<'END'
#include <stook/malloc.h>
void lose(void *object);
void lose(void *object)
{
        stook_malloc(8);
        stook_calloc(8, 8);
        stook_malloc_nolock(8);
        stook_aligned_alloc(64, 8);
        stook_realloc(object, 8);
        stook_reallocarray(object, 8, 8);
}
END
good() {
        # shellcheck disable=SC2086
        "$1" -x "$2" -O2 -Wall -Wextra -pedantic -Wredundant-decls -Werror -U_FORTIFY_SOURCE \
                -D_FORTIFY_SOURCE=3 $include -o "$work/good" "$work/good.c" $library
        "$work/good" || { echo "$1 -x $2: the usable bytes are not"; exit 1; }
}

lost() {
        # shellcheck disable=SC2086
        "$1" -x "$2" $include -c -o "$work/lost.o" "$work/lost.c" 2>"$work/out"
        [ "$(grep -c 'warning: .*-Wunused-result' "$work/out")" = 6 ] || {
                echo "$1 -x $2: not six results that are not used"; cat "$work/out"; exit 1; }
}

for_each_compiler content
for_each_compiler good
for_each_compiler lost
