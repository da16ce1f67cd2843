"""
bench/pages/compare.py - what changed between two sessions, beyond noise

Purpose: `stook bench --compare`. What is compared is Stook's ratio to a rival of the same session,
where there is one: the speed of the machine cancels out. Something changed if both have at least
six rounds and their 95 % intervals have no point in common. Where there is no rival, values
themselves are compared, and only on the same processor.
Place: run.py calls it with two result files, or with one and what it has just measured.
"""

from contenders import OURS, PLAIN
from interval import PAIRS_ENOUGH, are_apart, has_interval, ratios, summary
from text import number

# What is Stook's in an experiment: all other contenders are rivals.
OURS_TOO = ("inline", "inline-static", "inline-unloadable", "cache", "sheaves", "sheaves-32",
            "after", "free_rcu", "stook-cache", "stook-heap", "maple", "maple-external")


def is_ours(name):
    return name == OURS or name in OURS_TOO


def reference_of(old, new):
    """The rival that both sessions have: glibc, or else the first by name; None if there is
    none."""
    both = sorted(n for n in old if n in new and not is_ours(n))
    return PLAIN if PLAIN in both else both[0] if both else None


def measured(table, contender, metric, reference):
    """Summary of the ratios to the reference, or of the values; None if there is nothing."""
    values = table.get(contender, {}).get(metric, [])
    if reference is None:
        return summary(values)
    return summary(ratios(values, table[reference].get(metric, [])))


class Change:
    """One measurement of Stook's in both sessions. `too_few`: rounds to say anything."""

    def __init__(self, experiment, contender, metric, against, old, new):
        self.experiment, self.contender, self.metric = experiment, contender, metric
        self.against, self.old, self.new = against, old, new
        self.too_few = min(old["n"], new["n"]) < PAIRS_ENOUGH
        self.apart = are_apart(old, new)

    def percent(self):
        return 100 * (self.new["median"] / self.old["median"] - 1) if self.old["median"] else 0

    def row(self):
        def text(s):
            interval = f" ({number(s['low'])} .. {number(s['high'])})" if has_interval(s) else ""
            return number(s["median"]) + interval

        return [f"{self.experiment} {self.metric}", self.contender,
                f"/ {self.against}" if self.against else "itself", text(self.old), text(self.new),
                f"{self.percent():+.1f} %"]


def changes(old, new):
    """Every measurement that both result files have, as Change; values without a rival only where
    the processor is the same."""
    same = old["machine"]["processor"] == new["machine"]["processor"]
    for experiment, after in new["results"].items():
        before = old["results"].get(experiment, {})
        for contender in after:
            if not is_ours(contender) or contender not in before:
                continue
            reference = reference_of(before, after)
            if reference is None and not same:
                continue
            for metric in after[contender]:
                was = measured(before, contender, metric, reference)
                now = measured(after, contender, metric, reference)
                if was and now:
                    yield Change(experiment, contender, metric, reference, was, now)


HEAD = ["measurement", "Stook's", "against", "before (95 %)", "now (95 %)", "change"]


def print_comparison(old, new, say, print_table, everything=False):
    """Returns how many measurements changed beyond noise."""
    for name, run in (("before", old), ("now", new)):
        m = run["machine"]
        say(f"{name}: commit {m['commit']}, {m['processor']}, Linux {m['linux']}, {m['date']}, "
            f"{run['pairs']} rounds")
    if old["machine"]["processor"] != new["machine"]["processor"]:
        say("different processors: only ratios to a rival of the same session are compared")
    found = list(changes(old, new))
    apart = [c for c in found if c.apart]
    shown = found if everything else apart
    say()
    if shown:
        print_table([HEAD] + [c.row() for c in
                              sorted(shown, key=lambda c: -abs(c.percent()))], len(HEAD))
        say()
    few = sum(c.too_few for c in found)
    say(f"{len(apart)} of {len(found)} measurements changed beyond noise" +
        (f"; {few} have fewer than {PAIRS_ENOUGH} rounds, which can show no difference" if few
         else "") + ".")
    return len(apart)
