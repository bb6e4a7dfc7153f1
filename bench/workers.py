"""The driver's side of the protocol: one process per peer, restarted when it ends, never a reason to stop the run.

Threads of a pool may spin long after their work is done, so a worker is stopped (SIGSTOP) whenever it is not asked.
Each worker is a process group of the driver's session: if the driver dies, the kernel ends the stopped group.
"""

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent
TIMEOUT = 300


class Worker:
    def __init__(self, name, environment, timeout=TIMEOUT):
        self.name, self.environment, self.process = name, os.environ | environment, None
        self.timeout = timeout
        self.log = tempfile.TemporaryFile("w+")

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"peers.{self.name}"], cwd=FOLDER, env=self.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, process_group=0)

    def ask(self, **request):
        """The answer, or {"skip": reason} for whatever went wrong."""
        if self.process is None:
            self.start()
        self.signal(signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], self.timeout)
            line = self.process.stdout.readline() if ready else None
        except BrokenPipeError:
            line = b""
        if line:
            self.signal(signal.SIGSTOP)
            return json.loads(line)
        self.close()
        return {"skip": f"no answer within {self.timeout} s" if line is None else self.last_words()}

    def last_words(self):
        self.log.seek(0)
        lines = self.log.read().strip().splitlines()
        return lines[-1][:200] if lines else "the worker ended"

    def signal(self, number):
        # The process is not waited for before close(), so its group number cannot have passed to another.
        os.killpg(self.process.pid, number)

    def close(self):
        if self.process is not None:
            self.signal(signal.SIGKILL)
            self.process.wait()
            with contextlib.suppress(BrokenPipeError):  # what it never read is still in the buffer
                self.process.stdin.close()
            self.process.stdout.close()
            self.process = None
