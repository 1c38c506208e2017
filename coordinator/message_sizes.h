// Bounds the size of a run's messages by what its store can hold.
#ifndef TERSE_COORDINATOR_MESSAGE_SIZES_H_
#define TERSE_COORDINATOR_MESSAGE_SIZES_H_

#include "absl/status/status.h"
#include "compression/downstream.h"
#include "core/run_config.h"

namespace terse {

// INVALID_ARGUMENT, with what to change, when a round may make a message that the store cannot hold (kMaxStoredBytes,
// storage/run_store.h): the downstream message, or the updates that a server with a state keeps to repeat its step.
absl::Status CheckMessageSizes(const RunConfig& config, const DownstreamCodecs& codecs);

}  // namespace terse

#endif  // TERSE_COORDINATOR_MESSAGE_SIZES_H_
