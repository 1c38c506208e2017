"""A run whose clients are Python programs keeps every change exactly once, whatever is killed.

usage: conservation_test.py BIN     (run by ctest)
"""
import json
import sys
import unittest

import numpy as np

import grid_member
import terse
from fleet import Fleet, end

BIN = sys.argv.pop(1)
ROUNDS = 120
SEEDS = {"a": 1, "b": 2}


def expected_weights():
    weights = {name: array.astype(np.float64) for name, array in grid_member.make_model().items()}
    for number in range(1, ROUNDS + 1):
        for seed in SEEDS.values():
            for name, delta in grid_member.change(seed, number).items():
                weights[name] += delta.astype(np.float64) / len(SEEDS)
    return weights


class Conservation(unittest.TestCase):
    def start_run(self, fleet):
        fleet.start_coordinator()
        run = terse.Run("grid", model=grid_member.make_model(), codec=terse.codecs.dense(), rounds=ROUNDS,
                        clients=len(SEEDS), settings={"rounds": {"quorum": len(SEEDS)}, "codec": {"downstream": "dense"}})
        run.create(str(fleet.folder / "run"), admin=fleet.admin)

    def expect_each_change_once(self, fleet):
        want, got = expected_weights(), fleet.weights()
        for name, values in want.items():
            np.testing.assert_array_equal(got[name].astype(np.float64), values)

    def expect_the_same_rounds_in_the_files(self, fleet):
        """terse.open, while the coordinator runs, says what tersectl says."""
        run = terse.open(fleet.run_folder())
        self.assertEqual((run.name, run.state, run.version), ("grid", "finished", ROUNDS))
        rounds, told = run.rounds(), json.loads(fleet.ctl("rounds", "--json"))
        self.assertEqual(len(rounds), len(told))
        for name in ("id", "state", "base_version", "opened_us", "updates", "train_loss", "payload_bytes_up", "wire_bytes_down"):
            self.assertEqual(rounds[name].tolist(), [one[name] for one in told], name)
        self.assertTrue(np.isnan(rounds["accuracy"]).all())
        self.assertEqual(sorted(run.clients()["name"]), sorted(SEEDS))
        with self.assertRaisesRegex(terse.TerseError, "there is no run in .*; below it there are"):
            terse.open(fleet.folder)

    def expect_the_users_bytes_came_back(self, log):
        """A new process begins with what the last durable update of the killed one was stored with."""
        committed = 0
        begun = [line for line in log.splitlines() if line.startswith("begins after")]
        self.assertEqual(len(begun), 2)
        self.assertEqual(begun[0], "begins after None")
        for line in log.splitlines():
            if line == begun[1]:
                break
            if line.startswith("committed"):
                committed = int(line.split()[1])
        # The process may have been killed between an update's becoming durable and the line about it.
        self.assertIn(begun[1], (f"begins after {committed}", f"begins after {committed + 1}"))

    def test_killed_program_client_and_coordinator(self):
        with Fleet(BIN) as fleet:
            self.start_run(fleet)
            programs = {name: fleet.member(name, seed, "--kill-client-at", ROUNDS // 2) for name, seed in SEEDS.items()}
            fleet.wait_for_version(ROUNDS // 6)
            programs["a"].kill()
            programs["a"].wait()
            programs["a"] = fleet.member("a", SEEDS["a"])
            fleet.wait_for_version(ROUNDS // 3)
            fleet.kill_coordinator()
            fleet.start_coordinator()
            for name, program in programs.items():
                self.assertEqual(end(program), 0, fleet.log(name))
                self.assertIn("finished: all rounds are done", fleet.log(name))
            self.assertIn("the client process was ended by signal 9; starting it again", fleet.log("b"))
            again = fleet.member("a", SEEDS["a"])
            self.assertEqual(end(again), 0, fleet.log("a"))
            self.assertEqual(fleet.log("a").count("finished: all rounds are done"), 2)  # a run that is over
            self.expect_each_change_once(fleet)
            self.expect_the_same_rounds_in_the_files(fleet)
            self.expect_the_users_bytes_came_back(fleet.log("a"))
            for name in SEEDS:
                with np.load(fleet.folder / name / "final.npz") as final:
                    for tensor, values in fleet.weights().items():
                        np.testing.assert_array_equal(final[tensor], values)


if __name__ == "__main__":
    unittest.main()
