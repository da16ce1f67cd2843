#!/bin/sh
# Proves that what docs/ and the top files call by name is there: every stook_ name, every file of the tree.
set -eu

cd "$STOOK_SOURCE"
status=0
for name in $(grep -ohE '\bstook_[a-z0-9_]+\b' README.md CONTRIBUTING.md NEWS.md docs/*.md | sort -u); do
        grep -rqw "$name" include src malloc cli || { echo "docs name $name, which is nowhere"; status=1; }
done
for path in $(grep -ohE '`?\b(src|docs|tools|tests|include|malloc|cli|examples|bench|man|packaging)/[A-Za-z0-9_./-]*[A-Za-z0-9_]' \
        README.md CONTRIBUTING.md docs/*.md | tr -d '`' | sort -u); do
        [ -e "$path" ] || { echo "docs name $path, which is not there"; status=1; }
done
exit $status
