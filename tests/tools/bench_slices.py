#!/usr/bin/env python3
"""
Proves how rows of calls are measured, and whole programs: disturbed slices are left out, the lower
quartile of a block counts, blocks go on until the interval is narrow, a contender that fails is
told once and left out; the peak of a program is its own, whoever started it. Nothing is measured
here but programs of a line.
"""

import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
from bench_samples import BENCH                             # noqa: E402,F401

import contenders                                           # noqa: E402
import programs                                             # noqa: E402
import slices                                               # noqa: E402
from engine import Failed                                   # noqa: E402

SERVER = """
import json, random, sys
ns, noise, rows = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3].split(",")
random.seed(int(sys.argv[4]))
print(json.dumps({}), flush=True)
n = 0
for line in sys.stdin:
    words = line.split()
    if words[0] == "begin":
        print("ok" if words[1] in rows else "none", flush=True)
    elif words[0] == "end":
        print('{"resident_KiB": 5}', flush=True)
    else:
        n += 1
        if ns < 0:
            sys.exit(1)
        # Every third slice is disturbed, and shows it.
        loud = n % 3 == 0
        print(ns * random.uniform(1, 1 + noise) * (9 if loud else 1), 1, 1.1 if loud else 1.01,
              flush=True)
"""


def job(name, ns, noise=0.0, rows="x,y", seed=1):
    return slices.Job(contenders.Contender(name),
                      [sys.executable, "-c", SERVER, ns, noise, rows, seed])


class Slices(unittest.TestCase):
    def test_disturbed_slices_are_left_out(self):
        self.assertEqual(slices.quiet([(8, 1, 1.04), (6, 2, 2), (9, 1.04, 1)]), [3])

    def test_a_block_says_the_lower_quartile(self):
        self.assertEqual(slices.quantile([9, 1, 3, 2], 0.25), 2)

    def test_what_is_known_needs_few_blocks(self):
        run = slices.Run([job("ours", 2), job("theirs", 4)], ["x", "y"], self.fail, 6, 8)
        table = run.table()
        self.assertEqual(len(table["ours"]["x"]), 6)
        self.assertAlmostEqual(table["ours"]["x"][0] / table["theirs"]["x"][0], 0.5)
        self.assertAlmostEqual(table["theirs"]["y"][5], 4, delta=0.05)
        self.assertEqual(table["ours"]["x resident_KiB"], [5] * 6)
        self.assertAlmostEqual(run.disturbed / run.all, 1 / 3)

    def test_what_is_not_goes_on(self):
        run = slices.Run([job("ours", 2), job("theirs", 4)], ["x"], self.fail, 6, 8)
        with unittest.mock.patch.object(slices, "settled", lambda *of: False):
            self.assertEqual(len(run.table()["ours"]["x"]), 8)
            self.assertEqual(len(run.table(lambda: True)["ours"]["x"]), 6)

    def test_a_wide_interval_is_not_settled(self):
        theirs = {"m": [4.0] * 10}
        for ours, narrow in (([2.0] * 10, True), ([2.0] * 5 + [2.2] * 5, False), ([2.0] * 3, True)):
            table = {"ours": {"m": ours}, "theirs": theirs}
            self.assertEqual(slices.settled(table, "ours", "m"), narrow)
        self.assertFalse(slices.settled({"theirs": theirs}, "ours", "m"))

    def test_who_fails_is_told_once_and_left_out(self):
        said = []
        run = slices.Run([job("ours", 2), job("gone", -1),
                          slices.Job(contenders.Contender("none"), ["/nonexistent"])],
                         ["x"], said.append, 6, 6)
        table = run.table()
        self.assertEqual(list(table), ["ours"])
        self.assertEqual(len(said), 2)
        self.assertIn("  gone: the program ended early", said)

    def test_a_row_that_one_has_not_is_of_the_others(self):
        table = slices.Run([job("ours", 2), job("less", 3, rows="y")], ["x", "y"], self.fail, 6,
                           6).table()
        self.assertEqual(("x" in table["less"], len(table["less"]["y"])), (False, 6))


class WholePrograms(unittest.TestCase):
    def run_(self, script, client=None):
        program = programs.Program("python", lambda folder, quick: ["-S", "-c", script],
                                   ["python3"], client=client)
        with tempfile.TemporaryDirectory() as folder:
            return programs.measure(program, contenders.Contender("glibc"), pathlib.Path(folder),
                                    True)

    def test_the_peak_is_the_programs_own(self):
        ballast = bytearray(200 << 20)                      # of this process, which starts it
        ballast[::4096] = b"x" * len(ballast[::4096])
        small, large = self.run_("pass"), self.run_("x = b'x' * (64 << 20)")
        self.assertLess(small["peak_KiB"], 60 << 10)
        self.assertGreater(large["peak_KiB"] - small["peak_KiB"], 60 << 10)
        self.assertGreater(large["faults"], small["faults"])
        self.assertAlmostEqual(small["user_s"] + small["system_s"], small["cpu_s"])

    def test_one_that_fails_says_so(self):
        with self.assertRaisesRegex(Failed, "python ended with status 3"):
            self.run_("raise SystemExit(3)")

    def test_a_server_is_told_to_end(self):
        found = self.run_("import time; time.sleep(600)", lambda folder, quick: ["sleep", "0.1"])
        self.assertLess(found["seconds"], 300)
        with self.assertRaisesRegex(Failed, "the server ended early"):
            self.run_("pass", lambda folder, quick: ["sleep", "600"])

    def test_binaries_are_the_distributions(self):
        self.assertEqual(programs.binary("nonexistent-program", "sh"), "/usr/bin/sh")
        self.assertIsNone(programs.binary("nonexistent-program"))
        nothing = programs.Program("x", None, ["nonexistent-program"], needs=["sh"])
        self.assertEqual(nothing.missing(), "nonexistent-program")


if __name__ == "__main__":
    unittest.main()
