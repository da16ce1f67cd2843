#!/usr/bin/env python3
"""Proves: `stook report` writes pages that have what the commands tell as JSON, need nothing from
elsewhere, and show it in a browser without an error, narrow and wide, light and dark; no name can
end the data; `stook top --web` serves such a page to whoever has the token, and to nobody else."""
import http.client
import itertools
import json
import os
import re
import signal
import subprocess
import unittest
from pathlib import Path

import attacks
import stook as s
from browser import CHROMIUM, Browser
from heaps import HEAPS, Inspect, Running, preloaded

NAMES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stook/stook.h>
int main(void)
{
        static const char *const names[] = { "</script><b>", "<!--<script>", "\xff\xe2\x80\xa8\"\\",
                                             "' onload=x()", "__proto__" };
        struct stook_group *firm = stook_group_create("<i>firm", NULL, 1 << 20);
        struct stook_heap *heap = stook_heap_create("</script>heap", NULL);
        int bad = !stook_heap_alloc(heap, 100);

        for (int i = 0; i < 5; i++)
                bad |= !stook_cache_alloc(stook_cache_create(names[i], 100 + i, NULL));
        stook_group_enter(stook_group_create("team", firm, 0));
        bad |= !memset(stook_malloc(5000), 1, 5000);
        stook_group_enter(NULL);
        puts("ready");
        fflush(stdout);
        return getchar() != EOF || bad;
}
"""
WORKS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void *make(int i) { return memset(malloc(i % 3000 + 1), 1, 1); }
int main(int argc, char **argv)
{
        static void *kept[500];
        for (int i = 0; i < 20000; i++) {
                free(kept[i * 7919 % 500]);
                kept[i * 7919 % 500] = make(i);
        }
        puts("ready");
        fflush(stdout);
        return argc > 1 ? 0 : getchar() != EOF;
}
"""


