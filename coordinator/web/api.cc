#include "coordinator/web/api.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "proto/grpc_status.h"
#include "proto/proto_text.h"
#include "web/reply_cache.h"

namespace terse {
namespace {

constexpr char kRunPath[] = "/api/v1/runs/*";

absl::StatusOr<int64_t> Number(const HttpRequest& request, const std::string& key, int64_t otherwise) {
  const auto found = request.query.find(key);
  if (found == request.query.end()) return otherwise;
  int64_t value = 0;
  if (absl::SimpleAtoi(found->second, &value) && value >= 1) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("?", key, "= must be a whole number from 1 on, not '", found->second, "'"));
}

// The parts of a request that its answer depends on, which is what the cache knows it by.
absl::StatusOr<v1::RunsRequest> RunsOf(const HttpRequest&) { return v1::RunsRequest(); }

// Names are printable (run_config.proto), and protobuf complains on standard error about what is no UTF-8.
template <typename Request>
absl::StatusOr<Request> RunOf(const HttpRequest& request) {
  const std::string& name = request.captures[0];
  if (!std::all_of(name.begin(), name.end(), absl::ascii_isprint)) return absl::NotFoundError("no run has such a name");
  Request out;
  out.set_run(name);
  return out;
}

struct Range {
  int64_t first = 1, last = 1;
};

absl::StatusOr<Range> RangeOf(const HttpRequest& request) {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  Range range;
  TERSE_ASSIGN_OR_RETURN(range.first, Number(request, "first", 1));
  TERSE_ASSIGN_OR_RETURN(range.last, Number(request, "last", kFar));
  const int64_t most = range.first > kFar - kMostRoundsOfReply ? kFar : range.first + kMostRoundsOfReply - 1;
  range.last = std::min(range.last, most);
  return range;
}

absl::StatusOr<v1::RoundsRequest> RoundsOf(const HttpRequest& request) {
  TERSE_ASSIGN_OR_RETURN(v1::RoundsRequest out, RunOf<v1::RoundsRequest>(request));
  TERSE_ASSIGN_OR_RETURN(const Range range, RangeOf(request));
  out.set_first(range.first);
  out.set_last(range.last);
  return out;
}

absl::StatusOr<v1::EventsRequest> EventsOf(const HttpRequest& request) {
  constexpr int64_t kUsual = 100, kMost = 1000;
  TERSE_ASSIGN_OR_RETURN(v1::EventsRequest out, RunOf<v1::EventsRequest>(request));
  TERSE_ASSIGN_OR_RETURN(const int64_t newest, Number(request, "newest", kUsual));
  out.set_newest(static_cast<uint32_t>(std::min(newest, kMost)));
  return out;
}

// A method of the admin service as a route: `parse` makes its request.
template <typename Request, typename Reply>
HttpRoute MakeRoute(const std::string& pattern, const std::string& name, v1::Admin::Service* admin,
                    std::shared_ptr<ReplyCache> cache, absl::StatusOr<Request> (*parse)(const HttpRequest&),
                    grpc::Status (v1::Admin::Service::*method)(grpc::ServerContext*, const Request*, Reply*)) {
  const auto handler = [=](const HttpRequest& http) -> absl::StatusOr<HttpReply> {
    TERSE_ASSIGN_OR_RETURN(const Request request, parse(http));
    const auto make = [&]() -> absl::StatusOr<std::string> {
      Reply reply;
      TERSE_RETURN_IF_ERROR(FromGrpc((admin->*method)(nullptr, &request, &reply)));
      return ToJson(reply).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    };
    TERSE_ASSIGN_OR_RETURN(const ReplyCache::Body body,
                           cache->Get(absl::StrCat(name, " ", request.SerializeAsString()), make));
    return HttpReply{"application/json", body};
  };
  return {pattern, absl::StrCat("/terse.v1.Admin/", name), handler};
}

}  // namespace

std::vector<HttpRoute> ApiRoutes(v1::Admin::Service* admin, Clock* clock) {
  using Admin = v1::Admin::Service;
  const auto cache = std::make_shared<ReplyCache>(clock);
  const std::string run = kRunPath;
  return {MakeRoute("/api/v1/runs", "ListRuns", admin, cache, RunsOf, &Admin::ListRuns),
          MakeRoute(run, "GetStatus", admin, cache, RunOf<v1::StatusRequest>, &Admin::GetStatus),
          MakeRoute(run + "/rounds", "ListRounds", admin, cache, RoundsOf, &Admin::ListRounds),
          MakeRoute(run + "/clients", "ListClients", admin, cache, RunOf<v1::ClientsRequest>, &Admin::ListClients),
          MakeRoute(run + "/events", "ListEvents", admin, cache, EventsOf, &Admin::ListEvents)};
}

}  // namespace terse
