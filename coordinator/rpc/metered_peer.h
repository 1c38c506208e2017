// The client at the other end of a call, with its budget of bytes.
#ifndef TERSE_COORDINATOR_RPC_METERED_PEER_H_
#define TERSE_COORDINATOR_RPC_METERED_PEER_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "coordinator/rpc/gatekeeper.h"
#include "grpcpp/alarm.h"
#include "grpcpp/grpcpp.h"
#include "security/transport.h"

namespace terse {

// The caller of one call, with its budgets. Nothing is known or counted without a certificate. As thread-safe as
// ClientBudgets.
class MeteredPeer {
 public:
  // `gatekeeper` may be nullptr.
  MeteredPeer(std::shared_ptr<Gatekeeper> gatekeeper, const grpc::AuthContext& context)
      : gatekeeper_(std::move(gatekeeper)) {
    if (gatekeeper_ == nullptr) return;
    // The gatekeeper has read it before.
    if (auto facts = PeerCertificate(context); facts.ok()) facts_ = *std::move(facts);
  }

  // The name in the certificate; nullopt without one.
  absl::optional<std::string> name() const {
    return facts_.has_value() ? absl::make_optional(facts_->identity.name) : absl::nullopt;
  }

  // As ClientBudgets::Spend.
  absl::Duration Spend(int64_t bytes) const {
    return facts_.has_value() ? gatekeeper_->budgets()->Spend(facts_->identity.name, bytes) : absl::ZeroDuration();
  }

  // Status of CheckClaimedName; who claims another's name is in the audit log.
  absl::Status CheckName(const std::string& name) const { return Audited(CheckClaimedName(facts_, name)); }

  // Status of CheckClaimedRelay, likewise.
  absl::Status CheckRelay() const { return Audited(CheckClaimedRelay(facts_)); }

 private:
  // Tells the gatekeeper of a session that is refused, and returns the status.
  absl::Status Audited(absl::Status status) const {
    return status.ok() ? status : gatekeeper_->Refuse(*facts_, "/terse.v1.Fleet/Session", std::move(status));
  }

  std::shared_ptr<Gatekeeper> gatekeeper_;
  absl::optional<CertificateFacts> facts_;
};

// Calls `go_on` at once, or in a thread of gRPC's after the wait, or `longest` of it, so that a call that was ended
// meanwhile is noticed. At most one wait at a time. Objects that `go_on` uses must live until it was called.
class SlowDown {
 public:
  void Then(absl::Duration wait, std::function<void()> go_on, absl::Duration longest = absl::Seconds(1)) {
    if (wait <= absl::ZeroDuration()) return go_on();
    alarm_.Set(absl::ToChronoTime(absl::Now() + std::min(wait, longest)), [go_on = std::move(go_on)](bool) mutable {
      // The next wait replaces what the alarm calls, while it is being called.
      const std::function<void()> now = std::move(go_on);
      now();
    });
  }
  // Ends the present wait: `go_on` is called soon. Does nothing when there is none.
  void EndWait() { alarm_.Cancel(); }

 private:
  grpc::Alarm alarm_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_METERED_PEER_H_
