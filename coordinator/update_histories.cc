#include "coordinator/update_histories.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "coordinator/phases/phase.h"
#include "coordinator/run_context.h"
#include "coordinator/sessions.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/event_kinds.h"

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

absl::Status UpdateHistories::Check(const Codec& codec, int64_t most_bytes) {
  if (codec.PackedLayout() == nullptr) return absl::InvalidArgumentError("the codec's messages cannot be packed");
  const int64_t bytes = static_cast<int64_t>(UpdateHistory(*codec.PackedLayout()).Serialize().size());
  if (bytes <= most_bytes / 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "codec.positions = '", kSharedPositions, "' takes ", bytes, " bytes of memory for each client of this ",
      "model, and the coordinator has ", most_bytes, " for all of them; choose other positions"));
}

UpdateHistories::UpdateHistories(const Codec* codec, int64_t most_bytes)
    : codec_(codec),
      state_bytes_(static_cast<int64_t>(UpdateHistory(*codec->PackedLayout()).Serialize().size())),
      most_held_(most_bytes / state_bytes_) {}

UpdateHistories::Share UpdateHistories::ShareOf(int64_t client) const {
  absl::MutexLock lock(&mutex_);
  const auto held = held_.find(client);
  return held == held_.end() ? nullptr : held->second;
}

void UpdateHistories::GiveBack(Share share) const {
  absl::MutexLock lock(&mutex_);
  share.reset();
}

void UpdateHistories::Unpack(int64_t client, Update* update) const {
  const std::string packed = std::exchange(update->message, std::string());
  if (!Holds(client)) return;
  const Turn turn(this);
  Share history = ShareOf(client);
  if (history == nullptr) return;
  absl::StatusOr<std::string> message = codec_->Unpack(packed, *history);
  GiveBack(std::move(history));
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
  UpdateHistory history(*codec_->PackedLayout());
  if (record.messages > 0) {
    TERSE_ASSIGN_OR_RETURN(history, UpdateHistory::Parse(*codec_->PackedLayout(), record.state));
  }
  for (const std::string& message : record.log) TERSE_RETURN_IF_ERROR(codec_->AddToHistory(message, &history));
  return history;
}

bool UpdateHistories::MayHold(int64_t client) const {
  absl::MutexLock lock(&mutex_);
  if (distrusted_.count(client) > 0) return false;
  return held_.count(client) > 0 || static_cast<int64_t>(held_.size()) < most_held_;
}

bool UpdateHistories::Distrusts(int64_t client) const {
  absl::MutexLock lock(&mutex_);
  return distrusted_.count(client) > 0;
}

void UpdateHistories::Hold(int64_t client, UpdateHistory history) {
  auto share = std::make_shared<UpdateHistory>(std::move(history));
  absl::MutexLock lock(&mutex_);
  held_[client] = std::move(share);
}

std::string UpdateHistories::StateOf(int64_t client) const {
  Share history = ShareOf(client);
  if (history == nullptr) return "";
  std::string state = history->Serialize();
  GiveBack(std::move(history));
  return state;
}

