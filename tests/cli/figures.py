#!/usr/bin/env python3
"""Proves: `stook run --stats` and `--json` show what each process of the tree did, once each,
however it ended: by exit (exactly), _exit, exec, SIGKILL, with its descriptors closed, in another
root; and that sums hold."""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from stook import Compiled, STOOK, figures, main, stook, without_memfd

# Keeps 2000 objects of 100 bytes and one of 1 MiB, turns over 50,000 of 40 bytes, then does what
# argv[1] says.
WORKER = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void keep(int n)
{
        for (int i = 0; i < n; i++)
                if (!malloc(100))
                        abort();
}

static void work(void)
{
        struct timespec pause = { .tv_nsec = 30000000 };

        keep(1000);
        memset(malloc(1 << 20), 1, 1 << 20);
        for (int i = 0; i < 50000; i++)
                free(malloc(40));
        nanosleep(&pause, NULL);
        keep(1000);     /* the first of these calls that misses shows what was done before */
}

int main(int argc, char **argv)
{
        const char *how = argc > 1 ? argv[1] : "exit";

        if (!strcmp(how, "closed"))
                for (int fd = 0; fd < 256; fd++)
                        close(fd);
        if (!strcmp(how, "chroot") && (chroot("/proc/self/fdinfo") || chdir("/")))
                return 99;
        if (!strcmp(how, "stay")) {
                char end;

                work();
                return write(1, "\n", 1) != 1 || read(0, &end, 1);
        }
        if (!strcmp(how, "fork") || !strcmp(how, "chroot")) {
                for (int i = 0; i < 3; i++)
                        if (!fork()) {
                                work();
                                exit(0);
                        }
                while (wait(NULL) > 0)
                        ;
                return 0;
        }
        work();
        if (!strcmp(how, "_exit"))
                _exit(5);
        if (!strcmp(how, "kill"))
                raise(SIGKILL);
        if (!strcmp(how, "exec")) {
                execl(argv[0], argv[0], "exit", (char *)NULL);
                return 99;
        }
        return 0;
}
"""


class Figures(Compiled):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.worker = cls.compile(cls(), "worker", WORKER)

    def run_worker(self, how, **kwargs):
        done, data = figures(self.worker, how, **kwargs)
        self.assertIsNotNone(data, done)
        self.check_sums(data)
        return done, data

    def check_width(self, text):
        rows = [line for line in text.splitlines() if line.startswith("  ")]
        self.assertGreater(len(rows), 2)
        for row in rows:
            self.assertLessEqual(len(row), 100, row)

    def check_sums(self, data):
        self.assertEqual(data["format"], 1)
        for p in data["processes"]:
            if p["figures"] == "none":
                continue
            totals = p["totals"]
            for key in ("slabs", "sheaves", "objects_live", "objects_cached", "live_bytes",
                        "cached_bytes", "space_bytes"):
                self.assertEqual(totals[key], sum(c[key] for c in p["caches"]), key)
            for key, value in totals["counters"].items():
                self.assertEqual(value, sum(c["counters"][key] for c in p["caches"]), key)
            self.assertEqual(totals["large_bytes"],
                             p["pages"]["taken_bytes"] - totals["space_bytes"])
            for c in p["caches"] + [totals]:
                n = c["counters"]
                self.assertAlmostEqual(sum(c["allocated_shares"].values()),
                                       1 if n["alloc_fastpath"] + n["alloc_slowpath"] else 0,
                                       places=4)
                if p["figures"] == "exact" and c is not totals:
                    self.assertEqual(c["objects_live"], n["alloc_fastpath"] + n["alloc_slowpath"] -
                                     n["free_fastpath"] - n["free_slowpath"], c["name"])
                    self.assertLessEqual(c["objects_live"] + c["objects_cached"],
                                         c["slabs"] * c["objects_per_slab"], c["name"])
                    self.assertLessEqual(c["live_bytes"], c["space_bytes"])
                    self.assertEqual(c["space_bytes"], c["slabs"] * c["slab_bytes"])

    def cache_for(self, process, size):
        """The smallest cache whose objects take that size."""
        return min((c for c in process["caches"] if c["object_size"] >= size),
                   key=lambda c: c["object_size"])

    def check_worker(self, process, exact):
        kept, turned = self.cache_for(process, 100), self.cache_for(process, 40)
        self.assertGreaterEqual(kept["objects_live"], 2000 if exact else 1000)
        self.assertLess(kept["objects_live"], 2500)
        self.assertGreaterEqual(turned["counters"]["alloc_fastpath"] +
                                turned["counters"]["alloc_slowpath"], 50000)
        self.assertLess(turned["objects_live"], 500)
        self.assertGreaterEqual(process["totals"]["large_bytes"], 1 << 20)
        self.assertLess(process["totals"]["large_bytes"], 4 << 20)
        self.assertEqual(process["figures"], "exact" if exact else "earlier")
        if exact:
            self.assertEqual(process["figures_age_ms"], 0)

    def only(self, data):
        self.assertEqual(len(data["processes"]), 1)
        p = data["processes"][0]
        self.assertEqual((p["pid"], p["program"], p["birth"], p["end"]),
                         (data["run"]["pid"], "worker", "exec", "ended"))
        return p

    def test_exit(self):
        done, data = self.run_worker("exit", options=["--stats"])
        self.assertEqual(done.returncode, 0)
        p = self.only(data)
        self.check_worker(p, exact=True)
        self.assertIn(p["backend"], ("rseq", "locked"))
        self.assertEqual(p["peak_resident_bytes"], data["run"]["peak_resident_bytes"])
        self.assertGreater(p["peak_resident_bytes"], 1 << 20)
        self.assertEqual(data["command"], [self.worker, "exit"])
        kept = self.cache_for(p, 100)
        self.assertIn("worker (pid %d), at exit" % p["pid"], done.stderr)
        self.assertRegex(done.stderr, r"(?m)^ *%s +%d +%d " %
                         (kept["name"], kept["object_size"], kept["objects_live"]))
        self.assertRegex(done.stderr, r"(?m)^ *total ")
        self.check_width(done.stderr)

    def test_underscore_exit(self):
        done, data = self.run_worker("_exit", options=["--stats"])
        self.assertEqual(done.returncode, 5)
        p = self.only(data)
        self.check_worker(p, exact=False)
        self.assertLessEqual(p["figures_age_ms"], 1000 * data["run"]["wall_s"])
        self.assertRegex(done.stderr, r"as of \d+ ms before its end")

    def test_killed(self):
        done, data = self.run_worker("kill")
        self.assertEqual((done.returncode, data["run"]["signal"], data["run"]["exit_status"]),
                         (137, 9, 137))
        self.check_worker(self.only(data), exact=False)

    def test_closed_descriptors(self):
        done, data = self.run_worker("closed")
        self.assertEqual(done.returncode, 0)
        self.check_worker(self.only(data), exact=True)

    def test_exec_chain(self):
        done, data = self.run_worker("exec", options=["--stats"])
        self.assertEqual(done.returncode, 0)
        first, second = data["processes"]
        self.assertEqual((first["pid"], second["pid"]), (data["run"]["pid"],) * 2)
        self.assertEqual((first["end"], second["end"]), ("executed", "ended"))
        self.check_worker(first, exact=False)
        self.assertLessEqual(first["figures_age_ms"], 1000 * data["run"]["wall_s"])
        self.check_worker(second, exact=True)
        self.assertRegex(done.stderr, r"as of \d+ ms before it executed another program")

    def test_children(self):
        done, data = self.run_worker("fork", options=["--stats"])
        root, *children = data["processes"]
        self.assertEqual(root["pid"], data["run"]["pid"])
        self.assertEqual(len(children), 3)
        self.assertEqual(len({p["pid"] for p in data["processes"]}), 4)
        for p in children:
            self.assertEqual((p["birth"], p["parent"]), ("fork", root["pid"]))
            self.check_worker(p, exact=True)
        self.assertEqual(done.stderr.count("at exit"), 4)

    def test_many_children_are_summed_up(self):
        script = "for i in 1 2 3 4 5 6 7 8; do %s exit; done; true" % self.worker
        done, data = figures("sh", "-c", script, options=["--stats"])
        self.check_sums(data)
        workers = [p for p in data["processes"] if p["program"] == "worker"]
        self.assertEqual(len(workers), 8)
        for p in workers:
            self.check_worker(p, exact=True)
        self.assertIn("%d processes" % len(data["processes"]), done.stderr)
        self.assertIn("The biggest:", done.stderr)
        self.assertEqual(done.stderr.count("objects above 128 KiB"), 1)
        self.check_width(done.stderr)

    def test_still_running(self):
        ready, stay = (os.path.join(self.folder, name) for name in ("ready", "stay"))
        os.mkfifo(ready)
        os.mkfifo(stay)
        end = os.open(stay, os.O_RDWR)          # the worker stays until this is closed
        done, data = figures("sh", "-c", '"$0" stay <"$2" >"$1" 2>/dev/null & read x <"$1"',
                             self.worker, ready, stay)
        os.close(end)
        self.check_sums(data)
        ends = {p["program"]: p["end"] for p in data["processes"] if p["program"] == "worker"}
        self.assertEqual(ends, {"worker": "running"})

    def test_other_root(self):
        if os.getuid() != 0:
            self.skipTest("only root can change its root")
        done, data = self.run_worker("chroot")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(data["processes"]), 4)
        for p in data["processes"][1:]:
            self.check_worker(p, exact=True)

    def test_full_file_system(self):
        inside = 'mount -t tmpfs -o size="$0" stook /dev/shm && exec "$@"'
        probe = subprocess.run(["unshare", "-m", "sh", "-c", inside, "64k", "true"],
                               capture_output=True)
        if probe.returncode:
            self.skipTest("no mount namespace")
        for size in ("4k", "8k", "12k", "16k", "24k", "32k", "64k"):
            command = [STOOK, "run", "--stats", self.worker, "fork"]
            done = subprocess.run(["unshare", "-m", "sh", "-c", inside, size, *command],
                                  capture_output=True, text=True, preexec_fn=without_memfd)
            self.assertEqual(done.returncode, 0, (size, done.stderr))       # not SIGBUS

    def test_without_memfd(self):
        done, data = figures(self.worker, "fork", preexec_fn=without_memfd)
        self.assertEqual((done.returncode, len(data["processes"])), (0, 4))
        done = stook("run", "--stats", "sh", "-c", 'echo "$STOOK_STATS"', preexec_fn=without_memfd)
        self.assertRegex(done.stdout, r"^/.*/stook-run-[^/]+\n$")
        self.assertFalse(os.path.exists(done.stdout.strip()))

    def test_limited_address_space(self):
        done, data = figures("sh", "-c", "ulimit -v 2000000; exec %s exit" % self.worker)
        self.assertEqual(done.returncode, 0)
        self.check_sums(data)
        self.check_worker(data["processes"][-1], exact=True)

    def test_no_file_size(self):
        """The program runs, without figures; it has the limit and its signal as they were."""
        def limit(bytes):
            return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, bytes))

        note = "no statistics: the limit on the size of files"
        with tempfile.NamedTemporaryFile() as out:
            done = stook("run", "--json", out.name, "--stats", "true", preexec_fn=limit(65536))
            data = json.load(out)
        self.assertEqual((done.returncode, data["processes"]), (0, []))
        self.assertIn("stook: note: " + note, done.stderr)
        self.assertTrue(data["notes"][0].startswith(note))
        self.assertNotIn("not loaded", done.stderr)
        with tempfile.NamedTemporaryFile() as out:
            done = stook("run", "--json", out.name, "true", preexec_fn=limit(0))
            self.assertEqual(done.returncode, 2)
            self.assertIn(out.name + ": File too large", done.stderr)
            done = subprocess.run([STOOK, "run", "--stats", "true"], stderr=out,
                                  preexec_fn=limit(0))
            self.assertEqual(done.returncode, 0)        # although not a word can be written
            script = 'echo x > "$0"'
            done = stook("run", "--stats", "sh", "-c", script, out.name, preexec_fn=limit(0))
            self.assertEqual(done.returncode, 128 + signal.SIGXFSZ)

    def test_json_to_standard_output(self):
        done = stook("run", "--json", "-", "--", self.worker, "exit")
        self.assertEqual(done.returncode, 0)
        self.check_worker(json.loads(done.stdout)["processes"][0], exact=True)

    def test_names_that_are_not_text(self):
        path = os.path.join(os.fsencode(self.folder), b'w\xff"\\\n\xc3\xa9')
        shutil.copy(self.worker, path)
        with tempfile.NamedTemporaryFile() as out:
            done = subprocess.run([STOOK, "run", "--json", out.name, path, "exit"],
                                  capture_output=True)
            data = json.loads(out.read().decode("utf-8"))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(data["processes"][0]["program"], 'w\ufffd"\\\n\u00e9')

    def test_variable_that_makes_no_sense(self):
        drop_in = os.path.join(os.path.dirname(STOOK), "libstook-malloc.so")
        with tempfile.NamedTemporaryFile() as plain:
            plain.write(b"x" * 500000)
            plain.flush()
            for value, lines in (("nonsense", 1), (plain.name, 1), ("/nonexistent/file", 0),
                                 ("/proc/self/exe", 0), ("/proc/self/fd/0", 0),
                                 ("/proc/1/fd/77", 0)):
                done = subprocess.run([self.worker, "exit"], capture_output=True, text=True,
                                      env={**os.environ, "LD_PRELOAD": drop_in,
                                           "STOOK_STATS": value})
                self.assertEqual(done.returncode, 0)
                self.assertEqual(done.stderr.count("STOOK_STATS"), lines, done.stderr)
            with open(plain.name, "rb") as f:
                self.assertEqual(f.read(), b"x" * 500000)


if __name__ == "__main__":
    main()
