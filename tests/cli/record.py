#!/usr/bin/env python3
"""Proves: a trace has each allocation and free of a program and its children, with size, thread and
identity; forks, threads, handlers, closed descriptors and other folders lose none; what a killed
program leaves can be read; a full disk ends the recording with one line and not the program; stacks
are those of the calls."""
import collections
import json
import os
import resource
import signal
import subprocess
import unittest

from stook import BUILD, Compiled, DROP_IN, STOOK, main, stook

SOURCE = os.environ["STOOK_SOURCE"]

Event = collections.namedtuple("Event", "at process thread cpu kind object bytes cache more")


FREES_BY_RCU = r"""
#include <stook/stook.h>

static struct { struct stook_rcu_head *head; void (*done)(struct stook_rcu_head *); } waiting[64];
static unsigned count;

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        waiting[count].head = head;
        waiting[count++].done = done;
}

static void barrier(void)
{
        for (unsigned n = count, i = 0; i < n; i++)
                waiting[i].done(waiting[i].head);
        count = 0;
}

int main(void)
{
        static const struct stook_rcu rcu = { .ops_size = sizeof rcu, .call = call,
                                              .barrier = barrier };
        struct stook_cache *cache = stook_cache_create("route", 64, NULL);
        void *objects[5];

        if (!cache || stook_rcu_use(&rcu))
                return 1;
        for (int i = 0; i < 5; i++)
                objects[i] = stook_cache_alloc(cache);
        for (int i = 0; i < 3; i++)
                if (stook_cache_free_rcu(cache, objects[i]))
                        return 2;
        stook_cache_rcu_barrier(cache);
        stook_cache_free(cache, objects[3]);
        stook_cache_free(cache, objects[4]);
        return 0;
}
"""


