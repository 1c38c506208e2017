"""Weights that a server and its clients agree on (terse.flower without Flower): both ends, and every way a round can fail.

usage: agreed_test.py     (run by ctest)
"""

import pathlib
import random
import shutil
import sys
import tempfile
import unittest

import numpy as np

from terse import ClientError, CodecError, MalformedMessage, RunMismatch, codecs
from terse._agreed import AgreedServer, coded_part, duplicates
from terse._agreed_client import AgreedClient, WeightsNeeded

STEP = 2.0**-10  # changes are multiples of it, so that sums of few of them are exact


def start_weights():
    return {
        "w": np.zeros((40, 5), dtype=np.float32),
        "b": np.zeros(7, dtype=np.float32),
        "count": np.array(3, dtype=np.int64),
        "norm.running_var": np.ones(4, dtype=np.float32),
    }


class Trained:
    """A server and clients in folders, with what each client has learned and what of it was applied."""

    def __init__(self, folder, up, down, clients=3, seed=1):
        self.folder, self.random = pathlib.Path(folder), np.random.default_rng(seed)
        self.server = AgreedServer(up, down)
        self.server.agree(start_weights())
        self.nodes = list(range(clients))  # the node's number, by client
        self.learned = [self.nothing() for _ in range(clients)]
        self.applied = [self.nothing() for _ in range(clients)]

    @staticmethod
    def nothing():
        return {name: np.zeros(array.shape) for name, array in coded_part(start_weights()).items()}

    def client(self, k):
        return AgreedClient(self.folder / f"client-{k}")

    def draw(self, weights):
        """What training makes of the weights: a change of every value of the model, and one more of the count."""
        return {
            name: (
                array + 1
                if array.dtype == np.int64
                else array + (self.random.integers(-400, 400, array.shape) * STEP).astype(np.float32)
            )
            for name, array in weights.items()
        }

    def answer(self, k):
        """Client k is sent a message, trains and answers. Returns the reply; the update counts as learned."""
        message = self.server.send(self.nodes[k])
        with self.client(k) as client:
            weights = client.receive(*message)
            self.check_equal(weights)
            trained = self.draw(weights)
            reply = client.seal(trained)
        for name, total in self.learned[k].items():
            total += trained[name].astype(np.float64) - weights[name]
        return reply

    def take(self, k, reply):
        return self.server.take(self.nodes[k], *reply)

    def apply(self, updates):
        """The sum of such updates, given by client, joins the model."""
        head = self.server.weights
        for k, update in updates.items():
            for name, total in self.applied[k].items():
                total += update.weights[name].astype(np.float64) - head[name]
        self.server.settle(updates.values())
        self.server.step(
            {name: array + sum(update.weights[name] - array for update in updates.values()) for name, array in head.items()}
        )

    def round(self):
        self.apply({k: self.take(k, self.answer(k)) for k in range(len(self.nodes))})

    def check_equal(self, weights):
        for name, array in self.server.weights.items():
            np.testing.assert_array_equal(weights[name], array)

    def residual(self, k):
        """Client k's residual, once it has heard the newest verdict."""
        with self.client(k) as client:
            client.receive(*self.server.send(self.nodes[k]))
            return client._memory.residual

    def check_conserved(self):
        for k in range(len(self.nodes)):
            residual = self.residual(k)
            for name in ("w", "b"):
                np.testing.assert_array_equal(self.applied[k][name] + residual[name], self.learned[k][name])
        rest = self.server.residual()
        for name in ("w", "b"):
            np.testing.assert_array_equal(
                self.server.weights[name] + rest[name], sum(applied[name] for applied in self.applied)
            )


