#include "proto/run_config_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/codec_choices.h"
#include "core/run_config.h"
#include "proto/run_config_aggregation.h"
#include "proto/run_config_control.h"
#include "proto/run_config_epochs.h"
#include "proto/run_config_fit.h"

namespace terse {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kMaxRunName = 64;
// A client's name has at most 64 characters; a pattern may have stars between them.
constexpr size_t kMaxPattern = 128;
constexpr size_t kMaxDataPath = 1024;

// Nothing, or how `value` lies outside of the rule: "is below" or "is above". NaN is below everything.
template <typename T>
absl::string_view OutsideOf(const v1::FieldRule& rule, T value) {
  if (rule.has_above() && !(value > static_cast<T>(rule.above()))) return "is below";
  if (rule.has_min() && !(value >= static_cast<T>(rule.min()))) return "is below";
  if (rule.has_max() && !(value <= static_cast<T>(rule.max()))) return "is above";
  return "";
}

ConfigViolation OutOfRange(const FieldDescriptor& field, const std::string& key, absl::string_view value,
                           absl::string_view how) {
  return {key, absl::StrCat(key, " = ", value, " ", how, " the allowed range ", AllowedText(field))};
}

void CheckString(const FieldDescriptor& field, const std::string& key, const std::string& value,
                 ConfigViolations* violations) {
  const v1::FieldRule& rule = RuleOf(field);
  if (rule.one_of().empty() || absl::c_linear_search(rule.one_of(), value)) return;
  violations->push_back({key, absl::StrCat(key, " = '", value, "' is not allowed; use ", AllowedText(field))});
}

void CheckInteger(const FieldDescriptor& field, const std::string& key, int64_t value, ConfigViolations* violations) {
  const absl::string_view how = OutsideOf(RuleOf(field), value);
  if (!how.empty()) violations->push_back(OutOfRange(field, key, absl::StrCat(value), how));
}

void CheckNumber(const FieldDescriptor& field, const std::string& key, double value, ConfigViolations* violations) {
  const absl::string_view how = OutsideOf(RuleOf(field), value);
  if (!how.empty()) violations->push_back(OutOfRange(field, key, NumberText(value), how));
}

void CheckEntries(const Message& message, const FieldDescriptor& field, const std::string& key,
                  ConfigViolations* violations) {
  const auto& reflection = *message.GetReflection();
  for (int i = 0; i < reflection.FieldSize(message, &field) && violations->size() < kMostViolations; ++i) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
      CheckInteger(field, JoinIndex(key, i), reflection.GetRepeatedInt64(message, &field, i), violations);
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      CheckNumber(field, JoinIndex(key, i), reflection.GetRepeatedDouble(message, &field, i), violations);
    }  // CheckAcrossFields looks at the entries of arrays of strings
  }
}

void CheckField(const Message& message, const FieldDescriptor& field, const std::string& key,
                ConfigViolations* violations) {
  const auto& reflection = *message.GetReflection();
  if (field.is_repeated()) return CheckEntries(message, field, key, violations);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return CheckFields(reflection.GetMessage(message, &field), key, violations);
    case FieldDescriptor::CPPTYPE_INT64:
      return CheckInteger(field, key, reflection.GetInt64(message, &field), violations);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return CheckNumber(field, key, reflection.GetDouble(message, &field), violations);
    case FieldDescriptor::CPPTYPE_STRING:
      return CheckString(field, key, reflection.GetString(message, &field), violations);
    default:
      return;  // a bool is always in range; no other type is in the schema
  }
}

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; }

void CheckAllowed(const v1::RunConfig& config, ConfigViolations* violations) {
  const v1::Clients& clients = config.clients();
  for (int i = 0; i < clients.allow_size() && violations->size() < kMostViolations; ++i) {
    const std::string& pattern = clients.allow(i);
    const bool good = !pattern.empty() && pattern.size() <= kMaxPattern &&
                      absl::c_all_of(pattern, [](char c) { return c == '*' || IsNameCharacter(c); });
    if (good) continue;
    const std::string key = JoinIndex("clients.allow", i);
    violations->push_back(
        {key, absl::StrCat(key, " = '", absl::CHexEscape(absl::string_view(pattern).substr(0, kMaxPattern)),
                           "' names no client; use 1 to ", kMaxPattern,
                           " letters, digits, '-', '_', '.' and '*', which stands for any characters")});
  }
}

