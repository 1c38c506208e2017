// The invitations of an authority, in its folder, with the guests who came by them. docs/SECURITY.md describes the
// files.
#ifndef TERSE_SECURITY_INVITATION_BOOK_H_
#define TERSE_SECURITY_INVITATION_BOOK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "security/authority.h"
#include "security/invitation.h"

namespace terse {

inline constexpr int64_t kMostGuests = 100000;  // of one invitation

// The terms of an invitation: the guests that it lets in.
struct InvitationTerms {
  std::vector<std::string> names;  // patterns (core/allow_list.h) of the clients' names; empty: any
  int64_t guests = 1;              // how many clients, at most kMostGuests
  absl::Duration open = absl::Hours(24);
  absl::Duration lifetime = absl::Hours(24 * 365);  // of the certificates
};

// The authority's record of an invitation: not the secret, only its hash.
struct InvitationRecord {
  std::string id;  // the first 16 digits of the secret's SHA-256
  std::string secret_hash;
  InvitationTerms terms;
  absl::Time until;
  std::vector<std::string> keys;  // hashes of the keys of those who came
};

// A client who has shown a secret and a request that go together.
struct Guest {
  InvitationRecord invitation;
  Identity identity;
  std::string key_hash;
};

// Checks everything about a guest that needs no lock on the authority's folder, so that guests without an invitation do
// not keep others out: there is an invitation of that secret, and it is for what is asked. Thread-safe.
// PERMISSION_DENIED for a secret that is unknown, another role than client, or a name for which the invitation is not;
// DATA_LOSS for a damaged record; statuses of ReadRequest.
absl::StatusOr<Guest> ExamineGuest(const std::string& authority_directory, absl::string_view secret,
                                   absl::string_view request_pem);

// Not thread-safe. Statuses are FileSystem's and Authority's, and those named below.
class InvitationBook {
 public:
  // `authority`, whose lock keeps other processes out, and `known`, if given, must outlive the book.
  explicit InvitationBook(Authority* authority, KnownCertificates* known = nullptr);

  // A new invitation to come to `address`, on disk when it returns. INVALID_ARGUMENT for an address that is not
  // HOST:PORT, a number of guests out of range, a pattern that no name can match, or a time that is not positive.
  absl::StatusOr<Invitation> Invite(const std::string& address, const InvitationTerms& terms);

  // The certificate, PEM, of a client who shows the secret and a request. Each guest is written down before it gets
  // anything, and gets the same certificate when it asks again with the same key, as long as that is valid: an answer
  // may be lost. PERMISSION_DENIED when the invitation is out of time or used up; ALREADY_EXISTS when somebody else has
  // a valid certificate of that name; statuses of ExamineGuest.
  absl::StatusOr<std::string> Enrol(absl::string_view secret, absl::string_view request_pem);

  // Returns all invitations, sorted by id. DATA_LOSS naming a file that is damaged.
  absl::StatusOr<std::vector<InvitationRecord>> List() const;
  // Lets nobody else come by the invitation; those who came stay. NOT_FOUND.
  absl::Status Withdraw(const std::string& id);

 private:
  // Finds the newest valid certificate of the one who takes part in runs under that name: a client or a relay.
  absl::StatusOr<absl::optional<IssuedCertificate>> FindValid(const std::string& name) const;
  // Writes the guest down, unless it is; PERMISSION_DENIED when there is no place.
  absl::Status Admit(const InvitationRecord& record, const std::string& name, const std::string& key_hash,
                     bool has_certificate) const;

  Authority* const authority_;
  KnownCertificates* const known_;
  const std::string folder_;
};

}  // namespace terse

#endif  // TERSE_SECURITY_INVITATION_BOOK_H_
