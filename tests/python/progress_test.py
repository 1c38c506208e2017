"""A client that is asked to stop in the middle of a long training: with round.progress it gives the round up, in order.

usage: progress_test.py BIN     (run by ctest)
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

import numpy as np

import terse
from fleet import Fleet, HERE, end, environment, wait_until

BIN = pathlib.Path(sys.argv.pop(1))
STEPS = 70  # of 0.1 s: more than the 5 seconds that a client waits for a trainer when it is asked to stop
STOPPED = "member: the client process was stopped before the run was over; join again to go on"


class Progress(unittest.TestCase):
    def stop_in_a_round(self, how):
        """Stops the client of a member at its fifth step. Returns the seconds to its end, its log, and what came of another."""
        with Fleet(BIN) as fleet:
            fleet.start_coordinator()
            terse.Run("slow", model={"w": np.zeros(50, dtype=np.float32)}, codec=terse.codecs.sbc(density=0.1), rounds=2,
                      clients=1, local_steps=STEPS).create(str(fleet.folder / "run"), admin=fleet.admin)
            member = fleet.python("member", "slow_member.py", fleet.address, fleet.folder / "state-a", 0.1, how)
            wait_until(lambda: (fleet.folder / "member.log").exists() and "step 5 of round 1" in fleet.log("member"), "step 5")
            begun = time.monotonic()
            os.kill(int(re.search(r"process (\d+) is the client", fleet.log("member")).group(1)), signal.SIGTERM)
            self.assertEqual(end(member), 0, fleet.log("member"))
            seconds, log = time.monotonic() - begun, fleet.log("member")
            self.assertEqual(fleet.version(), 0, log)
            again = fleet.python("again", "slow_member.py", fleet.address, fleet.folder / "state-a", 0, how)
            self.assertEqual(end(again), 0)
            self.assertIn("finished:", fleet.log("again"))
            self.assertEqual(fleet.version(), 2)
            return seconds, log

    def test_with_progress_the_loop_is_left(self):
        seconds, log = self.stop_in_a_round("progress")
        self.assertLess(seconds, 3, log)
        self.assertLess(max(int(step) for step in re.findall(r"step (\d+) of round 1", log)), 30)
        self.assertIn("stopped; the state in", log)
        self.assertNotIn("did not stop within 5 seconds", log)
        self.assertIn(STOPPED, log)

    def test_without_it_the_training_is_for_nothing(self):
        seconds, log = self.stop_in_a_round("silent")
        self.assertGreater(seconds, 5, log)
        self.assertIn(f"step {STEPS} of round 1", log)
        self.assertIn("did not stop within 5 seconds", log)
        self.assertIn(STOPPED, log)

    def test_what_the_conformance_program_says(self):
        command = f"{sys.executable} {HERE / 'attached_member.py'} --slow"
        done = subprocess.run([BIN / "terse-trainer-check", command, "--seconds", "20"], capture_output=True, text=True,
                              env=environment(BIN), check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("ok      stops when asked", done.stdout)


if __name__ == "__main__":
    unittest.main()
