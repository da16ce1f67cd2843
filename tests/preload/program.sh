#!/bin/bash
# Proves that real programs run on the drop-in as they do without it: each is run both ways; exit
# status and what it prints must be the same, and the mapping list of the process must show the
# library.
#
#   program.sh NAME         one of the functions run_NAME below
#
# A program that is not installed is skipped, with a word.
set -u
drop_in=$STOOK_BUILD/libstook-malloc.so
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C HOME=$work

need() {
        local program
        for program; do
                command -v "$program" >/dev/null ||
                        { echo "skipped: $program is not installed"; exit 77; }
        done
}
failed() { echo "FAILED: $*"; exit 1; }

# on COMMAND...: on the drop-in, if $with is set; a server's process must be replaced by it, hence
# exec
on() { if [ -n "$with" ]; then LD_PRELOAD=$drop_in exec "$@"; else exec "$@"; fi; }

# mapped PID: is the library in the process?
mapped() {
        [ -z "$with" ] || grep -q "${drop_in##*/}" "/proc/$1/maps" ||
                failed "process $1 does not have the drop-in"
}

run_true() {
        on cat /proc/self/maps | grep -c libstook-malloc.so >maps
        [ -z "$with" ] || [ "$(cat maps)" -gt 0 ]
}

# Part of its own test suite. The lines that tell times and load are left out. It sends itself
# SIGINT, which is ignored below a shell's `&`.
run_python3() {
        (on /usr/bin/python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])' -X faulthandler -m test -q test_json \
                test_dict test_list test_set test_threading) >log 2>&1
        local status=$?
        [ $status = 0 ] || tail -30 log >&2
        grep -E '^(Result|Tests result|All [0-9]+ tests OK)|^[0-9]+ tests? (failed|OK)' log
        return $status
}

