#include "tests/fuzz/agreement.h"

#include <algorithm>
#include <memory>
#include <string>

#include "compression/aggregate.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/fuzz/input.h"

namespace terse {
namespace {

constexpr int64_t kStride = 400;

void RequireRefused(const absl::Status& status, absl::string_view what) {
  Require(status.code() == absl::StatusCode::kInvalidArgument,
          absl::StrCat(what, " refuses what Validate refuses, but says: ", status.ToString()));
}

// Checks a run and appends it.
void Append(const DecodedRun& run, int64_t limit, Elements* elements) {
  Require(run.count <= kDecodedRun, "a run has at most kDecodedRun elements");
  for (int64_t i = 0; i < run.count; ++i) {
    const int64_t position = run.PositionOf(i);
    Require(position >= 0 && position < limit, "a run ends below the limit");
    Require(elements->positions.empty() || position > elements->positions.back(), "positions increase");
    Require(IsFinite(run.values[i]), "decoded values are finite");
    elements->positions.push_back(position);
    elements->values.push_back(run.values[i]);
  }
}

// Reads on from where the cursor stands to the end, each limit less than `step` behind the one before; but one of 16
// goes further, or steps of one element would be most of what a fuzzer does.
absl::Status ReadPieces(int64_t size, int64_t step, Random* random, std::unique_ptr<UpdateCursor> cursor,
                        Elements* elements) {
  for (int64_t limit = 0;;) {
    limit = std::min(size, limit + static_cast<int64_t>(random->Below(random->Below(16) == 0 ? step + kStride : step)));
    if (random->Below(4) == 0) cursor = cursor->Clone();
    DecodedRun run;
    do {
      TERSE_RETURN_IF_ERROR(cursor->Next(limit, &run));
      Append(run, limit, elements);
    } while (run.count > 0);
    if (limit == size) return absl::OkStatus();
  }
}

absl::Status ReadMessage(const Codec& codec, absl::string_view message, int64_t step, Random* random,
                         Elements* elements) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<UpdateCursor> cursor, codec.Open(message));
  return ReadPieces(codec.layout().size(), step, random, std::move(cursor), elements);
}

bool Same(const Elements& a, const Elements& b) {
  return a.positions == b.positions && FloatsAsBits(a.values) == FloatsAsBits(b.values);
}

// The elements at or behind a position.
Elements From(int64_t position, const Elements& elements) {
  const auto begin = std::lower_bound(elements.positions.begin(), elements.positions.end(), position);
  const auto skipped = begin - elements.positions.begin();
  return {{begin, elements.positions.end()}, {elements.values.begin() + skipped, elements.values.end()}};
}

void CheckIndex(const Codec& codec, absl::string_view message, const Elements& elements, Random* random) {
  const int64_t size = codec.layout().size();
  const auto index = UpdateIndex::Build(codec, message, 1 + static_cast<int64_t>(random->Below(size)));
  Require(index.ok(), "UpdateIndex takes what Validate takes");
  const int64_t position = static_cast<int64_t>(random->Below(size));
  Elements rest;
  const absl::Status status = ReadPieces(size, 200, random, index->Before(position), &rest);
  Require(status.ok(), "a place of the index leads to the end");
  Require(Same(From(position, rest), From(position, elements)), "a place of the index leads to the same elements");
}

void CheckSums(const Codec& codec, absl::string_view message, const Elements& elements) {
  std::vector<float> expected(codec.layout().size());
  for (size_t i = 0; i < elements.positions.size(); ++i) expected[elements.positions[i]] += elements.values[i];
  std::vector<float> sum(expected.size());
  Require(codec.AddDecoded(message, 1.0f, absl::MakeSpan(sum)).ok(), "AddDecoded takes what Validate takes");
  Require(FloatsAsBits(sum) == FloatsAsBits(expected), "AddDecoded adds what the cursor yields");
  std::vector<float> average(expected.size());
  const absl::Status status = AverageUpdates(codec, {message}, {}, 1, absl::MakeSpan(average));
  Require(status.ok(), "AverageUpdates takes what Validate takes");
  Require(FloatsAsBits(average) == FloatsAsBits(expected), "the average of one update is the update");
}

