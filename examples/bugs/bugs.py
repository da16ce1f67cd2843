#!/usr/bin/env python3
"""
Programs with a bug each, the command that finds it, and what the report must say.

    examples/bugs/bugs.py [--build FOLDER] [NAME...]      show what is found
    examples/bugs/bugs.py --write docs/BUGS.md            write the page from these runs

A program is compiled as it is, and with -DFIXED, where the bug is mended and nothing may be found.
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Frame:
    """A line of a call stack: a function, and the n-th line of the source that has a text."""

    def __init__(self, function, text, nth=1):
        self.function, self.text, self.nth = function, text, nth

    def pattern(self, source):
        at = [i + 1 for i, line in enumerate(source.read_text().splitlines()) if self.text in line]
        assert len(at) >= self.nth, f"{source.name}: {self.text!r} is on {len(at)} lines"
        function, name = re.escape(self.function), re.escape(source.name)
        return rf" +(#\d+ )?{function}\b.*{name}:{at[self.nth - 1]}\b"


class Bug:
    """
    expect: what the report must have, in this order: patterns of lines, and frames.
    fixed:  the same for the mended program; empty: it has no report.
    """

    def __init__(self, source, wrong, command, expect, fixed=(), libs=()):
        self.source, self.name = HERE / source, pathlib.Path(source).stem
        self.wrong, self.command = wrong, command.format(self.name)
        self.expect, self.fixed, self.libs = list(expect), list(fixed), list(libs)


RUN = "stook run --debug {} -- ./{{}}"
DEBUG, STATES, LATE = RUN.format("FZPU"), RUN.format("FU"), RUN.format("FZPUQ")
LEAKS, FAIL = "stook run --leaks -- ./{}", "stook run --fail-each --fail-wait 10 -- ./{}"
PROFILE = "stook run --profile {0}.pb,interval=4K -- ./{0}; stook profile {0}.pb"
INFO = "stook info --fragmentation PID"         # of the program, which waits
FOUND, BORN, FREED = "  found here", r"  allocated by thread \d+", r"  freed by thread \d+"


def report(fault, cache, more=""):
    return rf"stook: {fault}: pointer 0x\w+ \(cache {cache}\b.*{more}"


BUGS = [
    Bug("settings.c", "A string is one byte short: its end is written behind it.", DEBUG,
        [report("overrun", "malloc-16"), "  the object has 16 bytes, 7 of them requested",
         r"  at 0x\w+ \(7 bytes from its start\): expected cc, found 00",
         FOUND, Frame("forget", "free(setting->key)"),
         BORN, Frame("copy_part", "malloc(STRING_BYTES(n))")]),
    Bug("log_lines.c", "Blanks are trimmed beyond the start of an empty line.", DEBUG,
        [report("underrun", "malloc-16"),
         r"  at 0x\w+ \(1 bytes before its start\): expected cc, found 00",
         BORN, Frame("log_add", "*line = strdup(message)")]),
    Bug("lru.c", "The page that was hit last is counted after it was evicted.", LATE,
        [report("write after free", "page"),
         r"  at 0x\w+ \(20 bytes from its start\): expected 6b, found \w\w",
         FREED, Frame("evict", "stook_cache_free(pages, page)")]),
    Bug("sessions.c", "A name is read after its session was freed.", DEBUG, [r"k{20}.* has left"]),
    Bug("conn_pool.c", "A request that fails closes its connection, and its caller does, too.",
        DEBUG,
        [report("double free", "conn"), FOUND, Frame("serve", "conn_close(conn);", 2),
         BORN, Frame("conn_open", "stook_cache_zalloc(conns)"),
         FREED, Frame("send_request", "conn_close(conn);")]),
    Bug("interner.c", "A string that is found again has no second user counted.", STATES,
        [report("double free", "string"), FOUND, Frame("release", "stook_cache_free("),
         BORN, Frame("intern", "stook_cache_zalloc("),
         FREED, Frame("release", "stook_cache_free(")]),
    Bug("order_book.c", "An order that is filled is cancelled; its memory has a new order.", LATE,
        [report("double free", "order", "it is in the quarantine"),
         FOUND, Frame("order_cancel", "stook_cache_free(", 2),
         FREED, Frame("order_fill", "stook_cache_free(")]),
    Bug("request_queue.c", "A request is freed by the call that cancels it, and by a worker.",
        STATES,
        [report("double free", "request"), r"  program request_queue \(pid \d+\), thread \d+",
         FOUND, Frame("work", "stook_cache_free(", 2),
         FREED, Frame("cancel", "stook_cache_free(")]),
    Bug("prefork.c", "A child of fork frees at once, and again at exit.", DEBUG,
        [report("double free", "malloc-640"), FOUND, Frame("clean_up", "free(state.greeting)"),
         BORN, Frame("main", "calloc(1, 600)"), FREED, Frame("serve", "clean_up();")]),
    Bug("packets.c", "The payload is freed in place of the packet that it lies in.", DEBUG,
        [report("interior pointer", "packet", r"\d+ bytes from the start of the object at 0x\w+"),
         FOUND, Frame("packet_done", "stook_cache_free(packets, payload)"),
         BORN, Frame("packet_read", "stook_cache_zalloc(packets)")]),
    Bug("tokens.c", "The text of an operator, which is in a table, is freed.", DEBUG,
        [r"stook: foreign pointer: pointer 0x\w+: no memory of this library$", FOUND,
         Frame("token_free", "free(token->text)"), Frame("main", "token_free(token)")]),
    Bug("cells.cc", "A cell is written through a reference that a growing vector left behind.",
        DEBUG,
        [report("write after free", "malloc-128", "found by a check of all objects"),
         r"  at 0x\w+ \(120 bytes from its start\): expected 6b, found 01",
         FREED, Frame("sum", "push_back({total.value, true})")]),
    Bug("shapes.cc", "A shape is deleted as what all shapes have in common.", DEBUG,
        [report("wrong size", "malloc-16", "freed with 8 bytes, allocated with 16"),
         FOUND, Frame("clear", "delete s;"), BORN, Frame("main", "new square(2)")]),
    Bug("events.c", "Events of both kinds are freed to the cache of one.", DEBUG,
        [report("wrong cache", "timer_event", "it belongs to cache signal_event"),
         FOUND, Frame("dispatch", "stook_cache_free(timers, event)"),
         BORN, Frame("post_signal", "stook_cache_alloc(signals)")]),
    Bug("plugins.c", "A plug-in that was stopped uses its cache.", DEBUG,
        [report("pointer to no live object", "mail", "a cache that was destroyed before"),
         FOUND, Frame("plugin_tick", "stook_cache_alloc(")]),
    Bug("tree_writer.c", "An error path returns a prefilled sheaf twice.", DEBUG,
        [report("double free", "node", "a prefilled sheaf that was returned before"),
         FOUND, Frame("insert_all", "stook_sheaf_return(", 2)]),
    Bug("routes.c", "A route is used after its read section, when it is freed by RCU.", LATE,
        [report("write after free", "route"),
         r"  at 0x\w+ \(4 bytes from its start\): expected 6b, found \w\w",
         FREED, Frame("replace", "stook_cache_free_rcu(")], libs=["urcu"]),
    Bug("modules.c", "Every second symbol stays when a module is unloaded.", DEBUG,
        [r"stook: objects left \(cache symbol\): 2 still allocated at destroy",
         report("objects left", "symbol"), BORN, Frame("symbol_add", "stook_cache_zalloc(")]),
    Bug("bulk_loader.c", "An error path frees a row without the name in it.", LEAKS,
        [r"stook: leak: \d+ objects, \d+ bytes that nothing leads to",
         r"  \d+ objects, \d+ bytes, allocated by", Frame("row_parse", "strdup(")]),
    Bug("widgets.c", "Widgets and their window hold each other.", LEAKS,
        [r"stook: leak: \d+ objects, \d+ bytes that nothing leads to",
         r"  \d+ objects?, \d+ bytes, allocated by", Frame("widget_new", "calloc(")]),
    Bug("headers.c", "Copies of strings are used unseen when there is no memory.", FAIL,
        [r"stook: headers: Segmentation fault",
         r"  stook: allocation made to fail \(cache malloc-16\): number \d+",
         Frame("header_new", "header->name = strdup("), r"stook: \d+ runs of headers",
         r" +\d+  Segmentation fault  "],
        [r"stook: \d+ runs of headers", r" +\d+  exit status 0", r" +\d+  exit status 1"]),
    Bug("accounts.c", "A lock stays locked when there is no memory.", FAIL,
        [r"stook: accounts: it hangs",
         r"  stook: allocation made to fail \(cache malloc-16\): number \d+",
         Frame("book", "malloc("), Frame("transfer", "book(&from"),
         r"stook: \d+ runs of accounts", r" +\d+  hung, killed after 10 s"],
        [r"stook: \d+ runs of accounts", r" +\d+  exit status 0", r" +\d+  exit status 1"]),
    Bug("metrics.c", "A label names the user, so that there is a metric for each.", PROFILE,
        [r"peak_space: [\d.]+ MiB", r"[\d.]+ MiB \+- [\d.]+ KiB, (9[\d.]+|100\.0) %",
         Frame("metric_new", "calloc("),
         Frame("metric_of", "metric_new(label)"), Frame("count_request", "metric_of(label)->")],
        [r"peak_space: [\d.]+ (KiB|B)"]),
    Bug("thumbnails.c", "One object in eight stays, and keeps the slab of the other seven.", INFO,
        [r"  thumbnail +1000 +512 .* 12\b", r"  slabs with objects out  slabs  none  to 25%",
         r"  thumbnail +\d{2} +0 +\d{2} +0 +0 +0\b"],
        [r"  marked +1000 +512 .* 9\d\b", r"  marked +8 +0 +0 "]),
    Bug("tenants.c", "A thread stays in a tenant's group where the tenant meets its limit.",
        "stook run --stats -- ./{}",
        [r"130 of the server's", r"group small: 2\d\d\.\d KiB of 256\.0 KiB in use.*refused"],
        [r"500 of the server's", r"group small: .* in use, .*; 1 allocation was refused"]),
]


# ---- running ----

class Runner:
    def __init__(self, build, folder):
        self.build, self.folder = pathlib.Path(build).resolve(), pathlib.Path(folder)
        self.stook = str(self.build / "stook")

    def has_names(self):
        done = subprocess.run([self.stook, "symbolize", "--pid", str(os.getpid())], input="",
                              capture_output=True, text=True)
        return "libdw" not in done.stderr

    def compile(self, bug, *flags):
        """Return: the program, or what the compiler said."""
        cxx = bug.source.suffix == ".cc"
        libs = [f"-L{self.build}", f"-Wl,-rpath,{self.build}"]
        libs += ["-lstook-urcu", "-lurcu-memb"] if "urcu" in bug.libs else []
        libs += ["-lstook"] if "<stook/" in bug.source.read_text() else []
        program = self.folder / bug.name
        done = subprocess.run([*shlex.split(os.environ.get("CXX", "c++") if cxx else
                                            os.environ.get("CC", "cc")),
                               "-g", "-O0", "-pthread", *flags,
                               f"-I{ROOT}/include", f"-I{self.build}/include", "-o", program,
                               str(bug.source), *libs],
                              cwd=HERE, capture_output=True, text=True)
        return None if not done.returncode else done.stderr

    def run_one(self, words, program):
        words = [self.stook if w == "stook" else w for w in words]
        if "PID" not in words:
            return subprocess.run(words, cwd=self.folder, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", timeout=240).stdout
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as running:
            assert running.stdout.readline() == "ready\n"
            words[words.index("PID")] = str(running.pid)
            said = subprocess.run(words, capture_output=True, text=True, timeout=120).stdout
            running.stdin.close()
        return said

    def run(self, bug):
        """What its command prints, on both streams."""
        return "".join(self.run_one(shlex.split(one), self.folder / bug.name)
                       for one in bug.command.split(";"))


def find(bug, expect, text, named=True):
    """Return: the lines that `expect` names; and what is missing, or None."""
    lines, found = text.splitlines(), []
    at = 0
    for each in expect:
        if isinstance(each, Frame) and not named:
            continue
        pattern = re.compile(each.pattern(bug.source) if isinstance(each, Frame) else each)
        at = next((i for i in range(at, len(lines)) if pattern.match(lines[i])), None)
        if at is None:
            return found, pattern.pattern
        found.append(lines[at])
        at += 1
    return found, None


def reports(text):
    """Lines that speak of a fault."""
    return [line for line in text.splitlines()
            if re.match(r"stook: (?!no leak)", line) or "kkkkkkkk" in line]


# ---- the page ----

PAGE = """\
# Bugs, and the commands that find them

