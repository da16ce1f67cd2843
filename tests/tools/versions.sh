#!/bin/sh
# Proves that every file which names Stook's version names that of meson.build, and that NEWS.md has
# a heading for it; and that a file which lags behind is found.
set -eu

version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$STOOK_SOURCE/meson.build" | head -n 1)
[ -n "$version" ] || { echo "meson.build has no version"; exit 1; }

# names FILE EXPRESSION: what `sed` takes as the version out of a file
names() {
        found=$(sed -n "$2" "$1" | head -n 1)
        [ "$found" = "$version" ] || { echo "$1: '$found', meson.build: '$version'"; return 1; }
}

# compare FOLDER
compare() {
        fault=0
        names "$1/packaging/debian/changelog" '1s/^stook (\([^-)]*\).*/\1/p' || fault=1
        names "$1/packaging/vcpkg/vcpkg.json" 's/^ *"version": "\(.*\)",*/\1/p' || fault=1
        names "$1/packaging/conan/conanfile.py" 's/^ *version = "\(.*\)"/\1/p' || fault=1
        names "$1/rust/stook/Cargo.toml" 's/^version = "\(.*\)"/\1/p' || fault=1
        names "$1/rust/stook-sys/Cargo.toml" 's/^version = "\(.*\)"/\1/p' || fault=1
        grep -q "^## $version" "$1/NEWS.md" || { echo "NEWS.md: no heading $version"; fault=1; }
        return $fault
}
compare "$STOOK_SOURCE"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/rust"
cp -r "$STOOK_SOURCE/packaging" "$STOOK_SOURCE/NEWS.md" "$work"
for crate in stook stook-sys; do
        mkdir "$work/rust/$crate"
        cp "$STOOK_SOURCE/rust/$crate/Cargo.toml" "$work/rust/$crate"
done
compare "$work"
for file in packaging/debian/changelog packaging/vcpkg/vcpkg.json packaging/conan/conanfile.py \
        rust/stook/Cargo.toml rust/stook-sys/Cargo.toml NEWS.md; do
        sed -i.whole "s/$version/9.9.9/" "$work/$file"
        if compare "$work" >/dev/null; then echo "$file: a wrong version is not found"; exit 1; fi
        mv "$work/$file.whole" "$work/$file"
done
echo "every file names $version"
