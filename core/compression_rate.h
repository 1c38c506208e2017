// The rate that tables, files and the dashboard call compression.
#ifndef TERSE_CORE_COMPRESSION_RATE_H_
#define TERSE_CORE_COMPRESSION_RATE_H_

#include <cstdint>
#include <optional>

namespace terse {

// Bytes that dense float32 communication after every local step would have taken, over the bytes that were sent.
// nullopt while nothing was sent.
inline std::optional<double> CompressionRate(uint64_t dense_bytes, uint64_t sent_bytes) {
  if (sent_bytes == 0) return std::nullopt;
  return static_cast<double>(dense_bytes) / static_cast<double>(sent_bytes);
}

}  // namespace terse

#endif  // TERSE_CORE_COMPRESSION_RATE_H_
