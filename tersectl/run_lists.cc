// The lists of runs, rounds and what was done with them.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/compression_rate.h"
#include "tersectl/lists.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

using Kind = ColumnKind;
using Use = ColumnUse;

ListCell OptionalDecimal(bool is_known, double value) { return is_known ? DecimalCell(value) : UnknownCell(); }

ListCell OptionalBytes(bool is_known, uint64_t bytes) { return is_known ? BytesCell(bytes) : UnknownCell(); }

ListCell OptionalCount(bool is_known, uint64_t count) { return is_known ? CountCell(count) : UnknownCell(); }

ListCell RateCell(uint64_t dense, uint64_t sent) {
  const auto rate = CompressionRate(dense, sent);
  return rate.has_value() ? ListCell{RateText(*rate), *rate} : UnknownCell();
}

// The compression of both directions together, of a run or a round.
template <typename Row>
ListCell BothWays(const Row& row) {
  return RateCell(row.dense_bytes_up() + row.dense_bytes_down(), row.wire_bytes_up() + row.wire_bytes_down());
}

ListCell PeriodCell(int64_t from_us, int64_t to_us) {
  return to_us <= from_us ? UnknownCell() : SecondsCell(1e-6 * static_cast<double>(to_us - from_us));
}

ListCell CommittedRounds(const v1::Run& run) {
  return {absl::StrCat(run.version(), "/", run.rounds_total()), static_cast<double>(run.version())};
}

ListCell ResultOf(const v1::AuditRecord& record) {
  if (record.ended_us() == 0) return TextCell("under way");
  if (record.times() == 1) return TextCell(record.result());
  return TextCell(absl::StrCat(record.times(), " times until ", TimeText(record.ended_us()), ": ", record.result()));
}

using MetricKey = std::pair<std::string, std::string>;

ListCell MeanOf(const v1::Round& round, const MetricKey& key) {
  for (const v1::MetricMean& mean : round.metrics()) {
    if (mean.kind() == key.first && mean.name() == key.second) return DecimalCell(mean.mean());
  }
  return UnknownCell();
}

ListCell ReportersOf(const v1::Round& round) {
  uint32_t clients = 0;
  for (const v1::MetricMean& mean : round.metrics()) clients = std::max(clients, mean.clients());
  return CountCell(clients);
}

}  // namespace

List<v1::Run> RunList() {
  using R = const v1::Run&;
  return {
      "run",
      "the coordinator has no runs; `tersectl run create` makes one",
      {{"run", Kind::kText, [](R run) { return TextCell(run.name()); }},
       {"state", Kind::kText, [](R run) { return TextCell(run.state()); }},
       {"rounds", Kind::kNumber, CommittedRounds},
       {"accuracy", Kind::kNumber, [](R run) { return OptionalDecimal(run.has_accuracy(), run.accuracy()); }},
       {"best", Kind::kNumber, [](R run) { return OptionalDecimal(run.has_best_accuracy(), run.best_accuracy()); }},
       {"loss", Kind::kNumber, [](R run) { return OptionalDecimal(run.has_test_loss(), run.test_loss()); }, Use::kWide},
       {"up", Kind::kBytes, [](R run) { return OptionalBytes(run.has_wire_bytes_up(), run.wire_bytes_up()); }},
       {"down", Kind::kBytes, [](R run) { return OptionalBytes(run.has_wire_bytes_down(), run.wire_bytes_down()); }},
       {"time", Kind::kSeconds, [](R run) { return PeriodCell(run.first_opened_us(), run.last_committed_us()); }},
       {"phase", Kind::kText, [](R run) { return TextCell(run.phase()); }, Use::kUsualText},
       {"clients", Kind::kNumber, [](R run) { return CountCell(run.clients_connected()); }, Use::kWide},
       {"best_loss", Kind::kNumber,
        [](R run) { return OptionalDecimal(run.has_best_test_loss(), run.best_test_loss()); }, Use::kWide},
       {"compression", Kind::kNumber, [](R run) { return RateCell(run.dense_bytes_up(), run.wire_bytes_up()); },
        Use::kWide},
       {"both_ways", Kind::kNumber, BothWays<v1::Run>, Use::kWide},
       {"began", Kind::kTime, [](R run) { return TimeCell(run.first_opened_us()); }, Use::kWide},
       {"last_commit", Kind::kTime, [](R run) { return TimeCell(run.last_committed_us()); }, Use::kWide}}};
}

