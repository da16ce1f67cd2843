#!/usr/bin/env python3
"""Proves: each program of examples/bugs has its bug found by the command that docs/BUGS.md gives,
with the object, the function and the line; its mended form has no report; and the page has each."""
import os
import pathlib
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["STOOK_SOURCE"])
sys.path.insert(0, str(SOURCE / "examples/bugs"))

import bugs                                                 # noqa: E402


class Bugs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.runner = bugs.Runner(os.environ["STOOK_BUILD"], cls.folder.name)
        cls.named = cls.runner.has_names()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_bug(self, bug, *flags):
        error = self.runner.compile(bug, *flags)
        if error and "urcu" in bug.libs:
            self.skipTest("no liburcu")
        self.assertIsNone(error)
        return self.runner.run(bug)

    def find(self, bug, expect, text):
        found, missing = bugs.find(bug, expect, text, self.named)
        self.assertIsNone(missing, f"{bug.name}\n{text}")
        return found

    def test_found(self):
        for bug in bugs.BUGS:
            with self.subTest(bug.name):
                self.find(bug, bug.expect, self.run_bug(bug))

    def test_mended(self):
        for bug in bugs.BUGS:
            with self.subTest(bug.name):
                text = self.run_bug(bug, "-DFIXED")
                self.find(bug, bug.fixed, text)
                if not bug.fixed:
                    self.assertEqual(bugs.reports(text), [], text)
                # What finds the bug does not find the mended program guilty.
                self.assertIsNotNone(bugs.find(bug, bug.expect, text, self.named)[1], text)

    def test_page(self):
        page = (SOURCE / "docs/BUGS.md").read_text()
        for bug in bugs.BUGS:
            self.assertIn(f"../examples/bugs/{bug.source.name}) | {bug.wrong} | `{bug.command}` |",
                          page)
            shown = page.partition(f"\n## {bug.name}\n")[2].partition("\n## ")[0]
            shown = shown.replace(bugs.CONTINUED, " ")
            text = "".join(line[4:] + "\n" for line in shown.splitlines())
            self.find(bug, bug.expect, text)

    def test_every_program_is_listed(self):
        sources = {p.name for p in (SOURCE / "examples/bugs").glob("*.c*")}
        self.assertEqual(sources, {bug.source.name for bug in bugs.BUGS})


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=1)
    sys.exit(0 if program.result.wasSuccessful() else 1)
