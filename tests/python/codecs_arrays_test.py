"""Codecs and the arrays that Python hands them: torch, what is refused, memory that is not copied, threads.

usage: codecs_arrays_test.py     (run by ctest)
"""
import os
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
import torch

import terse
from codec_cases import all_codecs, join, same_bits, update
from fleet import SOURCE
from terse import codecs

SBC = codecs.sbc(density=0.1)


class OnDevice:
    """An array in the memory of a CUDA device, as far as a codec looks."""

    shape = (3,)

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise AssertionError("it is refused before it is exported")


class Torch(unittest.TestCase):
    def test_tensors_are_like_arrays(self):
        arrays = update(1)
        tensors = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in arrays.items()}
        residual = {name: torch.zeros_like(tensor) for name, tensor in arrays_to_tensors(arrays).items()}
        for codec in all_codecs().values():
            message = codec.encode(tensors)
            self.assertEqual(message, codec.encode(arrays))
            decoded = codec.decode(message, tensors)
            self.assertTrue(all(isinstance(tensor, torch.Tensor) for tensor in decoded.values()))
            self.assertTrue(same_bits(join(to_numpy(decoded)), join(codec.decode(message, arrays))))
        message = SBC.encode(tensors, residual)
        self.assertTrue(same_bits(join(to_numpy(residual)), join(arrays) - join(SBC.decode(message, arrays))))
        SBC.add_decoded(message, residual)
        self.assertTrue(np.allclose(join(to_numpy(residual)), join(arrays)))
        self.assertIsInstance(SBC.feedback(tensors).residual["fc.weight"], torch.Tensor)

    def test_a_module(self):
        module = torch.nn.Linear(4, 3)
        before = module.weight.detach().clone()
        message = codecs.dense().encode(dict(module.named_parameters()))
        codecs.dense().add_decoded(message, dict(module.named_parameters()))
        self.assertTrue(torch.equal(module.weight, 2 * before))


def arrays_to_tensors(arrays):
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def to_numpy(tensors):
    return {name: tensor.detach().numpy() for name, tensor in tensors.items()}


class Refused(unittest.TestCase):
    def check(self, array, words, call=None):
        call = call or (lambda value: SBC.encode({"fc": value}))
        with self.assertRaisesRegex(terse.CodecError, words):
            call(array)

    def test_other_numbers(self):
        numbers = torch.zeros(3)
        for array, name in ((numbers.half(), "float16"), (numbers.bfloat16(), "bfloat16"), (numbers.double(), "float64"), (numbers.int(), "int32"),
                            (numbers.to(torch.complex64), "complex64"), (np.zeros(3, np.uint8), "uint8"), (np.zeros(3), "float64")):
            self.check(array, f"^tensor 'fc' of the update holds {name}; codecs take float32: convert it, with ")
        self.check(np.zeros(3, ">f4"), "tensor 'fc' of the update is no array that can be read here")
        self.check(torch.sparse_coo_tensor([[0]], [1.0], (3,)), "tensor 'fc' of the update is no array that can be read here but a torch.Tensor")

    def test_other_memory(self):
        self.check(OnDevice(), r"tensor 'fc' of the update is on a device \(cuda\); copy it to the CPU, such as with .cpu\(\)")
        self.check(torch.zeros(3, device="meta"), "tensor 'fc' of the update cannot be handed over: .*meta.*; copy it to the CPU")
        for array in (np.zeros((3, 4), np.float32).T, np.zeros(6, np.float32)[::2], np.zeros(6, np.float32)[::-1], torch.zeros(3, 4).t(),
                      np.broadcast_to(np.float32(1), (3,))):
            self.check(array, r"tensor 'fc' of the update does not lie in one piece; pass numpy.ascontiguousarray\(array\), or ")
        self.check(np.zeros(17, np.uint8)[1:].view(np.float32), "tensor 'fc' of the update is not aligned to 4 bytes; pass a copy")
        self.assertEqual(SBC.encode(np.zeros((1, 6, 2), np.float32)[:, ::6]), SBC.encode(np.zeros((1, 1, 2), np.float32)))

    def test_what_is_no_array(self):
        for value in (None, "text", 3.5, [1.0]):
            self.check(value, "tensor 'fc' is a .*; pass an array")
        self.check((3, 4), "tensor 'fc' of the update is no array that can be read here but a tuple")
        self.check(np.zeros((0, 3), np.float32), r"tensor 'fc' has the unusable shape \[0, 3\]")
        with self.assertRaisesRegex(terse.CodecError, "a model needs at least one trainable tensor"):
            SBC.encode({})
        with self.assertRaises(TypeError):
            SBC.decode("text", update(0))

    def test_not_finite(self):
        for value in (np.nan, np.inf, -np.inf):
            for codec in all_codecs().values():
                model = update(0)
                model["fc.weight"][1, 2] = value
                self.check(model, f"tensor 'fc.weight', index 42: the update is {value}", codec.encode)

    def test_arrays_that_cannot_be_written(self):
        model = update(0)
        fixed = {name: array.copy() for name, array in model.items()}
        fixed["conv.bias"].flags.writeable = False
        message = SBC.encode(fixed)
        self.assertEqual(message, SBC.encode(model))
        for call, role in ((lambda: SBC.encode(model, fixed), "residual"), (lambda: SBC.add_decoded(message, fixed), "output")):
            with self.assertRaisesRegex(terse.CodecError, f"tensor 'conv.bias' of the {role} is read-only; pass an array that can be written"):
                call()

    def test_another_structure(self):
        model = update(0)
        for other, words in (({"conv.weight": model["conv.weight"]}, "the residual has no tensor '(conv.bias|fc.weight)'; both ends need the same model"),
                             ({**model, "more": model["conv.bias"]}, "the residual has a tensor 'more', which the model has not"),
                             ({**model, "fc.weight": model["conv.bias"]}, r"tensor 'fc.weight' of the residual has the shape \[20\], not \[60, 40\]"),
                             (model["conv.bias"], "the residual is a ndarray; pass a mapping with the model's 3 tensors")):
            with self.assertRaisesRegex(terse.CodecError, words):
                SBC.encode(model, other)
        with self.assertRaisesRegex(terse.CodecError, "the update has no tensor"):
            SBC.feedback(model).compress({"conv.weight": model["conv.weight"]})
        with self.assertRaisesRegex(terse.CodecError, "buffers are tensors of a mapping; one array alone has none"):
            SBC.encode(model["conv.bias"], buffers=["x"])
        with self.assertRaisesRegex(terse.CodecError, "sign is 2; it is 1 or -1"):
            SBC.add_decoded(SBC.encode(model), model, sign=2)


