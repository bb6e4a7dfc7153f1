"""Checkpoints of llama2.c (version 0, float32) and their tokenizer.bin.

A header of seven int32 (width, width of the MLP, layers, heads, KV heads, vocabulary (negative: the head is not tied), positions), then
float32: embedding, attention norms of all layers, q, k, v, o, MLP norms, w1, w2, w3, final norm, two tables of rotations, the head."""
import struct

from .arrays import Array, Refused

FIELDS = ("dim", "hidden", "layers", "heads", "kv_heads", "vocabulary", "positions")


def read_header(data):
    if len(data) < 28:
        raise Refused(f"llama2.c: expected a header of 28 bytes, got {len(data)}")
    header = dict(zip(FIELDS, struct.unpack_from("<7i", data)))
    header["tied"] = header["vocabulary"] > 0
    header["vocabulary"] = abs(header["vocabulary"])
    for name in FIELDS:
        if not 0 < header[name] <= 1 << 20:
            raise Refused(f"llama2.c: expected a reasonable {name}, got {header[name]}")
    if header["dim"] % header["heads"] or header["heads"] % header["kv_heads"] or header["dim"] // header["heads"] % 2:
        raise Refused(f"llama2.c: expected heads of an even size that divide the width, got {header['heads']} of {header['dim']}")
    return header


def read_checkpoint(data):
    """(header, arrays by name, bytes used). Arrays of layers have the layer as their first axis."""
    header = read_header(data)
    dim, hidden, layers, vocabulary = (header[name] for name in ("dim", "hidden", "layers", "vocabulary"))
    size = dim // header["heads"]
    kv = header["kv_heads"] * size
    order = [("embedding", (vocabulary, dim)), ("attention_norm", (layers, dim)), ("q", (layers, dim, dim)), ("k", (layers, kv, dim)),
             ("v", (layers, kv, dim)), ("o", (layers, dim, dim)), ("mlp_norm", (layers, dim)), ("w1", (layers, hidden, dim)),
             ("w2", (layers, dim, hidden)), ("w3", (layers, hidden, dim)), ("norm", (dim,)), ("cos", (header["positions"], size // 2)),
             ("sin", (header["positions"], size // 2))]
    if not header["tied"]:
        order.append(("head", (vocabulary, dim)))
    arrays, at, view = {}, 28, memoryview(data)
    for name, shape in order:
        end = at + 4
        for n in shape:
            end = at + (end - at) * n
        if end > len(data):
            raise Refused(f"llama2.c: {name} ends at byte {end} of {len(data)}; is the file truncated?")
        arrays[name] = Array("F32", shape, view[at:end])
        at = end
    return header, arrays, at


def read_tokenizer(data, vocabulary):
    """Pieces (bytes) and scores, and how many bytes they took."""
    pieces, scores, at = [], [], 4
    for token in range(vocabulary):
        if at + 8 > len(data):
            raise Refused(f"tokenizer.bin: expected {vocabulary} tokens, got {token}")
        score, length = struct.unpack_from("<fi", data, at)
        at += 8
        if not 0 <= length <= len(data) - at:
            raise Refused(f"tokenizer.bin: expected token {token} inside of the file, got a length of {length}")
        pieces.append(bytes(data[at:at + length]))
        scores.append(score)
        at += length
    return pieces, scores, at
