"""
tools/sections/charge.py - charges are interrupted, alone and with the pop or push behind them

Purpose: the cases of the sections that change a precharge: charge_pop and uncharge_push, which are
two sections each, precharge_add and precharge_set. They are interrupted by each other, by pop and
push, by a migration, and by a freeze of the word on another CPU, without its barrier and behind it.
Afterwards no byte may be lost or charged twice, each object is in one place, the word is of its
group and within its bounds, and what a freeze saw behind its barrier is final.
Place: used by tools/check-sections.
"""
import unicorn as un

from machine import AREA, CAPACITY, CID_AT, DELTA, FROZEN, GROUP, PRECHARGE, PRECHARGE_BITS, SELF
from machine import SLOT_BYTES

MOST = (1 << PRECHARGE_BITS) - 1
MINE, THEIRS = 0x1110000, 0x2220000     # objects
CHARGED_ONLY = 1
PUSHED, UNCHARGED, STILL_CHARGED = range(3)
OTHERS = ("charge_pop", "uncharge_push", "precharge_add", "precharge_set", "pop", "push", "migrate",
          "freeze", "freeze, barrier")
# Of the precharge: enough, less than an object needs, no room for one, another group's.
WORDS = (GROUP << 32 | 3 * DELTA, GROUP << 32 | DELTA - 1, GROUP << 32 | MOST - DELTA + 1,
         GROUP + 1 << 32 | 3 * DELTA)
SIMPLE = [(3, word) for word in WORDS]
SIZES_WORDS = [*SIMPLE, (0, WORDS[0]), (CAPACITY, WORDS[0])]


class Account:
    """What two threads hold, and what they have charged."""

    def __init__(self, machine, size, word):
        self.m, self.objects, self.popped, self.word = machine, machine.prepare((size, 3)), 0, word
        self.mine, self.theirs, self.charged, self.final = {MINE}, {THEIRS}, 0, None
        for slot in range(2):
            machine.put(PRECHARGE + slot * SLOT_BYTES, word)

    def done(self, op, value, answer, hands):
        """Books what @op answered to the thread that holds @hands."""
        answer &= 0xffffffffffffffff if op in ("charge_pop", "pop") else 0xffffffff
        if op in ("charge_pop", "pop") and answer > CHARGED_ONLY:
            self.popped += 1
            hands.add(answer)
        if op == "charge_pop" and answer or op == "precharge_add" and answer & 0xff:
            self.charged += DELTA
        if op == "precharge_set" and answer & 0xff:
            self.charged -= DELTA
        if op == "uncharge_push" and answer != STILL_CHARGED:
            self.charged -= DELTA
        if op == "uncharge_push" and answer == PUSHED or op == "push" and answer == 1:
            hands.discard(value)

    def words(self):
        return [self.m.word(PRECHARGE + slot * SLOT_BYTES) & ~FROZEN for slot in range(2)]

    def faults(self):
        """What is wrong now."""
        inside, pops = self.m.contents()
        if inside is None or pops != self.popped or \
                sorted([*inside, *self.mine, *self.theirs]) != \
                sorted({*self.objects, MINE, THEIRS}):
            return "an object is lost, or in two places"
        if any(word >> PRECHARGE_BITS != self.word >> PRECHARGE_BITS for word in self.words()):
            return "a word is of another group, or out of its bounds"
        if sum(self.words()) != 2 * self.word - self.charged:
            return "bytes are lost, or charged twice"
        if self.final is not None and self.m.word(PRECHARGE) != self.final:
            return "what a freeze saw was not final"
        return None

    def another(self, other):
        """What happens between two instructions."""
        if other == "migrate":
            self.m.put(SELF + AREA + CID_AT, 1, "<I")
        elif other.startswith("freeze"):
            self.m.put(PRECHARGE, self.m.word(PRECHARGE) | FROZEN)
            if other == "freeze, barrier":
                self.final = self.m.word(PRECHARGE)
        else:
            value = self.m.word(PRECHARGE) if other == "precharge_set" else THEIRS
            if other != "precharge_set" or (value & MOST) + DELTA <= MOST:
                self.done(other, value, self.m.whole(other, value), self.theirs)


def one(machine, op, other, size, word):
    """(cases, fault or None) of all places where @other can come."""
    k = 0
    value = word if op == "precharge_set" else MINE
    if op == "precharge_set" and (word & MOST) + DELTA > MOST:
        return 0, None                  # its caller sees to the bounds
    while True:
        account = Account(machine, size, word)
        try:
            answer = machine.interrupted(op, value, k, lambda: account.another(other),
                                         other != "freeze")
        except un.UcError as error:
            return k, "%s, %s after %d instructions, size %d: %s" % (op, other, k, size, error)
        if answer is None:
            return k, None
        account.done(op, value, answer, account.mine)
        what = account.faults()
        if what:
            return k, "%s, %s after %d instructions, size %d, precharge %d: %s" % (
                op, other, k, size, word & MOST, what)
        k += 1


def run_charge(machine):
    cases, faults = 0, []
    ways = [(op, "right") for op in ("precharge_set", "precharge_add", "charge_pop",
                                     "uncharge_push")]
    for op, machine.guess in [("charge_pop", "wrong"), *ways]:
        for other in OTHERS:
            for size, word in SIZES_WORDS if op.startswith(("charge", "uncharge")) else SIMPLE:
                more, fault = one(machine, op, other, size, word)
                cases += more
                faults += [fault] if fault else []
                if machine.mutant and faults:
                    return cases, faults
    return cases, faults
