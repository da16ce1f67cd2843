#!/usr/bin/env python3
"""
Proves what is said of the published tables: each cell has its row, the words are right at the edge
of what was published, worse is never called reached, the model of contention, and that rows come
into a result file and both pages. Nothing is measured here.
"""

import os
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
BENCH = pathlib.Path(os.environ["STOOK_SOURCE"]) / "bench"
sys.path[:0] = [str(BENCH / folder) for folder in (".", "measure", "tables", "pages")]

import kernel_tables                                        # noqa: E402
import page                                                 # noqa: E402
import published                                            # noqa: E402
import report                                               # noqa: E402
import suites                                               # noqa: E402
import tables                                               # noqa: E402
import tables_aspace                                        # noqa: E402
import tables_contention                                    # noqa: E402
import tables_locality                                      # noqa: E402


def row(how, limit):
    """One that compares a's m with b's m, or judges a's alone."""
    alone = how.startswith("at ")
    return published.Row("1", "cell", "as published", "e", how, ("a", "m"),
                         None if alone else ("b", "m"), limit)


def judged(how, limit, ours, theirs=()):
    return row(how, limit).judge({"e": {"a": {"m": list(ours)}, "b": {"m": list(theirs)}}})


def words(found):
    return found["verdict"]


class Verdicts(unittest.TestCase):
    def test_a_gain_is_less_of_ours(self):
        for ours, word in ((74, "reached"), (75, "reached"), (76, "missed"), (200, "missed")):
            found = judged("gain", 25, [ours] * 6, [100] * 6)
            self.assertEqual((words(found), round(found["measured"])), (word, 100 - ours))

    def test_a_rise_is_more_of_ours(self):
        for ours, word in ((133, "missed"), (134, "reached"), (200, "reached"), (50, "missed")):
            self.assertEqual(words(judged("rise", 34, [ours] * 6, [100] * 6)), word)

    def test_times_are_at_most(self):
        for ours, word in ((20, "reached"), (21, "missed"), (1, "reached")):
            self.assertEqual(words(judged("times", 0.2, [ours] * 6, [100] * 6)), word)

    def test_the_worse_end_decides(self):
        # Of six pairs the interval has all: one bad pair, and nothing is reached.
        for how, limit, good, bad in (("gain", 25, 50, 90), ("rise", 34, 150, 110),
                                      ("times", 0.6, 50, 90)):
            self.assertEqual(words(judged(how, limit, [good] * 5 + [bad], [100] * 6)), "unclear")
            self.assertEqual(words(judged(how, limit, [good] * 2 + [bad] * 4, [100] * 6)), "missed")

    def test_few_pairs_are_unclear(self):
        for how, limit, ours in (("gain", 25, 1), ("rise", 34, 900), ("times", 0.2, 1)):
            self.assertEqual(words(judged(how, limit, [ours] * 5, [100] * 5)), "unclear")

    def test_a_count_needs_one_run(self):
        self.assertEqual(words(judged("at least", 50, [50])), "reached")
        self.assertEqual(words(judged("at least", 50, [49.9])), "missed")
        self.assertEqual(words(judged("at most", 10, [10])), "reached")
        self.assertEqual(words(judged("at most", 10, [10.1])), "missed")
        self.assertEqual(words(judged("at most", 10, [1, 1, 1, 1, 1, 11])), "unclear")

    def test_what_was_not_measured_has_no_row(self):
        self.assertIsNone(judged("gain", 25, [], [100] * 6))
        self.assertIsNone(judged("gain", 25, [None] * 6, [100] * 6))
        self.assertIsNone(judged("rise", 25, [1] * 6, [0] * 6))
        self.assertIsNone(row("gain", 25).judge({}))
        self.assertEqual(published.judge({}), [])

    def test_intervals_are_in_order(self):
        for how in ("gain", "rise", "times"):
            found = judged(how, 1, [1, 2, 3, 4, 5, 6], [4] * 6)
            self.assertLess(found["low"], found["measured"])
            self.assertLess(found["measured"], found["high"])


