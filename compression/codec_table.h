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

// INVALID_ARGUMENT for an unknown name (the message lists the known ones) or a parameter out of range.
absl::StatusOr<std::unique_ptr<const Codec>> MakeCodec(const CodecSpec& spec, const Layout& layout);

}  // namespace terse

#endif  // TERSE_COMPRESSION_CODEC_TABLE_H_
