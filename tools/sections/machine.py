"""
tools/sections/machine.py - an emulated CPU with two slots, and the code that runs on it

Purpose: builds the sections of one machine, the library's and the drop-in's, into one small
program, and runs it instruction by instruction: whole, or interrupted after k of them.
Place: used by tools/check-sections, runs.py, charge.py, sealed.py and swap.py.
"""
import os
import re
import struct
import subprocess
import sys

import unicorn as un
from unicorn import x86_const as x86, arm64_const as a64
from elftools.elf.elffile import ELFFile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SELF, AREA, SLOTS, SHEAF, STACK, END = 0x400000, 0x1000, 0x1000000, 0x500000, 0x700000, 0x7f0000
SLOT_BYTES, CAPACITY, WORD_BASE = 1 << 19, 6, 5
# <stook/layout.h>
READY_AT, RSEQ_AT, CS_AT, CID_AT, OBJECTS_AT, CAPACITY_AT = 0, 16, 8, 24, 32, 8
SPARE_AT, RCU_AT, ROOM_AT, GUESS_AT = 8, 16, 14, 48             # slot/slot.h, barn/sheaf.h
LINE_BYTES, RANGE, ENTRIES, ENTRY = 64, 0x10000000, 0x20000000, 1 << 51         # pages/pagemap.h
GIVEN, AFTER, CONFIG, GIVEN_WORDS = 0x40a000, 0x40b000, 0x40c000, 6
NO_ROOM = SHEAF + 0xf000                # the sheaf without room, of lines that belong to no cache
# A precharge (src/section/section.h), its group, and the bytes that an object is charged.
PRECHARGE, GROUP, DELTA, PRECHARGE_BITS, FROZEN = SLOTS + 0x100, 7, 96, 17, 1 << 63
CODE = """
#include <stdint.h>
#define STOOK_SECTION_RECORD stook_thread
#define STOOK_SECTION_AREA   ((intptr_t)%#x)
#define STOOK_NEVER_UNLOADED 1
#include <stook/layout.h>
extern __thread struct stook_thread_v1 stook_thread __attribute__((visibility("hidden")));
#include <stook/section.h>
void *emu_pop(void) { return stook_section_pop_v1(%#x); }
long emu_push(void *o) { return stook_section_push_v1(%#x, o); }
""" % (AREA, SLOTS, SLOTS)
OWN = """
#include "base/thread.h"
#undef stook_self
#define stook_self ((struct stook_thread_v1 *)%#x)
#include "section/section_precharge.h"
struct stook_sections stook_sections = { .index = %#x, .area = %#x, .slots = (char *)%#x };
static volatile uint64_t *const after = (void *)%#x;
void *emu_rcu_push(void *o) { void *r = stook_section_rcu_push(%#x, o); \
after[0] = (uintptr_t)o; return r; }
void *emu_rcu_fill(void *o) { void *r = stook_section_rcu_fill(%#x, o); \
after[0] = (uintptr_t)o; return r; }
long emu_exchange(const uint64_t *in)
{
        uint64_t a = in[0], b = in[1], c = in[2], d = in[3], e = in[4], g = in[5];
        bool done = stook_section_exchange(%#x, (struct stook_pair){ a, b }, \
(struct stook_pair){ c, d }, (unsigned)e,
                                           (const uint32_t *)%#x, (uint32_t)g);
        after[0] = a, after[1] = b, after[2] = c, after[3] = d, after[4] = e, after[5] = g;
        return done;
}
static const uint32_t line = %#x;
static const int64_t delta = %d;
static const uintptr_t precharge = %#x;
static const uint64_t tag = (uint64_t)%d << 32;
void *emu_charge_pop(void) { return stook_section_charge_pop_v1(&line, precharge, tag, &delta); }
long emu_uncharge_push(void *o)
{
        return stook_section_uncharge_push_v1(&line, precharge, tag, &delta, o);
}
void *emu_pop_guessed(void) { return stook_section_pop_guessed_v1(%#x); }
long emu_push_guessed(void *o) { return stook_section_push_guessed_v1(%#x, o); }
size_t emu_pop_n(void) { return stook_section_pop_n(%#x, 3, (void **)(uintptr_t)after); }
long emu_rearm(const uint64_t *in)
{
        return stook_section_rearm(%#x, (struct stook_sheaf *)in[0], in[1], in[2]);
}
long emu_precharge_add(void) { return stook_section_precharge_add(precharge, tag, -delta); }
long emu_precharge_set(uint64_t from)
{
        return stook_section_precharge_set(precharge, from, from + delta);
}
""" % (SELF, AREA + CID_AT, AREA, SLOTS - LINE_BYTES, AFTER, SLOTS, SLOTS, SLOTS, CONFIG,
       LINE_BYTES, DELTA, PRECHARGE, GROUP, SLOTS, SLOTS, SLOTS, SLOTS)
