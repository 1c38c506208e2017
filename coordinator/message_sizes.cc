#include "coordinator/message_sizes.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/server_step.h"
#include "core/status.h"
#include "storage/run_store.h"

namespace terse {
namespace {

constexpr char kFewer[] = "lower rounds.fraction or rounds.clients, or use a codec that sends less";

absl::Status TooLarge(const std::string& message, int64_t bytes, const std::string& remedy) {
  return absl::InvalidArgumentError(absl::StrCat(
      message, " may have ", bytes, " bytes, and the store holds messages of ", kMaxStoredBytes, " at most; ", remedy));
}

}  // namespace

absl::Status CheckMessageSizes(const RunConfig& config, const DownstreamCodecs& codecs) {
  const int64_t updates = config.rounds.buffered ? config.rounds.clients : config.rounds.cohort;
  const int64_t downstream = MaxBytesOf(config.downstream, codecs, updates);
  if (downstream > kMaxStoredBytes) {
    return TooLarge("the downstream message of a round", downstream,
                    config.downstream == DownstreamMode::kForward
                        ? absl::StrCat("use codec.downstream = 'auto', or ", kFewer)
                        : "use a codec for codec.downstream that sends less");
  }
  const int64_t kept = MaxBytesOf(DownstreamMode::kForward, codecs, updates);
  if (kept <= kMaxStoredBytes) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<ServerStep> server, ServerStep::Make(config, codecs));
  if (!server->has_state()) return absl::OkStatus();
  return TooLarge("what a server with a state keeps of a round's updates", kept, kFewer);
}

}  // namespace terse
