#include "coordinator/web/api.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/web/query.h"
#include "core/json_text.h"
#include "core/status.h"
#include "proto/grpc_status.h"
#include "proto/proto_text.h"
#include "web/reply_cache.h"

namespace terse {
namespace {

constexpr char kRunPath[] = "/api/v1/runs/*";

// The parts of a request that its answer depends on, which is what the cache knows it by.
absl::StatusOr<v1::RunsRequest> RunsOf(const HttpRequest&) { return v1::RunsRequest(); }

// Names are printable (run_config.proto), and protobuf complains on standard error about what is no UTF-8.
template <typename Request>
absl::StatusOr<Request> RunOf(const HttpRequest& request) {
  Request out;
  TERSE_ASSIGN_OR_RETURN(*out.mutable_run(), RunNameOf(request));
  return out;
}

// A filter's text, or the name of a column.
absl::StatusOr<std::string> PrintableOf(const HttpRequest& request, const std::string& key) {
  std::string text = TextOf(request, key);
  if (IsPrintable(text)) return text;
  return absl::InvalidArgumentError(absl::StrCat("?", key, "= must be printable characters of ASCII, as names are"));
}

struct Range {
  int64_t first = 1, last = 1;
};

absl::StatusOr<Range> RangeOf(const HttpRequest& request) {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  Range range;
  TERSE_ASSIGN_OR_RETURN(range.first, NumberOf(request, "first", 1));
  TERSE_ASSIGN_OR_RETURN(range.last, NumberOf(request, "last", kFar));
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

absl::StatusOr<v1::ClientsRequest> ClientsOf(const HttpRequest& request) {
  constexpr int64_t kMost = 1000, kFarthest = 1'000'000'000;
  TERSE_ASSIGN_OR_RETURN(v1::ClientsRequest out, RunOf<v1::ClientsRequest>(request));
  TERSE_ASSIGN_OR_RETURN(const int64_t first, NumberOf(request, "first", 1, {1, kFarthest}));
  TERSE_ASSIGN_OR_RETURN(const int64_t count, NumberOf(request, "count", 0, {1, kMost}));
  out.set_skip(static_cast<uint32_t>(first - 1));
  out.set_count(static_cast<uint32_t>(count));
  TERSE_ASSIGN_OR_RETURN(*out.mutable_sort(), PrintableOf(request, "sort"));
  TERSE_ASSIGN_OR_RETURN(*out.mutable_state(), PrintableOf(request, "state"));
  TERSE_ASSIGN_OR_RETURN(*out.mutable_name(), PrintableOf(request, "name"));
  const std::string order = TextOf(request, "order");
  if (!order.empty() && order != "ascending" && order != "descending") {
    return absl::InvalidArgumentError(absl::StrCat("?order= is ascending or descending, not '", order, "'"));
  }
  out.set_descending(order == "descending");
  return out;
}

absl::StatusOr<v1::EventsRequest> EventsOf(const HttpRequest& request) {
  constexpr int64_t kUsual = 100, kMost = 1000;
  TERSE_ASSIGN_OR_RETURN(v1::EventsRequest out, RunOf<v1::EventsRequest>(request));
  TERSE_ASSIGN_OR_RETURN(const int64_t newest, NumberOf(request, "newest", kUsual));
  out.set_newest(static_cast<uint32_t>(std::min(newest, kMost)));
  TERSE_ASSIGN_OR_RETURN(const int64_t before, NumberOf(request, "before", 0));
  out.set_before(static_cast<uint64_t>(before));
  TERSE_ASSIGN_OR_RETURN(*out.mutable_kind(), PrintableOf(request, "kind"));
  TERSE_ASSIGN_OR_RETURN(*out.mutable_client(), PrintableOf(request, "client"));
  return out;
}

absl::StatusOr<v1::AuditRequest> AuditOf(const HttpRequest& request) {
  constexpr int64_t kUsual = 100, kMost = 1000;
  v1::AuditRequest out;
  TERSE_ASSIGN_OR_RETURN(const int64_t newest, NumberOf(request, "newest", kUsual, {1, kMost}));
  out.set_newest(static_cast<uint32_t>(newest));
  return out;
}

// A reply as text, and the MIME type of that.
template <typename Reply>
struct Format {
  const char* type;
  std::string (*text)(const Reply&);
};

template <typename Reply>
std::string ReplyText(const Reply& reply) {
  return JsonText(ToJson(reply));
}

std::string RoundsCsv(const v1::RoundsReply& reply) {
  std::string csv = CsvHeader(*v1::Round::descriptor());
  for (const v1::Round& round : reply.rounds()) csv += CsvRow(round);
  return csv;
}

// A method of the admin service as a route: `parse` makes its request.
template <typename Request, typename Reply>
HttpRoute MakeRoute(const std::string& pattern, const std::string& name, v1::Admin::Service* admin,
                    std::shared_ptr<ReplyCache> cache, absl::StatusOr<Request> (*parse)(const HttpRequest&),
                    grpc::Status (v1::Admin::Service::*method)(grpc::ServerContext*, const Request*, Reply*),
                    Format<Reply> format = {"application/json", ReplyText<Reply>}) {
  const auto handler = [=](const HttpRequest& http) -> absl::StatusOr<HttpReply> {
    TERSE_ASSIGN_OR_RETURN(const Request request, parse(http));
    const auto make = [&]() -> absl::StatusOr<std::string> {
      Reply reply;
      TERSE_RETURN_IF_ERROR(FromGrpc((admin->*method)(nullptr, &request, &reply)));
      return format.text(reply);
    };
    TERSE_ASSIGN_OR_RETURN(const ReplyCache::Body body,
                           cache->Get(absl::StrCat(pattern, " ", request.SerializeAsString()), make));
    return HttpReply{format.type, body};
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
          MakeRoute(run + "/rounds.csv", "ListRounds", admin, cache, RoundsOf, &Admin::ListRounds,
                    Format<v1::RoundsReply>{"text/csv", RoundsCsv}),
          MakeRoute(run + "/clients", "ListClients", admin, cache, ClientsOf, &Admin::ListClients),
          MakeRoute(run + "/events", "ListEvents", admin, cache, EventsOf, &Admin::ListEvents),
          MakeRoute("/api/v1/audit", "ListAudit", admin, cache, AuditOf, &Admin::ListAudit)};
}

}  // namespace terse
