"""
bench/measure/programs.py - real programs on each allocator

Purpose: what a change of allocator does to programs that people run. The programs are those that
are installed; the others are named. Each is the distribution's binary, not a wrapper. And the
published allocation mixes of a fleet's programs (bench/data/fleet).
Place: run.py runs the suite `programs`.
Figures: user_s and system_s, processor time of the program and its children, and cpu_s, their sum;
seconds; peak_KiB, the most that one of its processes had resident, as the kernel counts it; faults,
pages that were faulted in without input. A server is measured from its start to its end, while a
client that runs on the C library's malloc asks it.
How: the kernel counts a process's most resident memory from before it executes the program, so a
small shell starts the program, ends, and leaves it to this process to wait for.
"""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import time

from engine import Failed, allowed, macro
from setting import cells, ours_sampled, preloaded

LIMIT_SECONDS = 120
LOOK_SECONDS = 0.005
MODULES = pathlib.Path(__file__).resolve().parent
SOURCE = MODULES.parents[1]
START = '"$@" >/dev/null 2>&1 & echo $!'
PR_SET_CHILD_SUBREAPER = 36
# The distribution's binaries first: elsewhere lie wrappers, of pyenv or ccache.
PATH = "/usr/bin:/usr/sbin:" + os.environ.get("PATH", "")


def binary(*names):
    """The first of these that is installed, or None."""
    return next(filter(None, (shutil.which(name, path=PATH) for name in names)), None)


class Program:
    """One program. `command(folder, quick)` -> words; `prepare(folder, quick)` makes what it reads;
    `client(folder, quick)`: it is a server, this asks it, and then it is told to end. `names`: what
    its binary may be called; the first that is there runs."""

    def __init__(self, name, command, names=None, needs=(), prepare=None, client=None,
                 environment=None):
        self.name, self.command, self.prepare, self.client = name, command, prepare, client
        self.names, self.needs, self.environment = names or [name], needs, environment or {}

    def is_quick(self, setting):
        """Whether a run gives it little work: what takes a second keeps all its work in --short."""
        return setting.quick and (setting.few or self.name not in BRIEF)

    def missing(self):
        """What of it is not installed, as a word or two; None if it is there."""
        return ", ".join(need for names in (self.names, *([n] for n in self.needs))
                         if not binary(*names) for need in names[:1]) or None

    def words(self, folder, quick):
        return [binary(*self.names), *map(str, self.command(folder, quick))]


