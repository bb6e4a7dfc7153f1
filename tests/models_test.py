#!/usr/bin/env python3
"""Models apart from their runs: moved, spoiled, started from, looked at.   usage: models_test.py ISOMER"""
import json
import shutil
import struct
import tempfile
from pathlib import Path

from program import RECIPE, expect, isomer

TEXT = """
[model]
width = 16
layers = ["gla"]
[mixer.gla]
heads = 2
[task]
name = "text"
path = "PATH"
length = 16
[train]
steps = 3
batch = 4
"""


def read(path):
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), data[8 + size:]


def write(path, tensors):
    """name: (type, shape, struct format, numbers)"""
    header, body = {}, b""
    for name, (kind, shape, code, numbers) in tensors.items():
        packed = struct.pack(f"<{len(numbers)}{code}", *numbers)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(packed)]}
        body += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def numbers(path, name):
    header, body = read(path)
    begin, end = header[name]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f", body[begin:end])


def spoil(path, name):
    header, body = read(path)
    begin = header[name]["data_offsets"][0]
    at = 8 + struct.unpack("<Q", Path(path).read_bytes()[:8])[0] + begin
    data = bytearray(Path(path).read_bytes())
    data[at:at + 4] = struct.pack("<f", float("nan"))
    Path(path).write_bytes(bytes(data))


def moved(top):
    """A run speaks without its corpus, as a run and as a model's folder."""
    (top / "corpus").write_text("the quick brown fox jumps over the lazy dog. " * 40)
    (top / "text.toml").write_text(TEXT.replace("PATH", str(top / "corpus")))
    trained = isomer("train", top / "text.toml", "--out", top / "text", "--threads", 1)
    expect(trained.returncode == 0, trained.stderr)
    say = ["--prompt", "the ", "--tokens", 20, "--threads", 1]
    want = isomer("generate", top / "text", *say, errors="replace")
    expect(want.returncode == 0 and want.stdout.startswith("the "), f"generate: {want}")
    (top / "corpus").unlink()
    (top / "elsewhere").mkdir()
    (top / "text").rename(top / "elsewhere" / "run")
    shutil.copytree(top / "elsewhere" / "run" / "checkpoints" / "latest", top / "model")
    for unneeded in "optimizer.safetensors", "state.json":
        (top / "model" / unneeded).unlink()
    for place in top / "elsewhere" / "run", top / "model":
        got = isomer("generate", place, *say, errors="replace")
        expect(got.returncode == 0 and got.stdout == want.stdout, f"a moved model says something else: {got}")
    scored = isomer("eval", top / "elsewhere" / "run")
    expect(scored.returncode == 2 and "corpus" in scored.stderr, f"eval needs the data and says so: {scored}")


