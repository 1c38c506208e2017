// Stands between a relay's client session and its connection, so that the relay's own run follows what is said there.
#ifndef TERSE_RELAY_RELAY_LINK_H_
#define TERSE_RELAY_RELAY_LINK_H_

#include <string>

#include "client/coordinator_link.h"
#include "relay/cohort_desk.h"

namespace terse {

// Models reach the run here before they reach the session: so the run is never behind the session, which trains from
// them. Both pointers must outlive it.
class RelayLink : public CoordinatorLink {
 public:
  RelayLink(CoordinatorLink* connection, CohortDesk* desk) : connection_(connection), desk_(desk) {}

  absl::Status Send(const FromClient& message) override;
  void SetMaxDownstreamBytes(int64_t bytes) override { connection_->SetMaxDownstreamBytes(bytes); }
  absl::StatusOr<std::string> DownloadCheckpoint(Id128 lineage, int64_t version, int64_t max_bytes) override;
  absl::StatusOr<std::string> DownloadModule(Id128 lineage, int64_t max_bytes) override {
    return connection_->DownloadModule(lineage, max_bytes);
  }
  absl::StatusOr<FromServer> Receive() override;

 private:
  CoordinatorLink* const connection_;
  CohortDesk* const desk_;
};

}  // namespace terse

#endif  // TERSE_RELAY_RELAY_LINK_H_
