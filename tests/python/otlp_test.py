"""Traces that `tersectl follow` sends, read as OpenTelemetry's own ExportTraceServiceRequest: tests/frameworks.sh otlp."""

import base64
import json
import pathlib
import sys
import unittest

import followed_fleet
from fleet import end
from google.protobuf import json_format
from http_receiver import Receiver
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from round_traces import KIND_INTERNAL, STATUS_ERROR, STATUS_OK, TraceChecks, spans_of

BINARIES = pathlib.Path(sys.argv[1])


def parsed(body):
    """OTLP's JSON has ids in hexadecimal digits, where that of protocol buffers has base64."""
    request = json.loads(body)
    for span in spans_of([request]):
        for key in ("traceId", "spanId", "parentSpanId"):
            if key in span:
                span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return json_format.ParseDict(request, ExportTraceServiceRequest())  # unknown fields are errors


class Otlp(TraceChecks, unittest.TestCase):
    def test_requests_are_those_of_the_protocol(self):
        self.assertEqual((STATUS_OK, STATUS_ERROR, KIND_INTERNAL),
                         (Status.STATUS_CODE_OK, Status.STATUS_CODE_ERROR, Span.SPAN_KIND_INTERNAL))
        receiver = Receiver()
        self.addCleanup(receiver.close)
        fleet = followed_fleet.FollowedFleet(BINARIES)
        self.addCleanup(fleet.__exit__)
        fleet.start_coordinator("--trace-rounds", "100")
        fleet.create("traced", rounds=12)
        follow = fleet.follow_traces("traced", receiver.url)
        fleet.clients("traced")
        self.assertEqual(end(follow), 0, fleet.log("follow"))

        self.assertEqual({(path, headers["Content-Type"]) for path, headers, _ in receiver.got},
                         {("/v1/traces", "application/json")})
        self.check_resources(receiver.bodies(), "traced", fleet.status("traced")["lineage"])
        self.check_traces(spans_of(receiver.bodies()), fleet.list("rounds", "traced"))
        # The messages say the same, with nothing that the protocol does not know.
        messages = [span for _, _, body in receiver.got for resource in parsed(body).resource_spans
                    for scope in resource.scope_spans for span in scope.spans]
        self.assertEqual([(span.name, span.span_id.hex()) for span in messages],
                         [(span["name"], span["spanId"]) for span in spans_of(receiver.bodies())])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
