// Layouts, settings and updates that the compression tests share.
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

// Tensors t0, t1, ... of these sizes, of which the last are buffers.
inline Layout MakeLayout(const std::vector<int64_t>& sizes, size_t buffers = 0) {
  std::vector<Layout::Entry> entries;
  for (int64_t size : sizes) {
    const bool buffer = entries.size() + buffers >= sizes.size();
    entries.push_back(
        {absl::StrCat("t", entries.size()), {size}, buffer ? TensorKind::kBuffer : TensorKind::kParameter});
  }
  return *Layout::Create(entries);
}

inline const std::vector<int64_t>& LeNet5Sizes() {
  static const auto* const sizes = new std::vector<int64_t>{500, 20, 25000, 50, 400000, 500, 5000, 10};
  return *sizes;
}

// The settings of a sparse codec.
inline CodecSpec SparseSpec(const std::string& name, double density, const std::string& precision = "fp32",
                            const std::string& positions = "rice") {
  CodecSpec spec;
  spec.name = name;
  spec.density = density;
  spec.mean_precision = precision;
  spec.positions = positions;
  return spec;
}

inline std::unique_ptr<const Codec> NewCodec(const std::string& name, double density, const std::string& precision,
                                             const Layout& layout) {
  return *MakeCodec(SparseSpec(name, density, precision), layout);
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

// One row of the codec table with settings of one kind, named for test output.
struct CodecCase {
  std::string name;
  CodecSpec spec;
  bool buffers = false;  // whether some tensors of the layouts are buffers
};

// Every row of the table with every kind of setting that changes its messages. A new codec is tested by being a row,
// and by a line here if it has settings of its own.
inline std::vector<CodecCase> AllCodecCases() {
  std::vector<CodecCase> cases;
  const auto add = [&cases](const std::string& name, const CodecSpec& spec) { cases.push_back({name, spec}); };
  for (const std::string& name : CodecNames()) {
    CodecSpec spec = SparseSpec(name, 0.05);
    add(name, spec);
    spec.bucket = 64;
    add(name + "_bucket", spec);
    spec.bucket = 0;
    spec.grouping = "merge_small";
    spec.merge_below = 40;
    add(name + "_merged", spec);
    spec.grouping = "global";
    add(name + "_global", spec);
  }
  for (const char* name : {"sbc", "stc", "sbc_or_stc", "top_k"}) {
    for (const double density : {0.001, 0.4, 1.0}) {
      for (const char* precision : {"fp32", "bf16"}) {
        add(absl::StrCat(name, "_", static_cast<int>(1000 * density), "_", precision),
            SparseSpec(name, density, precision));
      }
    }
  }
  for (const char* positions :
       {"auto", "golomb", "elias_gamma", "elias_delta", "run_length", "gap_class", "fixed16", "chunk12"}) {
    add(absl::StrCat("sbc_", positions), SparseSpec("sbc", 0.05, "bf16", positions));
    add(absl::StrCat("dgc_", positions), SparseSpec("dgc", 0.1, "fp32", positions));
  }
  for (const char* code : {"simple", "elias"}) {
    for (const int bits : {1, 2, 8}) {
      CodecSpec spec = SparseSpec("qsgd", 0.05);
      spec.code = code;
      spec.bits = bits;
      add(absl::StrCat("qsgd_", code, "_", bits), spec);
    }
  }
  for (const int bits : {1, 2, 8}) {
    CodecSpec spec = SparseSpec("sparseloco", 0.3, "fp32", "chunk12");
    spec.bits = bits;
    spec.bucket = 16;
    add(absl::StrCat("sparseloco_", bits), spec);
  }
  for (const int bits : {2, 8, 16}) {
    CodecSpec spec = SparseSpec("low_precision", 0.05);
    spec.bits = bits;
    add(absl::StrCat("low_precision_", bits), spec);
  }
  for (const double samples : {0.01, 1.0, 20.0}) {
    for (const char* code : {"simple", "positions"}) {
      CodecSpec spec = SparseSpec("mcgq", 0.05);
      spec.samples = samples;
      spec.code = code;
      add(absl::StrCat("mcgq_", code, "_", static_cast<int>(100 * samples)), spec);
    }
  }
  for (const double threshold : {1e-6, 0.5, 1e6}) {
    CodecSpec spec = SparseSpec("strom", 0.05);
    spec.threshold = threshold;
    add(absl::StrCat("strom_", cases.size()), spec);
  }
  CodecSpec unbiased = SparseSpec("random_sparse", 0.1);
  unbiased.code = "unbiased";
  add("random_sparse_unbiased", unbiased);
  CodecSpec clipped = SparseSpec("terngrad", 0.05);
  clipped.clip = 2.5;
  add("terngrad_clipped", clipped);
  return cases;
}

// Returns the same cases, and every row of the table with each grouping on layouts with buffers.
inline std::vector<CodecCase> AllCodecCasesAndBuffers() {
  std::vector<CodecCase> cases = AllCodecCases();
  for (const std::string& name : CodecNames()) {
    for (const char* grouping : {"per_tensor", "merge_small", "global"}) {
      CodecSpec spec = SparseSpec(name, 0.05);
      spec.grouping = grouping;
      spec.merge_below = 40;
      cases.push_back({absl::StrCat(name, "_", grouping, "_buffers"), spec, /*buffers=*/true});
    }
  }
  return cases;
}

}  // namespace terse

#endif  // TERSE_TESTS_COMPRESSION_UPDATES_H_
