"""
tools/sections/runs.py - each section is interrupted by each other one

Purpose: the cases of tools/check-sections, but for those of charges (charge.py) and swaps
(swap.py). A run returns how many cases there were, and what was wrong.
Place: used by tools/check-sections.
"""
import unicorn as un

from machine import AFTER, AREA, CAPACITY, CAPACITY_AT, CID_AT, CONFIG, ENTRIES, ENTRY, GIVEN
from machine import GIVEN_WORDS, NO_ROOM, OBJECTS_AT, RCU_AT, READY_AT, ROOM_AT, SELF, SHEAF
from machine import SLOTS, SLOT_BYTES, SPARE_AT, WORD_BASE


def run(machine, names={"pop": "pop", "push": "push"}):
    """Cases and faults. @names: of the functions that pop and push. "vfork": another thread begins
    one meanwhile, so the bound of direct sections becomes 0."""
    cases, faults = 0, []
    others = ("pop", "push", "pop twice", "push twice", "migrate")
    for op in ("pop", "push"):
        for other in others + ("vfork",) * machine.direct:
            for size in range(CAPACITY + 1):
                k = 0
                while True:
                    objects = machine.prepare((size, 3))
                    mine, theirs, popped = 0x1110000, [0x2220000, 0x2220040], []
                    hands = [theirs[0], theirs[1]]

                    def then():
                        if other == "migrate":
                            machine.put(SELF + AREA + CID_AT, 1, "<I")
                            return
                        if other == "vfork":
                            machine.ask_record(True)
                            return
                        for i in range(2 if other.endswith("twice") else 1):
                            if other.startswith("pop"):
                                got = machine.whole(names["pop"], 0)
                                if got:
                                    popped.append(got)
                            elif machine.whole(names["push"], hands[0]) == 1:
                                hands.pop(0)
                    try:
                        answer = machine.interrupted(names[op], mine, k, then, other != "vfork")
                    except un.UcError as error:
                        return cases, faults + ["%s, %s after %d instructions, size %d: %s" %
                                                (op, other, k, size, error)]
                    if machine.mutant and faults:       # one is enough
                        return cases, faults
                    if answer is None:
                        break
                    k, cases = k + 1, cases + 1
                    want = objects | {mine} | set(theirs) if op == "push" else objects | set(theirs)
                    inside, pops = machine.contents()
                    out = list(popped) + hands
                    if op == "pop" and answer:
                        popped.append(answer)
                        out.append(answer)
                    elif op == "push" and answer != 1:
                        out.append(mine)
                    if inside is None or sorted(inside + out) != sorted(want) or \
                            pops != len(popped):
                        faults.append("%s, %s after %d instructions, size %d" %
                                      (op, other, k - 1, size))
    return cases, faults


class Places:
    """Sheaves in slots and hands, for rcu_push, rcu_fill and exchange. Sheaves 0 and 1 are the
    slots' main, 2 and 3 their rcu sheaves, 4 the spare of slot 0; 5 and 6 are in hands."""

    def __init__(self, machine, sizes):
        machine.prepare((0, 0))
        self.m, self.hands, self.objects, self.seen, self.filled = (machine, {5, 6}, set(), {},
                                                                    set())
        for sheaf, size in enumerate(sizes):
            at = SHEAF + sheaf * 0x1000
            machine.put(at, WORD_BASE << 16 | size)
            machine.put(at + CAPACITY_AT, CAPACITY, "<I")
            machine.put(at + ROOM_AT, CAPACITY, "<H")
            for i in range(16):
                machine.put(at + OBJECTS_AT + 8 * i, machine.object(sheaf, i) if i < size else 0)
            self.objects |= {machine.object(sheaf, i) for i in range(size)}
        for slot in range(2):
            self.line(slot, slot, 4 if slot == 0 else None, 2 + slot)
        machine.put(CONFIG, 8, "<I")

    def line(self, slot, main, spare, rcu):
        for at, sheaf in ((0, main), (SPARE_AT, spare), (RCU_AT, rcu)):
            self.m.put(SLOTS + slot * SLOT_BYTES + at,
                       0 if sheaf is None else SHEAF + sheaf * 0x1000)

    def at(self, slot, field):
        address = self.m.word(SLOTS + slot * SLOT_BYTES + field)
        return (address - SHEAF) // 0x1000 if address else None

    def inside(self, sheaf):
        at = SHEAF + sheaf * 0x1000
        size = (self.m.word(at) & 0xffff) + (sheaf in self.filled)
        return [self.m.word(at + OBJECTS_AT + 8 * i) for i in range(size)]

    def evacuate_rcu(self, look):
        """Takes slot 0's rcu sheaf. look: behind a barrier, so it is final."""
        sheaf = self.at(0, RCU_AT)
        if sheaf is not None:
            self.m.put(SLOTS + RCU_AT, 0)
            self.hands.add(sheaf)
            if look:
                self.seen[sheaf] = self.inside(sheaf)

    def fill(self, object):
        got = self.m.whole("rcu_fill", object)
        if got:
            self.took(got, object)
        return got

    def took(self, address, object):
        """The sheaf that an rcu_fill answered is its caller's, full."""
        sheaf = (address - SHEAF) // 0x1000
        self.hands.add(sheaf)
        self.filled.add(sheaf)
        self.objects.add(object)

    def faults(self, hands_twice):
        """What is wrong now."""
        attached = [s for slot in range(2)
                    for s in (self.at(slot, 0), self.at(slot, SPARE_AT), self.at(slot, RCU_AT))
                    if s is not None]
        if sorted(attached + sorted(self.hands)) != list(range(7)) or hands_twice:
            return "a sheaf is lost, or in two places"
        if any(len(self.inside(s)) >= CAPACITY
               for slot in range(2) for s in [self.at(slot, RCU_AT)] if s is not None):
            return "an attached rcu sheaf is full"
        if sorted(o for s in range(7) for o in self.inside(s)) != sorted(self.objects):
            return "an object is lost, or in two places"
        if any(len(self.inside(s)) != CAPACITY for s in self.filled):
            return "a sheaf left before it was full"
        if any(self.inside(s) != was for s, was in self.seen.items()):
            return "what an evacuation saw was not final"
        return None


