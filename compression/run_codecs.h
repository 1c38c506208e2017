// The codecs of a run's two directions, as both ends make them from its configuration.
#ifndef TERSE_COMPRESSION_RUN_CODECS_H_
#define TERSE_COMPRESSION_RUN_CODECS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "compression/codec.h"
#include "core/run_config.h"

namespace terse {

// Returns the codec of the clients' updates: config.codec's, or a ChoiceCodec where a controller chooses. Fails as
// MakeCodec (codec_table.h), and with INVALID_ARGUMENT where the updates are to be packed and the codec cannot
// (PackedLayout).
absl::StatusOr<std::unique_ptr<const Codec>> MakeUpdateCodec(const RunConfig& config, const Layout& layout);

// Returns the codec of the model's steps, made likewise from config.downstream_codec; null unless the mode is kCoded.
absl::StatusOr<std::unique_ptr<const Codec>> MakeDownstreamCodec(const RunConfig& config, const Layout& layout);

}  // namespace terse

#endif  // TERSE_COMPRESSION_RUN_CODECS_H_
