"""Messages of protocol buffers as dictionaries from field numbers to lists of values: integers, or slices of the bytes."""
from .arrays import Refused


def varint(data, at):
    """The number at `at`, seven bits a byte, and the place behind it."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Refused("protobuf: expected a number inside of the message; is the file truncated?")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """`data` is bytes or a memoryview; values of variable length are slices of it."""
    out, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind in (1, 2, 5):
            size, at = varint(data, at) if kind == 2 else (8 if kind == 1 else 4, at)
            if size > len(data) - at:
                raise Refused("protobuf: expected a field inside of the message; is the file truncated?")
            value, at = data[at:at + size], at + size
        else:
            raise Refused(f"protobuf: expected fields of kind 0, 1, 2 or 5, got {kind}")
        out.setdefault(key >> 3, []).append(value)
    return out


def text(value):
    try:
        return bytes(value).decode()
    except (UnicodeDecodeError, TypeError):
        raise Refused("protobuf: expected a text in UTF-8") from None


def numbers(values):
    """A repeated integer, packed or not."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            out.append(number)
    return out
