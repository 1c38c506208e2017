"""terse.simulate with workers of Ray: two nodes, workers and a node that are lost, and the model that there is without Ray.

usage: ray_test.py     (run by ctest, which skips it where Ray is not installed; tests/frameworks.sh ray installs it)
"""
import importlib.util
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import numpy as np

import terse
from fleet import wait_until
from simulate_test import CLIENTS, COHORT, ROUNDS, Towards, make_model, make_run

TURNS = COHORT * ROUNDS


class Noted(Towards):
    """As Towards, and leaves a file whose name says who trained where."""

    folder = None  # of the files; set in the subclass that a test makes

    def __call__(self, model, work):
        import ray
        node = ray.get_runtime_context().get_node_id()
        (self.folder / f"{work.round}-{work.client}-{node}-{os.getpid()}-{time.monotonic_ns()}").touch()
        self.before(work)
        return super().__call__(model, work)

    def before(self, work):
        pass


class First:
    """Does something at its first call in a round, in whatever process, and nothing later."""

    def __init__(self, folder, number):
        self.marker, self.number = pathlib.Path(folder) / "marker", number

    def __call__(self, work):
        if work.round != self.number:
            return False
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


class OnRay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import ray
        from ray.cluster_utils import Cluster
        cls.ray = ray
        cls.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        cls.second = cls.cluster.add_node(num_cpus=1)
        ray.init(address=cls.cluster.address)
        cls.cluster.wait_for_nodes()
        with tempfile.TemporaryDirectory(prefix="terse-ray-") as folder:
            cls.expected = cls.simulate_in(folder, Towards, backend="local").report["model_hash"]

    @classmethod
    def tearDownClass(cls):
        cls.ray.shutdown()
        cls.cluster.shutdown()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="terse-ray-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.notes = self.folder / "notes"
        self.notes.mkdir()

    @staticmethod
    def simulate_in(folder, client_fn, backend="ray", **more):
        return terse.simulate(client_fn, run=make_run(), model=make_model(), state=os.path.join(folder, "state"),
                              clients=CLIENTS, cohort=COHORT, backend=backend, **more)

    def simulate(self, client_fn, processes=2, **more):
        return self.simulate_in(self.folder, client_fn, processes=processes, **more)

    def noted(self, before=None):
        """A client function that notes who trains where, and calls before(work)."""
        notes = self.notes

        class Mine(Noted):
            folder = notes

            def before(self, work):
                if before is not None:
                    before(work)
        return Mine

    def trained(self):
        """For each training that began: round, client, node, process."""
        return [path.name.split("-")[:4] for path in self.notes.iterdir()]

    def test_the_result_is_the_same_on_two_nodes(self):
        with unittest.mock.patch.object(self.ray, "put", wraps=self.ray.put) as put:
            simulation = self.simulate(self.noted())
        self.assertEqual(simulation.report["model_hash"], self.expected)
        self.assertEqual(simulation.run.rounds()["id"][-1], ROUNDS)
        trained = self.trained()
        self.assertEqual(len(trained), TURNS)
        self.assertEqual(len({node for _, _, node, _ in trained}), 2)
        self.assertEqual(put.call_count, 1 + ROUNDS, "the functions, and the weights of each version once")

    def test_one_worker(self):
        self.assertEqual(self.simulate(Towards, processes=1).report["model_hash"], self.expected)

    def test_what_a_function_raises(self):
        def broken(index):
            raise LookupError(f"no data for client {index}")
        with self.assertRaisesRegex(LookupError, "no data for client"):
            self.simulate(broken)

    def test_a_worker_that_is_killed(self):
        first = First(self.folder, 3)

        def kill(work):
            if first(work):
                os.kill(os.getpid(), signal.SIGKILL)
        with self.assertLogs("terse", "WARNING") as logs:
            simulation = self.simulate(self.noted(kill))
        self.assertEqual(simulation.report["model_hash"], self.expected)
        self.assertEqual(len(self.trained()), TURNS + 1)
        (line,) = logs.output
        self.assertRegex(line, r"the Ray worker that trained client \d+ in round 3 was lost, and the training begins again on "
                               "another: ")
        self.assertNotIn("\n", line)

    def test_workers_that_are_killed_each_time(self):
        def kill(work):
            if work.round == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        with self.assertLogs("terse", "WARNING"), self.assertRaisesRegex(
                terse.ClientError, r"client \d+'s training in round 2 was lost with 3 of Ray's workers, one after the other"):
            self.simulate(self.noted(kill))
        # What was trained until then is there, and the same command goes on.
        self.assertEqual(self.simulate(Towards).report["rounds"], ROUNDS)

    def test_a_node_that_is_lost(self):
        first, second = First(self.folder, 3), self.second.node_id

        def wait(work):
            import ray
            if ray.get_runtime_context().get_node_id() == second and first(work):
                time.sleep(1000)

        def lose():
            wait_until(first.marker.exists, "the second node trains in round 3", 120)
            self.cluster.remove_node(self.second)
        thread = threading.Thread(target=lose, daemon=True)
        thread.start()
        try:
            with self.assertLogs("terse", "WARNING") as logs:
                simulation = self.simulate(self.noted(wait))
            thread.join()
            self.assertEqual(simulation.report["model_hash"], self.expected)
            self.assertEqual(len(self.trained()), TURNS + 1)
            self.assertEqual(len([line for line in logs.output if "was lost" in line]), 1, logs.output)
        finally:
            type(self).second = self.cluster.add_node(num_cpus=1)
            self.cluster.wait_for_nodes()

    def test_no_worker_is_free(self):
        from terse import _ray
        workers = _ray.RayWorkers(1, Towards, make_model(), {"num_cpus": 64})
        weights = np.zeros(620, dtype=np.float32)
        errors = []

        def train():
            try:
                workers.train(terse.Work(0, 1, 0, 2, 0), b"", weights, weights.copy(), True)
            except terse.ClientError as error:
                errors.append(str(error))
        with unittest.mock.patch.object(_ray, "_PATIENCE_SECONDS", 1.0), self.assertLogs("terse", "WARNING") as logs:
            thread = threading.Thread(target=train)
            thread.start()
            time.sleep(2.5)
            workers.close()
            thread.join(10)
        self.assertEqual(errors, ["the simulation has ended"])
        (line,) = logs.output
        self.assertRegex(line, r"no Ray worker is free for 1 s: each wants .*64.*, and the cluster has .*'CPU': 2.0")
        self.assertTrue(self.ray.is_initialized(), "the connection is the caller's")

    def test_what_workers_cannot_have(self):
        lock = threading.Lock()
        with self.assertRaisesRegex(terse.RunMismatch, "client_fn and the model must be things that can be pickled"):
            self.simulate(lambda index: lock)

    def test_a_worker_that_cannot_start(self):
        sys.modules["only_here"] = module = type(sys)("only_here")
        self.addCleanup(sys.modules.pop, "only_here")

        def nowhere_else(index):
            return Towards(index)
        nowhere_else.__module__, nowhere_else.__qualname__ = "only_here", "nowhere_else"
        module.nowhere_else = nowhere_else
        with self.assertRaisesRegex(terse.ClientError, "no Ray worker can be started: (.|\n)*No module named 'only_here'"):
            self.simulate(nowhere_else)


if __name__ == "__main__":
    if importlib.util.find_spec("ray") is None:
        print("SKIPPED: Ray is not installed for", sys.executable, "- tests/frameworks.sh ray installs it into an environment of its own",
              file=sys.stderr)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)  # ctest names a folder, which is not needed here
