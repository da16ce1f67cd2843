#!/usr/bin/env python3
"""Proves: the server of examples/ answers from heaps of its requests, none of which is left; a real
Prometheus takes its metrics, and knows them by name, type and value."""
import os
import re
import shutil
import subprocess
import unittest
import urllib.error

import prometheus
from prometheus import Prometheus, get, promtool
from stook import BUILD, main

SERVER = os.path.join(BUILD, "examples", "example-server")


class Server(unittest.TestCase):
    def setUp(self):
        self.server = subprocess.Popen([SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       text=True)
        self.port = int(self.server.stdout.readline())

    def tearDown(self):
        self.server.stdin.close()
        self.assertEqual(self.server.wait(timeout=30), 0)
        self.server.stdout.close()

    def test_answers(self):
        self.assertEqual(get(self.port, "/words/a+few+words"), "words few a\n")
        words = [str(i) for i in range(500)]
        self.assertEqual(get(self.port, "/words/" + "+".join(words)),
                         " ".join(reversed(words)) + "\n")
        with self.assertRaises(urllib.error.HTTPError):
            get(self.port, "/nothing")

    def test_metrics(self):
        for _ in range(20):
            get(self.port, "/words/a+few+words")
        text = get(self.port, "/metrics")
        # The scrape's own request alone.
        self.assertEqual(len(re.findall(r"^stook_heap_bytes\{heap=\"request\"", text, re.M)), 1)
        self.assertRegex(text, r'\nstook_group_limit_bytes\{group="requests",id="1"\} 67108864\n')
        if not shutil.which("promtool"):
            self.skipTest("no promtool")
        done = promtool("check", "metrics", input=text)
        # It would have other names; it must be able to read them.
        self.assertNotIn("error while linting", done.stderr)
        self.assertIn(done.returncode, (0, 3), done.stderr)

    @prometheus.needed
    def test_prometheus(self):
        with Prometheus(self.port) as p:
            self.assertEqual(p.ask('stook_group_limit_bytes{group="requests"}'), [str(64 << 20)])
            self.assertEqual(p.ask('up{job="stook"}'), ["1"])
            self.assertGreater(int(p.ask('stook_heap_bytes{heap="request"}')[0]), 0)
            self.assertEqual(len(p.ask("rate(stook_purges_total[1m])")), 1)
            kinds = p.get("/api/v1/metadata")
            self.assertEqual(kinds["stook_allocated_bytes"][0]["type"], "gauge")
            self.assertEqual(kinds["stook_purges_total"][0]["type"], "counter")


if __name__ == "__main__":
    main()
