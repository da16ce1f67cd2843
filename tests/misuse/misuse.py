#!/usr/bin/env python3
"""Proves: of the misuse programs (misuse.c), each mode finds at least the share that BOUNDS says,
and none finds fault with the programs that have no misuse.

    misuse.py                                   the test: Stook's modes against BOUNDS
    misuse.py --table [--peers FOLDER]          all modes and peers, a table by family
    misuse.py --missed MODE                     what a mode lets pass, one name a line

Each program runs in a process of its own. It is *caught* if it ends with a report, or with a signal
at the misuse, or if the misuse had no effect (`stopped`). It is *silent* if the program went on
though it read or wrote what it should not. FOLDER has peers as `tools/peers` builds them
(mimalloc_secure is built when it is named); scudo is that of clang 19."""
import argparse
import collections
import concurrent.futures
import glob
import os
import pathlib
import resource
import subprocess
import sys

BUILD = os.environ.get("STOOK_BUILD", "build")
STOOK = os.path.join(BUILD, "libstook-malloc.so")
MODES = {       # what the environment has
    "glibc": {},
    "stook": {"LD_PRELOAD": STOOK},
    "1": {"LD_PRELOAD": STOOK, "STOOK_HARDEN": "1"},
    "all": {"LD_PRELOAD": STOOK, "STOOK_HARDEN": "all"},
    "FZPU": {"LD_PRELOAD": STOOK, "STOOK_DEBUG": "FZPU"},
    "FZPUQ": {"LD_PRELOAD": STOOK, "STOOK_DEBUG": "FZPUQ"},
}
# Families of misuse; `neighbour` reads live objects, which nothing but guards can see.
FAMILIES = ("overflow", "underflow", "neighbour", "read", "write", "double", "invalid", "pairs",
            "zero", "content")
REPORTS = ("stook: ", "fatal allocator error", "Scudo ERROR", "mimalloc: error", "free():",
           "malloc():", "munmap_chunk():", "realloc():", "double free or corruption",
           "corrupted size vs", "malloc_consolidate():", "free_list")
# What must be found, in percent of all but `neighbour`: raised when more is found.
BOUNDS = {"stook": 33, "1": 88, "all": 97, "FZPU": 94, "FZPUQ": 97}
Outcome = collections.namedtuple("Outcome", "kind detail")


def outcome(program, case, environment, seconds=120):
    """How one run ended: report, signal, stopped, silent, fine, or wrong."""
    # Without a helper that names functions, and without core files.
    known = {"PATH": os.environ["PATH"], "STOOK_SYMBOLIZER": "", "MALLOC_PERTURB_": ""}
    try:
        done = subprocess.run([program, case], env=known | environment, text=True, errors="replace",
                              capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return Outcome("wrong", "it hangs")
    first = next((line for line in done.stderr.splitlines() if any(r in line for r in REPORTS)), "")
    if first:
        return Outcome("report", first)
    if done.returncode < 0:
        return Outcome("signal", str(-done.returncode))
    said = done.stdout.strip()
    if done.returncode or said not in ("silent", "stopped", "fine"):
        return Outcome("wrong", f"status {done.returncode}, {said} {done.stderr[:200]}")
    return Outcome(said, "")


class Matrix:
    def __init__(self, programs, modes, every=1):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self.cases = []
        for program in programs:
            names = subprocess.run([program, "list"], capture_output=True, text=True,
                                   check=True).stdout.split()
            plain = {"LD_PRELOAD": ""}
            assert outcome(program, next(n for n in names if n.startswith("control/")),
                           plain).kind == "fine"
            language = "C++" if program.endswith("cc") else "C"
            self.cases += [(program, f"{name}/{language}", name) for name in names]
        controls = [c for c in self.cases if c[1].startswith("control/")]
        self.cases = [c for c in self.cases if c not in controls][::every] + controls
        self.modes, self.found = modes, {}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            runs = {(mode, label): pool.submit(outcome, program, name, modes[mode])
                    for program, label, name in self.cases for mode in modes}
            self.found = {key: run.result() for key, run in runs.items()}

    def of(self, mode, family=None):
        return {label: found for (m, label), found in self.found.items() if m == mode and
                (label.split("/")[0] == family if family else
                 label.split("/")[0] not in ("neighbour", "control"))}

    @staticmethod
    def caught(found):
        return sum(f.kind in ("report", "signal", "stopped") for f in found.values())

    def percent(self, mode):
        found = self.of(mode)
        return 100 * self.caught(found) / len(found)

    def table(self):
        """caught of all; in brackets those with a report."""
        lines = ["| misuse | " + " | ".join(["programs", *self.modes]) + " |",
                 "|---|" + "---|" * (len(self.modes) + 1)]

        def row(name, family):
            of = [self.of(mode, family) for mode in self.modes]
            cells = [f"{self.caught(found)} ({sum(f.kind == 'report' for f in found.values())})"
                     for found in of]
            lines.append(f"| {name} | {len(of[0])} | " + " | ".join(cells) + " |")

        for family in FAMILIES:
            row(family, family)
        row("all but neighbour", None)
        lines.append("| percent | | " + " | ".join(f"{self.percent(m):.1f}" for m in self.modes) +
                     " |")
        false = [sum(f.kind != "fine" for f in self.of(m, "control").values()) for m in self.modes]
        lines.append(f"| reports without a misuse | {len(self.of('stook', 'control'))} | " +
                     " | ".join(map(str, false)) + " |")
        return "\n".join(lines)


def peers(folder):
    found = {pathlib.Path(so).stem: {"LD_PRELOAD": so} for so in glob.glob(f"{folder}/lib/*.so")}
    scudo = glob.glob("/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-*64.so")
    if scudo:
        found["scudo"] = {"LD_PRELOAD": scudo[-1]}
    return found


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--table", action="store_true")
    arguments.add_argument("--peers", default=os.path.join(BUILD, "peers"))
    arguments.add_argument("--missed", choices=MODES)
    arguments.add_argument("--every", type=int, default=1, help="each n-th program alone")
    asked = arguments.parse_args()
    programs = [os.path.join(BUILD, "tests", "test-misuse_" + name) for name in ("c", "cc")]
    if asked.table:
        print(Matrix(programs, MODES | peers(asked.peers), asked.every).table())
        return 0
    if asked.missed:
        found = Matrix(programs, {asked.missed: MODES[asked.missed]}, asked.every).found
        for (_, label), end in found.items():
            if end.kind in ("silent", "wrong"):
                print(label, *end)
        return 0
    matrix = Matrix(programs, {mode: MODES[mode] for mode in BOUNDS}, asked.every)
    failed = 0
    for mode, bound in BOUNDS.items():
        false = {k: f for k, f in matrix.of(mode, "control").items() if f.kind != "fine"}
        wrong = {k: f for k, f in matrix.of(mode).items() if f.kind == "wrong"}
        print(f"{mode}: {matrix.percent(mode):.1f} %, at least {bound}")
        for label, end in (false | wrong).items():
            print(f"  {label}: {end.kind}: {end.detail}")
        failed |= bool(false or wrong) or matrix.percent(mode) < bound
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
