// The lists of an authority: its certificates and its invitations.
#ifndef TERSE_TERSECTL_PKI_LISTS_H_
#define TERSE_TERSECTL_PKI_LISTS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "security/authority.h"
#include "security/invitation_book.h"
#include "tersectl/list_view.h"

namespace terse {

// "valid", "expired" or "revoked".
absl::string_view StateOf(const IssuedCertificate& one, absl::Time now);
// "any", or the patterns.
std::string NamesText(const InvitationTerms& terms);

List<IssuedCertificate> CertificateList(absl::Time now);
List<InvitationRecord> InvitationList(absl::Time now);

}  // namespace terse

#endif  // TERSE_TERSECTL_PKI_LISTS_H_
