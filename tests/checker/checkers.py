#!/usr/bin/env python3
"""Proves: Valgrind's memcheck and ASan find uses after free, overruns and leaks of objects of
caches and of libstook's malloc, as they find those of their own malloc; a program without a fault
has no report, nor have a test and the examples; the drop-in can be had under Valgrind, too; and
STOOK_CHECKER=0 tells them nothing."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ["STOOK_BUILD"]
SOURCE = os.environ["STOOK_SOURCE"]
CC = os.environ.get("CC", "cc").split()
FAULT = os.path.join(BUILD, "tests/test-checker_fault")
CLEAN = os.path.join(BUILD, "tests/test-checker_clean")
# Found where the access happens. Of double frees the library has a report of its own.
FAULTS = ("read-after-free", "read-later", "write-after-free", "overrun", "underrun",
          "overrun-of-malloc", "overrun-of-realloc", "overrun-of-large", "read-of-large",
          "read-bulk", "read-of-sheaf")
# They have no fault, and do not look at how caches are built.
OTHERS = ("tests/test-abi_every_call", "examples/example-malloc", "examples/example-maple")
REPORTED = 23


def run(*command, **environment):
    return subprocess.run(command, env=os.environ | environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace")


def speaks_to_memcheck():
    """Whether the library was built with Valgrind's header: it may have come since."""
    with open(os.path.join(BUILD, "build.ninja")) as rules:
        return "-DSTOOK_MEMCHECK" in rules.read()


@unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
@unittest.skipUnless(speaks_to_memcheck(), "built without valgrind/memcheck.h")
class Memcheck(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if "debuginfo reader" in run("valgrind", "-q", FAULT, "none").stderr:
            raise unittest.SkipTest("Valgrind cannot read what the compiler says for debuggers")

    def memcheck(self, *command, options=(), **environment):
        done = run("valgrind", "-q", f"--error-exitcode={REPORTED}", *options, *command,
                   **environment)
        # It may not understand the debug information of a newer compiler, and says so.
        done.stderr = re.sub(r"(?m)^(--\d+-- |### |get_Form).*\n", "", done.stderr)
        return done

    def reports_in(self, text):
        """{function of the fault: first line of the report}"""
        reports = {}
        for part in re.split(r"\n==\d+== \n", text):
            first = re.match(r"(?:==\d+== Warning.*\n)*==\d+== (.*)", part)
            for name in re.findall(r"^==\d+==    (?:at|by) 0x\w+: (\w+) \(", part, re.M):
                reports.setdefault(name, first.group(1) if first else part)
        return reports

    def test_faults(self):
        done = self.memcheck(FAULT, *FAULTS, "uninitialised")
        self.assertEqual(done.returncode, REPORTED, done)
        reports = self.reports_in(done.stderr)
        for fault in FAULTS:
            self.assertRegex(reports.get(fault.replace("-", "_"), ""), "^Invalid (read|write)",
                             fault + "\n" + done.stderr)
        self.assertIn("uninitialised value", reports.get("uninitialised", ""))
        self.assertRegex(done.stderr, "8 bytes inside a block of size 24 free'd")
        self.assertRegex(done.stderr, "0 bytes after a block of size 13 alloc'd")

    def test_double_free(self):
        done = self.memcheck(FAULT, "double-free")
        self.assertRegex(done.stderr, r"stook: double free: .*\(cache node, .* in the quarantine\n")

    def test_of_the_program_alone(self):
        """Processes that the library makes, for names and to look at memory, say nothing."""
        source = """#include <stook/stook.h>
            int main(void) { struct stook_cache *c = stook_cache_create("c", 99, NULL);
            void *p = stook_cache_alloc(c); stook_cache_free(c, p); stook_cache_free(c, p);
            return stook_validate_all(); }"""
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "twice")
            subprocess.run([*CC, "-g", "-o", program, "-xc", "-", f"-I{SOURCE}/include",
                            f"-I{BUILD}/include", "-L" + BUILD, "-lstook", "-Wl,-rpath," + BUILD],
                           input=source, text=True, check=True)
            for modes in ("-", "F"):
                done = run("valgrind", "--leak-check=full", program, STOOK_ON_FAULT="log",
                           STOOK_DEBUG=modes)
                self.assertEqual(done.returncode, 0, done)
                self.assertIn("stook: double free: ", done.stderr)
                self.assertEqual(done.stderr.count("HEAP SUMMARY"), 1, done.stderr)
                self.assertEqual(len(set(re.findall(r"^(==\d+==)", done.stderr, re.M))), 1)

    def test_leak(self):
        done = self.memcheck(FAULT, "leak", options=["--leak-check=full"])
        self.assertEqual(done.returncode, REPORTED, done)
        self.assertRegex(done.stderr, "24 bytes in 1 blocks are definitely lost")
        self.assertRegex(done.stderr, r"by 0x\w+: lose \(")

    def test_clean(self):
        done = self.memcheck(CLEAN, options=["--leak-check=full"])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_told_nothing(self):
        done = self.memcheck(FAULT, "read-after-free", "overrun-of-malloc", STOOK_CHECKER="0")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_others(self):
        for name in OTHERS:
            if os.path.exists(os.path.join(BUILD, name)):
                done = self.memcheck(os.path.join(BUILD, name))
                self.assertEqual(done.returncode, 0, done)

    def test_drop_in(self):
        """Valgrind puts its own malloc in place of the drop-in's, unless it is told not to."""
        drop_in = os.path.join(BUILD, "libstook-malloc.so")
        source = ("#include <stdlib.h>\nint main(void) { volatile char *p = malloc(13);"
                  " free((void *)p); return p[2] == 77; }\n")
        if not os.path.exists(drop_in):
            self.skipTest("built without the drop-in")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "late")
            subprocess.run([*CC, "-fno-builtin", "-w", "-o", program, "-xc", "-"], input=source,
                           text=True, check=True)
            for options, ours in (([], False),
                                  (["--soname-synonyms=somalloc=nouserintercepts"], True)):
                done = self.memcheck(program, options=options, LD_PRELOAD=drop_in)
                self.assertEqual(done.returncode, REPORTED, done)
                self.assertRegex(done.stderr, "2 bytes inside a block of size 13 free'd")
                self.assertEqual(": stook_" in done.stderr, ours, done)


