#include "tersectl/enrolment_commands.h"

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "tersectl/pki_print.h"
#include "tersectl/print.h"
#include "tersectl/text_table.h"
#include "core/file_system.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "security/authority.h"
#include "security/enrolment.h"
#include "security/enrolment_desk.h"
#include "security/invitation_book.h"
#include "security/private_files.h"
#include "security/tls_directory.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

absl::Status CheckNew(const std::string& path) {
  const absl::Status found = PosixFiles().Read(path).status();
  if (!found.ok()) return absl::IsNotFound(found) ? absl::OkStatus() : found;
  return absl::AlreadyExistsError(absl::StrCat(path, " is there already; name another with --out"));
}

std::string NamesText(const InvitationTerms& terms) {
  return terms.names.empty() ? "any" : absl::StrJoin(terms.names, " ");
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

absl::Status InviteClients(const CommandOptions& options, const Terminal& terminal) {
  const PkiOptions& pki = options.pki;
  const InvitationTerms terms = {pki.patterns, pki.guests, absl::Hours(pki.open_hours), Days(pki.days)};
  TERSE_RETURN_IF_ERROR(CheckNew(pki.out));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, Authority::Open(pki.authority));
  InvitationBook book(authority.get());
  TERSE_ASSIGN_OR_RETURN(const Invitation invitation, book.Invite(pki.address, terms));
  TERSE_RETURN_IF_ERROR(ReplaceFile(PosixFiles(), pki.out, {InvitationText(invitation)}));
  if (options.json) {
    PrintJson({{"file", pki.out}, {"guests", pki.guests}, {"until_us", absl::ToUnixMicros(absl::Now() + terms.open)}},
              terminal);
    return absl::OkStatus();
  }
  *terminal.out << "invitation for " << pki.guests << (pki.guests == 1 ? " client" : " clients") << " named "
                << NamesText(terms) << ", open for " << LeftText(terms.open) << "\n"
                << "written: " << pki.out << "\n"
                << "Whoever has the file can join the fleet: bring it to the devices on a way that nobody else can "
                   "read.\n"
                << "Next: tersectl pki serve --host HOST --pki " << pki.authority << "   # HOST as in " << pki.address
                << "\nand on a device\n  terse-client --enrol " << pki.out << " --tls DIR --name NAME ...\n";
  return absl::OkStatus();
}

absl::Status ListInvitations(const CommandOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, Authority::Open(options.pki.authority));
  TERSE_ASSIGN_OR_RETURN(const std::vector<InvitationRecord> records, InvitationBook(authority.get()).List());
  Json list = Json::array();
  TextTable table({{"invitation"}, {"names"}, {"came", true}, {"of", true}, {"open for", true}});
  for (const InvitationRecord& record : records) {
    list.push_back(RecordJson(record));
    table.AddRow({record.id, NamesText(record.terms), absl::StrCat(record.keys.size()),
                  absl::StrCat(record.terms.guests), LeftText(record.until - absl::Now())});
  }
  if (options.json) {
    PrintJson(list, terminal);
  } else {
    *terminal.out << table.Render(terminal.color);
  }
  return absl::OkStatus();
}

absl::Status WithdrawInvitation(const CommandOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, Authority::Open(options.pki.authority));
  TERSE_RETURN_IF_ERROR(InvitationBook(authority.get()).Withdraw(options.pki.invitation));
  PrintOutcome(options, "withdrawn", options.pki.invitation,
               absl::StrCat("nobody comes by invitation ", options.pki.invitation,
                            " from now on; to turn out who came: tersectl pki revoke NAME"),
               terminal);
  return absl::OkStatus();
}

absl::Status ServeEnrolment(const CommandOptions& options, const Terminal& terminal) {
  const PkiOptions& pki = options.pki;
  if (pki.hosts.empty()) {
    return absl::InvalidArgumentError("say with --host under which name or address the devices reach this machine");
  }
  Signals signals;
  EnrolmentDeskOptions desk_options = {pki.authority, pki.listen, pki.hosts};
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
  say(absl::StrCat("answers invitations on port ", desk->port(), " as ", absl::StrJoin(pki.hosts, ", "),
                   "; its certificate ends in ", LeftText(desk->not_after() - absl::Now()),
                   ": start it again before; Ctrl-C ends it"));
  signals.Wait();
  return absl::OkStatus();
}

absl::Status EnrolDevice(const CommandOptions& options, const Terminal& terminal) {
  const PkiOptions& pki = options.pki;
  TERSE_ASSIGN_OR_RETURN(const Invitation invitation, ReadInvitationFile(pki.invitation));
  TERSE_ASSIGN_OR_RETURN(const CertificateFacts facts, Enrol(pki.out, invitation, pki.name));
  PrintFacts(options, facts,
             {FilePath(pki.out, kKeyFile), FilePath(pki.out, kAuthorityFile), FilePath(pki.out, kCertificateFile)},
             absl::StrCat("Next: terse-client --tls ", pki.out, " ...; the invitation has done its work: remove it"),
             terminal);
  return absl::OkStatus();
}

}  // namespace terse
