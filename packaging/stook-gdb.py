"""gdb commands that look into the heap of a program or core file that uses libstook.

    stook what EXPRESSION    what a pointer points to: cache, object, offset, and where the object is
    stook caches [NAME*]     the caches: objects of a slab, slabs, sheaves, what lies in them

gdb loads this file by itself if libstook is installed below gdb's own prefix, else by `source
PREFIX/share/stook/stook-gdb.py`. It needs the debug information of the library (Meson's default
build type has it; of Debian's packages those named -dbgsym), calls no function of the program, and
writes nothing, so it works on core files as well.
"""
import fnmatch

import gdb

PAGE_SHIFT = 12
SLAB_BYTES_MAX = 1 << 19
SPAN_MASK = 0x0000ffffffffff80
CACHE_SHIFT = 51
SLOT_SHIFT, LINE_SHIFT = 19, 6
PART_OBJECTS = 64
PARTS_ROOM = 7                          # src/slab/slab_state.h: STOOK_PARTS_ROOM
SHEAF_SIZE = 0xffff
SHEAF_LINK = 16                         # src/barn/sheaf.h: STOOK_SHEAF_LINK
LIST_MOST = 1 << 16                     # a damaged list ends here
NO_SYMBOLS = """stook: there is no debug information of libstook, or the program has not started.
Debian has it in the packages libstook0-dbgsym and libstook-malloc-dbgsym, which
tools/release/debian-packages leaves beside the others. Elsewhere: a library that was not
stripped."""


def value(expression):
    return gdb.parse_and_eval(expression)


def static(file, name):
    """A variable that only one source file of the library sees."""
    return value("'%s'::%s" % (file, name))


def type_of(name):
    return gdb.lookup_type("struct " + name)


def at(address, name):
    return gdb.Value(int(address)).cast(type_of(name).pointer()).dereference()


def cache_at(index):
    return (value("stook_caches") + index).dereference()


# ---- from an address down ----

def entry_of(address):
    """The pagemap's entry: 0 where the address is not the library's. src/pages/pagemap.h."""
    first = value("stook_range")
    ranges = [(int(first["base"]), int(first["bytes"]), first["entries"])]
    count = int(static("range.c", "ranges_used"))
    records = static("range.c", "ranges")
    for i in range(count):
        record = records[i]
        ranges.append((int(record["base"]), int(record["bytes"]), record["entries"]))
    for base, size, entries in ranges:
        if base and 0 <= address - base < size:
            return int(entries[(address - base) >> PAGE_SHIFT]), True
    return 0, False


def sheaves_of_slots(cache):
    """(where it is, sheaf) of each sheaf of @cache on a slot."""
    regions = value("stook_regions")
    base, rseq = int(regions["base"]), int(regions["rseq_slots"])
    ready = int(value("stook_filled.ready"))
    filled = value("stook_filled.locked")
    slots = list(range(ready))
    for word in range(filled.type.range()[1] + 1):
        bits = int(filled[word])
        slots += [rseq + 64 * word + i for i in range(64) if bits >> i & 1]
    for slot in slots:
        line = at(base + (slot << SLOT_SHIFT) + int(cache["front"]["offset"]), "stook_line")
        name = "slot %d" % slot if slot < rseq else "locked slot %d" % (slot - rseq)
        for field, words in (("lo", "main sheaf"), ("hi", "spare sheaf")):
            if int(line["pair"][field]):
                yield name + ", " + words, at(line["pair"][field], "stook_sheaf")
        if int(line["rcu_free"]):
            yield name + ", sheaf that is open for frees by RCU", line["rcu_free"].dereference()


def sheaves_of_barns(cache):
    for node in range(int(static("topology.c", "topology")["count"])):
        barn = cache["barns"]["node"][node]
        link = int(barn["full"]["head"]["lo"])
        seen = 0
        while link and seen < LIST_MOST:
            yield "barn of node %d, full sheaf" % node, at(link - SHEAF_LINK, "stook_sheaf")
            link = int(at(link, "stook_link")["next"])
            seen += 1


def find_in_sheaves(cache, address):
    for sheaves in (sheaves_of_slots, sheaves_of_barns):
        for where, sheaf in sheaves(cache):
            size = int(sheaf["word"]) & SHEAF_SIZE
            if size > int(sheaf["capacity"]):
                continue
            for i in range(size):
                if int(sheaf["objects"][i]) == address:
                    return "free: in the %s" % ", ".join(reversed(where.split(", ")))
    return None


