"""Lines of traces, and what tests of `stook replay` share."""
import json
import os
import re
import tempfile
import unittest

from stook import stook


class Perf:
    """Lines as perf script prints them."""

    def __init__(self):
        self.lines = []
        self.at = 1437523776861

    def event(self, cpu, name, fields):
        self.at += 1000
        self.lines.append(f"a [b] c 7/7 [{cpu:03}] {self.at // 10**9}.{self.at % 10**9:09}: "
                          f"{'kmem:' + name:>24}: call_site=f+0x1 {fields}")
        return self

    def alloc(self, cpu, address, cache="node", bytes_req=200, bytes_alloc=256):
        return self.event(cpu, "kmem_cache_alloc",
                          f"ptr={address:#x} name={cache} bytes_req={bytes_req} "
                          f"bytes_alloc={bytes_alloc} gfp_flags=GFP_KERNEL node=-1")

    def kmalloc(self, cpu, address, bytes_req, bytes_alloc):
        return self.event(cpu, "kmalloc", f"ptr={address:#x} bytes_req={bytes_req} "
                          f"bytes_alloc={bytes_alloc} gfp_flags=GFP_KERNEL|__GFP_ZERO node=-1")

    def free(self, cpu, address, cache="node"):
        return self.event(cpu, "kmem_cache_free", f"ptr={address:#x} name={cache}")

    def kfree(self, cpu, address):
        return self.event(cpu, "kfree", f"ptr={address:#x}" if address else "ptr=(nil)")

    def text(self):
        return "\n".join(self.lines) + "\n"

    def traced(self, flags="d..2. "):
        """The same as tracefs and trace-cmd report print it, with six digits of time."""
        return re.sub(r"(?m)^a \[b\] c 7/7 (\S+) (\d+\.\d{6})\d{3}: +kmem:(\w+):",
                      rf"       a [b] c-7     \1 {flags}  \2: \3:", self.text())


def pairs(n, free_cpu=0):
    """Objects are allocated on CPU 0, 8 at a time, and freed."""
    perf = Perf()
    for i in range(n // 8):
        for k in range(8):
            perf.alloc(0, 0x1000 + 256 * k)
        for k in range(8):
            perf.free(free_cpu, 0x1000 + 256 * k)
    return perf


NO_EVENT = "no trace: it has no event of stook record, perf script, trace-cmd or bpftrace"


class Replay(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "trace")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, content):
        with open(self.path, "wb") as f:
            f.write(content.encode() if isinstance(content, str) else content)

    def run_it(self, *options):
        return stook("replay", "--repeat", "1", *options, self.path)

    def replay(self, content, *options):
        """What --json has."""
        self.write(content)
        done = self.run_it("--json", "-", *options)
        if "need restartable sequences" in done.stderr:
            self.skipTest("no restartable sequences here")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def one(self, content, *options):
        return self.replay(content, *options)["replays"][0]

    def refused(self, content, says):
        self.write(content)
        done = self.run_it()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"stook replay: {self.path}: {says}\n")
