#!/usr/bin/env python3
"""record.py FILE PROGRAM [ARGUMENT...]: records the mmap, munmap, mremap and brk calls of a program (its first process)
by strace, as lines for replay."""
import re
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


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.NamedTemporaryFile("r", suffix=".strace") as trace:
        done = subprocess.run(["strace", "-e", "trace=mmap,munmap,mremap,brk", "-o", trace.name] + sys.argv[2:])
        with open(sys.argv[1], "w") as out:
            out.writelines(line + "\n" for line in lines(trace))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
