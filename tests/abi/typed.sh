#!/bin/sh
# Proves that <stook/typed.h> lets no pointer of another type through, in each standard of C, by gcc
# and clang; that it warns of nothing else; and that its calls compile to those behind them.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
include="-I$STOOK_SOURCE/include -I$STOOK_BUILD/include"
count=0

cat >"$work/types.h" <<'END'
#include <stook/typed.h>
struct route { int metric; };
struct other { int metric; };
STOOK_DEFINE_CACHE(routes, struct route);
extern union routes routes;
extern const union routes *some;
END

# source FILE STATEMENTS
source() {
        printf '#include "types.h"\nvoid use(void);\nvoid use(void) { %s }\n' "$2" >"$work/$1.c"
}

# compiles FILE: with the compiler and the standard of the loops below
compiles() {
        count=$((count + 1))
        # shellcheck disable=SC2086 # flags are words
        "$compiler" -std="$standard" -Wall -Wextra -Wconversion -pedantic -Werror $include \
                -O2 -S -o "$work/$1.s" "$work/$1.c" 2>"$work/said"
}

source typed 'struct route *r = stook_new(&routes), *z = stook_new_zeroed(some);
              stook_delete(&routes, r); stook_delete(some, z);'
source plain 'struct route *r = stook_cache_alloc(routes.cache);
              struct route *z = stook_cache_zalloc(some->cache);
              stook_cache_free(routes.cache, r); stook_cache_free(some->cache, z);'
source create 'if (!stook_typed_create(&routes, "r", NULL) ||
                   !stook_typed_create(&routes, "r", STOOK_CACHE_ARGS(.align = 64))) return;
               stook_cache_free_rcu(routes.cache, STOOK_OBJECT_OF(&routes, stook_new(&routes)));'
sed -i 's/^#include "types.h"/&\n#include <stook\/rcu.h>/' "$work/create.c"
source wrong-new 'struct other *o = stook_new(&routes); (void)o;'
source wrong-zeroed 'struct other *o = stook_new_zeroed(&routes); (void)o;'
source wrong-delete 'struct other *o = NULL; stook_delete(&routes, o);'
source wrong-void 'void *o = stook_new(&routes); stook_delete(&routes, o);'
source wrong-object 'struct other *o = NULL; (void)STOOK_OBJECT_OF(&routes, o);'
source wrong-cache 'struct stook_cache *c = NULL; (void)stook_new(c);'

for compiler in gcc clang clang-19; do
        command -v "$compiler" >/dev/null || continue
        for standard in c11 c17 c2x; do
                for file in typed plain create; do
                        compiles "$file" || { cat "$work/said"; exit 1; }
                done
                sed -i '/\.file\|\.ident/d' "$work/typed.s" "$work/plain.s"
                cmp "$work/typed.s" "$work/plain.s"
                for file in new zeroed delete void object cache; do
                        ! compiles "wrong-$file" || { cat "$work/wrong-$file.c"; exit 1; }
                done
        done
done
echo "$count compilations"
[ "$count" -gt 0 ] || { echo "no compiler is here"; exit 77; }
