#include "tests/testing/memory_run_store.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr size_t kKeptEvents = 256;

absl::Status Broken(absl::string_view what) { return absl::FailedPreconditionError(what); }

bool Settled(RoundState state) { return state == RoundState::kCommitted || state == RoundState::kAborted; }

// Serving a file's size does not need the file.
int64_t FileBytes(const Checkpoint& checkpoint) {
  return static_cast<int64_t>(SerializeCheckpoint(Checkpoint{}).size() + checkpoint.weights.size() * sizeof(float));
}

}  // namespace

void MemoryRunStore::Reopen() {
  head_.epoch += 1;
  if (rounds_.empty() || rounds_.back().record.state != RoundState::kClosed) return;
  if (run_.has_value() && !run_->relay.empty()) return;
  rounds_.back().record.state = RoundState::kAborted;
  AddEvent({0, "round_aborted", rounds_.back().record.id, -1, "the coordinator stopped"}).IgnoreError();
}

absl::Status MemoryRunStore::CreateRun(const RunRecord& run, absl::Span<const float> initial_weights) {
  if (run.lineage.IsZero() || run.parameters != static_cast<int64_t>(initial_weights.size())) {
    return absl::InvalidArgumentError("a run needs a lineage and its weights");
  }
  if (run_.has_value()) return absl::AlreadyExistsError("there is a run");
  run_ = run;
  run_->first_version = 0;  // it is not stored
  head_.version = run.first_version;
  head_.model_hash = HashWeights(initial_weights);
  if (head_.version == 0) start_hash_ = head_.model_hash;
  checkpoints_[head_.version] = {head_.version, head_.model_hash, {initial_weights.begin(), initial_weights.end()}};
  return absl::OkStatus();
}

absl::Status MemoryRunStore::SetRunState(RunState state, const std::string& reason) {
  if (!run_.has_value()) return Broken("there is no run yet");
  run_->state = state;
  run_->reason = reason;
  return absl::OkStatus();
}

absl::StatusOr<ClientRecord> MemoryRunStore::RegisterClient(const std::string& name, int64_t now_us) {
  if (name.empty()) return absl::InvalidArgumentError("a client needs a name");
  for (ClientRecord& client : clients_) {
    if (client.name != name) continue;
    client.last_seen_us = now_us;
    return client;
  }
  ClientRecord client;
  client.id = static_cast<int64_t>(clients_.size());
  client.name = name;
  client.first_seen_us = client.last_seen_us = now_us;
  clients_.push_back(client);
  return client;
}

ClientRecord* MemoryRunStore::FindClient(int64_t client) {
  return client >= 0 && client < static_cast<int64_t>(clients_.size()) ? &clients_[client] : nullptr;
}

template <typename Change>
absl::Status MemoryRunStore::ChangeClient(int64_t client, Change change) {
  ClientRecord* record = FindClient(client);
  if (record == nullptr) return Broken(absl::StrCat("there is no client ", client));
  change(record);
  return absl::OkStatus();
}

absl::StatusOr<ClientRecord> MemoryRunStore::ClientNamed(const std::string& name) {
  for (const ClientRecord& client : clients_) {
    if (client.name == name) return client;
  }
  return absl::NotFoundError(absl::StrCat("there is no client '", name, "'"));
}

absl::StatusOr<ClientRecord> MemoryRunStore::GetClient(int64_t client) {
  const ClientRecord* record = FindClient(client);
  if (record == nullptr) return absl::NotFoundError(absl::StrCat("there is no client ", client));
  return *record;
}

absl::Status MemoryRunStore::RecordNotApplied(int64_t client) {
  return ChangeClient(client, [](ClientRecord* record) { record->updates_not_applied += 1; });
}

absl::Status MemoryRunStore::RecordReset(int64_t client) {
  return ChangeClient(client, [&](ClientRecord* record) {
    record->resets += 1;
    histories_.erase(client);
  });
}

absl::StatusOr<ClientRecord> MemoryRunStore::RecordFailure(int64_t client) {
  ClientRecord* record = FindClient(client);
  if (record == nullptr) return absl::NotFoundError(absl::StrCat("there is no client ", client));
  record->failures += 1;
  record->reliability *= 0.9;
  return *record;
}

