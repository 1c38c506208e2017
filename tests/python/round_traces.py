"""Checks of the traces that `tersectl follow --otlp` sends, against the rounds that the coordinator serves. Spans are as in
the JSON of OpenTelemetry's protocol, whoever wrote it."""

PHASES = ["assignment", "training", "upload", "verdict"]
STATUS_OK, STATUS_ERROR, KIND_INTERNAL = 1, 2, 1


def spans_of(requests):
    """The spans of ExportTraceServiceRequests, in their order."""
    return [span for request in requests for resource in request["resourceSpans"]
            for scope in resource["scopeSpans"] for span in scope["spans"]]


def attributes_of(thing):
    """Of a span or a resource, by name."""
    values = {}
    for attribute in thing.get("attributes", []):
        ((kind, value),) = attribute["value"].items()
        values[attribute["key"]] = int(value) if kind == "intValue" else value
    return values


def parent_of(span):
    return span.get("parentSpanId") or None


def children_of(spans, parent):
    return [span for span in spans if parent_of(span) == parent["spanId"] and span["traceId"] == parent["traceId"]]


class TraceChecks:
    """For a unittest.TestCase."""

    def check_resources(self, requests, run, lineage):
        for request in requests:
            for resource in request["resourceSpans"]:
                self.assertEqual(attributes_of(resource["resource"]),
                                 {"service.name": "terse-coordinator", "terse.run": run, "terse.lineage": lineage})
                self.assertEqual({scope["scope"]["name"] for scope in resource["scopeSpans"]}, {"terse"})

    def check_traces(self, spans, rounds):
        """spans: each once. rounds: as `tersectl rounds --json` lists them, all of them."""
        by_id = {span["spanId"]: span for span in spans}
        self.assertEqual(len(by_id), len(spans), "each id once")
        for span in spans:
            self.assertRegex(span["traceId"], "^[0-9a-f]{32}$")
            self.assertRegex(span["spanId"], "^[0-9a-f]{16}$")
            self.assertEqual(span["kind"], KIND_INTERNAL)
            self.assertGreaterEqual(int(span["endTimeUnixNano"]), int(span["startTimeUnixNano"]), span)
            if parent_of(span):
                self.assertIn(parent_of(span), by_id, span)
                parent = by_id[parent_of(span)]
                self.assertEqual(parent["traceId"], span["traceId"])
                self.assertGreaterEqual(int(span["startTimeUnixNano"]), int(parent["startTimeUnixNano"]), span)
        roots = {span["name"]: span for span in spans if not parent_of(span)}
        self.assertEqual(set(roots), {f"round {one['id']}" for one in rounds}, "a trace for each round")
        self.assertEqual(len({root["traceId"] for root in roots.values()}), len(rounds))
        counted = sum(self._check_round(spans, roots[f"round {one['id']}"], one) for one in rounds)
        self.assertEqual(counted, len(spans), "no span is beside these trees")

    def _check_round(self, spans, root, one):
        """Returns how many spans it has."""
        is_committed = one["state"] == "committed"
        self.assertEqual((int(root["startTimeUnixNano"]), int(root["endTimeUnixNano"])),
                         (1000 * one["opened_us"], 1000 * one["committed_us"]))
        status = {"code": STATUS_OK} if is_committed else {"code": STATUS_ERROR, "message": "aborted"}
        self.assertEqual(root["status"], status)
        attributes = attributes_of(root)
        # The round that `stop` gave up has more bytes once its clients have left.
        counted = ("wire_bytes_up", "wire_bytes_down") if is_committed else ()
        for key in ("state", *counted, "train_loss", "accuracy", "test_loss"):
            self.assertEqual(attributes.get(f"terse.{key}"), one[key], key)
        self.assertEqual((attributes["terse.round"], attributes["terse.updates"]), (one["id"], one["updates"] or 0))
        children = children_of(spans, root)
        clients = [child for child in children if child["name"].startswith("client ")]
        phases = sorted((child for child in children if child not in clients), key=lambda child: child["name"])
        expected = ["collecting"] if one["closed_us"] is None else ["collecting", "committing"]
        self.assertEqual([phase["name"] for phase in phases], expected)
        self._check_follow_each_other(root, phases)
        self.assertEqual(len(clients), attributes["terse.clients"] - attributes["terse.clients_left_out"])
        if is_committed and attributes["terse.clients_left_out"] == 0:
            self.assertEqual(sum(attributes_of(client)["terse.outcome"] == "applied" for client in clients), one["updates"])
        return 1 + len(phases) + sum(self._check_client(spans, client) for client in clients)

    def _check_client(self, spans, client):
        attributes = attributes_of(client)
        self.assertEqual(client["name"], f"client {attributes['terse.client']}")
        phases = children_of(spans, client)
        for phase in phases:
            self.assertEqual(children_of(spans, phase), [])
        if client["status"]["code"] == STATUS_ERROR:
            self.assertEqual((client["status"].get("message"), phases), ("no update came", []))
            return 1
        self.assertGreater(attributes["terse.payload_bytes"], 0)
        self.assertEqual([phase["name"] for phase in phases], PHASES)
        self._check_follow_each_other(client, phases)
        return 1 + len(phases)

    def _check_follow_each_other(self, parent, phases):
        """They fill the parent's time."""
        times = [int(parent["startTimeUnixNano"])]
        for phase in phases:
            self.assertEqual(int(phase["startTimeUnixNano"]), times[-1], phase)
            times.append(int(phase["endTimeUnixNano"]))
        self.assertEqual(times[-1], int(parent["endTimeUnixNano"]))
