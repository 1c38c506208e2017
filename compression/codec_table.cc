#include "compression/codec_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compression/adacomp.h"
#include "compression/buffer_tail_codec.h"
#include "compression/dense.h"
#include "compression/dgc.h"
#include "compression/ef_signsgd.h"
#include "compression/grouped_codec.h"
#include "compression/half_precision.h"
#include "compression/low_precision.h"
#include "compression/low_precision_sparse.h"
#include "compression/mcgq.h"
#include "compression/one_bit.h"
#include "compression/qsgd.h"
#include "compression/random_sparse.h"
#include "compression/sbc.h"
#include "compression/signsgd.h"
#include "compression/sparseloco.h"
#include "compression/strom.h"
#include "compression/terngrad.h"
#include "compression/top_k.h"
#include "core/status.h"

namespace terse {
namespace {

struct Row {
  const char* name;
  absl::StatusOr<std::unique_ptr<const Codec>> (*create)(const CodecSpec& spec, const Layout& layout);
  const char* feedback;  // row of feedback_table that the codec's paper uses
};

constexpr Row kCodecs[] = {
    {"sbc", SbcCodec::Create, "error_feedback"},
    {"stc", SbcCodec::CreateStc, "error_feedback"},
    {"sbc_or_stc", SbcCodec::CreateEither, "error_feedback"},
    {"top_k", TopKCodec::Create, "error_feedback"},
    {"dgc", DgcCodec::Create, "momentum_correction"},
    {"sparseloco", SparseLoCoCodec::Create, "error_feedback"},
    {"strom", StromCodec::Create, "error_feedback"},
    {"adacomp", AdaCompCodec::Create, "error_feedback"},
    {"random_sparse", RandomSparseCodec::Create, "error_feedback"},
    {"mcgq", CreateMcgq, "accumulation"},
    {"low_precision_sparse", LowPrecisionSparseCodec::Create, "none"},
    {"qsgd", QsgdCodec::Create, "none"},
    {"terngrad", TernGradCodec::Create, "none"},
    {"one_bit", OneBitCodec::Create, "error_feedback"},
    {"signsgd", SignSgdCodec::Create, "none"},
    {"signum", SignSgdCodec::Create, "momentum"},
    {"ef_signsgd", EfSignSgdCodec::Create, "error_feedback"},
    {"low_precision", LowPrecisionCodec::Create, "none"},
    {"fp16", HalfPrecisionCodec::CreateFp16, "error_feedback"},
    {"bf16", HalfPrecisionCodec::CreateBf16, "error_feedback"},
    {"dense", DenseCodec::Create, "error_feedback"},
};

absl::StatusOr<const Row*> FindRow(absl::string_view name) {
  for (const Row& row : kCodecs) {
    if (name == row.name) return &row;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("codec.name is '", name, "'; known codecs are ", absl::StrJoin(CodecNames(), ", ")));
}

}  // namespace

std::vector<std::string> CodecNames() {
  std::vector<std::string> names;
  for (const Row& row : kCodecs) names.push_back(row.name);
  return names;
}

absl::StatusOr<std::unique_ptr<const Codec>> MakeCodec(const CodecSpec& spec, const Layout& layout) {
  TERSE_ASSIGN_OR_RETURN(const Row* row, FindRow(spec.name));
  if (layout.parameters() == layout.size()) return GroupedCodec::Create(spec, layout, row->create);
  TERSE_ASSIGN_OR_RETURN(auto parameters, GroupedCodec::Create(spec, layout.WithoutBuffers(), row->create));
  return std::make_unique<const BufferTailCodec>(layout, std::move(parameters));
}

absl::StatusOr<std::string> DefaultFeedback(const CodecSpec& spec) {
  TERSE_ASSIGN_OR_RETURN(const Row* row, FindRow(spec.name));
  return std::string(row->feedback);
}

}  // namespace terse
