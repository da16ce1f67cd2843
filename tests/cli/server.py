#!/usr/bin/env python3
"""Proves: the server of examples/ answers from heaps of its requests, none of which is left; a real
Prometheus takes its metrics, and knows them by name, type and value."""
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request
from pathlib import Path

from stook import BUILD, main

SERVER = os.path.join(BUILD, "examples", "example-server")
MAY_TAKE_S = 100                # a scrape a second; the rest is for a slow machine


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return answer.read().decode()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


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
        done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                              capture_output=True)
        # It would have other names; it must be able to read them.
        self.assertNotIn("error while linting", done.stderr)
        self.assertIn(done.returncode, (0, 3), done.stderr)

    @unittest.skipUnless(shutil.which("prometheus"), "no prometheus")
    def test_prometheus(self):
        port = free_port()
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder, "prometheus.yml")
            config.write_text("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: server\n"
                              f"  static_configs: [{{targets: ['127.0.0.1:{self.port}']}}]\n")
            prometheus = subprocess.Popen(
                ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{port}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                self.assertEqual(self.ask(port, 'stook_group_limit_bytes{group="requests"}'),
                                 [str(64 << 20)])
                self.assertEqual(self.ask(port, 'up{job="server"}'), ["1"])
                self.assertGreater(int(self.ask(port, 'stook_heap_bytes{heap="request"}')[0]), 0)
                self.assertEqual(len(self.ask(port, "rate(stook_purges_total[1m])")), 1)
                kinds = json.loads(get(port, "/api/v1/metadata"))["data"]
                self.assertEqual(kinds["stook_allocated_bytes"][0]["type"], "gauge")
                self.assertEqual(kinds["stook_purges_total"][0]["type"], "counter")
            finally:
                prometheus.terminate()
                prometheus.wait()

    def ask(self, port, query):
        """The values of a query, as soon as there are some."""
        end = time.monotonic() + MAY_TAKE_S
        while time.monotonic() < end:
            try:
                answer = json.loads(get(port, "/api/v1/query?query=" + urllib.parse.quote(query)))
                values = [sample["value"][1] for sample in answer["data"]["result"]]
                if values:
                    return values
            except OSError:
                pass                            # it has not started yet
            time.sleep(0.2)
        self.fail(f"Prometheus knows no {query}")


if __name__ == "__main__":
    main()
