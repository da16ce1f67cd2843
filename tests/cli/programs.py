#!/usr/bin/env python3
"""Proves: the command says beforehand which programs the drop-in does not reach, and why, and runs
them all the same; an LD_PRELOAD that is set stays, behind ours."""
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
        """Memory until NULL: what was got is just below the limit, and the program lives to say
        so."""
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
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^stook: hungry \(pid \d+\): \d+ allocations? w\w+ refused "
                                      r"beyond the group limit of 32.0 MiB\n$")
        self.assertIn(int(done.stdout), range(28, 32))
        self.assertEqual(stook("run", "--", path).stdout, "200\n")
        for refused in ("0", "", "x", "5X", "-1", "5MB", "1.5M", "16777216T", "18014398509481984K",
                        "99999999999999999999"):
            done = stook("run", "--group-limit", refused, "--", path)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("--group-limit", done.stderr)
        for accepted in ("16777215T", "20000000K", "17592186044416", "99999999999999"):
            done = stook("run", "--group-limit", accepted, "--", path)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "200\n", ""))

    def test_group_figures(self):
        path = self.compile("refused", '''
#include <stdlib.h>
int main(void)
{
        void *p = malloc(5 << 20);
        for (int i = 0; i < 3; i++)
                if (malloc(50 << 20))
                        return 1;
        free(p);
        return !malloc(1 << 20);
}
''')
        done, data = figures(path, options=["--stats", "--group-limit", "16M"])
        group = data["processes"][0]["group"]
        self.assertEqual(done.returncode, 0)
        self.assertEqual((group["limit_bytes"], group["limit_events"], group["refusals"]),
                         (16 << 20, 3, 3))
        self.assertIn(group["usage_bytes"], range(1 << 20, 3 << 20))
        self.assertIn(group["peak_bytes"], range(5 << 20, 7 << 20))
        self.assertLessEqual(group["usage_bytes"] + group["precharge_bytes"], group["peak_bytes"])
        self.assertRegex(done.stderr, r"(?m)^group: 1\.\d MiB of 16\.0 MiB in use, "
                                      r"[56]\.\d MiB at most; 3 allocations were refused$")
        self.assertEqual(done.stderr.count("were refused"), 1)
        done, data = figures(path, options=["--stats"])
        self.assertEqual(done.returncode, 1)
        self.assertIsNone(data["processes"][0]["group"])
        self.assertNotIn("group", done.stderr)

    def test_group_counts_malloc_only(self):
        path = self.compile("mapping", '''
#include <string.h>
#include <sys/mman.h>
int main(void)
{
        size_t n = 64 << 20;
        void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return !memset(p, 1, n);
}
''')
        done = stook("run", "--group-limit", "16M", "--", path)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^stook: note: mapping \(pid \d+\) was resident with "
                                      r"6\d\.\d MiB, of which its group counted .*(mmap).*\n$")
        for limit in ("200M", "60M"):
            done = stook("run", "--group-limit", limit, "--", path)
            self.assertEqual("counted" in done.stderr, limit == "60M", done.stderr)
        done = stook("run", "--group-limit", "1K", "--", self.compile("ordinary", HELLO))
        self.assertNotIn("counted", done.stderr)
        done = stook("run", "--group-limit", "200M", "--", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_group_limit_that_does_not_hold(self):
        path = self.compile("static", HELLO, "-static")
        done, data = figures(path, options=["--group-limit", "16M"])
        for number, text in enumerate(("statically linked", "--group-limit does not hold")):
            self.assertIn(text, done.stderr.splitlines()[number])
            self.assertIn(text, data["notes"][number])

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
            self.notes(self.compile("own-" + style, OWN_MALLOC, "-rdynamic",
                                    "-Wl,--hash-style=" + style),
                       says="brings its own malloc")

    def sanitized(self, compiler, *flags):
        """A program built so, or None where that compiler, or its runtime, is not there."""
        if not shutil.which(compiler):
            return None
        path = os.path.join(self.folder, "-".join((compiler, *flags)).replace("/", "_")[-80:])
        done = subprocess.run([compiler, "-o", path, "-xc", "-", *flags], input=HELLO, text=True,
                              capture_output=True)
        if done.returncode or subprocess.run([path], capture_output=True).stdout != b"hello\n":
            return None
        return path

    def test_sanitizers(self):
        names = {"address": "AddressSanitizer", "thread": "ThreadSanitizer",
                 "leak": "LeakSanitizer", "memory": "MemorySanitizer"}
        built = set()
        runtimes = "/"
        if shutil.which("clang-19"):
            runtimes = subprocess.run(["clang-19", "-print-runtime-dir"], capture_output=True,
                                      text=True).stdout.strip()
            if not os.path.isdir(runtimes):             # the layout of Debian
                runtimes = os.path.join(os.path.dirname(runtimes), "linux")
        for compiler, kind, *flags in (
                ("gcc", "address"), ("gcc", "thread"), ("gcc", "leak"),
                ("gcc", "address", "-static-libasan"), ("gcc", "thread", "-static-libtsan"),
                ("clang-19", "address"), ("clang-19", "thread"), ("clang-19", "memory"),
                ("clang-19", "address", "-shared-libsan", "-Wl,-rpath," + runtimes),
                ("clang-19", "thread", "-shared-libsan", "-Wl,-rpath," + runtimes)):
            path = self.sanitized(compiler, "-fsanitize=" + kind, *flags)
            if path:
                built.add((compiler, kind, bool(flags)))
                self.notes(path, says="%s is built with %s, which needs" % (path, names[kind]))
        print("sanitizers tried:", sorted(built))
        if not built:
            self.skipTest("no compiler with sanitizers")
        path = self.sanitized("gcc", "-fsanitize=undefined")    # has no malloc
        if path:
            self.silent(path)

    def test_preloaded_sanitizer(self):
        library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True,
                                 text=True).stdout.strip()
        if not os.path.isabs(library):
            self.skipTest("no libasan")
        env = {**os.environ, "LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"}
        done = stook("run", "--", self.compile("ordinary", HELLO), env=env)
        # The command itself has the library, too, and no more than a line is said.
        self.assertEqual((done.returncode, done.stdout), (0, "hello\n"), done)
        self.assertRegex(done.stderr, r"^stook: note: LD_PRELOAD brings AddressSanitizer, .*\n$")

    def test_other_allocators_library(self):
        library = self.compile("libjemalloc.so.2", "int je_x;", "-shared", "-fPIC",
                               "-Wl,-soname,libjemalloc.so.2")
        path = self.compile("linked", HELLO, "-Wl,--no-as-needed", library,
                            "-Wl,-rpath," + self.folder)
        self.notes(path, says="linked with libjemalloc.so.2")

    def test_set_user_id(self):
        if os.getuid() == 0:
            as_other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
            if not shutil.which("setpriv"):
                self.skipTest("no setpriv")
        else:
            self.skipTest("only root can make a set-user-ID program of another user")
        if subprocess.run([*as_other, "test", "-r",
                           os.path.join(os.path.dirname(STOOK), "libstook-malloc.so")]).returncode:
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
        # What would be preloaded could not be loaded: it must not even be tried.
        path = self.compile_for_other_c_library(
            "other", '#include <stdlib.h>\n' +
            HELLO.replace("{ ", '{ if (getenv("LD_PRELOAD")) return 9; '))
        if "LD_PRELOAD" in os.environ:
            self.skipTest("LD_PRELOAD is set")
        self.notes(path, says="another C library")
        self.assertIn("compares nothing", stook("run", "--compare", "--repeat", "1", path).stderr)

    def test_other_machine_and_class(self):
        arm = self.patched("foreign", 18, struct.pack("<H", 40))
        done = stook("run", arm)
        self.assertIn("is a program for arm", done.stderr)
        # a shell's or an emulator's answer
        env = subprocess.run(["env", arm], capture_output=True)
        self.assertEqual(done.returncode, env.returncode)
        small = self.patched("small", 4, b"\x01")
        self.assertIn("32-bit", stook("run", small).stderr)

    def test_damaged_files_do_no_harm(self):
        with open(self.compile("whole", HELLO, "-rdynamic"), "rb") as f:
            good = f.read()
        # As an interpreter: what the kernel refuses as such is never handed to a shell, the script
        # is.
        bad = os.path.join(self.folder, "damaged")
        script = self.script("damaged.sh", "#!" + bad, "exit 0\n")

        def check(content, what):
            with open(bad, "wb") as f:
                f.write(content)
            os.chmod(bad, 0o755)
            done = stook("run", script, cwd=self.folder)
            # the command itself was not killed
            self.assertGreaterEqual(done.returncode, 0, what)

        for cut in list(range(0, 256, 7)) + [1000, 4096, len(good) // 2]:
            check(good[:cut], cut)
        for word in range(0, 1024, 8):                  # header and program headers
            check(good[:word] + b"\xff" * 8 + good[word + 8:], word)

    def test_scripts_are_followed(self):
        static = self.compile("interpreter", HELLO, "-static")
        self.silent(self.script("plain.sh", "#!/bin/sh"))
        self.silent(self.script("env.sh", "#!/usr/bin/env sh"))
        self.notes(self.script("static.sh", "#! " + static + " argument"),
                   says=static + " is statically linked")
        inner = self.script("inner.sh", "#!" + static)
        self.notes(self.script("outer.sh", "#!" + inner), says=static + " is statically linked")
        os.environ["PATH"] += ":" + self.folder
        self.notes(self.script("by-env.sh", "#!/usr/bin/env interpreter"),
                   says="interpreter is statically linked")
        self.notes(self.script("by-env-S.sh", "#!/usr/bin/env -S interpreter x"),
                   says="interpreter is statically linked")

    def test_found_in_path(self):
        self.compile("stook-test-static", HELLO, "-static")
        done = stook("run", "stook-test-static",
                     env={**os.environ, "PATH": "/nonexistent:" + self.folder})
        self.assertEqual(done.stdout, "hello\n")
        self.assertIn("statically linked", done.stderr)


class Preload(Compiled):
    OTHER = """
    #include <stdlib.h>
    __attribute__((constructor)) static void mark(void) { setenv("OTHER_LOADED", "yes", 1); }
    """

    def preload_of(self, **env):
        done = stook("run", "sh", "-c", 'echo "$LD_PRELOAD $OTHER_LOADED"',
                     env={**os.environ, **env})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.strip()

    def test_ours_alone(self):
        self.assertEqual(self.preload_of(LD_PRELOAD=""), os.path.realpath(DROP_IN))

    def test_one_that_is_set_stays_behind_ours(self):
        other = self.compile("other.so", self.OTHER, "-shared", "-fPIC")
        self.assertEqual(self.preload_of(LD_PRELOAD=other),
                         os.path.realpath(DROP_IN) + ":" + other + " yes")

    def test_stats_variable_only_when_asked_for(self):
        script = 'echo "${STOOK_STATS-unset}"'
        self.assertEqual(stook("run", "sh", "-c", script).stdout, "unset\n")
        done = stook("run", "--stats", "sh", "-c", script)
        self.assertRegex(done.stdout, r"^/proc/\d+/fd/\d+\n$")
        done = stook("run", "sh", "-c", script, env={**os.environ, "STOOK_STATS": "/x"})
        self.assertEqual((done.stdout, done.stderr), ("unset\n", ""))


if __name__ == "__main__":
    main()
