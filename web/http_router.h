// Finds the reply to a request from its head, without a connection.
#ifndef TERSE_WEB_HTTP_ROUTER_H_
#define TERSE_WEB_HTTP_ROUTER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "web/http_server.h"

namespace terse {

// A reply with its code; errors have a JSON body.
struct HttpAnswer {
  int code = 200;
  HttpReply reply;
};

// Returns the answer of an error: {"error": message}.
HttpAnswer ErrorAnswer(int code, absl::string_view message);

// Answers requests with the routes that HttpServer::Start was given. Thread-safe.
class HttpRouter {
 public:
  // Whether the holder of the connection's certificate may call a method; OK on a connection without.
  using Permit = std::function<absl::Status(absl::string_view method)>;

  explicit HttpRouter(std::vector<HttpRoute> routes) : routes_(std::move(routes)) {}

  // `target` is the request's: path and query, as they were sent.
  HttpAnswer Answer(absl::string_view target, const Permit& permit) const;

 private:
  absl::StatusOr<HttpReply> Ask(absl::string_view target, const Permit& permit) const;

  const std::vector<HttpRoute> routes_;
};

// Whether `host`, a request's Host header, names this machine's loopback address.
bool IsLoopbackHost(const std::string& host);

}  // namespace terse

#endif  // TERSE_WEB_HTTP_ROUTER_H_
