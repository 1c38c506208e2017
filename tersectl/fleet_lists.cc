// The lists of clients and of what they sent and reported.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tersectl/lists.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

using Kind = ColumnKind;
using Use = ColumnUse;

// Where a client stands is known while it is here.
ListCell WhileHere(const v1::Client& client, uint64_t count) {
  return client.connected() ? CountCell(count) : UnknownCell();
}

ListCell ResidualOf(const v1::Client& client) {
  if (!client.has_residual_norm()) return UnknownCell();
  return {absl::StrFormat("%.2g", client.residual_norm()), client.residual_norm()};
}

// The columns of the tree below a relay.
ListCell BelowCount(const v1::Client& client) {
  return client.has_below() ? CountCell(client.below().clients()) : UnknownCell();
}
ListCell BelowBytes(const v1::Client& client, uint64_t bytes) {
  return client.has_below() ? BytesCell(bytes) : UnknownCell();
}

ListCell SetAsideOf(const v1::Client& client) {
  if (client.set_aside_until_us() == 0) return TextCell("");
  return TextCell(absl::StrCat("until ", TimeText(client.set_aside_until_us()), ": ", client.set_aside_reason()));
}

}  // namespace

List<v1::Client> ClientList() {
  using R = const v1::Client&;
  return {"client",
          "no client ever checked in",
          {{"client", Kind::kText, [](R client) { return TextCell(client.name()); }},
           {"state", Kind::kText, [](R client) { return TextCell(client.state()); }},
           {"version", Kind::kNumber, [](R client) { return WhileHere(client, client.version()); }},
           {"applied", Kind::kNumber, [](R client) { return CountCell(client.updates_applied()); }},
           {"up", Kind::kBytes, [](R client) { return BytesCell(client.wire_bytes_up()); }},
           {"down", Kind::kBytes, [](R client) { return BytesCell(client.wire_bytes_down()); }},
           {"last_seen", Kind::kTime, [](R client) { return TimeCell(client.last_seen_us()); }},
           {"reliability", Kind::kNumber, [](R client) { return DecimalCell(client.reliability()); }, Use::kWide},
           {"failures", Kind::kNumber, [](R client) { return CountCell(client.failures()); }, Use::kWide},
           {"samples", Kind::kNumber, [](R client) { return CountCell(client.samples()); }, Use::kWide},
           {"steps", Kind::kNumber, [](R client) { return WhileHere(client, client.steps_done()); }, Use::kWide},
           {"not_applied", Kind::kNumber, [](R client) { return CountCell(client.updates_not_applied()); }, Use::kWide},
           {"resets", Kind::kNumber, [](R client) { return CountCell(client.resets()); }, Use::kWide},
           {"connected", Kind::kText, [](R client) { return TextCell(client.connected() ? "yes" : "no"); }, Use::kWide},
           {"device", Kind::kText, [](R client) { return TextCell(client.device()); }, Use::kWide},
           {"residual", Kind::kNumber, ResidualOf, Use::kWide},
           {"below", Kind::kNumber, BelowCount, Use::kWide},
           {"below_up", Kind::kBytes, [](R client) { return BelowBytes(client, client.below().wire_bytes_up()); },
            Use::kWide},
           {"below_down", Kind::kBytes, [](R client) { return BelowBytes(client, client.below().wire_bytes_down()); },
            Use::kWide},
           {"first_seen", Kind::kTime, [](R client) { return TimeCell(client.first_seen_us()); }, Use::kWide},
           {"index", Kind::kNumber, [](R client) { return CountCell(client.index()); }, Use::kWide},
           {"set_aside", Kind::kText, SetAsideOf, Use::kWideText}}};
}

List<v1::Event> EventList() {
  using R = const v1::Event&;
  return {"event",
          "nothing has happened yet",
          {{"time", Kind::kTime, [](R event) { return TimeCell(event.time_us()); }},
           {"kind", Kind::kText, [](R event) { return TextCell(event.kind()); }},
           {"round", Kind::kNumber, [](R event) { return event.round() == 0 ? ListCell() : CountCell(event.round()); }},
           {"client", Kind::kText, [](R event) { return TextCell(ClientText(event.client(), event.client_name())); }},
           {"detail", Kind::kText, [](R event) { return TextCell(event.detail()); }, Use::kUsualText},
           {"id", Kind::kNumber, [](R event) { return CountCell(event.id()); }, Use::kWide}}};
}

List<v1::LedgerRow> LedgerList() {
  using R = const v1::LedgerRow&;
  return {"row",
          "the ledger has no rows of these rounds; `tersectl rounds` has the sums of all",
          {{"round", Kind::kNumber, [](R row) { return CountCell(row.round()); }},
           {"client", Kind::kText, [](R row) { return TextCell(ClientText(row.client(), row.client_name())); }},
           {"direction", Kind::kText, [](R row) { return TextCell(row.direction()); }},
           {"dense", Kind::kBytes, [](R row) { return BytesCell(row.dense_bytes()); }},
           {"payload", Kind::kBytes, [](R row) { return BytesCell(row.payload_bytes()); }},
           {"wire", Kind::kBytes, [](R row) { return BytesCell(row.wire_bytes()); }}}};
}

List<v1::ClientMetric> ClientMetricList() {
  using R = const v1::ClientMetric&;
  return {
      "metric",
      "no client of these rounds has metrics by name; trainers report them with their updates (docs/PYTHON.md, "
      "\"Metrics\")",
      {{"round", Kind::kNumber, [](R metric) { return CountCell(metric.round()); }},
       {"client", Kind::kText, [](R metric) { return TextCell(ClientText(metric.client(), metric.client_name())); }},
       {"kind", Kind::kText, [](R metric) { return TextCell(metric.kind()); }},
       {"metric", Kind::kText, [](R metric) { return TextCell(metric.name()); }},
       {"value", Kind::kNumber, [](R metric) { return DecimalCell(metric.value()); }},
       {"samples", Kind::kNumber, [](R metric) { return CountCell(metric.samples()); }}}};
}

}  // namespace terse
