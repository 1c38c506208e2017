#include "storage/client_sums.h"

#include <limits>

#include "absl/status/status.h"
#include "storage/byte_io.h"

namespace terse {
namespace {

constexpr int64_t ByteSums::*kSumColumns[] = {&ByteSums::dense_up,   &ByteSums::payload_up,   &ByteSums::wire_up,
                                              &ByteSums::dense_down, &ByteSums::payload_down, &ByteSums::wire_down};

}  // namespace

void ByteSums::Add(const LedgerEntry& entry) {
  const bool up = entry.direction == Direction::kUp;
  (up ? dense_up : dense_down) += entry.dense_bytes;
  (up ? payload_up : payload_down) += entry.payload_bytes;
  (up ? wire_up : wire_down) += entry.wire_bytes;
}

void ByteSums::Add(const ByteSums& other) {
  for (const auto column : kSumColumns) this->*column += other.*column;
}

void AddSums(ClientSums* sums, const ClientSums& more) {
  for (const auto& [client, bytes] : more) (*sums)[client].Add(bytes);
}

std::string SerializeSums(const ClientSums& sums) {
  std::string bytes;
  int64_t next = 0;
  for (const auto& [client, of_client] : sums) {
    PutVarint(&bytes, static_cast<uint64_t>(client - next));
    next = client + 1;
    for (const auto column : kSumColumns) PutVarint(&bytes, static_cast<uint64_t>(of_client.*column));
  }
  return bytes;
}

absl::StatusOr<ClientSums> ParseSums(absl::string_view bytes) {
  constexpr int64_t kMostClients = std::numeric_limits<int32_t>::max();
  ClientSums sums;
  int64_t next = 0;
  while (!bytes.empty()) {
    int64_t gap = 0;
    ByteSums of_client;
    bool whole = TakeVarint(&bytes, &gap) && gap <= kMostClients - next;
    for (const auto column : kSumColumns) whole = whole && TakeVarint(&bytes, &(of_client.*column));
    if (!whole) return absl::DataLossError("the bytes of a client are cut off or too large");
    sums.emplace_hint(sums.end(), next + gap, of_client);
    next += gap + 1;
  }
  return sums;
}

}  // namespace terse
