#include "tersectl/pki_commands.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/file_system.h"
#include "core/status.h"
#include "security/authority.h"
#include "security/pki_folder.h"
#include "security/private_files.h"
#include "security/tls_directory.h"
#include "tersectl/pki_lists.h"
#include "tersectl/pki_print.h"
#include "tersectl/print.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

// How a process of that role is started with the folder.
std::string StartText(Role role, const std::string& folder) {
  switch (role) {
    case Role::kCoordinator:
      return absl::StrCat("terse-coordinator --tls ", folder);
    case Role::kRelay:
      return absl::StrCat("terse-relay --tls ", folder);
    case Role::kClient:
      return absl::StrCat("terse-client --tls ", folder);
    case Role::kObserver:
    case Role::kOperator:
      return absl::StrCat("tersectl --tls ", folder, " status");
  }
  return "";
}

// The folder must not be somebody else's. A renewal keeps the hosts of its certificate unless others are given.
absl::StatusOr<CertificateRequest> Wanted(const SubjectOptions& options, const PkiFolder& folder) {
  CertificateRequest request;
  TERSE_ASSIGN_OR_RETURN(request.identity.role, ParseRole(options.role));
  request.identity.name = options.name;
  request.hosts = options.hosts;
  TERSE_ASSIGN_OR_RETURN(const absl::optional<CertificateFacts> old, folder.CertificateOf(request.identity));
  if (options.renew && request.hosts.empty() && old.has_value()) request.hosts = old->hosts;
  return request;
}

// The certificate and what its holder needs of the authority.
absl::Status WriteCertificate(const PkiFolder& folder, const Authority& authority, Role role,
                              const std::string& certificate, std::vector<std::string>* written) {
  TERSE_RETURN_IF_ERROR(folder.Write(kAuthorityFile, authority.certificate(), written));
  if (Serves(role)) {
    TERSE_ASSIGN_OR_RETURN(const std::string list, authority.RevocationListPem());
    TERSE_RETURN_IF_ERROR(folder.Write(kRevocationFile, list, written));
  }
  return folder.Write(kCertificateFile, certificate, written);
}

Json IssuedJson(const IssuedCertificate& one, absl::string_view state) {
  Json json = FactsJson(one.facts);
  json["state"] = std::string(state);
  json["revoked_us"] = one.revoked.has_value() ? Json(absl::ToUnixMicros(*one.revoked)) : Json(nullptr);
  return json;
}

// The request's role must be a client's, or repeated on the command line.
absl::Status CheckRole(const SignOptions& options, const Identity& identity) {
  const absl::string_view role = RoleName(identity.role);
  if (options.role.empty() ? identity.role == Role::kClient : options.role == role) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(options.request, " asks for a certificate of ", WhoText(identity),
                                                    "; if that is what you want to give, say --role ", role));
}

// Writes the authority's list to every folder of --into.
absl::Status Spread(const RevokeOptions& options, const Authority& authority, std::vector<std::string>* written) {
  TERSE_ASSIGN_OR_RETURN(const std::string list, authority.RevocationListPem());
  for (const std::string& path : options.into) {
    TERSE_RETURN_IF_ERROR(PkiFolder(path).Write(kRevocationFile, list, written));
  }
  return absl::OkStatus();
}

// Only those who serve read the list, for those who connect to them.
bool Unenforced(const CertificateFacts& facts) { return Serves(facts.identity.role); }

Json RevokedJson(const CertificateFacts& facts) {
  Json json = FactsJson(facts);
  json["unenforced"] = Unenforced(facts);
  return json;
}

void PrintRevoked(const CertificateFacts& facts, const Terminal& terminal) {
  *terminal.out << "revoked: " << WhoText(facts.identity) << ", serial " << facts.serial << "\n";
  if (!Unenforced(facts)) return;
  *terminal.out << "  But clients read no revocation lists: they go on trusting whoever has its key until "
                << TimeText(facts.not_after) << ".\n  If the key may be in other hands, make a new authority.\n";
}

