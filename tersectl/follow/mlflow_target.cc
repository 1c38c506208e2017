#include "tersectl/follow/mlflow_target.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/status.h"
#include "proto/proto_text.h"
#include "proto/run_config_loader.h"
#include "proto/run_config_reference.h"
#include "tersectl/follow/position_file.h"
#include "tersectl/print.h"
#include "tersectl/round_scalars.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kLineageTag[] = "terse.lineage";
constexpr char kEndTag[] = "terse.end";
constexpr char kDeleted[] = "deleted";  // RunEnd.state, with which the end tag's value begins
// MLflow's limits of a request.
constexpr size_t kMostParams = 100;
constexpr size_t kMostMetrics = 1000;
// MLflow before 2.8 takes no longer values of parameters.
constexpr size_t kMostValueBytes = 500;

// The text at the key; empty when there is none, whatever else is there.
std::string TextAt(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

absl::Status NoAnswer(absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("it answers with something that is no answer of MLflow: ", why));
}

// The tracking server's methods.
class MlflowApi {
 public:
  MlflowApi(const std::string& url, HttpClient::Options http)
      : base_(absl::StrCat(absl::StripSuffix(url, "/"), "/api/2.0/mlflow/")), http_(std::move(http)) {}

  // NOT_FOUND and ALREADY_EXISTS where MLflow's error code says so.
  absl::StatusOr<Json> Get(const std::string& method) { return Parse(http_.Get(base_ + method)); }
  absl::StatusOr<Json> Post(const std::string& method, const Json& request) {
    return Parse(http_.Post(base_ + method, JsonText(request, -1)));
  }

 private:
  absl::StatusOr<Json> Parse(const absl::StatusOr<HttpResult>& reply) const {
    if (!reply.ok()) return reply.status();
    Json body = Json::parse(reply->body, nullptr, /*allow_exceptions=*/false);
    if (reply->status == 200 && body.is_object()) return body;
    const std::string code = TextAt(body, "error_code");
    const absl::Status failure = HttpFailure(base_, *reply);
    if (code == "RESOURCE_DOES_NOT_EXIST") return absl::NotFoundError(failure.message());
    if (code == "RESOURCE_ALREADY_EXISTS") return absl::AlreadyExistsError(failure.message());
    return failure;
  }

  const std::string base_;
  HttpClient http_;
};

std::string ValueText(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : JsonText(value, -1);
  // An UTF-8 character is not cut.
  size_t bytes = std::min(text.size(), kMostValueBytes);
  while (bytes < text.size() && bytes > 0 && (static_cast<uint8_t>(text[bytes]) & 0xC0) == 0x80) --bytes;
  text.resize(bytes);
  return text;
}

Json KeyAndValue(const std::string& key, const std::string& value) { return {{"key", key}, {"value", value}}; }

// The run's configuration, key by key as in a run file: first those that are not at their default.
std::vector<Json> ParamsOf(const v1::RunConfig& config) {
  const Json values = ToJson(WithLaterDefaults(config));
  std::vector<Json> set, at_default;
  for (const RunConfigKey& key : RunConfigKeys()) {
    const Json::json_pointer place(absl::StrCat("/", absl::StrReplaceAll(key.key, {{".", "/"}})));
    if (!values.contains(place)) continue;
    const Json& value = values.at(place);
    const std::string text = ValueText(value);
    const bool is_default = JsonText(value, -1) == key.default_value || text == key.default_value ||
                            absl::StrCat("'", text, "'") == key.default_value;
    (is_default ? at_default : set).push_back(KeyAndValue(key.key, text));
  }
  set.insert(set.end(), at_default.begin(), at_default.end());
  return set;
}

// A metric's step or time, which is text in the JSON of protocol buffers and a number in that of MLflow's own server; 0
// where there is none. Throws Json::exception when it is neither.
int64_t IntegerAt(const Json& metric, const char* key) {
  const auto it = metric.find(key);
  if (it == metric.end()) return 0;
  int64_t number = 0;
  if (it->is_string() && absl::SimpleAtoi(it->get_ref<const std::string&>(), &number)) return number;
  return it->get_ref<const Json::number_integer_t&>();
}

