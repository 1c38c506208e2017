// Run files: TOML with the tables and keys of terse/v1/run_config.proto. This file holds no key, default or bound: all
// of them come from the proto's descriptor.
#ifndef TERSE_PROTO_RUN_CONFIG_LOADER_H_
#define TERSE_PROTO_RUN_CONFIG_LOADER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "terse/v1/run_config.pb.h"

namespace terse {

// Reads a run from TOML text. Absent keys, and keys of absent tables, take their defaults; an integer is accepted where
// a number is wanted. INVALID_ARGUMENT "FILENAME:LINE: ..." for text that is not TOML, a key given twice, an unknown
// key (with the known ones), a missing key without a default, a wrong type, a value out of range and for values that
// contradict each other. Thread-safe, like everything here.
absl::StatusOr<v1::RunConfig> ParseRunConfig(absl::string_view text, absl::string_view filename);

// Reads a run likewise from a file of at most 1 MiB. Also NOT_FOUND, RESOURCE_EXHAUSTED and what else reading a file
// may return.
absl::StatusOr<v1::RunConfig> LoadRunConfig(const std::string& path);

// A configuration that an older program stored or sent, with the defaults of the fields that came after it; any other
// is returned as it is. The tables [clients] and [server] and the key train.loss tell: every configuration has had them
// since the fields of their revision exist.
v1::RunConfig WithLaterDefaults(v1::RunConfig config);

// Applies the same rules to a message that came off the wire, where every field counts as given.
// INVALID_ARGUMENT "run config: ..." names the field, its value and what is allowed.
absl::Status ValidateRunConfig(const v1::RunConfig& config);

// One key of a run file, and what the file may say about it.
struct RunConfigKey {
  std::string key;            // "train.local_steps"
  std::string type;           // "integer", "number", "string", "true or false" or "array of strings"
  std::string default_value;  // TOML; "required" when there is none
  std::string allowed;        // "1 to 1000000"; may be empty
};

// Returns every key, in the order of the proto.
std::vector<RunConfigKey> RunConfigKeys();

// Returns the same keys as a text table.
std::string RunConfigReference();

}  // namespace terse

#endif  // TERSE_PROTO_RUN_CONFIG_LOADER_H_