class Agreed(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="terse-agreed-")
        self.folder = pathlib.Path(self._folder.name)

    def tearDown(self):
        self._folder.cleanup()

    def trained(self, up=None, down=None, **more):
        return Trained(self.folder, up or codecs.top_k(density=0.1), down, **more)

    def test_both_ends_hold_the_same_with_every_codec(self):
        for up, down in (
            (codecs.sbc(density=0.05), codecs.stc(density=0.1)),
            (codecs.qsgd(bits=4), codecs.sbc(density=0.05)),
            (codecs.dgc(density=0.05), codecs.fp16()),
            (codecs.signum(), codecs.one_bit()),
            (codecs.dense(), codecs.dense()),
            (codecs.fp16(), None),
        ):
            with self.subTest(up=up.name, down=down and down.name), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                trained = Trained(folder, up, down)
                for _ in range(5):
                    trained.round()  # every client compares
                self.assertEqual(trained.server.weights["count"], 3 + 5 * 3)

    def test_nothing_is_lost_or_counted_twice(self):
        trained = self.trained(down=codecs.top_k(density=0.2))
        for _ in range(6):
            trained.round()
        self.assertGreater(np.abs(trained.residual(0)["w"]).sum(), 0)
        trained.check_conserved()

    def test_nothing_is_lost_or_counted_twice_whatever_fails(self):
        for seed in range(20):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                self.run_schedule(
                    Trained(folder, codecs.top_k(density=0.1), codecs.top_k(density=0.2), seed=seed), random.Random(seed)
                )

    def run_schedule(self, trained, dice):
        for number in range(12):
            updates = {}
            for k in range(len(trained.nodes)):
                fate = dice.choice(
                    ["taken", "taken", "killed in training", "reply lost", "left out", "restarted", "evaluates"]
                )
                if fate == "restarted":
                    trained.nodes[k] = 100 * number + k
                if fate == "killed in training":
                    with trained.client(k) as client:
                        client.receive(*trained.server.send(trained.nodes[k]))
                elif fate == "evaluates":
                    with trained.client(k) as client:
                        client.receive(*trained.server.send(trained.nodes[k]))
                        trained.server.hear(trained.nodes[k], client.acknowledge())
                else:
                    reply = trained.answer(k)
                    if fate != "reply lost":
                        update = trained.take(k, reply)
                        if fate != "left out":
                            updates[k] = update
            if updates and dice.random() < 0.8:  # else the strategy gave no weights
                trained.apply(updates)
        trained.check_conserved()

    def test_a_client_that_starts_again_under_another_number(self):
        trained = self.trained(down=codecs.top_k(density=0.2))
        trained.round()
        trained.nodes[1] = 77
        trained.round()
        trained.check_conserved()

    def test_a_client_that_lost_its_folder(self):
        trained = self.trained(down=codecs.top_k(density=0.2))
        trained.round()
        shutil.rmtree(self.folder / "client-0")
        with self.assertRaises(WeightsNeeded):
            trained.answer(0)
        trained.server.forget(0)
        trained.learned[0] = {
            name: total.copy() for name, total in trained.applied[0].items()
        }  # its residual went with the folder
        trained.round()
        trained.check_conserved()

    def test_folders_that_were_exchanged(self):
        trained = self.trained(down=codecs.top_k(density=0.2))
        trained.round()
        for name, other in (("client-0", "kept"), ("client-1", "client-0"), ("kept", "client-1")):
            shutil.move(self.folder / name, self.folder / other)
        trained.learned[:2], trained.applied[:2] = trained.learned[1::-1], trained.applied[1::-1]
        for k in (0, 1):
            with self.assertRaisesRegex(WeightsNeeded, "takes this client for another one"):
                trained.answer(k)
            trained.server.forget(k)
        trained.round()
        trained.check_conserved()

    def test_a_folder_that_was_set_back(self):
        trained = self.trained()
        trained.round()
        shutil.copytree(self.folder / "client-0", self.folder / "copy")
        trained.round()
        shutil.rmtree(self.folder / "client-0")
        shutil.move(self.folder / "copy", self.folder / "client-0")
        with self.assertLogs("terse", "WARNING") as logged:
            residual = trained.residual(0)
        self.assertIn("as if it had been set back; a residual of norm", logged.output[0])
        self.assertEqual(np.abs(residual["w"]).sum(), 0)

    def test_copies_of_a_folder(self):
        trained = self.trained()
        trained.round()
        shutil.rmtree(self.folder / "client-1")
        shutil.copytree(self.folder / "client-0", self.folder / "client-1")
        trained.nodes[1] = 55
        updates = [trained.take(k, trained.answer(k)) for k in range(3)]
        self.assertEqual(duplicates(updates), [updates[0].key])

    def test_a_message_is_answered_once(self):
        trained = self.trained()
        message = trained.server.send(0)
        with trained.client(0) as client:
            client.seal(trained.draw(client.receive(*message)))
        with trained.client(0) as client, self.assertRaisesRegex(RunMismatch, "message 1 was answered already"):
            client.receive(*message)

    def test_a_reply_that_comes_late(self):
        trained = self.trained()
        late = trained.answer(0)
        trained.server.send(0)
        with self.assertRaisesRegex(RunMismatch, "answers another message"):
            trained.take(0, late)
        reply = trained.answer(1)
        trained.apply({2: trained.take(2, trained.answer(2))})
        with self.assertRaisesRegex(RunMismatch, "from version 1 of the weights, and this is version 2"):
            trained.take(1, reply)

    def test_weights_that_are_not_the_servers(self):
        trained = self.trained(down=codecs.top_k(density=0.2))
        trained.round()
        trained.round()
        fields, arrays = trained.server.send(0)
        self.assertEqual(len(fields["steps"]), 1)
        with trained.client(0) as client, self.assertRaisesRegex(WeightsNeeded, "do not have the hash of version 3"):
            client.receive({**fields, "hash": bytes(16)}, arrays)
        with (
            trained.client(0) as client,
            self.assertRaisesRegex(WeightsNeeded, "sent 1 steps to version 9, and here is version 2"),
        ):
            client.receive({**fields, "version": 9}, arrays)

    def test_weights_that_change_otherwise(self):
        trained = self.trained(down=codecs.top_k(density=0.2))
        trained.round()
        trained.server.agree({name: array * 0 for name, array in start_weights().items()})
        fields, arrays = trained.server.send(0)
        self.assertNotIn("steps", fields)
        self.assertEqual(set(arrays), set(start_weights()))
        trained.round()

    def test_steps_that_are_longer_than_the_weights(self):
        trained = self.trained(down=codecs.top_k(density=0.5))
        trained.round()
        for _ in range(4):
            trained.apply({k: trained.take(k, trained.answer(k)) for k in (1, 2)})
        fields, _ = trained.server.send(0)
        self.assertNotIn("steps", fields)
        trained.check_conserved()

    def test_an_update_that_does_not_fit(self):
        trained = self.trained()
        fields, arrays = trained.answer(0)
        for wrong in (
            {"change": b""},
            {"change": fields["change"][:-1]},
            {"change": 7},
            {"number": b"1"},
            {"key": b""},
            {"lineage": b""},
        ):
            with self.subTest(wrong), self.assertRaises((RunMismatch, MalformedMessage)):
                trained.take(0, ({**fields, **wrong}, arrays))
        with self.assertRaisesRegex(RunMismatch, "other tensors"):
            trained.take(0, (fields, {}))
        trained.take(0, (fields, arrays))

    def test_training_that_leaves_no_numbers(self):
        trained = self.trained()
        with trained.client(0) as client:
            weights = client.receive(*trained.server.send(0))
            with self.assertRaises(CodecError):
                client.seal({**weights, "w": weights["w"] + np.float32("nan")})
            with self.assertRaisesRegex(RunMismatch, r"the result has 'w' as float64\[40, 5\]"):
                client.seal({**weights, "w": weights["w"].astype(np.float64)})
        trained.round()
        trained.check_conserved()

    def test_a_new_training_in_an_old_folder(self):
        self.trained().round()
        with self.assertLogs("terse", "WARNING") as logged:
            trained = self.trained()
            trained.round()
        self.assertIn("the server began a new training", logged.output[0])
        trained.check_conserved()

    def test_a_folder_that_is_used_or_damaged(self):
        trained = self.trained()
        trained.round()
        with trained.client(0), self.assertRaisesRegex(ClientError, "another process uses"):
            trained.client(0)
        for kind in ("memory-*", "manifest"):
            (file,) = (self.folder / "client-0").glob(kind)
            file.write_bytes(file.read_bytes()[:-1] + b"?")
            with self.subTest(kind), self.assertRaisesRegex(ClientError, "is damaged; remove the folder"):
                trained.answer(0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])  # ctest names a folder, which is not needed here
