#!/bin/sh
# Proves that an editor finds every public function: ctags, without options of this project, lists
# the declaration and the definition of each exported one.
set -eu

ctags --version 2>/dev/null | grep -q 'Universal Ctags' ||
        { echo "Universal Ctags is not installed"; exit 77; }
cd "$STOOK_SOURCE"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Tables of RCU implementations are data.
cat src/libstook.sym maple/libstook-maple.sym urcu/libstook-urcu.sym |
        grep -oE '\bstook_[a-z0-9_]+;' | tr -d ';' |
        grep -vxE 'stook_rcu_epoch|stook_urcu_(memb|mb|qsbr|bp)|stook_(thread|area|root)_v1' |
        sort -u >"$work/exported"
[ "$(wc -l <"$work/exported")" -gt 100 ] || { echo "few exported functions found"; exit 1; }

ctags --options=NONE --languages=C,C++ --kinds-C=p --kinds-C++=p -f - include/stook/*.h |
        cut -f 1 | sort -u >"$work/declared"
ctags --options=NONE --languages=C --kinds-C=f -R -f - src maple urcu |
        cut -f 1 | sort -u >"$work/defined"

status=0
for kind in declared defined; do
        comm -23 "$work/exported" "$work/$kind" >"$work/missing"
        while read -r name; do
                echo "ctags does not find where $name is $kind"
                status=1
        done <"$work/missing"
done
exit $status
