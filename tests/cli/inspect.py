#!/usr/bin/env python3
"""`stook info`, `check` and `tune` look at real processes and cores from outside.

Programs say when they are ready by a line, and wait for the end of their standard input. So nothing
here depends on how fast a machine is.
"""
import json
import os
import random
import resource
import signal
import subprocess
import sys
import unittest

import stook as s

CACHES = r"""
#include <stook/stook.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void made(void *object, void *data) { (void)data; memset(object, 0, 8); }
int main(int argc, char **argv)
{
        struct stook_cache_args args = { .args_size = sizeof args, .ctor = made };
        struct stook_cache *conn = stook_cache_create("conn", 200, NULL);
        struct stook_cache *ctor = stook_cache_create("built", 64, &args);
        struct stook_cache *odd = stook_cache_create("odd\x1b[31m\"\\\n", 48, NULL);
        struct stook_group *group = stook_group_create("tenant", NULL, 1 << 20);
        void *objects[1000];
        for (int i = 0; i < 1000; i++)
                objects[i] = stook_cache_alloc(conn);
        for (int i = 0; i < 400; i++)
                stook_cache_free(conn, objects[i]);
        stook_cache_alloc(ctor);
        if (odd)
                stook_cache_alloc(odd);
        stook_group_enter(group);
        stook_malloc(5000);
        stook_group_enter(NULL);
        stook_malloc(1 << 20);
        if (argc > 1 && !strcmp(argv[1], "abort"))
                abort();
        if (argc > 1 && !strcmp(argv[1], "twice"))      /* a free object in a sheaf twice */
                ((void ***)0, stook_cache_free(conn, objects[500]));
        puts("ready");
        fflush(stdout);
        while (getchar() != EOF)
                ;
        return 0;
}
"""


class Running:
    """A program that says `ready`; ends with its standard input."""

    def __init__(self, *args, **kwargs):
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, **kwargs)
        assert self.process.stdout.readline() == "ready\n"
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
        cls.flags = ["-I" + os.path.join(source, "include"), "-I" + os.path.join(s.BUILD, "include")]

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
        self.assertTrue(caches["built"]["ctor"])
        self.assertFalse(conn["ctor"])
        self.assertEqual(heap["groups"][0]["name"], "tenant")
        self.assertGreaterEqual(heap["groups"][0]["usage_bytes"], 5000)
        self.assertEqual(heap["memory"]["large_objects"], 1)
        self.assertGreaterEqual(heap["memory"]["large_bytes"], 1 << 20)

    def test_shared_library(self):
        with Running(self.shared()) as p:
            self.check_caches(self.info(p.pid))

    def test_locked_slots(self):
        with Running(self.shared(), env=dict(os.environ, STOOK_SLOTS="locked")) as p:
            libraries = self.info(p.pid)
            self.check_caches(libraries)
            self.assertEqual(libraries[0]["slot_index"], "hash")

    def test_several_nodes(self):
        with Running(self.shared(), env=dict(os.environ, STOOK_TOPOLOGY="2")) as p:
            libraries = self.info(p.pid)
            if libraries[0]["node_count"] != 2:
                self.skipTest("no made-up nodes")
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
        with Running(self.static() if False else self.shared()) as p:
            done = s.stook("info", "--library", "no-such", p.pid)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no-such", done.stderr)

    def test_python(self):
        program = "import sys; x = [bytes(300) for i in range(5000)]; print('ready', flush=True); " \
                  "sys.stdin.read()"
        with Running(sys.executable, "-c", program, env=preloaded(PYTHONMALLOC="malloc")) as p:
            caches = {c["name"]: c for c in self.info(p.pid)[0]["caches"]}
            self.assertGreaterEqual(caches["malloc-384"]["objects_live"], 5000)

    def test_text(self):
        with Running(self.shared()) as p:
            done = s.stook("info", "--long", "--slots", "--fragmentation", "--sort", "name", p.pid)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for word in ("conn", "alloc_fastpath", "aliases 0", "objs_per_slab", "group tenant",
                         "ctor 0x", "could go back to the system", "S0="):
                self.assertIn(word, done.stdout)
            self.assertNotIn("\x1b", done.stdout)
            named = s.stook("info", "--name", "con*", p.pid).stdout
            self.assertIn("conn", named)
            self.assertNotIn("built", named)

    def test_prometheus(self):
        """Each metric once with HELP and TYPE, then its lines; names and labels as they must be."""
        with Running(self.shared()) as p:
            done = s.stook("info", "--prometheus", p.pid)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        seen, current = set(), None
        import re
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
            for name in caches:
                self.assertLessEqual(caches[name]["alloc_fastpath"],
                                     whole[name]["alloc_fastpath"])
            with open(saved, "r+b") as f:
                f.truncate(20)
            done = s.stook("info", "--since", saved, p.pid)
            self.assertEqual(done.returncode, 2)
            self.assertIn("is not what --save writes", done.stderr)

    # ---- cores ----

    def core(self, path):
        """A core of the program, by gcore: where the system puts cores is its own affair."""
        try:
            subprocess.run(["gcore", "--version"], capture_output=True)
        except OSError:
            self.skipTest("no gcore")
        out = os.path.join(self.folder, "core")
        with Running(path) as p:
            done = subprocess.run(["gcore", "-o", out, p.pid], capture_output=True, text=True)
            made = out + "." + p.pid
            if not os.path.exists(made):
                self.skipTest("gcore: " + done.stderr)
            return made

    def test_core(self):
        core = self.core(self.shared())
        self.check_caches(self.info(core))
        self.check_caches(self.info("--exe", self.shared(), core))

    def test_core_damaged(self):
        """Cut off anywhere, or with random bytes: an answer or one line, never a crash."""
        core = self.core(self.static())
        with open(core, "rb") as f:
            whole = f.read()
        chance = random.Random(12)
        broken = os.path.join(self.folder, "broken")
        for i in range(60):
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

    def test_refusals(self):
        for command in ("info", "check"):
            self.refused(1, "there is no process", command, "4194304999"[:7])
            self.refused(2, "is no core", command, "/etc/passwd")
            self.refused(2, "is no core", command, s.STOOK)
            self.refused(2, "is no core", command, "/")
            self.refused(1, "No such file", command, "/nonexistent")
            self.refused(2, "no process given", command)
            self.refused(2, "no option '--what'", command, "--what")
        self.refused(2, "no order 'x'", "info", "--sort", "x", "1")
        self.refused(2, "seconds", "info", "--every", "0", "1")
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
