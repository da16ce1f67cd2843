#!/usr/bin/env python3
"""Proves: of forty programs with one memory bug each (forty.c, forty_cpp.cc, forty_caches.c), the
modes find as many as BOUNDS says.

    forty.py                    the test: Stook's modes
    forty.py --table            the same with valgrind and ASan beside it, as a table
    forty.py NAME...            what each mode says of these programs

*Found*: a report, or a signal that plain malloc does not end with. *Exact*: the report names the
line with the mistake, or that of the later call which noticed it, where the object was allocated,
and where it was freed, as far as the program has such lines (marks, see forty.c)."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("STOOK_BUILD", "build")).resolve()
STOOK = str(BUILD / "stook")
SOURCES = ("forty.c", "forty_cpp.cc", "forty_caches.c")
RUN = [STOOK, "run"]
MEMCHECK = ["valgrind", "-q", "--leak-check=full", "--error-exitcode=99"]
MODES = {       # what stands before the program
    "FZPU": [*RUN, "--debug", "FZPU", "--"],
    "FZPUQ": [*RUN, "--debug", "FZPUQ", "--"],
    "FZ=128PUQC": [*RUN, "--debug", "FZ=128PUQC", "--"],
    "FZ=guardPU": [*RUN, "--debug", "FZ=guardPU", "--"],
    "harden": [*RUN, "--harden", "--"],
    "harden all": [*RUN, "--harden=all", "--"],
    "leaks": [*RUN, "--leaks", "--"],
}
OTHERS = {
    "valgrind on stook": ["env", f"LD_PRELOAD={BUILD / 'libstook-malloc.so'}", *MEMCHECK,
                          "--soname-synonyms=somalloc=nouserintercepts"],
    "valgrind": MEMCHECK,
    "ASan": [],
}
# What must be found and exact, of the modes and of all of them together: raised when more is.
BOUNDS = {"FZPU": (28, 20), "FZPUQ": (28, 18), "FZ=128PUQC": (32, 22), "FZ=guardPU": (33, 28),
          "harden": (20, 0), "leaks": (10, 8), "all modes": (36, 33)}


class Bug:
    def __init__(self, source, name, body, line):
        self.source, self.name, self.marks = source, name, {}
        for mark in ("fault", "late", "born", "freed"):
            at = [line + i for i, text in enumerate(body.splitlines())
                  if re.search(rf"/\* {mark} \*/", text)]
            if at:
                self.marks[mark] = rf"\b{re.escape(source)}:{at[0]}\b"
        assert "fault" in self.marks or "born" in self.marks, name

    def exact(self, text):
        where = [self.marks[m] for m in ("fault", "late") if m in self.marks]
        named = [re.search(self.marks[m], text) for m in ("born", "freed") if m in self.marks]
        return all(named) and (not where or any(re.search(w, text) for w in where))


def bugs_of(source):
    text = (HERE / source).read_text()
    for part in re.finditer(r"^static .*?\b(\w+)\([^)]*\)\n\{\n(.*?)^\}\n", text, re.M | re.S):
        if "/* born */" in part[2] or "/* fault */" in part[2]:
            # A bug that is in a function of its own counts by the one that main calls.
            name = {"parse": "early_return"}.get(part[1], part[1])
            yield Bug(source, name, part[2], text[:part.start(2)].count("\n") + 1)


class Programs:
    def __init__(self, folder):
        self.folder, self.bugs = pathlib.Path(folder), [b for s in SOURCES for b in bugs_of(s)]
        for source in SOURCES:
            for flags, suffix in (([], ""), (["-fsanitize=address"], "-asan")):
                self.compile(source, flags, self.folder / (source + suffix))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    @staticmethod
    def compile(source, flags, program):
        names = ("CXX", "c++") if source.endswith("cc") else ("CC", "cc")
        libs = ["-lstook"] if "caches" in source else []
        subprocess.run([*os.environ.get(*names).split(), "-g", "-O0", "-w", "-pthread", *flags,
                        f"-I{HERE.parents[1]}/include", f"-I{BUILD}/include", "-o", program,
                        str(HERE / source), f"-L{BUILD}", f"-Wl,-rpath,{BUILD}", *libs], check=True)

    def said(self, bug, mode):
        program = str(self.folder / (bug.source + ("-asan" if mode == "ASan" else "")))
        return self.ended([*(MODES | OTHERS)[mode], program, bug.name])

    @staticmethod
    def ended(command):
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=120)
        except subprocess.TimeoutExpired:
            return "", "it hangs"
        return done.returncode, done.stdout

    def verdict(self, bug, mode):
        """0: not found; 1: found; 2: exact."""
        status, text = self.said(bug, mode)
        reported = re.search(r"^stook: (?!no leak|note: |forty)|^==\d+==", text, re.M)
        if reported and bug.exact(text):
            return 2
        return int(bool(reported) or not isinstance(status, int) or status < 0 or status > 128)


def results(programs, modes):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {(bug.name, mode): pool.submit(programs.verdict, bug, mode)
                for bug in programs.bugs for mode in modes}
        return {key: run.result() for key, run in runs.items()}


def counts(found, bugs, modes):
    best = [max(found[bug.name, mode] for mode in modes) for bug in bugs]
    return sum(b > 0 for b in best), sum(b > 1 for b in best)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--table", action="store_true")
    arguments.add_argument("names", nargs="*")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(folder)
        others = [m for m in OTHERS if m == "ASan" or shutil.which("valgrind")]
        for bug in programs.bugs:
            for mode in [*MODES, *others] if bug.name in asked.names else []:
                print(f"--- {bug.name}: {mode}: {programs.verdict(bug, mode)}",
                      *programs.said(bug, mode))
        if asked.names:
            return 0
        modes = [*MODES, *others] if asked.table else list(MODES)
        found = results(programs, modes)
    bugs, word = programs.bugs, ("-", "found", "exact")
    print("| program | " + " | ".join(modes) + " |\n|---|" + "---|" * len(modes))
    for bug in bugs:
        print(f"| {bug.name} | " + " | ".join(word[found[bug.name, m]] for m in modes) + " |")
    failed = 0
    for name, of in [(m, [m]) for m in modes] + [("all modes", list(MODES))]:
        number, exact = counts(found, bugs, of)
        print(f"{name}: {number} of {len(bugs)} found, {exact} exact")
        least = BOUNDS.get(name, (0, 0))
        failed |= number < least[0] or exact < least[1]
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
