#!/usr/bin/env python3
"""Proves: the list of variables that the library takes for right names (env_spelling.c) is
that of the variables it reads, and that of stook-env(7); no variable of the tests, tools or
benchmarks is taken for a misspelt one; and a misspelt one is told once in a process."""
import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["STOOK_SOURCE"])
BUILD = pathlib.Path(os.environ["STOOK_BUILD"])
DROP_IN = BUILD / "libstook-malloc.so"


def listed():
    text = (SOURCE / "src/process/env_spelling.c").read_text()
    table = re.search(r"names\[\] = \{(.*?)\};", text, re.DOTALL).group(1)
    return ["STOOK_" + name for name in re.findall(r'"([A-Z_]+)"', table)]


def files(*folders, suffixes):
    for folder in folders:
        for path in sorted((SOURCE / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                yield path.read_text(errors="replace")


class Variables(unittest.TestCase):
    def test_of_the_sources(self):
        read = {name for text in files("src", "dropin", suffixes={".c"})
                for name in re.findall(r'"(STOOK_[A-Z_]+)"', text)}
        self.assertEqual(sorted(read), sorted(listed()))

    def test_of_the_manual(self):
        page = (SOURCE / "man/stook-env.7").read_text()
        named = re.findall(r"^\.It Ev (STOOK_[A-Z_]+)", page, re.M)
        self.assertEqual(sorted(named), sorted(listed()))

    @unittest.skipUnless(DROP_IN.exists(), "built without the drop-in")
    def test_those_of_tests_are_not_told(self):
        names = {name for text in files("tests", "bench", "examples", suffixes={".c", ".cc", ".h"})
                 for name in re.findall(r'getenv\("(STOOK_[A-Z_]+)"', text)}
        for text in files("tests", "bench", "tools", ".ci", suffixes={".sh", "", ".build"}):
            names |= {name for name in re.findall(r"\$\{?(STOOK_[A-Z_]+)", text)}
            names |= {name for name in re.findall(r"\b(STOOK_[A-Z_]+)=", text)}
        self.assertIn("STOOK_BUILD", names)
        self.assertIn("STOOK_SEED", names)
        environment = {name: "1" for name in names - set(listed())}
        done = subprocess.run(["true"], env=os.environ | environment | {"LD_PRELOAD": str(DROP_IN)},
                              capture_output=True, text=True)
        self.assertEqual(done.stderr, "")

    @unittest.skipUnless(DROP_IN.exists(), "built without the drop-in")
    def test_told_once(self):
        environment = os.environ | {"STOOK_CAPACTY": "16", "LD_PRELOAD": str(DROP_IN)}
        said = "stook: STOOK_CAPACTY: there is no such variable; the nearest is STOOK_CAPACITY\n"
        # The shell forks three times, and runs no other program.
        done = subprocess.run(["sh", "-c", "(echo a); (echo b); x=$(echo c); echo $x"],
                              env=environment, capture_output=True, text=True)
        self.assertEqual(done.stdout, "a\nb\nc\n")
        self.assertEqual(done.stderr, said)


if __name__ == "__main__":
    unittest.main()
