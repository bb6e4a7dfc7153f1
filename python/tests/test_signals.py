"""Ctrl-C and other signals while the engine is at work."""
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import isomer

SLOW = {"reference": "isomer.attention(x, x, x, form='reference')", "chunk": "isomer.attention(x, x, x, threads=1)",
        "threads": "isomer.attention(x, x, x, threads=2)",
        "gradients": "isomer.apply('attention', {'q': x, 'k': x, 'v': x, 'grad_o': x}, threads=2)",
        "system": "isomer.dsf('gla', np.ones((7000, 64)), {'heads': 1})"}


@pytest.mark.parametrize("what", SLOW)
def test_ctrl_c_ends_a_call(what):
    """Within seconds, on a machine that others use, too, a call that takes minutes; the next one works."""
    code = f"""
import time
import numpy as np
import isomer
x = np.ones((1, {12000 if what == "reference" else 300000}, 4, 32), np.float32)
y = x[:, :9]
print("ready", flush=True)
try:
    {SLOW[what]}
    print("it ended")
except KeyboardInterrupt:
    print("interrupted", isomer.attention(y, y, y, threads=2).o.sum() == y.sum(), flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(1)
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted True\n"
        assert time.monotonic() - began < 5


def test_ctrl_c_ends_a_study(tmp_path):
    """Also while claims without training are measured, which takes seconds; the next one goes on."""
    code = f"import isomer; print('ready', flush=True); isomer.study('softmax-rnn', 'large-prompt', out={str(tmp_path)!r})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in child.communicate()[1] and time.monotonic() - began < 3
    claim = isomer.study("softmax-rnn.recurrence", out=tmp_path)
    assert (claim if isinstance(claim, list) else claim.to_dict("records"))[0]["verdict"] == "holds"


def test_handlers_of_signals_run_and_may_not_call():
    x = np.ones((1, 100000, 2, 16), np.float32)
    found = []

    def handler(number, frame):
        try:
            isomer.attention(x[:, :3], x[:, :3], x[:, :3])
        except ValueError as refused:
            found.append(str(refused))

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        while not found:
            isomer.attention(x, x, x, window=5000)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert "handler of a signal" in found[0]


def test_an_interrupted_prompt_leaves_the_state_as_it_was(tmp_path):
    (tmp_path / "small.toml").write_text("""
[model]
layers = "softmax*1"
width = 64
[task]
name = "induction"
length = 16
vocabulary = 8
[train]
steps = 1
batch = 2
""")
    isomer.train(tmp_path / "small.toml", out=tmp_path / "run", progress=False)
    code = f"""
import numpy as np
import isomer
model = isomer.load({str(tmp_path / "run")!r})
state = model.start()
state.prefill([[1, 2, 3]])
tokens = np.ones((1, 400000), np.int64)
print("ready", flush=True)
try:
    state.prefill(tokens)
except KeyboardInterrupt:
    print("interrupted", state.positions, flush=True)
want = model.logits([[1, 2, 3, 4]])[:, 3]
print(np.allclose(state.step([4]), want, atol=1e-5), flush=True)
try:
    model.logits(tokens)
except KeyboardInterrupt:
    print("interrupted", np.allclose(model.logits([[1, 2, 3, 4]])[:, 3], want), flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted [3]\n" and child.stdout.readline() == "True\n"
        time.sleep(1)
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted True\n" and time.monotonic() - began < 5
