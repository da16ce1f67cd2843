#!/bin/sh
# Proves that tools/check-format refuses a line of 101 columns, counts such lines, takes a tab for 8
# columns, and lets through what cannot be broken: a row of a table, a word of its own.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check=$STOOK_SOURCE/tools/check-format

# words COUNT: so many words of 9 letters, and a space behind each
words() { seq "$1" | sed 's/.*/abcdefghi /' | tr -d '\n'; }

# ends STATUS FILE WANTED: how the check of a file ends, and what its last line holds
ends() {
        status=0
        "$check" "$2" >"$work/out" || status=$?
        if [ "$status" != "$1" ] || ! tail -n 1 "$work/out" | grep -q "$3"; then
                cat "$work/out"
                echo "$2: status $status, not $1 with \"$3\""
                exit 1
        fi
}

printf '%s\n' "$(words 10)" >"$work/100.c"
ends 0 "$work/100.c" ' 0 lines'
printf '%sx\nshort\n%sx\n' "$(words 10)" "$(words 12)" >"$work/101.c"
ends 1 "$work/101.c" ' 2 lines'
printf '\t%s\n' "$(words 10)" >"$work/tab.c"
ends 1 "$work/tab.c" ' 1 lines'
printf '| %s | %s |\n' "$(words 8)" "$(words 8)" >"$work/table.md"
ends 0 "$work/table.md" ' 0 lines'
cp "$work/table.md" "$work/table.c"
ends 1 "$work/table.c" ' 1 lines'
printf ' * https://example.org/%s\n' "$(words 12 | tr -d ' ')" >"$work/address.c"
ends 0 "$work/address.c" ' 0 lines'
command -v clang-format-19 >/dev/null || { echo "no clang-format-19: --style is left out"; exit 0; }
printf 'int f(void)\n{\n        return 1;\n}\n' >"$work/style.c"
"$check" --style "$work/style.c"
printf 'int f(void) {\n  return 1;\n}\n' >"$work/style.c"
if "$check" --style "$work/style.c"; then
        echo "another style is not noticed"
        exit 1
fi
