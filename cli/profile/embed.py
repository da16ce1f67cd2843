#!/usr/bin/env python3
"""Writes a file as the text of a C array to standard output: embed.py NAME FILE."""
import sys


def escaped(byte):
    """A byte in a string of C; never the beginning of a trigraph or a longer escape."""
    if 32 <= byte < 127 and chr(byte) not in '"\\?':
        return chr(byte)
    return f"\\{byte:03o}"


name, path = sys.argv[1:]
with open(path, "rb") as f:
    data = f.read()
print(f"static const char {name}[] =")
for i in range(0, len(data), 64):
    print('        "' + "".join(escaped(byte) for byte in data[i:i + 64]) + '"')
print("        ;")
