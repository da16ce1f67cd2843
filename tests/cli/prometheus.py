"""A real Prometheus for the tests beside this file."""
import json
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

MAY_TAKE_S = 100                # a scrape a second; the rest is for a slow machine


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return answer.read().decode()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def promtool(*args, **kwargs):
    return subprocess.run(["promtool", *args], capture_output=True, text=True, **kwargs)


needed = unittest.skipUnless(shutil.which("prometheus"), "no prometheus")


class Prometheus:
    """One that scrapes `port` each second, until the end of the block."""

    def __init__(self, port, rules=()):
        self.folder = tempfile.TemporaryDirectory()
        self.config = Path(self.folder.name, "prometheus.yml")
        self.config.write_text(json.dumps({     # which is YAML, too
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rule) for rule in rules],
            "scrape_configs": [{"job_name": "stook", "static_configs": [
                {"targets": [f"127.0.0.1:{port}"]}]}]}))
        self.start()

    def start(self):
        self.port = free_port()
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={self.config}",
             f"--storage.tsdb.path={self.folder.name}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def get(self, path):
        return json.loads(get(self.port, path))["data"]

    def ask(self, query, least=1):
        """The values of a query, as soon as there are so many."""
        end, values = time.monotonic() + MAY_TAKE_S, None
        while time.monotonic() < end:
            if self.process.poll() is not None:         # another one took the port
                self.start()
            try:
                result = self.get("/api/v1/query?query=" + urllib.parse.quote(query))["result"]
                values = [sample["value"][1] for sample in result]
                if len(values) >= least:
                    return values
            except (OSError, urllib.error.URLError, ValueError):
                pass                            # it has not started yet
            time.sleep(0.2)
        raise AssertionError(f"Prometheus knows too few of {query}: {values}")
