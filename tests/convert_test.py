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

        run("convert", top / "old", "--mixer", "softmax", "--tune", 0, "--out", top / "same")
        same = score(top / "same")
        expect(same["step"] == 0 and (same["value"], same["loss"]) == (old["value"], old["loss"]),
               f"the same mixer should score the same, {old} and {same}")

        done = isomer("convert", top / "old", "--mixer", "hedgehog", "--transfer", 200, "--tune", 400, "--examples", 256, "--json",
                      "--out", top / "new")
        expect(done.returncode == 0, done.stderr)
        rows, recovered = json.loads(done.stdout)["rows"], done.stderr
        fates = {row["parameter"]: row["fate"] for row in rows if "parameter" in row}
        expect(fates["layers.0.mixer.q.weight"] == "kept" and fates["layers.1.mixer.features_k.weight"] == "new", str(fates))
        losses = [row for row in rows if "transfer" in row]
        expect(len(losses) == 2 and all(row["after"] < row["before"] / 2 for row in losses), f"transfer: {losses}")
        stages = {row["stage"]: row for row in rows if "stage" in row}
        expect([(row["stage"], row["steps"]) for row in rows if "stage" in row] ==
               [("before", 0), ("new mixers", 0), ("after transfer", 200), ("after fine-tuning", 400)], str(stages))
        before, swapped, transferred, tuned = stages.values()
        expect((before["value"], before["examples"]) == (old["value"], old["examples"]), f"before is the old run: {before} {old}")
        expect(transferred["loss"] < swapped["loss"], f"transfer should bring the model nearer: {swapped} and {transferred}")
        expect(tuned["value"] < old["value"] + 0.25, f"fine-tuning should bring the task back: {old}, {tuned}")
        scored = score(top / "new")
        expect(scored["step"] == 400 and scored["value"] == tuned["value"], f"the run is what was scored: {scored} {tuned}")
        expect("\nlr = 0.001\n" in (top / "new" / "recipe.toml").read_text(), "fine-tuning has a learning rate of its own")
        expect(len(run("generate", top / "new", "--prompt", "met ", "--tokens", 50)) > 50, "a converted model streams")

        said = run("convert", top / "old", "--mixer", "luna", "--layers", "1", "--transfer", 2, "--tune", 0, "--out", top / "luna")
        expect("psi.hidden.weight" in said and "fine-tune with: isomer train " in said and "after transfer" in said, said)
        # What has nothing new to learn is not asked to.
        said = run("convert", top / "old", "--mixer", "linear-elu", "--tune", 2, "--out", top / "elu")
        expect("after transfer" not in said and "after fine-tuning" in said, said)
        lost = isomer("convert", top / "old", "--mixer", "linear-elu", "--tune", 2, "--json", "--out", top / "lost")
        expect(lost.returncode == 0 and lost.stderr.startswith("isomer convert: warning: the model has not recovered, its loss rose from "),
               lost.stderr)
        expect("warning" not in recovered, recovered)
        again = run("convert", top / "old", "--mixer", "luna", "--out", top / "luna", status=2)
        expect("expected a folder without a run" in again and "isomer train --resume" in again, again)
        both = run("convert", top / "old", "--mixer", "luna", "--tune", 5, "--set", "train.steps=6", "--out", top / "no", status=2)
        expect(both == "isomer convert: --tune: expected the steps once, got --set train.steps too\n", both)
        (top / "text").rename(top / "elsewhere")
        (top / "old").rename(top / "moved")
        without = run("convert", top / "moved", "--mixer", "hedgehog", "--out", top / "no", status=2)
        expect("--set task.path=PATH says where it is, --transfer 0 --tune 0 converts the weights alone" in without, without)
        said = run("convert", top / "moved", "--mixer", "hedgehog", "--transfer", 0, "--tune", 0, "--out", top / "weights")
        expect("not scored: " in said, said)
        run("generate", top / "weights", "--prompt", "met ", "--tokens", 5)
        said = run("convert", top / "moved", "--mixer", "hedgehog", "--transfer", 1, "--tune", 1, "--set", f"task.path={top}/elsewhere",
                   "--out", top / "found")
        expect("after fine-tuning" in said and score(top / "found")["step"] == 1, said)
        (top / "elsewhere").rename(top / "text")
        (top / "moved").rename(top / "old")
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
