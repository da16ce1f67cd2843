#!/usr/bin/env python3
"""Writes a page as the text of a C array to standard output: embed.py NAME PAGE FILE...

A line "@FILE x@" of the page stands for the file of that name."""
import re
import sys
from pathlib import Path


def escaped(byte):
    """A byte in a string of C; never the beginning of a trigraph or a longer escape."""
    if 32 <= byte < 127 and chr(byte) not in '"\\?':
        return chr(byte)
    return f"\\{byte:03o}"


name, page, *files = sys.argv[1:]
parts = {Path(path).name: Path(path).read_bytes().rstrip() for path in files}
data = re.sub(rb"(?m)^@FILE (\S+)@$", lambda found: parts[found[1].decode()],
              Path(page).read_bytes())
print(f"static const char {name}[] =")
for i in range(0, len(data), 64):
    print('        "' + "".join(escaped(byte) for byte in data[i:i + 64]) + '"')
print("        ;")
