#!/usr/bin/env python3
"""Proves: what people read has no control characters and nothing but ASCII, whatever the names of
programs, files, functions, caches, groups and variables are, and whatever the arguments are; and no
source of the command prints by other ways than say() of cli/text/plain_text.h."""
import os
import pathlib
import re
import subprocess
import unittest

from stook import BUILD, Compiled, DROP_IN, SHARED, STOOK, main

SOURCE = pathlib.Path(os.environ["STOOK_SOURCE"])
# An escape sequence, an 8-bit control character, a byte that is no UTF-8, a line of its own, DEL.
BAD = b"\x1b[31m\x9b\xff\nstook: fine\x7f"
PLAIN = rb"\x1b[31m\x9b\xff\x0astook: fine\x7f"

# Names of ten letters, which are then written over in the program.
PROGRAM = r"""
#include <stook/stook.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *volatile kept[4];

#line 7 "file_abcde.c"
__attribute__((noinline)) void lose_abcde(void)
{
        for (int i = 0; i < 50; i++)
                kept[0] = malloc(1000);
        kept[0] = NULL;
        __asm__ volatile("");
}

__attribute__((noinline)) void free_abcde(void *object)
{
        free(object);
        __asm__ volatile("");
}

int main(int argc, char **argv)
{
        struct stook_cache *cache = stook_cache_create("cache" NAME, 100, NULL);
        struct stook_group *group = stook_group_create("group" NAME, NULL, 1 << 20);

        kept[1] = stook_cache_alloc(cache);
        kept[2] = malloc(1 << 20);
        stook_group_enter(group);
        kept[3] = malloc(100);
        lose_abcde();
        if (argc > 1 && !strcmp(argv[1], "twice")) {
                free_abcde(kept[3]);
                free_abcde(kept[3]);
                stook_cache_free(cache, kept[1]);
                stook_cache_free(cache, kept[1]);
        }
        if (argc > 1 && !strcmp(argv[1], "crash"))
                abort();
        if (argc > 1 && !strcmp(argv[1], "wait")) {
                puts("ready");
                fflush(stdout);
                getchar();
        }
        return 0;
}
"""


def run(*args, **kwargs):
    return subprocess.run([STOOK, *args], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=120, **kwargs)


