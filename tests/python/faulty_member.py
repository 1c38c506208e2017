"""A client that does one thing wrong: faulty_member.py COORDINATOR STATE FAULT"""
import multiprocessing
import os
import sys
import time

import numpy as np

import grid_member
import terse


def in_fork(action):
    """What `action` raised in a process that was forked from this one."""
    ours, theirs = multiprocessing.Pipe()
    if os.fork() == 0:
        try:
            action()
            theirs.send("nothing")
        except terse.TerseError as error:
            theirs.send(f"{type(error).__name__}: {error}")
        finally:
            os._exit(0)
    return ours.recv()


def main():
    coordinator, state, fault = sys.argv[1:4]
    model = grid_member.make_model()
    if fault == "shapes":
        model["grid.bias"] = np.zeros(31, dtype=np.float32)
    if fault == "dtype":
        model["grid.bias"] = np.zeros(30)
    options = ["--trainer-seconds", "1"] if fault == "hang" else []
    fleet = terse.join(coordinator, state=state, run="grid", log_level="warn", options=options)
    for current in fleet.rounds(model, "sgd" if fault == "optimizer" else None):
        if fault == "nan":
            model["grid.weight"][3, 4] = np.nan
        if fault == "hang":
            time.sleep(4)
        if fault == "no_loss":
            current.commit(samples=1, metrics={"accuracy": 1.0})
        if fault == "fork":
            print("in a fork:", in_fork(lambda: current.commit(samples=1, metrics={"loss": 1.0})), flush=True)
            print("closed in a fork:", in_fork(fleet.close), flush=True)
        if fault != "no_commit":
            current.commit(samples=1, metrics={"loss": 1.0})
        if fault == "twice":
            current.commit(samples=1, metrics={"loss": 1.0})
        if fault in ("fork", "close"):
            break
    fleet.close()
    fleet.close()
    print("closed twice", flush=True)
    next(fleet.rounds(model))


main()
