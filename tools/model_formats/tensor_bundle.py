"""Tensor bundles of TensorFlow (variables.index, variables.data-00000-of-00001): the index is a table of LevelDB, uncompressed, from
names to messages with type, shape, offset and size of the numbers in the data file."""
import struct

from .arrays import Array, Refused
from .protobuf import fields, varint

FOOTER, MAGIC = 48, 0xDB4775248B80FB57
TYPES = {1: "F32", 2: "F64", 3: "I32", 9: "I64", 14: "BF16", 19: "F16"}


def block(data, offset, size):
    """The (key, value) pairs of a block; a key leaves out what it shares with the one before."""
    if offset + size + 1 > len(data) or size < 4:
        raise Refused("tensor bundle: expected blocks inside of the index; is the file truncated?")
    if data[offset + size] != 0:
        raise Refused("tensor bundle: expected blocks that are not compressed")
    body = data[offset:offset + size]
    restarts = struct.unpack_from("<I", body, size - 4)[0]
    end = size - 4 - 4 * restarts
    if end < 0:
        raise Refused("tensor bundle: expected the restarts of a block inside of it")
    at, key, out = 0, b"", []
    while at < end:
        shared, at = varint(body, at)
        fresh, at = varint(body, at)
        length, at = varint(body, at)
        if shared > len(key) or fresh + length > end - at:
            raise Refused("tensor bundle: expected keys and values inside of their block")
        key = key[:shared] + body[at:at + fresh]
        at += fresh
        out.append((key, body[at:at + length]))
        at += length
    return out


def shape_of(message):
    return tuple((fields(dim).get(1) or [0])[0] for dim in fields(message).get(2, []))


def read_bundle(index, data):
    """Arrays by name from the bytes of the two files."""
    if len(index) < FOOTER or struct.unpack_from("<Q", index, len(index) - 8)[0] != MAGIC:
        raise Refused("tensor bundle: expected a table of LevelDB; is the index truncated?")
    footer, at = index[-FOOTER:], 0
    for _ in range(2):
        _, at = varint(footer, at)
    offset, at = varint(footer, at)
    size, at = varint(footer, at)
    arrays, view = {}, memoryview(data)
    for _, handle in block(index, offset, size):
        offset, at = varint(handle, 0)
        size, at = varint(handle, at)
        for key, value in block(index, offset, size):
            if not key:  # about the bundle itself
                continue
            entry = fields(value)
            name, kind = key.decode(errors="replace"), (entry.get(1) or [0])[0]
            if kind not in TYPES or (entry.get(3) or [0])[0] != 0:
                raise Refused(f"tensor bundle: expected {name} in numbers and in the first file, got type {kind}")
            begin, length = ((entry.get(n) or [0])[0] for n in (4, 5))
            if begin + length > len(data):
                raise Refused(f"tensor bundle: {name} ends at byte {begin + length} of {len(data)}; is the file truncated?")
            shape = shape_of(entry[2][0]) if 2 in entry else ()
            arrays[name] = Array(TYPES[kind], shape, view[begin:begin + length])
    return arrays
