#!/usr/bin/env python3
"""`stook top` on a terminal: what it shows, its keys, a change of size, and a process that ends."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

import stook as s

PROGRAM = """
import sys, threading
def work():
    while not ended:
        x = [bytes(300) for i in range(1000)]
ended = []
thread = threading.Thread(target=work)
thread.start()
print('ready', flush=True)
sys.stdin.read()
ended.append(1)
"""


class Terminal:
    """A stook top on a terminal of its own. All that it draws is kept as text."""

    def __init__(self, *args, term="xterm", columns=150, lines=30):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            self.fd = 0
            self.resize(columns, lines)         # before anything is drawn
            os.environ["TERM"] = term
            os.execv(s.STOOK, [s.STOOK, "top", *args])
        self.text = ""

    def resize(self, columns, lines):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, seconds):
        """False: it ended, or nothing came."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        text = data.decode(errors="replace")
        self.text += re.sub(r"\x1b(?:\[[0-9;?]*[a-zA-Z]|[()][A-Z0-9]|[=>78])", " ", text)
        return bool(data)

    def until(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            if time.monotonic() > end:
                return False
            self.read(1)
        return True

    def press(self, keys):
        self.text = ""
        os.write(self.fd, keys.encode() + b"\x0c")      # all of the screen, not what changed

    def end(self):
        """Waits for the end, and returns the exit status."""
        while self.read(60):
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Top(unittest.TestCase):
    def setUp(self):
        help_text = s.stook("top", "1").stderr
        if "without ncurses" in help_text:
            self.skipTest("built without ncurses")
        self.program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=dict(os.environ, LD_PRELOAD=s.DROP_IN, PYTHONMALLOC="malloc"))
        self.assertEqual(self.program.stdout.readline(), "ready\n")
        self.pid = str(self.program.pid)

    def tearDown(self):
        if hasattr(self, "program"):
            self.program.stdin.close()
            self.program.stdout.close()
            self.program.wait()

    def seen(self, terminal, pattern):
        self.assertTrue(terminal.until(pattern), (pattern, terminal.text[-3000:]))

    def test_views_and_keys(self):
        t = Terminal("--every", "0.2", self.pid)
        self.seen(t, r"libstook-malloc\.so")
        self.seen(t, r"ALLOC/s")
        self.seen(t, r"malloc-352")
        self.seen(t, r"[0-9.]+[kM] ")                   # a rate: the second look has them
        for key, pattern in (("f", "PINNED"), ("n", "BARN FULL"), ("s", "OBJECTS"),
                             ("g", "no groups"), ("h", "look half as often"), (" ", ""),
                             ("c", "ALLOC/s"), ("t", "SLABS MADE"), ("z", ""), ("t", "ALLOC/s"),
                             (">", ""), ("r", ""), ("+", r"0\.4"), ("-", r"0\.2"),
                             ("p", "paused"), ("p", ""), ("a", ""), ("a", ""), ("r", ""), ("<", ""),
                             ("/no-such\r", "no cache of that name"), ("/\r", "malloc-352")):
            t.press(key)
            self.seen(t, pattern)
        t.resize(60, 8)
        os.kill(t.pid, signal.SIGWINCH)
        t.press("c")
        t.resize(10, 3)
        os.kill(t.pid, signal.SIGWINCH)
        t.press("n")
        t.resize(200, 50)
        os.kill(t.pid, signal.SIGWINCH)
        self.seen(t, "CAME HOME")
        os.write(t.fd, b"q")
        self.assertEqual(t.end(), 0)
        self.assertIsNone(self.program.poll())

    def test_narrow_screens(self):
        """What does not fit is left out as a whole, but never the way to the help."""
        part = r"(allocs|frees|refilled|flushed) [0-9.]+[kM]?(/s)?|(slots|nodes|groups) \d+|" \
               r"own data [0-9.]+ (KiB|MiB)"
        for columns in (48, 62, 71, 80, 97, 120):
            with self.subTest(columns):
                t = Terminal("--every", "0.2", self.pid, columns=columns)
                self.seen(t, r"allocs .*(?s:.*)CACHE(?s:.*)h help")
                line = re.search(r"allocs .*?(?=\s+CACHE)", t.text, re.S)[0]
                for words in re.split("[,;] ", line):
                    self.assertRegex(words, "^(%s)$" % part, line)
                os.write(t.fd, b"q")
                self.assertEqual(t.end(), 0)

    def test_process_ends(self):
        t = Terminal("--every", "0.1", self.pid)
        self.seen(t, "malloc-352")
        self.program.kill()
        self.program.wait()
        self.assertEqual(t.end(), 1)
        self.assertIn("the process is gone", t.text)

    def test_no_terminal(self):
        done = s.stook("top", self.pid)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("stook info --every", done.stderr)
        for term in ("no-such-terminal", "dumb"):
            t = Terminal(self.pid, term=term)
            self.assertEqual(t.end(), 2, term)
            self.assertRegex(t.text, "^\r?stook top: the terminal is of no known kind, or cannot "
                             f"move its cursor .TERM={term}.; .*\r\n$")

    def test_arguments(self):
        for args, words in ((["--sort", "x", self.pid], "there is: CACHE"),
                            (["--every", "x", self.pid], "takes seconds"),
                            ([], "no process given"), (["1", "2"], "one process"),
                            (["--what", "1"], "no option '--what'")):
            done = s.stook("top", *args)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(words, done.stderr)
        self.assertEqual(s.stook("top", "4194304").returncode, 1)
        self.assertEqual(s.stook("top", "--help").returncode, 0)


if __name__ == "__main__":
    s.main()
