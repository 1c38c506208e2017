// Which of the coordinators on one store serves its runs: a lease that its holder renews, and that another one takes
// when it was not renewed for so long. Internal to storage/ but for RunStores::lease.
#ifndef TERSE_STORAGE_STORE_LEASE_H_
#define TERSE_STORAGE_STORE_LEASE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace terse {

// Not thread-safe. Times are the server's, so that the machines' clocks need not agree.
class StoreLease {
 public:
  virtual ~StoreLease() = default;

  // Takes the lease if nobody has it, its holder did not renew it in time, or its holder is seen to be gone; whoever
  // held it cannot change anything any more when this returns. Returns who has it: an empty string for this one.
  // UNAVAILABLE when the store cannot be reached; the next call tries anew.
  virtual absl::StatusOr<std::string> Take() = 0;
  // Renews a lease that was taken. FAILED_PRECONDITION when another one has it meanwhile; UNAVAILABLE as above.
  virtual absl::Status Renew() = 0;
  // Gives it back, so that another one can take it at once. Best effort.
  virtual void Release() = 0;
  // How long it lasts without being renewed.
  virtual absl::Duration duration() const = 0;
};

}  // namespace terse

#endif  // TERSE_STORAGE_STORE_LEASE_H_