void CheckRounds(const v1::RunConfig& config, ConfigViolations* violations) {
  const v1::Rounds& rounds = config.rounds();
  constexpr absl::string_view kChoose = "; choose rounds.selection = 'random', 'samples' or 'reliability', or ";
  if (rounds.selection() == "all" && rounds.fraction() < 1) {
    violations->push_back(
        {"rounds.fraction", absl::StrCat("rounds.fraction = ", NumberText(rounds.fraction()),
                                         " contradicts rounds.selection = 'all'", kChoose, "a fraction of 1")});
  }
  if (rounds.selection() == "all" && rounds.over_selection() > 0) {
    violations->push_back(
        {"rounds.over_selection",
         absl::StrCat("rounds.over_selection = ", NumberText(rounds.over_selection()),
                      " has no one left to give work: rounds.selection = 'all'", kChoose, "an over-selection of 0")});
  }
  if (rounds.mode() == "buffered" && (rounds.selection() != "all" || rounds.weighting() != "uniform")) {
    violations->push_back(
        {"rounds.mode",
         "rounds.mode = 'buffered' gives work to every client that is free, and weighs updates by their "
         "staleness; use rounds.selection = 'all' and rounds.weighting = 'uniform'"});
  }
  if (rounds.mode() == "buffered" && rounds.buffer() > rounds.clients()) {
    violations->push_back(
        {"rounds.buffer", absl::StrCat("rounds.buffer = ", rounds.buffer(), " is more than the fleet of ",
                                       rounds.clients(), " clients; use at most as many")});
  }
  if (rounds.mode() == "buffered" && rounds.grace_seconds() > 0) {
    violations->push_back({"rounds.grace_seconds",
                           "rounds.grace_seconds is for rounds that are given up without a quorum; those of "
                           "rounds.mode = 'buffered' wait for it. Set it to 0"});
  }
  if (rounds.quorum() > CohortSize(rounds)) {
    const std::string whole = rounds.mode() == "buffered" ? absl::StrCat("the buffer: ", CohortSize(rounds), " updates")
                                                          : absl::StrCat("the cohort: ", CohortSize(rounds), " of ",
                                                                         rounds.clients(), " clients");
    violations->push_back({"rounds.quorum", absl::StrCat("rounds.quorum = ", rounds.quorum(), " is more than ", whole,
                                                         "; use at most as many, or 0 for half of them")});
  }
}

// Names of files that come with a run must not lead out of the data directory.
void CheckDataFile(const std::string& key, const std::string& path, ConfigViolations* violations) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  const bool leaves = absl::StartsWith(path, "/") || absl::c_linear_search(parts, "..");
  if (!leaves && path.size() <= kMaxDataPath && !absl::StrContains(path, '\0')) return;
  violations->push_back(
      {key, absl::StrCat(key, " = '", absl::CHexEscape(absl::string_view(path).substr(0, kMaxDataPath)),
                         "' is not below the data directory; give a relative path without '..'")});
}

void CheckShards(const v1::RunConfig& config, ConfigViolations* violations) {
  const int64_t shards = config.data().shards(), clients = config.rounds().clients();
  if (shards == 0) return;
  if (config.data().partition() == "all") {
    violations->push_back({"data.shards", absl::StrCat("data.shards = ", shards,
                                                       " cuts nothing: with data.partition = "
                                                       "'all' every client has everything. Set it to 0")});
  } else if (shards < clients) {
    violations->push_back({"data.shards", absl::StrCat("data.shards = ", shards, " is less than the fleet of ", clients,
                                                       " clients (rounds.clients); use at least as many, or 0")});
  }
}

void CheckModel(const v1::RunConfig& config, ConfigViolations* violations) {
  const v1::Model& model = config.model();
  if (model.hash().empty() || (HasModelFile(model.name()) && IsModuleHash(model.hash()))) return;
  violations->push_back(
      {"model.hash",
       absl::StrCat("model.hash = '", absl::CHexEscape(absl::string_view(model.hash()).substr(0, 64)),
                    "' is for name = 'torchscript' or 'external': the 64 digits 0-9 and a-f of the file's SHA-256; ",
                    "leave it out, and `tersectl run create --model FILE` fills it in")});
}