absl::Status MemoryRunStore::SetAside(int64_t client, int64_t until_us, const std::string& reason) {
  TERSE_RETURN_IF_ERROR(ChangeClient(client, [&](ClientRecord* record) {
    record->set_aside_until_us = until_us;
    record->set_aside_reason = until_us == 0 ? "" : reason;
    if (until_us == 0) record->failures = 0;
  }));
  return AddEvent({0, until_us == 0 ? "client_readmitted" : "client_set_aside", 0, client, reason});
}

absl::Status MemoryRunStore::SetSamples(int64_t client, int64_t samples) {
  return ChangeClient(client, [&](ClientRecord* record) { record->samples = samples; });
}

absl::Status MemoryRunStore::SetBelow(const BelowRecord& below) {
  if (FindClient(below.client) == nullptr) return absl::FailedPreconditionError("no such client");
  below_[below.client] = below;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BelowRecord>> MemoryRunStore::Below() {
  std::vector<BelowRecord> all;
  for (const auto& [client, below] : below_) all.push_back(below);
  return all;
}

const MemoryRunStore::Round* MemoryRunStore::FindRound(int64_t round) const {
  return round >= 1 && round <= static_cast<int64_t>(rounds_.size()) ? &rounds_[round - 1] : nullptr;
}

absl::StatusOr<absl::optional<RoundRecord>> MemoryRunStore::LastRound() {
  if (rounds_.empty()) return absl::optional<RoundRecord>();
  return absl::make_optional(rounds_.back().record);
}

absl::StatusOr<absl::optional<RoundState>> MemoryRunStore::GetRoundState(int64_t round) {
  const Round* found = FindRound(round);
  return found == nullptr ? absl::optional<RoundState>() : absl::make_optional(found->record.state);
}

absl::StatusOr<bool> MemoryRunStore::WasChosen(int64_t round, int64_t client) {
  const Round* found = FindRound(round);
  if (found == nullptr) return false;
  return std::any_of(found->chosen.begin(), found->chosen.end(),
                     [client](const ChosenUpdate& update) { return update.client == client; });
}

absl::StatusOr<absl::optional<int64_t>> MemoryRunStore::BaseVersionOf(int64_t round) {
  const Round* found = FindRound(round);
  return found == nullptr ? absl::optional<int64_t>() : absl::make_optional(found->record.base_version);
}

absl::StatusOr<absl::optional<RunStore::Fate>> MemoryRunStore::FateOf(Id128 update_id, int64_t client,
                                                                      int64_t asked_round) {
  for (auto round = rounds_.rbegin(); round != rounds_.rend(); ++round) {
    for (const ChosenUpdate& update : round->chosen) {
      const bool looked_at =
          update.prev_applied.IsZero() || (update.client == client && round->record.id >= asked_round);
      if (looked_at && update.update_id == update_id) {
        return absl::make_optional(Fate{update.client, round->record.state});
      }
    }
    for (const RefusedUpdate& update : round->refused) {
      if (update.update_id != update_id) continue;
      return absl::make_optional(Fate{update.client, round->record.state, update.reason});
    }
  }
  return absl::optional<Fate>();
}

absl::Status MemoryRunStore::CheckOpen(int64_t round, int64_t base_version, const Head& head,
                                       const RoundRecord* last) const {
  if (last != nullptr && !Settled(last->state)) return Broken("the last round is not settled");
  if (round != (last == nullptr ? 1 : last->id + 1)) return Broken("it is not the next round");
  if (head.version != base_version || head.model_hash.IsZero()) return Broken("the head is another version");
  return absl::OkStatus();
}

absl::Status MemoryRunStore::OpenRound(int64_t round, int64_t base_version, int64_t now_us,
                                       const absl::optional<RoundPlan>& plan) {
  TERSE_RETURN_IF_ERROR(CheckOpen(round, base_version, head_, rounds_.empty() ? nullptr : &rounds_.back().record));
  RoundRecord record;
  record.id = round;
  record.base_version = base_version;
  record.opened_us = now_us;
  record.plan = plan;
  rounds_.push_back({record, {}, {}});
  return absl::OkStatus();
}

absl::Status MemoryRunStore::CloseRound(int64_t round, absl::Span<const ChosenUpdate> chosen, int64_t now_us,
                                        absl::Span<const RefusedUpdate> refused) {
  const Round* found = FindRound(round);
  if (found == nullptr || found->record.state != RoundState::kOpen) return Broken("the round is not open");
  for (const ChosenUpdate& update : chosen) {
    const ClientRecord* client = FindClient(update.client);
    if (update.update_id.IsZero()) return absl::InvalidArgumentError("an update has no id");
    if (client == nullptr || client->last_applied != update.prev_applied) {
      return Broken("the update does not follow the client's last applied one");
    }
  }
  for (const RefusedUpdate& update : refused) {
    if (update.update_id.IsZero() || update.reason.empty()) return absl::InvalidArgumentError("a refusal lacks its id");
    if (FindClient(update.client) == nullptr) return Broken("there is no such client");
  }
  Round& closed = rounds_[round - 1];
  closed.chosen.assign(chosen.begin(), chosen.end());
  closed.refused.assign(refused.begin(), refused.end());
  for (const RefusedUpdate& update : refused) {
    TERSE_RETURN_IF_ERROR(RecordReset(update.client));
    TERSE_RETURN_IF_ERROR(AddEvent({now_us, "update_rejected", round, update.client, update.reason}));
  }
  closed.record.state = RoundState::kClosed;
  closed.record.closed_us = now_us;
  closed.record.updates = static_cast<int64_t>(chosen.size());
  std::vector<absl::Span<const NamedMetric>> metrics;
  for (const ChosenUpdate& update : chosen) {
    metrics.emplace_back(update.metrics);
    closed.record.update_bytes += update.payload_bytes;
    closed.record.train_loss += update.loss / static_cast<double>(chosen.size());
  }
  closed.record.metrics = MeanMetrics(metrics);
  return absl::OkStatus();
}

absl::Status MemoryRunStore::CheckCommit(const Commit& commit, bool open_next) const {
  const bool makes_model = !commit.model_hash.IsZero();
  if (!makes_model && (open_next || !commit.downstream.empty() || !commit.aggregate.empty())) {
    return absl::InvalidArgumentError("a commit needs the new model's hash");
  }
  const Round* round = FindRound(commit.round);
  if (round == nullptr || round->record.state != RoundState::kClosed) return Broken("the round is not closed");
  if (round->record.base_version != commit.base_version || head_.version != commit.base_version) {
    return Broken("the head is another version");
  }
  for (const ChosenUpdate& update : round->chosen) {
    if (clients_[update.client].last_applied != update.prev_applied) return Broken("a predecessor changed");
  }
  for (const HistoryMessage& message : commit.history) {
    const auto counts = [&message](const ChosenUpdate& update) { return update.client == message.client; };
    if (std::none_of(round->chosen.begin(), round->chosen.end(), counts)) return Broken("a history of another client");
  }
  if (open_next && commit.round != static_cast<int64_t>(rounds_.size())) return Broken("it is not the last round");
  return CheckLedger(commit.ledger);
}

absl::Status MemoryRunStore::CommitRound(const Commit& commit, bool open_next) {
  TERSE_RETURN_IF_ERROR(CheckCommit(commit, open_next));
  Round& round = rounds_[commit.round - 1];
  for (const ChosenUpdate& update : round.chosen) {
    ClientRecord& client = clients_[update.client];
    client.last_applied = update.update_id;
    client.updates_applied += 1;
    client.last_seen_us = commit.committed_us;
    client.failures = 0;
    client.reliability = 0.9 * client.reliability + 0.1;
    applied_.push_back(update);
  }
  for (const HistoryMessage& message : commit.history) {
    histories_[message.client].log.emplace_back(message.message);
  }
  round.record.state = RoundState::kCommitted;
  round.record.committed_us = commit.committed_us;
  if (!commit.model_hash.IsZero()) {
    head_.version += 1;
    head_.model_hash = commit.model_hash;
    log_[head_.version] = {head_.version, commit.model_hash, commit.downstream};
    if (!commit.aggregate.empty()) aggregates_[head_.version] = commit.aggregate;
  }
  TERSE_RETURN_IF_ERROR(AddLedger(commit.ledger));
  return open_next ? OpenRound(commit.round + 1, head_.version, commit.committed_us, commit.next_plan)
                   : absl::OkStatus();
}

absl::Status MemoryRunStore::CheckMovableHead() const {
  if (!run_.has_value()) return Broken("there is no run yet");
  return rounds_.empty() || Settled(rounds_.back().record.state) ? absl::OkStatus() : Broken("a round is not settled");
}

absl::Status MemoryRunStore::AppendMessage(const LogMessage& message) {
  TERSE_RETURN_IF_ERROR(CheckMovableHead());
  if (message.version != head_.version + 1) return Broken("the message does not follow the head");
  head_.version = message.version;
  head_.model_hash = message.model_hash;
  log_[message.version] = message;
  return absl::OkStatus();
}

absl::Status MemoryRunStore::ReplaceHead(const CheckpointView& model) {
  if (HashWeights(model.weights) != model.model_hash) return absl::InvalidArgumentError("a model needs its hash");
  TERSE_RETURN_IF_ERROR(CheckMovableHead());
  if (model.version <= head_.version) return Broken("the version is not later than the head");
  head_.version = model.version;
  head_.model_hash = model.model_hash;
  log_.clear();
  aggregates_.clear();
  checkpoints_.clear();
  checkpoints_[model.version] = {model.version, model.model_hash, {model.weights.begin(), model.weights.end()}};
  return absl::OkStatus();
}

absl::Status MemoryRunStore::AbortRound(int64_t round, const std::string& reason, int64_t now_us) {
  const Round* found = FindRound(round);
  if (found == nullptr || Settled(found->record.state)) return Broken("the round is neither open nor closed");
  rounds_[round - 1].record.state = RoundState::kAborted;
  rounds_[round - 1].record.committed_us = now_us;
  return AddEvent({now_us, "round_aborted", round, -1, reason});
}

absl::Status MemoryRunStore::SetEvaluation(int64_t round, const Evaluation& evaluation) {
  const Round* found = FindRound(round);
  if (found == nullptr || found->record.state != RoundState::kCommitted) return Broken("the round is not committed");
  RoundRecord& record = rounds_[round - 1].record;
  const auto number = [](absl::optional<double> value) {
    return value.has_value() && std::isnan(*value) ? absl::nullopt : value;
  };
  record.accuracy = number(evaluation.accuracy);
  record.test_loss = number(evaluation.loss);
  record.top5 = number(evaluation.top5);
  record.perplexity = number(evaluation.perplexity);
  std::vector<MetricMean>& means = record.metrics;
  means.erase(
      std::remove_if(means.begin(), means.end(), [](const MetricMean& mean) { return mean.kind == MetricKind::kTest; }),
      means.end());
  for (const NamedMetric& metric : evaluation.metrics) {
    means.push_back({metric.kind, metric.name, metric.value, 0, metric.samples});
  }
  return absl::OkStatus();
}

absl::Status MemoryRunStore::CheckLedger(absl::Span<const LedgerEntry> entries) const {
  for (const LedgerEntry& entry : entries) {
    const bool counts = entry.dense_bytes >= 0 && entry.payload_bytes >= 0 && entry.wire_bytes >= 0;
    const bool known = entry.client >= 0 && entry.client < static_cast<int64_t>(clients_.size());
    if (!known || !counts || entry.round < 0) return Broken("the ledger counts bytes of clients");
  }
  return absl::OkStatus();
}

absl::Status MemoryRunStore::AddLedger(absl::Span<const LedgerEntry> entries) {
  TERSE_RETURN_IF_ERROR(CheckLedger(entries));
  for (const LedgerEntry& entry : entries) {
    const auto row = std::find_if(ledger_.begin(), ledger_.end(), [&entry](const LedgerEntry& other) {
      return other.round == entry.round && other.client == entry.client && other.direction == entry.direction;
    });
    if (row == ledger_.end()) {
      ledger_.push_back(entry);
      continue;
    }
    row->dense_bytes += entry.dense_bytes;
    row->payload_bytes += entry.payload_bytes;
    row->wire_bytes += entry.wire_bytes;
  }
  return absl::OkStatus();
}

absl::Status MemoryRunStore::AddEvent(const EventRecord& event) {
  if (events_.size() == kKeptEvents) events_.erase(events_.begin(), events_.begin() + kKeptEvents / 2);
  events_.push_back(event);
  event_count_ += 1;
  events_.back().id = event_count_;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<LogMessage>> MemoryRunStore::ReadLogPart(int64_t after, int64_t up_to, int64_t max_bytes) {
  if (after < 0 || after > up_to || up_to > head_.version) return absl::InvalidArgumentError("no such versions");
  std::vector<LogMessage> messages;
  for (auto it = log_.upper_bound(after); it != log_.end() && it->first <= up_to; ++it) {
    const int64_t bytes = static_cast<int64_t>(it->second.downstream.size());
    if (!messages.empty() && bytes > max_bytes && messages.front().version == after + 1) return messages;
    max_bytes -= bytes;
    messages.push_back(it->second);
  }
  if (static_cast<int64_t>(messages.size()) == up_to - after) return messages;
  return absl::OutOfRangeError("the log no longer reaches back");
}

absl::StatusOr<int64_t> MemoryRunStore::LogBytes(int64_t after) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<LogMessage> messages, ReadLog(after, head_.version));
  int64_t bytes = 0;
  for (const LogMessage& message : messages) bytes += static_cast<int64_t>(message.downstream.size());
  return bytes;
}

