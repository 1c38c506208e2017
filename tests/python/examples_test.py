"""The examples of the package that no script runs.

usage: examples_test.py BIN     (run by ctest)
"""
import json
import subprocess
import sys
import unittest

import fleet
import terse

BIN = sys.argv.pop(1)
EXAMPLES = fleet.SOURCE / "python/examples"


class Adapters(unittest.TestCase):
    def test_the_adapters_of_a_transformer_travel_alone(self):
        with fleet.Fleet(BIN) as served:
            served.start_coordinator()
            folder = served.folder / "lora"
            environment = {**fleet.environment(BIN), "OMP_NUM_THREADS": "1"}
            made = subprocess.run([sys.executable, EXAMPLES / "lora.py", "create", served.admin, folder, "3"], env=environment,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertIn("the base model is right about", made.stdout)
            members = [served.start(f"m{k}", sys.executable, EXAMPLES / "lora.py", "join", served.address, folder, k) for k in (0, 1)]
            for member in members:
                self.assertEqual(fleet.end(member, 200), 0, served.log("m0") + served.log("m1"))
            status = json.loads(served.ctl("status", "--json"))
            self.assertEqual((status["parameters"], status["version"]), (8192, 3))
            self.assertIn("8192 of 113952 parameters travelled", served.log("m0"))
            self.assertEqual({name.rsplit(".", 1)[1] for name in served.weights()}, {"a", "b"})
            metrics = terse.open(served.run_folder()).metrics()
            self.assertEqual(sorted(set(metrics["name"])), ["accuracy of all", "accuracy of mine"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
