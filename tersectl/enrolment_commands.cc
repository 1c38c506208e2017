#include "tersectl/enrolment_commands.h"

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/file_system.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "security/authority.h"
#include "security/enrolment.h"
#include "security/enrolment_desk.h"
#include "security/invitation_book.h"
#include "security/private_files.h"
#include "security/tls_directory.h"
#include "tersectl/pki_lists.h"
#include "tersectl/pki_print.h"
#include "tersectl/print.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

absl::Status CheckNew(const std::string& path) {
  const absl::Status found = PosixFiles().Read(path).status();
  if (!found.ok()) return absl::IsNotFound(found) ? absl::OkStatus() : found;
  return absl::AlreadyExistsError(absl::StrCat(path, " is there already; name another with --out"));
}

Json RecordJson(const InvitationRecord& record) {
  return {{"id", record.id},
          {"names", record.terms.names},
          {"guests", record.terms.guests},
          {"came", record.keys.size()},
          {"until_us", absl::ToUnixMicros(record.until)}};
}

// From when it is made on, these signals end wait() and nothing else: threads that are made later inherit that.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  void Wait() {
    int signal = 0;
    sigwait(&set_, &signal);
  }

 private:
  sigset_t set_, before_;
};

}  // namespace

absl::Status InviteClients(const InviteOptions& options, const Terminal& terminal) {
  const InvitationTerms terms = {options.patterns, options.guests, absl::Hours(options.open_hours), Days(options.days)};
  TERSE_RETURN_IF_ERROR(CheckNew(options.out));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, Authority::Open(options.authority));
  InvitationBook book(authority.get());
  TERSE_ASSIGN_OR_RETURN(const Invitation invitation, book.Invite(options.address, terms));
  TERSE_RETURN_IF_ERROR(ReplaceFile(PosixFiles(), options.out, {InvitationText(invitation)}));
  if (options.json) {
    PrintJson(
        {{"file", options.out}, {"guests", options.guests}, {"until_us", absl::ToUnixMicros(absl::Now() + terms.open)}},
        terminal);
    return absl::OkStatus();
  }
  *terminal.out << "invitation for " << options.guests << (options.guests == 1 ? " client" : " clients") << " named "
                << NamesText(terms) << ", open for " << LeftText(terms.open) << "\n"
                << "written: " << options.out << "\n"
                << "Whoever has the file can join the fleet: bring it to the devices on a way that nobody else can "
                   "read.\n"
                << "Next: tersectl pki serve --host HOST --pki " << options.authority << "   # HOST as in "
                << options.address << "\nand on a device\n  terse-client --enrol " << options.out
                << " --tls DIR --name NAME ...\n";
  return absl::OkStatus();
}

absl::Status ListInvitations(const ListedOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, Authority::Open(options.authority));
  TERSE_ASSIGN_OR_RETURN(const std::vector<InvitationRecord> records, InvitationBook(authority.get()).List());
  return ShowList(InvitationList(absl::Now()), options.list, options.json, records, terminal,
                  [&](const std::vector<InvitationRecord>& chosen) {
                    Json list = Json::array();
                    for (const InvitationRecord& record : chosen) list.push_back(RecordJson(record));
                    PrintJson(list, terminal);
                  });
}

absl::Status WithdrawInvitation(const WithdrawOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, Authority::Open(options.authority));
  TERSE_RETURN_IF_ERROR(InvitationBook(authority.get()).Withdraw(options.invitation));
  PrintOutcome(options, "withdrawn", options.invitation,
               absl::StrCat("nobody comes by invitation ", options.invitation,
                            " from now on; to turn out who came: tersectl pki revoke NAME"),
               terminal);
  return absl::OkStatus();
}

absl::Status ServeEnrolment(const ServeOptions& options, const Terminal& terminal) {
  if (options.hosts.empty()) {
    return absl::InvalidArgumentError("say with --host under which name or address the devices reach this machine");
  }
  Signals signals;
  EnrolmentDeskOptions desk_options = {options.authority, options.listen, options.hosts};
  absl::Mutex mutex;  // the desk speaks in threads of its own
  // A line each, so that a program can follow.
  const auto say = [&](absl::string_view line) {
    absl::MutexLock lock(&mutex);
    const Json json = {{"time_us", absl::ToUnixMicros(absl::Now())}, {"text", std::string(line)}};
    if (options.json) return PrintJsonLine(json, terminal);
    *terminal.out << TimeText(absl::Now()) << " " << PlainText(line) << std::endl;
  };
  desk_options.log = say;
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<EnrolmentDesk> desk, EnrolmentDesk::Start(std::move(desk_options)));
  say(absl::StrCat("answers invitations on port ", desk->port(), " as ", absl::StrJoin(options.hosts, ", "),
                   "; its certificate ends in ", LeftText(desk->not_after() - absl::Now()),
                   ": start it again before; Ctrl-C ends it"));
  signals.Wait();
  return absl::OkStatus();
}

absl::Status EnrolDevice(const EnrolOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const Invitation invitation, ReadInvitationFile(options.invitation));
  TERSE_ASSIGN_OR_RETURN(const CertificateFacts facts, Enrol(options.out, invitation, options.name));
  PrintFacts(
      options, facts,
      {FilePath(options.out, kKeyFile), FilePath(options.out, kAuthorityFile), FilePath(options.out, kCertificateFile)},
      absl::StrCat("Next: terse-client --tls ", options.out, " ...; the invitation has done its work: remove it"),
      terminal);
  return absl::OkStatus();
}

}  // namespace terse
