"""`isomer report` as far as no browser is needed: what the page holds, what is refused, and that the page in the repository is the one
of the sources in web/. `make test-web` looks at it in a browser."""
import hashlib
import json
import math
import os
import re
import tempfile
from pathlib import Path

from program import RECIPE, expect, isomer, metrics

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "study" / "results"
WEB = ROOT / "web"


def data_of(page):
    """What a browser finds in the element of the data."""
    inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)
    return json.loads(inside.group(1))


def check_sources():
    """The same rule as in web/build.mjs."""
    names = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"]
    names += [str(path.relative_to(WEB)) for path in (WEB / "src").rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(name.encode() + b"\n" + (WEB / name).read_bytes() + b"\n")
    page = (WEB / "page.html").read_text()
    recorded = re.search(r'name="isomer-sources" content="([0-9a-f]+)"', page).group(1)
    expect(recorded == digest.hexdigest(), "web/page.html is not built from web/src: run make web")


def check_study(folder):
    page = folder / "study.html"
    done = isomer("report", KEPT, "--kept", KEPT, "--output", page)
    expect(done.returncode == 0, f"expected a page, got {done.stderr}")
    data = data_of(page)
    kept = [json.loads(path.read_text()) for path in sorted(KEPT.glob("*.json"))]
    expect(data["kept"] == kept, "expected the numbers of the page to be those of the files")
    expect(data["results"] == [], "expected results that are beside themselves once")
    listed = json.loads(isomer("study", "--list", "--json").stdout)["rows"]
    expect(data["claims"] == listed, "expected every claim on the page")
    expect({row["source"] for row in listed} == {source["id"] for source in data["sources"]}, "expected every source on the page")
    again = folder / "again.html"
    isomer("report", KEPT, "--kept", KEPT, "--output", again)
    expect(page.read_bytes() == again.read_bytes(), "expected the same page from the same files")
    # Both sets, found where the program looks for them.
    (folder / "study").mkdir()
    (folder / "study" / "results").symlink_to(KEPT)
    isomer("study", "metala.overwrite", cwd=folder)
    done = isomer("report", cwd=folder)
    expect(done.stdout.startswith("report.html: 1 claim measured here (1 holds); "), f"got {done.stdout}")
    data = data_of(folder / "report.html")
    expect(len(data["results"]) == 1 and len(data["kept"]) == len(kept), "expected quick results beside the kept ones")


def check_mixers(folder):
    """Every causal preset, each as a lower triangular map of the same words."""
    mixers = {mixer["preset"]: mixer for mixer in data_of(folder / "study.html")["mixers"]}
    presets = [row["preset"] for row in json.loads(isomer("list", "--json").stdout)["rows"]]
    causal = [name for name in presets if json.loads(isomer("show", name, "--json").stdout)["rows"][0]["causal"]]
    expect(sorted(mixers) == sorted(causal) and len(causal) > 30, f"expected every causal preset, got {list(mixers)}")
    for name, mixer in mixers.items():
        T = len(mixer["words"])
        for head in mixer["heads"]:
            expect([len(row) for row in head["matrix"]] == list(range(1, T + 1)), f"{name}: expected a weight for every earlier token")
            for key in ("sizes", "angles", "norm", "rank"):
                expect(len(head[key]) == T, f"{name}: expected {key} of every token")
            expect(all(0 < norm for norm in head["norm"]), f"{name}: expected a state that is written")
            most = min(head["channels"], head["features"])
            expect(all(1 - 1e-3 <= rank <= most + 1e-3 for rank in head["rank"]), f"{name}: expected ranks from 1 to {most}, got {head['rank']}")
        for c, row in enumerate(mixer["influence"]):
            expect(all(value == 0 for value in row[:c]) and row[c] > 0, f"{name}: expected a word to change no output before it")
    for head in mixers["softmax"]["heads"]:
        for row in head["matrix"]:
            expect(abs(sum(row) - 1) < 1e-3 and min(row) > 0, "expected weights of softmax to add up to one")
    # The same word is attended to more than the others.
    words, last = mixers["softmax"]["words"], mixers["softmax"]["heads"][-1]["matrix"][-1]
    expect(words[-1] == words[1] and last[1] > sum(last) / len(last), "expected like words to attend to each other")


def check_hostile(folder):
    """Text of a file stays text."""
    results = folder / "hostile"
    results.mkdir()
    result = json.loads((KEPT / "metala.overwrite.json").read_text())
    result["statement"] = "</script><script>alert(1)</script><!-- & \u2028 \" ' \\u003c"
    result["figure"]["caption"] = "<img src=x onerror=alert(2)>]]>"
    (results / "hostile.json").write_text(json.dumps(result))
    page = folder / "hostile.html"
    expect(isomer("report", results, "--kept", results, "--output", page).returncode == 0, "expected a page")
    expect(data_of(page)["kept"][0]["statement"] == result["statement"], "expected the statement as it was")
    expect("<script>alert" not in page.read_text() and "<img src=x" not in page.read_text(), "expected no markup of the data")


def check_refused(folder):
    broken = folder / "broken"
    broken.mkdir()
    good = (KEPT / "metala.overwrite.json").read_text()
    (broken / "a.json").write_text("{oops")
    (broken / "b.json").write_text(good.replace('"schema": 1', '"schema": 2'))
    (broken / "c.json").write_text(good.replace('"schema": 1', '"schema": 0'))
    (broken / "d.json").write_text(good)
    page = folder / "broken.html"
    done = isomer("report", broken, "--output", page, cwd=folder)
    expect(done.returncode == 1, "expected status 1 when files are left out")
    lines = done.stderr.splitlines()
    expect(len(lines) == 3, f"expected a line for each file that is left out, got {done.stderr}")
    expect(lines[0].startswith(f"isomer report: left out {broken}/a.json: expected JSON, got "), lines[0])
    for line, name, schema, age in (lines[1], "b", 2, "a newer"), (lines[2], "c", 0, "an older"):
        wanted = f"{broken}/{name}.json: results: expected schema 1, got {schema}, which {age} version of the program wrote"
        expect(line == f"isomer report: left out {wanted}", line)
        expect(wanted in data_of(page)["problems"], "expected the problem on the page")
    expect([result["id"] for result in data_of(page)["results"]] == ["metala.overwrite"], "expected what can be read")

    empty = folder / "empty"
    empty.mkdir()
    for arguments, line in (
        (["nowhere"], "nowhere: expected a folder with runs, got no folder"),
        (["empty"], "empty: expected results of a study or runs, got neither"),
        (["--kept", "nowhere"], "cannot read nowhere: No such file or directory"),
    ):
        done = isomer("report", *arguments, cwd=folder)
        expect((done.returncode, done.stderr) == (2, f"isomer report: {line}\n"), f"{arguments}: got {done.stderr}")
    done = isomer("report", cwd=empty)
    wanted = "isomer report: expected a folder of results or of runs: there is no results here, which isomer study writes\n"
    expect((done.returncode, done.stderr) == (2, wanted), done.stderr)
    done = isomer("report", KEPT, "--output", "/proc/report.html")
    expect((done.returncode, done.stdout) == (1, "") and done.stderr.startswith("isomer report: cannot write /proc/report.html"), done.stderr)


def check_open(folder):
    """A browser is asked for the file, and its absence is a line."""
    programs = folder / "bin"
    programs.mkdir()
    page = folder / "open & 'quoted'.html"
    arguments = ("report", KEPT, "--output", page, "--open")
    done = isomer(*arguments, env={"PATH": str(programs)})
    wanted = f"isomer report: no browser could be opened by xdg-open: open {page} yourself\n"
    expect((done.returncode, done.stderr) == (1, wanted) and page.exists(), done.stderr)
    script = programs / "xdg-open"
    script.write_text(f'#!/bin/sh\nprintf "%s" "$1" > "{folder}/opened"\n')
    script.chmod(0o755)
    expect(isomer(*arguments, env={"PATH": f"{programs}:{os.environ['PATH']}"}).returncode == 0, "expected it to be opened")
    expect((folder / "opened").read_text() == str(page), "expected the path of the page")


def check_runs(folder):
    (folder / "recipe.toml").write_text(RECIPE)
    for name in "ab":
        done = isomer("train", folder / "recipe.toml", "--out", folder / "runs" / name, "--set", "train.steps=6")
        expect(done.returncode == 0, done.stderr)
    page = folder / "runs.html"
    done = isomer("report", folder / "runs" / "a", folder / "runs" / "b", "--output", page)
    expect((done.returncode, done.stdout) == (0, f"{page}: 2 runs\n"), done.stderr)
    runs = data_of(page)["runs"]
    expect([Path(run["run"]).name for run in runs] == ["a", "b"], "expected the runs in their order")
    lines = metrics(folder / "runs" / "a")
    steps, evals = [line for line in lines if "loss" in line], [line for line in lines if "eval" in line]
    for key in ("step", "seconds", "loss", "lr", "grad_norm", "tokens_per_s"):
        expect(runs[0]["train"][key] == [line[key] for line in steps], f"expected the {key} of metrics.jsonl")
    for key in ("loss", "value"):
        expect(runs[0]["eval"][key] == [line["eval"][key] for line in evals], f"expected the {key} of evaluations")
    expect(runs[0]["metric"] == evals[-1]["eval"]["metric"], "expected the metric's name")
    isomer("report", folder / "runs", "--output", page)
    expect(len(data_of(page)["runs"]) == 2, "expected every run below a folder")

    # A long run is thinned, and its spike stays; what cannot be read is named.
    long = [dict(steps[0], step=i + 1, loss=math.sin(i)) for i in range(9000)]
    long[4321]["loss"] = 77.0
    (folder / "runs" / "a" / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in long))
    (folder / "runs" / "b" / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2}\n')
    done = isomer("report", folder / "runs", "--output", page)
    wanted = f"isomer report: left out {folder}/runs/b/metrics.jsonl"
    expect(done.returncode == 1 and done.stderr.startswith(wanted) and done.stderr.count("\n") == 1, done.stderr)
    run = data_of(page)["runs"][0]
    expect(run["lines"] == 9000 and 1000 <= len(run["train"]["step"]) <= 2000, "expected a curve of at most 2000 points")
    expect(run["train"]["loss"][run["train"]["step"].index(4322)] == 77.0, "expected the spike")
    expect(run["train"]["step"] == sorted(run["train"]["step"]), "expected steps in order")


def main():
    check_sources()
    with tempfile.TemporaryDirectory() as folder:
        for check in (check_study, check_mixers, check_hostile, check_refused, check_open, check_runs):
            check(Path(folder))


main()
