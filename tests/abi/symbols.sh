#!/bin/sh
# Proves that what is built exports, imports and needs exactly what it should; and that
# tools/check-symbols refuses a library that does not: one with a name too many, too much
# thread-local storage, or a point for tests.
set -eu

"$STOOK_SOURCE/tools/check-symbols" "$STOOK_BUILD"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}

# Builds a wrong libstook.so from @1, beside the good other two, and wants the fault @2 told.
refused() {
        printf '%s\n' "$1" >"$work/wrong.c"
        printf 'STOOK_0.2 { global: stook_*; local: *; };\n' >"$work/all.sym"
        $cc -shared -fPIC -ftls-model=initial-exec -Wl,-soname,libstook.so.0 \
                -Wl,-z,now -Wl,-z,nodelete -Wl,--version-script="$work/all.sym" \
                -o "$work/libstook.so" "$work/wrong.c"
        cp "$STOOK_BUILD"/libstook.a "$STOOK_BUILD"/libstook-malloc.so \
                "$STOOK_BUILD"/libstook-maple.so "$STOOK_BUILD"/libstook-maple.a \
                "$STOOK_BUILD"/libstook-malloc.a "$work"
        if "$STOOK_SOURCE/tools/check-symbols" "$work" >"$work/out"; then
                echo "not refused: $1"
                exit 1
        fi
        grep -q "$2" "$work/out" || {
                cat "$work/out"; echo "refused for another reason: $1"; exit 1; }
}

refused 'void stook_one_too_many(void) { }' 'exports stook_one_too_many'
refused '__thread char stook_thread_v1[65]; char *stook_find(void) { return stook_thread_v1; }' \
        '65 bytes of static TLS'
refused 'static int stook_inject_nth; int stook_find(void) { return stook_inject_nth++; }' \
        'has stook_inject_nth, which only builds for tests may have'
refused 'int puts(const char *); int stook_say(void) { return puts("x"); }' 'calls puts'
