#!/bin/sh
# Proves that tools/check-layers passes this tree, and refuses each kind of fault in a tree made for
# it.
set -eu

check=$STOOK_SOURCE/tools/check-layers
"$check" "$STOOK_SOURCE"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fresh() {
        rm -rf "$work/src"
        mkdir -p "$work/src/upper" "$work/src/middle" "$work/src/lower" "$work/src/words"
        cat >"$work/src/LAYERS" <<'EOF'
# layers
upper    above
middle   between
lower    below
words    beside
common words
uses upper: middle
uses middle: lower
facade lower: low.h
EOF
        printf "files('upper/up.c', 'middle/mid.c', 'lower/low.c')\n" >"$work/src/meson.build"
        for header in lower/low lower/inside middle/mid upper/up words/words; do
                echo '' >"$work/src/$header.h"
        done
        printf '#include "middle/mid.h"\n#include "words/words.h"\n' >"$work/src/upper/up.c"
        echo '#include "lower/low.h"' >"$work/src/middle/mid.c"
        echo '#include "lower/inside.h"' >"$work/src/lower/low.c"
}

declare_also() { echo "$*" >>"$work/src/LAYERS"; }
instead() { sed -i "s|^$1\$|$2|" "$work/src/LAYERS"; }

# calls PLACE FILE: a build in which a function of upper calls one of FILE. PLACE has the call.
calls() {
        mkdir -p "$work/build/libstook.a.p"
        cat >"$work/build/libstook.a.p/graph.ci" <<EOF
node: { title: "above" label: "above\\nsrc/upper/up.c:1:1\\n16 bytes (static)" }
node: { title: "below" label: "below\\n$2:1:1\\n16 bytes (static)" }
edge: { sourcename: "above" targetname: "below" label: "$1:2:1" }
EOF
}

refused() {
        if "$check" "$work" ${build:+"$build"} >"$work/out"; then
                echo "not refused: $1"
                exit 1
        fi
        grep -q "$2" "$work/out" ||
                { cat "$work/out"; echo "refused for another reason: $1"; exit 1; }
}

fresh
"$check" "$work"

fresh; echo '#include "upper/up.h"' >>"$work/src/lower/low.c"
refused "an include that goes up" "src/lower/low.c:2.*upper is above lower"

declare_also allow lower upper because of this test
"$check" "$work"

fresh; declare_also allow lower upper because of this test
refused "an exception that nothing uses" "allow lower upper: nothing uses it"

fresh; declare_also allow lower upper
refused "an exception without a reason" "needs a reason"

fresh; echo '#include "lower/low.h"' >>"$work/src/upper/up.c"
refused "a skip that is not declared" "src/upper/up.c:3.*upper skips to lower"

declare_also uses upper: lower
"$check" "$work"

fresh; echo '#include "lower/low.h"' >>"$work/src/upper/up.c"
instead 'uses upper: middle' 'uses upper: *'
"$check" "$work"

fresh; instead 'uses middle: lower' ''
refused "the next layer, if it is not declared" "middle skips to lower"

fresh; calls src/upper/up.c src/lower/low.c
build=$work/build
refused "a call that skips" "up.c calls below: upper skips to lower"
build=

fresh; calls src/middle/mid.h src/lower/low.c
"$check" "$work" "$work/build"

fresh; calls src/lower/low.h src/middle/mid.c
build=$work/build
refused "a call that goes up" "low.h calls below: middle is above lower"
rm "$work/build/libstook.a.p/graph.ci"
if "$check" "$work" "$build" >"$work/out" 2>&1; then
        echo "passed a build that tells of no calls"
        exit 1
fi
build=

fresh; declare_also uses upper: lower; calls src/middle/mid.c src/lower/low.c
"$check" "$work"                                # without a build, calls may use it
build=$work/build
refused "a skip that nothing uses" "uses upper: lower: nothing uses it"
build=

fresh; declare_also uses middle: upper
refused "a declared include that goes up" "uses middle: upper: is above it"

fresh; declare_also uses upper: lowest
refused "a declaration of no layer" "uses upper: lowest: no such layer"

fresh; declare_also uses upper lower
refused "a declaration without its colon" "write .uses upper: "

fresh; instead 'common words' ''
refused "what only a common layer may be" "upper skips to words"

fresh; echo '#include "lower/inside.h"' >>"$work/src/middle/mid.c"
refused "an include past a facade" "src/middle/mid.c:2.*is inside lower"

fresh; declare_also facade lower: inside.h
refused "a facade that nothing uses" "facade lower: inside.h: nothing uses it"

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

fresh; echo '#include "lower/inside.h"' >"$work/src/lower/left.h"
declare_also private lower/inside.h: low.c
refused "a private header" "src/lower/left.h:1.*is private to other files"

declare_also private lower/inside.h: left.h
"$check" "$work"

fresh; declare_also private lower/inside.h: low.c left.h
refused "a private header that its file does not use" \
        "private lower/inside.h: left.h: nothing uses it"

rm -rf "$work/src/upper" "$work/src/middle" "$work/src/lower" "$work/src/words" "$work/src/extra"
printf 'upper    above\n' >"$work/src/LAYERS"
if "$check" "$work"; then
        echo "passed a tree with nothing in it"
        exit 1
fi
