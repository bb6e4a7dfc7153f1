#!/usr/bin/env python3
"""The event files of `isomer train --tensorboard` say what metrics.jsonl says, read by a decoder that shares nothing with the
program, and by TensorBoard's own if it is installed.   usage: tensorboard_test.py ISOMER"""
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from program import RECIPE, command, expect, isomer, metrics


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(crc):
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        head, size = data[:8], struct.unpack("<Q", data[:8])[0]
        expect(struct.unpack("<I", data[8:12])[0] == masked(crc32c(head)), "the checksum of a length is wrong")
        content = data[12 : 12 + size]
        expect(len(content) == size, "a record is cut off")
        expect(struct.unpack("<I", data[12 + size : 16 + size])[0] == masked(crc32c(content)), "the checksum of a record is wrong")
        yield content
        data = data[16 + size :]


def varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return number, at


def fields(message):
    """(number, value) of a protobuf message."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(message, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", message, at)[0], at + 8
        elif kind == 2:
            size, at = varint(message, at)
            value, at = message[at : at + size], at + size
        else:
            expect(kind == 5, f"unexpected wire type {kind}")
            value, at = struct.unpack_from("<f", message, at)[0], at + 4
        yield key >> 3, value


def scalars(folder):
    """{(tag, step): value}, each once, and the wall times in the order of the file."""
    files = list(folder.glob("*tfevents*"))
    expect(len(files) == 1, f"expected one event file, got {files}")
    events = [list(fields(record)) for record in records(files[0].read_bytes())]
    expect((3, b"brain.Event:2") in events[0], "the first event is the version")
    expect((7, b"\x08\x01") in events[1], "the second event starts a session")
    found, times = {}, []
    for event in events[2:]:
        step = dict(event)[2]
        times.append(dict(event)[1])
        for number, summary in event:
            for _, value in fields(summary) if number == 5 else []:
                parts = dict(fields(value))
                key = (parts[1].decode(), step)
                expect(key not in found, f"{key} is there twice")
                found[key] = parts[2]
    return found, times


def wanted(run):
    want = {}
    for line in metrics(run):
        step = line["step"]
        for key in ("loss", "lr", "grad_norm", "tokens_per_s"):
            if key in line:
                want["train/" + key, step] = line[key]
        if "eval" in line:
            want["eval/loss", step] = line["eval"]["loss"]
            want["eval/" + line["eval"]["metric"].replace(" ", "_"), step] = line["eval"]["value"]
    return {key: struct.unpack("<f", struct.pack("<f", value))[0] for key, value in want.items()}


def check(run):
    found, times = scalars(run / "tensorboard")
    expect(found == wanted(run), "the event file and metrics.jsonl differ")
    expect(times == sorted(times) and abs(times[-1] - time.time()) < 3600, "wall times run backwards, or are of another day")
    return found


def check_with_tensorboard(run, found):
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        return "not installed"
    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    read = {(tag, e.step): e.value for tag in events.Tags()["scalars"] for e in events.Scalars(tag)}
    expect(read == found, "TensorBoard reads something else")
    return "agrees"


def main():
    with tempfile.TemporaryDirectory() as top:
        top = Path(top)
        recipe, whole, killed = top / "recipe.toml", top / "whole", top / "killed"
        recipe.write_text(RECIPE)
        ended = isomer("train", recipe, "--out", whole, "--tensorboard", "--threads", 1)
        expect(ended.returncode == 0, ended.stderr)
        found = check(whole)
        expect(len(found) == 60 * 4 + 3 * 2, f"expected 60 steps and 3 evaluations, got {len(found)} numbers")

        # Killed between two checkpoints: what came after the last one is there once all the same.
        process = subprocess.Popen(command("train", recipe, "--out", killed, "--tensorboard", "--threads", 1, "--set",
                                           "train.steps=4000", "--set", "train.save_every=100", "--set", "train.eval_every=1000"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (killed / "checkpoints" / "latest").exists():
            time.sleep(0.01)
        time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = set((killed / "tensorboard").iterdir())
        process = subprocess.Popen(command("train", killed / "recipe.toml", "--out", killed, "--resume", "--threads", 1),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while set((killed / "tensorboard").iterdir()) <= before:
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.wait()
        found = check(killed)
        print(f"tensorboard_test: {len(found)} numbers after a kill and a stop; TensorBoard: {check_with_tensorboard(killed, found)}")


if __name__ == "__main__":
    main()
