"""The calls between the functions of a build, as gcc's -fcallgraph-info=su writes them down.

Calls through a pointer lead where tools/check-stack says. What gcc inlined has no node: its calls
are its caller's, but keep the place where they are written.
"""
import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent


def short(title):
    return title.split(":")[-1]


class Graph:
    """title: of a static function "FILE:NAME", which is unique; of a global its name."""

    def __init__(self, build):
        self.frames, self.kinds, self.files, self.edges = {}, {}, {}, {}
        for path in sorted(Path(build).glob("libstook*.p/*.ci")):
            self._read(path.read_text())
        self.by_short, self.by_file = {}, {}
        for title in self.frames:
            self.by_short.setdefault(short(title), []).append(title)
            self.by_file.setdefault(title.split("/")[-1], []).append(title)

    def _read(self, text):
        for title, file, size, kind in re.findall(
                r'node: \{ title: "([^"]*)" label: "[^"]*?\\n([^"]*?):\d+:\d+\\n'
                r'(\d+) bytes \(([^)]*)\)', text):
            self.frames[title], self.kinds[title], self.files[title] = int(size), kind, file
        for source, target, place in re.findall(
                r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"(?: label: "([^"]*)")?',
                text):
            self.edges.setdefault(source, set()).add((target, place.split(":")[0]))


def layer_of(file):
    """The folder below src/ of a file as the compiler names it; None: it is not there."""
    match = re.search(r"(?:^|/)src/([^/]+)/[^/]+$", file)
    return match.group(1) if match else None
