#!/usr/bin/env python3
"""Proves: reports name the program's function where the library's were inlined into it, and a
callback of the library's as the program's; stook symbolize names functions, lines and inlined
functions of a running process, answers all or nothing, and refuses what it cannot read."""
import os
import shutil
import signal
import subprocess
import unittest

from stook import Compiled, SHARED, STATIC, STOOK, has_libdw, main, stay_on_one_cpu, stook

setUpModule = stay_on_one_cpu

PROGRAM = r"""
#include <stdio.h>
#include <unistd.h>

static inline __attribute__((always_inline)) void *inner(void)
{
        void *address;

        __asm__ volatile("call 1f\n1: pop %0" : "=r"(address));
        return address;
}

__attribute__((noinline)) void *outer(void)
{
        return inner();
}

int main(void)
{
        char c;

        printf("%lx %lx\n", (unsigned long)outer(), (unsigned long)main + 1);
        fflush(stdout);
        return (int)read(0, &c, 1);
}
"""

# A double free in bad(), which is called by main() or, with an argument, by the library.
INLINED = r"""
#include <stook/inline.h>

static struct stook_cache *cache;

__attribute__((noinline)) static int bad(void *object, void *unused)
{
        (void)unused;
        stook_cache_free_inline(cache, object);
        stook_cache_free_inline(cache, object);
        __asm__ volatile("");           /* so that no call is a jump */
        return 1;
}

__attribute__((noinline)) static int go(void *object)
{
        int done = bad(object, 0);

        __asm__ volatile("" : "+r"(done));
        return done;
}

int main(int argc, char **argv)
{
        void *object;

        (void)argv;
        cache = stook_cache_create("objects", 64, 0);
        object = stook_cache_alloc_inline(cache);
        if (argc == 1)
                return go(object) + 1;          /* no tail call */
        stook_cache_for_each_object(cache, bad, 0);
        return 0;
}
"""


# The callback that the argument names frees an object twice.
CALLBACKS = r"""
#include <stook/cache.h>
#include <string.h>

static struct stook_cache *other;
static void *object;
static const char *faulty;

/* The program's own, for all its name. */
__attribute__((noinline)) int stook_wrapper_free(const char *where)
{
        if (strcmp(where, faulty))
                return 0;
        stook_cache_free(other, object);
        stook_cache_free(other, object);
        __asm__ volatile("");           /* so that no call is a jump */
        return 1;
}

static void construct(void *unused, void *data)
{
        (void)unused, (void)data;
        stook_wrapper_free("construct");
        __asm__ volatile("");
}

static void destruct(void *unused, void *data)
{
        (void)unused, (void)data;
        stook_wrapper_free("destruct");
        __asm__ volatile("");
}

static void tell_low(struct stook_cache *cache, size_t left, void *data)
{
        (void)cache, (void)left, (void)data;
        stook_wrapper_free("tell_low");
        __asm__ volatile("");
}

static size_t reclaim(struct stook_cache *cache, size_t wanted, void *data)
{
        int done = stook_wrapper_free("reclaim");

        (void)cache, (void)wanted, (void)data;
        __asm__ volatile("" : "+r"(done));
        return 0;
}

static int visit(void *each, void *data)
{
        int done = stook_wrapper_free("visit");

        (void)each, (void)data;
        __asm__ volatile("" : "+r"(done));
        return 0;
}

int main(int argc, char **argv)
{
        struct stook_cache_args args = {
                .args_size = sizeof args, .ctor = construct, .dtor = destruct, .limit_objects = 2,
                .low_objects = 1, .on_low = tell_low, .reclaim = reclaim,
        };
        struct stook_cache *cache = stook_cache_create("objects", 64, &args);
        void *objects[3];

        faulty = argc > 1 ? argv[1] : "";
        other = stook_cache_create("others", 64, NULL);
        object = stook_cache_alloc(other);
        for (int i = 0; i < 3; i++)
                objects[i] = stook_cache_alloc(cache);
        stook_cache_for_each_object(cache, visit, NULL);
        for (int i = 0; i < 3; i++)
                stook_cache_free(cache, objects[i]);
        stook_cache_destroy(cache);
        return 0;
}
"""


