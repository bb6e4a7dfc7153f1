"""Isomer itself: times through `isomer bench --worker`, which speaks the workers' protocol, and checks by `isomer apply`."""

import json
import os
import subprocess
import tempfile

import numpy as np

from peers.worker import Skip, serve

PROGRAM = os.environ.get("ISOMER", "build/isomer")
TYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, array in tensors.items():
        dtype = next(key for key, kind in TYPES.items() if array.dtype == kind)
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}


def options(case):
    """How the case is said to `isomer apply`."""
    arguments = ["--threads", str(case["threads"]), "--form", "step" if case["direction"] == "step" else "auto"]
    settings = {"window": f"window={case['window']}", "mlstm": "normaliser=max", "rwkv6": "read=before"}
    if case["variant"] in settings:
        arguments += ["--set", settings[case["variant"]]]
    return arguments


def check(case, path):
    with np.load(path) as file, tempfile.TemporaryDirectory() as folder:
        tensors, result = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors")
        write_safetensors(tensors, dict(file))
        run(["apply", case["subject"], "--inputs", tensors, "--output", result, *options(case)])
        output = f"{path}.isomer.npz"
        np.savez(output, **read_safetensors(result))
    return output


def run(arguments):
    try:
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    except OSError as problem:
        raise Skip(f"the program cannot be run: {problem.strerror}") from problem
    if done.returncode != 0:
        raise Skip((done.stderr or done.stdout).strip() or f"isomer {arguments[0]} ended with {done.returncode}")
    return done.stdout


class Served:
    """One `isomer bench --worker`, started when first asked and again after it ended."""

    def __init__(self):
        self.process = None

    def ask(self, request):
        if self.process is None:
            try:
                self.process = subprocess.Popen([PROGRAM, "bench", "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            except OSError as problem:
                raise Skip(f"the program cannot be run: {problem.strerror}") from problem
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            status, self.process = self.process.wait(), None
            raise Skip(f"isomer bench --worker ended with {status}")
        return json.loads(line)


def answer(served, request):
    if request["op"] == "about":
        return {"version": run(["--version"]).strip(), "isa": json.loads(run(["list", "--json"]))["machine"]["isa"]}
    if request["op"] == "check":
        return {"output": check(request["case"], request["inputs"])}
    return served.ask(request)


if __name__ == "__main__":
    isomer = Served()
    serve(lambda request: answer(isomer, request))
