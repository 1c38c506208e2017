// `tersectl pki invite`, `serve`, `enrol` and what belongs to them: clients that get their certificates over the
// network. docs/SECURITY.md, "Enrolment".
#ifndef TERSE_TERSECTL_ENROLMENT_COMMANDS_H_
#define TERSE_TERSECTL_ENROLMENT_COMMANDS_H_

#include "absl/status/status.h"
#include "tersectl/commands.h"

namespace terse {

// All return the errors of Authority, InvitationBook, EnrolmentDesk, Enrol, and of the file system.

// ALREADY_EXISTS when the file is there.
absl::Status InviteClients(const CommandOptions& options, const Terminal& terminal);
absl::Status ListInvitations(const CommandOptions& options, const Terminal& terminal);
absl::Status WithdrawInvitation(const CommandOptions& options, const Terminal& terminal);
// Returns after SIGINT or SIGTERM, which it takes for the whole process.
absl::Status ServeEnrolment(const CommandOptions& options, const Terminal& terminal);
absl::Status EnrolDevice(const CommandOptions& options, const Terminal& terminal);

}  // namespace terse

#endif  // TERSE_TERSECTL_ENROLMENT_COMMANDS_H_
