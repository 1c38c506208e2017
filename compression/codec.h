// The interface of every compressor of weight updates. A codec turns the accumulated update of one client (delta plus
// residual, flat float32 in the order of the model's Layout) into a message and back. Formats: compression/FORMAT.md.
#ifndef TERSE_COMPRESSION_CODEC_H_
#define TERSE_COMPRESSION_CODEC_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "core/layout.h"

namespace terse {

class UpdateHistory;

// Names one encoding for the random draws of stochastic codecs: the same key gives the same draws, in any order and on
// any number of threads, and two encodings that should be independent need different keys.
struct CodecKey {
  uint64_t run = 0;
  uint64_t round = 0;
  uint64_t client = 0;
};

// Memory that encodings of one codec use again instead of taking it anew. One thread at a time.
class EncodeScratch {
 public:
  virtual ~EncodeScratch() = default;

  // A message that is of no more use, or nothing: the next message takes its memory. To get fresh memory for a message
  // as large as the model takes the system several times as long as writing it.
  std::string spent;
};

struct EncodeOptions {
  CodecKey key = {};
  // The newest part of the update, without the residual, for codecs that look at it (adacomp). Empty: all of the update
  // is new. layout().size() elements otherwise.
  absl::Span<const float> latest = {};
  // One number a tensor of the layout in place of the codec's own density (dgc) or samples per element (mcgq), for
  // schedules and controllers. Empty, or 0 for a tensor: the codec's own. Ignored for buffers, and by all other codecs:
  // where both ends know the density, the messages depend on it.
  absl::Span<const double> rates = {};
  // From NewScratch of the same codec, or null.
  EncodeScratch* scratch = nullptr;
  // Which of several codecs encodes (choice_codec.h); 0 for a single one.
  int64_t choice = 0;
};

// The promises of a codec; printed by tools, tested by the conformance suite.
struct CodecTraits {
  bool lossless = false;     // decoding gives the update bit for bit; buffers always come so (buffer_tail_codec.h)
  bool unbiased = false;     // the mean over keys of what decodes is the update
  bool stochastic = false;   // the message depends on EncodeOptions::key
  bool carries_all = false;  // a message speaks of every element, not of some of the parameters
  bool uses_latest = false;  // EncodeOptions::latest matters
};

// Elements of a message in increasing position, as a cursor yields them. The arrays belong to the cursor and live until
// its next call.
struct DecodedRun {
  int64_t count = 0;
  const uint32_t* positions = nullptr;  // from `begin`; null for 0, 1, ...
  int64_t begin = 0;                    // a flat position: a model may have more elements than 32 bits can tell apart
  const float* values = nullptr;        // finite
  bool common = false;                  // whether all of them are values[0]

  // The flat position of an element.
  int64_t PositionOf(int64_t i) const { return begin + (positions == nullptr ? i : positions[i]); }

  // At most `most` of the elements, from number `from` on. There are positions.
  DecodedRun Slice(int64_t from, int64_t most) const {
    return {std::min(most, count - from), positions + from, begin, values + (common ? 0 : from), common};
  }
};

// Reads one message from its first element to its last. Not thread-safe; the message must outlive it.
class UpdateCursor {
 public:
  virtual ~UpdateCursor() = default;

  // An independent cursor at the same place: a point from which to go on later, or in another thread.
  virtual std::unique_ptr<UpdateCursor> Clone() const = 0;

  // The next elements below the flat position `limit`, at most kDecodedRun; a count of 0 when no more lie below it.
  // `limit` never decreases from call to call. Once it is the layout's size and the count 0, the whole message was read
  // and is good. INVALID_ARGUMENT with tensor and reason for bytes that the codec could not have made; the cursor is of
  // no use then.
  virtual absl::Status Next(int64_t limit, DecodedRun* run) = 0;
};

// Decoded elements at a time: they stay in the first-level cache until they are applied.
constexpr int64_t kDecodedRun = 512;

// How large a decoded update is.
struct UpdateSize {
  double norm = 0;    // L2 norm of its parameters, summed in double in an order that is the same everywhere; finite
  float largest = 0;  // magnitude, of all its elements, buffers too
};

// Immutable after construction and safe to share between threads. Deterministic: the same input and key give the same
// bytes on every machine. A decoder takes every size from its own layout, never from the message.
class Codec {
 public:
  virtual ~Codec() = default;

