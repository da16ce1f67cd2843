#!/usr/bin/env python3
"""Proves: --compare and --repeat make the runs they promise, in turn, on the allocators they name,
show the output of the first alone, and that the figures printed follow from the runs."""
import math
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
import unittest

from stook import Compiled, STOOK, figures, main, stook

# Appends to argv[1] the allocator it runs on, and copies its input to its output.
SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
        const char *preload = getenv("LD_PRELOAD");
        FILE *f = fopen(argv[1], "a");
        int c;

        if (argc < 2 || !f)
                return 99;
        fprintf(f, "%s%s\n", preload && strstr(preload, "libstook-malloc.so") ? "stook" : "system",
                getenv("STOOK_STATS") ? "+figures" : "");
        fclose(f);
        while ((c = getchar()) != EOF)
                putchar(c);
        fputs("shown\n", stderr);
        return argc > 2 ? atoi(argv[2]) : 0;
}
"""


def sign_test(less, more):
    n = less + more
    return min(1, 2 * sum(math.comb(n, i) for i in range(min(less, more) + 1)) / 2 ** n)


class Compare(Compiled):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = cls.compile(cls(), "recorder", SOURCE)

    def setUp(self):
        self.log = os.path.join(self.folder, "log")
        if os.path.exists(self.log):
            os.unlink(self.log)

    def runs(self):
        with open(self.log) as f:
            return f.read().split()

    def test_in_turn(self):
        done = stook("run", "--compare", "--repeat", "3", self.program, self.log)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.runs(), ["stook", "stook", "system", "system", "stook", "stook",
                                       "system"])
        for line in (r"3 runs each +min +median +max +ratio +pairs", r"wall time",
                     r"user\+sys time", r"peak resident"):
            self.assertRegex(done.stderr, f"(?m)^  {line}$")
        for side in ("Stook", "system malloc"):
            self.assertEqual(len(re.findall(rf"(?m)^    {side} +\d", done.stderr)), 3, done.stderr)
        self.assertIn("ran 3 times on Stook and 3 on the system malloc, in turn", done.stderr)
        self.assertIn('"ratio" is that of the two medians', done.stderr)

    def test_fits_a_terminal(self):
        """With so few pairs that nothing can be told, and with enough."""
        for repeat in ("1", "6"):
            done = stook("run", "--compare", "--repeat", repeat, self.program, self.log)
            self.assertLessEqual(max(map(len, done.stderr.splitlines())), 80, done.stderr)

    def test_six_by_default(self):
        stook("run", "--compare", self.program, self.log)
        self.assertEqual(len(self.runs()), 13)

    def test_repeat_alone_stays_on_stook(self):
        done = stook("run", "--repeat", "2", self.program, self.log)
        self.assertEqual(self.runs(), ["stook"] * 3)
        self.assertNotIn("system", done.stderr)

    def test_only_the_first_leaves_figures(self):
        stook("run", "--stats", "--compare", "--repeat", "2", self.program, self.log)
        self.assertEqual(self.runs(), ["stook+figures", "stook", "system", "system", "stook"])

    def test_output_of_the_first_alone(self):
        done = stook("run", "--compare", "--repeat", "2", self.program, self.log,
                     input="text", stdin=None)
        self.assertEqual(done.stdout, "text")
        self.assertEqual(done.stderr.count("shown\n"), 1)

    def test_output_kept(self):
        with tempfile.TemporaryFile("w+") as text:
            text.write("skipped text")
            text.seek(8)
            os.lseek(text.fileno(), 8, os.SEEK_SET)
            done = stook("run", "--compare", "--repeat", "2", "--keep-output",
                         self.program, self.log, stdin=text)
        # a file is read from the same place each time
        self.assertEqual(done.stdout, "text" * 5)
        self.assertEqual(done.stderr.count("shown\n"), 5)

    def test_status_is_the_programs(self):
        done = stook("run", "--compare", "--repeat", "1", self.program, self.log, "3")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(len(self.runs()), 3)
        self.assertIn("Each run ended with exit status 3", done.stderr)
        self.assertNotIn("Each run", stook("run", "--repeat", "1", "true").stderr)

    def test_runs_that_end_otherwise_are_told(self):
        script = '[ -e "$0" ] && exit 4; : > "$0"'
        done = stook("run", "--compare", "--repeat", "1", "sh", "-c", script,
                     os.path.join(self.folder, "once"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("run 1 on Stook ended with exit status 4, the first run with 0", done.stderr)
        self.assertIn("run 1 on system malloc ended with exit status 4, the first run with 0",
                      done.stderr)

    def test_killed_first_run_ends_it(self):
        done = stook("run", "--compare", "sh", "-c", 'echo x >> "$0"; kill -TERM $$', self.log)
        self.assertEqual(done.returncode, 143)
        self.assertEqual(self.runs(), ["x"])
        self.assertIn("no run was timed", done.stderr)

    def test_interrupted_timed_run_ends_it(self):
        # The first run, and one timed run of each side, end by themselves; the next one waits for
        # the signal.
        script = 'echo x >> "$0"; [ $(wc -l < "$0") -lt 4 ] || exec sleep 60'
        p = subprocess.Popen([STOOK, "run", "--compare", "--repeat", "3", "sh", "-c", script,
                              self.log],
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        limit = time.monotonic() + 50
        while (not os.path.exists(self.log) or len(self.runs()) < 4) and time.monotonic() < limit:
            time.sleep(0.01)
        p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=50)
        self.assertEqual(p.returncode, 128 + signal.SIGTERM)
        self.assertEqual(self.runs(), ["x"] * 4)
        self.assertIn("1 of 3 runs were timed", err)
        self.assertIn("ran 1 time on Stook and 1 on the system malloc", err)

    def test_numbers_follow_from_the_runs(self):
        done, data = figures("sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
                             options=["--compare", "--repeat", "4"])
        timed = data["timed"]
        self.assertEqual(timed["runs"], 4)
        for key in ("wall_s", "cpu_s", "peak_resident_bytes"):
            ours, theirs = timed["stook"][key], timed["system"][key]
            self.assertEqual((len(ours), len(theirs)), (4, 4))
            self.assertTrue(all(v > 0 for v in ours + theirs), (key, ours, theirs))
            ratio, pairs = timed["ratio"][key], [a / b for a, b in zip(ours, theirs)]
            self.assertAlmostEqual(ratio["of_medians"] / (statistics.median(ours) /
                                                          statistics.median(theirs)), 1, places=3)
            self.assertAlmostEqual(ratio["pair_min"] / min(pairs), 1, places=3)
            self.assertAlmostEqual(ratio["pair_max"] / max(pairs), 1, places=3)
            less, more = sum(p < 1 for p in pairs), sum(p > 1 for p in pairs)
            self.assertEqual((ratio["pairs_less"], ratio["pairs_more"]), (less, more))
            self.assertAlmostEqual(ratio["chance"], sign_test(less, more), places=5)

    def test_what_so_many_pairs_can_show(self):
        """On the system's malloc this program takes 32 MiB more: all pairs agree."""
        path = self.compile("bigger", r'''
#include <stdlib.h>
#include <string.h>
int main(void)
{
        const char *preload = getenv("LD_PRELOAD");
        size_t n = (preload && strstr(preload, "libstook-malloc.so") ? 1 : 33) << 20;
        return !memset(malloc(n), 1, n);
}
''')
        for pairs, chance in ((1, 1), (3, 1 / 4), (5, 1 / 16), (6, 1 / 32), (12, 2 / 4096)):
            done, data = figures(path, options=["--compare", "--repeat", str(pairs)])
            peak = data["timed"]["ratio"]["peak_resident_bytes"]
            self.assertEqual((peak["pairs_less"], peak["pairs_more"]), (pairs, 0))
            self.assertAlmostEqual(peak["chance"], chance, places=6)
            self.assertEqual(peak["verdict"], "less" if pairs >= 6 else "no difference seen")
            said = done.stderr[done.stderr.index("\nPeak memory:"):]
            if pairs >= 6:
                self.assertRegex(said, r"^\nPeak memory: \d+ %% less on Stook than on the system "
                                       r"malloc\n  \(median of the %d pairs' ratios 0\.\d\d, "
                                       r"95 %% interval 0\.\d\d to 0\.\d\d\)\.\n$" % pairs)
            else:
                self.assertRegex(said, r"^\nPeak memory: no difference seen: fewer than 6 pairs "
                                       r"of runs cannot show one\n  \(median of the pairs' "
                                       r"ratios 0\.\d\d\)\.\n$")

    def test_sentences_follow_from_the_pairs(self):
        done, data = figures("true", options=["--compare", "--repeat", "8"])
        for key, start in (("wall_s", "Time:"), ("cpu_s", "Processor time:"),
                           ("peak_resident_bytes", "Peak memory:")):
            ratio = data["timed"]["ratio"][key]
            said = [line for line in done.stderr.splitlines() if line.startswith(start)][0]
            pairs = sorted(a / b for a, b in zip(data["timed"]["stook"][key],
                                                 data["timed"]["system"][key]))
            # Of eight pairs, the interval is from the least to the greatest.
            self.assertAlmostEqual(ratio["low"] / pairs[0], 1, places=3)
            self.assertAlmostEqual(ratio["high"] / pairs[-1], 1, places=3)
            self.assertAlmostEqual(ratio["of_pairs"] / statistics.median(pairs), 1, places=3)
            verdict = "less" if ratio["high"] < 1 else "more" if ratio["low"] > 1 else \
                "no difference seen"
            self.assertEqual(ratio["verdict"], verdict)
            self.assertIn(verdict, said)
            # Equal pairs count for the interval, and not for the sign test.
            if verdict != "no difference seen":
                self.assertLessEqual(ratio["chance"], 0.05, said)

    def test_the_interval_is_that_of_order_statistics(self):
        done, data = figures("true", options=["--compare", "--repeat", "12"])
        for key in ("wall_s", "cpu_s"):
            ratio = data["timed"]["ratio"][key]
            pairs = sorted(a / b for a, b in zip(data["timed"]["stook"][key],
                                                 data["timed"]["system"][key]))
            self.assertAlmostEqual(ratio["low"] / pairs[2], 1, places=3)
            self.assertAlmostEqual(ratio["high"] / pairs[9], 1, places=3)

    def test_against_another_allocator(self):
        library = os.path.join(self.folder, "libother.so")
        source = r"""
#include <stddef.h>
static char memory[8 << 20];
static size_t used;
void *malloc(size_t n)
{
        size_t at = used;
        used += (n + 31) & ~(size_t)15;
        *(size_t *)(memory + at) = n;
        return used < sizeof memory ? memory + at + 16 : NULL;
}
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n)
{
        char *from = p, *to = malloc(n);
        if (p)
                for (size_t i = 0, old = ((size_t *)p)[-2]; to && i < old && i < n; i++)
                        to[i] = from[i];
        return to;
}
"""
        built = self.compile("libother.so", source, "-shared", "-fPIC")
        self.assertEqual(built, library)
        done, data = figures(self.program, self.log, options=["--against", library, "--repeat",
                                                              "2"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.runs(), ["stook+figures", "stook", "system", "system", "stook"])
        self.assertEqual(data["timed"]["against"], "libother.so")
        self.assertRegex(done.stderr, r"(?m)^    libother\.so +\d")
        self.assertIn("and 2 on libother.so, in turn", done.stderr)

    def test_against_nothing_is_refused_by_a_line(self):
        text = os.path.join(self.folder, "text")
        with open(text, "w") as f:
            f.write("no library\n")
        empty = self.compile("libempty.so", "int f(void) { return 0; }", "-shared", "-fPIC")
        for library in ("/nonexistent.so", text, empty, "libnone-such.so", "", "a b", "x:y",
                        self.folder):
            done = stook("run", "--against", library, "true")
            self.assertEqual((done.returncode, done.stdout), (2, ""), library)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn("--against", done.stderr)
        self.assertEqual(stook("run", "--against", "", "true").stderr,
                         "stook run: --against takes a library, not ''\n")

    def test_nothing_to_compare_is_said(self):
        path = self.compile("static", "int main(void) { return 0; }", "-static")
        done = stook("run", "--compare", "--repeat", "1", path)
        self.assertIn("compares nothing", done.stderr)


if __name__ == "__main__":
    main()
