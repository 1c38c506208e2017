#include "proto/run_config_loader.h"

#include <google/protobuf/message.h>
#include <utf8.h>

#include <exception>
#include <map>
#include <optional>
#include <sstream>
#include <toml.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/closest_word.h"
#include "core/file_system.h"
#include "core/status.h"
#include "proto/run_config_rules.h"
#include "proto/toml_syntax.h"

namespace terse {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
// Ordered tables, so that of several errors the same one is reported every time.
using Toml = toml::basic_value<toml::discard_comments, std::map, std::vector>;

constexpr int64_t kMaxRunFileBytes = int64_t{1} << 20;

// Keys of the tables below, as they are written in `table`: "optimizer.learning_rate".
void KeysBelow(const Descriptor& table, const std::string& prefix, std::vector<std::string>* keys) {
  for (int i = 0; i < table.field_count(); ++i) {
    const FieldDescriptor& field = *table.field(i);
    const std::string key = JoinKey(prefix, field.name());
    if (field.message_type() != nullptr) {
      KeysBelow(*field.message_type(), key, keys);
    } else if (!prefix.empty()) {
      keys->push_back(key);
    }
  }
}

// Returns the key of the table that was meant; else the one below the table with this very name, or with these
// initials.
std::string KeyMeant(const Descriptor& table, const std::string& key, const std::vector<std::string>& known) {
  std::string meant = ClosestWord(key, known);
  if (!meant.empty()) return meant;
  std::vector<std::string> below;
  KeysBelow(table, "", &below);
  for (const std::string& path : below) {
    const std::string name = path.substr(path.rfind('.') + 1);
    if (name == key || IsInitialsOf(key, name)) return path;
  }
  return "";
}

ConfigViolation UnknownKey(const Descriptor& table, absl::string_view prefix, const std::string& key) {
  std::vector<std::string> known;
  for (int i = 0; i < table.field_count(); ++i) known.push_back(table.field(i)->name());
  const std::string meant = KeyMeant(table, key, known);
  const std::string path = JoinKey(prefix, key);
  const std::string hint = meant.empty() ? "; " : absl::StrCat("; did you mean '", meant, "'? ");
  const std::string where = prefix.empty() ? "at the top" : absl::StrCat("in [", prefix, "]");
  return {path, absl::StrCat(path, " is not a known key", hint, "known ", where, ": ", absl::StrJoin(known, ", "))};
}

std::string WantedText(const FieldDescriptor& field) {
  const std::string allowed = AllowedText(field);
  const std::string type = TypeText(field);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return type;
  const bool vowel = type == "integer" || field.is_repeated();
  return absl::StrCat(vowel ? "an " : "a ", type, allowed.empty() ? "" : ", ", allowed);
}

absl::string_view TomlTypeText(const Toml& value) {
  switch (value.type()) {
    case toml::value_t::boolean:
      return "true or false";
    case toml::value_t::integer:
      return "an integer";
    case toml::value_t::floating:
      return "a number";
    case toml::value_t::string:
      return "a string";
    case toml::value_t::array:
      return "an array";
    case toml::value_t::table:
      return "a table";
    default:
      return "a date or time";
  }
}

void ParseDefaults(const Descriptor& table, std::map<std::string, Toml>* defaults) {
  for (int i = 0; i < table.field_count(); ++i) {
    const FieldDescriptor& field = *table.field(i);
    if (field.message_type() != nullptr) ParseDefaults(*field.message_type(), defaults);
    if (!RuleOf(field).has_default_value()) continue;
    std::istringstream text(absl::StrCat("value = ", RuleOf(field).default_value(), "\n"));
    const Toml parsed = toml::parse<toml::discard_comments, std::map, std::vector>(text, "default of " + field.name());
    (*defaults)[field.full_name()] = parsed.as_table(std::nothrow).at("value");
  }
}

// Returns the default of a field that has one. All are parsed once: that takes longer than the rest of reading a run
// file.
const Toml& DefaultOf(const FieldDescriptor& field) {
  static const auto& defaults = *[] {
    auto* parsed = new std::map<std::string, Toml>;
    ParseDefaults(*v1::RunConfig::descriptor(), parsed);
    return parsed;
  }();
  return defaults.at(field.full_name());
}

// Copies one TOML document into a message, field by field of the message's descriptor, and remembers where each key
// stood.
class TableReader {
 public:
  // Fills `out`, whose tables may be absent in the file (`table` is null): then every field takes its default.
  void Read(const Toml* table, const std::string& prefix, Message* out) {
    const Descriptor& descriptor = *out->GetDescriptor();
    if (table != nullptr) {
      for (const auto& [key, value] : table->as_table(std::nothrow)) {
        lines_[JoinKey(prefix, key)] = value.location().line();
        if (descriptor.FindFieldByName(key) == nullptr) violations_.push_back(UnknownKey(descriptor, prefix, key));
      }
    }
    for (int i = 0; i < descriptor.field_count(); ++i) {
      const FieldDescriptor& field = *descriptor.field(i);
      ReadField(Find(table, field.name()), prefix, field, out);
    }
  }

