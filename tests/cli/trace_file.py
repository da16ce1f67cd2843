"""Writes traces (docs/TRACE.md) for tests: an independent description of the format."""
import struct

MAGIC = b"stooktrc"
HEAD = struct.Struct("<8sIIQQIIQQQ")
MASK = (1 << 64) - 1


def checksum(data):
    value = 0x9e3779b97f4a7c15
    for (word,) in struct.iter_unpack("<Q", data):
        value = ((value ^ word) * 0xd6e8feb86659fd93) & MASK
        value ^= value >> 32
    return value


def number(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def difference(n):
    return number(n << 1 if n >= 0 else (~n << 1) | 1)


def name(text):
    return number(len(text)) + text.encode("latin-1")


class Block:
    """Records of one block; methods return the block, so that calls can follow each other."""

    def __init__(self, at_ns=0, pid=100, image=1, buffer=0, sequence=0, missed=0, program="prog",
                 parent=1, forked=False):
        self.head = (pid, image, buffer, sequence, missed)
        self.at_ns, self.last_ns, self.address = at_ns, at_ns, 0
        self.body = bytearray([0x0e if forked else 0x06]) + number(parent) + number(0) + \
            name(program)

    def raw(self, *parts):
        self.body += b"".join(parts)
        return self

    def step(self, at_ns, address):
        text = number(at_ns - self.last_ns) + difference(address - self.address)
        self.last_ns, self.address = at_ns, address
        return text

    def thread(self, thread, cpu=0):
        return self.raw(b"\x04", number(thread), number(cpu))

    def cache(self, index, text, object_bytes=64, stride=64):
        return self.raw(b"\x05", number(index), number(object_bytes), number(stride), name(text))

    def code(self, index, start, size, path="/bin/prog", build=b"\xab\xcd"):
        """A file in which frames of stacks are."""
        return self.raw(b"\x0f", number(index), number(start), number(size), number(len(build)),
                        build, name(path))

    def stack(self, index, *frames):
        """Frames are pairs of a file's index, or 0, and an address; innermost first."""
        parts, last = [b"\x07", number(index), number(len(frames))], 0
        for code, address in frames:
            parts += number(code), difference(address - last)
            last = address
        return self.raw(*parts)

    def alloc(self, at_ns, address, index=0, size=0, stack=None):
        return self.raw(b"\x01" if stack is None else b"\x09", self.step(at_ns, address),
                        number(index), number(size), b"" if stack is None else number(stack))

    def free(self, at_ns, address, rcu=False):
        return self.raw(b"\x0a" if rcu else b"\x02", self.step(at_ns, address))

    def resize(self, at_ns, old, new, size, stack=None):
        start = self.step(at_ns, old)
        self.address = new
        return self.raw(b"\x03" if stack is None else b"\x0b", start, difference(new - old),
                        number(size), b"" if stack is None else number(stack))

    def bytes(self, version=1, magic=MAGIC):
        pid, image, buffer, sequence, missed = self.head
        body = bytes(self.body) + bytes(-len(self.body) % 8)
        fields = [magic, version, HEAD.size + len(body), 0, image, pid, buffer, sequence,
                  self.at_ns, missed]
        fields[3] = checksum(HEAD.pack(*fields) + body)
        return HEAD.pack(*fields) + body
