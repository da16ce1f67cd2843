#!/usr/bin/env python3
"""Proves: tools/release/sbom writes an SPDX document of which every reference leads somewhere, with
every program and library that this build installs, their checksums, and what each needs when it
runs; it writes the same again; a folder that is no build is refused. What a file lacks or has too
much is found by the same comparison (the last test takes something away)."""
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE = os.environ["STOOK_BUILD"], os.environ["STOOK_SOURCE"]
TOOL = os.path.join(SOURCE, "tools", "release", "sbom")


def sbom(*arguments, **variables):
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True,
                          env={**os.environ, **variables})


def faults(document):
    """What is wrong with a document, as lines."""
    found, known = [], {document["SPDXID"]}
    for entry in document["packages"] + document["files"]:
        if entry["SPDXID"] in known or not re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", entry["SPDXID"]):
            found.append("identifier " + entry["SPDXID"])
        known.add(entry["SPDXID"])
    for r in document["relationships"]:
        for end in (r["spdxElementId"], r["relatedSpdxElement"]):
            if end not in known:
                found.append("no " + end)
    with open(os.path.join(BUILD, "meson-info", "intro-targets.json")) as f:
        targets = [t for t in json.load(f) if t["installed"]]
    files = {f["fileName"]: f for f in document["files"]}
    for t in targets:
        entry = files.pop("." + t["install_filename"][0], None)
        if not entry:
            found.append("no file " + t["install_filename"][0])
            continue
        with open(t["filename"][0], "rb") as f:
            right = hashlib.sha256(f.read()).hexdigest()
        if right not in [c["checksumValue"] for c in entry["checksums"]]:
            found.append("checksum of " + entry["fileName"])
        needed = subprocess.run(["readelf", "-d", t["filename"][0]], capture_output=True, text=True)
        links = [r["comment"] for r in document["relationships"]
                 if r["relationshipType"] == "DYNAMIC_LINK" and
                 r["spdxElementId"] == entry["SPDXID"]]
        if sorted(re.findall(r"NEEDED.*\[(.*)\]", needed.stdout)) != sorted(links):
            found.append("needs of " + entry["fileName"])
    return found + ["too much: " + name for name in files]


class Written(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = sbom(BUILD, SOURCE_DATE_EPOCH="86400")

    def document(self):
        self.assertEqual(self.text.returncode, 0, self.text.stderr)
        return json.loads(self.text.stdout)

    def test_document(self):
        d = self.document()
        self.assertEqual(faults(d), [])
        self.assertEqual((d["spdxVersion"], d["dataLicense"]), ("SPDX-2.3", "CC0-1.0"))
        self.assertEqual(d["creationInfo"]["created"], "1970-01-02T00:00:00Z")
        main = d["packages"][0]
        with open(os.path.join(SOURCE, "meson.build")) as f:
            version = re.search(r"version: '(.*?)'", f.read())[1]
        self.assertEqual((main["name"], main["versionInfo"], main["licenseDeclared"]),
                         ("stook", version, "MIT"))

    def test_same_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stook.spdx.json")
            self.assertEqual(sbom(BUILD, path, SOURCE_DATE_EPOCH="86400").returncode, 0)
            with open(path) as f:
                self.assertEqual(f.read(), self.text.stdout)

    def test_no_build_folder(self):
        done = sbom(SOURCE)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_faults_are_found(self):
        for take in (lambda d: d["files"].pop(), lambda d: d["relationships"].pop(0),
                     lambda d: d["packages"].pop(),
                     lambda d: d["files"][0]["checksums"].clear()):
            d = self.document()
            take(d)
            self.assertTrue(faults(d))


if __name__ == "__main__":
    unittest.main()
