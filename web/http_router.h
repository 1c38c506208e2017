// Finds the reply to a request from its head, without a connection.
#ifndef TERSE_WEB_HTTP_ROUTER_H_
#define TERSE_WEB_HTTP_ROUTER_H_

#include <atomic>
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
  int code = 200;  // HTTP's
  HttpReply reply;
  std::string allow = "GET, HEAD";  // with the code 405
};

// Returns the answer of an error: {"error": message}.
HttpAnswer ErrorAnswer(int code, absl::string_view message);

// Commands that are carried out at a time. One may wait as long as a run's engine does not answer, so further ones are
// refused (503) rather than kept to be carried out when nobody expects them any more.
inline constexpr int kHttpCommands = 2;

// Answers requests with the routes that HttpServer::Start was given. Thread-safe; a call lasts as long as the route's
// handler takes.
class HttpRouter {
 public:
  // Whether the caller may call a method.
  using Permit = std::function<absl::Status(absl::string_view method)>;

  explicit HttpRouter(std::vector<HttpRoute> routes) : routes_(std::move(routes)) {}

  // A request that has arrived as a whole.
  struct Question {
    HttpVerb verb = HttpVerb::kGet;
    std::string target;  // the request's: path and query, as they were sent
    HttpCaller caller;
    std::string body;  // of a POST
  };
  // Returns the reply of the route for the target and the verb, once `permit` has allowed the route's method; else the
  // answer of an error. An exception of the handler becomes a 500.
  HttpAnswer Answer(const Question& question, const Permit& permit) const;

  // Whether any route is a POST.
  bool takes_posts() const;

 private:
  absl::StatusOr<HttpReply> Ask(const HttpRoute& route, const std::vector<absl::string_view>& captures,
                                absl::string_view query, const Question& question, const Permit& permit) const;

  // Calls the handler of a command unless kHttpCommands others are under way.
  absl::StatusOr<HttpReply> CarryOut(const HttpRoute& route, const HttpRequest& request) const;

  const std::vector<HttpRoute> routes_;
  mutable std::atomic<int> commands_{0};  // that CarryOut has begun and not ended
};

// Whether `host`, a request's Host header, names this machine's loopback address.
bool IsLoopbackHost(const std::string& host);

}  // namespace terse

#endif  // TERSE_WEB_HTTP_ROUTER_H_
