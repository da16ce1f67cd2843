#!/usr/bin/python3
"""Proves that the library has the probes that src/base/probe.h names, and no others."""
import os
import re
import subprocess
import sys
from pathlib import Path

build = Path(os.environ["STOOK_BUILD"])
header = (Path(os.environ["STOOK_SOURCE"]) / "src/base/probe.h").read_text()
if "-DSTOOK_USDT" not in (build / "build.ninja").read_text():
    print("left out: built without sys/sdt.h")
    sys.exit(77)

wanted = {}
LINE = r"^ \*   ([a-z]+_[a-z]+)  +((?:[\w() ]+,?)+?)(?:  |$)"
for name, arguments in re.findall(LINE, header, re.M):
    wanted[name] = 0 if "none" in arguments else arguments.count(",") + 1
for library in ("libstook.so", "libstook-malloc.so"):
    if not (build / library).exists():
        continue
    notes = subprocess.run(["readelf", "--notes", "--wide", build / library], capture_output=True,
                           text=True, check=True).stdout
    found = {}
    for provider, name, arguments in re.findall(
            r"Provider: (\w+)\s+Name: (\w+)\s+Location:.*\s+Arguments:(.*)", notes):
        assert provider == "stook", provider
        found[name] = len(arguments.split("@")) - 1
    assert found == wanted, "%s: has %s, probe.h names %s" % (library, found, wanted)
    print(library, "has", ", ".join(sorted(found)))
assert len(wanted) > 5, wanted
