"""Codecs in Python: the table, the bytes, feedbacks and histories. codecs_arrays_test.py has arrays and threads.

usage: codecs_test.py     (run by ctest)
"""
import sys
import unittest

import numpy as np

import terse
from codec_cases import (GOLDEN_KEY, all_codecs, flipped, golden_packed, golden_updates, join, readme_settings, same_bits, split,
                         update)
from terse import _codecs, codecs

CODECS = all_codecs()
OWN_FEEDBACK = dict(_codecs.table())
# Another value for every setting that a row of the table may read.
OTHERS = {"density": 0.3, "mean_precision": "bf16", "positions": "fixed16", "bits": 6, "bucket": 64, "threshold": 0.001, "samples": 0.5,
          "sampling_step": 0.9, "momentum": 0.3, "clip": 0.01, "warmup_rounds": 9, "counts": "equal"}
CODES = {"mcgq": "positions", "random_sparse": "unbiased"}  # another value of `code`; elsewhere "elias"
COMMON = {"grouping", "merge_below", "feedback", "decay"}  # what every codec obeys


def messages(codec, rounds=4):
    """What a client sends, in rounds whose updates are all applied."""
    feedback = codec.feedback(update(0), seed=7, client=3)
    sent = []
    for r in range(rounds):
        sent.append(feedback.compress(update(r)))
        feedback.settle()
    return sent


class Table(unittest.TestCase):
    def test_every_row_is_in_python_and_the_other_way_round(self):
        self.assertEqual(list(CODECS), [name for name, _ in _codecs.table()])
        self.assertEqual(set(CODECS), set(readme_settings()))

    def test_settings_are_those_of_the_document(self):
        for name, codec in CODECS.items():
            self.assertEqual(set(codec.settings), readme_settings()[name], name)

    def test_defaults_are_those_of_the_library(self):
        for name, codec in CODECS.items():
            for setting, value in codec.settings.items():
                if (name, setting) == ("dgc", "density"):
                    self.assertEqual(value, 0.001)  # of the paper, section 3.3
                else:
                    self.assertEqual(value, _codecs.default_settings()[setting], (name, setting))

    def test_every_setting_changes_what_is_sent_and_no_other_does(self):
        self.assertEqual(set(_codecs.default_settings()), {*OTHERS, *COMMON, "code"})
        for name, codec in CODECS.items():
            plain = messages(codec)
            for setting, value in {**OTHERS, "code": CODES.get(name, "elias")}.items():
                base, expected = (codec.with_settings(code="positions"), None) if (name, setting) == ("mcgq", "positions") else (codec, plain)
                changed = messages(base.with_settings(**{setting: value})) != (expected or messages(base))
                self.assertEqual(changed, setting in codec.settings, (name, setting))

    def test_common_settings(self):
        self.assertNotEqual(messages(codecs.sbc().with_settings(grouping="global")), messages(codecs.sbc()))
        self.assertNotEqual(messages(codecs.sbc().with_settings(decay=0.5)), messages(codecs.sbc()))
        self.assertNotEqual(messages(codecs.sbc().with_settings(feedback="none")), messages(codecs.sbc()))

    def test_what_is_wrong_with_a_setting(self):
        for settings, words in (({"density": 7}, "codec.density is 7; sbc needs a fraction above 0"),
                                ({"density": "much"}, "codec.density takes a number"), ({"density": True}, "codec.density takes a number"),
                                ({"merge_below": 1.5}, "codec.merge_below takes a whole number"), ({"positions": 3}, "codec.positions takes a string"),
                                ({"dense": 1}, "codec.dense is no setting; the settings are density, "),
                                ({"feedback": "never"}, "codec.feedback is 'never'; known feedbacks are")):
            with self.assertRaisesRegex(terse.CodecError, words):
                codecs.sbc().with_settings(**settings).encode(update(0))
        with self.assertRaisesRegex(terse.CodecError, "codec.name is 'zip'; known codecs are sbc, "):
            codecs.Codec("zip", {}).encode(update(0))