void CheckTraining(const v1::RunConfig& config, ConfigViolations* violations) {
  const v1::Optimizer& optimizer = config.train().optimizer();
  if (optimizer.nesterov() && (optimizer.name() != "sgd" || optimizer.momentum() == 0)) {
    violations->push_back({"train.optimizer.nesterov",
                           "train.optimizer.nesterov is for name = 'sgd' with a momentum above 0; set it to false"});
  }
  CheckDataFile("data.train", config.data().train(), violations);
  CheckDataFile("data.test", config.data().test(), violations);
}

// The updates themselves only tell clients their average.
void CheckServer(const v1::RunConfig& config, ConfigViolations* violations) {
  const v1::Server& server = config.server();
  if (server.optimizer() != "average" && config.codec().downstream() == "forward") {
    violations->push_back(
        {"server.optimizer", absl::StrCat("server.optimizer = '", server.optimizer(),
                                          "' makes more of a round than the average of its updates, which is all that "
                                          "codec.downstream = 'forward' sends; use 'auto', 'dense' or a codec")});
  }
  if (server.nesterov() && (server.optimizer() != "sgd" || server.momentum() == 0)) {
    violations->push_back(
        {"server.nesterov", "server.nesterov is for optimizer = 'sgd' with a momentum above 0; set it to false"});
  }
}

void CheckName(const v1::RunConfig& config, ConfigViolations* violations) {
  if (IsRunName(config.name())) return;
  violations->push_back(
      {"name", absl::StrCat("name = '", absl::CHexEscape(absl::string_view(config.name()).substr(0, kMaxRunName + 1)),
                            "' is not a name of a run; use ", RunNameForm())});
}

// With the loss 'auto' only the data tell, which the coordinator then looks at.
void CheckTarget(const v1::RunConfig& config, ConfigViolations* violations) {
  if (config.train().loss() != "mse") return;
  if (config.limits().patience() > 0 && config.limits().patience_metric() == "accuracy") {
    violations->push_back({"limits.patience_metric",
                           "limits.patience_metric = 'accuracy' finds nothing to watch: with train.loss = 'mse' no "
                           "prediction is right or wrong; use 'loss'"});
  }
  if (config.limits().accuracy() == 0) return;
  violations->push_back({"limits.accuracy",
                         absl::StrCat("limits.accuracy = ", NumberText(config.limits().accuracy()),
                                      " can never be reached: with train.loss = 'mse' no prediction is right or wrong; "
                                      "use limits.loss")});
}

// A check, and the keys or tables that it reads.
struct AcrossRule {
  void (*check)(const v1::RunConfig&, ConfigViolations*);
  std::vector<absl::string_view> reads;
};

const std::vector<AcrossRule>& AcrossRules() {
  static const auto& rules = *new std::vector<AcrossRule>{
      {CheckName, {"name"}},
      {CheckRounds,
       {"rounds.selection", "rounds.fraction", "rounds.over_selection", "rounds.mode", "rounds.weighting",
        "rounds.buffer", "rounds.clients", "rounds.grace_seconds", "rounds.quorum"}},
      {CheckShards, {"data.shards", "data.partition", "rounds.clients"}},
      {CheckModel, {"model"}},
      {CheckTraining, {"train.optimizer.name", "train.optimizer.momentum", "train.optimizer.nesterov", "data"}},
      {CheckServer, {"server", "codec.downstream"}},
      {CheckAggregation, {"aggregation", "policy", "server", "codec.downstream", "rounds"}},
      {CheckEpochs, {"server", "train", "rounds.mode", "data.augment", "codec", "downstream"}},
      {CheckControl, {"control", "codec", "limits.iterations", "rounds.mode", "rounds.count"}},
      {CheckAllowed, {"clients.allow"}},
  };
  return rules;
}

const std::vector<AcrossRule>& NewRunRules() {
  static const auto& rules = *new std::vector<AcrossRule>{
      {CheckFit, {"model", "data", "train.loss", "limits", "server.epoch_length"}},
      {CheckTarget, {"limits", "train.loss"}},
  };
  return rules;
}

