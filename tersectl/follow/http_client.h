// HTTP to the places that follow runs, on libcurl.
#ifndef TERSE_TERSECTL_FOLLOW_HTTP_CLIENT_H_
#define TERSE_TERSECTL_FOLLOW_HTTP_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace terse {

// "https://host:port/..." without what may be a secret in it: for lines to people.
std::string ShownUrl(absl::string_view url);

// INVALID_ARGUMENT unless it is http:// or https:// with a host, and has no user or password in it, which other users
// of this machine would see in the list of processes.
absl::Status CheckUrl(absl::string_view url);

struct HttpReply {
  long status = 0;
  std::string body;
};

// One place's connection, which is kept between requests. Proxies are those of the environment (http_proxy,
// https_proxy, no_proxy), certificates are checked against the system's authorities. Redirections are not followed. Not
// thread-safe.
class HttpClient {
 public:
  struct Options {
    std::string user, password;  // basic authentication, unless the user is empty
    std::string token;           // the bearer's, unless it is empty
    std::string authorities;     // a file with the certificates of the authorities; empty: the system's
    bool insecure_tls = false;   // takes every certificate
    absl::Duration timeout = absl::Seconds(20);
  };

  explicit HttpClient(Options options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // UNAVAILABLE, naming the host and what failed, when no answer came; RESOURCE_EXHAUSTED for one of more than 16 MB.
  absl::StatusOr<HttpReply> Get(const std::string& url);
  // The body is JSON. `headers`: "Name: value".
  absl::StatusOr<HttpReply> Post(const std::string& url, const std::string& body,
                                 const std::vector<std::string>& headers = {});

 private:
  absl::StatusOr<HttpReply> Send(const std::string& url, const std::string* body,
                                 const std::vector<std::string>& headers);

  const Options options_;
  void* const curl_;  // libcurl's easy handle
};

// Escapes what stands in a query.
std::string UrlEscape(const std::string& text);

std::string UrlUnescape(const std::string& text);

// UNAVAILABLE with the answer's status and the first line of its body.
absl::Status HttpFailure(const std::string& url, const HttpReply& reply);

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_HTTP_CLIENT_H_
