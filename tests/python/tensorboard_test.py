"""Event files that `tersectl follow` writes, read by TensorBoard's own readers while the run goes on: tests/frameworks.sh
tensorboard."""

import pathlib
import sys
import unittest

import followed_fleet
import named_metrics
from fleet import wait_until
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

BINARIES = pathlib.Path(sys.argv[1])


class TensorBoard(unittest.TestCase):
    def setUp(self):
        self.fleet = followed_fleet.FollowedFleet(BINARIES)
        self.addCleanup(self.fleet.__exit__)
        self.fleet.start_coordinator()
        self.logs = self.fleet.folder / "tb"

    def follow(self, *more):
        return self.fleet.follow("--tensorboard", self.logs, *more)

    def test_curves_grow_while_the_run_goes_on(self):
        self.fleet.create("live")
        self.fleet.clients("live")
        follow = self.follow()
        folder = self.logs / "live"
        wait_until(lambda: list(folder.glob("events.out.tfevents.*")), "an event file")
        reader = EventAccumulator(str(folder), size_guidance={"scalars": 0})
        steps = lambda: [] if "train/loss" not in reader.Reload().Tags()["scalars"] else [e.step for e in reader.Scalars("train/loss")]
        wait_until(lambda: len(steps()) >= 5, "five rounds")
        seen = len(steps())
        wait_until(lambda: len(steps()) >= seen + 10, "ten more rounds in the same reader")
        self.assertEqual(self.fleet.status("live")["state"], "active")

        # Killed in the middle of a record, it goes on after the last whole one.
        follow.kill()
        follow.wait()
        (file,) = folder.glob("events.out.tfevents.*")
        whole = file.read_bytes()
        file.write_bytes(whole[:-7])
        self.fleet.kill_coordinator()
        follow = self.follow("--run", "live")
        self.fleet.start_coordinator()
        self.fleet.wait_for_version(self.fleet.version("live") + 5, "live")
        self.fleet.ctl("--run", "live", "stop")
        self.assertEqual(follow.wait(60), 0, self.fleet.log("follow"))

        rounds = {one["id"]: one for one in self.fleet.rounds("live")}
        self.assertEqual(file.read_bytes()[:len(whole) - 7], whole[:-7])
        self.fleet.ctl("--run", "live", "export", "--format", "tensorboard", "--out", self.fleet.folder / "out")
        exported = self.events(self.fleet.folder / "out/tensorboard/events.out.tfevents.terse")
        followed = self.events(file)
        self.assertEqual(followed, exported, "the same file as that of the export, each round once")
        self.assertEqual([step for step, _, _ in followed], list(rounds))
        for step, time, scalars in followed:
            self.assertAlmostEqual(time, rounds[step]["committed_us"] / 1e6, places=5)
            self.assertEqual(scalars["bytes/up_wire"], rounds[step]["wire_bytes_up"])
            self.assertEqual("test/accuracy" in scalars, rounds[step]["accuracy"] is not None)

    @staticmethod
    def events(path):
        """Step, time and scalars of each event; TensorBoard's loader checks the checksums."""
        events = []
        for event in EventFileLoader(str(path)).Load():
            if event.HasField("summary"):
                events.append((event.step, event.wall_time,
                               {value.tag: value.tensor.float_val[0] for value in event.summary.value}))
        return events

    def test_metrics_by_name(self):
        fleet = named_metrics.NamedMetricsFleet(BINARIES)
        self.addCleanup(fleet.__exit__)
        fleet.start_run()
        follow = fleet.follow("--run", named_metrics.RUN, "--tensorboard", self.logs)
        fleet.members()
        self.assertEqual(follow.wait(120), 0, fleet.log("follow") + fleet.log("m1"))
        (file,) = (self.logs / named_metrics.RUN).iterdir()
        named_metrics.check(self, {step: scalars for step, _, scalars in self.events(file)})

    def test_two_writers_and_two_runs_of_a_name(self):
        self.fleet.create("twice", rounds=3)
        self.fleet.clients("twice")
        self.follow()
        wait_until(lambda: "finished" in self.fleet.ctl("runs"), "the first run's end")
        (first,) = (self.logs / "twice").glob("events.out.tfevents.*")
        wait_until(lambda: len(self.events(first)) == 3, "its rounds")
        other = self.fleet.follow("--tensorboard", self.logs, name="other")
        wait_until(lambda: "is written by another program; trying again" in self.fleet.log("other"), "the refusal")
        other.kill()
        self.fleet.ctl("run", "delete", "twice", "--yes")
        self.fleet.create("twice", rounds=2)
        lineage = self.fleet.status("twice")["lineage"][:16]
        self.fleet.clients("twice")
        folder = self.logs / f"twice-{lineage}"
        wait_until(lambda: folder.exists() and len(self.events(next(folder.iterdir()))) == 2, "the second run's rounds")
        self.assertEqual(len(self.events(first)), 3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
