"""Programs with caches that the commands look at from outside, and what such tests share.

Programs say when they are ready by a line, and wait for the end of their standard input. So nothing
depends on how fast a machine is.
"""
import json
import os
import resource
import subprocess
import tempfile

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
        struct stook_cache_args few = { .args_size = sizeof few, .limit_objects = 9 };
        struct stook_cache_args shared = { .args_size = sizeof shared, .flags = STOOK_CACHE_MERGE };
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

HEAPS = r"""
#include <stook/stook.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
        struct stook_group *group = stook_group_create("firm", NULL, 0);
        struct stook_heap_args args = {
                .args_size = sizeof args, .limit_bytes = 1 << 20, .group = group,
        };
        struct stook_heap *sessions = stook_heap_create("sessions", &args);
        struct stook_heap *gone = stook_heap_create("gone", NULL);
        struct stook_heap_stats s = { .stats_size = sizeof s };

        stook_heap_create("empty", NULL);
        stook_heap_alloc(gone, 10);
        stook_heap_destroy(gone);
        for (int i = 0; i < 600; i++)
                memset(stook_heap_alloc(sessions, 10 + i % 3 * 100), 1, 10);
        stook_heap_alloc(sessions, 100000);
        if (stook_heap_alloc(sessions, 2 << 20))
                return 1;
        stook_heap_get_stats(sessions, &s);
        printf("%ju %ju %ju\n", s.bytes, s.peak_bytes, s.large_bytes);
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
                memset(o[8] + 200, 0, 16);
        if (way && !strcmp(way, "state"))
                memset(o[8] - 16, 0, 16);
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

METRICS = r"""
#include <stdio.h>
#include <stook/stook.h>
int main(void)
{
        struct stook_cache *mine = stook_cache_create("mine", 100, NULL);
        struct stook_group *group = stook_group_create("ours", NULL, 1 << 20);
        struct stook_heap *heap = stook_heap_create("theirs", NULL);
        int ready = !stook_heap_alloc(heap, 100);
        for (int i = 0; i < 1000; i++)
                ready += !!stook_cache_alloc(mine);
        ready += !!stook_malloc(1 << 20) + !!group;
        printf("ready\n");
        fflush(stdout);
        getchar();
        return ready != 1002 || stook_metrics_write(stdout, STOOK_METRICS_PROMETHEUS);
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
    """A test that compiles them, and asks the command."""

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

    def refused(self, status, words, *args):
        done = s.stook(*args)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn(words, done.stderr)
        self.assertNotIn("\x1b", done.stderr)
        return done.stderr
