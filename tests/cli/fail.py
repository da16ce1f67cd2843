#!/usr/bin/python3
"""Proves what `stook run --fail` and --fail-each do: runs, the table, stacks, refusals."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["STOOK_BUILD"])
STOOK = BUILD / "stook"
# The first failure is handled, the second one crashes, the third one hangs if it is asked to.
SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *handled(void)
{
        char *text = malloc(100);

        if (!text) {
                fputs("no memory\n", stderr);
                exit(3);
        }
        return text;
}

__attribute__((noinline)) static char *crashes(void)
{
        char *text = malloc(200);

        text[0] = 'x';
        return text;
}

int main(int argc, char **argv)
{
        char *a = handled(), *b = crashes(), *c = malloc(1 << 20);

        if (argc > 1 && !strcmp(argv[1], "closes"))
                fclose(stderr);
        while (!c && argc > 1)
                sleep(1);
        free(a);
        free(b);
        free(c);
        return 0;
}
"""

# Ten that throw, one that returns NULL, one that nobody catches.
NEWS = r"""
#include <cstdlib>
#include <new>
namespace shop {
__attribute__((noinline)) int *make(int n) { return new int[n]; }
__attribute__((noinline)) int idle(int n) { return n + 1; }
}
int main()
{
        try {
                for (int i = 0; i < 10; i++)
                        delete[] shop::make(10);
        } catch (std::bad_alloc &) {
                return 4;
        }
        long *quiet = new (std::nothrow) long(1);
        if (!quiet)
                return 5;
        delete quiet;
        delete new char(shop::idle(0));
        return 0;
}
"""


def run(*words):
    return subprocess.run([STOOK, "run", *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=300)


class Fail(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.program = Path(cls.folder.name) / "program"
        subprocess.run(["cc", "-g", "-O0", "-x", "c", "-", "-o", cls.program], input=SOURCE,
                       text=True, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_each(self):
        done = run("--fail-each=60", "--", self.program)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"stook: program: Segmentation fault\n"
                         r"  stook: allocation made to fail \(cache malloc-\d+\): number \d+\n")
        self.assertRegex(done.stderr, r"\n +#0 (crashes|0x\w+|\S+\+0x\w+)")
        self.assertRegex(done.stderr, "  stook: allocation made to fail: the program crashes "
                         r"after it\n(    .*\n)+?      #0 (crashes|0x\w+|\S+\+0x\w+)")
        table = done.stderr[done.stderr.index("runs  outcome"):]
        self.assertRegex(table, r"\n +\d+  exit status 0, as without a failure +\d+")
        self.assertRegex(table, r"\n +1  exit status 3 +\d+\n")
        self.assertRegex(table, r"\n +1  Segmentation fault +\d+\n")

    def test_one_that_hangs(self):
        done = run("--fail-each=60", "--fail-wait", "3", "--", self.program, "hang")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\n +1  hung, killed after 3 s +\d+\n")

    def test_stack(self):
        done = run("--fail", "stack=handled", "--", self.program)
        self.assertEqual((done.returncode, done.stderr), (3, "no memory\n"))
        done = run("--fail", "stack=main,caches=large,tell=1", "--", self.program)
        self.assertEqual(done.returncode, 0)
        self.assertIn("stook: allocation made to fail (cache large): number 1\n", done.stderr)

    @unittest.skipUnless(shutil.which("c++"), "no C++ compiler")
    def test_new(self):
        """operator new fails as malloc does, once for each; functions are known as people write
        them; a function below which nothing is allocated is an error."""
        program = Path(self.folder.name) / "news"
        subprocess.run(["c++", "-g", "-O0", "-x", "c++", "-", "-o", program], input=NEWS, text=True,
                       check=True)
        for name in ("make", "shop::make", "shop::make(int)", "_ZN4shop4makeEi",
                     "shop::make(long)"):
            done = run("--fail", f"stack={name}", "--", program)
            self.assertEqual(done.returncode, 2 if name.endswith("(long)") else 4, (name, done))
        done = run("--fail", "stack=shop::idle", "--", program)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "stook: stack= in STOOK_FAIL: no allocation was made there\n"))
        done = run("--fail-each=60", "--", program)
        self.assertEqual(done.returncode, 1, done.stderr)
        table = done.stderr[done.stderr.index("runs  outcome"):]
        self.assertRegex(table, r"\n +10  exit status 4 ")
        self.assertRegex(table, r"\n +1  exit status 5 ")
        self.assertRegex(table, r"\n +1  Aborted ")
        self.assertIn("the program aborts after it", done.stderr)

    def test_a_name_that_no_cache_had(self):
        done = run("--fail", "caches=nosuch:malloc-2*:large:conn*,times=0", "--", self.program)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "stook: nosuch in STOOK_FAIL: no cache had that name\n"
                             "stook: conn* in STOOK_FAIL: no cache had that name\n"))
        done = run("--fail", "caches=nosuch", "--", self.program, "closes")
        self.assertEqual((done.returncode, done.stderr),
                         (2, "stook: nosuch in STOOK_FAIL: no cache had that name\n"))
        done = run("--debug", "Z,nosuch", "--", self.program, "closes")
        self.assertEqual((done.returncode, done.stderr),
                         (0, "stook: nosuch in STOOK_DEBUG: no cache had that name\n"))

    def test_the_library_refuses_the_same(self):
        for terms in ("nonsense", "interval=0", "interval=3,", "tell=2", ",", "interval=3,,tell=1"):
            env = {**os.environ, "LD_PRELOAD": str(BUILD / "libstook-malloc.so"),
                   "STOOK_FAIL": terms}
            done = subprocess.run([self.program], env=env, capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual(done.returncode, 0, terms)
            self.assertIn(f"stook: STOOK_FAIL={terms}: takes probability=", done.stderr)

    def test_refusals(self):
        for term in ("nonsense", "interval=0", "probability=101", "times=", "caches=", "tell=2",
                     "interval=3,", "stack=no_such_function"):
            done = run("--fail", term, "--", self.program)
            self.assertEqual(done.returncode, 2, term)
            self.assertTrue(done.stderr.startswith("stook run: --fail "), done.stderr)
        for words in (("--fail-each=0",), ("--fail-each=x",), ("--fail-wait", "0"),
                      ("--fail-each", "--stats")):
            done = run(*words, "--", self.program)
            self.assertEqual(done.returncode, 2, words)
            self.assertTrue(done.stderr.startswith("stook run: --fail-"), done.stderr)
        self.assertEqual(run("--fail-each", "--", "/no/such/program").returncode, 127)


if __name__ == "__main__":
    unittest.main()
