#!/usr/bin/env python3
"""
Proves what `stook bench` tells of measurements: workloads and targets of known samples, what
--compare calls a change, and that a page parses, loads nothing and has every workload. Nothing is
measured here.
"""

import html.parser
import math
import re
import sys
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
from bench_samples import session, times                    # noqa: E402

import compare                                              # noqa: E402
import evidence                                             # noqa: E402
import page                                                 # noqa: E402
import published                                            # noqa: E402
import report                                               # noqa: E402
import scale                                                # noqa: E402
import suites                                               # noqa: E402
import tables                                               # noqa: E402
import tables_memory                                        # noqa: E402
import targets                                              # noqa: E402
import workloads                                            # noqa: E402
from text import interval_text, measurement_rows            # noqa: E402


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
        self.assertNotIn("inf |", report.markdown(results))
        self.assertIn("prodcons 64", page.html(results))

    def test_what_a_library_itself_needs_is_no_workload(self):
        table = {name: {"x/1 ns": times(1), "x/1 peak_KiB": times(kib)}
                 for name, kib in (("stook", 300), ("glibc", 200))}
        self.assertIsNone(workloads.all_of({"results": {"pattern_rows": table}})[0].memory)

    def test_few_rounds_say_nothing(self):
        self.assertEqual({w.time.says for w in workloads.all_of(session(n=5))},
                         {workloads.UNCLEAR})

    def test_few_rounds_have_no_interval(self):
        for n, found in ((1, "one run"), (5, "5 runs"), (6, "0.50 .. 0.50")):
            rows = workloads.rows(workloads.all_of(session(n=n)))
            row = next(r for r in rows if r[0] == "pattern_rows lifo/1")
            self.assertEqual((rows[0][4], row[3], row[4]), ("95 %", "0.50", found))
        for n, found in ((1, "one run"), (5, "5 runs"), (6, "1.00 .. 2.00")):
            summary = {"low": 1, "high": 2, "n": n}
            self.assertEqual(interval_text(summary), found)

    def test_few_rounds_have_no_interval_of_a_gain(self):
        for n, gain, cost in ((5, "50.0 %", "-50.0 %"),
                              (6, "50.0 % (50.0 .. 50.0)", "-50.0 % (-50.0 .. -50.0)")):
            cell = tables.Cell({"a": {"m": [1] * n}, "b": {"m": [2] * n}}, "a", "b", "m")
            self.assertEqual((cell.gain_text(), cell.cost_text()), (gain, cost))

    def test_the_sum(self):
        said = workloads.sentence(workloads.all_of(session()), "time", "Time")
        self.assertIn("ahead of the best peer in 5 of 5 workloads, behind in 0", said)

    def test_standings_name_their_units(self):
        for name in workloads.PRINTED:
            said, rules = [], [r for r in workloads.RULES if r.experiment == name]
            rule = rules[0]
            time = rule.time.replace("(.+)", "x/1").replace(r"([\w/]+)", "x")
            memory = (rule.memory or "").format(cell="x/1")
            table = {c: {time: times(1), memory: times(2000)} for c in ("stook", "glibc")}
            workloads.print_standings(name, table, said.append, lambda rows, columns: None)
            self.assertEqual(said[:1], [f"  time in {rule.unit}" +
                                    (f", memory in {rule.memory_unit}" if memory else "")], name)

    def test_standings_say_what_the_ratio_is(self):
        said, table = [], {name: {"x/1 ns": times(1)} for name in ("stook", "glibc")}
        workloads.print_standings("pattern_rows", table, said.append, lambda rows, columns: None)
        self.assertIn("median of the ratios of the pairs", said[-1])

    def test_descriptions_name_the_unit_that_metrics_do_not(self):
        """Of those printed as a row for each contender: a metric's name ends with its unit."""
        for name in ("object_pair", "malloc_pair", "bulk", "nodes", "rcu"):
            self.assertRegex(suites.ALL[name].__doc__, r", ns an\s+object", name)

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


