#!/usr/bin/env python3
"""`isomer sweep` trains every combination once, survives stops, kills and runs that fail; `isomer runs` shows how they stand.
usage: sweep_test.py ISOMER"""
import json
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from program import RECIPE, command, expect, isomer, record


def rows(out):
    return json.loads((out / "sweep.json").read_text())["rows"]


def states(folder):
    listed = isomer("runs", folder, "--json")
    expect(listed.returncode == 0, listed.stderr)
    return {Path(row["run"]).name: row["state"] for row in json.loads(listed.stdout)["rows"]}


def trains_every_combination(recipe, out):
    grid = ["--grid", "mixer=gla,softmax,lr=1e-3,1e-2", "--jobs", 2, "--threads", 2, "--out", out]
    swept = isomer("sweep", recipe, *grid, "--tensorboard")
    expect(swept.returncode == 0, swept.stderr)
    got = rows(out)
    names = {f"mixer={mixer},lr={lr}" for mixer in ("gla", "softmax") for lr in ("1e-3", "1e-2")}
    expect({Path(row["run"]).name for row in got} == names, f"runs: {got}")
    expect(all(row["state"] == "finished" and row["step"] == 60 and row["parameters"] > 0 for row in got), f"rows: {got}")
    expect({(row["set"]["mixer"], row["set"]["lr"]) for row in got} == {(m, lr) for m in ("gla", "softmax") for lr in (1e-3, 1e-2)}, "set")
    values = [row["value"] for row in got]
    expect(values == sorted(values, reverse=True), f"the best is not first: {values}")
    head = swept.stdout.splitlines()[0].split("  ")
    expect([cell.strip() for cell in head if cell.strip()] ==
           ["mixer", "lr", "example accuracy", "loss", "parameters", "tokens/s", "seconds", "state"], f"table: {head}")
    expect(len(swept.stdout.splitlines()) == 5, swept.stdout)
    expect(all((out / name / "tensorboard").is_dir() for name in names), "--tensorboard")

    one = out.parent / "alone"
    alone = isomer("train", recipe, "--set", "model.layers=softmax*2", "--set", "train.lr=1e-2", "--out", one, "--threads", 1,
                   "--set", "mixer.sliding-window.window=8")
    expect(alone.returncode == 2, "options of a mixer that is not there are refused in a recipe")
    (out.parent / "plain.toml").write_text(RECIPE.replace("[mixer.sliding-window]\nwindow = 8\n", ""))
    alone = isomer("train", out.parent / "plain.toml", "--set", "model.layers=softmax*2", "--set", "train.lr=1e-2", "--out", one)
    expect(alone.returncode == 0, alone.stderr)
    expect(record(one) == record(out / "mixer=softmax,lr=1e-2"), "a run of a sweep is another one than the run by itself")

    times = {name: (out / name / "metrics.jsonl").stat().st_mtime_ns for name in names}
    again = isomer("sweep", recipe, *grid)
    expect(again.returncode == 0 and "4 of 4 runs are there already" in again.stderr, again.stderr)
    expect(times == {name: (out / name / "metrics.jsonl").stat().st_mtime_ns for name in names}, "a finished run was touched")
    other = isomer("sweep", recipe, *grid, "--set", "train.steps=61")
    expect(other.returncode == 2 and "take another --out" in other.stderr, "another recipe in the same folder: " + other.stderr)
    expect(set(states(out).values()) == {"finished"}, f"runs: {states(out)}")


