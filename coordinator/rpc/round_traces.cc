#include "coordinator/rpc/round_traces.h"

#include <algorithm>
#include <limits>

namespace terse {

void RoundTraces::Assigned(int64_t round, const std::string& client) {
  absl::MutexLock lock(&mutex_);
  ClientTrace& trace = rounds_[round][client];
  trace.client = client;
  // A client that comes back without what it began is given the same work again.
  if (trace.assigned_us == 0) trace.assigned_us = clock_->NowMicros();
  while (static_cast<int64_t>(rounds_.size()) > most_rounds_) rounds_.erase(rounds_.begin());
}

void RoundTraces::UploadBegan(int64_t round, const std::string& client) {
  absl::MutexLock lock(&mutex_);
  ClientTrace* const trace = Find(round, client);
  if (trace != nullptr && trace->received_us == 0) trace->upload_began_us = clock_->NowMicros();
}

void RoundTraces::Received(const Update& update, const std::string& client) {
  absl::MutexLock lock(&mutex_);
  ClientTrace* const trace = Find(update.round, client);
  if (trace == nullptr || trace->received_us != 0) return;
  trace->received_us = clock_->NowMicros();
  trace->train_us = update.train_us;
  trace->payload_bytes = update.payload_bytes();
}

void RoundTraces::Decided(int64_t round, const std::string& client, Outcome outcome) {
  absl::MutexLock lock(&mutex_);
  ClientTrace* const trace = Find(round, client);
  if (trace == nullptr || trace->verdict_us != 0 || outcome == Outcome::kPending) return;
  trace->verdict_us = clock_->NowMicros();
  trace->outcome = outcome;
}

ClientTrace* RoundTraces::Find(int64_t round, const std::string& client) {
  const auto clients = rounds_.find(round);
  if (clients == rounds_.end()) return nullptr;
  const auto trace = clients->second.find(client);
  return trace == clients->second.end() ? nullptr : &trace->second;
}

RoundTraces::Round RoundTraces::Get(int64_t round, size_t most) const {
  Round result;
  absl::MutexLock lock(&mutex_);
  const auto clients = rounds_.find(round);
  if (clients == rounds_.end()) return result;
  result.total = clients->second.size();
  for (const auto& [name, trace] : clients->second) result.clients.push_back(trace);
  const auto end_of = [](const ClientTrace& trace) {
    return trace.received_us == 0 ? std::numeric_limits<int64_t>::max() : trace.received_us;
  };
  std::stable_sort(result.clients.begin(), result.clients.end(),
                   [&](const ClientTrace& a, const ClientTrace& b) { return end_of(a) > end_of(b); });
  if (result.clients.size() > most) result.clients.resize(most);
  return result;
}

}  // namespace terse
