"""
bench/measure/slices.py - the one way in which micro rows are measured

Purpose: noise cannot spoil a row. All contenders run at the same time, each in a process of its
own, and take turns of two milliseconds: a slice (bench/harness/slices.h). A calibration loop runs
before and behind each slice; where the two differ by more than LOUD, something disturbed the slice,
and it is left out. Times are processor time, by the speed that the loops show. A block is SLICES
turns of one row, in processes started anew: where memory lies differs from process to process, and
what ran before leaves its traces in a heap. What a block says is the lower quartile of its slices.
Blocks are the rounds of a table: they stay neighbours, and interval.py compares them as it compares
rounds of whole programs. Blocks go on until the interval of the ratio to the best rival is narrower
than NARROW, or until MOST; where time is short, until six tell something.
Place: micro.py and scale.py name contenders, programs and rows.
"""

import json
import select
import subprocess
import time

from engine import Failed, allowed, as_table, checked, turn
from interval import PAIRS_ENOUGH, best_of, beside, standing

LOUD = 0.03
NARROW = 0.03
SLICES = 12
LEAST_QUIET = 3         # slices of a block, or the block says nothing
FEWEST, MOST = 10, 30   # blocks
ANSWER_SECONDS = 60


class Job:
    """A contender with its program. `name_of`: what a row of it is called in the table."""

    def __init__(self, contender, command, name_of=lambda row: row):
        self.contender, self.command, self.name_of = contender, command, name_of


class Server:
    """A program of bench/micro that waits for its turns."""

    def __init__(self, job):
        self.job, self.slices, self.runs = job, [], False
        try:
            self.process = subprocess.Popen(
                [*map(str, job.command), "serve=1"], env=job.contender.environment(), bufsize=0,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except OSError as why:
            raise Failed(f"{job.command[0]} is not built "
                         f"(`ninja bench-programs` in the build folder): {why.strerror}") from None
        try:
            checked(json.loads(self.answer()), job.contender)
        except (Failed, ValueError) as why:
            self.end()
            raise why if isinstance(why, Failed) else Failed("no greeting") from None

    def answer(self):
        """The next line. A server writes one at a time, and then waits."""
        until, line = time.monotonic() + allowed(ANSWER_SECONDS), b""
        while not line.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], until - time.monotonic())[0]:
                raise Failed("no answer in the time it has")
            part = self.process.stdout.read(4096)
            if not part:
                raise Failed("the program ended early")
            line += part
        return line.decode()

    def ask(self, words):
        try:
            self.process.stdin.write(words.encode() + b"\n")
        except OSError:
            raise Failed("the program ended early") from None
        return self.answer()

    def begin(self, row):
        self.slices, self.runs = [], self.ask(f"begin {row}").strip() == "ok"

    def slice(self):
        self.slices.append(tuple(map(float, self.ask("slice").split())))

    def end(self):
        self.process.kill()
        self.process.communicate()


def quiet(slices):
    """Of each slice that nothing disturbed: an operation's time in steps of the calibration
    loop."""
    return [ns / ((before + behind) / 2) for ns, before, behind in slices
            if max(before, behind) <= (1 + LOUD) * min(before, behind)]


def quantile(values, share):
    return sorted(values)[int(len(values) * share)]


def settled(table, ours, metric):
    """Whether the ratio to the best rival is known well enough."""
    mine = table.get(ours, {}).get(metric, [])
    rivals = {name: answers[metric] for name, answers in table.items()
              if name != ours and metric in answers}
    best = best_of(beside(mine, rivals))
    ratio = best and standing(mine, rivals[best])
    return bool(ratio) and ratio["high"] - ratio["low"] <= NARROW * ratio["median"]


class Run:
    """The blocks of one experiment. The first of @jobs is the one that the others are compared
    with. @fewest, @most: blocks."""

    def __init__(self, jobs, rows, say=print, fewest=FEWEST, most=MOST):
        self.jobs, self.rows, self.say = jobs, rows, say
        self.fewest, self.most = fewest, most
        self.steps, self.told = [], set()       # ns of the calibration loop; failures
        self.all = self.disturbed = 0           # slices

    def each(self, what, of):
        """what(x) of each; those that did not fail, which is told once."""
        alive = []
        for one in of:
            job = one if isinstance(one, Job) else one.job
            try:
                alive.append(what(one) or one)
            except (Failed, ValueError) as why:
                if (job.contender.name, str(why)) not in self.told:
                    self.told.add((job.contender.name, str(why)))
                    self.say(f"  {job.contender.name}: {why}")
        return alive

    def row(self, servers, row, n, found):
        """One row of a block, in steps, on servers that did nothing before it."""
        ready = [s for s in self.each(lambda s: s.begin(row), servers) if s.runs]
        for k in range(SLICES):
            self.each(Server.slice, turn(ready, n + k))
        for s in ready:
            kept, name = quiet(s.slices), s.job.name_of(row)
            self.all, self.disturbed = self.all + SLICES, self.disturbed + SLICES - len(kept)
            self.steps += [before for _, before, _ in s.slices]
            if len(kept) >= LEAST_QUIET:
                found[s.job.contender.name][name] = quantile(kept, 0.25)
            self.each(lambda s: found[s.job.contender.name].update(
                {f"{name} {key}": value for key, value in json.loads(s.ask("end")).items()}), [s])

    def block(self, rows, n):
        """{contender: {metric: value}}"""
        found = {job.contender.name: {} for job in self.jobs}
        for row in rows:
            servers = self.each(Server, self.jobs)
            try:
                self.row(servers, row, n, found)
            finally:
                for s in servers:
                    s.end()
        return found

    def table(self, is_late=lambda: False):
        """{contender: {metric: [a value for each block]}}, ns an operation."""
        answers = {job.contender.name: [] for job in self.jobs}
        rows, ours, times = self.rows, self.jobs[0], {j.name_of(r) for j in self.jobs
                                                      for r in self.rows}
        for n in range(self.most):
            for name, found in self.block(rows, n).items():
                answers[name].append(found)
            table = as_table(answers)
            if n + 1 >= self.fewest:
                rows = [r for r in rows if not settled(table, ours.contender.name, ours.name_of(r))]
            if not rows or n + 1 >= PAIRS_ENOUGH and is_late():
                break
        ns = quantile(self.steps, 0.1) if self.steps else 0
        return {name: {metric: [v if v is None or metric not in times else v * ns
                                for v in values[:ran(table, metric)]]
                       for metric, values in answers.items()} for name, answers in table.items()}


def ran(table, metric):
    """In how many blocks a row ran: one that was settled did not run in the last."""
    return max(n + 1 for answers in table.values() for n, v in enumerate(answers.get(metric, []))
               if v is not None)


def measure(setting, jobs, rows):
    """The table of an experiment; few blocks in a quick run."""
    fewest, most = (PAIRS_ENOUGH, FEWEST) if setting.few else (FEWEST, MOST)
    run = Run(jobs, rows, setting.say, fewest, most)
    table = run.table(setting.is_late)
    if run.all:
        setting.say(f"  {run.disturbed / run.all:.0%} of {run.all:,} slices were disturbed, and "
                    "left out")
    return table