absl::StatusOr<std::string> MemoryRunStore::ReadAggregate(int64_t version) {
  const auto found = aggregates_.find(version);
  if (found == aggregates_.end()) return absl::NotFoundError("the updates that led to the version are not kept");
  return found->second;
}

absl::StatusOr<HistoryRecord> MemoryRunStore::ReadHistory(int64_t client) {
  const auto found = histories_.find(client);
  return found == histories_.end() ? HistoryRecord() : found->second;
}

absl::Status MemoryRunStore::CompactHistory(int64_t client, int64_t messages, absl::string_view state) {
  const auto found = histories_.find(client);
  if (found == histories_.end() || messages < 1 || found->second.count() != messages)
    return Broken("a history of other updates");
  found->second = {messages, std::string(state), {}};
  return absl::OkStatus();
}

absl::Status MemoryRunStore::ForgetHistory(int64_t client) {
  histories_.erase(client);
  return absl::OkStatus();
}

int64_t MemoryRunStore::OldestCheapVersion(int64_t bytes) const {
  int64_t version = head_.version;
  for (auto it = log_.rbegin(); it != log_.rend(); ++it) {
    bytes -= static_cast<int64_t>(it->second.downstream.size());
    if (bytes < 0) break;
    version = it->first - 1;
  }
  return version;
}

