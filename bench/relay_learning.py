#!/usr/bin/env python3
"""What relays cost in learning: LeNet5 on MNIST, 32 clients, flat and behind 4 relays, with equal and with skewed data.

usage: relay_learning.py DATA OUT [--only iid|two-classes] [--bin DIR] [--clients N] [--relays N] [--rounds N] [--seeds N]
                         [--processes N] [--json]

DATA is a folder with MNIST's files, OUT a new folder for the simulations' states. Each fleet is simulated by terse-simulate with
as many seeds: the clients' data are independent and identically distributed (iid), or each client has two classes (two-classes).
Prints for each fleet the accuracy at the end and the mean of the last five evaluations, of which there is one every ten
rounds, both as the mean over the seeds with the smallest and the largest; and the bytes on the wire of a round: between
clients and relays, and between them and the coordinator. The first model's download is not counted.
"""
import argparse
import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys

RUN = """
name = "{name}"
seed = {seed}
[model]
name = "lenet5_caffe"
[data]
name = "mnist"
{data}
[train]
local_steps = 10
batch_size = 32
[train.optimizer]
name = "adam"
learning_rate = 0.001
[codec]
name = "sbc"
density = 0.01
downstream = "stc"
[downstream]
density = 0.01
[rounds]
count = {rounds}
clients = {clients}
evaluate_every = 10
"""
DATA = {"iid": 'partition = "iid"', "two-classes": 'partition = "label_shards"\nlabels_each = 2'}


def simulate(options, name, data, relays, seed):
    """What terse-simulate says of one fleet."""
    folder = options.out / f"{name}-{seed}"
    folder.mkdir(parents=True)
    run_file = folder / "run.toml"
    run_file.write_text(RUN.format(name=name, seed=seed, data=data, rounds=options.rounds, clients=options.clients))
    command = [options.bin / "terse-simulate", run_file, "--data", options.data, "--state", folder / "state",
               "--processes", str(options.processes), "--json"]
    command += ["--relays", str(relays)] if relays else []
    report = json.loads(subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE).stdout)
    report["evaluations"] = evaluations(folder / "state" / "coordinator" / "runs" / name / "run.sqlite")
    return report


def evaluations(database):
    """The accuracies of the rounds that were evaluated (storage/SCHEMA.md)."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        return [accuracy for accuracy, in connection.execute(
            "SELECT accuracy FROM rounds WHERE accuracy IS NOT NULL ORDER BY id")]


def first_model(report, downloads):
    """Bytes of the first model, which a relay downloads and a client makes."""
    return 4 * report["parameters"] * downloads


def figures(options, reports, relays):
    """The means over the seeds, bytes of one round."""
    def mean(value):
        return statistics.mean(value(report) for report in reports) / options.rounds
    below = (lambda report, key: sum(relay[key] for relay in report["relays"])) if relays else (lambda report, key: report[key])
    return {
        "accuracy": [report["accuracy"] for report in reports],
        "last_five": [statistics.mean(report["evaluations"][-5:]) for report in reports],
        "evaluations": [report["evaluations"] for report in reports],
        "clients_up": mean(lambda report: below(report, "wire_bytes_up")),
        "clients_down": mean(lambda report: below(report, "wire_bytes_down")),
        "coordinator_up": mean(lambda report: report["wire_bytes_up"]),
        "coordinator_down": mean(lambda report: report["wire_bytes_down"] - first_model(report, relays)),
    }


def spread(values):
    return f"{statistics.mean(values):.4f} ({min(values):.4f} to {max(values):.4f})"


def print_table(options, rows):
    print(f"LeNet5 on MNIST, {options.clients} clients, {options.rounds} rounds of 10 local steps, SBC with 1% of the weights; "
          f"{options.seeds} seeds")
    print(f"{'data':<12} {'fleet':<9} {'accuracy':<25} {'mean of the last five':<25} {'clients up':>11} {'down':>9} {'coordinator in':>15} {'out':>9}  bytes a round")
    for (data, fleet), row in rows.items():
        print(f"{data:<12} {fleet:<9} {spread(row['accuracy']):<25} {spread(row['last_five']):<25} {row['clients_up']:>11,.0f} {row['clients_down']:>9,.0f} "
              f"{row['coordinator_up']:>15,.0f} {row['coordinator_down']:>9,.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", choices=DATA, help="the clients' data; without it, one after the other")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--relays", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = {}
    for data in [options.only] if options.only else DATA:
        for fleet, relays in (("flat", 0), (f"{options.relays} relays", options.relays)):
            name = f"{data}-{fleet}".replace(" ", "-")
            reports = [simulate(options, name, DATA[data], relays, seed) for seed in range(1, options.seeds + 1)]
            rows[data, fleet] = figures(options, reports, relays)
            print(f"relay_learning.py: {name}: accuracy {spread(rows[data, fleet]['accuracy'])}", file=sys.stderr)
    if options.json:
        print(json.dumps({f"{data}, {fleet}": row for (data, fleet), row in rows.items()}, indent=2))
    else:
        print_table(options, rows)


if __name__ == "__main__":
    main()
