#!/usr/bin/env python3
"""`stook info` looks at real processes and cores from outside."""
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest.mock

import stook as s
from heaps import DEAR, GROUPS, HEAPS, METRICS, Inspect, Running, preloaded


class Outside(Inspect):
    # ---- what is shown ----

    def check_caches(self, libraries):
        self.assertEqual(len(libraries), 1)
        heap = libraries[0]
        caches = {c["name"]: c for c in heap["caches"]}
        conn = caches["conn"]
        self.assertEqual(conn["objects_live"], 600)
        self.assertEqual(conn["object_size"], 200)
        self.assertEqual(conn["counters"]["alloc_fastpath"] + conn["counters"]["alloc_slowpath"],
                         1000)
        self.assertEqual(conn["slabs"], conn["counters"]["alloc_slab"]
                         - conn["counters"]["free_slab"])
        self.assertEqual(sum(conn["slabs_by_objects_out"].values()), conn["slabs"])
        cached = sum(slot["objects"] for slot in conn["slots"])
        cached += conn["objects_in_barns"] + conn["objects_in_other_sheaves"]
        self.assertEqual(cached, conn["objects_cached"])
        for c in heap["caches"]:
            self.assertEqual(c["space_bytes"], c["slabs"] * c["slab_bytes"])
            self.assertLessEqual(c["objects_per_slab"] * c["stride"], c["slab_bytes"])
            self.assertLessEqual(c["object_size"], c["stride"])
        # What came since the last slab was made may be missed.
        self.assertGreater(conn["objects_peak"] + conn["objects_per_slab"], 1000)
        self.assertGreaterEqual(conn["slabs_peak"], conn["slabs"])
        self.assertEqual(caches["sixteen letters!"]["counters"]["free_slowpath"], 0)
        self.assertEqual(caches["fifteen letters"]["objects_live"], 1)
        self.assertEqual(caches["one"]["aliases"], ["another name of one"])
        self.assertTrue(caches["built"]["ctor"])
        self.assertFalse(conn["ctor"])
        self.assertEqual(heap["groups"][0]["name"], "tenant")
        self.assertGreaterEqual(heap["groups"][0]["usage_bytes"], 5000)
        self.assertEqual(heap["memory"]["large_objects"], 1)
        self.assertGreaterEqual(heap["memory"]["large_bytes"], 1 << 20)
        self.assertEqual(heap["memory"]["process_huge_bytes"] % 1024, 0)
        self.assertIs(heap["memory"]["huge_faults_dear"], False)

    def test_shared_library(self):
        with Running(self.shared()) as p:
            self.check_caches(self.info(p.pid))

    def test_dear_huge_faults(self):
        """The process finds them dear by a clock; here it is told so."""
        source = os.path.join(os.environ["STOOK_SOURCE"], "src")
        program = self.compile("dear", DEAR, "-I" + source, *s.SHARED)
        line = "no huge pages are asked for: their faults are dear\n"
        with Running(self.shared()) as p:
            self.assertNotIn(line, s.stook("info", p.pid).stdout)
        with Running(program) as p:
            self.assertIs(self.info(p.pid)[0]["memory"]["huge_faults_dear"], True)
            self.assertIn(line, s.stook("info", p.pid).stdout)

    def test_resident(self):
        """What has the memory of the heap; it is no more than the process has."""
        with Running(self.shared()) as p:
            heap = self.info(p.pid)[0]
            with open(f"/proc/{p.pid}/smaps_rollup") as f:
                rss = int(re.search(r"Rss: *(\d+) kB", f.read()).group(1)) << 10
            text = s.stook("info", p.pid).stdout
            scrape = s.stook("info", "--prometheus", p.pid).stdout
        has = heap["memory"]["resident"]
        # Most of the program's objects were never written.
        for what in ("live", "cached"):
            self.assertLessEqual(has[what + "_bytes"], sum(c["objects_" + what] * c["stride"]
                                                           for c in heap["caches"]))
        self.assertGreater(has["live_bytes"], 0)
        self.assertGreater(has["metadata_bytes"], 0)
        self.assertLessEqual(has["large_bytes"], heap["memory"]["large_bytes"])
        self.assertLessEqual(has["free_dirty_bytes"], heap["memory"]["free_dirty_bytes"])
        self.assertLessEqual(has["padding_bytes"], heap["memory"]["free_clean_bytes"])
        self.assertLessEqual(sum(has.values()), rss)
        self.assertRegex(text, r"\nresident memory of the heap .*, by what has it:\n")
        self.assertRegex(text, r"\n  live objects in slabs +\d.* %\n")
        for key, bytes_of in has.items():
            cause = key.removesuffix("_bytes")
            self.assertRegex(scrape, rf'stook_resident_bytes.*cause="{cause}"}} {bytes_of}\n')

    def test_locked_slots(self):
        with Running(self.shared(), env=dict(os.environ, STOOK_SLOTS="locked")) as p:
            libraries = self.info(p.pid)
            self.check_caches(libraries)
            self.assertEqual(libraries[0]["slot_index"], "hash")

    def test_debugged(self):
        with Running(self.shared(), env=dict(os.environ, STOOK_DEBUG="FZU,conn,built")) as p:
            libraries = self.info(p.pid)
            self.check_caches(libraries)
            debug = {c["name"]: c["debug"] for c in libraries[0]["caches"]}
            self.assertEqual((debug["conn"], debug["built"]), ("FZU", "FZU"))
            self.assertEqual(set(debug.values()), {"", "FZU"})
            done = s.stook("check", p.pid)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_several_nodes(self):
        with Running(self.shared(), env=dict(os.environ, STOOK_TOPOLOGY="nodes=2")) as p:
            libraries = self.info(p.pid)
            self.assertEqual(libraries[0]["node_count"], 2)
            self.check_caches(libraries)

    def test_static_and_stripped(self):
        path = self.static()
        subprocess.run(["strip", path], check=True)
        with Running(path) as p:
            self.check_caches(self.info(p.pid))

    def test_two_copies(self):
        for mode in ({}, {"STOOK_DEBUG": "FZPU"}, {"STOOK_HARDEN": "1"}):
            with Running(self.shared(), env=preloaded(**mode)) as p:
                done = s.stook("info", p.pid)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("libstook-malloc.so\n", done.stdout)
                self.assertIn("conn", done.stdout)
                self.assertRegex(done.stdout, r"also libstook\.so[0-9.]*: it is not used")
        with Running(self.shared()) as p:
            for command in ("info", "check"):
                said = self.refused(1, "", command, "--library", "no-such", p.pid)
                self.assertEqual(said, f"stook {command}: process {p.pid} has no copy of Stook in "
                                 "a file with 'no-such' in its path\n")

    def test_python(self):
        program = "import sys; x = [bytes(300) for i in range(5000)]; " \
                  "print('ready', flush=True); sys.stdin.read()"
        with Running(sys.executable, "-c", program, env=preloaded(PYTHONMALLOC="malloc")) as p:
            caches = {c["name"]: c for c in self.info(p.pid)[0]["caches"]}
            self.assertGreaterEqual(caches["malloc-352"]["objects_live"], 5000)

    def test_redis(self):
        """A server at work: its caches are shown, and found sound, and it goes on."""
        if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
            self.skipTest("no redis-server")
        path = os.path.join(self.folder, "redis")
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path,
                                   "--save", "", "--appendonly", "no"], env=preloaded(),
                                  stdout=subprocess.DEVNULL, cwd=self.folder)
        try:
            end = time.monotonic() + 60
            while not os.path.exists(path) and time.monotonic() < end:
                time.sleep(0.05)
            load = subprocess.Popen(["redis-benchmark", "-s", path, "-q", "-n", "60000", "-t",
                                     "set,lpush", "-r", "10000", "-d", "200"],
                                    stdout=subprocess.DEVNULL)
            while load.poll() is None:
                done = s.stook("check", str(server.pid))
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                heap = self.info(str(server.pid))[0]
                self.assertGreater(len(heap["caches"]), 5)
            self.assertEqual(load.returncode, 0)
        finally:
            server.kill()
            server.wait()

    def test_text(self):
        with Running(self.shared()) as p:
            done = s.stook("info", "--long", "--slots", "--fragmentation", "--sort", "name", p.pid)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for word in ("conn", "alloc_fastpath", "aliases 0", "objects_per_slab", "group tenant",
                         "ctor 0x", "could go back to the system", "S0="):
                self.assertIn(word, done.stdout)
            self.assertNotIn("\x1b", done.stdout)
            self.assertRegex(done.stdout, r"\nslabs .*: live objects .*\nlarge objects .* in 1; ")
            named = s.stook("info", "--name", "con*", p.pid).stdout
            self.assertIn("conn", named)
            self.assertNotIn("built", named)

    def test_prometheus(self):
        """Each metric once with HELP and TYPE, then its lines; names and labels as they must be."""
        with Running(self.shared()) as p:
            done = s.stook("info", "--prometheus", p.pid)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        seen, current = set(), None
        line_of = re.compile(r'^([a-z_]+)\{[a-z]+="(?:[^"\\\n]|\\["\\n])*"'
                             r'(?:,[a-z]+="(?:[^"\\\n]|\\["\\n])*")*\} (\d+|\+Inf)$')
        for line in done.stdout.splitlines():
            if line.startswith("# TYPE "):
                current, kind = line.split()[2:]
                self.assertNotIn(current, seen)
                self.assertEqual(kind == "counter", current.endswith("_total"))
                seen.add(current)
            elif not line.startswith("# HELP "):
                match = line_of.match(line)
                self.assertTrue(match, line)
                self.assertEqual(match.group(1), current)
        self.assertIn("stook_cache_alloc_fastpath_total", seen)
        self.assertIn('cache="conn"', done.stdout)

    def test_prometheus_in_process(self):
        """stook_metrics_write() has the same names with the same help, and the same figures."""
        program = self.compile("metrics", METRICS, *self.flags, *s.SHARED)
        with Running(program) as p:
            scrape = s.stook("info", "--prometheus", p.pid).stdout
            p.process.stdin.close()
            inside = p.process.stdout.read()
        heads = [{line for line in text.splitlines() if line.startswith("#")}
                 for text in (scrape, inside)]
        names = [{line.split()[2] for line in head} for head in heads]
        self.assertEqual(names[0] - names[1], {"stook_cache_pinned_bytes", "stook_resident_bytes"})
        both = names[0] & names[1]
        self.assertEqual(*({line for line in head if line.split()[2] in both} for head in heads))
        self.assertGreater(len(both), 40)
        # One copy of the library, so a sample without process and library is the same.
        where = r'\{pid="\d+",library="[^"]*",program="[^"]*",?'
        samples = [{re.sub(where, "{", line).replace("{}", "")
                    for line in text.splitlines() if not line.startswith("#")}
                   for text in (scrape, inside)]
        for name in ("stook_space_bytes ", "stook_large_bytes ", "stook_large_objects ",
                     'stook_cache_objects_live{cache="mine",', 'stook_cache_slabs{cache="mine",',
                     'stook_group_limit_bytes{group="ours",', 'stook_heap_bytes{heap="theirs",',
                     'stook_heap_objects_live{heap="theirs",', 'stook_heap_limit_bytes{heap="t'):
            outside, within = ([x for x in sample if x.startswith(name)] for sample in samples)
            self.assertEqual(len(outside), 1, name)
            self.assertEqual(outside, within)

    def test_groups(self):
        """Usage is what the call in the process says: without what is charged in advance."""
        program = self.compile("groups", GROUPS, *self.flags, "-L" + s.BUILD,
                               "-Wl,-rpath," + s.BUILD, "-lstook")
        for slots in ("rseq", "locked"):
            with Running(program, env=dict(os.environ, STOOK_SLOTS=slots)) as p:
                groups = self.info(p.pid)[0]["groups"]
                scrape = s.stook("info", "--prometheus", p.pid).stdout
            said = [tuple(map(int, line.split())) for line in p.said[:2]]
            self.assertEqual([(g["usage_bytes"], g["precharge_bytes"]) for g in groups], said)
            self.assertEqual([g["limit_bytes"] for g in groups], [1 << 20, None])
            self.assertIn(f'stook_group_usage_bytes{{pid="{p.pid}"', scrape)
            self.assertEqual([line.split()[-1] for line in scrape.splitlines()
                              if line.startswith("stook_group_usage_bytes{")],
                             [str(usage) for usage, _ in said])

    def test_heaps(self):
        """Heaps that the program made are named, with the figures of the call in the process."""
        program = self.compile("made", HEAPS, *self.flags, "-L" + s.BUILD,
                               "-Wl,-rpath," + s.BUILD, "-lstook")
        with Running(program) as p:
            look = self.info(p.pid)[0]
            text = s.stook("info", p.pid).stdout
            scrape = s.stook("info", "--prometheus", p.pid).stdout
        said = list(map(int, p.said[0].split()))
        heaps = {h["name"]: h for h in look["heaps"]}
        self.assertEqual(sorted(heaps), ["empty", "sessions"])
        sessions, empty = heaps["sessions"], heaps["empty"]
        self.assertEqual([sessions[k] for k in ("bytes", "peak_bytes", "large_bytes")], said)
        self.assertEqual((sessions["objects_live"], sessions["cache_count"], sessions["refusals"],
                          sessions["limit_bytes"]), (600, 3, 1, 1 << 20))
        self.assertEqual(sessions["group_id"], look["groups"][0]["id"])
        self.assertEqual((empty["bytes"], empty["limit_bytes"], empty["group_id"]), (0, None, None))
        self.assertEqual(sum(c["name"].startswith("sessions-") for c in look["caches"]), 3)
        self.assertRegex(text, r"heap sessions \(0x[0-9a-f]+, charged to group 1\): .* of 1.0 MiB")
        self.assertIn(f'heap="sessions",address="{sessions["address"]}"}} {said[0]}', scrape)

    def test_since(self):
        program = "import sys\nprint('ready', flush=True)\nfor line in sys.stdin:\n" \
                  "    x = [bytes(300) for i in range(5000)]\n    print('ready', flush=True)\n"
        saved = os.path.join(self.folder, "saved")
        with Running(sys.executable, "-c", program, env=preloaded(PYTHONMALLOC="malloc")) as p:
            self.info("--save", saved, p.pid)
            p.process.stdin.write("\n")
            p.process.stdin.flush()
            p.process.stdout.readline()
            caches = {c["name"]: c["counters"] for c in
                      self.info("--since", saved, p.pid)[0]["caches"]}
            whole = {c["name"]: c["counters"] for c in self.info(p.pid)[0]["caches"]}
            self.assertGreaterEqual(caches["malloc-352"]["alloc_fastpath"], 5000)
            # Also those that have made no slab since.
            self.assertEqual(set(caches), set(whole))
            for name in caches:
                self.assertLessEqual(caches[name]["alloc_fastpath"],
                                     whole[name]["alloc_fastpath"])
            with open(saved, "r+b") as f:
                f.truncate(20)
            done = s.stook("info", "--since", saved, p.pid)
            self.assertEqual(done.returncode, 2)
            self.assertIn(": not what --save writes", done.stderr)

    # ---- cores ----

    def test_core(self):
        core = self.core(self.shared())
        self.check_caches(self.info(core))
        self.assertNotIn("resident", self.info(core)[0]["memory"])
        self.check_caches(self.info("--exe", self.shared(), core))

    def test_core_of_child(self):
        """Of a forked child the system leaves out what caches never wrote of the rare parts."""
        libraries = self.info(self.core(self.shared(), "fork"))
        self.check_caches(libraries)
        names = {c["name"] for c in libraries[0]["caches"]}
        self.assertLessEqual({"many%d" % i for i in range(100)}, names)

    def test_core_damaged(self):
        """Cut off anywhere, or with random bytes: an answer or one line, never a crash."""
        cores = []
        for modes in ("-", "FZPU"):
            with unittest.mock.patch.dict(os.environ, STOOK_DEBUG=modes), \
                 open(self.core(self.static()), "rb") as f:
                cores.append(f.read())
        chance = random.Random(12)
        broken = os.path.join(self.folder, "broken")
        for i in range(60):
            whole = cores[i % 2]
            data = bytearray(whole)
            if i % 3 == 0:
                data = data[:chance.randrange(len(data))]
            elif i % 3 == 1:
                for _ in range(chance.randrange(1, 4000)):
                    data[chance.randrange(len(data))] = chance.randrange(256)
            else:       # words that look like pointers, moved about
                for _ in range(2000):
                    at = chance.randrange(len(data) // 8 - 1) * 8
                    to = chance.randrange(len(data) // 8 - 1) * 8
                    data[to:to + 8] = data[at:at + 8]
            with open(broken, "wb") as f:
                f.write(data)
            for command in (["info", "--json"], ["info", "--long", "--fragmentation"], ["check"]):
                done = s.stook(*command, broken, timeout=120)
                self.assertIn(done.returncode, (0, 1, 2), (i, command, done.stderr))
                if done.returncode == 2:
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    # ---- what cannot be looked at ----

    def test_a_process_that_has_ended(self):
        """Its parent has not waited for it."""
        p = subprocess.Popen(["true"], env=preloaded())
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
        for command in ("info", "check", "top"):
            self.refused(1, f"process {p.pid} has ended", command, str(p.pid))
        p.wait()

    def test_refusals(self):
        for command in ("info", "check"):
            self.refused(1, "there is no process", command, "4194304999"[:7])
            self.refused(1, "there is no process 0", command, "0")
            self.refused(2, "is no core", command, "/etc/passwd")
            self.refused(2, ", but a program or a library", command, s.STOOK)
            self.refused(2, ", but a folder", command, "/")
            self.refused(1, "No such file", command, "/nonexistent")
            self.refused(2, "no process given", command)
            self.refused(2, "no option '--what'", command, "--what")
        self.refused(2, "no order 'x'", "info", "--sort", "x", "1")
        self.refused(2, "seconds", "info", "--every", "0", "1")
        self.refused(2, "--json or --prometheus, not both", "info", "--json", "--prometheus", "1")
        with Running(sys.executable, "-c",
                     "import sys; print('ready', flush=True); sys.stdin.read()",
                     env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}) as p:
            self.refused(1, "does not use Stook", "info", p.pid)

    def test_other_user(self):
        if os.getuid():
            self.skipTest("needs root, to become another user")
        program = "import os, sys; os.setgid(65534); os.setuid(65534); " \
                  "os.execv(sys.argv[1], sys.argv[1:])"
        with Running(self.shared()) as p:
            done = subprocess.run([sys.executable, "-c", program, s.STOOK, "info", p.pid],
                                  capture_output=True, text=True)
            if "Permission denied" in done.stderr:
                self.skipTest("another user cannot reach the build folder")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("stook run --stats", done.stderr)

    def test_another_version(self):
        """A library that says another version in its root is refused by name."""
        with open(os.path.join(s.BUILD, "libstook.so.0"), "rb") as f:
            data = bytearray(f.read())
        at = data.index((0x31746f6f722d6b73).to_bytes(8, "little"))
        data[at + 16:at + 32] = b"9.8.7".ljust(16, b"\0")
        with open(os.path.join(self.folder, "libstook.so.0"), "wb") as f:
            f.write(data)
        path = self.shared()
        with Running(path, env=dict(os.environ, LD_PRELOAD=os.path.join(
                self.folder, "libstook.so.0"))) as p:
            done = s.stook("info", p.pid)
            self.assertEqual(done.returncode, 1)
            self.assertIn("it is Stook 9.8.7", done.stderr)

    def test_process_ends(self):
        with Running(self.shared()) as p:
            watch = subprocess.Popen([s.STOOK, "info", "--every", "0.05", p.pid],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            watch.stdout.readline()
        out, error = watch.communicate(timeout=60)
        self.assertEqual(watch.returncode, 1)
        self.assertEqual(error.count("\n"), 1)
        self.assertIn("gone", error)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    s.main()
