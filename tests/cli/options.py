#!/usr/bin/env python3
"""Proves: the command understands what it says it does, refuses the rest with status 2 and a line
that names it, and passes on the status of what it ran, or 126 and 127 as env does."""
import json
import os
import re
import select
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
            for words in (["--help"], ["--version"], ["run", "--help"], ["check", "--help"]):
                done = subprocess.run([STOOK, *words], stdout=full, stderr=subprocess.PIPE,
                                      text=True)
                self.assertEqual(done.returncode, 2)
                self.assertIn("No space left", done.stderr)

    def test_help(self):
        for args in (["--help"], ["help"], ["run", "--help"]):
            done = stook(*args)
            self.assertEqual(done.returncode, 0)
            self.assertTrue(done.stdout.startswith("usage: stook "))
            self.assertEqual(done.stderr, "")

    def test_help_of_a_command(self):
        for command in ("run", "info", "bench"):
            self.assertEqual(stook("help", command).stdout, stook(command, "--help").stdout)
        self.refused("help", "walk", says="no command 'walk'")

    def test_help_names_only_what_there_is(self):
        text = stook("--help").stdout
        commands = re.findall(r"^  (\w+) +\w", text.split("options:")[0], re.M)
        self.assertIn("run", commands)
        for command in commands:
            done = stook(command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("stook " + command, done.stdout)
        for later in {"top", "info", "check", "replay", "tune", "bench"} - set(commands):
            self.assertNotRegex(text + stook("run", "--help").stdout, r"\b%s\b" % later)

    def test_locked_options(self):
        """What the program would not see is refused."""
        locked = dict(os.environ, STOOK_OPTIONS="off")
        for words, name in ((["--stats"], "STATS"), (["--json", "-"], "STATS"),
                            (["--group-limit", "1M"], "GROUP_LIMIT"), (["--leaks"], "DEBUG"),
                            (["--harden"], "HARDEN"), (["--fail-each=1"], "FAIL"),
                            (["--on-fault", "log"], "ON_FAULT")):
            done = subprocess.run([STOOK, "run", *words, "--", "true"], env=locked,
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertIn(f"STOOK_OPTIONS=off: the program would not see STOOK_{name}\n",
                          done.stderr)
        done = subprocess.run([STOOK, "run", "--", "true"], env=locked, capture_output=True)
        self.assertEqual(done.returncode, 0)

    def test_refused(self):
        self.refused(says="usage: stook")
        self.refused("walk", says="no command 'walk'")
        self.refused("walk", says=" run")
        self.refused("--walk", says="no option '--walk' (see stook --help)")
        self.refused("run", says="no program given")
        self.refused("run", "--", says="no program given")
        self.refused("run", "--walk", "true", says="no option '--walk'")
        self.refused("run", "-x", "true", says="no option '-x'")
        self.refused("run", "-xy", "true", says="no option '-x'")
        self.refused("run", "--stats=1", "true", says="--stats=1: this option takes no value")
        self.refused("run", "--json", "", "true", says="--json '': No such file")
        self.refused("run", "--json", says="--json needs a value")
        for option in ("--", "--stats"):
            self.refused("run", "--json", option, "true",
                         says=f"--json needs a file before '{option}'")
            self.assertFalse(os.path.exists(option))
        for words in (["run", "--report-json"], ["record", "-o"], ["info", "--save"],
                      ["replay", "--json"], ["replay", "--plot"]):
            self.refused(*words, "--", "true", says=f"{words[1]} needs a file before '--'")
            self.assertFalse(os.path.exists("--"))
        self.refused("run", "--json", "/nonexistent/x.json", "true",
                     says="stook run: --json '/nonexistent/x.json': No such file")
        self.refused("run", "--report-json", "/nonexistent/x.json", "true",
                     says="--report-json '/nonexistent/x.json': No such file")
        self.refused("run", "--report-json", "/", "true", says="--report-json '/': Is a directory")
        self.refused("run", "--report-json", "x/" * 250 + "yz12345678901", "true",
                     says="File name too long")
        self.refused("run", "--leaks", "--suppress", "x" * 1024, "true",
                     says="--suppress takes at most 1023 bytes, not 1024")
        for number in ("0", "-1", "x", "", "3x", "99999999999999999999"):
            self.refused("run", "--repeat", number, "true", says="--repeat takes a number")

    def test_options_that_mean_nothing_alone(self):
        self.refused("run", "--suppress", "main", "true", says="--suppress goes with --leaks only")
        self.refused("run", "--fail-wait", "3", "true",
                     says="--fail-wait goes with --fail-each only")
        self.refused("info", "--count", "3", str(os.getpid()),
                     says="--count goes with --every only")

    def test_no_report_leaves_no_file(self):
        with tempfile.TemporaryDirectory() as folder:
            new, old = os.path.join(folder, "new"), os.path.join(folder, "old")
            with open(old, "w") as f:
                f.write("{}\n")
            for path in (new, old):
                self.assertEqual(stook("run", "--report-json", path, "true").returncode, 0)
            self.assertEqual(os.listdir(folder), ["old"])
            with open(old) as f:
                self.assertEqual(f.read(), "{}\n")

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
            self.assertEqual(stook("run", "sh", "-c", "kill -%d $$" % number).returncode,
                             128 + number)

    def test_crashes_are_named(self):
        for number, said in ((signal.SIGSEGV, "stook: sh: Segmentation fault\n"),
                             (signal.SIGABRT, "stook: sh: Aborted\n"),
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

    def test_missing_interpreters_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "script")
            for line, named in ((b"#!/nonexistent/interpreter -x", "/nonexistent/interpreter"),
                                (b"#! /bin/sh\r", r"/bin/sh\x0d")):
                with open(script, "wb") as f:
                    f.write(line + b"\necho\n")
                os.chmod(script, 0o755)
                done = stook("run", script)
                self.assertEqual(done.returncode, 127)
                self.assertIn("its interpreter, '%s', is not there" % named, done.stderr)
        self.assertEqual(stook("run", "").stderr, "stook: '': No such file or directory\n")

    def test_without_the_library(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(STOOK, folder)
            done = subprocess.run([alone, "run", "true"], capture_output=True, text=True)
            if done.returncode == 0:
                self.skipTest("the library is installed")
            self.assertEqual(done.returncode, 2)
            self.assertIn("libstook-malloc.so", done.stderr)

    def test_without_proc(self):
        inside = 'umount -l /proc && exec "$0" run --stats -- true'
        probe = ["unshare", "-m", "sh", "-c", "umount -l /proc"]
        if not shutil.which("unshare") or subprocess.run(probe, capture_output=True).returncode:
            self.skipTest("no mount namespace")
        done = subprocess.run(["unshare", "-m", "sh", "-c", inside, STOOK], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"true \(pid \d+\), at exit")

    def test_library_path_that_cannot_be_preloaded(self):
        with tempfile.TemporaryDirectory(suffix="a b") as folder:
            alone = shutil.copy(STOOK, folder)
            shutil.copy(DROP_IN, folder)
            done = subprocess.run([alone, "run", "true"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("space", done.stderr)


def left_in_shm(before):
    """Files of `stook run` that stay. Those of other tests, which run beside this one, go."""
    limit = time.monotonic() + 40
    while True:
        left = [n for n in set(os.listdir("/dev/shm")) - before if n.startswith("stook-run-")]
        if not left or time.monotonic() > limit:
            return left
        time.sleep(0.1)


class Signals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """A shell has it ignored in what it starts with `&`, and so would all programs below."""
        signal.signal(signal.SIGINT, signal.default_int_handler)

    # A second signal, sent to the group and passed on, must not end the shell on its way out.
    PROGRAM = ["sh", "-c", "trap 'trap \"\" %s; echo got; exit 7' %s; echo ready; "
                           "while :; do sleep 0.05; done"]

    def start(self, name):
        program = [*self.PROGRAM[:2], self.PROGRAM[2] % (name, name)]
        # Under nohup, or behind a shell's &, some are ignored, and a shell cannot trap what it
        # found ignored.
        signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)
        p = subprocess.Popen([STOOK, "run", "--", *program], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def test_sent_to_the_command_goes_to_the_program(self):
        for name in ("INT", "TERM", "HUP", "USR1", "USR2"):
            p = self.start(name)
            p.send_signal(getattr(signal, "SIG" + name))
            out, err = p.communicate(timeout=50)
            self.assertEqual((p.returncode, out, err), (7, "got\n", ""), name)

    def test_sent_to_the_group_ends_both_once(self):
        p = self.start("INT")
        os.killpg(p.pid, signal.SIGINT)
        out, _ = p.communicate(timeout=50)
        self.assertEqual((p.returncode, out), (7, "got\n"))

    def test_killed_with_it(self):
        """SIGKILL for the command is the program's end, too, and no file stays."""
        before = set(os.listdir("/dev/shm"))
        for options in ([], ["--stats"], ["--compare"]):
            script = "echo $$; exec sleep 100"
            p = subprocess.Popen([STOOK, "run", *options, "--", "sh", "-c", script], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            program = os.pidfd_open(int(p.stdout.readline()))
            p.kill()
            p.wait()
            ended = select.select([program], [], [], 50)[0]
            if not ended:
                signal.pidfd_send_signal(program, signal.SIGKILL)
            os.close(program)
            p.stdout.close()
            self.assertTrue(ended, options)
        self.assertEqual(left_in_shm(before), [])

    def test_closed_streams(self):
        """No file of the command takes their place: the messages would be written into it."""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "x.json")
            for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
                for fd in range(3):
                    script = 'exec "$0" run --stats --json "$1" sh -c "[ -e /proc/self/fd/%d ]" %s'
                    done = subprocess.run(["sh", "-c", script % (fd, closed), STOOK, out],
                                          capture_output=True, text=True)
                    is_closed = ("<&-", ">&-", "2>&-")[fd] in closed.split()
                    self.assertEqual(done.returncode, 1 if is_closed else 0, (closed, fd))
                    with open(out) as f:
                        self.assertEqual(len(json.load(f)["processes"]), 1, closed)
            script = 'exec "$0" --version >&-'
            done = subprocess.run(["sh", "-c", script, STOOK], capture_output=True)
            self.assertEqual(done.returncode, 2)

    def test_no_file_is_left(self):
        before = set(os.listdir("/dev/shm"))
        p = subprocess.Popen([STOOK, "run", "--stats", "--", "sh", "-c", "echo; exec sleep 100"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        p.stdout.readline()             # the program runs
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(timeout=50), 128 + signal.SIGINT)
        p.stdout.close()
        self.assertEqual(left_in_shm(before), [])


if __name__ == "__main__":
    main()
