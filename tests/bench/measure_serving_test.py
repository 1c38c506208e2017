"""A coordinator serves the store that terse-long-store-bench makes, and its rounds go on.

measure_serving_test.py --bin build/release/bin
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROUNDS, CLIENTS, REQUESTS, MORE_ROUNDS = 30, 8, 3, 5
SCRIPT = pathlib.Path(__file__).parents[2] / "bench" / "measure_serving.py"


class MeasureServingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.state = f"{directory.name}/state"
        subprocess.run([f"{OPTIONS.bin}/terse-long-store-bench", cls.state, str(ROUNDS), str(CLIENTS)], check=True,
                       capture_output=True, timeout=240)

    def measure(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, self.state, "--bin", OPTIONS.bin, "--requests", str(REQUESTS),
                               "--rounds", str(MORE_ROUNDS), "--starts", "1", "--blocks", "1", "--json", *arguments],
                              capture_output=True, text=True, timeout=240)

    def test_lists_all_clients_while_their_rounds_go_on(self):
        done = self.measure("--clients", str(CLIENTS), "--connect", str(CLIENTS))
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = json.loads(done.stdout)
        for name in ["start_from_disk", "start"]:
            self.assertGreater(figures[name]["s"], 0)
            self.assertGreater(figures[name]["processor_s"], 0)
        for name in ["fresh", "cached", "tersectl"]:
            self.assertEqual(figures[name]["count"], REQUESTS)
            self.assertGreater(figures[name]["p99_ms"], 0)
        for name in ["rounds_alone", "rounds_and_page", "rounds_and_tersectl"]:
            self.assertGreaterEqual(figures[name]["rounds"]["count"], MORE_ROUNDS)
            self.assertGreater(figures[name]["rounds"]["p50_ms"], 0)
        self.assertGreaterEqual(figures["rounds_and_page"]["asked"]["count"], REQUESTS)
        self.assertNotIn("asked", figures["rounds_alone"])

    def test_a_client_that_is_not_listed_is_missed(self):
        done = self.measure("--clients", str(CLIENTS + 1), "--connect", "0")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"the list has {CLIENTS} clients, not {CLIENTS + 1}", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the executables")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
