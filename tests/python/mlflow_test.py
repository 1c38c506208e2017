"""`tersectl follow --mlflow` with MLflow's own server and client: tests/frameworks.sh mlflow."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

os.environ["MLFLOW_TRACKING_URI"] = "http://127.0.0.1:1"  # nothing may be logged without the server's address

import followed_fleet
import named_metrics
from fleet import wait_until
from mlflow.tracking import MlflowClient

BINARIES = pathlib.Path(sys.argv[1])
PATIENCE = 120  # MLflow's server takes its time


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Server:
    def __init__(self, fleet):
        self.fleet, self.port = fleet, free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        log = open(self.fleet.folder / "server.log", "ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{self.fleet.folder}/mlflow.db",
             "--default-artifact-root", str(self.fleet.folder / "artifacts"), "--host", "127.0.0.1", "--port", str(self.port),
             "--workers", "1"], stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        log.close()
        wait_until(self.is_up, "MLflow's server", PATIENCE)

    def is_up(self):
        try:
            return urllib.request.urlopen(f"{self.url}/health", timeout=5).status == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def stop(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Mlflow(unittest.TestCase):
    def setUp(self):
        self.fleet = followed_fleet.FollowedFleet(BINARIES)
        self.addCleanup(self.fleet.__exit__)
        self.fleet.start_coordinator()

    def test_runs_in_the_tracking_server(self):
        server = Server(self.fleet)
        self.fleet.create("done", rounds=40)
        follow = self.fleet.follow("--mlflow", server.url, "--experiment", "fleets & more")
        wait_until(lambda: "no answer from" in self.fleet.log("follow"), "the line that the server is away")
        self.fleet.clients("done")
        self.fleet.wait_for_version(20, "done")
        server.start()
        self.addCleanup(server.stop)
        client = MlflowClient(server.url)
        find = lambda run: client.search_runs([client.get_experiment_by_name("fleets & more").experiment_id],
                                              f"attributes.run_name = '{run}'")
        wait_until(lambda: client.get_experiment_by_name("fleets & more") is not None and find("done")
                   and find("done")[0].info.status == "FINISHED", "the run's end in MLflow", PATIENCE)
        self.check(client, find("done"), "done")
        self.assertEqual(self.fleet.log("follow").count("no answer from"), 1, "each trouble is told once")

        # Killed, and with a server that goes away meanwhile: nothing twice, nothing left out.
        self.fleet.create("stopped")
        self.fleet.clients("stopped")
        wait_until(lambda: find("stopped") and client.get_metric_history(find("stopped")[0].info.run_id, "bytes/up_wire"),
                   "the first rounds", PATIENCE)
        self.assertEqual(find("stopped")[0].info.status, "RUNNING")
        follow.kill()
        follow.wait()
        server.stop()
        self.fleet.wait_for_version(self.fleet.version("stopped") + 30, "stopped")
        follow = self.fleet.follow("--run", "stopped", "--mlflow", server.url, "--experiment", "fleets & more", "--patience", "100")
        server.start()
        self.fleet.wait_for_version(self.fleet.version("stopped") + 10, "stopped")
        self.fleet.ctl("--run", "stopped", "stop")
        self.assertEqual(follow.wait(PATIENCE), 0, self.fleet.log("follow"))
        self.check(client, find("stopped"), "stopped")
        self.assertEqual(find("stopped")[0].info.status, "KILLED")
        self.assertRegex(find("stopped")[0].data.tags["terse.end"], "^stopped: .")

    def test_metrics_by_name(self):
        fleet = named_metrics.NamedMetricsFleet(BINARIES)
        self.addCleanup(fleet.__exit__)
        fleet.start_run()
        server = Server(fleet)
        server.start()
        self.addCleanup(server.stop)
        follow = fleet.follow("--run", named_metrics.RUN, "--mlflow", server.url)
        fleet.members()
        self.assertEqual(follow.wait(PATIENCE), 0, fleet.log("follow") + fleet.log("m1"))
        client = MlflowClient(server.url)
        (run,) = client.search_runs([client.get_experiment_by_name("terse").experiment_id])
        scalars = {}
        for key in run.data.metrics:
            for metric in client.get_metric_history(run.info.run_id, key):
                scalars.setdefault(metric.step, {})[key] = metric.value
        named_metrics.check(self, scalars, name_of=lambda name: name.replace("@", "_"))

    def test_a_run_that_is_deleted_meanwhile_ends(self):
        server = Server(self.fleet)
        server.start()
        self.addCleanup(server.stop)
        client = MlflowClient(server.url)
        experiment = lambda: client.get_experiment_by_name("terse")
        runs = lambda: {run.info.run_name: run for run in client.search_runs([experiment().experiment_id])}
        for name in ("short-lived", "other"):
            self.fleet.create(name)
            self.fleet.clients(name)
        options = ["--mlflow", server.url, "--state", "follow-state"]
        follow = self.fleet.follow(*options)
        wait_until(lambda: experiment() is not None and len(runs()) == 2
                   and all(run.data.metrics for run in runs().values()), "rounds of both runs", PATIENCE)
        follow.kill()
        follow.wait()
        self.fleet.ctl("run", "delete", "short-lived", "--yes", "--force")
        # One that never followed it does not know whose it is.
        other = self.fleet.follow("--mlflow", server.url, "--state", "other-state", name="other")
        wait_until(lambda: list(self.fleet.folder.glob("other-state/mlflow-*.json")), "the other process")
        self.assertEqual(runs()["short-lived"].info.status, "RUNNING")
        other.kill()
        self.fleet.follow(*options)
        wait_until(lambda: runs()["short-lived"].info.status == "KILLED", "the end of the deleted run", PATIENCE)
        run = runs()["short-lived"]
        self.assertEqual(run.data.tags["terse.end"], "deleted: the coordinator has it no more")
        newest = max(metric.timestamp for metric in client.get_metric_history(run.info.run_id, "bytes/up_wire"))
        self.assertEqual(run.info.end_time, newest)
        self.assertEqual(runs()["other"].info.status, "RUNNING")
        self.assertIn("the coordinator no longer has run 'short-lived'", self.fleet.log("follow"))
        wait_until(lambda: len(list(self.fleet.folder.glob("follow-state/mlflow-*.json"))) == 1, "its note is removed")

    def check(self, client, found, name):
        (run,) = found
        rounds = {one["id"]: one for one in self.fleet.rounds(name)}
        self.assertEqual(run.data.tags["terse.lineage"], self.fleet.status(name)["lineage"])
        # As the run file says, and at its default.
        for key, value in {"train.local_steps": "3", "codec.name": "sbc", "codec.density": "0.02", "rounds.clients": "2",
                           "durability": "strict", "name": name}.items():
            self.assertEqual(run.data.params[key], value, key)
        reference = self.fleet.ctl("config").splitlines()[1:]
        keys = [line.split()[0] for line in reference if line and not line.startswith(" ")]
        self.assertEqual(set(run.data.params), set(keys), "every key of a run file")
        history = {}
        for key in run.data.metrics:
            for metric in client.get_metric_history(run.info.run_id, key):
                history.setdefault(key, []).append((metric.step, metric.timestamp, metric.value))
        for key in ("bytes/up_wire", "bytes_total/down_wire", "train/loss", "time/round_seconds"):
            self.assertEqual([step for step, _, _ in sorted(history[key])], list(rounds), f"{key}: each round once")
        for step, timestamp, value in history["bytes/up_wire"]:
            self.assertEqual((timestamp, value), (rounds[step]["committed_us"] // 1000, rounds[step]["wire_bytes_up"]))
        evaluated = [number for number, one in rounds.items() if one["accuracy"] is not None]
        self.assertGreater(len(evaluated), 1)
        self.assertEqual([step for step, _, _ in sorted(history["test/accuracy"])], evaluated)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
