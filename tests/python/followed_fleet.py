"""A coordinator with runs of exact deltas and its clients, and `tersectl follow` beside them: for the tests of each place
that it hands runs to."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile

from fleet import wait_until

RUN = """
name = "{name}"
[train]
local_steps = 3
optimizer.learning_rate = 1.0
[codec]
name = "sbc"
density = 0.02
[rounds]
count = {rounds}
clients = 2
"""


class FollowedFleet:
    """One coordinator, without LibTorch, and what follows it, in a temporary folder."""

    def __init__(self, binaries):
        self.binaries = pathlib.Path(binaries)
        self._folder = tempfile.TemporaryDirectory(prefix="terse-follow-")
        self.folder = pathlib.Path(self._folder.name)
        self.admin, self._listen = f"unix:{self.folder}/admin.sock", "127.0.0.1:0"
        self._processes, self._coordinator, self._starts = [], None, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.kill()
            process.wait()
        self._folder.cleanup()

    def start(self, name, *command, environment=None):
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, cwd=self.folder,
                                       env={**os.environ, **(environment or {})})
        self._processes.append(process)
        return process

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start_coordinator(self, *more):
        self._starts += 1
        ready = self.folder / f"ready-{self._starts}"
        self._coordinator = self.start("coordinator", self.binaries / "grid-coordinator", "--state", self.folder / "state",
                                       "--listen", self._listen, "--admin", self.admin, "--ready-file", ready, *more)
        wait_until(ready.exists, "the coordinator serves")
        self._listen = json.loads(ready.read_text())["listen"]

    def end_coordinator(self, how=signal.SIGKILL):
        self._coordinator.send_signal(how)
        self._coordinator.wait(60)

    def create(self, name, rounds=1000000):
        path = self.folder / f"{name}.toml"
        path.write_text(RUN.format(name=name, rounds=rounds))
        self.ctl("run", "create", "--run-file", path)

    def clients(self, run, count=2):
        return [self.start(f"{run}-{index}", self.binaries / "grid-client", "--coordinator", self._listen, "--run", run,
                           "--name", f"{run}-{index}", "--state", self.folder / f"client-{run}-{index}",
                           "--reconnect-after", "0.1") for index in range(count)]

    def follow(self, *options, environment=None, name="follow"):
        return self.start(name, self.binaries / "tersectl", "--admin", self.admin, "follow", *options,
                          environment=environment)

    def ctl(self, *arguments):
        done = subprocess.run([self.binaries / "tersectl", "--admin", self.admin, *map(str, arguments)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"tersectl {arguments} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def status(self, run):
        return json.loads(self.ctl("--run", run, "status", "--json"))

    def rounds(self, run):
        """The committed ones."""
        return [one for one in json.loads(self.ctl("--run", run, "rounds", "--json")) if one["state"] == "committed"]

    def wait_for_version(self, run, version):
        wait_until(lambda: self.status(run)["version"] >= version, f"version {version} of {run}")
