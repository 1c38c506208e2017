#include "bench/engine/scripted_fleet.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "coordinator/aggregation/aggregation_table.h"
#include "coordinator/message_checks.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int64_t kSamples = 128;  // that every client says it has

}  // namespace

// A client with its end of the connection. An object of the fleet's vector, so that what a session takes beyond it is
// the engine's.
class ScriptedFleet::Client : public ClientLink {
 public:
  Client(ScriptedFleet* fleet, int64_t index_in) : index(index_in), fleet_(fleet) {}

  void Send(ToClient words) override { fleet_->Hear(index, std::move(words)); }
  int64_t WaitingBytes() override { return 0; }
  WireBytes Wire() override { return {bytes_down, bytes_up}; }

  SessionId session() const { return static_cast<SessionId>(index) + 1; }
  FromClient CheckIn() const {
    terse::CheckIn message;
    message.name = absl::StrCat("client-", index);
    message.process = Id128{1, session()};
    message.connection = 1;
    return message;
  }

  const int64_t index;
  int64_t bytes_up = 0, bytes_down = 0;
  Id128 lineage, last_applied, pending;
  int64_t version = -1;  // -1 before Welcome
  int64_t assignments = 0, receipts = 0, verdicts = 0;

 private:
  ScriptedFleet* const fleet_;
};

absl::StatusOr<std::unique_ptr<ScriptedFleet>> ScriptedFleet::Make(const RunConfig& run, const Layout& layout,
                                                                   std::vector<float> initial) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<SharedModel> model, SharedModel::Make(run, layout));
  TERSE_RETURN_IF_ERROR(model->Hold({0, HashWeights(initial), initial}));
  TERSE_ASSIGN_OR_RETURN(UpdatePool pool, UpdatePool::Prepare(model->codec(), run.seed));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<const AggregationRule> rule, MakeAggregationRule(run.aggregation));
  auto fleet =
      absl::WrapUnique(new ScriptedFleet(std::move(model), std::move(pool), std::move(rule), std::move(initial)));
  fleet->clients_.reserve(run.rounds.clients);
  for (int64_t i = 0; i < run.rounds.clients; ++i) fleet->clients_.emplace_back(fleet.get(), i);
  fleet->messages_.resize(run.rounds.clients);
  return fleet;
}

ScriptedFleet::ScriptedFleet(std::unique_ptr<SharedModel> model, UpdatePool pool,
                             std::unique_ptr<const AggregationRule> rule, std::vector<float> initial)
    : model_(std::move(model)),
      pool_(std::move(pool)),
      rule_(std::move(rule)),
      weights_(std::move(initial)),
      clients_owner_(std::make_shared<std::vector<Client>>()),
      clients_(*clients_owner_) {}

ScriptedFleet::~ScriptedFleet() = default;

int64_t ScriptedFleet::bytes_up(int64_t index) const { return clients_[index].bytes_up; }
int64_t ScriptedFleet::bytes_down(int64_t index) const { return clients_[index].bytes_down; }

void ScriptedFleet::Hear(int64_t client, ToClient words) {
  for (FromServer& message : words.messages) {
    has_work_ = has_work_ || std::holds_alternative<Assignment>(message);
    if (const auto* downstream = std::get_if<Downstream>(&message)) version_ = std::max(version_, downstream->version);
    heard_.push_back({client, std::move(message)});
  }
  if (words.tell_when_drained) heard_.push_back({client, Receipt{}, /*drained=*/true});
}

absl::StatusOr<std::vector<Event>> ScriptedFleet::NextEvents(size_t most) {
  std::vector<Event> events;
  // A client that connects says two things, and no other step has more to say.
  while (events.size() + 2 <= most) {
    if (!heard_.empty()) {
      Heard heard = std::move(heard_.front());
      heard_.pop_front();
      TERSE_RETURN_IF_ERROR(React(std::move(heard), &events));
    } else if (connected_ < size()) {
      Client& client = clients_[connected_++];
      events.push_back(Connected{client.session(), std::shared_ptr<ClientLink>(clients_owner_, &client)});
      events.push_back(Received{client.session(), client.CheckIn()});
    } else {
      break;
    }
  }
  return events;
}

