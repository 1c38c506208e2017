"""Tests of totals.py."""

import copy
import json
import pathlib
import tempfile
import unittest

import totals

FLEET = {
    "seed": 7, "settings": "3 clients", "rounds": 40, "checks": 2, "lost": 0, "doubled": 0,
    "kills": {"coordinator": {"at random": 3, "coordinator.close.done": 1}, "relay": {}, "client": {"at random": 5, "client.seal.done": 2}},
    "missed": {"coordinator": {}, "relay": {}, "client": {"client.reset.done": 1}},
    "recovery_ms": {"coordinator": [100.0] * 98 + [900.0] * 2, "relay": [], "client": [50.0]},
    "problems": [],
}
TREE = {**FLEET, "kills": {**FLEET["kills"], "relay": {"at random": 6, "client.seal.done": 1, "relay.commit.done": 2}}}
SIMULATION = {
    "schedules": 500, "power_losses": 30, "rounds_committed": 900, "coordinator_kills": 10, "client_kills": 20,
    "lost": 0, "doubled": 0, "failpoints": {"client.seal.done": 12},
}


class TotalsTest(unittest.TestCase):
    def setUp(self):
        self.totals = totals.empty()

    def test_fleets_and_simulations_add_up(self):
        totals.add_fleet(self.totals, FLEET)
        totals.add_fleet(self.totals, {**FLEET, "seed": 9, "lost": 2, "doubled": 1})
        totals.add_simulation(self.totals, 1, copy.deepcopy(SIMULATION))
        totals.add_simulation(self.totals, 501, {**copy.deepcopy(SIMULATION), "doubled": 4})
        summary = totals.summary(self.totals)
        self.assertEqual(summary["coordinator_kills"], 8)
        self.assertEqual(summary["client_kills"], 14)
        self.assertEqual(summary["kills"], 22)
        self.assertEqual((summary["lost"], summary["doubled"]), (2, 5))
        self.assertEqual((summary["rounds"], summary["checks"], summary["fleets"]), (80, 4, 2))
        self.assertEqual((summary["power_losses"], summary["schedules"]), (60, 1000))
        self.assertEqual((summary["next_seed"], summary["next_schedule"]), (10, 1001))
        self.assertEqual(summary["failpoints_hit"], {"coordinator": 1, "relay": 0, "client": 1})

    def test_relays_are_a_side_of_their_own(self):
        totals.add_fleet(self.totals, TREE)
        summary = totals.summary(self.totals)
        self.assertEqual((summary["coordinator_kills"], summary["relay_kills"], summary["client_kills"]), (4, 9, 7))
        self.assertEqual(summary["kills"], 20)
        self.assertEqual(summary["failpoints_hit"]["relay"], 2)
        self.assertEqual(set(summary), set(totals.summary(totals.empty())))

    def test_totals_from_before_there_were_relays(self):
        totals.add_fleet(self.totals, FLEET)
        for by_side in ("kills", "missed", "recovery_ms_buckets"):
            del self.totals[by_side]["relay"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "totals.json")
            totals.save(path, self.totals)
            self.assertEqual(totals.summary(totals.load(path))["relay_kills"], 0)

    def test_percentiles_are_within_a_bucket(self):
        totals.add_fleet(self.totals, FLEET)
        recovery = totals.summary(self.totals)["recovery_ms"]["coordinator"]
        self.assertAlmostEqual(recovery["p50"], 100, delta=5)
        self.assertAlmostEqual(recovery["p99"], 900, delta=45)
        self.assertIsNone(totals.summary(totals.empty())["recovery_ms"]["client"]["p99"])

    def test_file_and_table(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "totals.json")
            readme = pathlib.Path(folder, "README.md")
            begin, end = totals.MARKS
            readme.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
            totals.add_fleet(self.totals, FLEET)
            totals.save(path, self.totals)
            self.assertEqual(totals.load(path), self.totals)
            totals.main([str(path), "write-table", str(readme)])
            text = readme.read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))
        self.assertNotIn("old", text)
        self.assertIn("| processes killed | 4 | 7 |", text)
        self.assertIn("| `client.seal.done` |  | 2 | 0 |", text)
        self.assertIn("| **updates lost** | **0** |", text)

    def test_table_of_relays(self):
        with tempfile.TemporaryDirectory() as folder:
            readme = pathlib.Path(folder, "README.md")
            readme.write_text("".join(f"{mark}\n" for mark in totals.MARKS + totals.RELAY_MARKS))
            totals.add_fleet(self.totals, TREE)
            totals.write_table(self.totals, readme)
            flat, relays = readme.read_text().split(totals.RELAY_MARKS[0])
        self.assertNotIn("processes killed", flat)
        self.assertIn("| processes killed | 4 | 9 | 7 |", relays)
        self.assertIn("| `client.seal.done` |  | 1 | 2 |", relays)
        self.assertNotIn("simulat", relays)


if __name__ == "__main__":
    unittest.main()
