#!/usr/bin/env python3
"""Proves: `stook exporter` serves metrics and profiles of all processes on Stook that Prometheus
and pprof take; it refuses what it should, and whoever attacks it does not keep others waiting."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import unittest
import urllib.request
from pathlib import Path

import attacks
import prometheus
import stook as s
from heaps import Inspect, Running, preloaded
from prometheus import Prometheus, promtool

PROMETHEUS = Path(os.environ["STOOK_SOURCE"], "packaging", "prometheus")
TOKEN = "0123456789abcdef-a-token"
OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
WORKS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *kept[20000];
__attribute__((noinline)) static void *make(int i)
{
        return memset(malloc(100 + i % 1000), 1, 100);
}
int main(void)
{
        for (int i = 0; i < 20000; i++)
                kept[i] = make(i);
        puts("ready");
        fflush(stdout);
        pid_t parent = getpid();
        if (fork())
                return getchar() != EOF;
        for (int i = 0;; i++) {         /* is under load, until its parent ends */
                free(kept[i % 20000]);
                kept[i % 20000] = make(i);
                if (!(i % 10000) && getppid() != parent)
                        return 0;
        }
}
"""


class Exporter:
    def __init__(self, *args, listen="127.0.0.1:0", **kwargs):
        self.process = subprocess.Popen([s.STOOK, "exporter", "--listen", listen, *args],
                                        stderr=subprocess.PIPE, text=True, **kwargs)
        line = self.process.stderr.readline()
        found = re.match(r"stook exporter: listens at (.*)\n", line)
        if not found and "without libmicrohttpd" in line:
            self.end()
            raise unittest.SkipTest(line)
        self.at = found[1]
        if not self.at.startswith("/"):
            self.port = int(self.at.rpartition(":")[2])
        # What it says is read, so that it never waits for that.
        self.said = []
        self.reader = threading.Thread(target=lambda: self.said.extend(self.process.stderr))
        self.reader.start()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.end() == 0
        self.reader.join()
        self.process.stderr.close()

    def get(self, path, headers=None, method="GET"):
        """(status, body, type)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        body = answer.read().decode(errors="replace")
        connection.close()
        return answer.status, body, answer.getheader("Content-Type")


class Serves(Inspect):
    def program(self):
        return self.compile("works", WORKS, "-g")

    def test_metrics(self):
        """All processes are there; each metric stands together; both forms say the same."""
        with Running(self.program(), env=preloaded()) as p, Running(self.shared()) as q, \
                Exporter() as e:
            status, text, kind = e.get("/metrics")
            self.assertEqual((status, kind), (200, "text/plain; version=0.0.4; charset=utf-8"))
            for process, program in ((p, "works"), (q, "caches")):
                self.assertRegex(text, rf'\nstook_space_bytes{{pid="{process.pid}",library="[^"]*",'
                                       rf'program="{program}"}} [1-9]\d*\n')
            self.assertRegex(text, r"\nstook_exporter_processes [1-9]")
            self.assertRegex(text, r'\nstook_exporter_refused{reason="not_permitted"} \d+\n')
            heads = re.findall(r"^# TYPE (\S+) ", text, re.M)
            self.assertEqual(len(heads), len(set(heads)))
            status, open_text, kind = e.get("/metrics", OPENMETRICS)
            self.assertEqual((status, kind.split(";")[0]), (200, "application/openmetrics-text"))
            self.assertTrue(open_text.endswith("\n# EOF\n"))
            self.assertIn("# TYPE stook_cache_alloc_slowpath counter\n", open_text)
            self.assertIn("\nstook_cache_alloc_slowpath_total{", open_text)
            names = [set(re.findall(r"^stook_\w+", t, re.M)) for t in (text, open_text)]
            self.assertEqual(*names)
            if shutil.which("promtool"):
                done = promtool("check", "metrics", input=text)
                self.assertNotIn("error while linting", done.stderr)
                self.assertIn(done.returncode, (0, 3), done.stderr)
            self.assertEqual(e.get("/metrics", method="HEAD")[:2], (200, ""))

    def test_refuses(self):
        with Exporter() as e:
            self.assertEqual(e.get("/nothing")[0], 404)
            self.assertEqual(e.get("/metrics", method="POST")[0], 405)
            self.assertEqual(e.get("/")[0], 200)
            for query in ("", "?pid=", "?pid=x", "?pid=-1", "?pid=1234567890"):
                self.assertEqual(e.get("/debug/pprof/heap" + query)[0], 400, query)
            self.assertEqual(e.get("/debug/pprof/heap?pid=999999999")[0], 404)
            self.assertEqual(e.get(f"/debug/pprof/heap?pid={os.getpid()}")[0], 404)
            self.refused(2, "Address already in use", "exporter", "--listen", e.at)
        for where in ("0.0.0.0:0", "[::]:0"):
            self.refused(2, "beyond loopback --token-file is needed", "exporter", "--listen", where)
        for where in ("9748", "localhost:1", "127.0.0.1:", "127.0.0.1:x", "[::1:3"):
            self.assertEqual(s.stook("exporter", "--listen", where).returncode, 2, where)
        short = Path(self.folder, "short")
        short.write_text("secret\n")
        self.refused(2, "16 to 256 printable characters", "exporter", "--token-file", str(short))
        self.refused(2, "No such file", "exporter", "--token-file", "/no/such/file")
        self.refused(2, "too much", "exporter", "more")

    def test_token(self):
        file = Path(self.folder, "token")
        file.write_text(TOKEN + "\n")
        with Exporter("--token-file", str(file), listen="0.0.0.0:0") as e:
            for headers in ({}, {"Authorization": "Bearer " + TOKEN[:-1] + "x"},
                            {"Authorization": "Bearer " + TOKEN + "x"},
                            {"Authorization": "Basic " + TOKEN}, {"Authorization": "Bearer "}):
                self.assertEqual(e.get("/metrics", headers)[0], 401, headers)
                self.assertEqual(e.get("/debug/pprof/heap?pid=1", headers)[0], 401)
            self.assertEqual(e.get("/metrics", {"Authorization": "Bearer " + TOKEN})[0], 200)

    def test_socket(self):
        path = os.path.join(self.folder, "socket")
        for _ in range(2):                      # what a killed one left is taken
            with Exporter(listen=path) as e:
                self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(path)
                    client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                    self.assertTrue(client.makefile("rb").read().startswith(b"HTTP/1.1 200 OK"))
                self.refused(2, "Address already in use", "exporter", "--listen", path)
            left = socket.socket(socket.AF_UNIX)
            left.bind(path)
            left.close()
        os.unlink(path)
        Path(path).write_text("a file")
        self.refused(2, "Address already in use", "exporter", "--listen", path)
        self.assertEqual(Path(path).read_text(), "a file")

    def test_profile(self):
        env = preloaded(STOOK_SAMPLE="on,interval=4K")
        with Running(self.program(), env=env) as p, Exporter() as e:
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{e.port}/debug/pprof/heap?pid={p.pid}") as answer:
                profile = answer.read()
            self.assertIn(b"make", profile)
            file = Path(self.folder, "heap.pb")
            file.write_bytes(profile)
            done = s.stook("profile", str(file))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("make", done.stdout)

    def test_attacked(self):
        """Malformed requests, a thousand slow clients, processes that vanish: others are served."""
        with Running(self.program(), env=preloaded()), Exporter() as e:
            attacks.send_malformed(e.port)
            with attacks.slow_clients(self, e.port):
                for _ in range(20):
                    gone = subprocess.Popen(["true"], env=preloaded())
                    self.assertEqual(e.get("/metrics")[0], 200)
                    gone.wait()
            self.assertEqual(e.get("/metrics", OPENMETRICS)[0], 200)

    @unittest.skipUnless(shutil.which("promtool"), "no promtool")
    def test_rules(self):
        done = promtool("test", "rules", "stook.rules.test.yml", cwd=PROMETHEUS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @unittest.skipUnless(shutil.which("promtool"), "no promtool")
    def test_dashboard(self):
        """Prometheus understands what the dashboard asks, with Grafana's variables filled in."""
        board = json.loads((PROMETHEUS / "stook-dashboard.json").read_text())
        variables = {v["name"] for v in board["templating"]["list"]}
        rules = ["groups:", "- name: dashboard", "  rules:"]
        for i, target in enumerate(t for panel in board["panels"] for t in panel["targets"]):
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
            self.assertLessEqual(used, variables)
            expression = target["expr"].replace("$__rate_interval", "1m")
            expression = re.sub(r"\$\w+", ".*", expression)
            rules += [f"  - record: panel:{i}", f"    expr: {json.dumps(expression)}"]
        file = Path(self.folder, "dashboard.yml")
        file.write_text("\n".join(rules) + "\n")
        done = promtool("check", "rules", str(file))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_names(self):
        """Rules and dashboard name metrics that there are."""
        with Running(self.shared()), Exporter() as e:
            text = e.get("/metrics")[1]
        there = set(re.findall(r"^# TYPE (stook_\w+)", text, re.M))
        board = json.loads((PROMETHEUS / "stook-dashboard.json").read_text())
        expressions = [t["expr"] for panel in board["panels"] for t in panel["targets"]]
        expressions.append((PROMETHEUS / "stook.rules.yml").read_text())
        named = {n for expression in expressions for n in re.findall(r"\bstook_\w+", expression)}
        self.assertGreater(len(named), 10)
        self.assertEqual(named - there, set())

    @prometheus.needed
    def test_prometheus(self):
        """A real one, of three servers under load."""
        program = self.program()
        with Running(program, env=preloaded()), Running(program, env=preloaded()), \
                Running(program, env=preloaded()), Exporter() as e, \
                Prometheus(e.port, [PROMETHEUS / "stook.rules.yml"]) as p:
            values = p.ask('stook_space_bytes{program="works"}', 6)
            self.assertTrue(all(int(v) > 1 << 20 for v in values), values)
            self.assertEqual(p.ask('up{job="stook"}'), ["1"])
            rates = p.ask('sum by (pid) (rate(stook_cache_alloc_fastpath_total'
                          '{program="works"}[1m])) > 0', 3)
            self.assertTrue(all(float(r) > 0 for r in rates))


if __name__ == "__main__":
    s.main()
