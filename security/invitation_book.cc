#include "security/invitation_book.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/allow_list.h"
#include "core/file_system.h"
#include "core/host_port.h"
#include "core/session_messages.h"
#include "core/status.h"
#include "security/private_files.h"
#include "security/secret.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFolder[] = "invitations";
constexpr char kRecordSuffix[] = ".json";
constexpr size_t kIdDigits = 16;
constexpr int64_t kMaxRecordBytes = 1 << 16;
constexpr size_t kMostPatterns = 64;

absl::Status CheckTerms(const std::string& address, const InvitationTerms& terms) {
  TERSE_RETURN_IF_ERROR(CheckDialAddress(address));
  if (terms.guests < 1 || terms.guests > kMostGuests) {
    return absl::InvalidArgumentError(absl::StrCat("an invitation is for 1 to ", kMostGuests, " clients"));
  }
  if (terms.open <= absl::ZeroDuration() || terms.lifetime <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("the time of an invitation and of its certificates must be above zero");
  }
  if (terms.names.size() > kMostPatterns) {
    return absl::InvalidArgumentError(absl::StrCat("an invitation has at most ", kMostPatterns, " patterns of names"));
  }
  for (const std::string& pattern : terms.names) {
    std::string plain = pattern;
    plain.erase(std::remove(plain.begin(), plain.end(), '*'), plain.end());
    const absl::Status name = CheckClientName(plain);
    if (plain.empty() ? pattern.empty() : !name.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("'", pattern, "' is the pattern of no name: ", name.message()));
    }
  }
  return absl::OkStatus();
}

std::string RecordText(const InvitationRecord& record) {
  return Json({{"format", 1},
               {"secret_sha256", record.secret_hash},
               {"names", record.terms.names},
               {"guests", record.terms.guests},
               {"until_s", absl::ToUnixSeconds(record.until)},
               {"lifetime_s", absl::ToInt64Seconds(record.terms.lifetime)}})
             .dump(2) +
         "\n";
}

// nullopt for what RecordText does not write.
absl::optional<InvitationRecord> ParseRecord(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  const auto is_number = [&json](const char* key) { return json.contains(key) && json[key].is_number_integer(); };
  if (!json.is_object() || !is_number("format") || json["format"] != 1 || !is_number("guests") ||
      !is_number("until_s") || !is_number("lifetime_s") || !json.contains("secret_sha256") ||
      !json["secret_sha256"].is_string() || !json.contains("names") || !json["names"].is_array()) {
    return absl::nullopt;
  }
  InvitationRecord record;
  record.secret_hash = json["secret_sha256"].get<std::string>();
  record.terms.guests = json["guests"].get<int64_t>();
  record.until = absl::FromUnixSeconds(json["until_s"].get<int64_t>());
  record.terms.lifetime = absl::Seconds(json["lifetime_s"].get<int64_t>());
  for (const Json& name : json["names"]) {
    if (!name.is_string()) return absl::nullopt;
    record.terms.names.push_back(name.get<std::string>());
  }
  return record;
}

absl::Status Denied(absl::string_view why) {
  return absl::PermissionDeniedError(absl::StrCat(why, "; ask the fleet's operator for another invitation"));
}

absl::StatusOr<InvitationRecord> ReadRecord(const std::string& folder, const std::string& id) {
  const std::string path = FilePath(folder, absl::StrCat(id, kRecordSuffix));
  TERSE_ASSIGN_OR_RETURN(const std::string text, PosixFiles().Read(path, kMaxRecordBytes));
  absl::optional<InvitationRecord> record = ParseRecord(text);
  if (!record.has_value() || record->secret_hash.substr(0, kIdDigits) != id) {
    return absl::DataLossError(
        absl::StrCat(path, " is damaged; remove it, and invite those who have not come yet again"));
  }
  record->id = id;
  TERSE_ASSIGN_OR_RETURN(record->keys, PosixFiles().List(FilePath(folder, id)));
  const auto is_temporary = [](const std::string& name) { return absl::EndsWith(name, kTemporarySuffix); };
  record->keys.erase(std::remove_if(record->keys.begin(), record->keys.end(), is_temporary), record->keys.end());
  return *std::move(record);
}

}  // namespace

absl::StatusOr<Guest> ExamineGuest(const std::string& authority_directory, absl::string_view secret,
                                   absl::string_view request_pem) {
  TERSE_ASSIGN_OR_RETURN(const std::string hash, Sha256Text(secret));
  absl::StatusOr<InvitationRecord> record =
      ReadRecord(FilePath(authority_directory, kFolder), hash.substr(0, kIdDigits));
  if (absl::IsNotFound(record.status()) || (record.ok() && record->secret_hash != hash)) {
    return Denied("the authority knows no such invitation, or has withdrawn it");
  }
  TERSE_RETURN_IF_ERROR(record.status());
  TERSE_ASSIGN_OR_RETURN(const CertificateRequest asked, ReadRequest(request_pem));
  TERSE_ASSIGN_OR_RETURN(std::string key_hash, RequestKeyHash(request_pem));
  const std::string& name = asked.identity.name;
  if (asked.identity.role != Role::kClient || !asked.hosts.empty()) {
    return absl::PermissionDeniedError("an invitation is for clients, which need no hosts; others are issued by hand");
  }
  if (!IsAllowed(record->terms.names, name)) {
    return Denied(
        absl::StrCat("the invitation is for ", absl::StrJoin(record->terms.names, ", "), " and not for '", name, "'"));
  }
  return Guest{*std::move(record), asked.identity, std::move(key_hash)};
}

