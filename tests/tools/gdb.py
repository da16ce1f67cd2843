#!/usr/bin/python3
"""Proves that packaging/stook-gdb.py says what a pointer is, live and in a core file."""
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

source, build = os.environ["STOOK_SOURCE"], os.environ["STOOK_BUILD"]
program = os.path.join(build, "tests/test-tools_gdb_heap")
script = os.path.join(source, "packaging/stook-gdb.py")
# A core file has what may be written, and none of the terabyte that is only reserved.
CORE_MOST = 256 << 20
core = os.path.join(build, "tests/gdb-%d.core" % os.getpid())


def left_out(why):
    print("left out:", why)
    sys.exit(77)


def gdb(*commands, files=()):
    words = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", *files]
    for command in ("source " + script,) + commands:
        words += ["-ex", command]
    path = build + os.pathsep + os.environ["PATH"]
    run = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                         timeout=240, check=False, env={**os.environ, "PATH": path})
    return run.stdout + run.stderr


def expect(text, pattern):
    if not re.search(pattern, text):
        sys.exit("not found: %s\nin:\n%s" % (pattern, text))


def look(where, text):
    print("%s:" % where)
    for pattern in (r"object 0x\w+ of cache parrot, 72 bytes\n"
                    r"  number \d+ of \d+ in the slab at 0x\w+\n"
                    r"  in use\n  \d+ words? leads? to it:\n(    .*\n)*?"
                    r"    0x\w+ in test-tools_gdb_heap\+0x",
                    r"0x\w+ is 7 bytes into it\n",
                    r"of cache parrot, .*\n.*\n  free, in the main sheaf of slot \d+",
                    r"of cache parrot, .*\n.*\n  free, in its slab",
                    r"of cache malloc-large, 1048576 bytes; 0x\w+ is 10 bytes into it\n  in use",
                    r"0x\w+ is no address of the heap",
                    r"parrot +1 +72 ",
                    r"no leak among \d+ live objects",
                    r"sound: \d+ caches"):
        expect(text, pattern)
        print("  found", pattern)


if not shutil.which("gdb"):
    left_out("there is no gdb")
if "main" not in gdb("python print('ma' + 'in')"):
    left_out("this gdb has no Python")

resource.setrlimit(resource.RLIMIT_FSIZE, (CORE_MOST, CORE_MOST))
questions = ("stook what used", "stook what used + 7", "stook what in_sheaf", "stook what in_slab",
             "stook what large + 10", "stook what foreign", "stook caches par*", "stook leaks",
             "stook check")
live = gdb("break looked_at", "run", *questions, "generate-core-file " + core, "kill",
           files=(program,))
if "File size limit" in live or (os.path.exists(core) and os.path.getsize(core) >= CORE_MOST):
    sys.exit("the core file has more than %d bytes" % CORE_MOST)
if "ptrace" in live and "Operation not permitted" in live:
    left_out("the system lets gdb start no program")
look("a live program", live)
expect(gdb("break looked_at", "run", "stook what", files=(program,)), "name a pointer")


def expect_one_line(text, pattern):
    expect(text, pattern)
    if "Python" in text:
        sys.exit("not told as a message:\n" + text)


expect_one_line(gdb("break looked_at", "run", "stook what no_such_name", files=(program,)),
                'stook: No symbol "no_such_name"')
for command in ("stook what 1", "stook caches"):
    expect_one_line(gdb(command), "no program runs, and there is no core")
# As the libraries of Debian's packages are: no debug information is needed.
with tempfile.TemporaryDirectory() as folder:
    library = os.path.join(folder, "libstook.so.0")
    subprocess.run(["strip", "-o", library, os.path.join(build, "libstook.so")], check=True)
    text = gdb("set environment LD_LIBRARY_PATH " + folder, "break looked_at", "run",
               "info sharedlibrary", "stook what used", files=(program,))
    expect(text, re.escape(library))
    expect(text, "of cache parrot, 72 bytes")
try:
    look("a core file", gdb(*questions, files=(program, core)))
finally:
    if os.path.exists(core):
        os.unlink(core)
