#!/usr/bin/python3
"""The coordinator's metrics of a run from its beginning to its end, compared with the API.

usage: metrics_test.py --bin DIR --source DIR
"""
import argparse
import json
import os
import re
import sys
import time
import unittest

from metered_fleet import MeteredFleet

RUN = """
name = "metered"
[train]
local_steps = 1
optimizer.learning_rate = 1.0
[codec]
name = "sbc"
density = 0.02
[rounds]
count = 25
clients = 2
evaluate_every = 5
"""
OPTIONS = None


class Metrics(MeteredFleet):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(f"{cls.folder}/run.toml", "w", encoding="utf-8") as file:
            file.write(RUN)
        ready = f"{cls.folder}/ready.json"
        cls.start(f"{OPTIONS.bin}/grid-coordinator", "--run-file", f"{cls.folder}/run.toml", "--state", f"{cls.folder}/state",
                  "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", ready)
        cls.wait(lambda: os.path.exists(ready), "the coordinator")
        with open(ready, encoding="utf-8") as file:
            addresses = json.load(file)
        cls.url = addresses["http"]
        cls.before = cls.scrape(cls.url)
        for name in ("a", "b"):
            cls.start(f"{OPTIONS.bin}/grid-client", "--coordinator", addresses["listen"], "--name", name, "--state",
                      f"{cls.folder}/{name}")
        cls.wait(lambda: cls.api("runs/metered")["state"] == "finished", "the end of the run")
        cls.wait(lambda: cls.api("runs/metered/rounds?first=25")["rounds"][0]["accuracy"] is not None, "the evaluation")
        cls.wait(lambda: cls.api("runs/metered")["clients_connected"] == 0, "the clients' end")
        time.sleep(1)  # answers are shared for half a second
        cls.after = cls.scrape(cls.url)

    def value(self, name, **labels):
        return self.after[(name, tuple(sorted({"run": "metered", **labels}.items())))]

    def test_counters_are_the_ledgers(self):
        rounds = [r for r in self.api("runs/metered/rounds")["rounds"] if r["state"] == "committed"]
        self.assertEqual(self.value("terse_rounds_total", outcome="committed"), len(rounds))
        self.assertEqual(self.value("terse_rounds_total", outcome="aborted"), 0)
        self.assertEqual(self.value("terse_updates_total", verdict="applied"), sum(r["updates"] for r in rounds))
        # Bytes that belong to no round are booked as round 0, which only the counters have.
        for counted in ("dense", "payload"):
            for way in ("up", "down"):
                self.assertEqual(self.value("terse_bytes_total", counted=counted, direction=way),
                                 sum(r[f"{counted}_bytes_{way}"] for r in rounds), f"{counted} {way}")
        for way in ("up", "down"):
            sent = sum(r[f"wire_bytes_{way}"] for r in rounds)
            self.assertGreaterEqual(self.value("terse_bytes_total", counted="wire", direction=way), sent)

    def test_gauges_are_the_runs(self):
        self.assertEqual(self.value("terse_run_version"), 25)
        self.assertEqual(self.value("terse_run_rounds_planned"), 25)
        self.assertEqual(self.value("terse_run_serving"), 1)
        self.assertEqual(self.value("terse_run_state", state="finished"), 1)
        self.assertEqual(self.value("terse_run_state", state="active"), 0)
        self.assertEqual(self.value("terse_queued_events"), 0)
        last = self.api("runs/metered/rounds?first=25")["rounds"][0]
        self.assertAlmostEqual(self.value("terse_accuracy"), last["accuracy"])
        self.assertAlmostEqual(self.value("terse_test_loss"), last["test_loss"])
        for state in ("training", "waiting", "syncing", "set aside"):
            self.assertEqual(self.value("terse_clients", state=state), 0)

    def test_histograms_have_every_round(self):
        for phase in ("collecting", "committing", "training"):
            self.assertEqual(self.value("terse_round_seconds_count", phase=phase), 25)
            self.assertEqual(self.value("terse_round_seconds_bucket", phase=phase, le="+Inf"), 25)
        rounds = self.api("runs/metered/rounds")["rounds"]
        collected = sum(r["closed_us"] - r["opened_us"] for r in rounds) / 1e6
        self.assertAlmostEqual(self.value("terse_round_seconds_sum", phase="collecting"), collected, places=3)
        self.assertEqual(self.value("terse_store_seconds_count", call="CommitRound"), 25)
        self.assertGreater(self.value("terse_store_seconds_sum", call="CommitRound"), 0)

    def test_nothing_is_counted_before_it_happens(self):
        counters = {key: value for key, value in self.before.items() if key[0].endswith("_total") or "round_seconds_count" in key[0]}
        self.assertTrue(counters)
        self.assertEqual({key: value for key, value in counters.items() if value != 0}, {})
        self.assertNotIn(("terse_accuracy", (("run", "metered"),)), self.before)
        self.assertEqual(self.before[("terse_store_errors_total", (("call", "CommitRound"), ("run", "metered")))], 0)

    def test_names_are_as_the_field_has_them(self):
        self.check_names(self.after)

    def test_documents_and_dashboards_name_what_there_is(self):
        names = {re.sub(r"_(bucket|sum|count)$", "", name) for name, _ in self.after}
        with open(f"{OPTIONS.source}/docs/METRICS.md", encoding="utf-8") as file:
            of_coordinator = file.read().partition("\n## Of a client\n")[0]
        documented = set(re.findall(r"^\| `(terse_[a-z_]+)`", of_coordinator, re.MULTILINE))
        # No client of this run reports metrics of its own.
        self.assertEqual(documented, names | {"terse_metric"})
        for path in ("grafana.json", "alerts.yml"):
            with open(f"{OPTIONS.source}/deploy/monitoring/{path}", encoding="utf-8") as file:
                used = set(re.findall(r"\bterse_[a-z_]+", file.read()))
            used = {re.sub(r"_(bucket|sum|count)$", "", name) for name in used}
            self.assertLessEqual(used, documented, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the executables")
    parser.add_argument("--source", required=True, help="folder of the repository")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
