#!/usr/bin/env python3
"""`stook info`, `check` and `tune` look at real processes and cores from outside.

Programs say when they are ready by a line, and wait for the end of their standard input. So nothing
here depends on how fast a machine is.
"""
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import stook as s

CACHES = r"""
#include <stook/stook.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void made(void *object, void *data) { (void)data; memset(object, 0, 8); }
/* More than the first pages of what few caches use have room for. They use nothing of it. */
static void make_many(void)
{
        char name[16];

        for (int i = 0; i < 100; i++) {
                sprintf(name, "many%d", i);
                stook_cache_alloc(stook_cache_create(name, 600, NULL));
        }
}
int main(int argc, char **argv)
{
        struct stook_cache_args args = { .args_size = sizeof args, .ctor = made };
        struct stook_cache *conn = stook_cache_create("conn", 200, NULL);
        struct stook_cache *ctor = stook_cache_create("built", 64, &args);
        struct stook_cache *odd = stook_cache_create("odd\x1b[31m\"\\\n", 48, NULL);
        struct stook_cache_args few = { .args_size = sizeof few, .limit = 9 };
        struct stook_cache_args shared = { .args_size = sizeof shared, .flags = STOOK_MERGE };
        struct stook_group *group = stook_group_create("tenant", NULL, 1 << 20);
        void *objects[1000];
        for (int i = 0; i < 1000; i++)
                objects[i] = stook_cache_alloc(conn);
        for (int i = 0; i < 400; i++)
                stook_cache_free(conn, objects[i]);
        stook_cache_alloc(ctor);
        few.ctor = made;
        stook_cache_alloc(stook_cache_create("sixteen letters!", 80, &few));
        stook_cache_alloc(stook_cache_create("fifteen letters", 88, NULL));
        stook_cache_create("one", 208, &shared);
        stook_cache_create("another name of one", 208, &shared);
        if (odd)
                stook_cache_alloc(odd);
        stook_group_enter(group);
        stook_malloc(5000);
        stook_group_enter(NULL);
        stook_malloc(1 << 20);
        if (argc > 1 && !strcmp(argv[1], "abort"))
                abort();
        if (argc > 1 && !fork()) {
                make_many();
                abort();
        }
        if (argc > 1)
                return wait(NULL) < 0;
        printf("%p\n", objects[399]);           /* free, in a sheaf */
        puts("ready");
        fflush(stdout);
        while (getchar() != EOF)
                ;
        return 0;
}
"""

GROUPS = r"""
#include <stook/stook.h>
#include <stdio.h>
int main(void)
{
        struct stook_group *firm = stook_group_create("firm", NULL, 1 << 20);
        struct stook_group *team = stook_group_create("team", firm, 0);

        stook_group_enter(firm);
        stook_malloc(5000);
        stook_group_enter(team);
        stook_malloc(300);
        stook_group_enter(NULL);
        for (int i = 0; i < 2; i++) {
                struct stook_group_stats s = { .stats_size = sizeof s };

                stook_group_get_stats(i ? team : firm, &s);
                printf("%ju %ju\n", s.usage_bytes, s.precharge_bytes);
        }
        puts("ready");
        fflush(stdout);
        return getchar() != EOF;
}
"""


