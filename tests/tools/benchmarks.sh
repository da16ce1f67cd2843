#!/bin/sh
# Proves that docs/BENCHMARKS.md is what bench/report.py writes from the results in docs/figures.
set -eu

cd "$STOOK_SOURCE"
work=$(mktemp)
trap 'rm -f "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1 bench/report.py --out "$work" docs/figures/*.json
diff -u docs/BENCHMARKS.md "$work"