  // Sets a field that the file does not have.
  void SetDefault(const std::string& key, const FieldDescriptor& field, Message* out) {
    SetField(DefaultOf(field), key, field, out);
  }

  // Errors of the keys that were read and of their types. A field without a usable value has its default, or
  // none.
  const ConfigViolations& violations() const { return violations_; }

  // Line of a key, or of the table that it would be in, or 0.
  int64_t LineOf(std::string key) const {
    while (!key.empty()) {
      const auto found = lines_.find(key);
      if (found != lines_.end()) return found->second;
      const size_t dot = key.rfind('.');
      key.resize(dot == std::string::npos ? 0 : dot);
    }
    return 0;
  }

 private:
  static const Toml* Find(const Toml* table, const std::string& key) {
    if (table == nullptr) return nullptr;
    const auto& entries = table->as_table(std::nothrow);
    const auto found = entries.find(key);
    return found == entries.end() ? nullptr : &found->second;
  }

  void ReadField(const Toml* value, const std::string& prefix, const FieldDescriptor& field, Message* out) {
    const std::string key = JoinKey(prefix, field.name());
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (value != nullptr && !value->is_table()) return AddWrongType(*value, key, field);
      return Read(value, key, out->GetReflection()->MutableMessage(out, &field));
    }
    if (value != nullptr) return SetField(*value, key, field, out);
    if (RuleOf(field).has_default_value()) return SetDefault(key, field, out);
    violations_.push_back({key, absl::StrCat(key, " is missing; give ", WantedText(field))});
  }

  void SetField(const Toml& value, const std::string& key, const FieldDescriptor& field, Message* out) {
    if (!field.is_repeated()) {
      if (!SetScalar(value, field, out)) AddWrongType(value, key, field);
      return;
    }
    if (!value.is_array()) return AddWrongType(value, key, field);
    int64_t index = 0;
    for (const Toml& entry : value.as_array(std::nothrow)) {
      const std::string entry_key = JoinIndex(key, index++);
      lines_[entry_key] = entry.location().line();
      if (AddEntry(entry, field, out) || violations_.size() >= kMostViolations) continue;
      const absl::string_view wanted = IsInteger(field) ? "an integer" : IsNumber(field) ? "a number" : "a string";
      violations_.push_back({entry_key, absl::StrCat(entry_key, " is ", TomlTypeText(entry), "; give ", wanted)});
    }
  }

  static bool IsInteger(const FieldDescriptor& field) { return field.cpp_type() == FieldDescriptor::CPPTYPE_INT64; }

  static bool IsNumber(const FieldDescriptor& field) { return field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE; }

  static bool AddEntry(const Toml& entry, const FieldDescriptor& field, Message* out) {
    if (IsInteger(field) && entry.is_integer()) {
      out->GetReflection()->AddInt64(out, &field, entry.as_integer());
    } else if (IsNumber(field) && (entry.is_floating() || entry.is_integer())) {
      const double value = entry.is_integer() ? static_cast<double>(entry.as_integer()) : entry.as_floating();
      out->GetReflection()->AddDouble(out, &field, value);
    } else if (!IsInteger(field) && !IsNumber(field) && entry.is_string()) {
      out->GetReflection()->AddString(out, &field, entry.as_string().str);
    } else {
      return false;
    }
    return true;
  }

