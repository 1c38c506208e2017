#include "compression/run_length.h"

#include <algorithm>

#include "compression/gap_code.h"

namespace terse {
namespace {

constexpr int kHeaderBits = 5;
constexpr int kMaxWidth = 31;  // gaps are below 2^31 - 1
constexpr char kRunLengthName[] = "run_length";
constexpr char kFixed16Name[] = "fixed16";

uint32_t Largest(int width) { return (uint32_t{1} << width) - 1; }

// Counts, for every width at once, the counters that continue.
class WidthChoice {
 public:
  void Add(uint32_t zeros) {
#pragma GCC unroll 31  // divisions by constants
    for (int width = 1; width <= kMaxWidth; ++width) {
      if (zeros < (uint32_t{1} << width) - 1) break;
      continued_[width] += zeros / ((uint32_t{1} << width) - 1);
    }
  }

  int64_t Bits(int64_t count, int width) const { return (count + continued_[width]) * width; }

  // The smallest width of the fewest bits.
  int Best(int64_t count) const {
    int best = 1;
    for (int width = 2; width <= kMaxWidth; ++width) {
      if (Bits(count, width) < Bits(count, best)) best = width;
    }
    return best;
  }

 private:
  int64_t continued_[kMaxWidth + 1] = {};
};

WidthChoice ChooseWidth(absl::Span<const uint32_t> positions) {
  WidthChoice choice;
  ForEachGap(positions, [&](uint32_t zeros) { choice.Add(zeros); });
  return choice;
}

void PutCounters(absl::Span<const uint32_t> positions, int width, BitWriter* writer) {
  const uint32_t largest = Largest(width);
  ForEachGap(positions, [&](uint32_t zeros) {
    for (; zeros >= largest; zeros -= largest) writer->Put(largest, width);
    writer->Put(zeros, width);
  });
}

class Counters {
 public:
  Counters(int width, int64_t size, const BitReader& stream, absl::string_view coder)
      : width_(width), size_(static_cast<uint64_t>(size)), stream_(stream), coder_(coder) {}

  absl::Status Zeros(absl::Span<uint32_t> zeros) {
    const uint32_t largest = Largest(width_);
    BitReader stream = stream_;
    for (uint32_t& gap : zeros) {
      uint64_t sum = 0;
      uint32_t counter;
      do {
        if (!stream.Get(width_, &counter)) return PositionsEndEarly(coder_);
        sum += counter;
        if (sum >= size_) return PositionPastTheEnd(coder_);
      } while (counter == largest);
      gap = static_cast<uint32_t>(sum);
    }
    stream_ = stream;
    return absl::OkStatus();
  }

  absl::StatusOr<BitReader> Finish() { return stream_; }

 private:
  int width_;
  uint64_t size_;
  BitReader stream_;
  absl::string_view coder_;
};

// Counters whose width the encoder chose: what was read must be what makes it choose so.
class ChosenCounters {
 public:
  ChosenCounters(int width, int64_t count, int64_t size, const BitReader& stream)
      : width_(width), count_(count), counters_(width, size, stream, kRunLengthName) {}

  absl::Status Zeros(absl::Span<uint32_t> zeros) {
    absl::Status status = counters_.Zeros(zeros);
    if (!status.ok()) return status;
    for (uint32_t gap : zeros) choice_.Add(gap);
    return status;
  }

  absl::StatusOr<BitReader> Finish() {
    if (choice_.Best(count_) == width_) return counters_.Finish();
    return RefusePositions(kRunLengthName, "another width of the counters takes fewer bits");
  }

 private:
  int width_;
  int64_t count_;
  Counters counters_;
  WidthChoice choice_;
};

// Every number of positions up to `count` takes at most this many bits, also with the best of several widths.
int64_t MaxCounterBits(int64_t count, int64_t size, int width) { return (count + size / Largest(width)) * width; }

class RunLength final : public PositionCoder {
 public:
  absl::string_view name() const override { return kRunLengthName; }

  int64_t Bits(absl::Span<const uint32_t> positions, int64_t) const override {
    const WidthChoice choice = ChooseWidth(positions);
    const int64_t count = static_cast<int64_t>(positions.size());
    return kHeaderBits + choice.Bits(count, choice.Best(count));
  }

  int64_t MaxBits(int64_t count, int64_t size) const override {
    int64_t most = MaxCounterBits(count, size, 1);
    for (int width = 2; width <= kMaxWidth; ++width) most = std::min(most, MaxCounterBits(count, size, width));
    return kHeaderBits + most;
  }

  void Put(absl::Span<const uint32_t> positions, int64_t, BitWriter* writer) const override {
    const int width = ChooseWidth(positions).Best(static_cast<int64_t>(positions.size()));
    writer->Put(width, kHeaderBits);
    PutCounters(positions, width, writer);
  }

  absl::StatusOr<std::unique_ptr<PositionReader>> Open(int64_t count, int64_t size,
                                                       const BitReader& stream) const override {
    BitReader counters = stream;
    uint32_t width;
    if (!counters.Get(kHeaderBits, &width)) return PositionsEndEarly(kRunLengthName);
    if (width == 0) return RefusePositions(kRunLengthName, "the width of the counters is 0");
    if (counters.remaining() < static_cast<uint64_t>(count) * width) {
      return PositionsEndEarly(kRunLengthName);
    }
    return std::make_unique<GapReader<ChosenCounters>>(ChosenCounters(static_cast<int>(width), count, size, counters),
                                                       size, kRunLengthName);
  }
};

class Fixed16 final : public PositionCoder {
 public:
  absl::string_view name() const override { return kFixed16Name; }

  int64_t Bits(absl::Span<const uint32_t> positions, int64_t) const override {
    int64_t counters = static_cast<int64_t>(positions.size());
    ForEachGap(positions, [&](uint32_t zeros) { counters += zeros / Largest(kWidth); });
    return counters * kWidth;
  }

  int64_t MaxBits(int64_t count, int64_t size) const override { return MaxCounterBits(count, size, kWidth); }

  void Put(absl::Span<const uint32_t> positions, int64_t, BitWriter* writer) const override {
    PutCounters(positions, kWidth, writer);
  }

  absl::StatusOr<std::unique_ptr<PositionReader>> Open(int64_t count, int64_t size,
                                                       const BitReader& stream) const override {
    if (stream.remaining() < static_cast<uint64_t>(count) * kWidth) {
      return PositionsEndEarly(kFixed16Name);
    }
    return std::make_unique<GapReader<Counters>>(Counters(kWidth, size, stream, kFixed16Name), size, kFixed16Name);
  }

 private:
  static constexpr int kWidth = 16;
};

}  // namespace

const PositionCoder& RunLengthCoder() {
  static const RunLength coder;
  return coder;
}

const PositionCoder& Fixed16Coder() {
  static const Fixed16 coder;
  return coder;
}

}  // namespace terse
