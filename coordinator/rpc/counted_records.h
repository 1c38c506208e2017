// Audit records of a kind that come again and again, counted until they are written down.
#ifndef TERSE_COORDINATOR_RPC_COUNTED_RECORDS_H_
#define TERSE_COORDINATOR_RPC_COUNTED_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/audit_log.h"

namespace terse {

// The first record of a kind is due at once, those that follow within a minute are one record with their number when
// the minute is over. Not thread-safe.
class CountedRecords {
 public:
  using Kind = std::string;

  // Keeps `max_with_host` kinds that differ by host, and as many again that do not: whoever has addresses without end
  // is one kind in the end, and pushes nobody out.
  explicit CountedRecords(size_t max_with_host) : max_with_host_(max_with_host) {}

  // Counts a record whose kind is `what` and the network of its address, or `what` alone when there is no room.
  void Count(absl::string_view what, AuditRecord record);
  // Takes what is to be written at that time, or with `all` everything that was counted.
  std::map<Kind, AuditRecord> TakeDue(int64_t now_us, bool all);
  // Counts one on that could not be written; it is due again in a minute.
  void PutBack(const Kind& kind, const AuditRecord& record);

 private:
  struct Counted {
    AuditRecord record;      // of those that are not written yet; times is 0 when there are none
    int64_t written_us = 0;  // when one of this kind was written last; 0: never
  };

  const size_t max_with_host_;
  std::map<Kind, Counted> kinds_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_COUNTED_RECORDS_H_