def start(words, environment, folder):
    """The pid of a program that this process waits for, though a shell started it."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    own = {k: v for k, v in environment.items() if k != "LD_PRELOAD"}
    preload = [f"LD_PRELOAD={environment['LD_PRELOAD']}"] if "LD_PRELOAD" in environment else []
    return int(subprocess.run(["sh", "-c", START, "sh", "env", *preload, *words], cwd=folder,
                              env=own, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              check=True).stdout)


def watch(pid, deadline, is_over=lambda: False):
    """Waits until a process ends, or is_over() says so; its (status, usage), or None."""
    while not is_over():
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), usage
        if time.monotonic() > deadline:
            raise Failed("no end in the time it has")
        time.sleep(LOOK_SECONDS)
    return None


def is_loaded(pid, library):
    """Whether a process that runs has mapped the contender's library."""
    try:
        return os.path.realpath(library) in pathlib.Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def ask(pid, program, folder, quick, contender):
    """Lets the client ask a server, then ends the server; its usage."""
    client = subprocess.Popen(program.client(folder, quick), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        ended = watch(pid, time.monotonic() + allowed(LIMIT_SECONDS),
                      lambda: client.poll() is not None)
        if ended:
            raise Gone("the server ended early")
        if client.returncode:
            raise Failed("its client failed")
        if contender.library and not is_loaded(pid, contender.library):
            raise Failed("the server does not run on the preloaded library")
        os.kill(pid, signal.SIGTERM)
        # That it was told to end by a signal is no failure.
        return 0, watch(pid, time.monotonic() + allowed(LIMIT_SECONDS))[1]
    finally:
        if client.poll() is None:
            client.kill()
            client.wait()


class Gone(Failed):
    """The program failed, and was waited for."""


def measure(program, contender, folder, quick):
    begun = time.monotonic()
    pid = start(program.words(folder, quick), contender.environment() | program.environment,
                folder)
    try:
        status, usage = ask(pid, program, folder, quick, contender) if program.client else \
            watch(pid, begun + allowed(LIMIT_SECONDS))
    except Failed as why:
        if not isinstance(why, Gone):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        raise
    if status:
        raise Failed(f"{program.name} ended with status {status}")
    return {"seconds": time.monotonic() - begun, "user_s": usage.ru_utime,
            "system_s": usage.ru_stime, "cpu_s": usage.ru_utime + usage.ru_stime,
            "faults": usage.ru_minflt, "peak_KiB": usage.ru_maxrss}


# ---- the programs ----

def wait_for_socket(path):
    """Python of a client: waits until a server listens."""
    return ("import socket, sys, time\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "for _ in range(600):\n"
            "    try:\n"
            f"        s.connect({str(path)!r}); break\n"
            "    except OSError:\n"
            "        time.sleep(0.05)\n"
            "else:\n"
            "    sys.exit(1)\n")


def redis_client(folder, quick):
    """Sets and lists of values of 100 B to 10 KiB that grow and shrink, then counts."""
    rounds = 2 if quick else 10
    return [binary("python3"), "-c", wait_for_socket(folder / "redis") + f"""
f = s.makefile("rwb")
def call(commands):
    for words in commands:
        f.write(b"*%d\\r\\n" % len(words) +
                b"".join(b"$%d\\r\\n%s\\r\\n" % (len(w), w) for w in words))
    f.flush()
    for _ in commands:
        line = f.readline()
        if line[:1] == b"-" or not line:
            sys.exit(1)
for n in range({rounds}):
    for first in range(0, 5000, 100):
        size = 100 + (first * 7 + n * 1100) % 10000
        call([[b"SET", b"key:%d" % k, b"x" * size] for k in range(first, first + 100)])
        call([[b"RPUSH", b"list:%d" % (k % 50), b"y" * 40] for k in range(first, first + 100)])
"""]


def memcached_client(folder, quick):
    rounds = 3 if quick else 20
    return [binary("python3"), "-c", wait_for_socket(folder / "memcached") + f"""
f = s.makefile("rwb")
for n in range({rounds}):
    for first in range(0, 5000, 100):
        for k in range(first, first + 100):
            v = b"x" * (50 + (k * 13 + n * 331) % 4000)
            f.write(b"set k%d 0 0 %d\\r\\n%s\\r\\n" % (k, len(v), v))
        f.flush()
        for _ in range(100):
            if f.readline() != b"STORED\\r\\n":
                sys.exit(1)
"""]


def nginx_client(folder, quick):
    count = 2000 if quick else 20000
    return [binary("python3"), "-c", wait_for_socket(folder / "nginx.socket") + f"""
f = s.makefile("rwb")
for n in range({count}):
    f.write(b"GET /nginx.conf HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    f.flush()
    length = 0
    while (line := f.readline().strip()):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    if not length or len(f.read(length)) != length:
        sys.exit(1)
"""]


def nginx_configuration(folder, quick):
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log /dev/null;\n"
        "events {}\n"
        f"http {{ access_log off; keepalive_requests 1000000; "
        f"server {{ listen unix:{folder}/nginx.socket; root {folder}; }} }}\n")


def sqlite_script(folder, quick):
    rows = 30_000 if quick else 300_000
    (folder / "work.sql").write_text(
        "pragma journal_mode=off; create table t(k integer primary key, a text, b text);\n"
        f"with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})\n"
        "insert into t select i, hex(i * 7919 % 100003), printf('%d and %d', i, i * i) from n;\n"
        "create index by_a on t(a, b);\n"
        "select count(*), max(length(group_concat)) from (select group_concat(b) as group_concat\n"
        " from t group by substr(a, 1, 4));\n"
        "delete from t where k % 3 = 0; update t set b = b || a where k % 5 = 0;\n")


def c_source(folder, quick):
    """A file of many functions, for compilers."""
    functions = 40 if quick else 1000
    body = "".join(f"""
struct s{n} {{ int a; double b[{n % 7 + 1}]; struct s{n} *next; }};
static int f{n}(struct s{n} *p, int k)
{{
        int sum = {n};
        for (int i = 0; i < k; i++) {{
                sum += i % {n + 3} ? p->a * i : (int)p->b[i % {n % 7 + 1}];
                switch (sum % 5) {{ case 0: sum ^= k; break; case 1: sum <<= 1; break;
                case 2: return f{max(n - 1, 0)}_use(sum); default: p = p->next ? p->next : p; }}
        }}
        return sum;
}}
int f{n}_use(int k) {{ struct s{n} s = {{ k, {{ k }}, 0 }}; return f{n}(&s, k); }}
""" for n in range(functions))
    names = "".join(f"int f{n}_use(int);\n" for n in range(functions))
    (folder / "work.c").write_text(names + body)