// A folder that is none of this authority's would be left with a list that it cannot use.
absl::Status CheckTargets(const RevokeOptions& options, const Authority& authority) {
  for (const std::string& path : options.into) {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<std::string> trusted, PkiFolder(path).Read(kAuthorityFile));
    if (!trusted.has_value() || *trusted != authority.certificate()) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " holds no ", kAuthorityFile, " of this authority; nothing was revoked: correct --into"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InitAuthority(const InitOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority,
                         Authority::Create(options.authority, options.name, Days(options.days)));
  if (options.json) {
    PrintJson({{"directory", options.authority}, {"expires_us", absl::ToUnixMicros(authority->not_after())}}, terminal);
    return absl::OkStatus();
  }
  *terminal.out << "authority '" << options.name << "' in " << options.authority << ", valid until "
                << TimeText(authority->not_after()) << "\n"
                << "Whoever has this folder can let anybody into the fleet: keep it on a machine of its own, with a "
                   "backup.\n"
                << "Next: tersectl pki issue coordinator NAME --host HOST --out DIR --pki " << options.authority
                << "\n";
  return absl::OkStatus();
}

absl::Status IssueCertificate(const IssueOptions& options, const Terminal& terminal) {
  const PkiFolder folder(options.out);
  TERSE_ASSIGN_OR_RETURN(const CertificateRequest wanted, Wanted(options, folder));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, Authority::Open(options.authority));
  TERSE_ASSIGN_OR_RETURN(const std::string key, folder.Key(options.renew));
  TERSE_RETURN_IF_ERROR(folder.CheckAuthority(authority->certificate()));
  TERSE_ASSIGN_OR_RETURN(const std::string request, MakeRequest(wanted, key));
  TERSE_RETURN_IF_ERROR(folder.Prepare());
  TERSE_ASSIGN_OR_RETURN(const std::string certificate, authority->Issue(request, Days(options.days)));
  TERSE_ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCertificate(certificate));
  std::vector<std::string> written;
  if (options.renew) {
    TERSE_RETURN_IF_ERROR(folder.Write(kCertificateFile, certificate, &written));
    PrintFacts(options, facts, written,
               "A process that runs with the folder takes it up within a second; nothing needs a restart.", terminal);
    return absl::OkStatus();
  }
  TERSE_RETURN_IF_ERROR(WriteCertificate(folder, *authority, wanted.identity.role, certificate, &written));
  // Last: until it is there, the command can be given again.
  TERSE_RETURN_IF_ERROR(folder.Write(kKeyFile, key, &written));
  PrintFacts(
      options, facts, written,
      absl::StrCat("Next: bring ", options.out, " to its machine on a way that nobody else can read, and there\n  ",
                   StartText(wanted.identity.role, options.out)),
      terminal);
  return absl::OkStatus();
}

absl::Status RequestCertificate(const SubjectOptions& options, const Terminal& terminal) {
  const PkiFolder folder(options.out);
  TERSE_ASSIGN_OR_RETURN(const CertificateRequest wanted, Wanted(options, folder));
  TERSE_ASSIGN_OR_RETURN(const std::string key, folder.Key(options.renew));
  TERSE_ASSIGN_OR_RETURN(const std::string request, MakeRequest(wanted, key));
  TERSE_RETURN_IF_ERROR(folder.Prepare());
  std::vector<std::string> written;
  TERSE_RETURN_IF_ERROR(folder.Write(kRequestFile, request, &written));
  if (!options.renew) TERSE_RETURN_IF_ERROR(folder.Write(kKeyFile, key, &written));
  if (options.json) {
    PrintJson({{"role", options.role}, {"name", options.name}, {"hosts", wanted.hosts}, {"files", written}}, terminal);
    return absl::OkStatus();
  }
  const bool client = wanted.identity.role == Role::kClient;
  *terminal.out << "request of " << WhoText(wanted.identity) << "\n";
  PrintWritten(written, terminal);
  *terminal.out << "Next: bring " << folder.PathOf(kRequestFile) << ", and not the key, to the authority, and there\n"
                << "  tersectl pki sign " << kRequestFile << (client ? "" : absl::StrCat(" --role ", options.role))
                << " --out " << options.name << "\n";
  return absl::OkStatus();
}

