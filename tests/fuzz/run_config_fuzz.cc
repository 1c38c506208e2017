#include <google/protobuf/stubs/logging.h>

#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "compression/codec_table.h"
#include "compression/feedback_table.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"
#include "tests/compression/updates.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace terse {
namespace {

void RequireInvalid(const absl::Status& status, absl::string_view place) {
  Require(status.code() == absl::StatusCode::kInvalidArgument, "a bad configuration is an INVALID_ARGUMENT");
  Require(absl::StartsWith(status.message(), place), "the status says where");
  Require(status.message().size() > place.size() + 2, "the status says what is wrong");
}

// Checks the relations that the engines rely on.
void CheckRounds(const RoundPolicy& rounds) {
  Require(rounds.count >= 1 && rounds.clients >= 1, "there are rounds and clients");
  Require(rounds.cohort >= 1 && rounds.cohort <= rounds.clients, "a cohort is part of the fleet");
  Require(rounds.invited >= rounds.cohort, "everyone in the cohort is invited");
  Require(rounds.quorum >= 1 && rounds.quorum <= rounds.cohort, "a quorum is part of the cohort");
  Require(std::isfinite(rounds.deadline_seconds) && rounds.deadline_seconds > 0, "a round has a deadline");
  Require(std::isfinite(rounds.grace_seconds) && rounds.grace_seconds >= 0, "grace is a time");
}

// A configuration that was accepted: it converts, and its codec is made or refused with a reason.
void CheckAccepted(const v1::RunConfig& config) {
  static const Layout& layout = *new Layout(MakeLayout({3, 40, 9}));
  Require(ValidateRunConfig(config).ok(), "an accepted configuration is valid");
  const absl::StatusOr<RunConfig> run = ToCore(config);
  Require(run.ok(), "a valid configuration converts");
  Require(!run->name.empty() && run->train.local_steps >= 1, "a run has a name and work");
  Require(run->checkpoint_every >= 1 && run->checkpoint_keep >= 1 && run->evaluate_every >= 1, "periods are positive");
  CheckRounds(run->rounds);
  const auto codec = MakeCodec(run->codec, layout);
  if (!codec.ok()) return Require(absl::IsInvalidArgument(codec.status()), "settings that do not fit are named");
  const auto feedback = MakeFeedback(run->codec, codec->get());
  Require(feedback.ok() || absl::IsInvalidArgument(feedback.status()), "a feedback that does not fit is named");
}

}  // namespace

void FuzzRunConfig(const char*, const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<v1::RunConfig> config = ParseRunConfig(text, "run.toml");
  config.ok() ? CheckAccepted(*config) : RequireInvalid(config.status(), "run.toml:");
}

void FuzzStoredRunConfig(const char*, const uint8_t* data, size_t size) {
  static const auto before = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(before);
  static auto& config = *new v1::RunConfig;
  if (!config.ParseFromArray(data, static_cast<int>(size))) return;
  const absl::StatusOr<RunConfig> run = ToCore(config);
  run.ok() ? CheckAccepted(WithLaterDefaults(config)) : RequireInvalid(run.status(), "run config: ");
}

}  // namespace terse
