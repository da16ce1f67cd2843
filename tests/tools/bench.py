#!/usr/bin/env python3
"""
Proves what `stook bench` says of measurements: intervals and verdicts on known samples, the order
of turns, shares of time, what a result file holds, what --compare calls a change, and that a page
parses, loads nothing and has every workload. Nothing is measured here.
"""

import html.parser
import io
import itertools
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock
import xml.etree.ElementTree

sys.dont_write_bytecode = True
BENCH = pathlib.Path(os.environ["STOOK_SOURCE"]) / "bench"
sys.path.insert(0, str(BENCH))
sys.path.insert(0, str(BENCH / "peers"))

import build as peer_build                                  # noqa: E402
import compare                                              # noqa: E402
import contenders                                           # noqa: E402
import engine                                               # noqa: E402
import experiments                                          # noqa: E402
import figures                                              # noqa: E402
import interval                                             # noqa: E402
import machine                                              # noqa: E402
import page                                                 # noqa: E402
import promises                                             # noqa: E402
import report                                               # noqa: E402
import run                                                  # noqa: E402
import scale                                                # noqa: E402
import suites                                               # noqa: E402
import tables                                               # noqa: E402
import workloads                                            # noqa: E402

ABOUT = {"processor": "a <processor>", "cpus": 2, "kernel": "6", "libc": "glibc 2", "load": 0.1,
         "load_after": 0.1, "commit": "0123456789ab", "date": "2026-01-01T00:00:00+00:00",
         "compiler": "gcc 12", "backend": "rseq"}


def times(first, n=8, step=0.01):
    """n values around `first`."""
    return [first * (1 + step * (i % 3)) for i in range(n)]


def session(ours=1.0, theirs=2.0, n=8, **about):
    """Results with a workload of each kind: ours takes so much, glibc so much."""
    table = {"stook": {"lifo/1 ns": times(ours, n), "lifo/1 peak_KiB": times(100 * ours, n)},
             "glibc": {"lifo/1 ns": times(theirs, n), "lifo/1 peak_KiB": times(50, n)},
             "mimalloc": {"lifo/1 ns": times(theirs * 2, n), "lifo/1 peak_KiB": times(900, n)}}
    threads = {name: {f"{n_threads} threads {metric}": times(cost * n_threads, n)
                      for n_threads in (1, 64, 2000) for metric in ("ns", "peak_KiB")}
               for name, cost in (("stook", ours), ("glibc", theirs))}
    results = {"pattern_rows": table, "oversubscribed": threads,
               "table12": {"before": {f"{s} {o}": times(4, n) for s, o in tables.DROPS_12},
                           "after": {f"{s} {o}": times(1, n) for s, o in tables.DROPS_12}},
               "prodcons": {"stook": {"64 objects_per_cpu_us": times(9, n)},
                            "glibc": {"64 objects_per_cpu_us": times(3, n)}}}
    return {"format": 1, "machine": {**ABOUT, **about}, "pairs": n, "quick": False,
            "command": "stook bench", "left_out": {"snmalloc": "there is no cargo"},
            "figures": figures.judge(results), "results": results}


def chance(n, k):
    """Of n tosses, less than k fall to one side, or to the other."""
    return 2 * sum(math.comb(n, i) for i in range(k)) / 2 ** n