class Asan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.fault = cls.compile("fault", "-L" + BUILD, "-lstook", "-Wl,-rpath," + BUILD)
        cls.clean = cls.compile("clean", os.path.join(BUILD, "libstook.a"))
        if run(cls.fault, "none", ASAN_OPTIONS="detect_leaks=0").returncode != 2:
            raise unittest.SkipTest("programs with ASan do not run here")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def compile(cls, name, *link):
        path = os.path.join(cls.folder.name, name)
        done = run(*CC, "-g", "-O1", "-fsanitize=address", "-o", path,
                   f"{SOURCE}/tests/checker/{name}.c", f"-I{SOURCE}/include", f"-I{BUILD}/include",
                   "-pthread", *link)
        if done.returncode:
            raise unittest.SkipTest("cannot compile with ASan:\n" + done.stderr)
        return path

    def asan(self, *command, leaks=0, **environment):
        options = f"detect_leaks={leaks}:exitcode={REPORTED}"
        return run(*command, ASAN_OPTIONS=options, **environment)

    def test_faults(self):
        for fault in FAULTS:
            done = self.asan(self.fault, fault)
            self.assertEqual(done.returncode, REPORTED, (fault, done))
            self.assertIn("AddressSanitizer: use-after-poison", done.stderr)
            if " in main " in done.stderr:              # it has a symbolizer
                self.assertIn(" in %s " % fault.replace("-", "_"), done.stderr)

    def test_who(self):
        """With mode U a report of the library's follows: who allocated and freed the object. What
        lies before an object is taken for the end of the one before, and the inner pages of a large
        object lead nowhere."""
        for fault in set(FAULTS) - {"underrun", "read-of-large"}:
            done = self.asan(self.fault, fault, STOOK_DEBUG="U")
            self.assertEqual(done.returncode, REPORTED, (fault, done))
            self.assertIn("AddressSanitizer: use-after-poison", done.stderr)
            freed = "after-free" in fault or fault.startswith("read-")
            self.assertRegex(done.stderr,
                             r"stook: %s: pointer .*: it was read or written, as AddressSanitizer "
                             r"says\n" % ("write after free" if freed else "overrun"))
            self.assertRegex(done.stderr, r"  allocated by thread \d+, .*\n    #0 ")
            self.assertEqual(bool(re.search(r"  freed by thread \d+, .*\n    #0 ", done.stderr)),
                             freed, fault)
        self.assertNotIn("stook: ", self.asan(self.fault, "overrun").stderr)

    def test_double_free(self):
        done = self.asan(self.fault, "double-free")
        self.assertRegex(done.stderr, r"stook: double free: .*\(cache node, .* in the quarantine\n")

    def test_clean(self):
        done = self.asan(self.clean)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_told_nothing(self):
        done = self.asan(self.fault, "read-after-free", STOOK_CHECKER="0")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_roots(self):
        """What only an object of a cache points to is no leak, until the object is freed."""
        kept = self.asan(self.fault, "keeps", leaks=1)
        lost = self.asan(self.fault, "loses", leaks=1)
        for done in kept, lost:
            if "LeakSanitizer has encountered a fatal error" in done.stderr:
                self.skipTest("LeakSanitizer cannot look at processes here")
        self.assertEqual((kept.returncode, kept.stderr), (0, ""))
        self.assertEqual(lost.returncode, REPORTED, lost)
        self.assertIn("detected memory leaks", lost.stderr)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    if result.testsRun == len(result.skipped):
        sys.exit(77)
    sys.exit(0 if result.wasSuccessful() else 1)
