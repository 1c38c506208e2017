#include "compression/codec.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compression/exact_math.h"
#include "compression/fetch_ahead.h"
#include "compression/quantize_kernels.h"
#include "core/status.h"

namespace terse {
namespace {

// Far enough ahead that a cache line from main memory is there in time.
constexpr int64_t kPrefetchAhead = 24;
constexpr int64_t kFloatsOfLine = 16;

// Calls `visit(run)` for every run of the message.
template <typename Visit>
absl::Status ForEachRun(const Codec& codec, absl::string_view message, Visit visit) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<UpdateCursor> cursor, codec.Open(message));
  DecodedRun run;
  while (true) {
    TERSE_RETURN_IF_ERROR(cursor->Next(codec.layout().size(), &run));
    if (run.count == 0) return absl::OkStatus();
    visit(run);
  }
}

absl::Status NothingToPack(const Codec& codec) {
  return absl::FailedPreconditionError(
      absl::StrCat("codec ", codec.name(),
                   " sends no positions that a history could pack; use a sparse codec, "
                   "such as sbc, or another setting of codec.positions"));
}

}  // namespace

void AddRun(const DecodedRun& run, float scale, int64_t base, float* accumulator) {
  const int64_t shift = run.begin - base;
  if (run.positions == nullptr) {
    FetchAheadToWrite(accumulator + shift, run.count * static_cast<int64_t>(sizeof(float)));
    return AddRunNear(run, scale, base, accumulator);
  }
  if (run.count == 0) return;
  const int64_t span = int64_t{run.positions[run.count - 1]} - run.positions[0] + 1;
  if (span <= kFloatsOfLine * run.count) {
    // Most lines are touched: it takes less to fetch all of them.
    FetchAheadToWrite(accumulator + shift + run.positions[0], span * static_cast<int64_t>(sizeof(float)));
    return AddRunNear(run, scale, base, accumulator);
  }
  for (int64_t done = 0; done < run.count; done += kPrefetchAhead) {
    const int64_t end = std::min(run.count, done + 2 * kPrefetchAhead);
    for (int64_t i = done + (done == 0 ? 0 : kPrefetchAhead); i < end; ++i) {
      __builtin_prefetch(accumulator + shift + run.positions[i], 1);
    }
    DecodedRun part = run;
    part.positions += done;
    part.values += run.common ? 0 : done;
    part.count = std::min(kPrefetchAhead, run.count - done);
    AddRunNear(part, scale, base, accumulator);
  }
}

void AddRunNear(const DecodedRun& run, float scale, int64_t base, float* accumulator) {
  const int64_t shift = run.begin - base;
  if (run.positions == nullptr) {
    GetQuantizeKernels().add_scaled(run.values, run.count, scale, accumulator + shift);
  } else if (run.common) {
    const float term = scale * run.values[0];
    for (int64_t i = 0; i < run.count; ++i) accumulator[shift + run.positions[i]] += term;
  } else {
    for (int64_t i = 0; i < run.count; ++i) accumulator[shift + run.positions[i]] += scale * run.values[i];
  }
}

absl::Status Codec::Validate(absl::string_view message) const {
  return ForEachRun(*this, message, [](const DecodedRun&) {});
}

absl::StatusOr<UpdateSize> Codec::Measure(absl::string_view message) const {
  UpdateSize size;
  double squares = 0;
  const int64_t parameters = layout().parameters();
  TERSE_RETURN_IF_ERROR(ForEachRun(*this, message, [&](const DecodedRun& run) {
    // Buffers lie behind all parameters.
    const int64_t inside =
        run.positions == nullptr
            ? std::clamp(parameters - run.begin, int64_t{0}, run.count)
            : std::lower_bound(run.positions, run.positions + run.count, parameters - run.begin) - run.positions;
    const int64_t values = run.common ? 1 : run.count;
    const int64_t squared = run.common ? std::min(inside, values) : inside;
    const double sum = SumOfSquares({run.values, static_cast<size_t>(squared)});
    squares += run.common ? sum * static_cast<double>(inside) : sum;
    size.largest = std::max(size.largest, LargestMagnitude({run.values, static_cast<size_t>(values)}));
  }));
  size.norm = std::sqrt(squares);
  return size;
}

absl::Status Codec::AddDecoded(absl::string_view message, float sign, absl::Span<float> accumulator) const {
  if (accumulator.size() != static_cast<size_t>(layout().size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the accumulator has ", accumulator.size(), " elements, the model ", layout().size()));
  }
  return ForEachRun(*this, message, [&](const DecodedRun& run) { AddRun(run, sign, 0, accumulator.data()); });
}

absl::StatusOr<absl::optional<std::vector<int64_t>>> Codec::SentPositions(absl::string_view message) const {
  std::vector<int64_t> sent;
  const bool all = traits().carries_all;
  TERSE_RETURN_IF_ERROR(ForEachRun(*this, message, [&sent, all](const DecodedRun& run) {
    // Where not all parameters travel, only buffers come as consecutive positions.
    if (all || run.positions == nullptr) return;
    for (int64_t i = 0; i < run.count; ++i) sent.push_back(run.PositionOf(i));
  }));
  if (all) return absl::optional<std::vector<int64_t>>();
  return absl::make_optional(std::move(sent));
}

absl::StatusOr<std::string> Codec::Pack(absl::string_view, const UpdateHistory&) const { return NothingToPack(*this); }

absl::StatusOr<std::string> Codec::Unpack(absl::string_view, const UpdateHistory&) const {
  return NothingToPack(*this);
}

absl::Status Codec::AddToHistory(absl::string_view, UpdateHistory*) const { return NothingToPack(*this); }

}  // namespace terse
