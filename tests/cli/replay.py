#!/usr/bin/env python3
"""Proves: a replay makes the calls of its trace, no more and no fewer, and the same ones each time;
capacity, slots and nodes change what answers them as they should; all inputs are understood, plain
and packed; damaged text is a line with its position, exit status 2, and never a crash; of a trace
only the damaged blocks are left out; what is advised follows from the figures by the rule of the
manual."""
import gzip
import json
import lzma
import os
import random
import shutil
import xml.etree.ElementTree as ElementTree

from replays import NO_EVENT, Perf, Replay, pairs
from stook import main, stook
from trace_file import Block


class Input(Replay):
    def test_what_is_replayed(self):
        perf = Perf().alloc(0, 0x1000).alloc(0, 0x2000).kmalloc(1, 0x3000, 50, 64)
        perf.kmalloc(1, 0x10000, 9000, 16384)                   # of the page allocator
        perf.kfree(0, 0).kfree(1, 0x3000).free(1, 0x2000)
        perf.free(0, 0xdead000, "other")                        # older than the trace
        perf.event(0, "kmem_cache_alloc", "ptr=(nil) name=node bytes_req=200 bytes_alloc=256")
        perf.alloc(0, 0x1000)                                   # its free is not there
        perf.event(0, "mm_page_free", "page=0x1 pfn=0x2 order=0")
        text = "# a comment\n" + perf.text() + "\n\tffffffff81 f+0x1 ([kernel])\n"
        answer = self.replay(text)
        trace = answer["trace"]
        self.assertEqual([trace[key] for key in (
            "events", "cache_count", "cpu_count", "frees_before", "frees_of_null",
                    "failed_allocations",
            "frees_implied", "other_events", "frees_by_rcu", "cut_bytes")],
            [8, 2, 2, 1, 1, 1, 1, 1, 0, 0])
        self.assertEqual(trace["nanoseconds"], 9000)
        caches = {c["name"]: c for c in answer["replays"][0]["caches"]}
        self.assertEqual(set(caches), {"node", "kmalloc-64"})
        self.assertEqual(caches["node"]["object_size"], 256)
        self.assertEqual(caches["node"]["objects_live"], 1)
        self.assertEqual(sum(caches["node"]["allocated_from"].values()), 3)
        self.assertEqual(sum(caches["node"]["freed_to"].values()), 2)
        self.assertEqual(caches["kmalloc-64"]["objects_live"], 0)
        self.assertEqual(answer["replays"][0]["live_objects"], 2)
        self.assertEqual(answer["replays"][0]["samples"][-1]["live_bytes"], 200 + 9000)

    def test_old_kernels(self):
        """No name in kmem_cache_alloc, six digits of time."""
        text = ("ls 1 [002] 5.000001: kmem:kmem_cache_alloc: (f) call_site=ff ptr=0xff10 "
                "bytes_req=32 bytes_alloc=32 gfp_flags=GFP_KERNEL\n"
                "ls 1 [002] 5.000003: kmem:kmem_cache_free: (f) call_site=ff ptr=0xff10\n")
        answer = self.replay(text)
        self.assertEqual(answer["trace"]["nanoseconds"], 2000)
        self.assertEqual([c["name"] for c in answer["replays"][0]["caches"]], ["size-32"])

    def test_tracefs_and_trace_cmd(self):
        perf = pairs(800, free_cpu=1).kmalloc(1, 0x90000, 1500, 2048).alloc(0, 0xa0000, "x:y")
        perf.event(0, "kmem_cache_alloc_node", "ptr=(nil) name=node bytes_req=9 bytes_alloc=9")
        perf.event(0, "kmalloc_node", "ptr=0x0 bytes_req=9 bytes_alloc=9").kfree(1, 0)
        plain = self.replay(perf.text())
        self.assertEqual([c["name"] for c in plain["replays"][0]["caches"]],
                         ["node", "kmalloc-2k", "x:y"])
        head = "cpus=2\n# tracer: nop\n#    TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
        other = ("  a-7     [001]  1437.000001: mm_page_free: page=0x1 pfn=0x2 order=0\n"
                 "  a-7     [001]  1437.000001: <stack trace>\n => kmem_cache_alloc\n => kfree\n")
        for flags in ("", "d..2. "):
            traced = self.replay(head + other + perf.traced(flags))
            for key in ("events", "cache_count", "cpu_count", "failed_allocations",
                        "frees_of_null"):
                self.assertEqual(traced["trace"][key], plain["trace"][key], key)
            self.assertEqual(traced["trace"]["other_events"], 2)
            for key in ("calls", "allocated_from", "freed_to", "live_objects", "caches"):
                self.assertEqual(traced["replays"][0][key], plain["replays"][0][key], key)

    def test_out_of_order(self):
        """bpftrace prints the events of one CPU together."""
        perf = pairs(800, free_cpu=1)
        plain = self.replay(perf.text())
        perf.lines.sort(key=lambda line: "[001]" in line)
        mixed = self.replay("Attaching 4 probes...\n" + perf.text() + "\n\n")
        for key in ("events", "nanoseconds", "frees_before", "frees_implied"):
            self.assertEqual(mixed["trace"][key], plain["trace"][key], key)
        for key in ("allocated_from", "freed_to", "live_objects"):
            self.assertEqual(mixed["replays"][0][key], plain["replays"][0][key], key)

    def test_lost_events(self):
        for line, lost in (("CPU:1 [LOST 117 EVENTS]", 117), ("CPU:1 [17 EVENTS DROPPED]", 17),
                           ("a 7 [000] 5.1: PERF_RECORD_LOST lost 3", 3), ("Lost 64 events", 64),
                           ("Lost count", 0), ("[EVENTS DROPPED]", 0), ("[LOST EVENTS]", 0)):
            text = pairs(8).text() + line + "\n" + pairs(8).text()
            self.assertEqual(self.replay(text)["trace"]["lost_events"], lost, line)
        self.write(pairs(8).text() + "Lost 64 events\n")
        self.assertIn("\n  64 events were lost when the trace was recorded\n",
                      self.run_it().stdout)

    def test_names_by_frees(self):
        """An allocation without a name has its object's free's, or that of all frees of its
        size."""
        fields = "ptr=%#x bytes_req=%d bytes_alloc=%d"
        perf = Perf()
        for i, size in enumerate((64, 64, 64, 128, 128, 128, 32)):
            perf.event(0, "kmem_cache_alloc", fields % (0x1000 + 256 * i, size, size))
        perf.free(0, 0x1000, "a").free(0, 0x1100, "a")          # and the third of 64
        perf.free(0, 0x1300, "b").free(0, 0x1400, "c")          # but not the third of 128
        self.assertEqual({c["name"]: sum(c["allocated_from"].values())
                          for c in self.one(perf.text())["caches"]},
                         {"a": 3, "b": 1, "c": 1, "size-128": 1, "size-32": 1})

    def test_packed(self):
        text = pairs(800).text()
        plain = self.one(text)["allocated_from"]
        for pack, program in ((lzma.compress, "xz"), (gzip.compress, "gzip")):
            if not shutil.which(program):
                continue
            whole = pack(text.encode())
            self.assertEqual(self.one(whole)["allocated_from"], plain)
            self.write(whole[:-20])
            done = self.run_it()
            self.assertEqual(done.returncode, 2)
            self.assertIn(self.path, done.stderr)

    def test_standard_input(self):
        self.write(pairs(80).text())
        with open(self.path) as f:
            done = stook("replay", "--repeat", "1", "-", stdin=f)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"-: 160 events of 1 cache on 1 CPU")

    def test_of_stook_record(self):
        a = Block(at_ns=1000).thread(7, 3).cache(3, "conn", 100, 112)
        for i in range(30):
            a.alloc(2000 + i, 0x1000 + 112 * i, 3, 90)
        for i in range(20):
            a.free(3000 + i, 0x1000 + 112 * i, rcu=i < 5)
        a.alloc(4000, 0x9000, 0, 1 << 20).resize(5000, 0x9000, 0xa000, 2 << 20).free(6000, 0x77)
        b = Block(at_ns=1500, buffer=1).thread(8, 1).free(9000, 0xa000)
        answer = self.replay(a.bytes() + b.bytes() + b.bytes()[:40])
        self.assertEqual([answer["trace"][key] for key in (
            "events", "cache_count", "cpu_count", "frees_before", "frees_by_rcu", "cut_bytes")],
            [53, 1, 2, 1, 5, 40])
        result = answer["replays"][0]
        self.assertEqual(sum(result["allocated_from"].values()), 30)
        self.assertEqual(sum(result["freed_to"].values()), 20)
        self.assertEqual(result["samples"][-1]["live_bytes"], 10 * 90)
        self.assertEqual(result["peak"]["live_bytes"] >= 2 << 20, True)

    def test_some_caches(self):
        perf = pairs(80).alloc(0, 0xf000, "other").alloc(0, 0xf100, "bother")
        answer = self.replay(perf.text(), "--cache", "x,*other")
        self.assertEqual(answer["trace"]["events"], 2)
        self.assertEqual(answer["trace"]["filtered_events"], 160)
        self.assertEqual(len(answer["replays"][0]["caches"]), 2)
        done = self.run_it("--cache", "none")
        self.assertEqual((done.returncode, done.stderr), (
            2, f"stook replay: {self.path}: no event is of such a cache\n"))


