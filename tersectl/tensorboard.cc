#include "tersectl/tensorboard.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <boost/crc.hpp>
#include <cstdint>
#include <cstring>
#include <functional>

#include "core/compression_rate.h"

namespace terse {
namespace {

using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;

constexpr char kVersion[] = "brain.Event:2";

// Fields of TensorFlow's event.proto and summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2 };
enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

std::string Written(const std::function<void(CodedOutputStream*)>& write) {
  std::string bytes;
  StringOutputStream stream(&bytes);
  {
    CodedOutputStream out(&stream);
    write(&out);
  }
  return bytes;
}

template <typename Number, typename Bits>
Bits BitsOf(Number value) {
  static_assert(sizeof(Number) == sizeof(Bits), "same bits");
  Bits bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

void WriteBytes(int field, const std::string& bytes, CodedOutputStream* out) {
  out->WriteTag(static_cast<uint32_t>(field << 3 | kLength));
  out->WriteVarint64(bytes.size());
  out->WriteString(bytes);
}

void WriteTime(int64_t unix_us, CodedOutputStream* out) {
  out->WriteTag(kWallTime << 3 | kFixed64);
  out->WriteLittleEndian64(BitsOf<double, uint64_t>(static_cast<double>(unix_us) / 1e6));
}

// CRC-32C, turned and shifted, because the checksum of data that holds its own checksum is weak.
uint32_t MaskedCrc(const std::string& bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const uint32_t value = crc.checksum();
  return (value >> 15 | value << 17) + 0xa282ead8;
}

std::string Record(const std::string& event) {
  const std::string length = Written([&](CodedOutputStream* out) { out->WriteLittleEndian64(event.size()); });
  return Written([&](CodedOutputStream* out) {
    out->WriteString(length);
    out->WriteLittleEndian32(MaskedCrc(length));
    out->WriteString(event);
    out->WriteLittleEndian32(MaskedCrc(event));
  });
}

// The scalars of one event.
class Scalars {
 public:
  void Add(const std::string& tag, double value) {
    const std::string scalar = Written([&](CodedOutputStream* out) {
      WriteBytes(kTag, tag, out);
      out->WriteTag(kSimpleValue << 3 | kFixed32);
      out->WriteLittleEndian32(BitsOf<float, uint32_t>(static_cast<float>(value)));
    });
    summary_ += Written([&](CodedOutputStream* out) { WriteBytes(kValue, scalar, out); });
  }
  std::string EventAt(uint64_t step, int64_t unix_us) const {
    return Written([&](CodedOutputStream* out) {
      WriteTime(unix_us, out);
      out->WriteTag(kStep << 3 | kVarint);
      out->WriteVarint64(step);
      WriteBytes(kSummary, summary_, out);
    });
  }

 private:
  std::string summary_;
};

// The totals of all rounds until one.
struct RoundTotals {
  uint64_t dense_bytes_up = 0, payload_bytes_up = 0, wire_bytes_up = 0;
  uint64_t dense_bytes_down = 0, wire_bytes_down = 0;
};

Scalars ScalarsOf(const v1::Round& round, const RoundTotals& so_far) {
  Scalars scalars;
  if (round.has_accuracy()) scalars.Add("test/accuracy", round.accuracy());
  if (round.has_test_loss()) scalars.Add("test/loss", round.test_loss());
  if (round.has_top5()) scalars.Add("test/top5", round.top5());
  if (round.has_perplexity()) scalars.Add("test/perplexity", round.perplexity());
  if (round.has_train_loss()) scalars.Add("train/loss", round.train_loss());
  for (const v1::MetricMean& mean : round.metrics()) {
    scalars.Add(absl::StrCat(mean.kind() == "training" ? "train" : mean.kind(), "/", mean.name()), mean.mean());
  }
  scalars.Add("bytes/up_payload", static_cast<double>(round.payload_bytes_up()));
  scalars.Add("bytes/up_wire", static_cast<double>(round.wire_bytes_up()));
  scalars.Add("bytes/down_payload", static_cast<double>(round.payload_bytes_down()));
  scalars.Add("bytes/down_wire", static_cast<double>(round.wire_bytes_down()));
  scalars.Add("bytes_total/up_wire", static_cast<double>(so_far.wire_bytes_up));
  scalars.Add("bytes_total/down_wire", static_cast<double>(so_far.wire_bytes_down));
  const auto add_rate = [&scalars](const char* tag, uint64_t dense, uint64_t sent) {
    if (const auto rate = CompressionRate(dense, sent); rate.has_value()) scalars.Add(tag, *rate);
  };
  add_rate("compression/up_payload", so_far.dense_bytes_up, so_far.payload_bytes_up);
  add_rate("compression/up_wire", so_far.dense_bytes_up, so_far.wire_bytes_up);
  add_rate("compression/both_wire", so_far.dense_bytes_up + so_far.dense_bytes_down,
           so_far.wire_bytes_up + so_far.wire_bytes_down);
  scalars.Add("time/round_seconds", static_cast<double>(round.committed_us() - round.opened_us()) / 1e6);
  return scalars;
}

}  // namespace

std::string TensorBoardEvents(const v1::Status& status, const std::vector<v1::Round>& rounds) {
  std::string file = Record(Written([&](CodedOutputStream* out) {
    WriteTime(status.created_us(), out);
    WriteBytes(kFileVersion, kVersion, out);
  }));
  RoundTotals so_far;
  for (const v1::Round& round : rounds) {
    so_far.dense_bytes_up += round.dense_bytes_up();
    so_far.payload_bytes_up += round.payload_bytes_up();
    so_far.wire_bytes_up += round.wire_bytes_up();
    so_far.dense_bytes_down += round.dense_bytes_down();
    so_far.wire_bytes_down += round.wire_bytes_down();
    if (round.state() != "committed") continue;
    file += Record(ScalarsOf(round, so_far).EventAt(round.id(), round.committed_us()));
  }
  return file;
}

}  // namespace terse