  // The row of the codec table, for logs and errors.
  virtual absl::string_view name() const = 0;
  virtual const Layout& layout() const = 0;
  virtual CodecTraits traits() const = 0;

  // An upper bound of the bytes of any message this codec makes or accepts.
  virtual int64_t MaxMessageBytes() const = 0;

  // Encodes `update` (layout().size() elements). INVALID_ARGUMENT naming tensor and index for NaN or infinity, or when
  // sizes do not fit.
  virtual absl::StatusOr<std::string> Encode(absl::Span<const float> update,
                                             const EncodeOptions& options = {}) const = 0;

  // Encode(residual + delta), in one pass over both where the codec can, leaving the sum in `delta`. The sums are plain
  // float32 additions. After an error `delta` is unspecified; `residual` never changes.
  virtual absl::StatusOr<std::string> AddAndEncode(absl::Span<const float> residual, absl::Span<float> delta,
                                                   const EncodeOptions& options = {}) const = 0;

  // The exact cost in bits of Encode(update, options) by formula, without writing it: what stands between the format
  // byte and the padding, and the buffers behind that. Errors as Encode.
  virtual absl::StatusOr<int64_t> CostBits(absl::Span<const float> update, const EncodeOptions& options = {}) const = 0;

  // Scratch for EncodeOptions.
  virtual std::unique_ptr<EncodeScratch> NewScratch() const { return std::make_unique<EncodeScratch>(); }

  // A cursor at the first element. INVALID_ARGUMENT for a message of another format or with a broken header.
  virtual absl::StatusOr<std::unique_ptr<UpdateCursor>> Open(absl::string_view message) const = 0;

  // Decodes without writing anywhere: OK exactly when AddDecoded would succeed. INVALID_ARGUMENT with the tensor and
  // the reason for bytes that Encode could not have made (truncated, trailing bytes, position out of range, NaN or
  // infinity).
  absl::Status Validate(absl::string_view message) const;

  // Validate, and how large the update is, in the same reading.
  absl::StatusOr<UpdateSize> Measure(absl::string_view message) const;

  // accumulator[i] += sign * decoded[i], once per element that the message names. `sign` is +1 or -1, the accumulator
  // has layout().size() elements. On error it may be partly changed, so callers validate first.
  absl::Status AddDecoded(absl::string_view message, float sign, absl::Span<float> accumulator) const;

  // As AddDecoded, with the message that the latest encoding with `scratch` made, from what the scratch has kept of it,
  // to the same bits; buffers may be left out. Returns false, and changes nothing, where it has kept nothing.
  virtual bool AddEncoded(const EncodeScratch& /*scratch*/, float /*sign*/, absl::Span<float> /*accumulator*/) const {
    return false;
  }

  // The flat positions of the parameters that the message carries, increasing; nullopt when it carries all of them.
  // Buffers travel with every message and are not among them, because no momentum of an optimizer belongs to them.
  virtual absl::StatusOr<absl::optional<std::vector<int64_t>>> SentPositions(absl::string_view message) const;

  // A message in another form, with its positions coded by a history of messages that both ends have
  // (update_history.h). Packing a message and unpacking it with an equal history gives the message back. The history
  // is of the tensors of PackedLayout(); null for a codec that sends no positions, whose methods below return
  // FAILED_PRECONDITION.
  virtual const Layout* PackedLayout() const { return nullptr; }
  // INVALID_ARGUMENT for what Validate refuses.
  virtual absl::StatusOr<std::string> Pack(absl::string_view message, const UpdateHistory& history) const;
  // INVALID_ARGUMENT for bytes that Pack could not have made with this history. Another history than the packer's is
  // not always noticed, and buffers are not looked at: validate the message as one that came unpacked, and compare its
  // hash.
  virtual absl::StatusOr<std::string> Unpack(absl::string_view packed, const UpdateHistory& history) const;
  // The next message that counts. INVALID_ARGUMENT, and no change, for what Validate refuses.
  virtual absl::Status AddToHistory(absl::string_view message, UpdateHistory* history) const;
};

// accumulator[p - base] += scale * value for every element of the run, where p is its flat position; both operations in
// float32. All p are at least `base`.
//
// AddRun expects an accumulator in main memory and fetches ahead, AddRunNear one that is in a cache.
void AddRun(const DecodedRun& run, float scale, int64_t base, float* accumulator);
void AddRunNear(const DecodedRun& run, float scale, int64_t base, float* accumulator);

}  // namespace terse

#endif  // TERSE_COMPRESSION_CODEC_H_
