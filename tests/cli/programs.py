#!/usr/bin/env python3
"""Proves: the command says beforehand which programs the drop-in does not reach, and why, and runs them all the same;
an LD_PRELOAD that is set stays, behind ours."""
import os
import shutil
import stat
import struct
import subprocess
import tempfile
import unittest

from stook import Compiled, DROP_IN, STOOK, figures, main, stook

HELLO = 'int puts(const char *); int main(void) { return puts("hello") < 0; }'
OWN_MALLOC = """
#include <stddef.h>
static char heap[1 << 20]; static size_t used;
void *malloc(size_t n) { void *p = heap + used; used += (n + 15) & ~(size_t)15; return p; }
void free(void *p) { (void)p; }
int puts(const char *);
int main(void) { return puts("hello") < 0 || !malloc(3); }
"""


class Programs(Compiled):
    def notes(self, *program, says, out="hello\n"):
        done = stook("run", "--", *program)
        self.assertEqual((done.returncode, done.stdout), (0, out), done)
        self.assertTrue(done.stderr.startswith("stook: note: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn(says, done.stderr)

    def silent(self, *program, out="hello\n"):
        done = stook("run", "--", *program)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, out, ""))

    def script(self, name, first_line, text="echo hello\n"):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(first_line + "\n" + text)
        os.chmod(path, 0o755)
        return path

    def test_ordinary(self):
        self.silent(self.compile("ordinary", HELLO))
        self.silent("echo", "hello")

    def test_group_limit(self):
        """Memory until NULL: what was got is just below the limit, and the program lives to say so."""
        path = self.compile("hungry", """
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
        size_t got = 0;
        while (got < (200u << 20) && malloc(1000))
                got += 1000;
        return printf("%zu\\n", got >> 20) < 0;
}
""")
        done = stook("run", "--group-limit", "32M", "--", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(int(done.stdout), range(28, 32))
        self.assertEqual(stook("run", "--", path).stdout, "200\n")
        for refused in ("0", "", "x", "5X", "-1", "5MB"):
            done = stook("run", "--group-limit", refused, "--", path)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("--group-limit", done.stderr)

    def test_static(self):
        path = self.compile("static", HELLO, "-static")
        self.notes(path, says="statically linked")
        done, data = figures(path, options=["--stats"])
        self.assertEqual(data["processes"], [])
        self.assertIn("statically linked", data["notes"][0])
        self.assertIn("no process left figures", done.stderr)

    def test_static_pie(self):
        self.notes(self.compile("static-pie", HELLO, "-static-pie"), says="statically linked")

    def test_dynamic_linker_called_by_name(self):
        linker = "/lib64/ld-linux-x86-64.so.2"
        if not os.path.exists(linker):
            self.skipTest("no " + linker)
        self.silent(linker, shutil.which("echo"), "hello")

    def test_own_malloc(self):
        path = self.compile("own", OWN_MALLOC, "-rdynamic")
        self.notes(path, says="brings its own malloc")

    def test_own_malloc_found_by_either_hash(self):
        for style in ("sysv", "gnu", "both"):
            self.notes(self.compile("own-" + style, OWN_MALLOC, "-rdynamic", "-Wl,--hash-style=" + style),
                       says="brings its own malloc")

    def test_other_allocators_library(self):
        library = self.compile("libjemalloc.so.2", "int je_x;", "-shared", "-fPIC", "-Wl,-soname,libjemalloc.so.2")
        path = self.compile("linked", HELLO, "-Wl,--no-as-needed", library, "-Wl,-rpath," + self.folder)
        self.notes(path, says="linked with libjemalloc.so.2")

    def test_set_user_id(self):
        if os.getuid() == 0:
            as_other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
            if not shutil.which("setpriv"):
                self.skipTest("no setpriv")
        else:
            self.skipTest("only root can make a set-user-ID program of another user")
        if subprocess.run([*as_other, "test", "-r", os.path.join(os.path.dirname(STOOK), "libstook-malloc.so")]).returncode:
            self.skipTest("another user cannot reach the build folder")
        path = self.compile("setuid", HELLO)
        os.chmod(path, 0o4755)
        os.chmod(self.folder, 0o755)
        try:
            done = subprocess.run([*as_other, STOOK, "run", path], capture_output=True, text=True)
        finally:
            os.chmod(path, 0o755)
        if os.statvfs(path).f_flag & os.ST_NOSUID:
            self.assertEqual(done.stderr, "")
        else:
            self.assertIn("set-user-ID", done.stderr)
        self.assertEqual((done.returncode, done.stdout), (0, "hello\n"))

    def test_set_user_id_to_oneself_is_no_privilege(self):
        path = self.compile("setuid-self", HELLO)
        os.chmod(path, os.stat(path).st_mode | stat.S_ISUID)
        self.silent(path)

    def patched(self, name, offset, value):
        path = self.compile(name, HELLO)
        with open(path, "r+b") as f:
            f.seek(offset)
            f.write(value)
        return path

    def test_other_c_library(self):
        mine = subprocess.run(["readelf", "-l", self.compile("any", HELLO)], capture_output=True, text=True).stdout
        mine = mine.partition("program interpreter: ")[2].partition("]")[0]
        if not os.path.exists(mine):
            self.skipTest("no dynamic linker found by readelf")
        other = os.path.join(self.folder, "ld-other.so.1")
        os.symlink(mine, other)
        # What would be preloaded could not be loaded: it must not even be tried.
        path = self.compile("other", '#include <stdlib.h>\n' + HELLO.replace("{ ", '{ if (getenv("LD_PRELOAD")) return 9; '),
                            "-Wl,--dynamic-linker," + other)
        if "LD_PRELOAD" in os.environ:
            self.skipTest("LD_PRELOAD is set")
        self.notes(path, says="another C library")
        self.assertIn("compares nothing", stook("run", "--compare", "--repeat", "1", path).stderr)

    def test_other_machine_and_class(self):
        arm = self.patched("foreign", 18, struct.pack("<H", 40))
        done = stook("run", arm)
        self.assertIn("is a program for arm", done.stderr)
        env = subprocess.run(["env", arm], capture_output=True)         # a shell's or an emulator's answer
        self.assertEqual(done.returncode, env.returncode)
        small = self.patched("small", 4, b"\x01")
        self.assertIn("32-bit", stook("run", small).stderr)

    def test_damaged_files_do_no_harm(self):
        with open(self.compile("whole", HELLO, "-rdynamic"), "rb") as f:
            good = f.read()
        # As an interpreter: what the kernel refuses as such is never handed to a shell, the script is.
        bad = os.path.join(self.folder, "damaged")
        script = self.script("damaged.sh", "#!" + bad, "exit 0\n")

        def check(content, what):
            with open(bad, "wb") as f:
                f.write(content)
            os.chmod(bad, 0o755)
            done = stook("run", script, timeout=10, cwd=self.folder)
            self.assertGreaterEqual(done.returncode, 0, what)           # the command itself was not killed

        for cut in list(range(0, 256, 7)) + [1000, 4096, len(good) // 2]:
            check(good[:cut], cut)
        for word in range(0, 1024, 8):                  # header and program headers
            check(good[:word] + b"\xff" * 8 + good[word + 8:], word)

    def test_scripts_are_followed(self):
        static = self.compile("interpreter", HELLO, "-static")
        self.silent(self.script("plain.sh", "#!/bin/sh"))
        self.silent(self.script("env.sh", "#!/usr/bin/env sh"))
        self.notes(self.script("static.sh", "#! " + static + " argument"), says=static + " is statically linked")
        inner = self.script("inner.sh", "#!" + static)
        self.notes(self.script("outer.sh", "#!" + inner), says=static + " is statically linked")
        os.environ["PATH"] += ":" + self.folder
        self.notes(self.script("by-env.sh", "#!/usr/bin/env interpreter"), says="interpreter is statically linked")
        self.notes(self.script("by-env-S.sh", "#!/usr/bin/env -S interpreter x"), says="interpreter is statically linked")

    def test_found_in_path(self):
        self.compile("stook-test-static", HELLO, "-static")
        done = stook("run", "stook-test-static", env={**os.environ, "PATH": "/nonexistent:" + self.folder})
        self.assertEqual(done.stdout, "hello\n")
        self.assertIn("statically linked", done.stderr)


class Preload(Compiled):
    OTHER = """
    #include <stdlib.h>
    __attribute__((constructor)) static void mark(void) { setenv("OTHER_LOADED", "yes", 1); }
    """

    def preload_of(self, **env):
        done = stook("run", "sh", "-c", 'echo "$LD_PRELOAD $OTHER_LOADED"', env={**os.environ, **env})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.strip()

    def test_ours_alone(self):
        self.assertEqual(self.preload_of(LD_PRELOAD=""), os.path.realpath(DROP_IN))

    def test_one_that_is_set_stays_behind_ours(self):
        other = self.compile("other.so", self.OTHER, "-shared", "-fPIC")
        self.assertEqual(self.preload_of(LD_PRELOAD=other), os.path.realpath(DROP_IN) + ":" + other + " yes")

    def test_stats_variable_only_when_asked_for(self):
        script = 'echo "${STOOK_STATS-unset}"'
        self.assertEqual(stook("run", "sh", "-c", script).stdout, "unset\n")
        self.assertIn("/stook-run-", stook("run", "--stats", "sh", "-c", script).stdout)
        done = stook("run", "sh", "-c", script, env={**os.environ, "STOOK_STATS": "/x"})
        self.assertEqual((done.stdout, done.stderr), ("unset\n", ""))


if __name__ == "__main__":
    main()
