"""Models of torch in runs: what travels, what stays, and what becomes of the optimizer.

usage: torch_test.py BIN     (run by ctest)
"""
import os
import sys
import unittest

import numpy as np
import torch

import terse
from fleet import Fleet, SOURCE, end
from terse import _models, _optimizers

BIN = sys.argv.pop(1)


class Adapted(torch.nn.Module):
    """A frozen layer, an adapter whose weight has two names, and a normalisation."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.base = torch.nn.Linear(4, 4)
        self.base.requires_grad_(False)
        self.adapter = torch.nn.Linear(4, 4, bias=False)
        self.norm = torch.nn.BatchNorm1d(4)
        self.tied = self.adapter.weight


class Models(unittest.TestCase):
    def test_only_what_requires_a_gradient_travels_and_buffers_of_floats(self):
        names = [(e.name, e.shape, e.kind) for e in _models.adapt(Adapted()).entries()]
        self.assertEqual(names, [("tied", (4, 4), "parameter"), ("norm.weight", (4,), "parameter"),
                                 ("norm.bias", (4,), "parameter"), ("norm.running_mean", (4,), "buffer"),
                                 ("norm.running_var", (4,), "buffer")])

    def test_buffers_stay_where_the_run_says_so(self):
        entries = _models.adapt(Adapted(), with_buffers=False).entries()
        self.assertNotIn("buffer", [e.kind for e in entries])

    def test_values_come_and_go_in_any_type(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            model = torch.nn.Linear(3, 2).to(dtype)
            adapted = _models.adapt(model)
            flat = np.arange(8, dtype=np.float32)
            adapted.load(flat)
            self.assertEqual(model.bias.dtype, dtype)
            self.assertEqual(model.bias.tolist(), [6, 7])
            back = np.zeros(8, dtype=np.float32)
            adapted.store(back)
            np.testing.assert_array_equal(back, flat)

    def test_a_model_of_bfloat16_shares_its_vectors_so(self):
        model = torch.nn.Linear(3, 2).to(torch.bfloat16)
        adapted = _models.adapt(model, share_memory=True)
        self.assertEqual((adapted.dtype, adapted.result, adapted.in_place), ("bfloat16", "weights", True))
        flat = torch.arange(8).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
        adapted.load(flat)
        self.assertEqual(model.bias.tolist(), [6, 7])
        model.bias.data.add_(1)
        self.assertEqual(flat[6:].tolist(), [0x40e0, 0x4100])  # 7 and 8, in place
        adapted.store_result(flat)
        self.assertEqual(flat[6:].tolist(), [0x40e0, 0x4100])
        weights = np.zeros(8, dtype=np.float32)  # of a run's start file
        adapted.store(weights)
        self.assertEqual(weights.tolist(), [0, 1, 2, 3, 4, 5, 7, 8])

    def test_what_rounding_did_at_loading_is_no_change(self):
        model = torch.nn.Linear(3, 2)
        model.weight.data = model.weight.data.half()
        adapted = _models.adapt(model)
        self.assertEqual((adapted.dtype, adapted.result), ("float32", "delta"))
        adapted.load(np.full(8, 1 + 2.0 ** -12, dtype=np.float32))  # float16 has no such number
        model.bias.data += 0.5
        delta = np.full(8, 9, dtype=np.float32)
        adapted.store_result(delta)
        self.assertEqual(delta.tolist(), [0] * 6 + [0.5] * 2)
        adapted.store(delta)
        self.assertEqual(delta.tolist(), [1] * 6 + [np.float32(1.5 + 2.0 ** -12)] * 2)

    def test_a_model_lies_in_the_shared_memory_and_may_leave_it(self):
        model = torch.nn.Linear(3, 2)
        adapted = _models.adapt(model, share_memory=True)
        self.assertTrue(adapted.in_place)
        flat = np.arange(8, dtype=np.float32)
        adapted.load(flat)
        model.bias.data.add_(1)
        self.assertEqual(flat[6:].tolist(), [7, 8])
        model.bias.data = torch.tensor([1.0, 2.0])  # the user's own memory
        adapted.store(flat)
        self.assertEqual(flat[6:].tolist(), [1, 2])
        other = np.zeros(8, dtype=np.float32)  # of another client
        adapted.store(other)
        np.testing.assert_array_equal(other, flat)
        self.assertFalse(_models.adapt(torch.nn.Linear(3, 2).half(), share_memory=True).in_place)
        self.assertFalse(_models.adapt(model, share_memory=False).in_place)

    def test_what_is_no_model_is_refused(self):
        with self.assertRaisesRegex(terse.RunMismatch, "not int"):
            _models.adapt(3)
        frozen = torch.nn.Linear(2, 2).requires_grad_(False)
        with self.assertRaisesRegex(terse.RunMismatch, "no parameter that requires a gradient"):
            _models.adapt(frozen)

    def test_momentum_is_masked_at_flat_positions(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        for optimizer in (torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), torch.optim.Adam(model.parameters())):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            _optimizers.mask_momentum(optimizer, _models.adapt(model), np.array([1, 4, 8]))
            key = "momentum_buffer" if isinstance(optimizer, torch.optim.SGD) else "exp_avg"
            moments = torch.cat([optimizer.state[p][key].reshape(-1) for p in model.parameters()])
            self.assertEqual((moments == 0).nonzero().reshape(-1).tolist(), [1, 4, 8])

    def test_the_start_file_is_what_safetensors_say(self):
        run = terse.Run("r", model=Adapted(), codec=terse.codecs.sbc(), rounds=1, clients=1)
        data = run.start_file()
        size = int.from_bytes(data[:8], "little")
        self.assertEqual((8 + size) % 8, 0)
        values = np.frombuffer(data[8 + size:], dtype="<f4")
        np.testing.assert_array_equal(values[:16], Adapted().adapter.weight.detach().numpy().reshape(-1))


class NarrowTypes(unittest.TestCase):
    """Clients that train with bfloat16 and float16 leave weights that they do not change as they were, bit for bit."""

    def test_a_run_keeps_what_nobody_changed(self):
        start = {"weight": np.full((8, 16), 1 + 2.0 ** -12, dtype=np.float32), "bias": np.full(8, 1 / 3, dtype=np.float32)}
        with Fleet(BIN) as fleet:
            fleet.start_coordinator()
            run = terse.Run("narrow", model=start, codec=terse.codecs.dense(), rounds=3, clients=2,
                            settings={"rounds": {"quorum": 2, "deadline_seconds": 60}})
            run.create(str(fleet.folder / "run"), admin=fleet.admin)
            members = [fleet.python(name, "narrow_member.py", fleet.address, fleet.folder / name, name)
                       for name in ("bfloat16", "float16")]
            for name, member in zip(("bfloat16", "float16"), members):
                self.assertEqual(end(member), 0, fleet.log(name))
            weights = fleet.weights()
        self.assertEqual(weights["weight"][0, 0], start["weight"][0, 0] + 3)
        weights["weight"][0, 0] = start["weight"][0, 0]
        for name, values in start.items():
            np.testing.assert_array_equal(weights[name], values)


class Quickstart(unittest.TestCase):
    """The example learns, and its optimizer goes on where a killed process stopped."""

    def test_two_clients_learn_what_neither_could_alone(self):
        examples = SOURCE / "python" / "examples"
        # At a port nobody may bring code; such a model is none.
        with Fleet(BIN, admin="127.0.0.1:0") as fleet:
            fleet.start_coordinator()
            os.environ["PYTHONPATH"] = os.environ.get("PYTHONPATH", "") + f":{examples}"
            create = fleet.start("create", sys.executable, examples / "create_run.py", fleet.admin, fleet.folder / "run")
            self.assertEqual(end(create), 0, fleet.log("create"))
            members = {str(seed): fleet.start(str(seed), sys.executable, examples / "quickstart.py", fleet.address,
                                              fleet.folder / str(seed), seed) for seed in (1, 2)}
            fleet.wait_for_version(20)
            members["1"].kill()
            members["1"].wait()
            members["1"] = fleet.start("1", sys.executable, examples / "quickstart.py", fleet.address, fleet.folder / "1", 1)
            scores = []
            for name, member in members.items():
                self.assertEqual(end(member), 0, fleet.log(name))
                self.assertIn("all rounds are done", fleet.log(name))
                scores.append(float(fleet.log(name).split("right about ")[1].split("%")[0]))
            self.assertEqual(scores[0], scores[1])
            self.assertGreater(scores[0], 90)

    def test_the_quickstart_is_as_short_as_promised(self):
        text = (SOURCE / "python" / "examples" / "quickstart.py").read_text()
        code = [line for line in text.splitlines() if line.strip() and not line.startswith(('"""', "#"))]
        self.assertLessEqual(len(code), 20)


if __name__ == "__main__":
    unittest.main()