  void AddWrongType(const Toml& value, const std::string& key, const FieldDescriptor& field) {
    violations_.push_back({key, absl::StrCat(key, " is ", TomlTypeText(value), "; give ", WantedText(field))});
  }

  static bool SetScalar(const Toml& value, const FieldDescriptor& field, Message* out) {
    const auto& reflection = *out->GetReflection();
    const FieldDescriptor::CppType type = field.cpp_type();
    if (type == FieldDescriptor::CPPTYPE_INT64 && value.is_integer()) {
      reflection.SetInt64(out, &field, value.as_integer());
    } else if (type == FieldDescriptor::CPPTYPE_DOUBLE && value.is_integer()) {
      reflection.SetDouble(out, &field, static_cast<double>(value.as_integer()));
    } else if (type == FieldDescriptor::CPPTYPE_DOUBLE && value.is_floating()) {
      reflection.SetDouble(out, &field, value.as_floating());
    } else if (type == FieldDescriptor::CPPTYPE_BOOL && value.is_boolean()) {
      reflection.SetBool(out, &field, value.as_boolean());
    } else if (type == FieldDescriptor::CPPTYPE_STRING && value.is_string()) {
      reflection.SetString(out, &field, value.as_string().str);
    } else {
      return false;
    }
    return true;
  }

  std::map<std::string, int64_t> lines_;  // dotted key -> line, 1-based
  ConfigViolations violations_;
};

// The first of several errors, and how many there are: a status travels in one line of a log and in a gRPC header.
absl::Status FirstOf(const std::vector<RunFileError>& errors, absl::string_view filename, absl::string_view remedy) {
  if (errors.empty()) return absl::OkStatus();
  const std::string first = RunFileErrorText(errors.front(), filename);
  if (errors.size() == 1) return absl::InvalidArgumentError(first);
  return absl::InvalidArgumentError(absl::StrCat(first, " (and ", errors.size() - 1, " more", remedy, ")"));
}

// The same of a message, which has no lines.
absl::Status FirstOf(ConfigViolations violations) {
  std::vector<RunFileError> errors;
  for (ConfigViolation& violation : violations) errors.push_back({violation.key, 0, std::move(violation.text)});
  return FirstOf(errors, "run config", "");
}

// TOML is UTF-8. toml11 3.7 relies on it: where a literal string is not, its error message reads outside of the text.
std::optional<RunFileError> CheckUtf8(absl::string_view text) {
  const char* const bad = utf8::find_invalid(text.begin(), text.end());
  if (bad == text.end()) return std::nullopt;
  return RunFileError{
      "", 1 + std::count(text.begin(), bad, '\n'),
      absl::StrFormat("byte 0x%02x is not UTF-8; save the file in that encoding", static_cast<uint8_t>(*bad))};
}

// Whether both are entries of one array: "control.bits[0]" and "control.bits[2]".
bool IsSameArray(absl::string_view one, absl::string_view other) {
  const size_t bracket = one.find('[');
  return bracket != absl::string_view::npos && one.substr(0, bracket) == other.substr(0, other.find('[')) &&
         other.size() > bracket;
}

CheckedRun FromToml(const Toml& document) {
  CheckedRun run;
  TableReader reader;
  reader.Read(&document, "", &run.config);
  ConfigViolations violations = reader.violations();
  ConfigViolations of_values;
  CheckFields(run.config, "", &of_values);
  for (ConfigViolation& violation : of_values) {
    // A key that is missing or of the wrong type has a violation already, and no value. Where an entry of an array is
    // of the wrong type, the others are not numbered as in the file.
    const bool known = std::any_of(violations.begin(), violations.end(), [&](const ConfigViolation& other) {
      return IsWithin(violation.key, other.key) || IsSameArray(violation.key, other.key);
    });
    if (!known) violations.push_back(std::move(violation));
  }
  CheckAcrossFields(run.config, &violations);
  CheckNewRun(run.config, &violations);
  for (const ConfigViolation& violation : violations) {
    run.errors.push_back({violation.key, reader.LineOf(violation.key), violation.text});
  }
  run.name_line = reader.LineOf("name");
  return run;
}

