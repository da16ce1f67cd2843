#!/usr/bin/env python3
"""Proves: what the commands write as JSON is what the schemas in schema/ say, no key more and no
key less; the schemas refuse what is not; a key has one type and one meaning in all of them."""
import copy
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import stook as s
from heaps import DAMAGE, HEAPS, Inspect, Running, preloaded
from objects import OBJECTS
from replays import Perf

try:
    import jsonschema
except ImportError:
    jsonschema = None

SOURCE = Path(os.environ["STOOK_SOURCE"])
SCHEMAS = {path.name.split("-")[0]: json.loads(path.read_text())
           for path in (SOURCE / "schema").glob("*.schema.json")}
# These split one number by what answered: shares in one output, calls in the other.
SPLITS = {"slot", "barn", "slabs"}

MISUSED_HEAP = r"""
#include <stook/stook.h>
int main(void)
{
        struct stook_heap *heap = stook_heap_create("requests", NULL);
        stook_heap_free(heap, stook_malloc(10));
        return 0;
}
"""


def described(schema):
    """(key, type, description) of each key that a schema names."""
    for key, value in schema.get("properties", {}).items():
        if "$ref" not in value:
            sample = value.get("const", value.get("enum", [None])[0])
            kind = value.get("type", type(sample).__name__)
            kind = [k for k in kind if k != "null"][0] if isinstance(kind, list) else kind
            yield key, kind, value.get("description")
    for value in schema.values():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                for inner in [part, *part.values()] if "properties" not in part else [part]:
                    if isinstance(inner, dict):
                        yield from described(inner)


def objects(value):
    """Every object in a document."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner)


@unittest.skipUnless(jsonschema, "python3-jsonschema is not here")
class Schema(Inspect):
    def validator(self, name):
        return jsonschema.Draft202012Validator(SCHEMAS[name])

    def keeps(self, name, document):
        errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message}"
                  for e in self.validator(name).iter_errors(document)]
        self.assertEqual(errors[:5], [])

    def program(self, name, source):
        return self.compile(name, source, *s.SHARED)

    # ---- the outputs ----

    def run_document(self, *options):
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            done = s.stook("run", "--json", out.name, *options, "--", "sh", "-c", "sleep 0; exit 0")
            self.assertEqual(done.returncode, 0, done)
            return json.load(out)

    def test_run(self):
        plain = self.run_document()
        self.keeps("run", plain)
        self.assertEqual(len(plain["processes"]), 2)
        for options in (["--group-limit", "1G"], ["--compare", "--repeat", "6"]):
            self.keeps("run", self.run_document(*options))

    def test_info(self):
        with Running(self.program("heaps", HEAPS)) as p:
            for options in ([], ["--fragmentation"], ["--long"], ["--all"], ["--slots"]):
                done = s.stook("info", "--json", *options, p.pid)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.keeps("info", json.loads(done.stdout))
        with Running(self.shared()) as p:
            self.keeps("info", json.loads(s.stook("info", "--json", p.pid).stdout))

    def test_objects(self):
        """What tells of single objects, of leaks and of all processes."""
        with Running(self.compile("objects", OBJECTS, "-g", "-pthread"),
                     env=preloaded(STOOK_DEBUG="FZPUQ")) as p:
            for address in p.said[0].split():
                done = s.stook("what", "--json", p.pid, address)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.keeps("what", json.loads(done.stdout))
            for name, *args in (("leaks", p.pid), ("ps",)):
                done = s.stook(name, "--json", *args)
                self.assertEqual((done.returncode, done.stderr), (name == "leaks", ""))
                self.keeps(name, json.loads(done.stdout))

    def test_replay(self):
        perf = Perf()
        for i in range(2000):
            perf.alloc(i % 2, 0x1000 + i * 256)
        for i in range(1000):
            perf.free(i % 2, 0x1000 + i * 256)
        trace = os.path.join(self.folder, "trace.txt")
        Path(trace).write_text(perf.text())
        for options in ([], ["--sweep", "capacity=0,8"], ["--repeat", "2"]):
            done = s.stook("replay", *options, "--json", trace + ".json", trace)
            self.assertEqual(done.returncode, 0, done)
            self.keeps("replay", json.loads(Path(trace + ".json").read_text()))

    def test_profile(self):
        path = os.path.join(self.folder, "sh.trace")
        done = s.stook("record", "--stacks", "-o", path, "--", "sh", "-c", "sleep 0")
        self.assertEqual(done.returncode, 0, done)
        done = s.stook("profile", "--json", "--type", "temporary_objects", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.keeps("profile", json.loads(done.stdout))

    def lines(self, *command, **environment):
        path = os.path.join(self.folder, "reports.json")
        Path(path).write_text("")
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL,
                       env=os.environ | {"STOOK_ON_FAULT": "log", "STOOK_REPORT_JSON": path}
                       | environment)
        found = [json.loads(line) for line in Path(path).read_text().splitlines()]
        self.assertTrue(found)
        for line in found:
            self.keeps("report", line)
        return found

    def test_reports(self):
        damage = self.program("damage", DAMAGE)
        for way in ("live", "before", "freed", "long"):
            found = self.lines(damage, way, STOOK_DEBUG="FZPU")
            self.assertTrue(any("bad" in line and "dump" in line for line in found), found)
        found = self.lines(self.program("misused_heap", MISUSED_HEAP))
        self.assertEqual([line.get("heap") for line in found], ["requests"])
        self.assertNotIn("cache", found[0])

    def test_bench(self):
        self.keeps("bench", json.loads((SOURCE / "docs/figures/run.json").read_text()))

    # ---- the schemas ----

    def test_they_are_schemas(self):
        self.assertEqual(set(SCHEMAS), {"bench", "info", "leaks", "profile", "ps", "replay",
                                        "report", "run", "what"})
        for name, schema in SCHEMAS.items():
            jsonschema.Draft202012Validator.check_schema(schema)
            version = schema["properties"]["format"]["const"]
            self.assertEqual(schema["$id"], f"urn:stook:schema:{name}-{version}")
            self.assertTrue((SOURCE / f"schema/{name}-{version}.schema.json").exists())

    def test_one_vocabulary(self):
        meanings = {}
        for name, schema in SCHEMAS.items():
            for key, kind, description in described(schema):
                if key in SPLITS:
                    continue
                other = meanings.setdefault(key, (kind, description, name))
                self.assertEqual((kind, name if not description else description),
                                 (other[0], name if not description else other[1]),
                                 f"{key} in {name} and {other[2]}")
        self.assertGreater(len(meanings), 150)

    def test_they_refuse(self):
        document = self.run_document()
        for i, place in enumerate(list(objects(document))):
            if not place or i % 3:
                continue
            spoilt = copy.deepcopy(document)
            list(objects(spoilt))[i]["a_key_of_no_release"] = {}
            self.assertFalse(self.validator("run").is_valid(spoilt), place)
        for key in document:
            spoilt = {k: v for k, v in document.items() if k != key}
            self.assertFalse(self.validator("run").is_valid(spoilt), key)
        spoilt = copy.deepcopy(document)
        spoilt["processes"][0]["caches"][0]["slab_bytes"] = "16 KiB"
        self.assertFalse(self.validator("run").is_valid(spoilt))


if __name__ == "__main__":
    s.main()
