#include "compression/aggregate.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "compression/bit_stream.h"
#include "compression/dense.h"
#include "compression/quantize_kernels.h"
#include "core/status.h"

namespace terse {
namespace {

// The fewest elements of a block: their sums stay in the second-level cache.
constexpr int64_t kBlock = int64_t{1} << 15;
// A block is so large that a message of the mean size has about as many bytes of it, which makes a visit worth it.
constexpr size_t kVisitBytes = 256;
// Below so many bytes of messages, starting a thread takes longer than it saves.
constexpr size_t kThreadBytes = size_t{1} << 18;
// Messages of fewer bytes than this in the mean are not indexed: each thread reads them from their beginning, which
// takes less time and memory than places to enter them do. More threads than this would read too much twice.
constexpr size_t kIndexedBytes = size_t{1} << 15;
constexpr int kThreadsThatSkip = 4;

// Moves the cursor to the first element at or behind `position`.
absl::Status SkipTo(int64_t position, UpdateCursor* cursor) {
  DecodedRun run;
  do {
    TERSE_RETURN_IF_ERROR(cursor->Next(position, &run));
  } while (run.count > 0);
  return absl::OkStatus();
}

// Starts to fetch floats that will be written, while several visits of other ones go on: each visit fetches its share,
// spread over its slices, of which it is taken to have as many as the visit before. More lines at once would keep the
// additions waiting.
class LineFetcher {
 public:
  LineFetcher(const float* floats, int64_t count, int64_t visits)
      : floats_(floats), count_(count), share_((count + visits - 1) / visits), pace_(share_) {}

  // The visit comes to a further slice.
  void Advance() {
    ++slices_;
    FetchUntil(std::min(next_ + pace_, end_));
  }

  void EndVisit() {
    FetchUntil(end_);
    end_ += share_;
    pace_ = share_ / std::max<int64_t>(slices_, 1) + 1;
    slices_ = 0;
  }

 private:
  static constexpr int64_t kFloatsOfLine = 16;

  void FetchUntil(int64_t end) {
    for (end = std::min(end, count_); next_ < end; next_ += kFloatsOfLine) __builtin_prefetch(floats_ + next_, 1);
  }

  const float* const floats_;
  const int64_t count_;
  const int64_t share_;
  int64_t pace_;  // floats a slice
  int64_t next_ = 0;
  int64_t end_ = share_;  // of the visit's share
  int64_t slices_ = 0;    // of the visit so far
};

// Averages some elements of the model, those of one thread.
class RangeAverager {
 public:
  // Makes the cursor of an update at an element.
  using Enter = absl::FunctionRef<absl::StatusOr<std::unique_ptr<UpdateCursor>>(size_t update, int64_t begin)>;

  RangeAverager(const Codec* codec, size_t updates, absl::Span<const float> weights, const Imputation& imputation,
                int64_t block)
      : codec_(codec), updates_(updates), weights_(weights), imputation_(imputation), block_(block) {}

  // `average` is that of the element `begin`.
  absl::Status Run(int64_t begin, int64_t end, Enter enter, float* average) {
    const bool imputes = imputation_.trust > 0;
    const bool one_group = updates_ <= kGroup;
    if (imputes) senders_.resize(one_group ? std::min(block_, end - begin) : end - begin);
    for (size_t first = 0; first < updates_; first += kGroup) {
      const size_t last = std::min(first + kGroup, updates_);
      std::vector<std::unique_ptr<UpdateCursor>> cursors;
      for (size_t i = first; i < last; ++i) {
        absl::StatusOr<std::unique_ptr<UpdateCursor>> cursor = enter(i, begin);
        if (!cursor.ok()) return OfUpdate(cursor.status(), i);
        cursors.push_back(*std::move(cursor));
      }
      for (int64_t at = begin; at < end; at += block_) {
        const int64_t block_end = std::min(at + block_, end);
        float* const sums = average + (at - begin);
        float* const senders = !imputes ? nullptr : senders_.data() + (one_group ? 0 : at - begin);
        if (first == 0) Clear(block_end - at, sums, senders);
        // Larger blocks would not stay in the cache until their turn comes.
        const int64_t next = block_ == kBlock ? std::min(block_, end - block_end) : 0;
        TERSE_RETURN_IF_ERROR(AddBlock(at, block_end, next, first, cursors, sums, senders));
        if (last == updates_) TERSE_RETURN_IF_ERROR(Scale(at, block_end, senders, sums));
      }
    }
    return absl::OkStatus();
  }

