#!/usr/bin/env python3
"""Proves: guarded samples find each of thirty bugs (guarded.c, guarded_cpp.cc) in a program that
has it again and again, as soon as the interval predicts; the report has its kind, and the lines of
the fault, of the allocation and of the free.

With one sample in INTERVAL bytes, an object of the least class that has a bug, of 16 bytes, is
sampled with p = 1 - exp(-16 / 4096) = 0.0039. Each sample is guarded, and its bug is found at one
of its two ends at least: by a coin. So RUNS runs miss it with (1 - p / 2) ^ 15000 = 2e-13."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["STOOK_BUILD"]).resolve()
SAMPLE = "on,4K,most=1000000,guard=1000000"
RUNS = "15000"
KINDS = {"double free": ["freed_twice", "thread_frees_twice", "deleted_twice"],
         "underrun": ["before_first", "header_written", "before_array"],
         "overrun": ["record_read", "heartbeat", "one_too_many", "string_end", "number_printed",
                     "zeroed_too_far", "aligned_too_far", "grown_too_little", "vector_end"]}
KIND = {name: kind for kind, names in KINDS.items() for name in names}


def bugs_of(source):
    """{name: {mark: line}}; functions that are no bugs belong to the next one that is."""
    text = source.read_text()
    names, lines = re.findall(r"\b(?:BUG|BESIDE)\((\w+)[,)]", text), {}
    bugs = {}
    for part in re.finditer(r"^static [^\n]*?(\w+)\([^)]*\)\n\{\n(.*?)^\}\n", text, re.M | re.S):
        first = text[:part.start(2)].count("\n") + 1
        for i, line in enumerate(part[2].splitlines()):
            for mark in re.findall(r"/\* (fault|late|born|freed) \*/", line):
                lines[mark] = f"{source.name}:{first + i}"
        if part[1] in names:
            bugs[part[1]], lines = lines, {}
    assert sorted(bugs) == sorted(names)
    return bugs


def compiled(source, program):
    compiler = os.environ.get("CXX", "c++") if source.suffix == ".cc" else os.environ.get("CC",
                                                                                          "cc")
    subprocess.run([*compiler.split(), "-g", "-O0", "-w", "-pthread", "-no-pie", "-o", program,
                    source], check=True)


def said(program, name):
    done = subprocess.run([program, name, RUNS], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, env={**os.environ, "STOOK_SAMPLE": SAMPLE,
                                          "STOOK_SYMBOLIZER": "",
                                          "LD_PRELOAD": str(BUILD / "libstook-malloc.so")})
    return done.returncode, done.stderr


def lines_of(program, texts):
    """{address: "file:line"} of all calls of the program; an address is that of the next one."""
    found = sorted({int(a, 16) for text in texts
                    for a in re.findall(r"#\d+ (0x[0-9a-f]+) in " + program.name, text)})
    told = subprocess.run(["addr2line", "-s", "-e", program], text=True, capture_output=True,
                          input="\n".join(hex(a - 1) for a in found), check=True).stdout
    return dict(zip(found, (line.split(" ")[0] for line in told.splitlines())))


def parts_of(text, lines):
    """The lines of the program in the report's three stacks."""
    parts = re.split(r"^  (found here|allocated by|freed by).*\n", text, flags=re.M)
    return {words: {lines.get(int(a, 16)) for a in re.findall(r"#\d+ (0x[0-9a-f]+)", stack)}
            for words, stack in zip(parts[1::2], parts[2::2])}


def wrong_with(name, marks, status, text, lines):
    """What a report lacks; None: nothing."""
    kind = KIND.get(name, "use after free")
    if not text.startswith(f"stook: {kind}: pointer 0x"):
        return f"no report of {kind}: status {status}"
    parts = parts_of(text, lines)
    for words, wanted in (("found here", ("late",) if "found when" in text else ("fault",)),
                          ("allocated by", ("born",)), ("freed by", ("freed",))):
        for mark in wanted:
            if mark in marks and marks[mark] not in parts.get(words, ()):
                return f"{words}: not {marks[mark]} ({mark})"
    return None


def main():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        for source in (HERE / "guarded.c", HERE / "guarded_cpp.cc"):
            program, bugs = pathlib.Path(folder) / source.stem, bugs_of(source)
            compiled(source, program)
            runs = dict(zip(bugs, pool.map(lambda name: said(program, name), bugs)))
            lines = lines_of(program, (text for _, text in runs.values()))
            for name, (status, text) in runs.items():
                wrong = wrong_with(name, bugs[name], status, text, lines)
                if wrong:
                    failed += 1
                    print(f"{name}: {wrong}\n{text}")
                count += 1
    print(f"{count - failed} of {count} found")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
