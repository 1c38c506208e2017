// A client that brings an invitation and no certificate yet.
#ifndef TERSE_CLIENT_RPC_ENROL_ONCE_H_
#define TERSE_CLIENT_RPC_ENROL_ONCE_H_

#include <atomic>

#include "absl/status/status.h"
#include "client/rpc/connection_loop.h"

namespace terse {

// Enrols with the invitation, under options.name or else the machine's host name, unless the TLS folder has a
// certificate: then the invitation is not even read. An authority that does not answer is called again; CANCELLED when
// `stop` becomes true meanwhile. Other statuses of ReadInvitationFile and Enrol are final.
absl::Status EnrolOnce(const DaemonOptions& options, const std::atomic<bool>* stop);

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_ENROL_ONCE_H_
