#!/usr/bin/env python3
"""Runs of `isomer train` that are killed, stopped or run out of disk go on exactly.   usage: train_test.py ISOMER"""
import json
import os
import pty
import random
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from program import RECIPE, command, expect, isomer, record

ROOT = Path(__file__).resolve().parent.parent


def run(folder, *more, threads=1, **kwargs):
    return isomer("train", folder.parent / "recipe.toml", "--out", folder, "--threads", threads, *more, **kwargs)


def killed_at_random(folder, seed):
    """Starts, kills after a random time, resumes, until the run is done."""
    draw = random.Random(seed)
    kills = 0
    while True:
        resume = ["--resume"] if (folder / "recipe.toml").exists() else []
        process = subprocess.Popen(command("train", folder.parent / "recipe.toml", "--out", folder, "--threads", 1, *resume),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            # Later ones live longer, so that the run ends.
            status = process.wait(timeout=draw.uniform(0.02, 0.15) * (1 + kills / 4))
            expect(status == 0, f"a resumed run ended with {status}")
            return kills
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1


def interrupted_on_a_terminal(folder):
    """What a terminal shows of a run that is stopped; None where the system has no terminals to give, as in a bare container."""
    try:
        reader, writer = pty.openpty()
    except OSError as problem:
        print(f"train_test: no terminal to test on ({problem})")
        return None
    process = subprocess.Popen(command("train", folder.parent / "recipe.toml", "--out", folder, "--threads", 1, "--set", "steps=1e6"),
                               stdout=writer, stderr=writer)
    os.close(writer)
    shown, stopped = b"", False
    while True:
        try:
            shown += os.read(reader, 4096)
        except OSError:  # how a terminal ends
            break
        if b"] step " in shown and not stopped:
            process.send_signal(signal.SIGINT)
            stopped = True
    os.close(reader)
    expect(process.wait() == 1, f"stopped with {process.returncode}")
    return shown.decode()


def examples_of_eval(top):
    """The lines of `eval --help` hold for a run of the recipe that the README trains."""
    made = isomer("train", ROOT / "recipes" / "mqar.toml", "--set", "steps=1", "--set", "eval_examples=4", "--out", top / "mqar", "--threads", 1)
    expect(made.returncode == 0, made.stderr)
    lines = [line.split() for line in isomer("eval", "--help").stdout.splitlines() if "isomer eval runs/mqar" in line]
    expect(any("--task" in line for line in lines), f"examples: {lines}")
    for line in lines:
        done = isomer("eval", top / "mqar", *line[3:], "--examples", 4)
        expect(done.returncode == 0, " ".join(line) + ": " + done.stderr)


def main():
    with tempfile.TemporaryDirectory() as top:
        top = Path(top)
        (top / "recipe.toml").write_text(RECIPE)
        whole = run(top / "whole")
        expect(whole.returncode == 0, whole.stderr)
        want = record(top / "whole")
        expect(len(want[0]) == 63, f"expected 60 steps and 3 evaluations, got {len(want[0])} lines")

        expect(run(top / "two", threads=2).returncode == 0, "two threads")
        expect(record(top / "two") == want, "two threads give another result than one")

        printed = isomer("train", top / "recipe.toml", "--print-config")
        for line in "window = 8\n", "heads = 2\n", "causal = true\n", "train_examples = ":
            expect(line in printed.stdout, f"--print-config lacks {line}: {printed}")
        expect("mixer.all" not in printed.stdout and "phase_gate" not in printed.stdout, "options without effect: " + printed.stdout)
        (top / "printed.toml").write_text(printed.stdout)
        expect(isomer("train", top / "printed.toml", "--print-config").stdout == printed.stdout, "the printed recipe prints another")
        again = isomer("train", top / "printed.toml", "--out", top / "printed", "--threads", 1)
        expect(again.returncode == 0, again.stderr)
        got = record(top / "printed")
        expect(got[0] == want[0] and got[1]["model.safetensors"] == want[1]["model.safetensors"], "the printed recipe gives another run")

        said = [isomer("generate", top / "whole", "--prompt", "1 2 3", "--weights", weights, "--stats", "--threads", threads)
                for weights, threads in (("bf16", 1), ("bf16", 2), ("float32", 2))]
        expect(all(result.returncode == 0 for result in said), "generate: " + said[0].stderr)
        expect(said[0].stdout == said[1].stdout, "bf16: two threads give other tokens than one")
        sizes = [int(result.stderr.split(" bytes of ")[0].split()[-1]) for result in said]
        expect(sizes[2] // 2 < sizes[0] == sizes[1] < 0.6 * sizes[2], f"bf16 should read about half as much, got {sizes}")

        near = isomer("generate", top / "whole", "--prompt", "1 2 3", "--tokens", 5, "--weights", "bf16", "--compute", "bf16")
        expect(near.returncode == 0 and near.stdout, f"--compute bf16: {near}")
        wide = isomer("generate", top / "whole", "--prompt", "1 2 3", "--compute", "bf16")
        expect(wide.returncode == 2 and "--compute bf16: expected weights in BF16, got F32; --weights bf16 keeps them so" in wide.stderr, f"{wide}")

        learned = run(top / "learned", "--set", "model.positions=true", "--set", "train.steps=1")
        expect(learned.returncode == 0, learned.stderr)
        for tokens, status in (29, 0), (30, 2):
            said = isomer("generate", top / "learned", "--prompt", "1 2 3", "--tokens", tokens)
            expect(said.returncode == status and bool(said.stdout) == (status == 0), f"{tokens} tokens after 3 of 32: {said}")

        kills = killed_at_random(top / "killed", seed=7)
        expect(kills > 0, "the run was never killed")
        expect(record(top / "killed") == want, f"a run that was killed {kills} times differs")
        leftover = [p.name for p in (top / "killed" / "checkpoints").iterdir() if not p.name.startswith("step-") and p.name != "latest"]
        expect(not leftover, f"left behind: {leftover}")

        stopped = subprocess.Popen(command("train", top / "recipe.toml", "--out", top / "stopped", "--threads", 1),
                                   stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
        while not (top / "stopped" / "metrics.jsonl").exists():
            time.sleep(0.005)
        stopped.send_signal(signal.SIGINT)
        out, _ = stopped.communicate()
        expect(stopped.returncode in (0, 1), f"stopped with {stopped.returncode}")
        if stopped.returncode == 1:
            expect("--resume" in out, "a stopped run says how to go on: " + out)
            expect(run(top / "stopped", "--resume").returncode == 0, "resume after Ctrl-C")
        expect(record(top / "stopped") == want, "a run that was stopped differs")

        shown = interrupted_on_a_terminal(top / "a terminal")
        if shown is not None:
            before, stop, after = shown.partition("stopped after ")
            expect(stop and before.endswith(("\n", "\033[K")), f"the line of a stopped run stands behind its bar: {shown[-300:]!r}")
            expect(f"--out '{top}/a terminal' --resume" in after, f"paths with spaces are quoted: {after}")

        examples_of_eval(top)

        headed = subprocess.Popen(command("train", top / "recipe.toml", "--out", top / "headed", "--threads", 1),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        headed.stdout.readline()
        headed.stdout.close()
        complaints = headed.stderr.read()
        expect(headed.wait() == 0 and "isomer train:" not in complaints, f"| head: {headed.returncode} {complaints}")
        expect(record(top / "headed") == want, "a run whose output nobody reads differs")

        plan = isomer("train", top / "recipe.toml", "--dry-run", "--json", "--set", "train.batch=2048", "--threads", 1)
        expect(plan.returncode == 0, plan.stderr)
        row = json.loads(plan.stdout)["rows"][0]
        expect(0.5 < row["memory_bytes"] / row["peak_bytes"] < 2, f"memory by shapes is far from the peak: {row}")
        for form in "json", "csv":
            table = isomer("train", top / "recipe.toml", f"--{form}")
            wanted = f"isomer train: expected --{form} with --dry-run, got it without; metrics.jsonl is the record of a run\n"
            expect(table.returncode == 2 and table.stderr == wanted, table.stderr)
        for options in ["--dry-run"], ["--out", top / "huge"]:
            huge = isomer("train", top / "recipe.toml", *options, "--set", "train.batch=1000000000")
            expect(huge.returncode == 2 and huge.stderr.count("\n") == 1 and "train.batch" in huge.stderr, f"a huge batch: {huge}")
        expect(not (top / "huge").exists(), "a training that is refused leaves no folder")

        limit = (top / "whole" / "checkpoints" / "latest" / "model.safetensors").stat().st_size // 2
        full = run(top / "full", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        expect(full.returncode == 1 and "cannot write" in full.stderr and full.stderr.count("\n") >= 1, "full disk: " + full.stderr)
        expect(run(top / "full", "--resume").returncode == 0, "resume after a full disk")
        expect(record(top / "full") == want, "a run after a full disk differs")

        for options, folder in ((), "recipe"), ((), "recipe-2"), (["--resume"], "recipe-2"):
            unnamed = isomer("train", "recipe.toml", "--threads", 1, *options, cwd=top)
            expect(unnamed.returncode == 0 and unnamed.stdout.endswith(f"run in runs/{folder}\n"), f"without --out: {unnamed}")

        (top / "recipes").mkdir()
        (top / "recipes" / "small.toml").write_text(RECIPE)
        named = isomer("train", "small", cwd=top)
        expect(named.returncode == 2 and named.stderr == "isomer train: cannot read small: no such file, did you mean recipes/small.toml?\n", named.stderr)

        again = run(top / "whole")
        expect(again.returncode == 2 and "--resume" in again.stderr, "a folder with a run is refused: " + again.stderr)
        other = run(top / "whole", "--resume", "--set", "train.lr=1")
        expect(other.returncode == 2 and "expected train.lr of the run" in other.stderr, "another recipe is refused: " + other.stderr)
        (top / "whole" / "checkpoints" / "latest" / "optimizer.safetensors").unlink()
        for name, *options in (["eval", "--examples", 4], ["generate", "--prompt", "1 2", "--tokens", 3]):
            used = isomer(name, top / "whole", *options)
            expect(used.returncode == 0, f"{name} needs no optimiser: " + used.stderr)
        untrained = run(top / "whole", "--resume")
        expect(untrained.returncode == 2 and "optimizer.safetensors" in untrained.stderr, "training needs one: " + untrained.stderr)
        model = top / "whole" / "checkpoints" / "latest" / "model.safetensors"
        model.write_bytes(model.read_bytes()[:100])
        broken = run(top / "whole", "--resume")
        expect(broken.returncode == 2 and "model.safetensors" in broken.stderr, "a truncated checkpoint is refused: " + broken.stderr)
        print(f"train_test: the same after {kills} kills, a stop, a closed output and a full disk, with one and two threads")


if __name__ == "__main__":
    main()
