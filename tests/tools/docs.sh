#!/bin/sh
# Proves that what docs/ and the top files call by name is there: every stook_ name, every file of
# the tree, every test; and that each ordering pair (M1, M2, ...) of the sources is registered in
# docs/CONCURRENCY.md. And that no address for mail is named: the project has none.
set -eu

cd "$STOOK_SOURCE"
status=0
documents="README.md CONTRIBUTING.md $(echo docs/*.md docs/decisions/*.md)"
for name in $(grep -ohE '\bstook_[a-z0-9_]+\b' \
        $documents NEWS.md | sort -u); do
        grep -rqw "$name" include src dropin cli ||
                { echo "docs name $name, which is nowhere"; status=1; }
done
for path in $(grep -ohE \
        '`?\b(src|docs|tools|tests|include|dropin|cli|examples|bench|man|packaging)'\
'/[A-Za-z0-9_./-]*[A-Za-z0-9_]' \
        $documents | tr -d '`' | sort -u); do
        [ -e "$path" ] || { echo "docs name $path, which is not there"; status=1; }
done
for page in docs/decisions/*.md; do
        [ "$(wc -l <"$page")" -le 20 ] || [ "$page" = docs/decisions/README.md ] ||
                { echo "$page: more than 20 lines"; status=1; }
        grep -qF "($(basename "$page"))" docs/decisions/README.md ||
                [ "$page" = docs/decisions/README.md ] ||
                { echo "docs/decisions/README.md does not list $page"; status=1; }
done
# Tests of this build, without the backend in parentheses. A build may lack some of meson.build.
# What has no slots is a program for others. tests/proof/models is a folder.
sed 's/"name": "/\n&/g' "$STOOK_BUILD/meson-info/intro-tests.json" |
        sed -nE 's/^"name": "([^"( ]*).*/\1/p' | sort -u >"$STOOK_BUILD/names-of-tests"
suites='abi|checker|contract|cpp|death|fork|fuzz|model|oom|preload|proof|race|soak|unit'
for name in $({
        grep -ohE "\`($suites)/[a-z0-9_/-]+( \([a-z]+\))?\`" $documents
        grep -ohE "meson test (-C [a-z]+ )?'?[a-z]+/[a-z0-9_/-]+" \
                $documents
        } | sed -E "s/^meson test (-C [a-z]+ )?//; s/ \(.*//; s/[\`']//g" | sort -u); do
        grep -qxF "$name" "$STOOK_BUILD/names-of-tests" || [ -d "tests/$name" ] ||
                grep -rhF "'name': '$name'" --include=meson.build tests |
                grep -vqF "'slots': []" ||
                { echo "docs name the test $name, which is not there"; status=1; }
done
rm -f "$STOOK_BUILD/names-of-tests"
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
grep -nE '[A-Za-z0-9._-]+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]+' SECURITY.md $documents \
        packaging/debian/* packaging/conan/* packaging/vcpkg/* rust/*/Cargo.toml \
        2>/dev/null | grep -v '\.invalid>' &&
        { echo "the project has no address for mail"; status=1; }
exit $status
