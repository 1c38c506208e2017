"""`tersectl follow --otlp` with an OpenTelemetry collector, which writes what it took to a file: tests/frameworks.sh
collector."""

import json
import pathlib
import signal
import socket
import sys
import unittest

import followed_fleet
from fleet import end, wait_until
from round_traces import TraceChecks, spans_of

BINARIES = pathlib.Path(sys.argv[1])
COLLECTOR = pathlib.Path(sys.prefix) / "bin/otelcol"
ROUNDS = 30
CONFIGURATION = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "{address}"}}}}}}}}
exporters: {{file: {{path: "{file}", append: true}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}
"""


def free_address():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


class Collector(TraceChecks, unittest.TestCase):
    def setUp(self):
        self.fleet = followed_fleet.FollowedFleet(BINARIES)
        self.addCleanup(self.fleet.__exit__)
        self.fleet.start_coordinator("--trace-rounds", "1000")
        self.address, self.file = free_address(), self.fleet.folder / "traces.json"
        (self.fleet.folder / "collector.yaml").write_text(CONFIGURATION.format(address=self.address, file=self.file))

    def start_collector(self):
        started = self.fleet.log("collector").count("Everything is ready")
        collector = self.fleet.start("collector", COLLECTOR, "--config", self.fleet.folder / "collector.yaml")
        wait_until(lambda: self.fleet.log("collector").count("Everything is ready") > started
                   or collector.poll() is not None, "the collector serves")
        self.assertIsNone(collector.poll(), self.fleet.log("collector"))
        return collector

    def requests(self):
        """Each line is what the collector took with one request. The last one may be incomplete."""
        text = self.file.read_text() if self.file.exists() else ""
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def test_each_round_is_a_trace(self):
        collector = self.start_collector()
        self.fleet.create("traced", rounds=ROUNDS)
        follow = self.fleet.follow_traces("traced", f"http://{self.address}")
        self.fleet.clients("traced")
        self.assertEqual(end(follow), 0, self.fleet.log("follow") + self.fleet.log("collector"))
        collector.send_signal(signal.SIGTERM)
        self.assertEqual(end(collector), 0, self.fleet.log("collector"))
        requests = self.requests()
        self.check_resources(requests, "traced", self.fleet.status("traced")["lineage"])
        rounds = self.fleet.list("rounds", "traced")
        self.assertEqual([one["updates"] for one in rounds], [2] * ROUNDS)
        spans = spans_of(requests)
        self.assertEqual(len(spans), ROUNDS * 13, "the round, its two phases, two clients and four phases of each")
        self.check_traces(spans, rounds)
        self.assertNotIn("error", self.fleet.log("collector").lower())

    def test_a_collector_that_was_away_gets_what_it_missed(self):
        self.fleet.create("traced")
        follow = self.fleet.follow_traces("traced", f"http://{self.address}")
        self.fleet.clients("traced")
        wait_until(lambda: "no answer from" in self.fleet.log("follow"), "the line that it is away")
        collector = self.start_collector()
        for _ in range(2):
            reached = self.fleet.version("traced") + 10
            wait_until(lambda: f"round {reached}" in {span["name"] for span in spans_of(self.requests())},
                       f"round {reached}")
            collector.send_signal(signal.SIGTERM)
            self.assertEqual(end(collector), 0, self.fleet.log("collector"))
            collector = self.start_collector()
        self.fleet.ctl("--run", "traced", "stop")
        self.assertEqual(end(follow, 120), 0, self.fleet.log("follow"))
        collector.send_signal(signal.SIGTERM)
        self.assertEqual(end(collector), 0, self.fleet.log("collector"))
        # A request whose answer was lost is made again, with the same ids.
        spans = spans_of(self.requests())
        once = {span["spanId"]: span for span in spans}
        for span in spans:
            self.assertEqual(span, once[span["spanId"]])
        self.check_traces(list(once.values()), self.fleet.list("rounds", "traced"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
