// A link of a given rate between a client and its coordinator, simulated: for experiments whose result depends on how
// long bytes take.
#ifndef TERSE_BENCH_PAPER_THIN_LINK_H_
#define TERSE_BENCH_PAPER_THIN_LINK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/coordinator_link.h"

namespace terse {

// The clock and the sleep that a ThinLink waits with.
struct LinkTime {
  std::function<absl::Time()> now = absl::Now;
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
};

// Passes everything on to another link, later: every update, downstream message and checkpoint waits until a
// full-duplex link of so many bytes a second, which nobody else uses, would have carried its payload. The wait of a
// message that comes down begins when it is received. Small messages wait for nothing. The waiting is the sender's or
// the receiver's own, so clients in threads of one process wait beside each other. Thread safety as CoordinatorLink.
class ThinLink : public CoordinatorLink {
 public:
  // `link` must outlive this; bytes_per_second > 0.
  ThinLink(CoordinatorLink* link, double bytes_per_second, LinkTime time = LinkTime())
      : link_(link), bytes_per_second_(bytes_per_second), time_(std::move(time)) {}

  absl::Status Send(const FromClient& message) override;
  absl::StatusOr<FromServer> Receive() override;
  void SetMaxDownstreamBytes(int64_t bytes) override { link_->SetMaxDownstreamBytes(bytes); }
  absl::StatusOr<std::string> DownloadCheckpoint(Id128 lineage, int64_t version, int64_t max_bytes) override;
  absl::StatusOr<std::string> DownloadModule(Id128 lineage, int64_t max_bytes) override;

 private:
  // Waits until `bytes` more have passed in the direction whose last byte passed at `*free`.
  void Carry(size_t bytes, absl::Time* free) const;
  absl::StatusOr<std::string> Carried(absl::StatusOr<std::string> file);

  CoordinatorLink* const link_;
  const double bytes_per_second_;
  const LinkTime time_;
  absl::Time up_free_ = absl::InfinitePast();
  absl::Time down_free_ = absl::InfinitePast();
};

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_THIN_LINK_H_
