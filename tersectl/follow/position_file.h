// A process notes down about a run, for a later one, where a place that keeps no positions itself has been told up to,
// and which runs it followed.
#ifndef TERSE_TERSECTL_FOLLOW_POSITION_FILE_H_
#define TERSE_TERSECTL_FOLLOW_POSITION_FILE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace terse {

// DIRECTORY/KIND-URL-LINEAGE.json, with the URL hashed, as it may be a secret. Not thread-safe.
class PositionFile {
 public:
  // `directory` must be there when Write is called. `lineage`: hexadecimal digits.
  PositionFile(const std::string& directory, const std::string& kind, const std::string& url,
               const std::string& lineage);

  // The lineages of the runs that have such a file.
  static absl::StatusOr<std::vector<std::string>> Lineages(const std::string& directory, const std::string& kind,
                                                           const std::string& url);

  // An empty object when there is no file; DATA_LOSS, saying what to do, when it is no JSON object.
  absl::StatusOr<nlohmann::ordered_json> Read() const;
  // Replaces the file atomically and durably.
  absl::Status Write(const nlohmann::ordered_json& position) const;
  absl::Status Remove() const;
  // Returns the DATA_LOSS of Read, for a reader who finds that the object is not as he has written it.
  absl::Status Damaged(const std::string& why) const;

 private:
  std::string path_;
};

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_POSITION_FILE_H_