def git_repository(folder, quick):
    """The library's sources, or where they are not, these modules, changed in many commits."""
    repository = folder / "repository"
    git = ["git", "-c", "user.name=b", "-c", "user.email=b@b", "-c", "gc.auto=0", "-C", repository]
    repository.mkdir()
    subprocess.run([*git, "init", "-q"], check=True)
    files = sorted((SOURCE / "src").rglob("*.c")) or sorted(MODULES.glob("*.py"))
    for commit in range(5 if quick else 25):
        for n, file in enumerate(files):
            text = file.read_text().splitlines()
            (repository / f"{n}.c").write_text("\n".join(text[commit:] + text[:commit]) + "\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"change {commit}"], check=True)


def python_command(folder, quick):
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    folders = [library / name for name in (("json", "email") if quick else
                                           ("asyncio", "email", "json", "unittest", "xml",
                                            "multiprocessing", "http", "encodings"))]
    return ["-m", "compileall", "-q", "-f", *folders]


SCRIPT_JS = """
const n = %d; let all = [];
for (let i = 0; i < n; i++) {
  all.push(JSON.parse(JSON.stringify({a: i, b: 'x'.repeat(i %% 300), c: [i, i + 1, {d: i}]})));
  if (i %% 7 == 0) all[(i * 7919) %% all.length] = Buffer.alloc(i %% 5000);
}
if (all.length != n) process.exit(1);
"""
SCRIPT_RUBY = """
h = {}; %d.times { |i| h[i] = "value %%d" %% i * (i %% 20 + 1); h.delete(i / 2) if i %% 3 == 0 }
puts h.values.map(&:size).sum
"""
SCRIPT_PERL = """
my %%h; for my $i (1 .. %d) { $h{$i} = [map { "v$_" x ($i %% 17) } 1 .. 4];
delete $h{int($i / 2)} if $i %% 3 == 0 } print scalar(keys %%h), "\\n";
"""
SCRIPT_PHP = """
$a = []; for ($i = 0; $i < %d; $i++) { $a[$i] = str_repeat("v$i", $i %% 40 + 1);
if ($i %% 3 == 0) unset($a[intdiv($i, 2)]); } echo count($a), "\\n";
"""
SOURCE_JAVA = """
import java.util.*;
class Work {
    public static void main(String[] a) {
        Map<Integer, String> m = new HashMap<>();
        for (int i = 0; i < %d; i++) m.put(i %% 50000, "value " + i);
        System.out.println(m.size());
    }
}
"""


def java_source(folder, quick):
    (folder / "Work.java").write_text(SOURCE_JAVA % (100_000 if quick else 5_000_000))


SCRIPT_LUA = """
local t = {}; for i = 1, %d do t[i] = ("value " .. i):rep(i %% 20 + 1)
if i %% 3 == 0 then t[i // 2] = nil end; t[i + 0.5] = {i, {i}} end
"""


def smt_problem(folder, quick):
    """A number of two prime factors, as an equation of bit vectors."""
    number, bits = (33476647, 26) if quick else (4290180961, 34)
    zero = f"(_ bv1 {bits})"
    (folder / "work.smt2").write_text(
        f"(declare-const p (_ BitVec {bits}))\n(declare-const q (_ BitVec {bits}))\n"
        f"(assert (= (bvmul p q) (_ bv{number} {bits})))\n(assert (bvugt p {zero}))\n"
        f"(assert (bvugt q {zero}))\n(assert (bvule p q))\n"
        f"(assert (bvult q (_ bv{1 << bits // 2} {bits})))\n(check-sat)\n")


def postscript(folder, quick):
    """Pages of text and curves."""
    pages = 10 if quick else 100
    (folder / "work.ps").write_text(
        "%!PS\n/line 80 string def\n" + "".join(
            f"/Times-Roman findfont {8 + n % 5} scalefont setfont\n"
            f"0 1 60 {{ /i exch def 40 i 12 mul 30 add moveto (Page {n}, line ) show "
            f"i line cvs show ( of text with numbers ) show i {n} mul line cvs show }} for\n"
            f"0 1 200 {{ /i exch def newpath i 3 mul {n} moveto 10 i 50 600 i 2 mul 700 curveto "
            "stroke } for\nshowpage\n" for n in range(pages)))


def scaled(text, few, many):
    return lambda quick: text % (few if quick else many)


js, ruby = scaled(SCRIPT_JS, 20_000, 300_000), scaled(SCRIPT_RUBY, 30_000, 500_000)
perl, php = scaled(SCRIPT_PERL, 20_000, 300_000), scaled(SCRIPT_PHP, 50_000, 1_000_000)

lua = scaled(SCRIPT_LUA, 30_000, 300_000)
CLANGS = ["clang", *(f"clang-{n}" for n in range(25, 10, -1))]
COMPILE = "-O2", "-c", "work.c", "-o", "/dev/null"

PROGRAMS = [
    Program("python", python_command, ["python3"],
            environment={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0",
                         "PYTHONDONTWRITEBYTECODE": "1"}),
    Program("gcc", lambda f, q: COMPILE, prepare=c_source),
    Program("clang", lambda f, q: COMPILE, CLANGS, prepare=c_source),
    Program("sqlite", lambda f, q: [":memory:", ".read work.sql"], ["sqlite3"],
            prepare=sqlite_script),
    Program("git", lambda f, q: ["-c", "pack.threads=1", "-C", "repository", "repack", "-a", "-d",
                               "-f", "-q"],
            prepare=git_repository),
    Program("perl", lambda f, q: ["-e", perl(q)]),
    Program("ruby", lambda f, q: ["-e", ruby(q)]),
    Program("lua", lambda f, q: ["-e", lua(q)], ["lua5.4", "lua5.3", "lua"]),
    Program("node", lambda f, q: ["-e", js(q)]),
    Program("php", lambda f, q: ["-n", "-d", "memory_limit=-1", "-r", php(q)],
            environment={"USE_ZEND_ALLOC": "0"}),
    Program("java", lambda f, q: ["-Xmx256m", "Work.java"], needs=["javac"], prepare=java_source),
    Program("z3", lambda f, q: ["work.smt2"], prepare=smt_problem),
    Program("ghostscript", lambda f, q: ["-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=pdfwrite",
                                         "-sOutputFile=/dev/null", "work.ps"], ["gs"],
            prepare=postscript),
    Program("db_bench", lambda f, q: ["--benchmarks=fillrandom,readrandom", "--threads=1",
                                      f"--num={30_000 if q else 300_000}", f"--db={f}/db",
                                      "--compression_type=none"]),
    Program("redis", lambda f, q: ["--port", "0", "--unixsocket", f / "redis", "--save", "",
                                   "--dir", f], ["redis-server"], ["python3"],
            client=redis_client),
    Program("memcached", lambda f, q: ["-u", "root", "-s", f / "memcached", "-m", "256"],
            needs=["python3"], client=memcached_client),
    Program("nginx", lambda f, q: ["-p", f, "-c", f / "nginx.conf"], needs=["python3"],
            prepare=nginx_configuration, client=nginx_client),
]
KNOWN = [program.name for program in PROGRAMS]
BRIEF = "python", "git", "lua", "php", "z3", "ghostscript", "redis", "memcached", "nginx"
QUICK = "python", "sqlite", "redis"
SAMPLED = "python", "sqlite", "perl", "redis"


def of_programs(setting, usual, contenders):
    """Those that were asked for, or else the usual ones, of each contender."""
    wanted = [p for p in PROGRAMS if p.name in (setting.programs or usual)]
    for program in wanted:
        if missing := program.missing():
            setting.left_out[f"program {program.name}"] = f"not installed: {missing}"
            setting.say(f"  {program.name} is left out: not installed: {missing}")
    with tempfile.TemporaryDirectory(prefix="stook-bench-") as folder:
        jobs = {}
        for program in wanted:
            if program.missing():
                continue
            place = pathlib.Path(folder) / program.name
            place.mkdir()
            if program.prepare:
                program.prepare(place, program.is_quick(setting))
            jobs[program.name] = lambda c, program=program, place=place: \
                measure(program, c, place, program.is_quick(setting))
        return cells(setting, contenders, setting.pairs, jobs)


def programs(setting):
    """Real programs: processor time, peak memory, faults."""
    return of_programs(setting, QUICK if setting.few else KNOWN, preloaded(setting))


def sampled_programs(setting):
    """Some of them with samples off, on, guarded, and 256 times as many: of what those add, a 256th
    is what `on` adds beyond its start, where noise hides that."""
    return of_programs(setting, SAMPLED, ours_sampled(setting, ["off", "on", "guard", "on-8K"]))


def fleet_mixes(setting):
    """Published allocation mixes of a fleet's programs at a steady heap (bench/data/fleet): ns an
    operation, peak and resident by what is asked for, MiB left in the end."""
    options = ["mib=32", "ops=1"] if setting.few else ["ops=3"] if setting.quick else []
    return cells(setting, preloaded(setting), setting.pairs,
                 {f"mix {path.stem}": lambda c, path=path: macro(
                     [setting.program("mixes"), f"mix={path}", *options], c)
                  for path in sorted((MODULES.parent / "data" / "fleet").glob("*.csv"))})


ALL = {e.__name__: e for e in (programs, sampled_programs, fleet_mixes)}
