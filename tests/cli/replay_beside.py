#!/usr/bin/env python3
"""Proves: a kernel's own figures are read and told beside those of a replay; the kernels' traces of
bench/data have what docs/TRACE.md says; malloc's classes have the drop-in's settings."""
import json
import os
import shutil
import subprocess
import tarfile

from heaps import Inspect, Running, preloaded
from replays import Perf, Replay, pairs
from stook import main, stook
from trace_file import Block

CLASSES = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
        static const size_t sizes[] = { 16, 64, 256, 512, 1024, 3072, 4096, 8192, 32768, 65536 };
        int bad = 0;
        for (int i = 0; i < 10; i++)
                bad |= !malloc(sizes[i]);
        puts("ready");
        fflush(stdout);
        return getchar() != EOF || bad;
}
"""


class Kernel(Replay):
    """A folder as /sys/kernel/slab."""

    def cache(self, name, **files):
        path = os.path.join(self.folder.name, "slab", name)
        os.makedirs(path, exist_ok=True)
        for file, content in {"object_size": 200, "aliases": 0, **files}.items():
            with open(os.path.join(path, file), "w") as f:
                f.write(f"{content}\n")
        return os.path.join(self.folder.name, "slab")

    def compared(self, perf, folder, *options):
        kernel = self.replay(perf.text(), "--kernel", folder, *options)["kernel"]
        self.assertEqual(kernel["folder"], folder)
        return {c["name"]: c for c in kernel["caches"]}

    def test_counters(self):
        """Of a kernel where all caches have sheaves; the total stands before the CPUs'."""
        folder = self.cache("node", sheaf_capacity=3, alloc_fastpath="900 C0=500 C1=400",
                            alloc_slowpath="100 C0=100", free_fastpath=950, free_slowpath=50,
                            barn_get=40, barn_get_fail=120, barn_put=30, barn_put_fail=10)
        perf = pairs(800)
        c = self.compared(perf, folder)["node"]
        self.assertEqual((c["sheaf_capacity"], c["object_size"], c["shared"], c["counted"]),
                         (3, 200, False, True))
        self.assertEqual(c["allocated_from"], {"slot": 840, "barn": 40, "slabs": 120})
        self.assertEqual(c["freed_to"], {"slot": 910, "barn": 30, "slabs": 60})
        alone = self.one(perf.text(), "--capacity", "3")
        self.assertEqual(c["replay_allocated_from"], alone["allocated_from"])
        self.assertEqual(c["replay_freed_to"], alone["freed_to"])
        self.assertGreater(alone["allocated_from"]["slabs"] + alone["allocated_from"]["barn"], 100)
        text = self.run_it("--kernel", folder, "--sweep", "capacity=0,8").stdout
        self.assertIn("1 of the trace's 1 caches, 1 with sheaves", text)
        self.assertRegex(text, r"node +1600 +200 +3 +8 .* 84\.0% +12\.0% +91\.0% +6\.0%\n")

    def test_sheaves_by_choice(self):
        """Linux 6.18: hits of sheaves apart from those of the CPU's slab."""
        folder = self.cache("node", sheaf_capacity=32, alloc_pcs=700, free_pcs=600,
                            alloc_fastpath=200, alloc_slowpath=100, free_fastpath=300,
                            free_slowpath=100)
        c = self.compared(pairs(80), folder)["node"]
        self.assertEqual(c["allocated_from"], {"slot": 700, "barn": 0, "slabs": 300})
        self.assertEqual(c["freed_to"], {"slot": 600, "barn": 0, "slabs": 400})

    def test_no_counters_no_sheaves(self):
        folder = self.cache("node", aliases=2)
        c = self.compared(pairs(80), folder)["node"]
        self.assertEqual((c["sheaf_capacity"], c["shared"], c["counted"]), (None, True, False))
        text = self.run_it("--kernel", folder).stdout
        self.assertIn("it counts no calls itself: it was built without CONFIG_SLUB_STATS\n", text)
        self.assertIn("  * merged with other caches\n", text)
        self.assertRegex(text, r"\n  node \* +160 +200 +- +- ")

    def test_all_of_kmalloc(self):
        perf = Perf()
        for _ in range(10):
            perf.kmalloc(0, 0x8000, 900, 1024).kfree(0, 0x8000)
        for prefix in ("kmalloc", "kmalloc-cg", "kmalloc-rcl", "dma-kmalloc", "kmalloc-rnd-01",
                       "kmalloc-rnd-15"):
            folder = self.cache(prefix + "-1k", alloc_fastpath=10, free_fastpath=7)
        c = self.compared(perf, folder)["kmalloc-1k"]
        self.assertEqual((c["allocated_from"]["slot"], c["freed_to"]["slot"]), (60, 42))

    def test_refused(self):
        folder = self.cache("node", sheaf_capacity="many")
        nowhere = self.folder.name + "/nowhere"
        for perf, path, says in (
                (pairs(8), folder, f"{folder}/node/sheaf_capacity: it does not begin with a "
                 "number"),
                (pairs(8), nowhere, f"{nowhere}: No such file or directory"),
                (Perf().alloc(0, 0x10, "a/../node").alloc(0, 0x90, "..").alloc(0, 0x70, "x"),
                 folder, f"{folder}: no cache of the trace is in it: it is to be as "
                 "/sys/kernel/slab")):
            self.write(perf.text())
            done = self.run_it("--kernel", path)
            if "need restartable sequences" in done.stderr:
                self.skipTest("no restartable sequences here")
            self.assertEqual((done.returncode, done.stderr), (2, f"stook replay: {says}\n"))
        self.cache("node", sheaf_capacity=4, alloc_fastpath="99999999999999999999999")
        self.write(pairs(8).text())
        self.assertIn("alloc_fastpath: it does not begin with a number",
                      self.run_it("--kernel", folder).stderr)


