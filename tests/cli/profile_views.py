#!/usr/bin/env python3
"""Proves: what is shown of a heap profile: names, pictures, pages, and what other programs read of
it; pprof's schema is kept to; damage is one line, and never a crash."""
import gzip
import json
import os
import random
import re
import shutil
import stat
import subprocess
import xml.etree.ElementTree

from stook import DROP_IN, SHARED, STATIC, STOOK, main, stook
from profiles import MIX, Profiles, fields, varint


class Views(Profiles):
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
            self.assertRegex(top, r"\n\n.* %, 100 samples\n        load .*:5\n        main .*:13\n")
            folded = stook("profile", "--folded", path).stdout
            self.assertRegex(folded, r"^(.*;)?main;load \d+\n$")
            self.assertEqual(stook("symbolize", path).stderr, "")
            self.assertEqual(stook("profile", "--folded", path).stdout, folded)

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
        done = stook("run", "--profile", path + ",interval=1", "--",
                     self.compile("beside", source, *SHARED))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        top = stook("profile", path).stdout
        self.assertRegex(top, r"^peak_space: 28\.\d MiB \+- ")

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

    def test_self_contained(self):
        """The names are in the file, once `stook run` or `stook symbolize` has written them; then
        the program may be gone. A program that has changed gives no wrong names."""
        source = """
#include <stdlib.h>
__attribute__((noinline)) void *make(void)
{
        void *p = malloc(1000);
        __asm__ volatile("" : "+r"(p));
        return p;
}
int main(void) { return !make(); }"""
        path = self.exact("kept", source)
        program = self.path("kept")
        os.unlink(program)
        self.assertIn("make", self.folded(path, "alloc_space"))
        self.assertRegex(stook("profile", path).stdout, r"\n        make .*:5\n        main .*:9\n")
        raw = self.path("raw.pb")
        program = self.compile("kept", source, "-g", "-rdynamic")
        env = {"LD_PRELOAD": DROP_IN, "STOOK_PROFILE": raw + ",interval=1"}
        subprocess.run([program], env=env, check=True)
        with open(raw, "rb") as f:
            before = f.read()
        other = self.compile("kept", source.replace("1000", "2000").replace("make", "other"),
                             "-g", "-rdynamic")
        self.assertEqual(other, program)
        done = stook("profile", "--folded", raw)
        self.assertRegex(done.stdout, r"kept\+0x[0-9a-f]+ 1000\n")
        self.assertIn("is another file than the program had", done.stderr)
        self.compile("kept", source, "-g", "-rdynamic")
        self.assertEqual(stook("symbolize", raw).returncode, 0)
        with open(raw, "rb") as f:
            self.assertNotEqual(f.read(), before)
        os.unlink(program)
        self.assertIn("make", self.folded(raw, "alloc_space"))
        done = stook("symbolize", self.path("nothing"), raw)
        self.assertEqual(done.returncode, 2)
        self.assertTrue(done.stderr.startswith("stook symbolize: "), done.stderr)

    def test_closed_file(self):
        """A file that was closed keeps its names, also where another one lies in its place."""
        for name in "first", "second":
            self.compile(name + ".so", f"""
#include <stdlib.h>
void *make_{name}(void) {{ void *p = malloc(1000); __asm__ volatile("" : "+r"(p)); return p; }}
""", "-g", "-shared", "-fPIC")
        path = self.exact("closes", f"""
#include <dlfcn.h>
#include <stdlib.h>
__attribute__((noinline)) static int use(const char *file, const char *name)
{{
        void *library = dlopen(file, RTLD_NOW);
        void *(*make)(void) = library ? (void *(*)(void))dlsym(library, name) : NULL;
        int failed = !make || !make();
        if (library)
                dlclose(library);
        return failed;
}}
int main(void)
{{
        return use("{self.path("first.so")}", "make_first") ||
               use("{self.path("second.so")}", "make_second");
}}""", "-ldl")
        sums = self.folded(path, "inuse_space")
        if "make_first" not in sums and not sums.get("make_second"):
            self.skipTest("this C library does not tell which file is where")
        self.assertEqual((sums["make_first"], sums["make_second"]), (1000, 1000))

    def test_names_of_a_jit(self):
        """Code without a file is named by /tmp/perf-PID.map."""
        if os.uname().machine != "x86_64":
            self.skipTest("the code is x86-64's")
        path = self.exact("jit", """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
        /* sub $8,%rsp; movabs $malloc,%rax; mov $1000,%edi; call *%rax; add $8,%rsp; ret */
        unsigned char code[] = { 0x48, 0x83, 0xec, 8, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xbf,
                                 0xe8, 3, 0, 0, 0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3 };
        void *(*to)(size_t) = malloc;
        unsigned char *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char name[100];
        FILE *map;
        memcpy(code + 6, &to, 8);
        memcpy(page, code, sizeof code);
        snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
        map = fopen(name, "w");
        fprintf(map, "%lx %zx old\\n%lx %zx LazyCompile:*render app.js:7\\n", (long)page,
                sizeof code, (long)page, sizeof code);
        fclose(map);
        return !((void *(*)(void))page)();
}""")
        for name in os.listdir("/tmp"):
            if re.fullmatch(r"perf-\d+\.map", name):
                with open("/tmp/" + name, encoding="utf-8", errors="replace") as f:
                    if "LazyCompile:*render app.js:7" in f.read():
                        os.unlink("/tmp/" + name)
        self.assertEqual(self.folded(path, "inuse_space")["LazyCompile:*render app.js:7"], 1000)

    def test_demangled(self):
        """C++ by libstdc++'s demangler, Rust's newer names by ours."""
        names = {
            "_ZN5store5Index6insertEi": "store::Index::insert(int)",
            "_Z3maxIiET_S0_S0_": "int max<int>(int, int)",
            "_ZN3Foo3BarclEv": "Foo::Bar::operator()()",
            "_ZN12_GLOBAL__N_13fooEi": "(anonymous namespace)::foo(int)",
            "_ZN5storeplIiEET_S1_": "int store::operator+<int>(int)",
            "_ZN5storelsIiEET_S1_": "int store::operator<< <int>(int)",
            "_ZN4core3fmt5write17h0123456789abcdefE": "core::fmt::write",
            "_RNvNtCs1234_7mycrate3foo3bar": "mycrate::foo::bar",
            "_RNvMNtCs1234_7mycrate3fooNtB2_5Store3get": "<mycrate::foo::Store>::get",
            "_RINvNtC3std3mem8align_ofdE": "std::mem::align_of<f64>",
            "_RNCNvC7mycrate4main0": "mycrate::main::{closure}",
            "_RNvXs_C7mycrateNtB4_3FooNtB4_3Bar3baz": "<mycrate::Foo as mycrate::Bar>::baz",
            "_RIC3fooRNtC3std3StrTlmEAhj10_E": "foo<&std::Str, (i32, u32), [u8; _]>",
            "_Rbroken": "_Rbroken", "_RNvB_1a": "_RNvB_1a",
        }
        source = "#include <stdlib.h>\n"
        for i, name in enumerate(names):
            source += f"""void *f{i}(void) __asm__("{name}");
__attribute__((noinline)) void *f{i}(void)
{{ void *p = malloc({1000 + i}); __asm__ volatile("" : "+r"(p)); return p; }}
"""
        source += "int main(void) { return " + " || ".join(f"!f{i}()" for i in range(len(names)))
        program = self.compile("names", source + "; }", "-rdynamic")
        path = self.path("names.pb")
        done = stook("run", "--profile", path + ",interval=1", "--", program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        sums = self.folded(path, "inuse_space")
        if "main" not in sums:
            self.skipTest("stook was built without libdw")
        if "store::Index::insert(int)" not in sums:
            names = {k: v for k, v in names.items() if not k.startswith("_Z")}
        for name in names.values():
            self.assertIn(name.replace(";", ":"), sums)
        # A box has a name without arguments, those of templates, and what is returned.
        profile = self.data_of(stook("profile", "--html", path).stdout)["profile"]
        short = {f[0]: f[1] for f in profile["functions"]}
        for name, words in {"store::Index::insert(int)": "store::Index::insert",
                            "int max<int>(int, int)": "max",
                            "Foo::Bar::operator()()": "Foo::Bar::operator()",
                            "(anonymous namespace)::foo(int)": "(anonymous namespace)::foo",
                            "int store::operator+<int>(int)": "store::operator+",
                            "int store::operator<< <int>(int)": "store::operator<<",
                            "<mycrate::foo::Store>::get": "<mycrate::foo::Store>::get",
                            "main": "main"}.items():
            if name in names.values() or name == "main":
                self.assertEqual(short[name], words)

    def test_of_a_process(self):
        """What a running process has now, read from outside; and what it may have not."""
        program = self.compile("waits", """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) void *make(void)
{
        void *p = malloc(100000);
        __asm__ volatile("" : "+r"(p));
        return p;
}
int main(void)
{
        for (int i = 0; i < 10; i++)
                if (!make())
                        return 1;
        free(make());
        puts("made");
        fflush(stdout);
        return getchar() != '\\n';
}""", "-g", "-rdynamic")
        path = self.path("waits.pb")
        env = {"LD_PRELOAD": DROP_IN, "STOOK_PROFILE": path + ",interval=1,lifetimes"}
        with subprocess.Popen([program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as process:
            process.stdout.readline()
            pid = str(process.pid)
            live = self.folded(pid, "inuse_space")
            top = stook("profile", pid).stdout
            lives = stook("profile", "--lifetimes", pid).stdout
            page = stook("profile", "--html", pid).stdout
            named = subprocess.run([STOOK, "profile", "--pprof", pid], stdout=subprocess.PIPE,
                                   check=True).stdout
            process.communicate("\n")
        if "main" not in live:
            self.skipTest("stook was built without libdw")
        self.assertEqual(live["make"], 1000000)
        self.assertRegex(top, r"^peak_space: 1\.\d MiB ")
        self.assertIn("    allocated by\n        make ", lives)
        library, = self.data_of(page)["libraries"]
        self.assertIn("malloc-", {cache["name"][:7] for cache in library["caches"]})
        copy = self.path("copy.pb")
        with open(copy, "wb") as f:
            f.write(named)
        self.assertEqual(self.folded(copy, "inuse_space")["make"], live["make"])
        self.assertEqual(self.folded(path, "inuse_space")["make"], 1000000)
        with subprocess.Popen(["cat"], env={"LD_PRELOAD": DROP_IN}, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            process.stdin.write(b"x")
            process.stdin.flush()
            process.stdout.read(1)
            done = stook("profile", str(process.pid))
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, r"^stook profile: process \d+ has no heap profile: ")
            process.communicate()
        self.assertNotEqual(stook("profile", "999999999").returncode, 0)

    def data_of(self, page):
        """What a page has."""
        text = re.search(r'(?s)<script type="application/json" id="data">(.*?)</script>', page)
        return json.loads(text.group(1))

    def test_page(self):
        """A page has what the text has, no name can end its data, and it needs nothing from
        elsewhere."""
        path = self.exact("page", """
#include <stdlib.h>
void *f(void) __asm__("_RINvC1a3<g>NtC1b9</script>E");
__attribute__((noinline)) void *f(void)
{ void *p = malloc(1234); __asm__ volatile("" : "+r"(p)); return p; }
int main(void) { return !f(); }""", terms=",lifetimes")
        page = stook("profile", "--html", path).stdout
        self.assertEqual(page.count("</script>"), 2)
        self.assertIsNone(re.search(r'(src|href)\s*=\s*"(?!data:)', page))
        self.assertEqual(re.findall(r"https?://[^\"]*", page), ["http://www.w3.org/2000/svg"])
        self.assertNotIn("libraries", self.data_of(page))
        data = self.data_of(page)["profile"]
        self.assertEqual([t["name"] for t in data["types"]][4:6], ["peak_objects", "peak_space"])
        sums = self.folded(path, "inuse_space")
        named = {}
        for stack in data["stacks"]:
            for name in {data["functions"][f][0] for f in stack["stack"]}:
                named[name] = named.get(name, 0) + stack["values"][3]
        self.assertEqual({k: v for k, v in named.items() if v}, sums)
        self.assertTrue(data["lifetimes"])

    def test_real_pprof(self):
        """pprof itself reads what the library writes, and what the command writes."""
        tool = [shutil.which("pprof")] if shutil.which("pprof") else ["go", "tool", "pprof"]
        env = {**os.environ, "PPROF_BINARY_PATH": self.folder, "GOFLAGS": "-mod=mod"}
        try:
            done = subprocess.run([*tool, "-help"], capture_output=True, env=env, timeout=240)
        except (OSError, subprocess.TimeoutExpired):
            self.skipTest("there is no pprof")
        if b"pprof" not in done.stdout + done.stderr:
            self.skipTest("there is no pprof")
        program = self.compile("mix", MIX, "-g", "-rdynamic")
        path = self.path("real.pb")
        stook("run", "--profile", path + ",interval=2K,lifetimes", "--", program)
        if "main" not in self.folded(path, "alloc_space"):
            self.skipTest("stook was built without libdw")
        os.unlink(program)                      # the names are in the file
        for kind, function in (("peak_space", "big"), ("inuse_objects", "small"),
                               ("alloc_space", "churn"), ("growth_space", "middle")):
            done = subprocess.run([*tool, "-top", "-unit=B", f"-sample_index={kind}", path],
                                  capture_output=True, text=True, env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, rf"(?m)^Type: {kind}$")
            row = re.search(rf"(?m)^ *(\S+) .* {function}$", done.stdout)
            self.near(float(row.group(1).rstrip("B")), self.folded(path, kind)[function], 0.01)
        lives = self.path("lives.pb")
        with open(lives, "wb") as f:
            subprocess.run([STOOK, "profile", "--lifetimes", "--pprof", path], stdout=f,
                           check=True)
        done = subprocess.run([*tool, "-tags", lives], capture_output=True, text=True, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("lifetime_ns", done.stdout)

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
                             (0, "stook: /no/x: no heap profile: no such folder or file\n"))
        for args, says in ((["x", "--", "true"], None), (["x,speed=1", "true"], "--profile takes"),
                           (["x,signal=65", "true"], "--profile takes"),
                           (["x,signal=1K", "true"], "--profile takes"),
                           (["x", "--repeat", "2", "true"], "--profile is for one run")):
            done = stook("run", "--profile", *args, cwd=self.folder)
            self.assertEqual(done.returncode, 2 if says else 0)
            self.assertTrue(done.stderr.startswith("stook run: " + says if says else ""))
        for args, says in (([], "one heap profile is wanted"), (["-x"], "no option '-x'"),
                           (["--svg", "--folded", "x"], "one of --folded, --json, --svg,"),
                           (["--peak", "--growth", "x"], "one of --type, --peak, --growth, "),
                           (["--suspects", "--svg", "x"], "--suspects is text"),
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
                             (0, f"stook: {path}: no heap profile: {why}\n"))
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
        """Random changes: status 2 and one line; or 0, and a line for each file that is another
        one, or if nothing was sampled."""
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
            if done.returncode:
                self.assertEqual(done.stderr.count("\n"), 1, (seed, i, done))
            for line in done.stderr.splitlines():
                self.assertTrue(line.startswith("stook profile: "), (seed, i, done))
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
