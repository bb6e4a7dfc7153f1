#!/usr/bin/env python3
"""A tiny softmax model is trained, converted with attention transfer, trained on, scored, streamed.   usage: convert_test.py ISOMER"""
import json
import random
import tempfile
from pathlib import Path

from program import expect, isomer

RECIPE = """
[model]
width = 32
layers = ["softmax*2"]
[mixer.softmax]
heads = 2
[task]
name = "text"
path = "PATH"
length = 32
test_share = 0.2
[train]
steps = 300
batch = 16
lr = 1e-2
eval_every = 300
"""


def text():
    """Names that come again after a while: to say them one must look back."""
    draw = random.Random(3)
    names = ["".join(draw.choice("bdgklmnprst") + draw.choice("aeiou") for _ in range(2)) for _ in range(40)]
    return " ".join(f"{a} met {b}; {b} knew {a}." for a, b in (draw.sample(names, 2) for _ in range(800)))


def run(*arguments, status=0):
    result = isomer(*arguments)
    expect(result.returncode == status, f"isomer {' '.join(map(str, arguments))}: status {result.returncode}\n{result.stderr}")
    return result.stdout if status == 0 else result.stderr


def score(folder, *more):
    return json.loads(run("eval", folder, "--examples", 256, "--json", *more))["rows"][0]


def main():
    with tempfile.TemporaryDirectory() as top:
        top = Path(top)
        (top / "text").write_text(text())
        (top / "recipe.toml").write_text(RECIPE.replace("PATH", str(top / "text")))
        run("train", top / "recipe.toml", "--out", top / "old")
        old = score(top / "old")
        expect(old["value"] < 2, f"the softmax model should know its task, got {old}")

        run("convert", top / "old", "--mixer", "softmax", "--out", top / "same")
        same = score(top / "same")
        expect(same["step"] == 0 and (same["value"], same["loss"]) == (old["value"], old["loss"]),
               f"the same mixer should score the same, {old} and {same}")

        run("convert", top / "old", "--mixer", "hedgehog", "--out", top / "swapped")
        rows = json.loads(run("convert", top / "old", "--mixer", "hedgehog", "--transfer", 200, "--set", "train.steps=100", "--json",
                              "--out", top / "new"))["rows"]
        fates = {row["parameter"]: row["fate"] for row in rows if "parameter" in row}
        expect(fates["layers.0.mixer.q.weight"] == "kept" and fates["layers.1.mixer.features_k.weight"] == "new", str(fates))
        losses = [row for row in rows if "transfer" in row]
        expect(len(losses) == 2 and all(row["after"] < row["before"] / 2 for row in losses), f"transfer: {losses}")
        swapped, transferred = score(top / "swapped"), score(top / "new")
        expect(transferred["loss"] < swapped["loss"], f"transfer should bring the model nearer: {swapped} and {transferred}")

        recipe = top / "new" / "recipe.toml"
        run("train", recipe, "--out", top / "new", "--resume")
        tuned = score(top / "new")
        expect(tuned["step"] == 100 and tuned["value"] < old["value"] + 0.25, f"fine-tuning should bring the task back: {old}, {tuned}")
        expect(len(run("generate", top / "new", "--prompt", "met ", "--tokens", 50)) > 50, "a converted model streams")

        said = run("convert", top / "old", "--mixer", "luna", "--layers", "1", "--out", top / "luna")
        expect("psi.hidden.weight" in said and "--resume" in said, "what is new, and how to go on: " + said)
        again = run("convert", top / "old", "--mixer", "luna", "--out", top / "luna", status=2)
        expect("expected a folder without a run" in again, again)
        said = run("convert", top / "old", "--mixer", "luna", "--layers", "2", "--out", top / "no", status=2)
        expect(said == "isomer convert: expected layers from 0 to 1, got 2\n", "the name once: " + said)
        for layers in ("2", "a", "1-0", ",0"):
            expect("layers" in run("convert", top / "old", "--mixer", "luna", "--layers", layers, "--out", top / "no", status=2), layers)
        mamba = run("convert", top / "old", "--mixer", "mamba", "--out", top / "no", status=2)
        expect(mamba.count("\n") == 1 and "hedgehog" in mamba, mamba)
        expect(not (top / "no").exists(), "a refused conversion leaves nothing behind")
        print(f"convert_test: bits a byte {old['value']:.3f} with softmax, {swapped['value']:.3f} swapped, {transferred['value']:.3f} after "
              f"transfer, {tuned['value']:.3f} after fine-tuning")


if __name__ == "__main__":
    main()