class RoundsLeftOut(unittest.TestCase):
    """A run that is cut short: Stook did not run the second round, in which mimalloc2 was faster,
    and jemalloc took less memory."""

    TABLE = {"stook": {"redis cpu_s": [0.1369, None], "redis peak_KiB": [41056, None]},
             "mimalloc2": {"redis cpu_s": [0.1399, 0.1099], "redis peak_KiB": [50000, 50000]},
             "glibc": {"redis cpu_s": [0.1380, 0.1385], "redis peak_KiB": [51000, 51000]},
             "jemalloc": {"redis cpu_s": [0.2, 0.2], "redis peak_KiB": [46408, 17376]}}

    def test_medians_and_the_best_peer_are_of_common_rounds(self):
        found = workloads.rows(workloads.all_of({"results": {"programs": self.TABLE}}))
        self.assertEqual(found[1][1:5], ["0.14", "glibc: 0.14", "0.99", "1 of 2 runs"])
        self.assertEqual(found[1][6:10], ["41,056", "jemalloc: 46,408", "0.88", "1 of 2 runs"])

    def test_a_figure_agrees_with_what_stands_beside_it(self):
        line = targets.Line("x", "programs", "redis cpu_s", 1.0, 0.5, targets.others)
        found = line.judge({"programs": self.TABLE})
        self.assertEqual((found["value"], found["rival"], found["rival_value"]),
                         (0.1369, "glibc", 0.1380))
        self.assertAlmostEqual(found["median"], 0.1369 / 0.1380)
        self.assertEqual(interval_text(found), "1 of 2 runs")

    def test_tables_of_pairs_are_of_common_rounds(self):
        cell = tables.Cell({"a": {"m": [1, None]}, "b": {"m": [2, 8]}}, "a", "b", "m")
        self.assertEqual((cell.ours, cell.theirs, cell.gain), (1, 2, 50))
        row = published.Row("1.1", "x", "1 %", "e", "gain", ("a", "m"), ("b", "m"), 1)
        found = row.judge({"e": {"a": {"m": [1, None]}, "b": {"m": [2, 8]}}})
        self.assertEqual((found["ours"], found["theirs"], found["measured"]), (1, 2, 50))
        of_memory = {"stook": {"m": [1, None]}, "glibc": {"m": [2, 8]}}
        self.assertEqual(tables_memory.median(of_memory, "glibc", "m"), 2)
        self.assertIn("1 of 2 runs", tables_memory.against(of_memory, "glibc", "m"))

    def test_a_contender_with_fewer_rounds_is_marked(self):
        rows = measurement_rows(self.TABLE, ["redis cpu_s"])
        self.assertEqual(rows[1], ["stook", "0.14 (1 of 2)"])
        self.assertNotIn(" of ", rows[2][1])

    def test_rounds_left_out_of_many_are_told(self):
        ours, theirs = [1] * 7 + [None], [2] * 8
        table = {"stook": {"x cpu_s": ours}, "glibc": {"x cpu_s": theirs}}
        row = workloads.rows(workloads.all_of({"results": {"programs": table}}))[1]
        self.assertEqual(row[4], "0.50 .. 0.50 (7 of 8 runs)")