def run_hot(machine):
    """malloc of a size in the table, and of a larger one; by direct sections, where the machine has
    them, and by checked ones, after a look at a bound of 0, or where direct sections are off; on
    x86-64 with a right and a wrong guess of the top object. With neither bound above the index
    nothing may be done."""
    cases, faults = 0, []
    for on, direct in ((False, False), (True, False), (True, True)):
        machine.direct = direct
        machine.start_direct(on)
        guesses = direct and machine.name == "x86-64"
        for machine.guess in ("wrong", "right") if guesses else ("right",):
            for pop in ("malloc", "malloc_large"):
                more, wrong = run(machine, {"pop": pop, "push": "free"})
                cases, faults = cases + more, faults + wrong
        more, wrong = run_no_slab(machine)
        cases, faults = cases + more, faults + wrong
    for op in ("malloc", "malloc_large", "free"):
        before = machine.prepare((3, 3))
        machine.ask_record(True)
        machine.put(SELF + READY_AT, 0, "<I")
        done, cases = machine.whole(op, 0x1110000), cases + 1
        if done or set(machine.contents()[0]) != before:
            faults.append("%s did something where no slot is ready" % op)
    for op in ("malloc", "malloc_large"):
        before = machine.prepare((3, 3))
        machine.before_start()
        try:
            done, cases = machine.whole(op, 0x1110000), cases + 1
        except un.UcError as error:
            done = error
        if done or set(machine.contents()[0]) != before:
            faults.append("%s did something before the start: %s" % (op, done))
    machine.start_direct(True)
    return cases, faults


def run_no_slab(machine):
    """A free of what is no slab's misses, on any slot and at any instruction, and does nothing."""
    span, cases, faults, k = 0x1110000, 0, [], 0
    machine.put(ENTRIES + (span >> 12) * 8, 0x7f80)
    while True:
        before, words = machine.prepare((3, 3)), [machine.word(NO_ROOM + 8 * i) for i in range(6)]
        done = machine.interrupted("free", span, k,
                                   lambda: machine.put(SELF + AREA + CID_AT, 1, "<I"))
        if done is None:
            break
        k, cases = k + 1, cases + 1
        if done or set(machine.contents()[0]) != before or \
                words != [machine.word(NO_ROOM + 8 * i) for i in range(6)]:
            faults.append("free of no slab's, migrated after %d instructions" % (k - 1))
    machine.put(ENTRIES + (span >> 12) * 8, ENTRY)
    return cases, faults


def run_guessed(machine):
    """The pop and the push of object caches, with a right and a wrong guess of the top object."""
    cases, faults = 0, []
    for machine.guess in ("wrong", "right"):
        more, wrong = run(machine, {"pop": "pop_guessed", "push": "push_guessed"})
        cases, faults = cases + more, faults + wrong
    return cases, faults


