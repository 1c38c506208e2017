#include "security/x509_names.h"

#include <arpa/inet.h>
#include <openssl/err.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/session_messages.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr size_t kMaxHosts = 64;
constexpr size_t kMaxCommonName = 64;  // ub-common-name of RFC 5280
constexpr size_t kMaxDnsName = 253;
constexpr size_t kMaxDnsLabel = 63;
constexpr size_t kIpv4Bytes = 4, kIpv6Bytes = 16;

// The address in network order; empty when `host` is none.
std::string AddressBytes(const std::string& host) {
  unsigned char bytes[kIpv6Bytes];
  const auto text = [&bytes](size_t size) { return std::string(reinterpret_cast<const char*>(bytes), size); };
  if (inet_pton(AF_INET, host.c_str(), bytes) == 1) return text(kIpv4Bytes);
  if (inet_pton(AF_INET6, host.c_str(), bytes) == 1) return text(kIpv6Bytes);
  return "";
}

bool IsDnsLabel(absl::string_view label) {
  if (label.empty() || label.size() > kMaxDnsLabel || label.front() == '-' || label.back() == '-') return false;
  return absl::c_all_of(label, [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-'; });
}

// RFC 1123, 2.1; a name whose last label has only digits would be taken for an address.
bool IsDnsName(absl::string_view host) {
  if (host.size() > kMaxDnsName) return false;
  const std::vector<absl::string_view> labels = absl::StrSplit(host, '.');
  return absl::c_all_of(labels, IsDnsLabel) &&
         !absl::c_all_of(labels.back(), [](unsigned char c) { return absl::ascii_isdigit(c); });
}

absl::Status CheckHost(const std::string& host) {
  // The first test: inet_pton stops at a NUL.
  const bool plain = host.find('\0') == std::string::npos;
  if (plain && (IsDnsName(host) || !AddressBytes(host).empty())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("host '", absl::CHexEscape(host.substr(0, kMaxDnsName)),
                                                 "' is neither a DNS name nor an IP address; give it without port"));
}

// INTERNAL when there is no memory.
absl::Status AddName(GENERAL_NAMES* names, int type, const std::string& bytes) {
  std::unique_ptr<GENERAL_NAME, OpensslFree<GENERAL_NAME_free>> name(GENERAL_NAME_new());
  const int string_type = type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING;
  std::unique_ptr<ASN1_STRING, OpensslFree<ASN1_STRING_free>> value(ASN1_STRING_type_new(string_type));
  if (name == nullptr || value == nullptr ||
      ASN1_STRING_set(value.get(), bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return OpensslError("make a name");
  }
  GENERAL_NAME_set0_value(name.get(), type, value.release());
  if (sk_GENERAL_NAME_push(names, name.get()) <= 0) return OpensslError("add a name");
  name.release();
  return absl::OkStatus();
}

std::string Text(const ASN1_STRING* text) {
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
}

absl::StatusOr<std::string> AddressText(const std::string& bytes) {
  char text[INET6_ADDRSTRLEN];
  const bool known = bytes.size() == kIpv4Bytes || bytes.size() == kIpv6Bytes;
  const int family = bytes.size() == kIpv4Bytes ? AF_INET : AF_INET6;
  if (!known || inet_ntop(family, bytes.data(), text, sizeof(text)) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("it has an IP address of ", bytes.size(), " bytes"));
  }
  return std::string(text);
}

absl::Status CheckHosts(const std::vector<std::string>& hosts) {
  if (hosts.size() > kMaxHosts) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", hosts.size(), " hosts; ", kMaxHosts, " are allowed"));
  }
  for (const std::string& host : hosts) TERSE_RETURN_IF_ERROR(CheckHost(host));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCertificateRequest(const CertificateRequest& request) {
  TERSE_RETURN_IF_ERROR(CheckClientName(request.identity.name));
  if (Serves(request.identity.role) && request.hosts.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(RoleName(request.identity.role), " '", request.identity.name,
                                                   "' has no host; name every one under which clients reach it "
                                                   "(--host)"));
  }
  return CheckHosts(request.hosts);
}

std::string CommonName(const Identity& identity) {
  return absl::StrCat("terse ", RoleName(identity.role), " ", identity.name);
}

absl::Status SetSubject(X509_NAME* subject, const std::string& common_name) {
  const auto add = [subject](const char* field, const std::string& value) {
    return X509_NAME_add_entry_by_txt(subject, field, MBSTRING_ASC,
                                      reinterpret_cast<const unsigned char*>(value.data()),
                                      static_cast<int>(value.size()), -1, 0) == 1;
  };
  ERR_clear_error();
  if (add("O", "Terse") && add("CN", common_name.substr(0, kMaxCommonName))) return absl::OkStatus();
  return OpensslError("write a subject's name");
}

absl::StatusOr<GeneralNamesPtr> MakeAlternativeNames(const CertificateRequest& request) {
  ERR_clear_error();
  GeneralNamesPtr names(GENERAL_NAMES_new());
  if (names == nullptr) return OpensslError("make names");
  TERSE_RETURN_IF_ERROR(AddName(names.get(), GEN_URI, ToUri(request.identity)));
  for (const std::string& host : request.hosts) {
    const std::string address = AddressBytes(host);
    TERSE_RETURN_IF_ERROR(address.empty() ? AddName(names.get(), GEN_DNS, host)
                                          : AddName(names.get(), GEN_IPADD, address));
  }
  return names;
}

absl::StatusOr<AlternativeNames> ReadAlternativeNames(const GENERAL_NAMES& names) {
  AlternativeNames result;
  std::vector<std::string> uris;
  for (int i = 0; i < sk_GENERAL_NAME_num(&names); ++i) {
    int type = 0;
    const void* const value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(&names, i), &type);
    if (type == GEN_URI) {
      uris.push_back(Text(static_cast<const ASN1_STRING*>(value)));
    } else if (type == GEN_DNS) {
      result.request.hosts.push_back(Text(static_cast<const ASN1_STRING*>(value)));
    } else if (type == GEN_IPADD) {
      TERSE_ASSIGN_OR_RETURN(std::string address, AddressText(Text(static_cast<const ASN1_STRING*>(value))));
      result.request.hosts.push_back(std::move(address));
    } else {
      result.others = true;
    }
  }
  if (uris.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", uris.size(), " URIs among its alternative names in place of one, its identity"));
  }
  TERSE_ASSIGN_OR_RETURN(result.request.identity, IdentityFromUri(uris[0]));
  TERSE_RETURN_IF_ERROR(CheckHosts(result.request.hosts));
  return result;
}

}  // namespace terse
