// Reads the messages of sparse_codec.h, also packed ones. Not for use by anything else.
#ifndef TERSE_COMPRESSION_SPARSE_READER_H_
#define TERSE_COMPRESSION_SPARSE_READER_H_

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compression/bit_fields.h"
#include "compression/shared_coder.h"
#include "compression/sparse_codec.h"
#include "compression/update_history.h"
#include "core/status.h"

namespace terse {

class SparseCodec::Reader : public TensorReader {
 public:
  // `history` as in Codec::Unpack, for a packed message; else null.
  explicit Reader(const SparseCodec* codec, const UpdateHistory* history = nullptr)
      : codec_(codec), history_(history) {}

  std::unique_ptr<TensorReader> Clone() const override {
    auto clone = std::make_unique<Reader>(codec_, history_);
    clone->at_ = at_;
    if (reader_ != nullptr) clone->reader_ = reader_->Clone();
    return clone;
  }

  absl::Status StartMessage(BitReader* stream) override {
    if (codec_->format_.planned.empty()) return absl::OkStatus();
    uint32_t all_planned = 0;
    if (!stream->Get(1, &all_planned)) return TruncatedIn("its header");
    at_.all_planned = all_planned == 1;
    return absl::OkStatus();
  }

  absl::Status StartTensor(int64_t tensor, BitReader* stream) override {
    at_.tensor = tensor;
    reader_ = nullptr;
    at_.filled = 0;
    at_.used = 0;
    TERSE_RETURN_IF_ERROR(ReadCount(stream));
    if (at_.left == 0) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(ReadScale(stream));
    at_.payload = *stream;
    TERSE_RETURN_IF_ERROR(SkipPayload(stream));
    const int64_t size = codec_->tensor(tensor).size;
    if (history_ == nullptr) {
      TERSE_ASSIGN_OR_RETURN(reader_, codec_->format_.coder->Open(at_.left, size, *stream));
    } else {
      const SharedCoder coder(&history_->tensors()[tensor], side());
      TERSE_ASSIGN_OR_RETURN(reader_, coder.Open(at_.left, size, *stream));
    }
    return absl::OkStatus();
  }

  absl::Status Next(int64_t limit, DecodedRun* run) override {
    run->count = 0;
    if (at_.used == at_.filled) TERSE_RETURN_IF_ERROR(Fill());
    int64_t until = at_.filled;
    if (at_.used < at_.filled && at_.positions[at_.filled - 1] >= limit) {
      until = at_.used + CountBelow(at_.positions + at_.used, at_.filled - at_.used, limit);
    }
    run->count = until - at_.used;
    run->positions = at_.positions + at_.used;
    run->begin = 0;
    run->values = at_.values + at_.used;
    run->common = codec_->ElementBits(at_.common.is_signed) == 0;
    at_.used = until;
    return absl::OkStatus();
  }

  // Returns the number of elements of the started tensor that Next has not given yet.
  int64_t left() const { return at_.left + at_.filled - at_.used; }
  // Returns the side, as PositionHistory defines it, of the started tensor, if that sends anything.
  int side() const { return at_.common.scale < 0 ? 1 : 0; }

