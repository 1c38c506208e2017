#include "proto/run_config_reference.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <map>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/run_config_rules.h"

namespace terse {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;

constexpr size_t kTextWidth = 110;
constexpr absl::string_view kIndent = "    ";

// Knows the comments of the proto file, which the descriptors of generated code do not have.
class Comments {
 public:
  Comments() {
    google::protobuf::FileDescriptorSet files;
    const absl::string_view source = RunConfigSource();
    if (!files.ParseFromArray(source.data(), static_cast<int>(source.size()))) return;
    for (const auto& file : files.file()) pool_.BuildFile(file);
  }

  std::string Of(const FieldDescriptor& field) const { return Text(pool_.FindFieldByName(field.full_name())); }
  std::string Of(const Descriptor& message) const { return Text(pool_.FindMessageTypeByName(message.full_name())); }

 private:
  template <typename T>
  static std::string Text(const T* descriptor) {
    google::protobuf::SourceLocation location;
    if (descriptor == nullptr || !descriptor->GetSourceLocation(&location)) return "";
    std::string text = location.leading_comments;
    absl::RemoveExtraAsciiWhitespace(&text);
    return text;
  }

  DescriptorPool pool_;
};

const Comments& TheComments() {
  static const auto& comments = *new Comments;
  return comments;
}

RunConfigKey KeyOf(const FieldDescriptor& field, const std::string& key) {
  const v1::FieldRule& rule = RuleOf(field);
  return {key, TypeText(field), rule.has_default_value() ? rule.default_value() : "required", AllowedText(field),
          TheComments().Of(field)};
}

void AppendKeys(const Descriptor& descriptor, const std::string& prefix, std::vector<RunConfigKey>* keys) {
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    const std::string key = JoinKey(prefix, field.name());
    if (field.message_type() != nullptr) {
      AppendKeys(*field.message_type(), key, keys);
    } else {
      keys->push_back(KeyOf(field, key));
    }
  }
}

// Breaks at spaces, where a line would become longer than `kTextWidth`.
std::string Wrapped(absl::string_view text) {
  std::string lines;
  size_t column = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const bool breaks = column == 0 || column + 1 + word.size() > kTextWidth;
    if (breaks) {
      absl::StrAppend(&lines, column == 0 ? "" : "\n", kIndent, word);
      column = kIndent.size() + word.size();
    } else {
      absl::StrAppend(&lines, " ", word);
      column += 1 + word.size();
    }
  }
  return lines.empty() ? lines : absl::StrCat(lines, "\n");
}

// Text as it stands in the cell of a Markdown table.
std::string Cell(absl::string_view text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

void AppendTable(const Descriptor& descriptor, const std::string& prefix, std::string* text) {
  const std::string title = prefix.empty() ? "At the top" : absl::StrCat("[", prefix, "]");
  absl::StrAppend(text, "\n## ", title, "\n\n");
  if (const std::string about = TheComments().Of(descriptor); !prefix.empty() && !about.empty()) {
    absl::StrAppend(text, Cell(about), "\n\n");
  }
  absl::StrAppend(text, "| key | type | allowed | default | meaning |\n|---|---|---|---|---|\n");
  std::vector<const FieldDescriptor*> tables;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (field.message_type() != nullptr) {
      tables.push_back(&field);
      continue;
    }
    const RunConfigKey key = KeyOf(field, JoinKey(prefix, field.name()));
    const std::string value =
        key.default_value == "required" ? key.default_value : absl::StrCat("`", key.default_value, "`");
    absl::StrAppend(text, "| `", key.key, "` | ", key.type, " | ", Cell(key.allowed), " | ", value, " | ",
                    Cell(key.description), " |\n");
  }
  for (const FieldDescriptor* table : tables) {
    AppendTable(*table->message_type(), JoinKey(prefix, table->name()), text);
  }
}

}  // namespace

std::vector<RunConfigKey> RunConfigKeys() {
  std::vector<RunConfigKey> keys;
  AppendKeys(*v1::RunConfig::descriptor(), "", &keys);
  return keys;
}

absl::StatusOr<std::vector<RunConfigKey>> FindRunConfigKeys(absl::string_view name) {
  if (absl::ConsumePrefix(&name, "[")) absl::ConsumeSuffix(&name, "]");
  std::vector<RunConfigKey> found;
  std::vector<std::string> tables;
  for (RunConfigKey& key : RunConfigKeys()) {
    const size_t dot = key.key.find('.');
    if (dot != std::string::npos && (tables.empty() || tables.back() != key.key.substr(0, dot))) {
      tables.push_back(key.key.substr(0, dot));
    }
    if (IsWithin(key.key, name)) found.push_back(std::move(key));
  }
  if (!found.empty()) return found;
  return absl::NotFoundError(absl::StrCat("'", name, "' is neither a key nor a table of run files; tables: ",
                                          absl::StrJoin(tables, ", "), "; `tersectl config` shows every key"));
}

std::string RunConfigReference(const std::vector<RunConfigKey>& keys) {
  std::string text = absl::StrFormat("%-34s %-16s %-15s %s\n", "KEY", "TYPE", "DEFAULT", "ALLOWED");
  for (const RunConfigKey& key : keys) {
    const std::string row = absl::StrFormat("%-34s %-16s %-15s %s", key.key, key.type, key.default_value, key.allowed);
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(row), "\n", Wrapped(key.description));
  }
  return text;
}

std::string RunConfigMarkdown() {
  std::string text =
      "# Run files\n\n"
      "A run file is TOML and says what is trained and how. This is every key, as `tersectl config` shows them "
      "too. `tersectl run validate FILE` checks a file by itself; "
      "`terse-coordinator --check --run-file FILE --data DIR` checks it with the data and the built-in model as well. "
      "The text is that of `proto/terse/v1/run_config.proto`: "
      "`tersectl config --markdown` writes this document.\n";
  AppendTable(*v1::RunConfig::descriptor(), "", &text);
  return text;
}

}  // namespace terse
