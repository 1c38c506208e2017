"""A coordinator and members of a fleet, as processes of a test."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent


def environment(binaries):
    package = pathlib.Path(binaries).resolve().parent / "python"
    return {**os.environ, "TERSE_BIN": str(binaries), "PYTHONPATH": f"{package}:{HERE}"}


class Fleet:
    """One coordinator and the members of its runs, in one temporary folder. `run`: needed where there are several."""

    def __init__(self, binaries, admin=None, coordinator="terse-coordinator"):
        """admin: the address of the admin service, in place of a Unix socket in the folder. coordinator: the program."""
        self.binaries, self._program = pathlib.Path(binaries).resolve(), coordinator
        self._folder = tempfile.TemporaryDirectory(prefix="terse-python-")
        self.folder = pathlib.Path(self._folder.name)
        self.admin = admin or f"unix:{self.folder}/admin.sock"
        self._coordinator, self._listen, self._starts, self._processes = None, "127.0.0.1:0", 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.kill()
            process.wait()
        self._folder.cleanup()

    @property
    def address(self):
        return self._listen

    def start(self, name, *command, variables=None):
        """variables: of the environment, besides those of this process."""
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, cwd=self.folder,
                                       env={**environment(self.binaries), **(variables or {})})
        self._processes.append(process)
        return process

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start_coordinator(self, *more, variables=None):
        self._starts += 1
        ready = self.folder / f"ready-{self._starts}"
        self._coordinator = self.start("coordinator", self.binaries / self._program, "--state", self.folder / "state",
                                       "--listen", self._listen, "--admin", self.admin, "--ready-file", ready, *more,
                                       variables=variables)
        wait_until(ready.exists, "the coordinator serves")
        served = json.loads(ready.read_text())
        self._listen, self.admin = served["listen"], served["admin"]

    def kill_coordinator(self):
        self._coordinator.kill()
        self._coordinator.wait()

    def python(self, name, script, *arguments):
        return self.start(name, sys.executable, HERE / script, *arguments)

    def member(self, name, seed, *more):
        return self.python(name, "grid_member.py", self.address, self.folder / name, seed, *more)

    def ctl(self, *arguments):
        done = subprocess.run([self.binaries / "tersectl", "--admin", self.admin, *map(str, arguments)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"tersectl {arguments} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def list(self, what, run=""):
        """The JSON of `tersectl WHAT --json`."""
        return json.loads(self.ctl(*(["--run", run] if run else []), what, "--json"))

    def status(self, run=""):
        return self.list("status", run)

    def version(self, run=""):
        return self.status(run)["version"]

    def wait_for_version(self, version, run=""):
        wait_until(lambda: self.version(run) >= version, f"version {version} of {run or 'the run'}")

    def run_folder(self):
        """The folder of its only run."""
        (database,) = (self.folder / "state").glob("**/run.sqlite")
        return database.parent

    def weights(self):
        """The run's weights, by name."""
        self.ctl("export", "--out", self.folder / "out", "--format", "npz")
        with np.load(self.folder / "out" / "model.npz") as file:
            return dict(file)


def wait_until(condition, what, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def end(process, seconds=60):
    """Its exit code, once it has ended by itself."""
    return process.wait(seconds)


KILL = signal.SIGKILL
