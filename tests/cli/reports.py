#!/usr/bin/env python3
"""Proves: stook run takes the options that find faults, hands them to the program, and refuses what
the library would not understand before the program starts; its exit status says what was found."""
import os
import re
import signal
import subprocess
import tempfile
import unittest

from stook import (BUILD, Compiled, DROP_IN, STOOK, has_libdw, main, stay_on_one_cpu, stook,
                   without_memfd)

setUpModule = stay_on_one_cpu


class Options(unittest.TestCase):
    def test_refused(self):
        for modes in ("X", "FX", "F,", "F;X", "Q=", "Q=0", "-F", "F,a,,b", "FZPU,a;;,"):
            done = stook("run", "--debug", modes, "--", "echo", "started")
            self.assertEqual((done.returncode, done.stdout), (2, ""), modes)
            self.assertIn("--debug takes LETTERS", done.stderr)
            self.assertIn(f"'{modes}'", done.stderr)
        for what in ("", "report", "stop"):
            done = stook("run", "--on-fault", what, "--", "echo", "started")
            self.assertEqual((done.returncode, done.stdout), (2, ""), what)
            self.assertIn("abort, log or isolate", done.stderr)
        for what in ("", "doubles", "double,", ",double", "all,2", "DOUBLE", "quarantine",
                     "quarantine=", "quarantine=4T", "quarantine=4KB"):
            done = stook("run", f"--harden={what}", "--", "echo", "started")
            self.assertEqual((done.returncode, done.stdout), (2, ""), what)
            self.assertIn("--harden takes 0, 1, all, or double,", done.stderr)
            self.assertIn(f"'{what}'", done.stderr)

    def test_handed_over(self):
        with tempfile.TemporaryDirectory() as folder:
            done = stook("run", "--on-fault", "log", "--report-json", "x.json", "--", "env",
                         cwd=folder)
            self.assertIn("STOOK_ON_FAULT=log\n", done.stdout)
            self.assertIn(f"STOOK_REPORT_JSON={os.path.realpath(folder)}/x.json\n", done.stdout)
            self.assertIn(f"STOOK_SYMBOLIZER={os.path.realpath(STOOK)}\n", done.stdout)
            self.assertNotIn("STOOK_DEBUG", done.stdout)
            self.assertNotIn("STOOK_HARDEN", done.stdout)
        for option, value in (("--harden", "1"), ("--harden=all", "all"),
                              ("--harden=double,zero-free", "double,zero-free"),
                              ("--harden=canary,quarantine=64K", "canary,quarantine=64K")):
            done = stook("run", option, "--", "env")
            self.assertIn(f"STOOK_HARDEN={value}\n", done.stdout)

    def test_reports_as_json(self):
        """A double free that is reported where the program goes on: a line of JSON for it."""
        import json
        script = ("import ctypes; c = ctypes.CDLL(None); c.malloc.restype = ctypes.c_void_p; "
                  "c.free.argtypes = [ctypes.c_void_p]; p = c.malloc(5000); c.free(p); c.free(p)")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            done = stook("run", "--on-fault", "log", "--report-json", path, "--",
                         "/usr/bin/python3", "-c", script)
            self.assertEqual(done.returncode, 23, done)
            self.assertRegex(done.stderr, r"^stook: double free: pointer 0x[0-9a-f]+ .*\n"
                                          r"  program python3[0-9.]* \(pid \d+\), thread \d+\n")
            with open(path) as lines:
                report = json.loads(lines.readline())
            self.assertEqual(report["fault"], "double free")
            self.assertIn(report["text"] + "\n", done.stderr)
            # No such folder: told once, at the start; not again for two reports. Each is of an
            # object of its own: a slow report leaves time for the one before to leave the slot.
            path = os.path.join(folder, "no", "x.json")
            again = "; p = c.malloc(5000); c.free(p); c.free(p)"
            done = subprocess.run(["/usr/bin/python3", "-c", script + again],
                                  env={"LD_PRELOAD": DROP_IN, "STOOK_ON_FAULT": "log",
                                       "STOOK_REPORT_JSON": path}, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done)
            self.assertEqual(done.stderr.count("stook: double free"), 2, done.stderr)
            self.assertEqual(done.stderr.count(f"stook: STOOK_REPORT_JSON: {path}: no JSON report: "
                                               "no such folder or file\n"), 1, done.stderr)

    def test_no_link_of_others(self):
        """In a folder that everybody writes to nothing is written through a link."""
        script = ("import ctypes; c = ctypes.CDLL(None); c.malloc.restype = ctypes.c_void_p; "
                  "c.free.argtypes = [ctypes.c_void_p]; p = c.malloc(5000); c.free(p); c.free(p)")
        with tempfile.TemporaryDirectory() as folder:
            victim, link = os.path.join(folder, "victim"), os.path.join(folder, "open", "link")
            os.mkdir(os.path.dirname(link))
            open(victim, "w").close()
            os.symlink(victim, link)
            for mode, written in ((0o1777, False), (0o700, True)):
                os.chmod(os.path.dirname(link), mode)
                for name in ("STOOK_REPORT_JSON", "STOOK_RECORD"):
                    os.truncate(victim, 0)
                    done = subprocess.run(["/usr/bin/python3", "-c", script], text=True,
                                          env={"LD_PRELOAD": DROP_IN, "STOOK_ON_FAULT": "log",
                                               name: link}, capture_output=True)
                    self.assertIn("stook: double free", done.stderr)
                    self.assertEqual(os.path.getsize(victim) > 0, written, (name, done.stderr))


