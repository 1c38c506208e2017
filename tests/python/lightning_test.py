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

    def expect_of_killed(self, fleet, metrics):
        """Validations after every second step are reported where they begin with a round, every second one."""
        self.assertEqual(fleet.log("m1").count("an evaluation in the middle of round 1 is not reported"), 1)
        reported = metrics[(metrics["client_name"] == "m1") & (metrics["name"] == "val/loss")]
        self.assertEqual(reported["round"].tolist(), list(range(3, 41, 2)))


if __name__ == "__main__":
    cases.skip_without("lightning")
    unittest.main()
