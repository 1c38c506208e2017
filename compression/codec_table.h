// The one table of codecs. Adding a codec is a file pair and a row in codec_table.cc.
#ifndef TERSE_COMPRESSION_CODEC_TABLE_H_
#define TERSE_COMPRESSION_CODEC_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compression/codec.h"
#include "core/run_config.h"

namespace terse {

// Names of all codecs, in table order.
std::vector<std::string> CodecNames();

// The codec of spec.name on the groups of spec.grouping, with a dense tail where the layout has buffers
// (buffer_tail_codec.h). INVALID_ARGUMENT for an unknown name (the message lists the
// known ones) or a setting out of range.
absl::StatusOr<std::unique_ptr<const Codec>> MakeCodec(const CodecSpec& spec, const Layout& layout);

// The row of feedback_table that the codec's paper uses. INVALID_ARGUMENT for an unknown name.
absl::StatusOr<std::string> DefaultFeedback(const CodecSpec& spec);

}  // namespace terse

#endif  // TERSE_COMPRESSION_CODEC_TABLE_H_