absl::Status UpdateHistories::Add(int64_t client, absl::string_view message) {
  Share history;
  bool shared = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto held = held_.find(client);
    if (held == held_.end()) return absl::OkStatus();
    // Nobody takes another share from here on.
    history = std::move(held->second);
    held_.erase(held);
    shared = history.use_count() > 1;
  }
  if (shared) {
    auto copy = std::make_shared<UpdateHistory>(*history);
    GiveBack(std::exchange(history, std::move(copy)));
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

namespace {

// The client's history as the coordinator has it; nullopt when it is not `theirs`. `heard` is the one to compare: an
// update that was applied while the client could not hear of it is no part of its history yet.
absl::optional<UpdateHistory> Compare(const RunContext& run, HistoryRecord record, bool unheard, Id128 theirs) {
  std::string last;
  if (unheard && !record.log.empty()) {
    last = std::move(record.log.back());
    record.log.pop_back();
  }
  absl::StatusOr<UpdateHistory> history = run.histories->Build(record);
  if (!history.ok() || history->Hash() != theirs) return absl::nullopt;
  if (!last.empty() && !run.codec->AddToHistory(last, &*history).ok()) return absl::nullopt;
  return *std::move(history);
}

// There is none for the client in memory, and so what is stored will not go on.
absl::Status GoOnWithout(RunContext& run, const Session& session) {
  run.history_logs.erase(session.client);
  TERSE_RETURN_IF_ERROR(run.store->ForgetHistory(session.client));
  if (run.histories->Distrusts(session.client) || run.histories_full) return absl::OkStatus();
  run.histories_full = true;
  return run.Note(event::kHistoriesFull, session.client,
                  "there is no memory for the histories of more clients: their updates come unpacked");
}

}  // namespace

absl::Status HoldHistory(RunContext& run, Session& session, Id128 theirs) {
  if (run.histories == nullptr) return absl::OkStatus();
  if (!run.histories->MayHold(session.client)) return GoOnWithout(run, session);
  TERSE_ASSIGN_OR_RETURN(HistoryRecord record, run.store->ReadHistory(session.client));
  HistoryLog log = {record.count(), 0};
  for (const std::string& message : record.log) log.bytes += static_cast<int64_t>(message.size());
  absl::optional<UpdateHistory> history = Compare(run, std::move(record), session.applied_unheard, theirs);
  if (!history.has_value()) {
    // Where the coordinator has none, the client's directory was away for a time, or there was no room for it.
    if (log.messages > 0) {
      TERSE_RETURN_IF_ERROR(run.Note(event::kHistoryDiffers, session.client,
                                     "what its updates are packed with begins anew, here and there"));
    }
    TERSE_RETURN_IF_ERROR(run.store->ForgetHistory(session.client));
    session.link->Send(BeginHistory{});
    log = {};
    history.emplace(*run.codec->PackedLayout());
  }
  run.history_logs[session.client] = log;
  run.histories->Hold(session.client, *std::move(history));
  return absl::OkStatus();
}

absl::Status ResetClient(RunContext& run, int64_t client) {
  TERSE_RETURN_IF_ERROR(run.store->RecordReset(client));
  if (run.histories == nullptr) return absl::OkStatus();
  run.histories->Drop(client);
  run.histories->Trust(client);
  return absl::OkStatus();
}

void BeginHistoryAnew(RunContext& run, int64_t client) {
  if (run.histories == nullptr) return;
  const bool held = run.histories->Holds(client);
  run.histories->Drop(client);
  run.histories->Trust(client);
  const auto log = run.history_logs.find(client);
  if (log != run.history_logs.end()) log->second = {};
  if (held) run.histories->Hold(client, UpdateHistory(*run.codec->PackedLayout()));
}

std::vector<HistoryMessage> MessagesForHistories(const RunContext& run) {
  std::vector<HistoryMessage> messages;
  for (const auto& [client, received] : run.received) {
    if (run.history_logs.contains(client)) messages.push_back({client, received.update.message});
  }
  return messages;
}

absl::Status AddToHistories(RunContext& run) {
  for (const HistoryMessage& message : MessagesForHistories(run)) {
    HistoryLog& log = run.history_logs[message.client];
    log.messages += 1;
    log.bytes += static_cast<int64_t>(message.message.size());
    TERSE_RETURN_IF_ERROR(run.histories->Add(message.client, message.message));
  }
  return absl::OkStatus();
}

absl::Status CompactHistoryIfDue(RunContext& run, int64_t client) {
  const auto log = run.history_logs.find(client);
  if (log == run.history_logs.end() || 4 * log->second.bytes < run.histories->state_bytes()) return absl::OkStatus();
  const std::string state = run.histories->StateOf(client);
  if (state.empty()) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(run.store->CompactHistory(client, log->second.messages, state));
  log->second.bytes = 0;
  return absl::OkStatus();
}

bool IsMisread(const RunContext& run, const Session& session, const Update& update) {
  return update.packed || (update.packed_bytes > 0 && !Follows(run, session, update));
}

absl::Status RefuseMisread(RunContext& run, Session& session) {
  const std::string answer =
      "the packed update does not fit what the coordinator knows of this client; check in again and send it as it is";
  // Nobody asked for it.
  if (run.histories == nullptr || !run.histories->Holds(session.client)) {
    return RefuseUpdate(run, session, event::kUpdateRejected, "packed, and the coordinator holds no history of it",
                        answer);
  }
  Refuse(session, answer, /*retry=*/true);
  run.histories->Distrust(session.client);
  run.history_logs.erase(session.client);
  return run.NoteMisbehaviour(event::kUpdateMisread, session.client,
                              "its updates come unpacked until the coordinator restarts");
}

}  // namespace terse
