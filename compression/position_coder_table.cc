#include "compression/position_coder_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compression/auto_coder.h"
#include "compression/chunk12.h"
#include "compression/elias.h"
#include "compression/gap_class.h"
#include "compression/golomb.h"
#include "compression/rice.h"
#include "compression/run_length.h"
#include "core/run_config.h"

namespace terse {
namespace {

constexpr const PositionCoder& (*kCoders[])() = {
    RiceCoder,      GolombCoder,  GapClassCoder, EliasGammaCoder, EliasDeltaCoder,
    RunLengthCoder, Fixed16Coder, Chunk12Coder,  AutoCoder,
};

}  // namespace

std::vector<std::string> PositionCoderNames() {
  std::vector<std::string> names;
  for (const auto& coder : kCoders) names.emplace_back(coder().name());
  return names;
}

absl::StatusOr<const PositionCoder*> FindPositionCoder(absl::string_view name) {
  if (name == kSharedPositions) return &RiceCoder();
  for (const auto& coder : kCoders) {
    if (coder().name() == name) return &coder();
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no position coder '", name, "'; known coders are ",
                                                 absl::StrJoin(PositionCoderNames(), ", ")));
}

std::vector<PositionCost> PositionCosts(absl::Span<const uint32_t> positions, int64_t size) {
  std::vector<PositionCost> costs;
  for (const auto& coder : kCoders) {
    costs.push_back({std::string(coder().name()),
                     static_cast<double>(coder().Bits(positions, size)) / static_cast<double>(positions.size())});
  }
  return costs;
}

}  // namespace terse
