#!/usr/bin/env python3
"""Proves: `stook what`, `stook leaks` and `stook ps` tell of single objects of live processes and
of cores what is so, and nothing of what is not; a core that was cut off is read as far as it goes.
"""
import json
import os
import subprocess
import sys
import time
import unittest.mock

import stook as s
from heaps import Inspect, Running, preloaded

OBJECTS = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct node { struct node *next; char text[40]; };
static struct node *head;                       /* a list: one leads to the next */
static uintptr_t hidden[4];                     /* addresses that are none */
__attribute__((noinline)) static void *lose(size_t size)
{
        void *p = malloc(size);
        memset(p, 0, size);
        return (void *)~(uintptr_t)p;
}
static void *wait_for_ever(void *on_stack)
{
        char *volatile kept = malloc(500);      /* its stack alone leads to it */
        hidden[3] = ~(uintptr_t)kept;
        *(volatile int *)on_stack = 1;
        for (;;)
                pause();
        return kept;
}
int main(int argc, char **argv)
{
        volatile int started = 0;
        pthread_t thread;
        struct node *freed;
        for (int i = 0; i < 3; i++) {
                struct node *node = calloc(1, sizeof *node);
                node->next = head;
                head = node;
        }
        freed = malloc(2000);
        hidden[0] = ~(uintptr_t)freed;
        free(freed);
        freed = NULL;
        hidden[1] = (uintptr_t)lose(77);
        hidden[2] = (uintptr_t)lose(300000);
        pthread_create(&thread, NULL, wait_for_ever, (void *)&started);
        while (!started)
                usleep(1000);
        printf("%p %p %p %p %p\n", (void *)head->next, (void *)~hidden[0], (void *)~hidden[1],
               (void *)~hidden[2], (void *)~hidden[3]);
        puts("ready");
        fflush(stdout);
        if (argc > 1 && !strcmp(argv[1], "abort"))
                abort();
        while (getchar() != EOF)
                ;
        return 0;
}
"""


class Objects(Inspect):
    def program(self):
        return self.compile("objects", OBJECTS, "-g", "-pthread")

    def what(self, what, address, status=0):
        done = s.stook("what", "--json", what, address)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        return json.loads(done.stdout)["libraries"]

    def leaks(self, what, *more):
        done = s.stook("leaks", "--json", *more, what)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)["libraries"][0]

    # ---- what ----

    def test_what(self):
        """An object in use, one that is free, a large one, an interior address; who leads there."""
        with Running(self.program(), env=preloaded()) as p:
            node, freed, lost, large, kept = p.said[0].split()
            inside = hex(int(node, 16) + 9)
            answer, = self.what(p.pid, inside)
            self.assertEqual((answer["address"], answer["bytes_into"], answer["state"],
                              answer["cache"]), (node, 9, "in use", "malloc-48"))
            holder, = answer["pointers"]                    # head has the pointer to the next
            self.assertEqual((holder["cache"], holder["bytes_into"]), ("malloc-48", 0))
            answer, = self.what(p.pid, holder["holder"])
            self.assertTrue(any(q.get("file", "").endswith("/objects")
                                for q in answer["pointers"]), answer)
            answer, = self.what(p.pid, freed)
            self.assertRegex(answer["state"], "^free, in ")
            answer, = self.what(p.pid, lost)
            self.assertEqual((answer["state"], answer["pointer_count"]), ("in use", 0), answer)
            answer, = self.what(p.pid, hex(int(large, 16) + 150000))
            self.assertEqual((answer["address"], answer["cache"], answer["bytes_into"]),
                             (large, "malloc-large", 150000))
            answer, = self.what(p.pid, kept)
            self.assertTrue(any("thread" in q for q in answer["pointers"]), answer)
            self.assertEqual(self.what(p.pid, hex(id(self)), 1), [])
            text = s.stook("what", p.pid, inside)
            self.assertIn(f"object {node} of cache malloc-48", text.stdout)
            self.assertIn(f"{inside} is 9 bytes into it", text.stdout)
            self.assertRegex(text.stdout, r"  1 word leads to it:\n    0x[0-9a-f]+ in object 0x")
            text = s.stook("what", p.pid, "0x10")
            self.assertEqual((text.returncode, text.stdout),
                             (1, "0x10 is no address of the heap\n"))

    def test_what_debugged(self):
        """With U: what was requested, and by which calls; of a freed one, too."""
        with Running(self.program(), env=preloaded(STOOK_DEBUG="FZPUQ")) as p:
            node, freed, lost, large, kept = p.said[0].split()
            answer, = self.what(p.pid, freed)
            self.assertEqual((answer["state"], answer["requested_bytes"]),
                             ("freed, in the quarantine", 2000))
            self.assertRegex(answer["allocated"]["stack"][0], r"^main .*:\d+$")
            self.assertRegex(answer["freed"]["stack"][0], r"^main .*:\d+$")
            answer, = self.what(p.pid, large)
            self.assertEqual((answer["state"], answer["requested_bytes"]), ("in use", 300000))
            self.assertRegex(answer["allocated"]["stack"][0], r"^lose .*:\d+$")
            text = s.stook("what", p.pid, lost).stdout
            self.assertRegex(text, r"77 of them requested\n")
            self.assertRegex(text, r"  allocated by thread \d+, \d+\.\d s ago\n    #0 lose ")
            self.assertIn("  nothing leads to it\n", text)

    def test_what_core(self):
        with unittest.mock.patch.dict(os.environ, LD_PRELOAD=s.DROP_IN, STOOK_DEBUG="FZPU"):
            core = self.core(self.program())
        self.assertEqual(self.what(core, "0x10", 1), [])
        group = self.leaks(core)["leaks"][0]
        answer, = self.what(core, group["first"])
        self.assertEqual((answer["state"], answer["requested_bytes"]), ("in use", 300000))
        self.assertRegex(answer["allocated"]["stack"][0], r"^lose .*:\d+$")

    def test_refused(self):
        me = str(os.getpid())
        self.refused(2, "'nothing' is no address", "what", me, "nothing")
        self.refused(2, "'12x' is no address", "what", me, "12x")
        self.refused(2, "a process and an address are needed", "what", me)
        self.refused(2, "too much: '3'", "what", me, "1", "3")
        self.refused(2, "too much: '3'", "ps", "3")
        self.refused(1, "there is no process", "leaks", "999999999")
        self.refused(1, "does not use Stook", "what", me, "1")

    # ---- leaks ----

    def lost(self, answer):
        return sorted((g["cache"], g["objects_lost"], g["bytes_lost"]) for g in answer["leaks"])

    def test_leaks(self):
        """Two of eight objects are lost: by cache, with U by the calls. Nothing else is."""
        with Running(self.program(), env=preloaded()) as p:
            found = {c: n for c, n, _ in self.lost(self.leaks(p.pid))}
            self.assertEqual(found, {"malloc-80": 1, "malloc-large": 1})
            done = s.stook("leaks", p.pid)
            self.assertEqual((done.returncode, done.stderr), (1, ""))
            self.assertRegex(done.stdout, r": leak: 2 objects, \d+ bytes that nothing leads to, of "
                             r"\d+ live objects\n  1 object, \d+ bytes of malloc-large, such as 0x")
        with Running(self.program(), env=preloaded(STOOK_DEBUG="FZPUQ")) as p:
            answer = self.leaks(p.pid)
            self.assertEqual([(g["objects_lost"], g["bytes_lost"]) for g in answer["leaks"]],
                             [(1, 300000), (1, 77)])
            for group in answer["leaks"]:
                self.assertRegex(group["allocated_by"][0], r"^lose .*:\d+$")
                self.assertRegex(group["allocated_by"][1], r"^main .*:\d+$")
            answer = self.leaks(p.pid, "--suppress", "nothing,los*")
            self.assertEqual((answer["leaks"], answer["objects_suppressed"]), ([], 2))
            done = s.stook("leaks", "--suppress", "lose", p.pid)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, ": no leak among .*\n  suppressed: 2 objects\n")

    def test_leaks_core(self):
        with unittest.mock.patch.dict(os.environ, LD_PRELOAD=s.DROP_IN, STOOK_DEBUG="U"):
            answer = self.leaks(self.core(self.program()))
        self.assertEqual([g["bytes_lost"] for g in answer["leaks"]], [300000, 77], answer)

    def test_leaks_busy(self):
        """Objects that move all the time are not lost."""
        program = "import sys, threading\n" \
                  "def work():\n" \
                  "    kept = []\n" \
                  "    while not ended:\n" \
                  "        kept = [kept[-50:], [bytes(500) for _ in range(50)]][1]\n" \
                  "ended = []\n" \
                  "threads = [threading.Thread(target=work) for _ in range(2)]\n" \
                  "[t.start() for t in threads]\n" \
                  "print('ready', flush=True)\n" \
                  "sys.stdin.read()\n" \
                  "ended.append(1)\n"
        with Running(sys.executable, "-c", program, env=preloaded(PYTHONMALLOC="malloc")) as p:
            time.sleep(0.2)
            answer = self.leaks(p.pid)
        self.assertGreater(answer["objects_live"], 5000)
        self.assertLess(answer["objects_lost"], 100, self.lost(answer))

    # ---- cores that were cut off ----

    def test_cut_core(self):
        """At any length: what is there is shown, or a line says why nothing is."""
        core = self.core(self.static())
        size = os.path.getsize(core)
        shown = 0
        for share in range(1, 20, 2):
            with open(core, "r+b") as f:
                f.truncate(size - size * share // 40)
            done = s.stook("info", core)
            self.assertIn(done.returncode, (0, 1, 2), done.stderr)
            self.assertRegex(done.stderr, r"^stook info: (note: )?.* is cut off")
            shown += "conn" in done.stdout
            for command in ("check", "leaks"):
                self.assertIn(s.stook(command, core).returncode, (0, 1, 2))
        self.assertGreater(shown, 0)
        with open(core, "r+b") as f:
            f.truncate(3000)
        self.assertRegex(s.stook("info", core).stderr, "^stook info: .* is cut off")

    # ---- ps ----

    def test_ps(self):
        with Running(self.program(), env=preloaded()) as p, Running(self.shared()) as q:
            done = s.stook("ps", "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            answer = json.loads(done.stdout)
            mine = {str(row["pid"]): row for row in answer["processes"]}
            self.assertGreaterEqual(mine[p.pid]["live_bytes"], 300000)
            self.assertEqual(mine[p.pid]["program"], "objects")
            self.assertGreater(mine[q.pid]["space_bytes"], 120000)
            self.assertEqual(mine[q.pid]["large_bytes"] >> 20, 1)
            self.assertEqual(set(answer["refused"]), 
                             {"not_permitted", "other_version", "gone", "too_many"})
            text = s.stook("ps").stdout
            for process in (p, q):
                self.assertRegex(text, rf"(?m)^ *{process.pid} \w+ ")

    @unittest.skipIf(os.getuid() != 0, "needs root, to be another user")
    def test_ps_refused(self):
        """Processes of others are counted."""
        program = self.program()
        os.chmod(self.folder, 0o755)
        with Running(program, env=preloaded()):
            done = subprocess.run([s.STOOK, "ps"], capture_output=True, text=True, user=65534,
                                  group=65534, extra_groups=[])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"\d+ processes not looked at: the system does not let")


if __name__ == "__main__":
    s.main()
