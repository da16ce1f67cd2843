#!/usr/bin/env python3
"""Proves: stook run --leaks names the calls that allocated what nothing leads to any more, and
leaves out what data, another thread's stack, thread storage, another object, a large object or a
mapping of the program's leads to; functions can be suppressed; the exit status stays the program's;
closed standard error and a forked child change nothing; and real programs that lose nothing are not
accused."""
import re
import shutil
import subprocess
import unittest

from stook import Compiled, DROP_IN, SHARED, main, stook

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct node { struct node *next; char content[50]; };

static struct node *volatile list;
static char *volatile inside, *volatile large;
static __thread char *volatile stored;
static int ready[2];

__attribute__((noinline)) static struct node *make(int n)
{
        struct node *first = NULL;

        while (n--) {
                struct node *node = calloc(1, sizeof *node);

                node->next = first;
                first = node;
        }
        return first;
}

__attribute__((noinline)) static void lose_some(int n)
{
        make(n);
        __asm__ volatile("");           /* so that the call is not a jump */
}

static void *run(void *unused)
{
        char *volatile on_stack = malloc(77);

        stored = malloc(33);
        memset(on_stack, 0, 77);
        close(ready[1]);
        for (;;)
                pause();
        return unused;
}

__attribute__((noinline)) static void keep(void)
{
        char **mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                             -1, 0);
        pthread_t thread;
        char c;

        mapped[100] = malloc(60);
        list = make(10);
        inside = (char *)malloc(100) + 40;
        large = calloc(1, 500000);
        *(char **)(large + 400000) = malloc(60);
        stored = malloc(10);
        if (pipe(ready) || pthread_create(&thread, NULL, run, NULL))
                abort();
        while (read(ready[0], &c, 1) > 0)
                ;
}

/* Over what calls before left on the stack. */
__attribute__((noinline)) static void clear(void)
{
        volatile char space[20000];

        for (size_t i = 0; i < sizeof space; i++)
                space[i] = 0;
}

int main(int argc, char **argv)
{
        if (argc > 2 && fork() == 0)
                _exit(0);
        keep();
        if (argc > 1)
                lose_some(atoi(argv[1]));
        clear();
        if (argc > 3) {
                close(0);
                close(1);
                close(2);
        }
        return 7;
}
"""

# Two functions lose an object each. <stook/inline.h> puts functions of the library into both.
INLINED = r"""
#include <stook/inline.h>

__attribute__((noinline)) static int load_a(struct stook_cache *cache)
{
        return !stook_cache_alloc_inline(cache);
}

__attribute__((noinline)) static int load_b(struct stook_cache *cache)
{
        return !stook_cache_alloc_inline(cache);
}

/* Over what calls before left on the stack. */
__attribute__((noinline)) static void clear(void)
{
        volatile char space[20000];

        for (size_t i = 0; i < sizeof space; i++)
                space[i] = 0;
}

int main(void)
{
        struct stook_cache *cache = stook_cache_create("objects", 1000, 0);
        int failed = load_a(cache) + load_b(cache);

        clear();
        return failed;
}
"""


class Leaks(Compiled):
    def setUp(self):
        self.program = self.compile("leaks", PROGRAM, "-g", "-pthread")

    def check(self, *args, options=()):
        done = stook("run", "--leaks", *options, "--", self.program, *args, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (7, ""), done.stderr)
        return done.stderr

    def assert_lost(self, text, most):
        # A few words of dead frames may look like pointers.
        lost = re.search(r"^stook: leak: (\d+) objects, (\d+) bytes that nothing leads to, "
                         r"of \d+ live objects \(leaks, pid \d+\)\n", text, re.M)
        self.assertIsNotNone(lost, text)
        objects, size = map(int, lost.groups())
        self.assertTrue(most - 5 <= objects <= most, text)
        self.assertEqual(size, objects * 64, text)

    def test_nothing_is_lost(self):
        self.assertRegex(self.check(), r"^stook: no leak among \d+ live objects "
                                       r"\(leaks, pid \d+\)\n$")

    def test_lost(self):
        text = self.check("50")
        self.assert_lost(text, 50)
        if "make " in text:                     # with names
            self.assertRegex(text, r"  \d+ objects, \d+ bytes, allocated by\n"
                                   r"    #0 make .*:\d+\n"
                                   r"    #1 lose_some .*:\d+\n"
                                   r"    #2 main .*:\d+\n")
            for pattern in ("lose_some", "lose*", "x,make,y"):
                text = self.check("50", options=["--suppress", pattern])
                self.assertRegex(text, r"^stook: no leak among .*\n  suppressed: \d+ objects\n$")
            for pattern in ("lose", "mak", "lose_some2"):
                self.assert_lost(self.check("50", options=["--suppress", pattern]), 50)

    def test_inlined_functions_of_the_library(self):
        """Each function that lost an object has a group."""
        done = stook("run", "--leaks", "--", self.compile("inlined", INLINED, "-g", *SHARED),
                     timeout=120)
        self.assertEqual((done.returncode, done.stdout), (23, ""), done.stderr)
        # libstook.so, which the drop-in stands before, has nothing to say.
        self.assertEqual(done.stderr.count("stook: leak: "), 1, done.stderr)
        if "main " not in done.stderr:
            self.skipTest("built without libdw")
        for function in ("load_a", "load_b"):
            self.assertRegex(done.stderr, r"  1 object, 10\d\d bytes, allocated by\n"
                                          rf"    #0 {function} .*:\d+\n    #1 main .*:\d+\n")

    def test_forks_and_closed_streams(self):
        text = self.check("50", "fork", "close")
        self.assert_lost(text, 50)
        self.assertNotIn("failed", text)

    def test_real_programs(self):
        json = "import json; json.dumps(list(range(1000)))"
        for program in (["/usr/bin/python3", "-c", json], ["git", "--version"],
                        ["sqlite3", ":memory:", "create table t(a); insert into t values(1);"]):
            if not shutil.which(program[0]):
                continue
            plain = subprocess.run(program, capture_output=True, text=True, check=False)
            done = stook("run", "--leaks", "--", *program, timeout=120)
            self.assertEqual((done.returncode, done.stdout), (plain.returncode, plain.stdout))
            self.assertRegex(done.stderr, r"^stook: no leak among \d+ live objects \(.*\)\n$")

    def test_too_long_suppressions_are_told(self):
        """They would be ignored in silence otherwise."""
        for length, says in ((1023, ""), (1024, "stook: STOOK_SUPPRESS=" + "f" * 100 +
                                          ": takes at most 1023 bytes\n")):
            done = subprocess.run(["true"], env={"LD_PRELOAD": DROP_IN,
                                                 "STOOK_SUPPRESS": "f" * length},
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, says))

    def test_without_mode_u(self):
        done = stook("run", "--leaks", "--debug", "F", "--", "true")
        self.assertEqual((done.returncode, done.stderr),
                         (0, "stook: leak: nothing was searched; that needs mode U of "
                             "STOOK_DEBUG\n"))


if __name__ == "__main__":
    main()
