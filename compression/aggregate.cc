#include "compression/aggregate.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/bit_stream.h"
#include "compression/dense.h"
#include "core/status.h"

namespace terse {
namespace {

// The number of elements of a block: their sums stay in the second-level cache, and a message has enough of them to
// make a visit worth it.
constexpr int64_t kBlock = int64_t{1} << 15;
// Below so many bytes of messages, starting a thread takes longer than it saves.
constexpr size_t kThreadBytes = size_t{1} << 18;

// Moves the cursor to the first element at or behind `position`.
absl::Status SkipTo(int64_t position, UpdateCursor* cursor) {
  DecodedRun run;
  do {
    TERSE_RETURN_IF_ERROR(cursor->Next(position, &run));
  } while (run.count > 0);
  return absl::OkStatus();
}

absl::Status Overflow(const Codec& codec, int64_t element) {
  return absl::InvalidArgumentError(absl::StrCat(DescribeElement(codec.layout(), element),
                                                 ": the sum of the updates overflows; training has diverged"));
}

// Averages the elements of one thread: from `begin` on, where all cursors stand.
class RangeAverager {
 public:
  RangeAverager(const Codec* codec, std::vector<std::unique_ptr<UpdateCursor>> cursors, absl::Span<const float> weights)
      : codec_(codec),
        cursors_(std::move(cursors)),
        weights_(weights),
        scale_(weights.empty() ? 1.0f / static_cast<float>(cursors_.size()) : 1.0f) {}