# The drop-in's malloc and free, with what they look at: objects of 64 bytes, of the cache of index
# 1, whose line is where the other sections' is. All below RANGE are slabs of 512 KiB. What is no
# slab's has index 0.
HOT = """
#include <stddef.h>
#include <stook/layout.h>
#define MISSED 0x4d495353
__thread struct stook_thread_v1 stook_thread __attribute__((visibility("hidden")));
__attribute__((weak)) struct { uintptr_t base, bytes; uint64_t *entries; } stook_range;
__attribute__((weak)) uint64_t stook_direct[2];
struct { uint64_t magic, starts; } stook_shapes[2] = { { 0, 1 }, { 0x0400000000000001, 1 << 19 } };
__attribute__((weak)) uintptr_t stook_class_line[1025 + 60]; /* or with the sections */
const uint8_t stook_class_of_large[2049] = { [313] = 1 };
uint32_t stook_malloc_seal_bytes, stook_sealed_first = 1u << 31, stook_groups_exist;
uint64_t stook_sealed_most, stook_seal_secret[4], stook_delay_blocks[64], stook_sealed_classes[288];
const uint8_t stook_class_of[1025];             /* one class has all sizes */
char __libc_single_threaded;
void *sealed_gone, *sealed_refused;
void stook_watch_gone(void *object) { sealed_gone = object; }
void *stook_watch_refuse(void *object) { sealed_refused = object; return NULL; }
void *stook_malloc_miss(size_t size) { (void)size; return NULL; }
long stook_drop_in_free_miss(void *object, unsigned by) { (void)object, (void)by; return MISSED; }
void *malloc(size_t size);
long hot_free(void *object) __asm__("free");    /* what it leaves in the register is not MISSED */
void *emu_malloc(void) { return malloc(64); }
void *emu_malloc_sealed(void) { return malloc(48); }
void *emu_malloc_large(void) { return malloc(20000); }
long emu_free(void *object) { return hot_free(object) != MISSED; }
"""
MACHINES = {
    # Jumps are padded as the build does it (meson.build).
    "x86-64": (["gcc", "-Wa,-mbranches-within-32B-boundaries"],
               lambda: un.Uc(un.UC_ARCH_X86, un.UC_MODE_64),
               x86.UC_X86_REG_RIP, x86.UC_X86_REG_RSP,
               x86.UC_X86_REG_RDI, x86.UC_X86_REG_RAX,
               {"pop": 21, "push": 22, "malloc": 28, "malloc_large": 31, "free": 42}),
    "aarch64": (["aarch64-linux-gnu-gcc"], lambda: un.Uc(un.UC_ARCH_ARM64, un.UC_MODE_ARM),
                a64.UC_ARM64_REG_PC, a64.UC_ARM64_REG_SP,
                a64.UC_ARM64_REG_X0, a64.UC_ARM64_REG_X0,
                {"pop": 25, "push": 30, "malloc": 29, "malloc_large": 36, "free": 53}),
}


def macros_of(include):
    """The text of a header that an assembly file includes, so that mutants may change it."""
    with open(os.path.join(SOURCE, "dropin", include[1])) as f:
        return f.read()


