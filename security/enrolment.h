// The device's side of enrolment: from an invitation to a TLS folder. docs/SECURITY.md, "Enrolment".
#ifndef TERSE_SECURITY_ENROLMENT_H_
#define TERSE_SECURITY_ENROLMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "security/certificate.h"
#include "security/invitation.h"

namespace terse {

// Reads the file of an invitation. Statuses of FileSystem and ReadInvitation, with the path.
absl::StatusOr<Invitation> ReadInvitationFile(const std::string& path);

// Makes `folder` the TLS folder of client `name`: its key is made there and never leaves it, the authority's
// certificate comes from the invitation, and its own from the authority. A broken attempt is continued, so the same
// call can be made again until it succeeds. ALREADY_EXISTS when there is a certificate; FAILED_PRECONDITION for a
// folder of another authority; UNAVAILABLE or DEADLINE_EXCEEDED when the authority does not answer within `patience`,
// with the reason; the authority's refusals as of InvitationBook::Enrol; DATA_LOSS for an answer that is not what was
// asked for.
absl::StatusOr<CertificateFacts> Enrol(const std::string& folder, const Invitation& invitation, const std::string& name,
                                       absl::Duration patience = absl::Seconds(30));

}  // namespace terse

#endif  // TERSE_SECURITY_ENROLMENT_H_
