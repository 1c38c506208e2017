"""`tersectl follow --json | python3 -m terse.wandb`, read back by wandb's own reader: tests/frameworks.sh wandb."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import followed_fleet
import named_metrics
from fleet import wait_until
from wandb.proto import wandb_internal_pb2
from wandb.sdk.internal.datastore import DataStore

BINARIES = pathlib.Path(sys.argv[1]).resolve()


def records(path):
    store = DataStore()
    store.open_for_scan(str(path))
    try:
        while (data := store.scan_data()) is not None:
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            yield record
    finally:
        store._fp.close()


class Wandb(unittest.TestCase):
    def setUp(self):
        self.fleet = followed_fleet.FollowedFleet(BINARIES)
        self.addCleanup(self.fleet.__exit__)
        self.fleet.start_coordinator()
        self.where = self.fleet.folder / "wb"

    def pipe(self, run):
        """Both ends in a process group of their own."""
        command = (f"{BINARIES}/tersectl --admin {self.fleet.admin} --run {run} follow --json | "
                   f"{sys.executable} -m terse.wandb --dir {self.where} --project fleets")
        return self.fleet.start("pipe", "bash", "-c", f"set -o pipefail; {command}")

    def history(self, lineage):
        """Step and scalars of each row of the run's offline files, oldest file first; and the files' other records."""
        rows, others = [], []
        for file in sorted(self.where.glob(f"wandb/offline-run-*-{lineage}/run-{lineage}.wandb")):
            for record in records(file):
                if record.WhichOneof("record_type") == "history":
                    row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
                    rows.append((record.history.step.num, row))
                else:
                    others.append(record)
        return rows, others

    def test_offline_runs(self):
        self.fleet.create("live")
        self.fleet.clients("live")
        lineage = self.fleet.status("live")["lineage"]
        pipe = self.pipe("live")
        position = self.where / "terse-follow" / f"{lineage}.json"
        wait_until(lambda: position.exists() and json.loads(position.read_text())["round"] >= 20, "twenty rounds", 120)
        # The coordinator's side ends, as when the machine's service restarts: what was read is logged.
        subprocess.run(["pkill", "-P", str(pipe.pid), "tersectl"], check=True)
        pipe.wait(60)
        first = json.loads(position.read_text())["round"]
        pipe = self.pipe("live")
        self.fleet.wait_for_version(self.fleet.version("live") + 10, "live")
        self.fleet.ctl("--run", "live", "stop")
        self.assertEqual(pipe.wait(120), 0, self.fleet.log("pipe"))
        rounds = {one["id"]: one for one in self.fleet.rounds("live")}
        self.assertLess(first, max(rounds))

        rows, others = self.history(lineage)
        self.assertEqual([step for step, _ in rows], list(rounds), "each round once, over both processes")
        for step, row in rows:
            self.assertEqual(row["bytes/up_wire"], rounds[step]["wire_bytes_up"])
            self.assertAlmostEqual(row["_timestamp"], rounds[step]["committed_us"] / 1e6, places=3)
        run = next(record.run for record in others if record.WhichOneof("record_type") == "run")
        self.assertEqual((run.run_id, run.display_name, run.project), (lineage, "live", "fleets"))
        config = {item.key: json.loads(item.value_json) for item in run.config.update}
        self.assertEqual((config["train"]["local_steps"], config["codec"]["name"]), (3, "sbc"))
        exits = [record.exit.exit_code for record in others if record.WhichOneof("record_type") == "exit"]
        self.assertEqual(exits[-1], 1, "a run that was stopped")
        self.assertEqual(json.loads(position.read_text())["state"], "stopped")

        # A third time there is nothing to log.
        self.assertEqual(self.pipe("live").wait(60), 0)
        self.assertEqual(len(self.history(lineage)[0]), len(rows))

    def test_metrics_by_name(self):
        fleet = named_metrics.NamedMetricsFleet(BINARIES)
        self.addCleanup(fleet.__exit__)
        fleet.start_run()
        self.fleet, self.where = fleet, fleet.folder / "wb"
        pipe = self.pipe(named_metrics.RUN)
        fleet.members()
        self.assertEqual(pipe.wait(120), 0, fleet.log("pipe") + fleet.log("m1"))
        rows, _ = self.history(fleet.status()["lineage"])
        named_metrics.check(self, dict(rows))

    def test_what_is_no_line_is_told(self):
        done = subprocess.run([sys.executable, "-m", "terse.wandb", "--dir", str(self.where)], input="hello\n", text=True,
                              capture_output=True, check=False, env=dict(os.environ))
        self.assertEqual(done.returncode, 1)
        self.assertIn("terse.wandb: 'hello\\n' is no line of `tersectl follow --json`", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
