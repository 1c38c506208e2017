#!/usr/bin/python3
"""`tersectl follow` beside a fleet: webhooks, traces and lines, against receivers that fail, and after a kill.

usage: follow_test.py --bin DIR
"""
import argparse
import base64
import hashlib
import hmac
import json
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

from fleet import wait_until
from followed_fleet import FollowedFleet
from http_receiver import HttpServer, Receiver
from round_traces import TraceChecks, attributes_of, children_of, parent_of, spans_of

OPTIONS = None
SECRET = "a secret of the test"


class TrackingServer(HttpServer):
    """As much of MLflow's REST API as is asked for one run, for who has the password. Unlike the real one it keeps what is
    logged twice, so that this is seen."""

    def __init__(self, password):
        self.requests, self.metrics, self.params, self.tags, self.status, self.refused = [], [], [], [], "RUNNING", 0
        self.allowed = "Basic " + base64.b64encode(f"ada:{password}".encode()).decode()
        super().__init__()

    def answer(self, method, path, headers, body):
        answer = self.answer_of_mlflow(path, json.loads(body)) if method == "POST" else {"experiment": {"experiment_id": "7"}}
        is_allowed = headers.get("Authorization") == self.allowed
        self.refused += not is_allowed
        return 200 if is_allowed else 401, json.dumps(answer).encode()

    def answer_of_mlflow(self, path, request):
        self.requests.append((path, request))
        if path.endswith("runs/search"):
            return {"runs": [self.run()]} if self.tags else {}
        if path.endswith("runs/create"):
            self.tags = request["tags"]
            return {"run": self.run()}
        if path.endswith("runs/log-batch"):
            self.metrics += request["metrics"]
            self.params += request["params"]
        elif path.endswith("runs/set-tag"):
            self.tags = [tag for tag in self.tags if tag["key"] != request["key"]] + [{key: request[key] for key in ("key", "value")}]
        elif path.endswith("runs/delete-tag"):
            self.tags = [tag for tag in self.tags if tag["key"] != request["key"]]
        elif path.endswith("runs/update"):
            self.status = request["status"]
        return {}

    def run(self):
        newest = {}
        for metric in self.metrics:
            newest[metric["key"]] = max(newest.get(metric["key"], 0), metric["step"])
        return {"info": {"run_id": "r1", "status": self.status},
                "data": {"params": self.params, "tags": self.tags,
                         "metrics": [{"key": key, "step": step} for key, step in newest.items()]}}

    def tag(self, key):
        return next((tag["value"] for tag in self.tags if tag["key"] == key), None)


class Hooks(Receiver):
    def events(self, *names):
        return [body for body in self.bodies() if body["event"] in names]


