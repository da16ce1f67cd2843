"""
bench/measure/engine.py - runs contenders in turn

Purpose: the one place that decides in which order contenders run, what of a program's answer
counts, and how far a measurement has come. Rows of calls are measured by slices.py. A table is
{contender: {metric: [a value for each round]}}. A contender that failed in a round has None there,
so that the rounds of two contenders stay neighbours.
Place: what setting.py names, patterns.py and policies.py measure with it.
interval.py compares what it returns.
"""

import json
import os
import signal
import subprocess
import sys
import time

PROGRAM_SECONDS = 300
# Threads of one real-time priority that yield to each other leave a CPU to nothing else.
REALTIME_THREADS_PER_CPU = 8
NO_TIME = "no time was left"
last_moment = None      # of time.monotonic(): no program runs longer


class Failed(Exception):
    """A program gave no answer, and why. `status`: its exit status, if it ended with one."""

    def __init__(self, why, status=None):
        super().__init__(why)
        self.status = status


def end_all_at(moment):
    """No program that is started from here on runs beyond @moment. None: all may."""
    global last_moment
    last_moment = moment


def allowed(seconds):
    """How long a program may run that has @seconds otherwise. Failed: there is no time left."""
    if last_moment is None:
        return seconds
    left = last_moment - time.monotonic()
    if left <= 0:
        raise Failed(NO_TIME)
    return min(seconds, left)


def is_crowded(command):
    """Whether the command asks for so many threads that it must not have a real-time priority."""
    asked = [word.partition("=")[2] for word in map(str, command) if word.startswith("threads=")]
    return any(n.isdigit() and int(n) > REALTIME_THREADS_PER_CPU * os.cpu_count() for n in asked)


def beginning(command, before_exec):
    """What a program's process does before it executes @command."""
    if os.sched_getscheduler(0) == os.SCHED_OTHER or not is_crowded(command):
        return before_exec

    def begin():
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        if before_exec:
            before_exec()
    return begin


def run(command, contender, before_exec=None, seconds=PROGRAM_SECONDS):
    """Runs one program; returns its standard output. Failed if it ends otherwise than with status
    0."""
    seconds = allowed(seconds)
    try:
        done = subprocess.run([str(c) for c in command], env=contender.environment(),
                              capture_output=True, text=True, timeout=seconds,
                              preexec_fn=beginning(command, before_exec))
    except subprocess.TimeoutExpired:
        raise Failed(f"no answer after {seconds:.0f} s") from None
    except FileNotFoundError:
        raise Failed(f"{command[0]} is not built "
                     "(`ninja bench-programs` in the build folder)") from None
    except OSError as why:
        raise Failed(str(why)) from None
    if done.returncode < 0:
        raise Failed("ended by " + signal.Signals(-done.returncode).name)
    if done.returncode:
        raise Failed(f"exit status {done.returncode}: {done.stderr.strip()[-200:]}",
                     done.returncode)
    return done.stdout


def checked(answer, contender):
    """The answer, if its malloc was the contender's."""
    source = answer.pop("malloc_from", None)
    if source is not None and not contender.is_behind(source):
        raise Failed(f"malloc came from {source}")
    return answer


def macro(command, contender, before_exec=None):
    """The answer of a program of one figure (bench/harness)."""
    text = run(command, contender, before_exec)
    try:
        return checked(json.loads(text), contender)
    except ValueError:
        raise Failed("no JSON in the answer: " + text[:100]) from None


def turn(contenders, n):
    """The order of round n: A B C, then C B A, so that none is always the later one."""
    return contenders if n % 2 == 0 else list(reversed(contenders))


class Progress:
    """A line on standard error: written over on a terminal; elsewhere a line in `quiet` steps."""

    def __init__(self, what, steps, stream=None, quiet=40):
        self.what, self.steps, self.done = what, steps, 0
        self.start, self.stream = time.monotonic(), stream or sys.stderr
        self.terminal, self.every = self.stream.isatty(), max(steps // quiet, 1) if quiet else 0

    def step(self, text):
        """Tells that the next step begins."""
        spent = time.monotonic() - self.start
        left = f", about {spent / self.done * (self.steps - self.done):.0f} s left" \
            if self.done else ""
        line = f"{self.what}: {self.done}/{self.steps} runs, {spent:.0f} s{left}: {text}"
        if self.terminal:
            self.stream.write(f"\r\033[K{line[:110]}")
            self.stream.flush()
        elif self.every and self.done and self.done % self.every == 0:
            print(line, file=self.stream, flush=True)
        self.done += 1

    def clear(self):
        """Takes the line off a terminal."""
        if self.terminal:
            self.stream.write("\r\033[K")
            self.stream.flush()


def as_table(answers):
    """{contender: {metric: [value or None]}} of {contender: [{metric: value}]}; without contenders
    that gave nothing."""
    names = {c: sorted({m for answer in of for m in answer}) for c, of in answers.items()}
    return {c: {m: [answer.get(m) for answer in of] for m in names[c]}
            for c, of in answers.items() if names[c]}


def in_turn(contenders, count, once, say=print, progress=None, is_late=lambda: False):
    """once(contender) -> {metric: value}, in `count` rounds; fewer if is_late() says so between two
    of them. What failed is told once each."""
    answers, told = {c.name: [] for c in contenders}, set()
    for n in range(count):
        if n and is_late():
            break
        for contender in turn(contenders, n):
            if progress:
                progress.step(f"round {n + 1} of {count}, {contender.name}")
            try:
                answer = once(contender)
            except Failed as why:
                answer = {}
                if (contender.name, str(why)) not in told:
                    told.add((contender.name, str(why)))
                    if progress:
                        progress.clear()
                    say(f"  {contender.name}: {why}")
            answers[contender.name].append(answer)
    if progress:
        progress.clear()
    return as_table(answers)
