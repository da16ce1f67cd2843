#!/usr/bin/env python3
"""record.py FILE PROGRAM [ARGUMENT...]: runs a program under strace and writes the mmap, munmap,
mremap and brk calls of its first thread to FILE, as lines for replay. The exit status is the
program's; 2 if nothing could be recorded."""
import re
import shutil
import subprocess
import sys
import tempfile

CALLS = [
    (re.compile(r"mmap\(.*?, (\w+), .*\) += (0x\w+)"), lambda m: [f"map {m[2]} {m[1]}"]),
    (re.compile(r"munmap\((0x\w+), (\w+)\) += 0"), lambda m: [f"unmap {m[1]} {m[2]}"]),
    (re.compile(r"mremap\((0x\w+), (\w+), (\w+),.*\) += (0x\w+)"),
     lambda m: [f"unmap {m[1]} {m[2]}", f"map {m[4]} {m[3]}"]),
    (re.compile(r"brk\(.*\) += (0x\w+)"), lambda m: [f"brk {m[1]}"]),
]


def lines(trace):
    for call in trace:
        for pattern, lines_of in CALLS:
            match = pattern.match(call)
            if match:
                yield from lines_of(match)


def fail(why):
    print(f"record.py: {why}", file=sys.stderr)
    return 2


def main():
    if len(sys.argv) < 3:
        if sys.argv[1:] in (["-h"], ["--help"]):
            print(__doc__)
            return 0
        print(__doc__, file=sys.stderr)
        return 2
    path, program = sys.argv[1], sys.argv[2:]
    if not shutil.which("strace"):
        return fail("strace is not installed")
    if not shutil.which(program[0]):
        return fail(f"{program[0]}: no such program")
    with tempfile.NamedTemporaryFile("r", suffix=".strace") as trace:
        done = subprocess.run(["strace", "-e", "trace=mmap,munmap,mremap,brk",
                               "-o", trace.name, "--", *program])
        recorded = [line + "\n" for line in lines(trace)]
    if not recorded:
        return fail("strace recorded no call")
    try:
        with open(path, "w", encoding="ascii") as out:
            out.writelines(recorded)
    except OSError as why:
        return fail(why)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


if __name__ == "__main__":
    sys.exit(main())
