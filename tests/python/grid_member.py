"""A client whose changes have an exact sum: grid_member.py COORDINATOR STATE SEED [--kill-client-at ROUND]

Each round's change is a function of the seed and the round, made of multiples of 2^-10, so that additions are exact and the
run's last weights tell whether every change was counted once. Prints the rounds that it committed.
"""
import os
import signal
import sys

import numpy as np

import terse

SHAPES = {"grid.weight": (40, 30), "grid.bias": (30,)}


def make_model():
    generator = np.random.default_rng(7)
    return {name: (generator.integers(-2048, 2048, shape) / 1024).astype(np.float32) for name, shape in SHAPES.items()}


def change(seed, number):
    """What the client of this seed adds in this round."""
    generator = np.random.default_rng([seed, number])
    return {name: (generator.integers(-1024, 1024, shape) / 1024).astype(np.float32) for name, shape in SHAPES.items()}


def main():
    coordinator, state, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    kill_at = int(sys.argv[5]) if len(sys.argv) > 5 else None
    model, begins = make_model(), True
    with terse.join(coordinator, state=state, log_level="warn", options=["--reconnect-after", "0.05"]) as fleet:
        for current in fleet.rounds(model, samples=10):
            if begins:
                print("begins after", fleet.extra and fleet.extra.decode(), flush=True)
                begins = False
            if current.number == kill_at:
                os.kill(fleet.client_pid, signal.SIGKILL)
                kill_at = None
            for name, delta in change(seed, current.number).items():
                model[name] += delta
            assert current.commit(samples=10, metrics={"loss": 1 / current.number}, extra=str(current.number).encode())
            print("committed", current.number, flush=True)
    np.savez(os.path.join(state, "final.npz"), **model)
    print("finished:", fleet.finished, flush=True)


if __name__ == "__main__":
    main()
