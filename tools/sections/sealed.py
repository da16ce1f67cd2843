"""
tools/sections/sealed.py - malloc and free of sealed objects are interrupted

Purpose: the cases of the drop-in's way for objects with seals (dropin/hot_sealed_x86_64.h): a
malloc and a free of 48 bytes are interrupted at each instruction, by each other, by a migration,
and by a vfork, with one thread and with several. Afterwards each object must be in one place: a
sheaf, the place where freed ones wait, with the C code, or in use. Each seal must say which, and
nothing may have been found at fault. A second free of the same object must be refused, also one
that comes within the first.
Place: used by tools/check-sections.
"""
import struct

import unicorn as un

from machine import AREA, CAPACITY, CID_AT, SELF, SLOTS

MINE, THEIRS, WAITS = 0x1110000, (0x2220000, 0x2220040), 0x2221000      # objects
BLOCK = 0x2230000                       # the place is behind the generator's word
AT, BYTES, ALL = 56, 48, (1 << 64) - 1
LIVE = 1
ADDRESS, FACTOR, TIE = 0x5bd1e9955bd1e995, 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9
OTHERS = ("malloc", "free", "malloc twice", "free twice", "migrate", "vfork", "the same")


def key_of(at):
    return (at ^ ADDRESS) * FACTOR & ALL


def canary_of(at):
    return int.from_bytes(key_of(at).to_bytes(8, "big"), "little") | 0x0101010101010101


def says(machine, at):
    return (machine.word(at + AT) - key_of(at)) * pow(TIE, -1, 1 << 64) & ALL


class Case:
    def __init__(self, machine, size, waits, alone):
        self.m = machine
        free = machine.prepare((size, 3)) | ({WAITS} if waits else set())
        self.live = {MINE, *THEIRS}
        self.all = free | self.live
        for at in free:
            self.seal(at, BYTES << 4)
            for word in (at, at + BYTES - 8):
                machine.put(word, canary_of(at))
        for at in self.live:
            self.seal(at, BYTES << 4 | LIVE)
            machine.put(at + BYTES, canary_of(at))
        machine.put(BLOCK + 8, WAITS if waits else 0)
        machine.put(machine.symbols["__libc_single_threaded"], alone, "<B")
        machine.put(machine.symbols["sealed_gone"], 0)
        machine.put(machine.symbols["sealed_refused"], 0)
        self.gone, self.refused = [], 0

    def seal(self, at, what):
        self.m.put(at + AT, key_of(at) + what * TIE & ALL)

    def took(self, object):
        """A malloc returned @object, or NULL."""
        if object:
            self.live.add(object)

    def freed(self, answer, object):
        if answer & 0xffffffff == 1:
            self.live.discard(object)
        else:
            self.refused += 1
        self.collect()

    def collect(self):
        """What the C code was given."""
        gone = self.m.word(self.m.symbols["sealed_gone"])
        self.gone += [gone] if gone else []
        self.m.put(self.m.symbols["sealed_gone"], 0)

    def another(self, other):
        self.collect()
        if other == "migrate":
            self.m.put(SELF + AREA + CID_AT, 1, "<I")
        elif other == "vfork":
            self.m.ask_record(True)
        elif other == "the same":
            self.freed(self.m.whole("free", MINE), MINE)
        else:
            for i in range(2 if other.endswith("twice") else 1):
                if other.startswith("malloc"):
                    self.took(self.m.whole("malloc_sealed", 0))
                else:
                    self.freed(self.m.whole("free", THEIRS[i]), THEIRS[i])

    def faults(self):
        inside, pops = self.m.contents()
        if inside is None:
            return "a sheaf has more than fit"
        place = self.m.word(BLOCK + 8)
        free = inside + self.gone + ([place] if place else [])
        if sorted(free + sorted(self.live)) != sorted(self.all):
            return "an object is lost, or in two places"
        if self.m.word(self.m.symbols["sealed_refused"]):
            return "an object was found at fault"
        if any(says(self.m, at) != (BYTES << 4 | LIVE * (at in self.live)) for at in self.all):
            return "a seal says something else"
        if any(self.m.word(at + BYTES) != canary_of(at) for at in self.live):
            return "a canary is not there"
        if any(self.m.word(word) != canary_of(at) for at in free for word in (at, at + BYTES - 8)):
            return "a free object is not filled"
        return None