// The tag's value, empty when the run as MLflow has it has no such tag.
std::string TagOf(const Json& found, const char* key) {
  const Json data = found.value("data", Json::object());
  for (const Json& tag : data.value("tags", Json::array())) {
    if (TextAt(tag, "key") == key) return TextAt(tag, "value");
  }
  return "";
}

// Whether nothing of the run is left to be told. One that was taken for deleted may be there all the same, as with a
// state folder that was used for another coordinator at the same address.
bool HasEndedFor(const Json& found) {
  const std::string status = TextAt(found.value("info", Json::object()), "status");
  return status == "FINISHED" || (status == "KILLED" && !absl::StartsWith(TagOf(found, kEndTag), kDeleted));
}

class MlflowTracker : public RunTracker {
 public:
  // `found`: the run as MLflow has it. `params`: all that it is to have. `note`: for a later process, until the run has
  // ended; null where none is made. Throws Json::exception when `found` is no run of MLflow's.
  MlflowTracker(MlflowApi* api, const Json& found, std::vector<Json> params, std::unique_ptr<PositionFile> note)
      : api_(api), note_(std::move(note)), is_complete_(HasEndedFor(found)) {
    const Json info = found.value("info", Json::object());
    id_ = TextAt(info, "run_id");
    status_ = TextAt(info, "status");
    has_end_tag_ = !TagOf(found, kEndTag).empty();
    const Json data = found.value("data", Json::object());
    for (const Json& metric : data.value("metrics", Json::array())) {
      logged_[metric.at("key").get<std::string>()] = IntegerAt(metric, "step");
      last_ms_ = std::max(last_ms_, IntegerAt(metric, "timestamp"));
    }
    std::map<std::string, bool> known;
    for (const Json& param : data.value("params", Json::array())) {
      known[param.at("key").get<std::string>()] = true;
    }
    for (Json& param : params) {
      if (known.count(TextAt(param, "key")) == 0) params_.push_back(std::move(param));
    }
  }

  bool IsComplete() const override { return is_complete_; }
  absl::optional<uint64_t> RoundsAfter() const override { return 0; }
  void TakeRun(const v1::Run& run, absl::Time now) override {
    wanted_ = absl::StartsWith(run.phase(), "down") ? "FAILED" : "RUNNING";
  }
  void TakeRound(const v1::Round& round, const v1::TracesReply&) override {
    for (const auto& [name, value] : scalars_.Add(round)) {
      const std::string key = MlflowMetricName(name);
      const auto logged = logged_.find(key);
      if (!std::isfinite(value) || (logged != logged_.end() && logged->second >= static_cast<int64_t>(round.id())))
        continue;
      metrics_.push_back(
          {{"key", key}, {"value", value}, {"timestamp", round.committed_us() / 1000}, {"step", round.id()}});
    }
    if (IsSettledAt(round)) last_ms_ = round.committed_us() / 1000;
  }
  void TakeEnd(const RunEnd& end) override {
    wanted_ = end.state == "finished" ? "FINISHED" : "KILLED";
    end_ = absl::StrCat(end.state, ": ", end.reason);
  }

  absl::Status Deliver() override {
    while (!params_.empty() || !metrics_.empty()) {
      const size_t params = std::min(params_.size(), kMostParams);
      // With parameters and metrics together a request may have a thousand things.
      const size_t metrics = std::min(metrics_.size(), kMostMetrics - params);
      Json batch = {{"run_id", id_}};
      batch["params"] = Json::array_t(params_.begin(), params_.begin() + params);
      batch["metrics"] = Json::array_t(metrics_.begin(), metrics_.begin() + metrics);
      TERSE_RETURN_IF_ERROR(api_->Post("runs/log-batch", batch).status());
      params_.erase(params_.begin(), params_.begin() + params);
      metrics_.erase(metrics_.begin(), metrics_.begin() + metrics);
    }
    TERSE_RETURN_IF_ERROR(DeliverStatus());
    if (end_.empty()) return absl::OkStatus();
    return note_ == nullptr ? absl::OkStatus() : note_->Remove();
  }

 private:
  static bool IsSettledAt(const v1::Round& round) { return round.has_committed_us() && round.committed_us() > 0; }

