// Run files: TOML with the tables and keys of terse/v1/run_config.proto. This file holds no key, default or bound: all
// of them come from the proto's descriptor.
#ifndef TERSE_PROTO_RUN_CONFIG_LOADER_H_
#define TERSE_PROTO_RUN_CONFIG_LOADER_H_

#include <cstdint>
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
// Where there are several errors, the status holds the first and the number of the others; CheckRunText has them all.
absl::StatusOr<v1::RunConfig> ParseRunConfig(absl::string_view text, absl::string_view filename);

// Reads a run likewise from a file of at most 1 MiB. Also NOT_FOUND, RESOURCE_EXHAUSTED and what else reading a file
// may return.
absl::StatusOr<v1::RunConfig> LoadRunConfig(const std::string& path);

// An error of a run file.
struct RunFileError {
  std::string key;     // dotted: "train.local_steps"; empty where the text is not TOML
  int64_t line = 0;    // 1-based, of the key or of the table that lacks it; 0 where there is none
  std::string reason;  // a sentence, with the remedy
};

// Returns "FILENAME:LINE: REASON", without the line where there is none.
std::string RunFileErrorText(const RunFileError& error, absl::string_view filename);

// A run that was read, and what is wrong with it. `config` is whole when there are no errors.
struct CheckedRun {
  v1::RunConfig config;
  std::vector<RunFileError> errors;
  int64_t name_line = 0;  // where the name stands; 0 where it is not given
};

// Reads a run as ParseRunConfig does, and goes on after an error: all errors of keys, types and values, and of the
// rules between keys that read no broken one. Where the text is not TOML, that is the only error.
CheckedRun CheckRunText(absl::string_view text, absl::string_view filename);

// Reads a file likewise. Returns what kept it from being read, as LoadRunConfig.
absl::StatusOr<CheckedRun> CheckRunFile(const std::string& path);

// A configuration that an older program stored or sent, with the defaults of the fields that came after it; any other
// is returned as it is. The tables [clients] and [server] and the key train.loss tell: every configuration has had them
// since the fields of their revision exist.
v1::RunConfig WithLaterDefaults(v1::RunConfig config);

// Applies the same rules to a message that came off the wire, where every field counts as given.
// INVALID_ARGUMENT "run config: ..." names the field, its value and what is allowed; of several broken rules it has the
// first and the number of the others.
absl::Status ValidateRunConfig(const v1::RunConfig& config);

// The same, and the rules for a run that is about to be made (CheckNewRun). Run files are read by these.
absl::Status ValidateNewRun(const v1::RunConfig& config);

}  // namespace terse

#endif  // TERSE_PROTO_RUN_CONFIG_LOADER_H_
