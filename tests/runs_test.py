#!/usr/bin/env python3
"""A run is scored on what was asked for, stopped politely, made longer, moved, and survives damage.   usage: runs_test.py ISOMER"""
import json
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from program import RECIPE, command, expect, isomer, metrics, record

SMALL = """
[model]
width = 16
layers = ["gla"]
[mixer.gla]
heads = 2
"""

WORDS = SMALL + """
[task]
name = "word-problem"
length = 8
test_length = 12
[train]
steps = 4
batch = 4
eval_examples = 8
"""

TEXT = SMALL + """
[task]
name = "text"
path = "corpus"
length = 16
[train]
steps = 6
batch = 4
save_every = 2
"""


def run(*arguments, status=0, **kwargs):
    result = isomer(*arguments, **kwargs)
    expect(result.returncode == status, f"isomer {' '.join(map(str, arguments))}: {result.returncode}\n{result.stdout}{result.stderr}")
    if status:
        expect(result.stderr.count("\n") == 1, "one line: " + result.stderr)
    return result.stderr if status else result.stdout


def resume(folder, *more, status=0):
    return run("train", folder / "recipe.toml", "--out", folder, "--threads", 1, "--resume", *more, status=status)


def is_scored_on_what_was_asked(top):
    (top / "words.toml").write_text(WORDS)
    run("train", top / "words.toml", "--out", top / "words", "--threads", 1)
    wrong = run("eval", top / "words", "--set", "task.length=256", status=2)
    expect(wrong == "isomer eval: task.length=256 changes nothing in the test examples of word-problem; task.test_length does\n", wrong)
    said = run("eval", top / "words", "--set", "task.test_length=20", "--examples", 30)
    expect(said.endswith(" on 30 examples of the test split, 21 long\n"), said)
    grid = ["eval", top / "words", "--grid", "task.test_length=6,12,24", "--examples", 30]
    rows = json.loads(run(*grid, "--json"))["rows"]
    expect([(row["set"]["task.test_length"], row["longest"]) for row in rows] == [(6, 7), (12, 13), (24, 25)], f"grid: {rows}")
    expect(len(run(*grid).splitlines()) == len(run(*grid, "--csv").splitlines()) == 4, "a line for each length and one above")
    wrong = run("eval", top / "words", "--grid", "train.lr=1,2", status=2)
    expect(wrong == "isomer eval: --grid: expected options of the task (task.length=64,128), got train.lr\n", wrong)


def has_checkpoints_with_names(top):
    run("train", top / "recipe.toml", "--out", top / "named", "--threads", 1, "--set", "train.keep_best=true", "--set", "train.lr=0.02")
    looks = [line for line in metrics(top / "named") if "eval" in line]
    best = max(looks, key=lambda line: (line["eval"]["value"], -line["eval"]["loss"]))["step"]
    expect((top / "named" / "checkpoints" / "best").readlink() == Path(f"step-{best}"), f"best is {best}: {looks}")
    for name, step in ("", 60), ("@step-57", 57), ("@best", best):
        row = json.loads(run("eval", f"{top}/named{name}", "--examples", 4, "--json"))["rows"][0]
        expect(row["step"] == step, f"{name}: {row}")
        run("generate", f"{top}/named{name}", "--prompt", "1 2", "--tokens", 2)
        run("show", f"{top}/named{name}", "--dsf", "--prompt", "1 2")
    there = sorted({57, 60, best})
    for name, *more in ["eval"], ["generate", "--prompt", "1"], ["show", "--dsf", "--prompt", "1"], ["tokenizer", "encode", "--tokenizer"]:
        wrong = run(name, *more, f"{top}/named@step-3", status=2)
        expect(wrong == f"isomer {name}: {top}/named@step-3: expected one of the checkpoints "
                        f"{', '.join(f'step-{step}' for step in there)}, got step-3\n", wrong)
    often = ["--set", "train.save_every=60", "--set", "train.save_minutes=1e-6", "--set", "train.keep=100"]
    run("train", top / "recipe.toml", "--out", top / "often", "--threads", 1, *often)
    expect((top / "often" / "checkpoints" / "step-59").exists(), "save_minutes")


