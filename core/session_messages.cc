#include "core/session_messages.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace terse {

Id128 MakeUpdateId(Id128 lineage, int64_t round, int64_t client_index, Id128 predecessor, Id128 message_hash) {
  // The message is hashed first, so that the fields around it have a fixed length and cannot run into it.
  return HashBytes(
      absl::StrCat(lineage.ToBytes(), predecessor.ToBytes(), message_hash.ToBytes(), round, "/", client_index));
}

Id128 MakeUpdateId(Id128 lineage, int64_t round, int64_t client_index, Id128 predecessor, absl::string_view message) {
  return MakeUpdateId(lineage, round, client_index, predecessor, HashBytes(message));
}

absl::Status CheckClientName(absl::string_view name) {
  bool good = !name.empty() && name.size() <= 64 && name[0] != '.';
  for (char c : name)
    good = good && (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.');
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("client name '", absl::CHexEscape(name.substr(0, 64)),
                                                 "' is not usable: 1 to 64 letters, digits, '-', '_' or '.', not "
                                                 "starting with '.'"));
}

bool IsDeviceName(absl::string_view name) {
  return !name.empty() && name.size() <= 64 && absl::c_all_of(name, absl::ascii_isprint);
}

}  // namespace terse