class Cells(unittest.TestCase):
    def rows(self, table, *parts):
        return [r for r in published.ROWS
                if r.table == table and all(part in r.text for part in parts)]

    def test_each_published_cell_has_its_row(self):
        self.assertEqual(len(self.rows("1.1", "capacity 32")), 14)
        self.assertEqual(len(self.rows("1.1", "capacity 32", "accounted")), 7)
        self.assertEqual(len(self.rows("1.1", "grown")), 14)
        self.assertEqual(len(self.rows("1.1", "cost of their code")), 7)
        plain = [r for r in self.rows("1.2") if "iterator" not in r.text]
        self.assertEqual((len(plain), len(self.rows("1.2"))), (12, 24))
        for table in ("1.3", "1.4", "1.5", "1.6", "RCU"):
            self.assertTrue(self.rows(table), table)

    def test_no_two_rows_have_one_name(self):
        names = [(r.table, r.text) for r in published.ROWS]
        self.assertEqual(len(names), len(set(names)))

    def test_gains_are_those_of_the_published_numbers(self):
        self.assertEqual(tables.ITERATOR_12[16, "plain"], 41.0)
        self.assertEqual(tables.ITERATOR_12[512, "random"], 69.7)
        by_name = {r.text: r.limit for r in published.ROWS if r.table == "1.1"}
        self.assertEqual(by_name["1000 shuffled, capacity 32"], 6.3)
        self.assertEqual(by_name["100 shuffled accounted, capacity 32"], 25.6)
        self.assertEqual(by_name["1, no sheaves: cost of their code"], 1.024)

    def test_each_row_is_of_an_experiment_that_runs_and_is_printed(self):
        for r in published.ROWS:
            self.assertIn(r.experiment, suites.ALL)
            self.assertIn(r.how, ("gain", "rise", "times", "at most", "at least"))
        for name in kernel_tables.ALL:
            self.assertIn(suites.suite_of(name), ("tables", "micro"))
            self.assertTrue(name in tables.PRINTED or name in ("rcu", "rcu_waits"), name)

    def test_stages_are_counted_by_those_of_loops(self):
        counts = {"bulk calls turned into loops": {"taken": [900.0], "taken_alone": [100.0]},
                  "preallocation replaced by prefill": {"taken": [90.0], "taken_alone": [0.0]}}
        found = {r["row"]: r for r in published.judge({"node_counts": counts})}
        self.assertEqual(found["bulk calls turned into loops: nodes from sheaves, of all"]
                         ["measured"], 0.9)
        self.assertEqual(found["preallocation replaced by prefill: nodes allocated, of those of "
                               "loops"]["verdict"], "reached")


class Contention(unittest.TestCase):
    def test_the_share_of_a_thread_is_found_again(self):
        points = [(n, (n - 1) * 0.002) for n in (1, 2, 4, 16)]
        self.assertAlmostEqual(tables_contention.fitted(points), 0.002)
        self.assertAlmostEqual(tables_contention.extrapolated(0.002), 191 * 0.002)
        self.assertEqual(tables_contention.extrapolated(0.1), 1.0)

    def test_one_thread_says_nothing(self):
        self.assertIsNone(tables_contention.fitted([(1, 0.0)]))
        self.assertIsNone(tables_contention.fitted([]))

    def test_a_rare_visit_is_not_extrapolated(self):
        often = {"median": tables_contention.RARE}
        self.assertEqual(tables_contention.at_192(0.002, often), "38.20 %")
        self.assertEqual(tables_contention.at_192(0.002, {"median": 0.5}), "too few visits")
        self.assertEqual(tables_contention.at_192(None, often), "-")

    def test_the_lock_that_is_held_bounds_the_cpus(self):
        one = dict.fromkeys(tables_contention.TURNS_COLUMNS, [20.0])
        table = {"4 CPUs": {f"own {m}": v for m, v in {**one, "steps": [300.0]}.items()}}
        said, shown = [], []
        tables_contention.print_turns(table, said.append, lambda rows, _: shown.append(rows))
        self.assertEqual(len(shown), 1)
        self.assertEqual(shown[0][1][0], "4")
        self.assertEqual(shown[0][1][-2:], ["15.0", "3,840"])
        self.assertIn(tables_contention.QUEUE, said)

    def test_visits_that_there_were_not_are_left_out(self):
        table = {"2 threads": {"own list_busy": [0], "own list_asked": [0]},
                 "4 threads": {"own list_busy": [1, 3], "own list_asked": [10, 10]}}
        self.assertEqual(tables_contention.points(table, "own", "list_busy", "list_asked"),
                         [(4, 0.2)])


