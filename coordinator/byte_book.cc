#include "coordinator/byte_book.h"

namespace terse {

LedgerEntry& ByteBook::Row(int64_t client, Direction direction) {
  LedgerEntry& row = rows_[{client, static_cast<int>(direction)}];
  row.client = client;
  row.direction = direction;
  return row;
}

void ByteBook::AddUp(int64_t client, int64_t payload_bytes, int64_t dense_bytes) {
  LedgerEntry& row = Row(client, Direction::kUp);
  row.payload_bytes += payload_bytes;
  row.dense_bytes += dense_bytes;
}

void ByteBook::AddDown(int64_t client, int64_t payload_bytes, int64_t dense_bytes) {
  LedgerEntry& row = Row(client, Direction::kDown);
  row.payload_bytes += payload_bytes;
  row.dense_bytes += dense_bytes;
}

void ByteBook::AddWire(int64_t client, WireBytes now, WireBytes* booked) {
  if (now.received == booked->received && now.sent == booked->sent) return;
  // The link's counters are the coordinator's: what it received, the client sent up.
  Row(client, Direction::kUp).wire_bytes += now.received - booked->received;
  Row(client, Direction::kDown).wire_bytes += now.sent - booked->sent;
  *booked = now;
}

std::vector<LedgerEntry> ByteBook::Take(int64_t round) {
  std::vector<LedgerEntry> entries;
  entries.reserve(rows_.size());
  for (auto& [key, row] : rows_) {
    row.round = round;
    entries.push_back(row);
  }
  rows_.clear();
  return entries;
}

}  // namespace terse
