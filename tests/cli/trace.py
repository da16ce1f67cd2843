#!/usr/bin/env python3
"""Proves: the reader of traces merges processes and buffers by time and gives each living object a
number of its own; a trace that was cut is read up to there; what is damaged is left out with one
line that has its position, and all else is read; no byte that is wrong leads to a crash.
Callers of a trace with stacks are ranked by what they have at the peak, at the end, in all, and in
temporary allocations."""
import json
import os
import random
import subprocess
import tempfile
import unittest

from stook import STOOK, main, stook
from trace_file import Block, HEAD


class Trace(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "t.trace")

    def tearDown(self):
        self.folder.cleanup()

    def print_out(self, *blocks):
        with open(self.path, "wb") as f:
            for block in blocks:
                f.write(block if isinstance(block, bytes) else block.bytes())
        return stook("record", "--text", self.path)

    def lines(self, *blocks):
        done = self.print_out(*blocks)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [line for line in done.stdout.splitlines() if line[0] != "#"]

    def refused(self, *blocks, says):
        done = self.print_out(*blocks)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, f"stook record: {self.path}: {says}\n")

    def test_order(self):
        """Two buffers of one process, and another process with the same addresses."""
        a = Block(at_ns=1000).thread(7, 1).cache(3, "conn").alloc(1000, 0x1000, 3)
        a.alloc(3000, 0x2000, 3, 60).thread(7, 0).free(9000, 0x1000)
        b = Block(at_ns=2000, buffer=1).thread(8).alloc(2000, 0x9000, 0, 1 << 20)
        b.resize(4000, 0x9000, 0x5000, 2 << 20).free(9500, 0x5000)
        c = Block(at_ns=1500, pid=200, image=2, program="child", forked=True).cache(1, "conn")
        c.alloc(1500, 0x1000, 1).free(5000, 0x1000, rcu=True).alloc(6000, 0x1000, 1)
        self.assertEqual(self.lines(a, b, c), [
            "0.000000000 0 7 1 alloc 0 64 conn",
            "0.000000500 1 0 0 alloc 1 64 conn",
            "0.000001000 0 8 0 alloc 2 1048576 large",
            "0.000002000 0 7 1 alloc 3 60 conn",
            "0.000003000 0 8 0 resize 2 2097152 large",
            "0.000004000 1 0 0 free 1 64 conn rcu",
            "0.000005000 1 0 0 alloc 1 64 conn",
            "0.000008000 0 7 0 free 0 64 conn",
            "0.000008500 0 8 0 free 2 2097152 large",
        ])

    def test_address_again(self):
        """An address goes from thread to thread: the free is the earlier one, at equal times, too.
        What the trace never frees is freed when its address comes again."""
        a = Block(at_ns=10).cache(1, "c").alloc(10, 0x100, 1).free(20, 0x100)
        b = Block(at_ns=20, buffer=1).cache(1, "c").alloc(20, 0x100, 1).alloc(30, 0x100, 1)
        self.assertEqual([line.split()[4:] for line in self.lines(a, b)], [
            ["alloc", "0", "64", "c"], ["free", "0", "64", "c"], ["alloc", "0", "64", "c"],
            ["free", "0", "64", "c", "implied"], ["alloc", "0", "64", "c"]])

    def test_unknown(self):
        """Frees of what was there before have no object. A resize begins one."""
        a = Block(at_ns=1).free(1, 0x10).resize(2, 0x20, 0x30, 99).free(3, 0x30)
        self.assertEqual([line.split()[4:] for line in self.lines(a)], [
            ["free", "-", "-", "-"], ["alloc", "0", "99", "large"], ["free", "0", "99", "large"]])

    def test_many_blocks(self):
        """A stream of several blocks, each with its names; numbers are those that are free."""
        blocks = []
        for i in range(5):
            block = Block(at_ns=1000 * i, sequence=i).cache(1, "c")
            blocks.append(block.alloc(1000 * i + 1, 0x1000 + 64 * i, 1))
        last = Block(at_ns=9000, sequence=5).cache(1, "c").free(9000, 0x1040).free(9001, 0x1000)
        blocks.append(last.alloc(9002, 0x9000, 1).alloc(9003, 0x9040, 1).alloc(9004, 0x9080, 1))
        self.assertEqual([line.split()[5] for line in self.lines(*blocks)],
                         ["0", "1", "2", "3", "4", "1", "0", "0", "1", "5"])

    def test_cut(self):
        """A killed program: a piece of a block at the end is said, and left out."""
        whole = Block(at_ns=1).cache(1, "c").alloc(1, 0x10, 1)
        next_one = Block(at_ns=2, sequence=1).cache(1, "c").alloc(2, 0x20, 1).bytes()
        for cut in (1, HEAD.size - 1, HEAD.size, len(next_one) - 1):
            done = self.print_out(whole, next_one[:cut])
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("alloc 0 64 c\n", done.stdout)
            self.assertIn(f"# the last block ends early: {cut} bytes were left out\n", done.stdout)
        self.refused(next_one[:-1], says="too short: no trace, or not a single whole block")

    def test_missed(self):
        done = self.print_out(Block(missed=17).free(1, 1))
        self.assertIn("# 17 events found no buffer and are not there\n", done.stdout)

    def test_damage(self):
        good = Block(at_ns=1).cache(1, "c").alloc(1, 0x10, 1)
        flipped = bytearray(good.bytes())
        flipped[-9] ^= 1
        self.refused(b"", says="empty: no trace")
        self.refused(b"#!/bin/sh\n" * 20, says="not a trace of stook record")
        self.refused(good.bytes(version=3),
                     says="damaged at byte 0: a version that this stook does not read")
        self.refused(bytes(flipped), says="damaged at byte 0: a block's checksum is wrong")
        for bad in (Block().alloc(1, 1, 9), Block().alloc(1, 1, 9000),
                    Block().raw(b"\x02" + b"\xff" * 12), Block().cache(0, "c"),
                    Block().cache(8192, "c"), Block().cache(1, "c" * 65)):
            self.assertEqual(self.print_out(bad).returncode, 1)

    def test_damaged_block_alone(self):
        """It takes nothing else with it, wherever it lies and whatever is wrong with it."""
        before = Block(at_ns=1).cache(1, "c").alloc(1, 0x10, 1).bytes()
        block = Block(at_ns=2, sequence=1).cache(1, "c").alloc(2, 0x20, 1)
        after = Block(at_ns=3, sequence=2).cache(1, "c").alloc(3, 0x30, 1).bytes()
        at, size = len(before), len(block.bytes())
        flipped, long = bytearray(block.bytes()), bytearray(block.bytes())
        flipped[-9] ^= 1
        long[12:16] = (1 << 12).to_bytes(4, "little")
        wrong = "a block's checksum is wrong"
        for bad, says in ((flipped, wrong), (long, "a block that ends early"),
                          (block.bytes()[:-3], wrong), (bytes(100), "no block begins here"),
                          (bytes(1 << 17), "no block begins here"), (before, None),
                          (block.bytes(version=3), "a version that this stook does not read"),
                          (block.bytes(magic=b"nonsense"), "no block begins here")):
            bad, says = bytes(bad), says or "a block out of its order"
            done = self.print_out(before, bad, after)
            self.assertEqual((done.returncode, done.stderr), (1, self.damaged(at, says, len(bad))))
            self.assertEqual(self.objects(done), ["0", "1"], says)
            done = self.print_out(before, bad)
            if says == "a block that ends early" or len(bad) < size:
                self.assertIn(f"# the last block ends early: {len(bad)} bytes", done.stdout)
            else:
                self.assertEqual(done.stderr, self.damaged(at, says, len(bad)))
            self.assertEqual(self.objects(done), ["0"], says)
            if bad != before:
                done = self.print_out(bad, before, after)
                self.assertEqual(done.stderr, self.damaged(0, says, len(bad)))
                self.assertEqual(self.objects(done), ["0", "1"], says)
        done = self.print_out(before, bytes(flipped), after, bytes(flipped))
        self.assertEqual(done.stderr, self.damaged(at, wrong, 2 * size))

    def test_damaged_record(self):
        """What is before it in its block is read, and so is the next block."""
        block = Block(at_ns=1).cache(1, "c").alloc(1, 0x10, 1)
        at = 64 + len(block.body)
        block.raw(b"\x07").alloc(2, 0x20, 1)
        done = self.print_out(block, Block(at_ns=3, sequence=1).cache(1, "c").alloc(3, 0x30, 1))
        self.assertEqual(self.objects(done), ["0", "1"])
        self.assertEqual((done.returncode, done.stderr), (1, self.damaged(
            at, "a record that makes no sense", len(block.bytes()) - at)))

    def damaged(self, at, says, left_out):
        return (f"stook record: {self.path}: damaged at byte {at}: {says}; in all, {left_out} "
                "bytes were left out\n")

    def objects(self, done):
        return [line.split()[5] for line in done.stdout.splitlines() if line[0] != "#"]


    # ---- stacks ----

    def callers(self, *blocks, status=0):
        """What each stack has: (frames, values)."""
        self.print_out(*blocks)
        done = stook("profile", "--json", self.path)
        self.assertEqual(done.returncode, status, done)
        self.stderr = done.stderr
        if status:
            return None
        return [(tuple(s["stack"]), s["values"]) for s in json.loads(done.stdout)["stacks"]]

    def test_callers(self):
        """Of two threads in two blocks. Files are told by their places in them."""
        a = Block(at_ns=0).cache(1, "c").code(1, 0x400000, 0x1000).thread(5)
        a.stack(70000, (1, 0x400100), (0, 0x77)).stack(2, (1, 0x400200))
        a.alloc(10, 0x10, 1, 100, stack=70000).free(20, 0x10)           # temporary
        a.alloc(30, 0x20, 1, 100, stack=70000).alloc(40, 0x30, 1, 40, stack=2)
        a.free(50, 0x20).free(60, 0x30)                                 # the second is
        a.alloc(70, 0x40, 0, 1000, stack=2).resize(80, 0x40, 0x9040, 3000, stack=70000)
        b = Block(at_ns=90, buffer=1).cache(1, "c").code(9, 0x400000, 0x1000).thread(6)
        b.stack(70000, (9, 0x400100), (0, 0x77)).alloc(90, 0x50, 1, stack=70000)
        b.free(91, 0x9040).alloc(95, 0x60, 1).free(96, 0x50)
        one, two = ("prog+0xff", "0x76"), ("prog+0x1ff",)
        found = dict(self.callers(a, b))
        self.assertEqual(set(found), {one, two, ("[no stack]",)})
        self.assertEqual(found[one], {
            "alloc_objects": 4, "alloc_space": 3264, "temporary_objects": 1,
            "temporary_space": 100, "peak_objects": 2, "peak_space": 3064, "inuse_objects": 0,
            "inuse_space": 0})
        self.assertEqual(found[two], {
            "alloc_objects": 2, "alloc_space": 1040, "temporary_objects": 1, "temporary_space": 40,
            "peak_objects": 0, "peak_space": 0, "inuse_objects": 0, "inuse_space": 0})
        self.assertEqual(found[("[no stack]",)]["inuse_space"], 64)
        done = stook("profile", "--type", "temporary_space", "--top", "1", self.path)
        self.assertEqual(done.stdout.splitlines()[:4],
                         ["temporary_space: 140 B", "", "100 B, 71.4 %", "        prog+0xff"])

    def test_processes_share_callers(self):
        """A file lies elsewhere in another process, or after it was closed."""
        blocks = []
        for i, start in enumerate((0x400000, 0x7f0000000000, 0x1000)):
            block = Block(pid=i + 1, image=i + 1, at_ns=i).code(1, start, 0x1000)
            blocks.append(block.stack(3, (1, start + 8)).alloc(i, 0x10, 0, 50, stack=3))
        other = Block(pid=9, image=9).code(1, 0x1000, 0x1000, build=b"other").stack(3, (1, 0x1008))
        found = self.callers(*blocks, other.alloc(9, 0x10, 0, 50, stack=3))
        self.assertEqual([(stack, values["alloc_objects"]) for stack, values in found],
                         [(("prog+0x7",), 3), (("prog+0x7",), 1)])

    def test_stacks_of_a_damaged_block(self):
        """They are lost with it, and no others: each block says its own. One that it does not say
        is damage, also where a block before said it."""
        def block(i):
            new = Block(at_ns=i, sequence=i).code(1, 0x1000, 0x1000).stack(1, (1, 0x1008 + i))
            return new.alloc(i, 0x10 + i, 0, 50, stack=1)
        flipped = bytearray(block(1).bytes())
        flipped[-9] ^= 1
        found = dict(self.callers(block(0), bytes(flipped), block(2)))
        self.assertEqual(set(found), {("prog+0x7",), ("prog+0x9",)})
        self.assertIn("a block's checksum is wrong", self.stderr)
        for bad in (Block().alloc(9, 1, 0, 50, stack=1), Block().stack(1, (2, 0x1008)),
                    Block().stack(1), Block().stack(1, *[(0, 1)] * 65),
                    Block().stack(1 << 32, (0, 1)), Block().code(0, 1, 1), Block().code(1024, 1, 1),
                    Block().code(1, 1, 0), Block().code(1, (1 << 64) - 1, 2),
                    Block().code(1, 1, 1, path="/" * 4097), Block().resize(1, 1, 2, 3, stack=4)):
            found = dict(self.callers(block(0), self.as_second(bad), block(2)))
            self.assertEqual(set(found), {("prog+0x7",), ("prog+0x9",)})
            self.assertIn("a record that makes no sense", self.stderr)

    @staticmethod
    def as_second(block):
        pid, image, buffer, _, missed = block.head
        block.head, block.at_ns = (pid, image, buffer, 1, missed), 1
        return block

    def test_no_stacks(self):
        self.callers(Block().alloc(1, 1, 0, 50), status=2)
        self.assertEqual(self.stderr, f"stook profile: {self.path}: a trace without stacks: "
                                      "`stook record --stacks` writes one with them\n")

    def test_names(self):
        """Control characters of a name reach no terminal."""
        self.assertIn(" c?[2J", self.lines(Block().cache(1, "c\x1b[2J").alloc(1, 8, 1))[0])

    def test_no_room(self):
        """The text is more than the buffer of standard output."""
        block = Block().cache(1, "c")
        for i in range(2000):
            block.alloc(i, i * 64, 1)
        self.print_out(block)
        with open("/dev/full", "w") as full:
            done = subprocess.run([STOOK, "record", "--text", self.path], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "stook record: output: No space left on device\n"))

    def test_no_file(self):
        self.assertEqual(stook("record", "--text", "/nonexistent").stderr,
                         "stook record: /nonexistent: No such file or directory\n")
        self.assertEqual(stook("record", "--text", "/dev/null").stderr,
                         "stook record: /dev/null: not a regular file\n")
        os.mkfifo(self.path)
        self.assertEqual(stook("record", "--text", self.path).stderr,
                         f"stook record: {self.path}: not a regular file\n")

    def test_any_byte(self):
        """Random changes, checksums mended in half of them: status 0, 1 or 2, and one line."""
        seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
        print("SEED", seed)
        rng = random.Random(seed)
        good = Block(at_ns=5).thread(1).cache(1, "c").cache(2, "d", 100, 112)
        for i in range(20):
            good.alloc(10 + i, 0x1000 + 64 * i, 1 + i % 2, i)
        good.code(1, 0x1000, 64).stack(1, (1, 0x1004), (0, 9)).alloc(35, 9, 1, stack=1)
        good.resize(40, 1, 2, 3).free(50, 0x1000, rcu=True)
        for _ in range(150):
            block = Block(at_ns=5)
            block.body = bytearray(good.body)
            for _ in range(rng.randrange(1, 4)):
                block.body[rng.randrange(len(block.body))] = rng.randrange(256)
            data = bytearray(block.bytes())
            if rng.randrange(2):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            done = self.print_out(bytes(data))
            self.assertIn(done.returncode, (0, 1, 2), (seed, done))
            self.assertEqual(done.stderr.count("\n"), 1 if done.returncode else 0, (seed, done))
            self.assertIn(stook("profile", self.path).returncode, (0, 2), seed)


if __name__ == "__main__":
    main()
