#include "storage/postgres_address.h"

#include <arpa/inet.h>
#include <libpq-fe.h>

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "storage/postgres_errors.h"

namespace terse {
namespace {

// Whether what is sent to a host stays on this machine. Without a host, and with a path, it goes through a socket of
// the file system.
bool IsThisMachine(const std::string& host) {
  if (host.empty() || host[0] == '/' || host[0] == '@' || host == "localhost") return true;
  in_addr ipv4{};
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) return ntohl(ipv4.s_addr) >> 24 == IN_LOOPBACKNET;
  in6_addr ipv6{};
  return inet_pton(AF_INET6, host.c_str(), &ipv6) == 1 && IN6_IS_ADDR_LOOPBACK(&ipv6);
}

// The options of an address or of a connection.
class Options {
 public:
  explicit Options(PQconninfoOption* options) : options_(options) {}
  ~Options() { PQconninfoFree(options_); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  absl::optional<std::string> Get(absl::string_view keyword) const {
    for (const PQconninfoOption* option = options_; option != nullptr && option->keyword != nullptr; ++option) {
      if (keyword == option->keyword && option->val != nullptr) return std::string(option->val);
    }
    return absl::nullopt;
  }

 private:
  PQconninfoOption* const options_;
};

// The sslmode that checks a server's certificate and its name.
constexpr char kCheckedTls[] = "verify-full";
constexpr char kTlsRemedy[] =
    "; name sslmode=verify-full in the address, and sslrootcert=FILE with the authority that signed the server's "
    "certificate";

// Whether the text of an address that cannot be read may have a password in it, which libpq's messages would repeat.
bool MayHavePassword(absl::string_view address) {
  const size_t begin = address.find("://");
  const size_t end = address.rfind('@');
  return absl::StrContains(absl::AsciiStrToLower(address), "password") ||
         (begin < end && end != absl::string_view::npos &&
          absl::StrContains(address.substr(begin + 3, end - begin - 3), ':'));
}

// Whether every host that the address names is this machine.
bool IsLocal(const Options& address) {
  for (const char* const keyword : {"host", "hostaddr"}) {
    const std::vector<std::string> hosts = absl::StrSplit(address.Get(keyword).value_or(""), ',');
    if (!std::all_of(hosts.begin(), hosts.end(), IsThisMachine)) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<absl::optional<std::string>> SslModeFor(const std::string& address) {
  char* why = nullptr;
  const Options options(PQconninfoParse(address.c_str(), &why));
  if (why != nullptr) {
    const std::string shown = MayHavePassword(address) ? "" : absl::StrCat(": ", OneLine(why));
    PQfreemem(why);
    return absl::InvalidArgumentError(
        absl::StrCat("the address of the store cannot be read", shown, "; it is like postgresql://USER@HOST/DATABASE"));
  }
  if (options.Get("password").has_value() || options.Get("sslpassword").has_value()) {
    return absl::InvalidArgumentError(
        "the address of the store has a password, which every user of this machine can read there; put it into "
        "~/.pgpass, or into a service file and name service=NAME");
  }
  if (IsLocal(options)) return absl::optional<std::string>();
  const std::string sslmode = options.Get("sslmode").value_or(kCheckedTls);
  if (sslmode == kCheckedTls) return absl::make_optional(sslmode);
  return absl::InvalidArgumentError(absl::StrCat("the address of the store names another machine and sslmode=", sslmode,
                                                 ", which does not check its certificate", kTlsRemedy));
}

absl::Status CheckProtection(pg_conn* connection, absl::string_view place) {
  const Options options(PQconninfo(connection));
  const bool is_checked = PQsslInUse(connection) == 1 && options.Get("sslmode") == kCheckedTls;
  if (is_checked || IsThisMachine(PQhostaddr(connection))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(place, " is on another machine, and its certificate is not checked", kTlsRemedy));
}

}  // namespace terse
