#include "tests/testing/conservation.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compression/downstream_model.h"
#include "coordinator/control/controller_table.h"
#include "coordinator/server_step.h"
#include "core/epochs.h"
#include "core/status.h"
#include "tests/testing/grid_trainer.h"

namespace terse {
namespace {

bool TakeVarint(absl::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; !bytes->empty() && shift < 63; shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

absl::Status AddTo(const Codec& codec, absl::string_view message, double sign, std::vector<double>* sum) {
  std::vector<float> decoded(sum->size(), 0.0f);
  TERSE_RETURN_IF_ERROR(codec.AddDecoded(message, 1.0f, absl::MakeSpan(decoded)));
  for (size_t i = 0; i < sum->size(); ++i) (*sum)[i] += sign * decoded[i];
  return absl::OkStatus();
}

// The client's updates that the log says were applied after `version`, in order.
absl::StatusOr<std::vector<std::string>> AppliedUpdates(RunStore* store, int64_t client, int64_t version) {
  std::vector<std::string> applied;
  TERSE_ASSIGN_OR_RETURN(const Head head, store->GetHead());
  std::map<int64_t, int64_t> round_of;  // version to round
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundRecord> last, store->LastRound());
  if (!last.has_value()) return applied;
  TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> rounds, store->Rounds(1, last->id));
  for (const RoundRecord& round : rounds) {
    if (round.state == RoundState::kCommitted) round_of[round.base_version + 1] = round.id;
  }
  TERSE_ASSIGN_OR_RETURN(const std::vector<ClientRecord> clients, store->Clients());
  TERSE_ASSIGN_OR_RETURN(const std::vector<LogMessage> log, store->ReadLog(version, head.version));
  for (const LogMessage& entry : log) {
    TERSE_ASSIGN_OR_RETURN(const std::string forward, ForwardOf(store, entry));
    TERSE_ASSIGN_OR_RETURN(const std::vector<absl::string_view> updates, UpdatesOfForward(forward));
    size_t next = 0;
    for (const ClientRecord& record : clients) {
      TERSE_ASSIGN_OR_RETURN(const bool chosen, store->WasChosen(round_of[entry.version], record.id));
      if (!chosen) continue;
      if (next >= updates.size())
        return absl::InternalError(absl::StrCat("version ", entry.version, " lacks an update"));
      if (record.id == client) applied.emplace_back(updates[next]);
      ++next;
    }
    if (next != updates.size())
      return absl::InternalError(absl::StrCat("version ", entry.version, " has surplus updates"));
  }
  return applied;
}

}  // namespace

absl::Status AddHeldBack(const Codec& codec, const StoredState& state, absl::FunctionRef<bool(Id128)> is_applied,
                         double times, std::vector<double>* sum) {
  for (size_t i = 0; i < state.dense.size(); ++i) (*sum)[i] += times * state.dense[i];
  // A sealed update is part of `dense`, one that was parted with is not.
  if (!state.minus.empty()) TERSE_RETURN_IF_ERROR(AddTo(codec, state.minus, -times, sum));
  if (state.sealed.has_value() && is_applied(state.sealed->update_id)) {
    TERSE_RETURN_IF_ERROR(AddTo(codec, state.sealed->message, -times, sum));
  }
  for (const PartedLineage& parted : state.parted) {
    if (!parted.sealed.has_value() || is_applied(parted.sealed->update_id)) continue;
    TERSE_RETURN_IF_ERROR(AddTo(codec, parted.sealed->message, times, sum));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<absl::string_view>> UpdatesOfForward(absl::string_view downstream) {
  // Behind a trust there is one of the other forms.
  if (absl::StartsWith(downstream, "\x8a")) downstream.remove_prefix(std::min<size_t>(5, downstream.size()));
  const char form = downstream.empty() ? '\0' : downstream[0];
  const bool shared = form == static_cast<char>(0x85), weighted = shared || form == static_cast<char>(0x83);
  if (!weighted && form != static_cast<char>(0x81)) return absl::InternalError("not a forward message");
  downstream.remove_prefix(1);
  uint64_t count = 0, total = 0;
  if (!TakeVarint(&downstream, &count)) return absl::InternalError("no count");
  if (shared && !TakeVarint(&downstream, &total)) return absl::InternalError("no total");
  std::vector<absl::string_view> updates;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t samples = 0;
    if (weighted && !TakeVarint(&downstream, &samples)) return absl::InternalError("no number of samples");
    uint64_t length = 0;
    if (!TakeVarint(&downstream, &length) || length > downstream.size()) return absl::InternalError("no update");
    updates.push_back(downstream.substr(0, length));
    downstream.remove_prefix(length);
  }
  if (!downstream.empty()) return absl::InternalError("bytes after the last update");
  return updates;
}

absl::StatusOr<std::string> ForwardOf(RunStore* store, const LogMessage& entry) {
  absl::StatusOr<std::string> aggregate = store->ReadAggregate(entry.version);
  return absl::IsNotFound(aggregate.status()) ? entry.downstream : aggregate;
}

absl::StatusOr<std::vector<double>> ConservationDifference(RunStore* store, const Codec& codec, int64_t client,
                                                           const StoredState& state, const Baseline& baseline) {
  std::vector<double> difference(codec.layout().size(), 0.0);
  TERSE_ASSIGN_OR_RETURN(const ClientRecord record, store->GetClient(client));
  const bool sealed_is_in = state.sealed.has_value() && state.sealed->update_id == record.last_applied;
  if (state.prev_applied != record.last_applied && !sealed_is_in) {
    return absl::InternalError(absl::StrCat("client ", client, " and the coordinator disagree about the last update"));
  }
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> applied, AppliedUpdates(store, client, baseline.version));
  for (const std::string& update : applied) TERSE_RETURN_IF_ERROR(AddTo(codec, update, 1.0, &difference));
  const auto is_applied = [&record](Id128 update_id) { return update_id == record.last_applied; };
  TERSE_RETURN_IF_ERROR(AddHeldBack(codec, state, is_applied, 1.0, &difference));
  for (int64_t step = baseline.generation; step < state.generation; ++step) {
    const std::vector<float> delta = GridDelta(client, step, codec.layout());
    for (size_t i = 0; i < delta.size(); ++i) difference[i] -= delta[i];
  }
  return difference;
}