class Plain(Compiled):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        name = '"' + "".join(f"\\{byte:03o}" for byte in BAD) + '"'
        path = cls.compile(cls(), "program", PROGRAM, "-g", f"-DNAME={name}", *SHARED)
        with open(path, "rb") as f:
            text = re.sub(rb"(lose|free|file)_abcde", b"\\1\x1b[2J\x9b\xff", f.read())
        cls.program = os.path.join(cls.folder, "program").encode() + BAD
        with open(cls.program, "wb") as f:
            f.write(text)
        os.chmod(cls.program, 0o755)
        # The system tells of a file with a newline in its name by another one.
        cls.one_line = cls.program.replace(b"\n", b"")
        os.link(cls.program, cls.one_line)

    def runTest(self):
        pass

    def plain(self, done, *says):
        both = done.stdout + done.stderr
        self.assertEqual(re.sub(rb"[ -~\n]", b"", both), b"", both)
        self.assertNotIn(b"\nstook: fine", both)
        for words in says:
            self.assertIn(words, both)
        return done

    def test_programs(self):
        name = b"program" + PLAIN
        for options, args, *says in (
                (["--stats"], [], name, b"cache" + PLAIN[:20], b"group group" + PLAIN),
                (["--leaks"], [], b"(" + name + b", pid "),
                (["--group-limit", "100K"], [], name),
                (["--compare", "--repeat", "1"], [], name),
                (["--fail-each=2"], [], name),
                ([], ["crash"], name)):
            self.plain(run("run", *options, "--", self.program, *args), *says)
        for options, args, *says in (
                (["--leaks"], [], rb"#0 lose\x1b[2J\x9b\xff "),
                (["--leaks", "--suppress", b"lose\x1b[2J\x9b\xff"], [], b"suppressed: 50 objects"),
                (["--debug", "FZPU", "--on-fault", "log"], ["twice"],
                 b"(cache cache?[31m???stook: fine?, ", rb"#0 free\x1b[2J\x9b\xff ")):
            done = run("run", *options, "--", self.one_line, *args)
            self.plain(done, *(says if b"main" in done.stderr else []))
        environment = {b"LD_PRELOAD": DROP_IN.encode(), b"STOOK_LEAKS": b"1", b"STOOK_DEBUG": b"U",
                       b"STOOK_SYMBOLIZER": b""}
        self.plain(subprocess.run([self.program], env=environment, capture_output=True),
                   b"program?[31m???stook: fine?")
        self.plain(run("run", "--stats", "--", "true", env={**os.environb, b"STOOK_X" + BAD: b"1",
                                                            b"STOOK_DEBUG": b"-" + BAD}))
        script = os.path.join(self.folder, "script")
        with open(script, "wb") as f:
            f.write(b"#!/nowhere" + BAD[:5] + b"\n")
        os.chmod(script, 0o755)
        self.plain(run("run", "--", script), rb"'/nowhere\x1b[31m'")

    def test_files(self):
        trace, profile = self.program + b".trace", self.program + b".pb"
        self.plain(run("record", "-o", trace, "--", self.program), b"program" + PLAIN + b".trace")
        self.plain(run("record", "--text", trace))
        self.plain(run("replay", "--repeat", "1", trace), b"program" + PLAIN + b".trace")
        with open(trace, "r+b") as f:
            f.seek(100)
            f.write(b"x")
        self.plain(run("record", "--text", trace), b"damaged at byte 0")
        self.plain(run("run", "--profile", profile + b",interval=1K", "--", self.program))
        for options in ([], ["--folded"], ["--svg"]):
            self.plain(run("profile", *options, profile))
        self.plain(run("profile", self.program))
        self.plain(run("replay", self.program))

    def test_running(self):
        with subprocess.Popen([self.program, "wait"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE,
                              env=os.environ | {"LD_PRELOAD": DROP_IN}) as process:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            pid = str(process.pid)
            for options in ([], ["--long"], ["--fragmentation"], ["--json"], ["--prometheus"]):
                self.plain(run("info", *options, pid), b"cache")
            self.plain(run("check", pid), rb"program\x1b[31m")
            self.plain(run("tune", pid, b"cache" + BAD, "sheaf_capacity=9"), b"process")
            self.plain(run("info", "--library", BAD, pid), b"'" + PLAIN + b"'")

    def test_arguments(self):
        """@ stands for what is bad."""
        for args in ("@", "--@", "run @", "run --@", "run --against @ true", "run -@ true",
                     "run --json /@/@ true", "run --report-json /@/@ true",
                     "run --profile /@/@ true", "run --debug @ true", "run --on-fault @ true",
                     "run --harden=@ true", "run --group-limit @ true", "run --repeat @ true",
                     "run --fail @ true", "run --fail stack=@ true", "run --json --@ true",
                     "run --error-exitcode @ true", "record -o /@/@ true", "record @",
                     "record --text @", "replay @", "replay --sweep @ @", "replay --slots @ @",
                     "profile @", "profile --type @ @", "symbolize --pid @",
                     "symbolize --pid 1 @", "info @", "info --sort @ 1", "check @", "top @",
                     "top --sort @ 1", "top --every @ 1", "tune @ y barn_full=1",
                     "tune 1 y sheaf_capacity=@", "tune 1 y @=1"):
            with self.subTest(args):
                done = run(*(word.encode().replace(b"@", BAD) for word in args.split()))
                self.assertIn(rb"\x1b", self.plain(done).stderr)

    def test_sources(self):
        """What prints otherwise writes formats, or text that is plain already."""
        others = {"plain_text.c": 3, "json.c": None, "chart.c": None, "flame.c": None,
                  "info_prometheus.c": None, "fail_terms.c": 2, "cmd_profile.c": 1, "table.c": 1,
                  "trace_text.c": 2}
        for path in sorted((SOURCE / "cli").glob("*.c")):
            calls = len(re.findall(r"\bv?f?printf\(|\bdprintf\(", path.read_text()))
            if others.get(path.name, 0) is not None:
                self.assertEqual(calls, others.get(path.name, 0), path.name)


if __name__ == "__main__":
    main()