# How far the process's memory grows while an update of 64 MB is coded, in parts of the update.
GROWTH = """
import resource, numpy, torch
from terse import codecs
size = 1 << 24
flat = numpy.ones(size, dtype=numpy.float32)
flat[::1000] = 2
cases = {"array": flat, "tensor": torch.from_numpy(flat), "parts": {"a": flat[:999], "b": flat[999:]},
         "scattered": {"b": flat[1:], "a": flat[:1]}}
codecs.signsgd().encode(numpy.ones(3, dtype=numpy.float32))
for name, update in cases.items():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    message = codecs.signsgd().encode(update)
    print(name, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / (4 * size))
"""


class Memory(unittest.TestCase):
    def test_the_update_is_not_copied(self):
        done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True)
        growth = {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines()}
        for name in ("array", "tensor", "parts"):
            self.assertLess(growth[name], 0.3, growth)  # the message is 1/32
        self.assertGreater(growth["scattered"], 0.7, growth)  # a copy is seen


class Threads(unittest.TestCase):
    def test_others_run_during_a_call(self):
        """A thread that notes the time again and again does so in the middle half of every kind of call."""
        array = np.random.default_rng(0).standard_normal(1 << 23).astype(np.float32)
        out, feedback, message = np.zeros_like(array), codecs.dense().feedback(array), codecs.dense().encode(array)
        packed = codecs.strom(threshold=0.5)
        positions = packed.encode(array)
        calls = {"encode": lambda: codecs.mcgq(samples=1).encode(array), "residual": lambda: codecs.stc().encode(array, np.zeros_like(array)),
                 "decode": lambda: codecs.dense().decode(message, array), "add": lambda: codecs.dense().add_decoded(message, out),
                 "cost": lambda: codecs.qsgd().cost_bits(array), "pack": lambda: packed.history(array).pack(positions)}
        noted, ended = [], threading.Event()

        def note():
            while not ended.is_set():
                noted.append(time.monotonic())
                time.sleep(0.0002)

        watcher = threading.Thread(target=note)
        watcher.start()
        try:
            # A busy machine may keep the watcher from running; the GIL would do so every time.
            for name, call in calls.items():
                self.assertTrue(any(self.ran_inside(call, noted) for _ in range(10)), name)
            inside = {"compress": False, "settle": False}
            for _ in range(10):
                inside["compress"] |= self.ran_inside(lambda: feedback.compress(array), noted)
                inside["settle"] |= self.ran_inside(feedback.settle, noted)
            self.assertEqual(inside, {"compress": True, "settle": True})
        finally:
            ended.set()
            watcher.join()

    @staticmethod
    def ran_inside(call, noted):
        begin = time.monotonic()
        call()
        quarter = (time.monotonic() - begin) / 4
        return any(begin + quarter < at < begin + 3 * quarter for at in noted[-100000:])

    def test_one_codec_in_many_threads(self):
        made, model = [], update(0)
        expected = [SBC.encode(update(n)) for n in range(8)]

        def work(n):
            for _ in range(30):
                residual = {name: np.zeros_like(array) for name, array in model.items()}
                made.append(SBC.encode(update(n), residual) == expected[n])
                made.append(same_bits(join(residual), join(update(n)) - join(SBC.decode(expected[n], model))))

        run_all(work, 8)
        self.assertEqual((len(made), all(made)), (480, True))

    def test_one_feedback_in_many_threads(self):
        feedback, outcomes = codecs.dense().feedback(update(0)), []

        def work(n):
            for _ in range(50):
                try:
                    outcomes.append(len(feedback.compress(update(n))))
                    feedback.settle()
                except terse.CodecError as error:
                    outcomes.append(str(error))
                feedback.state(), feedback.norm, feedback.residual  # noqa: B018, reading is what is tried

        run_all(work, 4)
        self.assertEqual(len([o for o in outcomes if isinstance(o, int)]) + len([o for o in outcomes if "pending" in str(o)]), len(outcomes))
        self.assertIn(1 + 4 * join(update(0)).size, outcomes)


def run_all(work, count):
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class WithoutTheExtension(unittest.TestCase):
    def test_the_package_imports_and_codecs_say_what_is_missing(self):
        program = "import terse, numpy; terse.codecs.sbc().encode(numpy.zeros(3, numpy.float32))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(SOURCE / "python")})
        self.assertRegex(done.stderr, r"CodecError: codecs need the extension module terse._codecs, which is not there \(.*\); install the package")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])  # ctest names a folder, which is not needed here
