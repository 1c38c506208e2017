"""Python programs as trainers of a client that is there: what the conformance program says, and whole runs.

usage: attach_test.py BIN     (run by ctest)
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy
import torch

import terse
from fleet import Fleet, HERE, end, environment, wait_until

BIN = pathlib.Path(sys.argv.pop(1))
COMMAND = f"{sys.executable} {HERE / 'attached_member.py'}"

BROKEN = {
    # The program, and how the conformance program calls its fault.
    "import os; os.read(3, 16)": "FAILED  answers open and takes the memory: the trainer exited with code 0",
    "import socket; socket.socket(fileno=3).sendall(b'hello, this is no frame')":
        "FAILED  answers open and takes the memory: the trainer answered with bytes that are no frame",
}


def check(command):
    done = subprocess.run([BIN / "terse-trainer-check", command, "--seconds", "20"], capture_output=True, text=True,
                          env=environment(BIN), check=False)
    return done.returncode, done.stdout


class Attach(unittest.TestCase):
    def test_the_package_speaks_the_protocol(self):
        code, said = check(COMMAND)
        self.assertEqual(code, 0, said)
        for line in ("restores its state in another process", "goes on bit for bit", "may be opened again",
                     "ends when its client is gone"):
            self.assertIn(f"ok      {line}", said)
        self.assertIn("note    stops when asked", said)

    def test_broken_trainers_are_found_out(self):
        for program, said in BROKEN.items():
            code, output = check(f'{sys.executable} -c "{program}"')
            self.assertEqual(code, 1, output)
            self.assertIn(said, output)

    def run_with(self, start):
        """A run of two clients, each made by `start(fleet, name)`, which returns its processes."""
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        with Fleet(BIN) as fleet:
            fleet.start_coordinator()
            terse.Run("attached", model=model, codec=terse.codecs.sbc(density=0.1), rounds=10, clients=2,
                      local_steps=3).create(str(fleet.folder / "run"), admin=fleet.admin)
            processes = [process for name in ("a", "b") for process in start(fleet, name)]
            for process in processes:
                self.assertEqual(end(process), 0, fleet.log("a") + fleet.log("b"))
            self.assertEqual(fleet.version(), 10)

    def client(self, fleet, name, *trainer):
        return fleet.start(name, BIN / "terse-client", "--coordinator", fleet.address, "--name", name, "--state",
                           fleet.folder / name, *trainer)

    def test_a_client_that_starts_its_trainer(self):
        self.run_with(lambda fleet, name: [self.client(fleet, name, "--trainer", COMMAND)])

    def test_a_client_that_waits_for_its_trainer(self):
        def start(fleet, name):
            path = fleet.folder / f"{name}.sock"
            client = self.client(fleet, name, "--trainer-socket", path)
            wait_until(path.exists, "the client listens")
            return [client, fleet.python(name, "attached_member.py", path)]

        self.run_with(start)

    def client_says(self, program, *options):
        with tempfile.TemporaryDirectory() as state:
            done = subprocess.run([program, "--coordinator", "127.0.0.1:1", "--name", "a", "--state", state, *options],
                                  capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_options_that_exclude_each_other(self):
        for options, said in ((("--data", "/tmp"), "--data: is for the models of Terse's own"),
                              (("--sandbox",), "--sandbox: is for the models of Terse's own"),
                              (("--trainer-socket", "/tmp/x"), "--trainer excludes --trainer-socket")):
            code, output = self.client_says(BIN / "terse-client", "--trainer", "true", *options)
            self.assertEqual(code, 2, output)
            self.assertIn(said, output)

    def test_a_client_alone_trains_only_with_a_trainer(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(BIN / "terse-client", folder)
            code, output = self.client_says(f"{folder}/terse-client")
        self.assertEqual(code, 1, output)
        self.assertIn("terse-client-torch: No such file or directory. It trains Terse's own models", output)

    def test_a_command_that_cannot_be_started(self):
        with Fleet(BIN) as fleet:
            fleet.start_coordinator()
            terse.Run("none", model={"w": numpy.zeros(3, dtype=numpy.float32)}, codec=terse.codecs.sbc(), rounds=1,
                      clients=1).create(str(fleet.folder / "run"), admin=fleet.admin)
            self.assertEqual(end(self.client(fleet, "a", "--trainer", "/nonexistent/trainer")), 1)
            self.assertIn("the command of --trainer cannot be started", fleet.log("a"))

    def test_without_a_client(self):
        with self.assertRaisesRegex(terse.ClientError, "no client started this process: TERSE_TRAINER_FD is not set"):
            terse.attach()
        with self.assertRaisesRegex(terse.ClientError, "no client waits for a trainer at /nonexistent"):
            terse.attach("/nonexistent")


if __name__ == "__main__":
    unittest.main()