class Statistics(unittest.TestCase):
    def test_bounds_are_order_statistics_of_95_percent(self):
        for n, k in ((6, 0), (8, 0), (9, 1), (10, 1), (12, 2), (30, 9), (100, 39)):
            self.assertEqual(interval.bounds(range(n)), (k, n - 1 - k), n)
            self.assertLessEqual(chance(n, k + 1), 0.05)
            self.assertGreater(chance(n, k + 2), 0.05)

    def test_below_six_they_are_the_ends(self):
        for n in range(1, 6):
            self.assertEqual(interval.bounds(range(n)), (0, n - 1))

    def test_bounds_enclose_the_median_of_every_order(self):
        for values in itertools.permutations([1, 2, 3, 10, 11, 50]):
            self.assertEqual(interval.bounds(values), (1, 50))

    def test_ratios_are_of_neighbours(self):
        self.assertEqual(interval.ratios([2, None, 9, 8], [1, 5, None, 4]), [2, 2])
        self.assertEqual(interval.ratios([1], [0]), [])
        self.assertIsNone(interval.standing([None], [1]))

    def test_a_difference_needs_six_pairs(self):
        ours = [1.0, 1.1, 1.05, 1.02, 1.07, 1.01]
        theirs = [2.0] * 6
        self.assertEqual(interval.standing(ours, theirs)["says"], interval.LESS)
        self.assertEqual(interval.standing(theirs, ours)["says"], interval.MORE)
        self.assertEqual(interval.standing(ours[:5], theirs[:5])["says"], interval.NO_DIFFERENCE)

    def test_a_difference_needs_an_interval_without_one(self):
        self.assertEqual(interval.standing([1, 1, 1, 1, 1, 3], [2] * 6)["says"],
                         interval.NO_DIFFERENCE)
        # With twelve, two may fall to the other side.
        self.assertEqual(interval.standing([1] * 10 + [3] * 2, [2] * 12)["says"], interval.LESS)
        self.assertEqual(interval.standing([1] * 9 + [3] * 3, [2] * 12)["says"],
                         interval.NO_DIFFERENCE)
        self.assertEqual(interval.standing([2] * 8, [2] * 8)["says"], interval.NO_DIFFERENCE)

    def test_it_agrees_with_the_sign_test(self):
        for n in range(6, 40):
            for less in range(n + 1):
                says = interval.standing([1] * less + [3] * (n - less), [2] * n)["says"]
                rare = min(less, n - less)
                self.assertEqual(says != interval.NO_DIFFERENCE, chance(n, rare + 1) <= 0.05,
                                 (n, less))

    def test_a_figure_of_few_pairs_is_unclear(self):
        line = figures.Line("x", "e", "m", 1.0, 0.5, figures.others)
        for n, verdict in ((5, "unclear"), (6, "pass")):
            judged = line.judge({"e": {"stook": {"m": [1] * n}, "glibc": {"m": [3] * n}}})
            self.assertEqual((judged["verdict"], judged["goal_verdict"]), (verdict, verdict))
        self.assertEqual(line.judge({"e": {"stook": {"m": [3] * 6}, "glibc": {"m": [2] * 6}}})
                         ["verdict"], "miss")

    def test_a_cell_of_few_pairs_is_unclear(self):
        for n, verdict in ((5, "unclear"), (6, "reached")):
            cell = tables.Cell({"a": {"m": [1] * n}, "b": {"m": [2] * n}}, "a", "b", "m")
            self.assertEqual(cell.verdict(40), verdict)


