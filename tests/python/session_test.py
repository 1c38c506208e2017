"""The trainer's side of the protocol in Python, against a client that the test plays: what commit says when clients die.

usage: session_test.py     (run by ctest)
"""
import json
import mmap
import os
import socket
import sys
import threading
import time
import unittest

import numpy as np
import torch

import terse
from terse._channel import Channel, Kind
from terse._fleet import Fleet

ELEMENTS = 6


class Played:
    """A client that a test plays: its end of the connection, with the memory."""

    pid = None

    def __init__(self):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.theirs = theirs
        self.channel = Channel(theirs)

    def end(self):
        pass

    def gone(self):
        return "the client is another one"

    def ask(self, kind, body=b"", **members):
        """The body of the answer, which must be DONE."""
        self.channel.send(kind, body or json.dumps(members).encode())
        answer, body, _ = self.channel.receive()
        if answer != Kind.DONE:
            raise AssertionError(f"{kind} was answered with {answer}: {body}")
        return body

    def open(self, state=None):
        """As a client begins. Returns the hello."""
        hello = json.loads(self.ask(Kind.OPEN, protocol=1, run="r", model="external", seed=1,
                                    shard={"index": 0, "count": 1}, rounds=10, local_steps=1, batch_size=1,
                                    buffers="averaged", momentum_masking=False))
        file = os.memfd_create("played")
        os.ftruncate(file, 3 * 4 * ELEMENTS)
        self.memory = np.frombuffer(mmap.mmap(file, 3 * 4 * ELEMENTS), dtype=np.float32)
        body = json.dumps({"elements": ELEMENTS, "bytes": 3 * 4 * ELEMENTS}).encode()
        header = b"".join(part.to_bytes(size, "little") for part, size in ((Kind.MEMORY, 4), (0, 4), (len(body), 8)))
        socket.send_fds(self.theirs, [header], [file])
        self.theirs.sendall(body)
        os.close(file)
        assert self.channel.receive()[0] == Kind.DONE
        if state is not None:
            self.ask(Kind.RESTORE, state)
        return hello

    def train(self, number, weight):
        """Asks for a round from weights that are all `weight`. Returns the result that it finds."""
        self.memory[:ELEMENTS] = weight
        answer = json.loads(self.ask(Kind.TRAIN, steps=1, first_iteration=0, round=number, version=number - 1))
        return answer, self.memory[ELEMENTS:2 * ELEMENTS].copy()

    def seal(self, number):
        state = self.ask(Kind.SAVE)
        self.channel.send_json(Kind.SEALED, round=number)
        return state

    def die(self):
        self.channel.close()


