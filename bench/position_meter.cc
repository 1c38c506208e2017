#include "bench/position_meter.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/synthetic.h"
#include "compression/auto_coder.h"
#include "compression/rice.h"
#include "compression/shared_coder.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kRice[] = "rice";
constexpr char kAuto[] = "auto";
constexpr char kShared[] = "shared";
constexpr char kUnderRice[] = "shared under rice, %";
constexpr char kRunTable[] = "bits per position";
constexpr char kTensorTable[] = "bits per position, all rounds";

// The positions that a message has of one tensor, as SharedCoder wants them.
struct TensorPositions {
  std::vector<uint32_t> positions;  // from the tensor's first element
  int side = 0;
};

absl::StatusOr<TensorPositions> ReadTensor(const TensorSpec& tensor, UpdateCursor* cursor) {
  TensorPositions read;
  DecodedRun run;
  do {
    TERSE_RETURN_IF_ERROR(cursor->Next(tensor.offset + tensor.size, &run));
    if (run.count > 0) read.side = run.values[0] < 0 ? 1 : 0;
    for (int64_t i = 0; i < run.count; ++i) {
      read.positions.push_back(static_cast<uint32_t>(run.PositionOf(i) - tensor.offset));
    }
  } while (run.count > 0);
  return read;
}

void ReportTally(const PositionTally& tally, const std::string& row, const std::string& table,
                 std::vector<Metric>* metrics) {
  tally.Report(row, table, metrics);
  if (tally.positions() == 0) return;
  metrics->push_back({kUnderRice, row, 100 * (1 - tally.Bits(kShared) / tally.Bits(kRice)), {}, table});
}

}  // namespace

PositionMeter::PositionMeter(const Codec* codec, int64_t clients, int64_t rounds)
    : codec_(codec),
      first_rounds_(std::max<int64_t>(1, rounds / 10)),
      histories_(clients, UpdateHistory(*codec->PackedLayout())),
      tensors_(codec->PackedLayout()->tensors().size()) {}

absl::Status PositionMeter::Add(int64_t round, int64_t client, absl::string_view message) {
  TERSE_RETURN_IF_ERROR(codec_->Validate(message));
  UpdateHistory& history = histories_[client];
  Part& part = parts_[round <= first_rounds_ ? 0 : 1];
  TERSE_ASSIGN_OR_RETURN(const Measured measured, AddTensors(message, history, &part.tally));
  TERSE_ASSIGN_OR_RETURN(const std::string packed, PackAndCheck(message, history));
  // Everything but positions is the same in both, and both end with less than a byte of padding.
  const int64_t saved = 8 * (static_cast<int64_t>(message.size()) - static_cast<int64_t>(packed.size()));
  if (std::abs(measured.rice_bits - measured.shared_bits - saved) >= 8) {
    return absl::InternalError(
        absl::StrCat("round ", round, ", client ", client, ": positions take ", measured.rice_bits,
                     " bits with Rice and ", measured.shared_bits, " shared, but packing saves ", saved,
                     " bits of the message; one of the two counts is wrong, so no figure of this run can be trusted"));
  }
  ++part.messages;
  part.plain_bytes += static_cast<int64_t>(message.size());
  part.sent_bytes += static_cast<int64_t>(std::min(message.size(), packed.size()));
  return codec_->AddToHistory(message, &history);
}

absl::StatusOr<PositionMeter::Measured> PositionMeter::AddTensors(absl::string_view message,
                                                                  const UpdateHistory& history, PositionTally* part) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<UpdateCursor> cursor, codec_->Open(message));
  Measured sum;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorSpec& tensor = codec_->PackedLayout()->tensors()[i];
    TERSE_ASSIGN_OR_RETURN(const TensorPositions sent, ReadTensor(tensor, cursor.get()));
    if (sent.positions.empty()) continue;
    const auto count = static_cast<int64_t>(sent.positions.size());
    const int64_t rice = RiceCoder().Bits(sent.positions, tensor.size);
    const int64_t shared = SharedCoder(&history.tensors()[i], sent.side).Bits(sent.positions, tensor.size);
    const double bound = PositionEntropy(count, tensor.size) * static_cast<double>(count);
    const auto automatic = static_cast<double>(AutoCoder().Bits(sent.positions, tensor.size));
    const CoderBits costs[] = {{kRice, static_cast<double>(rice)},
                               {kAuto, automatic},
                               {kPositionBound, bound},
                               {kShared, static_cast<double>(shared)}};
    part->Add(count, costs);
    tensors_[i].Add(count, costs);
    sum.rice_bits += rice;
    sum.shared_bits += shared;
  }
  return sum;
}

absl::StatusOr<std::string> PositionMeter::PackAndCheck(absl::string_view message, const UpdateHistory& history) const {
  TERSE_ASSIGN_OR_RETURN(std::string packed, codec_->Pack(message, history));
  TERSE_ASSIGN_OR_RETURN(const std::string unpacked, codec_->Unpack(packed, history));
  if (unpacked == message) return packed;
  return absl::InternalError(absl::StrCat("a message of ", message.size(), " bytes is another one of ", unpacked.size(),
                                          " once it was packed and unpacked with the same history; this is a defect "
                                          "of Codec::Pack or Unpack"));
}

void PositionMeter::ReportPart(const std::string& row, const Part& part, std::vector<Metric>* metrics) {
  if (part.messages == 0) return;
  ReportTally(part.tally, row, kRunTable, metrics);
  const auto messages = static_cast<double>(part.messages);
  metrics->push_back(
      {"message with rice, bytes", row, static_cast<double>(part.plain_bytes) / messages, {}, kRunTable});
  metrics->push_back({"packed, bytes", row, static_cast<double>(part.sent_bytes) / messages, {}, kRunTable});
}

void PositionMeter::Report(std::vector<Metric>* metrics) const {
  Part whole;
  for (const Part& part : parts_) {
    whole.tally.Add(part.tally);
    whole.messages += part.messages;
    whole.plain_bytes += part.plain_bytes;
    whole.sent_bytes += part.sent_bytes;
  }
  ReportPart("first tenth", parts_[0], metrics);
  ReportPart("rest", parts_[1], metrics);
  ReportPart("all", whole, metrics);
  const absl::Span<const TensorSpec> specs = codec_->PackedLayout()->tensors();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    ReportTally(tensors_[i], absl::StrCat(specs[i].name, " (", specs[i].size, ")"), kTensorTable, metrics);
  }
}

}  // namespace terse