class Engine(unittest.TestCase):
    def contenders(self):
        return [contenders.Contender(name) for name in "abc"]

    def test_turns_go_forth_and_back(self):
        ran = []
        engine.in_turn(self.contenders(), 3, lambda c: ran.append(c.name) or {})
        self.assertEqual("".join(ran), "abccbaabc")

    def test_what_failed_keeps_its_place(self):
        said, rounds = [], itertools.count()

        def once(c):
            if c.name == "b" and next(rounds) == 1:
                raise engine.Failed("reason")
            return {"m": 7}

        table = engine.in_turn(self.contenders(), 3, once, said.append)
        self.assertEqual(table["b"], {"m": [7, None, 7]})
        self.assertEqual(table["a"], {"m": [7, 7, 7]})
        self.assertEqual(said, ["  b: reason"])

    def test_late_rounds_are_left_out_but_the_first(self):
        table = engine.in_turn(self.contenders(), 9, lambda c: {"m": 1}, is_late=lambda: True)
        self.assertEqual(table["c"], {"m": [1]})

    def test_progress_says_how_far_it_is(self):
        stream = io.StringIO()
        progress = engine.Progress("what", 4, stream, quiet=4)
        for n in range(4):
            progress.step(f"step {n}")
        self.assertRegex(stream.getvalue(), r"what: 1/4 runs, \d+ s, about \d+ s left: step 1")

    def test_a_program_that_fails_is_no_answer(self):
        plain = contenders.Contender("glibc")
        for command, why in ((["false"], "exit status 1"), (["/nonexistent"], "not built"),
                             (["sh", "-c", "kill -9 $$"], "SIGKILL"), (["echo", "x"], "no JSON")):
            with self.assertRaisesRegex(engine.Failed, why):
                engine.macro(command, plain)
        self.assertEqual(engine.macro(["echo", '{"a": 1}'], plain), {"a": 1})

    def test_a_crowd_of_threads_is_found(self):
        many = 1 + engine.REALTIME_THREADS_PER_CPU * os.cpu_count()
        self.assertTrue(engine.is_crowded(["p", f"threads={many}"]))
        for command in (["p"], ["p", f"threads={many - 1}"], ["p", "threads=x"],
                        ["p", f"objects={many}"]):
            self.assertFalse(engine.is_crowded(command))

    def test_a_crowd_of_threads_has_no_realtime_priority(self):
        crowd = ["sh", "-c", "cut -d' ' -f41 /proc/self/stat", f"threads={1 << 20}"]
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except PermissionError:
            self.skipTest("no right to a real-time priority")
        try:
            plain = contenders.Contender("glibc")
            self.assertEqual(engine.run(crowd, plain).strip(), "0")
            self.assertEqual(engine.run(crowd[:-1], plain).strip(), str(os.SCHED_FIFO))
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    def test_time_is_shared_out(self):
        clock = itertools.count(0, 10)
        found = list(suites.ends(["rcu", "rcu", "rcu"], 90, lambda: next(clock)))
        self.assertEqual([name for name, _ in found], ["rcu"] * 3)
        self.assertTrue(all(a[1] < b[1] for a, b in zip(found, found[1:])))
        self.assertEqual(list(suites.ends(["rcu"], None)), [("rcu", None)])

    def test_programs_end_with_the_time_there_is(self):
        plain = contenders.Contender("glibc")
        try:
            engine.end_all_at(time.monotonic() + 0.2)
            with self.assertRaisesRegex(engine.Failed, "no answer after"):
                engine.run(["sleep", "600"], plain)
            with self.assertRaisesRegex(engine.Failed, engine.NO_TIME):
                engine.run(["true"], plain)
            process = subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE)
            with self.assertRaises(engine.Failed):
                experiments.answer_of(process)
            self.assertEqual(process.returncode, -signal.SIGKILL)
        finally:
            engine.end_all_at(None)
        self.assertEqual(engine.run(["echo", "x"], plain), "x\n")

    def test_a_run_says_how_long_it_takes(self):
        for quick, short, seconds, found in ((True, False, None, suites.QUICK_SECONDS),
                                             (False, True, None, suites.SHORT_SECONDS),
                                             (False, True, 70, 70), (False, False, None, None)):
            asked = types.SimpleNamespace(quick=quick, short=short, seconds=seconds)
            self.assertEqual(run.seconds_of(asked), found)
            self.assertIn(f"{found} s at most" if found else "as long as", run.duration(asked))
        self.assertLess(suites.QUICK_SECONDS, 120)

    def test_cells_stop_when_time_is_over(self):
        setting = experiments.Setting(None, None, 2, True, None, {}, lambda text: None)
        setting.doing, setting.end = "1 of 1, experiment", 0
        table = experiments.cells(setting, self.contenders()[:1], 2,
                                  {"x": lambda c: {"m": 1}, "y": lambda c: {"m": 1}})
        self.assertEqual(table, {"a": {"x m": [1]}})
        self.assertEqual(setting.left_out, {"experiment y": "no time was left"})


class Suites(unittest.TestCase):
    def test_every_experiment_is_in_one_suite(self):
        listed = [name for names in suites.SUITES.values() for name in names]
        self.assertEqual(sorted(listed), sorted(suites.ALL))
        self.assertTrue(all(suites.ALL[name].__doc__ for name in listed))

    def test_quick_takes_some_of_each_suite(self):
        self.assertEqual({suites.suite_of(name) for name in suites.QUICK}, set(suites.SUITES))
        self.assertEqual(suites.chosen([], [], True), [n for names in suites.SUITES.values()
                                                       for n in names if n in suites.QUICK])

    def test_choices(self):
        self.assertEqual(suites.chosen(["tables"], ["table12", "rcu"], False), ["table12"])
        for wrong in ((["x"], []), ([], ["x"]), (["tables"], ["rcu"])):
            with self.assertRaises(ValueError):
                suites.chosen(*wrong, False)

    def test_each_experiment_is_kept(self):
        setting, kept = experiments.Setting(None, None, 1, True, None, {}, lambda text: None), []
        with unittest.mock.patch.object(run, "measure_one", lambda setting, name: {name: 1}), \
                unittest.mock.patch.object(run, "say"):
            run.measure(setting, ["rcu", "table12"], None, lambda so_far: kept.append([*so_far]))
        self.assertEqual(kept, [["rcu"], ["rcu", "table12"]])

    def test_peers_have_recipes(self):
        for name in peer_build.PEERS:
            self.assertTrue((BENCH / "peers" / name / "Cargo.toml").exists(), name)

    def test_rules_name_experiments(self):
        for rule in workloads.RULES:
            self.assertIn(rule.experiment, suites.ALL)
            re.compile(rule.time or rule.memory)


