#include "compression/codec_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compression/dense.h"
#include "compression/sbc.h"

namespace terse {
namespace {

struct Row {
  const char* name;
  absl::StatusOr<std::unique_ptr<const Codec>> (*create)(const CodecSpec& spec, const Layout& layout);
};

constexpr Row kCodecs[] = {
    {"sbc", SbcCodec::Create},
    {"dense", DenseCodec::Create},
};

}  // namespace

std::vector<std::string> CodecNames() {
  std::vector<std::string> names;
  for (const Row& row : kCodecs) names.push_back(row.name);
  return names;
}

absl::StatusOr<std::unique_ptr<const Codec>> MakeCodec(const CodecSpec& spec, const Layout& layout) {
  for (const Row& row : kCodecs) {
    if (spec.name == row.name) return row.create(spec, layout);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("codec.name is '", spec.name, "'; known codecs are ", absl::StrJoin(CodecNames(), ", ")));
}

}  // namespace terse
