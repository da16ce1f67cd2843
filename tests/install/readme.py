#!/usr/bin/python3
"""Proves that README's commands do what README shows, in a copy of the sources, as they stand.

They are the lines of its indented blocks that begin with `$` or with a command of COMMANDS. The
lines below one are what it prints; numbers that differ from run to run are left out of account. For
`sudo` and `ldconfig` there are stand-ins: the installation goes to a scratch folder. `make run` and
`make test` are not repeated here: .ci/bare-root runs them, which is checked.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ["STOOK_SOURCE"])
COMMANDS = ("make", "sudo", "cc")
IN_CI = ("make run", "make test")
# What README calls a server, on either malloc.
SERVER = """
#include <stdlib.h>
int main(void)
{
        for (int i = 0; i < 1000; i++)
                free(malloc(100));
        return 0;
}
"""


def commands(text):
    """Of the indented blocks: each command with the lines that README shows below it."""
    found = []
    fenced = shown = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        shown = shown and line.startswith("    ")
        if fenced or not line.startswith("    "):
            continue
        line = line[4:]
        if line.startswith("$ ") or line.split()[0] in COMMANDS:
            found.append((line.removeprefix("$ "), []))
            shown = True
        elif shown:
            found[-1][1].append(line)
    return found


def same_every_time(line):
    """Addresses and numbers of processes and threads are not."""
    return re.sub(r"\b(pid|thread) \d+", r"\1 N", re.sub(r"0x[0-9a-f]+", "0xN", line))


def copy_sources(to):
    def ignored(folder, names):
        return [n for n in names if n == ".git" or Path(folder, n, "build.ninja").exists()]
    shutil.copytree(SOURCE, to, symlinks=True, ignore=ignored)


def stand_in(folder, name, text):
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def environment(work):
    """What a user's shell would have, and the scratch folder as the place for programs."""
    prefix = work / "prefix"
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("STOOK_", "MAKE", "MESON")) and
           k not in ("MFLAGS", "BUILD", "DESTDIR", "LIBDIR", "LD_PRELOAD")}
    env.update(PREFIX=str(prefix), LC_ALL="C",
               PATH=f"{work / 'bin'}:{prefix / 'bin'}:{env['PATH']}",
               PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    # The program finds its library there by its own run path.
    env.pop("LD_LIBRARY_PATH", None)
    env["CFLAGS"] = "-O0"             # what is tested here is not the compiler's work
    return env


def prepare(work, readme):
    source = work / "source"
    copy_sources(source)
    (work / "bin").mkdir()
    stand_in(work / "bin", "sudo", 'exec "$@"\n')
    stand_in(work / "bin", "ldconfig", "")
    stand_in(work / "bin", "python3", 'exec /usr/bin/python3 "$@"\n')
    (source / "points.c").write_text(re.search(r"```c\n(.*?)```", readme, re.S).group(1))
    (source / "server.c").write_text(SERVER)
    subprocess.run(["cc", "-fno-builtin", "-o", "server", "server.c"], cwd=source, check=True)
    return source


def run(command, shown, folder, env):
    """True: it printed what is shown, if anything is, and ended as it should."""
    done = subprocess.run(["sh", "-c", "ulimit -c 0\n" + command + "\nexit $?"], cwd=folder,
                          env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    wanted = [same_every_time(line) for line in shown]
    got = [same_every_time(line) for line in done.stdout.splitlines()]
    if not done.returncode and (not shown or got == wanted) and "cannot be preloaded" not in \
            done.stdout:
        print("ok:", command)
        return True
    print(f"README: {command}", *[f"  status {done.returncode}"] * bool(done.returncode), sep="\n")
    print("  shown:", *wanted, "  printed:", *got[-40:], sep="\n    ")
    return False


def is_in_ci(command):
    goal = command.split("#")[0].strip()
    script = (SOURCE / ".ci/bare-root").read_text()
    return goal in IN_CI and re.search(rf"^here {goal}\b", script, re.M)


def main():
    if not Path("/usr/bin/python3").exists() or not shutil.which("pkg-config"):
        print("README's commands need /usr/bin/python3 and pkg-config")
        sys.exit(77)
    readme = (SOURCE / "README.md").read_text()
    found = commands(readme)
    here = [c for c in found if not is_in_ci(c[0])]
    if len(found) - len(here) != len(IN_CI) or not any(shown for _, shown in here):
        sys.exit(f"README has other commands than expected: {[c for c, _ in found]}")
    with tempfile.TemporaryDirectory() as work:
        source = prepare(Path(work), readme)
        env = environment(Path(work))
        good = [run(command.replace("/usr/local", env["PREFIX"]), shown, source, env)
                for command, shown in here]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