def resumed(top):
    """States that are kept, gone on from, forked, and refused; prompts from everywhere."""
    model = top / "model"

    def say(*arguments, **kwargs):
        return isomer("generate", model, "--threads", 1, *arguments, errors="replace", **kwargs)

    def refused(text, *arguments, status=2, **kwargs):
        wrong = say(*arguments, **kwargs)
        expect(wrong.returncode == status and wrong.stderr == f"isomer generate: {text}\n" and not wrong.stdout, f"{arguments}: {wrong}")

    whole = say("--prompt", "the fox ", "--tokens", 30)
    expect(whole.returncode == 0, whole.stderr)
    first = say("--prompt", "the fox ", "--tokens", 10, "--save-state", top / "state")
    rest = say("--load-state", top / "state", "--tokens", 20)
    expect(first.stdout[:-1] + rest.stdout == whole.stdout, f"a state goes on as if nothing had been between: {first} {rest} {whole}")
    (top / "prompt").write_text("the fox ")
    for place in (["--prompt", "-"], ["--prompt-file", top / "prompt"]):
        got = say(*place, "--tokens", 30, input="the fox ")
        expect(got.stdout == whole.stdout, f"{place}: {got}")
    # Several at once say what each says alone; forks too.
    (top / "lines").write_text("the fox \na lazy dog\n")
    rows = json.loads(say("--prompt-lines", top / "lines", "--prompt", "dog", "--json", "--tokens", 30, "--top-p", 0.9).stdout)["rows"]
    for i, row in enumerate(rows):
        alone = json.loads(say("--prompt", row["prompt"], "--json", "--tokens", 30, "--top-p", 0.9, "--seed", 1 + i).stdout)["rows"]
        expect(alone == [row], f"in a batch: {row}, alone: {alone}")
    expect([row["prompt"] for row in rows] == ["dog", "the fox ", "a lazy dog"], rows)
    expect(say("--prompt", "the fox ", "--tokens", 0, "--save-state", top / "fork").stdout == "the fox \n", "no tokens")
    forks = say("--load-state", top / "fork", "--prompt", "j", "--prompt", "r", "--tokens", 12)
    one = say("--prompt", "the fox j", "--tokens", 12).stdout
    expect(forks.stdout.startswith("[1] j" + one[len("the fox j"):]) and "[2] r" in forks.stdout, f"{forks} {one}")
    # A conversation is one sequence.
    talk = say("--interactive", "--tokens", 5, "--save-state", top / "talk", input="the fox\n\nand\n")
    lines = talk.stdout
    begin = say("--prompt", "the fox", "--tokens", 10).stdout[len("the fox"):-1]
    expect(talk.returncode == 0 and lines.startswith(begin[:5] + "\n" + begin[5:] + "\n"), f"{talk} {begin!r}")
    more = [say("--load-state", top / state, "--tokens", 5).stdout for state in ("talk", "talk")]
    expect(more[0] == more[1] != "", "a state is not changed by who reads it")
    # What is refused.
    refused("expected --prompt, --prompt-file, --prompt-lines, --interactive or --load-state, got none")
    refused("--interactive: expected prompts from standard input, got others", "--interactive", "--prompt", "a")
    refused("--prompt-lines: expected a prompt a line, got an empty file", "--prompt-lines", "/dev/null")
    refused("--prompt: expected at least one token, got none", "--prompt", "-", input="")
    refused("expected top-p above 0 and at most 1, got 0", "--prompt", "a", "--top-p", 0)
    refused(f"cannot read {top}/nothing: No such file or directory", "--load-state", top / "nothing")
    (top / "cut").write_bytes((top / "state").read_bytes()[:-100])
    cut = say("--load-state", top / "cut")
    expect(cut.returncode == 2 and cut.stderr.count("\n") == 1 and f"cannot read {top}/cut" in cut.stderr, f"a cut file: {cut}")
    other = isomer("generate", model, "--weights", "bf16", "--load-state", top / "state")
    expect(other.returncode == 2 and "expected a state of the weights " in other.stderr and other.stderr.count("\n") == 1, f"{other}")
    full = say("--prompt", "a", "--tokens", 1, "--save-state", top / "no" / "state")
    expect(full.returncode == 1 and "cannot write" in full.stderr, f"a state that cannot be written: {full}")


def looked_at(top):
    """Logits, loss and gradients of a run, as a batch and as a stream."""
    tokens = [(7 * i) % 64 for i in range(12)]
    write(top / "in", {"tokens": ("I64", [2, 6], "q", tokens), "targets": ("I64", [2, 6], "q", [-100] * 3 + tokens[3:])})
    run = ["logits", top / "run", "--tokens", top / "in", "--threads", 1]
    for name, *options in (["batch"], ["stream", "--stream"], ["gradients", "--gradients"]):
        done = isomer(*run, "--output", top / name, *options)
        expect(done.returncode == 0 and not done.stdout and not done.stderr, f"logits {options}: {done}")
    header, _ = read(top / "gradients")
    weights, _ = read(top / "run" / "checkpoints" / "latest" / "model.safetensors")
    weights.pop("__metadata__", None)
    header.pop("__metadata__", None)
    expect(set(header) == {"hidden", "logits", "loss"} | {"grad." + name for name in weights}, f"tensors: {set(header)}")
    expect(header["logits"] == {"dtype": "F32", "shape": [2, 6, 64], "data_offsets": header["logits"]["data_offsets"]}, header["logits"])
    for name in "hidden", "logits", "loss":
        one, other = numbers(top / "batch", name), numbers(top / "stream", name)
        expect(max(abs(a - b) for a, b in zip(one, other, strict=True)) < 2e-5, f"a stream gives another {name}")
    expect(numbers(top / "batch", "loss") == numbers(top / "gradients", "loss"), "gradients change the loss")
    for arguments, text in (([], "expected a model, got none"),
                            ([top / "run"], "expected --tokens FILE, got none"),
                            ([top / "run", "--tokens", top / "in"], "expected --output FILE, got none"),
                            ([top / "no", "--tokens", top / "in", "--output", top / "out"],
                             f"{top}/no: expected the folder of a run or of a model (with config.json), got neither"),
                            ([*run[1:4], "--output", top / "out", "--stream", "--gradients"], "expected gradients of a batch, got a stream")):
        wrong = isomer("logits", *arguments)
        expect(wrong.returncode == 2 and wrong.stderr == f"isomer logits: {text}\n", f"logits {arguments}: {wrong}")
    full = isomer(*run, "--output", top / "no" / "out")
    expect(full.returncode == 1 and "cannot write" in full.stderr, f"an output that cannot be written: {full}")


