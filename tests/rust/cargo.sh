#!/bin/sh
# Proves that the Rust crates build with the libraries of this build folder and without the network,
# that their declarations are those of the C headers, and that their tests, examples and the
# examples of their documentation hold; without a library they say why none was found. All that is
# made lies in the build folder.
set -eu
cargo --version >/dev/null 2>&1 || { echo "no cargo"; exit 77; }
command -v cc >/dev/null || { echo "no cc, by which Rust links"; exit 77; }

export STOOK_LIB_DIR="$STOOK_BUILD"
export STOOK_CFLAGS="-I$STOOK_SOURCE/include -I$STOOK_BUILD/include"
export CARGO_TARGET_DIR="$STOOK_BUILD/rust"
export LD_LIBRARY_PATH="$STOOK_BUILD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
features=maple
[ ! -e "$STOOK_BUILD/libstook-urcu.so" ] || features=maple,urcu

cd "$STOOK_SOURCE/rust"
# Warnings are not errors: each version of the compiler has others.
cargo test --offline --locked -p stook-sys
log=$STOOK_BUILD/rust/tests.log
cargo test --offline --locked -p stook --features "$features" >"$log" 2>&1 || {
        cat "$log"; exit 1; }
cat "$log"
passed=$(grep -c '^test .* \.\.\. ok$' "$log") || passed=0
[ "$passed" -ge 20 ] || { echo "only $passed tests ran"; exit 1; }
cargo run --quiet --offline --locked -p stook --features "$features" --example sessions |
        grep -qx '0x1000 to 0x1fff: code' || { echo "the example prints something else"; exit 1; }
if (unset STOOK_LIB_DIR
    PKG_CONFIG_LIBDIR=/nonexistent cargo build --offline --locked -p stook-sys >"$log" 2>&1); then
        echo "built without libstook"
        exit 1
fi
# Without pkg-config the system names what it did not find, else pkg-config does.
grep -q 'or install it (.*\(stook\|pkg-config\)' "$log" || { cat "$log"; exit 1; }
