#!/usr/bin/env python3
"""
bench/record/record.py - records what programs ask of malloc, for bench/data

Purpose: runs real programs on real input (this repository) with libstook-record.so preloaded, and
makes two files of each: NAME.tsv, how often each size was allocated and how many objects of it were
alive when most bytes were; NAME.events.xz, the first events in their order (record.c has the
format), as many as fit in EVENTS_BYTES.
Place: run by hand when the data are to be made anew; never by a test. README.md in bench/data says
with which versions the present ones were made.

Use: record.py [--into bench/data] [--list] LIBRARY [NAME ...]    LIBRARY: libstook-record.so
"""

import argparse
import collections
import lzma
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EVENTS_BYTES = 240 << 10        # compressed
ALLOCATE, FREE, RESIZE, ALIGNED = range(4)

SQL = """
create table line(file text, number int, text text);
create table word(word text primary key, count int);
.mode tabs
.import {lines} line
create index by_text on line(text);
create index by_file on line(file, number);
insert into word select substr(text, 1, 12), count(*) from line group by 1;
update line set text = text || ' ' where number % 3 = 0;
delete from line where number % 5 = 0;
select count(*), sum(length(text)) from line;
select file, max(number) from line group by file order by 2 desc limit 5;
"""

PYTHON = """
import ast, collections, json, pathlib, re, sys
words = collections.Counter()
trees = {}
for path in sorted(pathlib.Path(sys.argv[1]).rglob('*.[chp]*')):
    if not path.is_file() or path.stat().st_size > 100000:
        continue
    text = path.read_text(errors='replace')
    words.update(re.findall(r'[A-Za-z_]+', text))
    if path.suffix == '.py':
        trees[str(path)] = [type(n).__name__ for n in ast.walk(ast.parse(text))]
text = json.dumps({'words': words.most_common(), 'trees': trees})
again = json.loads(text)
print(len(again['words']), len(again['trees']))
"""

RUBY = """
lines = Hash.new { |h, k| h[k] = [] }
words = Hash.new(0)
Dir.glob(ARGV[0] + '/**/*.{c,h,py}').sort.first(150).each do |path|
  File.foreach(path, encoding: 'UTF-8', invalid: :replace).with_index do |line, i|
    line = line.scrub
    lines[path] << line.chomp
    line.scan(/[A-Za-z_]+/) { |w| words[w] += 1 }
  end
end
top = words.sort_by { |w, n| [-n, w] }.first(1000)
puts lines.sum { |_, l| l.size }, top.map { |w, n| "#{w}:#{n}" }.join(',').size
"""


def sources():
    return sorted(p for p in (ROOT / "src").rglob("*.[ch]"))


def write_lines(path):
    with open(path, "w") as out:
        for source in sources():
            for number, line in enumerate(source.read_text().splitlines()):
                text = line.replace("\t", " ").replace('"', "'")
                out.write(f"{source.relative_to(ROOT)}\t{number}\t{text}\n")


def gcc(run, folder):
    run(["gcc", "-O2", "-g", "-c", "-D_GNU_SOURCE", "-mcx16", f"-I{ROOT}/src", f"-I{ROOT}/include",
         ROOT / "src/slot/slot_bulk.c", "-o", folder / "out.o"])


def git(run, folder):
    run(["git", "-C", ROOT, "log", "-p", "-40", "--stat", "-M"])


def sqlite(run, folder):
    write_lines(folder / "lines.tsv")
    (folder / "script.sql").write_text(SQL.format(lines=folder / "lines.tsv"))
    run(["sqlite3", folder / "base.db", f".read {folder / 'script.sql'}"])


def python3(run, folder):
    run([sys.executable, "-I", "-c", PYTHON, ROOT / "src"])


def python3_malloc(run, folder):
    """With each of Python's small objects from malloc, too."""
    run(["env", "PYTHONMALLOC=malloc", sys.executable, "-s", "-c", PYTHON, ROOT / "src" / "slab"])


def ruby(run, folder):
    run(["ruby", "-e", RUBY, ROOT / "src"])


def redis(run, folder):
    write_lines(folder / "lines.tsv")
    socket = folder / "socket"
    server = run(["redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
                  "--dir", folder], wait=False)
    while not socket.exists():
        if server.poll() is not None:
            raise SystemExit("redis: the server ended")
        time.sleep(0.05)
    commands = []
    for i, line in enumerate((folder / "lines.tsv").read_text().splitlines()):
        file, number, text = line.split("\t")
        asked = [["SET", f"line:{i}", text or "-"], ["RPUSH", f"file:{file}", text[:60] or "-"],
                 ["HSET", f"hash:{i // 50}", number, text[:30] or "-"]]
        if i % 3 == 0:
            asked.append(["DEL", f"line:{i - 700}"])
        for command in asked:
            commands.append(f"*{len(command)}\r\n")
            commands += [f"${len(part.encode())}\r\n{part}\r\n" for part in command]
    subprocess.run(["redis-cli", "-s", str(socket), "--pipe"], input="".join(commands).encode(),
                   check=True, stdout=subprocess.DEVNULL, timeout=60)
    server.send_signal(signal.SIGTERM)
    server.wait()


