"""terse.flower in a deployment of Flower: a SuperLink and SuperNodes as processes, of which one is killed between rounds.

usage: flower_test.py     (run by ctest, which skips it where Flower is not installed; tests/frameworks.sh flower installs it)
"""

import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from fleet import HERE, wait_until

ROUNDS = 6
STEP = 2.0**-10
PYPROJECT = """[project]
name = "grid"
version = "1.0.0"
description = "changes that are known"
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "terse"
[tool.flwr.app.components]
serverapp = "grid_app:server"
clientapp = "grid_app:client"
[tool.flwr.app.config]
folder = "{folder}"
rounds = {rounds}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Deployment:
    """A SuperLink and SuperNodes in a temporary folder."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="terse-flower-", ignore_cleanup_errors=True)
        self.folder = pathlib.Path(self._folder.name)
        self.link, self._running = free_port(), []

    def __enter__(self):
        (self.folder / "config.toml").write_text(
            f'[superlink]\ndefault = "test"\n[superlink.test]\naddress = "127.0.0.1:{self.link}"\n' "insecure = true\n"
        )
        app = self.folder / "app"
        app.mkdir()
        shutil.copy(HERE / "flower_app" / "grid_app.py", app)
        (app / "pyproject.toml").write_text(PYPROJECT.format(folder=self.folder, rounds=ROUNDS))
        self.start(
            "superlink", "flower-superlink", "--insecure", "--port", self.link, "--disable-runtime-dependency-installation"
        )
        wait_until(self.serves, "the SuperLink serves")
        return self

    def __exit__(self, *_):
        for process in reversed(self._running):
            self.kill(process)
        self._folder.cleanup()

    def serves(self):
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.link)) == 0

    def start(self, name, *command):
        programs = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "FLWR_HOME": str(self.folder), "FLWR_TELEMETRY_ENABLED": "0", "PATH": programs}
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                list(map(str, command)),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
            )
        self._running.append(process)
        return process

    def node(self, partition):
        config = f'partition-id={partition} num-partitions=2 terse-state="{self.folder}/state-{partition}"'
        return self.start(
            f"node-{partition}",
            "flower-supernode",
            "--insecure",
            "--superlink",
            f"127.0.0.1:{self.link}",
            "--port",
            free_port(),
            "--node-config",
            config,
        )

    def kill(self, process):
        """The process and those that it started, as a machine that loses power."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def round(self):
        file = self.folder / "round"
        return int(file.read_text() or 0) if file.exists() else 0

    def logs(self):
        return "\n".join(f"{file.name}:\n{file.read_text(errors='replace')[-3000:]}" for file in self.folder.glob("*.log"))


def learned(folder, partition):
    """The sum of what a partition's training made, each round's once, and the rounds."""
    rounds = [json.loads(line)["round"] for line in (folder / f"learned-{partition}.jsonl").read_text().splitlines()]
    return sum(np.random.default_rng([number, partition]).integers(-400, 400, 1000) * STEP for number in rounds), rounds


def residual(folder, partition, settled):
    """What a client's folder keeps for its next rounds; settled: whether the server applied its newest update."""
    from terse import codecs

    (run,) = (folder / f"state-{partition}").glob("run-*")
    manifest = json.loads((run / "manifest").read_bytes().partition(b"\n")[2])
    memory = codecs.top_k(density=0.05).feedback({"w": (1000,)})
    memory.restore((run / manifest["files"]["memory"]["file"]).read_bytes())
    if manifest["number"] is not None:
        memory.settle(applied=settled)
    return memory.residual["w"]


class Flower(unittest.TestCase):
    def test_rounds_that_fail_and_a_node_that_is_killed(self):
        with Deployment() as deployment:
            deployment.node(0)
            killed = deployment.node(1)
            deployment.start("run", "flwr", "run", deployment.folder / "app", "test").wait(60)
            wait_until(lambda: deployment.round() >= 3, "round 3 ends", 300)
            deployment.kill(killed)
            deployment.node(1)
            result = deployment.folder / "result.npz"
            wait_until(lambda: result.exists() or (deployment.folder / "failure.log").exists(), "the run ends", 400)
            self.assertTrue(result.exists(), deployment.logs())
            self.check(deployment, np.load(result))

    def check(self, deployment, result):
        np.testing.assert_array_equal(result["weights"] + result["residual"], result["change"])
        for partition in (0, 1):
            total, rounds = learned(deployment.folder, partition)
            self.assertEqual(len(rounds), len(set(rounds)), "a round was trained twice")
            self.assertIn(ROUNDS, rounds)
            rest = residual(deployment.folder, partition, settled=True)
            self.assertGreater(np.abs(rest).sum(), 0)
            np.testing.assert_array_equal(result["applied"][partition] + rest, total)
        totals = json.loads(str(result["totals"]))
        self.assertEqual(totals[str(ROUNDS)], float(result["weights"].astype(np.float64).sum()))
        logs = [(deployment.folder / f"node-{partition}.log").read_text(errors="replace") for partition in (0, 1)]
        self.assertIn("this reply is lost on purpose", logs[0])
        self.assertIn("this training fails on purpose", logs[1])
        self.assertEqual(logs[1].count("SuperNode ID"), 2)
        server = (deployment.folder / "superlink.log").read_text(errors="replace")
        self.assertNotIn("is left out", server)


if __name__ == "__main__":
    if importlib.util.find_spec("flwr") is None:
        print(
            "SKIPPED: Flower is not installed for",
            sys.executable,
            "- tests/frameworks.sh flower installs it into an environment of its own",
            file=sys.stderr,
        )
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])  # ctest names a folder, which is not needed here