def started(top):
    """Other weights to begin with: what was taken is said and kept."""
    train = ["train", top / "recipe.toml", "--threads", 1]
    more = isomer(*train, "--out", top / "more", "--from", top / "run", "--set", "train.steps=1", "--set", "model.layers=gla,sliding-window,gla")
    expect(more.returncode == 0, more.stderr)
    kept = json.loads((top / "more" / "start.json").read_text())
    expect(kept["from"] == str(top / "run" / "checkpoints" / "step-60"), kept["from"])
    for name in kept["taken"] + kept["missing"] + kept["unknown"]:
        expect(f"\n{name} " in "\n" + more.stdout, f"{name} is not in the table: {more.stdout}")
    expect("embedding.weight" in kept["taken"] and kept["missing"], kept)
    expect(f"began with {len(kept['taken'])} weights of {kept['from']}; " in more.stdout, more.stdout)
    expect(f'start = "{top}/run"' in (top / "more" / "recipe.toml").read_text(), "the recipe keeps where it began")
    # With a learning rate of 0 the weights stay what they were taken from.
    still = isomer(*train, "--out", top / "still", "--set", f"train.start={top}/run", "--set", "train.lr=0", "--set", "train.steps=2")
    expect(still.returncode == 0, still.stderr)
    same = [(run / "checkpoints" / "latest" / "model.safetensors").read_bytes() for run in (top / "run", top / "still")]
    expect(same[0] == same[1], "the weights are not those of the start")
    again = isomer(*train, "--out", top / "still", "--resume", "--set", f"train.start={top}/run", "--set", "train.lr=0", "--set", "train.steps=2")
    expect(again.returncode == 0 and "began with" not in again.stdout, f"a resumed run begins nowhere else: {again}")
    none = isomer(*train, "--out", top / "none", "--from", top / "run", "--set", "model.width=32")
    expect(none.returncode == 2 and "expected weights with names and shapes of the model" in none.stderr, f"nothing in common: {none}")
    expect(not (top / "none").exists(), "a training that is refused leaves no folder")


def spoiled(top):
    """Weights that are not finite."""
    shutil.copytree(top / "run", top / "spoiled", symlinks=True)
    spoil(top / "spoiled" / "checkpoints" / "latest" / "model.safetensors", "norm.weight")
    for name, *arguments in (["eval", top / "spoiled"], ["generate", top / "spoiled", "--prompt", "1"],
                             ["logits", top / "spoiled", "--tokens", top / "in", "--output", top / "out"],
                             ["train", top / "recipe.toml", "--out", top / "spoiled", "--resume"],
                             ["train", top / "recipe.toml", "--out", top / "other", "--from", top / "spoiled"]):
        result = isomer(name, *arguments)
        text = f"isomer {name}: {top}/spoiled/checkpoints/step-60/model.safetensors: expected finite weights, got others in norm.weight\n"
        if "--resume" in arguments:
            run = top / "spoiled"
            text = text[:-1] + f"; to go on from step 57: isomer train {run}/recipe.toml --out {run} --resume --fall-back\n"
        expect(result.returncode == 1 and result.stderr == text, f"{name} takes weights that are not finite: {result}")


