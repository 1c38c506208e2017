"""terse.huggingface with transformers: two clients' Trainers train through a coordinator's rounds to the end.

usage: huggingface_test.py BIN     (run by ctest, which skips it without them; tests/frameworks.sh installs them)
"""
import sys
import unittest

import framework_cases as cases

BIN = sys.argv.pop(1)


def learning_rate_after(step):
    return 0.01 / (1 + step / 10)


class HuggingFace(cases.Checks, unittest.TestCase):
    binaries, member = BIN, "huggingface_member.py"
    names = {"loss": "eval_loss", "accuracy": "eval_accuracy", "weighed": False}

    def expect_own_metrics(self, metrics):
        """The Trainer logs after every second step, and after the third of a round. Later releases have a grad_norm too."""
        names = set(metrics[metrics["kind"] == "training"]["name"]) - {"grad_norm"}
        self.assertEqual(sorted(names), ["accuracy", "learning_rate"])
        self.assertEqual(sorted(set(metrics[metrics["kind"] == "evaluation"]["name"])), ["eval_accuracy", "eval_loss"])
        rates = metrics[(metrics["client_name"] == "m0") & (metrics["name"] == "learning_rate")]
        self.assertAlmostEqual(rates["value"][0], (2 * learning_rate_after(2) + learning_rate_after(3)) / 3, 9)
        self.assertAlmostEqual(rates["value"][1], (learning_rate_after(4) + 2 * learning_rate_after(6)) / 3, 9)


if __name__ == "__main__":
    cases.skip_without("transformers", "accelerate")
    unittest.main()
