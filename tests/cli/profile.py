#!/usr/bin/env python3
"""Proves: a heap profile's estimates are those of the program's allocations, within the error of
samples, for each of its stacks; it is written at the end, on a signal and by a call; forks, threads
and handlers do not harm it; pprof's schema is kept to; damage is one line, and never a crash."""
import gzip
import os
import random
import signal
import stat
import subprocess
import unittest
import xml.etree.ElementTree

from stook import BUILD, Compiled, DROP_IN, SHARED, STATIC, main, stook

MIX = """
#include <stdlib.h>
#include <unistd.h>
#define KEEP __attribute__((noinline))
KEEP void *small(void) { void *p = malloc(24); __asm__ volatile("" : "+r"(p)); return p; }
KEEP void *middle(void) { void *p = malloc(1000); __asm__ volatile("" : "+r"(p)); return p; }
KEEP void *big(void) { void *p = malloc(300000); __asm__ volatile("" : "+r"(p)); return p; }
KEEP void *churn(void) { void *p = calloc(10, 50); __asm__ volatile("" : "+r"(p)); return p; }
int main(void)
{
        for (int i = 0; i < 200000; i++)
                if (!small())
                        return 1;
        for (int i = 0; i < 8000; i++)
                if (!middle())
                        return 1;
        for (int i = 0; i < 50; i++)
                if (!big())
                        return 1;
        for (int i = 0; i < 40000; i++)
                free(churn());
        return 0;
}"""
# function: objects, bytes of each, are they in use
MIX_HAS = {"small": (200000, 24, True), "middle": (8000, 1000, True), "big": (50, 300000, True),
           "churn": (40000, 500, False)}


def varint(data, at):
    n = shift = 0
    while True:
        byte = data[at]
        at += 1
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return n, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7:
            assert tag & 7 == 2 and at + value <= len(data)
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


