#include "coordinator/web/command_api.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/web/api.h"
#include "coordinator/web/query.h"
#include "core/json_text.h"
#include "core/log/recent_lines.h"
#include "core/status.h"
#include "proto/export_formats.h"
#include "proto/grpc_status.h"
#include "proto/proto_text.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

HttpReply JsonReply(const Json& json) { return {"application/json", PackText(JsonText(json))}; }

// The body of a command: an object with texts and numbers, and no keys but these.
class Fields {
 public:
  static absl::StatusOr<Fields> Parse(const std::string& body, std::vector<std::string> keys) {
    Fields fields;
    if (!body.empty()) fields.json_ = Json::parse(body, nullptr, /*allow_exceptions=*/false);
    if (!fields.json_.is_object()) return absl::InvalidArgumentError("the body is no JSON object");
    for (const auto& item : fields.json_.items()) {
      if (std::find(keys.begin(), keys.end(), item.key()) != keys.end()) continue;
      return absl::InvalidArgumentError(absl::StrCat("this command has no field '", item.key(), "'; it has ",
                                                     keys.empty() ? "none" : absl::StrJoin(keys, ", ")));
    }
    return fields;
  }
  // Empty where it is not given.
  absl::StatusOr<std::string> Text(const std::string& key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return std::string();
    if (found->is_string()) return found->get<std::string>();
    return absl::InvalidArgumentError(absl::StrCat("'", key, "' must be a text"));
  }
  absl::StatusOr<double> Number(const std::string& key) const {
    const auto found = json_.find(key);
    if (found != json_.end() && found->is_number()) return found->get<double>();
    return absl::InvalidArgumentError(absl::StrCat("'", key, "' must be given, as a number"));
  }

 private:
  Json json_ = Json::object();
};

// A command with a small reply. `parse` makes its request but for the run's name.
template <typename Request, typename Reply>
HttpRoute Command(const std::string& verb, const std::string& method, OperatorDesk* desk, VisitorOf visitor,
                  absl::StatusOr<Request> (*parse)(const std::string& body),
                  grpc::Status (OperatorDesk::*act)(const AuditedCaller&, const Request&, Reply*)) {
  const auto handler = [=](const HttpRequest& http) -> absl::StatusOr<HttpReply> {
    TERSE_ASSIGN_OR_RETURN(Request request, parse(http.body));
    TERSE_ASSIGN_OR_RETURN(*request.mutable_run(), RunNameOf(http));
    Reply reply;
    TERSE_RETURN_IF_ERROR(FromGrpc((desk->*act)(visitor(http.caller).caller, request, &reply)));
    return JsonReply(ToJson(reply));
  };
  return {absl::StrCat("/api/v1/runs/*/", verb), absl::StrCat("/terse.v1.Admin/", method), handler, HttpVerb::kPost};
}

absl::StatusOr<v1::PauseRequest> ParsePause(const std::string& body) {
  TERSE_ASSIGN_OR_RETURN(const Fields fields, Fields::Parse(body, {"reason"}));
  v1::PauseRequest request;
  TERSE_ASSIGN_OR_RETURN(*request.mutable_reason(), fields.Text("reason"));
  return request;
}

absl::StatusOr<v1::ResumeRequest> ParseResume(const std::string& body) {
  TERSE_RETURN_IF_ERROR(Fields::Parse(body, {}).status());
  return v1::ResumeRequest();
}

absl::StatusOr<v1::AbortRoundRequest> ParseAbortRound(const std::string& body) {
  TERSE_ASSIGN_OR_RETURN(const Fields fields, Fields::Parse(body, {"reason"}));
  v1::AbortRoundRequest request;
  TERSE_ASSIGN_OR_RETURN(*request.mutable_reason(), fields.Text("reason"));
  return request;
}

absl::StatusOr<v1::SetAsideRequest> ParseSetAside(const std::string& body) {
  TERSE_ASSIGN_OR_RETURN(const Fields fields, Fields::Parse(body, {"client", "seconds", "reason"}));
  v1::SetAsideRequest request;
  TERSE_ASSIGN_OR_RETURN(*request.mutable_client(), fields.Text("client"));
  TERSE_ASSIGN_OR_RETURN(*request.mutable_reason(), fields.Text("reason"));
  TERSE_ASSIGN_OR_RETURN(const double seconds, fields.Number("seconds"));
  request.set_seconds(seconds);
  return request;
}

