"""A program with four known stacks, what reads a heap profile, and what tests of profiles share."""
import os

from stook import Compiled, stook

MIX = """
#include <stdlib.h>
#include <unistd.h>
#define KEEP __attribute__((noinline))
KEEP void *small(void) { void *p = malloc(24); __asm__ volatile("" : "+r"(p)); return p; }
KEEP void *middle(void) { void *p = malloc(1000); __asm__ volatile("" : "+r"(p)); return p; }
KEEP void *big(void) { void *p = malloc(300000); __asm__ volatile("" : "+r"(p)); return p; }
KEEP void *churn(void) { void *p = calloc(10, 50); __asm__ volatile("" : "+r"(p)); return p; }
int main(void)
{
        for (int i = 0; i < 200000; i++)
                if (!small())
                        return 1;
        for (int i = 0; i < 8000; i++)
                if (!middle())
                        return 1;
        for (int i = 0; i < 50; i++)
                if (!big())
                        return 1;
        for (int i = 0; i < 40000; i++)
                free(churn());
        return 0;
}"""
# function: objects, bytes of each, are they in use
MIX_HAS = {"small": (200000, 24, True), "middle": (8000, 1000, True), "big": (50, 300000, True),
           "churn": (40000, 500, False)}


def varint(data, at):
    n = shift = 0
    while True:
        byte = data[at]
        at += 1
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return n, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7:
            assert tag & 7 == 2 and at + value <= len(data)
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


class Profiles(Compiled):
    def path(self, name):
        return os.path.join(self.folder, name)

    def folded(self, path, kind):
        """What each function has, with all that it called."""
        done = stook("profile", "--folded", "--type", kind, path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        sums = {}
        for line in done.stdout.splitlines():
            stack, value = line.rsplit(" ", 1)
            for name in set(stack.split(";")):
                sums[name] = sums.get(name, 0) + int(value)
        return sums

    def near(self, value, expected, share):
        self.assertLess(abs(value - expected), share * expected, (value, expected))

    def exact(self, name, source, *flags, terms=""):
        """A program in which every object is sampled; its profile."""
        program = self.compile(name, source, "-g", "-rdynamic", *flags)
        path = self.path(name + ".pb")
        done = stook("run", "--profile", f"{path},interval=1{terms}", "--", program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        if "main" not in self.folded(path, "alloc_space"):
            self.skipTest("stook was built without libdw")
        return path
