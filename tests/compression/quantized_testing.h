// Helpers that the tests of quantizing codecs share.
#ifndef TERSE_TESTS_COMPRESSION_QUANTIZED_TESTING_H_
#define TERSE_TESTS_COMPRESSION_QUANTIZED_TESTING_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "compression/codec.h"
#include "tests/compression/updates.h"

namespace terse {

// The bytes of "10 00 ff".
inline std::string FromHex(const std::string& hex) {
  return absl::HexStringToBytes(absl::StrReplaceAll(hex, {{" ", ""}}));
}

inline EncodeOptions WithKey(uint64_t run, uint64_t round = 0, uint64_t client = 0) {
  EncodeOptions options;
  options.key = {run, round, client};
  return options;
}

inline std::vector<float> RoundTrip(const Codec& codec, const std::vector<float>& update, uint64_t run = 0) {
  return Decode(codec, *codec.Encode(update, WithKey(run)));
}

// The statistics of the values that an update decodes to when it is encoded under many keys.
struct Decoded {
  std::vector<double> mean;
  double squared_error = 0;  // mean over keys of ||decoded - update||^2
};

inline Decoded OverKeys(const Codec& codec, const std::vector<float>& update, int keys) {
  Decoded decoded;
  decoded.mean.resize(update.size());
  for (int key = 0; key < keys; ++key) {
    const std::vector<float> values = RoundTrip(codec, update, key);
    for (size_t i = 0; i < update.size(); ++i) {
      const double error = static_cast<double>(values[i]) - update[i];
      decoded.mean[i] += static_cast<double>(values[i]) / keys;
      decoded.squared_error += error * error / keys;
    }
  }
  return decoded;
}

// Numbers between `step` multiples, rounded to one of the two by chance: no mean is further off than chance allows. A
// sixth standard deviation happens to one element in 500 million; the variance of one is at most step^2 / 4.
inline void ExpectUnbiased(const Decoded& decoded, const std::vector<float>& update, double step, int keys) {
  for (size_t i = 0; i < update.size(); ++i) {
    EXPECT_NEAR(decoded.mean[i], update[i], 6 * step / 2 / std::sqrt(keys)) << i;
  }
}

// ||decoded - update||^2 that such a rounding has on average.
inline double RoundingVariance(const std::vector<float>& update, double step) {
  double sum = 0;
  for (float value : update) {
    const double fraction = value / step - std::floor(value / step);
    sum += fraction * (1 - fraction) * step * step;
  }
  return sum;
}

inline double SquaredNorm(const std::vector<float>& update) {
  double sum = 0;
  for (float value : update) sum += static_cast<double>(value) * value;
  return sum;
}

// Every decoder method says INVALID_ARGUMENT, with `reason` in the message.
inline void ExpectRefused(const Codec& codec, const std::string& message, const std::string& reason) {
  const absl::Status status = codec.Validate(message);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << absl::BytesToHexString(message);
  EXPECT_NE(status.message().find(reason), std::string::npos) << status;
  std::vector<float> values(codec.layout().size());
  EXPECT_EQ(codec.AddDecoded(message, 1.0f, absl::MakeSpan(values)), status);
}

// The bytes that stand in compression/FORMAT.md for this update, both ways.
inline void ExpectExample(const Codec& codec, const std::vector<float>& update, const std::string& hex) {
  EXPECT_EQ(absl::BytesToHexString(*codec.Encode(update)), absl::StrReplaceAll(hex, {{" ", ""}}));
  EXPECT_TRUE(codec.Validate(FromHex(hex)).ok());
}

}  // namespace terse

#endif  // TERSE_TESTS_COMPRESSION_QUANTIZED_TESTING_H_