absl::StatusOr<ExportFormatRow> ExportOf(const std::string& name) {
  for (const ExportFormatRow& row : kExportFormats) {
    if (name == row.name) return row;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is no format of a model's file; the formats are ", ExportFormatNames()));
}

// Keeps those characters of a name that the name of a file may have on every system.
std::string FileNameOf(const std::string& run, const char* ending) {
  std::string name = run;
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  }
  return absl::StrCat(name, ".", ending);
}

absl::StatusOr<HttpReply> Export(OperatorDesk* desk, const AuditedCaller& caller, const HttpRequest& http) {
  TERSE_ASSIGN_OR_RETURN(const Fields fields, Fields::Parse(http.body, {"format"}));
  TERSE_ASSIGN_OR_RETURN(const std::string name, fields.Text("format"));
  TERSE_ASSIGN_OR_RETURN(const ExportFormatRow row, ExportOf(name));
  v1::ExportRequest request;
  request.set_format(row.format);
  TERSE_ASSIGN_OR_RETURN(*request.mutable_run(), RunNameOf(http));
  // Weights do not pack, so that is not tried.
  auto file = std::make_shared<PackedText>();
  TERSE_RETURN_IF_ERROR(FromGrpc(desk->ExportFor(caller, request, [&file](const v1::ExportChunk& chunk) {
    if (file->plain.empty()) file->plain.reserve(chunk.total());
    file->plain += chunk.data();
    return true;
  })));
  if (file->plain.empty()) return absl::NotFoundError("the run reads no text, so it has no vocabulary");
  return HttpReply{"application/octet-stream", std::move(file), FileNameOf(request.run(), row.ending)};
}

absl::StatusOr<HttpReply> NewestLines(const HttpRequest& http) {
  TERSE_ASSIGN_OR_RETURN(const int64_t newest, NumberOf(http, "newest", 200, {1, kMostLogLines}));
  const std::string run = TextOf(http, "run");
  std::vector<LogLine> lines = RecentLines();
  const auto is_other = [&run](const LogLine& line) { return !run.empty() && !line.run.empty() && line.run != run; };
  lines.erase(std::remove_if(lines.begin(), lines.end(), is_other), lines.end());
  const size_t skipped = lines.size() - std::min(lines.size(), static_cast<size_t>(newest));
  Json list = Json::array();
  for (size_t i = skipped; i < lines.size(); ++i) {
    const LogLine& line = lines[i];
    list.push_back({{"id", line.id},
                    {"time_us", line.time_us},
                    {"level", std::string(LogLevelName(line.level))},
                    {"component", line.component},
                    {"run", line.run},
                    {"round", line.round},
                    {"client", line.client},
                    {"message", line.message}});
  }
  return JsonReply({{"lines", std::move(list)}});
}

}  // namespace

std::vector<HttpRoute> CommandRoutes(OperatorDesk* desk, VisitorOf visitor) {
  const auto me = [visitor](const HttpRequest& http) -> absl::StatusOr<HttpReply> {
    const Visitor known = visitor(http.caller);
    return JsonReply({{"who", known.caller.who}, {"operator", known.is_operator}, {"hint", known.hint}});
  };
  const auto export_model = [desk, visitor](const HttpRequest& http) {
    return Export(desk, visitor(http.caller).caller, http);
  };
  return {{"/api/v1/me", kListRunsMethod, me},
          // The log names callers, as the audit log does.
          {"/api/v1/log", "/terse.v1.Admin/ListAudit", NewestLines},
          Command("pause", "Pause", desk, visitor, ParsePause, &OperatorDesk::PauseFor),
          Command("resume", "Resume", desk, visitor, ParseResume, &OperatorDesk::ResumeFor),
          Command("abort-round", "AbortRound", desk, visitor, ParseAbortRound, &OperatorDesk::AbortRoundFor),
          Command("set-aside", "SetAside", desk, visitor, ParseSetAside, &OperatorDesk::SetAsideFor),
          {"/api/v1/runs/*/export", "/terse.v1.Admin/Export", export_model, HttpVerb::kPost}};
}

}  // namespace terse