GUARDS = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char *volatile object;

__attribute__((noinline)) void touch(long at) { object[at] = 1; }

static void handled(int number) { (void)number; _exit(7); }

int main(int argc, char **argv)
{
        object = malloc((size_t)atol(argv[1]));
        printf("%p\n", (void *)object);
        fflush(stdout);
        if (argc > 3 && argv[3][0] == 'h')
                signal(SIGSEGV, handled);
        if (argc > 3 && argv[3][0] == 'r')
                raise(SIGSEGV);
        touch(atol(argv[2]));
        return 0;
}
"""


class GuardHit(Compiled):
    """Under STOOK_HARDEN=guard a hit names the object, and the program ends as without."""

    def hit(self, *args):
        program = self.compile("guards", GUARDS, "-g")
        done = stook("run", "--harden=guard", "--", program, *map(str, args))
        return done.returncode, done.stdout.strip(), done.stderr

    def test_named(self):
        page = os.sysconf("SC_PAGE_SIZE")
        for size in (200000, 50 << 20):         # cut out of a span; a mapping of its own
            usable = -(-size // page) * page
            for at in (usable, usable + page - 1, -1, -page):
                status, object_, said = self.hit(size, at)
                self.assertEqual(status, 128 + signal.SIGSEGV)
                fault, side = ("underrun", "before") if at < 0 else ("overrun", "behind")
                self.assertRegex(said, f"^stook: {fault}: pointer {object_}: the guard page {side} "
                                 f"it was (read or )?written at {int(object_, 16) + at:#x}\n"
                                 "  program guards ")
                self.assertIn(f"  the object has {usable} bytes\n", said)
                if has_libdw():
                    self.assertRegex(said, r"found here\n    #0 touch \S+:\d+\n    #1 main ")

    def test_others_are_not(self):
        for args in ((200000, -(1 << 40)), (200000, 0, "raise")):
            status, _, said = self.hit(*args)
            self.assertEqual((status, said), (128 + signal.SIGSEGV,
                                              "stook: guards: Segmentation fault\n"))
        self.assertEqual(self.hit(200000, -1, "handled")[0::2], (7, ""))
        self.assertEqual(self.hit(200000, 0)[0::2], (0, ""))


class ReportFile(unittest.TestCase):
    """STOOK_REPORT_JSON, looked at when the process starts: no report is needed to see a fault."""

    def start(self, path):
        done = subprocess.run(["echo", "ran"], env={"LD_PRELOAD": DROP_IN,
                                                    "STOOK_REPORT_JSON": path},
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done)
        return done.stderr

    def test_that_cannot_be(self):
        with tempfile.TemporaryDirectory() as folder:
            missing = os.path.join(folder, "no", "x.json")
            below_a_file = os.path.join(__file__, "x.json")
            for path, why in ((missing, "no such folder or file"), (folder, "it is a folder"),
                              (below_a_file, "no such folder or file")):
                self.assertRegex(self.start(path), f"^stook: STOOK_REPORT_JSON: {path}: "
                                 f"no JSON report: ({why})\n$")
            self.assertEqual(self.start("/" + "x" * 511), f"stook: STOOK_REPORT_JSON=/{'x' * 99}: "
                             "takes a path of at most 511 bytes\n")

    def test_that_can_be(self):
        """Nothing is said, and no file is made."""
        with tempfile.TemporaryDirectory() as folder:
            there, fifo = os.path.join(folder, "there"), os.path.join(folder, "fifo")
            with open(there, "w") as f:
                f.write("old\n")
            os.mkfifo(fifo)
            for path in (there, fifo, os.path.join(folder, "new"), "/dev/null", ""):
                self.assertEqual(self.start(path), "")
            self.assertEqual(sorted(os.listdir(folder)), ["fifo", "there"])


FREES_TWICE = r"""
#include <stdlib.h>

