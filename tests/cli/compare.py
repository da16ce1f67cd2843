#!/usr/bin/env python3
"""Proves: --compare and --repeat make the runs they promise, in turn, on the allocators they name, show the output of
the first alone, and that the figures printed follow from the runs."""
import os
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
        self.assertEqual(self.runs(), ["stook"] + ["stook", "system"] * 3)
        for word in ("Stook: min", "system malloc: min", "wall time", "user+sys time", "peak resident", "median"):
            self.assertIn(word, done.stderr)
        self.assertIn("ran 3 times on Stook and 3 on the system malloc, in turn", done.stderr)

    def test_five_by_default(self):
        stook("run", "--compare", self.program, self.log)
        self.assertEqual(len(self.runs()), 11)

    def test_repeat_alone_stays_on_stook(self):
        done = stook("run", "--repeat", "2", self.program, self.log)
        self.assertEqual(self.runs(), ["stook"] * 3)
        self.assertNotIn("system", done.stderr)

    def test_only_the_first_leaves_figures(self):
        stook("run", "--stats", "--compare", "--repeat", "2", self.program, self.log)
        self.assertEqual(self.runs(), ["stook+figures"] + ["stook", "system"] * 2)

    def test_output_of_the_first_alone(self):
        done = stook("run", "--compare", "--repeat", "2", self.program, self.log, input="text", stdin=None)
        self.assertEqual(done.stdout, "text")
        self.assertEqual(done.stderr.count("shown\n"), 1)

    def test_output_kept(self):
        with tempfile.TemporaryFile("w+") as text:
            text.write("skipped text")
            text.seek(8)
            os.lseek(text.fileno(), 8, os.SEEK_SET)
            done = stook("run", "--compare", "--repeat", "2", "--keep-output", self.program, self.log, stdin=text)
        self.assertEqual(done.stdout, "text" * 5)       # a file is read from the same place each time
        self.assertEqual(done.stderr.count("shown\n"), 5)

    def test_status_is_the_programs(self):
        done = stook("run", "--compare", "--repeat", "1", self.program, self.log, "3")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(len(self.runs()), 3)
        self.assertIn("Each run ended with exit status 3", done.stderr)
        self.assertNotIn("Each run", stook("run", "--repeat", "1", "true").stderr)

    def test_runs_that_end_otherwise_are_told(self):
        script = '[ -e "$0" ] && exit 4; : > "$0"'
        done = stook("run", "--compare", "--repeat", "1", "sh", "-c", script, os.path.join(self.folder, "once"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("run 1 on Stook ended with exit status 4, the first run with 0", done.stderr)
        self.assertIn("run 1 on system malloc ended with exit status 4, the first run with 0", done.stderr)

    def test_killed_first_run_ends_it(self):
        done = stook("run", "--compare", "sh", "-c", 'echo x >> "$0"; kill -TERM $$', self.log)
        self.assertEqual(done.returncode, 143)
        self.assertEqual(self.runs(), ["x"])
        self.assertIn("no run was timed", done.stderr)

    def test_interrupted_timed_run_ends_it(self):
        # The first run, and one timed run of each side, end by themselves; the next one waits for the signal.
        script = 'echo x >> "$0"; [ $(wc -l < "$0") -lt 4 ] || exec sleep 60'
        p = subprocess.Popen([STOOK, "run", "--compare", "--repeat", "3", "sh", "-c", script, self.log],
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        limit = time.monotonic() + 50
        while (not os.path.exists(self.log) or len(self.runs()) < 4) and time.monotonic() < limit:
            time.sleep(0.01)
        p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=50)
        self.assertEqual(p.returncode, 128 + signal.SIGTERM)
        self.assertEqual(len(self.runs()), 4)
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
            self.assertAlmostEqual(ratio["of_medians"] / (statistics.median(ours) / statistics.median(theirs)), 1, places=3)
            self.assertAlmostEqual(ratio["pair_min"] / min(pairs), 1, places=3)
            self.assertAlmostEqual(ratio["pair_max"] / max(pairs), 1, places=3)

    def test_nothing_to_compare_is_said(self):
        path = self.compile("static", "int main(void) { return 0; }", "-static")
        done = stook("run", "--compare", "--repeat", "1", path)
        self.assertIn("compares nothing", done.stderr)


if __name__ == "__main__":
    main()
