"""
bench/measure/contenders.py - the allocators that take part

Purpose: finds the libraries that can be preloaded (Stook's, the peers built by peers/build.py,
Debian's packages where a peer was not built) and makes sure that the one asked for is the one that
runs.
Place: used by run.py and by all that measures.
"""

import os
import pathlib
import re
import subprocess
import sys

OURS = "stook"
PLAIN = "glibc"
LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                   "/usr/lib")

# name: (library of the distribution, the peer it stands in for)
PACKAGED = {
    "gperftools": ("libtcmalloc_minimal.so.4", None),
    "mimalloc2-packaged": ("libmimalloc.so.2", "mimalloc2"),
    "jemalloc-packaged": ("libjemalloc.so.2", "jemalloc"),
}
# What another build of Stook's must have. Without one of them, programs that are linked to it would
# quietly measure this build. (libstook-urcu is only built where liburcu is.)
OF_A_BUILD = ("libstook-malloc.so", "libstook.so.0", "libstook-maple.so.0")
# No other build's name: stook-cache, maple-external and maple-gaps are contenders.
TAKEN = ("cache", "external", "gaps")
# Google's tcmalloc keeps its caches by CPU only if the rseq area is its own.
EXTRA_ENVIRONMENT = {"tcmalloc": {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}}


class Contender:
    """One allocator in a process of its own."""

    def __init__(self, name, library=None, extra=None):
        self.name = name
        self.library = library
        self.extra = extra or {}

    def environment(self):
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "GLIBC_TUNABLES")}
        env.update(self.extra)
        if self.library:
            env["LD_PRELOAD"] = str(self.library)
        return env

    def is_behind(self, malloc_from):
        """Whether malloc, as the program found it, is this contender's."""
        if not self.library:
            return "libc" in os.path.basename(malloc_from)
        try:
            return os.path.samefile(malloc_from, self.library)
        except OSError:
            return False


class Linked(Contender):
    """A program linked to Stook's libraries, which gets those of another build in their place: a
    library that is preloaded under the same name serves all that ask for it."""

    LIBRARIES = ("libstook.so.0", "libstook-maple.so.0", "libstook-urcu.so.0")

    def __init__(self, name, folder):
        super().__init__(name)
        self.instead = " ".join(str(folder / library) for library in self.LIBRARIES
                                if (folder / library).exists())

    def environment(self):
        return {**super().environment(), "LD_PRELOAD": self.instead}


def name_of_build(build):
    """What another build of Stook's is called: no peer is called so."""
    return f"{OURS}-{build}"


def preloaded(build, peers, chosen=None, drop_in=None, builds=None):
    """All contenders that can be preloaded, Stook first. `chosen`: names, or None for all there
    are. `drop_in`: Stook's library, if it is not in the build folder. `builds`: {name: folder} of
    other builds of Stook."""
    found = {}
    ours = drop_in or build / "libstook-malloc.so"
    if ours.exists():
        found[OURS] = Contender(OURS, ours)
    of_builds = {name_of_build(name): folder / "libstook-malloc.so"
                 for name, folder in (builds or {}).items()}
    found.update({name: Contender(name, library) for name, library in of_builds.items()})
    found[PLAIN] = Contender(PLAIN)
    for library in sorted((peers / "lib").glob("*.so")):
        name = library.stem
        found[name] = Contender(name, library, EXTRA_ENVIRONMENT.get(name))
    for name, (file, stands_for) in PACKAGED.items():
        if stands_for in found:
            continue
        for folder in LIBRARY_FOLDERS:
            library = pathlib.Path(folder) / file
            if library.exists():
                found[name] = Contender(name, library)
                break
    if chosen is not None:
        found = {name: c for name, c in found.items()
                 if name in (OURS, PLAIN, *of_builds) or name in chosen}
    return found


# What a library says of itself, run with it preloaded.
ASK = """
import ctypes
library = ctypes.CDLL(None)
for name, kind in (("tc_version", ctypes.c_char_p), ("mi_version", ctypes.c_int),
                   ("stook_version", ctypes.c_char_p), ("gnu_get_libc_version", ctypes.c_char_p)):
    if hasattr(library, name):
        ask = getattr(library, name)
        ask.restype = kind
        args = [None] * 3 if name == "tc_version" else []
        print(name, ask(*args).decode() if kind is ctypes.c_char_p else ask())
        break
"""


def crate_of(library):
    """The crate that tools/peers built a library from, with its version; None if it built none."""
    lock = library.parents[1] / "source" / library.stem / "Cargo.lock"
    try:
        found = re.findall(r'^name = "([^"]*-sys)"\nversion = "(.*)"', lock.read_text(), re.M)
    except OSError:
        return None
    return f"of crate {found[0][0]} {found[0][1]}" if found else None


def version(contender):
    """What a contender's library is, in words; empty if nothing tells."""
    said = subprocess.run([sys.executable, "-S", "-E", "-c", ASK], env=contender.environment(),
                          capture_output=True, text=True).stdout.split()
    words = []
    if len(said) == 2 and (not contender.library or said[0] != "gnu_get_libc_version"):
        number = said[1]
        if said[0] == "mi_version":     # 316 is 3.1.6, 31105 is 3.11.5
            n = int(number)
            major, minor, patch = (n // 100, n // 10 % 10, n % 10) if n < 10000 else \
                (n // 10000, n // 100 % 100, n % 100)
            number = f"{major}.{minor}.{patch}"
        words.append(number)
    library = contender.library and pathlib.Path(contender.library)
    if library and (crate := crate_of(library)):
        words.append(crate)
    elif library and str(library).startswith(LIBRARY_FOLDERS):
        words.append(packaged(library))
    return " ".join(filter(None, words))


def packaged(library):
    """Debian's package of a library, with its version."""
    try:
        owner = subprocess.run(["dpkg-query", "-S", os.path.realpath(library)],
                               capture_output=True, text=True).stdout.split(":")[0]
        return owner and subprocess.run(
            ["dpkg-query", "-W", "-f", "of package ${Package} ${Version}", owner],
            capture_output=True, text=True).stdout
    except OSError:
        return ""
