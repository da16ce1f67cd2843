#!/usr/bin/env python3
"""Proves: STOOK_PRINT prints the statistics at exit, also where the program closes its standard
error first, and on a signal without disturbing the program; a signal that the program ignores stays
ignored; other values are refused by one line. stook run --stats shows caches that were destroyed,
groups, settings, variables it does not read, and where python hides its objects."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from stook import Compiled, DROP_IN, figures, main, stook

CACHES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
struct stook_cache;
struct stook_group;
static void *call(const char *name)
{
        return dlsym(RTLD_DEFAULT, name);
}
int main(void)
{
        struct stook_cache *(*create)(const char *, size_t, void *) = call("stook_cache_create");
        void *(*alloc)(struct stook_cache *) = call("stook_cache_alloc");
        void (*free_one)(struct stook_cache *, void *) = call("stook_cache_free");
        int (*destroy)(struct stook_cache *) = call("stook_cache_destroy");
        struct stook_group *(*group)(const char *, struct stook_group *, size_t) =
                call("stook_group_create");

        if (!create || !alloc || !free_one || !destroy || !group || !group("team", NULL, 1 << 20))
                return 1;
        for (int i = 0; i < 3; i++) {
                struct stook_cache *cache = create("session", 1000, NULL);
                static void *objects[500];

                for (int k = 0; k < 500; k++)
                        objects[k] = alloc(cache);
                for (int k = 0; k < 500; k++)
                        free_one(cache, objects[k]);
                if (destroy(cache))
                        return 2;
        }
        return 0;
}
"""


def preloaded(*program, **variables):
    return subprocess.run(program, env={**os.environ, "LD_PRELOAD": DROP_IN, **variables},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)


class Print(unittest.TestCase):
    def test_exit(self):
        done = preloaded("sort", "/dev/null", STOOK_PRINT="exit", STOOK_CAPACITY="8")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertRegex(done.stderr, r"\Astook: sort \(pid \d+\), backend \w+\n"
                         r"slots by \w+, \d+ at most; nodes \d+; huge pages: [\w-]+\ncache ")
        self.assertRegex(done.stderr, r"\nmalloc-\d+ +\d+ ")
        self.assertIn("\nsetting STOOK_CAPACITY=8\n", done.stderr)

    def test_signal(self):
        program = ("import sys; print('ready', flush=True); sys.stdin.readline(); "
                   "print('done', flush=True)")
        for name in ("USR2", "SIGUSR2", str(int(signal.SIGUSR2))):
            with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "LD_PRELOAD": DROP_IN,
                                       "STOOK_PRINT": name}) as p:
                self.assertEqual(p.stdout.readline(), "ready\n")
                for _ in range(2):
                    p.send_signal(signal.SIGUSR2)
                    while not p.stderr.readline().startswith("setting STOOK_PRINT="):
                        pass
                out, err = p.communicate("\n", timeout=60)
                self.assertEqual((p.returncode, out, err), (0, "done\n", ""))

    def test_signal_at_any_instruction(self):
        """Of a program that allocates all the time. Each signal that was taken printed a table."""
        program = ("import signal, sys, threading\n"
                   "end = threading.Event()\n"
                   "threading.Thread(target=lambda: (sys.stdin.read(), end.set())).start()\n"
                   "print('ready', flush=True)\n"
                   "while not end.is_set():\n"
                   "    kept = [bytes(n) for n in range(0, 3000, 7)]\n"
                   "print('done', flush=True)\n")
        with tempfile.TemporaryFile("w+") as err, \
                subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=err, text=True,
                                 env={**os.environ, "LD_PRELOAD": DROP_IN, "STOOK_PRINT": "USR2",
                                      "PYTHONMALLOC": "malloc"}) as p:
            self.assertEqual(p.stdout.readline(), "ready\n")
            for _ in range(200):
                p.send_signal(signal.SIGUSR2)
            out, _ = p.communicate("\n", timeout=60)
            err.seek(0)
            text = err.read()
        self.assertEqual((p.returncode, out), (0, "done\n"))
        begun, ended = text.count("stook: python"), text.count("\nsetting STOOK_PRINT=USR2\n")
        self.assertGreaterEqual(begun, 1)
        self.assertEqual(begun, ended)

    def test_ignored_signal_stays(self):
        """As nohup has it."""
        done = preloaded("sh", "-c", "trap '' USR1; exec sh -c 'kill -USR1 $$; echo on'",
                         STOOK_PRINT="USR1")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "on\n", ""))

    def test_refused(self):
        for value in ("", "never", "SEGV", "KILL", "9", "0", "65", "exit,", "99999999999"):
            done = preloaded("true", STOOK_PRINT=value)
            self.assertEqual(done.returncode, 0)
            self.assertIn(f"stook: STOOK_PRINT={value}: takes exit, a signal", done.stderr)