def run_rcu(machine):
    cases, faults = 0, []
    for op in ("rcu_push", "rcu_fill"):
        for other in ("push", "push twice", "fill", "migrate", "evacuate", "evacuate, barrier",
                      "replace"):
            for size in range(CAPACITY):
                k = 0
                while True:
                    places, mine = Places(machine, (3, 3, size, 2, 3, 0, 0)), 0x1110000

                    def then():
                        if other == "migrate":
                            machine.put(SELF + AREA + CID_AT, 1, "<I")
                        elif other.startswith("push"):
                            for object in (0x2220000, 0x2220040)[:2 if "twice" in other else 1]:
                                if machine.whole("rcu_push", object) == object:
                                    places.objects.add(object)
                        elif other == "fill":
                            places.fill(0x2220000)
                        else:
                            places.evacuate_rcu(other != "evacuate")
                            if other == "replace":
                                machine.put(SLOTS + RCU_AT, SHEAF + 5 * 0x1000)
                                places.hands.discard(5)
                    try:
                        answer = machine.interrupted(op, mine, k, then, other != "evacuate")
                    except un.UcError as error:
                        return cases, faults + ["%s, %s after %d instructions, size %d: %s" %
                                                (op, other, k, size, error)]
                    if machine.mutant and faults:
                        return cases, faults
                    if answer is None:
                        break
                    twice = False
                    if op == "rcu_push" and answer == mine:
                        places.objects.add(mine)
                    elif op == "rcu_fill" and answer:
                        twice = (answer - SHEAF) // 0x1000 in places.hands
                        places.took(answer, mine)
                    what = places.faults(twice)
                    if op == "rcu_push" and answer == 1 and size + 1 < CAPACITY and \
                            other in ("migrate", "evacuate"):
                        what = "last, but there is room"
                    if machine.word(AFTER) != mine:
                        what = "an input did not survive"
                    if what:
                        faults.append("%s, %s after %d instructions, size %d: %s" %
                                      (op, other, k, size, what))
                    k, cases = k + 1, cases + 1
    return cases, faults


def run_exchange(machine):
    """Main, of the size that was seen, goes out; its spare becomes main, or a new sheaf does and
    main its spare."""
    cases, faults = 0, []
    for way in ("replace both", "install"):
        for other in ("pop", "push", "pop, push", "exchange", "migrate", "evacuate",
                      "evacuate, barrier", "config"):
            for size in (0, 3, CAPACITY):
                k = 0
                while True:
                    places = Places(machine, (size, 2, 1, 1, 4, 5, 0))
                    sheaf = lambda n: SHEAF + n * 0x1000
                    desired = ((sheaf(5), sheaf(4)) if way == "replace both"
                               else (sheaf(5), sheaf(0)))
                    given = [sheaf(0), sheaf(4), *desired, size, 8]
                    for i, word in enumerate(given):
                        machine.put(GIVEN + 8 * i, word)
                        machine.put(GIVEN + 0x100 + 8 * i,
                                    (sheaf(0), sheaf(4), sheaf(6), sheaf(0), size, 8)[i])
                    # what leaves the slot; whether it had left already
                    out, twice = 0 if way == "replace both" else 4, []

                    def commit():
                        twice.append(out in places.hands)
                        places.hands.discard(5)
                        places.hands.add(out)

                    def then():
                        if (machine.word(SLOTS), machine.word(SLOTS + SPARE_AT)) == desired:
                            commit()
                        if other == "migrate":
                            machine.put(SELF + AREA + CID_AT, 1, "<I")
                        elif other == "config":
                            machine.put(CONFIG, 9, "<I")
                        # of another thread: 6 for main, main for the spare
                        elif other == "exchange":
                            if machine.whole("exchange", GIVEN + 0x100) & 1:
                                places.hands.discard(6)
                                places.hands.add(4)
                        elif other.startswith("evacuate"):
                            main, spare = places.at(0, 0), places.at(0, SPARE_AT)
                            if main != 6:
                                places.hands |= {main, spare}
                                # the sheaf without room stands there now
                                places.hands.discard(6)
                                places.line(0, 6, None, places.at(0, RCU_AT))
                            if other == "evacuate, barrier":
                                places.seen.update({s: places.inside(s) for s in (main, spare)})
                        else:
                            popped = machine.whole("pop", 0) if "pop" in other else 0
                            places.objects.discard(popped)
                            if "push" in other and machine.whole("push", 0x2220000) == 1:
                                places.objects.add(0x2220000)
                    try:
                        answer = machine.interrupted("exchange", GIVEN, k, then,
                                                     other not in ("evacuate", "config"))
                    except un.UcError as error:
                        return cases, faults + ["exchange, %s after %d instructions, size %d: %s" %
                                                (other, k, size, error)]
                    if machine.mutant and faults:
                        return cases, faults
                    if answer is None:
                        break
                    what = None
                    if answer & 1:
                        if not twice:
                            commit()
                            if len(places.inside(0)) != size:
                                what = "main had another size"
                        if other == "config" and k == 0:
                            what = "an older configuration"
                    what = what or places.faults(any(twice))
                    if not answer & 1 and twice:
                        what = "done, and denied"
                    if [machine.word(AFTER + 8 * i) for i in range(GIVEN_WORDS)] != given:
                        what = "an input did not survive"
                    if what:
                        faults.append("exchange (%s), %s after %d instructions, size %d: %s" %
                                      (way, other, k, size, what))
                    k, cases = k + 1, cases + 1
    return cases, faults
