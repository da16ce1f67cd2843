#!/usr/bin/env python3
"""
Proves how `stook bench` measures: intervals and verdicts on known samples, the order of turns,
shares of time, other builds beside this one, what a run says and writes. Nothing is measured here;
bench_page.py has what is told of the results.
"""

import errno
import io
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
from bench_samples import BENCH, session                    # noqa: E402

import build as peer_build                                  # noqa: E402
import contenders                                           # noqa: E402
import engine                                               # noqa: E402
import held_memory                                          # noqa: E402
import interval                                             # noqa: E402
import kernel_tables                                        # noqa: E402
import machine                                              # noqa: E402
import run                                                  # noqa: E402
import setting as settings                                  # noqa: E402
import suites                                               # noqa: E402
import tables                                               # noqa: E402
import targets                                              # noqa: E402
import workloads                                            # noqa: E402


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
        line = targets.Line("x", "e", "m", 1.0, 0.5, targets.others)
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

    def test_a_failure_has_its_exit_status(self):
        for command, status in ((["sh", "-c", "exit 3"], 3), (["sh", "-c", "kill -9 $$"], None)):
            with self.assertRaises(engine.Failed) as failed:
                engine.run(command, contenders.Contender("glibc"))
            self.assertEqual(failed.exception.status, status)

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
                held_memory.answer_of(process)
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
        setting = settings.Setting(None, None, 2, True, None, {}, lambda text: None)
        setting.doing, setting.end = "1 of 1, experiment", 0
        table = settings.cells(setting, self.contenders()[:1], 2,
                                  {"x": lambda c: {"m": 1}, "y": lambda c: {"m": 1}})
        self.assertEqual(table, {"a": {"x m": [1]}})
        self.assertEqual(setting.left_out, {"experiment y": "no time was left"})


class AccountedColumns(unittest.TestCase):
    """Of table 1.1: left out where there are no groups, and for no other reason."""

    def measured(self, status):
        """(table, what was said, what was left out); forms that charge end with @status."""
        def macro(command, contender):
            if command[1].endswith("-charged"):
                raise engine.Failed("failed", status)
            return {"1": 7}

        said = []
        setting = settings.Setting(pathlib.Path("build"), None, 2, True, None, {}, said.append)
        with unittest.mock.patch.object(kernel_tables, "macro", macro):
            return kernel_tables.table11(setting), said, setting.left_out

    def test_without_groups_the_others_stay(self):
        table, said, left_out = self.measured(kernel_tables.NO_GROUPS)
        self.assertEqual((table["sheaves"], said), ({"1": [7, 7]}, []))
        self.assertEqual(len(left_out), 1)

    def test_what_fails_is_told(self):
        for status in (1, 2, None):
            table, said, left_out = self.measured(status)
            self.assertNotIn("sheaves", table)
            self.assertIn("  sheaves: failed", said)
            self.assertEqual(left_out, {})