class Workloads(unittest.TestCase):
    def test_the_best_peer_is_the_rival(self):
        found = {w.name(): w for w in workloads.all_of(session())}
        row = found["pattern_rows lifo/1"]
        self.assertEqual((row.time.rival, row.time.says), ("glibc", workloads.AHEAD))
        self.assertEqual((row.memory.rival, row.memory.says), ("glibc", workloads.BEHIND))
        more_is_better = found["prodcons 64"]
        self.assertEqual(more_is_better.time.says, workloads.AHEAD)
        self.assertLess(more_is_better.time.cost(), 1)
        low, high = more_is_better.time.cost_bounds()
        self.assertLessEqual(low, high)

    def test_a_rate_may_have_been_nothing(self):
        """Where more is better, a round of 0 measured nothing, and is left out."""
        results = session(n=6)
        rates = results["results"]["prodcons"]["stook"]["64 objects_per_cpu_us"]
        rates[0] = rates[1] = 0
        found = {w.name(): w for w in workloads.all_of(results)}["prodcons 64"].time
        self.assertEqual(found.ratio["n"], 4)
        self.assertNotIn("inf |", report.markdown([("one", results)]))
        self.assertIn("prodcons 64", page.html([("one", results), ("two", results)]))

    def test_few_rounds_say_nothing(self):
        self.assertEqual({w.time.says for w in workloads.all_of(session(n=5))},
                         {interval.NO_DIFFERENCE})

    def test_the_sum(self):
        said = workloads.sentence(workloads.all_of(session()), "time", "Time")
        self.assertIn("ahead of the best peer in 5 of 5 workloads, behind in 0", said)

    def test_growth(self):
        table = session()["results"]["oversubscribed"]
        found = scale.points(table, "stook", "ns")
        self.assertEqual([x for x, _ in found], [1, 64, 2000])
        self.assertAlmostEqual(scale.slope(found), 1, places=6)
        self.assertIsNone(scale.slope(found[:1]))


    def test_growth_of_steps(self):
        """In `slots`, each step is a contender."""
        table = {f"{n} slots": {"ns": times(3), "create_us": times(n)} for n in (2, 16, 4096)}
        results = {**session(), "results": {"slots": table}}
        rows = scale.growth_rows(results)
        self.assertEqual([(row[1], row[2], row[5]) for row in rows[1:]],
                         [("ns", "2 to 4,096 slots", "+0.00"),
                          ("create_us", "2 to 4,096 slots", "+1.00")])

    def test_growth_names_peers(self):
        rows = scale.growth_rows(session())
        self.assertEqual([row[-1] for row in rows[1:]], ["glibc +1.00"] * 2)