class Bytes(unittest.TestCase):
    def test_golden_messages(self):
        checked = 0
        for name, codec, sizes, buffers, flat, message, decoded in golden_updates():
            model = split(flat, sizes)
            self.assertEqual(codec.encode(model, buffers=buffers, **GOLDEN_KEY).hex(), message.hex(), name)
            self.assertTrue(same_bits(join(codec.decode(message, model, buffers=buffers)), decoded), name)
            shapes = {tensor: array.shape for tensor, array in model.items()}
            self.assertTrue(same_bits(join(codec.decode(message, shapes, buffers=buffers)), decoded), name)
            if len(sizes) == 1:
                self.assertEqual(codec.encode(flat, **GOLDEN_KEY), message, name)
                self.assertTrue(same_bits(codec.decode(message, flat), decoded), name)
            checked += 1
        self.assertGreater(checked, 250)

    def test_every_row_decodes_its_message(self):
        model = update(1)
        for name, codec in CODECS.items():
            message = codec.encode(model)
            decoded = codec.decode(message, model)
            self.assertEqual(list(decoded), list(model))
            for tensor, array in decoded.items():
                self.assertEqual((array.dtype, array.shape), (np.float32, model[tensor].shape), name)
            self.assertEqual(len(message), 1 + (codec.cost_bits(model) + 7) // 8, name)
            self.assertLessEqual(len(message), codec.max_message_bytes(model), name)
            out = {tensor: np.full_like(array, 2) for tensor, array in model.items()}
            codec.add_decoded(message, out)
            self.assertTrue(same_bits(join(out), join(decoded) + np.float32(2)), name)
            codec.add_decoded(message, out, sign=-1)
            self.assertTrue(same_bits(join(out), (join(decoded) + np.float32(2)) - join(decoded)), name)
        self.assertEqual(join(codecs.dense().decode(codecs.dense().encode(model), model)).tobytes(), join(model).tobytes())

    def test_keys_are_what_draws_depend_on(self):
        codec, model = codecs.qsgd(), update(1)
        made = {codec.encode(model, **key) for key in ({}, {"seed": 1}, {"round": 1}, {"client": 1}, {"client": 2**64 - 1})}
        self.assertEqual(len(made), 5)
        for key in ({"seed": -1}, {"round": 2**64}, {"client": 1.5}):
            with self.assertRaisesRegex(terse.CodecError, "whole number from 0 to below"):
                codec.encode(model, **key)

    def test_cut_off_everywhere(self):
        model = update(2, {"a": (30, 7), "b": (11,)})
        for name, codec in CODECS.items():
            message = codec.encode(model)
            for damaged in [message[:n] for n in range(len(message))] + [message + b"\0"]:
                out = {tensor: array.copy() for tensor, array in model.items()}
                with self.assertRaises(terse.MalformedMessage, msg=(name, len(damaged))):
                    codec.decode(damaged, model)
                with self.assertRaises(terse.MalformedMessage):
                    codec.add_decoded(damaged, out)
                self.assertTrue(same_bits(join(out), join(model)), name)

    def test_every_bit_flipped(self):
        model, refused = update(2, {"a": (30, 7), "b": (11,)}), 0
        for codec in CODECS.values():
            message = codec.encode(model)
            for bit in range(8 * min(len(message), 80)):
                try:
                    self.assertTrue(np.isfinite(join(codec.decode(flipped(message, bit), model))).all())
                except terse.MalformedMessage as error:
                    self.assertRegex(str(error), ".{20}")
                    refused += 1
        self.assertGreater(refused, 500)

    def test_a_message_of_another_codec_or_model(self):
        message = codecs.sbc().encode(update(1))
        with self.assertRaisesRegex(terse.MalformedMessage, "not a message of codec stc .*both ends need the same codec"):
            codecs.stc().decode(message, update(1))
        with self.assertRaises(terse.MalformedMessage):
            codecs.sbc().decode(message, {"conv.weight": (3,)})
        self.assertTrue(issubclass(terse.MalformedMessage, terse.CodecError) and issubclass(terse.CodecError, terse.TerseError))


class Residuals(unittest.TestCase):
    def test_what_is_not_sent_stays(self):
        for name, codec in CODECS.items():
            residual = {tensor: array * 0.5 for tensor, array in update(9).items()}
            before = join(residual)
            if OWN_FEEDBACK[name] != "error_feedback":
                with self.assertRaisesRegex(terse.CodecError, f"'{name}' has the feedback '{OWN_FEEDBACK[name]}', whose memory is no residual"):
                    codec.encode(update(1), residual)
                self.assertTrue(same_bits(join(residual), before))
                continue
            message = codec.encode(update(1), residual)
            total = before + join(update(1))
            self.assertTrue(same_bits(join(residual), total - join(codec.decode(message, update(1)))), name)
            self.assertGreater(np.abs(before - join(residual)).max(), 0)

    def test_they_are_what_the_library_keeps(self):
        for name, own in OWN_FEEDBACK.items():
            for codec in (CODECS[name].with_settings(decay=decay) for decay in (1, 0.75)):
                if own != "error_feedback":
                    continue
                feedback, residual = codec.feedback(update(0), seed=7, client=3), {k: np.zeros_like(v) for k, v in update(0).items()}
                for r in range(4):
                    message = feedback.compress(update(r))
                    feedback.settle()
                    self.assertEqual(codec.encode(update(r), residual, seed=7, round=r, client=3), message, (name, r))
                    self.assertTrue(same_bits(join(residual), join(feedback.residual)), (name, r))

    def test_buffers_travel_exactly_and_leave_nothing(self):
        model = {"mean": np.float32([1, 2]), "weight": update(0)["fc.weight"]}  # the buffer in front
        residual = {name: np.ones_like(array) for name, array in model.items()}
        message = codecs.sbc().encode(model, residual, buffers=["mean"])
        decoded = codecs.sbc().decode(message, model, buffers=["mean"])
        self.assertEqual(list(decoded), ["mean", "weight"])
        self.assertEqual((decoded["mean"].tolist(), residual["mean"].tolist()), ([1, 2], [0, 0]))
        with self.assertRaisesRegex(terse.CodecError, "buffers names 'deviation', which is no tensor"):
            codecs.sbc().encode(model, buffers=["deviation"])

    def test_an_error_changes_nothing(self):
        model, residual = update(0), {name: np.ones_like(array) for name, array in update(0).items()}
        model["fc.weight"][3, 4] = np.nan
        with self.assertRaisesRegex(terse.CodecError, "tensor 'fc.weight', index 124: the update is nan"):
            codecs.sbc().encode(model, residual)
        model["fc.weight"][3, 4] = np.finfo(np.float32).max
        residual["fc.weight"][3, 4] = np.finfo(np.float32).max
        before = join(residual)
        with self.assertRaisesRegex(terse.CodecError, "tensor 'fc.weight', index 124: the update is inf"):
            codecs.sbc().encode(model, residual)
        self.assertTrue(same_bits(join(residual), before))


class Feedbacks(unittest.TestCase):
    def test_every_row_goes_on_from_its_state(self):
        for name, codec in CODECS.items():
            codec = codec.with_settings(warmup_rounds=6)
            feedback = codec.feedback(update(0), seed=7, client=3)
            self.assertEqual(feedback.name, OWN_FEEDBACK[name])
            for r in range(3):
                feedback.compress(update(r))
                feedback.settle(applied=r != 1)
            other = codec.feedback(update(0), seed=7, client=3)
            other.restore(feedback.state())
            self.assertEqual((other.round, other.norm, other.pending), (3, feedback.norm, None), name)
            self.assertEqual(other.compress(update(4)), feedback.compress(update(4)), name)
            third = codec.feedback(update(0), seed=7, client=3)
            third.restore(feedback.state())  # with an update that waits for its verdict
            self.assertEqual(third.pending, feedback.pending)
            third.settle()
            feedback.settle()
            self.assertTrue(same_bits(join(third.residual), join(feedback.residual)), name)
            self.assertEqual(third.compress(update(5)), feedback.compress(update(5)), name)

    def test_a_state_that_is_none(self):
        feedback = codecs.sbc().feedback(update(0))
        feedback.compress(update(0))
        state = feedback.state()
        before = join(feedback.residual)
        for damaged in (b"", state[:-1], state + b"\0", flipped(state, 8 * 40), b"x" + state[1:]):
            with self.assertRaisesRegex(terse.CodecError, "no state of a feedback, or not all of one; restore what"):
                feedback.restore(damaged)
        with self.assertRaisesRegex(terse.CodecError, "the stored state has 2920 numbers, the run's feedback 5"):
            codecs.sbc().feedback(np.zeros(5, np.float32)).restore(state)
        self.assertTrue(same_bits(join(feedback.residual), before))

    def test_verdicts(self):
        feedback = codecs.sbc().feedback(update(0))
        with self.assertRaisesRegex(terse.CodecError, "no update is pending, so there is nothing to settle"):
            feedback.settle()
        message = feedback.compress(update(0))
        with self.assertRaisesRegex(terse.CodecError, "an update is pending; settle it before"):
            feedback.compress(update(1))
        self.assertEqual((feedback.pending, feedback.round), (message, 1))
        feedback.settle(applied=False)
        self.assertTrue(same_bits(join(feedback.residual), join(update(0))))
        self.assertAlmostEqual(feedback.reset(), float(np.linalg.norm(join(update(0)).astype(np.float64))), 9)
        self.assertEqual((feedback.norm, feedback.reset()), (0, 0))

    def test_momentum_is_signums(self):
        codec, kept = codecs.signum(momentum=0.75), np.zeros_like(join(update(0)))
        feedback = codec.feedback(update(0))
        for r in range(3):
            message = feedback.compress(update(r))
            kept = np.float32(0.75) * kept + np.float32(0.25) * join(update(r))
            self.assertTrue(np.array_equal(join(codec.decode(message, update(0))), np.where(kept < 0, -1, 1)))
            feedback.settle()
            self.assertTrue(np.allclose(join(feedback.residual), kept, rtol=1e-6, atol=0))

    def test_one_array_alone(self):
        array = update(3)["fc.weight"]
        feedback = codecs.top_k().feedback(array)
        message = feedback.compress(array)
        feedback.settle()
        self.assertTrue(same_bits(feedback.residual, array - codecs.top_k().decode(message, array)))


class Histories(unittest.TestCase):
    def test_golden_packed_messages(self):
        history, message, checked = None, b"", {"packed": 0, "state": 0}
        for kind, value in golden_packed():
            if kind == "case":
                chosen, like, buffers = value
                # Runs that choose between several codecs are the library's alone.
                history = chosen[0].history(like, buffers=buffers) if len(chosen) == 1 else None
            elif kind == "message":
                message = value
            elif history is None:
                continue
            elif kind == "packed":
                self.assertEqual(history.pack(message).hex(), value.hex())
                self.assertEqual(history.unpack(value), message)
                history.add(message)
            else:
                self.assertEqual(history.state(), value)
                history = chosen[0].history(like, buffers=buffers)
                history.restore(value)
            if kind in checked:
                checked[kind] += 1
        self.assertGreater(checked["packed"], 10)
        self.assertGreater(checked["state"], 4)

    def test_what_cannot_be_packed(self):
        with self.assertRaisesRegex(terse.CodecError, "codec 'qsgd' sends no positions that a history could pack"):
            codecs.qsgd().history(update(0))
        history = codecs.sbc(positions="shared").history(update(0))
        for call in (history.pack, history.unpack, history.add):
            with self.assertRaises(terse.MalformedMessage):
                call(b"\x04nonsense")
        with self.assertRaisesRegex(terse.CodecError, "history of updates in another format"):
            history.restore(b"nonsense")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])  # ctest names a folder, which is not needed here
