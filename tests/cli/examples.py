#!/usr/bin/env python3
"""Proves: each command that the manual's sections 1 and 7 and the pages of docs/ give as an example
does what is promised, in a folder with the programs that they name. What cannot be run here is in
LEFT_OUT, with the reason. docs/BUGS.md, README and the manual's section 3 have tests of their own:
bugs.py, install/readme, tools/man-examples."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

import stook as s

SOURCE = pathlib.Path(os.environ["STOOK_SOURCE"])
PAGES = ["docs/ADOPT.md", "docs/DEBUGGING.md", "docs/HARDENING.md", "docs/OPERATE.md",
         "docs/PROFILE.md", "docs/TRACE.md", "docs/TUNING.md",
         *(str(p.relative_to(SOURCE)) for p in sorted((SOURCE / "man").glob("*.[17]")))]
# The words that commands begin with, where no "$" says so.
BEGIN = re.compile(r"\$ |stook |STOOK_|PYTHON|cc |perf |kill |go |valgrind |\./")
LEFT_OUT = {
    r"\bstook bench\b": "takes minutes; tools/bench",
    r"^stook top .*PID": "needs a terminal; cli/top",
    r"^stook (leaks|what) \d": "of a process that is over; cli/leaks",
    r"^stook exporter": "it serves until it is ended; cli/exporter",
    r"bench/data/": "cli/replay replays them",
    r"^go tool": "pprof is no part of this; the file's format: cli/profile",
    r"FOLDER|^cc .* \.\.\.": "the reader has to put something in",
}
# What is much, and would need more of the machine.
SHORTER = {"/usr/lib/python3.*": "/usr/lib/python3.*/json", "PROGRAM": "./program",
           " PID": " $SERVER", "/PID/": "/$SERVER/",
           "PYTHONPYCACHEPREFIX=/tmp/code ": "", "--for 30s": "--for 1s"}
ENDS = {"./overruns": 134, "./frees_twice": 134, "./list": 1, "run --leaks": 23}

# name: (source, does it use the library)
PROGRAMS = {
    "server": (r"""
#include <stook/stook.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
        struct stook_cache *conn = stook_cache_create("conn", 200, NULL);
        void **lost = malloc(1000);

        for (int i = 0; i < 20000; i++)
                if (!stook_cache_alloc(conn))
                        return 1;
        *lost = lost;
        lost = argc > 1 ? (void **)argv : NULL;
        __asm__ volatile("" : : "r"(lost) : "memory");
        if (argc > 1 && !strcmp(argv[1], "abort"))
                abort();
        if (argc > 1)
                fclose(fopen("up", "w"));
        for (int i = 0; i < (argc > 1 ? 600 : 20); i++) /* a signal does not end it */
                usleep(100000);
        return 0;
}
""", True),
    "program": ("#include <stdlib.h>\nint main(void) { free(malloc(100)); return 0; }", False),
    "overruns": (r"""
#include <stdlib.h>
#include <string.h>
int main(void)
{
        char *volatile text = malloc(12);

        strcpy(text, "connection 1");
        free(text);
        return 0;
}
""", False),
    "frees_twice": ("#include <stdlib.h>\nint main(void) { void *volatile p = malloc(50); free(p); "
                    "free(p); return 0; }", False),
    "list": (r"""
#include <stdlib.h>
struct node { struct node *next; };
int main(void)
{
        struct node *head = NULL;

        for (int i = 0; i < 9; i++) {
                struct node *volatile node = malloc(sizeof *node);

                node->next = head;
                head = node;
        }
        return 0;
}
""", False),
}
PERF = r"""#!/bin/sh
[ "$1" = script ] || exec touch slab.data
for i in 1 2 3; do
        echo "ls 1 [000] 5.00000$i: kmem:kmem_cache_alloc: (f) call_site=ff ptr=0xff1$i" \
                "name=CACHE bytes_req=200 bytes_alloc=256 gfp_flags=GFP_KERNEL node=-1"