InvitationBook::InvitationBook(Authority* authority, KnownCertificates* known)
    : authority_(authority), known_(known), folder_(FilePath(authority->directory(), kFolder)) {}

absl::StatusOr<Invitation> InvitationBook::Invite(const std::string& address, const InvitationTerms& terms) {
  TERSE_RETURN_IF_ERROR(CheckTerms(address, terms));
  Invitation invitation = {address, "", authority_->certificate()};
  TERSE_ASSIGN_OR_RETURN(invitation.secret, NewSecret(kSecretDigits / 2));
  InvitationRecord record;
  TERSE_ASSIGN_OR_RETURN(record.secret_hash, Sha256Text(invitation.secret));
  record.id = record.secret_hash.substr(0, kIdDigits);
  record.terms = terms;
  record.until = authority_->Now() + terms.open;
  {
    const AsOwner owner(authority_->directory());
    TERSE_RETURN_IF_ERROR(owner.status());
    TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(FilePath(folder_, record.id)));
  }
  TERSE_RETURN_IF_ERROR(ReplacePrivateFile(folder_, absl::StrCat(record.id, kRecordSuffix), RecordText(record)));
  return invitation;
}

absl::StatusOr<absl::optional<IssuedCertificate>> InvitationBook::FindValid(const std::string& name) const {
  TERSE_ASSIGN_OR_RETURN(const std::vector<IssuedCertificate> issued, authority_->List(known_));
  const auto found = std::find_if(issued.rbegin(), issued.rend(), [&](const IssuedCertificate& one) {
    const Identity& holder = one.facts.identity;
    return holder.name == name && TakesPart(holder.role) && !one.revoked.has_value() &&
           one.facts.not_after > authority_->Now();
  });
  return found == issued.rend() ? absl::nullopt : absl::make_optional(*found);
}

absl::Status InvitationBook::Admit(const InvitationRecord& record, const std::string& name, const std::string& key_hash,
                                   bool has_certificate) const {
  const bool is_open = authority_->Now() < record.until;
  const std::string guests = FilePath(folder_, record.id);
  if (absl::c_linear_search(record.keys, key_hash)) {
    TERSE_ASSIGN_OR_RETURN(const std::string known, PosixFiles().Read(FilePath(guests, key_hash), kMaxRecordBytes));
    if (known != name) {
      return absl::PermissionDeniedError(absl::StrCat("this key came as '", known, "'; keep that name"));
    }
    // A certificate that has ended since is renewed by the operator, not by an old invitation.
    return has_certificate || is_open ? absl::OkStatus() : Denied("the invitation's time is over");
  }
  if (!is_open) return Denied("the invitation's time is over");
  if (static_cast<int64_t>(record.keys.size()) >= record.terms.guests) {
    return Denied(absl::StrCat("the invitation is used up: it was for ", record.terms.guests,
                               record.terms.guests == 1 ? " client" : " clients"));
  }
  return ReplacePrivateFile(guests, key_hash, name);
}

absl::StatusOr<std::string> InvitationBook::Enrol(absl::string_view secret, absl::string_view request_pem) {
  TERSE_ASSIGN_OR_RETURN(const Guest guest, ExamineGuest(authority_->directory(), secret, request_pem));
  const std::string& name = guest.identity.name;
  TERSE_ASSIGN_OR_RETURN(const absl::optional<IssuedCertificate> valid, FindValid(name));
  const bool is_guests =
      valid.has_value() && valid->key_hash == guest.key_hash && valid->facts.identity == guest.identity;
  if (valid.has_value() && !is_guests) {
    return absl::AlreadyExistsError(
        absl::StrCat("another device is ", RoleName(valid->facts.identity.role), " '", name,
                     "'; take another name, or have its certificate revoked (tersectl pki revoke ", name, ")"));
  }
  TERSE_RETURN_IF_ERROR(Admit(guest.invitation, name, guest.key_hash, valid.has_value()));
  return valid.has_value() ? authority_->CertificatePem(valid->facts.serial)
                           : authority_->Issue(request_pem, guest.invitation.terms.lifetime);
}

absl::StatusOr<std::vector<InvitationRecord>> InvitationBook::List() const {
  const absl::StatusOr<std::vector<std::string>> names = PosixFiles().List(folder_);
  std::vector<InvitationRecord> records;
  if (absl::IsNotFound(names.status())) return records;
  TERSE_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    absl::string_view id = name;
    if (!absl::ConsumeSuffix(&id, kRecordSuffix)) continue;
    TERSE_ASSIGN_OR_RETURN(InvitationRecord record, ReadRecord(folder_, std::string(id)));
    records.push_back(std::move(record));
  }
  return records;
}

absl::Status InvitationBook::Withdraw(const std::string& id) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<InvitationRecord> records, List());
  if (absl::c_none_of(records, [&](const InvitationRecord& record) { return record.id == id; })) {
    return absl::NotFoundError(absl::StrCat("there is no invitation ", id, "; `tersectl pki invitations` lists them"));
  }
  TERSE_RETURN_IF_ERROR(PosixFiles().Remove(FilePath(folder_, absl::StrCat(id, kRecordSuffix))));
  return PosixFiles().SyncDirectory(folder_);
}

}  // namespace terse