  absl::Status DeliverStatus() {
    if (status_ == wanted_ || wanted_.empty()) return absl::OkStatus();
    if (!end_.empty()) {
      Json tag = KeyAndValue(kEndTag, end_);
      tag["run_id"] = id_;
      TERSE_RETURN_IF_ERROR(api_->Post("runs/set-tag", tag).status());
    } else if (has_end_tag_) {
      TERSE_RETURN_IF_ERROR(api_->Post("runs/delete-tag", {{"run_id", id_}, {"key", kEndTag}}).status());
      has_end_tag_ = false;
    }
    Json update = {{"run_id", id_}, {"status", wanted_}};
    if (wanted_ != "RUNNING" && last_ms_ > 0) update["end_time"] = last_ms_;
    TERSE_RETURN_IF_ERROR(api_->Post("runs/update", update).status());
    status_ = wanted_;
    return absl::OkStatus();
  }

  MlflowApi* const api_;
  const std::unique_ptr<PositionFile> note_;
  const bool is_complete_;
  bool has_end_tag_ = false;
  std::string id_;
  std::string status_;                     // as MLflow has it
  std::string wanted_;                     // as it is
  std::string end_;                        // how it ended, once that was taken
  std::map<std::string, int64_t> logged_;  // the newest step of each metric when this tracker was made
  std::deque<Json> params_, metrics_;      // not delivered yet
  int64_t last_ms_ = 0;                    // when the newest round was settled
  RoundScalars scalars_;
};

class MlflowTarget : public FollowTarget {
 public:
  explicit MlflowTarget(MlflowOptions options) : options_(std::move(options)), api_(options_.url, options_.http) {}

  std::string name() const override { return absl::StrCat("MLflow at ", ShownUrl(options_.url)); }

  absl::StatusOr<std::unique_ptr<RunTracker>> Begin(const v1::Status& run, bool is_new) override {
    try {
      return FindOrCreate(run);
    } catch (const Json::exception& error) {
      return NoAnswer(error.what());
    }
  }