class Profile(Compiled):
    def path(self, name):
        return os.path.join(self.folder, name)

    def folded(self, path, kind):
        """What each function has, with all that it called."""
        done = stook("profile", "--folded", "--type", kind, path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        sums = {}
        for line in done.stdout.splitlines():
            stack, value = line.rsplit(" ", 1)
            for name in set(stack.split(";")):
                sums[name] = sums.get(name, 0) + int(value)
        return sums

    def near(self, value, expected, share):
        self.assertLess(abs(value - expected), share * expected, (value, expected))

    def test_mix(self):
        """Four stacks of known objects. With one sample in 2 KiB the least of them has 2300
        samples, so its error is 2 %; 15 % is seven times that."""
        program = self.compile("mix", MIX, "-g", "-rdynamic")
        path = self.path("mix.pb")
        done = stook("run", "--profile", path + ",interval=2K", "--", program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        kinds = {kind: self.folded(path, kind) for kind in
                 ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")}
        if "main" not in kinds["alloc_space"]:
            self.skipTest("stook was built without libdw")
        for name, (count, size, in_use) in MIX_HAS.items():
            self.near(kinds["alloc_objects"][name], count, 0.15)
            self.near(kinds["alloc_space"][name], count * size, 0.15)
            if in_use:
                self.near(kinds["inuse_objects"][name], count, 0.15)
                self.near(kinds["inuse_space"][name], count * size, 0.15)
            else:
                self.assertNotIn(name, kinds["inuse_space"])
        top = stook("profile", "--top", "1", path)
        self.assertRegex(top.stdout, r"(?s)^inuse_space: 2.\.. MiB, by samples of one in 2.0 KiB"
                         r"\n\n1.\.. MiB, .* %\n        big ")

    def test_nothing_in_use(self):
        """A program that frees everything: the command says what to look at."""
        program = self.compile("frees", """#include <stdlib.h>
            int main(void) { free(malloc(64 << 20)); return 0; }""")
        path = self.path("frees.pb")
        for options, says in (("", "--type alloc_space shows"),
                              (",interval=1000000M", "no allocation was sampled")):
            stook("run", "--profile", path + options, "--", program)
            done = stook("profile", path)
            self.assertEqual(done.returncode, 0)
            self.assertTrue(done.stdout.startswith("inuse_space: 0, "))
            self.assertIn(says, done.stderr)
        self.assertEqual(stook("profile", "--type", "alloc_space", path).stderr, done.stderr)

    def test_each_byte(self):
        """With an interval of 1 every object is sampled, and counts once."""
        program = self.compile("exact", """
#include <stdlib.h>
int main(void)
{
        void *p[1000];
        for (int i = 0; i < 1000; i++)
                p[i] = malloc(100);
        for (int i = 0; i < 400; i++)
                free(p[i]);
        p[0] = realloc(malloc(1 << 20), 3 << 20);
        return !p[0];
}""", "-g", "-rdynamic")
        path = self.path("exact.pb")
        self.assertEqual(stook("run", "--profile", path + ",interval=1", "--", program).stderr, "")
        if "main" not in self.folded(path, "inuse_objects"):
            self.skipTest("stook was built without libdw")
        self.assertEqual(self.folded(path, "alloc_objects")["main"], 1002)
        self.assertEqual(self.folded(path, "inuse_objects")["main"], 601)
        self.assertEqual(self.folded(path, "inuse_space")["main"], 600 * 100 + (3 << 20))

    def test_frames_of_the_library(self):
        """They are left out, also those that <stook/inline.h> puts into the program's."""
        source = """
#include <stook/inline.h>
__attribute__((noinline)) static void *load(struct stook_cache *cache)
{
        void *p = stook_cache_alloc_inline(cache);
        __asm__ volatile("" : "+r"(p));
        return p;
}
int main(void)
{
        struct stook_cache *cache = stook_cache_create("objects", 1000, 0);
        for (int i = 0; i < 100; i++)
                if (!load(cache))
                        return 1;
        return 0;
}"""
        path = self.path("own.pb")
        for link in (SHARED, STATIC):
            program = self.compile("own", source, "-g", *link)
            done = subprocess.run([program], capture_output=True, text=True,
                                  env={"STOOK_PROFILE": path + ",interval=1"})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            if "main" not in self.folded(path, "inuse_objects"):
                self.skipTest("stook was built without libdw")
            top = stook("profile", path).stdout
            self.assertRegex(top, r"\n\n.* %\n        load .*:5\n        main .*:13\n")
            folded = stook("profile", "--folded", path).stdout
            self.assertRegex(folded, r"^(.*;)?main;load \d+\n$")

    def test_beside_the_drop_in(self):
        """libstook.so, whose calls are the drop-in's then, does not write its empty profile."""
        source = """
#include <stook/cache.h>
int main(void)
{
        struct stook_cache *cache = stook_cache_create("objects", 100000, 0);
        for (int i = 0; i < 300; i++)
                if (!stook_cache_alloc(cache))
                        return 1;
        return 0;
}"""
        path = self.path("beside.pb")
        done = stook("run", "--profile", path, "--", self.compile("beside", source, *SHARED))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        top = stook("profile", path).stdout
        self.assertRegex(top, r"^inuse_space: (2\d|3\d)\.\d MiB, ")

    def test_schema(self):
        """Names of values, numbers of strings, locations and mappings that are there."""
        program = self.compile("mix", MIX)
        path = self.path("schema.pb")
        stook("run", "--profile", path, "--", program)
        with open(path, "rb") as f:
            data = list(fields(f.read()))
        strings = [v.decode() for f, v in data if f == 6]
        self.assertEqual(strings[0], "")
        types = [dict(fields(v)) for f, v in data if f == 1]
        self.assertEqual([(strings[t[1]], strings[t[2]]) for t in types],
                         [("alloc_objects", "count"), ("alloc_space", "bytes"),
                          ("inuse_objects", "count"), ("inuse_space", "bytes"),
                          ("peak_objects", "count"), ("peak_space", "bytes"),
                          ("growth_objects", "count"), ("growth_space", "bytes")])
        self.assertEqual(strings[dict(data)[14]], "peak_space")
        self.assertEqual(dict(data)[12], 524288)
        mappings = {dict(fields(v))[1]: dict(fields(v)) for f, v in data if f == 3}
        self.assertIn(program, {strings[m[5]] for m in mappings.values()})
        locations = {}
        for f, v in data:
            if f == 4:
                where = dict(fields(v))
                self.assertNotIn(where[1], locations)
                locations[where[1]] = where
                if 2 in where:
                    mapping = mappings[where[2]]
                    self.assertTrue(mapping[2] <= where[3] < mapping[3])
        used = 0
        for f, v in data:
            if f == 2:
                sample = dict(fields(v))
                at = 0
                while at < len(sample[1]):
                    location, at = varint(sample[1], at)
                    self.assertIn(location, locations)
                    used += 1
        self.assertGreater(used, 0)

    def test_when(self):
        """By a call, on a signal, and at the end of each process; a file is whole or not there."""
        source = """
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int stook_profile_write(const char *path);
int main(int argc, char **argv)
{
        if (argc > 1 && !malloc(100000))
                return 1;
        if (stook_profile_write(argv[1]) || stook_profile_write("") != -22)
                return 2;
        raise(SIGUSR2);
        if (!malloc(100000))
                return 1;
        raise(SIGUSR2);
        if (!fork())
                exit(0);
        wait(0);
        return 0;
}"""
        program = self.compile("when", source, "-L" + BUILD, "-lstook-malloc",
                               "-Wl,-rpath," + BUILD)
        called = self.path("called.pb")
        folder = self.path("when.d")
        os.mkdir(folder)
        done = subprocess.run([program, called], cwd=folder, capture_output=True, text=True,
                              env={"STOOK_PROFILE": f"p-%p.pb,interval=1,signal={signal.SIGUSR2}"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        names = sorted(os.listdir(folder))
        self.assertEqual(len(names), 4, names)
        self.assertEqual(sorted(n.split(".", 1)[1] for n in names), ["pb", "pb", "pb.1", "pb.2"])
        parent = os.path.join(folder, next(n for n in names if n.endswith("pb.1")))
        size = {end: sum(int(line.rsplit(" ", 1)[1]) for line in
                         stook("profile", "--folded", parent[:-2] + end).stdout.splitlines())
                for end in ("", ".1", ".2")}
        self.assertEqual(size[".2"] - size[".1"], 100000)
        self.assertEqual(stook("profile", called).returncode, 0)
        done = subprocess.run([program], capture_output=True, env={})
        self.assertEqual(done.returncode, 2)            # no profile: -ENOTSUP

    def test_storm(self):
        """Threads and handlers on all paths, forks meanwhile, every object sampled: nothing is in
        use at the end but what is."""
        program = self.compile("storm", """
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void *mine(size_t n)
{
        void *p = malloc(n);
        __asm__ volatile("" : "+r"(p));
        return p;
}
static volatile int over;
/* The next signal: with a period a slow machine would do nothing but handle them. */
static void ask(void)
{
        struct itimerval once = { .it_value = { .tv_usec = 1000 } };
        if (!over)
                setitimer(ITIMER_REAL, &once, 0);
}
static void tick(int n) { (void)n; free(mine(50)); ask(); }
static void *work(void *x)
{
        void *p[16] = { 0 };
        for (unsigned i = 0; i < 20000; i++) {
                free(p[i % 16]);
                p[i % 16] = mine(1 + i % 3000);
        }
        for (int i = 0; i < 16; i++)
                free(p[i]);
        return x;
}
int main(void)
{
        struct itimerval never = { 0 };
        pthread_t threads[4];
        struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
        sigaction(SIGALRM, &action, 0);
        ask();
        for (int i = 0; i < 4; i++)
                pthread_create(&threads[i], 0, work, 0);
        for (int i = 0; i < 5; i++) {
                pid_t child = fork();
                if (!child) {
                        work(0);
                        _exit(0);
                }
                while (waitpid(child, 0, 0) < 0)
                        ;
        }
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], 0);
        over = 1;
        setitimer(ITIMER_REAL, &never, 0);
        return !mine(777);
}""", "-pthread", "-g", "-rdynamic")
        path = self.path("storm.pb")
        done = stook("run", "--profile", path + ",interval=64", "--", program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        sums = self.folded(path, "inuse_space")
        if "main" not in sums:
            self.skipTest("stook was built without libdw")
        self.assertEqual(sums["mine"], 777)
        self.assertGreater(self.folded(path, "alloc_objects")["mine"], 80000)

    def test_picture(self):
        """A flame graph is XML, and the widths of boxes are the shares."""
        program = self.compile("mix", MIX, "-g", "-rdynamic")
        path = self.path("picture.pb")
        stook("run", "--profile", path + ",interval=2K", "--", program)
        done = stook("profile", "--svg", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        root = xml.etree.ElementTree.fromstring(done.stdout)
        width = {}
        for group in root.iter("{http://www.w3.org/2000/svg}g"):
            width[group[0].text.split(":")[0]] = float(group[1].get("width"))
        self.near(width["all"], 1180, 0.01)
        if "main" not in width:
            self.skipTest("stook was built without libdw")
        self.near(width["big"], 1180 * 15e6 / 27.8e6, 0.15)

    def test_refused(self):
        for value in ("", ",interval=1", "x,interval=0", "x,interval=1Q", "x,speed=1",
                      "x,signal=65", "x,signal=1,"):
            done = subprocess.run(["true"], env={"LD_PRELOAD": DROP_IN, "STOOK_PROFILE": value},
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, f"stook: STOOK_PROFILE={value}: "
                             "takes FILE[,interval=BYTES][,signal=NUMBER][,lifetimes]\n"))
        for program in "true", "ls":            # ls closes its standard error at its end
            done = subprocess.run([program], env={"LD_PRELOAD": DROP_IN, "STOOK_PROFILE": "/no/x"},
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr),
                             (0, "stook: STOOK_PROFILE: /no/x: no heap profile: no such folder or "
                              "file\n"))
        for args, says in ((["x", "--", "true"], None), (["x,speed=1", "true"], "--profile takes"),
                           (["x,signal=65", "true"], "--profile takes"),
                           (["x,signal=1K", "true"], "--profile takes"),
                           (["x", "--repeat", "2", "true"], "--profile is for one run")):
            done = stook("run", "--profile", *args, cwd=self.folder)
            self.assertEqual(done.returncode, 2 if says else 0)
            self.assertTrue(done.stderr.startswith("stook run: " + says if says else ""))
        for args, says in (([], "one heap profile is wanted"), (["-x"], "no option '-x'"),
                           (["--svg", "--folded", "x"], "--folded or --svg, not both"),
                           (["--top", "0", "x"], "--top takes a number"),
                           (["/nonexistent"], "/nonexistent: No such file"),
                           (["/dev/null"], "/dev/null: not a regular file")):
            done = stook("profile", *args)
            self.assertEqual(done.returncode, 2)
            self.assertTrue(done.stderr.startswith("stook profile: " + says), done.stderr)
        self.assertEqual(stook("profile", "/no/a\n\33[1m").stderr,
                         "stook profile: /no/a\\x0a\\x1b[1m: No such file or directory\n")

    def test_said_before_the_program_starts(self):
        """Where no profile can be written. What the folder %p will be is not known yet."""
        for path, why in (("/no/x,interval=64", "No such file or directory"),
                          ("no/x", "No such file or directory"), (".", "Is a directory"),
                          ("x" * 900, "File name too long")):
            done = stook("run", "--profile", path, "--", "echo", "started", cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", "stook run: "
                             f"--profile '{path.partition(',')[0]}': {why}\n"))
        for path, status in (("%p/x", 2), ("x-%p", 0)):
            done = stook("run", "--profile", path, "--", "echo", "started", cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (status, "started\n"))

    def test_only_files_are_replaced(self):
        """A new file takes a file's name, but never that of a device, a pipe or a link."""
        target, link, fifo = self.path("target"), self.path("link"), self.path("fifo")
        with open(target, "w") as f:
            f.write("old")
        os.symlink(target, link)
        os.mkfifo(fifo)
        why = "it is there, and is no regular file"
        for path in (link, fifo):
            done = stook("run", "--profile", path, "--", "echo", "started")
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", f"stook run: --profile '{path}': {why}\n"))
            done = subprocess.run(["true"], env={"LD_PRELOAD": DROP_IN, "STOOK_PROFILE": path},
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr),
                             (0, f"stook: STOOK_PROFILE: {path}: no heap profile: {why}\n"))
        self.assertTrue(os.path.islink(link) and stat.S_ISFIFO(os.lstat(fifo).st_mode))
        self.assertEqual([n for n in os.listdir(self.folder) if ".part-" in n], [])
        self.assertEqual(stook("run", "--profile", target, "--", "true").returncode, 0)
        self.assertEqual(stook("profile", target).returncode, 0)

    def test_other_files(self):
        path = self.path("other")
        for content, says in ((b'{"a": 1}', "no heap profile, but JSON"),
                              (b"\x7fELF" + bytes(12) + b"\3" + bytes(50),
                               "no heap profile, but a program or a library"),
                              (b"# Text\n", "damaged, or no heap profile")):
            with open(path, "wb") as f:
                f.write(content)
            done = stook("profile", path)
            self.assertEqual((done.returncode, done.stderr),
                             (2, f"stook profile: {path}: {says}\n"))
        for path, says in (("/", "Is a directory"), ("/dev/null", "not a regular file")):
            done = stook("profile", path)
            self.assertEqual((done.returncode, done.stderr),
                             (2, f"stook profile: {path}: {says}\n"))

    def test_damage(self):
        """Random changes: status 0 or 2, and one line."""
        seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
        print("SEED", seed)
        rng = random.Random(seed)
        path = self.path("damage.pb")
        stook("run", "--profile", path, "--", self.compile("mix", MIX))
        with open(path, "rb") as f:
            good = f.read()
        for i in range(100):
            data = bytearray(good[:rng.randrange(len(good))] if i % 4 == 0 else good)
            for _ in range(rng.randrange(1, 20) if data else 0):
                data[rng.randrange(len(data))] = rng.randrange(256)
            with open(path, "wb") as f:
                f.write(data)
            done = stook("profile", rng.choice(["--svg", "--folded", "--top=3"]), path)
            self.assertIn(done.returncode, (0, 2), (seed, i, done))
            self.assertEqual(done.stderr.count("\n"), 1 if done.returncode else 0, (seed, i, done))
        with open(path, "wb") as f:
            f.write(b"\x1f\x8b" + good)
        self.assertEqual(stook("profile", path).stderr,
                         f"stook profile: {path}: gzip cannot unpack it\n")
        with open(path, "wb") as f:
            f.write(gzip.compress(good)[:-20])
        self.assertEqual(stook("profile", path).returncode, 2)

    def test_packed(self):
        """A file that gzip packed, as pprof's own are, reads as the file itself."""
        path = self.path("packed.pb")
        stook("run", "--profile", path, "--", self.compile("mix", MIX))
        plain = stook("profile", path)
        self.assertEqual(plain.returncode, 0, plain)
        with open(path, "rb") as f:
            text = f.read()
        with open(path + ".gz", "wb") as f:
            f.write(gzip.compress(text))
        packed = stook("profile", path + ".gz")
        self.assertEqual((packed.returncode, packed.stdout, packed.stderr),
                         (0, plain.stdout, ""))


if __name__ == "__main__":
    main()
