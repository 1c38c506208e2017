#include "coordinator/rpc/counted_records.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "net/peer.h"

namespace terse {
namespace {

constexpr int64_t kCountedTogetherUs = 60'000'000;

}  // namespace

void CountedRecords::Count(absl::string_view what, AuditRecord record) {
  // Several hosts are no address; they are told apart by their text.
  const std::string network = NetworkOfHost(record.address);
  Kind kind = absl::StrCat(what, "\n", network.empty() ? record.address : network);
  if (kinds_.count(kind) == 0 && kinds_.size() >= max_with_host_) {
    kind = absl::StrCat(what, "\n(many)");
    record.address.clear();
  }
  const auto found = kinds_.find(kind);
  if (found == kinds_.end()) {
    // A caller that manages this many kinds is counted in those that are there.
    if (kinds_.size() < 2 * max_with_host_) kinds_[kind].record = std::move(record);
  } else if (found->second.record.times == 0) {
    found->second.record = std::move(record);
  } else {
    found->second.record.ended_us = record.ended_us;
    ++found->second.record.times;
  }
}

std::map<CountedRecords::Kind, AuditRecord> CountedRecords::TakeDue(int64_t now_us, bool all) {
  std::map<Kind, AuditRecord> due;
  for (auto it = kinds_.begin(); it != kinds_.end();) {
    Counted& counted = it->second;
    const bool is_due = all || now_us - counted.written_us >= kCountedTogetherUs;
    if (is_due && counted.record.times == 0) {
      it = kinds_.erase(it);
      continue;
    }
    if (is_due) {
      due[it->first] = counted.record;
      counted.record.times = 0;
      counted.written_us = now_us;
    }
    ++it;
  }
  return due;
}

void CountedRecords::PutBack(const Kind& kind, const AuditRecord& record) {
  AuditRecord& counted = kinds_[kind].record;
  const AuditRecord since = std::exchange(counted, record);
  if (since.times == 0) return;
  counted.ended_us = since.ended_us;
  counted.times += since.times;
}

}  // namespace terse
