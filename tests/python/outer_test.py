"""The outer step of torch training loops on several workers.

usage: outer_test.py     (run by ctest)
"""
import copy
import os
import socket
import sys
import tempfile
import threading
import unittest

import torch
import torch.multiprocessing

import terse
from terse.outer import OuterOptimizer

WORKERS = 2


def make_model():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 3))


def make_data(seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(256, 20, generator=generator)
    return x, x[:, :3].argmax(1)


def loss_of(model, data):
    return torch.nn.functional.cross_entropy(model(data[0]), data[1])


def learn(model, data, steps=5):
    """Inner steps with an optimizer of the worker's own. Returns the loss before them."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    first = loss_of(model, data).item()
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, data).backward()
        optimizer.step()
    return first


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


class Table:
    """An exchange between workers that are threads of this process."""

    def __init__(self, workers=WORKERS):
        self._messages, self._barrier = [b""] * workers, threading.Barrier(workers, timeout=30)

    def of(self, worker):
        def exchange(message):
            self._messages[worker] = message
            self._barrier.wait()
            received = list(self._messages)
            self._barrier.wait()
            return received

        return exchange


def together(*calls):
    """Makes the calls at once. Returns what each returned or raised."""
    results = [None] * len(calls)

    def run(i):
        try:
            results[i] = calls[i]()
        except terse.TerseError as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class OneWorker(unittest.TestCase):
    def test_the_step_is_that_of_torch(self):
        """Against torch.optim.SGD with Nesterov's momentum, whose gradient is what the worker has moved by."""
        model = make_model()
        outer = OuterOptimizer(model, learning_rate=0.7, momentum=0.9)
        reference = copy.deepcopy(model)
        sgd = torch.optim.SGD(reference.parameters(), lr=0.7, momentum=0.9, nesterov=True)
        data = make_data(1)
        for _ in range(5):
            inner = copy.deepcopy(reference)
            learn(inner, data)
            for p, q in zip(reference.parameters(), inner.parameters()):
                p.grad = p.detach() - q.detach()
            sgd.step()
            learn(model, data)
            outer.step()
            torch.testing.assert_close(weights(model), weights(reference), rtol=0, atol=2e-6)

    def test_frozen_parameters_stay(self):
        model = make_model()
        model[0].weight.requires_grad_(False)
        before = model[0].weight.clone()
        outer = OuterOptimizer(model)
        model[0].weight.add_(1)
        outer.step()
        self.assertTrue(torch.equal(model[0].weight, before + 1))

    def test_types_and_settings_that_do_not_fit(self):
        model = make_model().to(torch.float64)
        outer = OuterOptimizer(model, momentum=0.0, learning_rate=1.0)
        learn(model, (make_data(1)[0].double(), make_data(1)[1]))
        learned = weights(model).float()
        outer.step()
        torch.testing.assert_close(weights(model).float(), learned)
        with self.assertRaisesRegex(terse.TerseError, "a momentum from 0 to below 1"):
            OuterOptimizer(model, momentum=1.0)
        model.requires_grad_(False)
        with self.assertRaisesRegex(terse.RunMismatch, "nothing to bring together"):
            OuterOptimizer(model)


class SeveralWorkers(unittest.TestCase):
    def make(self, codec, table=None):
        table = table or Table()
        models = [make_model() for _ in range(WORKERS)]
        outers = [OuterOptimizer(model, codec=codec, exchange=table.of(i), seed=7, worker=i) for i, model in enumerate(models)]
        return models, outers

    def run_steps(self, models, outers, steps, data):
        for _ in range(steps):
            for model, own in zip(models, data):
                learn(model, own)
            self.assertEqual(together(*[outer.step for outer in outers]), [None] * WORKERS)

    def test_every_codec_leaves_all_workers_with_the_same_bits(self):
        data = [make_data(seed) for seed in (1, 2)]
        for codec in (terse.codecs.dense(), terse.codecs.sbc(density=0.05), terse.codecs.qsgd(bits=4), terse.codecs.stc(density=0.05)):
            with self.subTest(codec.name):
                models, outers = self.make(codec)
                self.run_steps(models, outers, 3, data)
                self.assertTrue(torch.equal(weights(models[0]), weights(models[1])))

    def test_dense_averages(self):
        models, outers = self.make(terse.codecs.dense())
        start = weights(models[0])
        for outer in outers:
            outer._learning_rate, outer._momentum = 1.0, 0.0
        for model, seed in zip(models, (1, 2)):
            learn(model, make_data(seed))
        moved = [weights(model) - start for model in models]
        together(*[outer.step for outer in outers])
        self.assertTrue(torch.equal(weights(models[0]), start + (moved[0] + moved[1]) / 2))

    def test_what_was_not_sent_is_sent_later(self):
        """With a coarse codec, the sum of what was applied and what waits is what the worker has learned."""
        models, outers = self.make(terse.codecs.sbc(density=0.02))
        start, learned = weights(models[0]), torch.zeros(1)
        for outer in outers:
            outer._learning_rate, outer._momentum = 1.0, 0.0
        data = [make_data(1)] * WORKERS  # the same data: both send the same
        for _ in range(4):
            before = weights(models[0])
            for model, own in zip(models, data):
                learn(model, own)
            learned = learned + (weights(models[0]) - before)
            together(*[outer.step for outer in outers])
        waiting = torch.cat([torch.as_tensor(array).flatten() for array in outers[0]._feedback.residual.values()])
        torch.testing.assert_close(weights(models[0]) - start + waiting, learned, rtol=0, atol=1e-5)
        self.assertGreater(waiting.abs().max(), 0)

    def test_it_trains_with_few_bytes(self):
        data = [make_data(seed) for seed in (1, 2)]
        models, outers = self.make(terse.codecs.sbc(density=0.05))
        before = loss_of(models[0], data[1]).item()
        self.run_steps(models, outers, 20, data)
        self.assertLess(loss_of(models[0], data[1]).item(), 0.5 * before)
        dense = 20 * 4 * weights(models[0]).numel()
        self.assertLess(outers[0].sent_bytes, dense / 20)

    def test_a_worker_that_starts_again_goes_on_bit_for_bit(self):
        data = [make_data(seed) for seed in (1, 2)]
        straight, outers = self.make(terse.codecs.sbc(density=0.05))
        self.run_steps(straight, outers, 4, data)
        models, outers = self.make(terse.codecs.sbc(density=0.05))
        self.run_steps(models, outers, 2, data)
        states = [outer.state_dict() for outer in outers]
        again, outers = self.make(terse.codecs.sbc(density=0.05))
        for model, old, outer, state in zip(again, models, outers, states):
            model.load_state_dict(old.state_dict())
            outer.load_state_dict(state)
        self.run_steps(again, outers, 2, data)
        self.assertTrue(torch.equal(weights(again[0]), weights(straight[0])))
        self.assertEqual(outers[0].steps, 4)
        other = OuterOptimizer(torch.nn.Linear(2, 2))
        with self.assertRaisesRegex(terse.RunMismatch, "of another model"):
            other.load_state_dict(states[0])

    def test_workers_that_drifted_apart_are_told(self):
        models, outers = self.make(terse.codecs.dense())
        name = next(iter(outers[1]._agreed))
        outers[1]._agreed[name][0] += 1
        before = weights(models[0])
        for result in together(*[outer.step for outer in outers]):
            self.assertIsInstance(result, terse.RunMismatch)
            self.assertRegex(str(result), "worker [01] is at outer step 0, or has other weights")
        self.assertTrue(torch.equal(weights(models[0]), before))

    def test_bytes_that_no_worker_sent_are_refused(self):
        model = make_model()
        for change, message in ((lambda own: [own, b"short"], "worker 1 sent 5 bytes"),
                                (lambda own: [own[:-1] + bytes([own[-1] ^ 1])], "worker 0's message was changed on its way")):
            outer = OuterOptimizer(model, exchange=change)
            before = weights(model)
            with self.assertRaisesRegex(terse.MalformedMessage, message):
                outer.step()
            self.assertTrue(torch.equal(weights(model), before))
            self.assertIsNone(outer._feedback.pending)


def worker_process(rank, port, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=WORKERS)
    model, data = make_model(), make_data(rank + 1)
    outer = OuterOptimizer(model, codec=terse.codecs.sbc(density=0.05), seed=7)
    for _ in range(3):
        learn(model, data)
        outer.step()
    torch.save(weights(model), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


class Processes(unittest.TestCase):
    def test_processes_of_torch_distributed_agree_with_threads(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(worker_process, args=(port, folder), nprocs=WORKERS)
            of_processes = [torch.load(f"{folder}/{rank}.pt") for rank in range(WORKERS)]
        self.assertTrue(torch.equal(*of_processes))
        table = Table()
        models = [make_model() for _ in range(WORKERS)]
        outers = [OuterOptimizer(model, codec=terse.codecs.sbc(density=0.05), exchange=table.of(i), seed=7, worker=i)
                  for i, model in enumerate(models)]
        torch.set_num_threads(1)
        for _ in range(3):
            for model, seed in zip(models, (1, 2)):
                learn(model, make_data(seed))
            together(*[outer.step for outer in outers])
        self.assertTrue(torch.equal(weights(models[0]), of_processes[0]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