class Kernels(Replay):
    """The traces of bench/data, which docs/TRACE.md walks through."""

    def recorded(self, name, *options):
        self.path = os.path.join(os.environ["STOOK_SOURCE"], "bench/data", name)
        if not shutil.which("xz"):
            self.skipTest("no xz")
        done = self.run_it("--repeat", "0", "--json", "-", *options)
        if "need restartable sequences" in done.stderr:
            self.skipTest("no restartable sequences here")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_linux_6_18(self):
        answer = self.recorded("kernel-6.18.txt.xz", "--sweep", "capacity=0,32,60,128",
                               "--cache", "kmalloc-64")
        trace = answer["trace"]
        self.assertEqual([trace[key] for key in ("events", "cpu_count", "frees_before",
                                                 "frees_of_null", "frees_implied")],
                         [4420, 2, 134, 854, 117])
        self.assertEqual([(a["cache"], a["sheaf_capacity"]) for a in answer["advised"]],
                         [("kmalloc-64", 60)])

    def test_linux_7_3(self):
        archive = os.path.join(os.environ["STOOK_SOURCE"], "bench/data/kernel-7.3-slab.tar.xz")
        with tarfile.open(archive) as packed:
            packed.extractall(self.folder.name)
        answer = self.recorded("kernel-7.3.txt.xz", "--kernel",
                               self.folder.name + "/kernel-7.3-slab")
        self.assertEqual([answer["trace"][key] for key in ("events", "cache_count", "cpu_count")],
                         [45524, 35, 2])
        capacity = {c["name"]: c["sheaf_capacity"] for c in answer["kernel"]["caches"]}
        self.assertEqual([capacity[name] for name in ("vm_area_struct", "maple_node", "mm_struct",
                                                      "kmalloc-512", "kmalloc-4k")],
                         [60, 32, 12, 28, 4])
        self.assertEqual(len(capacity), 35)


class Classes(Inspect):
    """Of a program's own classes, beside what it has itself."""

    def test_settings(self):
        """Malloc's classes are replayed with the sheaves and slabs that the drop-in gives them."""
        program = self.compile("classes", CLASSES)
        trace = os.path.join(self.folder, "classes.trace")
        done = stook("record", "-o", trace, "--", program, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = stook("replay", "--repeat", "1", "--json", "-", trace)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        replayed = {c["name"]: c for c in json.loads(done.stdout)["replays"][0]["caches"]}
        with Running(program, env=preloaded()) as p:
            real = {c["name"]: c for c in self.info("--all", p.pid)[0]["caches"]}
        self.assertLessEqual({f"malloc-{n}" for n in (16, 64, 256, 512, 1024, 3072, 4096, 8192,
                                                      32768, 65536)}, set(replayed))
        for name, cache in replayed.items():
            for key in ("sheaf_capacity", "stride", "object_size"):
                self.assertEqual(cache[key], real[name][key], (name, key))
            self.assertEqual(cache["space_bytes"], cache["slabs"] * real[name]["slab_bytes"], name)

    def test_others_named_so(self):
        """A cache that is only named like a class is none."""
        a = Block(at_ns=1000).thread(7, 0).cache(3, "malloc-100", 100, 112).alloc(2000, 0x1000, 3)
        trace = os.path.join(self.folder, "other.trace")
        with open(trace, "wb") as f:
            f.write(a.bytes())
        done = stook("replay", "--repeat", "1", "--json", "-", trace)
        cache, = json.loads(done.stdout)["replays"][0]["caches"]
        self.assertEqual((cache["name"], cache["object_size"]), ("malloc-100", 100))


if __name__ == "__main__":
    main()