class Record(Compiled):
    def read(self, path):
        done = stook("record", "--text", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        events, self.heads = [], []
        for line in done.stdout.splitlines():
            words = line.split()
            if words[0] == "#":
                self.heads.append(line)
            else:
                words += [""] * (9 - len(words))
                events.append(Event(float(words[0]), *map(int, words[1:4]), *words[4:]))
        self.assertEqual(sorted(e.at for e in events), [e.at for e in events])
        self.check(events)
        return events

    def check(self, events):
        """Each object is allocated once before it is freed, with one size and cache."""
        live = {}
        for e in events:
            if e.kind == "alloc":
                self.assertNotIn(e.object, live)
                live[e.object] = e
            elif e.object != "-" and e.kind == "free":
                was = live.pop(e.object)
                self.assertEqual((was.cache, was.process), (e.cache, e.process))
                self.assertIn(e.more, ("", "rcu"))
        return live

    def record(self, source, *args, status=0, **kwargs):
        program = self.compile("program", source, "-pthread")
        path = os.path.join(self.folder, "t.trace")
        done = stook("record", "-o", path, "--", program, *args, **kwargs)
        self.assertEqual(done.returncode, status, done)
        self.done = done
        return self.read(path)

    def of_size(self, events, n):
        return [(e.kind, e.cache) for e in events if e.bytes == str(n)]

    def test_frees_by_rcu(self):
        """They are there when they are given to the library, and say that they waited."""
        folders = [os.path.join(f, "include") for f in (SOURCE, BUILD)]
        program = self.compile("rcu", FREES_BY_RCU, *["-I" + f for f in folders], "-L" + BUILD,
                               "-Wl,-rpath," + BUILD, "-lstook")
        path = os.path.join(self.folder, "rcu.trace")
        done = stook("record", "-o", path, "--", program)
        self.assertEqual(done.returncode, 0, done)
        events = [e for e in self.read(path) if e.cache == "route"]
        self.assertEqual([(e.kind, e.more) for e in events],
                         [("alloc", "")] * 5 + [("free", "rcu")] * 3 + [("free", "")] * 2)
        self.assertEqual([e.object for e in events[5:]], [e.object for e in events[:5]])

    def test_each_call(self):
        """The calls of malloc, their sizes and their ends."""
        events = self.record("""
#include <malloc.h>
#include <stdlib.h>
int main(void)
{
        for (int i = 0; i < 1000; i++)
                free(malloc(1111));
        free(calloc(3, 777));
        void *p = realloc(malloc(2001), 4002);
        free(p);
        p = aligned_alloc(64, 1301);
        free(p);
        p = malloc(1000001);
        p = realloc(p, 1010002);
        p = realloc(p, 64000003);
        free(p);
        return !malloc(3333);
}""")
        self.assertEqual(self.of_size(events, 1111),
                         [("alloc", "malloc-1152"), ("free", "malloc-1152")] * 1000)
        self.assertEqual(self.of_size(events, 2331),
                         [("alloc", "malloc-2560"), ("free", "malloc-2560")])
        self.assertEqual([k for k, _ in self.of_size(events, 2001)], ["alloc", "free"])
        self.assertEqual([k for k, _ in self.of_size(events, 4002)], ["alloc", "free"])
        self.assertEqual([k for k, _ in self.of_size(events, 1301)], ["alloc", "free"])
        self.assertEqual([k for k, _ in self.of_size(events, 64000003)][-1], "free")
        self.assertIn(("alloc", "large"), self.of_size(events, 1000001))
        self.assertEqual([k for k, _ in self.of_size(events, 3333)], ["alloc"])

    THREADS = """
#include <pthread.h>
#include <stdlib.h>
static void *work(void *size)
{
        for (int i = 0; i < 300; i++)
                free(malloc((size_t)size));
        return malloc((size_t)size + 1);
}
int main(void)
{
        for (int round = 0; round < 5; round++) {
                pthread_t t[8];
                void *left[8];
                for (size_t i = 0; i < 8; i++)
                        pthread_create(&t[i], 0, work, (void *)(5000 + 10 * i));
                for (int i = 0; i < 8; i++) {
                        pthread_join(t[i], &left[i]);
                        free(left[i]);
                }
        }
        return 0;
}"""

    def test_threads(self):
        """40 threads of which 8 live at once, often with the thread record of another one: every
        event is there, under the number of its thread."""
        events = self.record(self.THREADS)
        for i in range(8):
            mine = [e for e in events if e.bytes == str(5000 + 10 * i)]
            self.assertEqual(len(mine), 2 * 5 * 300)
            self.assertEqual(set(collections.Counter(e.thread for e in mine).values()), {600})
            left = [e for e in events if e.bytes == str(5001 + 10 * i)]
            self.assertEqual([e.kind for e in left], ["alloc", "free"] * 5)
            self.assertEqual(len({e.thread for e in left if e.kind == "free"}), 1)
            self.assertEqual({e.thread for e in left if e.kind == "alloc"},
                             {e.thread for e in mine})

    def test_fork(self):
        """A child has what it does itself, and nothing twice; the parent's objects are not known
        to it. A program that is executed begins anew, in the same file."""
        events = self.record("""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
        void *p = malloc(6001);
        if (argc > 1) {
                free(malloc(6004));
                return 0;
        }
        if (!fork()) {
                free(p);
                free(malloc(6002));
                exit(0);
        }
        wait(0);
        free(malloc(6003));
        if (!fork())
                execl(argv[0], argv[0], "again", (char *)0);
        wait(0);
        free(p);
        return 0;
}""")
        by = collections.defaultdict(list)
        for e in events:
            by[e.process].append((e.kind, e.bytes))
        self.assertEqual(sum("(forked)" in head for head in self.heads), 1, self.heads)
        parent, child, again = (next(p for p in by if ("alloc", n) in by[p])
                                for n in ("6003", "6002", "6004"))
        self.assertEqual(len({parent, child, again}), 3)
        self.assertEqual([e for e in by[child] if e[1] in ("6001", "6002", "-")],
                         [("free", "-"), ("alloc", "6002"), ("free", "6002")])
        self.assertEqual([e for e in by[parent] if e[1][:3] == "600"],
                         [("alloc", "6001"), ("alloc", "6003"), ("free", "6003"),
                          ("free", "6001")])

    def test_handlers(self):
        """Handlers that allocate at any instruction of other calls."""
        events = self.record("""
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
static volatile int ticks;
/* The last one ends it: on a slow machine signals may come faster than they are handled. */
static void tick(int n)
{
        struct itimerval never = { { 0, 0 }, { 0, 0 } };
        (void)n;
        free(malloc(7001));
        if (++ticks == 100)
                setitimer(ITIMER_REAL, &never, 0);
}
int main(void)
{
        struct itimerval t = { { 0, 200 }, { 0, 200 } };
        signal(SIGALRM, tick);
        setitimer(ITIMER_REAL, &t, 0);
        while (ticks < 100)
                free(malloc(7002));
        return 0;
}""")
        kinds = [k for k, _ in self.of_size(events, 7001)]
        self.assertGreaterEqual(len(kinds), 200)
        self.assertEqual(kinds, ["alloc", "free"] * (len(kinds) // 2))
        self.assertNotIn("found no buffer", "".join(self.heads))

    def test_closed(self):
        """A program that closes all descriptors, opens its own files, and changes its folder."""
        events = self.record("""
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
        (void)argc;
        for (int fd = 0; fd < 1024; fd++)
                close(fd);
        for (int i = 0; i < 300; i++)
                open(argv[1], O_RDWR | O_CREAT, 0600);
        if (chdir("/"))
                return 1;
        for (int i = 0; i < 10000; i++)
                free(malloc(8001));
        return 0;
}""", os.path.join(self.folder, "theirs"), cwd=self.folder)
        self.assertEqual(len(self.of_size(events, 8001)), 20000)
        self.assertEqual(os.path.getsize(os.path.join(self.folder, "theirs")), 0)

    STACKS = """
#include <dlfcn.h>
#include <stdlib.h>
#define KEEP __attribute__((noinline))
static void *kept[200];
KEEP static void temporary(void) { for (int i = 0; i < 5000; i++) free(malloc(100)); }
KEEP static void held(void)
{
        for (int i = 0; i < 200; i++)
                kept[i] = malloc(2000);
        for (int i = 0; i < 200; i++)
                free(kept[i]);
}
KEEP static void resized(void)
{
        char *p = malloc(1000000);
        p = realloc(p, 3000000);
        p[1] = 1;
        kept[0] = p;
}
int main(int argc, char **argv)
{
        void *library = dlopen(argv[argc - 1], RTLD_NOW);
        void *(*plug)(void) = library ? (void *(*)(void))dlsym(library, "plug") : NULL;
        kept[1] = plug ? plug() : NULL;
        if (library)
                dlclose(library);
        temporary();
        held();
        resized();
        return !plug;
}"""

    def test_stacks(self):
        """Callers by what they allocate, also one in a file that is closed by the end; a trace of
        blocks of a second each, so that stacks are given again in many."""
        plug = self.compile("plug.so", """
#include <stdlib.h>
void *plug(void) { void *p = malloc(7777); __asm__ volatile("" : "+r"(p)); return p; }
""", "-g", "-shared", "-fPIC")
        program = self.compile("stacks", self.STACKS, "-g", "-rdynamic", "-ldl")
        path = os.path.join(self.folder, "s.trace")
        done = stook("record", "--stacks", "-o", path, "--", program, plug)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(len(self.of_size(self.read(path), 100)), 10000)
        done = stook("profile", "--json", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        by = collections.defaultdict(collections.Counter)
        for stack in json.loads(done.stdout)["stacks"]:
            for name in {frame.split(" ")[0] for frame in stack["stack"]}:
                by[name].update(stack["values"])
        if "main" not in by:
            self.skipTest("stook was built without libdw, or this C library does not tell files")
        wanted = {"temporary": (5000, 500000, 5000, 0, 0), "held": (200, 400000, 1, 0, 0),
                  "resized": (2, 4000000, 1, 3000000, 3000000), "plug": (1, 7777, 0, 7777, 7777)}
        for name, values in wanted.items():
            self.assertEqual(tuple(by[name][t] for t in (
                "alloc_objects", "alloc_space", "temporary_objects", "peak_space",
                "inuse_space")), values, name)

    def test_no_name_of_ours(self):
        done = stook("record", "-o", "x,stacks", "--", "true", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "stook record: x,stacks: a trace's name does not end with "
                             "',stacks'\n"))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "x,stacks")))

    def test_killed(self):
        """What was written before a kill is read. The exit status is the program's."""
        events = self.record("""
#include <signal.h>
#include <stdlib.h>
int main(void)
{
        for (int i = 0; i < 20000; i++)
                free(malloc(9001));
        raise(SIGKILL);
        return 0;
}""", status=128 + signal.SIGKILL)
        self.assertGreater(len(self.of_size(events, 9001)), 20000)

    def test_full(self):
        """A limit on the size of files: one line, and the program lives, its signals as before. The
        exit status says that the trace is not whole."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, resource.RLIM_INFINITY))
        events = self.record("""
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
        for (int i = 0; i < 20000; i++)
                free(malloc(9001));
        return puts("done") < 0;
}""", preexec_fn=limit, status=2)
        self.assertEqual(self.done.stdout, "done\n")
        path = os.path.join(self.folder, "t.trace")
        self.assertEqual(self.done.stderr, f"stook: {path}: the recording ends here: "
                         f"it takes no more\nstook: {path}: a trace of 100000 bytes: the file took "
                         "no more, and the program went on without it\n")
        self.assertGreater(len(self.of_size(events, 9001)), 1000)
        self.assertIn("the last block ends early", self.heads[-1])

    def test_full_disk(self):
        """Nothing at all was written, or a part. A failure of the program's own goes before."""
        program = os.path.join(self.folder, "disk.sh")
        with open(program, "w") as f:
            f.write("mount -t tmpfs -o size=\"$1\" none /mnt || exit 77\n"
                    "head -c 20000 /dev/zero 2>/dev/null >/mnt/other\n"
                    "shift; \"$@\"; status=$?; cat /mnt/t 2>/dev/null | wc -c; exit $status\n")
        for size, most in (("16k", 0), ("64k", 65536)):
            for status in (0, 5):
                done = subprocess.run(
                    ["unshare", "-rm", "sh", program, size, STOOK, "record", "-o", "/mnt/t", "--",
                     "/usr/bin/python3", "-c", f"for i in range(50000): bytes(600 + i % 5)\n"
                     f"exit({status})"], capture_output=True, text=True)
                if done.returncode in (1, 77):
                    self.skipTest("no file system can be mounted: " + done.stderr)
                self.assertEqual(done.returncode, status or 2, done)
                self.assertEqual(done.stderr.splitlines(), [
                    "stook: /mnt/t: the recording ends here: no space is left" if not most else
                    "stook: /mnt/t: the recording ends here: it takes no more",
                    f"stook: /mnt/t: a trace of {done.stdout.strip()} bytes: the file took no more,"
                    " and the program went on without it"])
                self.assertLessEqual(int(done.stdout), most)
        # The same of a heap profile.
        for status in (0, 5):
            done = subprocess.run(
                ["unshare", "-rm", "sh", program, "16k", STOOK, "run", "--profile",
                 "/mnt/t,interval=1K", "--", "/usr/bin/python3", "-c", f"exit({status})"],
                capture_output=True, text=True)
            self.assertEqual(done.returncode, status or 2, done)
            self.assertIn("/mnt/t: no heap profile: no space is left\n", done.stderr)

    def test_caches(self):
        """Caches: each way to allocate and to free is seen, once. What stays in a prefilled sheaf
        never was the user's."""
        program = self.compile("caches", """
#include <stook/group.h>
#include <stook/sheaf.h>
int main(void)
{
        struct stook_cache_args account = { .args_size = sizeof account,
                                            .flags = STOOK_CACHE_ACCOUNT };
        struct stook_cache *plain = stook_cache_create("plain", 100, 0);
        struct stook_cache *charged = stook_cache_create("charged", 200, &account);
        void *objects[40];
        struct stook_sheaf *sheaf;
        stook_cache_free(plain, stook_cache_zalloc(plain));
        stook_cache_free_nolock(plain, stook_cache_alloc_nolock(plain));
        if (stook_cache_alloc_bulk(plain, 0, 40, objects))
                return 1;
        stook_cache_free_bulk(0, 40, objects);
        if (stook_cache_alloc_bulk(charged, 0, 40, objects))
                return 1;
        stook_cache_free_bulk(charged, 40, objects);
        stook_cache_free(charged, stook_cache_alloc(charged));
        sheaf = stook_sheaf_prefill(plain, 0, 10);
        stook_cache_free(plain, stook_sheaf_alloc(plain, sheaf));
        stook_sheaf_return(plain, sheaf);
        return stook_cache_destroy(plain) || stook_cache_destroy(charged);
}""", "-I" + os.path.join(SOURCE, "include"), "-L" + BUILD, "-lstook", "-Wl,-rpath," + BUILD)
        path = os.path.join(self.folder, "caches.trace")
        done = subprocess.run([program], env={"STOOK_RECORD": path}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        count = collections.Counter((e.cache, e.kind, e.bytes) for e in self.read(path)
                                    if e.cache in ("plain", "charged"))
        self.assertEqual(count, {("plain", "alloc", "100"): 43, ("plain", "free", "100"): 43,
                                 ("charged", "alloc", "200"): 41,
                                 ("charged", "free", "200"): 41})

    def test_refused(self):
        """Files that are no traces are left as they are."""
        path = os.path.join(self.folder, "precious")
        with open(path, "w") as f:
            f.write("precious\n")
        done = stook("record", "-o", path, "--", "true")
        self.assertEqual((done.returncode, done.stderr), (2, f"stook record: {path}: it is there, "
                         "and is no trace: not overwritten\n"))
        done = subprocess.run(["true"], env={"LD_PRELOAD": DROP_IN, "STOOK_RECORD": path},
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, f"stook: STOOK_RECORD={path}: takes "
                         "the name of a new file, or of a trace to be continued\n"))
        with open(path) as f:
            self.assertEqual(f.read(), "precious\n")
        done = subprocess.run(["true"], env={"LD_PRELOAD": DROP_IN, "STOOK_RECORD": "/no/x"},
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr),
                         (0, "stook: STOOK_RECORD: /no/x: no such folder or file\n"))
        for args, says in ((["-o"], "-o needs a value"), (["-x"], "no option '-x'"),
                           ([], "no program given"), (["-o", "/nonexistent/x", "true"],
                           "/nonexistent/x: No such file or directory"),
                           (["-o", "/dev/null", "true"], "/dev/null: not a regular file"),
                           (["--text", "a", "b"], "--text takes one trace, and runs nothing")):
            done = stook("record", *args)
            self.assertEqual((done.returncode, done.stderr.splitlines()[0]),
                             (2, "stook record: " + says))
        path = os.path.join(self.folder, "x")
        self.assertEqual(stook("record", "-o", path, "--", "/nonexistent").returncode, 127)
        self.assertFalse(os.path.exists(path))
        done = stook("record", "x.trace", "--", "true", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr.splitlines()[1:]),
                         (127, ["stook record: for a trace in x.trace say: -o x.trace"]))

    def test_an_old_trace_stays_if_nothing_runs(self):
        path, script = os.path.join(self.folder, "old"), os.path.join(self.folder, "script")
        self.assertEqual(stook("record", "-o", path, "--", "ls", self.folder).returncode, 0)
        with open(path, "rb") as f:
            before = f.read()
        self.assertTrue(before)
        with open(script, "w") as f:
            f.write("#!/nonexistent/interpreter\n")
        os.chmod(script, 0o755)
        for program, status in (("/nonexistent", 127), ("", 127), (script, 127),
                                (self.folder, 126)):
            done = stook("record", "-o", path, "--", program)
            self.assertEqual(done.returncode, status, program)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            with open(path, "rb") as f:
                self.assertEqual(f.read(), before, program)


if __name__ == "__main__":
    main()