absl::Status CheckConservation(RunStore* store, const Codec& codec, int64_t client, const StoredState& state,
                               const Baseline& baseline) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<double> difference,
                         ConservationDifference(store, codec, client, state, baseline));
  for (size_t i = 0; i < difference.size(); ++i) {
    if (difference[i] == 0) continue;
    return absl::InternalError(
        absl::StrFormat("client %d, element %d: applied + residual - sealed = %.17g", client, i, difference[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> FirstNotSealed(RunStore* store, int64_t client, const StoredState& state,
                                       const Baseline& baseline, const SealedAs& sealed_as) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> applied, AppliedUpdates(store, client, baseline.version));
  int64_t step = baseline.generation;
  for (size_t i = 0; i < applied.size(); ++i) {
    while (step < state.generation && !sealed_as(step, applied[i])) ++step;
    if (step == state.generation) return static_cast<int64_t>(i);
    ++step;
  }
  return -1;
}

absl::Status CheckReplay(RunStore* store, const RunConfig& config, const DownstreamCodecs& codecs,
                         std::vector<float> initial) {
  TERSE_ASSIGN_OR_RETURN(const Head head, store->GetHead());
  TERSE_ASSIGN_OR_RETURN(const std::vector<LogMessage> log, store->ReadLog(0, head.version));
  std::vector<float> scratch, snapshot = initial;
  for (const LogMessage& entry : log) {
    TERSE_RETURN_IF_ERROR(HasEpochs(config)
                              ? ApplyModel(codecs, entry.downstream, snapshot, &scratch, absl::MakeSpan(initial))
                              : ApplyDownstream(codecs, entry.downstream, &scratch, absl::MakeSpan(initial)));
    if (StandsAlone(config, entry.version)) snapshot = initial;
    if (HashWeights(initial) != entry.model_hash) {
      return absl::InternalError(absl::StrCat("version ", entry.version, " replays to another model"));
    }
  }
  if (HashWeights(initial) != head.model_hash) return absl::InternalError("the head is not the end of its log");
  return absl::OkStatus();
}

absl::Status CheckKeptModel(RunStore* store, const CachedModel& model) {
  TERSE_ASSIGN_OR_RETURN(Id128 expected, store->StartHash());
  if (model.version > 0) {
    TERSE_ASSIGN_OR_RETURN(const std::vector<LogMessage> log, store->ReadLog(model.version - 1, model.version));
    if (log.empty()) return absl::InternalError(absl::StrCat("the log has no version ", model.version));
    expected = log.back().model_hash;
  }
  if (HashWeights(model.weights) == expected) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the client's version ", model.version, " is another model"));
}

absl::Status CheckServerSteps(RunStore* store, const RunConfig& config, const DownstreamCodecs& codecs,
                              absl::Span<const float> initial) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<ServerStep> server, ServerStep::Make(config, codecs));
  if (!server->has_state()) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(server->Restore(initial, {}));
  std::vector<float> weights(initial.begin(), initial.end());
  TERSE_ASSIGN_OR_RETURN(const Head head, store->GetHead());
  TERSE_ASSIGN_OR_RETURN(const std::vector<LogMessage> log, store->ReadLog(0, head.version));
  for (const LogMessage& entry : log) {
    TERSE_ASSIGN_OR_RETURN(const std::string aggregate, store->ReadAggregate(entry.version));
    absl::StatusOr<std::vector<float>> repeated =
        server->Repeat(entry.version - 1, weights, aggregate, entry.downstream);
    TERSE_RETURN_IF_ERROR(Annotate(repeated.status(), absl::StrCat("the server's step to version ", entry.version)));
    weights = *std::move(repeated);
  }
  return absl::OkStatus();
}

absl::Status CheckPlans(RunStore* store, const RunConfig& config) {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundRecord> last, store->LastRound());
  if (!last.has_value()) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> run, store->Run());
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Controller> controller, MakeController(config, run->parameters));
  TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> rounds, store->Rounds(1, last->id));
  int64_t iterations = 0;
  for (const RoundRecord& round : rounds) {
    const absl::optional<RoundPlan> expected =
        controller == nullptr ? absl::optional<RoundPlan>() : controller->Decide(round.id, iterations);
    if (!(round.plan == expected)) {
      return absl::InternalError(absl::StrCat("round ", round.id, " has another plan than its controller makes"));
    }
    if (controller == nullptr || round.state != RoundState::kCommitted) continue;
    controller->Observe({round.id, *round.plan, round.updates, round.update_bytes, round.train_loss,
                         std::max<int64_t>(0, round.committed_us - round.opened_us)});
    iterations += round.plan->local_steps;
  }
  return absl::OkStatus();
}

}  // namespace terse