__attribute__((noinline)) static int release(void *object, int depth)
{
        volatile char frame[200] = { 0 };

        if (depth)
                return release(object, depth - 1) + frame[0];
        free(object);
        free(object);
        return frame[1];
}

int main(void)
{
        volatile int done = release(malloc(100), 3);    /* no tail call */

        return done;
}
"""


# Each object has had a user before, whose free is of no interest.
OVERRUN = r"""
#include <stdlib.h>

static char *objects[1000];

__attribute__((noinline)) static void user_before(void *p)
{
        free(p);
}

int main(void)
{
        for (int i = 0; i < 1000; i++)
                objects[i] = malloc(12);
        for (int i = 0; i < 1000; i++)
                user_before(objects[i]);
        objects[0] = malloc(12);
        ((volatile char *)objects[0])[12] = 0;
        free(objects[0]);
}
"""


# Over the red zone, the state and the record of the allocation; the argument is the byte.
BEYOND = r"""
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
        char *object = malloc(64);

        memset(object, 'A', 64);
        memset(object + 64, atoi(argv[1]), 80);
        if (argc > 2)
                free(object);
        return 0;
}
"""


# What it does wrong, in a child as well; and its exit status.
FAULTY = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *volatile lost;

int main(int argc, char **argv)
{
        const char *what = argv[1];
        char *object;

        if (argc > 3 && fork()) {
                wait(NULL);
                return atoi(argv[2]);
        }
        object = malloc(100);
        if (!strcmp(what, "leak")) {
                for (int i = 0; i < 50; i++)
                        lost = malloc(100);
        } else {
                free(object);
        }
        if (!strcmp(what, "write"))
                object[5] = 1;
        if (!strcmp(what, "free"))
                free(object);
        lost = NULL;
        return atoi(argv[2]);
}
"""


class ExitStatus(Compiled):
    """Not 0 where anything was found; the program's own failure goes before."""

    def status(self, *words, **kwargs):
        done = stook("run", *words, **kwargs)
        said = f"stook: faulty: exit status {done.returncode} for what was reported " \
            "(--error-exitcode)\n"
        self.assertEqual(said in done.stderr, done.returncode not in (0, 2, 5, 134), done.stderr)
        return done.returncode

    def test_what_was_found(self):
        program = self.compile("faulty", FAULTY, "-w")
        leaks, debug, harden = ["--leaks"], ["--debug", "FZPU"], ["--harden", "--on-fault", "log"]
        for options, what in ((debug, "write"), (leaks, "leak"), (harden, "free")):
            for more, status in (([], 23), (["--error-exitcode", "99"], 99),
                                 (["--error-exitcode=0"], 0)):
                run = [*options, *more, "--", program]
                self.assertEqual(self.status(*run, what, "0"), status)
                self.assertEqual(self.status(*run, what, "5"), 5)
                self.assertEqual(self.status(*run, what, "0", "child"), status)
                self.assertEqual(self.status(*run, "nothing", "0"), 0)
        run = ["--stats", *debug, "--", program, "write", "0"]
        self.assertEqual(self.status(*run), 23)
        self.assertEqual(self.status(*run, preexec_fn=without_memfd), 23)
        # Suppressed leaks are none; a signal is a failure of the program's.
        if has_libdw():
            self.assertEqual(self.status(*leaks, "--suppress", "main", "--", program, "leak", "0"),
                             0)
        self.assertEqual(self.status("--harden", "--", program, "free", "0"), 134)

    def test_refused(self):
        for number in ("", "x", "256", "-1", "1 "):
            done = stook("run", "--error-exitcode", number, "--", "echo", "started")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("--error-exitcode takes ", done.stderr)

    def test_other_files_stay(self):
        """STOOK_NOTES has a file of `stook run`, or nothing."""
        program = self.compile("faulty", FAULTY, "-w")
        path = os.path.join(self.folder, "mine")
        for content in (b"", b"12345678", b"a text of mine"):
            with open(path, "wb") as f:
                f.write(content)
            done = subprocess.run([program, "write", "0"], capture_output=True, text=True,
                                  env={"LD_PRELOAD": DROP_IN, "STOOK_DEBUG": "FZP",
                                       "STOOK_NOTES": path})
            self.assertIn("write after free", done.stderr)
            self.assertEqual(done.returncode, 0)
            with open(path, "rb") as f:
                self.assertEqual(f.read(), content)
        self.assertEqual(self.status("--debug", "F", "--", program, "nothing", "0",
                                     env={**os.environ, "STOOK_NOTES": path}), 0)