class OtherBuilds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for library in contenders.OF_A_BUILD:
            (self.folder / library).touch()

    def test_they_take_part_whatever_peers_are_chosen(self):
        found = contenders.preloaded(self.folder, self.folder, [], None, {"before": self.folder})
        self.assertEqual(list(found), ["stook", "stook-before", "glibc"])
        self.assertEqual(found["stook-before"].library, self.folder / "libstook-malloc.so")

    def test_linked_programs_get_their_libraries(self):
        setting = settings.Setting(None, None, 1, True, None, {}, print)
        setting.builds = {"before": self.folder}
        ours, before = settings.linked(setting, "cache")
        self.assertEqual((ours.name, before.name), ("stook-cache", "stook-before-cache"))
        self.assertNotIn("LD_PRELOAD", ours.environment())
        self.assertEqual(before.environment()["LD_PRELOAD"].split(),
                         [str(self.folder / name)
                          for name in ("libstook.so.0", "libstook-maple.so.0")])

    def test_they_are_no_rivals(self):
        table = {"stook": {"m": [2] * 8}, "stook-before": {"m": [1] * 8}, "glibc": {"m": [4] * 8}}
        line = targets.Line("x", "e", "m", 1.0, 0.5, targets.others)
        self.assertEqual(line.judge({"e": table})["rival"], "glibc")
        side = workloads.side_of(table, workloads.Rule("e", "(m)"), "m", "ns")
        self.assertEqual(side.rival, "glibc")

    def refused(self, *wrong):
        for word in wrong:
            with unittest.mock.patch.object(sys, "argv", ["run.py", "--with", word]), \
                    unittest.mock.patch("sys.stderr", io.StringIO()) as told, \
                    self.assertRaises(SystemExit) as ended:
                run.arguments()
            self.assertEqual(ended.exception.code, 2)
            self.assertRegex(told.getvalue(), r"\Astook bench: --with .*\n\Z")

    def test_a_build_that_is_none_is_refused(self):
        self.refused("before=/nonexistent", "=/", f"a b={self.folder}")

    def test_a_build_has_no_name_of_a_contender(self):
        self.refused(*(f"{name}={self.folder}" for name in ("cache", "external", "gaps")))

    def test_a_build_has_all_libraries_that_are_replaced(self):
        for library in contenders.OF_A_BUILD:
            (self.folder / library).rename(self.folder / "away")
            self.refused(f"before={self.folder}")
            (self.folder / "away").rename(self.folder / library)


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
        setting, kept = settings.Setting(None, None, 1, True, None, {}, lambda text: None), []
        with unittest.mock.patch.object(run, "measure_one", lambda setting, name: {name: 1}), \
                unittest.mock.patch.object(run, "say"):
            run.measure(setting, ["rcu", "table12"], None, lambda so_far: kept.append([*so_far]))
            run.measure(setting, ["rcu", "table12", "bulk"], None,
                        lambda so_far: kept.append([*so_far]), ({"rcu": 1, "table12": 1}, {}))
        self.assertEqual(kept, [["rcu"], ["rcu", "table12"], ["rcu", "table12", "bulk"]])

    def test_cells_of_an_interrupted_run_are_not_measured_again(self):
        setting, kept, ran = settings.Setting(None, None, 2, True, None, {}, print), [], []
        setting.begun = {"a": {"x m": [1, 1]}}
        setting.keep = lambda table: kept.append(dict(table["a"]))
        jobs = {cell: lambda c, cell=cell: ran.append(cell) or {"m": 2} for cell in "xy"}
        table = settings.cells(setting, [contenders.Contender("a")], 2, jobs)
        self.assertEqual((ran, table), (["y", "y"], {"a": {"x m": [1, 1], "y m": [2, 2]}}))
        self.assertEqual(kept, [table["a"]])

    def test_a_peer_that_does_not_build_is_left_out_by_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            cargo, said = pathlib.Path(folder) / "cargo", []
            cargo.write_text("#!/bin/sh\nexit 1\n")
            cargo.chmod(0o755)
            with unittest.mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"):
                left = peer_build.build_all(["mimalloc3"], pathlib.Path(folder) / "peers",
                                            said.append)
        self.assertRegex(left["mimalloc3"], r"^`cargo` failed, see .*/log/mimalloc3.txt$")
        self.assertEqual(len(said), 2)
        self.assertIn("mimalloc3 is left out: `cargo` failed", said[1])

    def test_an_experiment_without_room_is_left_out(self):
        setting = settings.Setting(None, None, 1, True, None, {}, lambda text: None)
        full = OSError(errno.ENOSPC, "No space left on device")
        failing = unittest.mock.Mock(side_effect=full, __doc__="doc")
        with unittest.mock.patch.dict(suites.ALL, rcu=failing), \
                unittest.mock.patch.object(run, "say"):
            self.assertIsNone(run.measure_one(setting, "rcu"))
        self.assertEqual(setting.left_out, {"rcu": "No space left on device"})

    def test_peers_have_recipes(self):
        for name in peer_build.PEERS:
            self.assertTrue((BENCH / "peers" / name / "Cargo.toml").exists(), name)

    def test_rules_name_experiments(self):
        for rule in workloads.RULES:
            self.assertIn(rule.experiment, suites.ALL)
            re.compile(rule.time or rule.memory)


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
                          ["--resume", folder / "good.json"], ["--resume", folder / "none.json"],
                          ["--programs", "x"],
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
                self.assertIn("one thread allocates, another frees", (folder / name).read_text())

    def test_two_files_are_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "old.json").write_text(json.dumps(session()))
            (folder / "new.json").write_text(json.dumps(session(ours=1.5)))
            done = self.bench("--compare", folder / "old.json", folder / "new.json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("+50.0 %", done.stdout)
            self.assertIn("changed beyond noise", done.stdout)

    def begun(self, folder):
        """A build folder with one program, which never answers, and a run that waits for it."""
        (folder / "bench").mkdir()
        program = folder / "bench" / "parked"
        program.write_text("#!/bin/sh\nexec sleep 600\n")
        program.chmod(0o755)
        out = folder / "x.json"
        return out, subprocess.Popen(
            [sys.executable, "-B", BENCH / "run.py", "--build", folder, "--no-build", "--only",
             "parked", "--peers", "none", "--pairs", "2", "--out", out], start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_an_interrupted_run_is_resumed(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            out, process = self.begun(folder)
            while "256 parked threads" not in process.stdout.readline():
                pass
            os.killpg(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=60)
            self.assertEqual((process.returncode, said),
                             (130, "\nstook bench: interrupted; what was measured is kept: "
                                   f"stook bench --resume {out}\n"))
            (folder / "bench" / "parked").write_text(
                "#!/bin/sh\necho '{\"per_thread_KiB\": 7}'\n")
            done = self.bench("--resume", out)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            results = json.loads(out.read_text())
            self.assertEqual(results["results"]["parked"]["glibc"]["per_thread_KiB"], [7, 7])
            self.assertNotIn("unfinished", results)

    def test_a_full_disk_keeps_what_was_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "x.json"
            out.write_text(json.dumps({**session(), "unfinished": {"arguments": [], "begun": {}}}))
            was = out.read_text()
            (pathlib.Path(folder) / "x.json.part").symlink_to("/dev/full")
            parser = run.parser_of()
            with unittest.mock.patch("sys.stderr", io.StringIO()) as told, \
                    self.assertRaises(SystemExit) as ended:
                run.write(parser, out, session())
            self.assertEqual((ended.exception.code, out.read_text()), (2, was))
            self.assertEqual(told.getvalue(),
                             f"stook bench: {out}: No space left on device; what was measured "
                             f"before is kept: stook bench --resume {out}\n")

    def test_peers_tell_their_version(self):
        self.assertRegex(contenders.version(contenders.Contender("glibc")), r"^(\d+\.\d+)?$")
        library = pathlib.Path(os.environ["STOOK_BUILD"]) / "libstook-malloc.so"
        if library.exists():
            self.assertRegex(contenders.version(contenders.Contender("stook", library)),
                             r"^\d+\.\d+\.\d+")
        with tempfile.TemporaryDirectory() as folder:
            lock = pathlib.Path(folder) / "source" / "peer" / "Cargo.lock"
            lock.parent.mkdir(parents=True)
            lock.write_text('[[package]]\nname = "cc"\nversion = "1.0"\n\n'
                            '[[package]]\nname = "peer-sys"\nversion = "0.1.2"\n')
            self.assertEqual(contenders.crate_of(pathlib.Path(folder) / "lib" / "peer.so"),
                             "of crate peer-sys 0.1.2")

    def test_the_machine_is_told(self):
        about = machine.machine(pathlib.Path(os.environ["STOOK_BUILD"]))
        for key in ("processor", "cpus", "linux", "libc", "commit", "load", "date", "compiler"):
            self.assertIn(key, about)
        self.assertNotEqual(about["compiler"], "unknown")

    def test_the_command_is_repeated(self):
        sys.argv = ["run.py", "--quick", "--only", "rcu", "--pairs", "9"]
        self.assertEqual(run.command_of(run.arguments()[1]),
                         "stook bench --quick --only rcu --pairs 9")


class InstalledCommand(unittest.TestCase):
    """Its files lie as `meson install` lays them: no build folder is near."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "libexec" / "stook" / "bench"
        (self.folder / "peers").mkdir(parents=True)
        for folder in (".", "measure", "tables", "pages"):
            for file in (BENCH / folder).glob("*.py"):
                shutil.copy(file, self.folder)
        shutil.copy(BENCH / "peers" / "build.py", self.folder / "peers")

    def bench(self, *words):
        return subprocess.run([sys.executable, "-B", self.folder / "run.py", *words],
                              capture_output=True, text=True, timeout=100, cwd=self.folder)

    def drop_in(self):
        return ["--drop-in", pathlib.Path(os.environ["STOOK_BUILD"]) / "libstook-malloc.so"]

    def test_what_it_cannot_measure_is_told(self):
        for words in (["--only", "object_pair"], ["--suite", "micro"],
                      ["--quick", "--only", "rcu"]):
            done = self.bench(*self.drop_in(), *words, "--peers", "none")
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr, "stook bench: the installed command measures `programs` "
                             "only: for the others run `make bench` in a source folder, then "
                             "`stook bench --build FOLDER` with its build folder\n")
            self.assertNotIn("libexec", done.stdout + done.stderr)

    def test_without_a_drop_in(self):
        done = self.bench("--only", "programs")
        self.assertEqual(done.returncode, 2)
        self.assertIn("libstook-malloc.so is not installed", done.stderr)

    def test_a_build_folder_that_is_named_has_its_own_advice(self):
        (self.folder / "own").mkdir()
        done = self.bench(*self.drop_in(), "--build", "own", "--only", "rcu")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"meson configure {self.folder / 'own'} -Dbench=enabled", done.stderr)

    @unittest.skipUnless(shutil.which("git"), "there is no git")
    def test_git_has_something_to_commit(self):
        subprocess.run([sys.executable, "-B", "-c", "import pathlib, programs; "
                        "programs.git_repository(pathlib.Path(), True)"],
                       cwd=self.folder, check=True)
        log = subprocess.run(["git", "log", "--format=%s"], cwd=self.folder / "repository",
                             capture_output=True, text=True, check=True).stdout
        self.assertEqual(log.split("\n")[:2], ["change 4", "change 3"])

    def test_help_names_no_folder_that_is_not_there(self):
        said = self.bench("--help").stdout
        self.assertNotRegex(said, r"\(build\)|bench/results")
        self.assertIn("in which `make bench` was run", " ".join(said.split()))


class PatternsCommand(unittest.TestCase):
    """bench/patterns.py: no program is built, so rows are listed."""

    def patterns(self, *words):
        return subprocess.run([sys.executable, "-B", BENCH / "patterns.py", "--list", *words],
                              capture_output=True, text=True, timeout=100)

    def rows(self, *words):
        done = self.patterns(*words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [line.split()[0] for line in done.stdout.splitlines()]

    def test_wrong_values_are_named(self):
        for words, says in ((["--threads", "x"],
                             "--threads takes numbers with commas, such as 1,16, not 'x'"),
                            (["--threads", "1,2x"],
                             "--threads takes numbers with commas, such as 1,16, not '1,2x'"),
                            (["--filter", "("], "--filter '(': missing ), unterminated "),
                            (["--seed", "-1"], "--seed takes 0 or more, not -1"),
                            (["--rounds", "0"], "--repeat and --percent take 1 or more"),
                            (["--threads", "99"], "no such row")):
            done = self.patterns(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(says, done.stderr.splitlines()[-1])

    def test_a_filter_is_found_anywhere_in_a_row(self):
        self.assertEqual(self.rows("--filter", "cfrac/1$"), ["cfrac/1"])
        self.assertIn("cfrac/16", self.rows("--filter", "cfrac/1"))
        self.assertEqual(self.rows("--filter", "^queue/", "--threads", "1"), ["queue/1"])
        found = self.rows("--filter", "queue|/16$")
        self.assertTrue({"queue/1", "queue_mixed/1", "cfrac/16"} <= {*found})
        self.assertTrue(all("queue" in row or row.endswith("/16") for row in found))


if __name__ == "__main__":
    unittest.main()
