#!/usr/bin/env python3
"""High-precision goldens for the laws.

    python3 tools/goldens [LAW...]            writes tests/goldens/LAW.json, of every law unless some are named
    python3 tools/goldens [LAW...] --check    regenerates them and exits 1 if a kept file differs

Needs mpmath. A law is one file here: its definition in explicit sums or plain recurrences, nothing rescaled, at 120 digits, and its
cases. Gradients are central differences (step 1e-40) of sum(grad_o * o) + sum(grad_final_X * final_X), so they rest on no derivation.
Inputs are exact in float32 and as decimals; outputs are rounded to the nearest double; -inf is the string "-inf". The gradient at a
gate of -inf is 0; none is written for a scale or a count. Without tokens final = initial.
"""

import argparse
import importlib
import multiprocessing
import pathlib
import sys

from common import solve

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE.parent.parent / "tests" / "goldens"
LAWS = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in ("__main__", "common"))


def solve_one(job):
    name, index = job
    law = importlib.import_module(name)
    return solve(law, law.CASES[index])


def main():
    parser = argparse.ArgumentParser(description="Regenerate the goldens of the laws.")
    parser.add_argument("laws", nargs="*", metavar="LAW", help=", ".join(LAWS))
    parser.add_argument("--check", action="store_true", help="compare with the kept files, write nothing")
    arguments, differs = parser.parse_args(), False
    if unknown := set(arguments.laws) - set(LAWS):
        parser.error(f"expected laws among {', '.join(LAWS)}, got {', '.join(sorted(unknown))}")
    with multiprocessing.Pool(2) as pool:
        for name in arguments.laws or LAWS:
            cases = importlib.import_module(name).CASES
            body = ",\n".join(pool.imap(solve_one, [(name, index) for index in range(len(cases))]))
            path, text = FOLDER / f"{name}.json", f'{{"schema":1,"law":"{name}","cases":[\n{body}\n]}}\n'
            if not arguments.check:
                path.write_text(text)
            same = path.exists() and path.read_text() == text
            differs |= not same
            print(f"{path.name}: {len(cases)} cases, {len(text) // 1024} KB{'' if same else ', differs from the kept file'}")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