void CheckSent(const Codec& codec, absl::string_view message, const Elements& elements) {
  const auto sent = codec.SentPositions(message);
  Require(sent.ok(), "SentPositions takes what Validate takes");
  Require(sent->has_value() != codec.traits().carries_all, "SentPositions has positions unless all are carried");
  if (sent->has_value()) {
    std::vector<int64_t> parameters = elements.positions;
    while (!parameters.empty() && parameters.back() >= codec.layout().parameters()) parameters.pop_back();
    Require(**sent == parameters, "SentPositions are those of parameters that the cursor yields");
    Require(static_cast<int64_t>(elements.positions.size() - parameters.size()) ==
                codec.layout().size() - codec.layout().parameters(),
            "a message carries all buffers");
  } else {
    Require(static_cast<int64_t>(elements.positions.size()) == codec.layout().size(),
            "a codec that carries all elements yields all of them");
  }
}

// Every refused message would be read six times; `pieces` chooses one of the ways, and the fuzzer tries them all.
void CheckRefused(const Codec& codec, absl::string_view message, const absl::Status& status, uint64_t pieces) {
  RequireRefused(status, "Validate");
  Random random(pieces);
  const size_t size = static_cast<size_t>(codec.layout().size());
  if (pieces % 5 == 0) {
    std::vector<float> sum(size);
    Require(codec.AddDecoded(message, 1.0f, absl::MakeSpan(sum)) == status, "AddDecoded fails as Validate does");
  } else if (pieces % 5 == 1) {
    Require(codec.SentPositions(message).status() == status, "SentPositions fails as Validate does");
  } else if (pieces % 5 == 2) {
    RequireRefused(UpdateIndex::Build(codec, message, 1 + random.Below(size)).status(), "UpdateIndex");
  } else if (pieces % 5 == 3) {
    std::vector<float> sum(size);
    RequireRefused(AverageUpdates(codec, {message}, /*weights=*/{}, /*threads=*/1, absl::MakeSpan(sum)),
                   "AverageUpdates");
  } else {
    Elements elements;
    RequireRefused(ReadMessage(codec, message, 100, &random, &elements), "a cursor with odd limits");
  }
}

void CheckPieces(const Codec& codec, absl::string_view message, const Elements& elements, int64_t step,
                 Random* random) {
  Elements pieced;
  Require(ReadMessage(codec, message, step, random, &pieced).ok(), "limits change nothing about an accepted message");
  Require(Same(pieced, elements), "limits change nothing about the elements");
}

// One way more, as with refused messages.
void CheckAccepted(const Codec& codec, absl::string_view message, const Elements& elements, uint64_t pieces) {
  constexpr int64_t kSteps[] = {2, 70, 900};
  Random random(pieces);
  switch (pieces % 6) {
    case 3:
      return CheckSums(codec, message, elements);
    case 4:
      return CheckSent(codec, message, elements);
    case 5:
      return CheckIndex(codec, message, elements, &random);
    default:
      return CheckPieces(codec, message, elements, kSteps[pieces % 6], &random);
  }
}

}  // namespace

absl::optional<Elements> ReadEveryWay(const Codec& codec, absl::string_view message, uint64_t pieces) {
  const absl::Status status = codec.Validate(message);
  if (!status.ok()) {
    CheckRefused(codec, message, status, pieces);
    return absl::nullopt;
  }
  Require(static_cast<int64_t>(message.size()) <= codec.MaxMessageBytes(), "no message is above MaxMessageBytes");
  Random random(pieces);
  Elements elements;
  Require(ReadMessage(codec, message, int64_t{1} << 40, &random, &elements).ok(), "a cursor takes what Validate takes");
  Require(elements.positions.size() <= static_cast<size_t>(codec.layout().size()), "a message names an element once");
  CheckAccepted(codec, message, elements, pieces);
  return elements;
}

}  // namespace terse
