#!/usr/bin/env python3
"""
bench/peers/build.py - fetch and build the allocators Stook is compared with

Purpose: releases of other allocators come from crates.io, where packages carry their
sources. Each is built in the build folder, by cargo as its package says, or, where the package
leaves out what a preload needs, by the C compiler from the package's sources. The archive is then
linked twice: whole into lib/NAME.so, to be preloaded, and into bin/pair-NAME, object_pair.cc with
the peer's fastest calls linked statically. Rust's ordered maps are a program, bin/rust_maps. No
source and no binary of a peer is in this repository, only the Cargo.toml that names it (and the
program's own main.rs).
Place: started by bench/run.py; never by a test.
Failure: a peer that cannot be built is left out with a word. Nothing here fails a build.

Use: build.py [--into build/peers] [NAME ...]
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PAIR = HERE.parent / "micro" / "object_pair.cc"
LIBC_NAMES = ("malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign",
              "valloc", "pvalloc", "malloc_usable_size", "reallocarray")
TCMALLOC_NAMES = {"malloc": "Malloc", "free": "Free", "calloc": "Calloc", "realloc": "Realloc",
                  "memalign": "Memalign", "aligned_alloc": "AlignedAlloc",
                  "posix_memalign": "PosixMemalign", "valloc": "Valloc", "pvalloc": "Pvalloc",
                  "malloc_usable_size": "MallocSize"}


class Compiled:
    """An archive that is made of sources in a crate, by the C compiler. What `macros_in` names is a
    file of the crate with lines NAME=VALUE, each given to the compiler."""

    def __init__(self, crate, folder, files, flags, macros_in=None):
        self.crate, self.folder, self.files, self.flags = crate, folder, files, flags
        self.macros_in = macros_in


# gcc 12 knows these words of C23 under their older names only.
C23 = ["-std=gnu2x", "-Dalignas=_Alignas", "-Dthread_local=_Thread_local",
       "-Dstatic_assert=_Static_assert"]
# name: (archive cargo leaves in some out/ folder, or Compiled; macro for contender.h; {libc name:
# the peer's name})
PEERS = {
    "mimalloc3": ("libmimalloc.a", "CONTENDER_MIMALLOC", {}),
    "mimalloc2": ("libmimalloc.a", "CONTENDER_MIMALLOC", {}),
    "snmalloc": ("libsnmallocshim-rust.a", "CONTENDER_SNMALLOC",
                 {name: "sn_" + name for name in LIBC_NAMES}),
    "jemalloc": ("lib/libjemalloc_pic.a", "CONTENDER_JEMALLOC", {}),
    "tcmalloc": ("libtcmalloc.a", "CONTENDER_TCMALLOC",
                 {name: "TCMallocInternal" + theirs for name, theirs in TCMALLOC_NAMES.items()}),
    # With these two it starts and ends its threads by itself, as its own library to preload does.
    "rpmalloc": (Compiled("rpmalloc-sys", "rpmalloc/rpmalloc", ["rpmalloc.c"],
                          ["-std=gnu11", "-funroll-loops", "-DNDEBUG", "-DENABLE_PRELOAD=1",
                           "-DENABLE_OVERRIDE=1"]), "CONTENDER_RPMALLOC", {}),
    "hardened": (Compiled("hardened-malloc-sys", "vendor/hardened-malloc",
                          ["chacha.c", "h_malloc.c", "memory.c", "pages.c", "random.c", "util.c",
                           "new.cc"], C23, "config-default.conf"), "CONTENDER_MALLOC", {}),
    "mimalloc_secure": (Compiled("libmimalloc-sys", "c_src/mimalloc/v2", ["src/static.c"],
                                 ["-std=gnu11", "-DNDEBUG", "-DMI_SECURE=4", "-DMI_MALLOC_OVERRIDE",
                                  "-ftls-model=initial-exec"]), "CONTENDER_MIMALLOC", {}),
}
DEFAULT = ("mimalloc3", "mimalloc2", "snmalloc", "jemalloc", "rpmalloc", "hardened")
# Not allocators, but programs of their own: bin/NAME.
PROGRAMS = ("rust_maps",)


class LeftOut(Exception):
    """Why a peer is not there."""


def run(command, log, cwd=None):
    """Runs a command at low priority with its output in the log; LeftOut if it fails."""
    with open(log, "ab") as out:
        done = subprocess.run(["nice"] + [str(c) for c in command], cwd=cwd, stdout=out,
                              stderr=subprocess.STDOUT)
    if done.returncode:
        raise LeftOut(f"`{command[0]}` failed, see {log}")


def crate_folder(crate, at, log):
    """Where cargo has put the sources of a crate that the recipe names."""
    with open(log, "ab") as out:
        done = subprocess.run(["cargo", "metadata", "--format-version", "1"], cwd=at,
                              stdout=subprocess.PIPE, stderr=out)
    try:
        packages = json.loads(done.stdout)["packages"]
        return pathlib.Path(next(p["manifest_path"] for p in packages
                                 if p["name"] == crate)).parent
    except (ValueError, KeyError, StopIteration):
        raise LeftOut(f"cargo could not fetch {crate}, see {log}") from None


def compiled(how, at, target, log):
    """Compiles the sources of a crate; returns the archive."""
    crate = crate_folder(how.crate, at, log)
    folder = crate / how.folder
    target.mkdir(parents=True, exist_ok=True)
    macros = []
    if how.macros_in:
        lines = (crate / how.macros_in).read_text().splitlines()
        macros = ["-D" + line for line in lines if "=" in line and line[0] != "#"]
    objects = []
    for file in how.files:
        objects.append(target / f"{pathlib.Path(file).name}.o")
        flags = ["-std=gnu++20"] if file.endswith(".cc") else how.flags
        run(["gcc", "-O3", "-g", "-fPIC", "-fvisibility=hidden", "-D_GNU_SOURCE", *flags, *macros,
             f"-I{folder}", f"-I{folder / 'include'}", "-c", folder / file, "-o",
             objects[-1]], log)
    archive = target / "peer.a"
    archive.unlink(missing_ok=True)
    run(["ar", "rcs", archive, *objects], log)
    return archive


def archive_of(name, at, target, log):
    """Builds what is linked; returns the archive."""
    if isinstance(PEERS[name][0], Compiled):
        return compiled(PEERS[name][0], at, target, log)
    run(["cargo", "build", "--release", "--target-dir", target], log, cwd=at)
    found = sorted(target.glob("release/build/*/out/" + PEERS[name][0]),
                   key=lambda p: p.stat().st_mtime)
    if not found:
        raise LeftOut("cargo left no " + PEERS[name][0])
    return found[-1]


def build_program(name, into):
    """Builds one of PROGRAMS unless that was done since its sources changed. Returns whether it had
    to."""
    program = into / "bin" / name
    sources = [p for p in (HERE / name).rglob("*") if p.is_file()]
    if program.exists() and program.stat().st_mtime > max(p.stat().st_mtime for p in sources):
        return False
    if not shutil.which("cargo"):
        raise LeftOut("there is no cargo")
    for folder in ("bin", "log", "source"):
        (into / folder).mkdir(parents=True, exist_ok=True)
    log = into / "log" / f"{name}.txt"
    log.write_bytes(b"")
    # Copied, so that Cargo.lock and the like are never written into the source tree.
    crate = into / "source" / name
    shutil.copytree(HERE / name, crate, dirs_exist_ok=True)
    target = into / "target" / name
    run(["cargo", "build", "--release", "--target-dir", target], log, cwd=crate)
    shutil.copy(target / "release" / name, program)
    return True


def build(name, into):
    """Builds one peer unless that was done since its Cargo.toml changed. Returns whether it had
    to."""
    preload, pair = into / "lib" / f"{name}.so", into / "bin" / f"pair-{name}"
    recipe = max(p.stat().st_mtime for p in (HERE / name / "Cargo.toml", HERE / "build.py"))
    sources = [PAIR, PAIR.with_name("contender.h"), *(HERE.parent / "harness").glob("*.h")]
    fresh = preload.exists() and preload.stat().st_mtime > recipe
    if fresh and pair.exists() and pair.stat().st_mtime > max(p.stat().st_mtime for p in sources):
        return False
    if not shutil.which("cargo"):   # it fetches what is compiled here, too
        raise LeftOut("there is no cargo; Debian packages are used where they are installed")
    for folder in ("lib", "bin", "log", "source"):
        (into / folder).mkdir(parents=True, exist_ok=True)
    log = into / "log" / f"{name}.txt"
    if not fresh:
        log.write_bytes(b"")
    # Copied, so that Cargo.lock and the like are never written into the source tree.
    crate = into / "source" / name
    shutil.copytree(HERE / name, crate, dirs_exist_ok=True)
    archive = archive_of(name, crate, into / "target" / name, log)
    macro, names = PEERS[name][1], PEERS[name][2]
    # The linker gives the peer's functions libc's names: no extra jump, as in its own drop-in.
    as_libc = [f"-Wl,--defsym={ours}={theirs}" for ours, theirs in names.items()]
    run(["g++", "-shared", "-o", preload, "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive",
         *as_libc, "-pthread", "-ldl"], log)
    run(["g++", "-std=gnu++17", "-O2", "-g", "-fno-builtin-malloc", "-fno-builtin-free",
         "-D" + macro, PAIR,
         archive, "-o", pair, "-pthread", "-ldl"], log)
    return True


def build_all(names, into, say=print):
    """Builds the peers named; returns {name: reason} of those left out."""
    left_out = {}
    for name in names:
        start = time.monotonic()
        say(f"peers: {name} ...")
        try:
            built = (build_program if name in PROGRAMS else build)(name, into)
            say(f"peers: {name} " + (f"built in {time.monotonic() - start:.0f} s"
                                        if built else "is there"))
        except (LeftOut, OSError) as why:
            left_out[name] = str(why)
            say(f"peers: {name} is left out: {why}")
    return left_out


def main():
    arguments = argparse.ArgumentParser(description="Fetch and build the peers.")
    arguments.add_argument("--into", type=pathlib.Path,
                           default=HERE.parent.parent / "build" / "peers")
    arguments.add_argument("names", nargs="*", metavar="NAME",
                           help=f"one of {', '.join([*PEERS, *PROGRAMS])}; "
                                f"default {', '.join(DEFAULT + PROGRAMS)}")
    asked = arguments.parse_args()
    unknown = [name for name in asked.names if name not in PEERS and name not in PROGRAMS]
    if unknown:
        arguments.error(f"no such peer: {', '.join(unknown)}")
    os.environ.pop("LD_PRELOAD", None)
    build_all(asked.names or DEFAULT + PROGRAMS, asked.into.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
