#!/usr/bin/env python3
"""Proves: debug modes with large red zones (Z=BYTES), pages of their own (Z=guard), constructors
(C) and entry points (F) find what they are for, name who allocated it, also the life before, and
say nothing of programs without a fault."""
import re
import shutil
import subprocess
import unittest

import stook as s

MODES = "FZ=100PUQC"
CACHES = r"""
#include <stook/stook.h>
#include <stdlib.h>
#include <string.h>
static void make(void *object, void *data) { (void)data; memset(object, 7, 40); }
static struct stook_cache *create(const char *name)
{
        struct stook_cache_args args = { .args_size = sizeof args, .ctor = make };
        return stook_cache_create(name, 40, &args);
}
int main(int argc, char **argv)
{
        struct stook_cache *cache = create("made");
        char *object = stook_cache_alloc(cache), *kept;
        object[3] = 1;
        if (argc == 2 && !strcmp(argv[1], "state"))
                stook_cache_free(cache, object);
        object[3] = 7;
        stook_cache_free(cache, object);
        for (int i = 0; i < 300; i++) {         /* more slabs than are kept without access */
                struct stook_cache *other = create("other");
                kept = stook_cache_alloc(other);
                stook_cache_free(other, kept);
                if (stook_cache_destroy(other))
                        return 3;
        }
        if (argc == 2 && !strcmp(argv[1], "destroyed"))
                kept[5] = 1;
        return stook_cache_destroy(cache) != 0;
}
"""
MALLOC = r"""
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
        char *text = malloc(48);
        volatile int minus = -7;
        memset(text, 0, 48);
        if (argc == 2 && !strcmp(argv[1], "far"))
                text[48 + 99] = 1;
        if (argc == 2 && !strcmp(argv[1], "before"))
                text[-99] = 1;
        if (argc == 2 && !strcmp(argv[1], "negative"))
                free(malloc(minus));
        text = realloc(text, 5000);
        free(text);
        text = malloc(300000);
        text[0] = 1;
        free(text);
        if (argc == 2 && !strcmp(argv[1], "large"))
                text[1000] = 1;
        return 0;
}
"""
GUARDED = r"""
#include <stdlib.h>
#include <string.h>
static volatile int sum;
int main(int argc, char **argv)
{
        const char *how = argc == 2 ? argv[1] : "";
        char *text = calloc(1, 16), *old = calloc(1, 3000);
        if (!strcmp(how, "behind"))
                sum = text[16];
        old = realloc(old, 5000);
        free(old);
        if (!strcmp(how, "freed"))
                sum = old[4999];
        if (!strcmp(how, "twice"))
                free(old);
        free(text);
        return sum;
}
"""
LIVES = r"""
#include <stdlib.h>
static char *first(void) { return malloc(40); }
static char *second(void) { return malloc(40); }
int main(void)
{
        char *volatile text = first(), *other;
        free(text);
        while ((other = second()) != text)
                ;
        free(other);
        text[7] = 1;
        return 0;
}
"""
NEWS = r"""
#include <cstdlib>
#include <cstring>
struct alignas(64) wide { char bytes[64]; };
int main(int argc, char **argv)
{
        bool wrong = argc == 2;
        int *one = new int, *many = new int[10];
        wide *aligned = new wide;
        char *text = (char *)std::malloc(10);
        if (wrong && !std::strcmp(argv[1], "array"))
                delete many;
        if (wrong && !std::strcmp(argv[1], "malloc"))
                delete text;
        delete one;
        delete[] many;
        delete aligned;
        std::free(text);
        text = (char *)std::malloc(10);         /* has the place of one that new made */
        std::free(text);
        return 0;
}
"""

# More objects than have guards at a time: 8192.
MANY = r"""
#include <stdlib.h>
#include <string.h>
#define N 9000
static char *object[N];
int main(void)
{
        for (int i = 0; i < N; i++) {
                object[i] = malloc(100 + i % 7);
                if (!object[i])
                        return 3;
                memset(object[i], i, 100 + i % 7);
        }
        object[N - 1][112] = 1;
        for (int i = 0; i < N; i++) {
                for (int k = 0; k < 100 + i % 7; k++)
                        if (object[i][k] != (char)i)
                                return 0;
                free(object[i]);
        }
        return 0;
}
"""


