"""A client that reports metrics by name: metric_member.py COORDINATOR STATE SEED [--kill PID --at ROUND] [--also NAME]

With --kill it ends the process PID before it commits that round, and reports what commit said. With --also the seed is one
more metric of training.
"""
import argparse
import os
import signal

import numpy as np

import terse

SHAPES = {"w": (5,)}


def evaluation_of(seed, number):
    return {"accuracy": seed / 10, "worst class": number / 100}


def training_of(seed, number):
    return {"loss": 1.0, "grad_norm": float(seed * number)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("coordinator")
    parser.add_argument("state")
    parser.add_argument("seed", type=int)
    parser.add_argument("--kill", type=int)
    parser.add_argument("--at", type=int)
    parser.add_argument("--also")
    options = parser.parse_args()
    seed, also = options.seed, {options.also: options.seed} if options.also else {}
    model = {name: np.zeros(shape, dtype=np.float32) for name, shape in SHAPES.items()}
    with terse.join(options.coordinator, state=options.state, log_level="warn",
                    options=["--reconnect-after", "0.05"]) as fleet:
        for current in fleet.rounds(model):
            current.evaluate(evaluation_of(seed, current.number), samples=seed)
            model["w"] += 1
            if current.number == options.at:
                os.kill(options.kill, signal.SIGKILL)
            current.commit(samples=10 * seed, metrics={**training_of(seed, current.number), **also})
            print("committed", current.number, flush=True)
    print("finished:", fleet.finished, flush=True)


if __name__ == "__main__":
    main()
