#!/bin/sh
# Proves that the README's first C block is examples/points.c, which is compiled and run as a test.
set -eu

work=$(mktemp)
trap 'rm -f "$work"' EXIT
awk '/^```c$/ && !seen { inside = 1; seen = 1; next } /^```$/ { inside = 0 } inside' \
        "$STOOK_SOURCE/README.md" >"$work"
diff -u "$STOOK_SOURCE/examples/points.c" "$work"