 private:
  // A round of a large fleet has more updates than have room for their cursors in the cache.
  static constexpr size_t kGroup = 64;

  static absl::Status OfUpdate(const absl::Status& status, size_t update) {
    return Annotate(status, absl::StrCat("update ", update));
  }

  static void Clear(int64_t count, float* sums, float* senders) {
    std::fill(sums, sums + count, 0.0f);
    if (senders != nullptr) std::fill(senders, senders + count, 0.0f);
  }

  // Also fetches the `next` sums behind these, which a pass over them would otherwise wait for. `senders` of an element
  // are the weights of those who sent it; null where nothing is imputed.
  absl::Status AddBlock(int64_t begin, int64_t end, int64_t next, size_t first,
                        absl::Span<const std::unique_ptr<UpdateCursor>> cursors, float* sums, float* senders) const {
    LineFetcher ahead(sums + (end - begin), next, static_cast<int64_t>(cursors.size()));
    for (size_t i = 0; i < cursors.size(); ++i) {
      const float weight = weights_.empty() ? 1.0f : weights_[first + i];
      const absl::Status status = AddUntil(begin, end, weight, sums, senders, *cursors[i], &ahead);
      if (!status.ok()) return OfUpdate(status, first + i);
      ahead.EndVisit();
    }
    return absl::OkStatus();
  }

  static absl::Status AddUntil(int64_t begin, int64_t end, float weight, float* sums, float* senders,
                               UpdateCursor& cursor, LineFetcher* ahead) {
    DecodedRun run;
    while (true) {
      TERSE_RETURN_IF_ERROR(cursor.Next(end, &run));
      if (run.count == 0) return absl::OkStatus();
      AddFetching(run, weight, begin, sums, ahead);
      if (senders != nullptr) CountRun(run, weight, begin, senders);
    }
  }

  static void AddFetching(const DecodedRun& run, float weight, int64_t begin, float* sums, LineFetcher* ahead) {
    constexpr int64_t kSlice = 32;
    if (run.positions == nullptr) return AddRunNear(run, weight, begin, sums);
    for (int64_t done = 0; done < run.count; done += kSlice) {
      ahead->Advance();
      AddRunNear(run.Slice(done, kSlice), weight, begin, sums);
    }
  }

  static void CountRun(const DecodedRun& run, float weight, int64_t begin, float* senders) {
    const int64_t shift = run.begin - begin;
    for (int64_t i = 0; i < run.count; ++i)
      senders[shift + (run.positions == nullptr ? i : run.positions[i])] += weight;
  }

  absl::Status Scale(int64_t begin, int64_t end, const float* senders, float* sums) const {
    const QuantizeKernels& kernels = GetQuantizeKernels();
    const bool finite = senders == nullptr ? kernels.scale(end - begin, imputation_.scale, sums)
                                           : kernels.impute(end - begin, imputation_, senders, sums);
    if (finite) return absl::OkStatus();
    return SumOverflows(*codec_, begin, {sums, static_cast<size_t>(end - begin)});
  }