PROGRAMS = {f.__name__: f for f in (gcc, git, sqlite, python3, python3_malloc, ruby, redis)}


def numbers(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def survey(data):
    """(allocations by size, objects alive by size at the peak, bytes there, its event, events)."""
    allocated, alive, at_peak = collections.Counter(), collections.Counter(), {}
    sizes, live, peak, peak_event, event = [], 0, 0, 0, 0
    stream = numbers(data)
    changes = []
    for first in stream:
        kind, value = first & 3, first >> 2
        if kind == FREE:
            number = len(sizes) - value
            changes.append((-1, sizes[number]))
            live -= sizes[number]
        else:
            if kind == RESIZE:
                number = len(sizes) - next(stream)
                changes.append((-1, sizes[number]))
                live += value - sizes[number]
                sizes[number] = value
            else:
                if kind == ALIGNED:
                    next(stream)
                sizes.append(value)
                live += value
            allocated[value] += 1
            changes.append((1, value))
        event += 1
        if live > peak:
            peak, peak_event = live, event
            for step, size in changes:
                alive[size] += step
            changes.clear()
    at_peak = {size: n for size, n in alive.items() if n}
    return allocated, at_peak, peak, peak_event, event


def cut_to(data, limit):
    """The longest beginning, of whole events, whose compressed size is within the limit."""
    low, high, best = 0, len(data), b""
    pack = lambda n: lzma.compress(data[:n], preset=9 | lzma.PRESET_EXTREME)
    whole = pack(high)
    if len(whole) <= limit:
        return data, whole
    for _ in range(8):
        middle = (low + high) // 2
        packed = pack(middle)
        if len(packed) <= limit:
            low, best = middle, packed
        else:
            high = middle
    end = ends_of_event(data, low)
    return data[:end], pack(end)


def ends_of_event(data, limit):
    """The last end of an event at or before the limit."""
    at = last = 0
    while at < limit:
        kind = data[at] & 3
        for _ in range(2 if kind >= RESIZE else 1):
            while at < len(data) and data[at] > 127:
                at += 1
            at += 1
        if at <= limit:
            last = at
    return last


def record(name, library, into, say):
    binaries = {"sqlite": "sqlite3", "redis": "redis-server", "python3_malloc": "python3"}
    if not shutil.which(binaries.get(name, name)):
        say(f"{name}: not installed")
        return
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)

        def run(command, wait=True):
            env = dict(os.environ, LD_PRELOAD=str(library), STOOK_RECORD=str(folder / "rec"),
                       LC_ALL="C.UTF-8")
            process = subprocess.Popen([str(c) for c in command], env=env,
                                       stdout=subprocess.DEVNULL)
            if wait and process.wait():
                raise SystemExit(f"{name}: `{command[0]}` failed")
            return process

        PROGRAMS[name](run, folder)
        # Of a program with children (gcc's driver) the process that allocated most.
        data = max(folder.glob("rec.*"), key=lambda p: p.stat().st_size).read_bytes()
    allocated, alive, peak, peak_event, events = survey(data)
    with open(into / f"{name}.tsv", "w") as out:
        out.write(f"# {name}: {sum(allocated.values())} allocations, "
                  f"{peak} bytes alive at the peak\n# size\tallocated\talive at the peak\n")
        for size in sorted(allocated):
            out.write(f"{size}\t{allocated[size]}\t{alive.get(size, 0)}\n")
    part, packed = cut_to(data, EVENTS_BYTES)
    (into / f"{name}.events.xz").write_bytes(packed)
    kept = sum(1 for _ in events_of(part))
    say(f"{name}: {events} events, peak of {peak / 1024:.0f} KiB at event {peak_event}; "
        f"kept {kept} events in {len(packed)} bytes")


def events_of(data):
    stream = numbers(data)
    for first in stream:
        yield first
        if first & 3 >= RESIZE:
            next(stream)


def main():
    arguments = argparse.ArgumentParser(description="Record what programs ask of malloc.")
    arguments.add_argument("--into", type=pathlib.Path, default=ROOT / "bench" / "data")
    arguments.add_argument("--list", action="store_true", help="name the programs, and end")
    arguments.add_argument("library", type=pathlib.Path, nargs="?", help="libstook-record.so")
    arguments.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS) + "; all")
    asked = arguments.parse_args()
    if asked.list or not asked.library:
        print("\n".join(PROGRAMS))
        return
    asked.into.mkdir(parents=True, exist_ok=True)
    for name in asked.names or PROGRAMS:
        record(name, asked.library.resolve(), asked.into.resolve(), print)


if __name__ == "__main__":
    main()
