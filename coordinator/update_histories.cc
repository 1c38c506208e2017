#include "coordinator/update_histories.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/run_context.h"
#include "coordinator/sessions.h"
#include "core/fault.h"
#include "core/status.h"

namespace terse {

// One of kUnpackingsAtOnce, for as long as it lives.
class UpdateHistories::Turn {
 public:
  explicit Turn(const UpdateHistories* histories) : histories_(histories) {
    absl::MutexLock lock(&histories_->turns_mutex_);
    histories_->turns_mutex_.Await(absl::Condition(histories_, &UpdateHistories::HasTurn));
    ++histories_->unpacking_;
  }
  ~Turn() {
    absl::MutexLock lock(&histories_->turns_mutex_);
    --histories_->unpacking_;
  }

 private:
  const UpdateHistories* const histories_;
};

UpdateHistories::UpdateHistories(const Codec* codec, int64_t most_bytes)
    : codec_(codec),
      state_bytes_(static_cast<int64_t>(UpdateHistory(*codec->PackedLayout()).Serialize().size())),
      most_held_(most_bytes / state_bytes_) {}

void UpdateHistories::Unpack(int64_t client, Update* update) const {
  const Turn turn(this);
  Shared history;
  {
    absl::MutexLock lock(&mutex_);
    const auto held = held_.find(client);
    if (held != held_.end()) history = held->second;
  }
  const std::string packed = std::exchange(update->message, std::string());
  if (history == nullptr) return;
  absl::StatusOr<std::string> message = codec_->Unpack(packed, *history);
  {
    absl::MutexLock lock(&mutex_);
    history.reset();
  }
  if (!message.ok()) return;
  update->message = *std::move(message);
  update->packed = false;
  update->packed_bytes = static_cast<int64_t>(packed.size());
}

bool UpdateHistories::Holds(int64_t client) const {
  absl::MutexLock lock(&mutex_);
  return held_.count(client) > 0;
}

absl::StatusOr<UpdateHistory> UpdateHistories::Build(const HistoryRecord& record) const {
  const auto build = [&]() -> absl::StatusOr<UpdateHistory> {
    UpdateHistory history(*codec_->PackedLayout());
    if (record.messages > 0) {
      TERSE_ASSIGN_OR_RETURN(history, UpdateHistory::Parse(*codec_->PackedLayout(), record.state));
    }
    for (const std::string& message : record.log) TERSE_RETURN_IF_ERROR(codec_->AddToHistory(message, &history));
    return history;
  };
  absl::StatusOr<UpdateHistory> history = build();
  if (history.ok()) return history;
  return absl::DataLossError(absl::StrCat("a stored history of updates is none of this model: ",
                                          history.status().message(), ": restore the state directory from a backup"));
}

void UpdateHistories::Hold(int64_t client, UpdateHistory history) {
  absl::MutexLock lock(&mutex_);
  if (distrusted_.count(client) > 0) return;
  if (held_.count(client) == 0 && static_cast<int64_t>(held_.size()) >= most_held_) return;
  held_[client] = std::make_shared<UpdateHistory>(std::move(history));
}

absl::Status UpdateHistories::Add(int64_t client, absl::string_view message) {
  Shared history;
  {
    absl::MutexLock lock(&mutex_);
    const auto held = held_.find(client);
    if (held == held_.end()) return absl::OkStatus();
    // Nobody else takes a share from here on: the client's next update follows the verdict on this one.
    history = held->second.use_count() == 1 ? std::move(held->second) : std::make_shared<UpdateHistory>(*held->second);
    held_.erase(held);
  }
  TERSE_RETURN_IF_ERROR(codec_->AddToHistory(message, history.get()));
  absl::MutexLock lock(&mutex_);
  held_[client] = std::move(history);
  return absl::OkStatus();
}

void UpdateHistories::Drop(int64_t client) {
  absl::MutexLock lock(&mutex_);
  held_.erase(client);
}

void UpdateHistories::Distrust(int64_t client) {
  absl::MutexLock lock(&mutex_);
  held_.erase(client);
  distrusted_.insert(client);
}

void UpdateHistories::Trust(int64_t client) {
  absl::MutexLock lock(&mutex_);
  distrusted_.erase(client);
}

void UpdateHistories::Clear() {
  absl::MutexLock lock(&mutex_);
  held_.clear();
  distrusted_.clear();
}

absl::Status HoldHistory(RunContext& run, const Session& session) {
  if (run.histories == nullptr || run.histories->Holds(session.client)) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const HistoryRecord record, run.store->ReadHistory(session.client));
  TERSE_ASSIGN_OR_RETURN(UpdateHistory history, run.histories->Build(record));
  run.histories->Hold(session.client, std::move(history));
  return absl::OkStatus();
}

absl::Status ResetClient(RunContext& run, int64_t client) {
  TERSE_RETURN_IF_ERROR(run.store->RecordReset(client));
  if (run.histories == nullptr) return absl::OkStatus();
  run.histories->Drop(client);
  run.histories->Trust(client);
  return absl::OkStatus();
}

std::vector<HistoryMessage> HistoryOf(const RunContext& run) {
  std::vector<HistoryMessage> messages;
  if (run.histories == nullptr) return messages;
  for (const auto& [client, received] : run.received) messages.push_back({client, received.update.message});
  return messages;
}

absl::Status AddToHistories(RunContext& run) {
  if (run.histories == nullptr) return absl::OkStatus();
  for (const auto& [client, received] : run.received) {
    const std::string& message = received.update.message;
    TERSE_RETURN_IF_ERROR(run.histories->Add(client, message));
    int64_t& logged = run.history_log_bytes[client];
    logged += static_cast<int64_t>(message.size());
    if (2 * logged < run.histories->state_bytes()) continue;
    TERSE_ASSIGN_OR_RETURN(const HistoryRecord record, run.store->ReadHistory(client));
    TERSE_ASSIGN_OR_RETURN(const UpdateHistory history, run.histories->Build(record));
    TERSE_RETURN_IF_ERROR(run.store->CompactHistory(client, record.count(), history.Serialize()));
    logged = 0;
  }
  return absl::OkStatus();
}

bool IsMisread(const RunContext& run, const Session& session, const Update& update) {
  return update.packed || (update.packed_bytes > 0 && !Follows(run, session, update));
}

absl::Status RefuseMisread(RunContext& run, Session& session) {
  const bool held = run.histories != nullptr && run.histories->Holds(session.client);
  Refuse(
      session,
      "the packed update does not fit what the coordinator knows of this client; check in again and send it as it is",
      /*retry=*/true);
  if (!held) return absl::OkStatus();
  run.histories->Distrust(session.client);
  return run.Note("update_misread", session.client, "its updates come unpacked until the coordinator restarts");
}

}  // namespace terse