This page is written by `examples/bugs/bugs.py --write`, from real runs; do not edit it. Each
program of `examples/bugs/` has one bug. `-DFIXED` mends it. `examples/bugs/bugs.py NAME` compiles a
program and shows all that its command prints; here are the lines that matter. PID is that of the
program, which waits. [DEBUGGING.md](DEBUGGING.md) explains the reports.

| program | what is wrong | found by |
|---|---|---|
"""


CONTINUED = "\n" + 14 * " "


def wrapped(line):
    words = textwrap.TextWrapper(width=99, initial_indent="    ", subsequent_indent=CONTINUED[1:],
                                 replace_whitespace=False, break_long_words=False,
                                 break_on_hyphens=False)
    return words.fill(line) + "\n"


def write(path, runner):
    table, parts = [], []
    for bug in BUGS:
        if runner.compile(bug):
            sys.exit(f"{bug.name}: does not compile")
        found, missing = find(bug, bug.expect, runner.run(bug))
        if missing:
            sys.exit(f"{bug.name}: not found: {missing}")
        table.append(f"| [{bug.name}](../examples/bugs/{bug.source.name}) | {bug.wrong} "
                     f"| `{bug.command}` |\n")
        shown = "".join(wrapped(line.rstrip()) for line in found)
        shown = shown.replace(f"{HERE}/", "").encode("ascii", "replace").decode()
        parts.append(f"\n## {bug.name}\n\n{bug.wrong}\n\n    $ {bug.command}\n{shown}")
    pathlib.Path(path).write_text(PAGE + "".join(table) + "".join(parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--fixed", action="store_true", help="the mended programs")
    parser.add_argument("name", nargs="*")
    args = parser.parse_args()
    unknown = set(args.name) - {bug.name for bug in BUGS}
    if unknown:
        sys.exit(f"bugs.py: no program {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(args.build, folder)
        if args.write:
            write(args.write, runner)
            return
        for bug in BUGS:
            if args.name and bug.name not in args.name:
                continue
            error = runner.compile(bug, *(["-DFIXED"] if args.fixed else []))
            print(f"$ {bug.command}\n{error or runner.run(bug)}")
            if not error and not args.fixed:
                found, missing = find(bug, bug.expect, runner.run(bug), runner.has_names())
                print(f"missing: {missing}\n" if missing else "found\n")


if __name__ == "__main__":
    main()
