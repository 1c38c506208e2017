#!/usr/bin/env python3
"""Seconds a round of terse.simulate: LeNet5 on MNIST, 1,000 clients, cohorts of 20, ten local steps of 32 examples.

usage: simulate_lenet5.py DATA STATE [--backend local|ray] [--processes N] [--rounds N] [--steps N]
       simulate_lenet5.py --turn

DATA is a folder with MNIST's files; STATE a new folder. Prints a line: the median round, what Ray costs before the first one,
the memory of terse-simulate, and the model's hash. --turn prints what it costs to hand a client's turn to a worker of Ray: the
median of 200 that train nothing. In an environment with Ray (tests/frameworks.sh ray) for --backend ray and --turn.
"""
import argparse
import pathlib
import statistics
import sys
import time

import numpy as np
import torch

import terse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "python"))
import lenet  # noqa: E402  # pylint: disable=wrong-import-position

CLIENTS, COHORT, BATCH = 1000, 20, 32


def make_client(data):
    """The function of a client, which trains on its thousandth of the training set."""
    loaded = []  # in each process once

    def client(index):
        if not loaded:
            loaded.extend(lenet.examples(data, "train"))
        images, labels = loaded
        x, y = lenet.to_torch(images[index::CLIENTS], labels[index::CLIENTS])

        def train(model, work):
            torch.set_num_threads(1)
            draw = torch.Generator().manual_seed(1000003 * work.client + work.round)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
            total = 0.0
            for _ in range(work.local_steps):
                rows = torch.randint(len(y), (BATCH,), generator=draw)
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
                loss.backward()
                optimizer.step()
                total += loss.item()
            return {"loss": total / work.local_steps, "samples": BATCH * work.local_steps}
        return train
    return client


def idle_client(index):
    return lambda model, work: {"loss": 0.0}


def measure_turn():
    from terse._ray import RayWorkers
    from terse._turns import Turns
    import ray
    ray.cloudpickle.register_pickle_by_value(lenet)
    model = lenet.LeNet5()
    weights = np.zeros(sum(each.numel() for each in model.parameters()), dtype=np.float32)
    workers = RayWorkers(1, idle_client, model, {})
    for name, turns in (("in this process", Turns(idle_client, model)), ("in a worker of Ray", workers)):
        seconds = []
        for turn in range(200):
            begun = time.monotonic()
            turns.train(terse.Work(0, 1, turn // 20, 1, 0), b"", weights, weights.copy(), True)
            seconds.append(time.monotonic() - begun)
        print(f"a turn {name}: {1e3 * statistics.median(seconds):.2f} ms")
    workers.close()


def main():
    if sys.argv[1:] == ["--turn"]:
        return measure_turn()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data")
    parser.add_argument("state")
    parser.add_argument("--backend", choices=("local", "ray"), default="local")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    if options.backend == "ray":
        import ray
        ray.cloudpickle.register_pickle_by_value(lenet)  # workers do not have this folder in their path
    torch.manual_seed(1)
    model = lenet.LeNet5()
    run = terse.Run("lenet5", model=model, codec=terse.codecs.sbc(density=0.01), rounds=options.rounds, clients=CLIENTS,
                    local_steps=options.steps)
    begun = time.monotonic()
    simulation = terse.simulate(make_client(options.data), run=run, model=model, state=options.state, clients=CLIENTS, cohort=COHORT,
                                processes=options.processes, backend=options.backend)
    whole = time.monotonic() - begun
    report = simulation.report
    rounds = simulation.run.rounds()
    training = float((rounds["settled_us"] - rounds["opened_us"]).sum()) * 1e-6
    print(f"{options.backend}, {options.processes} at a time: {report['round_seconds_p50']:.2f} s a round (median), "
          f"{report['join_seconds']:.1f} s to join, {whole - training - report['join_seconds']:.1f} s to start and end, "
          f"{report['peak_memory_kib'] / 1024:.0f} MiB of terse-simulate, model {report['model_hash'][:8]}")


if __name__ == "__main__":
    main()
