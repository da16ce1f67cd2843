#!/usr/bin/python3
"""
tests/tools/order.py - tools/check-order tells what a program runs of what stands behind

Proves: functions that stand behind .text.start are told, once, when the program, a thread of it, a
child before it execs something, or the child and then the program runs them; the others are not
told, nor what a child execs without the library; signals reach the program; a program that fails, a
missing one and a library without the section are refused.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "tools" / "check-order"
LEFT_OUT = 77

PROGRAM = r"""
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int signals;

static void on_signal(int number)
{
        signals += number;
}

static void *trim(void *unused)
{
        malloc_trim(0);
        return unused;
}

int main(int argc, char **argv)
{
        const char *how = argc > 1 ? argv[1] : "";
        void *volatile object = malloc(100);
        int status = 0;

        free(object);
        signal(SIGUSR1, on_signal);
        raise(SIGUSR1);
        if (signals != SIGUSR1)
                return 3;
        if (!strcmp(how, "trim"))
                malloc_trim(0);
        if (!strcmp(how, "thread")) {
                pthread_t thread;

                if (pthread_create(&thread, NULL, trim, NULL))
                        return 4;
                pthread_join(thread, NULL);
        }
        if (!strcmp(how, "child") || !strcmp(how, "both")) {
                if (!fork()) {
                        malloc_trim(0);
                        _exit(0);
                }
                wait(&status);
                if (!strcmp(how, "both"))
                        malloc_trim(0);
        }
        if (!strcmp(how, "exec")) {
                if (!fork()) {
                        unsetenv("LD_PRELOAD");
                        execlp("true", "true", (char *)NULL);
                        _exit(1);
                }
                wait(&status);
        }
        return status || !strcmp(how, "fail");
}
"""


def check(library, *command):
    return subprocess.run([CHECK, library, *command], capture_output=True, text=True)


def main():
    build = Path(os.environ["STOOK_BUILD"])
    library = build / "libstook-malloc.so"
    if not library.exists():
        print("left out: built without the drop-in")
        return LEFT_OUT
    compiler = next(filter(shutil.which, ("gcc", "cc", "clang-19", "clang")))
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "p.c", Path(folder) / "p"
        source.write_text(PROGRAM)
        subprocess.run([compiler, "-O1", "-pthread", "-o", program, source], check=True)
        first = check(library, program)
        if first.returncode == LEFT_OUT or "made it does not know order.ld" in first.stderr:
            print(first.stdout + first.stderr, end="")
            return LEFT_OUT
        for how in ("", "exec"):
            answer = check(library, program, how)
            assert answer.returncode in (0, 1), answer
            assert "malloc_trim runs" not in answer.stdout, answer
            assert "functions behind" in answer.stdout, answer
        for how in ("trim", "thread", "child", "both"):
            answer = check(library, program, how)
            assert answer.returncode == 1, (how, answer)
            assert answer.stdout.count(": malloc_trim runs") == 1, (how, answer)
        for words, why in (((library, program, "fail"), "the program failed"),
                           ((library, Path(folder) / "none"), "no such program"),
                           ((Path(folder) / "none.so", program), "no such library"),
                           ((program, program), "has no .text.start"), ((library,), "Says which")):
            answer = check(*words)
            assert answer.returncode == 2 and why in answer.stderr, (words, answer)
    print("check-order tells what it should")
    return 0


sys.exit(main())
