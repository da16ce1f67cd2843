#!/usr/bin/env python3
"""Proves what tools/make/site makes of documents, manual and headers before the generator has it:
each page has a place in the navigation, links lead from page to page, lists and comments keep
their shape; and that a link to nothing, and what is loaded from elsewhere, are found."""
import importlib.machinery
import importlib.util
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["STOOK_SOURCE"])
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("site_maker", str(SOURCE / "tools/make/site"))
maker = importlib.util.module_from_spec(importlib.util.spec_from_loader("site_maker", LOADER))
LOADER.exec_module(maker)


class Site(unittest.TestCase):
    def test_links(self):
        self.assertEqual(maker.to_page("docs/ADOPT.md#step", ""), "ADOPT.md#step")
        self.assertEqual(maker.to_page("../README.md", "docs"), "index.md")
        self.assertEqual(maker.to_page("../MEMORY.md", "docs/decisions"), "../MEMORY.md")
        self.assertEqual(maker.to_page("../man/stook-run.1", "docs"), "man/stook-run.1.md")
        self.assertEqual(maker.to_page("#here", "docs"), "#here")
        self.assertIsNone(maker.to_page("../src/LAYERS", "docs"))
        self.assertEqual(maker.convert("[a](../src/LAYERS) [b](A.md)", "docs"), "a [b](A.md)")

    def test_lists(self):
        self.assertEqual(maker.in_lists("a:\n- b\n  c\n  - d\n\ne"),
                         "a:\n\n- b\n    c\n    - d\n\ne")
        self.assertEqual(maker.in_lists("```\n- b\n  c\n```"), "```\n- b\n  c\n```")

    def test_comments(self):
        text = maker.comment_text("/*\n * f() - one line\n * @n: objects,\n *     0 to 5\n"
                                  " * Return: 0; or\n *   -EINVAL  n above 5,\n"
                                  " *            or NULL\n *\n *      code();\n */")
        self.assertIn("**@n:** objects,\n  0 to 5", text)
        self.assertIn("- `-EINVAL` n above 5,\n    or NULL", text)
        self.assertIn("\n         code();", text)

    def test_pages(self):
        with tempfile.TemporaryDirectory() as folder:
            pages = Path(folder)
            maker.documents(pages)
            maker.headers(pages)
            if shutil.which("mandoc"):
                maker.manual(pages)
                self.assertIn('class="manual"', (pages / "man/stook-env.7.md").read_text())
            self.assertIn("- OPERATE.md", maker.navigation(pages))
            self.assertIn("## stook_cache_alloc_bulk", (pages / "headers/cache.h.md").read_text())

    def test_follow(self):
        with tempfile.TemporaryDirectory() as folder:
            site = Path(folder)
            (site / "a.html").write_text('<a href="b.html#x">1</a> <a href="b.html#y">2</a>'
                                         '<a href="c.html">3</a><script src="https://e.f/g">')
            (site / "b.html").write_text('<p id="x"><a href="https://e.f">elsewhere</a>')
            self.assertEqual(len(maker.follow(site)), 3)


unittest.main()
