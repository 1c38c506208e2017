// The reference of run files: every key of terse/v1/run_config.proto with its type, default, range and meaning. All of
// it comes from the proto file, whose comments the build embeds. Thread-safe.
#ifndef TERSE_PROTO_RUN_CONFIG_REFERENCE_H_
#define TERSE_PROTO_RUN_CONFIG_REFERENCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace terse {

// One key of a run file, and what the file may say about it.
struct RunConfigKey {
  std::string key;            // "train.local_steps"
  std::string type;           // "integer", "number", "string", "true or false" or "array of strings"
  std::string default_value;  // TOML; "required" when there is none
  std::string allowed;        // "1 to 1000000"; may be empty
  std::string description;    // the comment of the proto file, in one line
};

// Returns every key, in the order of the proto.
std::vector<RunConfigKey> RunConfigKeys();

// Returns the key of that name, or the keys of the table of that name ("train", also "[train]") and of the tables in
// it. NOT_FOUND, with the names that there are, for anything else.
absl::StatusOr<std::vector<RunConfigKey>> FindRunConfigKeys(absl::string_view name);

// Returns keys as text for a terminal: a line with columns for each, and its description below.
std::string RunConfigReference(const std::vector<RunConfigKey>& keys);

// Returns the whole reference in Markdown, with a section for every table: docs/RUN_FILE.md.
std::string RunConfigMarkdown();

// The serialized google.protobuf.FileDescriptorSet of run_config.proto and what it imports, with comments.
absl::string_view RunConfigSource();

}  // namespace terse

#endif  // TERSE_PROTO_RUN_CONFIG_REFERENCE_H_
