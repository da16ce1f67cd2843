#!/bin/sh
# Proves that tools/check-layers passes this tree, and refuses each kind of fault in a tree made for it.
set -eu

check=$STOOK_SOURCE/tools/check-layers
"$check" "$STOOK_SOURCE"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fresh() {
        rm -rf "$work/src"
        mkdir -p "$work/src/upper" "$work/src/lower"
        printf '# layers\nupper    above\nlower    below\n' >"$work/src/LAYERS"
        printf "files('upper/up.c', 'lower/low.c')\n" >"$work/src/meson.build"
        echo '' >"$work/src/lower/low.h"
        echo '' >"$work/src/upper/up.h"
        echo '#include "lower/low.h"' >"$work/src/upper/up.c"
        echo '#include "lower/low.h"' >"$work/src/lower/low.c"
}

refused() {
        if "$check" "$work" >"$work/out"; then
                echo "not refused: $1"
                exit 1
        fi
        grep -q "$2" "$work/out" || { cat "$work/out"; echo "refused for another reason: $1"; exit 1; }
}

fresh
"$check" "$work"

fresh; echo '#include "upper/up.h"' >>"$work/src/lower/low.c"
refused "an include that goes up" "src/lower/low.c:2.*upper is above lower"

echo 'allow lower upper because of this test' >>"$work/src/LAYERS"
"$check" "$work"

fresh; echo 'allow lower upper because of this test' >>"$work/src/LAYERS"
refused "an exception that nothing uses" "nothing uses it"

fresh; echo '#include "low.h"' >>"$work/src/lower/low.c"
refused "an include without its layer" "write LAYER/FILE"

fresh; echo '#include "lower/none.h"' >>"$work/src/lower/low.c"
refused "an include of nothing" "no such file"

fresh; echo '#include "upper/up.c"' >>"$work/src/upper/up.c"
refused "an included source" "includes a source file"

fresh; echo '' >"$work/src/lower/left.c"
refused "a source that is not built" "not in src/meson.build"

fresh; mkdir "$work/src/extra"
refused "a folder that is no layer" "not in src/LAYERS"

rm -rf "$work/src/upper" "$work/src/lower" "$work/src/extra"
if "$check" "$work"; then
        echo "passed a tree with nothing in it"
        exit 1
fi