absl::Status MemoryRunStore::WriteCheckpoint(const CheckpointView& checkpoint, int64_t keep) {
  if (keep < 1 || HashWeights(checkpoint.weights) != checkpoint.model_hash) {
    return absl::InvalidArgumentError("a checkpoint needs its hash and is kept");
  }
  if (!run_.has_value() || checkpoint.version < 0 || checkpoint.version > head_.version) {
    return Broken("the version is not committed");
  }
  const int64_t begin = log_.empty() ? head_.version : log_.begin()->first - 1;
  if (checkpoint.version < begin) return Broken("the log no longer reaches back");
  const auto logged = log_.find(checkpoint.version);
  const bool known = checkpoint.version == head_.version || logged != log_.end();
  const Id128 committed = logged != log_.end() ? logged->second.model_hash : head_.model_hash;
  if (known && committed != checkpoint.model_hash) return Broken("the version was committed with another hash");
  Checkpoint& kept = checkpoints_[checkpoint.version];
  kept = {checkpoint.version, checkpoint.model_hash, {checkpoint.weights.begin(), checkpoint.weights.end()}};
  for (const absl::Span<const float> part : checkpoint.server_state) {
    kept.server_state.insert(kept.server_state.end(), part.begin(), part.end());
  }
  while (static_cast<int64_t>(checkpoints_.size()) > keep) checkpoints_.erase(checkpoints_.begin());
  aggregates_.erase(aggregates_.begin(), aggregates_.upper_bound(checkpoints_.begin()->first));
  const int64_t cheap = OldestCheapVersion(FileBytes(checkpoints_.rbegin()->second));
  log_.erase(log_.begin(), log_.upper_bound(std::min(checkpoints_.begin()->first, cheap)));
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> MemoryRunStore::ReadNewestCheckpoint() {
  if (checkpoints_.empty()) return absl::DataLossError("there is no checkpoint");
  return checkpoints_.rbegin()->second;
}

absl::StatusOr<RunStore::CheckpointFile> MemoryRunStore::NewestCheckpointFile() {
  if (checkpoints_.empty()) return absl::NotFoundError("there is no checkpoint");
  const Checkpoint& newest = checkpoints_.rbegin()->second;
  return CheckpointFile{newest.version, newest.model_hash, "", FileBytes(newest)};
}

absl::Status MemoryRunStore::Backup(const std::string& directory) {
  return absl::UnimplementedError("a store in memory has no files to copy");
}

absl::StatusOr<std::vector<RoundRecord>> MemoryRunStore::Rounds(int64_t first, int64_t last) {
  std::vector<RoundRecord> found;
  for (const Round& round : rounds_) {
    if (round.record.id >= first && round.record.id <= last) found.push_back(round.record);
  }
  return found;
}

std::string MemoryRunStore::NameOf(int64_t client) const {
  const bool known = client >= 0 && client < static_cast<int64_t>(clients_.size());
  return known ? clients_[client].name : "";
}

absl::StatusOr<std::vector<LedgerEntry>> MemoryRunStore::Ledger(int64_t first_round, int64_t last_round) {
  std::vector<LedgerEntry> found;
  for (const LedgerEntry& entry : ledger_) {
    if (entry.round < first_round || entry.round > last_round) continue;
    found.push_back(entry);
    found.back().client_name = NameOf(entry.client);
  }
  return found;
}

absl::StatusOr<std::vector<ClientMetrics>> MemoryRunStore::MetricsOfClients(int64_t first_round, int64_t last_round) {
  std::vector<ClientMetrics> found;
  for (const Round& round : rounds_) {
    if (round.record.id < first_round || round.record.id > last_round) continue;
    for (const ChosenUpdate& update : round.chosen) {
      if (update.metrics.empty()) continue;
      found.push_back({round.record.id, update.client, NameOf(update.client), update.metrics});
    }
  }
  return found;
}

absl::StatusOr<std::vector<LedgerEntry>> MemoryRunStore::ClientTotals() {
  std::map<std::pair<int64_t, Direction>, LedgerEntry> sums;
  for (const LedgerEntry& entry : ledger_) {
    if (entry.round < 1) continue;
    LedgerEntry& sum = sums[{entry.client, entry.direction}];
    sum = {0,
           entry.client,
           entry.direction,
           sum.dense_bytes + entry.dense_bytes,
           sum.payload_bytes + entry.payload_bytes,
           sum.wire_bytes + entry.wire_bytes,
           NameOf(entry.client)};
  }
  std::vector<LedgerEntry> rows;
  for (const auto& sum : sums) rows.push_back(sum.second);
  return rows;
}

absl::StatusOr<RunTotals> MemoryRunStore::Totals() {
  RunTotals totals;
  for (const LedgerEntry& entry : ledger_) {
    if (entry.round < 1) continue;
    const bool up = entry.direction == Direction::kUp;
    (up ? totals.dense_bytes_up : totals.dense_bytes_down) += entry.dense_bytes;
    (up ? totals.payload_bytes_up : totals.payload_bytes_down) += entry.payload_bytes;
    (up ? totals.wire_bytes_up : totals.wire_bytes_down) += entry.wire_bytes;
  }
  for (const Round& round : rounds_) {
    const RoundRecord& record = round.record;
    if (totals.first_opened_us == 0) totals.first_opened_us = record.opened_us;
    if (record.state == RoundState::kCommitted) totals.last_committed_us = record.committed_us;
    if (!record.evaluated()) continue;
    totals.accuracy = record.accuracy;
    totals.test_loss = record.test_loss;
    if (record.accuracy.has_value()) {
      totals.best_accuracy = std::max(record.accuracy, totals.best_accuracy);
    }
    if (record.test_loss.has_value()) {
      totals.best_test_loss = std::min(*record.test_loss, totals.best_test_loss.value_or(*record.test_loss));
    }
  }
  return totals;
}

absl::StatusOr<std::vector<EventRecord>> MemoryRunStore::EventsOf(const EventFilter& filter, int64_t newest) {
  std::vector<EventRecord> found;
  const auto is_meant = [&filter](const EventRecord& event) {
    return (filter.before == 0 || event.id < filter.before) && (filter.kind.empty() || event.kind == filter.kind) &&
           (filter.client.empty() ||
            absl::StrContains(absl::AsciiStrToLower(event.client_name), absl::AsciiStrToLower(filter.client)));
  };
  for (auto it = events_.rbegin(); it != events_.rend() && static_cast<int64_t>(found.size()) < newest; ++it) {
    EventRecord event = *it;
    event.client_name = NameOf(event.client);
    if (is_meant(event)) found.push_back(std::move(event));
  }
  std::reverse(found.begin(), found.end());
  return found;
}

absl::StatusOr<std::vector<EventRecord>> MemoryRunStore::EventsAfter(int64_t id, int64_t limit) {
  std::vector<EventRecord> found;
  for (const EventRecord& event : events_) {
    if (event.id <= id || static_cast<int64_t>(found.size()) >= limit) continue;
    found.push_back(event);
    found.back().client_name = NameOf(event.client);
  }
  return found;
}

}  // namespace terse
