#include "compression/feedback_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compression/accumulation.h"
#include "compression/adaptive_decay.h"
#include "compression/codec_table.h"
#include "compression/dynamic_sampling.h"
#include "compression/error_feedback.h"
#include "compression/mcgq.h"
#include "compression/momentum_correction.h"
#include "compression/momentum_feedback.h"
#include "compression/no_feedback.h"
#include "core/status.h"

namespace terse {
namespace {

using Schedule = std::unique_ptr<RateSchedule>;

std::unique_ptr<Feedback> NewErrorFeedback(const CodecSpec& spec, const Codec* codec, Schedule schedule) {
  return std::make_unique<ErrorFeedback>(codec, spec.decay, std::move(schedule));
}

std::unique_ptr<Feedback> NewAdaptiveDecay(const CodecSpec&, const Codec* codec, Schedule schedule) {
  return std::make_unique<AdaptiveDecay>(codec, std::move(schedule));
}

std::unique_ptr<Feedback> NewMomentum(const CodecSpec& spec, const Codec* codec, Schedule schedule) {
  return std::make_unique<MomentumFeedback>(codec, spec.momentum, std::move(schedule));
}

std::unique_ptr<Feedback> NewMomentumCorrection(const CodecSpec& spec, const Codec* codec, Schedule schedule) {
  return std::make_unique<MomentumCorrection>(codec, spec.momentum, spec.clip, std::move(schedule));
}

std::unique_ptr<Feedback> NewAccumulation(const CodecSpec& spec, const Codec* codec, Schedule schedule) {
  return std::make_unique<Accumulation>(codec, std::move(schedule));
}

std::unique_ptr<Feedback> NewNone(const CodecSpec& spec, const Codec* codec, Schedule schedule) {
  return std::make_unique<NoFeedback>(codec, std::move(schedule));
}

std::unique_ptr<Feedback> NewDiscard(const CodecSpec& spec, const Codec* codec, Schedule schedule) {
  return std::make_unique<Discard>(codec, std::move(schedule));
}

struct Row {
  const char* name;
  std::unique_ptr<Feedback> (*create)(const CodecSpec& spec, const Codec* codec, Schedule schedule);
};

constexpr Row kFeedbacks[] = {
    {"error_feedback", NewErrorFeedback},
    {"adaptive_decay", NewAdaptiveDecay},
    {"momentum", NewMomentum},
    {"momentum_correction", NewMomentumCorrection},
    {"accumulation", NewAccumulation},
    {"none", NewNone},
    {"discard", NewDiscard},
};

// The schedule that the settings ask for, or null.
Schedule NewSchedule(const CodecSpec& spec, const Codec& codec) {
  if (spec.name == "dgc" && spec.warmup_rounds > 0) {
    return std::make_unique<WarmUp>(codec.layout(), spec.density, spec.warmup_rounds);
  }
  if (spec.name == "mcgq" && spec.sampling_step > 0) {
    return std::make_unique<DynamicSampling>(codec.layout(), spec.samples, spec.sampling_step);
  }
  return nullptr;
}

absl::Status CheckSettings(const CodecSpec& spec) {
  if (!(spec.decay >= 0 && spec.decay <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("codec.decay is ", spec.decay, "; it must be from 0 to 1"));
  }
  if (!(spec.momentum >= 0 && spec.momentum < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec.momentum is ", spec.momentum, "; it must be from 0 to below 1"));
  }
  if (!(spec.clip >= 0)) {
    return absl::InvalidArgumentError(absl::StrCat("codec.clip is ", spec.clip, "; it must be 0 (none) or positive"));
  }
  if (!(spec.sampling_step >= 0 && spec.sampling_step <= kMostSamples)) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec.sampling_step is ", spec.sampling_step, "; it must be 0 (off) or positive, such as 0.001"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> FeedbackNames() {
  std::vector<std::string> names;
  for (const Row& row : kFeedbacks) names.push_back(row.name);
  return names;
}

absl::StatusOr<std::string> FeedbackOf(const CodecSpec& spec, const Codec& codec) {
  if (spec.feedback != "own") return spec.feedback;
  TERSE_ASSIGN_OR_RETURN(std::string name, DefaultFeedback(spec));
  // A codec that is unbiased because it amplifies what it sends would amplify its own error.
  const CodecTraits traits = codec.traits();
  if (name == "error_feedback" && traits.unbiased && !traits.lossless) name = "none";
  return name;
}

absl::StatusOr<std::unique_ptr<Feedback>> MakeFeedback(const CodecSpec& spec, const Codec* codec) {
  TERSE_RETURN_IF_ERROR(CheckSettings(spec));
  TERSE_ASSIGN_OR_RETURN(const std::string name, FeedbackOf(spec, *codec));
  for (const Row& row : kFeedbacks) {
    if (name == row.name) return row.create(spec, codec, NewSchedule(spec, *codec));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("codec.feedback is '", name, "'; known feedbacks are ", absl::StrJoin(FeedbackNames(), ", ")));
}

}  // namespace terse
