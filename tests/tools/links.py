#!/usr/bin/env python3
"""Proves that each link of the documents leads to a file of the tree, and its place to a heading;
and that a wrong one of either kind is found."""
import os
import re
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ["STOOK_SOURCE"])
TOP = ("README.md", "CONTRIBUTING.md", "NEWS.md", "SECURITY.md")


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M))


def places_of(path):
    """The anchors of a document's headings, as GitHub makes them."""
    places, text = set(), re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.S | re.M)
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        place = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = sum(1 for p in places if re.fullmatch(re.escape(place) + r"(-\d+)?", p))
        places.add(f"{place}-{number}" if number else place)
    return places


def faults_of(paths):
    count, faults = 0, []
    for path in paths:
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text())):
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            name, _, place = link.partition("#")
            target = path.parent / name if name else path
            if not target.exists():
                faults.append(f"{path}: no {link}")
            elif place and target.suffix == ".md" and place not in places_of(target):
                faults.append(f"{path}: no place {link}")
    return count, faults


def main():
    paths = [SOURCE / name for name in TOP] + sorted((SOURCE / "docs").rglob("*.md")) + \
        [SOURCE / "bench/README.md"]
    count, faults = faults_of(paths)
    print(*faults, f"{count} links, {len(faults)} faults", sep="\n")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.md")
        page.write_text("# A place\n[a](page.md#a-place) [b](page.md#none) [c](none.md)\n")
        if len(faults_of([page])[1]) != 2:
            sys.exit("wrong links are not found")
    sys.exit(1 if faults or count < 100 else 0)


main()
