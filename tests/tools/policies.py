#!/usr/bin/env python3
"""
Proves what bench/policies.py writes from what was measured: a row for each setting with medians, a
dash for what failed, and a curve in which each setting has its letter at its place. And that it
measures the peers that are built, and writes no page whose rows its command cannot measure again.
"""

import io
import os
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(os.environ["STOOK_SOURCE"]) / "bench"))

import policies                                             # noqa: E402
from contenders import PLAIN                                # noqa: E402

ABOUT = {"processor": "a processor", "cpus": 2, "linux": "6.1.2-host-v3", "libc": "glibc 2"}


def setting(name, rounds):
    made = policies.Setting(name, None, {})
    made.rounds = rounds
    return made


def one_round(faults, kept):
    values = {cell: faults for cell in policies.PHASES}
    return values | {"faults": faults, "kept": kept, "silent": 7, "called": 3, "ms": 1.5, "end": 12}


class Page(unittest.TestCase):
    def setUp(self):
        self.settings = [setting("first", [one_round(f, 50) for f in (0.9, 0.1, 0.2)]),
                         setting("second", [one_round(0.8, 100)]), setting("third", [])]

    def test_a_row_has_the_medians(self):
        rows = policies.table(self.settings)
        cells = [c.strip() for c in rows[2].split("|")[1:-1]]
        self.assertEqual(cells, ["first"] + ["0.20"] * 6 + ["50", "7", "3", "1.50", "12"])
        self.assertEqual({row.count("|") for row in rows}, {rows[0].count("|")})

    def test_what_failed_is_a_dash(self):
        cells = [c.strip() for c in policies.table(self.settings)[4].split("|")[1:-1]]
        self.assertEqual(cells, ["third"] + ["-"] * 11)

    def test_letters_have_their_places(self):
        lines = policies.curve([("a", 0, 0), ("b", 10, 4), ("c", 10, 4), ("d", 5, 2)], 20, 8)
        plot = [line.partition("|")[2] for line in lines[:9]]
        self.assertEqual(plot[8].index("a"), 0)
        self.assertEqual(plot[0].index("b"), 20)
        self.assertEqual(plot[0].index("c"), 21)        # beside the one that has its place
        self.assertEqual(plot[4].index("d"), 10)
        self.assertEqual(sum(row.count(letter) for row in plot for letter in "abcd"), 4)
        self.assertEqual(lines[-4:], ["a  a", "b  b", "c  c", "d  d"])

    def test_the_page_leaves_out_of_the_curve_what_failed(self):
        text = policies.page(self.settings, ABOUT, 3, 100)
        self.assertIn("a  first\nb  second\n```\n", text)

    def test_the_page_has_no_suffix_of_a_host(self):
        text = policies.page(self.settings, ABOUT, 3, 100)
        self.assertIn("\na processor, 2 CPUs, Linux 6.1.2, glibc 2.\nMedians of 3 rounds", text)

    def test_the_page_has_its_command_and_settings(self):
        text = policies.page(self.settings, ABOUT, 3, 100)
        self.assertIn(policies.command_of(3, 100), text)
        for name, environment in policies.SETTINGS.items():
            self.assertIn(f"- **{name}**: ", text)
            for key, value in environment.items():
                self.assertIn(f"`{key}={value}`", text)


class Settings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        (self.build / "peers" / "lib").mkdir(parents=True)
        (self.build / "bench").mkdir()
        for name in ("libstook-malloc.so", "bench/phases", "bench/patterns"):
            (self.build / name).touch()

    def names(self):
        asked = types.SimpleNamespace(build=self.build, more={})
        return [s.name for s in policies.all_settings(asked)]

    def test_peers_take_part_where_they_are_built(self):
        self.assertEqual(self.names()[:len(policies.SETTINGS)], list(policies.SETTINGS))
        self.assertIn(PLAIN, self.names())
        for name in ("mimalloc2", "mimalloc3", "jemalloc", "tcmalloc"):
            self.assertNotIn(name, self.names())
            (self.build / "peers" / "lib" / f"{name}.so").touch()
            self.assertIn(name, self.names())
            self.assertNotIn(f"{name}-packaged", self.names())

    def test_a_page_has_no_row_of_a_library_that_is_gone(self):
        library, page = self.build / "libstook-malloc.so", self.build / "page.md"
        words = ["policies.py", "--build", str(self.build), "--with", f"other={library}"]
        with unittest.mock.patch.object(sys, "argv", words):
            self.assertEqual(policies.arguments().more, {"other": library.resolve()})
        with unittest.mock.patch.object(sys, "argv", [*words, "--out", str(page)]), \
                unittest.mock.patch("sys.stderr", io.StringIO()) as told, \
                self.assertRaises(SystemExit):
            policies.arguments()
        self.assertIn("not with --with", told.getvalue())


if __name__ == "__main__":
    unittest.main()