class Debugged(Compiled):
    def test_an_overrun_beyond_the_red_zone(self):
        """Whatever was written, by the free and by the check at exit: the first byte is the 64th,
        and what was known of the allocation is told."""
        program = self.compile("beyond", BEYOND)
        for byte in ("0", "65", "255"):
            for free in ([], ["free"]):
                done = stook("run", "--debug", "FZPU", "--on-fault", "log", "--", program, byte,
                             *free)
                self.assertRegex(done.stderr,
                                 r"^stook: overrun: .* \(cache malloc-64, .*\): found ")
                self.assertIn("  the object has 64 bytes\n", done.stderr)
                self.assertIn(f" (64 bytes from its start): expected cc, found {int(byte):02x}\n",
                              done.stderr)
                self.assertIn("\n  allocated by thread ", done.stderr)
                self.assertNotIn("freed by", done.stderr)

    def test_an_overrun_found_by_a_free(self):
        done = stook("run", "--debug", "FZPU", "--", self.compile("overrun", OVERRUN, "-g"))
        self.assertIn("stook: overrun: ", done.stderr)
        self.assertIn("\n  allocated by thread ", done.stderr)
        self.assertNotIn("freed by", done.stderr)


class Ordinary(Compiled):
    """Reports of a process without debug modes, not started by stook run."""

    def said(self, **env):
        program = self.compile("twice", FREES_TWICE, "-g", "-w")
        env = {**os.environ, "LD_PRELOAD": DROP_IN, **env}
        done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, -signal.SIGABRT, done.stderr)
        return done.stderr

    def report(self, **env):
        first, named, rest = self.said(**env).split("\n", 2)
        self.assertRegex(first, r"^stook: double free: pointer 0x")
        self.assertRegex(named, r"^  program twice \(pid \d+\), thread \d+$")
        return rest

    def test_stack(self):
        if not has_libdw():
            self.skipTest("built without libdw")
        deeper = r"    #\d release .*:9\n" * 3
        self.assertRegex(self.report(), r"^  found here\n    #0 release .*:11\n" + deeper +
                         r"    #4 main .*:17\n$")

    def test_no_symbolizer(self):
        for none in ("", "/no/such/program"):
            self.assertEqual(self.report(STOOK_SYMBOLIZER=none), "")

    def test_a_symbolizer_too_long_is_refused(self):
        said = self.said(STOOK_SYMBOLIZER="/" + "x" * 511)
        self.assertIn("stook: STOOK_SYMBOLIZER=/xxx", said)
        self.assertIn(": takes a path of at most 511 bytes\n", said)
        self.assertNotIn("STOOK_SYMBOLIZER", self.said(STOOK_SYMBOLIZER="/" + "x" * 510))

    def test_damaged_requests(self):
        """What is no walk has no frames; the other stacks are answered."""
        if not has_libdw():
            self.skipTest("built without libdw")
        for line in ("@", "@x", "@0 0", "@ffffffffffff 0 0", "@0 0 0", "@0 0 0 7 0", "@8 0 1 7\n",
                     "@100 0 1000 7 1000", "@0 0 0 ffff 1"):
            done = stook("symbolize", "--pid", str(os.getpid()), stdin=None, input=line + "\n")
            self.assertEqual(done.returncode, 0, line)
            self.assertRegex(done.stdout, r"^(0x0\n|0x1000\n)?\n+$", line)