List<v1::Round> RoundList() {
  using R = const v1::Round&;
  return {
      "round",
      "there are no rounds",
      {{"round", Kind::kNumber, [](R round) { return CountCell(round.id()); }},
       {"state", Kind::kText, [](R round) { return TextCell(round.state()); }},
       {"updates", Kind::kNumber, [](R round) { return OptionalCount(round.has_updates(), round.updates()); }},
       // Clients report it with their updates.
       {"train_loss", Kind::kNumber,
        [](R round) { return OptionalDecimal(round.has_train_loss(), round.train_loss()); }},
       {"accuracy", Kind::kNumber, [](R round) { return OptionalDecimal(round.has_accuracy(), round.accuracy()); }},
       {"test_loss", Kind::kNumber, [](R round) { return OptionalDecimal(round.has_test_loss(), round.test_loss()); }},
       {"up", Kind::kBytes, [](R round) { return BytesCell(round.wire_bytes_up()); }},
       {"down", Kind::kBytes, [](R round) { return BytesCell(round.wire_bytes_down()); }},
       {"compression", Kind::kNumber, [](R round) { return RateCell(round.dense_bytes_up(), round.wire_bytes_up()); }},
       {"time", Kind::kSeconds, [](R round) { return PeriodCell(round.opened_us(), round.committed_us()); }},
       {"both_ways", Kind::kNumber, BothWays<v1::Round>, Use::kWide},
       {"training", Kind::kSeconds, [](R round) { return PeriodCell(0, round.train_us_max()); }, Use::kWide},
       {"opened", Kind::kTime, [](R round) { return TimeCell(round.opened_us()); }, Use::kWide},
       {"top5", Kind::kNumber, [](R round) { return OptionalDecimal(round.has_top5(), round.top5()); }, Use::kWide},
       {"perplexity", Kind::kNumber,
        [](R round) { return OptionalDecimal(round.has_perplexity(), round.perplexity()); }, Use::kWide},
       {"payload_up", Kind::kBytes, [](R round) { return BytesCell(round.payload_bytes_up()); }, Use::kWide},
       {"payload_down", Kind::kBytes, [](R round) { return BytesCell(round.payload_bytes_down()); }, Use::kWide},
       {"local_steps", Kind::kNumber,
        [](R round) { return OptionalCount(round.has_local_steps(), round.local_steps()); }, Use::kWide},
       {"coding", Kind::kNumber, [](R round) { return OptionalCount(round.has_local_steps(), round.choice()); },
        Use::kWide},
       {"why", Kind::kText,
        [](R round) { return TextCell(round.has_local_steps() ? round.why() : "as in the run file"); },
        Use::kWideText}}};
}

List<v1::AuditRecord> AuditList() {
  using R = const v1::AuditRecord&;
  return {"record",
          "the audit log has no records",
          {{"time", Kind::kTime, [](R record) { return TimeCell(record.time_us()); }},
           {"who", Kind::kText, [](R record) { return TextCell(record.who()); }},
           {"action", Kind::kText, [](R record) { return TextCell(record.action()); }},
           {"run", Kind::kText, [](R record) { return TextCell(record.run()); }},
           {"detail", Kind::kText, [](R record) { return TextCell(record.detail()); }, Use::kUsualText},
           {"result", Kind::kText, ResultOf, Use::kUsualText},
           {"from", Kind::kText, [](R record) { return TextCell(record.address()); }, Use::kWide},
           {"certificate", Kind::kText, [](R record) { return TextCell(record.certificate()); }, Use::kWide},
           {"record", Kind::kNumber, [](R record) { return CountCell(record.id()); }, Use::kWide}}};
}

List<RunConfigKey> ConfigKeyList() {
  using R = const RunConfigKey&;
  return {"key",
          "there are no keys",
          {{"key", Kind::kText, [](R key) { return TextCell(key.key); }},
           {"type", Kind::kText, [](R key) { return TextCell(key.type); }},
           {"default", Kind::kText, [](R key) { return TextCell(key.default_value); }},
           {"allowed", Kind::kText, [](R key) { return TextCell(key.allowed); }, Use::kUsualText},
           {"description", Kind::kText, [](R key) { return TextCell(key.description); }, Use::kWideText}}};
}

List<v1::Round> MetricList(const std::vector<v1::Round>& rounds) {
  std::map<MetricKey, bool> keys;
  for (const v1::Round& round : rounds) {
    for (const v1::MetricMean& mean : round.metrics()) keys[{mean.kind(), mean.name()}] = true;
  }
  List<v1::Round> list = {"round",
                          "no round of these has metrics by name; trainers report them with their updates "
                          "(docs/PYTHON.md, \"Metrics\")",
                          {{"round", Kind::kNumber, [](const v1::Round& round) { return CountCell(round.id()); }},
                           {"clients", Kind::kNumber, ReportersOf}}};
  for (const auto& entry : keys) {
    const MetricKey& key = entry.first;
    list.columns.push_back({absl::StrCat(key.first, "_", key.second), Kind::kNumber,
                            [key](const v1::Round& round) { return MeanOf(round, key); }});
  }
  return list;
}

}  // namespace terse
