#!/usr/bin/env python3
"""Proves: samples begin and end in processes that were started with nothing set, and in quiet ones
as far as the manual says; a signal does the same; `stook run --sample` writes a profile; guarded
samples find a bug in a program that runs on, or ends; each error is one line."""
import os
import re
import signal
import subprocess
import time

from stook import Compiled, DROP_IN, main, stook

BUSY = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define KEEP __attribute__((noinline))
KEEP void *kept(size_t n) { void *p = malloc(n); __asm__ volatile("" : "+r"(p)); return p; }
int main(int count, char **words)
{
        (void)words;
        puts("up");
        fflush(stdout);
        while (count > 1 && getppid() != 1)
                sleep(1);
        for (unsigned i = 0; i < 400u << 20 && getppid() != 1; i++) {
                free(kept(3000));
                if (i % 16 == 0)
                        usleep(10);
        }
        return 0;
}"""

BUG = """
#include <stdlib.h>
__attribute__((noinline)) void *made(void) { return malloc(48); }
__attribute__((noinline)) void given(void *p) { free(p); }
int main(void)
{
        for (int i = 0; i < 300000; i++) {
                char *volatile p = made();
                p[0] = 1;
                given(p);
                if (i % 4 == 0)
                        p[1] = 1;
        }
        return 0;
}"""


class Live:
    """A program on the drop-in that goes on until the end of the block."""

    def __init__(self, *words, **env):
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**os.environ, "LD_PRELOAD": DROP_IN, **env})
        self.process.stdout.readline()
        self.pid = str(self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.communicate()


class Sampling(Compiled):
    def profile(self, *words, status=0):
        done = stook("profile", *words)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def until(self, happened):
        deadline = time.monotonic() + 100
        while not happened():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def refused(self, words, says):
        done = self.profile(*words, status=2)
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_from_outside(self):
        program = self.compile("busy", BUSY, "-g", "-rdynamic")
        with Live(program) as p:
            self.refused([p.pid], f"process {p.pid} has no heap profile: --start begins one")
            self.refused(["--stop", p.pid], f"process {p.pid} has no samples to stop")
            done = self.profile("--start=16K", p.pid)
            self.assertIn("one sample in 16384 bytes, at most 200 a second", done.stderr)
            self.until(lambda: re.search(r"(?m)(kept|0x)[^ ]* [0-9]+$", self.profile(
                "--folded", "--type", "alloc_space", p.pid).stdout))
            self.assertEqual(self.profile("--stop", p.pid).stdout, "")
            self.refused(["--stop", p.pid], "has no samples to stop")
            self.until(lambda: "lived" in self.profile(
                "--for", "0.3s", "--start=4K,lifetimes", "--lifetimes", p.pid).stdout)
            self.assertIsNone(p.process.poll())

    def test_quiet(self):
        """No call at all: the maintenance thread answers."""
        program = self.compile("busy", BUSY, "-g", "-rdynamic")
        with Live(program, "quiet", STOOK_MAINTENANCE="1") as p:
            self.profile("--start=1", p.pid)
            self.profile("--stop", p.pid)

    def test_signal(self):
        """Signals that come closely are one, so they are sent until two sessions have ended."""
        program = self.compile("busy", BUSY, "-g", "-rdynamic")
        path = os.path.join(self.folder, "signal.pb")
        with Live(program, STOOK_SAMPLE=f"off,8K,signal=12,file={path}") as p:
            self.refused([p.pid], "has no heap profile")
            for expected in (f"{path}.1", f"{path}.2"):
                while not os.path.exists(expected):
                    p.process.send_signal(signal.SIGUSR2)
                    time.sleep(0.3)
                done = self.profile("--type", "alloc_space", expected)
                self.assertIn("alloc_space: ", done.stdout)

    def test_run(self):
        program = self.compile("bug", BUG.replace("p[1] = 1", "(void)p"), "-g", "-rdynamic")
        path = os.path.join(self.folder, "run.pb")
        done = stook("run", "--sample=1K,most=1000000", "--profile", path, "--", program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = self.profile("--folded", "--type", "alloc_objects", path)
        count = sum(int(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines())
        self.assertLess(abs(count - 300000), 60000)
        for words, says in ((["--sample=x"], "--sample takes [BYTES]"),
                            (["--sample=off"], "--sample takes [BYTES]"),
                            (["--sample", "--profile", path + ",interval=1"],
                             "beside --sample, --profile takes FILE alone")):
            done = stook("run", *words, "--", program)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)

    def test_refused(self):
        for words, says in ((["--start=x", "1"], "--start takes [BYTES]"),
                            (["--start=signal=3", "1"], "--start takes [BYTES]"),
                            (["--for", "x", "1"], "--for takes a time such as 30s"),
                            (["--for", "-1s", "1"], "--for takes a time such as 30s"),
                            (["--start", "--stop", "1"], "--stop is by itself")):
            self.refused(words, says)
        for value in ("guard=0", "on,interval=0", "on,signal=65", "off,x", "file="):
            done = subprocess.run(["true"], env={**os.environ, "LD_PRELOAD": DROP_IN,
                                                 "STOOK_SAMPLE": value},
                                  stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (0, 1), value)
            self.assertIn("STOOK_SAMPLE", done.stderr)

    def test_guard(self):
        """A write after a free, in one call of four of a site with 300,000 calls: found at the
        first guarded sample that has it."""
        program = self.compile("bug", BUG, "-g", "-rdynamic")
        done = stook("run", "--sample=4K,guard=100", "--", program)
        self.assertEqual(done.returncode, 128 + signal.SIGSEGV, done.stderr)
        self.assertRegex(done.stderr, r"stook: use after free: pointer 0x[0-9a-f]+")
        text = done.stderr
        for what in ("allocated", "freed"):
            self.assertIn(what, text)
        if " made" in text:
            self.assertRegex(text, r"(?s)made.*given|given.*made")
        done = stook("run", "--sample=4K,guard=100", "--on-fault", "log", "--", program,
                     env={**os.environ, "STOOK_SYMBOLIZER": ""})
        self.assertIn("stook: use after free: pointer 0x", done.stderr)
        self.assertEqual(done.returncode, 23)


if __name__ == "__main__":
    main()
