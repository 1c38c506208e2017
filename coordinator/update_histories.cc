#include "coordinator/update_histories.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

}  // namespace terse
