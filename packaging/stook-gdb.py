"""gdb commands that look into the heap of a program or core file that uses libstook.

    stook what EXPRESSION        what a pointer points to: object, cache, state, calls that allocated
                                 and freed it, who points to it
    stook caches [NAME*]         the caches
    stook leaks                  objects that nothing leads to
    stook check                  is the heap sound?

gdb loads this file by itself if libstook is installed below gdb's own prefix, else by `source
PREFIX/share/stook/stook-gdb.py`. The command `stook` does the work. It is looked for in PATH, then
in the prefix of this file. It reads the process, which gdb has stopped, or the core; it calls
nothing in the program, writes nothing there, and needs no debug information of the library. Where
the system lets nobody but gdb read the process, gdb writes a core of it for the command.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import gdb

HERE = pathlib.Path(__file__).resolve()         # gdb forgets it once the file is read


def command():
    path = [os.environ.get("PATH", os.defpath)]
    path += [str(folder / "bin") for folder in HERE.parents]
    found = shutil.which("stook", path=os.pathsep.join(path))
    if not found:
        raise gdb.GdbError("stook: the command `stook` is not in PATH")
    return found


def run(words):
    done = subprocess.run([command(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return done.stdout


def core_file():
    """Of the program that is looked at; None: it is no core."""
    found = re.search(r"core dump file:\n\t`(.*)', file type", gdb.execute("info files",
                                                                             to_string=True))
    return found and found[1]


def ask(name, *more, before=()):
    """Prints what `stook NAME` says of the program that gdb looks at."""
    program = gdb.selected_inferior()
    core = core_file()
    if not core and not program.pid:
        raise gdb.GdbError("stook: no program runs, and there is no core")
    files = [f"--exe={gdb.current_progspace().filename}"] if core else []
    text = run([name, *before, *files, core or str(program.pid), *more])
    if not core and "does not let this user look into" in text:
        with tempfile.TemporaryDirectory() as folder:
            core = os.path.join(folder, "core")
            gdb.execute("generate-core-file " + core, to_string=True)
            text = run([name, *before, core, *more])
    print(text, end="")


class Stook(gdb.Command):
    """Look into the heap of libstook. `help stook what`, `help stook caches`, and so on."""

    def __init__(self):
        super().__init__("stook", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)


class Command(gdb.Command):
    """Faults of gdb's are one line: a name that is not there, memory that cannot be read."""

    def invoke(self, argument, from_tty):
        try:
            self.answer(argument)
        except gdb.error as error:
            raise gdb.GdbError("stook: %s" % error) from None


class What(Command):
    """stook what EXPRESSION: what this pointer points to."""

    def __init__(self):
        super().__init__("stook what", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def answer(self, argument):
        if not argument:
            raise gdb.GdbError("stook what: name a pointer, such as `stook what p`")
        address = int(gdb.parse_and_eval("(unsigned long)(%s)" % argument))
        ask("what", hex(address))


class Caches(Command):
    """stook caches [NAME*]: the caches that have a slab."""

    def __init__(self):
        super().__init__("stook caches", gdb.COMMAND_DATA)

    def answer(self, argument):
        ask("info", before=["--name", argument] if argument else [])


class Leaks(Command):
    """stook leaks: objects that nothing leads to."""

    def __init__(self):
        super().__init__("stook leaks", gdb.COMMAND_DATA)

    def answer(self, argument):
        ask("leaks")


class Check(Command):
    """stook check: is the heap sound?"""

    def __init__(self):
        super().__init__("stook check", gdb.COMMAND_DATA)

    def answer(self, argument):
        ask("check")


for each in (Stook, What, Caches, Leaks, Check):
    each()
