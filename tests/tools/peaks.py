#!/usr/bin/env python3
"""
Proves what bench/peaks.py prints of the peaks that it measured, that a contender which failed is
left out, that arguments are refused with which it would measure nothing or glibc in silence, and
that a peak is the program's: one that touches 8 MiB more has a peak so much higher.
"""

import contextlib
import io
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(os.environ["STOOK_SOURCE"]) / "bench"))

import peaks                                                # noqa: E402
from contenders import PLAIN, Contender                     # noqa: E402
from programs import Program                                # noqa: E402


def python_program(mib):
    """Holds a text of so many MiB, every byte of it written."""
    return Program("text", lambda folder, quick: [sys.executable, "-c", f"'x' * ({mib} << 20)"])


class Peaks(unittest.TestCase):
    def test_a_row_has_median_least_most_and_ratio(self):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            peaks.print_peaks("sqlite", {"stook": [300, 100, 110], PLAIN: [100], "failed": []})
        rows = [line.split() for line in text.getvalue().splitlines()]
        self.assertEqual(rows[1:], [["stook", "110", "100", "300", "1.100"],
                                    [PLAIN, "100", "100", "100", "1.000"]])

    @unittest.skipUnless(shutil.which("time"), "there is no program `time`")
    def test_the_peak_is_the_programs(self):
        plain = Contender(PLAIN)
        with tempfile.TemporaryDirectory() as folder:
            small, large = (peaks.peak_kib(python_program(mib), plain, pathlib.Path(folder), True)
                            for mib in (1, 9))
        self.assertAlmostEqual(large - small, 8 << 10, delta=2 << 10)

    def test_a_program_that_fails_has_no_peak(self):
        failing = Program("failing", lambda folder, quick: ["sh", "-c", "exit 3"])
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            found = peaks.measure(failing, [Contender(PLAIN)], 1, True)
        self.assertEqual(found, {PLAIN: []})
        self.assertIn(f"failing, {PLAIN}: ", text.getvalue())

    @unittest.skipUnless(shutil.which("time"), "there is no program `time`")
    def test_the_status_says_that_a_run_failed(self):
        for command, status in ((["true"], 0), (["false"], 1)):
            ended = Program("ended", lambda folder, quick, command=command: command, command)
            with tempfile.TemporaryDirectory() as build, \
                    unittest.mock.patch.dict(peaks.KNOWN, {"ended": ended}), \
                    unittest.mock.patch.object(peaks, "preloaded", return_value={
                        PLAIN: Contender(PLAIN)}), \
                    unittest.mock.patch.object(peaks, "machine", return_value={}), \
                    unittest.mock.patch.object(peaks, "title", return_value="machine"), \
                    unittest.mock.patch.object(sys, "argv", [
                        "peaks.py", "--build", build, "--programs", "ended", "--peers", "none"]), \
                    contextlib.redirect_stdout(io.StringIO()):
                pathlib.Path(build, "libstook-malloc.so").touch()
                self.assertEqual(peaks.main(), status)

    def refused(self, *words):
        """What is said of these arguments. The build folder has an empty library, and no peers."""
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as build:
            library = pathlib.Path(build, "libstook-malloc.so")
            library.touch()
            with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
                given = [w.replace("LIB", str(library)) for w in words]
                peaks.arguments(["--build", build, *given])
        self.assertEqual(end.exception.code, 2)
        return said.getvalue().splitlines()[-1]

    @unittest.skipUnless(shutil.which("time"), "there is no program `time`")
    def test_what_would_measure_something_else_is_refused(self):
        for words, says in ((["--programs", ""], "--programs names none"),
                            (["--with", "foo"], "--with takes NAME=LIBRARY, not 'foo'"),
                            (["--with", "=LIB"], "--with takes NAME=LIBRARY"),
                            (["--with", "glibc=LIB"], "--with glibc: the name is taken"),
                            (["--programs", "python", "--peers", "mimaloc"],
                             "no such peer here: mimaloc; there are ")):
            self.assertIn(f"error: {says}", self.refused("--programs", "python", *words), words)


if __name__ == "__main__":
    unittest.main()
