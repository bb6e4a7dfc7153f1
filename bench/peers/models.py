"""What the peers of bench/models share: a pre-trained model that reads a prompt at once and says tokens one at a time.

    {"op": "model", "case": {"model": folder, "files": {...}, "weights", "threads", "room"}, "prompt": [...], "tokens": n, "repeat": n}
        -> {"load": s, "first": s, "prefill": [...], "decode": [...], "next": [...], "logits": [...], "peak_mib": n}
as worker_folders.h of isomer/bench says it. The clock of "load" starts when the peer's libraries are imported.
"""

import json
from time import perf_counter

from peers.worker import Skip, peak_mib

COMPARED = 64


class Server:
    """`make(case)` loads a model: read(tokens) gives the logits of the last one as an array, say(token) those after one more;
    a model without say() has no tokens to say."""

    def __init__(self, make, version):
        self.make, self.version, self.key, self.model = make, version, None, None

    def answer(self, request):
        if request["op"] == "about":
            return {"version": self.version()}
        if request["op"] != "model":
            raise Skip(f"unknown op {request['op']}")
        start, load = perf_counter(), 0
        key = json.dumps(request["case"], sort_keys=True)
        if key != self.key:
            self.key = self.model = None
            self.model, self.key = self.make(request["case"]), key
            load = perf_counter() - start
        return {"load": load} | self.times(request, start) | {"peak_mib": peak_mib()}

    def times(self, request, start):
        prefill, decode, first = [], [], None
        for _ in range(request["repeat"]):
            begin = perf_counter()
            logits = self.model.read(request["prompt"])
            following = [int(logits.argmax())]
            prefill.append(perf_counter() - begin)
            first = first or perf_counter() - start
            compared = [float(x) for x in logits[:COMPARED]]
            for _ in range(request["tokens"] if hasattr(self.model, "say") else 0):
                begin = perf_counter()
                following.append(int(self.model.say(following[-1]).argmax()))
                decode.append(perf_counter() - begin)
        return {"first": first, "prefill": prefill, "decode": decode, "next": following, "logits": compared}
