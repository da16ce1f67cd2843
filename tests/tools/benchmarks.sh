#!/bin/sh
# Proves that docs/BENCHMARKS.md and bench/TARGETS.md are what `stook bench` writes from the one run
# in docs/figures, that the page is short, and the run small.
set -eu

cd "$STOOK_SOURCE"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PYTHONDONTWRITEBYTECODE=1
bench/run.py --report "$folder/page.md" docs/figures/run.json
diff -u docs/BENCHMARKS.md "$folder/page.md"
bench/run.py --report "$folder/TARGETS.md" docs/figures/run.json
diff -u bench/TARGETS.md "$folder/TARGETS.md"
[ "$(wc -l <docs/BENCHMARKS.md)" -le 200 ]
[ "$(wc -c <docs/figures/run.json)" -le 307200 ]
[ "$(ls docs/figures)" = run.json ]
