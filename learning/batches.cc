#include "learning/batches.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/random.h"
#include "learning/augment.h"

namespace terse {
namespace {

// Keeps the draws of augmentation apart from the other uses of a run's seed.
constexpr uint64_t kAugmentSalt = 0x6175676d656e7421ULL;

c10::ScalarType TypeOf(Element element) {
  switch (element) {
    case Element::kByte:
      return at::kByte;
    case Element::kFloat:
      return at::kFloat;
    case Element::kInt32:
      return at::kInt;
    case Element::kInt64:
      return at::kLong;
  }
  return at::kByte;
}

at::Tensor Gathered(const Column& column, absl::Span<const uint32_t> indices) {
  std::vector<int64_t> shape = {static_cast<int64_t>(indices.size())};
  shape.insert(shape.end(), column.shape().begin(), column.shape().end());
  at::Tensor values = at::empty(shape, TypeOf(column.element()));
  column.Gather(indices, static_cast<char*>(values.data_ptr()));
  return values;
}

at::Tensor Standardized(const at::Tensor& x) {
  const at::Tensor flat = x.flatten(1);
  const double least = 1 / std::sqrt(static_cast<double>(flat.size(1)));
  const at::Tensor mean = flat.mean(1, /*keepdim=*/true);
  const at::Tensor deviation = flat.std(1, /*unbiased=*/false, /*keepdim=*/true).clamp_min(least);
  return flat.sub(mean).div_(deviation).view(x.sizes());
}

at::Tensor Normalized(const at::Tensor& values, const std::string& normalize, c10::Device device) {
  const at::Tensor moved = values.to(device);
  if (values.scalar_type() != at::kByte) return moved.to(at::kFloat);
  const at::Tensor unit = moved.to(at::kFloat).mul_(1.0 / 255);
  return normalize == "standardize" ? Standardized(unit) : unit;
}

class ExampleBatches : public BatchSource {
 public:
  ExampleBatches(std::shared_ptr<const Dataset> dataset, BatchStream stream, const DataSpec& spec, int64_t batch_size,
                 uint64_t augment_seed, c10::Device device)
      : dataset_(std::move(dataset)),
        stream_(std::move(stream)),
        normalize_(spec.normalize),
        augments_(spec.augment != "none"),
        batch_size_(batch_size),
        augment_seed_(augment_seed),
        device_(device) {}

  Batch Next() override {
    const BatchStream::Position at = stream_.position();
    const absl::Span<const uint32_t> indices = stream_.Next();
    at::Tensor values = Gathered(dataset_->train.features, indices);
    if (augments_) {
      const uint64_t epoch_seed = Random(augment_seed_, at.epoch).Next();
      PadCropFlip(Random(epoch_seed, at.offset), values.size(0), values.size(1), values.size(2), values.size(3),
                  values.data_ptr<uint8_t>());
    }
    return {Normalized(values, normalize_, device_), TargetsOf(dataset_->train.targets, indices, device_)};
  }

  BatchStream::Position position() const override { return stream_.position(); }
  bool Seek(BatchStream::Position position) override { return stream_.Seek(position); }
  int64_t samples() const override { return stream_.size(); }
  int64_t rows() const override { return batch_size_; }

 private:
  const std::shared_ptr<const Dataset> dataset_;
  BatchStream stream_;
  const std::string normalize_;
  const bool augments_;
  const int64_t batch_size_;
  const uint64_t augment_seed_;
  const c10::Device device_;
};

class TextBatches : public BatchSource {
 public:
  TextBatches(std::shared_ptr<const Text> text, DataRange range, int64_t rows, int64_t unroll, c10::Device device)
      : text_(std::move(text)),
        range_(range),
        rows_(rows),
        unroll_(unroll),
        row_length_(range.size() / rows),
        windows_((row_length_ - 1) / unroll),
        device_(device) {}

  int64_t windows() const { return windows_; }

  Batch Next() override {
    at::Tensor symbols = at::empty({rows_, unroll_ + 1}, at::kLong);
    int64_t* out = symbols.data_ptr<int64_t>();
    for (int64_t row = 0; row < rows_; ++row) {
      const int32_t* from = &text_->symbols[range_.begin + row * row_length_ + position_.offset * unroll_];
      out = std::copy_n(from, unroll_ + 1, out);
    }
    const bool fresh = position_.offset == 0;
    if (++position_.offset == windows_) position_ = {position_.epoch + 1, 0};
    const at::Tensor moved = symbols.to(device_);
    return {moved.slice(1, 0, unroll_), moved.slice(1, 1), fresh};
  }

  BatchStream::Position position() const override { return position_; }
  bool Seek(BatchStream::Position position) override {
    if (position.epoch < 0 || position.offset < 0 || position.offset >= windows_) return false;
    position_ = position;
    return true;
  }
  int64_t samples() const override { return range_.size(); }
  int64_t rows() const override { return rows_; }

 private:
  const std::shared_ptr<const Text> text_;
  const DataRange range_;
  const int64_t rows_;
  const int64_t unroll_;
  const int64_t row_length_;
  const int64_t windows_;  // of an epoch
  const c10::Device device_;
  BatchStream::Position position_;  // offset: windows
};

}  // namespace

at::Tensor FeaturesOf(const Column& column, absl::Span<const uint32_t> indices, const std::string& normalize,
                      c10::Device device) {
  return Normalized(Gathered(column, indices), normalize, device);
}

at::Tensor TargetsOf(const Column& column, absl::Span<const uint32_t> indices, c10::Device device) {
  const at::Tensor values = Gathered(column, indices).to(device);
  return column.element() == Element::kFloat ? values : values.to(at::kLong);
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeExampleBatches(std::shared_ptr<const Dataset> dataset,
                                                                std::vector<uint32_t> indices, const DataSpec& spec,
                                                                int64_t batch_size, uint64_t seed, int64_t shard_index,
                                                                c10::Device device) {
  if (indices.empty() || batch_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("batches of ", batch_size, " cannot be made of ", indices.size(),
                                                   " examples; give the client data and train.batch_size 1 or more"));
  }
  const Column& features = dataset->train.features;
  if (spec.augment != "none" && (features.shape().size() != 3 || features.element() != Element::kByte)) {
    return absl::InvalidArgumentError(absl::StrCat("data.augment = '", spec.augment, "' is for images of bytes with ",
                                                   "channels, rows and columns; set it to 'none' for this data set"));
  }
  BatchStream stream(std::move(indices), batch_size, seed, shard_index);
  const uint64_t augment_seed = Random(seed ^ kAugmentSalt, shard_index).Next();
  return std::make_unique<ExampleBatches>(std::move(dataset), std::move(stream), spec, batch_size, augment_seed,
                                          device);
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeTextBatches(std::shared_ptr<const Text> text, DataRange range,
                                                             int64_t batch_size, int64_t unroll, c10::Device device) {
  const int64_t count = range.size();
  if (batch_size < 1 || unroll < 1 || count / batch_size < unroll + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a text of ", count, " symbols is too short for train.batch_size = ", batch_size,
                     " rows of at least train.unroll + 1 = ", unroll + 1, " symbols; lower one of them"));
  }
  return std::make_unique<TextBatches>(std::move(text), range, batch_size, unroll, device);
}

}  // namespace terse
