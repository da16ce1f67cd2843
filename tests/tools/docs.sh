#!/bin/sh
# Proves that what docs/ and the top files call by name is there: every stook_ name, every file of
# the tree; and that each ordering pair (M1, M2, ...) of the sources is registered in
# docs/CONCURRENCY.md.
set -eu

cd "$STOOK_SOURCE"
status=0
for name in $(grep -ohE '\bstook_[a-z0-9_]+\b' \
        README.md CONTRIBUTING.md NEWS.md docs/*.md | sort -u); do
        grep -rqw "$name" include src dropin cli ||
                { echo "docs name $name, which is nowhere"; status=1; }
done
for path in $(grep -ohE \
        '`?\b(src|docs|tools|tests|include|dropin|cli|examples|bench|man|packaging)'\
'/[A-Za-z0-9_./-]*[A-Za-z0-9_]' \
        README.md CONTRIBUTING.md docs/*.md | tr -d '`' | sort -u); do
        [ -e "$path" ] || { echo "docs name $path, which is not there"; status=1; }
done
grep -rlE '\bM[0-9]+\b' src | while read -r file; do
        for pair in $(grep -ohE '\bM[0-9]+\b' "$file" | sort -u); do
                # A file that only mentions another one's pair names that file:
                # "(base/tagged_stack.h M1)".
                grep -E "\b$pair\b" "$file" | grep -vqE "[a-z_]+\.[ch] $pair\b" || continue
                grep -qE "^\| .*\`$(basename "$file")\`.*: (M[0-9]+, )*$pair\b" \
                        docs/CONCURRENCY.md ||
                        echo "$file: $pair is not in docs/CONCURRENCY.md"
        done
done >"$STOOK_BUILD/unregistered-pairs"
cat "$STOOK_BUILD/unregistered-pairs"
[ ! -s "$STOOK_BUILD/unregistered-pairs" ] || status=1
rm -f "$STOOK_BUILD/unregistered-pairs"
exit $status
