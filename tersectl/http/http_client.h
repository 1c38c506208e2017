// HTTP to servers of the user's: those that follow runs, and buckets. On libcurl.
#ifndef TERSE_TERSECTL_HTTP_HTTP_CLIENT_H_
#define TERSE_TERSECTL_HTTP_HTTP_CLIENT_H_

#include <functional>
#include <map>
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

// A request.
struct HttpCall {
  std::string method = "GET";  // those other than GET and HEAD have a body, which may be empty
  std::string url;
  std::string content_type = "application/json";  // of the body
  absl::string_view body;                         // must outlive the call of Send
  std::vector<std::string> headers;               // "Name: value"
};

// An answer that came, whatever its status: only the caller knows which ones are errors (HttpFailure).
struct HttpResult {
  long status = 0;  // HTTP's
  std::string body;
  std::map<std::string, std::string> headers;  // the names in lower case
};

// One place's connection, which is kept between requests. Proxies are those of the environment (http_proxy,
// https_proxy, no_proxy), certificates are checked against the system's authorities. Redirections are not followed. Not
// thread-safe.
class HttpClient {
 public:
  struct Options {
    std::string user, password;  // basic authentication, unless the user is empty
    std::string token;           // the bearer's, unless it is empty
    // Signs with AWS signature version 4, `user` and `password` being the keys: "aws:amz:REGION:SERVICE" (libcurl's
    // CURLOPT_AWS_SIGV4), unless it is empty.
    std::string signature;
    std::string authorities;                     // a file with the certificates of the authorities; empty: the system's
    bool insecure_tls = false;                   // takes every certificate
    absl::Duration timeout = absl::Seconds(20);  // of a request, from connecting to the last byte of the answer
    // Asked before each request and about once a second during it; true ends the request. Empty: nobody does.
    std::function<bool()> give_up;
  };

  explicit HttpClient(Options options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // UNAVAILABLE, naming the host and what failed, when no answer came; RESOURCE_EXHAUSTED for one of more than 16 MB;
  // CANCELLED when Options::give_up ended it: whether the request has arrived is not known then.
  absl::StatusOr<HttpResult> Get(const std::string& url);
  // The body is JSON. `headers`: "Name: value".
  absl::StatusOr<HttpResult> Post(const std::string& url, const std::string& body,
                                  const std::vector<std::string>& headers = {});
  absl::StatusOr<HttpResult> Send(const HttpCall& call);

 private:
  void SayWhoAsks();

  const Options options_;
  void* const curl_;  // libcurl's easy handle
};

// The value of a variable of the environment, where such tools keep their secrets; empty when it is not set.
std::string EnvironmentValue(const char* name);

// Escapes what stands in a query.
std::string UrlEscape(const std::string& text);

// The inverse of UrlEscape. A % that begins no code stays as it is.
std::string UrlUnescape(const std::string& text);

// UNAVAILABLE with the answer's status and the first line of its body.
absl::Status HttpFailure(const std::string& url, const HttpResult& reply);

}  // namespace terse

#endif  // TERSE_TERSECTL_HTTP_HTTP_CLIENT_H_
