#!/bin/sh
# Proves that tools/check-words finds each word that the glossary refuses, in each kind of file, as
# a part of a name, over two lines and in a file's name; that exceptions hold where they say, and
# nowhere else; and that it refuses a glossary without words, a tree without files, and exceptions
# that excuse nothing.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check=$STOOK_SOURCE/tools/check-words

# ends STATUS WANTED...: how the check of the tree ends, and what lines it prints
ends() {
        status=0
        "$check" "$work/tree" >"$work/out" 2>&1 || status=$?
        want=$1
        shift
        for line in "$@"; do
                grep -qF -- "$line" "$work/out" || status="$status without \"$line\""
        done
        if [ "$status" != "$want" ]; then
                cat "$work/out"
                echo "status $status, not $want"
                exit 1
        fi
}

# glossary [EXCEPTION...]: a tree with a glossary that refuses three words, and one sound file
glossary() {
        rm -rf "$work/tree"
        mkdir -p "$work/tree/docs" "$work/tree/src/good"
        {
                printf '%s\n' 'Text with `frob` in it.' '' '| word | meaning | not |' \
                        '|---|---|---|' \
                        '| plum | a fruit | `frob*`, `sour gage`, a hint |' \
                        '| pear | another | `quince` |' '' \
                        '| exception | is right in | because |' '|---|---|---|'
                for row in "$@"; do
                        printf '%s\n' "$row"
                done
        } >"$work/tree/docs/GLOSSARY.md"
        echo '/* A plum: a hint, quinces, afrob, gage. */' >"$work/tree/src/good/good.c"
}

# fault FILE TEXT WANTED: a file with TEXT is refused with WANTED
fault() {
        glossary
        mkdir -p "$(dirname "$work/tree/$1")"
        printf '%b\n' "$2" >"$work/tree/$1"
        ends 1 "$3" ' 1 faults'
}

glossary
ends 0 '3 refused words, 1 files, 0 faults'

fault src/a.c '/* one\n * frob */' 'src/a.c:2: "frob": say plum'
fault src/a.h '// a Quince' 'src/a.h:1: "Quince": say pear'
fault include/a.h '/* Frobs. */' '"Frobs"'
fault dropin/a.S 'frob_one:' '"frob"'
fault maple/a.c 'int one_quince;' '"quince"'
fault urcu/a.c '#define QUINCE 1' '"QUINCE"'
fault cli/a.c 'say("a quince");' '"quince"'
fault tests/a.pml '/* quince */' '"quince"'
fault tests/meson.build '# quince' '"quince"'
fault bench/a.py '"""quince"""' '"quince"'
fault tools/a '# quince' '"quince"'
fault docs/a.md 'A quince.' 'docs/a.md:1'
fault man/a.3 'quince' '"quince"'
fault README.md 'quince' '"quince"'
fault CONTRIBUTING.md 'quince' '"quince"'
fault NEWS.md 'quince' '"quince"'
fault src/a.c '/* a sour\n * gage */' '"sour * gage"'
fault docs/a.md 'a sour\ngage' '"sour gage"'
fault src/frob_bin.c 'x' 'src/frob_bin.c: its name'

# A name in code type is no prose.
glossary
echo 'The option `quince` is gone.' >"$work/tree/NEWS.md"
ends 0 ' 0 faults'

# Exceptions: a folder, a file, a name.
glossary '| `quince` | `src/good`, `src/one.c`, `stook_quince_eat` | fruit |'
echo '/* quince */' >"$work/tree/src/good/more.c"
echo '/* quince */' >"$work/tree/src/one.c"
echo 'stook_quince_eat();' >"$work/tree/src/two.c"
ends 0 ' 0 faults'
echo 'stook_quince_eats();' >"$work/tree/src/two.c"
ends 1 'src/two.c:1: "quince"' 'quince is right in stook_quince_eat: nothing uses it' ' 2 faults'
glossary '| `quince` | `src/good` | fruit |'
ends 1 'quince is right in src/good: nothing uses it' ' 1 faults'
glossary '| `quince` | `src/none` | fruit |'
ends 1 'quince is right in src/none, which is not there'
glossary '| `apple` | `src/good` | fruit |'
ends 1 'exception for apple, which is not refused'

# Nothing to look for, and nothing to look at.
glossary
sed -i 's/`//g' "$work/tree/docs/GLOSSARY.md"
ends 1 'refuses no word'
glossary
rm -r "$work/tree/src"
ends 1 'looked at nothing'

# The words of this tree's glossary: each is found in a comment of a file of its own.
rm -rf "$work/tree"
mkdir -p "$work/tree/docs" "$work/tree/src"
sed '/^## Exceptions/,$d' "$STOOK_SOURCE/docs/GLOSSARY.md" >"$work/tree/docs/GLOSSARY.md"
"$check" --words "$STOOK_SOURCE" >"$work/words"
words=0
while read -r word; do
        words=$((words + 1))
        echo "/* A $(echo "$word" | tr -d '*') here. */" >"$work/tree/src/$words.c"
        set -- "$@" "src/$words.c:1: "
done <"$work/words"
ends 1 " $words refused words, $words files, $words faults" "$@"
[ "$words" -ge 25 ] || { echo "only $words words are refused"; exit 1; }
for row in stride 'get / put' evacuate 'reap idle' precharge; do
        grep -qE "^\\| $row[ ,].*\\|[^|]*\`[^|]*\\|\$" "$STOOK_SOURCE/docs/GLOSSARY.md" || {
                echo "the row of $row refuses no word"
                exit 1
        }
done