class Session(unittest.TestCase):
    def setUp(self):
        self.clients = [Played(), Played()]
        left = iter(self.clients)
        self.fleet = Fleet(lambda: next(left))
        self.model = {"w": np.zeros(ELEMENTS, dtype=np.float32)}
        self.seen = []  # what the loop saw: the round's number, the weights that it began with, what commit said
        self.loop = threading.Thread(target=self.train_loop, daemon=True)
        self.loop.start()

    def tearDown(self):
        self.loop.join(10)
        self.assertFalse(self.loop.is_alive())
        for client in self.clients:
            client.die()
            client.socket.close()

    def train_loop(self):
        for current in self.fleet.rounds(self.model, samples=3):
            begin = float(self.model["w"][0])
            self.model["w"] += current.number
            extra = b"extra %d" % current.number
            self.seen.append((current.number, begin, current.commit(samples=5, metrics={"loss": 0.5}, extra=extra)))

    def finish(self, client, weight):
        client.memory[:ELEMENTS] = weight
        client.channel.send_json(Kind.FINISHED, reason="done")
        self.loop.join(10)
        self.assertEqual(self.fleet.finished, "done")
        self.assertEqual(self.model["w"].tolist(), [weight] * ELEMENTS)

    def test_rounds_that_nothing_disturbs(self):
        client = self.clients[0]
        hello = client.open()
        self.assertEqual((hello["samples"], hello["result"], hello["has_state"]), (3, "weights", True))
        self.assertEqual(hello["layout"], [{"name": "w", "shape": [ELEMENTS], "kind": "parameter"}])
        for number in (1, 2):
            answer, result = client.train(number, 10 * number)
            self.assertEqual((answer["loss"], answer["samples"]), (0.5, 5))
            self.assertEqual(result.tolist(), [11 * number] * ELEMENTS)
            client.seal(number)
        self.finish(client, 7)
        self.assertEqual(self.seen, [(1, 10, True), (2, 20, True)])
        self.assertEqual(self.fleet.extra, b"extra 2")

    def test_a_client_that_dies_once_the_update_is_stored(self):
        first, second = self.clients
        first.open()
        first.train(1, 10)
        state = first.ask(Kind.SAVE)  # stored with the update, and nobody is told
        first.die()
        second.open(state)
        answer, result = second.train(2, 20)
        second.seal(2)
        self.finish(second, 7)
        self.assertEqual(self.seen, [(1, 10, True), (2, 20, True)])
        self.assertEqual(result.tolist(), [22] * ELEMENTS)

    def test_a_client_that_dies_before_and_gets_the_same_work_again(self):
        first, second = self.clients
        first.open()
        first.train(1, 10)
        state = first.seal(1)
        first.train(2, 20)
        first.die()
        second.open(state)
        answer, result = second.train(2, 20)  # answered without training again
        self.assertEqual(result.tolist(), [22] * ELEMENTS)
        second.seal(2)
        self.finish(second, 7)
        self.assertEqual(self.seen, [(1, 10, True), (2, 20, True)])

    def test_a_client_that_dies_before_and_is_too_late(self):
        first, second = self.clients
        first.open()
        first.train(1, 10)
        first.die()
        second.open()
        answer, result = second.train(3, 30)  # another round: its result is made from its own weights
        self.assertEqual(result.tolist(), [33] * ELEMENTS)
        second.seal(3)
        self.finish(second, 7)
        self.assertEqual(self.seen, [(1, 10, False), (3, 30, True)])
        self.assertEqual(self.fleet.extra, b"extra 3")

    def test_a_request_that_is_not_known(self):
        client = self.clients[0]
        client.open()
        client.channel.send(31, b"{}")
        kind, body, _ = client.channel.receive()
        self.assertEqual((kind, json.loads(body)["code"]), (Kind.FAILED, "UNIMPLEMENTED"))
        client.train(1, 10)
        client.seal(1)
        self.finish(client, 7)


