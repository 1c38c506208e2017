"""terse.lightning with Lightning: two clients' Trainers train through a coordinator's rounds to the end.

usage: lightning_test.py BIN     (run by ctest, which skips it without Lightning; tests/frameworks.sh installs that)
"""
import sys
import unittest

import framework_cases as cases

BIN = sys.argv.pop(1)


class Lightning(cases.Checks, unittest.TestCase):
    binaries, member, prefix = BIN, "lightning_member.py", "net."
    names = {"loss": "val/loss", "accuracy": "val/accuracy", "weighed": True}

    def wrapped(self, model):
        module = cases.torch.nn.Module()
        module.net = model
        return module

    def expect_own_metrics(self, metrics):
        """Those that are logged in each step, and none of those of an epoch."""
        self.assertEqual(sorted(set(metrics[metrics["kind"] == "training"]["name"])), ["accuracy"])
        self.assertEqual(sorted(set(metrics[metrics["kind"] == "evaluation"]["name"])), ["val/accuracy", "val/loss"])


if __name__ == "__main__":
    cases.skip_without("lightning")
    unittest.main()
