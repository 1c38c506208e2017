#include "tests/testing/memory_link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

constexpr int64_t kEnvelope = 40;

}  // namespace

int64_t PretendWireBytes(const FromClient& message) {
  const auto* update = std::get_if<Update>(&message);
  return kEnvelope + (update != nullptr ? update->message.size() : 0);
}

int64_t PretendWireBytes(const FromServer& message) {
  const auto* delta = std::get_if<Delta>(&message);
  return kEnvelope + (delta != nullptr ? delta->message->size() : 0);
}

void MemoryLink::WaitUntilIdle() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &MemoryLink::Idle));
}

void MemoryLink::ClientLeft() {
  absl::MutexLock lock(&mutex_);
  left_ = true;
}

bool MemoryLink::client_left() {
  absl::MutexLock lock(&mutex_);
  return left_;
}

absl::optional<FromClient> MemoryLink::TakeUp() {
  absl::MutexLock lock(&mutex_);
  if (up_.empty()) return absl::nullopt;
  FromClient message = up_.front();
  wire_.received += PretendWireBytes(message);
  if (duplicate_next_ && std::holds_alternative<Update>(message)) {
    duplicate_next_ = false;
  } else {
    up_.pop_front();
  }
  return message;
}

void MemoryLink::DuplicateNextUpdate() {
  absl::MutexLock lock(&mutex_);
  duplicate_next_ = true;
}

absl::optional<FromServer> MemoryLink::DeliverDown() {
  absl::MutexLock lock(&mutex_);
  if (down_.empty() || cut_) return absl::nullopt;
  FromServer message = std::move(down_.front());
  down_.pop_front();
  inbox_.push_back(message);
  return message;
}

int64_t MemoryLink::up_waiting() {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(up_.size());
}

int64_t MemoryLink::down_waiting() {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(down_.size());
}

void MemoryLink::Break(int64_t up_survivors) {
  cut_ = true;
  down_.clear();
  later_.clear();
  if (static_cast<int64_t>(up_.size()) > up_survivors) up_.resize(up_survivors);
}

void MemoryLink::Cut(int64_t up_survivors) {
  absl::MutexLock lock(&mutex_);
  Break(up_survivors);
}

void MemoryLink::CutAtSend(int64_t sends, bool arrives) {
  absl::MutexLock lock(&mutex_);
  sends_until_cut_ = sends;
  last_send_arrives_ = arrives;
}

bool MemoryLink::cut() {
  absl::MutexLock lock(&mutex_);
  return cut_;
}

absl::Status MemoryLink::SendUp(const FromClient& message) {
  absl::MutexLock lock(&mutex_);
  if (cut_) return absl::UnavailableError("the test cut the connection");
  if (sends_until_cut_ < 0 || --sends_until_cut_ > 0) {
    up_.push_back(message);
    return absl::OkStatus();
  }
  sends_until_cut_ = -1;
  if (last_send_arrives_) up_.push_back(message);
  Break(static_cast<int64_t>(up_.size()));
  return absl::UnavailableError("the test cut the connection in a send");
}

absl::StatusOr<FromServer> MemoryLink::Receive() {
  absl::MutexLock lock(&mutex_);
  receiving_ = true;
  mutex_.Await(absl::Condition(this, &MemoryLink::HasInput));
  receiving_ = false;
  if (inbox_.empty()) return absl::UnavailableError("the test cut the connection");
  FromServer message = std::move(inbox_.front());
  inbox_.pop_front();
  return message;
}

void MemoryLink::SendDown(FromServer message, bool now) {
  absl::MutexLock lock(&mutex_);
  if (cut_ || refused_) return;
  refused_ = std::holds_alternative<Refusal>(message);
  later_.push_back(std::move(message));
  if (now) ReleaseLater();
}

void MemoryLink::ReleaseLater() {
  for (FromServer& message : later_) {
    wire_.sent += PretendWireBytes(message);
    down_.push_back(std::move(message));
  }
  later_.clear();
}

void MemoryLink::CoordinatorEnd::Flush() {
  absl::MutexLock lock(&link_->mutex_);
  link_->ReleaseLater();
}

absl::StatusOr<std::string> MemoryLink::ClientEnd::DownloadCheckpoint(Id128 lineage, int64_t version,
                                                                      int64_t max_bytes) {
  absl::StatusOr<std::string> bytes = link_->download_(lineage, version);
  if (bytes.ok() && static_cast<int64_t>(bytes->size()) > max_bytes) {
    return absl::FailedPreconditionError(absl::StrCat("a checkpoint of ", bytes->size(), " bytes, above ", max_bytes));
  }
  return bytes;
}

WireBytes MemoryLink::CoordinatorEnd::Wire() {
  absl::MutexLock lock(&link_->mutex_);
  return link_->wire_;
}

}  // namespace terse
