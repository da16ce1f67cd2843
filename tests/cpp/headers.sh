#!/bin/sh
# Proves that <stook/stook.hpp> compiles without a warning in C++17, 20 and 23 as far as the
# compilers know them, without exceptions and run-time types, too; that each header stands alone;
# and that a program of two files links, so nothing is defined twice. <stook/inline.h>, which C++
# programs include before it, is held to the same.
set -eu
command -v c++ >/dev/null || { echo "no C++ compiler"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
include="-I$STOOK_SOURCE/include -I$STOOK_BUILD/include"
warnings='-Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Wnon-virtual-dtor
        -pedantic -Werror'

cat >"$work/all.cc" <<'END'
#include <stook/stook.hpp>
template class stook::object_cache<int>;
template class stook::object_sheaf<long>;
template class stook::object_pool<long>;
template class stook::allocator<int>;
template class stook::heap_allocator<int>;
template class stook::range_map<int>;
template class stook::range_map<const int>;
int main()
{
        return stook::cache() || stook::group() ? 1 : 0;
}
END
printf '#include <stook/stook.hpp>\nstook::cache more() { return {}; }\n' >"$work/more.cc"

# checked COMPILER STANDARD OPTION...
checked() {
        cxx=$1 standard=$2
        shift 2
        command -v "$cxx" >/dev/null || return 0
        # shellcheck disable=SC2086 # flags are words
        "$cxx" -std="$standard" "$@" $warnings $include -fsyntax-only "$work/all.cc" || {
                echo "$cxx -std=$standard $*: <stook/stook.hpp> does not compile"; exit 1; }
}
checked c++ c++17 -fno-exceptions -fno-rtti
checked c++ c++20
checked c++ c++23
checked clang++-19 c++17
checked clang++-19 c++23 -fno-exceptions -fno-rtti

printf '#include <stook/inline.h>\n#include <stook/stook.hpp>\n' >"$work/inlined.cc"
for cxx in c++ clang++-19; do
        command -v "$cxx" >/dev/null || continue
        # shellcheck disable=SC2086
        "$cxx" -std=c++17 $warnings -Wcast-align $include -fsyntax-only "$work/inlined.cc" || {
                echo "$cxx: <stook/inline.h> does not compile without warnings"; exit 1; }
done

if c++ -std=c++14 $include -fsyntax-only "$work/all.cc" 2>"$work/out" ||
                ! grep -q 'needs C++17' "$work/out"; then
        echo "C++14 is not refused as it should be"
        exit 1
fi
for header in "$STOOK_SOURCE"/include/stook/*.hpp; do
        name=$(basename "$header")
        printf '#include <stook/%s>\nint here;\n' "$name" >"$work/alone.cc"
        # shellcheck disable=SC2086
        c++ -std=c++17 $warnings $include -fsyntax-only "$work/alone.cc" || {
                echo "<stook/$name> does not stand alone"; exit 1; }
done
# shellcheck disable=SC2086
c++ -std=c++17 $include -o "$work/all" "$work/all.cc" "$work/more.cc" \
        -L"$STOOK_BUILD" -lstook -lstook-maple -Wl,-rpath,"$STOOK_BUILD"
"$work/all"