  absl::Status FinishTensor(BitReader* stream) override {
    if (reader_ != nullptr) {
      TERSE_ASSIGN_OR_RETURN(*stream, reader_->Finish());
      reader_ = nullptr;  // and the positions that it may hold
    }
    const bool last = at_.tensor + 1 == static_cast<int64_t>(codec_->layout().tensors().size());
    if (last && !codec_->format_.planned.empty() && !at_.all_planned && !at_.any_corrected) {
      return absl::InvalidArgumentError("the message corrects no count; its first bit must be 1 then");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadCount(BitReader* stream) {
    const bool free = codec_->format_.planned.empty();
    uint32_t as_planned = free ? 0 : 1;
    if (!free && !at_.all_planned && !stream->Get(1, &as_planned)) return TruncatedIn("its header");
    if (as_planned == 1) {
      at_.left = codec_->format_.planned[at_.tensor];
      return absl::OkStatus();
    }
    at_.any_corrected = true;
    uint32_t count = 0;
    if (!stream->Get(codec_->CountBits(at_.tensor), &count)) return TruncatedIn("its header");
    const int64_t most = free ? codec_->tensor(at_.tensor).size : codec_->format_.planned[at_.tensor] - 1;
    if (count > most) {
      return absl::InvalidArgumentError(absl::StrCat("a count of ", count, "; at most ", most, " can be written here"));
    }
    at_.left = count;
    return absl::OkStatus();
  }

  absl::Status ReadScale(BitReader* stream) {
    const SparseFormat& format = codec_->format_;
    uint32_t is_signed = format.values != SparseValues::kCommon;
    if (format.values == SparseValues::kCommonOrSigned && !stream->Get(1, &is_signed)) return TruncatedIn("its header");
    at_.common.is_signed = is_signed == 1;
    at_.common.scale = format.fixed_scale;
    const int scale_bits = codec_->ScaleBits();
    if (scale_bits > 0) {
      uint32_t bits = 0;
      if (!stream->Get(scale_bits, &bits)) return TruncatedIn("its header");
      at_.common.scale = FloatFromBits(bits << (32 - scale_bits));
      const uint32_t magnitude = MagnitudeBits(FloatBits(at_.common.scale));
      if (magnitude == 0 || magnitude >= kInfinityBits || (at_.common.is_signed && at_.common.scale < 0)) {
        return absl::InvalidArgumentError(absl::StrCat("its scale is ", at_.common.scale,
                                                       "; it must be finite, not 0, and positive where signs follow"));
      }
    }
    if (codec_->ElementBits(at_.common.is_signed) == 0)
      std::fill(at_.values, at_.values + kDecodedRun, at_.common.scale);
    return absl::OkStatus();
  }

  // Moves past the values, to where the positions begin.
  absl::Status SkipPayload(BitReader* stream) {
    if (codec_->format_.values == SparseValues::kTable) {
      return GetLevelTable(at_.left, codec_->format_.level_bits, stream, &at_.common.table);
    }
    if (codec_->format_.values != SparseValues::kLevels) {
      const uint64_t bits = static_cast<uint64_t>(at_.left) * codec_->ElementBits(at_.common.is_signed);
      return stream->Skip(bits) ? absl::OkStatus() : TruncatedIn("its values");
    }
    for (int64_t i = 0; i < at_.left; ++i) {
      uint32_t level = 0;
      if (!GetLevel(stream, &level)) {
        return absl::InvalidArgumentError("its values end early, or one is 2^31 scales or more");
      }
    }
    return absl::OkStatus();
  }

  // Decodes the next elements into the buffer.
  absl::Status Fill() {
    at_.filled = std::min(at_.left, kDecodedRun);
    at_.used = 0;
    at_.left -= at_.filled;
    if (at_.filled == 0) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(reader_->Next(absl::MakeSpan(at_.positions, at_.filled)));
    if (codec_->ElementBits(at_.common.is_signed) == 0) return absl::OkStatus();
    uint32_t payload[kDecodedRun];
    const auto filled = absl::MakeSpan(payload, at_.filled);
    GetPayload(filled);
    codec_->DecodePayload(at_.common, filled, at_.values);
    return codec_->format_.values == SparseValues::kFloats ? CheckFloats(filled) : absl::OkStatus();
  }

  // StartTensor saw that the payloads of all elements are there.
  void GetPayload(absl::Span<uint32_t> payload) {
    if (codec_->format_.values != SparseValues::kLevels) {
      return GetFields(codec_->ElementBits(at_.common.is_signed), payload, &at_.payload);
    }
    for (uint32_t& level : payload) GetLevel(&at_.payload, &level);
  }

  absl::Status CheckFloats(absl::Span<const uint32_t> bits) const {
    bool good = true;
    // Neither 0, whose predecessor is the largest of words, nor NaN nor infinity.
    for (const uint32_t one : bits) good &= MagnitudeBits(one) - 1 < kInfinityBits - 1;
    if (good) return absl::OkStatus();
    const float* const bad = std::find_if(at_.values, at_.values + at_.filled,
                                          [](float value) { return value == 0 || !std::isfinite(value); });
    return absl::InvalidArgumentError(absl::StrCat("a value of ", *bad, "; values must be finite and not 0"));
  }

  struct State {
    bool all_planned = false;
    bool any_corrected = false;
    int64_t tensor = 0;
    SparseCommon common;
    BitReader payload;
    int64_t left = 0;    // elements that are not in the buffer yet
    int64_t filled = 0;  // of the buffer
    int64_t used = 0;
    uint32_t positions[kDecodedRun];
    float values[kDecodedRun];
  };

  const SparseCodec* const codec_;
  const UpdateHistory* const history_;
  State at_;
  std::unique_ptr<PositionReader> reader_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_SPARSE_READER_H_
