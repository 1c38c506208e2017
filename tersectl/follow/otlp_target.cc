#include "tersectl/follow/otlp_target.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/id128.h"
#include "core/status.h"
#include "core/version.h"
#include "tersectl/follow/position_file.h"
#include "tersectl/http/http_client.h"
#include "tersectl/print.h"
#include "tersectl/restarts.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kTracesPath[] = "/v1/traces";
// Collectors bound a request's body, by default at some 20 MB. So many spans are about 1 MB.
constexpr size_t kMostSpans = 2000;
// The values of SPAN_KIND_INTERNAL, STATUS_CODE_OK and STATUS_CODE_ERROR in opentelemetry-proto.
constexpr int kInternal = 1, kStatusOk = 1, kStatusError = 2;

Json Attribute(const char* key, const std::string& value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}
Json Attribute(const char* key, double value) { return {{"key", key}, {"value", {{"doubleValue", value}}}}; }
// 64-bit integers are strings in the JSON of protocol buffers.
Json Attribute(const char* key, uint64_t value) {
  return {{"key", key}, {"value", {{"intValue", absl::StrCat(value)}}}};
}

// The spans of one round.
class RoundSpans {
 public:
  RoundSpans(const std::string& lineage, const v1::Round& round)
      : seed_(absl::StrCat(lineage, "/", round.id())), trace_(HashBytes(seed_).ToHex()) {}

  // Returns the span's id. Times in microseconds; a span does not end before it began.
  std::string Add(const std::string& parent, const std::string& path, const std::string& name, int64_t begin_us,
                  int64_t end_us, Json attributes, bool is_error = false, const std::string& message = "") {
    const std::string id = HashBytes(absl::StrCat(seed_, "/", path)).ToHex().substr(0, 16);
    Json span = {{"traceId", trace_}, {"spanId", id}};
    if (!parent.empty()) span["parentSpanId"] = parent;
    span["name"] = name;
    span["kind"] = kInternal;
    span["startTimeUnixNano"] = absl::StrCat(begin_us, "000");
    span["endTimeUnixNano"] = absl::StrCat(std::max(begin_us, end_us), "000");
    span["attributes"] = std::move(attributes);
    span["status"] = {{"code", is_error ? kStatusError : kStatusOk}};
    if (!message.empty()) span["status"]["message"] = message;
    spans_.push_back(std::move(span));
    return id;
  }
  Json Take() { return std::move(spans_); }

 private:
  const std::string seed_, trace_;
  Json spans_ = Json::array();
};

Json RoundAttributes(const v1::Round& round, const v1::TracesReply& traces) {
  Json list = Json::array({Attribute("terse.round", round.id()), Attribute("terse.state", round.state()),
                           Attribute("terse.updates", uint64_t{round.updates()}),
                           Attribute("terse.wire_bytes_up", round.wire_bytes_up()),
                           Attribute("terse.wire_bytes_down", round.wire_bytes_down())});
  if (round.has_train_loss()) list.push_back(Attribute("terse.train_loss", round.train_loss()));
  if (round.has_accuracy()) list.push_back(Attribute("terse.accuracy", round.accuracy()));
  if (round.has_test_loss()) list.push_back(Attribute("terse.test_loss", round.test_loss()));
  if (traces.rounds_kept() == 0) return list;
  list.push_back(Attribute("terse.clients", uint64_t{traces.clients_total()}));
  list.push_back(Attribute("terse.clients_left_out",
                           uint64_t{traces.clients_total()} - static_cast<uint64_t>(traces.clients_size())));
  return list;
}

void AddClient(const v1::ClientTrace& client, const std::string& parent, int64_t round_end_us, RoundSpans* spans) {
  const int64_t begin = client.assigned_us();
  const int64_t end = client.has_verdict_us() ? client.verdict_us() : std::max(round_end_us, client.received_us());
  const std::string path = absl::StrCat("client/", client.client_name());
  Json attributes = Json::array({Attribute("terse.client", client.client_name()),
                                 Attribute("terse.payload_bytes", client.payload_bytes()),
                                 Attribute("terse.outcome", client.outcome())});
  const bool is_error = !client.has_received_us() || client.outcome() == "reset";
  const std::string message = client.has_received_us() ? "" : "no update came";
  const std::string id = spans->Add(parent, path, absl::StrCat("client ", client.client_name()), begin, end,
                                    std::move(attributes), is_error, message);
  if (!client.has_received_us() || !client.has_upload_began_us()) return;
  const int64_t uploaded = client.upload_began_us();
  const int64_t trained = std::max(begin, uploaded - client.train_us());
  const auto add = [&](const char* phase, int64_t from, int64_t to) {
    spans->Add(id, absl::StrCat(path, "/", phase), phase, from, to, Json::array());
  };
  add("assignment", begin, trained);
  add("training", trained, uploaded);
  add("upload", uploaded, client.received_us());
  add("verdict", client.received_us(), end);
}

Json SpansOf(const std::string& lineage, const v1::Round& round, const v1::TracesReply& traces) {
  RoundSpans spans(lineage, round);
  const int64_t end = round.committed_us();
  const bool is_aborted = round.state() != "committed";
  const std::string root = spans.Add("", "round", absl::StrCat("round ", round.id()), round.opened_us(), end,
                                     RoundAttributes(round, traces), is_aborted, is_aborted ? "aborted" : "");
  const int64_t closed = round.has_closed_us() ? round.closed_us() : end;
  spans.Add(root, "collecting", "collecting", round.opened_us(), closed, Json::array());
  if (round.has_closed_us()) spans.Add(root, "committing", "committing", closed, end, Json::array());
  for (const v1::ClientTrace& client : traces.clients()) AddClient(client, root, end, &spans);
  return spans.Take();
}

