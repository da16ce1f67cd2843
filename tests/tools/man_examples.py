#!/usr/bin/env python3
"""Proves that the EXAMPLES of each page of section 3 compile: each literal block of them is a part
of a program of examples/, which is built and run as a test. "..." in a block stands for lines left
out."""

import os
import re
import sys
from pathlib import Path

SOURCE = Path(os.environ["STOOK_SOURCE"])


def lines_of(text):
    """Lines without indentation and empty lines: how deep an example lies is no matter."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def blocks_of(page):
    """The literal blocks of the section EXAMPLES, as mandoc shows them."""
    section = re.search(r"^\.Sh EXAMPLES\n(.*?)(?=^\.Sh )", page, re.S | re.M)
    for block in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed$", section.group(1), re.S | re.M):
        yield block.replace("\\&", "").replace("\\-", "-").replace("\\e", "\\")


def is_part(part, program):
    return any(program[at:at + len(part)] == part for at in range(len(program) - len(part) + 1))


def main():
    sources = sorted((SOURCE / "examples").glob("*.c")) + sorted((SOURCE / "examples").glob("*.cc"))
    programs = [lines_of(p.read_text()) for p in sources]
    built = (SOURCE / "examples/meson.build").read_text()
    faults, blocks = [], 0
    for path in sorted((SOURCE / "examples").glob("*.c")):
        if f"'{path.stem}'" not in built and f"'{path.name}'" not in built:
            faults.append(f"examples/meson.build does not build {path.name}")
    for path in sorted((SOURCE / "man").glob("*.3")):
        found = list(blocks_of(path.read_text()))
        if not found:
            faults.append(f"{path.name}: no example")
        for block in found:
            blocks += 1
            parts = [lines_of(part) for part in re.split(r"^\s*\.\.\.\s*$", block, flags=re.M)]
            for part in filter(None, parts):
                if not any(is_part(part, program) for program in programs):
                    faults.append(f"{path.name}: in no program of examples/:\n        " +
                                  "\n        ".join(part))
    if blocks < 11:
        faults.append(f"only {blocks} examples found")
    for text in faults:
        print(text)
    return 1 if faults else 0


sys.exit(main())