def results():
    eleven = {name: {cell: [cost] * 6 for cell in tables.GAINS_11}
              for name, cost in (("sheaves-32", 50.0), ("sheaves", 40.0), ("none-cas", 100.0),
                                 ("no-sheaves", 101.0), ("slabs-alone", 100.0))}
    threads = {f"{n} threads": {f"own {m}": [float(n)] for m in
                                ("barn_retries", "barn_calls", "list_busy", "list_asked")}
               for n in tables_contention.THREADS}
    local = {"sheaves": {f"64 B {m}": [9.0] for m, _ in tables_locality.COLUMNS},
             "no sheaves": {"64 B touched_1": [8.0]}}
    faults = {front: {f"{n} faults": [100.0] * 6 for n in tables_aspace.THREADS}
              for front in (*tables_aspace.FRONTS, tables_aspace.SPINNING)}
    pairs = {front: {f"{n} pairs": [100.0] * 6 for n in tables_aspace.PROCESSES}
             for front in tables_aspace.PUBLISHED_FRONTS}
    counts = dict.fromkeys(("taken", "taken_behind", "taken_alone", "lent", "given",
                            "given_behind", "given_alone"), [7.0])
    turns = {f"{n} CPUs": {f"own {m}": [float(n)] for m in tables_contention.TURNS_COLUMNS}
             for n in tables_contention.THREADS}
    return {"table11": eleven, "contention": threads, "slab_turns": turns, "locality": local,
            "page_fault3_alloc": faults, "mmap2_processes": pairs,
            "phone": {f: {"1 loops": [1.0]} for f in tables_aspace.PUBLISHED_FRONTS},
            "node_counts": {stage: counts for stage in (*tables_aspace.STAGES,
                                                        *tables_aspace.OLDER_STAGES)}}


class Pages(unittest.TestCase):
    def test_every_table_prints(self):
        for name, table in results().items():
            said, sizes = [], []

            def print_table(rows, columns):
                sizes.append((len(rows), columns))
                self.assertTrue(all(len(r) == columns for r in rows), name)
                self.assertTrue(all(isinstance(c, str) for r in rows for c in r), name)

            tables.PRINTED[name](table, said.append, print_table)
            self.assertTrue(said and sizes and min(sizes)[0] > 1, name)

    def test_rows_have_all_columns_and_their_word(self):
        rows = published.judge(results())
        listed = published.table_rows(rows)
        self.assertTrue(all(len(r) == len(published.HEAD) for r in listed))
        cell = next(r for r in listed if r[1] == "1, capacity 32")
        self.assertEqual((cell[2], cell[-1]), ("17.2 %", "reached"))
        words = [r["verdict"] for r in rows]
        self.assertEqual(published.counted(rows),
                         f"{words.count('reached')} reached, {words.count('unclear')} unclear, "
                         f"{words.count('missed')} missed")

    def test_pages_have_them(self):
        about = {"processor": "p", "cpus": 2, "linux": "6", "libc": "glibc", "load": 0.1,
                 "load_after": 0.1, "commit": "0" * 12, "date": "2026-01-01T00:00:00+00:00"}
        session = {"format": 3, "machine": about, "pairs": 6, "quick": False, "command_line": "",
                   "left_out": {}, "results": results()}
        self.assertRegex(page.html(session), "(?s)1000 shuffled, capacity 32.*reached")
        self.assertRegex(report.markdown(session),
                         r"\| 1000 shuffled \| 6.3 % \| capacity 32: .* reached; grown: ")


if __name__ == "__main__":
    unittest.main()
