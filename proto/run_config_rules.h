// The rules of terse/v1/run_config.proto, read from its descriptor and its (rule) options: what a value may be, and
// whether a message obeys. No rule of a single field is written anywhere else.
#ifndef TERSE_PROTO_RUN_CONFIG_RULES_H_
#define TERSE_PROTO_RUN_CONFIG_RULES_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "terse/v1/run_config.pb.h"

namespace terse {

// A broken rule. `key` is the dotted path of the field ("train.local_steps"), `text` a sentence that starts with it.
struct ConfigViolation {
  std::string key;
  std::string text;
};

// The broken rules of one configuration, in the order in which they were found.
using ConfigViolations = std::vector<ConfigViolation>;

// A list that has this many takes no further entries of an array: a message off the wire may have millions of them.
inline constexpr size_t kMostViolations = 100;

// The rule that the proto file states for a field; an empty one where it states none.
const v1::FieldRule& RuleOf(const google::protobuf::FieldDescriptor& field);

// Joins a key: "train" and "local_steps" give "train.local_steps"; an empty prefix gives the field alone.
std::string JoinKey(absl::string_view prefix, absl::string_view field);

// Returns the key of entry `index` of an array: "clients.allow[0]".
std::string JoinIndex(absl::string_view key, int64_t index);

// Whether a key is `outer`, or a key in the table or an entry of the array of that name.
bool IsWithin(absl::string_view inner, absl::string_view outer);

// Returns the type of a field: "integer", "number", "string", "true or false", "table", "array of strings" or "array of
// integers".
std::string TypeText(const google::protobuf::FieldDescriptor& field);

// Returns the values that a field allows, without its type: "1 to 1000000", "above 0, at most 1", "'sbc' or 'dense'";
// may be empty.
std::string AllowedText(const google::protobuf::FieldDescriptor& field);

// Returns the shortest decimal form that reads back as the same double.
std::string NumberText(double value);

// Appends every field of `message`, in the order of declaration and depth first, whose value breaks its own rule. A
// table that is absent counts as one of zeros and empty strings.
void CheckFields(const google::protobuf::Message& message, absl::string_view prefix, ConfigViolations* violations);

// Appends every broken rule that concerns more than one field, or the form of names. A rule is skipped when
// `violations` already has a key that it reads, because it would judge a value that is about to change.
void CheckAcrossFields(const v1::RunConfig& config, ConfigViolations* violations);

// Appends likewise why a run that is about to be made could not end well: what CheckFit finds, and a target that no
// evaluation can reach. A run that is stored may be older than these rules, and goes on.
void CheckNewRun(const v1::RunConfig& config, ConfigViolations* violations);

// Whether a run may have this name, and the rule as text: "1 to 64 letters, ...".
bool IsRunName(absl::string_view name);
std::string RunNameForm();

// Returns fraction * count rounded up, for the decimal number that the run file gives: 0.07 of 100 are 7, although the
// double nearest to 0.07 is above it. `fraction` is not negative.
int64_t CeilOf(double fraction, int64_t count);

// Returns the number of updates that close a round: rounds.fraction of rounds.clients. At least 1 when both obey their
// rules.
int64_t CohortSize(const v1::Rounds& rounds);

}  // namespace terse

#endif  // TERSE_PROTO_RUN_CONFIG_RULES_H_
