"""
bench/measure/programs.py - real programs on each allocator

Purpose: what a change of allocator does to programs that people run: time, processor time, most and
steady resident memory, page faults. The programs are those that are installed; the others are
named.
Place: run.py runs it as the experiment `programs` of the suite of the same name.
Figures: seconds and cpu_s of the program and its children; peak_KiB, the most that one of its
processes had resident, up to 5 ms before its end; steady_KiB, the median of what all of them
together have in the second half of the run; faults, pages that were faulted in without input. A
server is measured from its start to its end, while a client that runs on the C library's malloc
asks it.
"""

import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sysconfig
import tempfile
import time

from engine import Failed, allowed
from experiments import cells, preloaded

LIMIT_SECONDS = 120
LOOK_SECONDS = 0.005
MODULES = pathlib.Path(__file__).resolve().parent
SOURCE = MODULES.parents[1]


class Program:
    """One program. `command(folder, quick)` -> words; `prepare(folder, quick)` makes what it reads;
    `client(folder, quick)`: it is a server, this asks it, and then it is told to end."""

    def __init__(self, name, command, needs=None, prepare=None, client=None, environment=None):
        self.name, self.command, self.prepare, self.client = name, command, prepare, client
        self.needs = needs or [name]
        self.environment = environment or {}

    def missing(self):
        """What of it is not installed."""
        return [need for need in self.needs if not shutil.which(need)]


def family(pid):
    """A process and its descendants."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                todo += map(int, pathlib.Path(f"/proc/{one}/task/{task}/children").read_text()
                            .split())
        except (OSError, ValueError):
            pass
    return found


class Looks:
    """What was seen of the memory of a process and its descendants. The kernel's own count of the
    most (ru_maxrss) is of no use here: it begins with what this Python had when it forked."""

    def __init__(self):
        self.resident, self.most = [], {}

    def look(self, pid):
        together = 0
        for one in family(pid):
            try:
                status = pathlib.Path(f"/proc/{one}/status").read_text()
            except OSError:
                continue
            found = dict(re.findall(r"^(VmHWM|VmRSS):\s+(\d+)", status, re.M))
            together += int(found.get("VmRSS", 0))
            self.most[one] = max(self.most.get(one, 0), int(found.get("VmHWM", 0)))
        self.resident.append(together)

    def metrics(self):
        steady = self.resident[len(self.resident) // 2:]
        if not any(self.most.values()):
            return {}
        return {"peak_KiB": max(self.most.values()), "steady_KiB": statistics.median(steady)}


def watch(process, deadline, is_over=lambda: False):
    """Looks at a process until it ends, or is_over() says so; (usage or None, Looks)."""
    looks = Looks()
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage, looks
        if is_over():
            return None, looks
        if time.monotonic() > deadline:
            raise Failed("no end in the time it has")
        looks.look(process.pid)
        time.sleep(LOOK_SECONDS)


def is_loaded(process, library):
    """Whether a process that runs has mapped the contender's library."""
    try:
        return os.path.realpath(library) in pathlib.Path(f"/proc/{process.pid}/maps").read_text()
    except OSError:
        return False


