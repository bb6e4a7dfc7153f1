"""GGUF files, versions 2 and 3: metadata, and tensors of the types of small models (F32, F16, BF16, Q8_0, Q4_0, Q4_1)."""
import array
import struct

from .arrays import Array, Refused

# Numbers of metadata by kind; 8 is a string, 9 an array.
KINDS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
PLAIN = {0: ("F32", 4), 1: ("F16", 2), 30: ("BF16", 2)}
# Bytes of a block of 32 numbers.
BLOCKS = {2: 18, 3: 20, 8: 34}
LOW, HIGH = bytes(byte & 15 for byte in range(256)), bytes(byte >> 4 for byte in range(256))


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        if size > len(self.data) - self.at:
            raise Refused(f"gguf: expected {size} bytes at byte {self.at}; is the file truncated?")
        self.at += size
        return self.data[self.at - size:self.at]

    def numbers(self, letter, count=1):
        return struct.unpack(f"<{count}{letter}", self.take(count * struct.calcsize("<" + letter)))

    def string(self):
        return bytes(self.take(self.numbers("Q")[0])).decode(errors="replace")

    def value(self, kind, depth=0):
        if kind in KINDS:
            return self.numbers(KINDS[kind])[0]
        if kind == 8:
            return self.string()
        if kind != 9 or depth > 3:
            raise Refused(f"gguf: expected values of known kinds, got {kind}")
        inner, count = self.numbers("I")[0], self.numbers("Q")[0]
        if count > len(self.data):
            raise Refused(f"gguf: expected an array inside of the file, got one of {count} values")
        return list(self.numbers(KINDS[inner], count)) if inner in KINDS else [self.value(inner, depth + 1) for _ in range(count)]


def read_gguf(data):
    """(metadata, {name: (type, shape, bytes)}) of the bytes of a file; shapes are row-major."""
    cursor = Cursor(memoryview(data))
    if bytes(cursor.take(4)) != b"GGUF" or cursor.numbers("I")[0] not in (2, 3):
        raise Refused("gguf: expected a file of version 2 or 3")
    tensors, keys = cursor.numbers("Q", 2)
    metadata = {}
    for _ in range(keys):
        key = cursor.string()
        metadata[key] = cursor.value(cursor.numbers("I")[0])
    places = []
    for _ in range(tensors):
        name, axes = cursor.string(), cursor.numbers("I")[0]
        shape = cursor.numbers("Q", axes)[::-1]
        places.append((name, shape, cursor.numbers("I")[0], cursor.numbers("Q")[0]))
    begin = cursor.at + -cursor.at % metadata.get("general.alignment", 32)
    out = {}
    for name, shape, kind, offset in places:
        size = PLAIN[kind][1] if kind in PLAIN else BLOCKS.get(kind, 0)
        for axis, n in enumerate(shape):
            if kind in BLOCKS and axis == len(shape) - 1 and n % 32:
                raise Refused(f"gguf: expected rows of a multiple of 32 numbers for {name}, got {n}")
            size *= n // 32 if kind in BLOCKS and axis == len(shape) - 1 else n
        if begin + offset + size > len(data):
            raise Refused(f"gguf: {name} ends at byte {begin + offset + size} of {len(data)}; is the file truncated?")
        out[name] = kind, shape, cursor.data[begin + offset:begin + offset + size]
    return metadata, out


def rounded(values, letter):
    """Numbers as what an array of floats ("f") or of bfloat16 ("H") holds; finite ones."""
    if letter == "f":
        return values
    return [(word + 0x7FFF + (word >> 16 & 1)) >> 16 for word in array.array("I", array.array("f", values).tobytes())]


def dequantised(tensor, dtype="F32"):
    """An array of F32 or BF16; of a plain tensor in its own type."""
    kind, shape, data = tensor
    if kind in PLAIN:
        return Array(PLAIN[kind][0], shape, data)
    if kind not in BLOCKS:
        raise Refused(f"gguf: expected types F32, F16, BF16, Q8_0, Q4_0 or Q4_1, got type {kind}")
    letter = {"F32": "f", "BF16": "H"}[dtype]
    out, size = array.array(letter), BLOCKS[kind]
    head = struct.Struct("<ee" if kind == 3 else "<e")
    data = bytes(data)
    for at in range(0, len(data), size):
        scale, *minimum = head.unpack_from(data, at)
        numbers = data[at + head.size:at + size]
        if kind == 8:
            out.extend(rounded([scale * n for n in array.array("b", numbers)], letter))
            continue
        # Sixteen values at most stand in a block.
        low = minimum[0] if minimum else -8 * scale
        value = rounded([scale * n + low for n in range(16)], letter).__getitem__
        out.extend(map(value, numbers.translate(LOW)))
        out.extend(map(value, numbers.translate(HIGH)))
    return Array(dtype, shape, out.tobytes())
