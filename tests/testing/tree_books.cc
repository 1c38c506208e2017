#include "tests/testing/tree_books.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/observations.h"
#include "compression/bundle.h"
#include "core/status.h"
#include "storage/byte_io.h"
#include "storage/client_state.h"
#include "storage/sqlite_db.h"
#include "storage/state_directory.h"
#include "tests/testing/conservation.h"
#include "tests/testing/grid_trainer.h"

namespace terse {
namespace {

std::string DatabaseOf(const std::string& run_directory) { return absl::StrCat(run_directory, "/", kRunFile); }

// A state directory in which nothing was ever stored has none.
absl::StatusOr<absl::optional<StoredState>> ReadState(const std::string& directory) {
  if (!std::filesystem::exists(directory + "/MANIFEST")) return absl::optional<StoredState>();
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<ClientState> state, ClientState::Open(directory));
  TERSE_ASSIGN_OR_RETURN(StoredState stored, state->Read());
  TERSE_ASSIGN_OR_RETURN(const ObservedState observed, ReadObservations(stored.trainer_state));
  stored.trainer_state = std::string(observed.trainer_state);
  return absl::make_optional(std::move(stored));
}

// The newest round of the run that is part of the relay's own updates, as the state of its client half says: a lineage
// and a round. 0: none is.
absl::StatusOr<int64_t> NewestSealed(SqliteDb& db, absl::string_view trainer_state) {
  if (trainer_state.size() < sizeof(Id128) + sizeof(int64_t)) return 0;
  const Id128 lineage = TakeField<Id128>(&trainer_state);
  const auto round = TakeField<int64_t>(&trainer_state);
  Statement run = db.Prepare("SELECT lineage FROM runs");
  TERSE_ASSIGN_OR_RETURN(const bool found, run.Step());
  return found && run.GetId(0) == lineage ? round : 0;
}

}  // namespace

TreeBooks::TreeBooks(const Codec& codec, int updates_a_round, bool relays_forward)
    : codec_(codec),
      updates_a_round_(updates_a_round),
      relays_forward_(relays_forward),
      difference_(codec.layout().size(), 0.0) {}

absl::Status TreeBooks::ReadApplied(const std::string& run_directory, int64_t newest_sealed, bool is_relay) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDb> db,
                         SqliteDb::Open(DatabaseOf(run_directory), SqliteDb::Mode::kReader));
  Statement rows = db->Prepare(
      "SELECT r.id, u.update_id FROM rounds r JOIN updates u ON u.round = r.id WHERE r.state = 'committed' OR "
      "(r.state = 'closed' AND r.id <= ?) ORDER BY r.id");
  rows.Int(newest_sealed);
  std::map<int64_t, int> updates;
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool found, rows.Step());
    if (!found) break;
    ++updates[rows.GetInt(0)];
    ++applied_[rows.GetId(1)];
  }
  for (const auto& [round, count] : updates) {
    if (!is_relay || count == updates_a_round_) continue;
    return absl::InternalError(absl::StrCat("round ", round, " has ", count, " updates instead of ", updates_a_round_));
  }
  return absl::OkStatus();
}

// The trainer's state has, behind lineage and round, the bundle that is sealed, or that was not applied and is to be
// sent again.
absl::Status TreeBooks::AddBundles(const StoredState& state) {
  absl::string_view bundle = state.trainer_state;
  if (bundle.empty()) return absl::OkStatus();
  bundle.remove_prefix(sizeof(Id128) + sizeof(int64_t));
  const bool waits = state.sealed.has_value() ? !IsApplied(state.sealed->update_id) : state.minus.empty();
  if (!waits) return absl::OkStatus();
  if (state.sealed.has_value() && state.sealed->message != bundle) return absl::InternalError("two bundles");
  TERSE_ASSIGN_OR_RETURN(const std::vector<BundledUpdate> updates, ParseBundle(bundle));
  std::vector<float> decoded(difference_.size());
  for (const BundledUpdate& update : updates) {
    std::fill(decoded.begin(), decoded.end(), 0.0f);
    TERSE_RETURN_IF_ERROR(codec_.AddDecoded(update.message, 1.0f, absl::MakeSpan(decoded)));
    for (size_t i = 0; i < decoded.size(); ++i) difference_[i] += decoded[i] / updates_a_round_;
  }
  return absl::OkStatus();
}

absl::Status TreeBooks::AddRoot(RunStore* store, const std::string& run_directory) {
  TERSE_ASSIGN_OR_RETURN(const Head head, store->GetHead());
  TERSE_ASSIGN_OR_RETURN(const std::vector<LogMessage> log, store->ReadLog(0, head.version));
  std::vector<float> update(difference_.size());
  for (const LogMessage& entry : log) {
    TERSE_ASSIGN_OR_RETURN(const std::string forward, ForwardOf(store, entry));
    TERSE_ASSIGN_OR_RETURN(const std::vector<absl::string_view> messages, UpdatesOfForward(forward));
    for (const absl::string_view message : messages) {
      std::fill(update.begin(), update.end(), 0.0f);
      TERSE_RETURN_IF_ERROR(codec_.AddDecoded(message, 1.0f, absl::MakeSpan(update)));
      // A mean of so many, or one of them.
      const float share = relays_forward_ ? 1.0f / static_cast<float>(updates_a_round_) : 1.0f;
      for (size_t i = 0; i < update.size(); ++i) difference_[i] += share * update[i];
    }
  }
  return ReadApplied(run_directory, /*newest_sealed=*/0, /*is_relay=*/false);
}

absl::Status TreeBooks::AddRelay(const std::string& run_directory, const std::string& state_directory) {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<StoredState> state, ReadState(state_directory));
  if (state.has_value()) {
    const auto is_applied = [this](Id128 update_id) { return IsApplied(update_id); };
    TERSE_RETURN_IF_ERROR(relays_forward_ ? AddBundles(*state)
                                          : AddHeldBack(codec_, *state, is_applied, 1.0, &difference_));
  }
  if (!std::filesystem::exists(DatabaseOf(run_directory))) return absl::OkStatus();
  int64_t newest_sealed = 0;
  if (state.has_value()) {
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDb> db,
                           SqliteDb::Open(DatabaseOf(run_directory), SqliteDb::Mode::kReader));
    TERSE_ASSIGN_OR_RETURN(newest_sealed, NewestSealed(*db, state->trainer_state));
  }
  return ReadApplied(run_directory, newest_sealed, /*is_relay=*/true);
}

absl::Status TreeBooks::AddClient(const std::string& state_directory, int64_t grid_client) {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<StoredState> state, ReadState(state_directory));
  if (!state.has_value()) return absl::OkStatus();
  const double share = 1.0 / updates_a_round_;
  for (int64_t step = 0; step < state->generation; ++step) {
    const std::vector<float> delta = GridDelta(grid_client, step, codec_.layout());
    for (size_t i = 0; i < delta.size(); ++i) difference_[i] -= share * delta[i];
  }
  const auto is_applied = [this](Id128 update_id) { return IsApplied(update_id); };
  return AddHeldBack(codec_, *state, is_applied, share, &difference_);
}

int64_t TreeBooks::doubled() const {
  int64_t doubled = 0;
  for (const auto& [update_id, times] : applied_) doubled += times - 1;
  return doubled;
}

}  // namespace terse
