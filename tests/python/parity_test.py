"""The same model, data and settings through the trainer in C++ and through Python: the same bytes and the same accuracy.

usage: parity_test.py BIN [ROUNDS [STEPS]]     (run by ctest where TERSE_DATA names a folder with mnist)
"""
import json
import os
import pathlib
import statistics
import sys
import unittest

from fleet import Fleet, end, wait_until

BIN = pathlib.Path(sys.argv.pop(1))
ROUNDS = int(sys.argv.pop(1)) if len(sys.argv) > 1 else 10
STEPS = int(sys.argv.pop(1)) if len(sys.argv) > 1 else 50
DATA = os.environ.get("TERSE_DATA")
CLIENTS = 4

RUN_FILE = f"""
name = 'lenet5'
[model]
name = 'lenet5_caffe'
[data]
name = 'mnist'
[train]
local_steps = {STEPS}
batch_size = 128
optimizer = {{ name = 'adam', learning_rate = 0.001 }}
[codec]
name = 'sbc'
density = 0.01
[rounds]
count = {ROUNDS}
clients = {CLIENTS}
quorum = {CLIENTS}
evaluate_every = 1000
"""


def training_seconds(log):
    """By round, what a client in Python says that its loop took."""
    rows = [line.split() for line in log.splitlines() if line.startswith("trained ")]
    return {int(row[1]): float(row[2]) for row in rows}


def overhead_ms(rounds, training):
    """The median of what a round takes beyond the longest training of a client: of its loop alone, where it is in Python."""
    def longest(one):
        return max(each[one["id"]] for each in training) if training else one["train_us_max"] * 1e-6

    # The first round begins with downloads.
    return statistics.median((one["committed_us"] - one["opened_us"]) * 1e-3 - longest(one) * 1e3 for one in rounds[1:])


def run(start_client):
    """Trains the run file's run with such clients. Returns its rounds, and the median overhead of one in ms."""
    data = pathlib.Path(DATA) / "mnist"
    with Fleet(BIN) as fleet:
        fleet.start_coordinator("--data", data)
        (fleet.folder / "run.toml").write_text(RUN_FILE)
        fleet.ctl("run", "create", "--run-file", fleet.folder / "run.toml")
        clients = {f"client-{k}": start_client(fleet, data, k) for k in range(CLIENTS)}
        for name, client in clients.items():
            if end(client, 1500) != 0:
                raise AssertionError(fleet.log(name))
        read = lambda: json.loads(fleet.ctl("rounds", "--json"))
        wait_until(lambda: read()[-1]["accuracy"] is not None, "the last evaluation")
        training = [seconds for name in clients if (seconds := training_seconds(fleet.log(name)))]
        return read(), overhead_ms(read(), training)


def in_cpp(fleet, data, k):
    return fleet.start(f"client-{k}", BIN / "terse-client", "--coordinator", fleet.address, "--name", f"client-{k}",
                       "--state", fleet.folder / f"client-{k}", "--data", data)


def in_python(fleet, data, k):
    return fleet.python(f"client-{k}", "lenet_member.py", fleet.address, fleet.folder / f"client-{k}", data, k, CLIENTS)


@unittest.skipUnless(DATA, "TERSE_DATA names no folder with mnist")
class Parity(unittest.TestCase):
    def test_same_bytes_and_accuracy(self):
        results = {"C++": run(in_cpp), "Python": run(in_python)}
        rounds = {name: result[0] for name, result in results.items()}
        bytes_up = {name: statistics.mean(one["payload_bytes_up"] for one in each) for name, each in rounds.items()}
        accuracy = {name: each[-1]["accuracy"] for name, each in rounds.items()}
        for name in rounds:
            print(f"{name:7} {ROUNDS} rounds of {STEPS} steps, {CLIENTS} clients: {bytes_up[name] / CLIENTS:.1f} bytes up a "
                  f"client and round, accuracy {accuracy[name]:.4f}, overhead of a round {results[name][1]:.1f} ms (median)", flush=True)
        self.assertEqual({len(each) for each in rounds.values()}, {ROUNDS})
        self.assertLess(abs(bytes_up["Python"] / bytes_up["C++"] - 1), 0.001 if ROUNDS * STEPS >= 2000 else 0.005)
        self.assertLess(abs(accuracy["Python"] - accuracy["C++"]), 0.002 if ROUNDS * STEPS >= 2000 else 0.01)


if __name__ == "__main__":
    unittest.main()