absl::Status ScriptedFleet::React(Heard heard, std::vector<Event>* events) {
  Client& client = clients_[heard.client];
  if (heard.drained) {
    events->push_back(Drained{client.session()});
  } else if (const auto* welcome = std::get_if<Welcome>(&heard.message)) {
    if (welcome->client_index != client.index || welcome->verdict.has_value() || welcome->head_version != 0) {
      return absl::InternalError(
          absl::StrCat("client ", client.index, " is welcomed as another one, or as an old one"));
    }
    client.lineage = welcome->lineage;
    client.version = 0;
    events->push_back(Received{client.session(),
                               Ready{0, welcome->start_hash, model_->codec().layout().Hash(), kSamples, {}, "cpu"}});
  } else if (const auto* assignment = std::get_if<Assignment>(&heard.message)) {
    return Train(client, *assignment, events);
  } else if (const auto* downstream = std::get_if<Downstream>(&heard.message)) {
    return Apply(client, *downstream);
  } else if (const auto* receipt = std::get_if<Receipt>(&heard.message)) {
    if (receipt->update_id == client.pending) ++client.receipts;
  } else if (const auto* verdict = std::get_if<Verdict>(&heard.message)) {
    if (verdict->outcome != Outcome::kApplied || verdict->update_id != client.pending) {
      return absl::InternalError(
          absl::StrCat("an update of client ", client.index, " was not applied: ", verdict->reason));
    }
    ++client.verdicts;
    client.last_applied = std::exchange(client.pending, Id128{});
  } else if (std::holds_alternative<Finished>(heard.message)) {
    ++left_;
    events->push_back(Received{client.session(), Leaving{}});
    events->push_back(Disconnected{client.session()});
  } else {
    return absl::InternalError(absl::StrCat("client ", client.index, " was refused, or hears of a checkpoint"));
  }
  return absl::OkStatus();
}

absl::Status ScriptedFleet::Train(Client& client, const Assignment& assignment, std::vector<Event>* events) {
  if (!client.pending.IsZero() || assignment.base_version != client.version ||
      assignment.round != client.assignments + 1) {
    return absl::InternalError(absl::StrCat("client ", client.index, " is given round ", assignment.round,
                                            " after round ", client.assignments, ", at version ", client.version));
  }
  ++client.assignments;
  Update update;
  update.round = assignment.round;
  update.message = pool_.Take(client.index, assignment.round);
  update.update_id = MakeUpdateId(client.lineage, update.round, client.index, client.last_applied, update.message);
  update.train_us = 1;
  update.loss = 1.0F;
  client.pending = update.update_id;
  client.bytes_up += update.payload_bytes();
  FromClient message = std::move(update);
  TERSE_RETURN_IF_ERROR(TakeMessage(model_->codec(), /*histories=*/nullptr, client.index, &message));
  events->push_back(Received{client.session(), std::move(message)});
  return absl::OkStatus();
}

absl::Status ScriptedFleet::Apply(Client& client, const Downstream& downstream) {
  if (downstream.version != client.version + 1 || !client.pending.IsZero()) {
    return absl::InternalError(absl::StrCat("client ", client.index, " gets version ", downstream.version,
                                            " at version ", client.version, ", or before its verdict"));
  }
  client.version = downstream.version;
  client.bytes_down += static_cast<int64_t>(downstream.message->size());
  if (client.index != 0) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(model_->Apply({downstream.version, downstream.model_hash}, *downstream.message));
  return Average(downstream.version);
}

absl::Status ScriptedFleet::Average(int64_t round) {
  for (const Client& client : clients_) messages_[client.index] = pool_.Take(client.index, round);
  std::vector<float> step(weights_.size());
  TERSE_RETURN_IF_ERROR(rule_->Aggregate(model_->codec(), messages_, /*weights=*/{}, absl::MakeSpan(step)));
  for (size_t i = 0; i < step.size(); ++i) weights_[i] += step[i];
  return absl::OkStatus();
}

absl::Status ScriptedFleet::Check(int64_t version, Id128 hash) {
  for (const Client& client : clients_) {
    const bool has_all = client.assignments == version && client.receipts == version && client.verdicts == version;
    if (has_all && client.version == version && client.pending.IsZero()) continue;
    return absl::InternalError(absl::StrCat("client ", client.index, " was given ", client.assignments,
                                            " rounds, and heard ", client.receipts, " receipts, ", client.verdicts,
                                            " verdicts and version ", client.version, " of ", version));
  }
  const absl::optional<HeldVersion> held = model_->held();
  if (held->version != version || held->hash != hash) {
    return absl::InternalError("the downstream messages do not lead to the head's model");
  }
  if (HashWeights(weights_) == hash) return absl::OkStatus();
  return absl::InternalError("the average of the updates does not lead to the head's model");
}

}  // namespace terse
