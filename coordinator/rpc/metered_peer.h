// The client at the other end of a call, with its budget of bytes.
#ifndef TERSE_COORDINATOR_RPC_METERED_PEER_H_
#define TERSE_COORDINATOR_RPC_METERED_PEER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "coordinator/rpc/gatekeeper.h"
#include "grpcpp/grpcpp.h"
#include "security/transport.h"

namespace terse {

// Of a call without a certificate nothing is known and nothing is counted. As thread-safe as ClientBudgets.
class MeteredPeer {
 public:
  // `gatekeeper` may be nullptr.
  MeteredPeer(std::shared_ptr<Gatekeeper> gatekeeper, const grpc::AuthContext& context)
      : gatekeeper_(std::move(gatekeeper)) {
    if (gatekeeper_ == nullptr) return;
    // The gatekeeper has read it before.
    if (auto facts = PeerCertificate(context); facts.ok()) facts_ = *std::move(facts);
  }

  // OK, or the status with which the call should end: of ClientBudgets::Spend.
  absl::Status Spend(int64_t bytes) const {
    return facts_.has_value() ? gatekeeper_->budgets()->Spend(facts_->identity.name, bytes) : absl::OkStatus();
  }

  // Status of CheckClaimedName; who claims another's name is in the audit log.
  absl::Status CheckName(const std::string& name) const {
    absl::Status status = CheckClaimedName(facts_, name);
    return status.ok() ? status : gatekeeper_->Refuse(&*facts_, "/terse.v1.Fleet/Session", std::move(status));
  }

 private:
  std::shared_ptr<Gatekeeper> gatekeeper_;
  absl::optional<CertificateFacts> facts_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_METERED_PEER_H_
