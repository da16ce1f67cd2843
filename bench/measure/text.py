"""
bench/measure/text.py - numbers and tables as text

Purpose: how a number looks, the rows of a table of measurements, and tables in columns on a
terminal.
Place: run.py prints with it; report.py and page.py put the same rows into Markdown and HTML.
"""

import os
import signal
import sys

from interval import has_interval, summary


def say(text=""):
    print(text, flush=True)


def end_quietly(program):
    """Runs it; where standard output is a pipe that its reader closed (`| head`), ends as SIGPIPE
    would end it. Output that cannot be written, and an interrupt (Ctrl-C), are told in a line."""
    try:
        status = program()
        sys.stdout.flush()
        return status
    except OSError as why:
        if why.filename is not None:
            raise
        # At its end Python flushes standard output once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(why, BrokenPipeError):
            return 128 + signal.SIGPIPE
        print(f"standard output: {why.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 128 + signal.SIGINT


def number(value):
    if value is None:
        return "-"
    if value == 0 or 0.01 <= abs(value) < 100:
        return f"{value:.2f}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def print_table(rows, columns):
    widths = [max(len(row[i]) for row in rows) for i in range(columns)]
    for row in rows:
        say("  " + "  ".join(cell.ljust(widths[i]) if i == 0 else cell.rjust(widths[i])
                             for i, cell in enumerate(row)).rstrip())


def measurement_text(values, rounds):
    s = summary(values)
    if s is None:
        return "-"
    text = number(s["median"])
    if s["n"] > 1 and s["high"] != s["low"]:
        text += f" ±{number((s['high'] - s['low']) / 2)}"
    return text + (f" ({s['n']} of {rounds})" if s["n"] < rounds else "")


def measurement_rows(table, shown):
    """A row for each contender (for each metric where there is one contender): median and half the
    interval's width; where rounds are missing, how many are there."""
    metrics = shown or sorted({m for answers in table.values() for m in answers if " " not in m})
    metrics = [m for m in metrics if any(m in answers for answers in table.values())]
    rounds = {m: max(len(answers.get(m, [])) for answers in table.values()) for m in metrics}
    rows = [[""] + metrics]
    for contender, answers in table.items():
        rows.append([contender] + [measurement_text(answers.get(metric, []), rounds[metric])
                                   for metric in metrics])
    return [list(row) for row in zip(*rows)] if len(table) == 1 else rows


def print_measurements(table, shown):
    rows = measurement_rows(table, shown)
    print_table(rows, len(rows[0]))


def interval_text(s, number=number):
    """What stands below "95 %": the interval, or why there is none; where rounds are missing, how
    many are there."""
    n, rounds = s["n"], s.get("rounds", s["n"])
    runs = f"{n} of {rounds} runs" if n < rounds else "one run" if n == 1 else f"{n} runs"
    if not has_interval(s):
        return runs
    return f"{number(s['low'])} .. {number(s['high'])}" + (f" ({runs})" if n < rounds else "")
