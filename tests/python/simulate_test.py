"""terse.simulate: functions of the user's own train a fleet, and the result depends on the run alone."""

import os
import struct
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np

import terse

CLIENTS, COHORT, ROUNDS = 12, 3, 5


def make_model():
    return {"a.weight": np.zeros((20, 30), dtype=np.float32), "a.bias": np.zeros(20, dtype=np.float32)}


def make_run(rounds=ROUNDS):
    return terse.Run("toy", model=make_model(), codec=terse.codecs.sbc(density=0.05), rounds=rounds, clients=CLIENTS,
                     local_steps=2)


class Towards:
    """Pulls the weights towards numbers of the client's own, and counts its rounds in the state that is stored."""

    def __init__(self, index, made=None):
        self.index, self.rounds = index, 0
        if made is not None:
            made.append(index)

    def __call__(self, model, work):
        assert work.client == self.index and work.local_steps == 2
        self.rounds += 1
        draw = np.random.default_rng([work.client, work.round, self.rounds])
        total = 0.0
        for values in model.values():
            aim = draw.standard_normal(values.shape).astype(np.float32) + self.index
            total += float(np.mean((values - aim)**2))
            values += np.float32(0.1) * (aim - values)
        return {"loss": total, "samples": 7}

    def save(self):
        return struct.pack("<Q", self.rounds)

    def restore(self, state):
        (self.rounds,) = struct.unpack("<Q", state)


class Simulate(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="terse-simulate-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def simulate(self, name, client_fn=Towards, rounds=ROUNDS, **more):
        return terse.simulate(client_fn, run=make_run(rounds), model=make_model(), state=os.path.join(self.folder, name),
                              clients=CLIENTS, cohort=COHORT, **more)

    def test_processes_do_not_matter(self):
        made = []
        one = self.simulate("one", lambda index: Towards(index, made))
        self.assertEqual(len(made), COHORT * ROUNDS, "only who is invited is made")
        self.assertGreater(len(set(made)), COHORT)
        rounds = one.run.rounds()
        self.assertEqual(len(rounds), ROUNDS)
        self.assertLess(rounds["train_loss"][-1], np.inf)
        self.assertEqual((one.report["fleet"], one.report["cohort"], one.report["rounds"]), (CLIENTS, COHORT, ROUNDS))
        two = self.simulate("two", processes=2)
        self.assertEqual(two.report["model_hash"], one.report["model_hash"])
        stateless = self.simulate("stateless", lambda index: Towards(index).__call__)
        self.assertNotEqual(stateless.report["model_hash"], one.report["model_hash"], "the state comes back")

    def test_what_a_function_raises(self):
        def broken(index):
            raise ValueError(f"no data for client {index}")
        with self.assertRaisesRegex(ValueError, "no data for client"):
            self.simulate("here", broken)
        with self.assertRaisesRegex(terse.ClientError, "ValueError: no data for client"):
            self.simulate("forked", broken, processes=2)
        with self.assertRaisesRegex(terse.RunMismatch, "metrics with 'loss'"):
            self.simulate("lossless", lambda index: lambda model, work: {})

    def test_what_is_refused(self):
        with self.assertRaisesRegex(terse.ClientError, "a cohort of 3 is more than the fleet's 2 clients"):
            terse.simulate(Towards, run=make_run(), model=make_model(), state=os.path.join(self.folder, "a"), clients=2,
                           cohort=3)
        with self.assertRaisesRegex(terse.RunMismatch, "there is no backend 'dask'; the backends are 'local' and 'ray'"):
            self.simulate("a", backend="dask")
        with self.assertRaisesRegex(terse.RunMismatch, "worker_options are for Ray's workers; give backend='ray' too"):
            self.simulate("a", worker_options={"num_gpus": 1})
        with unittest.mock.patch.dict(sys.modules, {"ray": None}), self.assertRaisesRegex(
                terse.ClientError, r"Ray cannot be imported \(.*\); install it with: pip install 'terse\[ray\]'"):
            self.simulate("a", backend="ray")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