def is_free_in_slab(span, index):
    slab = span["slab"].address.cast(type_of("stook_slab").pointer()).dereference()
    parts = int(slab["parts"]) & ~PARTS_ROOM
    part = at(parts + index // PART_OBJECTS * type_of("stook_pair").sizeof, "stook_pair")
    return bool(int(part["hi"]) >> index % PART_OBJECTS & 1)


def describe_slab(address, entry, span):
    cache = cache_at(entry >> CACHE_SHIFT)
    name = cache["slabs"]["name"].string()
    offset = address + (entry << PAGE_SHIFT) & SLAB_BYTES_MAX - 1
    stride = int(cache["slabs"]["stride"])
    index, inside = divmod(offset, stride)
    start = address - inside
    if index >= int(cache["slabs"]["objects"]):
        return "behind the last object of a slab of cache %s" % name
    text = "object 0x%x of cache %s (%d bytes), number %d in the slab at 0x%x" % (
        start, name, int(cache["object_size"]), index, int(span["start"]))
    if inside:
        text += ", %d bytes into it" % inside
    if inside >= int(cache["object_size"]):
        text += ", behind what its user may use"
    if is_free_in_slab(span, index):
        return text + "\nfree: in its slab"
    return text + "\n" + (find_in_sheaves(cache, start) or
                          "in use (or in a sheaf that is prefilled, or waits for readers)")


def describe(address):
    entry, ours = entry_of(address)
    if not ours:
        return "no address of libstook"
    span = at(entry & SPAN_MASK, "stook_span") if entry & SPAN_MASK else None
    if span is not None and entry >> CACHE_SHIFT:
        return describe_slab(address, entry, span)
    if span is not None and int(span["start"]) <= address < int(span["start"]) + int(span["bytes"]):
        kind = int(span["kind"])
        kind = kind if kind < 64 else kind & 192        # without the node of a free one
        kind = str(gdb.Value(kind).cast(gdb.lookup_type("enum stook_span_kind")))
        if kind == "STOOK_SPAN_LARGE":
            return "large object 0x%x of %d bytes, %d bytes into it" % (
                int(span["start"]), int(span["bytes"]), address - int(span["start"]))
        return "page run 0x%x of %d bytes that holds no object (%s)" % (
            int(span["start"]), int(span["bytes"]), kind)
    return "memory of libstook: free, or inside of a large object"


# ---- caches ----

def live_caches():
    bound = int(value("stook_caches_used"))
    live = int(value("STOOK_CACHE_LIVE"))
    for index in range(1, bound):
        cache = cache_at(index)
        if int(cache["state"]) == live:
            yield cache


def sums(cache):
    """(slabs, sheaves on slots, objects in them, full sheaves of barns, objects in them)"""
    slabs = sum(int(cache["slabs"]["node"][n]["slabs"])
                for n in range(int(static("topology.c", "topology")["count"])))
    zero = int(value("&stook_sheaf_zero"))
    on_slots = [s for _, s in sheaves_of_slots(cache) if int(s.address) != zero]
    in_barns = [s for _, s in sheaves_of_barns(cache)]
    objects = [sum(int(s["word"]) & SHEAF_SIZE for s in list_) for list_ in (on_slots, in_barns)]
    return slabs, len(on_slots), objects[0], len(in_barns), objects[1]


class Stook(gdb.Command):
    """Look into the heap of libstook. `help stook what`, `help stook caches`."""

    def __init__(self):
        super().__init__("stook", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)


class Command(gdb.Command):
    """Faults of gdb's are one line: a name that is not there, memory that cannot be read."""

    def invoke(self, argument, from_tty):
        try:
            value("stook_range")
            type_of("stook_span")
        except gdb.error:
            raise gdb.GdbError(NO_SYMBOLS) from None
        try:
            self.answer(argument)
        except gdb.error as error:
            raise gdb.GdbError("stook: %s" % error) from None


class What(Command):
    """stook what EXPRESSION: what this pointer points to."""

    def __init__(self):
        super().__init__("stook what", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def answer(self, argument):
        if not argument:
            raise gdb.GdbError("stook what: name a pointer, such as `stook what p`")
        print(describe(int(value("(unsigned long)(%s)" % argument))))


class Caches(Command):
    """stook caches [NAME*]: the caches that have a slab."""

    def __init__(self):
        super().__init__("stook caches", gdb.COMMAND_DATA)

    def answer(self, argument):
        print("%-24s %7s %8s %8s %8s %8s %8s" % ("cache", "bytes", "of a slab", "slabs", "slots'",
                                                 "barns'", "objects"))
        for cache in live_caches():
            name = cache["slabs"]["name"].string()
            if argument and not fnmatch.fnmatch(name, argument):
                continue
            slabs, _, on_slots, _, in_barns = sums(cache)
            if slabs:
                print("%-24s %7d %9d %8d %8d %8d %8d" % (
                    name, int(cache["object_size"]), int(cache["slabs"]["objects"]), slabs,
                    on_slots, in_barns, slabs * int(cache["slabs"]["objects"])))


Stook()
What()
Caches()