class Promises(unittest.TestCase):
    def line(self, results, text):
        found = [row for row in promises.rows([("x", {"results": results})]) if row[0] == text]
        self.assertEqual(len(found), 1)
        return dict(zip(("promise", "verdict", "off", "measured", "interval", "least", "goal",
                         "goal_verdict", "count", "worst", "rival"), found[0]))

    def test_the_worst_counts(self):
        results = {"table12": {"before": {}, "after": {}}}
        for cell in tables.DROPS_12:
            results["table12"]["before"]["%d %s" % cell] = [10] * 6
            results["table12"]["after"]["%d %s" % cell] = [1] * 6
        name = "table 1.2, 12 cells: after / before"
        line = self.line(results, name)
        self.assertEqual((line["count"], line["verdict"]), ("12, 12 pass", "pass"))
        self.assertRegex(line["off"], r"^-\d+ %$")
        results["table12"]["after"]["64 random"] = [9] * 6
        line = self.line(results, name)
        self.assertEqual((line["count"], line["worst"], line["verdict"]),
                         ("12, 11 pass", "64 B random", "miss"))
        results["table12"]["after"]["64 random"] = [1] * 5 + [None]
        self.assertEqual(self.line(results, name)["verdict"], "unclear")

    def test_rows_of_the_field_are_judged(self):
        table = {name: {f"larson/{n} ns": [cost] * 6 for n in (1, 2)}
                 for name, cost in (("stook", 1.02), ("glibc", 1.0))}
        table["stook"]["grow/1 ns"], table["glibc"]["grow/1 ns"] = [5] * 6, [1] * 6
        line = self.line({"pattern_rows": table},
                         "the field's patterns, time / best peer of each row")
        self.assertEqual((line["count"], line["verdict"], line["goal_verdict"]),
                         ("2, 2 pass", "pass", "miss"))

    def test_what_is_not_measured_says_so(self):
        rows = promises.rows([("empty", {"results": {}})])
        self.assertEqual({row[1] for row in rows[1:]}, {promises.NOT_MEASURED})
        self.assertIn("0 of ", promises.sentence([("empty", {"results": {}})]))

    def test_the_newest_results_count(self):
        def runs(*resident):
            return [(str(r), {"results": {"parked": {"stook": {"per_thread_KiB": [r] * 6}}}
                              if r else {"results": {}}}) for r in resident]

        self.assertEqual([row[2:4] for row in promises.rows(runs(30, 10))
                          if row[0].startswith("resident for each")], [["-44 %", "10.00 KiB"]])

    def test_off_by_is_worse_above_zero(self):
        verdict = {"at_least": 2.0, "goal": 1.0, "median": 3.0, "higher": False}
        self.assertEqual(promises.off_by(verdict), "+50 %")
        self.assertEqual(promises.off_by({**verdict, "higher": True}), "-50 %")
        self.assertEqual(promises.off_by({**verdict, "at_least": 0}), "")
        self.assertEqual(promises.off_by({**verdict, "at_least": None}), "+200 %")

    def test_the_mean_is_against_the_best_single_peer(self):
        rows = {"stook": (2, 2), "one": (1, 4), "even": (1.9, 1.9), "slow": (9, 9)}
        table = {name: {"larson/1 ns": [a] * 6, "cfrac/1 ns": [b] * 6, "grow/1 ns": [1] * 6}
                 for name, (a, b) in rows.items()}
        line = self.line({"pattern_rows": table},
                         "the same, time, geometric mean / best single peer")
        self.assertEqual((line["rival"], line["measured"], line["verdict"]),
                         ("even", "1.05 x", "miss"))
        del table["even"]
        line = self.line({"pattern_rows": table},
                         "the same, time, geometric mean / best single peer")
        self.assertEqual((line["rival"], line["measured"], line["verdict"]),
                         ("one", "1.00 x", "pass"))

    def test_promises_name_experiments(self):
        for promise in promises.PROMISES:
            for line in promise.lines if not callable(promise.lines) else ():
                self.assertIn(line.experiment, suites.ALL)


class Compared(unittest.TestCase):
    def said(self, old, new, everything=False):
        lines, rows = [], []
        apart = compare.print_comparison(old, new, lambda text="": lines.append(text),
                                         lambda table, columns: rows.extend(table), everything)
        return apart, "\n".join(lines), ["  ".join(row) for row in rows]

    def test_nothing_changed(self):
        apart, text, rows = self.said(session(), session())
        self.assertEqual((apart, rows), (0, []))
        self.assertIn("0 of ", text)

    def test_what_changed_is_told(self):
        apart, text, rows = self.said(session(), session(ours=1.5))
        told = [row for row in rows if row.startswith("pattern_rows lifo/1 ns")]
        self.assertEqual(len(told), 1)
        self.assertIn("+50.0 %", told[0])
        self.assertFalse([row for row in rows if row.startswith("prodcons")])
        self.assertTrue(apart)

    def test_a_slower_machine_is_no_change(self):
        _, _, rows = self.said(session(), session(ours=3, theirs=6))
        self.assertFalse([row for row in rows if " ns  " in row])

    def test_few_rounds_show_no_change(self):
        apart, text, rows = self.said(session(n=5), session(ours=9, n=5))
        self.assertEqual(apart, 0)
        self.assertIn("have fewer than 6 rounds", text)

    def test_other_processors_compare_ratios_alone(self):
        old, new = session(), session(ours=1.5, processor="another")
        for run_ in (old, new):
            run_["results"]["many_caches"] = {"stook-cache": {"10 caches ns": times(1)}}
        apart, text, rows = self.said(old, new, everything=True)
        self.assertIn("different processors", text)
        self.assertFalse([row for row in rows if "many_caches" in row])
        self.assertTrue([row for row in rows if "lifo/1 ns" in row])