class Own(Compiled):
    """Which frames are the library's."""

    def setUp(self):
        if not has_libdw():
            self.skipTest("built without libdw")

    def stacks(self, program, *args, **env):
        """Each stack of the report, as functions and lines."""
        env = {**os.environ, "STOOK_SYMBOLIZER": STOOK, **env}
        done = subprocess.run([program, *args], env=env, capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, -signal.SIGABRT, done.stderr)
        self.assertIn("stook: double free: ", done.stderr)
        stacks = {}
        for line in done.stderr.splitlines():
            if line.startswith("    #"):
                function, place = line.split()[1:3]
                lines.append((function, int(place.rpartition(":")[2]) if ":" in place else 0))
            elif line.startswith("  "):
                lines = stacks[" ".join(line.split()[:2])] = []
        return stacks

    def test_outermost_function_decides(self):
        for link in (SHARED, STATIC):
            program = self.compile("inlined", INLINED, "-g", *link)
            found = [("bad", 10), ("go", 17), ("main", 31)]
            self.assertEqual(self.stacks(program)["found here"], found)
            stacks = self.stacks(program, STOOK_DEBUG="U")
            self.assertEqual(stacks["found here"], found)
            self.assertEqual(stacks["allocated by"], [("main", 29)])
            self.assertEqual(stacks["freed by"], [("bad", 9), *found[1:]])

    def test_program_of_another_compiler(self):
        """Its files have no table from addresses to units, those of the library may have one."""
        if not shutil.which("clang-19"):
            self.skipTest("no clang-19")
        program = os.path.join(self.folder, "of-clang")
        done = subprocess.run(["clang-19", "-O1", "-g", "-o", program, "-xc", "-", "-xnone",
                               *STATIC], input=INLINED, capture_output=True, text=True)
        if done.returncode:
            self.skipTest("cannot compile: " + done.stderr)
        self.assertEqual(self.stacks(program)["found here"],
                         [("bad", 10), ("go", 17), ("main", 31)])

    def test_callbacks(self):
        """A callback is the program's, with frames of the library around it."""
        program = self.compile("callbacks", CALLBACKS, "-g", *SHARED)
        self.assertEqual(subprocess.run([program], timeout=60).returncode, 0)
        for callback in ("construct", "destruct", "tell_low", "reclaim", "visit"):
            for modes, names in (("", ["found here"]), ("U", ["found here", "freed by"])):
                stacks = self.stacks(program, callback, STOOK_DEBUG=modes)
                for name in names:
                    functions = [function for function, line in stacks[name]]
                    self.assertEqual(functions[:2], ["stook_wrapper_free", callback])
                    self.assertEqual(functions[-1], "main")
            self.assertEqual([function for function, line in stacks["allocated by"]], ["main"])

    def test_callback_of_an_inlined_call(self):
        program = self.compile("inlined", INLINED, "-g", *SHARED)
        stacks = self.stacks(program, "by the library", STOOK_DEBUG="U")
        for name, line in (("found here", 10), ("freed by", 9)):
            self.assertEqual(stacks[name][0], ("bad", line))
            self.assertEqual(stacks[name][-1], ("main", 32))


class Symbolize(Compiled):
    def test_what_is_no_address_is_refused(self):
        """Nothing is printed of the stacks before it, either."""
        if not has_libdw():
            self.skipTest("built without libdw")
        for line, word in (("zz", "zz"), ("1\n\n2 3g 4", "3g"), ("-1", "-1"), ("+1", "+1"),
                           ("1,2", "1,2"), ("0x", "0x"), ("1" * 17, "1" * 17),
                           ("\x1b[1m", "\\x1b[1m")):
            done = stook("symbolize", "--pid", str(os.getpid()), stdin=None, input=line + "\n")
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", f"stook symbolize: '{word}' is no address\n"), line)
        for line in ("", "\n", "  \n", "1 0x2 \tA\r\n", "1"):
            done = stook("symbolize", "--pid", str(os.getpid()), stdin=None, input=line)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)

    def test_refused(self):
        for args, says in (((), "--pid PID is needed, or a heap profile"),
                           (("--pid",), "--pid needs a value"),
                           (("--walk",), "no option '--walk'"),
                           (("--leaks=1",), "--leaks=1: this option takes no value"),
                           (("--pid", "1", "2"), "too much: '2'")):
            done = stook("symbolize", *args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertEqual(done.stderr, f"stook symbolize: {says}\n"
                             "usage: stook symbolize --pid PID <ADDRESSES\n"
                             "       stook symbolize FILE...\n")
        for number in ("x", "", "0", "-3", "+3", " 3", "3x", "4294967297", "9" * 20):
            done = stook("symbolize", "--pid", number)
            self.assertEqual((done.returncode, done.stdout), (2, ""), number)
            self.assertEqual(done.stderr, "stook symbolize: --pid takes a process number, "
                             f"not '{number}'\n")
        done = stook("symbolize", "--pid", "4194999")           # above the largest there can be
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^stook symbolize: .*\n$")

    @unittest.skipUnless(os.uname().machine == "x86_64", "the program is for x86-64")
    def test_names(self):
        if not has_libdw():
            self.skipTest("built without libdw")
        program = self.compile("named", PROGRAM, "-g")
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as p:
            addresses = p.stdout.readline()
            done = subprocess.run([STOOK, "symbolize", "--pid", str(p.pid)], text=True,
                                  input=addresses + "\n1\n", capture_output=True, timeout=60)
            p.stdin.write("x")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^inner .*:\d+ \(inlined\)\n"
                                      r"outer .*:\d+\n"
                                      r"main .*:\d+\n"
                                      r"\n\n0x1\n\n$")


if __name__ == "__main__":
    main()
