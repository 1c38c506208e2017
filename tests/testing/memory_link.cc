#include "tests/testing/memory_link.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

constexpr int64_t kEnvelope = 40;

template <typename T>
void KeepFirst(int64_t count, std::deque<T>* messages) {
  while (static_cast<int64_t>(messages->size()) > count) messages->pop_back();
}

}  // namespace

int64_t PretendWireBytes(const FromClient& message) {
  const auto* update = std::get_if<Update>(&message);
  return kEnvelope + (update != nullptr ? update->message.size() : 0);
}

int64_t PretendWireBytes(const FromServer& message) {
  const auto* delta = std::get_if<Downstream>(&message);
  return kEnvelope + (delta != nullptr ? delta->message->size() : 0);
}

absl::optional<FromClient> MemoryLink::TakeUp() {
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

absl::optional<FromServer> MemoryLink::DeliverDown() {
  if (down_.empty() || cut_) return absl::nullopt;
  FromServer message = std::move(down_.front());
  down_.pop_front();
  inbox_.push_back(message);
  return message;
}

bool MemoryLink::TakeDrained() {
  return !cut_ && down_.empty() && later_.empty() && std::exchange(tell_when_drained_, false);
}

void MemoryLink::Cut(int64_t up_survivors, int64_t down_survivors) {
  KeepFirst(up_survivors, &up_);
  if (cut_) return;
  cut_ = true;
  KeepFirst(down_survivors, &down_);
  std::move(down_.begin(), down_.end(), std::back_inserter(inbox_));
  down_.clear();
  later_.clear();
}

void MemoryLink::CutAtSend(int64_t sends, bool arrives) {
  sends_until_cut_ = sends;
  last_send_arrives_ = arrives;
}

void MemoryLink::EndClient() {
  Cut(up_waiting());
  inbox_.clear();
}

void MemoryLink::SilenceCoordinator() {
  silent_ = true;
  later_.clear();
}

absl::Status MemoryLink::SendUp(const FromClient& message) {
  if (cut_) return absl::UnavailableError("the test cut the connection");
  if (sends_until_cut_ < 0 || --sends_until_cut_ > 0) {
    up_.push_back(message);
    return absl::OkStatus();
  }
  sends_until_cut_ = -1;
  if (last_send_arrives_) up_.push_back(message);
  Cut(up_waiting());
  return absl::UnavailableError("the test cut the connection in a send");
}

absl::StatusOr<FromServer> MemoryLink::Receive() {
  while (inbox_.empty() && !cut_) wait_();
  if (inbox_.empty()) return absl::UnavailableError("the test cut the connection");
  FromServer message = std::move(inbox_.front());
  inbox_.pop_front();
  return message;
}

void MemoryLink::SendDown(ToClient words) {
  tell_when_drained_ = tell_when_drained_ || words.tell_when_drained;
  for (FromServer& message : words.messages) {
    if (cut_ || silent_) break;
    silent_ = std::holds_alternative<Refusal>(message);
    if (const auto* welcome = std::get_if<Welcome>(&message)) client_ = welcome->client_index;
    later_.push_back(std::move(message));
  }
  if (words.may_wait) return;
  for (FromServer& message : later_) {
    wire_.sent += PretendWireBytes(message);
    down_.push_back(std::move(message));
  }
  later_.clear();
}

int64_t MemoryLink::WaitingBytes() const {
  int64_t bytes = 0;
  for (const std::deque<FromServer>* messages : {&later_, &down_}) {
    for (const FromServer& message : *messages) {
      if (const auto* downstream = std::get_if<Downstream>(&message)) bytes += downstream->message->size();
    }
  }
  return bytes;
}

absl::StatusOr<std::string> MemoryLink::ClientEnd::DownloadCheckpoint(Id128 lineage, int64_t version,
                                                                      int64_t max_bytes) {
  absl::StatusOr<std::string> bytes = link_->download_(lineage, version);
  if (bytes.ok() && static_cast<int64_t>(bytes->size()) > max_bytes) {
    return absl::FailedPreconditionError(absl::StrCat("a checkpoint of ", bytes->size(), " bytes, above ", max_bytes));
  }
  return bytes;
}

}  // namespace terse
