#!/usr/bin/env python3
"""`stook check` and `stook tune` look into real processes, and change them."""
import json
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import time
import unittest.mock

import stook as s
from heaps import DAMAGE, Inspect, Running, preloaded


class Changes(Inspect):
    # ---- check ----

    def overwrite(self, pid, word, other):
        """Everywhere in the writable memory of a process. Returns how often."""
        count = 0
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "r+b", 0) as memory:
            for line in maps:
                area, access, rest = line.split(None, 2)
                start, end = (int(x, 16) for x in area.split("-"))
                if not access.startswith("rw") or end - start > 1 << 28:
                    continue
                memory.seek(start)
                data = memory.read(end - start)
                at = data.find(word)
                while at >= 0:
                    memory.seek(start + at)
                    memory.write(other)
                    count += 1
                    at = data.find(word, at + 1)
        return count

    def test_info_damaged(self):
        """A span of a length that no heap has: what is resident is not told, and the look ends."""
        with Running(self.shared()) as p:
            memory = self.info(p.pid)[0]["memory"]
            self.assertEqual(memory["large_objects"], 1)
            self.assertIn("resident", memory)
            self.overwrite(int(p.pid), struct.pack("<Q", memory["large_bytes"]),
                           struct.pack("<Q", 1 << 50))
            try:
                done = s.stook("info", "--json", p.pid)
            finally:
                p.process.kill()
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("resident", json.loads(done.stdout)["libraries"][0]["memory"])

    def test_check(self):
        """A sound heap is said to be; an object that is damaged in a sheaf is named."""
        with Running(self.static()) as p:
            done = s.stook("check", p.pid)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertIn(": sound: ", done.stdout)
            with open("/dev/full", "w") as full:
                done = subprocess.run([s.STOOK, "check", str(p.pid)], stdout=full,
                                      stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stderr),
                             (2, "stook check: standard output: No space left on device\n"))
            address = int(p.said[0], 16)
            self.assertTrue(self.overwrite(p.pid, address.to_bytes(8, "little"),
                                           (address + 8).to_bytes(8, "little")))
            done = s.stook("check", p.pid)
            self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
            self.assertIn(f"V2: a sheaf has the inside of an object: {address + 8:#x} (cache conn, "
                          "slab 0x", done.stdout)
            self.assertRegex(done.stdout, "; sheaf 0x[0-9a-f]+ (main|spare) of slot [0-9]+")

    def test_check_busy(self):
        """Threads at work all the time: no false fault."""
        program = "import random, threading, sys\n" \
                  "def work():\n" \
                  "    kept = [b''] * 500\n" \
                  "    while not ended:\n" \
                  "        kept[random.randrange(500)] = bytes(random.randrange(4000))\n" \
                  "ended = []\n" \
                  "threads = [threading.Thread(target=work) for _ in range(4)]\n" \
                  "[t.start() for t in threads]\n" \
                  "print('ready', flush=True)\n" \
                  "sys.stdin.read()\n" \
                  "ended.append(1)\n"
        for debug in ("", "FZPU"):
            env = preloaded(PYTHONMALLOC="malloc", **({"STOOK_DEBUG": debug} if debug else {}))
            with Running(sys.executable, "-c", program, env=env) as p:
                for _ in range(5):
                    done = s.stook("check", p.pid)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_check_core(self):
        done = s.stook("check", self.core(self.shared()))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def check_damage(self, what, damage):
        done = s.stook("check", what)
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], ": %d faults$" % len(damage))
        for fault in damage:
            self.assertEqual(sum(bool(re.fullmatch(fault, line)) for line in lines), 1,
                             (fault, done.stdout))

    def test_check_debugged(self):
        """What red zones, poison and states show, in a process and in its core; also of an object
        that a report isolated, which is what a core of that report has."""
        at, by = r": 0x[0-9a-f]+ \(cache ", r", slab 0x[0-9a-f]+ object \d+\)"
        faults = ["overrun" + at + "conn" + by + ": byte 200: expected cc, found 01",
                  "underrun" + at + "conn" + by + ": byte -1: expected cc, found 02",
                  "overrun" + at + "conn" + by + ": byte 200: expected bb, found 03",
                  "write after free" + at + "conn" + by + ": byte 199: expected a5, found 04",
                  "overrun" + at + "conn" + by + ": byte 200: expected cc, found 00"]
        program = self.compile("damage", DAMAGE, *s.SHARED)
        for modes in ("FZPU", "ZPQ"):
            with unittest.mock.patch.dict(os.environ, STOOK_DEBUG=modes):
                with Running(program) as p:
                    self.check_damage(p.pid, faults)
                self.check_damage(self.core(program), faults)
                for fault, mode in zip(faults, ("live", "before", "freed", "poison", "long")):
                    self.check_damage(self.core(program, mode), [fault])
                with Running(self.shared()) as p:
                    done = s.stook("check", p.pid)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_check_states(self):
        """Without red zones the state alone shows an overrun."""
        program = self.compile("damage", DAMAGE, *s.SHARED)
        with unittest.mock.patch.dict(os.environ, STOOK_DEBUG="F"):
            self.check_damage(self.core(program, "state"), [
                r"the state of the object was overwritten: 0x.* \(cache conn, .*\)"])

    # ---- tune ----

    def conn(self, pid):
        return {c["name"]: c for c in self.info(pid)[0]["caches"]}["conn"]

    def test_tune(self):
        with Running(self.shared(), env=dict(os.environ, STOOK_MAINTENANCE="1")) as p:
            done = s.stook("tune", p.pid, "conn", "sheaf_capacity=37", "barn_full=3")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, "conn: sheaf_capacity=37 barn_full=3 barn_empty=10\n")
            conn = self.conn(p.pid)
            self.assertEqual((conn["sheaf_capacity"], conn["barn_full_limit"]), (37, 3))
            self.assertEqual(conn["objects_live"], 600)
            self.assertEqual(s.stook("check", p.pid).returncode, 0)
            done = s.stook("tune", p.pid, f"conn@{conn['born']}", "sheaf_capacity=0")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.refused(2, "has no cache 'x'", "tune", p.pid, "x", "sheaf_capacity=1")
            os.kill(int(p.pid), signal.SIGSTOP)
            try:
                while open(f"/proc/{p.pid}/stat").read().rpartition(")")[2].split()[0] != "T":
                    time.sleep(0.01)
                self.refused(2, "is stopped, and would not answer", "tune", p.pid, "conn",
                             "sheaf_capacity=9")
            finally:
                os.kill(int(p.pid), signal.SIGCONT)
            self.assertEqual(self.conn(p.pid)["sheaf_capacity"], 0)

    def test_tune_refused(self):
        with Running(self.shared()) as p:
            before = self.conn(p.pid)["sheaf_capacity"]
            self.refused(2, "STOOK_MAINTENANCE=1", "tune", p.pid, "conn", "sheaf_capacity=37")
            self.assertEqual(self.conn(p.pid)["sheaf_capacity"], before)
        for setting in ("sheaf_capacity=-1", "sheaf_capacity=65535", "barn_full=x",
                        "sheaf_capacity="):
            self.refused(2, f"stook tune: {setting.split('=')[0]} takes 0 to ", "tune", "1",
                         "conn", setting)
        for setting in ("what=1", "what", "sheaf_capacit", "sheaf_capacity2", "=1", ""):
            self.refused(2, f"no setting '{setting}'; there is: sheaf_capacity=N ", "tune", "1",
                         "conn", setting)
        for setting in ("sheaf_capacity", "barn_full", "barn_empty"):
            self.refused(2, f"stook tune: {setting} has no value: {setting}=N\n", "tune", "1",
                         "conn", setting)
        self.refused(2, "are needed", "tune", "1", "conn")
        self.refused(1, "there is no process", "tune", "4194304", "conn", "barn_full=1")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    s.main()
