#include "web/http_router.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/json_text.h"
#include "core/percent_code.h"
#include "core/status.h"
#include "security/transport.h"

namespace terse {
namespace {

// FAILED_PRECONDITION is a run that cannot be read now, or a command that makes no sense in its state.
int HttpCode(HttpVerb verb, const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kFailedPrecondition:
      return verb == HttpVerb::kPost ? 409 : 503;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

absl::StatusOr<std::string> Decode(absl::string_view text) {
  absl::optional<std::string> decoded = PercentDecode(text);
  if (decoded.has_value()) return *std::move(decoded);
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' has a % that begins no code"));
}

absl::StatusOr<std::map<std::string, std::string>> ParseQuery(absl::string_view text) {
  std::map<std::string, std::string> query;
  for (const absl::string_view item : absl::StrSplit(text, '&', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(absl::StrReplaceAll(item, {{"+", " "}}), absl::MaxSplits('=', 1));
    TERSE_ASSIGN_OR_RETURN(const std::string key, Decode(parts.first));
    TERSE_ASSIGN_OR_RETURN(query[key], Decode(parts.second));
  }
  return query;
}

bool Matches(absl::string_view pattern, absl::string_view segment) {
  return pattern == "*" ? !segment.empty() : pattern == segment;
}

// The segments that the pattern's asterisks stand for; nullopt when it is another path.
absl::optional<std::vector<absl::string_view>> Match(absl::string_view pattern, absl::string_view path) {
  const std::vector<absl::string_view> wanted = absl::StrSplit(pattern, '/');
  const std::vector<absl::string_view> given = absl::StrSplit(path, '/');
  if (wanted.size() != given.size()) return absl::nullopt;
  std::vector<absl::string_view> captures;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!Matches(wanted[i], given[i])) return absl::nullopt;
    if (wanted[i] == "*") captures.push_back(given[i]);
  }
  return captures;
}

}  // namespace

HttpAnswer ErrorAnswer(int code, absl::string_view message) {
  return {code, {"application/json", PackText(JsonText({{"error", std::string(message)}}) + "\n")}};
}

bool HttpRouter::takes_posts() const {
  return std::any_of(routes_.begin(), routes_.end(),
                     [](const HttpRoute& route) { return route.verb == HttpVerb::kPost; });
}

HttpAnswer HttpRouter::Answer(const Question& question, const Permit& permit) const {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(question.target, absl::MaxSplits('?', 1));
  bool is_path = false;
  for (const HttpRoute& route : routes_) {
    const absl::optional<std::vector<absl::string_view>> captures = Match(route.path, parts.first);
    if (!captures.has_value()) continue;
    is_path = true;
    if (route.verb != question.verb) continue;
    // The JSON library's exceptions, and those of memory, end here.
    try {
      absl::StatusOr<HttpReply> reply = Ask(route, *captures, parts.second, question, permit);
      if (reply.ok()) return {200, *std::move(reply)};
      return ErrorAnswer(HttpCode(route.verb, reply.status()), reply.status().message());
    } catch (const std::exception& error) {
      return ErrorAnswer(500, absl::StrCat("the answer could not be made: ", error.what()));
    }
  }
  if (!is_path) return ErrorAnswer(404, absl::StrCat("there is nothing at ", parts.first));
  if (question.verb == HttpVerb::kPost) return ErrorAnswer(405, "only GET: this path is for looking");
  HttpAnswer answer = ErrorAnswer(405, "only POST: this path is a command");
  answer.allow = "POST";
  return answer;
}

absl::StatusOr<HttpReply> HttpRouter::Ask(const HttpRoute& route, const std::vector<absl::string_view>& captures,
                                          absl::string_view query, const Question& question,
                                          const Permit& permit) const {
  TERSE_RETURN_IF_ERROR(permit(route.method));
  HttpRequest request;
  for (const absl::string_view capture : captures) {
    TERSE_ASSIGN_OR_RETURN(std::string decoded, Decode(capture));
    request.captures.push_back(std::move(decoded));
  }
  TERSE_ASSIGN_OR_RETURN(request.query, ParseQuery(query));
  request.caller = question.caller;
  request.body = question.body;
  return route.verb == HttpVerb::kPost ? CarryOut(route, request) : route.handler(request);
}

absl::StatusOr<HttpReply> HttpRouter::CarryOut(const HttpRoute& route, const HttpRequest& request) const {
  const absl::Cleanup leave = [this] { --commands_; };
  if (++commands_ <= kHttpCommands) return route.handler(request);
  return absl::UnavailableError(
      absl::StrCat("at most ", kHttpCommands,
                   " commands are carried out at a time, and so many are under way; ask again "
                   "when one of them has ended"));
}

bool IsLoopbackHost(const std::string& host) {
  const size_t bracket = host.find(']');
  const bool has_port = host.find(':', bracket == std::string::npos ? 0 : bracket) != std::string::npos;
  const std::string address = has_port ? host : absl::StrCat(host, ":80");
  return !IsUnixSocket(address) && IsLocalAddress(address);
}

}  // namespace terse
