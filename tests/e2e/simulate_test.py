"""terse-simulate: the result depends on the run alone, and equals that of an ordinary fleet."""

import argparse
import json
import math
import os
import pathlib
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest

RUN = """
name = "small"
[model]
name = "perceptron"
inputs = 784
[data]
name = "mnist"
partition = "label_shards"
[train]
local_steps = 2
batch_size = 16
[train.optimizer]
learning_rate = 0.003
[codec]
name = "sbc"
density = 0.01
{codec}
[rounds]
count = {rounds}
clients = 8
selection = "random"
fraction = 0.4
evaluate_every = 100
{more}
"""
COHORT = 4  # 0.4 of 8, rounded up
# The model of grid-trainer, which is a trainer of the user's own: tests/testing/grid_trainer.h.
GRID = {"grid.weight": (32, 40), "grid.bias": (40,), "head.weight": (6, 39), "head.bias": (3,)}


def safetensors_of(shapes):
    """A file of such tensors, all of them zero."""
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(offset)


class Simulations(unittest.TestCase):
    binaries = None

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="terse-simulate-")
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)
        self.started = []
        self.addCleanup(self._end)

    def _end(self):
        for process in self.started:
            process.kill()
            process.communicate()

    def run_file(self, rounds=6, codec="", more=""):
        path = self.folder / f"{len(list(self.folder.iterdir()))}.toml"
        path.write_text(RUN.format(rounds=rounds, codec=codec, more=more))
        return path

    def run_file_of_all(self, rounds=6, codec=None):
        """Of a run in whose rounds all clients take part, as they do behind relays."""
        path = self.run_file(rounds)
        text = path.read_text().replace('selection = "random"\nfraction = 0.4\n', "")
        path.write_text(text.replace('name = "sbc"\ndensity = 0.01\n', codec) if codec else text)
        return path

    def start(self, run_file, state, *more):
        command = [self.binaries / "terse-simulate", run_file, "--state", self.folder / state, "--json", *more]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process

    def simulate(self, run_file, state, *more):
        process = self.start(run_file, state, *more)
        out, err = process.communicate(timeout=200)
        self.assertEqual(process.returncode, 0, err)
        return json.loads(out)

    def refused(self, run_file, state, *more, code=1):
        process = self.start(run_file, state, *more)
        out, err = process.communicate(timeout=200)
        self.assertEqual((process.returncode, out), (code, ""), err)
        return err

    def await_rounds(self, process, state, rounds):
        """Waits until the run has opened so many rounds."""
        database = self.folder / state / "coordinator/runs/small/run.sqlite"
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline and process.poll() is None:
            if database.exists():
                try:
                    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
                        if (connection.execute("SELECT MAX(id) FROM rounds").fetchone()[0] or 0) >= rounds:
                            return
                except sqlite3.OperationalError:
                    pass  # it is being made
            time.sleep(0.02)
        self.fail(f"no round {rounds}: {process.communicate() if process.poll() is not None else ''}")

    def test_processes_do_not_matter(self):
        run_file = self.run_file()
        one = self.simulate(run_file, "one")
        self.assertEqual((one["state"], one["rounds"], one["fleet"], one["cohort"]), ("finished", 6, 8, COHORT))
        self.assertEqual(len(one["client_processes_memory_kib"]), 1)
        for processes in (2, 3):
            more = self.simulate(run_file, f"more-{processes}", "--processes", processes)
            self.assertEqual(len(more["client_processes_memory_kib"]), processes)
            self.assertEqual(more["model_hash"], one["model_hash"])
            self.assertEqual(more["payload_bytes_up"], one["payload_bytes_up"])
        # The same command again shows the result, and trains nothing.
        again = self.simulate(run_file, "one")
        self.assertEqual((again["model_hash"], again["client_processes_memory_kib"]), (one["model_hash"], []))
        other = self.simulate(self.run_file(more='\n[downstream]\ndensity = 0.02\n'), "other", "--rounds", 5)
        self.assertNotEqual(other["model_hash"], one["model_hash"])

    def test_an_ordinary_fleet_has_the_same_model(self):
        for codec in ("", 'positions = "shared"', 'downstream = "stc"'):
            with self.subTest(codec=codec):
                run_file = self.run_file(codec=codec)
                name = f"sim-{len(codec)}"
                simulated = self.simulate(run_file, name, "--processes", 2)
                self.assertEqual(self.ordinary_hash(run_file, f"fleet-{len(codec)}"), simulated["model_hash"])

    def ordinary_hash(self, run_file, state, model=None, trainer=()):
        """Of an ordinary fleet of the run: a coordinator and eight processes of clients, which join in order."""
        folder = self.folder / state
        folder.mkdir()
        ready, admin = folder / "ready.json", f"unix:{folder}/admin.sock"
        log = open(folder / "log", "wb")
        self.addCleanup(log.close)

        def start(*command):
            process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
            self.started.append(process)
            return process

        start(self.binaries / "terse-coordinator", "--state", folder / "coordinator", "--listen", "127.0.0.1:0", "--admin", admin,
              "--ready-file", ready)
        while not ready.exists():
            time.sleep(0.02)
        address = json.loads(ready.read_text())["listen"]
        made = subprocess.run([self.binaries / "tersectl", "--admin", admin, "run", "create", "--run-file", run_file,
                               *(["--model", model] if model else [])], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        clients = []
        for number in range(8):
            clients.append(start(self.binaries / "terse-client", "--coordinator", address, "--name",
                                 f"client-{number:06}", "--state", folder / f"client-{number}", *trainer))
            while not (folder / f"client-{number}" / "MANIFEST").exists():
                self.assertIsNone(clients[-1].poll(), (folder / "log").read_text())
                time.sleep(0.02)
        for client in clients:
            self.assertEqual(client.wait(timeout=100), 0, (folder / "log").read_text())
        status = subprocess.run([self.binaries / "tersectl", "--admin", admin, "--json", "status"], check=True,
                                capture_output=True, text=True)
        return json.loads(status.stdout)["model_hash"]

    def grid_run(self):
        """The run file and the model's file of a run for grid-trainer, whose state counts a client's rounds."""
        run_file = self.run_file()
        run_file.write_text(run_file.read_text().replace('name = "perceptron"\ninputs = 784', 'name = "external"').replace(
            'name = "mnist"\npartition = "label_shards"', 'name = "external"\npartition = "iid"'))
        model = self.folder / "grid.safetensors"
        model.write_bytes(safetensors_of(GRID))
        return run_file, model

    def test_a_trainer_of_ones_own(self):
        run_file, model = self.grid_run()
        trainer = ("--trainer", self.binaries / "grid-trainer")
        ordinary = self.ordinary_hash(run_file, "fleet", model, trainer)
        for processes in (1, 3):
            simulated = self.simulate(run_file, f"own-{processes}", "--model", model, *trainer, "--processes", processes)
            self.assertEqual((simulated["rounds"], simulated["model_hash"]), (6, ordinary))

    def test_a_trainer_of_ones_own_that_is_wrong(self):
        run_file, model = self.grid_run()
        self.assertIn("give one with --trainer", self.refused(run_file, "a", "--model", model))
        words = self.refused(run_file, "b", "--model", model, "--trainer", "/nonexistent/trainer")
        self.assertIn("/nonexistent/trainer: not found", words)
        self.assertIn("terse-simulate: client-000000: the trainer closed the connection", words)
        self.assertIn("the trainer closed the connection",
                      self.refused(run_file, "c", "--model", model, "--trainer", "/bin/true"))

    def test_a_stop_lets_the_round_end(self):
        run_file = self.run_file(rounds=40)
        whole = self.simulate(run_file, "whole")
        stopped = self.start(run_file, "stopped", "--processes", 2)
        self.await_rounds(stopped, "stopped", 3)
        stopped.send_signal(signal.SIGINT)
        _, err = stopped.communicate(timeout=100)
        self.assertEqual(stopped.returncode, 130, err)
        self.assertIn("the same command goes on from", err)
        self.assertEqual(self.simulate(run_file, "stopped")["model_hash"], whole["model_hash"])

    def test_a_killed_process_of_clients_loses_nothing(self):
        run_file = self.run_file(rounds=40)
        killed = self.start(run_file, "killed", "--processes", 2)
        self.await_rounds(killed, "killed", 3)
        children = pathlib.Path(f"/proc/{killed.pid}/task/{killed.pid}/children").read_text().split()
        self.assertEqual(len(children), 2)
        os.kill(int(children[1]), signal.SIGKILL)
        _, err = killed.communicate(timeout=100)
        self.assertEqual(killed.returncode, 1)
        self.assertIn("the process of clients 4 to 7 was killed by signal 9", err)
        self.assertEqual(self.simulate(run_file, "killed")["rounds"], 40)
        events = subprocess.run([self.binaries / "tersectl", "doctor", "--state",
                                 self.folder / "killed/coordinator"], capture_output=True, text=True)
        self.assertEqual(events.returncode, 0, events.stdout + events.stderr)

    def test_relays_send_their_clients_mean(self):
        run_file = self.run_file_of_all(codec='name = "dense"\n')
        flat, tree = self.simulate(run_file, "flat"), self.simulate(run_file, "tree", "--relays", 2)
        self.assertEqual((flat["fleet"], flat["clients"], flat["relays"]), (8, 8, []))
        self.assertEqual((tree["fleet"], tree["clients"], tree["rounds"]), (8, 2, 6))
        self.assertEqual([relay["name"] for relay in tree["relays"]], ["relay-000", "relay-001"])
        # Means of means that are sent whole: the same training on the same parts of the data, rounded once more.
        self.assertAlmostEqual(tree["loss"], flat["loss"], places=4)
        self.assertEqual(sum(relay["payload_bytes_up"] for relay in tree["relays"]), flat["payload_bytes_up"])
        self.assertEqual(4 * tree["payload_bytes_up"], flat["payload_bytes_up"])

    def test_relays_that_forward_change_nothing(self):
        run_file = self.run_file_of_all()
        flat = self.simulate(run_file, "flat")
        tree = self.simulate(run_file, "tree", "--relays", 2, "--relay-mode", "forward")
        self.assertEqual(tree["model_hash"], flat["model_hash"])
        self.assertEqual(sum(relay["payload_bytes_up"] for relay in tree["relays"]), flat["payload_bytes_up"])
        # A bundle has its updates, and some bytes for each.
        self.assertGreater(tree["payload_bytes_up"], flat["payload_bytes_up"])
        self.assertLess(tree["payload_bytes_up"] - flat["payload_bytes_up"], 10 * 8 * 6)
        self.assertNotEqual(self.simulate(run_file, "mean", "--relays", 2)["model_hash"], flat["model_hash"])

    def test_processes_do_not_matter_behind_relays(self):
        run_file = self.run_file_of_all()
        one = self.simulate(run_file, "one", "--relays", 4)
        two = self.simulate(run_file, "two", "--relays", 4, "--processes", 3)
        self.assertEqual(one["model_hash"], two["model_hash"])
        self.assertEqual([relay["payload_bytes_up"] for relay in one["relays"]],
                         [relay["payload_bytes_up"] for relay in two["relays"]])
        self.assertGreater(min(relay["memory_kib"] for relay in one["relays"]), 0)

    def test_a_stop_lets_the_round_end_behind_relays(self):
        run_file = self.run_file_of_all(rounds=40)
        whole = self.simulate(run_file, "whole", "--relays", 2)
        stopped = self.start(run_file, "stopped", "--relays", 2)
        self.await_rounds(stopped, "stopped", 3)
        stopped.send_signal(signal.SIGINT)
        _, err = stopped.communicate(timeout=100)
        self.assertEqual(stopped.returncode, 130, err)
        self.assertEqual(self.simulate(run_file, "stopped", "--relays", 2)["model_hash"], whole["model_hash"])

    def test_a_killed_relay_loses_nothing(self):
        run_file = self.run_file_of_all(rounds=40)
        killed = self.start(run_file, "killed", "--relays", 2)
        self.await_rounds(killed, "killed", 3)
        os.kill(self.relay_of(killed, "relay-001"), signal.SIGKILL)
        _, err = killed.communicate(timeout=100)
        self.assertEqual(killed.returncode, 1)
        self.assertRegex(err, "relay-001 ended|the process of clients 0 to 7|client-00000[4-7]: ")
        self.assertEqual(self.simulate(run_file, "killed", "--relays", 2)["rounds"], 40)

    def relay_of(self, simulation, name):
        """The process of one of a simulation's relays."""
        for child in pathlib.Path(f"/proc/{simulation.pid}/task/{simulation.pid}/children").read_text().split():
            if f"\0{name}\0" in pathlib.Path(f"/proc/{child}/cmdline").read_text():
                return int(child)
        return self.fail(f"no process of {name}")

    def test_relays_that_are_refused(self):
        run_file = self.run_file_of_all()
        self.assertIn("8 clients cannot be shared out evenly to 3 relays", self.refused(run_file, "a", "--relays", 3))
        self.assertIn("leave out --cohort or --relays", self.refused(run_file, "a", "--relays", 2, "--cohort", 4))
        self.simulate(run_file, "a", "--relays", 2, "--rounds", 1)
        self.assertIn("with other settings", self.refused(run_file, "a", "--relays", 4, "--rounds", 1))

    def test_what_is_refused(self):
        run_file = self.run_file()
        self.assertIn("a cohort of 9 is more than the fleet's 8 clients", self.refused(run_file, "a", "--cohort", 9))
        self.assertIn("rounds.over_selection lets the fastest clients make a round",
                      self.refused(self.run_file(more="over_selection = 0.5"), "a"))
        self.assertIn("no_such.toml", self.refused(self.folder / "no_such.toml", "a", code=2))
        self.simulate(run_file, "a", "--rounds", 1)
        self.assertIn("with other settings", self.refused(run_file, "a", "--rounds", 2))
        other = self.folder / "other.toml"
        other.write_text(run_file.read_text().replace('"small"', '"other"'))
        self.assertIn("has run 'small', not 'other'", self.refused(other, "a"))
        missing = self.run_file().read_text().replace('"mnist"', '"cifar10"').replace("784", "3072")
        other.write_text(missing)
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertIn("data_batch_1.bin", self.refused(other, "b", "--data", empty))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=lambda path: pathlib.Path(path).resolve())
    arguments, rest = parser.parse_known_args()
    Simulations.binaries = arguments.bin
    unittest.main(argv=[__file__, *rest], verbosity=2)