  const Codec* const codec_;
  const size_t updates_;
  const absl::Span<const float> weights_;  // empty, or one an update
  const Imputation imputation_;
  const int64_t block_;
  std::vector<float> senders_;
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

absl::Status AverageRanges(const Codec& codec, size_t updates, absl::Span<const float> weights, float trust,
                           int threads, int64_t block, RangeAverager::Enter enter, absl::Span<float> average) {
  const int64_t size = codec.layout().size();
  const Imputation imputation = MakeImputation(updates, weights, trust);
  return InThreads(threads, [&](int thread) {
    const int64_t begin = ShareBegin(size, threads, thread);
    const int64_t end = ShareBegin(size, threads, thread + 1);
    if (begin == end) return absl::OkStatus();
    return RangeAverager(&codec, updates, weights, imputation, block).Run(begin, end, enter, average.data() + begin);
  });
}

size_t MeanBytes(absl::Span<const absl::string_view> messages) {
  size_t bytes = 0;
  for (absl::string_view message : messages) bytes += message.size();
  return bytes / std::max<size_t>(messages.size(), 1);
}

absl::StatusOr<std::vector<UpdateIndex>> IndexAll(const Codec& codec, absl::Span<const absl::string_view> messages,
                                                  int threads) {
  const int64_t spacing = std::max(kBlock, codec.layout().size() / threads);
  std::vector<UpdateIndex> indexes(messages.size());
  TERSE_RETURN_IF_ERROR(InThreads(threads, [&](int thread) {
    for (size_t i = thread; i < messages.size(); i += threads) {
      absl::StatusOr<UpdateIndex> index = UpdateIndex::Build(codec, messages[i], spacing);
      if (!index.ok()) return Annotate(index.status(), absl::StrCat("update ", i));
      indexes[i] = *std::move(index);
    }
    return absl::OkStatus();
  }));
  return indexes;
}

absl::Status ImputeIndexed(const Codec& codec, absl::Span<const UpdateIndex> indexes, absl::Span<const float> weights,
                           float trust, int threads, absl::Span<float> average) {
  TERSE_RETURN_IF_ERROR(CheckSizes(codec, indexes.size(), weights.size(), average));
  const auto enter = [&](size_t update, int64_t begin) -> absl::StatusOr<std::unique_ptr<UpdateCursor>> {
    std::unique_ptr<UpdateCursor> cursor = indexes[update].Before(begin);
    TERSE_RETURN_IF_ERROR(SkipTo(begin, cursor.get()));
    return cursor;
  };
  return AverageRanges(codec, indexes.size(), weights, trust, threads, kBlock, enter, average);
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
  const size_t mean = MeanBytes(messages);
  if (mean * messages.size() < kThreadBytes) return 1;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return mean < kIndexedBytes ? std::min(cores, kThreadsThatSkip) : cores;
}

std::vector<float> AveragingWeights(absl::Span<const int64_t> samples, int64_t total) {
  if (total == 0) total = std::accumulate(samples.begin(), samples.end(), int64_t{0});
  std::vector<float> weights;
  weights.reserve(samples.size());
  const double divisor = static_cast<double>(total);
  for (int64_t count : samples) weights.push_back(static_cast<float>(static_cast<double>(count) / divisor));
  return weights;
}

absl::Status SumOverflows(const Codec& codec, int64_t begin, absl::Span<const float> sums) {
  int64_t i = 0;
  while (MagnitudeBits(FloatBits(sums[i])) < kInfinityBits) ++i;
  return absl::InvalidArgumentError(absl::StrCat(DescribeElement(codec.layout(), begin + i),
                                                 ": the sum of the updates overflows; training has diverged"));
}

Imputation MakeImputation(size_t updates, absl::Span<const float> weights, float trust) {
  if (weights.empty()) return {trust, static_cast<double>(updates), 1.0f / static_cast<float>(updates)};
  return {trust, std::accumulate(weights.begin(), weights.end(), 0.0), 1.0f};
}

absl::Status ImputeUpdates(const Codec& codec, absl::Span<const absl::string_view> messages,
                           absl::Span<const float> weights, float trust, int threads, absl::Span<float> step) {
  TERSE_RETURN_IF_ERROR(CheckSizes(codec, messages.size(), weights.size(), step));
  const size_t mean = MeanBytes(messages);
  if (threads > 1 && mean >= kIndexedBytes) {
    TERSE_ASSIGN_OR_RETURN(const std::vector<UpdateIndex> indexes, IndexAll(codec, messages, threads));
    return ImputeIndexed(codec, indexes, weights, trust, threads, step);
  }
  const auto enter = [&](size_t update, int64_t begin) -> absl::StatusOr<std::unique_ptr<UpdateCursor>> {
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<UpdateCursor> cursor, codec.Open(messages[update]));
    TERSE_RETURN_IF_ERROR(SkipTo(begin, cursor.get()));
    return cursor;
  };
  const int64_t visits = static_cast<int64_t>(std::max<size_t>(mean / kVisitBytes, 1));
  const int64_t block = std::max(kBlock, (codec.layout().size() + visits - 1) / visits);
  return AverageRanges(codec, messages.size(), weights, trust, threads, block, enter, step);
}

absl::Status AverageIndexed(const Codec& codec, absl::Span<const UpdateIndex> indexes, absl::Span<const float> weights,
                            int threads, absl::Span<float> average) {
  return ImputeIndexed(codec, indexes, weights, /*trust=*/0, threads, average);
}

absl::Status AverageUpdates(const Codec& codec, absl::Span<const absl::string_view> messages,
                            absl::Span<const float> weights, int threads, absl::Span<float> average) {
  return ImputeUpdates(codec, messages, weights, /*trust=*/0, threads, average);
}

}  // namespace terse