class Static(Compiled):
    def test_found_here(self):
        """A wholly static program: the call that found the fault is walked by the helper; who
        allocated it is known where the unwinder of libc is linked and takes no lock."""
        archives = [os.path.join(BUILD, name) for name in ("libstook-malloc.a", "libstook.a")]
        if not has_libdw() or not all(map(os.path.exists, archives)):
            self.skipTest("built without libdw, or without archives")
        link = ["-Wl,--whole-archive", archives[0], "-Wl,--no-whole-archive", archives[1],
                "-pthread", "-g", "-O0"]
        for flags, known in ((["-static"], False), (["-static", "-Wl,-u,backtrace"], False),
                             (["-static-pie", "-fPIE", "-Wl,-u,backtrace"], True)):
            program = self.compile("static", OVERRUN, *link, *flags)
            done = subprocess.run([program], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True, env=os.environ | {
                                      "STOOK_DEBUG": "FZPU", "STOOK_SYMBOLIZER": STOOK})
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, r"\Astook: overrun: .*\n(?s:.*)found here\n    #0 main ")
            self.assertEqual(bool(re.search(r"allocated by .*\n(    #\d [a-z].*\n)*    #\d main ",
                                            done.stderr)), known, flags)


CLOSES = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        void *library = dlopen(argv[1], RTLD_NOW);
        void *(*make)(void) = library ? (void *(*)(void))dlsym(library, "make_it") : NULL;
        char *object = make ? make() : NULL;

        if (!object || dlclose(library))
                return 1;
        if (argc > 2) {
                printf("%p\n", (void *)object);
                fflush(stdout);
                return read(0, object, 1) < 0;
        }
        object[100] = 0;
        free(object);
        return 0;
}
"""


class Closed(Compiled):
    def setUp(self):
        super().setUp()
        self.path = self.compile("plug.so", """
#include <stdlib.h>
void *make_it(void) { void *p = malloc(100); __asm__ volatile("" : "+r"(p)); return p; }
""", "-g", "-shared", "-fPIC")
        self.closes = self.compile("closes", CLOSES, "-g", "-ldl")

    def said(self, *args, **environment):
        done = subprocess.run([self.closes, *args], stdin=subprocess.DEVNULL, text=True,
                              stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=os.environ | {"LD_PRELOAD": DROP_IN, "STOOK_DEBUG": "FZPU",
                                                "STOOK_ON_FAULT": "log"} | environment)
        self.assertEqual(done.returncode, 0, done)
        return done.stderr

    def test_report(self):
        """A plug-in that was closed has names, or its file and the offset there; if the file is
        gone, too, the latter."""
        plain = r"allocated by .*\n    #0 0x[0-9a-f]+ in plug\.so\+0x[0-9a-f]+\n"
        said = self.said(self.path, STOOK_SYMBOLIZER="")
        if not re.search(plain, said):
            self.skipTest("this C library does not tell which file is where")
        if has_libdw():
            self.assertRegex(self.said(self.path), r"allocated by .*\n    #0 make_it .*:3\n"
                                                   r"    #1 main .*:11\n")
            ask = ["symbolize", "--pid", str(os.getpid())]
            self.assertEqual(stook(*ask, stdin=None, input="/no+1x\n").returncode, 2)
            done = stook(*ask, stdin=None, input="/no/such/plug.so+10 /no+2\n")
            self.assertRegex(done.stdout, r"^0x\w+ in plug.so\+0x10\n0x\w+ in no\+0x2\n\n$")

    def test_leaks_and_what(self):
        if not has_libdw():
            self.skipTest("built without libdw")
        said = self.said(self.path, "stays", STOOK_LEAKS="1")
        with subprocess.Popen([self.closes, self.path, "stays"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True,
                              env=os.environ | {"LD_PRELOAD": DROP_IN, "STOOK_DEBUG": "U"}) as p:
            address = p.stdout.readline().strip()
            done = stook("what", str(p.pid), address)
            p.stdin.close()
        self.assertEqual(done.returncode, 0, done)
        if "make_it" not in done.stdout and "in plug.so" not in self.said(self.path,
                                                                          STOOK_SYMBOLIZER=""):
            self.skipTest("this C library does not tell which file is where")
        self.assertRegex(done.stdout, r"#0 make_it .*:3\n")
        self.assertRegex(said, r"#0 make_it .*:3\n")


if __name__ == "__main__":
    main()