class Modes(s.Compiled):
    def run_it(self, program, *how, modes=MODES):
        return s.stook("run", "--debug", modes, "--", program, *how)

    def clean(self, program):
        done = self.run_it(program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def finds(self, program, how, words, *more):
        done = self.run_it(program, how)
        self.assertNotEqual(done.returncode, 0, how)
        self.assertRegex(done.stderr, r"\Astook: " + words)
        for line in more:
            self.assertRegex(done.stderr, line)

    def test_caches(self):
        program = self.compile("caches", CACHES, "-g", "-O0", *s.SHARED)
        self.clean(program)
        self.finds(program, "state", "corrupted: .*cache made, .*: freed in a state that its "
                   "constructor did not make", r"allocated by .*\n    #0 main ")
        self.finds(program, "destroyed", "use after free: pointer 0x[0-9a-f]+: its cache was "
                   "destroyed", r"allocated by .*\n    #0 main ", r"freed by .*\n    #0 main ")
        # Without C any state will do.
        done = self.run_it(program, "state", modes="FZPU")
        self.assertIn("double free", done.stderr)

    def test_malloc(self):
        program = self.compile("allocates", MALLOC, "-g", "-O0")
        self.clean(program)
        self.finds(program, "far", "overrun: .*cache malloc-48, ",
                   r"\(147 bytes from its start\)", r"allocated by .*\n    #0 main ")
        self.finds(program, "before", "underrun: .*cache malloc-48, ", r"\(99 bytes before its",
                   r"allocated by .*\n    #0 main ")
        self.finds(program, "negative", "wrong size: 18446744073709551609 bytes were asked for, "
                   "or -7\n", r"found here\n    #0 main ")
        done = self.run_it(program, "large", modes="FZPU")
        self.assertRegex(done.stderr, r"(?s)use after free: .*allocated by .*freed by ")

    def test_guarded(self):
        program = self.compile("guarded", GUARDED, "-g", "-O0", "-w")
        done = self.run_it(program, modes="FZ=guardPU")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for how, words, freed in (("behind", "overrun: .*: the guard page behind it", False),
                                  ("freed", "use after free: .*: it was read", True),
                                  ("twice", "double free: .*cache malloc-large", True)):
            done = self.run_it(program, how, modes="FZ=guardPU")
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, r"\Astook: " + words)
            self.assertRegex(done.stderr, r"found here\n(    #0 [^m].*\n)?    #\d main ")
            self.assertRegex(done.stderr, r"allocated by .*\n    #0 main ")
            found = re.search(r"freed by .*\n    #0 main ", done.stderr)
            self.assertEqual(bool(found), freed, how)

    def test_more_than_guards(self):
        """Beyond the limit, which one line says, an object serves with a red zone."""
        done = self.run_it(self.compile("many", MANY, "-g", "-O0", "-w"), modes="FZ=guardP")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"\Astook: no more guard pages \(vm.max_map_count\); .*\n"
                         r"stook: overrun: (?s:.*)\(112 bytes from its start\): expected cc, "
                         "found 01")

    def test_the_life_before(self):
        program = self.compile("lives", LIVES, "-g", "-O0", "-w")
        done = self.run_it(program, modes="FZPU")
        self.assertRegex(done.stderr, r"(?s)\Astook: write after free: .*"
                         r"\n  allocated by [^\n]*\n    #0 second .*\n  freed by .*"
                         r"\n  before that, allocated by [^\n]*\n    #0 first .*"
                         r"\n  before that, freed by [^\n]*\n    #0 main ")

    @unittest.skipUnless(shutil.which("c++"), "no C++ compiler")
    def test_new(self):
        program = self.folder + "/news"
        subprocess.run(["c++", "-g", "-O0", "-xc++", "-", "-o", program], input=NEWS, text=True,
                       check=True)
        self.clean(program)
        done = self.run_it(program, "array")
        if not done.returncode:
            self.skipTest("this drop-in cannot tell delete from free")
        self.finds(program, "array", r"mismatched free: .*cache malloc-48, .*: made by new\[\], "
                   "freed by delete\n", r"allocated by .*\n    #\d main ")
        self.finds(program, "malloc", "mismatched free: .*: made by malloc, freed by delete\n",
                   r"allocated by .*\n    #\d main ")

    def test_refused(self):
        for modes in ("Z=", "Z=0", "Z=x"):
            self.assertEqual(s.stook("run", "--debug", modes, "--", "true").returncode, 2, modes)
        done = s.stook("run", "--debug", "Z=5K", "--", "true")
        self.assertTrue(re.match(r"stook: STOOK_DEBUG=Z=5K: takes LETTERS", done.stderr), done)


if __name__ == "__main__":
    s.main()