# An allocation-heavy program with threads, sorting, dictionaries, and every object on malloc.
run_python3_malloc() {
        (export PYTHONMALLOC=malloc; on /usr/bin/python3 - <<'PROGRAM'
import hashlib, json, threading, zlib
def work(n, out):
    d = {}
    for i in range(20000):
        d[str(i * n)] = [i, str(i) * (i % 50), {"k": i}]
        if i % 3 == 0:
            d.pop(str(i * n // 2), None)
    text = json.dumps(d, sort_keys=True)
    out[n] = hashlib.sha256(zlib.compress(text.encode())).hexdigest()
out = {}
threads = [threading.Thread(target=work, args=(n, out)) for n in range(1, 5)]
[t.start() for t in threads]
[t.join() for t in threads]
big = bytearray()
for i in range(2000):
    big += bytes([i % 256]) * 4096
print(sorted(out.items()), hashlib.sha256(big).hexdigest())
PROGRAM
        )
}

# Servers listen on sockets in $work: a port may be taken, by another run of this test, too.
run_redis() {
        local socket=$work/socket server status
        (on redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no --dir "$work") \
                >server.log 2>&1 &
        server=$!
        for _ in $(seq 600); do
                redis-cli -s "$socket" ping >/dev/null 2>&1 && break
                sleep 0.1
        done
        mapped $server
        redis-benchmark -s "$socket" -n 20000 -c 50 -t set,get,lpush,lrange_100 -d 200 -q \
                >bench.log 2>&1 ||
                { cat bench.log server.log >&2; return 1; }
        redis-cli -s "$socket" eval 'for i = 1, 20000 do '\
'redis.call("hset", "h" .. i % 100, "f" .. i, string.rep("x", i % 300)) '\
'end return redis.call("dbsize")' 0
        redis-cli -s "$socket" debug digest 2>&1 | cut -c1-20
        redis-cli -s "$socket" hlen h7
        redis-cli -s "$socket" memory purge
        redis-cli -s "$socket" shutdown nosave >/dev/null 2>&1
        wait $server
        status=$?
        [ $status = 0 ] || cat server.log >&2
        return $status
}

run_sqlite3() {
        (on sqlite3 :memory: <<'SQL'
create table t(a integer primary key, b text, c blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
  insert into t select i, printf('%08x', i * 2654435761 % 4294967296), zeroblob(i % 100) from n;
create index tb on t(b);
select count(distinct b), sum(length(c)), max(b) from t;
delete from t where a % 3 = 0;
vacuum;
select count(*), group_concat(substr(b, 1, 2), '') from (select b from t order by b limit 50);
pragma integrity_check;
SQL
        )
}

# A large file made of many functions, then the same object file.
run_gcc() {
        local i
        for i in $(seq 400); do
                echo "struct s$i { int a[$((i % 40 + 1))]; struct s$i *next; };"
                echo "int f$i(struct s$i *p, int n) { int r = $i; for (int i = 0; i < n; i++) {" \
                        "r = r * 31 + p->a[i % $((i % 40 + 1))]; if (r % 7 == 3) p = p->next;" \
                        "switch (r & 7) { case 1: r ^= n; break;" \
                        "case 5: r += f$((i > 1 ? i - 1 : 1))((void *)p, i); break;" \
                        "default: r -= i; } } return r; }"
        done >large.c
        (on gcc -w -O2 -c large.c -o large.o) && cksum <large.o
}

run_git() {
        local i
        git_() {
                (on git -c user.name=n -c user.email=e@example.org -c init.defaultBranch=m \
                        -c gc.autoDetach=false "$@")
        }
        export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
        mkdir repository && cd repository || return 1
        git_ init -q || return 1
        for i in $(seq 300); do seq "$i" $((i * 7)) >"file$i"; done
        git_ add . && git_ commit -qm first || return 1
        for i in $(seq 1 3 300); do echo more >>"file$i"; done
        git_ commit -qam second || return 1
        git_ gc -q --aggressive && git_ fsck --full 2>&1 && git_ rev-parse HEAD &&
                git_ diff --stat HEAD~ | tail -1
        local status=$?
        cd .. && rm -rf repository
        return $status
}

# With glibc it takes far longer: only the exit status and the verdict are compared, of a small run.
run_stress_ng() {
        (on stress-ng --malloc 2 --malloc-bytes 32m --malloc-ops 1000 --verify --timeout 60) \
                >log 2>&1
        local status=$?
        grep -o 'successful run completed' log
        [ $status = 0 ] || cat log >&2
        return $status
}

# memcached, nginx: threads and event loops.
run_memcached() {
        local socket=$work/socket server status
        (on memcached -u root -s "$socket" -t 4) >server.log 2>&1 &
        server=$!
        for _ in $(seq 600); do
                memcping --servers="$socket" >/dev/null 2>&1 && break
                sleep 0.1
        done
        mapped $server
        memcslap --servers="$socket" --concurrency=8 --execute-number=2000 \
                --test=set >slap.log
        status=$?
        grep -o 'set *[0-9]* keys' slap.log     # it ends with 0 whatever was refused
        kill -TERM $server
        wait $server
        echo "memcslap $status"
        return $status
}

# Its extensions are opened with RTLD_DEEPBIND; each that is installed is used.
run_php() {
        (on php -d opcache.enable_cli=0 <<'PROGRAM'
<?php
$all = get_loaded_extensions(); sort($all); echo implode(" ", $all), "\n";
$kept = [];
for ($i = 0; $i < 200000; $i++) {
    $kept[$i % 5003] = str_repeat(chr(65 + $i % 26), $i % 700);
    if ($i % 7 == 0) unset($kept[$i * 31 % 5003]);
}
ksort($kept); echo md5(serialize($kept)), "\n";
for ($i = 0; $i < 300; $i++) {
    $text = json_encode(array_fill(0, $i, "x$i"));
    if (preg_match_all('/x(\d+)/', $text, $found) != $i) echo "preg\n";
    if (function_exists('iconv')) $text = iconv('UTF-8', 'UTF-16', $text);
    if (function_exists('token_get_all')) token_get_all("<?php echo $i + 1;");
    if (function_exists('gettext')) gettext("message $i");
    if (class_exists('finfo')) (new finfo(FILEINFO_MIME))->buffer($text);
    if (class_exists('SQLite3')) new SQLite3(':memory:');
}
echo "done\n";
PROGRAM
        )
}

case $1 in
        python3) [ -x /usr/bin/python3 ] || { echo "skipped: no /usr/bin/python3"; exit 77; }
                 /usr/bin/python3 -c 'import test.test_json' 2>/dev/null ||
                         { echo "skipped: python3's test suite is not installed"; exit 77; } ;;
        python3_malloc) [ -x /usr/bin/python3 ] ||
                         { echo "skipped: no /usr/bin/python3"; exit 77; } ;;
        redis) need redis-server redis-benchmark redis-cli ;;
        sqlite3) need sqlite3 ;;
        gcc) need gcc ;;
        git) need git ;;
        stress_ng) need stress-ng ;;
        memcached) need memcached memcslap memcping ;;
        php) need php ;;
        true) ;;
        *) echo "program.sh: no such program: $1"; exit 1 ;;
esac

with='' && "run_$1" >"$work/without.out" 2>"$work/without.err"
status_without=$?
with=yes && "run_$1" >"$work/with.out" 2>"$work/with.err"
status_with=$?
if [ $status_without != $status_with ]; then
        tail -40 "$work/with.err"
        failed "$1: exit status $status_with on the drop-in, $status_without without"
fi
if ! diff "$work/without.out" "$work/with.out"; then
        tail -20 "$work/with.err"
        failed "$1: other output on the drop-in"
fi
[ $status_with = 0 ] || tail -40 "$work/with.err"
[ $status_with = 0 ] || failed "$1: ends with status $status_with, with and without the drop-in"
[ -s "$work/with.out" ] || [ "$1" = true ] || failed "$1: printed nothing: nothing was compared"
grep -q stook: "$work/with.err" && { cat "$work/with.err"; failed "$1: the library complained"; }
echo "$1: the same with and without the drop-in"
