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

std::optional<ConfigViolation> CheckString(const FieldDescriptor& field, const std::string& key,
                                           const std::string& value) {
  const v1::FieldRule& rule = RuleOf(field);
  if (rule.one_of().empty()) return std::nullopt;
  for (const std::string& allowed : rule.one_of()) {
    if (value == allowed) return std::nullopt;
  }
  return ConfigViolation{key, absl::StrCat(key, " = '", value, "' is not allowed; use ", AllowedText(field))};
}

std::optional<ConfigViolation> CheckInteger(const FieldDescriptor& field, const std::string& key, int64_t value) {
  const absl::string_view how = OutsideOf(RuleOf(field), value);
  if (how.empty()) return std::nullopt;
  return OutOfRange(field, key, absl::StrCat(value), how);
}

std::optional<ConfigViolation> CheckNumber(const FieldDescriptor& field, const std::string& key, double value) {
  const absl::string_view how = OutsideOf(RuleOf(field), value);
  if (how.empty()) return std::nullopt;
  return OutOfRange(field, key, NumberText(value), how);
}

std::optional<ConfigViolation> CheckField(const Message& message, const FieldDescriptor& field,
                                          const std::string& key) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return CheckFields(reflection.GetMessage(message, &field), key);
    case FieldDescriptor::CPPTYPE_INT64:
      if (!field.is_repeated()) return CheckInteger(field, key, reflection.GetInt64(message, &field));
      for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
        std::optional<ConfigViolation> violation =
            CheckInteger(field, JoinIndex(key, i), reflection.GetRepeatedInt64(message, &field, i));
        if (violation.has_value()) return violation;
      }
      return std::nullopt;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (!field.is_repeated()) return CheckNumber(field, key, reflection.GetDouble(message, &field));
      for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
        std::optional<ConfigViolation> violation =
            CheckNumber(field, JoinIndex(key, i), reflection.GetRepeatedDouble(message, &field, i));
        if (violation.has_value()) return violation;
      }
      return std::nullopt;
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.is_repeated()) return std::nullopt;  // CheckAcrossFields looks at the entries of arrays
      return CheckString(field, key, reflection.GetString(message, &field));
    default:
      return std::nullopt;  // a bool is always in range; no other type is in the schema
  }
}

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; }

std::optional<ConfigViolation> CheckAllowed(const v1::Clients& clients) {
  for (int i = 0; i < clients.allow_size(); ++i) {
    const std::string& pattern = clients.allow(i);
    const bool good = !pattern.empty() && pattern.size() <= kMaxPattern &&
                      absl::c_all_of(pattern, [](char c) { return c == '*' || IsNameCharacter(c); });
    if (good) continue;
    const std::string key = JoinIndex("clients.allow", i);
    return ConfigViolation{
        key, absl::StrCat(key, " = '", absl::CHexEscape(absl::string_view(pattern).substr(0, kMaxPattern)),
                          "' names no client; use 1 to ", kMaxPattern,
                          " letters, digits, '-', '_', '.' and '*', which stands for any characters")};
  }
  return std::nullopt;
}

std::optional<ConfigViolation> CheckRounds(const v1::Rounds& rounds) {
  constexpr absl::string_view kChoose = "; choose rounds.selection = 'random', 'samples' or 'reliability', or ";
  if (rounds.selection() == "all" && rounds.fraction() < 1) {
    return ConfigViolation{"rounds.fraction",
                           absl::StrCat("rounds.fraction = ", NumberText(rounds.fraction()),
                                        " contradicts rounds.selection = 'all'", kChoose, "a fraction of 1")};
  }
  if (rounds.selection() == "all" && rounds.over_selection() > 0) {
    return ConfigViolation{
        "rounds.over_selection",
        absl::StrCat("rounds.over_selection = ", NumberText(rounds.over_selection()),
                     " has no one left to give work: rounds.selection = 'all'", kChoose, "an over-selection of 0")};
  }
  if (rounds.mode() == "buffered" && (rounds.selection() != "all" || rounds.weighting() != "uniform")) {
    return ConfigViolation{
        "rounds.mode",
        "rounds.mode = 'buffered' gives work to every client that is free, and weighs updates by their "
        "staleness; use rounds.selection = 'all' and rounds.weighting = 'uniform'"};
  }
  if (rounds.mode() == "buffered" && rounds.buffer() > rounds.clients()) {
    return ConfigViolation{"rounds.buffer",
                           absl::StrCat("rounds.buffer = ", rounds.buffer(), " is more than the fleet of ",
                                        rounds.clients(), " clients; use at most as many")};
  }
  if (rounds.mode() == "buffered" && rounds.grace_seconds() > 0) {
    return ConfigViolation{"rounds.grace_seconds",
                           "rounds.grace_seconds is for rounds that are given up without a quorum; those of "
                           "rounds.mode = 'buffered' wait for it. Set it to 0"};
  }
  if (rounds.quorum() > CohortSize(rounds)) {
    const std::string whole = rounds.mode() == "buffered" ? absl::StrCat("the buffer: ", CohortSize(rounds), " updates")
                                                          : absl::StrCat("the cohort: ", CohortSize(rounds), " of ",
                                                                         rounds.clients(), " clients");
    return ConfigViolation{"rounds.quorum", absl::StrCat("rounds.quorum = ", rounds.quorum(), " is more than ", whole,
                                                         "; use at most as many, or 0 for half of them")};
  }
  return std::nullopt;
}

