// `tersectl pki invite`, `serve`, `enrol` and what belongs to them: clients that get their certificates over the
// network. docs/SECURITY.md, "Enrolment".
#ifndef TERSE_TERSECTL_ENROLMENT_COMMANDS_H_
#define TERSE_TERSECTL_ENROLMENT_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tersectl/commands.h"

namespace terse {

struct InviteOptions : CommandOptions {
  std::string address;  // HOST:PORT of `serve`
  std::string out;      // the file
  int64_t guests = 1;
  double open_hours = 24;
  std::vector<std::string> patterns;  // of names
  int64_t days = 365;
};

struct WithdrawOptions : CommandOptions {
  std::string invitation;  // its id
};

struct ServeOptions : CommandOptions {
  std::string listen = "0.0.0.0:7701";
  std::vector<std::string> hosts;
};

struct EnrolOptions : CommandOptions {
  std::string name;
  std::string invitation;  // the file
  std::string out;         // the TLS folder
};

// All return the errors of Authority, InvitationBook, EnrolmentDesk, Enrol, and of the file system.

// ALREADY_EXISTS when the file is there.
absl::Status InviteClients(const InviteOptions& options, const Terminal& terminal);
absl::Status ListInvitations(const ListedOptions& options, const Terminal& terminal);
absl::Status WithdrawInvitation(const WithdrawOptions& options, const Terminal& terminal);
// Returns after SIGINT or SIGTERM, which it takes for the whole process.
absl::Status ServeEnrolment(const ServeOptions& options, const Terminal& terminal);
absl::Status EnrolDevice(const EnrolOptions& options, const Terminal& terminal);

}  // namespace terse

#endif  // TERSE_TERSECTL_ENROLMENT_COMMANDS_H_
