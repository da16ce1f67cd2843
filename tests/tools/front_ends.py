#!/usr/bin/env python3
"""
Proves that each front end of table 1.1 answers in every cell, many times: what one of them took
from uninitialised memory made it crash in some processes, and in others not.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
BENCH = pathlib.Path(os.environ["STOOK_SOURCE"]) / "bench"
sys.path[:0] = [str(BENCH / folder) for folder in ("measure", "tables")]

import kernel_tables                                        # noqa: E402

PROGRAM = pathlib.Path(os.environ["STOOK_BUILD"]) / "tests/test-tools_table11"
RUNS = 16
CELLS = ["1", "10", "100", "1000", "10 shuffled", "100 shuffled", "1000 shuffled"]


def table11(*options):
    return subprocess.run([PROGRAM, "pairs=1000", *options], capture_output=True, text=True,
                          timeout=50)


class FrontEnds(unittest.TestCase):
    def answers(self, front):
        runs = [table11("front=" + front) for _ in range(RUNS)]
        if front.startswith("none-") and all("cannot be made here" in r.stderr for r in runs):
            self.skipTest("they need restartable sequences")
        for run in runs:
            self.assertEqual((run.returncode, run.stderr), (0, ""), front)
            answer = json.loads(run.stdout)
            for cell in CELLS:
                self.assertGreater(answer[cell], 0, front)

    def test_they_answer(self):
        for front in sorted(set(kernel_tables.FRONTS.values())):
            with self.subTest(front):
                self.answers(front)

    def test_those_that_charge_answer(self):
        for front in sorted(kernel_tables.CHARGED):
            with self.subTest(front):
                self.answers(front + "-charged")

    def test_what_there_is_not_is_refused(self):
        self.assertEqual(table11("front=x").returncode, 2)


if __name__ == "__main__":
    unittest.main()