// Names of files that come with a run must not lead out of the data directory.
std::optional<ConfigViolation> CheckDataFile(const std::string& key, const std::string& path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  const bool leaves = absl::StartsWith(path, "/") || absl::c_linear_search(parts, "..");
  if (!leaves && path.size() <= kMaxDataPath && !absl::StrContains(path, '\0')) return std::nullopt;
  return ConfigViolation{key,
                         absl::StrCat(key, " = '", absl::CHexEscape(absl::string_view(path).substr(0, kMaxDataPath)),
                                      "' is not below the data directory; give a relative path without '..'")};
}

std::optional<ConfigViolation> CheckModel(const v1::Model& model) {
  if (model.hash().empty() || (model.name() == kTorchScriptModel && IsModuleHash(model.hash()))) return std::nullopt;
  return ConfigViolation{
      "model.hash", absl::StrCat("model.hash = '", absl::CHexEscape(absl::string_view(model.hash()).substr(0, 64)),
                                 "' is for name = 'torchscript': the 64 digits 0-9 and a-f of the file's SHA-256; ",
                                 "leave it out, and `tersectl run create --model FILE` fills it in")};
}

std::optional<ConfigViolation> CheckTraining(const v1::RunConfig& config) {
  const v1::Optimizer& optimizer = config.train().optimizer();
  if (optimizer.nesterov() && (optimizer.name() != "sgd" || optimizer.momentum() == 0)) {
    return ConfigViolation{"train.optimizer.nesterov",
                           "train.optimizer.nesterov is for name = 'sgd' with a momentum above 0; set it to false"};
  }
  std::optional<ConfigViolation> violation = CheckDataFile("data.train", config.data().train());
  return violation.has_value() ? violation : CheckDataFile("data.test", config.data().test());
}

// The updates themselves only tell clients their average.
std::optional<ConfigViolation> CheckServer(const v1::RunConfig& config) {
  const v1::Server& server = config.server();
  if (server.optimizer() != "average" && config.codec().downstream() == "forward") {
    return ConfigViolation{"server.optimizer",
                           absl::StrCat("server.optimizer = '", server.optimizer(),
                                        "' makes more of a round than the average of its updates, which is all that "
                                        "codec.downstream = 'forward' sends; use 'auto', 'dense' or a codec")};
  }
  if (server.nesterov() && (server.optimizer() != "sgd" || server.momentum() == 0)) {
    return ConfigViolation{"server.nesterov",
                           "server.nesterov is for optimizer = 'sgd' with a momentum above 0; set it to false"};
  }
  return std::nullopt;
}

// With the loss 'auto' only the data tell, which the coordinator then looks at.
std::optional<ConfigViolation> CheckTarget(const v1::RunConfig& config) {
  if (config.limits().accuracy() == 0 || config.train().loss() != "mse") return std::nullopt;
  return ConfigViolation{"limits.accuracy",
                         absl::StrCat("limits.accuracy = ", NumberText(config.limits().accuracy()),
                                      " can never be reached: with train.loss = 'mse' no prediction is right or wrong; "
                                      "use limits.loss")};
}

}  // namespace

const v1::FieldRule& RuleOf(const FieldDescriptor& field) { return field.options().GetExtension(v1::rule); }

std::string JoinKey(absl::string_view prefix, absl::string_view field) {
  return prefix.empty() ? std::string(field) : absl::StrCat(prefix, ".", field);
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

std::optional<ConfigViolation> CheckFields(const Message& message, absl::string_view prefix) {
  const auto& descriptor = *message.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    std::optional<ConfigViolation> violation = CheckField(message, field, JoinKey(prefix, field.name()));
    if (violation.has_value()) return violation;
  }
  return std::nullopt;
}

std::optional<ConfigViolation> CheckAcrossFields(const v1::RunConfig& config) {
  if (!IsRunName(config.name())) {
    return ConfigViolation{"name",
                           absl::StrCat("name = '", config.name(), "' is not a name of a run; use ", RunNameForm())};
  }
  std::optional<ConfigViolation> violation = CheckRounds(config.rounds());
  if (!violation.has_value()) violation = CheckModel(config.model());
  if (!violation.has_value()) violation = CheckTraining(config);
  if (!violation.has_value()) violation = CheckServer(config);
  if (!violation.has_value()) violation = CheckAggregation(config);
  if (!violation.has_value()) violation = CheckTarget(config);
  if (!violation.has_value()) violation = CheckEpochs(config);
  if (!violation.has_value()) violation = CheckControl(config);
  return violation.has_value() ? violation : CheckAllowed(config.clients());
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
