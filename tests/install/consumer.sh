#!/bin/sh
# Proves that an installed tree is complete, and that a stranger's program builds and runs on it: by
# pkg-config, shared and static; by CMake; with each header alone, as C and as C++.
set -eu
unset LD_LIBRARY_PATH                           # Meson's would show the build folder

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
DESTDIR=$work/root meson install -C "$STOOK_BUILD" --no-rebuild --quiet
prefix=$work/root$(meson introspect --buildoptions "$STOOK_BUILD" |
        /usr/bin/python3 -c 'import json, sys
print([o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"][0])')
cc=${CC:-cc}

one() { find "$prefix" -name "$1" | grep . || { echo "not installed: $1" >&2; exit 1; }; }

libdir=$(dirname "$(one libstook.so)")
one libstook.a >/dev/null
one libstook.so.0 >/dev/null
one libstook-malloc.so >/dev/null
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
                        stook_maple_cursor_erase(&cursor);
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

if ! command -v cmake >/dev/null; then
        echo "cmake is not installed; its package is not tried"
        exit 0
fi
mkdir "$work/consumer"
cp "$STOOK_SOURCE/examples/points.c" "$work/maple.c" "$work/consumer"
cat >"$work/consumer/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.13)
project(consumer C)
find_package(stook 0.1 REQUIRED)
add_executable(shared points.c)
target_link_libraries(shared stook::stook)
add_executable(static points.c)
target_link_libraries(static stook::static)
add_executable(maple maple.c)
target_link_libraries(maple stook::maple)
EOF
if [ -e "$work/urcu.c" ]; then
        cp "$work/urcu.c" "$work/consumer"
        cat >>"$work/consumer/CMakeLists.txt" <<'EOF'
add_executable(urcu urcu.c)
target_link_libraries(urcu stook::urcu)
EOF
fi
cmake -S "$work/consumer" -B "$work/consumer/build" -DCMAKE_PREFIX_PATH="$prefix" \
        >"$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
cmake --build "$work/consumer/build" >"$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
"$work/consumer/build/shared" | cmp - "$work/out"
"$work/consumer/build/static" | cmp - "$work/out"
LD_LIBRARY_PATH=$libdir "$work/consumer/build/maple"
[ ! -e "$work/urcu.c" ] || LD_LIBRARY_PATH=$libdir "$work/consumer/build/urcu"

# A release that this one cannot stand in for is refused.
sed -i 's/stook 0.1 /stook 99.0 /' "$work/consumer/CMakeLists.txt"
if cmake -S "$work/consumer" -B "$work/consumer/build2" -DCMAKE_PREFIX_PATH="$prefix" \
        >"$work/cmake.log" 2>&1; then
        echo "find_package(stook 99.0) was satisfied"
        exit 1
fi
