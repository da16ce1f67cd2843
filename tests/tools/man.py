#!/usr/bin/env python3
"""Proves that the manual is whole: clean mdoc; a page for each public header, with each function,
flag, structure field and error number of it; each STOOK_* variable that the sources read; and no
reference to a page that is not there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ["STOOK_SOURCE"])
MAN = SOURCE / "man"
PAGES = {"maple": "libstook-maple.3"}
# Headers that users do not include by name.
INNER = {"section", "layout", "stook"}
SECTIONS = ["NAME", "LIBRARY", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "SEE ALSO"]

faults = []


def fault(text):
    faults.append(text)
    print(text)


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def pages_of(header):
    """The page of the header's name, and those whose synopsis is of this header alone."""
    main = MAN / PAGES.get(header, f"stook-{header}.3")
    others = [p for p in sorted(MAN.glob("*.3")) if p != main and
              re.findall(r"^\.In stook/(\w+)\.h$", p.read_text(), re.M) == [header]]
    return [main, *others]


def synopsis_of(text):
    found = re.search(r"^\.Sh SYNOPSIS\n(.*?)^\.Sh ", text, re.S | re.M)
    return found.group(1) if found else ""


def words_of(page):
    """All words of a page, by macro or not."""
    return set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", page))


def fields_of(code):
    """(structure, field) of each structure that a header defines."""
    for structure, body in re.findall(r"^struct (\w+) \{(.*?)^\};", code, re.S | re.M):
        for line in re.sub(r"^#.*$", "", body, flags=re.M).split(";"):
            function = re.search(r"\(\*(\w+)\)", line)
            if function:
                yield structure, function.group(1)
                continue
            for name in line.split(","):
                last = re.search(r"(\w+)(\[\w+\])?\s*$", name.strip())
                if last and not last.group(1).startswith("STOOK_"):
                    yield structure, last.group(1)


def check_header(path):
    header, code = path.stem, without_comments(path.read_text())
    pages = pages_of(header)
    page = pages[0]
    if not page.exists():
        fault(f"{header}.h: no page {page.name}")
        return
    texts = [p.read_text() for p in pages]
    text = "\n".join(texts)
    words = words_of(text)
    for one, its_text in zip(pages, texts):
        for section in SECTIONS:
            if not re.search(rf"^\.Sh {section}$", its_text, re.M):
                fault(f"{one.name}: no section {section}")
    for name in re.findall(r"^STOOK_PUBLIC\b[^;(]*?\b(stook_\w+)\s*\(", code, re.M):
        described = [t for t in texts if re.search(rf"^\.F[no] {name}\b", synopsis_of(t), re.M)]
        if len(described) != 1 or not re.search(rf"^\.Nm {name}\b", described[0], re.M):
            fault(f"{page.name}: not one page with .Nm and .Fn of {name}")
    private = re.compile(r"_H$|_PUBLIC$|_V1$|_COUNTER|_AS$|_INIT$")
    for name in (re.findall(r"^#define (STOOK_\w+)", code, re.M) +
                 re.findall(r"^ +(STOOK_\w+)(?: = \d+)?,?\s*$", code, re.M)):
        if not private.search(name) and name not in words:
            fault(f"{page.name}: no {name}")
    for kind, name in re.findall(r"^(struct|enum) (stook_\w+) \{", code, re.M):
        if not re.search(rf"^\.V[ta] (?:const )?\"?{kind} {name}\b|\"{kind} {name}\b", text, re.M):
            fault(f"{page.name}: no {kind} {name}")
    if header != "maple":
        for structure, field in fields_of(code):
            if field not in words and field != "reserved":
                fault(f"{page.name}: no field {field} of struct {structure}")
    for counter in re.findall(r"^ +X\((\w+)\)", code, re.M):
        if counter not in words:
            fault(f"{page.name}: no counter {counter}")
    for error in set(re.findall(r"\b(E[A-Z0-9]{3,})\b", path.read_text())) & ERRORS:
        if error not in words:
            fault(f"{page.name}: no error {error}")


ERRORS = set("EINVAL ERANGE ENOTSUP ENOMEM EDEADLK EBUSY EAGAIN EEXIST EIO".split())


def main():
    if not shutil.which("mandoc"):
        print("mandoc is not installed")
        return 77
    pages = sorted(MAN.glob("*.[1-9]"))
    if subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], check=False).returncode:
        fault("mandoc warns")
    headers = [p for p in sorted((SOURCE / "include/stook").glob("*.h")) if p.stem not in INNER]
    if len(headers) < 10:
        fault(f"only {len(headers)} headers found")
    for path in headers:
        check_header(path)
    exported = "\n".join(p.read_text() for p in SOURCE.glob("*/libstook*.sym"))
    names = set(re.findall(r"^ +(stook_[a-z_]+);", exported, re.M))
    functions = {n for n in names
                 if not re.fullmatch(r"stook_urcu_(memb|mb|qsbr|bp)", n)}
    manual = "\n".join(p.read_text() for p in pages)
    for name in sorted(functions):
        if not re.search(rf"^\.Nm {name}\b", manual, re.M):
            fault(f"no page names {name}")
    overview = (MAN / "libstook.3").read_text()
    for page in MAN.glob("*.3"):
        if page.stem != "libstook" and f"Xr {page.stem} 3" not in overview:
            fault(f"libstook.3 does not name {page.name}")
    commands = (MAN / "stook.1").read_text()
    for page in MAN.glob("stook-*.1"):
        if f"Xr {page.stem} 1" not in commands:
            fault(f"stook.1 does not name {page.name}")
    environment = words_of((MAN / "stook-env.7").read_text())
    for folder in ("src", "dropin", "cli"):
        for path in (SOURCE / folder).rglob("*.[chS]"):
            for name in re.findall(r'"(STOOK_[A-Z_]+)"', path.read_text()):
                if name not in environment:
                    fault(f"stook-env.7: no {name} ({path.name})")
    built = (MAN / "meson.build").read_text()
    for page in pages:
        if f"'{page.name}'" not in built and f"'{page.stem}'" not in built:
            fault(f"man/meson.build does not install {page.name}")
    for name, section in re.findall(r"^\.(?:It )?Xr ((?:lib)?stook[\w-]*) (\d)", manual, re.M):
        if not (MAN / f"{name}.{section}").exists():
            fault(f"no page {name}.{section}")
    return 1 if faults else 0


sys.exit(main())
