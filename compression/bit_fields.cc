#include "compression/bit_fields.h"

#include <algorithm>

#include "compression/fetch_ahead.h"
#include "compression/rice_kernels.h"

namespace terse {
namespace {

constexpr int64_t kRun = 256;  // fields a step: their bytes stay in the first-level cache

}  // namespace

void PutFields(absl::Span<const uint32_t> values, int width, BitWriter* writer) {
  if (width == 0) return;
  if (width == 32) {
    // The fields are the bytes. Two of them are the eight that PutBits reads at a time.
    const size_t even = values.size() / 2 * 2;
    writer->PutBits(reinterpret_cast<const char*>(values.data()), 32 * static_cast<int64_t>(even));
    if (even < values.size()) writer->Put(values[even], 32);
    return;
  }
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
  const uint64_t bit = reader->position();
  FetchAheadToRead(bytes.data() + bit / 8, count * width / 8);
  GetRiceKernels().unpack(bytes.data(), static_cast<int64_t>(bytes.size()), bit, width, count, values.data());
  reader->Skip(static_cast<uint64_t>(count) * width);
}

}  // namespace terse
