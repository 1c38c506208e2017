// Layouts and updates that the compression tests share.
#ifndef TERSE_TESTS_COMPRESSION_UPDATES_H_
#define TERSE_TESTS_COMPRESSION_UPDATES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compression/codec_table.h"
#include "core/layout.h"
#include "core/random.h"

namespace terse {

// Tensors t0, t1, ... of these sizes.
inline Layout MakeLayout(const std::vector<int64_t>& sizes) {
  std::vector<Layout::Entry> entries;
  for (int64_t size : sizes) entries.push_back({absl::StrCat("t", entries.size()), {size}});
  return *Layout::Create(entries);
}

inline const std::vector<int64_t>& LeNet5Sizes() {
  static const auto* const sizes = new std::vector<int64_t>{500, 20, 25000, 50, 400000, 500, 5000, 10};
  return *sizes;
}

inline std::unique_ptr<const Codec> NewCodec(const std::string& name, double density, const std::string& precision,
                                             const Layout& layout) {
  return *MakeCodec({name, density, precision}, layout);
}

// About normal: the sum of four uniform numbers, standard deviation 0.58 * scale.
inline std::vector<float> RandomUpdate(int64_t size, Random* random, double scale = 1) {
  std::vector<float> update(size);
  for (float& value : update) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += random->Uniform(-0.5, 0.5);
    value = static_cast<float>(sum * scale);
  }
  return update;
}

inline std::vector<float> Decode(const Codec& codec, const std::string& message) {
  std::vector<float> values(codec.layout().size());
  const absl::Status status = codec.AddDecoded(message, 1.0f, absl::MakeSpan(values));
  return status.ok() ? values : std::vector<float>();
}

}  // namespace terse

#endif  // TERSE_TESTS_COMPRESSION_UPDATES_H_
