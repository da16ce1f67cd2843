"""
tools/sections/swap.py - swaps of main and spare within malloc and free are interrupted

Purpose: the cases of the section that has main and spare change places, in malloc and free of a
drop-in that swaps itself, with the pop or push behind it. They are interrupted by each other, by
pop and push, by a migration, and by an evacuation on another CPU, without its barrier and behind
it.
Afterwards each sheaf and each object must be in one place, and each pop counted. What an evacuation
saw behind its barrier is final. The sheaf without room is never a spare. When a swap for a pop
commits, main is empty and the spare is not; for a push, main is full and the spare is not.
Place: used by tools/check-sections.
"""
import unicorn as un

from machine import AREA, CAPACITY, CAPACITY_AT, CID_AT, OBJECTS_AT, ROOM_AT, SELF, SHEAF
from machine import SPARE_AT, WORD_BASE
from runs import Places

MINE, THEIRS = 0x1110000, 0x2220000     # objects
NO_ROOM = 6                             # the sheaf without room
POPS = ("pop", "malloc")
OTHERS = ("pop", "push", "malloc", "free", "migrate", "evacuate", "evacuate, barrier")
# Objects in main and in the spare. None: main is the sheaf without room; there is no spare.
SIZES_POP = [(0, 3), (0, 1), (0, 0), (1, 3), (0, None), (None, 3)]
SIZES_PUSH = [(CAPACITY, 3), (CAPACITY, CAPACITY - 1), (CAPACITY, CAPACITY), (CAPACITY - 1, 3),
              (CAPACITY, None), (None, 3)]


class Case(Places):
    """Slot 0 has sheaf 0 as its main, or the one without room, and sheaf 4 as its spare, or none.
    Slot 1 has 1 and 5, with as many objects."""

    def __init__(self, machine, op, main, spare):
        super().__init__(machine, (main or 0, main or 0, 0, 0, spare or 0, spare or 0, 0))
        self.op, self.pushed, self.popped = op, set(), []
        machine.put(SHEAF + NO_ROOM * 0x1000 + CAPACITY_AT, 0, "<I")
        machine.put(SHEAF + NO_ROOM * 0x1000 + ROOM_AT, 0, "<H")
        self.hands = set(range(7))
        self.attach(0, NO_ROOM if main is None else 0, None if spare is None else 4, 2)
        self.attach(1, 1, 5, 3)

    def attach(self, slot, main, spare, rcu):
        self.line(slot, main, spare, rcu)
        self.hands -= {main, spare, rcu}

    def pairs(self):
        return [(self.at(slot, 0), self.at(slot, SPARE_AT)) for slot in range(2)]

    def did(self, op, answer, value):
        """True: @op popped or pushed."""
        if op not in POPS:
            done = answer & 0xffffffff == 1
            self.pushed |= {value} if done else set()
            return done
        self.popped += [answer] if answer else []
        return answer != 0

    def another(self, other):
        """What happens between two instructions."""
        if other == "migrate":
            self.m.put(SELF + AREA + CID_AT, 1, "<I")
        elif other.startswith("evacuate"):
            main, spare = self.pairs()[0]
            if main == NO_ROOM:
                return
            self.hands |= {main, spare} - {None}
            self.attach(0, NO_ROOM, None, 2)
            if other == "evacuate, barrier":
                self.seen = {s: self.inside(s) for s in (main, spare) if s is not None}
        else:
            self.did(other, self.m.whole(other, THEIRS), THEIRS)

    def wrong_swap(self, was, did):
        """What was wrong with a swap, if the pairs @was before it. @did: a pop or push was done
        behind it; None: perhaps."""
        for (main, spare), now in zip(was, self.pairs()):
            if now != (spare, main):
                continue
            if spare is None:
                return "a swap where there was no spare"
            left, came = len(self.inside(main)), len(self.inside(spare))
            if self.op in POPS:
                if left or did is not None and came + did == 0:
                    return "a swap for a pop with %d in main, %d in the spare" % (left, came)
            elif left < CAPACITY or did is not None and came - did >= CAPACITY:
                return "a swap for a push with %d in main, %d in the spare" % (left, came)
        return None

    def faults(self):
        """What is wrong now."""
        pops = sum((self.m.word(SHEAF + s * 0x1000) >> 16) - WORD_BASE for s in range(7))
        if any(spare == NO_ROOM for _, spare in self.pairs()):
            return "the sheaf without room is a spare"
        if pops != len(self.popped):
            return "a pop was not counted"
        self.objects = (self.objects | self.pushed) - set(self.popped)
        return super().faults(False)


def one(machine, op, other, main, spare):
    """(cases, fault or None) of all places where @other can come."""
    k = 0
    while True:
        case = Case(machine, op, main, spare)
        start, found, meanwhile = case.pairs(), [], []      # the pairs after the interruption

        def then():
            found.append(case.wrong_swap(start, None))
            case.another(other)
            meanwhile.append(case.pairs())
        try:
            answer = machine.interrupted(op, MINE, k, then, other != "evacuate")
        except un.UcError as error:
            found, answer = [str(error)], 0
        if answer is None:
            return k, None
        if meanwhile:
            found.append(case.wrong_swap(meanwhile[0], case.did(op, answer, MINE)))
            found.append(case.faults())
        found = [what for what in found if what]
        if found:
            return k, "%s, %s after %d instructions, main %s, spare %s: %s" % (
                op, other, k, main, spare, found[0])
        k += 1


def twice(machine, op):
    """A free of main's top object, where main is full, does nothing."""
    case = Case(machine, op, CAPACITY, 3)
    start, top = case.pairs(), machine.word(SHEAF + OBJECTS_AT + 8 * (CAPACITY - 1))
    answer = machine.whole(op, top) & 0xffffffff
    if answer == 1 or case.pairs() != start or case.faults():
        return "%s swapped for an object that is free" % op
    return None


def run_swap(machine, ops=("malloc", "free")):
    cases, faults = 0, []
    for op in ops:
        wrong = None if op in POPS else twice(machine, op)
        faults += [wrong] if wrong else []
        for main, spare in SIZES_POP if op in POPS else SIZES_PUSH:
            for other in OTHERS:
                if machine.mutant and faults:
                    return cases, faults
                more, wrong = one(machine, op, other, main, spare)
                cases += more
                faults += [wrong] if wrong else []
    return cases, faults
