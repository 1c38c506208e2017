// The common part of all codecs that send some of a tensor's elements: their number, their values and their positions.
// A codec adds only its selection (Select). Format: compression/FORMAT.md, "Sparse messages".
#ifndef TERSE_COMPRESSION_SPARSE_CODEC_H_
#define TERSE_COMPRESSION_SPARSE_CODEC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/level_table.h"
#include "compression/position_coder.h"
#include "compression/signed_level.h"
#include "compression/tensor_codec.h"
#include "compression/top_select.h"
#include "core/run_config.h"

namespace terse {

// The ways in which the sent elements get their values.
enum class SparseValues {
  kCommon,          // one signed scale a tensor (sbc)
  kSigned,          // one positive scale a tensor, a sign bit an element (stc, adacomp, low_precision_sparse)
  kCommonOrSigned,  // one of the two, chosen per tensor by a bit
  kFixed,           // +- a scale that both ends know from the settings, a sign bit an element (strom)
  kFloats,          // a float32 an element (top_k, dgc)
  kLevels,          // one positive scale a tensor, an integer multiple of it an element (mcgq)
  kTable,           // a level an element, and the values of the levels that occur (sparseloco)
};

// The format of a codec's messages; the same at both ends.
struct SparseFormat {
  int number = 0;  // first byte of the message
  SparseValues values = SparseValues::kCommon;
  // k' of each tensor: a message sends at most so many elements and usually all of them. Empty: any number, written in
  // full.
  std::vector<int64_t> planned;
  bool bf16_scales = false;
  float fixed_scale = 0;  // of kFixed
  int level_bits = 0;     // of kTable
  const PositionCoder* coder = nullptr;
};

// This is the part of a message that gives all elements of one tensor their values, beside each one's own payload.
struct SparseCommon {
  bool is_signed = false;  // kCommonOrSigned: which of the two
  // The scale of kCommon (with its sign), kSigned, kFixed and kLevels (positive), as rounded by RoundScale; finite, and
  // not 0 unless nothing is sent.
  float scale = 0;
  LevelTable table = {};  // of kTable
};

// The elements that one tensor sends.
struct SparsePart : SparseCommon {
  std::vector<uint32_t> positions;  // increasing, in the tensor
  // One number for each position, none for kCommon: 1 for a negative element, else 0; the bits of its float32;
  // SignedLevel; or a level of `table`.
  std::vector<uint32_t> payload;
};

// k of a planned density: max(1, density * size rounded to nearest, halves up), at most size. One correctly rounded
// product of doubles, so both ends agree.
int64_t PlannedCount(double density, int64_t size);
// k' of each tensor: by its own size, or with spec.counts = "equal" by the largest tensor's, at most its own size.
std::vector<int64_t> PlannedCounts(const CodecSpec& spec, const Layout& layout);

// INVALID_ARGUMENT unless 0 < spec.density <= 1 and spec.counts is one of the two.
absl::Status CheckDensity(const CodecSpec& spec);

class SparseCodec : public TensorCodec {
 public:
  std::unique_ptr<EncodeScratch> NewScratch() const override;
  bool AddEncoded(const EncodeScratch& scratch, float sign, absl::Span<float> accumulator) const override;
  const Layout* PackedLayout() const override { return &layout(); }
  absl::StatusOr<std::string> Pack(absl::string_view message, const UpdateHistory& history) const override;
  absl::StatusOr<std::string> Unpack(absl::string_view packed, const UpdateHistory& history) const override;
  absl::Status AddToHistory(absl::string_view message, UpdateHistory* history) const override;

 protected:
  SparseCodec(const Layout& layout, SparseFormat format);

  // Fills `part` with what `input` sends. INVALID_ARGUMENT from NotFinite for NaN or infinity. `selector` is scratch.
  virtual absl::Status Select(const TensorInput& input, TopSelector* selector, SparsePart* part) const = 0;

  const SparseFormat& format() const { return format_; }
  // The error for element `index` of an input, residual included, that is NaN or infinite.
  absl::Status NotFinite(const TensorInput& input, int64_t index) const;
  using TensorCodec::NotFinite;
  // Fills `part` with the `count` elements of largest magnitude of `input` as kFloats. INVALID_ARGUMENT from NotFinite.
  absl::Status SelectLargestFloats(const TensorInput& input, int64_t count, TopSelector* selector,
                                   SparsePart* part) const;
  // Adds the elements whose marks[i] is not 0 to `part`, with marks[i] - 1 as their payload. marks[0] is that of
  // element `first`; there are at most kMarkRun.
  static void AppendMarked(absl::Span<const uint32_t> marks, int64_t first, SparsePart* part);
  static constexpr int64_t kMarkRun = 2048;
  // A positive scale as it travels: RoundToFiniteFloat, or that once more rounded the same way to bfloat16.
  float RoundScale(double scale) const;

 private:
  class Reader;
  struct Scratch;
  struct Part;

  absl::Status EncodeTensors(absl::Span<const TensorInput> tensors, BitWriter* writer) const override;
  absl::StatusOr<int64_t> TensorsBits(absl::Span<const TensorInput> tensors) const override;
  std::unique_ptr<TensorReader> NewReader() const override;

  // Reads a message, packed where `history` is not null, and calls visit(part) for each tensor. Parts that were visited
  // before an error are as they were read.
  template <typename Visit>
  absl::Status ForEachPart(absl::string_view message, const UpdateHistory* history, Visit visit) const;
  absl::Status CheckHistory(const UpdateHistory& history) const;

  // Fills scratch->parts.
  absl::Status SelectAll(absl::Span<const TensorInput> tensors, Scratch* scratch) const;
  bool AllPlanned(absl::Span<const SparsePart> parts) const;
  void PutPart(int64_t tensor, bool all_planned, const SparsePart& part, BitWriter* writer) const;
  int64_t PartBits(int64_t tensor, bool all_planned, const SparsePart& part) const;
  // Bits of a count that is written in full, of a scale, of one element's payload at most (exactly, but for kLevels;
  // without the table of kTable), and of all payloads of a part.
  int CountBits(int64_t tensor) const;
  int ScaleBits() const;
  int ElementBits(bool is_signed) const;
  int64_t PayloadBits(const SparsePart& part) const;
  void PutPayload(const SparsePart& part, BitWriter* writer) const;
  // Sets values[i] to what payload[i] stands for, of elements that have payload.
  void DecodePayload(const SparseCommon& common, absl::Span<const uint32_t> payload, float* values) const;
  // Adds the part of a tensor, of which `accumulator` has the elements.
  void AddPart(const SparsePart& part, float sign, float* accumulator) const;

  const SparseFormat format_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_SPARSE_CODEC_H_