absl::Status SignRequest(const SignOptions& options, const Terminal& terminal) {
  const PkiFolder folder(options.out);
  TERSE_ASSIGN_OR_RETURN(const std::string request, PosixFiles().Read(options.request, kMaxPemBytes));
  absl::StatusOr<CertificateRequest> asked = ReadRequest(request);
  if (!asked.ok()) return Annotate(asked.status(), options.request);
  TERSE_RETURN_IF_ERROR(CheckRole(options, asked->identity));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, Authority::Open(options.authority));
  TERSE_RETURN_IF_ERROR(folder.CheckAuthority(authority->certificate()));
  TERSE_RETURN_IF_ERROR(folder.CertificateOf(asked->identity).status());
  TERSE_ASSIGN_OR_RETURN(const absl::optional<std::string> key, folder.Read(kKeyFile));
  if (key.has_value()) TERSE_RETURN_IF_ERROR(Annotate(CheckRequestKey(request, *key), folder.PathOf(kKeyFile)));
  TERSE_RETURN_IF_ERROR(folder.Prepare());
  TERSE_ASSIGN_OR_RETURN(const std::string certificate, authority->Issue(request, Days(options.days)));
  TERSE_ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCertificate(certificate));
  std::vector<std::string> written;
  TERSE_RETURN_IF_ERROR(WriteCertificate(folder, *authority, asked->identity.role, certificate, &written));
  PrintFacts(options, facts, written,
             absl::StrCat("Next: put these files beside the ", kKeyFile, " of the request, in DIR, and there\n  ",
                          StartText(asked->identity.role, "DIR")),
             terminal);
  return absl::OkStatus();
}

absl::Status RevokeCertificates(const RevokeOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, Authority::Open(options.authority));
  TERSE_RETURN_IF_ERROR(CheckTargets(options, *authority));
  const absl::StatusOr<std::vector<CertificateFacts>> revoked = authority->Revoke(options.name);
  if (!revoked.ok() && !absl::IsNotFound(revoked.status())) return revoked.status();
  std::vector<std::string> written = {FilePath(options.authority, kRevocationFile)};
  TERSE_RETURN_IF_ERROR(Spread(options, *authority, &written));
  TERSE_RETURN_IF_ERROR(revoked.status());
  if (options.json) {
    Json list = Json::array();
    for (const CertificateFacts& facts : *revoked) list.push_back(RevokedJson(facts));
    PrintJson({{"revoked", list}, {"files", written}}, terminal);
    return absl::OkStatus();
  }
  for (const CertificateFacts& facts : *revoked) PrintRevoked(facts, terminal);
  PrintWritten(written, terminal);
  *terminal.out << "Next: bring " << written[0]
                << " into the TLS folder of every coordinator and relay (--into does so on this machine); one without "
                << "it lets the holder in.\n";
  return absl::OkStatus();
}

absl::Status ListCertificates(const CertificatesOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, Authority::Open(options.authority));
  TERSE_ASSIGN_OR_RETURN(const std::vector<IssuedCertificate> issued, authority->List());
  const absl::Time now = absl::Now();
  std::vector<IssuedCertificate> listed;
  for (const IssuedCertificate& one : issued) {
    if (!options.revoked || one.revoked.has_value()) listed.push_back(one);
  }
  return ShowList(CertificateList(now), options.list, options.json, listed, terminal,
                  [&](const std::vector<IssuedCertificate>& chosen) {
                    Json list = Json::array();
                    for (const IssuedCertificate& one : chosen) list.push_back(IssuedJson(one, StateOf(one, now)));
                    PrintJson(list, terminal);
                  });
}

}  // namespace terse
