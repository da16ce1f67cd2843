#!/bin/sh
# Proves that docs/BENCHMARKS.md is what `stook bench` writes from the results in docs/figures.
set -eu

cd "$STOOK_SOURCE"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
PYTHONDONTWRITEBYTECODE=1 bench/run.py --report "$folder/page.md" docs/figures
diff -u docs/BENCHMARKS.md "$folder/page.md"