class Targets(unittest.TestCase):
    def line(self, results, text):
        found = [row for row in targets.rows({"results": results}) if row[0] == text]
        self.assertEqual(len(found), 1)
        return dict(zip(("target", "verdict", "off", "measured", "interval", "least", "goal",
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
        rows = targets.rows({"results": {}})
        self.assertEqual({row[1] for row in rows[1:]}, {targets.NOT_MEASURED})
        self.assertEqual(targets.measured({"results": {}}), [targets.HEAD])
        self.assertIn("0 of ", targets.sentence({"results": {}}))

    def test_the_sentence_counts_every_target(self):
        """Also one that has a goal only, whose verdict is empty."""
        results = {"table12": {"before": {"64 plain": [4] * 6}, "after": {"64 plain": [1] * 6}},
                   "bulk": {"stook-cache": {"warm_alloc/size:64/batch:64": [1] * 6,
                                            "store_alloc/size:64/batch:64": [1] * 6}}}
        for part, goals in (({}, ""), (results, "1 has only a goal")):
            said = targets.sentence({"results": part}).split(".")[0]
            self.assertIn(goals, said)
            passed, of, *others = map(int, re.findall(r"\b\d+\b", said))
            self.assertEqual((passed + sum(others), of), (of, len(targets.TARGETS)), said)

    def test_off_by_is_worse_above_zero(self):
        verdict = {"at_least": 2.0, "goal": 1.0, "median": 3.0, "higher": False}
        self.assertEqual(targets.off_by(verdict), "+50 %")
        self.assertEqual(targets.off_by({**verdict, "higher": True}), "-50 %")
        self.assertEqual(targets.off_by({**verdict, "at_least": 0}), "")
        self.assertEqual(targets.off_by({**verdict, "at_least": None}), "+200 %")

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

    def test_they_name_experiments(self):
        for target in targets.TARGETS:
            for line in target.lines if not callable(target.lines) else ():
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
    def parsed(self, results):
        text = page.html(results)
        parsed = Parsed()
        parsed.feed(text)
        parsed.close()
        self.assertEqual(parsed.open, [])
        return text, parsed

    def test_verdicts_stand_behind_the_first_column(self):
        rows = [["cell", "figure", "least", "", "goal", ""],
                ["a", "1", "2", "pass", "3", "miss"], ["b", "1", "2", "unclear", "3", "unclear"]]
        self.assertEqual(page.verdicts_first(rows), [
            ["cell", "least", "goal", "figure", "least", "goal"],
            ["a", "pass", "miss", "1", "2", "3"], ["b", "unclear", "unclear", "1", "2", "3"]])
        self.assertEqual(page.verdicts_first([["cell", "figure", ""], ["a", "1", "missed"]]),
                         [["cell", "verdict", "figure"], ["a", "missed", "1"]])
        without = [["cell", "figure"], ["a", "1"]]
        self.assertEqual(page.verdicts_first(without), without)

    def test_it_parses_and_loads_nothing(self):
        text, parsed = self.parsed(session())
        self.assertEqual(parsed.loads, [])
        self.assertNotRegex(text, r"url\(|@import|https?://")
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertIn('name="viewport"', text)
        self.assertIn("a &lt;processor&gt;", text)
        for link in parsed.links:
            self.assertIn(link.removeprefix("#"), parsed.ids)

    def test_every_workload_is_there(self):
        results = session()
        _, parsed = self.parsed(results)
        words = "\n".join(parsed.words)
        found = workloads.all_of(results)
        self.assertTrue(found)
        for workload in found:
            self.assertIn(workload.name(), words)
        for name in results["results"]:
            self.assertIn(name, words)
        for section in ("Wins and losses", "Workloads", "Beside each single peer",
                        "Published tables", "Growth", "Every workload", "How it was measured"):
            self.assertIn(section, words)
        self.assertIn("there is no cargo", words)

    def test_losses_come_first(self):
        rows = page.ratio_rows(workloads.all_of(session()), "memory")
        self.assertEqual([row[-1] for row in rows], ["bad"] + ["good"] * (len(rows) - 1))

    def test_pictures_are_xml(self):
        text, _ = self.parsed(session())
        pictures = re.findall(r"<svg.*?</svg>", text, re.S)
        self.assertGreater(len(pictures), 4)
        for picture in pictures:
            root = xml.etree.ElementTree.fromstring(picture)
            for element in root.iter():
                for name in ("x", "y", "cx", "cy", "x1", "y1", "x2", "y2"):
                    self.assertTrue(math.isfinite(float(element.get(name, "0").rstrip("%"))))

    def test_results_of_little_make_a_page(self):
        self.parsed({**session(), "results": {}})
        self.parsed(session(n=1))

    def test_markdown_is_one_page(self):
        results = session()
        text = report.markdown(results)
        self.assertLessEqual(len(text.splitlines()), 200)
        self.assertIn(f"| {evidence.ROWS['prodcons', '64']} | 9", text)
        for words in ("## Wins and losses", "ahead of the best peer in 1 of 1", "mimalloc 3.1.6",
                      "there is no cargo", "## The kernel's published tables", "| glibc | 0.33 |"):
            self.assertIn(words, text)

    def test_a_wide_interval_is_not_called_level(self):
        results = session()
        rates = results["results"]["prodcons"]["stook"]
        rival = results["results"]["prodcons"]["glibc"]["64 objects_per_cpu_us"]
        for values, word in (([r * f for r, f in zip(rival, (.6, 1.6) * 4)], "unclear"),
                             ([r * f for r, f in zip(rival, (.99, 1.01) * 4)], "level")):
            rates["64 objects_per_cpu_us"] = values
            self.assertIn(f"| {word} |", report.markdown(results))

    def test_both_forms_of_a_published_cell_stand_in_a_line(self):
        table = {"none-cas": {"10": [100] * 6}, "sheaves": {"10": [50] * 6},
                 "sheaves-32": {"10": [90] * 6}}
        rows = published.compact(published.judge({"table11": table}))
        self.assertEqual(rows[1:], [["1.1", "10", "15.3 %",
                                     "capacity 32: 10 % (10 .. 10) missed; "
                                     "grown: 50 % (50 .. 50) reached"]])

    def test_targets_have_a_page(self):
        text = report.target_page(session())
        self.assertIn("| table 1.2, 12 cells: after / before | pass |", text)

    def test_readme(self):
        results = session()
        old = "# x\n\nwords\n\n" + report.FIGURES_HEAD + "\n|---|\n| old |\n\nrest\n"
        new = report.readme(old, results)
        self.assertNotIn("old", new)
        self.assertTrue(new.startswith("# x\n\nwords\n\n|"))
        self.assertIn("\n\nrest\n", new)
        self.assertRegex(new, r"another frees \| 9\.\d+ objects/us \| glibc 3\.\d+.*\| 0\.33")
        with self.assertRaises(report.NoPlace):
            report.readme("nothing", results)


if __name__ == "__main__":
    unittest.main()
