"""
bench/measure/contenders.py - the allocators that take part

Purpose: finds the libraries that can be preloaded (Stook's, the peers built by peers/build.py,
Debian's packages where a peer was not built) and makes sure that the one asked for is the one that
runs.
Place: used by run.py and by all that measures.
"""

import os
import pathlib

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
