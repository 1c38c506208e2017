"""Metrics by name from clients and from an evaluator of the user's own, up to where people read them.

usage: metrics_test.py BIN     (run by ctest)
"""
import json
import signal
import sys
import unittest
import urllib.request

import numpy as np

import fleet
import metric_member
import terse

BIN = sys.argv[1]
ROUNDS = 4


class Metrics(unittest.TestCase):
    def setUp(self):
        self.fleet = fleet.Fleet(BIN)
        self.addCleanup(self.fleet.__exit__)

    def evaluator(self, *more):
        return " ".join([sys.executable, str(fleet.HERE / "metric_evaluator.py"), *map(str, more)])

    def serve(self, *options, rounds=ROUNDS, **limits):
        self.fleet.start_coordinator("--http", "127.0.0.1:0", *options)
        model = {name: np.zeros(shape, dtype=np.float32) for name, shape in metric_member.SHAPES.items()}
        terse.Run("metrics", model=model, codec=terse.codecs.dense(), rounds=rounds, clients=2,
                  settings={"limits": limits, "rounds": {"evaluate_every": 1}}).create(str(self.fleet.folder / "run"), admin=self.fleet.admin)

    def members(self):
        return [self.fleet.python(f"m{seed}", "metric_member.py", self.fleet.address, self.fleet.folder / f"m{seed}", seed)
                for seed in (1, 3)]

    def finish(self, members):
        for member in members:
            self.assertEqual(fleet.end(member), 0, self.fleet.log("m1") + self.fleet.log("m3") + self.fleet.log("coordinator"))
        fleet.wait_until(lambda: json.loads(self.fleet.ctl("status", "--json"))["state"] == "finished", "the last evaluation")

    def rounds(self):
        return json.loads(self.fleet.ctl("rounds", "--json"))

    def events(self, kind):
        return [event["detail"] for event in json.loads(self.fleet.ctl("events", "--json", "--newest", 10000)) if event["kind"] == kind]

    def test_clients_metrics_reach_ledger_tables_and_prometheus(self):
        self.serve()
        self.finish(self.members())
        for entry in self.rounds():
            number = entry["id"]
            means = {(each["kind"], each["name"]): each for each in entry["metrics"]}
            self.assertEqual(sorted(means), [("evaluation", "accuracy"), ("evaluation", "worst class"), ("training", "grad_norm")])
            self.assertEqual([each["clients"] for each in means.values()], [2, 2, 2])
            # Clients 1 and 3 weigh by their samples, 1 to 3.
            self.assertAlmostEqual(means["evaluation", "accuracy"]["mean"], (1 * 0.1 + 3 * 0.3) / 4, places=12)
            self.assertEqual(means["evaluation", "accuracy"]["samples"], 4)
            self.assertAlmostEqual(means["training", "grad_norm"]["mean"], (10 * number + 30 * 3 * number) / 40, places=12)
            self.assertEqual(means["training", "grad_norm"]["samples"], 40)
        own = json.loads(self.fleet.ctl("metrics", "--clients", "--json", "--first", 2, "--last", 2))
        expected = [(2, f"m{seed}", kind, name, value, samples)
                    for seed in (1, 3)
                    for kind, name, value, samples in [("training", "grad_norm", 2.0 * seed, 10 * seed),
                                                       ("evaluation", "accuracy", seed / 10, seed),
                                                       ("evaluation", "worst class", 0.02, seed)]]
        self.assertEqual(sorted((each["round"], each["client_name"], each["kind"], each["name"], each["value"], each["samples"])
                                for each in own), sorted(expected))
        table = self.fleet.ctl("metrics", "--newest", 1)
        self.assertIn("evaluation worst class", table)
        self.assertIn("0.25", table)
        self.assertEqual(len(table.strip().splitlines()), 2, table)
        address = json.loads((self.fleet.folder / "ready-1").read_text())["http"]
        page = urllib.request.urlopen(f"{address}/metrics").read().decode()
        self.assertIn('terse_metric{kind="training",name="grad_norm",run="metrics"} 10', page.replace('run="metrics",', ""), page)

    def test_stored_runs_have_metrics_as_arrays(self):
        self.serve()
        self.finish(self.members())
        run = terse.open(self.fleet.run_folder())
        table = run.metrics()
        self.assertEqual(len(table), 3 * ROUNDS)
        accuracy = table[(table["kind"] == "evaluation") & (table["name"] == "accuracy")]
        self.assertTrue(np.allclose(accuracy["mean"], 0.25))
        own = run.client_metrics()
        norms = own[own["name"] == "grad_norm"]
        self.assertEqual([tuple(each) for each in norms[["round", "client_name", "value", "samples"]]],
                         [(number, f"m{seed}", seed * number, 10 * seed) for number in range(1, ROUNDS + 1)
                          for seed in sorted((1, 3), key=lambda seed: list(own["client_name"]).index(f"m{seed}"))])

    def test_metrics_of_a_sealed_update_survive_both_ends(self):
        self.serve()
        coordinator = self.fleet._coordinator
        killer = self.fleet.python("m1", "metric_member.py", self.fleet.address, self.fleet.folder / "m1", 1, "--kill",
                                   coordinator.pid, "--at", 2)
        other = self.fleet.python("m3", "metric_member.py", self.fleet.address, self.fleet.folder / "m3", 3)
        fleet.wait_until(lambda: "committed 2" in self.fleet.log("m1"), "the update is sealed while nobody serves")
        for process in (killer, other):
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.fleet.kill_coordinator()
        self.fleet.start_coordinator()
        self.finish(self.members())
        own = terse.open(self.fleet.run_folder()).client_metrics()
        sealed = own[(own["round"] == 2) & (own["client_name"] == "m1") & (own["name"] == "grad_norm")]
        self.assertEqual(sealed["value"].tolist(), [2.0])

    def test_an_evaluator_scores_rounds(self):
        self.serve("--evaluator", self.evaluator())
        self.finish(self.members())
        rounds = self.rounds()
        self.assertEqual([entry["accuracy"] for entry in rounds], [0.25, 0.5, 0.75, 1.0])
        self.assertEqual([entry["test_loss"] for entry in rounds], [1.0, 2.0, 3.0, 4.0])
        f1 = [each for each in rounds[0]["metrics"] if each["name"] == "f1"]
        self.assertEqual(f1, [{"kind": "test", "name": "f1", "mean": 0.25, "clients": 0, "samples": 77}])

    def test_followers_get_the_figures_of_a_slow_evaluator(self):
        # An evaluator that is told to stop has five seconds left; this one needs more, and nobody tells it to stop.
        self.serve("--evaluator", self.evaluator("--first-takes", 6))
        follow = self.fleet.start("follow", self.fleet.binaries / "tersectl", "--admin", self.fleet.admin, "follow", "--run", "metrics",
                                  "--json")
        self.finish(self.members())
        self.assertEqual(fleet.end(follow), 0, self.fleet.log("follow"))
        lines = [json.loads(line) for line in self.fleet.log("follow").splitlines() if line.startswith("{")]
        scalars = [line["scalars"] for line in lines if line["type"] == "round"]
        self.assertEqual([each.get("test/accuracy") for each in scalars], [0.25, 0.5, 0.75, 1.0])
        self.assertEqual([each.get("test/f1") for each in scalars], [0.25] * ROUNDS)

    def test_a_run_ends_after_the_evaluations_that_are_under_way(self):
        # Four rounds wait for the first one, so that the evaluator has no room for the last one.
        self.serve("--evaluator", self.evaluator("--first-takes", 3), rounds=6)
        self.finish(self.members())
        self.assertEqual([entry["accuracy"] for entry in self.rounds()], [0.25, 0.5, 0.75, 1.0, 1.0, None])

    def test_an_evaluator_ends_the_run_at_its_target_and_does_not_hold_rounds_up(self):
        self.serve("--evaluator", self.evaluator("--first-takes", 4), rounds=100000, accuracy=0.7)
        self.finish(self.members())
        self.assertIn("target accuracy 0.7 reached", json.loads(self.fleet.ctl("status", "--json"))["reason"])
        # While it was busy with the first round, more went by than wait for it.
        self.assertIn("the evaluator is 4 rounds behind; evaluate less often, or make it faster", self.events("evaluation_failed"))

    def test_a_limit_needs_an_evaluator(self):
        with self.assertRaisesRegex(terse.TerseError, "start it with --evaluator, or leave them out"):
            self.serve(accuracy=0.7)

    def test_an_evaluator_that_dies_costs_its_round_alone(self):
        self.serve("--evaluator", self.evaluator("--die-at", 2))
        self.finish(self.members())
        self.assertEqual([entry["accuracy"] for entry in self.rounds()], [0.25, None, 0.75, 1.0])
        (why,) = self.events("evaluation_failed")
        self.assertIn("the evaluator exited with code 3", why)

    def test_what_an_evaluator_may_not_say(self):
        self.serve("--evaluator", self.evaluator("--bad", 1))
        self.finish(self.members())
        self.assertEqual(self.events("evaluation_failed")[0],
                         "the evaluator: round 1 was not evaluated: RunMismatch: an evaluation needs 'loss', the mean over the test set")

    def test_an_evaluator_of_another_model(self):
        self.serve("--evaluator", self.evaluator("--shape", 6))
        self.finish(self.members())
        self.assertEqual(len(self.events("evaluation_failed")), ROUNDS)
        self.assertIn("other tensors than the run's", self.events("evaluation_failed")[0])

    def test_an_evaluator_attaches_and_comes_back(self):
        path = self.fleet.folder / "evaluator.sock"
        self.serve("--evaluator-socket", path)
        first = self.fleet.python("e1", "metric_evaluator.py", "--at", path, "--die-at", 2)
        members = self.members()
        fleet.wait_until(lambda: self.events("evaluation_failed"), "round 2 is not evaluated")
        self.assertEqual(fleet.end(first), 3)
        second = self.fleet.python("e2", "metric_evaluator.py", "--at", path)
        self.finish(members)
        fleet.wait_until(lambda: "evaluated metrics" in self.fleet.log("e2"), "another evaluator is asked")
        self.fleet._coordinator.send_signal(signal.SIGTERM)
        self.assertEqual(fleet.end(self.fleet._coordinator), 0)
        self.assertEqual(fleet.end(second), 1)
        self.assertIn("the coordinator is gone", self.fleet.log("e2"))


class WhatIsNoMetric(unittest.TestCase):
    def check(self, message, metrics, samples=1):
        with self.assertRaisesRegex(terse.RunMismatch, message):
            terse._metrics.named("evaluation", metrics, samples)

    def test_each_says_which_and_why(self):
        self.check("the evaluation metric 'a' is nan; metrics are finite", {"a": float("nan")})
        self.check("the evaluation metric 'a' is no number", {"a": "much"})
        self.check("a evaluation metric is called 'ä'; names have 1 to 64", {"ä": 1})
        self.check("a evaluation metric is called ' a'", {" a": 1})
        self.check("a evaluation metric is called 'a{65}'", {"a" * 65: 1})
        self.check("over at least one sample, not 0", {"a": 1}, samples=0)
        self.check("65 evaluation metrics are more than the 64", {str(i): i for i in range(65)})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