class OtlpTracker : public RunTracker {
 public:
  // `file`: null where no positions are kept. Rounds up to `told` were sent by an earlier process, or are not wanted.
  OtlpTracker(const OtlpOptions* options, HttpClient* http, const v1::Status& run, std::unique_ptr<PositionFile> file,
              uint64_t told)
      : options_(options),
        http_(http),
        run_(run.run()),
        lineage_(absl::BytesToHexString(run.lineage())),
        file_(std::move(file)),
        told_(told) {}

  absl::optional<uint64_t> RoundsAfter() const override { return told_; }
  uint32_t TracedClients() const override { return options_->clients; }
  void TakeRound(const v1::Round& round, const v1::TracesReply& traces) override {
    rounds_.push_back({round.id(), SpansOf(lineage_, round, traces)});
  }
  absl::Status Deliver() override {
    while (!rounds_.empty()) {
      TERSE_RETURN_IF_ERROR(Send(&rounds_.front()));
      if (file_ != nullptr) TERSE_RETURN_IF_ERROR(file_->Write({{"round", rounds_.front().id}}));
      rounds_.pop_front();
    }
    return absl::OkStatus();
  }

 private:
  struct PendingRound {
    uint64_t id = 0;
    Json spans;       // an array
    size_t sent = 0;  // spans that the collector has taken
  };

  absl::Status Send(PendingRound* round) {
    while (round->sent < round->spans.size()) {
      const auto begin = round->spans.begin() + static_cast<std::ptrdiff_t>(round->sent);
      const size_t count = std::min(kMostSpans, round->spans.size() - round->sent);
      Json spans = Json::array_t(begin, begin + static_cast<std::ptrdiff_t>(count));
      const std::string body = JsonText(Request(std::move(spans)), -1);
      TERSE_ASSIGN_OR_RETURN(const HttpResult reply, http_->Post(options_->url, body, options_->headers));
      if (reply.status != 200) return HttpFailure(options_->url, reply);
      round->sent += count;
    }
    return absl::OkStatus();
  }

  Json Request(Json spans) const {
    const Json resource = {
        {"attributes", Json::array({Attribute("service.name", std::string("terse-coordinator")),
                                    Attribute("terse.run", run_), Attribute("terse.lineage", lineage_)})}};
    const Json scope = {{"scope", {{"name", "terse"}, {"version", kVersion}}}, {"spans", std::move(spans)}};
    return {{"resourceSpans", Json::array({{{"resource", resource}, {"scopeSpans", Json::array({scope})}}})}};
  }

  const OtlpOptions* const options_;
  HttpClient* const http_;
  const std::string run_, lineage_;
  const std::unique_ptr<PositionFile> file_;
  const uint64_t told_;
  std::deque<PendingRound> rounds_;  // what was taken and not sent yet
};

class OtlpTarget : public FollowTarget {
 public:
  explicit OtlpTarget(OtlpOptions options) : options_(std::move(options)), http_(HttpOptions(options_)) {
    if (!absl::EndsWith(options_.url, kTracesPath)) {
      options_.url = absl::StrCat(absl::StripSuffix(options_.url, "/"), kTracesPath);
    }
  }

  std::string name() const override { return absl::StrCat("OpenTelemetry collector ", ShownUrl(options_.url)); }

  absl::StatusOr<std::unique_ptr<RunTracker>> Begin(const v1::Status& run, bool is_new) override {
    // Without a position it begins after the last round that was settled by now. The newest round of a run that goes
    // on may be open.
    const uint64_t open = HasEnded(run.state()) ? 0 : std::min<uint64_t>(run.round(), 1);
    uint64_t told = is_new ? 0 : run.round() - open;
    std::unique_ptr<PositionFile> file;
    if (!options_.state.empty()) {
      file =
          std::make_unique<PositionFile>(options_.state, "otlp", options_.url, absl::BytesToHexString(run.lineage()));
      TERSE_ASSIGN_OR_RETURN(const Json position, file->Read());
      const auto round = position.find("round");
      if (round != position.end()) {
        if (!round->is_number_unsigned()) return file->Damaged("no number of a round");
        told = round->get<uint64_t>();
      } else {
        // So the rounds that are settled while the next process starts are not left out.
        TERSE_RETURN_IF_ERROR(file->Write({{"round", told}}));
      }
    }
    return std::make_unique<OtlpTracker>(&options_, &http_, run, std::move(file), told);
  }

 private:
  static HttpClient::Options HttpOptions(const OtlpOptions& options) {
    HttpClient::Options http;
    http.give_up = options.give_up;
    return http;
  }

  OtlpOptions options_;
  HttpClient http_;
};

}  // namespace

std::unique_ptr<FollowTarget> MakeOtlpTarget(OtlpOptions options) {
  return std::make_unique<OtlpTarget>(std::move(options));
}

absl::StatusOr<std::vector<std::string>> OtlpHeaders() {
  std::vector<std::string> headers;
  const std::string variable = EnvironmentValue("OTEL_EXPORTER_OTLP_HEADERS");
  for (absl::string_view pair : absl::StrSplit(variable, ',', absl::SkipWhitespace())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(pair, absl::MaxSplits('=', 1));
    const std::string name(absl::StripAsciiWhitespace(parts.first));
    const std::string value = UrlUnescape(std::string(absl::StripAsciiWhitespace(parts.second)));
    const std::string header = absl::StrCat(name, ": ", value);
    if (name.empty() || value.empty() || header.find_first_of("\r\n") != std::string::npos) {
      return absl::InvalidArgumentError("OTEL_EXPORTER_OTLP_HEADERS is not of the form name=value,name=value");
    }
    headers.push_back(header);
  }
  return headers;
}

}  // namespace terse