def goes_on_after_a_stop(recipe, out):
    """Ctrl-C, then a kill of the sweep itself, then to the end: the same as without."""
    more = ["--set", "train.steps=600", "--set", "train.save_every=50", "--set", "train.log_every=10", "--set", "train.eval_every=200"]
    arguments = ["sweep", recipe, "--grid", "seed=1,2,3", "--jobs", 2, "--threads", 2, *more, "--out"]
    whole = out.parent / "whole"
    expect(isomer(*arguments, whole).returncode == 0, "a sweep to compare with")
    sweep = subprocess.Popen(command(*arguments, out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (out / "seed=1" / "metrics.jsonl").exists():
        time.sleep(0.01)
    sweep.send_signal(signal.SIGINT)
    stdout, stderr = sweep.communicate(timeout=60)
    expect(sweep.returncode == 1, f"stopped with {sweep.returncode}: {stderr}")
    expect("go on with: isomer sweep" in stderr and "--grid seed=1,2,3" in stderr, "how to go on: " + stderr)
    # On a busy machine a run may have come to its end before the signal did.
    expect(states(out)["seed=1"] in ("stopped", "finished"), f"a run that was stopped: {states(out)}")
    expect((out / "seed=1" / "checkpoints" / "latest").exists(), "a run that was stopped has saved")
    expect({row["state"] for row in rows(out)} <= {"stopped", "waiting", "finished"}, f"rows: {rows(out)}")

    sweep = subprocess.Popen(command(*arguments, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    sweep.send_signal(signal.SIGKILL)
    sweep.wait()
    ended = time.time() + 60
    while "running" in states(out).values():
        expect(time.time() < ended, "runs go on without their sweep")
        time.sleep(0.05)

    done = isomer(*arguments, out)
    expect(done.returncode == 0, done.stderr)
    for seed in (1, 2, 3):
        expect(record(out / f"seed={seed}") == record(whole / f"seed={seed}"), "a sweep that was stopped gives another result")


def a_run_that_fails_is_a_row(recipe, out):
    swept = isomer("sweep", recipe, "--grid", "lr=1e-3,1e30", "--set", "train.clip=0", "--out", out)
    expect(swept.returncode == 1, f"a failed run: {swept.returncode} {swept.stderr}")
    good, bad = rows(out)
    expect(good["state"] == "finished" and good["set"] == {"lr": 1e-3}, f"the good run: {good}")
    expect(bad["state"] == "failed" and "is not finite" in bad["problem"], f"the failed run: {bad}")
    expect("is not finite" in swept.stdout, swept.stdout)
    expect(states(out) == {"lr=1e-3": "finished", "lr=1e30": "failed"}, f"runs: {states(out)}")


def a_goal_ends_a_run(top):
    """Of errors the least is the best, and a run that has reached its goal trains no further."""
    recipe, out = top / "regression.toml", top / "goal"
    head, rest = RECIPE.split("[task]")
    recipe.write_text(head + '[task]\nname = "regression"\n[train]' + rest.split("[train]")[1])
    grid = ["sweep", recipe, "--grid", "lr=1e-3,1e-2,3e-2", "--set", "train.stop_at=1e9", "--out", out]
    swept = isomer(*grid)
    expect(swept.returncode == 0, swept.stderr)
    expect([(row["state"], row["step"]) for row in rows(out)] == 3 * [("finished", 20)], f"rows: {rows(out)}")
    values = [row["value"] for row in rows(out)]
    expect(values == sorted(values), f"the least error is not first: {values}")
    before = record(out / "lr=1e-3")
    again = isomer("train", out / "lr=1e-3" / "recipe.toml", "--out", out / "lr=1e-3", "--resume")
    expect(again.returncode == 0 and "reached its goal after 20 steps" in again.stdout, again.stdout + again.stderr)
    expect(record(out / "lr=1e-3") == before, "a run that has reached its goal went on")


def is_trained_by_one_at_a_time(recipe, run):
    training = subprocess.Popen(command("train", recipe, "--out", run, "--threads", 1, "--set", "train.steps=1000000"),
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (run / "metrics.jsonl").exists():
        time.sleep(0.01)
    expect(states(run) == {run.name: "running"}, f"a run that trains: {states(run)}")
    other = isomer("train", run / "recipe.toml", "--out", run, "--resume")
    expect(other.returncode == 2 and "another process is training" in other.stderr, "a run that trains: " + other.stderr)
    training.send_signal(signal.SIGINT)
    training.wait(timeout=60)
    expect(states(run) == {run.name: "stopped"}, f"a run that was stopped: {states(run)}")
    listed = isomer("runs", run).stdout.splitlines()
    expect(len(listed) == 2 and "stopped" in listed[1] and "mqar" in listed[1], f"table: {listed}")


def main():
    with tempfile.TemporaryDirectory() as top:
        top = Path(top)
        recipe = top / "recipe.toml"
        recipe.write_text(RECIPE)
        trains_every_combination(recipe, top / "grid")
        goes_on_after_a_stop(recipe, top / "stopped")
        a_run_that_fails_is_a_row(recipe, top / "failed")
        a_goal_ends_a_run(top)
        is_trained_by_one_at_a_time(recipe, top / "one")
        typo = isomer("sweep", recipe, "--grid", "mixr=gla")
        expect(typo.returncode == 2 and typo.stderr == "isomer sweep: --grid: unknown key mixr, did you mean mixer?\n", typo.stderr)
        print("sweep_test: every combination once, the same after a stop and a kill, and a row for what fails")


if __name__ == "__main__":
    main()