def ask(process, program, folder, quick, contender):
    """Lets the client ask a server, then ends the server; (usage, looks)."""
    client = subprocess.Popen(program.client(folder, quick), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        usage, looks = watch(process, time.monotonic() + allowed(LIMIT_SECONDS),
                             lambda: client.poll() is not None)
        if usage or client.wait() != 0:
            raise Failed("the server ended early" if usage else "its client failed")
        if contender.library and not is_loaded(process, contender.library):
            raise Failed("the server does not run on the preloaded library")
        process.send_signal(signal.SIGTERM)
        usage, _ = watch(process, time.monotonic() + allowed(LIMIT_SECONDS))
        process.returncode = 0          # that it was told to end by a signal is no failure
        return usage, looks
    finally:
        if client.poll() is None:
            client.kill()
            client.wait()


def measure(program, contender, folder, quick):
    environment = contender.environment() | program.environment
    start = time.monotonic()
    process = subprocess.Popen(program.command(folder, quick), cwd=folder, env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        usage, looks = ask(process, program, folder, quick, contender) if program.client else \
            watch(process, start + allowed(LIMIT_SECONDS))
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
    if process.returncode:
        raise Failed(f"{program.name} ended with status {process.returncode}")
    return {"seconds": time.monotonic() - start, "cpu_s": usage.ru_utime + usage.ru_stime,
            "faults": usage.ru_minflt, **looks.metrics()}


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
    return ["python3", "-c", wait_for_socket(folder / "redis") + f"""
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
    return ["python3", "-c", wait_for_socket(folder / "memcached") + f"""
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
    return ["python3", "-c", wait_for_socket(folder / "nginx.socket") + f"""
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
    functions = 150 if quick else 1000
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
    return ["/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3",
            "-m", "compileall", "-q", "-f", *map(str, folders)]


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


def scaled(text, few, many):
    return lambda quick: text % (few if quick else many)


js, ruby = scaled(SCRIPT_JS, 20_000, 300_000), scaled(SCRIPT_RUBY, 30_000, 500_000)
perl, php = scaled(SCRIPT_PERL, 20_000, 300_000), scaled(SCRIPT_PHP, 50_000, 1_000_000)

PROGRAMS = [
    Program("python", python_command, ["python3"],
            environment={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0",
                         "PYTHONDONTWRITEBYTECODE": "1"}),
    Program("sqlite", lambda f, q: ["sqlite3", ":memory:", ".read work.sql"], ["sqlite3"],
            sqlite_script),
    Program("git", lambda f, q: ["git", "-C", "repository", "repack", "-a", "-d", "-f", "-q"],
            prepare=git_repository),
    Program("gcc", lambda f, q: ["gcc", "-O2", "-c", "work.c", "-o", "/dev/null"],
            prepare=c_source),
    Program("clang", lambda f, q: [next(filter(shutil.which, CLANGS)), "-O2", "-c", "work.c",
                                   "-o", "/dev/null"], ["clang"], prepare=c_source),
    Program("redis", lambda f, q: ["redis-server", "--port", "0", "--unixsocket",
                                   str(f / "redis"), "--save", "", "--dir", str(f)],
            ["redis-server", "python3"], client=redis_client),
    Program("memcached", lambda f, q: ["memcached", "-u", "root", "-s", str(f / "memcached"), "-m",
                                       "256"], ["memcached", "python3"], client=memcached_client),
    Program("nginx", lambda f, q: ["nginx", "-p", str(f), "-c", str(f / "nginx.conf")],
            ["nginx", "python3"], nginx_configuration, nginx_client),
    Program("node", lambda f, q: ["node", "-e", js(q)]),
    Program("java", lambda f, q: ["java", "-Xmx256m", "Work.java"], ["java", "javac"],
            java_source),
    Program("ruby", lambda f, q: ["ruby", "-e", ruby(q)]),
    Program("perl", lambda f, q: ["perl", "-e", perl(q)]),
    Program("php", lambda f, q: ["php", "-n", "-d", "memory_limit=-1", "-r", php(q)],
            environment={"USE_ZEND_ALLOC": "0"}),
]
CLANGS = ["clang", *(f"clang-{n}" for n in range(25, 10, -1))]
QUICK = ("python", "sqlite", "redis")


def is_missing(program):
    """What of a program is not installed, as a word or two; None if it is there."""
    if program.name == "clang":
        return None if any(map(shutil.which, CLANGS)) else "clang"
    return ", ".join(program.missing()) or None


def programs(setting):
    """Real programs: time, peak and steady resident memory, faults."""
    wanted = [p for p in PROGRAMS if not setting.few or p.name in QUICK]
    for program in wanted:
        if missing := is_missing(program):
            setting.left_out[f"program {program.name}"] = f"not installed: {missing}"
            setting.say(f"  {program.name} is left out: not installed: {missing}")
    with tempfile.TemporaryDirectory(prefix="stook-bench-") as folder:
        jobs = {}
        for program in wanted:
            if is_missing(program):
                continue
            place = pathlib.Path(folder) / program.name
            place.mkdir()
            if program.prepare:
                program.prepare(place, setting.quick)
            jobs[program.name] = lambda c, program=program, place=place: \
                measure(program, c, place, setting.quick)
        return cells(setting, preloaded(setting), setting.pairs, jobs)


ALL = {"programs": programs}