  absl::StatusOr<std::vector<EarlierRun>> FindEarlier(const std::set<std::string>& served) override {
    std::vector<EarlierRun> earlier;
    if (options_.state.empty()) return earlier;
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> noted,
                           PositionFile::Lineages(options_.state, kNote, NoteKey()));
    for (const std::string& lineage : noted) {
      if (served.count(lineage) > 0) continue;
      try {
        TERSE_RETURN_IF_ERROR(AddEarlier(lineage, &earlier));
      } catch (const Json::exception& error) {
        return NoAnswer(error.what());
      }
    }
    return earlier;
  }

 private:
  static constexpr char kNote[] = "mlflow";

  std::string NoteKey() const { return absl::StrCat(options_.url, "\n", options_.experiment); }

  std::unique_ptr<PositionFile> NoteOf(const std::string& lineage) const {
    if (options_.state.empty()) return nullptr;
    return std::make_unique<PositionFile>(options_.state, kNote, NoteKey(), lineage);
  }

  // Throws Json::exception when the answers are not MLflow's.
  absl::StatusOr<std::unique_ptr<RunTracker>> FindOrCreate(const v1::Status& run) {
    TERSE_ASSIGN_OR_RETURN(const std::string experiment, FindExperiment());
    const std::string lineage = absl::BytesToHexString(run.lineage());
    TERSE_ASSIGN_OR_RETURN(Json found, FindRun(experiment, lineage));
    std::unique_ptr<PositionFile> note = NoteOf(lineage);
    if (note != nullptr && (found.is_null() || !HasEndedFor(found))) {
      TERSE_RETURN_IF_ERROR(note->Write({{"run", run.run()}, {"coordinator", options_.coordinator}}));
    }
    if (found.is_null()) {
      TERSE_ASSIGN_OR_RETURN(const Json created, api_.Post("runs/create", CreationOf(run, experiment, lineage)));
      found = created.value("run", Json::object());
    }
    return MakeTracker(found, ParamsOf(run.config()), std::move(note));
  }

  // Throws as FindOrCreate.
  absl::Status AddEarlier(const std::string& lineage, std::vector<EarlierRun>* earlier) {
    std::unique_ptr<PositionFile> note = NoteOf(lineage);
    TERSE_ASSIGN_OR_RETURN(const Json noted, note->Read());
    if (TextAt(noted, "coordinator") != options_.coordinator) return absl::OkStatus();
    const absl::StatusOr<std::string> experiment = AskForExperiment();
    if (!experiment.ok() && !absl::IsNotFound(experiment.status())) return experiment.status();
    Json found;
    if (experiment.ok()) {
      TERSE_ASSIGN_OR_RETURN(found, FindRun(*experiment, lineage));
    }
    // Somebody removed it from MLflow, or ended it.
    if (found.is_null() || HasEndedFor(found)) return note->Remove();
    EarlierRun run;
    run.name = TextAt(noted, "run");
    run.lineage = lineage;
    TERSE_ASSIGN_OR_RETURN(run.tracker, MakeTracker(found, {}, std::move(note)));
    earlier->push_back(std::move(run));
    return absl::OkStatus();
  }

  // Null when MLflow has no such run.
  absl::StatusOr<Json> FindRun(const std::string& experiment, const std::string& lineage) {
    const Json search = {{"experiment_ids", Json::array({experiment})},
                         {"filter", absl::StrCat("tags.`", kLineageTag, "` = '", lineage, "'")},
                         {"max_results", 1}};
    TERSE_ASSIGN_OR_RETURN(const Json found, api_.Post("runs/search", search));
    const auto runs = found.find("runs");
    return runs != found.end() && runs->is_array() && !runs->empty() ? runs->front() : Json();
  }

  static Json CreationOf(const v1::Status& run, const std::string& experiment, const std::string& lineage) {
    return {{"experiment_id", experiment},
            {"run_name", run.run()},
            {"start_time", run.created_us() / 1000},
            {"tags",
             {KeyAndValue(kLineageTag, lineage), KeyAndValue("terse.run", run.run()),
              KeyAndValue("terse.parameters", absl::StrCat(run.parameters())),
              KeyAndValue("terse.program_version", run.program_version()), KeyAndValue("mlflow.source.name", "terse"),
              KeyAndValue("mlflow.source.type", "JOB")}}};
  }

  absl::StatusOr<std::unique_ptr<RunTracker>> MakeTracker(const Json& found, std::vector<Json> params,
                                                          std::unique_ptr<PositionFile> note) {
    if (TextAt(found.value("info", Json::object()), "run_id").empty()) {
      return NoAnswer("a run without an id");
    }
    return std::make_unique<MlflowTracker>(&api_, found, std::move(params), std::move(note));
  }

  // Returns the experiment's id. It is asked for with each run, as an experiment may be deleted.
  absl::StatusOr<std::string> FindExperiment() {
    const absl::StatusOr<std::string> found = AskForExperiment();
    if (!absl::IsNotFound(found.status())) return found;
    const Json request = {{"name", options_.experiment}};
    const absl::Status made = api_.Post("experiments/create", request).status();
    // Somebody else may have made it meanwhile.
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
    return AskForExperiment();
  }

  absl::StatusOr<std::string> AskForExperiment() {
    TERSE_ASSIGN_OR_RETURN(const Json found, api_.Get(absl::StrCat("experiments/get-by-name?experiment_name=",
                                                                   UrlEscape(options_.experiment))));
    const std::string id = TextAt(found.value("experiment", Json::object()), "experiment_id");
    return id.empty() ? absl::StatusOr<std::string>(NoAnswer("an experiment without an id")) : id;
  }

  const MlflowOptions options_;
  MlflowApi api_;
};

}  // namespace

std::string MlflowMetricName(const std::string& name) {
  std::vector<std::string> parts = absl::StrSplit(absl::StrReplaceAll(name, {{"@", "_"}}), '/');
  for (std::string& part : parts) {
    if (part.empty() || part == "." || part == "..") part = "_";
  }
  return absl::StrJoin(parts, "/");
}

HttpClient::Options MlflowEnvironment() {
  HttpClient::Options options;
  options.user = EnvironmentValue("MLFLOW_TRACKING_USERNAME");
  options.password = EnvironmentValue("MLFLOW_TRACKING_PASSWORD");
  options.token = EnvironmentValue("MLFLOW_TRACKING_TOKEN");
  options.authorities = EnvironmentValue("MLFLOW_TRACKING_SERVER_CERT_PATH");
  const std::string insecure = EnvironmentValue("MLFLOW_TRACKING_INSECURE_TLS");
  options.insecure_tls = insecure == "true" || insecure == "1";
  return options;
}

std::unique_ptr<FollowTarget> MakeMlflowTarget(MlflowOptions options) {
  return std::make_unique<MlflowTarget>(std::move(options));
}

}  // namespace terse