class Settings(Replay):
    def test_same_each_time(self):
        rng = random.Random(12)
        perf, alive, at = Perf(), [], 0x1000
        for _ in range(4000):
            cpu = rng.randrange(6)
            if alive and rng.random() < 0.48:
                perf.free(cpu, alive.pop(rng.randrange(len(alive))))
            else:
                at += 0x100
                alive.append(at)
                perf.alloc(cpu, at, rng.choice("abc"))
        answers = [self.one(perf.text(), "--slots", "4", "--nodes", "2") for _ in range(2)]
        counted = [[c["counters"] for c in answer["caches"]] for answer in answers]
        self.assertEqual(counted[0], counted[1])
        self.assertEqual(answers[0]["live_objects"], len(alive))
        self.assertEqual(sum(c["objects_live"] for c in answers[0]["caches"]), len(alive))
        self.assertEqual([answers[0]["settings"][key] for key in ("slot_count", "node_count")],
                         [4, 2])
        self.assertEqual(answers[0]["failed"], 0)

    def test_capacity(self):
        text = pairs(4000).text()
        none = self.one(text, "--capacity", "0")
        self.assertEqual(none["allocated_from"], {"slot": 0, "barn": 0, "slabs": 4000})
        self.assertEqual(none["freed_to"], {"slot": 0, "barn": 0, "slabs": 4000})
        some = self.one(text, "--capacity", "16")
        self.assertEqual(some["caches"][0]["sheaf_capacity"], 16)
        self.assertGreater(some["allocated_from"]["slot"], 3900)

    def test_slots(self):
        """What CPU 0 allocates, CPU 1 frees: on one slot they are one."""
        text = pairs(4000, free_cpu=1).text()
        apart = self.one(text, "--capacity", "16")
        together = self.one(text, "--capacity", "16", "--slots", "1")
        self.assertEqual(apart["settings"]["slot_count"], 2)
        self.assertGreater(together["allocated_from"]["slot"], 3990)
        self.assertLess(apart["allocated_from"]["slot"], 3900)
        self.assertGreater(apart["freed_to"]["barn"], 100)

    def test_barn(self):
        """A barn without room for full sheaves sends their objects back to the slabs."""
        text = pairs(4000, free_cpu=1).text()
        narrow = self.one(text, "--capacity", "16", "--barn-full", "0")
        self.assertEqual(narrow["freed_to"]["barn"], 0)
        self.assertGreater(narrow["freed_to"]["slabs"], 100)

    def test_sweep(self):
        self.write(pairs(800).text())
        done = self.run_it("--sweep", "capacity=0,8,64", "--plot", self.path + ".svg", "--json",
                           self.path + ".json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = [line.split() for line in done.stdout.split("\n\n")[0].splitlines()]
        self.assertEqual([row[0] for row in rows[-3:]], ["0", "8", "64"])
        self.assertEqual(rows[-3][1:4], ["0.0%", "0.0%", "100.0%"])
        with open(self.path + ".json") as f:
            replays = json.load(f)["replays"]
        self.assertEqual([r["settings"]["sheaf_capacity"] for r in replays], [0, 8, 64])
        svg = ElementTree.parse(self.path + ".svg").getroot()
        lines = svg.findall("{http://www.w3.org/2000/svg}polyline")
        self.assertEqual([len(line.get("points").split()) for line in lines], [3] * 5)

    def test_grid(self):
        """Each value with each; heat maps have all of them, and frame what is advised."""
        self.write(pairs(400).text() + pairs(400, free_cpu=1).text())
        done = self.run_it("--repeat", "0", "--sweep", "capacity=0,4,16", "--sweep", "barn=0,3",
                           "--sweep", "slots=1,2", "--plot", self.path + ".svg", "--json",
                           self.path + ".json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.path + ".json") as f:
            answer = json.load(f)
        self.assertEqual(
            [[r["settings"][key] for key in ("sheaf_capacity", "barn_full", "barn_empty",
                                             "slot_count")]
             for r in answer["replays"]],
            [[c, b, b, s] for c in (0, 4, 16) for b in (0, 3) for s in (1, 2)])
        self.assertEqual({r["ns_per_call"] for r in answer["replays"]}, {None})
        svg = ElementTree.parse(self.path + ".svg").getroot()
        cells = svg.findall("{http://www.w3.org/2000/svg}rect")
        framed = [cell for cell in cells if cell.get("fill") == "none"]
        maps = 3 * 2                                    # for each number of slots
        self.assertEqual(len(cells), 1 + maps * 3 * 2 + len(framed))
        self.assertEqual(len(framed), 3 * len(answer["advised"]))
        table = [line.split() for line in done.stdout.split("\n\n")[0].splitlines()[-12:]]
        self.assertEqual([row[:3] for row in table],
                         [[str(c), str(b), str(s)] for c in (0, 4, 16) for b in (0, 3)
                          for s in (1, 2)])

    def test_advice(self):
        """By the manual's rule, worked out here from the replays' own figures."""
        perf = pairs(1600)
        for i in range(40):
            for k in range(24):
                perf.alloc(i % 2, 0x90000 + 64 * k, "swing", 60, 64)
            for k in range(24):
                perf.free(i % 2, 0x90000 + 64 * k, "swing")
        perf.alloc(0, 0xf0000, "seldom").free(0, 0xf0000, "seldom")
        self.write(perf.text())
        done = self.run_it("--sweep", "capacity=0,2,8,32,128", "--sweep", "barn=0,2,10",
                           "--sweep", "slots=1,2", "--json", self.path + ".json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("\n1 cache of fewer than 800 calls: too few to say\n", done.stdout)
        with open(self.path + ".json") as f:
            answer = json.load(f)
        self.assertEqual([(a["cache"], a["slot_count"]) for a in answer["advised"]],
                         [("node", 1), ("node", 2), ("swing", 1), ("swing", 2)])
        for advised in answer["advised"]:
            slots, choices = advised["slot_count"], []
            for number, r in enumerate(answer["replays"]):
                if r["settings"]["slot_count"] != slots:
                    continue
                c = next(c for c in r["caches"] if c["name"] == advised["cache"])
                calls = [c["allocated_from"][key] + c["freed_to"][key]
                         for key in ("slot", "barn", "slabs")]
                capacity, barn = c["sheaf_capacity"], r["settings"]["barn_full"]
                kept = capacity and ((2 * slots + barn) * capacity * c["stride"] +
                                     (2 * slots + 2 * barn) * (32 + 8 * capacity))
                choices.append(((calls[1] + 8 * calls[2]) / sum(calls), kept, number, calls))
            least = min(cost for cost, *_ in choices)
            good = [(kept, cost, number, calls) for cost, kept, number, calls in choices
                    if cost <= least + 0.01]
            kept, _, number, calls = min(good)
            self.assertEqual((advised["replay"], advised["kept_bytes"], advised["calls"]),
                             (number, kept, sum(calls)))
            self.assertEqual(list(advised["answered_by"].values()), calls)
        self.assertEqual({a["sheaf_capacity"] for a in answer["advised"]} & {0, 2, 128}, set())

    def test_picture_of_memory(self):
        self.write(pairs(80).text())
        done = self.run_it("--plot", self.path + ".svg")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        svg = ElementTree.parse(self.path + ".svg").getroot()
        self.assertEqual(len(svg.findall("{http://www.w3.org/2000/svg}polyline")), 3)
        cache = self.replay(pairs(80).text())["replays"][0]["caches"][0]["name"]
        self.assertEqual(svg.find(".//{http://www.w3.org/2000/svg}text").text,
                         f"{os.path.basename(self.path)}, {cache}: memory")

    def test_variables_of_the_user(self):
        """What the user's environment says is not what the replay was told."""
        self.write(pairs(80).text())
        environment = dict(os.environ, STOOK_TINY="1", STOOK_CAPACITY="3", STOOK_SLOTS="x")
        done = stook("replay", "--repeat", "1", self.path, env=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"node +256 +32 ")


class Refusals(Replay):
    def test_options(self):
        self.write(pairs(8).text())
        for options, says in (
                (["--capacity", "65535"], "capacity takes a number from 0 to 65534, not '65535'"),
                (["--capacity", "-1"], "capacity takes a number"),
                (["--slots", "0"], "slots takes a number from 1 to 4096"),
                (["--nodes", "65"], "nodes takes a number from 1 to 64"),
                (["--sweep", "repeat=1"], "--sweep takes capacity,"),
                (["--sweep", "capacity"], "--sweep takes capacity,"),
                (["--sweep", "capacity=1,x"], "capacity takes a number"),
                (["--sweep", "capacity=" + "1," * 40 + "1"], "at most 32 values"),
                (["--sweep", "barn=1", "--sweep", "barn-empty=2"],
                 "barn and barn-empty cannot be swept at once"),
                (["--sweep", "slots=1", "--sweep", "slots=2"],
                 "slots and slots cannot be swept at once"),
                (["--sweep=capacity=1", "--sweep=barn-full=1", "--sweep=barn-empty=1",
                  "--sweep=slots=1", "--sweep=nodes=1"], "at most 4 sweeps"),
                (["--sweep", "capacity=" + "1," * 31 + "1", "--sweep", "slots=" + "1," * 31 + "1",
                  "--sweep", "nodes=1,1"], "the sweeps are more than 1024 replays"),
                (["--barn", "4097"], "barn takes a number from 0 to 4096"),
                (["--repeat", "1001"], "repeat takes a number from 0 to 1000"),
                (["--kernel", "--json"], "--json"),
                (["--walk"], "no option '--walk'"),
                (["--json"], "no trace given"),
                (["--json", "/nonexistent/x"], "/nonexistent/x: No such file"),
                (["--plot", "/dev/full"], "/dev/full: No space left"),
                ([self.path], "more than one trace")):
            done = self.run_it(*options)
            self.assertEqual(done.returncode, 2, options)
            self.assertIn(says, done.stderr)
        self.assertIn("no trace given", stook("replay").stderr)

    def test_no_trace(self):
        self.refused("", NO_EVENT)
        self.refused("hello\nworld\n", NO_EVENT)
        self.refused(b"\x7fELF" + bytes(100), "no trace, but an object file")
        self.refused(b"\x7fELF" + bytes(12) + b"\4" + bytes(50),
                     "no trace, but a core: `stook info` reads it")
        self.refused("# Of a text: nothing\nSee 1.2: it is: a text, of 3.14 pages.\n", NO_EVENT)
        self.refused('{"results": 1}\n', "no trace, but JSON")
        self.refused(bytes(100), "line 1: no text of events: it has null bytes")
        self.refused("x" * 70000, "line 1: no text of events: a line of 64 KiB")
        self.refused(Perf().free(0, 0x10).text(), "it has nothing to replay: no allocation")
        done = stook("replay", "/nonexistent")
        self.assertEqual((done.returncode, done.stderr), (
            2, "stook replay: /nonexistent: No such file or directory\n"))
        self.assertIn("Is a directory", stook("replay", self.folder.name).stderr)

    def test_damaged_lines(self):
        good = Perf().alloc(3, 0x10).text()
        for old, new, says in (
                ("ptr=0x10", "ptr=", "an event without an address (ptr=)"),
                ("ptr=0x10", "ptr=0x1g", "an event without an address (ptr=)"),
                ("ptr=0x10", "ptr=0x11112222333344445555", "an event without an address (ptr=)"),
                ("ptr=0x10", "ptr=(____ptrval____)", "an address that is hidden (0 in tracefs' "
                 "options/hash-ptr shows it)"),
                ("bytes_req=200", "", "an allocation without its bytes (bytes_req=, bytes_alloc=)"),
                ("bytes_alloc=256", "bytes_alloc=2x",
                 "an allocation without its bytes (bytes_req=, bytes_alloc=)"),
                ("bytes_alloc=256", "bytes_alloc=0",
                 "an allocation without its bytes (bytes_req=, bytes_alloc=)"),
                ("bytes_alloc=256", "bytes_alloc=99999999999999",
                 "an allocation without its bytes (bytes_req=, bytes_alloc=)"),
                ("[003]", "003", "an event without a CPU (perf script -F "
                 "comm,pid,cpu,time,event,trace)"),
                ("1437.", "", "an event without a time (perf script -F "
                 "comm,pid,cpu,time,event,trace)"),
                (":", "", None)):
            bad = good.replace(old, new) if says else good.split("kmem_cache")[0] + "kmem_ca\n"
            self.refused("#\n" + good + bad, f"line 3: {says or 'an event that is cut off'}")
        traced = Perf().alloc(3, 0x10).traced()
        for old, new, says in (("[003]", "003", "an event without a CPU"),
                               ("1437.", "", "an event without a time"),
                               ("ptr=", "", "an event without an address")):
            self.write(traced + traced.replace(old, new))
            self.assertIn(f"{self.path}: line 2: {says}", self.run_it().stderr)

    def test_damaged_block(self):
        """All other blocks of a trace are replayed, if the first is damaged, too."""
        blocks = [Block(at_ns=i, sequence=i).cache(1, "c").alloc(i, 64 * i, 1).bytes()
                  for i in range(3)]
        for i in range(3):
            for at in (0, 12, 16, -1):                  # magic, size, checksum, records
                bad = bytearray(blocks[i])
                bad[at] ^= 1
                self.write(b"".join(blocks[:i] + [bytes(bad)] + blocks[i + 1:]))
                done = self.run_it()
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(f"{self.path}: 2 events of 1 cache", done.stdout)
                self.assertIn(f"\n  {len(bad)} bytes are left out: damaged at byte "
                              f"{len(bad) * i}: ", done.stdout)
        trace = self.replay(bytes(bad) + blocks[0])["trace"]
        self.assertEqual((trace["events"], trace["damaged_bytes"]), (1, len(bad)))

    def test_any_byte(self):
        """Random changes of both inputs: status 0 or 2, and one line."""
        seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
        print("SEED", seed)
        rng = random.Random(seed)
        block = Block(at_ns=5).thread(1, 2).cache(1, "c").cache(2, "d", 100, 112)
        for i in range(20):
            address = 0x1000 + 128 * i
            block.alloc(10 + i * 10, address, 1 + i % 2).free(15 + i * 10, address)
        block.alloc(500, 0x8000, 0, 1 << 20).resize(501, 0x8000, 0x9000, 2 << 20)
        perf = pairs(24, free_cpu=1).kmalloc(0, 0x90, 5000, 8192).text().encode()
        traced = pairs(24, free_cpu=1).kmalloc(0, 0x90, 5000, 8192).traced().encode()
        for i in range(80):
            bad = bytearray([block.body, perf, block.body, traced][i % 4])
            for _ in range(rng.randrange(1, 5)):
                bad[rng.randrange(len(bad))] = rng.randrange(256)
            if rng.random() < 0.3:
                del bad[rng.randrange(len(bad)):]
            if not i % 2:
                whole = Block(at_ns=5)
                whole.body = bad
                bad = whole.bytes()
            self.write(bytes(bad))
            done = self.run_it()
            self.assertIn(done.returncode, (0, 2), done)
            self.assertEqual(done.stderr.count("\n"), 1 if done.returncode else 0, done)
            self.assertNotIn("signal", done.stderr)


if __name__ == "__main__":
    main()