// Gives every field that came after `revision` its default. Defaults obey the schema.
void FillLaterFields(int64_t revision, const std::string& prefix, Message* message) {
  TableReader reader;
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message->GetDescriptor()->field(i);
    const std::string key = JoinKey(prefix, field.name());
    if (field.message_type() != nullptr) {
      FillLaterFields(revision, key, message->GetReflection()->MutableMessage(message, &field));
    } else if (RuleOf(field).since() > revision) {
      reader.SetDefault(key, field, message);
    }
  }
}

}  // namespace

std::string RunFileErrorText(const RunFileError& error, absl::string_view filename) {
  return error.line > 0 ? absl::StrCat(filename, ":", error.line, ": ", error.reason)
                        : absl::StrCat(filename, ": ", error.reason);
}

CheckedRun CheckRunText(absl::string_view text, absl::string_view filename) {
  if (std::optional<RunFileError> error = CheckUtf8(text)) return {{}, {*std::move(error)}};
  try {
    std::istringstream stream{std::string(text)};
    return FromToml(toml::parse<toml::discard_comments, std::map, std::vector>(stream, std::string(filename)));
  } catch (const toml::exception& error) {
    return {{}, {{"", static_cast<int64_t>(error.location().line()), TomlSyntaxText(error.what())}}};
  } catch (const std::exception& error) {
    return {{}, {{"", 0, absl::StrCat("not TOML: ", error.what())}}};
  }
}

absl::StatusOr<CheckedRun> CheckRunFile(const std::string& path) {
  TERSE_ASSIGN_OR_RETURN(const std::string text, PosixFiles().Read(path, kMaxRunFileBytes));
  return CheckRunText(text, path);
}

absl::StatusOr<v1::RunConfig> ParseRunConfig(absl::string_view text, absl::string_view filename) {
  CheckedRun run = CheckRunText(text, filename);
  TERSE_RETURN_IF_ERROR(
      FirstOf(run.errors, filename, absl::StrCat("; `tersectl run validate ", filename, "` lists them all")));
  return std::move(run.config);
}

absl::StatusOr<v1::RunConfig> LoadRunConfig(const std::string& path) {
  TERSE_ASSIGN_OR_RETURN(const std::string text, PosixFiles().Read(path, kMaxRunFileBytes));
  return ParseRunConfig(text, path);
}

v1::RunConfig WithLaterDefaults(v1::RunConfig config) {
  // The revision shows in the fields that are set: each revision brought one that every later configuration has.
  const int64_t revision = !config.has_clients()               ? 0
                           : config.train().loss().empty()     ? 1
                           : !config.has_server()              ? 2
                           : !config.has_control()             ? 3
                           : config.codec().counts().empty()   ? 4
                           : !config.has_aggregation()         ? 5
                           : !config.policy().has_norm_ratio() ? 6
                           : !config.has_ledger()              ? 7
                                                               : 8;
  if (revision < 8) FillLaterFields(revision, "", &config);
  // A run goes on with the rule that it began with, which was the average before there was a choice.
  if (revision < 6) config.mutable_aggregation()->set_rule("mean");
  return config;
}

absl::Status ValidateRunConfig(const v1::RunConfig& config) {
  ConfigViolations violations;
  CheckFields(config, "", &violations);
  CheckAcrossFields(config, &violations);
  return FirstOf(std::move(violations));
}

absl::Status ValidateNewRun(const v1::RunConfig& config) {
  ConfigViolations violations;
  CheckFields(config, "", &violations);
  CheckAcrossFields(config, &violations);
  CheckNewRun(config, &violations);
  return FirstOf(std::move(violations));
}

}  // namespace terse
