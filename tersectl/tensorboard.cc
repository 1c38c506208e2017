#include "tersectl/tensorboard.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <cstdint>
#include <cstring>
#include <functional>

namespace terse {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;

constexpr char kEventVersion[] = "brain.Event:2";

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
uint32_t MaskedCrc(absl::string_view bytes) {
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

std::string ScalarValue(const std::string& tag, double value) {
  return Written([&](CodedOutputStream* out) {
    WriteBytes(kTag, tag, out);
    out->WriteTag(kSimpleValue << 3 | kFixed32);
    out->WriteLittleEndian32(BitsOf<float, uint32_t>(static_cast<float>(value)));
  });
}

bool SkipField(uint32_t tag, CodedInputStream* in) {
  uint64_t length = 0;
  switch (tag & 7) {
    case kVarint:
      return in->ReadVarint64(&length);
    case kFixed64:
      return in->Skip(8);
    case kFixed32:
      return in->Skip(4);
    case kLength:
      return in->ReadVarint64(&length) && in->Skip(static_cast<int>(length));
    default:
      return false;
  }
}

// The step of an event; 0 where it has none, as the first one.
uint64_t StepOf(absl::string_view event) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(event.data()), static_cast<int>(event.size()));
  uint64_t step = 0;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag == (kStep << 3 | kVarint)) {
      in.ReadVarint64(&step);
    } else if (!SkipField(tag, &in)) {
      break;
    }
  }
  return step;
}

template <typename Word>
Word WordAt(absl::string_view bytes, size_t at) {
  Word word = 0;
  for (size_t i = 0; i < sizeof(word); ++i) word |= static_cast<Word>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return word;
}

}  // namespace

std::string TensorBoardBegin(int64_t created_us) {
  return Record(Written([&](CodedOutputStream* out) {
    WriteTime(created_us, out);
    WriteBytes(kFileVersion, kEventVersion, out);
  }));
}

std::string TensorBoardStep(const v1::Round& round, const Scalars& scalars) {
  const std::string summary = Written([&](CodedOutputStream* out) {
    for (const auto& [tag, value] : scalars) WriteBytes(kValue, ScalarValue(tag, value), out);
  });
  return Record(Written([&](CodedOutputStream* out) {
    WriteTime(round.committed_us(), out);
    out->WriteTag(kStep << 3 | kVarint);
    out->WriteVarint64(round.id());
    WriteBytes(kSummary, summary, out);
  }));
}

std::string TensorBoardEvents(const v1::Status& status, const std::vector<v1::Round>& rounds) {
  std::string file = TensorBoardBegin(status.created_us());
  RoundScalars so_far;
  for (const v1::Round& round : rounds) {
    const Scalars scalars = so_far.Add(round);
    if (!scalars.empty()) file += TensorBoardStep(round, scalars);
  }
  return file;
}

TensorBoardPart ReadTensorBoard(absl::string_view file) {
  constexpr size_t kHead = sizeof(uint64_t) + sizeof(uint32_t);
  TensorBoardPart part;
  while (file.size() - part.bytes >= kHead + sizeof(uint32_t)) {
    const absl::string_view rest = file.substr(part.bytes);
    const auto length = WordAt<uint64_t>(rest, 0);
    if (WordAt<uint32_t>(rest, sizeof(uint64_t)) != MaskedCrc(rest.substr(0, sizeof(uint64_t)))) break;
    if (length > rest.size() - kHead - sizeof(uint32_t)) break;
    const absl::string_view event = rest.substr(kHead, length);
    if (WordAt<uint32_t>(rest, kHead + length) != MaskedCrc(event)) break;
    part.bytes += kHead + length + sizeof(uint32_t);
    part.step = std::max(part.step, StepOf(event));
  }
  return part;
}

}  // namespace terse