# Damages objects of a debugged cache in each way, and says so; or in one way, and ends by a report
# of that, or, by `state`, before it.
DAMAGE = r"""
#include <stook/stook.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const char *way;
static int is(const char *what)
{
        return !way || !strcmp(way, what);
}
int main(int argc, char **argv)
{
        struct stook_cache *conn = stook_cache_create("conn", 200, NULL);
        char *o[9];
        way = argc > 1 && strcmp(argv[1], "abort") ? argv[1] : NULL;
        for (int i = 0; i < 9; i++)
                o[i] = stook_cache_alloc(conn);
        if (is("live"))
                o[0][200] = 1;
        if (is("before"))
                o[2][-1] = 2;
        if (is("freed") || is("poison")) {
                stook_cache_free(conn, o[4]);
                stook_cache_free(conn, o[6]);
        }
        if (is("freed"))
                o[4][200] = 3;
        if (is("poison"))
                o[6][199] = 4;
        if (is("long"))
                memset(o[8] + 200, 0, 20);
        if (way && !strcmp(way, "state"))
                memset(o[8] + 200, 0, 20);
        for (int i = 0; way && i < 9; i++)
                if (is("live") || is("before") || is("long"))
                        stook_cache_free(conn, o[i]);
        for (int i = 0; way && i < 10000; i++)
                stook_cache_free(conn, stook_cache_alloc(conn));
        if (argc > 1)
                abort();
        puts("ready");
        fflush(stdout);
        while (getchar() != EOF)
                ;
        return 0;
}
"""

DEAR = r"""
#include <stdio.h>
#include <stook/stook.h>
#include "life/root.h"
#include "policy/constants.h"
extern struct stook_root stook_root_v1;
int main(void)
{
        struct stook_mode mode = { .mode_size = sizeof mode };
        stook_get_mode(&mode);
        *(uint32_t *)stook_root_v1.huge_dear = STOOK_HUGE_DEAR;
        puts("ready");
        fflush(stdout);
        getchar();
        return 0;
}
"""


class Running:
    """A program that says `ready`; ends with its standard input."""

    def __init__(self, *args, **kwargs):
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, **kwargs)
        self.said = []
        while not self.said or self.said[-1] != "ready":
            line = self.process.stdout.readline()
            assert line, self.said
            self.said.append(line.strip())
        self.pid = str(self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def preloaded(**more):
    return dict(os.environ, LD_PRELOAD=s.DROP_IN, **more)


class Inspect(s.Compiled):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        cls.flags = ["-I" + os.path.join(folder, "include") for folder in (source, s.BUILD)]

    def caches(self, *flags, name="caches"):
        return self.compile(name, CACHES, *self.flags, *flags)

    def shared(self):
        return self.caches("-L" + s.BUILD, "-Wl,-rpath," + s.BUILD, "-lstook")

    def static(self):
        return self.caches("-static", os.path.join(s.BUILD, "libstook.a"), name="static")

    def info(self, *args):
        done = s.stook("info", "--json", *args)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)["libraries"]

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
        with Running(self.shared(), env=preloaded()) as p:
            done = s.stook("info", p.pid)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("libstook-malloc.so", done.stdout)
            self.assertIn("conn", done.stdout)
            self.assertRegex(done.stdout, r"also libstook\.so[0-9.]*: it has no caches")
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
            self.assertGreaterEqual(caches["malloc-384"]["objects_live"], 5000)

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
            self.assertGreaterEqual(caches["malloc-384"]["alloc_fastpath"], 5000)
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
                r"the state behind the object was overwritten: 0x.* \(cache conn, .*\)"])

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

    # ---- cores ----

    def core(self, path, mode="abort"):
        """A core of the program as the system writes it, where it writes cores to the folder."""
        with open("/proc/sys/kernel/core_pattern") as f:
            pattern = f.read().strip()
        if pattern.startswith("|") or "/" in pattern:
            self.skipTest("cores go to " + pattern)
        folder = tempfile.mkdtemp(dir=self.folder)
        most = resource.getrlimit(resource.RLIMIT_CORE)[1]
        subprocess.run([path, mode], cwd=folder, stdin=subprocess.DEVNULL,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (most, most)))
        cores = os.listdir(folder)
        if not cores:
            self.skipTest("the system wrote no core")
        return os.path.join(folder, cores[0])

    def test_core(self):
        core = self.core(self.shared())
        self.check_caches(self.info(core))
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

    def refused(self, status, words, *args):
        done = s.stook(*args)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn(words, done.stderr)
        self.assertNotIn("\x1b", done.stderr)
        return done.stderr

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
