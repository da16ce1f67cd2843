#!/usr/bin/env python3
"""Proves: the command understands what it says it does, refuses the rest with status 2 and a line that names it, and
passes on the status of what it ran, or 126 and 127 as env does."""
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from stook import BUILD, DROP_IN, STOOK, main, stook


class Options(unittest.TestCase):
    def refused(self, *args, says):
        done = stook(*args)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_version(self):
        done = stook("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^stook \d+\.\d+\.\d+\n$")

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            for option in ("--help", "--version"):
                done = subprocess.run([STOOK, option], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 2)
                self.assertIn("No space left", done.stderr)

    def test_help(self):
        for args in (["--help"], ["help"], ["run", "--help"]):
            done = stook(*args)
            self.assertEqual(done.returncode, 0)
            self.assertTrue(done.stdout.startswith("usage: stook "))
            self.assertEqual(done.stderr, "")

    def test_help_names_only_what_there_is(self):
        text = stook("--help").stdout + stook("run", "--help").stdout
        for later in ("top", "info", "check", "record", "replay", "bench"):
            self.assertNotRegex(text, r"\b%s\b" % later)

    def test_refused(self):
        self.refused(says="usage: stook")
        self.refused("walk", says="no command 'walk'")
        self.refused("walk", says=" run")
        self.refused("--walk", says="no option '--walk' (see stook --help)")
        self.refused("run", says="no program given")
        self.refused("run", "--", says="no program given")
        self.refused("run", "--walk", "true", says="no option '--walk'")
        self.refused("run", "-x", "true", says="no option '-x'")
        self.refused("run", "--json", says="--json needs a value")
        self.refused("run", "--json", "/nonexistent/x.json", "true", says="/nonexistent/x.json: No such file")
        for number in ("0", "-1", "x", "", "3x", "99999999999999999999"):
            self.refused("run", "--repeat", number, "true", says="--repeat takes a number")

    def test_options_of_the_program_are_its_own(self):
        for separator in ([], ["--"]):
            done = stook("run", *separator, "echo", "--stats", "-n", "x")
            self.assertEqual(done.stdout, "--stats -n x\n")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stderr, "")


class Statuses(unittest.TestCase):
    def test_of_the_program(self):
        for status in (0, 1, 2, 77, 255):
            self.assertEqual(stook("run", "sh", "-c", "exit %d" % status).returncode, status)

    def test_of_signals(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1):
            self.assertEqual(stook("run", "sh", "-c", "kill -%d $$" % number).returncode, 128 + number)

    def test_crashes_are_named(self):
        for number, said in ((signal.SIGSEGV, "stook: sh: Segmentation fault\n"), (signal.SIGABRT, "stook: sh: Aborted\n"),
                             (signal.SIGTERM, ""), (signal.SIGPIPE, "")):
            self.assertEqual(stook("run", "sh", "-c", "kill -%d $$" % number).stderr, said)
        done = stook("run", "--stats", "sh", "-c", "kill -SEGV $$")
        self.assertIn("stook: sh: signal 11 (Segmentation fault), ", done.stderr)

    def test_unrunnable_as_env_does(self):
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "plain")
            with open(plain, "w") as f:
                f.write("x")
            script = os.path.join(folder, "script")
            with open(script, "w") as f:
                f.write("#!/nonexistent/interpreter\n")
            os.chmod(script, 0o755)
            for program in ("stook-no-such-program", "/nonexistent/program", plain, folder, script):
                env = subprocess.run(["env", program], capture_output=True, text=True)
                done = stook("run", "--stats", "--compare", program)
                self.assertEqual(done.returncode, env.returncode, program)
                self.assertIn(done.returncode, (126, 127))
                self.assertIn(program, done.stderr)

    def test_without_the_library(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(STOOK, folder)
            done = subprocess.run([alone, "run", "true"], capture_output=True, text=True)
            if done.returncode == 0:
                self.skipTest("the library is installed")
            self.assertEqual(done.returncode, 2)
            self.assertIn("libstook-malloc.so", done.stderr)

    def test_library_path_that_cannot_be_preloaded(self):
        with tempfile.TemporaryDirectory(suffix="a b") as folder:
            alone = shutil.copy(STOOK, folder)
            shutil.copy(DROP_IN, folder)
            done = subprocess.run([alone, "run", "true"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("space", done.stderr)


class Signals(unittest.TestCase):
    # A second signal, sent to the group and passed on, must not end the shell on its way out.
    PROGRAM = ["sh", "-c", "trap 'trap \"\" %s; echo got; exit 7' %s; echo ready; while :; do sleep 0.05; done"]

    def start(self, name):
        program = [*self.PROGRAM[:2], self.PROGRAM[2] % (name, name)]
        # Under nohup, or behind a shell's &, some are ignored, and a shell cannot trap what it found ignored.
        signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)
        p = subprocess.Popen([STOOK, "run", "--", *program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             start_new_session=True)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def test_sent_to_the_command_goes_to_the_program(self):
        for name in ("INT", "TERM", "HUP", "USR1", "USR2"):
            p = self.start(name)
            p.send_signal(getattr(signal, "SIG" + name))
            out, err = p.communicate(timeout=20)
            self.assertEqual((p.returncode, out, err), (7, "got\n", ""), name)

    def test_sent_to_the_group_ends_both_once(self):
        p = self.start("INT")
        os.killpg(p.pid, signal.SIGINT)
        out, _ = p.communicate(timeout=20)
        self.assertEqual((p.returncode, out), (7, "got\n"))

    def test_no_file_is_left(self):
        before = set(os.listdir("/dev/shm"))
        p = subprocess.Popen([STOOK, "run", "--stats", "--", "sleep", "30"], stderr=subprocess.DEVNULL)
        time.sleep(0.3)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(timeout=20), 128 + signal.SIGINT)
        mine = [n for n in set(os.listdir("/dev/shm")) - before if n.startswith("stook-run-")]
        self.assertEqual(mine, [])


if __name__ == "__main__":
    main()
