#!/usr/bin/env python3
"""Data of one's own: docs/own-data.md as it stands, tokenizers, what is refused.   usage: data_test.py ISOMER"""
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from program import PROGRAM, expect, isomer

PAGE = Path(__file__).resolve().parent.parent / "docs" / "own-data.md"


def page(top):
    """Every block of the page, one after the other."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    (top / "bin").mkdir()
    (top / "bin" / "isomer").symlink_to(PROGRAM)
    done = subprocess.run(["bash", "-e", "-c", "".join(blocks)], cwd=top, capture_output=True, text=True,
                          env=os.environ | {"PATH": f"{top}/bin:{os.environ['PATH']}"})
    expect(done.returncode == 0, f"the page does not run: {done.stdout}\n{done.stderr}")
    out = done.stdout
    expect("300 tokens from 300 documents" in out, out)
    expect(out.count(" validation examples\n") == 10 and out.count(" test examples\n") >= 10, f"splits: {out}")
    expect("\nthe newest river\n" in out, f"text does not come back from its tokens: {out}")
    expect("the newest road follows the lowest river" in out, f"the model does not speak its data: {out}")
    rows = [line.split()[:1] + line.split(maxsplit=2)[2:] for line in out.splitlines() if line.endswith(("buy it now", "see you later"))]
    expect(rows == [["spam", "buy it now"], ["ham", "see you later"]], f"classes: {rows}")


def kept(top):
    """A model needs neither its data nor its tokenizer."""
    want = isomer("generate", "runs/notes", "--prompt", "Note 7:", "--tokens", 5, cwd=top)
    for name in "notes.jsonl", "tokenizer.json", "mail.csv":
        (top / name).rename(top / f"moved-{name}")
    got = isomer("generate", "runs/notes", "--prompt", "Note 7:", "--tokens", 5, cwd=top)
    expect(got.returncode == 0 and got.stdout == want.stdout, f"{got} {want}")
    config = json.loads((top / "runs/mail/checkpoints/latest/config.json").read_text())
    expect(config["labels"] == ["ham", "spam"], config)
    tokens = isomer("tokenizer", "encode", "--tokenizer", top / "runs" / "notes", input="Note 7:").stdout
    expect(tokens == isomer("tokenizer", "encode", "--tokenizer", top / "moved-tokenizer.json", input="Note 7:").stdout != "", tokens)
    for name in "notes.jsonl", "tokenizer.json", "mail.csv":
        (top / f"moved-{name}").rename(top / name)


def watched(top):
    """Evaluations during training look at the validation split, `eval` at the test."""
    (top / "parts.txt").write_text("ab" * 2000 + "xyz" * 300 + "ab" * 300)
    recipe = (top / "notes.toml").read_text().replace("notes.jsonl", "parts.txt").replace('field = "body"\n', "")
    recipe = recipe.replace('tokenizer = "tokenizer.json"\n', "").replace("_share = 0.1", "_share = 0.11").replace("steps = 150", "steps = 30")
    (top / "parts.toml").write_text(recipe)
    done = isomer("train", "parts.toml", "--out", "runs/parts", cwd=top)
    expect(done.returncode == 0, done.stderr)
    last = [json.loads(line) for line in (top / "runs/parts/metrics.jsonl").read_text().splitlines() if "eval" in line][-1]
    test = json.loads(isomer("eval", "runs/parts", "--json", cwd=top).stdout)["rows"][0]
    expect(test["loss"] < 1 and last["eval"]["loss"] > 2, f"{last} {test}")
    kept = json.loads(isomer("eval", "runs/parts", "--split", "validation", "--json", cwd=top).stdout)["rows"][0]
    expect(kept["split"] == "validation" and kept["loss"] > 2, f"{kept}")


def refused(top):
    def wrong(text, *arguments, **kwargs):
        result = isomer(*arguments, cwd=top, **kwargs)
        expect(result.returncode == 2 and result.stderr == f"isomer {arguments[0]}: {text}\n", f"{arguments}: {result}")

    (top / "other.csv").write_text("text,label\nbuy,spam\nsell,junk\n")
    wrong("classify: expected the labels of the model, task.labels=ham,spam, got junk,spam", "eval", "runs/mail", "--set", "task.path=other.csv",
          "--set", "task.test_share=0.5")
    wrong("runs/notes: expected a classifier of texts, got a language", "classify", "runs/notes", "--text", "a")
    wrong("expected --text or --lines, got none", "classify", "runs/mail")
    wrong("--text: expected at least one token, got none", "classify", "runs/mail", "--text", "")
    wrong("expected a text to learn from, got none", "tokenizer", "train", "--output", "t.json")
    wrong("expected --output tokenizer.json, got none", "tokenizer", "train", "mail.csv")
    wrong("expected --tokenizer tokenizer.json or the folder of a model, got none", "tokenizer", "encode", input="a")
    wrong("mail.toml: expected JSON, got a parse error at line 1, column 2: syntax error while parsing value - invalid literal",
          "tokenizer", "encode", "--tokenizer", "mail.toml", input="a")
    wrong("expected tokens from 0 to 299, got 300", "tokenizer", "decode", "--tokenizer", "tokenizer.json", input="1 300")
    wrong("notes.jsonl:1: expected a field text, got none; there are id, body", "tokenizer", "train", "notes.jsonl", "--field", "text", "--output", "t.json")
    (top / "cut.jsonl").write_bytes((top / "notes.jsonl").read_bytes() + b'{"body": "\xff"}\n')
    wrong("cut.jsonl:301: expected UTF-8, got the byte 255", "tokenizer", "train", "cut.jsonl", "--field", "body", "--output", "t.json")
    full = isomer("tokenizer", "train", "notes.jsonl", "--output", "no/t.json", cwd=top)
    expect(full.returncode == 1 and "cannot write no/t.json" in full.stderr, full)
    expect(not (top / "t.json").exists(), "what was refused left a file")


def main():
    with tempfile.TemporaryDirectory() as top:
        top = Path(top)
        page(top)
        kept(top)
        watched(top)
        refused(top)
    print("data_test: the page, models without their data, what is refused")


if __name__ == "__main__":
    main()
