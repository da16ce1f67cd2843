#!/bin/sh
# Proves how tools/make/main-job tells what it found, with a stand-in for `stook`: six pairs of
# runs, one verdict, which comes last, no table of size classes; and that a run that fails is told
# with its status. `make run` in .ci/run has the real program.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/stook" <<'END'
#!/bin/sh
echo "$*" >"$0.words"
while [ "$1" != -- ]; do
        [ "$1" = --json ] && json=$2
        shift
done
echo code >"$PYTHONPYCACHEPREFIX/one.pyc"
cat >"$json" <<'JSON'
{"processes": [{"totals": {"counters": {"alloc_fastpath": 9, "alloc_slowpath": 1},
                           "allocated_shares": {"slot": 0.5, "barn": 0.3, "slabs": 0.2}}}]}
JSON
printf '\n  6 runs each\n\nPeak memory: the verdict\n' >&2
exit "${STAND_IN_STATUS:-0}"
END
chmod +x "$work/stook"

fail() { echo "$1" >&2; cat "$work/out" >&2; exit 1; }

"$STOOK_SOURCE/tools/make/main-job" "$work" >"$work/out" 2>&1 || fail "it failed"
grep -q -e '--compare --repeat 6 ' "$work/stook.words" || fail "not six pairs"
grep -q -e '--stats' "$work/stook.words" && fail "a table of size classes"
[ "$(tail -n 1 "$work/out")" = "Peak memory: the verdict" ] || fail "the verdict is not last"
[ "$(grep -c 'verdict\|times the' "$work/out")" = 1 ] || fail "not one verdict"
grep -q '^  6 runs each$' "$work/out" || fail "the table lost its indent"

STAND_IN_STATUS=3 "$STOOK_SOURCE/tools/make/main-job" "$work" >"$work/out" 2>&1 &&
        fail "it did not fail"
grep -q 'exit status 3' "$work/out" || fail "no exit status"
grep -q 'the verdict' "$work/out" || fail "what was said is lost"
