// The codings that a controller chooses from, in both directions. Both ends make the same list from the configuration,
// and a message names its entry by number (compression/choice_codec.h).
#ifndef TERSE_CORE_CODEC_CHOICES_H_
#define TERSE_CORE_CODEC_CHOICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "core/run_config.h"

namespace terse {

// Number of stages of control.name = 'schedule'; 1 when nothing changes.
int64_t StagesOf(const ControlSpec& control);

// Returns the codings of the clients' updates: config.codec alone where the controller leaves the coding as it is, else
//   schedule  one a stage, with its density and its bits
//   mqgrad    2 to 8 bits
//   joint     one a density
// In a run with epochs (core/epochs.h) they are kFullGradientChoice, which is dense, and kGradientStepChoice,
// config.codec.
std::vector<CodecSpec> UpdateChoices(const RunConfig& config);

// Returns the codings of the model's steps (DownstreamMode::kCoded): as UpdateChoices for mqgrad; 2 bits to
// config.downstream_codec's where server.precision_loss chooses them; and a single entry otherwise.
std::vector<CodecSpec> DownstreamChoices(const RunConfig& config);

// The bits of MQGrad's choices: choice 0 has the fewest.
inline constexpr int64_t kMqgradFewestBits = 2;
inline constexpr int64_t kMqgradMostBits = 8;

// The most local steps that joint chooses from.
inline constexpr int64_t kMostJointSteps = 16;

// Returns the bits of an element's value beside its position, of codecs that send the share `density` of the elements;
// nullopt for all others.
absl::optional<int64_t> SentValueBits(const CodecSpec& codec);

// The names of the codecs that have a density.
std::vector<std::string> CodecsWithDensity();

// The codings of the updates of a run with epochs, as indices into UpdateChoices.
inline constexpr int64_t kFullGradientChoice = 0;
inline constexpr int64_t kGradientStepChoice = 1;

// The fewest bits of a number of the low-precision representation: choice 0 where server.precision_loss chooses.
inline constexpr int64_t kLowPrecisionFewestBits = 2;

// The most entries of a list: one byte of a message names one.
inline constexpr int64_t kMostCodecChoices = 256;

}  // namespace terse

#endif  // TERSE_CORE_CODEC_CHOICES_H_
