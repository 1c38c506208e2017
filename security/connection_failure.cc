#include "security/connection_failure.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/host_port.h"

namespace terse {
namespace {

struct Phrase {
  const char* part;
  const char* words;
};

struct Attempt {
  const char* part;
  const char* words;
  const char* remedy = "";  // for those who chose the options of the connection
};

constexpr char kNotBelieved[] = "its certificate has expired, is of another authority, or is for another purpose";
constexpr char kLeaveTls[] = "; leave --tls away, or give the address where it does";

// Parts of what gRPC, OpenSSL and the system say of an attempt to connect. The first that is found counts.
constexpr Attempt kAttempts[] = {
    {"Connection refused", "nobody listens there"},
    {"No such file or directory", "there is no such socket"},
    {"Permission denied", "this user may not open the socket"},
    {"No route to host", "no network leads there"},
    {"Network is unreachable", "no network leads there"},
    {"timed out", "it did not answer in time"},
    {"imeout", "it did not answer in time"},
    {"is not in peer certificate", "its certificate is for another host", "; --server-name HOST names that one"},
    {"certificate verify failed", kNotBelieved},
    {"CERTIFICATE_VERIFY_FAILED", kNotBelieved},
    {"wrong version number", "it speaks no TLS there", kLeaveTls},
    {"WRONG_VERSION_NUMBER", "it speaks no TLS there", kLeaveTls},
};

// Beginnings of what gRPC says of calls.
constexpr Phrase kCalls[] = {
    {"DNS resolution failed", "the host's name is not known"},
    {"Deadline Exceeded", "it did not answer in time"},
    {"keepalive watchdog timeout", "it fell silent"},
    {"ping timeout", "it fell silent"},
    {"failed to connect to all addresses", "nobody can be reached there"},
    {"Socket closed", "the other side closed it"},
    {"Connection reset", "the other side closed it"},
    {"Broken pipe", "the other side closed it"},
    {"recvmsg:", "the other side closed it"},
    {"sendmsg:", "the other side closed it"},
    {"Endpoint read failed", "the other side closed it"},
    {"Stream removed", "the other side closed it"},
    {"GOAWAY received", "the other side closed it"},
    {"Received RST_STREAM", "the other side ended the call"},
    {"Cancelled on the server side", "the other side ended the call"},
};

bool WasCutOff(absl::string_view reason) {
  for (const char* text :
       {"Socket closed", "Connection reset", "Broken pipe", "http1.x server", "Endpoint read failed"}) {
    if (absl::StrContains(reason, text)) return true;
  }
  return false;
}

// `attempt` is "CODE: ADDRESS: REASON", of the last address that was tried.
std::string AttemptText(absl::string_view attempt, Spoke spoke) {
  const size_t code_end = attempt.find(": ");
  absl::string_view reason = code_end == absl::string_view::npos ? attempt : attempt.substr(code_end + 2);
  const bool is_unix = IsUnixSocket(reason);
  const size_t address_end = reason.find(": ");
  if (address_end != absl::string_view::npos) reason = reason.substr(address_end + 2);
  if (WasCutOff(reason)) {
    if (spoke == Spoke::kTls) return "it closes the connection at once, as one that does not take this certificate";
    return is_unix || spoke == Spoke::kTlsAsGuest
               ? "it closes the connection at once"
               : "it closes the connection at once; if it speaks TLS, give --tls DIR";
  }
  for (const Attempt& known : kAttempts) {
    if (!absl::StrContains(reason, known.part)) continue;
    return absl::StrCat(known.words, spoke == Spoke::kTlsAsGuest ? "" : known.remedy);
  }
  // OpenSSL's reason stands behind the number of its error.
  if (absl::ConsumePrefix(&reason, "Ssl handshake failed")) {
    return absl::StrCat("the TLS handshake failed (", reason.substr(reason.rfind(':') + 1), ")");
  }
  return std::string(reason);
}

}  // namespace

std::string ConnectionFailureText(absl::string_view grpc_text, Spoke spoke) {
  absl::string_view attempt = grpc_text;
  if (absl::ConsumePrefix(&attempt, "failed to connect to all addresses; last error: ")) {
    return AttemptText(attempt, spoke);
  }
  for (const Phrase& phrase : kCalls) {
    if (absl::StartsWith(grpc_text, phrase.part)) return phrase.words;
  }
  return std::string(grpc_text);
}

void QuietGrpc() { setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0); }

}  // namespace terse
