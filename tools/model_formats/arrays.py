"""Arrays as bytes with a type and a shape, and the safetensors file that they are written to.

The standard library can move numbers around fast enough: slices of `array.array` run at the speed of C."""
import array
import json
import math
import struct

BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}
# Whole numbers of the same size stand for any type where numbers are only moved.
WORD = {1: "B", 2: "H", 4: "I", 8: "Q"}
MOST_BYTES = 1 << 36


class Refused(Exception):
    """A file that is not what it should be. The text is one line."""


class Array:
    """Row-major numbers: `dtype` is a name of safetensors, `data` bytes or a memoryview of them."""

    def __init__(self, dtype, shape, data):
        shape = tuple(shape)
        if dtype not in BYTES:
            raise Refused(f"expected an array of {', '.join(BYTES)}, got {dtype}")
        # Factor by factor, so that no product grows beyond all bounds.
        size = BYTES[dtype]
        for n in shape:
            if n < 0 or n > MOST_BYTES or size * n > MOST_BYTES:
                raise Refused(f"expected an array of a reasonable size, got the shape {list(shape)[:8]}")
            size *= n
        if len(data) != size:
            raise Refused(f"expected {size} bytes for {dtype} {list(shape)}, got {len(data)}")
        self.dtype, self.shape, self.data = dtype, shape, data

    @property
    def size(self):
        return math.prod(self.shape)

    def words(self):
        return array.array(WORD[BYTES[self.dtype]], bytes(self.data))

    def transposed(self):
        if len(self.shape) != 2:
            raise Refused(f"expected a matrix to transpose, got the shape {list(self.shape)}")
        rows, columns = self.shape
        words = self.words()
        out = bytearray()
        for column in range(columns):
            out += words[column::columns].tobytes()
        return Array(self.dtype, (columns, rows), bytes(out))

    def reshaped(self, *shape):
        return Array(self.dtype, shape, self.data)

    def rows(self, order):
        """The rows of the first axis in another order, or some of them."""
        step = len(self.data) // self.shape[0]
        data = b"".join(bytes(self.data[row * step:(row + 1) * step]) for row in order)
        return Array(self.dtype, (len(order), *self.shape[1:]), data)

    def slabs(self):
        """What stands at each place of the first axis, as arrays without it."""
        step = len(self.data) // self.shape[0]
        return [Array(self.dtype, self.shape[1:], self.data[n * step:(n + 1) * step]) for n in range(self.shape[0])]

    def floats(self):
        """The numbers; for tests and small arrays."""
        if self.dtype == "BF16":
            return list(array.array("f", b"".join(b"\0\0" + struct.pack("<H", word) for word in self.words())))
        letter = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "U8": "B", "BOOL": "?"}[self.dtype]
        return list(struct.unpack(f"<{self.size}{letter}", self.data))


def joined(arrays):
    """Behind each other along the first axis."""
    first = arrays[0]
    return Array(first.dtype, (sum(a.shape[0] for a in arrays), *first.shape[1:]), b"".join(bytes(a.data) for a in arrays))


def unrotated(matrix, heads):
    """The rows of a query or key matrix, or its bias, whose rotations pair the rows 2i and 2i + 1 of a head, in the order that pairs
    i and i + half: that of Hugging Face."""
    size = matrix.shape[0] // heads
    return matrix.rows([head * size + 2 * i + odd for head in range(heads) for odd in (0, 1) for i in range(size // 2)])


def bf16(a):
    """F32 rounded to the nearest, of two equally near to the even one."""
    words = a.words()
    rounded = array.array("H", [(w + 0x7FFF + (w >> 16 & 1)) >> 16 if w & 0x7FFFFFFF <= 0x7F800000 else w >> 16 | 0x40 for w in words])
    return Array("BF16", a.shape, rounded.tobytes())


def write_safetensors(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    # Wider types first keep all of them aligned.
    order = sorted(tensors, key=lambda name: (-BYTES[tensors[name].dtype], name))
    for name in order:
        a = tensors[name]
        header[name] = {"dtype": a.dtype, "shape": list(a.shape), "data_offsets": [at, at + len(a.data)]}
        at += len(a.data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            file.write(tensors[name].data)


def safetensors_shapes(path):
    """The shapes in a safetensors file by name."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        if length > 100_000_000:
            raise Refused(f"expected a safetensors header of at most 100 MB, got {length} bytes")
        header = json.loads(file.read(length))
    return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}
