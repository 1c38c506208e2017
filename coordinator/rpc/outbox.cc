#include "coordinator/rpc/outbox.h"

#include <algorithm>
#include <utility>

namespace terse {

void Outbox::Add(const FromServer& message, const v1::RunConfig& config) {
  if (const auto* downstream = std::get_if<Downstream>(&message)) {
    bytes_ += static_cast<int64_t>(downstream->message->size());
    waiting_.emplace_back(DownstreamChunks(*downstream));
    return;
  }
  for (v1::ServerMessage& wire : ToWire(message, config)) {
    bytes_ += static_cast<int64_t>(wire.ByteSizeLong());
    waiting_.emplace_back(std::move(wire));
  }
}

bool Outbox::TakeBatch(int64_t most, v1::ServerMessages* batch) {
  int64_t taken = 0;
  while (!waiting_.empty()) {
    auto* const chunks = std::get_if<DownstreamChunks>(&waiting_.front());
    auto* const whole = std::get_if<v1::ServerMessage>(&waiting_.front());
    const int64_t next =
        chunks != nullptr ? std::min(chunks->left(), most) : static_cast<int64_t>(whole->ByteSizeLong());
    if (taken > 0 && taken + next > most) break;
    *batch->add_messages() = chunks != nullptr ? chunks->Next(next) : std::move(*whole);
    if (chunks == nullptr || chunks->left() == 0) waiting_.pop_front();
    taken += next;
  }
  bytes_ -= taken;
  return batch->messages_size() > 0;
}

void Outbox::Clear() {
  waiting_.clear();
  bytes_ = 0;
}

}  // namespace terse