class Run(Compiled):
    def test_destroyed_and_groups(self):
        program = self.compile("caches", CACHES, "-ldl")
        done, json = figures(program, options=["--stats"])
        self.assertEqual(done.returncode, 0, done)
        process = json["processes"][0]
        (gone,) = process["caches_destroyed"]
        self.assertEqual((gone["name"], gone["destroyed"], gone["object_size"]),
                         ("session", 3, 1000))
        self.assertEqual(gone["objects_live"], 0)
        counters = gone["counters"]
        self.assertEqual(counters["alloc_fastpath"] + counters["alloc_slowpath"], 1500)
        self.assertGreaterEqual(gone["slabs_peak"] * gone["objects_per_slab"], 500)
        self.assertEqual(gone["peak_bytes"], gone["slabs_peak"] * gone["slab_bytes"])
        self.assertNotIn("session", [cache["name"] for cache in process["caches"]])
        (team,) = process["groups"]
        self.assertEqual((team["name"], team["limit_bytes"], team["refusals"]),
                         ("team", 1 << 20, 0))
        self.assertRegex(done.stderr, r"\n  session \(3 destroyed\) +1000 ")
        self.assertRegex(done.stderr, r"\ngroup team: 0 of 1.0 MiB in use, ")

    def test_peaks(self):
        _, json = figures("sort", "/dev/null")
        for cache in json["processes"][0]["caches"]:
            self.assertGreaterEqual(cache["slabs_peak"], cache["slabs"])
            self.assertGreaterEqual(cache["objects_peak"],
                                    cache["objects_live"] + cache["objects_cached"])

    def test_settings(self):
        env = {**os.environ, "STOOK_CAPACITY": "8", "STOOK_OF_OTHERS": "secret"}
        done, json = figures("sort", "/dev/null", options=["--stats"], env=env)
        process = json["processes"][0]
        self.assertEqual(process["variables"]["STOOK_CAPACITY"], "8")
        self.assertNotIn("STOOK_STATS", process["variables"])
        self.assertIn("STOOK_OF_OTHERS", process["unknown_variables"])
        self.assertIn("STOOK_CAPACITY=8", re.search(r"\nsettings: (.*)\n", done.stderr)[1])
        self.assertRegex(done.stderr, r"\nvariables that Stook does not read: .*STOOK_OF_OTHERS")
        self.assertNotIn("secret", done.stderr)

    def test_misspelt(self):
        done = preloaded("true", STOOK_CAPACTY="8")
        self.assertEqual(done.stderr, "stook: STOOK_CAPACTY: there is no such variable; "
                         "the nearest is STOOK_CAPACITY\n")

    def test_python(self):
        """Whatever its name is: the hint goes by it."""
        with tempfile.TemporaryDirectory() as folder:
            python = os.path.join(folder, "python3")
            os.symlink(os.path.realpath("/bin/true"), python)
            plain = {k: v for k, v in os.environ.items() if k != "PYTHONMALLOC"}
            said = [stook("run", "--stats", "--", python, env=env).stderr
                    for env in (plain, {**plain, "PYTHONMALLOC": "malloc"})]
        self.assertIn("stook: note: python3 keeps objects of up to 512 bytes in memory", said[0])
        self.assertNotIn("PYTHONMALLOC", said[1].split("settings:")[0])


if __name__ == "__main__":
    main()
