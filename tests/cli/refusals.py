#!/usr/bin/env python3
"""Proves: what the commands cannot look into, and where a program runs without the drop-in, is one
clear line. Programs run, and commands end in order, without /proc, without shared memory, and below
limits of address space and of the size of files."""
import contextlib
import os
import resource
import shutil
import struct
import subprocess
import unittest

from stook import Compiled, STOOK, main, stook

WAITS = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"
FILLS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
        for (int i = 0; i < 32 << 10; i++) {
                char *object = malloc(1000);
                if (!object)
                        return printf("NULL after %d\n", i) < 0;
                memset(object, 1, 1000);
        }
        return puts("32 MB") < 0;
}
"""
LOOKS = (("info",), ("top",), ("check",), ("tune",))


def program_of_32_bits(path):
    """For i386: waits in pause() for ever. Made by hand, as there may be no compiler for it."""
    code = bytes.fromhex("b81d000000cd80ebf7")          # mov $29, %eax; int $0x80; jmp
    base, size = 0x08048000, 52 + 32 + len(code)
    header = b"\x7fELF\x01\x01\x01" + bytes(9)
    header += struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 4096)
    with open(path, "wb") as f:
        f.write(header + segment + code)
    os.chmod(path, 0o755)
    return path


class Refusals(Compiled):
    @contextlib.contextmanager
    def running(self, path):
        """The program, until the end of the block. Popen returns behind its exec."""
        try:
            process = subprocess.Popen([path], stdin=subprocess.DEVNULL)
        except OSError as error:
            self.skipTest("%s: %s" % (path, error))
        try:
            yield str(process.pid)
        finally:
            process.kill()
            process.wait()

    def line(self, done, status, words):
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(words, done.stderr)

    def looked_at(self, path, words):
        with self.running(path) as pid:
            for command, *_ in LOOKS:
                more = ["conn", "sheaf_capacity=4"] if command == "tune" else []
                done = stook(command, pid, *more)
                self.line(done, 1, "stook %s: %s does not use Stook: it is %s" %
                          (command, pid, words))

    def test_program_of_32_bits(self):
        path = program_of_32_bits(os.path.join(self.folder, "small"))
        self.looked_at(path, "a program for 32-bit i386, Stook here is for ")

    def test_static_program(self):
        self.looked_at(self.compile("static", WAITS, "-static"), "statically linked, and not with")

    def test_program_of_another_c_library(self):
        self.looked_at(self.compile_for_other_c_library("other", WAITS),
                       "a program of another C library (")

    def test_musl_program_on_the_drop_in_of_glibc(self):
        if not shutil.which("musl-gcc") or "musl" in os.environ.get("CC", ""):
            self.skipTest("no musl-gcc")
        path = os.path.join(self.folder, "musl")
        built = subprocess.run(["musl-gcc", "-O1", "-o", path, "-xc", "-"], input=FILLS, text=True,
                               capture_output=True)
        if built.returncode or subprocess.run([path], capture_output=True).returncode:
            self.skipTest("musl-gcc makes no program that runs: " + built.stderr)
        done = stook("run", "--", path)
        self.assertEqual((done.returncode, done.stdout), (0, "32 MB\n"))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("uses another C library (", done.stderr)

    # ---- what may be missing ----

    def without(self, *command):
        """Runs it where /proc is an empty folder, and /dev/shm cannot be written to."""
        if os.getuid() or not shutil.which("unshare"):
            self.skipTest("needs root and unshare")
        script = "mount -t tmpfs none /proc && mount -t tmpfs -o ro none /dev/shm && exec \"$@\""
        inside = ["unshare", "-m", "sh", "-c", script, "sh"]
        if subprocess.run([*inside, "true"], capture_output=True).returncode:
            self.skipTest("nothing can be mounted here")
        return subprocess.run([*inside, *command], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL)

    def test_without_proc_and_shared_memory(self):
        path = self.compile("fills", FILLS)
        for options in ([], ["--stats"], ["--harden"], ["--debug", "FZPU"]):
            done = self.without(STOOK, "run", *options, "--", path)
            self.assertEqual((done.returncode, done.stdout), (0, "32 MB\n"), done.stderr)
            self.assertEqual("peak resident" in done.stderr, "--stats" in options, done.stderr)

    def test_looks_without_proc(self):
        for command in ("info", "top", "check"):
            self.line(self.without(STOOK, command, str(os.getpid())), 2, "/proc is not there")

    # ---- limits ----

    def limited(self, which, value, *options):
        path = self.compile("fills", FILLS)
        return stook("run", *options, "--", path,
                     preexec_fn=lambda: resource.setrlimit(which, (value, value)))

    def test_address_space(self):
        """32 MB fit into 96 MiB, whatever is reserved where no limit is."""
        done = self.limited(resource.RLIMIT_AS, 96 << 20)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "32 MB\n", ""))

    def test_address_space_that_is_too_small(self):
        """The program gets NULL, and goes on."""
        done = self.limited(resource.RLIMIT_AS, 30 << 20)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^NULL after \d+\n$")

    def test_size_of_files(self):
        done = self.limited(resource.RLIMIT_FSIZE, 0)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "32 MB\n", ""))
        done = self.limited(resource.RLIMIT_FSIZE, 0, "--stats")
        self.assertEqual((done.returncode, done.stdout), (0, "32 MB\n"))
        self.assertIn("(ulimit -f)", done.stderr.splitlines()[0])


if __name__ == "__main__":
    main()
