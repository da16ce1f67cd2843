"""
tools/sections/marks.py - pops stop at a mark, and a rearm takes it away

Purpose: the cases of sheaves whose count is at the mark, or up to two pops before it: pop, pop_n,
malloc and charge_pop, and the section that gives main a new count (rearm). They are interrupted by
each other, by pushes, by a migration, and by an evacuation on another CPU, without its barrier and
behind it. Afterwards each object is in one place, each pop is counted, no pop has passed a mark, a
word that two rearms have seen was changed by one of them, and what an evacuation saw behind its
barrier is final.
Place: used by tools/check-sections.
"""
import unicorn as un

from machine import AFTER, AREA, CID_AT, GIVEN, NO_ROOM, SELF, SHEAF, SLOTS

MARK, BASE = 0x8000, 7
MINE, THEIRS = 0x1110000, 0x2220000     # objects
OPS = ("pop", "pop_guessed", "pop_n", "malloc", "charge_pop", "push", "rearm")
OTHERS = ("pop", "pop_n", "malloc", "push", "rearm", "migrate", "evacuate", "evacuate, barrier")
STATES = [(size, MARK - before) for size in (0, 1, 3) for before in (0, 1, 2)]


class Case:
    def __init__(self, machine, size, count):
        self.m, self.objects = machine, machine.prepare((size, 3))
        self.out, self.pops, self.rearms, self.final = [MINE, THEIRS], 0, 0, None
        for slot in range(2):
            machine.put(SHEAF + slot * 0x1000 + 4, BASE, "<I")
            machine.put(SHEAF + slot * 0x1000 + 2, count, "<H")
        self.count = count
        word = machine.word(SHEAF)
        for at in (GIVEN, GIVEN + 0x100):       # of both rearms: what their callers saw
            for i, value in enumerate((SHEAF, word, (word & 0xffff) | BASE + count << 32)):
                machine.put(at + 8 * i, value)

    def did(self, op, answer, value):
        """Books what @op answered."""
        if op == "pop_n":
            got = [self.m.word(AFTER + 8 * i) for i in range(answer & 0xff)]
        elif op in ("push", "rearm"):
            got = []
            self.rearms += op == "rearm" and answer & 1
            if op == "push" and answer & 0xff == 1:
                self.out.remove(value)
        else:
            got = [answer] if answer > 1 else []        # 1: charge_pop charged, and had none
        self.out += got
        self.pops += len(got)

    def another(self, other):
        """What happens between two instructions."""
        if other == "migrate":
            self.m.put(SELF + AREA + CID_AT, 1, "<I")
        elif other.startswith("evacuate"):
            self.m.put(SLOTS, NO_ROOM)
            if other == "evacuate, barrier":
                self.final = self.m.word(SHEAF)
        else:
            value = GIVEN + 0x100 if other == "rearm" else THEIRS
            self.did(other, self.m.whole(other, value), value)

    def faults(self):
        """What is wrong now."""
        words = [self.m.word(SHEAF + slot * 0x1000) for slot in range(2)]
        if any((word >> 16 & 0xffff) > MARK for word in words):
            return "a pop passed the mark"
        if sum((word >> 32) + (word >> 16 & 0xffff) - BASE - self.count for word in words) != \
                self.pops:
            return "a pop was not counted"
        inside = [self.m.word(SHEAF + slot * 0x1000 + 32 + 8 * i)
                  for slot, word in enumerate(words) for i in range(word & 0xffff)]
        if sorted([*inside, *self.out]) != sorted({*self.objects, MINE, THEIRS}):
            return "an object is lost, or in two places"
        if self.rearms > 1:
            return "two rearms of one word"
        if self.final is not None and self.final != words[0]:
            return "what an evacuation saw was not final"
        return None


def one(machine, op, other, size, count):
    """(cases, fault or None) of all places where @other can come."""
    k, value = 0, GIVEN if op == "rearm" else MINE
    while True:
        case = Case(machine, size, count)
        try:
            answer = machine.interrupted(op, value, k, lambda: case.another(other),
                                         other != "evacuate")
        except un.UcError as error:
            return k, "%s, %s after %d instructions, size %d, count %#x: %s" % (
                op, other, k, size, count, error)
        if answer is None:
            return k, None
        case.did(op, answer, value)
        what = case.faults()
        if what:
            return k, "%s, %s after %d instructions, size %d, count %#x: %s" % (
                op, other, k, size, count, what)
        k += 1


def run_marks(machine):
    cases, faults = 0, []
    for op in OPS:
        for machine.guess in ("wrong", "right") if op == "malloc" else ("right",):
            for other in OTHERS:
                for size, count in STATES:
                    more, fault = one(machine, op, other, size, count)
                    cases += more
                    faults += [fault] if fault else []
                    if machine.mutant and faults:
                        return cases, faults
    return cases, faults
