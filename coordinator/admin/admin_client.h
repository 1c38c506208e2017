// The operator's end of terse.v1.Admin.
#ifndef TERSE_COORDINATOR_ADMIN_ADMIN_CLIENT_H_
#define TERSE_COORDINATOR_ADMIN_ADMIN_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "terse/v1/admin.grpc.pb.h"

namespace terse {

// Connects at the first call. Every method returns the coordinator's own status, and UNAVAILABLE with what to try when
// it cannot be reached or does not answer within `timeout`. Thread-safe.
class AdminClient {
 public:
  AdminClient(std::string address, absl::Duration timeout);

  absl::StatusOr<v1::Status> GetStatus();
  // The rounds in [first, last]; last = 0 means up to the newest. Fetched in pages, so that a reply stays small.
  absl::StatusOr<std::vector<v1::Round>> ListRounds(uint64_t first, uint64_t last);
  absl::StatusOr<std::vector<v1::LedgerRow>> ListLedger(uint64_t first, uint64_t last);
  absl::StatusOr<std::vector<v1::Client>> ListClients();
  absl::StatusOr<std::vector<v1::Event>> ListEvents(uint32_t newest);
  // Calls `on_round` for every settled round from `first` on and returns OK when the run has ended. No timeout.
  absl::Status Watch(uint64_t first, const std::function<void(const v1::Round&)>& on_round);
  // Returns the state of the run.
  absl::StatusOr<std::string> Stop(bool shutdown);
  // The model's file. DATA_LOSS when the stream does not hold what it announced, RESOURCE_EXHAUSTED when it announces
  // more than `max_bytes`. No timeout.
  absl::StatusOr<std::string> Export(v1::ExportRequest::Format format, uint64_t max_bytes);

 private:
  std::unique_ptr<grpc::ClientContext> NewContext(bool with_deadline) const;
  absl::Status ToAbsl(const grpc::Status& status) const;
  // Calls `fetch(first, last)` for consecutive windows of `page` rounds over [first, last].
  absl::Status ForEachPage(uint64_t first, uint64_t last, uint64_t page,
                           const std::function<absl::Status(uint64_t, uint64_t)>& fetch, uint64_t newest);

  const std::string address_;
  const absl::Duration timeout_;
  const std::unique_ptr<v1::Admin::Stub> stub_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_ADMIN_ADMIN_CLIENT_H_
