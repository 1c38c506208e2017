// The file that holds one vector of floats: a checkpoint of the coordinator, the state of its server, or a client's
// cached model. Byte by byte in storage/SCHEMA.md. Internal to storage/.
#ifndef TERSE_STORAGE_WEIGHTS_FILE_H_
#define TERSE_STORAGE_WEIGHTS_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/id128.h"

namespace terse {

// Magics of the kinds of file.
constexpr absl::string_view kCheckpointMagic = "TRSC";
constexpr absl::string_view kServerStateMagic = "TRSS";
constexpr absl::string_view kCachedModelMagic = "TRSW";

struct WeightsFile {
  int64_t version = 0;
  Id128 id;  // checkpoint and server state: the model's hash; cached model: the run's lineage
  std::vector<float> weights;
};

// The bytes of a file, in the order of its parts: a checkpoint of a large model is never copied to be written. The
// weights must outlive it.
class WeightsBytes {
 public:
  // `magic` has four bytes.
  WeightsBytes(absl::string_view magic, int64_t version, const Id128& id, absl::Span<const float> weights)
      : WeightsBytes(magic, version, id, absl::MakeConstSpan(&weights, 1)) {}
  // The numbers stand one span behind the other.
  WeightsBytes(absl::string_view magic, int64_t version, const Id128& id,
               absl::Span<const absl::Span<const float>> weights);
  std::vector<absl::string_view> parts() const;
  size_t size() const { return size_; }

 private:
  std::string header_;
  std::vector<absl::string_view> values_;
  std::string trailer_;
  size_t size_ = 0;
};

// The same, in one piece.
std::string SerializeWeights(absl::string_view magic, int64_t version, const Id128& id,
                             absl::Span<const float> weights);

// Bytes before the values.
constexpr size_t kWeightsHeaderBytes = 4 + 4 + 8 + 16 + 8;

// DATA_LOSS, with the reason, unless `header`, the first bytes of a file, announces a file of that kind with
// `file_bytes` bytes.
absl::Status CheckWeightsHeader(absl::string_view magic, absl::string_view header, uint64_t file_bytes);

// DATA_LOSS, with the reason, unless the bytes are a whole file of that kind. Memory is bounded by their length.
absl::StatusOr<WeightsFile> ParseWeights(absl::string_view magic, absl::string_view bytes);

}  // namespace terse

#endif  // TERSE_STORAGE_WEIGHTS_FILE_H_