def ends_politely(top, want):
    for wish in signal.SIGTERM, signal.SIGINT:
        folder = top / f"stopped-{wish}"
        process = subprocess.Popen(command("train", top / "recipe.toml", "--out", folder, "--threads", 1, "--set", "train.save_every=1000"),
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while not (folder / "metrics.jsonl").exists():
            time.sleep(0.002)
        process.send_signal(wish)
        out, _ = process.communicate(timeout=60)
        expect(process.returncode == 1 and "go on with: isomer train" in out, f"signal {wish}: {process.returncode} {out}")
        done = int(out.split("stopped after ")[1].split()[0])
        expect((folder / "checkpoints" / f"step-{done}").exists(), "the last step is saved")
        resume(folder)
        expect(record(folder)[1] == want[1], "a run that was stopped differs")


def is_made_longer(top):
    plain = ["--set", "train.schedule=constant", "--set", "train.short_window=0", "--threads", 1]
    run("train", top / "recipe.toml", "--out", top / "long", *plain)
    run("train", top / "recipe.toml", "--out", top / "short", *plain, "--set", "train.steps=40")
    said = resume(top / "short", "--set", "train.steps=60")
    expect("going on after step 40" in said and "finished after 60 steps" in said, said)
    # With a constant rate the steps are those of the longer run.
    expect(record(top / "short")[1] == record(top / "long")[1], "a run that was made longer differs from a long one")
    expect("steps = 60" in (top / "short" / "recipe.toml").read_text(), "the recipe has the new number of steps")
    expect("finished after 60 steps" in resume(top / "short"), "and is finished with them")
    wrong = resume(top / "short", "--set", "train.steps=50", status=2)
    expect(wrong == f"isomer train: {top}/short: expected train.steps of at least 60, which are done, got 50\n", wrong)
    expect("steps = 60" in (top / "short" / "recipe.toml").read_text(), "what is refused changes nothing")
    wrong = resume(top / "short", "--set", "train.lr=1", status=2)
    expect("expected train.lr of the run in " in wrong and ", which is 0.001, got 1; isomer train " in wrong, wrong)
    states = json.loads(run("runs", top / "short", "--json"))["rows"]
    expect([row["state"] for row in states] == ["finished"], f"{states}")


def falls_back_or_leaves_all_as_it_was(folder):
    """The newest checkpoint is damaged, and there is another reason not to go on."""
    def names():
        return sorted(path.name for path in (folder / "checkpoints").iterdir())
    before = names()
    older = folder / "checkpoints" / "step-57"
    config = (older / "config.json").read_text()
    (older / "config.json").write_text(config.replace('"dropout": 0.1', '"dropout": 0.2'))
    told = resume(folder, "--fall-back", status=2)
    expect(told == f"isomer train: {older}/config.json: expected the model of the recipe with its data, got one with other dropout\n", told)
    expect(names() == before, f"a checkpoint of another model is not damaged: {names()}")
    (older / "config.json").write_text(config)
    state = (older / "state.json").read_text()
    (older / "state.json").write_text(state.replace('"seed"', '"data": "1", "seed"'))
    told = resume(folder, "--fall-back", status=2)
    expect("--changed-data goes on with them" in told and names() == before, f"{told} {names()}")
    (older / "state.json").write_text("{}")
    told = resume(folder, "--fall-back", status=2)
    expect(f"{older}/state.json: " in told and "--fall-back" not in told and names() == before, f"none can be read: {told} {names()}")
    (older / "state.json").write_text(state)


def survives_damage(top):
    """Every file of the newest checkpoint, cut off and overwritten."""
    latest = top / "whole" / "checkpoints" / "step-60"
    for name in "model.safetensors", "optimizer.safetensors", "config.json", "state.json":
        for kind in "cut", "garbage", "empty object", "gone":
            folder = top / "damaged"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(top / "whole", folder, symlinks=True)
            file = folder / "checkpoints" / "step-60" / name
            whole = (latest / name).read_bytes()
            if kind == "gone":
                file.unlink()
            else:
                empty = struct.pack("<Q", 2) + b"{}" if name.endswith("safetensors") else b"{}"
                file.write_bytes({"cut": whole[:len(whole) // 2], "garbage": b"\xff\x00[[[" * 40, "empty object": empty}[kind])
            told = resume(folder, status=2)
            expect(str(file) in told and "exception" not in told, f"{kind} {name}: {told}")
            again = f"; to go on from step 57: isomer train {folder}/recipe.toml --out {folder} --resume --fall-back\n"
            expect(told.endswith(again), f"{kind} {name} names the command: {told}")
            if name != "optimizer.safetensors" and (name, kind) != ("state.json", "empty object"):
                told = run("eval", folder, "--examples", 4, status=2)
                expect(str(file) in told, f"{kind} {name}: {told}")
    falls_back_or_leaves_all_as_it_was(folder)
    said = resume(folder, "--fall-back")
    expect("set aside: " in said and "going on after step 57" in said, said)
    expect(record(folder) == record(top / "whole"), "a run that fell back differs")
    expect((folder / "checkpoints" / "damaged-60").exists(), "what is damaged stays")
    optimiser = folder / "checkpoints" / "step-60" / "optimizer.safetensors"
    data = bytearray(optimiser.read_bytes())
    data[-4:] = struct.pack("<f", float("nan"))
    optimiser.write_bytes(bytes(data))
    told = resume(folder, status=1)
    expect(f"{optimiser}: expected finite moments of the optimiser, got others in " in told and "intact" not in told, told)
    (folder / "metrics.jsonl").write_text("[1,\n")
    expect("metrics.jsonl:1: " in run("runs", folder), "a damaged record is a row")
    for text in "[model\n", "\xff\x00", "steps = \n":
        (folder / "recipe.toml").write_text(text)
        told = run("eval", folder, status=2)
        expect("recipe.toml" in told and "exception" not in told, told)


def knows_its_data(top):
    """A relative path, other places, other texts."""
    here = top / "here"
    here.mkdir()
    (here / "corpus").write_text("the quick brown fox jumps over the lazy dog. " * 40)
    (here / "text.toml").write_text(TEXT)
    run("train", "text.toml", "--out", "run", "--set", "train.steps=4", cwd=here)
    expect(f'path = "{here}/corpus"' in (here / "run" / "recipe.toml").read_text(), "the path is whole")
    (here / "run").rename(top / "moved")
    scored = run("eval", top / "moved", "--examples", 4)
    # The same bytes in another place are the data of the run, whether or not the old place still has them.
    shutil.copy(here / "corpus", top / "copy")
    expect(run("eval", top / "moved", "--examples", 4, "--set", f"task.path={top}/copy") == scored, "eval on moved data")
    (here / "corpus").rename(top / "other")
    told = run("eval", top / "moved", status=2)
    expect(told.endswith(f"cannot read {here}/corpus: No such file or directory; --set task.path=PATH says where it is\n"), told)
    told = run("eval", top / "moved", "--set", "task.path=nowhere", status=2)
    expect(told == "isomer eval: --set: cannot read nowhere: No such file or directory\n", told)
    resume(top / "moved", "--set", f"task.path={top}/other", "--set", "train.steps=5")
    (top / "other").write_text("a lazy dog sleeps while the quick brown fox jumps. " * 40)
    told = resume(top / "moved", "--set", "train.steps=6", status=2)
    expect(told == f"isomer train: {top}/moved: expected the data that the run was trained on, got others for the task text; "
                   "--changed-data goes on with them\n", told)
    resume(top / "moved", "--set", "train.steps=6", "--changed-data")
    resume(top / "moved")
    notices_another_tokenizer(top)


def notices_another_tokenizer(top):
    """The same texts, of which another tokenizer makes other tokens."""
    here = top / "tokens"
    here.mkdir()
    for name, text in ("corpus", "the quick brown fox jumps over the lazy dog. " * 99), ("other", "zebras munch sixty melons\n" * 99):
        (here / name).write_text(text)
        run("tokenizer", "train", here / name, "--vocabulary", 262, "--output", here / f"{name}.json")
    (here / "rows.csv").write_text("text,label\n" + "the quick brown fox,a\nover the lazy dog,b\n" * 40)
    tasks = {"text": f'path = "{here}/corpus"\nlength = 16', "classify": f'path = "{here}/rows.csv"\nlength = 16'}
    for task, options in tasks.items():
        (here / "recipe.toml").write_text(SMALL + f'[task]\nname = "{task}"\ntokenizer = "{here}/corpus.json"\n{options}\n[train]\nsteps = 2\n')
        folder = here / task
        run("train", here / "recipe.toml", "--out", folder, "--threads", 1)
        encode = ["tokenizer", "encode", here / "rows.csv", "--tokenizer"]
        expect(run(*encode, f"{folder}@step-2") == run(*encode, here / "corpus.json"), "the tokenizer of a checkpoint")
        # Its path does not matter, what it has learned does.
        (here / "moved.json").write_bytes((here / "corpus.json").read_bytes())
        resume(folder, "--set", f"task.tokenizer={here}/moved.json", "--set", "train.steps=3")
        (here / "moved.json").write_bytes((here / "other.json").read_bytes())
        told = resume(folder, "--set", "train.steps=4", status=2)
        expect(f"expected the data that the run was trained on, got others for the task {task}; --changed-data" in told, told)


def has_no_path_that_cannot_be_looked_at(top):
    """Names that are too long and links to themselves: errors of ours, or no files."""
    long = "x" * 300
    for arguments in (["eval", long], ["runs", long], ["generate", long, "--prompt", "a"], ["show", long], ["train", long], ["report", long],
                      ["tokenizer", "encode", "--tokenizer", long], ["train", top / "here" / "text.toml", "--set", f"task.path={long}"],
                      ["logits", long, "--tokens", "x", "--output", "y"], ["train", top / "recipe.toml", "--out", long]):
        told = run(*arguments, status=2)
        expect("filesystem" not in told and (long in told or "unknown preset" in told), f"{arguments}: {told}")
    folder = top / "looped"
    folder.mkdir()
    (folder / "self").symlink_to("self")
    (folder / "text").write_text("the quick brown fox jumps over the lazy dog. " * 40)
    run("train", top / "here" / "text.toml", "--out", top / "looped-run", "--set", f"task.path={folder}", "--set", "train.steps=1")
    run("runs", folder)


def is_one_of_several_seeds(top):
    swept = run("sweep", top / "words.toml", "--grid", "lr=1e-3,1e-2", "--seeds", 3, "--out", top / "seeds", "--threads", 1)
    lines = swept.splitlines()
    expect(len(lines) == 3 and all(" ± " in line and line.endswith("3 of 3") for line in lines[1:]), swept)
    kept = json.loads((top / "seeds" / "sweep.json").read_text())
    expect(len(kept["rows"]) == 6 and len(kept["groups"]) == 2, f"{kept}")
    for group in kept["groups"]:
        values = [row["value"] for row in kept["rows"] if row["set"]["lr"] == group["set"]["lr"]]
        mean = sum(values) / 3
        deviation = (sum((value - mean) ** 2 for value in values) / 2) ** 0.5
        expect(abs(group["value"] - mean) < 1e-12 and abs(group["deviation"] - deviation) < 1e-12, f"{group}: {values}")
    order = [(-row["value"], row["test_loss"]) for row in kept["rows"]]
    expect(order == sorted(order), f"ties are broken by loss: {order}")
    wrong = run("sweep", top / "words.toml", "--grid", "seed=1,2", "--seeds", 3, status=2)
    expect(wrong == "isomer sweep: --seeds: expected no axis seed in --grid beside it, got one\n", wrong)


def main():
    with tempfile.TemporaryDirectory() as top:
        top = Path(top)
        (top / "recipe.toml").write_text(RECIPE)
        run("train", top / "recipe.toml", "--out", top / "whole", "--threads", 1)
        is_scored_on_what_was_asked(top)
        has_checkpoints_with_names(top)
        ends_politely(top, record(top / "whole"))
        is_made_longer(top)
        survives_damage(top)
        knows_its_data(top)
        has_no_path_that_cannot_be_looked_at(top)
        is_one_of_several_seeds(top)
    print("runs_test: scored as asked, by name, stopped, made longer, damaged, moved, over seeds")


if __name__ == "__main__":
    main()
