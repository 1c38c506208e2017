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
#include "tersectl/print.h"
#include "tersectl/round_scalars.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kLineageTag[] = "terse.lineage";
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

// A metric's step, which is text in the JSON of protocol buffers and a number in that of MLflow's own server. Throws
// Json::exception when it is neither.
int64_t StepOf(const Json& metric) {
  const Json& step = metric.at("step");
  int64_t number = 0;
  if (step.is_string() && absl::SimpleAtoi(step.get_ref<const std::string&>(), &number)) return number;
  return step.get_ref<const Json::number_integer_t&>();
}

class MlflowTracker : public RunTracker {
 public:
  // `found`: the run as MLflow has it. Throws Json::exception when it is no run of MLflow's.
  MlflowTracker(MlflowApi* api, const Json& found, const v1::RunConfig& config) : api_(api) {
    const Json info = found.value("info", Json::object());
    id_ = TextAt(info, "run_id");
    status_ = TextAt(info, "status");
    const Json data = found.value("data", Json::object());
    for (const Json& metric : data.value("metrics", Json::array())) {
      logged_[metric.at("key").get<std::string>()] = metric.contains("step") ? StepOf(metric) : 0;
    }
    std::map<std::string, bool> known;
    for (const Json& param : data.value("params", Json::array())) {
      known[param.at("key").get<std::string>()] = true;
    }
    for (Json& param : ParamsOf(config)) {
      if (known.count(TextAt(param, "key")) == 0) params_.push_back(std::move(param));
    }
  }

  bool IsComplete() const override { return status_ == "FINISHED" || status_ == "KILLED"; }
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
  void TakeEnd(const RunEnd& end) override { wanted_ = end.state == "finished" ? "FINISHED" : "KILLED"; }

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
    if (status_ == wanted_ || wanted_.empty()) return absl::OkStatus();
    Json update = {{"run_id", id_}, {"status", wanted_}};
    if (wanted_ != "RUNNING" && last_ms_ > 0) update["end_time"] = last_ms_;
    TERSE_RETURN_IF_ERROR(api_->Post("runs/update", update).status());
    status_ = wanted_;
    return absl::OkStatus();
  }

 private:
  static bool IsSettledAt(const v1::Round& round) { return round.has_committed_us() && round.committed_us() > 0; }

  MlflowApi* const api_;
  std::string id_;
  std::string status_;                     // as MLflow has it
  std::string wanted_;                     // as it is
  std::map<std::string, int64_t> logged_;  // the newest step of each metric when this tracker was made
  std::deque<Json> params_, metrics_;      // not delivered yet
  int64_t last_ms_ = 0;                    // when the newest round was settled
  RoundScalars scalars_;
};

class MlflowTarget : public FollowTarget {
 public:
  MlflowTarget(const std::string& url, std::string experiment, HttpClient::Options http)
      : name_(absl::StrCat("MLflow at ", ShownUrl(url))),
        experiment_(std::move(experiment)),
        api_(url, std::move(http)) {}

  std::string name() const override { return name_; }

  absl::StatusOr<std::unique_ptr<RunTracker>> Begin(const v1::Status& run, bool is_new) override {
    try {
      return FindOrCreate(run);
    } catch (const Json::exception& error) {
      return NoAnswer(error.what());
    }
  }

 private:
  // Throws Json::exception when the answers are not MLflow's.
  absl::StatusOr<std::unique_ptr<RunTracker>> FindOrCreate(const v1::Status& run) {
    TERSE_ASSIGN_OR_RETURN(const std::string experiment, FindExperiment());
    const std::string lineage = absl::BytesToHexString(run.lineage());
    const Json search = {{"experiment_ids", Json::array({experiment})},
                         {"filter", absl::StrCat("tags.`", kLineageTag, "` = '", lineage, "'")},
                         {"max_results", 1}};
    TERSE_ASSIGN_OR_RETURN(const Json found, api_.Post("runs/search", search));
    const auto runs = found.find("runs");
    if (runs != found.end() && runs->is_array() && !runs->empty()) return MakeTracker(runs->front(), run.config());
    TERSE_ASSIGN_OR_RETURN(const Json created, api_.Post("runs/create", CreationOf(run, experiment, lineage)));
    return MakeTracker(created.value("run", Json::object()), run.config());
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

  absl::StatusOr<std::unique_ptr<RunTracker>> MakeTracker(const Json& found, const v1::RunConfig& config) {
    if (TextAt(found.value("info", Json::object()), "run_id").empty()) {
      return NoAnswer("a run without an id");
    }
    return std::make_unique<MlflowTracker>(&api_, found, config);
  }

  // Returns the experiment's id. It is asked for with each run, as an experiment may be deleted.
  absl::StatusOr<std::string> FindExperiment() {
    const std::string question = absl::StrCat("experiments/get-by-name?experiment_name=", UrlEscape(experiment_));
    absl::StatusOr<Json> found = api_.Get(question);
    if (absl::IsNotFound(found.status())) {
      const Json request = {{"name", experiment_}};
      const absl::Status made = api_.Post("experiments/create", request).status();
      // Somebody else may have made it meanwhile.
      if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
      found = api_.Get(question);
    }
    if (!found.ok()) return found.status();
    const std::string id = TextAt(found->value("experiment", Json::object()), "experiment_id");
    return id.empty() ? absl::StatusOr<std::string>(NoAnswer("an experiment without an id")) : id;
  }

  const std::string name_;
  const std::string experiment_;
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

std::unique_ptr<FollowTarget> MakeMlflowTarget(const std::string& url, const std::string& experiment,
                                               HttpClient::Options http) {
  return std::make_unique<MlflowTarget>(url, experiment, std::move(http));
}

}  // namespace terse
