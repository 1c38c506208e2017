#include "security/invitation.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/host_port.h"
#include "core/status.h"
#include "security/openssl_types.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "terse-invitation-1";

absl::Status Bad(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("it is no invitation: ", why, "; take the file that `tersectl pki invite` wrote"));
}

// The text under `key`; empty when there is none.
std::string TextAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string InvitationText(const Invitation& invitation) {
  const Json json = {{"format", kFormat},
                     {"address", invitation.address},
                     {"secret", invitation.secret},
                     {"authority", invitation.authority}};
  return json.dump(2) + "\n";
}

absl::StatusOr<Invitation> ReadInvitation(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Bad("it is no JSON object");
  if (TextAt(json, "format") != kFormat) return Bad(absl::StrCat("its format is not ", kFormat));
  const Invitation invitation = {TextAt(json, "address"), TextAt(json, "secret"), TextAt(json, "authority")};
  if (!ParseHostPort(invitation.address).ok()) return Bad("its address is not HOST:PORT");
  if (invitation.secret.size() != kSecretDigits ||
      invitation.secret.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return Bad(absl::StrCat("its secret is not ", kSecretDigits, " hexadecimal digits"));
  }
  if (const absl::Status authority = ParseCertificate(invitation.authority, "its authority").status();
      !authority.ok()) {
    return Bad(authority.message());
  }
  return invitation;
}

}  // namespace terse