class FollowTest(TraceChecks, unittest.TestCase):
    def setUp(self):
        self.fleet = FollowedFleet(OPTIONS.bin)
        self.addCleanup(self.fleet.__exit__)
        self.start_coordinator()

    def start_coordinator(self, variables=None):
        self.fleet.start_coordinator("--trace-rounds", "10000", variables=variables)

    def receiver(self, **how):
        receiver = Hooks(**how)
        self.addCleanup(receiver.close)
        return receiver

    def webhook(self, receiver, lost_after=2):
        return self.fleet.follow("--state", "follow-state", "--lost-after", lost_after,
                                 variables={"TERSE_WEBHOOK": f"{receiver.url}/hook/token-in-the-path",
                                              "TERSE_WEBHOOK_SECRET": SECRET})

    def test_a_webhook_hears_of_each_event_once(self):
        receiver = self.receiver(fail=2)
        follow = self.webhook(receiver)
        time.sleep(1.5)  # the run is new to it
        self.fleet.create("first")
        clients = self.fleet.clients("first", 2)
        self.fleet.wait_for_version(3, "first")
        self.fleet.ctl("--run", "first", "abort", "--reason", "a test")
        wait_until(lambda: receiver.events("round_aborted"), "the aborted round, after two failures")
        self.assertEqual(receiver.refused, 2)
        self.assertIn("answers 500: not now; trying again", self.fleet.log("follow"))
        wait_until(lambda: "run 'first' goes on" in self.fleet.log("follow"), "the line that it is over")
        (aborted,) = receiver.events("round_aborted")
        lineage = self.fleet.status("first")["lineage"]
        self.assertEqual({key: aborted[key] for key in ("run", "lineage", "client", "detail")},
                         {"run": "first", "lineage": lineage, "client": None, "detail": "a test"})
        self.assertGreater(aborted["round"], 0)
        self.assertRegex(aborted["time"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        path, headers, body = receiver.got[0]
        self.assertEqual(path, "/hook/token-in-the-path")
        self.assertEqual(headers["X-Terse-Signature"], "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest())
        self.assertEqual((headers["X-Terse-Event"], headers["X-Terse-Delivery"]), ("round_aborted", aborted["id"]))

        # Killed, it misses nothing, and tells nothing twice.
        follow.kill()
        follow.wait()
        self.fleet.ctl("--run", "first", "pause", "--reason", "for a while")
        follow = self.webhook(receiver)
        wait_until(lambda: receiver.events("run_paused"), "the pause while it was away")
        self.assertEqual(receiver.events("run_paused")[0]["detail"], "for a while")
        self.assertEqual(len(receiver.events("round_aborted")), 1)
        self.fleet.ctl("--run", "first", "resume")

        # A client that comes back is not lost, and one that stays away is.
        clients[0].kill()
        clients[0].wait()
        wait_until(lambda: receiver.events("client_lost"), "the lost client")
        (lost,) = receiver.events("client_lost")
        self.assertEqual(lost["client"], "first-0")
        self.assertIn("did not come back within 2s", lost["detail"])
        self.fleet.clients("first", 1)
        time.sleep(1)

        self.fleet.ctl("--run", "first", "stop")
        wait_until(lambda: receiver.events("run_stopped"), "the end")
        time.sleep(4)
        self.assertEqual([body["event"] for body in receiver.bodies()],
                         ["round_aborted", "run_paused", "client_lost", "round_aborted", "run_stopped"],
                         "the open round is given up when a run is stopped, and clients that leave a run that is over are not lost")
        self.assertEqual(len({body["id"] for body in receiver.bodies()}), 5)
        self.fleet.ctl("run", "delete", "first", "--yes")
        time.sleep(2)
        self.assertEqual(len(receiver.bodies()), 5, "it was over")
        self.assertIsNone(follow.poll())
        shown = subprocess.run(["ps", "-p", str(follow.pid), "-o", "args="], capture_output=True, text=True, check=True).stdout
        for secret in ("token-in-the-path", SECRET):
            self.assertNotIn(secret, shown + self.fleet.log("follow"))

    def test_a_client_that_comes_back_is_not_lost(self):
        receiver = self.receiver()
        self.fleet.create("back")
        clients = self.fleet.clients("back", 2)
        self.fleet.wait_for_version(2, "back")
        follow = self.webhook(receiver, lost_after=6)
        time.sleep(1.5)
        clients[0].kill()
        clients[0].wait()
        time.sleep(1.5)
        self.fleet.clients("back", 1)
        time.sleep(8)
        self.assertEqual(receiver.bodies(), [])
        self.assertIsNone(follow.poll())

    def test_without_a_position_the_past_is_not_told(self):
        receiver = self.receiver()
        self.fleet.create("old")
        self.fleet.clients("old", 2)
        self.fleet.wait_for_version(2, "old")
        self.fleet.ctl("--run", "old", "abort")
        self.webhook(receiver)
        time.sleep(2)
        self.fleet.ctl("--run", "old", "pause")
        wait_until(lambda: receiver.events("run_paused"), "what is new")
        self.assertEqual([body["event"] for body in receiver.bodies()], ["run_paused"])

    def test_a_run_that_is_deleted_meanwhile_is_told(self):
        receiver, tracking = self.receiver(), TrackingServer("from-the-environment")
        self.addCleanup(tracking.close)
        self.fleet.create("gone")
        self.fleet.clients("gone")
        follow = lambda *options: self.fleet.follow("--webhook", receiver.url, "--mlflow", tracking.url, "--state", "follow-state",
                                                    *options, variables={"MLFLOW_TRACKING_USERNAME": "ada",
                                                                         "MLFLOW_TRACKING_PASSWORD": "from-the-environment"})
        followed = follow()
        wait_until(lambda: tracking.metrics and len(list(self.fleet.folder.glob("follow-state/*.json"))) == 2, "its start")
        followed.kill()
        followed.wait()
        lineage = self.fleet.status("gone")["lineage"]
        self.fleet.ctl("run", "delete", "gone", "--yes", "--force")
        followed = follow("--run", "gone")
        self.assertEqual(followed.wait(60), 0, self.fleet.log("follow"))
        self.assertEqual([(body["event"], body["run"], body["lineage"]) for body in receiver.bodies()],
                         [("run_deleted", "gone", lineage)])
        self.assertEqual((tracking.status, tracking.tag("terse.end")), ("KILLED", "deleted: the coordinator has it no more"))
        # Nobody knows it any more.
        self.assertEqual(list(self.fleet.folder.glob("follow-state/*.json")), [])
        self.assertEqual(follow("--run", "gone").wait(60), 1)
        self.assertIn("the coordinator has no run 'gone'", self.fleet.log("follow"))

    def test_a_run_that_is_done_ends_the_command(self):
        receiver = self.receiver()
        self.fleet.create("short", rounds=5)
        follow = self.fleet.follow("--run", "short", "--json", "--webhook", receiver.url, "--state", "follow-state", name="lines")
        self.fleet.clients("short", 2)
        self.assertEqual(follow.wait(60), 0, self.fleet.log("lines"))
        self.assertEqual([body["event"] for body in receiver.bodies()], ["run_ended"])
        lines = [json.loads(line) for line in self.fleet.log("lines").splitlines()]
        self.assertEqual(lines[0]["type"], "run")
        self.assertEqual(lines[0]["status"]["config"]["train"]["local_steps"], 3)
        self.assertEqual([line["round"]["id"] for line in lines if line["type"] == "round"], [1, 2, 3, 4, 5])
        served = self.fleet.list("rounds", "short")
        for line, round_ in zip((line for line in lines if line["type"] == "round"), served):
            self.assertEqual(line["round"], round_)
            self.assertEqual(line["scalars"]["bytes/up_wire"], round_["wire_bytes_up"])
        self.assertEqual(lines[-1], {"type": "end", "run": "short", "lineage": lines[0]["lineage"], "state": "finished",
                                     "reason": "all rounds are done"})
        kinds = [line["event"]["kind"] for line in lines if line["type"] == "event"]
        self.assertEqual((kinds[0], kinds.count("run_ended")), ("run_created", 1))

    def test_a_run_that_ends_early_tells_its_last_accuracy(self):
        # Every tenth model is evaluated, and here another one, because the run ends with it.
        self.fleet.create("early")
        follow = self.fleet.follow("--run", "early", "--json", name="lines")
        wait_until(lambda: '"type":"run"' in self.fleet.log("lines"), "its start")
        self.fleet.clients("early", 2)
        self.fleet.wait_for_version(3, "early")
        while True:
            self.fleet.ctl("--run", "early", "pause")
            wait_until(lambda: self.fleet.status("early")["phase"] == "paused", "the pause")
            if self.fleet.version("early") % 10 != 0:
                break
            self.fleet.ctl("--run", "early", "resume")
        time.sleep(1.5)  # the command looks twice a second
        self.fleet.ctl("--run", "early", "stop")
        self.assertEqual(follow.wait(60), 0, self.fleet.log("lines"))
        lines = [json.loads(line) for line in self.fleet.log("lines").splitlines()]
        # The bytes of the last round are left out: those of clients that leave are added to them.
        figures = lambda rounds: [(one["id"], one["accuracy"], one["test_loss"]) for one in rounds]
        served = self.fleet.list("rounds", "early")
        self.assertEqual(figures(line["round"] for line in lines if line["type"] == "round"), figures(served))
        self.assertIsNotNone(served[-1]["accuracy"])

    def test_a_place_that_stays_away_disturbs_no_other_one(self):
        receiver = self.receiver()
        receiver.away = True
        self.fleet.create("short", rounds=5)
        follow = self.fleet.follow("--run", "short", "--json", "--webhook", receiver.url, "--state", "follow-state",
                                   "--patience", "3", name="lines")
        self.fleet.clients("short", 2)
        wait_until(lambda: '"type":"end"' in self.fleet.log("lines"), "the lines")
        self.assertEqual(follow.wait(60), 1, self.fleet.log("lines"))
        self.assertIn("the last news of run 'short' have not arrived: http://127.0.0.1", self.fleet.log("lines"))

    def test_the_coordinator_may_restart(self):
        receiver = self.receiver()
        self.fleet.create("longer")
        self.fleet.clients("longer", 2)
        self.fleet.follow("--json", name="lines")
        self.fleet.wait_for_version(5, "longer")
        self.fleet.kill_coordinator()
        wait_until(lambda: "the coordinator went away; calling again" in self.fleet.log("lines"), "its absence")
        self.fleet.start_coordinator()
        before = self.fleet.version("longer")
        self.fleet.wait_for_version(before + 5, "longer")
        self.fleet.ctl("--run", "longer", "stop")
        wait_until(lambda: '"type":"end"' in self.fleet.log("lines"), "the end")
        lines = [json.loads(line) for line in self.fleet.log("lines").splitlines() if line.startswith("{")]
        ids = [line["round"]["id"] for line in lines if line["type"] == "round"]
        self.assertEqual(ids, list(range(1, len(ids) + 1)), "each round once")
        self.assertEqual(self.fleet.log("lines").count("calling again"), 1)

    def test_a_tracking_server_gets_nothing_twice(self):
        tracking = TrackingServer("from-the-environment")
        self.addCleanup(tracking.close)
        self.fleet.create("logged")
        self.fleet.clients("logged", 2)
        follow = lambda: self.fleet.follow("--mlflow", tracking.url, variables={
            "MLFLOW_TRACKING_USERNAME": "ada", "MLFLOW_TRACKING_PASSWORD": "from-the-environment"})
        steps = lambda: sorted(metric["step"] for metric in tracking.metrics if metric["key"] == "train/loss")
        for _ in range(3):
            followed, before = follow(), len(steps())
            wait_until(lambda: len(steps()) > before + 5, "some rounds")
            followed.kill()
            followed.wait()
        follow()
        self.fleet.ctl("--run", "logged", "stop")
        wait_until(lambda: tracking.status == "KILLED", "the end")
        self.assertEqual(steps(), [one["id"] for one in self.fleet.rounds("logged")], "each round once, over four processes")
        keys = [param["key"] for param in tracking.params]
        self.assertEqual(len(set(keys)), len(keys))
        self.assertLess(max(keys.index(key) for key in ("train.local_steps", "codec.name", "rounds.count")),
                        min(keys.index(key) for key in ("durability", "rounds.grace_seconds")), "what is set comes first")
        for path, request in tracking.requests:
            if path.endswith("log-batch"):
                self.assertLessEqual(len(request["params"]), 100)
                self.assertLessEqual(len(request["params"]) + len(request["metrics"]), 1000)
        self.assertEqual(tracking.refused, 0)
        self.assertNotIn("from-the-environment", self.fleet.log("follow"))

    def test_traces_of_rounds(self):
        # A build with failpoints waits between the verdicts of a round, which is committed then.
        self.fleet.kill_coordinator()
        self.start_coordinator(variables={"TERSE_FAILPOINTS": "coordinator.announce.first=sleep:200"})
        receiver = self.receiver()
        self.fleet.create("traced")
        follow = self.fleet.follow("--otlp", receiver.url, "--state", "follow-state",
                                   variables={"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20the-key,x-team=a"})
        time.sleep(1)
        self.fleet.clients("traced", 2)
        self.fleet.wait_for_version(4, "traced")
        wait_until(lambda: len([span for span in spans_of(receiver.bodies()) if not parent_of(span)]) >= 3, "the first traces")
        path, headers, _ = receiver.got[0]
        self.assertEqual((path, headers["authorization"], headers["x-team"]), ("/v1/traces", "Bearer the-key", "a"))
        follow.kill()
        follow.wait()
        self.fleet.wait_for_version(self.fleet.version("traced") + 3, "traced")
        self.fleet.follow("--otlp", receiver.url, "--state", "follow-state", "--otlp-clients", "1")
        self.fleet.wait_for_version(self.fleet.version("traced") + 3, "traced")
        self.fleet.ctl("--run", "traced", "stop")
        wait_until(lambda: self.fleet.status("traced")["state"] == "stopped", "the end")
        served = self.fleet.list("rounds", "traced")
        roots = lambda: {span["name"]: span["spanId"] for span in spans_of(receiver.bodies()) if not parent_of(span)}
        wait_until(lambda: len(roots()) >= len(served), "all traces")
        self.assertEqual(list(roots()), [f"round {round_['id']}" for round_ in served], "none is left out")
        # The kill may have come between a request and its position: what is sent again has the same ids.
        spans = list({span["spanId"]: span for span in reversed(spans_of(receiver.bodies()))}.values())[::-1]
        self.assertEqual(len(spans), len({(span["traceId"], span.get("parentSpanId"), span["name"]) for span in spans_of(receiver.bodies())}))
        self.check_traces(spans, served)
        # With the limit of one client, the other one is counted.
        by_name = {span["name"]: span for span in spans if not parent_of(span)}
        last = by_name[f"round {[one['id'] for one in served if one['state'] == 'committed'][-1]}"]
        attributes = attributes_of(last)
        self.assertEqual((attributes["terse.clients"], attributes["terse.clients_left_out"]), (2, 1))
        self.assertEqual(sorted(span["name"] for span in children_of(spans, by_name["round 2"])),
                         ["client traced-0", "client traced-1", "collecting", "committing"])
        self.assertEqual(served[-1]["state"], "aborted", "the round that `stop` gave up")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    OPTIONS, rest = parser.parse_known_args()

    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
