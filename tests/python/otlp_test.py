"""Traces that `tersectl follow` sends, read as OpenTelemetry's own ExportTraceServiceRequest: tests/frameworks.sh otlp."""

import base64
import http.server
import json
import pathlib
import sys
import threading
import unittest

import followed_fleet
from fleet import wait_until
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

BINARIES = pathlib.Path(sys.argv[1])


def parsed(body):
    """OTLP's JSON has ids in hexadecimal digits, where that of protocol buffers has base64."""
    request = json.loads(body)
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return json_format.ParseDict(request, ExportTraceServiceRequest())  # unknown fields are errors


class Otlp(unittest.TestCase):
    def test_requests_are_those_of_the_protocol(self):
        requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                requests.append((self.path, self.headers["Content-Type"],
                                 self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        fleet = followed_fleet.FollowedFleet(BINARIES)
        self.addCleanup(fleet.__exit__)
        fleet.start_coordinator("--trace-rounds", "100")
        fleet.create("traced", rounds=12)
        follow = fleet.follow("--run", "traced", "--otlp", f"http://127.0.0.1:{server.server_port}")
        wait_until(lambda: fleet.log("follow") or follow.poll() is None, "its start")
        fleet.clients("traced")
        self.assertEqual(follow.wait(60), 0, fleet.log("follow"))

        self.assertEqual({(path, kind) for path, kind, _ in requests}, {("/v1/traces", "application/json")})
        messages = [parsed(body) for _, _, body in requests]
        spans = [span for message in messages for resource in message.resource_spans
                 for scope in resource.scope_spans for span in scope.spans]
        attributes = {one.key: one.value.string_value for one in messages[0].resource_spans[0].resource.attributes}
        self.assertEqual(attributes, {"service.name": "terse-coordinator", "terse.run": "traced",
                                      "terse.lineage": fleet.status("traced")["lineage"]})
        by_id = {span.span_id: span for span in spans}
        self.assertEqual(len(by_id), len(spans))
        rounds = fleet.rounds("traced")
        roots = [span for span in spans if not span.parent_span_id]
        self.assertEqual([root.name for root in roots], [f"round {one['id']}" for one in rounds])
        for root, one in zip(roots, rounds):
            self.assertEqual((root.start_time_unix_nano, root.end_time_unix_nano),
                             (1000 * one["opened_us"], 1000 * one["committed_us"]))
            self.assertEqual((root.status.code, root.kind), (Status.STATUS_CODE_OK, Span.SPAN_KIND_INTERNAL))
        for span in spans:
            self.assertEqual((len(span.trace_id), len(span.span_id)), (16, 8))
            self.assertLessEqual(span.start_time_unix_nano, span.end_time_unix_nano)
            if span.parent_span_id:
                parent = by_id[span.parent_span_id]
                self.assertEqual(parent.trace_id, span.trace_id)
                self.assertGreaterEqual(span.start_time_unix_nano, parent.start_time_unix_nano)
        depth = lambda span: 0 if not span.parent_span_id else 1 + depth(by_id[span.parent_span_id])
        names = {}
        for span in spans:
            names.setdefault(depth(span), set()).add(span.name)
        self.assertEqual(names[1], {"collecting", "committing", "client traced-0", "client traced-1"})
        self.assertEqual(names[2], {"assignment", "training", "upload", "verdict"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