class Machine:
    def __init__(self, name, work, flags=(), protected=True, instead=None, mutant=True,
                 hot_instead=None):
        cc, make, self.pc, self.sp, self.arg, self.answer, self.limits = MACHINES[name]
        self.name, self.protected, self.mutant, exe = (name, protected, mutant,
                                                       os.path.join(work, "sections"))
        self.direct = True                      # malloc and free ask no thread record
        self.guess = "right"                    # or "wrong": what a slot's line says is the top
        hot = "hot_%s.S" % name.replace("-", "_")
        with open(os.path.join(SOURCE, "dropin", hot)) as f:
            text = f.read()
        text = re.sub(r'#include "(hot_\w+\.h)"\n', macros_of, text)
        self.swaps = "SWAP_POP" in text         # malloc and free swap before they miss
        self.seals = "SEALED_POP" in text       # they have a way for objects with seals
        if hot_instead:
            if text.count(hot_instead[0]) != 1:
                sys.exit("check-sections: %s: no place for a mutant: %s" % (hot, hot_instead[0]))
            text = text.replace(*hot_instead)
        with open(os.path.join(work, hot), "w") as f:
            f.write(text)
        subprocess.run(cc + ["-c", os.path.join(work, hot), "-o", os.path.join(work, "hot.o")],
                       check=True)
        with open(os.path.join(work, "hot.c"), "w") as f:
            f.write(HOT)
            for miss in set(re.findall(r"\.hidden (stook_\w+)", text)):
                if not re.search(miss + r"\b", HOT) and miss + ":" not in text and \
                        "ENTRY " + miss not in text:
                    f.write("void %s(void);\nvoid %s(void) { }\n" % (miss, miss)
                            if miss != "stook_sections" else "")
        header = "section/section_%s.h" % name.replace("-", "_")
        with open(os.path.join(SOURCE, "src", header)) as f:
            text = f.read()
        if instead:
            if text.count(instead[0]) != 1:
                sys.exit("check-sections: %s: no place for a mutant: %s" % (header, instead[0]))
            text = text.replace(*instead)
        os.makedirs(os.path.join(work, "section"), exist_ok=True)
        with open(os.path.join(work, header), "w") as f:
            f.write(text)
        with open(os.path.join(work, "own.c"), "w") as f:
            f.write(OWN)
        subprocess.run(cc + ["-O2", "-static", "-nostdlib", "-no-pie", "-fno-pie", "-ffreestanding",
                             "-fcf-protection=none" if name == "x86-64" else "-O2",
                             "-I" + SOURCE + "/include", "-include", "stdint.h", *flags,
                             "-I" + work, "-I" + SOURCE + "/src", "-D_GNU_SOURCE",
                             "-mcx16" if name == "x86-64" else "-O2",
                             "-Wl,-e,emu_pop,-Ttext=0x10000,--build-id=none,"
                             "--unresolved-symbols=ignore-all", "-x", "c", "-",
                             os.path.join(work, "own.c"), os.path.join(work, "hot.c"), "-x", "none",
                             os.path.join(work, "hot.o"), "-o", exe],
                       input=CODE, text=True, check=True, capture_output=True)
        elf = ELFFile(open(exe, "rb"))
        self.symbols = {s.name: s["st_value"]
                        for s in elf.get_section_by_name(".symtab").iter_symbols()}
        self.u = make()
        for at, size in ((0x0, 0x200000), (SELF, 0x10000), (SHEAF, 0x10000), (STACK, 0x100000),
                         (SLOTS - 0x1000, 0x1000 + 2 * SLOT_BYTES)):
            self.u.mem_map(at, size)
        for slot in range(2):           # lines of no cache
            self.put(SLOTS + slot * SLOT_BYTES - LINE_BYTES, NO_ROOM)
        for part in elf.iter_segments():
            if part["p_type"] == "PT_LOAD" and part["p_vaddr"] + part["p_memsz"] < 0x200000:
                self.u.mem_write(part["p_vaddr"], part.data())
        self.u.mem_unmap(0, 0x1000)     # NULL is no sheaf
        for line in (4, 1025 + 1):      # of 64 bytes, and of the class of 20,000
            self.put(self.symbols["stook_class_line"] + 8 * line, SLOTS)
        for i, word in enumerate((0, RANGE, ENTRIES)):
            self.put(self.symbols["stook_range"] + 8 * i, word)
        self.u.mem_map(ENTRIES, RANGE >> 9)
        self.u.mem_write(ENTRIES, struct.pack("<Q", ENTRY) * (RANGE >> 12))
        tls = next(part for part in elf.iter_segments() if part["p_type"] == "PT_TLS")
        up = lambda n: (n + tls["p_align"] - 1) & -tls["p_align"]
        if name == "x86-64":    # where the thread record is, from what the thread pointer points to
            self.pointer = SELF + up(tls["p_memsz"]) - self.symbols["stook_thread"]
            self.u.reg_write(x86.UC_X86_REG_FS_BASE, self.pointer)
        else:
            self.pointer = SELF - up(16) - self.symbols["stook_thread"]
            self.u.reg_write(a64.UC_ARM64_REG_TPIDR_EL0, self.pointer)
            self.put(self.symbols["stook_direct"], SLOTS - LINE_BYTES)
        self.start_direct(True)

    def word(self, at):
        return struct.unpack("<Q", self.u.mem_read(at, 8))[0]

    def put(self, at, value, form="<Q"):
        self.u.mem_write(at, struct.pack(form, value))

    def prepare(self, sizes):
        """Two slots with a sheaf each; returns the objects that are in them."""
        self.put(SELF + READY_AT, 2, "<I")
        self.ask_record(not self.direct)
        self.put(SELF + RSEQ_AT, SELF + AREA)
        self.put(SELF + AREA + CS_AT, 0)
        self.put(SELF + AREA + CID_AT, 0, "<I")
        for slot, size in enumerate(sizes):
            sheaf = SHEAF + slot * 0x1000
            self.put(SLOTS + slot * SLOT_BYTES, sheaf)
            self.put(SLOTS + slot * SLOT_BYTES + GUESS_AT,
                     0x3330000 if self.guess == "wrong" else
                     self.object(slot, size - 1) if size else 0)
            self.put(sheaf, WORD_BASE << 16 | size)
            self.put(sheaf + CAPACITY_AT, CAPACITY, "<I")
            for i in range(16):
                self.put(sheaf + OBJECTS_AT + 8 * i, self.object(slot, i) if i < size else 0)
        return {self.object(slot, i) for slot, size in enumerate(sizes) for i in range(size)}

    def start_direct(self, on):
        """Where direct sections find the area, and for aarch64 which sizes have one:
        src/direct/direct.h."""
        at, self.area = self.symbols["stook_direct"], SELF + AREA * on - self.pointer
        if self.name == "x86-64":
            self.put(at, self.area, "<q")
        else:
            self.put(at + 16, self.word(at + 24) if on else 0)

    def before_start(self):
        """What a call finds then: on aarch64 no area, which is at the thread pointer itself."""
        self.start_direct(False)
        if self.name == "aarch64":
            self.area = 0
        self.ask_record(True)
        self.put(SELF + READY_AT, 0, "<I")

    def ask_record(self, ask):
        """Whether the bound of direct sections is 0."""
        at = self.symbols["stook_direct"] + 8
        if self.name == "x86-64":
            self.put(at, 0 if ask else 2)
        else:
            self.put(at, self.area & 0xffffffff | (0 if ask else 2 << 48))

    @staticmethod
    def object(slot, i):
        return 0xabc0000 + slot * 0x1000 + i * 0x40

    def start(self, op, value, stack):
        if self.name == "x86-64":
            self.put(stack, END)
        else:
            self.u.reg_write(a64.UC_ARM64_REG_LR, END)
        self.u.reg_write(self.sp, stack)
        self.u.reg_write(self.arg, value)
        return self.symbols["emu_" + op]

    def go(self, pc, count=0):
        self.u.ctl_flush_tb()
        self.u.emu_start(pc, END, count=count)
        return self.u.reg_read(self.pc)

    def whole(self, op, value):
        self.go(self.start(op, value, STACK + 0x8000))
        return self.u.reg_read(self.answer)

    def length(self, op, value):
        pc, n = self.start(op, value, STACK + 0x8000), 0
        while pc != END:
            pc, n = self.go(pc, 1), n + 1
        return n

    def interrupted(self, op, value, k, then, aborts=True):
        """k instructions of op, then then(), then the rest. None: op was over before. Not aborts:
        then() is on another CPU."""
        pc = self.start(op, value, STACK + 0x4000)
        if k:
            pc = self.go(pc, k)
        if pc == END:
            return None
        context, cs = self.u.context_save(), self.word(SELF + AREA + CS_AT)
        noted = self.u.mem_read(AFTER, 8 * GIVEN_WORDS)         # its own, not what then() is given
        then()
        self.u.mem_write(AFTER, bytes(noted))
        self.u.context_restore(context)
        # what the kernel does at the switch: the descriptor it finds there
        if cs and aborts and self.protected:
            _, start, size, abort = struct.unpack("<QQQQ", self.u.mem_read(cs, 32))
            self.put(SELF + AREA + CS_AT, 0)
            if pc - start < size and pc >= start:
                pc = abort
        self.go(pc)
        return self.u.reg_read(self.answer)

    def contents(self):
        out, pops = [], 0
        for slot in range(2):
            sheaf = SHEAF + slot * 0x1000
            word = self.word(sheaf)
            pops += (word >> 16) - WORD_BASE
            if word & 0xffff > CAPACITY:
                return None, 0
            out += [self.word(sheaf + OBJECTS_AT + 8 * i) for i in range(word & 0xffff)]
        return out, pops
