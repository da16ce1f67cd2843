"""
bench/measure/machine.py - what numbers depend on

Purpose: the processor, the kernel, the C library, the compiler, the commit, and how the library
runs here (backend, slots, nodes): all that a result file says of where it was made.
Place: run.py and patterns.py write it; page.py orders a history by its date.
"""

import ctypes
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


class Mode(ctypes.Structure):
    """struct stook_mode of <stook/control.h>."""
    _fields_ = [("mode_size", ctypes.c_size_t)] + \
               [(name, ctypes.c_char_p) for name in ("backend", "index", "registration", "thp")] + \
               [(name, ctypes.c_uint32) for name in ("nodes", "slots", "slots_ready", "page_bytes")]


def mode_of(library):
    """{"backend": "rseq", ...} of a library that is loaded for it, or {}."""
    mode = Mode(mode_size=ctypes.sizeof(Mode))
    try:
        if ctypes.CDLL(str(library)).stook_get_mode(ctypes.byref(mode)):
            return {}
    except (OSError, AttributeError):
        return {}
    return {"backend": mode.backend.decode(), "cpu_index": mode.index.decode(),
            "node_count": mode.nodes, "slot_count": mode.slots}


def compiler_of(build):
    """"GCC 12.2.0, debugoptimized": what the library says it was made by, and Meson's build type.
    Where both compilers are named, GCC made the C library's start files."""
    try:
        library = (build / "libstook.so").read_bytes()
        found = re.search(rb"(clang) version ([\d.]+)", library) or \
            re.search(rb"(GCC): \([^)]*\) ([\d.]+)", library)
        options = json.loads((build / "meson-info" / "intro-buildoptions.json").read_text())
        kind = next(o["value"] for o in options if o["name"] == "buildtype")
        return " ".join(word.decode() for word in found.groups()) + ", " + kind
    except (OSError, ValueError, AttributeError, StopIteration):
        return "unknown"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def commit():
    try:
        return subprocess.run(["git", "-C", str(HERE), "describe", "--always", "--dirty",
                               "--abbrev=12"],
                              capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine(build=None):
    thp = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    about = {
        "processor": processor(),
        "architecture": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_MiB": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        "linux": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "huge_pages": thp.read_text().strip() if thp.exists() else "none",
        "commit": commit(),
        "load": os.getloadavg()[0],
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    if build:
        about.update(compiler=compiler_of(build), **mode_of(build / "libstook.so"))
    return about


def title(about):
    """One line."""
    words = [f"{about['processor']}, {about['cpus']} CPUs, Linux {about['linux']}, "
             f"{about['libc']}"]
    words += [about["compiler"]] if about.get("compiler") else []
    words += [f"backend {about['backend']}"] if about.get("backend") else []
    return ", ".join(words) + f", commit {about['commit']}, load {about['load']:.2f}"
