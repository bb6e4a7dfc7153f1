"""Whole models in PyTorch: steps of training, and tokens one at a time, eager or compiled.

    {"op": "about"}                                                          -> {"version", "isa"}
    {"op": "train", "case": {..., "mode": "eager"}, "weights": "x.safetensors", "repeat": n}
        -> {"seconds": [...], "losses": [...], "parameters", "form", "peak_mib"}
    {"op": "generate", "case": {...}, "weights": ..., "repeat": n}            -> {"seconds", "tokens", "form", "peak_mib"}
The weights are those that `isomer bench --worker` saved, with its tokens. The state of a model is kept as in Isomer: steps of
training go on, tokens start again after the prompt.
"""

import contextlib
import json
import signal
from time import perf_counter

import torch

from peers import torch_models, torch_packages
from peers.isomer import read_safetensors
from peers.worker import Form, Skip, elapsed, fastest, peak_mib, serve

RATE, CLIP = 3e-4, 1.0  # as in isomer/bench/model.cc
COMPILE_SECONDS = 150  # a model that takes longer to compile is not compiled
CAVEATS = {"native_custbw": "mlstm_kernels' own backward leaves out the gradient through the denominator"}
# Compiling unrolls loops, so the forms without one are taken where there are some.
COMPILED = {"retnet": "chunk_matrix 64", "linear-elu": "chunk_matrix 64, summed"}


def load(case, path, length):
    tensors = {name: torch.from_numpy(array.copy()) for name, array in read_safetensors(path).items()}
    tokens = {name: tensors.pop(name) for name in ("tokens", "labels") if name in tensors}
    return torch_models.Model(tensors, case["preset"], case["layers"], length), tokens


def groups(model):
    """Decay is for matrices, as in Isomer."""
    parameters = list(model.parameters())
    return [{"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0}]


class Training:
    """Steps on one batch; `form` is the law's, the fastest if none is given."""

    def __init__(self, case, path, form=None):
        self.model, tokens = load(case, path, case["T"])
        self.tokens, self.labels = (tokens[name].view(case["B"], case["T"]) for name in ("tokens", "labels"))
        self.form = form or choose(self.model, case)
        for block in self.model.blocks:
            block.mixer.law = block.mixer.forms(case["T"])[self.form]
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(groups(self.model), lr=RATE, betas=(0.9, 0.95), eps=1e-8, fused=True)
        self.losses = []
        if case["mode"] == "compiled":
            compile_parts(self.model)
        reset_peak()

    def step(self):
        loss = self.model(self.tokens, self.labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, CLIP)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.losses.append(loss.item())

    def answer(self, repeat):
        self.losses.clear()
        seconds = [elapsed(self.step) for _ in range(repeat)]
        return {"seconds": seconds, "losses": list(self.losses), "parameters": sum(p.numel() for p in self.parameters)}


def choose(model, case):
    """The name of the form of the law that is fastest, forward and backward, in a layer of this size."""
    mixer = model.blocks[0].mixer
    functions = mixer.forms(case["T"])
    if case["mode"] == "compiled" and case["preset"] in COMPILED:
        return COMPILED[case["preset"]]
    if len(functions) == 1:
        return next(iter(functions))
    x = torch.randn(case["B"], case["T"], case["width"], requires_grad=True)

    def form(name):
        def run():
            mixer.law = functions[name]
            mixer(x).sum().backward()
        return Form(name, run, dict)

    best = fastest([form(name) for name in functions])
    model.zero_grad(set_to_none=True)
    return best.name


def compile_parts(model):
    """A block is compiled once for all layers, which takes a fraction of the time that the whole model does."""
    for block in model.blocks:
        block.compile()
    model.head_loss = torch.compile(model.head_loss)


@contextlib.contextmanager
def limit(seconds):
    def late(*_):
        raise Skip(f"not compiled within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Generation:
    def __init__(self, case, path):
        self.model, tokens = load(case, path, case["prompt"] + case["tokens"])
        self.form, self.first = "kv cache" if case["preset"] == "softmax" else "state", case["prompt"]
        self.advance = torch.compile(self.model.step) if case["mode"] == "compiled" else self.model.step
        self.states = [block.mixer.start() for block in self.model.blocks]
        with torch.inference_mode():
            for t, token in enumerate(tokens["tokens"]):
                self.token = self.advance(token.view(1, 1), self.states, t)
        reset_peak()

    @torch.inference_mode()
    def answer(self, repeat):
        states, token, seconds, tokens = [state.clone() for state in self.states], self.token, [], []
        for t in range(self.first, self.first + repeat):
            tokens.append(token.item())
            start = perf_counter()
            token = self.advance(token.view(1, 1), states, t)
            seconds.append(perf_counter() - start)
        return {"seconds": seconds, "tokens": tokens}


def peak(threads):
    """GFLOP/s of torch's product of the sizes at which Isomer's is fastest; about 0.25 s."""
    torch.set_num_threads(threads)
    (M, N, K), out = (1536, 1024, 384), torch.empty(1536, 1024)
    a, b, best, end = torch.full((M, K), 0.5), torch.full((K, N), 0.25), float("inf"), perf_counter() + 0.25
    while perf_counter() < end:
        best = min(best, elapsed(lambda: torch.mm(a, b, out=out)))
    return 2e-9 * M * N * K / best


def reset_peak():
    """Forgets what preparing took; without the right to do so the peak is that of the whole process."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


class Server:
    def __init__(self):
        self.key = self.subject = None

    def answer(self, request):
        if request["op"] == "about":
            return {"version": torch_packages.versions(), "isa": torch.backends.cpu.get_cpu_capability().lower()}
        if request["op"] == "peak":
            return {"gflops": peak(request["threads"])}
        case = request["case"]
        torch.set_num_threads(case["threads"])
        key = json.dumps((request["op"], case), sort_keys=True)
        new = key != self.key
        # What is compiled is compiled at the first call.
        with limit(COMPILE_SECONDS) if new and case["mode"] == "compiled" else contextlib.nullcontext():
            if new:
                self.key = self.subject = None
                self.subject = {"train": Training, "generate": Generation}[request["op"]](case, request["weights"])
            found = self.subject.answer(request["repeat"])
        self.key = key
        caveat = CAVEATS.get(self.subject.form.split()[0])
        return found | {"form": self.subject.form, "peak_mib": peak_mib()} | ({"caveat": caveat} if caveat else {})


if __name__ == "__main__":
    serve(Server().answer)
