#!/usr/bin/env python3
"""What a shell offers after `isomer completion bash` has been read.   usage: completion_test.py ISOMER"""
import shutil
import subprocess
import tempfile
from pathlib import Path

from program import expect, isomer

# Fills in what bash would before it calls the function: words, split at '=' as bash does, and where the cursor is.
ASK = r"""
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_isomer
printf '%s\n' "${COMPREPLY[@]}"
"""


def offered(script, folder, *words):
    asked = subprocess.run(["bash", "--norc", "-c", ASK, "ask", script, "isomer", *words], capture_output=True, text=True, cwd=folder)
    expect(asked.returncode == 0 and asked.stderr == "", f"{words}: {asked.stderr}")
    return set(asked.stdout.split())


def main():
    with tempfile.TemporaryDirectory() as top:
        top = Path(top)
        script = top / "script"
        (top / "recipes").mkdir()
        (top / "recipes" / "small.toml").write_text("")
        (top / "notes.txt").write_text("")
        printed = isomer("completion", "bash")
        expect(printed.returncode == 0, printed.stderr)
        script.write_text(printed.stdout)

        def offers(words, want, others=()):
            got = offered(script, top, *words)
            expect(set(want) <= got, f"isomer {' '.join(words)}: expected {want}, got {sorted(got)}")
            expect(not set(others) & got, f"isomer {' '.join(words)}: did not expect {others}, got {sorted(got)}")

        def offers_only(words, want):
            got = offered(script, top, *words)
            expect(set(want) == got, f"isomer {' '.join(words)}: expected only {want}, got {sorted(got)}")

        offers([""], ["train", "sweep", "check", "completion", "--version"])
        offers_only(["swe"], ["sweep"])
        offers(["train", "--"], ["--set", "--out", "--resume", "--tensorboard", "--help"], ["--prompt"])
        offers_only(["train", "--tens"], ["--tensorboard"])
        offers(["train", ""], ["recipes/small.toml"], ["notes.txt"])
        offers_only(["train", "recipes/s"], ["recipes/small.toml"])
        offers(["show", ""], ["gla", "softmax", "mamba"], ["mqar"])
        offers(["check", ""], ["attention", "gla"])
        offers_only(["apply", "at"], ["attention"])
        offers(["bench", "--law", ""], ["attention", "delta"], ["gla"])
        offers(["bench", "--form", ""], ["chunk", "step"])
        offers(["tasks", ""], ["mqar", "text"], ["gla"])
        offers_only(["eval", "runs/a", "--task", "induc"], ["induction"])
        offers_only(["train", "recipes/small.toml", "--set", "train.st"], ["train.start=", "train.steps=", "train.stop_at="])
        offers_only(["train", "recipes/small.toml", "--set", "task.name", "=", "pari"], ["parity"])
        offers_only(["train", "recipes/small.toml", "--set", "train.lr", "=", ""], [])
        offers_only(["sweep", "recipes/small.toml", "--grid", "mix"], ["mixer="])
        offers(["sweep", "recipes/small.toml", "--grid", "mixer", "="], ["gla", "softmax"])
        offers_only(["sweep", "recipes/small.toml", "--grid", "mixer", "=", "gla,retn"], ["gla,retnet"])
        offers_only(["sweep", "recipes/small.toml", "--grid", "lr", "=", "1,mixer", "=", "gated-delt"], ["gated-deltanet"])
        offers_only(["sweep", "recipes/small.toml", "--grid", "mixer=gla,retn"], ["mixer=gla,retnet"])  # as zsh has it
        offers_only(["eval", "rec"], ["recipes"])
        expect(isomer("completion", "fish").returncode == 2, "a shell that is not known")

        zsh = isomer("completion", "zsh").stdout
        expect("bashcompinit" in zsh and printed.stdout.splitlines()[-1] in zsh, "zsh")
        if shutil.which("zsh"):
            read = subprocess.run(["zsh", "-f", "-c", zsh + "\nwhence -w _isomer"], capture_output=True, text=True)
            expect("function" in read.stdout, "zsh cannot read its script: " + read.stderr)
        print("completion_test: commands, options, names, keys and files")


if __name__ == "__main__":
    main()
