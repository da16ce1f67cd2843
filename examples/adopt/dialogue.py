#!/usr/bin/env python3
"""Proves that the session server answers the same on malloc and on caches, and what is written
here: a login is all or nothing, full is full, a user without sessions is gone.

    dialogue.py PROGRAM...
"""
import socket
import subprocess
import sys

MOST = 5
DIALOGUE = [
    ("LOGIN ann t1 t2", "OK"),
    ("WHO t2", "ann"),
    ("LOGIN bob t3 t1 t4", "EXISTS"),           # t1 is ann's: neither t3 nor t4 begins
    ("WHO t3", "NOBODY"),
    ("COUNT", "2"),
    ("LOGIN bob t3 t4 t3", "EXISTS"),           # twice in one line
    ("LOGIN bob t3 t4", "OK"),
    ("LOGIN bob t5 t6", "FULL"),
    ("COUNT", "4"),
    ("LOGIN bob t5", "OK"),
    ("LOGOUT t1", "OK"),
    ("LOGOUT t1", "NOBODY"),
    ("LOGOUT t2", "OK"),
    ("WHO t2", "NOBODY"),
    ("LOGIN ann t2", "OK"),
    ("WHO t2", "ann"),
    ("WHO " + "t" * 30, "WHAT"),
    ("HELLO", "WHAT"),
    ("COUNT", "4"),
]


def answers_of(program):
    server = subprocess.Popen([program, str(MOST)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True)
    port = int(server.stdout.readline())
    answers = []
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        stream = connection.makefile("rw")
        for line, _ in DIALOGUE:
            stream.write(line + "\n")
            stream.flush()
            answers.append(stream.readline().strip())
    server.stdin.close()
    if server.wait(20):
        sys.exit(f"{program} ended with {server.returncode}")
    return answers


def main():
    for program in sys.argv[1:]:
        answers = answers_of(program)
        for (line, expected), answer in zip(DIALOGUE, answers, strict=True):
            if answer != expected:
                sys.exit(f"{program}: {line}: {answer}, not {expected}")
        done = subprocess.run([program, "--work", "2", "100"], stdout=subprocess.PIPE, text=True,
                              timeout=60, check=True)
        if not done.stdout.startswith("100000 sessions"):
            sys.exit(f"{program}: --work printed {done.stdout}")
    if len(sys.argv) < 2:
        sys.exit("no program")


main()