  absl::Status Run(int64_t begin, int64_t end, float* average) {
    for (; begin < end; begin += kBlock) {
      TERSE_RETURN_IF_ERROR(Block(begin, std::min(begin + kBlock, end), average + begin));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Block(int64_t begin, int64_t end, float* average) {
    for (size_t i = 0; i < cursors_.size(); ++i) {
      const absl::Status status = AddUntil(begin, end, weights_.empty() ? 1.0f : weights_[i], cursors_[i].get());
      if (!status.ok()) return Annotate(status, absl::StrCat("update ", i));
    }
    uint32_t bad = 0;
    for (int64_t i = 0; i < end - begin; ++i) {
      average[i] = sums_[i] * scale_;
      bad |= static_cast<uint32_t>(MagnitudeBits(FloatBits(average[i])) >= kInfinityBits);
      sums_[i] = 0;
    }
    if (bad == 0) return absl::OkStatus();
    int64_t i = 0;
    while (MagnitudeBits(FloatBits(average[i])) < kInfinityBits) ++i;
    return Overflow(*codec_, begin + i);
  }

  absl::Status AddUntil(int64_t begin, int64_t end, float weight, UpdateCursor* cursor) {
    DecodedRun run;
    while (true) {
      TERSE_RETURN_IF_ERROR(cursor->Next(end, &run));
      if (run.count == 0) return absl::OkStatus();
      AddRunNear(run, weight, begin, sums_.data());
    }
  }

  const Codec* const codec_;
  std::vector<std::unique_ptr<UpdateCursor>> cursors_;
  const absl::Span<const float> weights_;                 // empty, or one a cursor
  const float scale_;                                     // of the sums
  std::vector<float> sums_ = std::vector<float>(kBlock);  // of the block; zero between blocks
};

// Calls work(0), ..., work(count - 1), each in a thread of its own but the last, and returns the first error in that
// order.
template <typename Work>
absl::Status InThreads(int count, const Work& work) {
  std::vector<absl::Status> statuses(count);
  std::vector<std::thread> threads;
  for (int i = 0; i + 1 < count; ++i) threads.emplace_back([&, i] { statuses[i] = work(i); });
  statuses[count - 1] = work(count - 1);
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) TERSE_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status CheckSizes(const Codec& codec, size_t updates, size_t weights, absl::Span<float> average) {
  if (updates == 0) return absl::InvalidArgumentError("no updates to average");
  if (weights != 0 && weights != updates) {
    return absl::InvalidArgumentError(absl::StrCat(weights, " weights for ", updates, " updates"));
  }
  if (average.size() == static_cast<size_t>(codec.layout().size())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the average has ", average.size(), " elements, the model ", codec.layout().size()));
}

// The first element of a thread's share: whole blocks, spread evenly.
int64_t ShareBegin(int64_t size, int threads, int thread) {
  const int64_t blocks = (size + kBlock - 1) / kBlock;
  return std::min(size, blocks * thread / threads * kBlock);
}

}  // namespace

absl::StatusOr<UpdateIndex> UpdateIndex::Build(const Codec& codec, absl::string_view message, int64_t spacing) {
  UpdateIndex index;
  index.spacing_ = spacing;
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<UpdateCursor> cursor, codec.Open(message));
  for (int64_t position = 0; position < codec.layout().size(); position += spacing) {
    TERSE_RETURN_IF_ERROR(SkipTo(position, cursor.get()));
    index.places_.push_back(cursor->Clone());
  }
  TERSE_RETURN_IF_ERROR(SkipTo(codec.layout().size(), cursor.get()));
  return index;
}

std::unique_ptr<UpdateCursor> UpdateIndex::Before(int64_t position) const {
  return places_[position / spacing_]->Clone();
}

int AggregationThreads(absl::Span<const absl::string_view> messages) {
  size_t bytes = 0;
  for (absl::string_view message : messages) bytes += message.size();
  return bytes < kThreadBytes ? 1 : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::vector<float> AveragingWeights(absl::Span<const int64_t> samples, int64_t total) {
  if (total == 0) total = std::accumulate(samples.begin(), samples.end(), int64_t{0});
  std::vector<float> weights;
  weights.reserve(samples.size());
  const double divisor = static_cast<double>(total);
  for (int64_t count : samples) weights.push_back(static_cast<float>(static_cast<double>(count) / divisor));
  return weights;
}

absl::Status AverageIndexed(const Codec& codec, absl::Span<const UpdateIndex> indexes, absl::Span<const float> weights,
                            int threads, absl::Span<float> average) {
  TERSE_RETURN_IF_ERROR(CheckSizes(codec, indexes.size(), weights.size(), average));
  const int64_t size = codec.layout().size();
  return InThreads(threads, [&](int thread) {
    const int64_t begin = ShareBegin(size, threads, thread);
    const int64_t end = ShareBegin(size, threads, thread + 1);
    if (begin == end) return absl::OkStatus();
    std::vector<std::unique_ptr<UpdateCursor>> cursors;
    for (const UpdateIndex& index : indexes) {
      cursors.push_back(index.Before(begin));
      TERSE_RETURN_IF_ERROR(SkipTo(begin, cursors.back().get()));
    }
    return RangeAverager(&codec, std::move(cursors), weights).Run(begin, end, average.data());
  });
}

absl::Status AverageUpdates(const Codec& codec, absl::Span<const absl::string_view> messages,
                            absl::Span<const float> weights, int threads, absl::Span<float> average) {
  TERSE_RETURN_IF_ERROR(CheckSizes(codec, messages.size(), weights.size(), average));
  const int64_t size = codec.layout().size();
  if (threads > 1) {
    std::vector<UpdateIndex> indexes(messages.size());
    TERSE_RETURN_IF_ERROR(InThreads(threads, [&](int thread) {
      for (size_t i = thread; i < messages.size(); i += threads) {
        absl::StatusOr<UpdateIndex> index = UpdateIndex::Build(codec, messages[i], std::max(kBlock, size / threads));
        if (!index.ok()) return Annotate(index.status(), absl::StrCat("update ", i));
        indexes[i] = *std::move(index);
      }
      return absl::OkStatus();
    }));
    return AverageIndexed(codec, indexes, weights, threads, average);
  }
  std::vector<std::unique_ptr<UpdateCursor>> cursors;
  for (size_t i = 0; i < messages.size(); ++i) {
    absl::StatusOr<std::unique_ptr<UpdateCursor>> cursor = codec.Open(messages[i]);
    if (!cursor.ok()) return Annotate(cursor.status(), absl::StrCat("update ", i));
    cursors.push_back(*std::move(cursor));
  }
  return RangeAverager(&codec, std::move(cursors), weights).Run(0, size, average.data());
}

}  // namespace terse
