#!/bin/sh
# Proves that an installed tree is complete, and that a stranger's program builds and runs on it: by
# pkg-config, shared and static; by CMake, which refuses components that do not exist, and
# urcu_static without liburcu; with each header alone, as C and as C++. And that
# tools/make/uninstall leaves of it what is not of it.
set -eu
unset LD_LIBRARY_PATH                           # Meson's would show the build folder

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
DESTDIR=$work/root meson install -C "$STOOK_BUILD" --no-rebuild --quiet
cp "$STOOK_BUILD/meson-logs/install-log.txt" "$work"
prefix=$work/root$(meson introspect --buildoptions "$STOOK_BUILD" |
        /usr/bin/python3 -c 'import json, sys
print([o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"][0])')
cc=${CC:-cc}

one() { find "$prefix" -name "$1" | grep . || { echo "not installed: $1" >&2; exit 1; }; }

libdir=$(dirname "$(one libstook.so)")
one libstook.a >/dev/null
one libstook.so.0 >/dev/null
one libstook-malloc.so >/dev/null
one libstook-malloc.a >/dev/null
one libstook-maple.so.0 >/dev/null
one libstook-maple.a >/dev/null
one stook >/dev/null
if [ -e "$STOOK_BUILD/libstook-urcu.so" ]; then
        one libstook-urcu.so.0 >/dev/null
        one libstook-urcu.a >/dev/null
fi
for page in "$STOOK_SOURCE"/man/*.[1-9]; do
        one "$(basename "$page")" >/dev/null
done
for header in "$STOOK_SOURCE"/include/stook/*.h "$STOOK_SOURCE"/include/stook/*.hpp; do
        one "$(basename "$header")" >/dev/null
done

# A moved tree: pkg-config takes the prefix from where the file lies.
pc() { PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --define-variable=prefix="$prefix" "$@"; }
echo "stook.pc: $(pc --modversion stook)"
# shellcheck disable=SC2046 # flags are words
$cc -o "$work/shared" "$STOOK_SOURCE/examples/points.c" $(pc --cflags --libs stook)
LD_LIBRARY_PATH=$libdir "$work/shared" | tee "$work/out"
grep -q '^a point at (0, 0)$' "$work/out"
# shellcheck disable=SC2046
$cc -o "$work/static" "$STOOK_SOURCE/examples/points.c" $(pc --cflags stook) "$libdir/libstook.a"
"$work/static" | cmp - "$work/out"
# What works at exit alone is in the archive, too, though no call leads there.
STOOK_PRINT=exit "$work/static" 2>&1 >"$work/nothing" | grep -q 'backend'

# The drop-in, linked instead of preloaded.
cat >"$work/malloc.c" <<'EOF'
#include <stook/malloc.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
        void *ours = malloc(100);
        char *libcs = strdup("libc's own calls of malloc, too");
        return !stook_owns(ours) || !stook_owns(libcs);
}
EOF
# shellcheck disable=SC2046
$cc -o "$work/malloc" "$work/malloc.c" $(pc --cflags --libs stook-malloc)
LD_LIBRARY_PATH=$libdir "$work/malloc"
echo 'int main(void) { return 0; }' >"$work/empty.c"
if $cc -static -o "$work/empty" "$work/empty.c" 2>/dev/null; then
        # shellcheck disable=SC2046
        $cc -static -o "$work/malloc-static" "$work/malloc.c" \
                $(pc --static --cflags --libs stook-malloc) 2>"$work/ld.log" ||
                { cat "$work/ld.log"; exit 1; }
        "$work/malloc-static"
else
        echo "no static C library here; wholly static programs are not tried"
fi
# The same archives in a program that is otherwise a dynamic one.
# shellcheck disable=SC2046
$cc -o "$work/malloc-inside" "$work/malloc.c" $(pc --cflags stook) \
        "$libdir/libstook-malloc.a" "$libdir/libstook.a"
"$work/malloc-inside"

if [ -e "$STOOK_BUILD/libstook-urcu.so" ]; then
        printf '%s\n' '#include <stook/rcu.h>' \
                'int main(void) { return stook_rcu_use(&stook_urcu_memb); }' >"$work/urcu.c"
        # shellcheck disable=SC2046
        $cc -o "$work/urcu" "$work/urcu.c" $(pc --cflags --libs stook-urcu)
        LD_LIBRARY_PATH=$libdir "$work/urcu"
        # Statically it needs liburcu, which pkg-config has to name.
        # shellcheck disable=SC2046
        $cc -o "$work/urcu-static" "$work/urcu.c" $(pc --cflags stook) \
                "$libdir/libstook-urcu.a" "$libdir/libstook.a" \
                $(pc --static --libs stook-urcu | tr ' ' '\n' | grep '^-lurcu')
        "$work/urcu-static"
fi

# The maple tree is a library of its own.
cat >"$work/maple.c" <<'EOF'
#include <stook/maple.h>
static struct stook_maple tree = STOOK_MAPLE_INIT(STOOK_MAPLE_GAPS);
int main(void)
{
        uint64_t start = 0;
        int error = stook_maple_alloc(&tree, &tree, 100, 10, 1000, &start);
        return error || start != 10 || stook_maple_load(&tree, 109) != &tree ||
               stook_maple_load(&tree, 110);
}
EOF
# shellcheck disable=SC2046
$cc -o "$work/maple" "$work/maple.c" $(pc --cflags --libs stook-maple)
LD_LIBRARY_PATH=$libdir "$work/maple"
# shellcheck disable=SC2046
$cc -pthread -o "$work/maple-static" "$work/maple.c" $(pc --cflags stook) \
        "$libdir/libstook-maple.a" "$libdir/libstook.a"
"$work/maple-static"

# In C++ a loop's variable has the type of the entries, as in C.
if command -v c++ >/dev/null; then
        cat >"$work/loops.cc" <<'EOF'
#include <stook/maple.h>
static stook_maple tree = STOOK_MAPLE_INIT(0);
struct thing { uint64_t number; };
int main()
{
        thing things[3] = { { 1 }, { 2 }, { 3 } }, *one;
        uint64_t key = 0, sum = 0;

        for (thing &t : things)
                if (stook_maple_store(&tree, t.number * 10, t.number * 10 + 4, &t))
                        return 1;
        stook_maple_for_each(&tree, one, key, UINT64_MAX)
                sum += one->number;
        STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);
        stook_maple_lock(&tree);
        stook_maple_cursor_for_each(&cursor, one, UINT64_MAX)
                if (cursor.first == one->number * 10)
                        stook_maple_cursor_erase(&cursor, NULL);
        stook_maple_cursor_for_each_rev(&cursor, one, 0)
                sum += 100;
        stook_maple_unlock(&tree);
        return sum != 6 || !stook_maple_empty(&tree);
}
EOF
        # shellcheck disable=SC2046
        c++ -std=c++17 -Wall -Wextra -Werror -pedantic-errors -o "$work/loops" "$work/loops.cc" \
                $(pc --cflags --libs stook-maple)
        LD_LIBRARY_PATH=$libdir "$work/loops"
        # shellcheck disable=SC2046
        c++ -std=c++17 -pthread -o "$work/cpp" "$STOOK_SOURCE/examples/cpp.cc" \
                $(pc --cflags --libs stook-maple)
        LD_LIBRARY_PATH=$libdir "$work/cpp" >"$work/cpp.out"
fi

for header in "$prefix"/include/stook/*.h; do
        name=$(basename "$header")
        printf '#include <stook/%s>\nint here;\n' "$name" >"$work/header.c"
        $cc -std=c11 -Wall -Wextra -Werror -pedantic-errors -I"$prefix/include" \
                -fsyntax-only "$work/header.c" || {
                echo "<stook/$name> does not stand alone in C11"; exit 1; }
        if command -v c++ >/dev/null; then
                cp "$work/header.c" "$work/header.cc"
                c++ -std=c++17 -Wall -Wextra -Wshadow -Werror -pedantic-errors -I"$prefix/include" \
                        -fsyntax-only "$work/header.cc" || {
                        echo "<stook/$name> does not stand alone in C++17"; exit 1; }
        fi
done

# The list of what was installed lies in the build folder, which other tests use: in a copy of it.
uninstalled() {
        mkdir -p "$work/log/meson-logs"
        cp "$work/install-log.txt" "$work/log/meson-logs"
        touch "$prefix/include/stook/other.h"
        [ ! -d "$prefix/libexec/stook/bench" ] || mkdir -p "$prefix/libexec/stook/bench/results"
        "$STOOK_SOURCE/tools/make/uninstall" "$work/log"
        left=$(find "$work/root" ! -type d)
        [ "$left" = "$prefix/include/stook/other.h" ] || { echo "left: $left"; exit 1; }
        [ ! -d "$prefix/libexec" ] || { echo "left: $prefix/libexec"; exit 1; }
        rm "$left"
        if "$STOOK_SOURCE/tools/make/uninstall" "$work/log" 2>/dev/null; then
                echo "uninstalled twice"
                exit 1
        fi
}

if ! command -v cmake >/dev/null; then
        echo "cmake is not installed; its package is not tried"
        uninstalled
        exit 0
fi
mkdir "$work/consumer"
cp "$STOOK_SOURCE/examples/points.c" "$work/maple.c" "$work/malloc.c" "$work/consumer"
# PROGRAM:TARGET:SOURCE
programs="shared:stook:points static:static:points maple:maple:maple
        maple-static:maple_static:maple malloc:malloc:malloc malloc-static:malloc_static:malloc"
components="stook static maple maple_static malloc malloc_static"
if [ -e "$work/urcu.c" ]; then
        cp "$work/urcu.c" "$work/consumer"
        programs="$programs urcu:urcu:urcu urcu-static:urcu_static:urcu"
        components="$components urcu urcu_static"
fi
project() {
        printf 'cmake_minimum_required(VERSION 3.13)\nproject(consumer C)\n%s\n' "$1"
        for program in $2; do
                name=${program%%:*} rest=${program#*:}
                printf 'add_executable(%s %s.c)\ntarget_link_libraries(%s stook::%s)\n' \
                        "$name" "${rest#*:}" "$name" "${rest%:*}"
        done
}
configure() {
        cmake -S "$work/consumer" -B "$work/consumer/$1" -DCMAKE_PREFIX_PATH="$prefix" \
                >"$work/cmake.log" 2>&1
}
project "find_package(stook 0.2 REQUIRED COMPONENTS $components)" "$programs" \
        >"$work/consumer/CMakeLists.txt"
configure build || { cat "$work/cmake.log"; exit 1; }
cmake --build "$work/consumer/build" >"$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
for program in $programs; do
        LD_LIBRARY_PATH=$libdir "$work/consumer/build/${program%%:*}" >"$work/printed" ||
                { echo "CMake: $program failed"; exit 1; }
        case $program in
        *:points) cmp "$work/printed" "$work/out" ;;
        esac
done

# A release that this one cannot stand in for is refused, and a component that there is not.
refused() {
        project "${4-}
find_package(stook $1)" "" >"$work/consumer/CMakeLists.txt"
        if configure "$2"; then echo "find_package(stook $1) was satisfied"; exit 1; fi
        grep -q "$3" "$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
}
refused "99.0 REQUIRED" build2 "version"
refused "0.2 REQUIRED COMPONENTS maple peach" build3 "stook has no component peach"
[ ! -e "$work/urcu.c" ] || refused "0.2 REQUIRED COMPONENTS urcu urcu_static" build5 liburcu-dev \
        'set(CMAKE_FIND_LIBRARY_PREFIXES none)  # finds no library'
project "find_package(stook 0.2 OPTIONAL_COMPONENTS peach)
if(NOT stook_FOUND OR stook_peach_FOUND)
  message(FATAL_ERROR \"an optional component\")
endif()" "" >"$work/consumer/CMakeLists.txt"
configure build4 || { cat "$work/cmake.log"; exit 1; }
uninstalled
