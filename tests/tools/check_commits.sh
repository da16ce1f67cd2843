#!/bin/sh
# Proves that tools/check-commits passes subjects of the form, and refuses each other kind.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tools"
cp "$STOOK_SOURCE/tools/check-commits" "$work/tools"
cd "$work"
export HOME="$work" GIT_CONFIG_NOSYSTEM=1
git init -q
git config user.name name
git config user.email name@example.org

commit() { git commit -q --allow-empty -m "$1"; }

refused() {
        if tools/check-commits >out; then
                echo "not refused: $1"
                exit 1
        fi
        grep -q "$2" out || { echo "$1: the reason is not $2"; cat out; exit 1; }
        git reset -q --hard HEAD~1
}

commit "slot: take a sheaf"
commit "slot, tests: take a sheaf, and put it back"
tools/check-commits | grep -q "^check-commits: 2 commits$"
commit "take a sheaf"
refused "no layer" "write LAYER"
commit "slot: take a sheaf."
refused "a full stop" "write LAYER"
commit "slot: take a sheaf from the barn of the node of the CPU that has called us"
refused "a long subject" "more than 72"
git checkout -q -b side HEAD~1
commit "barn: give a sheaf"
git checkout -q -
git merge -q --no-ff -m "slot: merge the other branch" side
refused "a merge" "rebase it"
tools/check-commits