def one(machine, op, other, size, waits, alone):
    """(cases, fault or None) of all places where @other can come."""
    k = 0
    while True:
        case = Case(machine, size, waits, alone)
        try:
            answer = machine.interrupted(op, MINE, k, lambda: case.another(other),
                                         other != "vfork")
            if answer is None:
                return k, None
            if op == "free":
                case.freed(answer, MINE)
            else:
                case.took(answer)
            wrong = case.faults()
            if op == "free" and other == "the same" and not wrong and case.refused != 1:
                wrong = "of two frees of one object %d were refused" % case.refused
        except un.UcError as error:
            wrong = str(error)
        if wrong:
            return k, "%s, %s after %d instructions, size %d, %d waits, alone %d: %s" % (
                op, other, k, size, waits, alone, wrong)
        k += 1


def takes_what_is_in_use(machine):
    """A malloc hands out an object whose seal says that it has a user."""
    case = Case(machine, 2, False, True)
    for at in case.all - case.live:
        case.seal(at, BYTES << 4 | LIVE)
    answer = machine.whole("malloc_sealed", 0)
    return answer or not machine.word(machine.symbols["sealed_refused"])


def start(machine):
    """What stook_watch_start and stook_direct_seal do."""
    at = machine.symbols.get
    for i, word in enumerate((ADDRESS, FACTOR, TIE, pow(TIE, -1, 1 << 64))):
        machine.put(at("stook_seal_secret") + 8 * i, word)
    machine.put(at("stook_sealed_classes"), SLOTS)
    for i, word in enumerate((AT, 0, 0)):               # the seal; the first place, and no other
        machine.put(at("stook_sealed_classes") + 8 + 4 * i, word, "<I")
    for slot in range(64):
        machine.put(at("stook_delay_blocks") + 8 * slot, BLOCK)
    machine.put(at("stook_malloc_seal_bytes"), 8, "<I")
    machine.put(at("stook_sealed_most"), 16384 - 8)
    machine.put(at("stook_sealed_first"), 8, "<I")
    machine.put(at("stook_direct") + 16, machine.area, "<q")
    machine.put(at("stook_direct"), SELF - machine.pointer, "<q")
    machine.put(SELF + CID_AT, 0xffffffff, "<I")        # no_index


def end(machine):
    at = machine.symbols.get
    machine.put(at("stook_malloc_seal_bytes"), 0, "<I")
    machine.put(at("stook_sealed_most"), 0)
    machine.put(at("stook_sealed_first"), 1 << 31, "<I")
    machine.start_direct(True)


def run_sealed(machine):
    cases, faults = 0, []
    for at, pages in ((machine.object(0, 0), 2), (MINE, 1), (THEIRS[0], 2), (BLOCK, 1)):
        machine.u.mem_map(at, pages * 0x1000)
    machine.direct, machine.guess = True, "right"
    start(machine)
    for op in ("malloc_sealed", "free"):
        for other in OTHERS[:-1] + (("the same",) if op == "free" else ()):
            for size in (0, 2, CAPACITY):
                for waits, alone in ((True, True), (False, False)):
                    if machine.mutant and faults:
                        break
                    more, wrong = one(machine, op, other, size, waits, alone)
                    cases += more
                    faults += [wrong] if wrong else []
    if takes_what_is_in_use(machine):
        faults.append("malloc hands out an object whose seal says that it has a user")
    end(machine)
    return cases, faults
