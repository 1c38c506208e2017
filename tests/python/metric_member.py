"""A client that reports metrics by name: metric_member.py COORDINATOR STATE SEED [--kill PID --at ROUND]

With --kill it ends the process PID before it commits that round, and reports what commit said.
"""
import os
import signal
import sys

import numpy as np

import terse

SHAPES = {"w": (5,)}


def evaluation_of(seed, number):
    return {"accuracy": seed / 10, "worst class": number / 100}


def training_of(seed, number):
    return {"loss": 1.0, "grad_norm": float(seed * number)}


def main():
    coordinator, state, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    kill, at = (int(sys.argv[5]), int(sys.argv[7])) if len(sys.argv) > 4 else (None, None)
    model = {name: np.zeros(shape, dtype=np.float32) for name, shape in SHAPES.items()}
    with terse.join(coordinator, state=state, log_level="warn", options=["--reconnect-after", "0.05"]) as fleet:
        for current in fleet.rounds(model):
            current.evaluate(evaluation_of(seed, current.number), samples=seed)
            model["w"] += 1
            if current.number == at:
                os.kill(kill, signal.SIGKILL)
            current.commit(samples=10 * seed, metrics=training_of(seed, current.number))
            print("committed", current.number, flush=True)
    print("finished:", fleet.finished, flush=True)


if __name__ == "__main__":
    main()