def accumulated(top):
    """Parts of batches: the same lines with nearly the same losses, and exact resumption."""
    want = [json.loads(line) for line in (top / "run" / "metrics.jsonl").read_text().splitlines()]
    run = ["train", top / "recipe.toml", "--threads", 1, "--set", "train.accumulate=3", "--out", top / "parts"]
    expect(isomer(*run).returncode == 0, "train.accumulate=3")
    got = [json.loads(line) for line in (top / "parts" / "metrics.jsonl").read_text().splitlines()]
    expect([(line["step"], line.get("lr")) for line in got] == [(line["step"], line.get("lr")) for line in want], "other steps")
    for a, b in zip(want[:10], got[:10], strict=True):
        expect(abs(a["loss"] - b["loss"]) < 1e-3 * a["loss"], f"another loss: {a} {b}")


def foreign(top):
    """Models of Hugging Face and in GGUF files, as the tests of isomer/models/foreign have them."""
    goldens = Path(__file__).parent / "goldens"
    said = isomer("run", goldens / "foreign" / "llama", "--prompt", "3 4 5", "--tokens", 4, "--temperature", 0)
    expect(said.returncode == 0 and len(said.stdout.split()) == 4, said.stdout + said.stderr)
    same = isomer("run", goldens / "gguf" / "llama.gguf", "--prompt", "a", "--tokens", 3, "--temperature", 0, "--json")
    row = json.loads(same.stdout)["rows"][0]
    expect(same.returncode == 0 and len(row["tokens"]) <= 3, same.stdout + same.stderr)
    write(top / "three.safetensors", {"tokens": ("I64", [1, 3], "q", [3, 4, 5])})
    out = isomer("logits", goldens / "foreign" / "bert", "--tokens", top / "three.safetensors", "--output", top / "bert.safetensors")
    expect(out.returncode == 0 and read(top / "bert.safetensors")[0]["logits"]["shape"] == [1, 3, 19], out.stderr)
    for name, error in {"bert": "isomer run: expected a tokenizer with a mask, got one without\n",
                        "bert-encoder": "isomer run: --prompt: expected two texts or more to compare, got 1\n"}.items():
        refused = isomer("run", goldens / "foreign" / name, "--prompt", "3 4")
        expect(refused.returncode == 2 and refused.stderr == error, refused.stderr)
    alike = isomer("run", goldens / "foreign" / "bert-encoder", "--prompt", "3 4", "--prompt", "3 4", "--json")
    expect(abs(json.loads(alike.stdout)["rows"][0]["cosine"] - 1) < 1e-5, alike.stdout + alike.stderr)
    (top / "pairs.tsv").write_text("a\t4\t3 4\t3 4\nb\t1\t3 4\t9 10 11\nc\t2\t5\t6 7\n")
    pairs = isomer("run", goldens / "foreign" / "bert-encoder", "--pairs", top / "pairs.tsv", "--columns", "2,3,4", "--json")
    scores = json.loads(pairs.stdout)["rows"][0]
    expect(scores["pairs"] == 3 and all(0 < abs(scores[x]) <= 1 for x in ("pearson", "spearman")), pairs.stdout + pairs.stderr)
    for options, error in {("--columns", "2,3"): "--columns: expected three numbers from 1 on (score, text, text) as 5,6,7, got 2,3",
                           (): f"{top / 'pairs.tsv'}:1: expected a number in column 1, got a"}.items():
        refused = isomer("run", goldens / "foreign" / "bert-encoder", "--pairs", top / "pairs.tsv", *options)
        expect(refused.returncode == 2 and refused.stderr == f"isomer run: {error}\n", refused.stderr)
    other = isomer("run", goldens / "foreign" / "llama", "--pairs", top / "pairs.tsv")
    expect(other.returncode == 2 and "--pairs: expected an encoder of texts, got a language" in other.stderr, other.stderr)
    chat = isomer("run", goldens / "foreign" / "llama", "--chat", "--prompt", "3")
    expect(chat.returncode == 2 and "expected a model that was taught conversations" in chat.stderr, chat.stderr)
    words = isomer("eval", goldens / "foreign" / "llama", "--task", "mqar", "--set", "task.vocabulary=19", "--set", "task.pairs=2",
                   "--set", "task.length=16", "--examples", 4, "--json")
    expect(words.returncode == 0 and json.loads(words.stdout)["rows"][0]["loss"] > 0, words.stdout + words.stderr)
    alone = isomer("eval", goldens / "foreign" / "llama")
    expect(alone.returncode == 2 and "a model of no run has no task of its own, expected --task" in alone.stderr, alone.stderr)
    table, rows = top / "known.csv", top / "asked.csv"
    table.write_text("a,kind,b\n1,x,10\n2,y,30\n6,x,20\n3,y,60\n4,,5\n")
    rows.write_text("b,a,kind\n5,4,x\n,2,y\n")
    tabular = ["classify", goldens / "foreign" / "tabpfn", "--table", table, "--label", "kind"]
    own, other = isomer(*tabular, "--json"), isomer(*tabular, "--rows", rows, "--json")
    own, other = (json.loads(said.stdout)["rows"] for said in (own, other))
    expect([row["row"] for row in own] == [5] and "is" not in own[0] and own[0]["label"] in "xy" and own[0]["probability"] >= 0.5, own)
    expect([row["is"] for row in other] == ["x", "y"] and abs(other[0]["probability"] - own[0]["probability"]) < 1e-6, (own, other))
    said = isomer(*tabular, "--rows", rows).stdout.splitlines()
    right = sum(row["label"] == row["is"] for row in other)
    expect(said[-1] == f"accuracy {right / 2:.4f} ({right} of 2)", said)
    for options, error in {("--text", "a"): "expected --table, got none",
                           ("--table", rows, "--label", "kind"): "--table: expected rows without a kind, or --rows, got none",
                           ("--table", rows, "--label", "a"): f"{rows}: row 1: expected a number or nothing in the column kind, got x"}.items():
        refused = isomer("classify", goldens / "foreign" / "tabpfn", *options)
        expect(refused.returncode == 2 and refused.stderr.endswith(error + "\n"), refused.stderr)
    refused = isomer("classify", goldens / "foreign" / "bert-classifier", "--table", table)
    expect(refused.returncode == 2 and "expected a model of tables for --table, got a encoder" in refused.stderr, refused.stderr)
    write(top / "frames", {"inputs": ("F32", [2, 6, 5], "f", [0.1 * (i % 9) for i in range(60)])})
    write(top / "masked", {"inputs": ("F32", [1, 6, 5], "f", [0.1] * 30), "mask": ("I64", [1, 6], "q", [1] * 6)})
    whisper = ["logits", goldens / "foreign" / "whisper", "--output", top / "whisper.safetensors", "--tokens"]
    heard = isomer(*whisper, top / "frames")
    expect(heard.returncode == 0 and heard.stderr == f"isomer logits: {whisper[1]}: the decoder is left out: 28 weights below model.decoder.\n", heard)
    expect(read(top / "whisper.safetensors")[0]["hidden"]["shape"] == [2, 3, 16], "half as many tokens as frames")
    for file, error in {"masked": "a embedding model reads no mask", "three.safetensors": "a embedding model reads no tokens"}.items():
        refused = isomer(*whisper, top / file)
        expect(refused.returncode == 2 and error in refused.stderr.splitlines()[-1], refused.stderr)
    vision = isomer("run", goldens / "foreign" / "vit", "--prompt", "3")
    expect(vision.returncode == 2 and "isomer classify and isomer logits run others" in vision.stderr, vision.stderr)


def main():
    with tempfile.TemporaryDirectory() as top:
        top = Path(top)
        (top / "recipe.toml").write_text(RECIPE)
        trained = isomer("train", top / "recipe.toml", "--out", top / "run", "--threads", 1)
        expect(trained.returncode == 0, trained.stderr)
        moved(top)
        resumed(top)
        looked_at(top)
        started(top)
        spoiled(top)
        accumulated(top)
        foreign(top)
    print("models_test: moved, resumed, looked at, started from, spoiled, in parts, of other libraries")


if __name__ == "__main__":
    main()