bool ReadsBroken(const AcrossRule& rule, const ConfigViolations& broken) {
  return absl::c_any_of(rule.reads, [&](absl::string_view read) {
    return absl::c_any_of(broken, [&](const ConfigViolation& violation) {
      return IsWithin(violation.key, read) || IsWithin(read, violation.key);
    });
  });
}

void Apply(const std::vector<AcrossRule>& rules, const v1::RunConfig& config, ConfigViolations* violations) {
  const ConfigViolations before = *violations;
  for (const AcrossRule& rule : rules) {
    if (!ReadsBroken(rule, before)) rule.check(config, violations);
  }
}

}  // namespace

const v1::FieldRule& RuleOf(const FieldDescriptor& field) { return field.options().GetExtension(v1::rule); }

std::string JoinKey(absl::string_view prefix, absl::string_view field) {
  return prefix.empty() ? std::string(field) : absl::StrCat(prefix, ".", field);
}

bool IsWithin(absl::string_view inner, absl::string_view outer) {
  return absl::StartsWith(inner, outer) &&
         (inner.size() == outer.size() || inner[outer.size()] == '.' || inner[outer.size()] == '[');
}

std::string JoinIndex(absl::string_view key, int64_t index) { return absl::StrCat(key, "[", index, "]"); }

std::string TypeText(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "table";
    case FieldDescriptor::CPPTYPE_INT64:
      return field.is_repeated() ? "array of integers" : "integer";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return field.is_repeated() ? "array of numbers" : "number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    default:
      return field.is_repeated() ? "array of strings" : "string";
  }
}

std::string NumberText(double value) {
  // Whole numbers that a double holds exactly, without an exponent.
  if (value == std::floor(value) && std::abs(value) <= 0x1p53) return absl::StrFormat("%.0f", value);
  for (const int digits : {6, 15}) {
    std::string text = absl::StrFormat("%.*g", digits, value);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && back == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

std::string AllowedText(const FieldDescriptor& field) {
  const v1::FieldRule& rule = RuleOf(field);
  if (!rule.one_of().empty()) {
    std::string text;
    for (int i = 0; i < rule.one_of_size(); ++i) {
      const bool is_last = i + 1 == rule.one_of_size();
      absl::StrAppend(&text, i == 0 ? "" : is_last ? " or " : ", ", "'", rule.one_of(i), "'");
    }
    return text;
  }
  if (rule.has_above()) {
    return rule.has_max() ? absl::StrCat("above ", NumberText(rule.above()), ", at most ", NumberText(rule.max()))
                          : absl::StrCat("above ", NumberText(rule.above()));
  }
  if (rule.has_min() && rule.has_max()) return absl::StrCat(NumberText(rule.min()), " to ", NumberText(rule.max()));
  if (rule.has_min()) return absl::StrCat("at least ", NumberText(rule.min()));
  return rule.has_max() ? absl::StrCat("at most ", NumberText(rule.max())) : "";
}

void CheckFields(const Message& message, absl::string_view prefix, ConfigViolations* violations) {
  const auto& descriptor = *message.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    CheckField(message, field, JoinKey(prefix, field.name()), violations);
  }
}

void CheckAcrossFields(const v1::RunConfig& config, ConfigViolations* violations) {
  Apply(AcrossRules(), config, violations);
}

void CheckNewRun(const v1::RunConfig& config, ConfigViolations* violations) {
  Apply(NewRunRules(), config, violations);
}

// A name becomes part of file names, so it must not be "..", hidden or a path.
bool IsRunName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxRunName && name[0] != '.' && absl::c_all_of(name, IsNameCharacter);
}

std::string RunNameForm() {
  return absl::StrCat("1 to ", kMaxRunName, " letters, digits, '-', '_' and '.', not starting with '.'");
}

int64_t CeilOf(double fraction, int64_t count) {
  const double product = fraction * static_cast<double>(count);
  const double whole = std::round(product);
  // Reading the decimal number and multiplying round once each, by at most 2^-53 of the result.
  const bool is_whole = std::abs(product - whole) <= whole * 0x1p-51;
  return static_cast<int64_t>(is_whole ? whole : std::ceil(product));
}

int64_t CohortSize(const v1::Rounds& rounds) {
  return rounds.mode() == "buffered" ? rounds.buffer() : CeilOf(rounds.fraction(), rounds.clients());
}

}  // namespace terse