class Parsed(html.parser.HTMLParser):
    """Tags that are open, what the page loads, and its text."""
    EMPTY = {"meta"}

    def __init__(self):
        super().__init__()
        self.open, self.words, self.loads, self.ids, self.links = [], [], [], set(), set()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.loads += [tag] if tag in ("script", "link", "img", "iframe") or "src" in attrs else []
        self.ids.add(attrs.get("id"))
        if tag == "a":
            self.links.add(attrs["href"])
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise AssertionError(f"{tag} does not end what is open")

    def handle_data(self, data):
        self.words.append(data)


class Page(unittest.TestCase):
    def parsed(self, runs):
        text = page.html(runs)
        parsed = Parsed()
        parsed.feed(text)
        parsed.close()
        self.assertEqual(parsed.open, [])
        return text, parsed

    def test_it_parses_and_loads_nothing(self):
        text, parsed = self.parsed([("one", session())])
        self.assertEqual(parsed.loads, [])
        self.assertNotRegex(text, r"url\(|@import|https?://")
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertIn('name="viewport"', text)
        self.assertIn("a &lt;processor&gt;", text)
        for link in parsed.links:
            self.assertIn(link.removeprefix("#"), parsed.ids)

    def test_every_workload_is_there(self):
        results = session()
        _, parsed = self.parsed([("one", results)])
        words = "\n".join(parsed.words)
        found = workloads.all_of(results)
        self.assertTrue(found)
        for workload in found:
            self.assertIn(workload.name(), words)
        for name in results["results"]:
            self.assertIn(name, words)
        for section in ("Wins and losses", "Where Stook must be", "Published tables", "Growth",
                        "Figures one by one", "Every workload", "How to measure this again"):
            self.assertIn(section, words)
        self.assertIn("there is no cargo", words)

    def test_losses_come_first(self):
        rows = page.ratio_rows(workloads.all_of(session()), "memory")
        self.assertEqual([row[-1] for row in rows], ["bad"] + ["good"] * (len(rows) - 1))

    def test_pictures_are_xml(self):
        text, _ = self.parsed([("one", session()), ("two", session(commit="fedcba987654"))])
        pictures = re.findall(r"<svg.*?</svg>", text, re.S)
        self.assertGreater(len(pictures), 4)
        for picture in pictures:
            root = xml.etree.ElementTree.fromstring(picture)
            for element in root.iter():
                for name in ("x", "y", "cx", "cy", "x1", "y1", "x2", "y2"):
                    self.assertTrue(math.isfinite(float(element.get(name, "0").rstrip("%"))))

    def test_history_is_there_for_several(self):
        for runs, there in (([("a", session())], False),
                            ([("a", session()), ("b", session(commit="fedcba987654",
                              date="2026-01-02T00:00:00+00:00"))], True)):
            _, parsed = self.parsed(runs)
            self.assertEqual("history" in parsed.ids, there)
            self.assertEqual("fedcba987" in parsed.words, there)

    def test_history_has_a_line_for_each_workload(self):
        runs = [("a", session()), ("b", session(ours=4)), ("c", {**session(), "results": {}})]
        rows = dict(page.history_rows(runs, "time"))
        self.assertEqual(len(rows), len(workloads.all_of(session())))
        first, second, third = rows["pattern_rows lifo/1"]
        self.assertAlmostEqual(first * 4, second)
        self.assertIsNone(third)
        self.assertEqual(page.history_rows(runs[:1], "time"), [])

    def test_results_of_little_make_a_page(self):
        empty = {**session(), "results": {}, "figures": []}
        self.parsed([("empty", empty)])
        self.parsed([("few", session(n=1))])

    def test_markdown_has_every_workload(self):
        results = session()
        text = report.markdown([("one", results)])
        for workload in workloads.all_of(results):
            self.assertIn(f"| {workload.name()} |", text)

    def test_readme(self):
        results = session()
        old = "# x\n\nold words\n\n" + report.FIGURES_HEAD + "\n|---|\n| old |\n\nrest\n"
        new = report.readme(old, [("one", results)])
        self.assertNotIn("old", new)
        self.assertTrue(new.startswith("# x\n\na <processor>, 2 CPUs"))
        self.assertIn("\n\nrest\n", new)
        self.assertRegex(new, r"freed by another thread.*\| 9\.\d+ \| glibc: 3\.\d+ \| 0\.33")
        with self.assertRaises(report.NoPlace):
            report.readme("nothing", [("one", results)])


