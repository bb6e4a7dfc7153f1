"""Pictures without loss, 8 bits, grey or in colours without a palette, not interlaced: their bytes, rows behind each other."""
import itertools
import struct
import zlib

from .arrays import Refused

CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
MOST_BYTES = 1 << 28


def paeth(left, above, corner):
    near = left + above - corner
    a, b, c = abs(near - left), abs(near - above), abs(near - corner)
    return left if a <= b and a <= c else above if b <= c else corner


def unfiltered(kind, row, above, step):
    """The bytes of a row from their differences to the left, above, or both."""
    if kind == 0:
        return row
    if kind == 1:
        out = bytearray(len(row))
        for channel in range(step):
            out[channel::step] = bytes(n & 255 for n in itertools.accumulate(row[channel::step]))
        return bytes(out)
    if kind == 2:
        return bytes((a + b) & 255 for a, b in zip(row, above))
    if kind not in (3, 4):
        raise Refused(f"png: expected filters 0 to 4, got {kind}")
    out = bytearray(row)
    for i in range(len(row)):
        left, corner = (out[i - step], above[i - step]) if i >= step else (0, 0)
        out[i] = (row[i] + ((left + above[i]) // 2 if kind == 3 else paeth(left, above[i], corner))) & 255
    return bytes(out)


def read_png(data):
    """(width, height, channels, bytes)"""
    if data[:8] != b"\x89PNG\r\n\x1a\n" or len(data) < 33:
        raise Refused("png: expected a PNG file")
    width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    if depth != 8 or colour not in CHANNELS or interlaced:
        raise Refused("png: expected 8 bits a channel, no palette, not interlaced")
    step = CHANNELS[colour]
    line = width * step + 1
    if line * height > MOST_BYTES:
        raise Refused(f"png: expected at most {MOST_BYTES} bytes, got {width} × {height}")
    packed, at = [], 8
    while at + 12 <= len(data):
        size = struct.unpack_from(">I", data, at)[0]
        if data[at + 4:at + 8] == b"IDAT":
            packed.append(data[at + 8:at + 8 + size])
        at += 12 + size
    try:
        raw = zlib.decompressobj().decompress(b"".join(packed), line * height + 1)
    except zlib.error as problem:
        raise Refused(f"png: {problem}") from None
    if len(raw) != line * height:
        raise Refused(f"png: expected {line * height} bytes, got {len(raw)}")
    rows, above = [], bytes(line - 1)
    for start in range(0, len(raw), line):
        above = unfiltered(raw[start], raw[start + 1:start + line], above, step)
        rows.append(above)
    return width, height, step, b"".join(rows)
