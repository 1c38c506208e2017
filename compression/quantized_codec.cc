#include "compression/quantized_codec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/counter_random.h"
#include "compression/fetch_ahead.h"
#include "compression/quantize_kernels.h"
#include "core/status.h"

namespace terse {

absl::Status CheckBucket(const CodecSpec& spec) {
  if (spec.bucket >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("codec.bucket is ", spec.bucket, "; ", spec.name,
                                                 " needs a number of elements, or 0 for whole tensors"));
}

absl::Status CheckBits(const CodecSpec& spec, int64_t low, int64_t high) {
  if (spec.bits >= low && spec.bits <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("codec.bits is ", spec.bits, "; ", spec.name, " needs ", low, " to ", high));
}

QuantizedCodec::QuantizedCodec(const Layout& layout, const QuantizedFormat& format,
                               std::unique_ptr<const SymbolCoder> coder)
    : TensorCodec(layout, format.number), format_(format), coder_(std::move(coder)) {
  int64_t bits = 0;
  for (const TensorSpec& tensor : layout.tensors()) bits += MaxTensorBits(tensor.size);
  SetMaxBits(bits);
}

bool QuantizedCodec::GoodHeader(const Header& header) const {
  return std::all_of(header.begin(), header.end(), [](float value) { return FloatBits(value) < kInfinityBits; });
}

int64_t QuantizedCodec::BucketSize(int64_t first, int64_t size) const {
  return format_.bucket == 0 ? size : std::min(format_.bucket, size - first);
}

int64_t QuantizedCodec::MaxTensorBits(int64_t size) const {
  const int64_t bucket = BucketSize(0, size);
  const int64_t rest = size % bucket;
  const int64_t header = 32 * format_.header_floats;
  return size / bucket * (header + coder_->MaxBits(bucket)) + (rest == 0 ? 0 : header + coder_->MaxBits(rest));
}

absl::Status QuantizedCodec::Symbols(const TensorInput& input, const Header& header, int64_t first,
                                     absl::Span<uint32_t> symbols) const {
  const bool stochastic = traits().stochastic;
  const CounterRandom random(input.key, input.tensor);
  uint32_t draws[kSymbolRun];
  for (size_t at = 0; at < symbols.size(); at += kSymbolRun) {
    const absl::Span<uint32_t> run = symbols.subspan(at, kSymbolRun);
    const absl::Span<const float> values = input.values.subspan(first + at, run.size());
    FetchAheadToRead(values.data(), static_cast<int64_t>(sizeof(float) * values.size()));
    TERSE_RETURN_IF_ERROR(CheckFinite(input, first + static_cast<int64_t>(at), static_cast<int64_t>(run.size())));
    if (stochastic) random.Fill(first + static_cast<int64_t>(at), absl::MakeSpan(draws, run.size()));
    Quantize(header, values, stochastic ? draws : nullptr, run.data());
  }
  return absl::OkStatus();
}

absl::Status QuantizedCodec::PutBucket(const TensorInput& input, int64_t first, std::vector<uint32_t>* symbols,
                                       BitWriter* writer) const {
  const int64_t size = BucketSize(first, input.values.size());
  const Header header = Measure(input.values.subspan(first, size));
  for (int i = 0; i < format_.header_floats; ++i) writer->Put(FloatBits(header[i]), 32);
  const int64_t step = coder_->fixed_length() ? kSymbolRun : size;
  for (int64_t at = 0; at < size; at += step) {
    symbols->resize(std::min(step, size - at));
    TERSE_RETURN_IF_ERROR(Symbols(input, header, first + at, absl::MakeSpan(*symbols)));
    coder_->Put(*symbols, writer);
  }
  return absl::OkStatus();
}

absl::Status QuantizedCodec::EncodeTensors(absl::Span<const TensorInput> tensors, BitWriter* writer) const {
  std::vector<uint32_t> symbols;
  for (const TensorInput& input : tensors) {
    const int64_t size = input.values.size();
    if (coder_->fixed_length()) writer->Reserve(MaxTensorBits(size));
    for (int64_t first = 0; first < size; first += BucketSize(first, size)) {
      TERSE_RETURN_IF_ERROR(PutBucket(input, first, &symbols, writer));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> QuantizedCodec::BucketBits(const TensorInput& input, int64_t first,
                                                   std::vector<uint32_t>* symbols) const {
  const int64_t size = BucketSize(first, input.values.size());
  symbols->resize(size);
  TERSE_RETURN_IF_ERROR(Symbols(input, Measure(input.values.subspan(first, size)), first, absl::MakeSpan(*symbols)));
  return 32 * format_.header_floats + coder_->Bits(*symbols);
}

absl::StatusOr<int64_t> QuantizedCodec::TensorsBits(absl::Span<const TensorInput> tensors) const {
  std::vector<uint32_t> symbols;
  int64_t bits = 0;
  for (const TensorInput& input : tensors) {
    const int64_t size = input.values.size();
    if (coder_->fixed_length()) {
      TERSE_RETURN_IF_ERROR(CheckFinite(input));
      bits += MaxTensorBits(size);
      continue;
    }
    for (int64_t first = 0; first < size; first += BucketSize(first, size)) {
      TERSE_ASSIGN_OR_RETURN(const int64_t of_bucket, BucketBits(input, first, &symbols));
      bits += of_bucket;
    }
  }
  return bits;
}

class QuantizedCodec::Reader : public TensorReader {
 public:
  explicit Reader(const QuantizedCodec* codec) : codec_(codec), symbol_reader_(codec->coder_->NewReader()) {}

  std::unique_ptr<TensorReader> Clone() const override {
    auto clone = std::make_unique<Reader>(codec_);
    clone->symbol_reader_ = symbol_reader_->Clone();
    clone->at_ = at_;
    return clone;
  }

  absl::Status StartTensor(int64_t tensor, BitReader* stream) override {
    at_.tensor = tensor;
    at_.stream = *stream;
    at_.begin = at_.filled = at_.used = 0;
    at_.bucket_left = 0;
    return absl::OkStatus();
  }

  absl::Status Next(int64_t limit, DecodedRun* run) override {
    run->count = 0;
    if (at_.begin + at_.used >= limit) return absl::OkStatus();
    if (at_.used == at_.filled) TERSE_RETURN_IF_ERROR(Fill());
    run->count = std::min(limit - at_.begin, at_.filled) - at_.used;
    run->positions = nullptr;
    run->begin = at_.begin + at_.used;
    run->values = at_.values + at_.used;
    run->common = false;
    at_.used += run->count;
    return absl::OkStatus();
  }

  absl::Status FinishTensor(BitReader* stream) override {
    *stream = at_.stream;
    return absl::OkStatus();
  }

 private:
  // Decodes the next elements, at most to the end of their bucket, into the buffer.
  absl::Status Fill() {
    at_.begin += at_.filled;
    at_.used = at_.filled = 0;
    if (at_.bucket_left == 0) TERSE_RETURN_IF_ERROR(StartBucket());
    const int64_t count = std::min(at_.bucket_left, kSymbolRun);
    uint32_t buffer[kSymbolRun];
    const absl::Span<uint32_t> symbols(buffer, count);
    TERSE_RETURN_IF_ERROR(symbol_reader_->Next(symbols, &at_.stream));
    if (!codec_->Dequantize(at_.header, symbols, at_.values)) {
      return absl::InvalidArgumentError("a symbol that the encoder never writes");
    }
    if (codec_->format_.header_floats > 0) {
      GetQuantizeKernels().or_and(symbols.data(), count, &at_.any, &at_.all);
    }
    at_.filled = count;
    at_.bucket_left -= count;
    return at_.bucket_left == 0 ? FinishBucket() : absl::OkStatus();
  }

  absl::Status StartBucket() {
    at_.header = {};
    for (int i = 0; i < codec_->format_.header_floats; ++i) {
      uint32_t bits = 0;
      if (!at_.stream.Get(32, &bits)) return TruncatedIn("a bucket's header");
      at_.header[i] = FloatFromBits(bits);
    }
    if (!codec_->GoodHeader(at_.header)) {
      return absl::InvalidArgumentError(absl::StrCat("index ", at_.begin, ": a bucket's header of ", at_.header[0],
                                                     ", ", at_.header[1], " is not one that the encoder writes"));
    }
    at_.bucket_left = codec_->BucketSize(at_.begin, codec_->tensor(at_.tensor).size);
    at_.any = 0;
    at_.all = ~uint32_t{0};
    return symbol_reader_->Start(at_.bucket_left, &at_.stream);
  }

  absl::Status FinishBucket() {
    if (codec_->format_.header_floats > 0 && !codec_->GoodBucket(at_.header, at_.any, at_.all)) {
      return absl::InvalidArgumentError("a bucket's header does not fit its symbols; the encoder writes other bits");
    }
    return symbol_reader_->Finish();
  }

  // The place where the reader stands; plain data, so that a clone is a copy.
  struct At {
    int64_t tensor = 0;
    BitReader stream;
    int64_t begin = 0;        // in the tensor, of values[0]
    int64_t filled = 0;       // decoded values in the buffer
    int64_t used = 0;         // of those, how many were handed out
    int64_t bucket_left = 0;  // elements of the current bucket that are not decoded
    Header header = {};       // of the current bucket
    uint32_t any = 0;         // bitwise or of the bucket's symbols so far
    uint32_t all = 0;         // bitwise and
    float values[kSymbolRun];
  };

  const QuantizedCodec* const codec_;
  std::unique_ptr<SymbolReader> symbol_reader_;
  At at_;
};

std::unique_ptr<TensorReader> QuantizedCodec::NewReader() const { return std::make_unique<Reader>(this); }

}  // namespace terse