done | sed "s/CACHE/vm_area_struct/; p; s/vm_area_struct/kmalloc-64/; s/0xff1/0xff2/"
"""


def whole(lines):
    """Commands that go on in the next line, in one."""
    return re.sub(r"(\\|(?<=\|))\n\s*", " ", "\n".join(lines)).splitlines()


def examples_of_manual(text):
    section = re.search(r"^\.Sh EXAMPLES\n(.*?)(?=^\.Sh |\Z)", text, re.S | re.M)
    lines, inside = [], False
    for line in section.group(1).splitlines() if section else []:
        if line.startswith(".Dl "):
            lines.append(line[4:])
        elif line.startswith((".Bd", ".Ed")):
            inside = line.startswith(".Bd")
        elif inside and not line.startswith("("):
            lines.append(line.replace("\\e", "\\").replace("\\&", ""))
    return [(line.removeprefix("$ "), "") for line in whole(lines)]


def examples_of_page(text):
    """Each command of the indented lines, and the first line that is shown below it."""
    found, shown = [], False
    for line in whole(text.splitlines()):
        if not line.startswith("    "):
            shown = False
        elif BEGIN.match(line, 4):
            shown = line.startswith("    $ ")
            found.append((line.split("  #")[0].strip().removeprefix("$ "), ""))
        elif shown and not found[-1][1]:
            found[-1] = found[-1][0], line.strip()
    return found


class Examples(s.Compiled):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        test, home = cls(), pathlib.Path(cls.folder)
        for name, (source, uses) in PROGRAMS.items():
            test.compile(name, source, "-g", "-w", *(s.SHARED if uses else ()))
        (home / "program.py").write_text("x = [str(i) * 9 for i in range(99999)]")
        (home / "bin").mkdir()
        (home / "bin/perf").write_text(PERF)
        (home / "bin/pgrep").write_text("#!/bin/sh\necho $SERVER\n")
        for path in (home / "bin").iterdir():
            path.chmod(0o755)
        cls.env = dict(os.environ, PATH=f"{home / 'bin'}:{s.BUILD}:/usr/bin:{os.environ['PATH']}",
                       PYTHONPYCACHEPREFIX=str(home / "code"))

    def runs_here(self, command):
        tools = {"valgrind", "jq", "xz"} & set(re.split(r"[^\w]+", command))
        return not any(re.search(word, command) for word in LEFT_OUT) and \
            all(map(shutil.which, tools))

    def core(self):
        """A core of the server, if this machine writes one beside the program."""
        subprocess.run(["sh", "-c", "ulimit -c unlimited; ./server abort"], cwd=self.folder,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        cores = list(pathlib.Path(self.folder).glob("core*"))
        if cores:
            cores[0].rename(os.path.join(self.folder, "core"))
        return bool(cores)

    def run_all(self, examples):
        """In one shell, which has the numbers of programs in the background."""
        script = ["rm -f up; STOOK_MAINTENANCE=1 ./server wait & SERVER=$!; export SERVER; "
                  "until [ -e up ]; do sleep 0.05; done"]
        for command, _ in examples:
            script.append(command)
            # What goes on in the background begins; what is signalled does something.
            script.append("sleep 1" if re.search(r"&$|^kill", command) else
                          'echo "$?" >>statuses; echo "--- next"')
        script.append("kill -9 0")              # what is in the background holds the pipe
        pathlib.Path(self.folder, "statuses").write_text("")
        shell = subprocess.Popen(["sh"], cwd=self.folder, env=self.env, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, errors="replace",
                                 start_new_session=True)
        try:
            said, _ = shell.communicate("\n".join(script), timeout=100)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            raise
        statuses = pathlib.Path(self.folder, "statuses").read_text().split()
        return statuses, said.split("--- next\n")

    def check_page(self, page):
        text = (SOURCE / page).read_text()
        examples = (examples_of_manual if page.startswith("man/") else examples_of_page)(text)
        examples = [(command, shown) for command, shown in examples if self.runs_here(command)]
        for long, short in SHORTER.items():
            examples = [(command.replace(long, short), shown) for command, shown in examples]
        if any(re.search(r"\bcore\b", command) for command, _ in examples) and not self.core():
            examples = [e for e in examples if not re.search(r"\bcore\b", e[0])]
        statuses, said = self.run_all(examples)
        judged = [e for e in examples if not re.search(r"&$|^kill", e[0])]
        self.assertEqual(len(statuses), len(judged), (page, said))
        for (command, shown), status, text in zip(judged, statuses, said):
            expected = next((ENDS[p] for p in ENDS if p in command), 0)
            self.assertEqual(int(status), expected, f"{page}: {command}\n{text}")
            # Up to the first number, which is of that run.
            self.assertIn(re.split(r"\d", " ".join(shown.split()))[0].strip(),
                          " ".join(text.split()), f"{page}: {command}")
        return len(judged)

    def test_pages(self):
        count = 0
        for page in PAGES:
            with self.subTest(page):
                count += self.check_page(page)
        self.assertGreater(count, 20)

    def test_benchmarks(self):
        """They take minutes; at least there are experiments and suites of these names."""
        there = set(re.findall(r"^(?:  |suite )(\w+)", s.stook("bench", "--list").stdout, re.M))
        pages = [SOURCE / "README.md", *(SOURCE / "docs").glob("*.md"), *(SOURCE / "man").iterdir()]
        named = {name for page in pages for names in
                 re.findall(r"stook bench [^`\n]*--(?:only|suite) ([a-z\d_,]+)", page.read_text())
                 for name in names.strip(",").split(",")}
        self.assertGreater(len(named), 5)
        self.assertEqual(named - there, set())


if __name__ == "__main__":
    s.main()