class Command(unittest.TestCase):
    def bench(self, *words):
        return subprocess.run([sys.executable, "-B", BENCH / "run.py", *map(str, words)],
                              capture_output=True, text=True, timeout=100)

    def test_wrong_arguments_are_refused_by_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "text.json").write_text("no JSON")
            (folder / "other.json").write_text("[1]")
            (folder / "newer.json").write_text(json.dumps({**session(), "format": 99}))
            (folder / "good.json").write_text(json.dumps(session()))
            for words in (["--suite", "x"], ["--only", "x"], ["--pairs", "0"], ["--peers", "x"],
                          ["--compare", folder / "none.json", folder / "good.json"],
                          ["--compare", folder / "text.json", folder / "good.json"],
                          ["--compare", folder / "other.json", folder / "good.json"],
                          ["--compare", folder / "newer.json", folder / "good.json"],
                          ["--compare", "a", "b", "c"], ["--report", folder / "x.html"],
                          ["--report", folder / "x.pdf", folder / "good.json"],
                          ["--report", folder / "no" / "x.html", folder / "good.json"],
                          ["--build", folder / "none"], ["--walk"],
                          ["--build", folder, "--out", folder / "good.json" / "x.json"]):
                done = self.bench(*words)
                self.assertEqual(done.returncode, 2, words)
                self.assertRegex(done.stderr, "^stook bench: .*\n$", words)
                self.assertNotIn("Traceback", done.stderr)

    def test_folders_are_not_made(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "none" / "x.json"
            done = self.bench("--build", folder, "--out", out)
            self.assertEqual((done.returncode, done.stderr),
                             (2, f"stook bench: {out}: No such file or directory\n"))
            self.assertFalse(out.parent.exists())

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([sys.executable, "-B", BENCH / "run.py", "--list"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=100)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "standard output: No space left on device\n"))

    def test_pages_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "one.json").write_text(json.dumps(session()))
            for name in ("page.html", "page.md"):
                done = self.bench("--report", folder / name, folder / "one.json")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("pattern_rows lifo/1", (folder / name).read_text())
            (folder / "empty").mkdir()
            of_folder = self.bench("--report", folder / "page.html", folder)
            self.assertEqual((of_folder.returncode, of_folder.stderr), (0, ""))
            none = self.bench("--report", folder / "page.html", folder / "empty")
            self.assertEqual((none.returncode, none.stderr),
                             (2, f"stook bench: {folder / 'empty'}: no result files there\n"))

    def test_two_files_are_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "old.json").write_text(json.dumps(session()))
            (folder / "new.json").write_text(json.dumps(session(ours=1.5)))
            done = self.bench("--compare", folder / "old.json", folder / "new.json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("+50.0 %", done.stdout)
            self.assertIn("changed beyond noise", done.stdout)

    def test_the_machine_is_told(self):
        about = machine.machine(pathlib.Path(os.environ["STOOK_BUILD"]))
        for key in ("processor", "cpus", "kernel", "libc", "commit", "load", "date", "compiler"):
            self.assertIn(key, about)
        self.assertNotEqual(about["compiler"], "unknown")

    def test_the_command_is_repeated(self):
        sys.argv = ["run.py", "--quick", "--only", "rcu", "--pairs", "9"]
        self.assertEqual(run.command_of(run.arguments()[1]),
                         "stook bench --quick --only rcu --pairs 9")


if __name__ == "__main__":
    unittest.main()
