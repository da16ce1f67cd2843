#!/usr/bin/env python3
"""Proves: a heap profile's estimates are those of the program's allocations, within the error of
samples, for each of its stacks; it is written at the end, on a signal and by a call; forks, threads
and handlers do not harm it; the peak, growth, lifetimes and suspects are the program's."""
import os
import signal
import subprocess

from stook import BUILD, main, stook
from profiles import MIX, MIX_HAS, Profiles


class Profile(Profiles):
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
        top = stook("profile", "--top", "1", "--type", "inuse_space", path)
        self.assertRegex(top.stdout, r"(?s)^inuse_space: 2.\.. MiB \+- 1..\.. KiB, by samples of "
                         r"one in 2.0 KiB\n\n1.\.. MiB \+- 0 B, .* %, 50 samples\n        big ")

    def test_nothing_in_use(self):
        """A program that frees everything: the command says what to look at."""
        # 64 GB in all are sampled; what the C library keeps is, once in a million times.
        program = self.compile("frees", """#include <stdlib.h>
            int main(int n, char **a)
            {
                    (void)a;
                    for (int i = 0; i < 1000; i++)
                            free(malloc(n > 1 ? 1 : 64 << 20));
                    return 0;
            }""")
        path = self.path("frees.pb")
        for terms, args, says in ((",interval=1000M", [], "--peak shows what was before"),
                                  (",interval=1000000M", ["1"], "no allocation was sampled")):
            stook("run", "--profile", path + terms, "--", program, *args)
            done = stook("profile", "--type", "inuse_space", path)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, r"^inuse_space: 0 B( \+- 0 B)?, ")
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
                         stook("profile", "--folded", "--type", "inuse_space",
                               parent[:-2] + end).stdout.splitlines())
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
        done = stook("run", "--profile", path + ",interval=1", "--", program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        sums = self.folded(path, "inuse_space")
        if "main" not in sums:
            self.skipTest("stook was built without libdw")
        self.assertEqual(sums["mine"], 777)
        self.assertGreater(self.folded(path, "alloc_objects")["mine"], 80000)   # one is main's

    def test_peak_and_growth(self):
        """What was there at the peak, and what has come since a mark, by stack. The peak counts by
        64ths, so its last 1/64 may be missing."""
        path = self.exact("peak", """
#include <stdlib.h>
#define KEEP __attribute__((noinline))
int stook_profile_mark(void);
KEEP void *table(void) { void *p = malloc(1 << 20); __asm__ volatile("" : "+r"(p)); return p; }
KEEP void *page(void) { void *p = malloc(10000); __asm__ volatile("" : "+r"(p)); return p; }
KEEP void *late(void) { void *p = malloc(5000); __asm__ volatile("" : "+r"(p)); return p; }
int main(void)
{
        static void *p[100];
        void *t = table();
        for (int i = 0; i < 100; i++)
                p[i] = page();
        if (stook_profile_mark())
                return 1;
        free(t);
        for (int i = 0; i < 50; i++)
                free(p[i]);
        for (int i = 0; i < 7; i++)
                if (!late())
                        return 1;
        return 0;
}""", "-L" + BUILD, "-lstook-malloc", "-Wl,-rpath," + BUILD)
        peak, growth = self.folded(path, "peak_space"), self.folded(path, "growth_space")
        self.assertEqual(peak["table"], 1 << 20)
        self.assertLess(abs(peak["table"] + peak["page"] - (1 << 20) - 1000000), 35000)
        self.assertNotIn("late", peak)
        self.assertEqual(growth, {name: 35000 for name in growth})
        self.assertIn("late", growth)
        text = stook("profile", "--growth", "--top", "9", path).stdout
        self.assertRegex(text, r"^growth_space: -1\.4 MiB \+- 0 B, .*; since a mark ")
        self.assertRegex(text, r"\n-1\.0 MiB \+- 0 B, .*\n        table ")
        self.assertRegex(text, r"\n-488\.3 KiB \+- 0 B, .*\n        page ")
        self.assertRegex(stook("profile", path).stdout, r"^peak_space: [12]\.\d MiB \+- 0 B, .* "
                         r"after the start\n\n1.0 MiB \+- 0 B, .*\n        table ")

    def test_lifetimes(self):
        """By pair of stacks; of what is in use, how old it is at least."""
        path = self.exact("lives", """
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#define KEEP __attribute__((noinline))
KEEP void *brief(void) { void *p = malloc(400); __asm__ volatile("" : "+r"(p)); return p; }
KEEP void *longer(void) { void *p = malloc(300); __asm__ volatile("" : "+r"(p)); return p; }
KEEP void done_with(void *p) { free(p); __asm__ volatile(""); }
static void *longs[20];
static void *other(void *x)
{
        for (int i = 0; i < 20; i++)
                done_with(longs[i]);
        return x;
}
int main(void)
{
        pthread_t thread;
        for (int i = 0; i < 100; i++)
                done_with(brief());
        for (int i = 0; i < 20; i++)
                longs[i] = longer();
        usleep(400000);
        pthread_create(&thread, 0, other, 0);
        pthread_join(thread, 0);
        return !brief();
}""", "-pthread", terms=",lifetimes")
        text = stook("profile", "--lifetimes", path).stdout
        self.assertRegex(text, r"\n39\.1 KiB in 100 objects, 0 % freed by another thread, 100 "
                         r"samples; they lived\n    .*\n    allocated by\n        brief (.*\n)*"
                         r"    freed by\n        done_with ")
        self.assertRegex(text, r"\n5\.9 KiB in 20 objects, 100 % freed by another thread, 20 "
                         r"samples; they lived\n    from (268\.4 ms|536\.9 ms|\d+\.\d+ s) .*\n"
                         r"    allocated by\n"
                         r"        longer ")
        self.assertRegex(text, r"\n400 B in use; they have lived\n    ")
        folded = stook("profile", "--lifetimes", "--folded", path).stdout
        pairs = {}
        for line in folded.splitlines():
            stack, value = line.rsplit(" ", 1)
            names = stack.split(";")
            for end in "[freed by]", "[in use]":
                if end in names:
                    key = (names[names.index(end) - 1], end)
                    pairs[key] = pairs.get(key, 0) + int(value)
        self.assertEqual(pairs[("brief", "[freed by]")], 40000)
        self.assertEqual(pairs[("longer", "[freed by]")], 6000)
        self.assertEqual(pairs[("brief", "[in use]")], 400)
        none = self.path("none.pb")
        stook("run", "--profile", none, "--", "true")
        done = stook("profile", "--lifetimes", none)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no lifetimes were kept", done.stderr)

    def test_suspects(self):
        """What grows all the time is one; what is freed again, and what came at once, is none."""
        path = self.exact("leaks", """
#include <stdlib.h>
#include <unistd.h>
#define KEEP __attribute__((noinline))
KEEP void *leak(void) { void *p = malloc(400); __asm__ volatile("" : "+r"(p)); return p; }
KEEP void *churn(void) { void *p = malloc(300); __asm__ volatile("" : "+r"(p)); return p; }
KEEP void *once(void) { void *p = malloc(9999); __asm__ volatile("" : "+r"(p)); return p; }
int main(void)
{
        if (!once())
                return 1;
        for (int i = 0; i < 600; i++) {
                free(churn());
                if (!leak())
                        return 1;
                usleep(5000);
        }
        return 0;
}""")
        text = stook("profile", "--suspects", path).stdout
        self.assertRegex(text, r"^suspects: 1 stack of which more was allocated than freed in each "
                         r"quarter of .*\n\n.* a minute \+- 0 B, 234\.4 KiB in use, 600 samples\n"
                         r"        leak ")

    def test_deep_stacks(self):
        """128 calls, then [outer calls]."""
        path = self.exact("deep", """
#include <stdlib.h>
__attribute__((noinline)) void *deep(int n)
{
        void *p = n ? deep(n - 1) : malloc(1000);
        __asm__ volatile("" : "+r"(p));
        return p;
}
int main(void) { return !deep(90) || !deep(300); }""")
        lines = stook("profile", "--folded", path).stdout.splitlines()
        depths = sorted(line.rsplit(" ", 1)[0].split(";").count("deep") for line in lines
                        if "deep" in line)
        self.assertEqual(depths, [91, 128])
        self.assertEqual(sum("[outer calls]" in line for line in lines), 1)


if __name__ == "__main__":
    main()
