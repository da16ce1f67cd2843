"""Runs the stook command of the build folder for the tests beside this file."""
import ctypes
import errno
import json
import os
import platform
import struct
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ["STOOK_BUILD"]
STOOK = os.path.join(BUILD, "stook")
DROP_IN = os.path.join(BUILD, "libstook-malloc.so")
CC = os.environ.get("CC", "cc").split()
# How a program is compiled that calls the library.
HEADERS = ["-I" + os.path.join(os.environ["STOOK_SOURCE"], "include"),
           "-I" + os.path.join(BUILD, "include")]
SHARED = [*HEADERS, "-L" + BUILD, "-lstook", "-Wl,-rpath," + BUILD]
STATIC = [*HEADERS, os.path.join(BUILD, "libstook.a"), "-pthread"]


def stook(*args, **kwargs):
    """The finished command, its output as text."""
    kwargs.setdefault("timeout", 60)
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([STOOK, *args], capture_output=True, text=True, errors="replace",
                          **kwargs)


def figures(*program, options=(), **kwargs):
    """Runs a program; returns the finished command and what --json wrote."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        done = stook("run", "--json", out.name, *options, "--", *program, **kwargs)
        text = out.read()
        return done, json.loads(text) if text else None


def stay_on_one_cpu():
    """Also what is started: without a debug mode a second free is known to be one on the slot of
    the first one alone."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class Compiled(unittest.TestCase):
    """Tests that compile small programs."""

    @classmethod
    def setUpClass(cls):
        cls.folder_object = tempfile.TemporaryDirectory()
        cls.folder = cls.folder_object.name

    @classmethod
    def tearDownClass(cls):
        cls.folder_object.cleanup()

    def compile(self, name, source, *flags):
        path = os.path.join(self.folder, name)
        # Stook counts calls of malloc; a compiler that leaves pairs out would spoil the count.
        done = subprocess.run([*CC, "-O1", "-fno-builtin", "-o", path, "-xc", "-", "-xnone",
                               *flags], input=source, text=True, capture_output=True)
        if done.returncode:
            self.skipTest("cannot compile: " + " ".join(flags) + "\n" + done.stderr)
        return path

    def compile_for_other_c_library(self, name, source):
        """As its dynamic linker's name tells. That is all that differs here."""
        about = subprocess.run(["readelf", "-l", self.compile(name, source)],
                               capture_output=True, text=True).stdout
        linker = about.partition("program interpreter: ")[2].partition("]")[0]
        if not os.path.exists(linker):
            self.skipTest("no dynamic linker found by readelf")
        other = os.path.join(self.folder, "ld-other.so.1")
        os.symlink(linker, other)
        return self.compile(name, source, "-Wl,--dynamic-linker," + other)


def has_libdw():
    done = stook("symbolize", "--pid", str(os.getpid()), input="", stdin=None)
    return "libdw" not in done.stderr


def without_memfd():
    """For preexec_fn: from here on, memfd_create fails with ENOSYS, as on a kernel without it."""
    libc = ctypes.CDLL(None)
    number = {"x86_64": 319, "aarch64": 279}[platform.machine()]
    words = [(0x20, 0, 0, 0),                           # load the number of the system call
             (0x15, 0, 1, number),                      # not that one: skip the next
             (0x06, 0, 0, 0x00050000 | errno.ENOSYS),   # SECCOMP_RET_ERRNO
             (0x06, 0, 0, 0x7fff0000)]                  # SECCOMP_RET_ALLOW
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *w) for w in words))
    words = struct.pack("HxxxxxxP", len(words), ctypes.addressof(code))
    program = ctypes.create_string_buffer(words)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        raise OSError("no system call filter")


def main():
    program = unittest.main(exit=False, verbosity=1)
    result = program.result
    if result.testsRun and len(result.skipped) == result.testsRun:
        sys.exit(77)
    sys.exit(0 if result.wasSuccessful() else 1)