class Web:
    """A `stook top --web` of a process."""

    def __init__(self, *args):
        self.process = subprocess.Popen([s.STOOK, "top", "--web", "--every", "0.1", *args],
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        if "without libmicrohttpd" in line:
            self.end()
            raise unittest.SkipTest(line)
        found = re.fullmatch(r"stook top: listens at (http://127\.0\.0\.1:(\d+)/#(\w{32}))\n", line)
        self.url, self.port, self.token = found[1], int(found[2]), found[3]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.end() == 0

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.stderr.close()
        return self.process.wait(timeout=30)

    def get(self, path, token=None, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Authorization": "Bearer " + token} if token else {}
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, body


class Pages(Inspect):
    browser = None                              # started once: it takes longer than a page

    @classmethod
    def tearDownClass(cls):
        if cls.browser:
            cls.browser.close()
        super().tearDownClass()

    def open(self, *args):
        if not CHROMIUM:
            self.skipTest("no chromium")
        Pages.browser = Pages.browser or Browser()
        self.browser.open(*args)
        return self.browser

    def linked(self, name, source):
        return self.compile(name, source, *s.SHARED)

    def page(self, *args):
        """(path, data) of a page."""
        path = os.path.join(self.folder, "page.html")
        done = s.stook("report", *args, "-o", path)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        text = Path(path).read_text()
        self.assertEqual(text.count("</script>"), 2)
        self.assertEqual(text.count("<script"), 2)
        self.assertIsNone(re.search(r'(src|href)\s*=\s*"(?!data:)', text))
        found = re.search(r'(?s)<script type="application/json" id="data">(.*?)</script>', text)
        return path, json.loads(found[1])

    def look_at(self, url, tabs):
        """Every tab, narrow and wide, light and dark."""
        for width, dark in itertools.product((390, 1400), (False, True)):
            browser = self.open(url, width, dark)
            self.assertEqual(browser.run("TABS.map(t => t.id)"), tabs)
            self.assertEqual(browser.run("document.documentElement.dataset.theme"),
                             "dark" if dark else "light")
            for i, tab in enumerate(tabs):
                browser.run(f"document.querySelectorAll('#tabs button')[{i}].click()")
                self.assertGreater(browser.run(f"$('{tab}').innerText.length"), 20, tab)
                self.assertFalse(browser.run(f"$('{tab}').hidden"))
                self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), width,
                                     tab)
            self.assertEqual(browser.requests(), [url])
            self.assertEqual(browser.errors, [])

    HEAP = ["memory", "slabs", "sheaves", "groups", "caches"]
    PROFILE = ["flame", "stacks", "lives", "suspects"]

    def test_process(self):
        """The page has what `stook info --json` has; names of any bytes do no harm."""
        with Running(self.linked("names", NAMES)) as p:
            path, data = self.page(p.pid)
            library, = data["libraries"]
            other, = self.info(p.pid)
        self.assertEqual([c["name"] for c in library["caches"]],
                         [c["name"] for c in other["caches"]])
        self.assertEqual({g["name"] for g in library["groups"]}, {"<i>firm", "team"})
        self.assertIn("</script><b>", [c["name"] for c in library["caches"]])
        self.assertNotIn("profile", data)
        self.look_at("file://" + path, self.HEAP)

    def test_process_with_profile(self):
        with Running(self.compile("works", WORKS, "-g"),
                     env=preloaded(STOOK_SAMPLE="on,interval=4K")) as p:
            path, data = self.page(p.pid)
        self.assertTrue(data["profile"]["stacks"])
        self.look_at("file://" + path, self.HEAP + self.PROFILE)

    def test_core(self):
        _, data = self.page(self.core(self.static()))
        self.assertIn("conn", [c["name"] for l in data["libraries"] for c in l["caches"]])

    def test_profile(self):
        profile = os.path.join(self.folder, "heap.pb")
        done = s.stook("run", "--profile", profile + ",interval=4K,lifetimes", "--",
                       self.compile("works", WORKS, "-g"), "once")
        self.assertEqual(done.returncode, 0, done.stderr)
        path, data = self.page(profile)
        self.assertNotIn("libraries", data)
        self.look_at("file://" + path, self.PROFILE)

    def test_trace(self):
        trace = os.path.join(self.folder, "works.trace")
        done = s.stook("record", "--stacks", "-o", trace, "--",
                       self.compile("works", WORKS, "-g"), "once")
        self.assertEqual(done.returncode, 0, done.stderr)
        path, data = self.page(trace)
        self.assertEqual([t["name"] for t in data["profile"]["types"]][2], "temporary_objects")
        replay, = data["replay"]["replays"]
        self.assertGreater(len(replay["samples"]), 100)
        self.assertGreaterEqual(data["replay"]["trace"]["events"], 39500)
        self.look_at("file://" + path, ["timeline", "flame", "stacks"])

    def test_refused(self):
        me, file = str(os.getpid()), os.path.join(self.folder, "file")
        Path(file).write_text("nothing of ours")
        self.refused(2, "one process or file is wanted", "report")
        self.refused(2, "one process or file is wanted", "report", "1", "2")
        self.refused(2, "-o needs a file before '--exe'", "report", "-o", "--exe", "1")
        self.refused(2, "no option '-x'", "report", "-x", "1")
        self.refused(1, "does not use Stook", "report", me)
        self.refused(1, "there is no process", "report", "999999999")
        self.refused(1, "No such file", "report", "/no/such/file")
        self.refused(2, file, "report", file)
        self.refused(2, "go with a process or a core", "report", "--library", "x", file)
        with Running(self.linked("heaps", HEAPS)) as p:
            self.refused(2, "/no/such/page: No such file", "report", "-o", "/no/such/page", p.pid)
            self.refused(2, "/dev/full: No space left", "report", "-o", "/dev/full", p.pid)
        Path(file).write_bytes(b"stooktrc" + bytes(200))
        self.refused(2, "damaged at byte 0", "report", file)

    # ---- top --web ----

    def test_web(self):
        with Running(self.linked("names", NAMES)) as p, Web(p.pid) as web:
            status, page = web.get("/")
            self.assertEqual(status, 200)
            self.assertNotIn("firm", page)              # nothing of the heap without the token
            self.assertNotIn(web.token, page)
            for token in (None, web.token[:-1], web.token + "0", "0" * 32):
                self.assertEqual(web.get("/heap", token), (401, "a token is needed\n"))
            for path, status in (("/heap", 200), ("/", 200), ("/other", 404)):
                self.assertEqual(web.get(path, web.token)[0], status)
            self.assertEqual(web.get("/heap", web.token, "POST")[0], 405)
            self.assertEqual(web.get("/", None, "POST")[0], 405)
            library, = json.loads(web.get("/heap", web.token)[1])["libraries"]
            self.assertEqual({g["name"] for g in library["groups"]}, {"<i>firm", "team"})
            browser = self.open(web.url, 390)
            browser.run("new Promise(done => { const wait = () => looks.length > 3 ? done(0) : "
                        "setTimeout(wait, 50); wait(); })")
            self.assertEqual(browser.run("TABS.map(t => t.id)"), self.HEAP)
            self.assertEqual(browser.errors, [])
            browser = self.open(web.url.partition("#")[0], 390)
            browser.run("new Promise(done => { const wait = () => $('facts').textContent ? done(0) "
                        ": setTimeout(wait, 50); wait(); })")
            self.assertIn("missing or wrong", browser.run("$('facts').textContent"))

    def test_web_attacked(self):
        """Malformed requests and slow clients keep nobody waiting; the process may vanish."""
        with Running(self.linked("names", NAMES)) as p, Web(p.pid) as web:
            attacks.send_malformed(web.port)
            with attacks.slow_clients(self, web.port):
                self.assertEqual(web.get("/heap", web.token)[0], 200)
            p.process.kill()
            p.process.wait()
            status = 200
            while status == 200:                        # what it saw last may be asked for still
                status, body = web.get("/heap", web.token)
            self.assertEqual((status, body), (410, "the process is gone\n"))

    def test_web_refused(self):
        with Running(self.linked("heaps", HEAPS)) as p:
            for where in ("9748", "localhost:1", "127.0.0.1:x", "[::1:3", "/a/path"):
                self.assertEqual(s.stook("top", "--web=" + where, p.pid).returncode, 2, where)
            self.refused(2, "it listens at loopback alone", "top", "--web=0.0.0.0:0", p.pid)
            with Web(p.pid) as web:
                self.refused(2, "Address already in use", "top", f"--web=127.0.0.1:{web.port}",
                             p.pid)
        self.refused(1, "there is no process", "top", "--web", "999999999")


if __name__ == "__main__":
    s.main()
