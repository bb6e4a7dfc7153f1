"""Isomer: attention and its relatives on a CPU, each mechanism written once, as a law on a state.

    import isomer
    r = isomer.delta(q, k, v, beta=beta, log_decay=g)      # q, k, v: [B, T, H, D], NumPy or anything with DLPack
    r.o, r.final_state

The laws are attention, scalar_decay, channel_decay, delta and scan; help(isomer.delta) shows the equation and the shapes of one.
isomer.apply(law, {name: array}, {option: value}) is the program's `apply`: with grad_o among the arrays it gives gradients, too.

    run = isomer.train("recipes/mqar-gla.toml")            # a recipe becomes a run
    model = run.load()                                     # or isomer.load("runs/text"): logits, generate, states
    isomer.dsf("gla", x)                                   # any mixer as a dynamical system, with its attention matrix
    isomer.list(), isomer.check("delta"), isomer.bench("delta"), isomer.study("inline")
    isomer.plot.curves(run), isomer.plot.attention("gla", x)
"""
from isomer import _engine, plot
from isomer._arrays import set_threads, threads
from isomer.engine import Run, bench, check, claims, convert, list, program, runs, show, study, train
from isomer._laws import apply, attention, channel_decay, delta, laws, scalar_decay, scan
from isomer.models import Model, State, load
from isomer.systems import System, Systems, dsf

__version__ = _engine.version

__all__ = ["Model", "Run", "State", "System", "Systems", "apply", "attention", "bench", "channel_decay", "check", "claims", "convert", "delta", "dsf", "laws",
           "list", "load", "plot", "program", "runs", "scalar_decay", "scan", "set_threads", "show", "study", "threads", "train"]
