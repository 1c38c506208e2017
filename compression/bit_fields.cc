#include "compression/bit_fields.h"

#include <algorithm>

#include "compression/rice_kernels.h"

namespace terse {
namespace {

constexpr int64_t kRun = 256;  // fields a step: their bytes stay in the first-level cache

}  // namespace

void PutFields(absl::Span<const uint32_t> values, int width, BitWriter* writer) {
  if (width == 0) return;
  char bytes[kRun * 4 + kPackPad];
  const RiceKernels& kernels = GetRiceKernels();
  for (size_t begin = 0; begin < values.size(); begin += kRun) {
    const absl::Span<const uint32_t> run = values.subspan(begin, kRun);
    kernels.pack(run.data(), run.size(), width, bytes);
    writer->PutBits(bytes, static_cast<int64_t>(run.size()) * width);
  }
}

void GetFields(int width, absl::Span<uint32_t> values, BitReader* reader) {
  const int64_t count = static_cast<int64_t>(values.size());
  if (width == 0) {
    std::fill(values.begin(), values.end(), 0);
    return;
  }
  const absl::string_view bytes = reader->bytes();
  const int64_t bit = static_cast<int64_t>(reader->position());
  // Fields that begin at this bit or later have fewer than eight bytes from there on.
  const int64_t end = 8 * (static_cast<int64_t>(bytes.size()) - 7);
  const int64_t whole = std::min(count, std::max<int64_t>(0, (end - bit + width - 1) / width));
  GetRiceKernels().unpack(bytes.data(), bit, width, whole, values.data());
  reader->Skip(static_cast<uint64_t>(whole) * width);
  for (int64_t i = whole; i < count; ++i) reader->Get(width, &values[i]);
}

}  // namespace terse