class Progress(unittest.TestCase):
    """A loop in the test's own thread, against a client that another thread plays."""

    def setUp(self):
        self.clients = [Played(), Played()]
        left = iter(self.clients)
        self.fleet = Fleet(lambda: next(left))
        self.addCleanup(self.fleet.close)
        self.model = torch.nn.Linear(ELEMENTS, 1, bias=False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.heard = []

    def play(self, script):
        """Runs the client's side in a thread of its own, which the test joins at its end."""
        def run():
            try:
                script()
            finally:
                for client in self.clients:
                    client.die()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 10)

    def begin(self, client, number, state=None):
        client.open(state)
        client.memory[:2 * ELEMENTS] = 1.0
        self.ask_to_train(client, number)

    @staticmethod
    def ask_to_train(client, number):
        client.channel.send_json(Kind.TRAIN, steps=50, first_iteration=0, round=number, version=number - 1)

    def hear(self, client, go_on=None):
        """The next frame of the trainer, answered where it is progress."""
        kind, body, _ = client.channel.receive()
        self.heard.append((kind, json.loads(body)))
        if kind == Kind.PROGRESS:
            client.channel.send_json(Kind.GO_ON, go_on=go_on)
        return kind

    def step(self):
        self.optimizer.zero_grad()
        self.model(torch.ones(ELEMENTS)).sum().backward()
        self.optimizer.step()

    def momentum(self):
        return self.optimizer.state[self.model.weight]["momentum_buffer"].tolist()

    def train_until_stopped(self, current):
        for steps in range(1, 1000):
            self.step()
            time.sleep(0.01)
            if not current.progress(steps):
                self.assertFalse(current.progress(steps), "and says so again, without asking")
                return steps
        raise AssertionError("no progress returned False")

    def test_a_stop_gives_the_round_up(self):
        client, other = self.clients

        def script():
            self.begin(client, 1)
            self.assertEqual(client.channel.receive()[0], Kind.DONE)
            state = client.seal(1)
            self.ask_to_train(client, 2)
            self.hear(client, go_on=True)
            self.hear(client, go_on=False)
            self.hear(client)
            client.die()
            self.begin(other, 2, state)
            self.assertEqual(other.channel.receive()[0], Kind.DONE)
            other.seal(2)
            other.channel.send_json(Kind.FINISHED, reason="done")

        self.play(script)
        rounds = self.fleet.rounds(self.model, self.optimizer)
        current = next(rounds)
        self.step()
        self.assertTrue(current.commit(samples=1, metrics={"loss": 1.0}))
        before = self.momentum()
        current = next(rounds)
        begun, steps = time.monotonic(), self.train_until_stopped(current)
        self.assertNotEqual(self.momentum(), before)
        current = next(rounds)  # of the next client, with the optimizer as the first round had left it
        self.assertEqual((current.number, self.momentum()), (2, before))
        self.assertEqual([kind for kind, _ in self.heard], [Kind.PROGRESS, Kind.PROGRESS, Kind.FAILED])
        self.assertEqual(self.heard[1][1], {"steps": steps})
        self.assertEqual(self.heard[2][1], {"code": "CANCELLED", "message": "stopped in round 2", "details": ""})
        self.assertGreater(time.monotonic() - begun, 0.5)
        self.assertGreater(steps, 10, "most calls ask nobody")
        self.assertTrue(current.commit(samples=1, metrics={"loss": 1.0}))
        self.assertEqual(list(rounds), [])

    def test_the_first_round_and_a_commit_after_the_stop(self):
        client, other = self.clients

        def script():
            self.begin(client, 1)
            self.hear(client, go_on=False)
            self.hear(client)
            client.die()
            self.begin(other, 1)
            other.channel.receive()
            other.seal(1)
            other.channel.send_json(Kind.FINISHED, reason="done")

        self.play(script)
        rounds = self.fleet.rounds(self.model, self.optimizer)
        current = next(rounds)
        self.train_until_stopped(current)
        self.assertFalse(current.commit(samples=1, metrics={"loss": 1.0}))
        with self.assertRaisesRegex(terse.RunMismatch, "round 1 was committed already; report progress before that"):
            current.progress(1)
        current = next(rounds)
        self.assertFalse(self.optimizer.state, "no step of the round that was given up is left")
        self.assertTrue(current.commit(samples=1, metrics={"loss": 1.0}))
        self.assertEqual(list(rounds), [])
        self.assertEqual([kind for kind, _ in self.heard], [Kind.PROGRESS, Kind.FAILED])

    def test_a_client_that_is_killed_meanwhile_gets_the_result(self):
        client, other = self.clients

        def script():
            self.begin(client, 1)
            client.die()
            self.begin(other, 1)
            self.assertEqual(other.channel.receive()[0], Kind.DONE)
            other.seal(1)
            other.channel.send_json(Kind.FINISHED, reason="done")

        self.play(script)
        rounds = self.fleet.rounds(self.model, self.optimizer)
        current = next(rounds)
        time.sleep(0.3)
        self.assertTrue(current.progress(1))
        self.assertTrue(current.commit(samples=1, metrics={"loss": 1.0}))
        self.assertEqual(list(rounds), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])  # ctest names a folder, which is not needed here
